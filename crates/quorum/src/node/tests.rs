use super::*;
use crate::ballot::{Ballot, Kind};
use binlog::storage::posix::PosixStorage;
use binlog::testing::FileBuilder;
use codec::ServerKind;
use std::sync::atomic::AtomicUsize;

const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const FILE: &str = "b.000001";

/// A node of three whose copy holds two transactions of its source.
struct Scene {
    dir: tempfile::TempDir,
    published: Arc<Published>,
    node: Node,
    /// How often the session was told to end.
    ended: Arc<AtomicUsize>,
    end: u64,
}

fn ballot(epoch: u64) -> Ballot {
    Ballot { epoch, promoter: Uuid::from_bytes([epoch as u8; 16]) }
}

fn nothing() -> GtidState {
    GtidState::empty(ServerKind::MySql)
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let file = FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).finish();
        std::fs::create_dir(dir.path().join("0001")).unwrap();
        std::fs::write(dir.path().join("0001").join(FILE), &file).unwrap();
        let (published, ended) = (Arc::<Published>::default(), Arc::<AtomicUsize>::default());
        let node = Scene::open(dir.path(), &published, &ended);
        let scene = Scene { dir, published, node, ended, end: file.len() as u64 };
        scene.published.is_at(&scene.timeline(), Some(&scene.at(scene.end)));
        scene
    }

    /// As another process opens it.
    fn open(folder: &Path, published: &Arc<Published>, ended: &Arc<AtomicUsize>) -> Node {
        let ended = ended.clone();
        let node = Node::new(
            Arc::new(PosixStorage),
            folder.to_owned(),
            published.clone(),
            vec!["two".to_owned(), "three".to_owned()],
            Box::new(move |_| {
                ended.fetch_add(1, SeqCst);
            }),
        );
        node.open(Uuid::from_bytes([1; 16])).unwrap();
        node
    }

    fn timeline(&self) -> PathBuf {
        self.dir.path().join("0001")
    }

    fn at(&self, offset: u64) -> Position {
        Position::new(FILE, offset)
    }

    /// Where the copy ends.
    fn place(&self) -> Place {
        self.node.attached(&self.timeline(), SOURCE, None).unwrap();
        self.node.end().unwrap().1
    }

    fn source(&self, epoch: u64, founded: u64, source: &str) -> Accepted {
        Accepted {
            ballot: ballot(epoch),
            founded: ballot(founded),
            source: source.to_owned(),
            members: (1..=3).map(|node| Uuid::from_bytes([node; 16])).collect(),
            history: nothing(),
            place: self.place(),
        }
    }

    fn ask(&self, request: Request) -> Result<Reply, NodeError> {
        self.node.answer(&request, nothing)
    }

    fn tend(&self) {
        self.node.tend(&self.timeline(), &[FILE.to_owned()], &self.at(self.end), nothing).unwrap();
    }

    /// In a quorum of epoch 1, and counting.
    fn counting(self) -> Scene {
        let accepted = self.source(1, 1, SOURCE);
        self.ask(Request::Promise(ballot(1), Kind::Founding)).unwrap();
        self.ask(Request::Record(accepted.clone())).unwrap();
        assert_eq!(self.node.epoch(), 0, "it is not in force yet");
        self.ask(Request::Accept(accepted)).unwrap();
        assert_eq!(self.node.epoch(), 0, "its copy was not looked at yet");
        self.tend();
        assert_eq!(self.node.epoch(), 1);
        self
    }

    fn hears(&self, epoch: u64, place: Place, withholds: bool) {
        let confirmation = Some(Confirmation { epoch, place, withholds });
        let node = Uuid::from_bytes([2; 16]);
        let told = Told { node, nodes: 3, accepted: None, is_blank: false, promised: epoch, confirmation };
        self.node.hear(0, Ok(told)).unwrap();
    }

    /// What one other has, as an acknowledgement goes by.
    fn confirmed(&self) -> Option<u64> {
        let there = self.published.confirmed(&self.timeline(), 1, &[FILE.to_owned()]);
        there.map(|there| there.position().offset)
    }
}

