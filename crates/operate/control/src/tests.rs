//! Client and server of the control socket together.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bellrock_query::{
    Answer, AppRow, AppScope, ErrorKind, EventRow, ListApps, ListEvents, ListFlows, ListHosts,
    MAX_PAGE_ROWS, Operator, Page, Query, QueryError, Request, Rows,
};

use crate::server::DIRECTORIES_TRIED;
use crate::{AskError, CLIENT_TIMEOUT, Client, MAX_CLIENTS, Server, ServerError};

/// Watchdog: maximum time of any step, far more than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket path in a directory of its own.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Place(crate::test_directory(name))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("control.sock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An operator with one app, whose name is "hub". Other answers are errors with the request.
struct Echo;

impl Operator for Echo {
    fn answer(&self, request: Request) -> Result<Answer, QueryError> {
        match request {
            Request::ListApps(_) => Ok(Answer::ListApps(vec![hub()])),
            Request::ListTasks(_) => panic!("the answer of a test"),
            Request::ListEvents(query) => Ok(Answer::ListEvents(Rows::of(events(), query.page))),
            other => {
                let text = serde_json::to_string(&other).unwrap();
                Err(QueryError::not_found("switch", text))
            }
        }
    }
}

fn hub() -> AppRow {
    AppRow {
        name: "hub".to_owned(),
        lowest_priority: 1,
        highest_priority: 2,
        cookie: "00c0ffee".to_owned(),
        scope: AppScope::PerSwitch,
        leader: None,
        panics: 0,
        disabled: false,
        errors: 0,
        last_error: None,
        blocked: 0,
        refused: 0,
        messages: 0,
        message_excesses: 0,
        tables: None,
    }
}

/// More events than two pages hold.
fn events() -> Vec<EventRow> {
    let event = |number| EventRow {
        id: String::new(),
        unix_ms: 0,
        seconds_ago: number,
        event: "switch_up".to_owned(),
        text: String::new(),
        reason: None,
        alarming: false,
        state: None,
        ended_unix_ms: None,
        ends: None,
    };
    (0..2 * MAX_PAGE_ROWS as u64 + 5).map(event).collect()
}

/// More than a request may have.
const TOO_MANY_BYTES: usize = 2 << 20;

#[test]
fn all_pages_of_a_list_are_one_list() {
    let place = Place::new("control-pages");
    let _server = start(&place.socket()).unwrap();
    let all = Client::new(place.socket())
        .ask_all(|page| ListEvents { page, ..ListEvents::default() })
        .unwrap();
    assert!(all.rows.iter().map(|row| row.seconds_ago).eq(0..2 * MAX_PAGE_ROWS as u64 + 5));
}

