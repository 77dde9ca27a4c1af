//! An operator with fixed answers, and a client that sends bytes as it likes.
#![allow(missing_docs, unreachable_pub, reason = "a test program has no interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bellrock_api::Dpid;
use bellrock_northbound::tokens::{Scope, TokenEntry};
use bellrock_northbound::{HttpCounters, HttpSettings, Server, counted};
use bellrock_query::{
    Answer, AppRow, BlockGap, BlockGapState, BlockedList, CleanAnswer, ClusterStatus,
    ClusterSwitchRow, Counters, ErrorKind, EventRow, EventsAfter, FlowPage, FollowEvents,
    MAX_EVENTS_AT_ONCE, MessageBytes, MessageOutcome, MessageState, Operator, OrphansOfApp, PinRow,
    QuarantineAnswer, QueryError, RelayRow, ReloadAnswer, Request, ReservationRow,
    ReservationState, Rows, SentMessages, SharedConfig, StaticAnswer, StaticEntry, Status,
    SwitchOrphans, SwitchReply, SwitchRow, TopologyAnswer,
};
use serde_json::{Value, json};

/// Time limit of every read and write, far more than needed on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Answers from a network with one switch, `s1`, and records the requests.
#[derive(Default)]
pub struct Fixed {
    pub requests: Mutex<Vec<Request>>,
    /// Whether a slow order is carried out.
    pub goes_on: AtomicBool,
    /// Number of events so far.
    pub events: AtomicUsize,
    /// Number of ports of the switch, beside the first.
    pub more_ports: AtomicUsize,
}

