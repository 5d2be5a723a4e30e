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

    fn promote(&self, source: &str, asked: &PromoteAsked, by: &str) -> Result<Value, NotPromoted> {
        let with = format!("{source} to {} with {:?}, {} s, by {by}", asked.to, asked.accept, asked.wait);
        match asked.to.as_str() {
            "db3" => Err(NotPromoted::Refused("another promotion is under way".to_owned())),
            "db9" => Err(NotPromoted::Asked("to is db9".to_owned())),
            _ => Ok(Value::from(format!("{with}, {:?}", asked.password.expose()))),
        }
    }
}

/// What a promotion is answered with.
fn promoted(write: bool, headers: &str, body: &str) -> (u16, Value) {
    let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
    daemon.add(of_a_quorum("orders", None));
    let listen = "127.0.0.1:0".parse().unwrap();
    let config = AdminConfig { listen: Some(listen), tls: None, write, users: Vec::new() };
    let nodes = Arc::new(Three(ServerKind::MySql, ""));
    let server = AdminServer::start_with(listen, &config, daemon, nodes).unwrap();
    let length = body.len();
    let request = format!("POST /v1/promote HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    let (code, head, body) = exchange(&server, request.as_bytes());
    assert!(head.contains("content-type: application/json"), "{head}");
    (code, serde_json::from_str(&body).unwrap())
}

#[test]
fn a_promotion_is_taken_from_who_may_and_in_json_alone() {
    const OURS: &str = "Host: localhost\r\nContent-Type: application/json; charset=utf-8\r\n";
    const FORM: &str = "Host: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    const ELSEWHERE: &str =
        "Host: localhost\r\nContent-Type: application/json\r\nOrigin: http://evil.example\r\n";
    const REBOUND: &str = "Host: evil.example\r\nContent-Type: application/json\r\n";
    let to = r#"{"to": "db2"}"#;
    let huge = format!(r#"{{"to": "{}"}}"#, "x".repeat(5000));
    for (write, headers, body, code, words) in [
        (false, OURS, to, 403, "write of [admin] is not true"),
        (true, ELSEWHERE, to, 403, "another web site"),
        (true, REBOUND, to, 403, "IP address or as localhost"),
        (true, FORM, to, 415, "send Content-Type: application/json"),
        (true, OURS, &huge, 413, "more than 4096 bytes"),
        (true, OURS, "", 400, "the body"),
        (true, OURS, "{}", 400, "missing field `to`"),
        (true, OURS, r#"{"to": "db2", "dryrun": true}"#, 400, "unknown field `dryrun`"),
        (true, OURS, r#"{"to": "db2", "wait": 301}"#, 400, "300 seconds at most"),
        (true, OURS, r#"{"to": "db2", "password": "geheim"}"#, 400, "add user"),
        (true, OURS, r#"{"to": "db2", "source": "stock"}"#, 404, "no source stock"),
        (true, OURS, r#"{"to": "db9"}"#, 400, "to is db9"),
        (true, OURS, r#"{"to": "db3"}"#, 409, "another promotion is under way"),
    ] {
        let (found, answer) = promoted(write, headers, body);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            found == code && answer["done"] == false && error.contains(words),
            "{found} {answer}: {body}"
        );
        assert!(!error.contains("geheim"), "{error}");
    }
    let whole = r#"{"to": "db2:3306", "user": "admin", "password": "geheim", "accept": ["a"], "wait": 7}"#;
    let (code, answer) = promoted(true, OURS, whole);
    let expected = "orders to db2:3306 with [\"a\"], 7 s, by somebody from 127.0.0.1, \"geheim\"";
    assert_eq!((code, answer), (200, Value::from(expected)));
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = AdminServer::start(listen, Arc::new(DaemonMonitor::new(Path::new("data")))).unwrap();
    let (code, head, body) = get(&server, "/v1/promote");
    assert!(code == 405 && head.contains("allow: post") && body.contains("JSON alone"), "{head} {body}");
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
