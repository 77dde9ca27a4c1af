//! Clients that are too many, slow, rude or gone cost the others nothing.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::client::{Fixed, Lab, PATIENCE, exchange, reply};
use axum::Router;
use axum::extract::{Request, State};
use axum::routing::post;
use bellrock_northbound::guest::{Guest, GuestState};
use bellrock_northbound::limits::{
    MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_ORDERS, MAX_UNWANTED_BYTES, MAX_WAITING_FOR_SWITCHES,
    REQUEST_TIMEOUT, TURN_TIMEOUT,
};
use bellrock_northbound::{
    Certificate, HttpCounters, HttpSettings, LoadedCertificate, Server, ServerError, TlsFiles,
};

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn idle_connections_give_way_to_new_ones_and_busy_ones_do_not() {
    let lab = Lab::new();
    let held: Vec<_> = (0..MAX_CONNECTIONS).map(|_| lab.connect()).collect();
    until("all are accepted", || lab.counter("connections") == MAX_CONNECTIONS as u64);
    // Each is tried until those that are held have been idle for long enough.
    until("a new connection is served", || {
        let mut stream = lab.connect();
        let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
        asked.is_ok() && matches!(stream.read(&mut [0; 1]), Ok(1))
    });
    assert!(lab.counter("connections_displaced") > 0);
    let closed = |stream: &std::net::TcpStream| {
        let mut stream = stream;
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0; 1]), Ok(0))
    };
    until("the first one is closed", || closed(&held[0]));
    assert!(!closed(&held[MAX_CONNECTIONS - 1]), "the last one is not");
    drop(held);
    until("places are free again", || {
        let mut stream = lab.connect();
        let _ = stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text.ends_with("ok\n")
    });
}

#[test]
fn clients_that_take_no_answers_are_closed_and_counted() {
    let lab = Lab::new();
    let asked = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
    let mut stream = lab.connect();
    stream.set_nonblocking(true).unwrap();
    // As many requests as the socket takes.
    let _ = stream.write_all(asked.as_bytes());
    until("it is counted", || lab.counter("answers_not_taken") == 1);
    assert_eq!(lab.get("/v1/status").status, 200);
    drop(stream);
}

#[test]
fn malformed_connections_are_closed_and_others_go_on() {
    let lab = Lab::new();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20));
    for bytes in
        [&b"\x04\x00\x00\x08\x00\x00\x00\x01"[..], b"\x16\x03\x01", b"\r\n\r\n\0", long.as_bytes()]
    {
        let mut stream = lab.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        if !answer.is_empty() {
            assert!((400..500).contains(&reply(&answer).status));
        }
    }
    until("all are counted", || lab.counter("connections_malformed") == 4);
    assert_eq!(lab.get("/v1/status").status, 200);
}