impl Fixed {
    /// Waits until slow requests are carried out.
    fn wait(&self) {
        while !self.goes_on.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The event with this number. Its id is the number.
fn event_row(number: usize) -> EventRow {
    let row = json!({
        "id": number.to_string(), "seconds_ago": 0, "unix_ms": 1, "event": "link_down",
        "text": format!("line one of {number}\nline two"), "alarming": false,
    });
    serde_json::from_value(row).unwrap()
}

impl Fixed {
    /// The events after one. It waits as the controller does.
    fn follow(&self, query: &FollowEvents) -> Result<EventsAfter, QueryError> {
        let count = || self.events.load(Ordering::Relaxed);
        let next = match query.after.as_deref() {
            None => count(),
            Some("start") => 0,
            Some(id) => match id.parse::<usize>() {
                Ok(number) => number + 1,
                Err(_) => return Err(QueryError::invalid("after", "not an id")),
            },
        };
        let deadline = Instant::now() + Duration::from_millis(query.wait_ms);
        while count() <= next && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let events: Vec<_> = (next..count()).take(MAX_EVENTS_AT_ONCE).map(event_row).collect();
        let before = next.checked_sub(1).map_or("start".to_owned(), |n| n.to_string());
        let last = events.last().map_or(before, |row| row.id.clone());
        Ok(EventsAfter { restarted: false, missed: 0, events, last })
    }
}

fn switch_row() -> SwitchRow {
    let row = json!({
        "dpid": "00000000000000a1", "name": "s1", "version": "1.3", "role": "equal", "standby": false,
        "master": "a",
        "peer": "127.0.0.1:40000", "identity": {
            "name": "switch id:1", "key": format!("sha256:{}", "0a".repeat(32)), "dpids": [],
            "expiry": 2_000_000_000, "protocol": "TLS 1.3", "cipher": "TLS_AES_256_GCM_SHA384",
        }, "up_seconds": 3, "packet_ins": 7, "packet_ins_dropped": 9, "n_tables": 254, "n_buffers": 0,
        "manufacturer": "M", "hardware": "H", "software": "S\"\n# \\", "serial_number": "N", "description": "D",
        "ports": [{"port": "1", "name": "s1-eth1", "mac": "00:00:00:00:00:01", "state": "up",
            "packet_ins": 6, "packet_ins_dropped": 8}],
    });
    serde_json::from_value(row).unwrap()
}

fn app_row() -> AppRow {
    let row = json!({
        "name": "hub", "lowest_priority": 1, "highest_priority": 2, "cookie": "00c0ffee",
        "scope": "once", "leader": "a", "panics": 0,
        "disabled": false, "errors": 0, "last_error": null, "blocked": 1, "refused": 2, "messages": 3,
        "message_excesses": 4, "tables": {"used_bytes": 5, "limit_bytes": 6, "refusals": 7},
    });
    serde_json::from_value(row).unwrap()
}

fn pin_row() -> PinRow {
    let row = json!({
        "dpid": "00000000000000a1", "switch_name": "s1", "name": "switch id:1",
        "key": format!("sha256:{}", "0a".repeat(32)),
    });
    serde_json::from_value(row).unwrap()
}

fn orphans_row() -> SwitchOrphans {
    let apps = vec![OrphansOfApp { app: "bandwidth".to_owned(), flows: 1 }];
    SwitchOrphans { dpid: Dpid(1), name: None, problem: None, apps, flows: Vec::new() }
}

fn relay_row() -> RelayRow {
    let row = json!({
        "from_dpid": "00000000000000a1", "from_name": "s1", "from_port": "3", "to_dpid": "00000000000000a2",
        "to_port": "3", "evidence": "a host was seen at 00000000000000a1:3", "evidence_seconds": 7,
        "verdict": "none", "up": false,
    });
    serde_json::from_value(row).unwrap()
}

fn cluster() -> ClusterStatus {
    let row = json!({
        "name": "campus", "node": "a", "serving": true,
        "nodes": [
            {"name": "a", "address": "127.0.0.1:6640", "state": "serving", "switches": 1},
            {"name": "b", "address": "127.0.0.1:6641", "state": "draining", "last_heard_ms": 7, "switches": 1},
            {"name": "c", "address": "127.0.0.1:6642", "state": "dead", "last_heard_ms": 900, "switches": 0},
        ],
        "store": {"reachable": false, "last_error": "timed out", "revision": 91, "last_heard_ms": 4500},
        "epoch": 88, "certificate_expiry": 1_950_000_000, "crl_expiry": 1_940_000_000,
        "requests": {"sent": 9, "answered": 6, "not_sent": 1, "unknown": 2, "taken": 4, "refused": 3},
    });
    serde_json::from_value(row).unwrap()
}

fn cluster_switch() -> ClusterSwitchRow {
    let row = json!({
        "dpid": "00000000000000a1", "name": "s1", "masters": ["a", "b"], "epoch": 3, "obeys": "a",
        "role": "master",
    });
    serde_json::from_value(row).unwrap()
}

pub fn reservation() -> ReservationRow {
    ReservationRow {
        id: 7,
        from: "h1".into(),
        to: "h2".into(),
        rate_kbps: 1000,
        queue: None,
        state: ReservationState::Installed,
        why: None,
        path: vec!["s1:2".into()],
    }
}

impl Operator for Fixed {
    fn answer(&self, request: Request) -> Result<Answer, QueryError> {
        // The server itself waits for events all the time.
        if !matches!(&request, Request::FollowEvents(query) if query.wait_ms > 0) {
            self.requests.lock().unwrap().push(request.clone());
        }
        Ok(match request {
            Request::GetStatus(_) => Answer::GetStatus(Status {
                version: "0".into(),
                pid: 1,
                uptime_seconds: 2,
                listen: vec![SocketAddr::from(([127, 0, 0, 1], 6653))],
                listen_tls: vec![SocketAddr::from(([127, 0, 0, 1], 6654))],
                tls_certificate_expiry: Some(1_900_000_000),
                tls_crl_expiry: Some(1_890_000_000),
                apps: vec!["learning".into()],
                workers: 1,
                connections: 1,
                accepted: 1,
                refused: 0,
                duplicates_refused: 0,
                switches: 1,
                missing_switches: vec![
                    serde_json::from_value(json!({"name": "s2", "dpid": "00000000000000a2"}))
                        .unwrap(),
                ],
                hosts: 3,
                table_memory: None,
            }),
            Request::ListSwitches(query) => {
                let is_it = |name: &str| ["s1", "00000000000000a1"].contains(&name);
                let rows = match query.switch.map(|switch| switch.to_string()) {
                    Some(name) if !is_it(&name) => vec![],
                    _ => {
                        let mut row = switch_row();
                        let more = self.more_ports.load(Ordering::Relaxed);
                        let port = row.ports[0].clone();
                        row.ports.extend(std::iter::repeat_n(port, more));
                        vec![row]
                    }
                };
                Answer::ListSwitches(Rows::of(rows, query.page))
            }
            Request::ListPorts(query) => {
                let row = json!({
                    "dpid": "00000000000000a1", "switch_name": "s1", "port": "1", "name": "s1-eth1",
                    "mac": "00:00:00:00:00:01", "state": "up", "rate_kbps": null,
                    "packet_ins": 6, "packet_ins_dropped": 8, "counters": {"rx_bytes": 500, "tx_bytes": 600},
                });
                Answer::ListPorts(Rows::of([serde_json::from_value(row).unwrap()], query.page))
            }
            Request::ListHosts(query) => Answer::ListHosts(Rows::of([], query.page)),
            Request::ListApps(_) => Answer::ListApps(vec![app_row()]),
            Request::ListTasks(query) => Answer::ListTasks(Rows::of([], query.page)),
            Request::GetCounters(_) => Answer::GetCounters(Counters {
                workers: vec![BTreeMap::from([("packet_ins".to_owned(), 5)])],
                tasks: BTreeMap::from([("task_polls".to_owned(), 9)]),
                apps: BTreeMap::from([
                    ("hub".to_owned(), BTreeMap::from([("floods".to_owned(), 1)])),
                    (
                        "learning".to_owned(),
                        BTreeMap::from([("floods".to_owned(), 2), ("odd-name".to_owned(), 3)]),
                    ),
                ]),
                http: BTreeMap::new(),
                switches: serde_json::from_value(json!([
                    {"dpid": "00000000000000a1", "name": "s1", "counters": {"packet_ins": 7, "dp_connections": 2}},
                    {"dpid": "00000000000000a3", "counters": {"packet_ins": 1, "dp_connections": 1}},
                ])).unwrap(),
            }),
            Request::DescribeCounters(_) => {
                let meanings = json!([
                    {"part": "workers", "name": "packet_ins", "meaning": "Packet-ins that reached the apps."},
                    {"part": "tasks", "name": "task_polls", "meaning": "Turns of tasks."},
                    {"part": "apps", "app": "learning", "name": "floods", "meaning": "Packets flooded."},
                    {"part": "switches", "name": "packet_ins", "meaning": "Packet-ins of the switch."},
                    {"part": "switches", "name": "dp_connections", "meaning": "Connections of the switch."},
                ]);
                Answer::DescribeCounters(serde_json::from_value(meanings).unwrap())
            }
            Request::ListLatencies(_) => {
                let rows = json!([{
                    "name": "turn", "meaning": "Turns of workers.", "count": 3, "sum_seconds": 0.5,
                    "buckets": [{"le_seconds": 0.001, "count": 1}, {"le_seconds": 0.1, "count": 2}],
                }]);
                Answer::ListLatencies(serde_json::from_value(rows).unwrap())
            }
            Request::GetTopology(_) => Answer::GetTopology(TopologyAnswer {
                settled: true,
                switches: vec![],
                links: vec![],
            }),
            Request::ListLinks(query) => Answer::ListLinks(Rows::of([], query.page)),
            Request::ListEvents(query) => Answer::ListEvents(Rows::of([], query.page)),
            Request::FollowEvents(query) => Answer::FollowEvents(self.follow(&query)?),
            Request::ListFlows(query) => Answer::ListFlows(FlowPage {
                dpid: switch_row().dpid,
                name: None,
                version: switch_row().version,
                flows: Rows::of([], query.page),
            }),
            Request::ListGroups(query) => {
                let row = json!({
                    "group": 7, "type": "ff", "buckets": ["watch_port:2,actions=output:2"], "used_by": 1,
                    "packets": 12, "bytes": null, "age_seconds": 3,
                });
                Answer::ListGroups(Rows::of([serde_json::from_value(row).unwrap()], query.page))
            }
            Request::ListMeters(query) => {
                let row = json!({
                    "meter": 5, "flags": "KBPS", "bands": ["drop, rate=1000"], "used_by": 1,
                    "packets": 12, "bytes": null, "age_seconds": 3,
                });
                Answer::ListMeters(Rows::of([serde_json::from_value(row).unwrap()], query.page))
            }
            Request::ListQueues(query) => {
                let row = json!({
                    "dpid": "00000000000000a1", "port": "3", "queue": 1, "rate_kbps": null,
                    "tx_packets": 12, "tx_bytes": 1176, "tx_errors": 0, "age_seconds": 3,
                });
                Answer::ListQueues(Rows::of([serde_json::from_value(row).unwrap()], query.page))
            }
            Request::CountFlows(query) => {
                let row = json!({
                    "dpid": "00000000000000a1", "name": "s1", "problem": null, "apps": [
                        {"app": "learning", "flows": 4, "wanted": 5, "packets": 0, "bytes": 0},
                        {"app": null, "flows": 1, "wanted": null, "packets": 0, "bytes": 0},
                    ],
                });
                Answer::CountFlows(Rows::of([serde_json::from_value(row).unwrap()], query.page))
            }
            Request::Block(order) if order.host == "panic" => panic!("as asked"),
            Request::Block(order) if order.host == "slow" => {
                self.wait();
                Answer::Block(blocked(order.host))
            }
            Request::Block(order) => Answer::Block(blocked(order.host)),
            Request::Unblock(order) => Answer::Unblock(QuarantineAnswer {
                let_back: Some(order.host),
                ..QuarantineAnswer::default()
            }),
            Request::ListBlocked(query) => Answer::ListBlocked(BlockedList {
                hosts: Rows::of([], query.page),
                file_problem: None,
            }),
            Request::Reserve(order) if order.rate_kbps == 0 => {
                return Err(QueryError::invalid("rate_kbps", "a rate is at least 1 kbit/s"));
            }
            Request::Reserve(_) => Answer::Reserve(reservation()),
            Request::Release(order) if order.id != 7 => {
                let why = format!("there is no reservation {}", order.id);
                return Err(QueryError::not_found("id", why));
            }
            Request::Release(_) => Answer::Release(reservation()),
            Request::ListReservations(query) => {
                Answer::ListReservations(Rows::of([reservation()], query.page))
            }
            Request::AskSwitch(query) => {
                if query.switch.to_string() == "slow" {
                    self.wait();
                }
                Answer::AskSwitch(SwitchReply {
                    dpid: switch_row().dpid,
                    name: None,
                    version: switch_row().version,
                    multipart: Some(7),
                    bytes: MessageBytes::default(),
                    text: "0 groups".to_owned(),
                })
            }
            Request::SendMessages(order) => Answer::SendMessages(SentMessages {
                dpid: switch_row().dpid,
                name: None,
                version: switch_row().version,
                outcomes: vec![
                    MessageOutcome { state: MessageState::Confirmed, why: None };
                    order.messages.len()
                ],
            }),
            Request::Reload(order) => Answer::Reload(ReloadAnswer {
                applied: !order.dry_run,
                ..ReloadAnswer::default()
            }),
            Request::SetStatic(order) => {
                let wrong = |entry: &StaticEntry| entry.name == "wrong";
                if let Some(index) = order.entries.iter().position(wrong) {
                    let field = format!("entries[{index}].flow.match");
                    return Err(QueryError::invalid(&field, "there is no such field"));
                }
                if order.remove.iter().any(|name| name == "missing") {
                    return Err(QueryError::not_found("remove", "there is no entry missing"));
                }
                Answer::SetStatic(StaticAnswer {
                    set: order.entries.len(),
                    removed: order.remove.len(),
                    ..StaticAnswer::default()
                })
            }
            Request::ListStatic(query) => {
                let row = json!({
                    "name": "web", "owner": "writer", "dpid": "00000000000000a1", "switch_name": "s1",
                    "state": "installed", "flow": {"match": "in_port=1", "actions": "output:2"},
                });
                Answer::ListStatic(Rows::of([serde_json::from_value(row).unwrap()], query.page))
            }
            Request::ListOrphans(query) => {
                Answer::ListOrphans(Rows::of([orphans_row()], query.page))
            }
            Request::CleanFlows(_) => Answer::CleanFlows(CleanAnswer {
                removed: 1,
                switches: vec![orphans_row()],
            }),
            Request::ListRelays(query) => Answer::ListRelays(Rows::of([relay_row()], query.page)),
            Request::JudgeRelay(_) => Answer::JudgeRelay(relay_row()),
            Request::ListIdentities(query) => {
                Answer::ListIdentities(Rows::of([pin_row()], query.page))
            }
            Request::ForgetIdentity(_) => Answer::ForgetIdentity(pin_row()),
            Request::GetCluster(_) => Answer::GetCluster(cluster()),
            Request::ListClusterSwitches(query) => {
                Answer::ListClusterSwitches(Rows::of([cluster_switch()], query.page))
            }
            Request::MoveSwitch(order) if order.node != "b" => {
                return Err(QueryError::not_found("node", "there is no such node"));
            }
            Request::MoveSwitch(_) => Answer::MoveSwitch(cluster_switch()),
            Request::DrainNode(_) => Answer::DrainNode(cluster()),
            Request::BalanceCluster(_) => Answer::BalanceCluster(cluster()),
            Request::GetSharedConfig(_) => Answer::GetSharedConfig(SharedConfig {
                generation: 4,
                text: "switches: {s1: a1}\n".to_owned(),
                node: Some("b".to_owned()),
                changed_at: Some(1_795_820_400),
                trouble: None,
            }),
            Request::SetSharedConfig(order) => Answer::SetSharedConfig(ReloadAnswer {
                applied: !order.dry_run,
                ..ReloadAnswer::default()
            }),
            Request::ListCircuits(_) => {
                let why = "this needs the app `provisioning`";
                return Err(QueryError::new(ErrorKind::AppNotRunning, why));
            }
        })
    }
}

/// A server with a token of each scope, and one that has expired.
pub struct Lab {
    pub server: Server,
    pub counters: HttpCounters,
    pub operator: Arc<Fixed>,
    pub read: String,
    pub write: String,
    pub expired: String,
    directory: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        Lab::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut HttpSettings)) -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (reader, read) = TokenEntry::make("reader", Scope::Read, None).unwrap();
        let (writer, write) = TokenEntry::make("writer", Scope::Write, None).unwrap();
        let (old, expired) = TokenEntry::make("old", Scope::Write, Some(Duration::ZERO)).unwrap();
        for entry in [reader, writer, old] {
            entry.add_to(&path).unwrap();
        }
        let mut settings = HttpSettings {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            tls: None,
            tokens: Some(path),
            ..HttpSettings::default()
        };
        change(&mut settings);
        let (counters, operator) = (HttpCounters::default(), Arc::new(Fixed::default()));
        let server =
            Server::start(&settings, counted(operator.clone(), &counters), &counters).unwrap();
        Lab { server, counters, operator, read, write, expired, directory }
    }

    pub fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    /// Removes the line of a token, as an operator does. A new file has a time of its own.
    pub fn remove_token(&self, name: &str) {
        let path = self.directory.path().join("tokens");
        let text = fs::read_to_string(&path).unwrap();
        let start = format!("{name} ");
        let rest: String = text
            .lines()
            .filter(|line| !line.starts_with(&start))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_ne!(text, rest, "there is no {name}");
        fs::write(&path, rest).unwrap();
    }

    /// Removes the whole file of the tokens.
    pub fn remove_tokens(&self) {
        fs::remove_file(self.directory.path().join("tokens")).unwrap();
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.counters.values()[name]
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request, with these header fields, and returns the reply.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        exchange(&mut self.connect(), method, path, headers, body)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "")
    }

    /// Sends a request with a token.
    pub fn order(&self, token: &str, method: &str, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        self.send(method, path, &[("authorization", &bearer)], body)
    }
}

/// A reply.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// In small letters.
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The problem, after a check that it is one.
    pub fn problem(&self, status: u16, kind: &str) -> Value {
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!((self.status, &problem["status"]), (status, &json!(status)), "{self:?}");
        assert_eq!(problem["type"], format!("urn:bellrock:{kind}"), "{self:?}");
        assert!(!problem["title"].as_str().unwrap().is_empty());
        problem
    }
}

/// Sends a request on a connection that ends with it.
pub fn exchange<S: Read + Write>(
    stream: &mut S,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).unwrap();
    // A body that is too large may be refused before it is sent.
    let _ = stream.write_all(body.as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    reply(&bytes)
}

pub fn reply(bytes: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

fn blocked(host: String) -> QuarantineAnswer {
    let why = "the switch is not connected".to_owned();
    let gap = BlockGap { dpid: switch_row().dpid, name: None, state: BlockGapState::Away, why };
    QuarantineAnswer { blocked: Some(host), gaps: vec![gap], ..QuarantineAnswer::default() }
}