/// Files of two sources often have the same name.
#[test]
fn what_was_durable_of_another_source_is_no_end_of_this_one() {
    let scene = Scene::new();
    scene.place();
    scene.node.is_durable(&scene.at(scene.end + 100));
    assert_eq!(
        scene.place().offset,
        scene.end + 100,
        "the same session, which has acknowledged more than is published"
    );
    scene.node.attached(&scene.timeline(), SOURCE, Some(false)).unwrap();
    assert_eq!(scene.place().offset, scene.end + 100, "the same source, which has got back what it lacked");
    scene.node.attached(&scene.timeline(), "another", None).unwrap();
    assert_eq!(scene.node.end().unwrap().1.offset, scene.end);
}

#[test]
fn another_counts_for_its_place_in_the_same_file_and_epoch_alone() {
    let scene = Scene::new().counting();
    let place = scene.place();
    let other_file = Place { identity: place.identity ^ 1, ..place.clone() };
    let not_here = Place { file: "b.000002".to_owned(), ..place.clone() };
    for (epoch, place, withholds) in [
        (2, place.clone(), false),
        (0, place.clone(), false),
        (1, other_file, false),
        (1, not_here, false),
        (1, place.clone(), true),
    ] {
        scene.hears(epoch, place.clone(), withholds);
        assert_eq!(scene.confirmed(), None, "{epoch} {place:?} {withholds}");
    }
    scene.hears(1, Place { offset: 90, ..place.clone() }, false);
    assert_eq!(scene.confirmed(), Some(90));
    // A source that lacks what this node holds.
    scene.node.attached(&scene.timeline(), SOURCE, Some(true)).unwrap();
    scene.hears(1, place.clone(), false);
    assert_eq!(scene.confirmed(), Some(90));
    assert!(scene.node.told(false).unwrap().confirmation.unwrap().withholds);
    scene.node.released().unwrap();
    scene.hears(1, place.clone(), false);
    assert_eq!(scene.confirmed(), Some(place.offset));
}

#[test]
fn a_promise_ends_what_was_confirmed_and_outlives_the_process() {
    let scene = Scene::new().counting();
    let place = scene.place();
    scene.hears(1, place.clone(), false);
    assert!(scene.confirmed().is_some() && scene.node.told(false).unwrap().confirmation.is_some());
    let reply = scene.ask(Request::Promise(ballot(5), Kind::Ordinary)).unwrap();
    let (promise, end) = reply.promise.unwrap();
    assert_eq!((promise.held.entered, end), (1, Some((SOURCE.to_owned(), place.clone()))));
    let is_fenced = |node: &Node| node.epoch() == 0 && node.told(false).unwrap().confirmation.is_none();
    assert!(is_fenced(&scene.node));
    assert_eq!(scene.confirmed(), None);
    scene.hears(1, place, false);
    assert_eq!(scene.confirmed(), None, "an answer of before comes late");
    let again = Scene::open(scene.dir.path(), &scene.published, &scene.ended);
    assert!(is_fenced(&again));
    assert!(matches!(
        again.answer(&Request::Promise(ballot(4), Kind::Ordinary), nothing),
        Err(NodeError::Refused(Refusal::Promised(_)))
    ));
}

#[test]
fn what_cannot_be_written_down_is_not_promised() {
    let scene = Scene::new().counting();
    std::fs::remove_file(scene.dir.path().join(QUORUM_FILE)).unwrap();
    std::fs::create_dir_all(scene.dir.path().join(QUORUM_FILE).join("in the way")).unwrap();
    let before = scene.node.memory();
    let refused = scene.ask(Request::Promise(ballot(5), Kind::Ordinary)).unwrap_err();
    assert!(matches!(refused, NodeError::Io { action: "write", .. }), "{refused}");
    assert_eq!((scene.node.memory(), scene.node.epoch()), (before, 1));
}