#[test]
fn several_requests_on_one_connection_are_answered_in_order() {
    let lab = Lab::new();
    let mut stream = lab.connect();
    let one =
        |path: &str, end: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{end}\r\n");
    let all = [one("/healthz", ""), one("/v1/none", ""), one("/readyz", "connection: close\r\n")];
    stream.write_all(all.concat().as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let places = ["ok\n", "urn:bellrock:not_found", "ready\n"].map(|what| text.find(what).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn an_address_that_others_reach_needs_tls_and_tokens() {
    let open = SocketAddr::from(([0, 0, 0, 0], 0));
    let start = |settings: &HttpSettings| {
        Server::start(settings, Arc::new(Fixed::default()), &HttpCounters::default())
    };
    let lab = Lab::new();
    let tokens = lab.file("other-tokens", "");
    let settings =
        HttpSettings { listen: vec![open], tokens: Some(tokens), ..HttpSettings::default() };
    let error = start(&settings).unwrap_err().to_string();
    assert!(
        error.contains("0.0.0.0:0, which other machines can reach, needs a certificate"),
        "{error}"
    );
    let missing = lab.file("none", "").with_file_name("missing");
    let settings = HttpSettings { tokens: Some(missing), ..HttpSettings::default() };
    assert!(start(&settings).unwrap_err().to_string().contains("missing: No such file"));
    let taken = HttpSettings { listen: lab.server.addresses().to_vec(), ..HttpSettings::default() };
    assert!(start(&taken).unwrap_err().to_string().contains("HTTP cannot listen on 127.0.0.1"));
}

#[test]
fn with_tls_everything_but_the_checks_of_supervisors_needs_a_token() {
    let made = rcgen::generate_simple_self_signed(["controller.example".to_owned()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let certificate = write("certificate.pem", made.cert.pem());
    let key = write("key.pem", made.signing_key.serialize_pem());
    let pair = TlsFiles { certificate: certificate.clone(), key: key.clone() };
    let shared = Certificate::read(&pair).unwrap();
    let lab = Lab::with(|settings| {
        settings.listen = vec![SocketAddr::from(([0, 0, 0, 0], 0))];
        settings.tls = Some(shared.clone());
    });

    // Each has sessions of its own: a resumed one checks no certificate.
    let config = || {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    };
    let port = lab.server.addresses()[0].port();
    let send = |path: &str, headers: &[(&str, &str)]| {
        let name = "controller.example".try_into().unwrap();
        let session = rustls::ClientConnection::new(config(), name).unwrap();
        let socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers = [headers, &[("host", "controller.example")]].concat();
        exchange(&mut rustls::StreamOwned::new(session, socket), "GET", path, &headers, "")
    };
    send("/v1/status", &[]).problem(401, "unauthorized");
    assert_eq!(send("/healthz", &[]).status, 200);
    let bearer = format!("Bearer {}", lab.read);
    assert_eq!(send("/v1/status", &[("authorization", &bearer)]).status, 200);

    // A renewed certificate is used by the next connection, and the old one is trusted no more.
    let renewed = rcgen::generate_simple_self_signed(["controller.example".to_owned()]).unwrap();
    let renewed = TlsFiles {
        certificate: write("renewed.pem", renewed.cert.pem()),
        key: write("renewed-key.pem", renewed.signing_key.serialize_pem()),
    };
    shared.replace(LoadedCertificate::read(&renewed).unwrap());
    let name = "controller.example".try_into().unwrap();
    let session = rustls::ClientConnection::new(config(), name).unwrap();
    let socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = rustls::StreamOwned::new(session, socket);
    let written = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
    let refused = written.and_then(|()| stream.read(&mut [0])).unwrap_err();
    assert!(refused.to_string().contains("invalid peer certificate"), "{refused}");
    until("the failed handshake is counted", || lab.counter("handshakes_failed") == 1);

    // Plain HTTP, and nothing at all.
    let mut plain = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    until("the failed handshake is counted", || lab.counter("handshakes_failed") == 2);

    // What cannot be used is named.
    let start = |certificate: &std::path::Path, key: &std::path::Path| {
        let files = TlsFiles { certificate: certificate.into(), key: key.into() };
        Certificate::read(&files).unwrap_err().to_string()
    };
    assert!(start(&key, &key).contains("it has no certificate in PEM"));
    assert!(start(&certificate, &certificate).contains("it has no private key in PEM"));
    let other = rcgen::generate_simple_self_signed(["other.example".to_owned()]).unwrap();
    let other = write("other.pem", other.signing_key.serialize_pem());
    assert!(start(&certificate, &other).contains("cannot be used with its key"));
}

#[test]
fn a_body_that_never_ends_is_refused_and_an_unfinished_head_is_closed() {
    let lab = Lab::new();
    let (mut head, mut body) = (lab.connect(), lab.connect());
    head.write_all(b"GET /v1/status HTTP/1.1\r\nhost: loc").unwrap();
    let text = format!(
        "POST /v1/quarantine HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: 9\r\n\r\n{{",
        lab.write
    );
    body.write_all(text.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // The connection ends with the answer, since the rest of the body may still come.
    body.read_to_end(&mut bytes).unwrap();
    reply(&bytes).problem(408, "too_slow");
    assert_eq!(lab.counter("requests_timed_out"), 1);
    assert!(matches!(head.read(&mut [0; 1]), Ok(0) | Err(_)), "it is closed");
    until("it is counted", || lab.counter("connections_timed_out") == 1);
}

/// Sends a whole body, and reads only then, as clients in Python do.
fn write_then_read(lab: &Lab, token: &str, body_bytes: usize) -> crate::client::Reply {
    let mut stream = lab.connect();
    let head = format!(
        "POST /v1/static HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-length: {body_bytes}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b' '; 64 << 10];
    for at in (0..body_bytes).step_by(piece.len()) {
        stream.write_all(&piece[..piece.len().min(body_bytes - at)]).unwrap();
    }
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    reply(&bytes)
}

#[test]
fn a_client_that_sends_a_large_body_before_it_reads_gets_to_its_answer() {
    let lab = Lab::new();
    write_then_read(&lab, &lab.write, MAX_BODY_BYTES + 1).problem(413, "too_large");
    write_then_read(&lab, &lab.write, 20 << 20).problem(413, "too_large");
    write_then_read(&lab, &lab.read, 20 << 20).problem(403, "forbidden");
    write_then_read(&lab, "wrong", 20 << 20).problem(401, "unauthorized");
    assert_eq!(lab.counter("bodies_too_large"), 2);
}

#[test]
fn a_connection_goes_on_after_a_body_that_nobody_wants() {
    let lab = Lab::new();
    let mut stream = lab.connect();
    let body = "x".repeat(2 << 20);
    let all = format!(
        "POST /v1/none HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}\
         GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(all.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 401") && text.ends_with("ok\n"), "{text}");
}

#[test]
fn a_body_that_nobody_wants_and_that_has_no_end_is_not_read_for_ever() {
    let lab = Lab::new();
    let mut stream = lab.connect();
    let head =
        "POST /v1/static HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b' '; 1 << 20];
    // What is read, and what the buffers of both ends take.
    let most = 4 * MAX_UNWANTED_BYTES / piece.len();
    let refused = (0..most).find_map(|_| stream.write_all(&piece).err());
    let refused = refused.unwrap_or_else(|| panic!("it takes {most} MiB"));
    assert!(
        matches!(
            refused.kind(),
            std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
        ),
        "{refused}"
    );
    assert_eq!(lab.get("/v1/status").status, 200);
}

#[test]
fn requests_that_are_wrong_are_counted() {
    let lab = Lab::new();
    for (method, path, body, status) in [
        ("GET", "/v1/none", "", 404),
        ("GET", "/v1/../../etc/passwd", "", 404),
        ("GET", "/v1/hosts?limit=-1", "", 400),
        ("DELETE", "/v1/status", "", 405),
        ("POST", "/v1/quarantine", "{\"host\": ", 400),
        ("POST", "/v1/quarantine", "[[[[[[", 400),
        ("POST", "/v1/quarantine", " [\"10.0.0.1\"]", 400),
        ("POST", "/v1/static", "[null, [], [], true]", 400),
        ("POST", "/v1/quarantine", "{\"host\": \"10.0.0.1\", \"nonsense\": 1}", 400),
    ] {
        let counted = lab.counter("requests_invalid");
        let reply = lab.order(&lab.write, method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        until("it is counted", || lab.counter("requests_invalid") == counted + 1);
    }
    assert_eq!(lab.get("/v1/status").status, 200);
    assert_eq!(lab.counter("requests_invalid"), 9);
}

#[test]
fn an_order_whose_client_goes_meanwhile_is_carried_out_and_counted() {
    let lab = Lab::new();
    let body = r#"{"host": "slow"}"#;
    let mut stream = lab.connect();
    let head = format!(
        "POST /v1/quarantine HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
        lab.write,
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    until("it is asked", || lab.operator.requests.lock().unwrap().len() == 1);
    drop(stream);
    lab.get("/v1/status");
    lab.operator.goes_on.store(true, Ordering::Relaxed);
    until("it is carried out", || lab.counter("changes") == 1);
}

/// Sends an order that is not carried out yet.
fn slow_order(lab: &Lab) -> std::net::TcpStream {
    let body = r#"{"host": "slow"}"#;
    let mut stream = lab.connect();
    let head = format!(
        "POST /v1/quarantine HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        lab.write,
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    stream
}

#[test]
fn orders_that_are_never_carried_out_get_an_answer_in_time() {
    let lab = Lab::new();
    let answer = |mut stream: &std::net::TcpStream| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        reply(&bytes)
    };
    let held: Vec<_> = (0..MAX_ORDERS).map(|_| slow_order(&lab)).collect();
    until("all places are taken", || lab.operator.requests.lock().unwrap().len() == MAX_ORDERS);
    // It gets no turn.
    let late = answer(&slow_order(&lab));
    late.problem(503, "busy");
    assert!(late.body.contains(&format!("within {} s", TURN_TIMEOUT.as_secs())), "{late:?}");
    for stream in &held {
        let slow = answer(stream);
        slow.problem(503, "busy");
        assert!(slow.body.contains(&format!("after {} s", REQUEST_TIMEOUT.as_secs())), "{slow:?}");
    }
    assert_eq!(lab.counter("requests_timed_out"), 1 + MAX_ORDERS as u64);
    // They are orders all the same: what was begun is carried out.
    lab.operator.goes_on.store(true, Ordering::Relaxed);
    until("all are carried out", || lab.counter("changes") == MAX_ORDERS as u64);
}

/// Routes of a guest that reads bodies.
fn reading_guest() -> Router<GuestState> {
    let read = async |State(state): State<GuestState>, request: Request| {
        state.read_body(request, |body| format!("{} bytes", body.len())).await
    };
    Router::new().route("/read", post(read))
}

fn guest_at(ip: [u8; 4]) -> Guest {
    let listen = vec![SocketAddr::from((ip, 0))];
    Guest { name: "a guest", listen, routes: reading_guest }
}

#[test]
fn a_guest_is_for_scripts_of_this_machine_only() {
    let start = |guest| {
        let settings = HttpSettings { guests: vec![guest], ..HttpSettings::default() };
        Server::start(&settings, Arc::new(Fixed::default()), &HttpCounters::default())
    };
    let open = start(guest_at([0, 0, 0, 0]));
    assert!(matches!(open, Err(ServerError::GuestInTheOpen { guest: "a guest", .. })), "{open:?}");
    let server = start(guest_at([127, 0, 0, 1])).unwrap();
    let ask = |fields: &[(&str, &str)]| {
        let mut stream = std::net::TcpStream::connect(server.guest_addresses()[0].1).unwrap();
        exchange(&mut stream, "POST", "/read", fields, "1234")
    };
    let answer = ask(&[]);
    assert_eq!((answer.status, answer.body.as_str()), (200, "4 bytes"));
    ask(&[("origin", "http://localhost")]).problem(403, "forbidden");
    ask(&[("sec-fetch-site", "same-origin")]).problem(403, "forbidden");
}

/// Who may reach a guest has no token. Its connections take no place of the others.
#[test]
fn connections_to_a_guest_take_no_place_of_others() {
    let operator = Arc::new(Fixed::default());
    let guest = guest_at([127, 0, 0, 1]);
    let settings = HttpSettings {
        listen: guest.listen.clone(),
        guests: vec![guest],
        ..HttpSettings::default()
    };
    let counters = HttpCounters::default();
    let server = Server::start(&settings, operator, &counters).unwrap();
    let busy = "POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{";
    let held: Vec<_> = (0..MAX_CONNECTIONS + 20)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(server.guest_addresses()[0].1).unwrap();
            let _ = stream.write_all(busy.as_bytes());
            stream
        })
        .collect();
    until("those above the limit are refused", || {
        let values = counters.values();
        values["connections_refused"] + values["connections_displaced"] >= 20
    });
    let mut stream = std::net::TcpStream::connect(server.addresses()[0]).unwrap();
    assert_eq!(exchange(&mut stream, "GET", "/healthz", &[], "").status, 200);
    drop(held);
}

#[test]
fn orders_that_wait_for_a_silent_switch_delay_no_other_request() {
    let lab = Lab::new();
    let waiting: Vec<_> = (0..2 * MAX_ORDERS).map(|_| slow_order(&lab)).collect();
    let asked = || lab.operator.requests.lock().unwrap().len();
    until("all places are taken", || asked() == MAX_ORDERS);
    assert_eq!(lab.get("/v1/status").status, 200);
    assert_eq!(asked(), MAX_ORDERS + 1, "the others wait for their turn");
    lab.operator.goes_on.store(true, Ordering::Relaxed);
    until("all are carried out", || lab.counter("changes") == 2 * MAX_ORDERS as u64);
    drop(waiting);
}

#[test]
fn requests_to_silent_switches_delay_no_order() {
    let lab = Lab::new();
    let ask = |lab: &Lab| {
        let mut stream = lab.connect();
        let head = "GET /v1/switches/slow/reply?request=0414000800000000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let waiting: Vec<_> = (0..2 * MAX_WAITING_FOR_SWITCHES).map(|_| ask(&lab)).collect();
    let asked = || lab.operator.requests.lock().unwrap().len();
    until("all places are taken", || asked() == MAX_WAITING_FOR_SWITCHES);
    let body = r#"{"host": "10.0.0.1"}"#;
    assert_eq!(lab.order(&lab.write, "POST", "/v1/quarantine", body).status, 200);
    assert_eq!(lab.counter("requests_timed_out"), 0);
    lab.operator.goes_on.store(true, Ordering::Relaxed);
    drop(waiting);
}

#[test]
fn requests_that_are_answered_end_before_the_server_does() {
    let lab = Lab::new();
    let mut stream = lab.connect();
    stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    until("it is asked", || lab.counter("requests") == 1);
    drop(lab.server);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!(reply(&bytes).status, 200);
}