#[test]
fn a_wrong_value_is_named_by_its_field() {
    let place = Place::new("control-field");
    let _server = start(&place.socket()).unwrap();
    for (request, field) in [
        (r#"{"list_hosts": {"page": {"limit": 0}}}"#, Some("page")),
        (r#"{"list_hosts": {"page": {"skip": "x"}}}"#, Some("page.skip")),
        (r#"{"release": {"id": -1}}"#, Some("id")),
        (r#"{"stop": {}}"#, None),
        ("{}", None),
    ] {
        let line = format!("{{\"protocol\": 1, \"request\": {request}}}\n");
        let reply: serde_json::Value =
            serde_json::from_str(&say(&place.socket(), line.as_bytes())).unwrap();
        assert_eq!(reply["error"]["field"].as_str(), field, "{reply}");
    }
}

fn start(path: &Path) -> Result<Server, ServerError> {
    Server::start(path, Arc::new(Echo))
}

fn ask<Q: Query>(path: &Path, query: Q) -> Result<Q::Answer, AskError> {
    Client::new(path).ask(query)
}

/// Asserts that a controller answers at this path.
fn assert_answers(path: &Path) {
    assert_eq!(ask(path, ListApps {}).unwrap(), [hub()]);
}

/// Sends raw bytes and returns the line that comes back.
fn say(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn every_request_gets_its_answer_and_the_socket_goes_with_the_server() {
    let place = Place::new("control-answers");
    let server = start(&place.socket()).unwrap();
    assert_answers(&place.socket());
    let page = Page::new(7, 9).unwrap();
    let flows = ListFlows { switch: "s 1\n".parse().unwrap(), app: None, page };
    let error = match ask(&place.socket(), flows.clone()) {
        Err(AskError::Refused(error)) => error,
        other => panic!("an error with the request, not {other:?}"),
    };
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::NotFound, Some("switch")));
    assert_eq!(serde_json::from_str::<Request>(&error.message).unwrap(), flows.into());
    drop(server);
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0, "nothing is left behind");
    assert!(matches!(ask(&place.socket(), ListApps {}), Err(AskError::NotRunning(_))));
}

#[test]
fn ends_of_different_releases_refuse_each_other() {
    let place = Place::new("control-versions");
    let server = start(&place.socket()).unwrap();
    // A newer command.
    let line = say(&place.socket(), b"{\"protocol\": 2, \"request\": {\"of_2\": []}, \"x\": 1}\n");
    assert!(line.contains("\"kind\":\"version\"") && line.contains("use the command of"), "{line}");
    // A command that sends words reads `error` as text.
    for words in ["status\n", "flows a1 - 9 0\n", "quarantine add 10.0.0.7\n"] {
        let line = say(&place.socket(), words.as_bytes());
        let reply: serde_json::Value = serde_json::from_str(&line).unwrap();
        let error = reply["error"].as_str().unwrap();
        assert!(error.contains("this controller is newer than the command"), "{error}");
    }
    drop(server);
    // A newer controller, and one that reads words.
    let listener = UnixListener::bind(place.socket()).unwrap();
    let other = thread::spawn(move || {
        for reply in [
            "{\"protocol\": 2, \"answer\": {\"of\": 2}}\n",
            "{\"protocol\": 2, \"error\": \"of 2\"}\n",
            "{\"error\": \"no such question\"}\n",
        ] {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    for protocol in [Some(2), Some(2), None] {
        let error = ask(&place.socket(), ListApps {}).unwrap_err();
        assert!(
            error.to_string().contains("use the command of the controller's release"),
            "{error}"
        );
        match error {
            AskError::OtherVersion { protocol: found, .. } => assert_eq!(found, protocol),
            error => panic!("another version, not {error}"),
        }
    }
    other.join().unwrap();
}

#[test]
fn directories_left_by_a_killed_controller_stop_no_other() {
    let place = Place::new("control-left");
    let left = |n: usize| match n {
        0 => place.0.join(format!(".bell{}", std::process::id())),
        n => place.0.join(format!(".bell{}-{n}", std::process::id())),
    };
    // The directory is young: it may belong to another container that is about to bind.
    fs::create_dir(left(0)).unwrap();
    drop(UnixListener::bind(left(0).join("s")).unwrap());
    drop(start(&place.socket()).unwrap());
    assert!(left(0).join("s").exists());
    // The directory is old: its controller was killed long ago.
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    fs::File::open(left(0)).unwrap().set_modified(long_ago).unwrap();
    drop(start(&place.socket()).unwrap());
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0, "it is tidied up");
    // Files that are not ours stay, and the number of tries is limited.
    for n in 0..DIRECTORIES_TRIED {
        fs::write(left(n), "somebody's").unwrap();
    }
    let error = start(&place.socket()).unwrap_err().to_string();
    assert!(error.contains("no control socket at"), "{error}");
    fs::remove_file(left(DIRECTORIES_TRIED - 1)).unwrap();
    drop(start(&place.socket()).unwrap());
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), DIRECTORIES_TRIED - 1);
}

#[test]
fn only_the_owner_has_access_at_every_moment() {
    let place = Place::new("control-mode");
    let (path, directory) = (place.socket(), place.0.clone());
    let (done, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (watched, sees) = (Arc::clone(&done), Arc::clone(&seen));
    // Watches the directory while servers start and stop.
    let watcher = thread::spawn(move || {
        while !watched.load(Ordering::Relaxed) {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
                let mode = found.permissions().mode() & 0o777;
                assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.path());
                sees.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let began = Instant::now();
    // Repeats until the watcher has seen files of several servers. It may have to wait for a core.
    while seen.load(Ordering::Relaxed) < 100 && !watcher.is_finished() {
        assert!(began.elapsed() < PATIENCE, "the watcher sees nothing");
        let server = start(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(server);
    }
    done.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
}

#[test]
fn a_wrong_request_is_refused_with_the_reason() {
    let place = Place::new("control-refused");
    let _server = start(&place.socket()).unwrap();
    let requests = "its requests are get_status, list_switches, ";
    let bytes = "a line of at most 1048576 bytes";
    for (sent, reason) in [
        (&b"{}\n"[..], "missing field `protocol`"),
        (b"\n", "a request is a line such as {"),
        (b"{\"protocol\": 1, \"request\": {\"stop\": {}}}\n", requests),
        (
            b"{\"protocol\": 1, \"request\": {\"list_hosts\": {\"page\": {\"limit\": 0}}}}\n",
            "from 1 to",
        ),
        (
            b"{\"protocol\": 1, \"request\": {\"list_hosts\": {\"pgae\": 0}}}\n",
            "unknown field `pgae`",
        ),
        (b"{\"protocol\": 1}", bytes),
        (b"", bytes),
        (&vec![b'{'; TOO_MANY_BYTES], bytes),
    ] {
        let line = match sent.len() {
            // The server stops reading before the end, so the system may refuse the rest.
            TOO_MANY_BYTES => {
                let mut stream = UnixStream::connect(place.socket()).unwrap();
                let _ = stream.write_all(sent);
                let mut line = String::new();
                BufReader::new(stream).read_line(&mut line).unwrap();
                line
            }
            _ => say(&place.socket(), sent),
        };
        assert!(line.contains("\"kind\":\"invalid\"") && line.contains(reason), "{line}");
    }
    // Bytes that are no text get no answer, and do not stop the server.
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    stream.write_all(b"\xff\xfe\n").unwrap();
    assert_answers(&place.socket());
}

#[test]
fn a_request_that_is_too_long_is_not_sent() {
    let place = Place::new("control-long");
    let _server = start(&place.socket()).unwrap();
    let block = bellrock_query::Block { host: "x".repeat(TOO_MANY_BYTES) };
    let answer = ask(&place.socket(), block).map(|_| ());
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("at most 1048576 bytes"), "{error}");
}

#[test]
fn silent_clients_are_bounded_in_number_and_time() {
    let place = Place::new("control-silent");
    let _server = start(&place.socket()).unwrap();
    let silent: Vec<_> =
        (0..MAX_CLIENTS).map(|_| UnixStream::connect(place.socket()).unwrap()).collect();
    // Clients are accepted in order, so all others are being served by now.
    match ask(&place.socket(), ListApps {}) {
        Err(AskError::Refused(error)) => {
            assert!(
                error.kind == ErrorKind::Busy && error.message.contains("try again"),
                "{error}"
            );
        }
        other => panic!("one too many is refused, not {other:?}"),
    }
    // The time of the clients runs out, and their places are free again.
    let began = Instant::now();
    let answer = loop {
        match ask(&place.socket(), ListApps {}) {
            Err(AskError::Refused(_)) if began.elapsed() < PATIENCE => {
                thread::sleep(CLIENT_TIMEOUT / 8);
            }
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap(), [hub()]);
    drop(silent);
}

/// A client that sends a byte now and then has no more time than a silent one.
#[test]
fn slow_clients_are_closed_too() {
    let place = Place::new("control-slow");
    let _server = start(&place.socket()).unwrap();
    let mut slow = UnixStream::connect(place.socket()).unwrap();
    let began = Instant::now();
    while slow.write_all(b"s").is_ok() {
        assert!(began.elapsed() < PATIENCE, "it is served still");
        thread::sleep(CLIENT_TIMEOUT / 8);
    }
}

#[test]
fn an_answer_that_panics_is_an_error_and_takes_nobodys_place() {
    let place = Place::new("control-panic");
    let _server = start(&place.socket()).unwrap();
    for _ in 0..=MAX_CLIENTS {
        let error = ask(&place.socket(), bellrock_query::ListTasks::default()).unwrap_err();
        assert!(error.to_string().contains("list_tasks has panicked"), "{error}");
    }
    assert_answers(&place.socket());
}

#[test]
fn a_socket_that_is_left_behind_is_replaced_and_a_live_one_is_not() {
    let place = Place::new("control-stale");
    drop(UnixListener::bind(place.socket()).unwrap());
    let server = start(&place.socket()).unwrap();
    assert_answers(&place.socket());
    let second = start(&place.socket()).unwrap_err();
    assert!(matches!(second, ServerError::Alive(_)));
    assert!(second.to_string().contains("a controller runs already"), "{second}");
    assert_answers(&place.socket());
    drop(server);
}

#[test]
fn a_socket_of_somebody_else_in_our_place_stays() {
    let place = Place::new("control-taken");
    let server = start(&place.socket()).unwrap();
    fs::remove_file(place.socket()).unwrap();
    let _other = UnixListener::bind(place.socket()).unwrap();
    drop(server);
    assert!(place.socket().exists(), "it is not ours to remove");
}

#[test]
fn no_place_for_a_socket_is_an_error_that_says_what_to_do() {
    let place = Place::new("control-noplace");
    fs::write(place.socket(), "precious").unwrap();
    let error = start(&place.socket()).unwrap_err().to_string();
    assert!(error.contains("is not a socket; remove it, or choose another place"), "{error}");
    assert_eq!(fs::read_to_string(place.socket()).unwrap(), "precious");
    let nowhere = place.0.join("no/such/directory/control.sock");
    let error = start(&nowhere).unwrap_err().to_string();
    assert!(error.contains("No such file") && error.contains("--control"), "{error}");
    let long = place.0.join("x".repeat(120));
    assert!(matches!(start(&long), Err(ServerError::Bind { .. })), "longer than an address can be");
}

#[test]
fn something_else_behind_the_socket_is_not_taken_for_a_controller() {
    let place = Place::new("control-other");
    let listener = UnixListener::bind(place.socket()).unwrap();
    let other = thread::spawn(move || {
        for reply in ["hello\n", "{}\n", ""] {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    for closes in [false, false, true] {
        let error = ask(&place.socket(), ListHosts::default()).unwrap_err();
        match error {
            AskError::NotAController(_) => assert!(!closes),
            AskError::Closed(_) => assert!(closes),
            error => panic!("{error}"),
        }
    }
    other.join().unwrap();
}