#[test]
fn a_node_enters_an_epoch_by_its_place_and_leaves_the_source_of_another() {
    let scene = Scene::new().counting();
    let place = scene.place();
    let ahead = Place { offset: place.offset + 1, ..place.clone() };
    let accepted = Accepted { place: ahead, ..scene.source(2, 1, SOURCE) };
    scene.ask(Request::Promise(ballot(2), Kind::Ordinary)).unwrap();
    scene.ask(Request::Accept(accepted)).unwrap();
    scene.tend();
    assert_eq!((scene.node.epoch(), scene.ended.load(SeqCst)), (0, 0), "its copy has not come so far");
    scene.ask(Request::Accept(scene.source(3, 1, SOURCE))).unwrap();
    scene.tend();
    assert_eq!(scene.node.epoch(), 3);
    scene.ask(Request::Accept(scene.source(4, 1, "another"))).unwrap();
    scene.tend();
    assert_eq!((scene.node.epoch(), scene.ended.load(SeqCst)), (0, 1));
    // The word may be lost, so a session asks too.
    assert!(scene.node.is_left_for().unwrap().contains("another is the source of epoch 4"));
    scene.node.attached(&scene.timeline(), "another", None).unwrap();
    assert_eq!(scene.node.is_left_for(), None);
    // What it held of the epoch that it has entered is what it answers with, whatever the next timeline has.
    let held = GtidState::parse(ServerKind::MySql, &format!("{SOURCE}:1-2")).unwrap();
    scene.node.timeline_ends(&held).unwrap();
    let reply = scene.ask(Request::Promise(ballot(9), Kind::Ordinary)).unwrap();
    assert_eq!(reply.promise.unwrap().0.held, Held { entered: 3, gtids: held });
}

#[test]
fn a_copy_with_a_gap_and_a_damaged_memory_count_no_more() {
    let scene = Scene::new().counting();
    scene.node.forget().unwrap();
    assert_eq!((scene.node.epoch(), scene.node.memory()), (0, Memory::default()));
    let refused = scene.ask(Request::Promise(ballot(5), Kind::Ordinary)).unwrap_err();
    assert!(matches!(refused, NodeError::Refused(Refusal::Blank)), "{refused}");
    std::fs::write(scene.dir.path().join(QUORUM_FILE), "entered = 7\n").unwrap();
    let damaged = scene.node.open(Uuid::from_bytes([1; 16])).unwrap_err();
    assert!(damaged.to_string().contains("remove the file, and the node joins the others anew"), "{damaged}");
}

#[test]
fn who_is_replaced_forgets_and_nobody_joins_where_no_place_is_free() {
    let scene = Scene::new().counting();
    let place = scene.place();
    let joins =
        |joiner| scene.ask(Request::Promise(ballot(2), Kind::Joining(Uuid::from_bytes([joiner; 16]))));
    // The third is not heard.
    scene.hears(1, place.clone(), false);
    joins(4).unwrap();
    let told = Told { node: Uuid::from_bytes([3; 16]), ..scene.node.told(false).unwrap() };
    scene.node.hear(1, Ok(told)).unwrap();
    let refused = joins(4).unwrap_err();
    assert!(matches!(refused, NodeError::Refused(Refusal::Complete)), "{refused}");
    joins(3).unwrap();
    let of = |members: [u8; 3], epoch| Accepted {
        members: members.map(|node| Uuid::from_bytes([node; 16])).into(),
        ..scene.source(epoch, 1, SOURCE)
    };
    scene.ask(Request::Accept(of([1, 3, 4], 3))).unwrap();
    assert_eq!(scene.node.memory().accepted().unwrap().ballot, ballot(3));
    // Neither an older epoch nor one of another quorum.
    scene.ask(Request::Accept(of([2, 3, 4], 2))).unwrap_err();
    scene.ask(Request::Accept(Accepted { founded: ballot(9), ..of([2, 3, 4], 9) })).unwrap_err();
    assert!(scene.node.memory().accepted().is_some());
    scene.ask(Request::Accept(of([2, 3, 4], 4))).unwrap_err();
    assert_eq!((scene.node.epoch(), scene.node.memory()), (0, Memory::default()));
}

