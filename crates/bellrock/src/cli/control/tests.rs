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

use super::server::{CLIENT_TIMEOUT, MAX_CLIENTS, NESTS};
use super::{AskError, Question, Server, ServerError, ask};

/// Watchdog: maximum time of any step, far more than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket path in a directory of its own.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Place(crate::cli::test_directory(name))
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

fn start(path: &Path) -> Result<Server, ServerError> {
    Server::start(path, |question| Ok(serde_json::json!(question.line().trim_end()).to_string()))
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
fn every_question_gets_its_answer_and_the_socket_goes_with_the_server() {
    let place = Place::new("control-answers");
    let server = start(&place.socket()).unwrap();
    for question in Question::FIXED {
        assert_eq!(ask(&place.socket(), &question).unwrap(), question.word());
    }
    let told = Question::app("quarantine", vec!["add".into(), "10.0.0.7".into()]).unwrap();
    assert_eq!(ask(&place.socket(), &told).unwrap(), "quarantine add 10.0.0.7");
    let told = Question::flows(vec!["a1".into(), "-".into(), "9".into(), "0".into()]).unwrap();
    assert_eq!(ask(&place.socket(), &told).unwrap(), "flows a1 - 9 0");
    drop(server);
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0, "nothing is left behind");
    assert!(matches!(ask(&place.socket(), &Question::Status), Err(AskError::NotRunning(_))));
}

#[test]
fn what_a_killed_controller_with_the_same_process_id_left_stops_no_other() {
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
    for n in 0..NESTS {
        fs::write(left(n), "somebody's").unwrap();
    }
    let error = start(&place.socket()).unwrap_err().to_string();
    assert!(error.contains("no control socket at"), "{error}");
    fs::remove_file(left(NESTS - 1)).unwrap();
    drop(start(&place.socket()).unwrap());
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), NESTS - 1);
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
fn what_is_no_question_is_refused_with_the_reason() {
    let place = Place::new("control-refused");
    let _server = start(&place.socket()).unwrap();
    let words = "there are: status, switches, hosts, apps, tasks, counters, topology, links, events, flows, quarantine";
    for (bytes, reason) in [
        (&b"stop\n"[..], words),
        (b"\n", words),
        (b"status quarantine\n", words),
        (b"status", "a line of at most 512 bytes"),
        (b"", "a line of at most 512 bytes"),
        (&[b'a'; 100_000], "a line of at most 512 bytes"),
    ] {
        let line = match bytes.len() {
            // The server stops reading before the end, so the system may refuse the rest.
            100_000 => {
                let mut stream = UnixStream::connect(place.socket()).unwrap();
                let _ = stream.write_all(bytes);
                let mut line = String::new();
                BufReader::new(stream).read_line(&mut line).unwrap();
                line
            }
            _ => say(&place.socket(), bytes),
        };
        assert!(line.starts_with("{\"error\":") && line.contains(reason), "{line}");
    }
    // Bytes that are no text get no answer, and do not stop the server.
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    stream.write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(ask(&place.socket(), &Question::Hosts).unwrap(), "hosts");
}

#[test]
fn silent_clients_are_bounded_in_number_and_time() {
    let place = Place::new("control-silent");
    let _server = start(&place.socket()).unwrap();
    let silent: Vec<_> =
        (0..MAX_CLIENTS).map(|_| UnixStream::connect(place.socket()).unwrap()).collect();
    // Clients are accepted in order, so all others are being served by now.
    match ask(&place.socket(), &Question::Status) {
        Err(AskError::Refused(why)) => assert!(why.contains("try again"), "{why}"),
        other => panic!("one too many is told so, not {other:?}"),
    }
    // The time of the clients runs out, and their places are free again.
    let began = Instant::now();
    let answer = loop {
        match ask(&place.socket(), &Question::Status) {
            Err(AskError::Refused(_)) if began.elapsed() < PATIENCE => {
                thread::sleep(CLIENT_TIMEOUT / 8);
            }
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap(), "status");
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
fn an_answer_that_panics_takes_nobodys_place() {
    let place = Place::new("control-panic");
    let panics = |question: &Question| match question {
        Question::Hosts => panic!("the answer of a test"),
        other => Ok(serde_json::json!(other.line().trim_end()).to_string()),
    };
    let _server = Server::start(&place.socket(), panics).unwrap();
    for _ in 0..=MAX_CLIENTS {
        assert!(ask(&place.socket(), &Question::Hosts).is_err());
    }
    assert_eq!(ask(&place.socket(), &Question::Status).unwrap(), "status");
}

#[test]
fn a_socket_that_is_left_behind_is_replaced_and_a_live_one_is_not() {
    let place = Place::new("control-stale");
    drop(UnixListener::bind(place.socket()).unwrap());
    let server = start(&place.socket()).unwrap();
    assert_eq!(ask(&place.socket(), &Question::Status).unwrap(), "status");
    let second = start(&place.socket()).unwrap_err();
    assert!(matches!(second, ServerError::Alive(_)));
    assert!(second.to_string().contains("a controller runs already"), "{second}");
    assert_eq!(ask(&place.socket(), &Question::Status).unwrap(), "status", "the first goes on");
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
    for _ in 0..3 {
        let error = ask(&place.socket(), &Question::Status).unwrap_err();
        assert!(matches!(error, AskError::NotAController(_)), "{error}");
    }
    other.join().unwrap();
}

#[test]
fn a_word_that_would_be_two_is_not_sent() {
    for word in ["", "10.0.0.1 10.0.0.2", "10.0.0.1\nstatus"] {
        let error = Question::app("quarantine", vec!["add".into(), word.into()]).unwrap_err();
        assert!(error.contains("give one word"), "{error}");
    }
    let long = "x".repeat(600);
    assert!(Question::app("quarantine", vec![long]).unwrap_err().contains("512 bytes"));
}
