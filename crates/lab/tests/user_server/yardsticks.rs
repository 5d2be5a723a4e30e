//! The bare receiver and go-mysqlbinlog as receivers of a server of the lab's own, of the user's kind.

use super::{SMALL, User};

pub(crate) fn are_measured_on_the_labs_own(user: &User) {
    let more = [
        "--server",
        user.name,
        "--set",
        "real_replicas=no",
        "--set",
        "yardsticks=bare,go-mysqlbinlog",
        "--set",
        "workload=oltp_update_non_index",
    ];
    let output = user.run(&[&more[..], &SMALL].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = user.newest("virtual-replica");
    assert_eq!(run.cells.len(), 4 + 3);
    for cell in &run.cells {
        let (point, values) = (&cell.key.point, &cell.measured.values);
        assert_eq!(cell.measured.invalid, None, "{point:?}");
        assert_eq!(point.panel.condition.to_string(), "oltp_update_non_index");
        let is_attached = point.configuration.to_string() != "source alone";
        assert_eq!(values.contains_key("source_wait_us"), is_attached, "{point:?}: {values:?}");
        assert_eq!(values.contains_key("receiver_cores"), is_attached, "{point:?}: {values:?}");
    }
    let has = |name: &str| run.cells.iter().any(|cell| cell.key.point.configuration.to_string() == name);
    assert!(["bare receiver, synced", "bare receiver, written", "go-mysqlbinlog"].into_iter().all(has));
}