#[test]
fn what_nodes_tell_is_read_back() {
    let scene = Scene::new().counting();
    let told = scene.node.told(true).unwrap();
    assert!(told.accepted.is_some() && told.confirmation.is_some());
    assert_eq!(Told::of_text(told.to_text().as_bytes()), Ok(told));
    let accepted = scene.source(2, 1, SOURCE);
    for request in [
        Request::Promise(ballot(2), Kind::Founding),
        Request::Promise(ballot(2), Kind::Ordinary),
        Request::Promise(ballot(2), Kind::Joining(Uuid::from_bytes([3; 16]))),
        Request::Succeed(ballot(3), 2),
        Request::Record(accepted.clone()),
        Request::Accept(accepted),
    ] {
        assert_eq!(Request::of_text(request.to_text().as_bytes()), Ok(request));
    }
    let reply = scene.ask(Request::Promise(ballot(2), Kind::Ordinary)).unwrap();
    assert_eq!(Reply::of_text(reply.to_text().as_bytes()), Ok(reply));
    // Of two promotions that begin at once.
    scene.ask(Request::Accept(scene.source(2, 1, "another"))).unwrap();
    let late = scene.ask(Request::Succeed(ballot(3), 1)).unwrap_err().to_string();
    assert_eq!(late, "another is the source of epoch 2 by now");
    assert_eq!(scene.ask(Request::Succeed(ballot(3), 2)).unwrap().promised, 3);
    assert!(Told::of_text(b"{}").is_err() && Request::of_text(b"nonsense").is_err());
}

#[test]
fn an_epoch_that_could_not_be_written_down_is_accepted_at_a_later_word() {
    let scene = Scene::new().counting();
    let later = scene.source(2, 1, "another");
    let told = |accepted| {
        let node = Uuid::from_bytes([2; 16]);
        Ok(Told { node, nodes: 3, accepted, is_blank: false, promised: 2, confirmation: None })
    };
    let accepted = || scene.node.memory().accepted().map(|accepted| accepted.ballot.epoch);
    // As a full disk does.
    let in_the_way = scene.dir.path().join(format!("{QUORUM_FILE}.tmp"));
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(matches!(scene.node.hear(0, told(Some(later))), Err(NodeError::Io { .. })));
    assert_eq!(accepted(), Some(1));
    std::fs::remove_dir(&in_the_way).unwrap();
    scene.node.hear(0, told(None)).unwrap();
    assert_eq!((accepted(), scene.ended.load(SeqCst)), (Some(2), 1));
}

#[test]
fn what_another_lacks_is_counted_over_files() {
    let scene = Scene::new().counting();
    let end = scene.place();
    let earlier = Place { offset: end.offset - 7, ..end.clone() };
    let of_file = |file: &str| Place { file: file.to_owned(), ..end.clone() };
    assert_eq!(scene.node.bytes_behind(&end), Some(0));
    assert_eq!(scene.node.bytes_behind(&earlier), Some(7));
    assert_eq!(scene.node.bytes_behind(&of_file("b.000002")), Some(0), "it is ahead");
    assert_eq!(scene.node.bytes_behind(&of_file("b.000000")), None, "it was purged here");
    std::fs::write(scene.timeline().join("b.000002"), [0; 40]).unwrap();
    scene.published.is_at(&scene.timeline(), Some(&Position::new("b.000002", 40)));
    assert_eq!(scene.node.bytes_behind(&earlier), Some(47));
    assert_eq!(scene.node.bytes_behind(&Place { offset: 30, ..of_file("b.000002") }), Some(10));
}

