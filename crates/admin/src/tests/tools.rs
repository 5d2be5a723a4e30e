//! What failover tools ask: which source is meant, and what is no question.

use super::*;
use codec::ServerKind;
use codec::gtid::{GtidState, Uuid};
use quorum::{Held, Promise, Reply};
use serde_json::Value;
use status::QuorumStatus;

const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

/// Two of three nodes hold what the test wants them to, and one does not answer.
struct Three(ServerKind, &'static str);

impl Controls for Three {
    fn carry_out(&self, _: &str, _: &Deed, _: &str) -> Result<String, String> {
        Err("nothing is done".to_owned())
    }

    fn ask_nodes(&self, source: &str) -> Vec<(Option<String>, Result<Reply, String>)> {
        assert_eq!(source, "orders");
        let gtids = GtidState::parse(self.0, self.1).unwrap();
        let promise = Promise { held: Held { entered: 3, gtids }, accepted: None };
        let reply = |node| Reply {
            node: Uuid::from_bytes([node; 16]),
            promised: 3,
            keeps: false,
            promise: Some((promise.clone(), None)),
        };
        vec![
            (None, Ok(reply(1))),
            (Some("b:3307".to_owned()), Ok(reply(2))),
            (Some("c:3307".to_owned()), Err("refused".to_owned())),
        ]
    }
}

/// A source with a quorum; it has received GTIDs of that kind.
fn of_a_quorum(name: &str, kind: Option<ServerKind>) -> Arc<SourceMonitor> {
    let source = SourceMonitor::new(name);
    let standing = || QuorumStatus { nodes: 3, counts: true, epoch: 3, ..QuorumStatus::default() };
    source.is_node(standing);
    let gtids = kind.map(|kind| match kind {
        ServerKind::MySql => GtidState::parse(kind, &format!("{SOURCE}:1")).unwrap(),
        ServerKind::MariaDb => GtidState::parse(kind, "0-1-1").unwrap(),
    });
    source.publish_gtids(|held| gtids.iter().for_each(|gtids| held.durable.append(gtids)));
    Arc::new(source)
}

fn asked(sources: Vec<Arc<SourceMonitor>>, nodes: Three, path: &str) -> (u16, Value) {
    let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
    sources.into_iter().for_each(|source| daemon.add(source));
    let listen = "127.0.0.1:0".parse().unwrap();
    let config = AdminConfig { listen: Some(listen), tls: None, write: false, users: Vec::new() };
    let server = AdminServer::start_with(listen, &config, daemon, Arc::new(nodes)).unwrap();
    let (code, head, body) = get(&server, path);
    assert!(head.contains("content-type: application/json"), "{head}");
    (code, serde_json::from_str(&body).unwrap())
}

#[test]
fn a_tool_is_told_what_it_asked_wrongly() {
    let kinds = [Some(ServerKind::MySql), Some(ServerKind::MariaDb)];
    for (name, kind, path, code, words) in [
        ("orders", None, "/v1/durable?gtid_set=0-1-1", 503, "has received no GTID"),
        ("orders", kinds[0], "/v1/durable", 400, "add gtid_set=SET"),
        ("orders", kinds[0], "/v1/durable?gtid_set=%20", 400, "add gtid_set=SET"),
        ("orders", kinds[0], "/v1/durable?gtid_set=,", 400, "holds no GTID"),
        ("orders", kinds[0], "/v1/durable?gtid_set=0-1-1", 400, "\"0-1-1\" is not"),
        (
            "orders",
            kinds[0],
            "/v1/durable?gtid_set=3e11fa47-71ca-11e1-9e33-c80aa9429562:1-x",
            400,
            "\"1-x\" is not",
        ),
        ("orders", kinds[1], "/v1/durable?gtid_set=0-1-1,0-1", 400, "\"0-1\" is not"),
        ("orders", kinds[1], "/v1/durable?gtid_set=0-1-1&source=stock", 404, "no source stock"),
        ("stock", kinds[0], "/v1/quorum?source=orders", 404, "no source orders"),
    ] {
        let source = of_a_quorum(name, kind);
        let (found, answer) = asked(vec![source], Three(ServerKind::MySql, ""), path);
        assert!(
            found == code && answer["error"].to_string().replace('\\', "").contains(words),
            "{path}: {answer}"
        );
    }
    let (code, answer) =
        asked(vec![Arc::new(SourceMonitor::new("a"))], Three(ServerKind::MySql, ""), "/v1/quorum");
    assert!(code == 404 && answer["error"].to_string().contains("set quorum in a"), "{answer}");
    let two = ["a", "b"].map(|name| of_a_quorum(name, None));
    let (code, answer) = asked(two.to_vec(), Three(ServerKind::MySql, ""), "/v1/quorum");
    assert!(code == 400 && answer["error"].to_string().contains("one of a, b"), "{answer}");
}

#[test]
fn which_nodes_have_a_set() {
    let mysql = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:8";
    for (kind, held, has, lacks) in [
        (
            ServerKind::MySql,
            mysql,
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:2-3",
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:5-6",
        ),
        (ServerKind::MariaDb, "0-1-9,0-2-12,1-1-4", "0-1-7,1-1-4", "0-1-10"),
    ] {
        let source = of_a_quorum("orders", Some(kind));
        let ask = |set: &str| {
            let path = format!("/v1/durable?gtid_set={set}");
            asked(vec![source.clone()], Three(kind, held), &path)
        };
        let (code, found) = ask(has);
        assert_eq!((code, &found["agreed"], &found["epoch"]), (200, &Value::from(true), &Value::from(3)));
        assert_eq!((&found["nodes"], &found["majority"]), (&Value::from(3), &Value::from(2)));
        let holders = found["holders"].as_array().unwrap();
        assert_eq!((&holders[0]["address"], &holders[0]["has"]), (&Value::Null, &Value::from(true)));
        assert_eq!((&holders[2]["has"], &holders[2]["error"]), (&Value::Null, &Value::from("refused")));
        let (_, found) = ask(lacks);
        let holder = &found["holders"][1];
        assert_eq!((&found["agreed"], &holder["has"]), (&Value::from(false), &Value::from(false)));
        assert!(!holder["lacks"].as_str().unwrap().is_empty(), "{found:#}");
    }
}

#[test]
fn how_a_quorum_stands() {
    let source = of_a_quorum("orders", Some(ServerKind::MySql));
    source.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
    let (code, found) = asked(vec![source.clone()], Three(ServerKind::MySql, ""), "/v1/quorum");
    assert_eq!((code, &found["source"], &found["host"]), (200, &"orders".into(), &"db1:3306".into()));
    assert!(found["source_gone_seconds"].as_f64().is_some(), "{found:#}");
    assert_eq!((&found["quorum"]["epoch"], &found["quorum"]["counts"]), (&3.into(), &true.into()));
    source.set_state(SourceState::Receiving);
    let (_, found) = asked(vec![source], Three(ServerKind::MySql, ""), "/v1/quorum?source=orders");
    assert_eq!(found["source_gone_seconds"], Value::Null);
}
