//! Events as they happen, on streams that are resumed where they stopped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::client::{Lab, PATIENCE, Reply};
use bellrock_northbound::limits::MAX_STREAMS;
use bellrock_query::MAX_EVENTS_AT_ONCE;

const STREAM: (&str, &str) = ("accept", "text/event-stream");

/// A stream, with all that has come.
struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    fn open(lab: &Lab, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut stream = lab.connect();
        let mut head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        Events { stream, text: String::new() }
    }

    /// Reads until the text contains `part`, which may be the end of the last chunk.
    fn until(&mut self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = [0; 65536];
        while !self.text.contains(part) {
            assert!(Instant::now() < deadline, "no {part} in {}", self.text);
            match self.stream.read(&mut bytes) {
                Ok(0) => panic!("it has ended without {part}: {}", self.text),
                Ok(n) => self.text.push_str(&String::from_utf8_lossy(&bytes[..n])),
                Err(_) => {}
            }
        }
    }

    /// The ids of its events.
    fn ids(&self) -> Vec<usize> {
        let ids = self.text.lines().filter_map(|line| line.strip_prefix("id: "));
        ids.map(|id| id.parse().unwrap()).collect()
    }
}

fn happen(lab: &Lab, events: usize) {
    lab.operator.events.fetch_add(events, Ordering::Relaxed);
}

#[test]
fn a_stream_has_later_events_and_is_resumed_where_it_stopped() {
    let lab = Lab::new();
    happen(&lab, 2);
    let mut first = Events::open(&lab, "/v1/events", &[STREAM]);
    first.until(": events\n\n");
    assert!(
        first.text.to_lowercase().contains("content-type: text/event-stream"),
        "{}",
        first.text
    );
    happen(&lab, 2);
    first.until("id: 3\n");
    assert_eq!(first.ids(), [2, 3]);
    // A text of two lines is one line of JSON.
    assert!(first.text.contains(r#""text":"line one of 2\nline two""#), "{}", first.text);
    drop(first);
    happen(&lab, 1);
    let mut second = Events::open(&lab, "/v1/events", &[STREAM, ("last-event-id", "2")]);
    second.until("id: 4\n");
    assert_eq!(second.ids(), [3, 4]);
    let mut third = Events::open(&lab, "/v1/events?after=3", &[STREAM]);
    third.until("id: 4\n");
    assert_eq!(third.ids(), [4]);
}

#[test]
fn a_client_that_was_away_for_long_gets_all_in_parts_and_in_order() {
    let lab = Lab::new();
    let count = 3 * MAX_EVENTS_AT_ONCE + 7;
    happen(&lab, count);
    let mut stream = Events::open(&lab, "/v1/events?after=start", &[STREAM]);
    stream.until(&format!("id: {}\n", count - 1));
    assert_eq!(stream.ids(), (0..count).collect::<Vec<_>>());
}

#[test]
fn a_wrong_stream_request_gets_a_problem_and_streams_are_bounded() {
    let lab = Lab::new();
    let ask =
        |path: &str, headers: &[(&str, &str)]| -> Reply { lab.send("GET", path, headers, "") };
    let problem = ask("/v1/events?after=x", &[STREAM]).problem(400, "invalid");
    assert_eq!(problem["field"], "after");
    // Without the header it is a list, which has no place to resume.
    ask("/v1/events?after=3", &[]).problem(400, "invalid");
    assert_eq!(ask("/v1/events", &[("accept", "*/*")]).json()["total"], 0);
    let mut open: Vec<_> =
        (0..MAX_STREAMS).map(|_| Events::open(&lab, "/v1/events", &[STREAM])).collect();
    open.iter_mut().for_each(|stream| stream.until(": events\n\n"));
    ask("/v1/events", &[STREAM]).problem(503, "busy");
    assert_eq!(lab.counter("streams_refused"), 1);
    happen(&lab, 1);
    open.iter_mut().for_each(|stream| stream.until("id: 0\n"));
    // A client that has gone frees its place.
    drop(open);
    let deadline = Instant::now() + PATIENCE;
    loop {
        happen(&lab, 1);
        let mut stream = Events::open(&lab, "/v1/events", &[STREAM]);
        stream.until("HTTP/1.1 ");
        if stream.text.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(Instant::now() < deadline, "no place becomes free");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_stream_ends_when_its_token_is_removed_and_others_go_on() {
    let lab = Lab::new();
    let bearer = |token: &str| format!("Bearer {token}");
    let open = |token: &str| {
        let mut stream =
            Events::open(&lab, "/v1/events", &[STREAM, ("authorization", &bearer(token))]);
        stream.until(": events\n\n");
        stream
    };
    let (mut reader, mut writer) = (open(&lab.read), open(&lab.write));
    let mut anybody = Events::open(&lab, "/v1/events", &[STREAM]);
    anybody.until(": events\n\n");
    lab.remove_token("reader");
    // Nobody asks for anything, and nothing happens. The last chunk shows that the stream is ended.
    reader.until("0\r\n\r\n");
    happen(&lab, 1);
    for stream in [&mut writer, &mut anybody] {
        stream.until("id: 0\n");
        assert!(!stream.text.contains("0\r\n\r\n"), "{}", stream.text);
    }
    assert_eq!(reader.ids(), [] as [usize; 0]);
    // Without the file there is no token.
    lab.remove_tokens();
    writer.until("0\r\n\r\n");
    happen(&lab, 1);
    anybody.until("id: 1\n");
}

#[test]
fn a_stream_ends_at_once_when_the_server_stops() {
    let lab = Lab::new();
    let mut stream = Events::open(&lab, "/v1/events", &[STREAM]);
    stream.until(": events\n\n");
    drop(lab);
    // The last chunk, so it has ended in order and not by the limit for requests.
    stream.until("0\r\n\r\n");
}