#[test]
fn what_a_source_lost_is_kept_until_its_contents_were_compared() {
    let scene = Scene::new().counting();
    let held = GtidState::parse(ServerKind::MySql, &format!("{SOURCE}:1-2")).unwrap();
    scene.node.timeline_ends(&held).unwrap();
    let kept = || {
        let reply = scene.ask(Request::Look).unwrap();
        reply.promise.unwrap().0.held.gtids
    };
    // Its logs began anew: nobody has compared anything, whatever its GTIDs say.
    let attached = |lacks| scene.node.attached(&scene.timeline(), SOURCE, lacks).unwrap();
    let withholds = || scene.node.told(false).unwrap().confirmation.unwrap().withholds;
    attached(None);
    scene.node.released().unwrap();
    assert!(withholds() && kept() == held);
    attached(Some(true));
    assert!(withholds() && kept() == held);
    attached(Some(false));
    assert!(!withholds() && kept() == nothing(), "it was handed back");
}

#[test]
fn a_node_that_belonged_to_the_quorum_while_it_joined_does_not_join() {
    let scene = Scene::new();
    let accepted = scene.source(5, 1, SOURCE);
    let since = scene.node.changes();
    scene.node.join(&accepted, since).unwrap();
    scene.node.forget().unwrap();
    assert_eq!(scene.node.memory(), Memory::default(), "it is blank again");
    let refused = scene.node.join(&scene.source(6, 1, SOURCE), since).unwrap_err();
    assert!(matches!(refused, NodeError::NotBlankSince), "{refused}");
    scene.node.join(&scene.source(6, 1, SOURCE), scene.node.changes()).unwrap();
}

#[test]
fn a_node_of_another_founding_is_named() {
    let scene = Scene::new().counting();
    let told = |founded| Told {
        node: Uuid::from_bytes([2; 16]),
        nodes: 3,
        accepted: Some(scene.source(7, founded, SOURCE)),
        is_blank: false,
        promised: 7,
        confirmation: None,
    };
    scene.node.hear(0, Ok(told(2))).unwrap();
    let error = scene.node.heard()[0].error.clone().unwrap();
    assert!(error.contains("began with epoch 2") && error.contains(QUORUM_FILE), "{error}");
    assert_eq!(scene.node.memory().accepted().unwrap().ballot, ballot(1));
    scene.node.hear(0, Ok(told(1))).unwrap();
    assert_eq!(scene.node.heard()[0].error, None);
}

#[test]
fn an_epoch_is_entered_by_the_file_of_its_place_and_by_no_later_one() {
    let scene = Scene::new().counting();
    let place = Place { file: FILE.to_owned(), identity: 0, offset: scene.end };
    scene.ask(Request::Promise(ballot(2), Kind::Ordinary)).unwrap();
    scene.ask(Request::Accept(Accepted { place, ..scene.source(2, 1, SOURCE) })).unwrap();
    let later = "b.000002".to_owned();
    let at = Position::new(later.as_str(), 4);
    scene.node.tend(&scene.timeline(), std::slice::from_ref(&later), &at, nothing).unwrap();
    assert_eq!(scene.node.epoch(), 0, "its GTIDs do not say that it has the bytes");
    scene.node.tend(&scene.timeline(), &[FILE.to_owned(), later], &at, nothing).unwrap();
    assert_eq!(scene.node.epoch(), 2);
}

#[test]
fn who_leaves_is_blank_and_keeps_what_was_promised_aside() {
    let scene = Scene::new().counting();
    let folder = scene.dir.path();
    assert_eq!(memory_in(&PosixStorage, folder).unwrap().unwrap(), scene.node.memory());
    let aside = leave(&PosixStorage, folder).unwrap();
    assert!(std::fs::read_to_string(&aside).unwrap().contains(SOURCE));
    assert_eq!(memory_in(&PosixStorage, folder).unwrap(), None);
    scene.node.open(Uuid::from_bytes([1; 16])).unwrap();
    assert_eq!(scene.node.memory(), Memory::default());
    assert!(leave(&PosixStorage, folder).unwrap_err().to_string().contains(QUORUM_FILE));
}
