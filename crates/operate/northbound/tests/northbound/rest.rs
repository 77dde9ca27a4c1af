//! REST over a fixed operator: every route, who may do what, and what is wrong.

use std::io::{Read, Write};

use crate::client::Lab;
use bellrock_northbound::openapi;
use bellrock_query::{Page, Request};
use serde_json::{Value, json};

/// A body that a route accepts.
fn body_of(method: &str, path: &str) -> String {
    let body = match (method, path) {
        ("post", "/v1/reservations") => json!({"from": "h1", "to": "h2", "rate_kbps": 1000}),
        ("post", "/v1/static") => json!({"remove": ["web"]}),
        ("put", "/v1/static/{name}") => json!({"switch": "s1", "flow": {"actions": "drop"}}),
        ("post", "/v1/quarantine") => json!({"host": "10.0.0.1"}),
        ("post", "/v1/cluster/switches/{switch}/move") => json!({"node": "b"}),
        ("post", "/v1/cluster/drain") => json!({"draining": true}),
        ("put", "/v1/cluster/configuration") => {
            json!({"text": "log_level: debug\n", "generation": 4})
        }
        ("post", "/v1/relays") => json!({"from": "s1:3", "to": "a2:3", "verdict": "link"}),
        ("post", "/v1/orphans/clean") => json!({"app": "bandwidth"}),
        ("post", "/v1/switches/{switch}/messages") => json!({"messages": ["0414000800000000"]}),
        _ => return String::new(),
    };
    body.to_string()
}

/// A path of the document with values for its parameters.
fn filled(path: &str) -> String {
    path.replace("/reply", "/reply?request=0414000800000000")
        .replace("{switch}", "s1")
        .replace("{id}", "7")
        .replace("{host}", "10.0.0.0%2F8")
        .replace("{name}", "web")
}

#[test]
fn every_route_of_the_document_answers() {
    let lab = Lab::new();
    let document = lab.get("/v1/openapi.json").json();
    assert_eq!(document, openapi());
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document["servers"], json!([{"url": "/"}]));
    // A generated client has one type of a row, with its name.
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let pages = schemas.iter().filter_map(|(name, page)| Some((name.strip_prefix("Rows_")?, page)));
    for (row, page) in pages {
        let items = &page["properties"]["rows"]["items"];
        assert_eq!(items, &json!({"$ref": format!("#/components/schemas/{row}")}), "{row}");
    }
    let mut routes = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let body = body_of(method, path);
            let reply = lab.order(&lab.write, &method.to_uppercase(), &filled(path), &body);
            let about = format!("{method} {path}: {reply:?}");
            if path == "/v1/circuits" {
                reply.problem(409, "app_not_running");
            } else {
                assert!(operation["responses"].get(reply.status.to_string()).is_some(), "{about}");
                assert!((200..300).contains(&reply.status), "{about}");
            }
            assert!(operation["summary"].is_string() && operation["tags"].is_array(), "{about}");
            routes += 1;
        }
    }
    assert!(routes >= 40, "{routes}");
}

#[test]
fn no_route_takes_parameters_that_it_does_not_know() {
    let lab = Lab::new();
    let document = openapi();
    let paths = document["paths"].as_object().unwrap();
    for (path, methods) in paths.iter().filter(|(path, _)| path.starts_with("/v1/")) {
        for method in methods.as_object().unwrap().keys() {
            let filled = filled(path);
            let sign = if filled.contains('?') { '&' } else { '?' };
            let (method, asked) = (method.to_uppercase(), format!("{filled}{sign}nonsense=1"));
            let body = body_of(&method.to_lowercase(), path);
            let reply = lab.order(&lab.write, &method, &asked, &body);
            assert_eq!(reply.problem(400, "invalid")["field"], "nonsense", "{method} {path}");
        }
    }
    assert_eq!(lab.operator.requests.lock().unwrap().len(), 0, "nothing was asked");
}

#[test]
fn a_client_learns_what_its_token_allows() {
    let lab = Lab::new();
    assert_eq!(lab.get("/v1/token").json(), Value::Null);
    for (token, name, scope) in [(&lab.read, "reader", "read"), (&lab.write, "writer", "write")] {
        let answer = lab.order(token, "GET", "/v1/token", "").json();
        assert_eq!(answer, json!({"name": name, "scope": scope, "expires": null}));
    }
    lab.order(&lab.expired, "GET", "/v1/token", "").problem(401, "unauthorized");
}

#[test]
fn every_request_has_a_route() {
    let lab = Lab::new();
    for (path, methods) in openapi()["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let body = body_of(method, path);
            lab.order(&lab.write, &method.to_uppercase(), &filled(path), &body);
        }
    }
    // A stream has no end: its own tests read it.
    let mut stream = lab.connect();
    let head = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(head).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let asked = lab.operator.requests.lock().unwrap();
    for name in Request::NAMES {
        assert!(asked.iter().any(|request| request.name() == *name), "no route asks {name}");
    }
}

/// The page of a request that names none.
fn page() -> Value {
    serde_json::to_value(Page::default()).unwrap()
}

#[test]
fn rows_parameters_and_parts_of_paths_arrive() {
    let lab = Lab::new();
    let rows = lab.get("/v1/switches?limit=5").json();
    assert_eq!((&rows["total"], &rows["rows"][0]["name"]), (&json!(1), &json!("s1")));
    assert_eq!(lab.get("/v1/switches/00000000000000a1").json()["name"], "s1");
    lab.get("/v1/switches/s1/flows?app=learning&skip=3&limit=4");
    let expected = json!({"list_flows": {
        "switch": "s1", "app": "learning", "page": {"skip": 3, "limit": 4},
    }});
    let last = lab.operator.requests.lock().unwrap().last().cloned();
    assert_eq!(serde_json::to_value(last).unwrap(), expected);
    for (path, expected) in [
        ("/v1/ports?switch=s1", json!({"list_ports": {"switch": "s1", "page": page()}})),
        ("/v1/hosts?switch=s1", json!({"list_hosts": {"switch": "s1", "page": page()}})),
        (
            "/v1/events?kind=link_up&alarming=true",
            json!({"list_events": {
                "kind": "link_up", "alarming": true, "open": false, "page": page(),
            }}),
        ),
        (
            "/v1/events?open=true",
            json!({"list_events": {
                "kind": null, "alarming": false, "open": true, "page": page(),
            }}),
        ),
    ] {
        lab.get(path);
        let last = lab.operator.requests.lock().unwrap().last().cloned();
        assert_eq!(serde_json::to_value(last).unwrap(), expected);
    }
    let reply = lab.order(&lab.write, "DELETE", "/v1/quarantine/10.0.0.0%2F8", "");
    let expected =
        json!({"let_back": "10.0.0.0/8", "gaps": [], "more_gaps": 0, "at_other_nodes": 0});
    assert_eq!(reply.json(), expected);
    let reply = lab.order(
        &lab.write,
        "POST",
        "/v1/reservations",
        r#"{"from": "h1", "to": "h2", "rate_kbps": 5}"#,
    );
    assert_eq!(reply.status, 201);
    assert!(reply.head.contains("location: /v1/reservations/7"), "{reply:?}");
    assert_eq!(lab.counter("changes"), 2);
}

#[test]
fn messages_go_out_as_they_are_and_other_text_is_refused_with_its_field() {
    let lab = Lab::new();
    let asked = "0412001000000000000700000000000a";
    let reply = lab.get(&format!("/v1/switches/s1/reply?request={asked}")).json();
    assert_eq!((&reply["multipart"], &reply["text"]), (&json!(7), &json!("0 groups")));
    let last = lab.operator.requests.lock().unwrap().last().cloned();
    let expected = json!({"ask_switch": {"switch": "s1", "request": asked}});
    assert_eq!(serde_json::to_value(last).unwrap(), expected);
    let path = "/v1/switches/s1/messages";
    let body = r#"{"messages": ["04 14 00 08 00 00 00 00", "0414000800000001"]}"#;
    let sent = lab.order(&lab.write, "POST", path, body).json();
    assert_eq!(sent["outcomes"], json!([{"state": "confirmed"}, {"state": "confirmed"}]));
    let wrong = r#"{"messages": ["0414000800000000", "041"]}"#;
    let problem = lab.order(&lab.write, "POST", path, wrong).problem(400, "invalid");
    assert_eq!(problem["field"], "messages[1]");
    let problem = lab.get("/v1/switches/s1/reply?request=zz").problem(400, "invalid");
    assert_eq!(problem["field"], "request");
    lab.order(&lab.read, "POST", path, body).problem(403, "forbidden");
}

#[test]
fn static_entries_belong_to_their_token_unless_the_order_says_otherwise() {
    let lab = Lab::new();
    let last = || {
        let last = lab.operator.requests.lock().unwrap().last().cloned();
        serde_json::to_value(last).unwrap()
    };
    let body = r#"{"switch": "s1", "flow": {"actions": "output:2"}}"#;
    let reply = lab.order(&lab.write, "PUT", "/v1/static/web", body);
    assert_eq!((reply.status, &reply.json()["set"]), (200, &json!(1)));
    let flow = json!({"table": 0, "priority": 2048, "match": "any", "actions": "output:2"});
    let expected = json!({"set_static": {
        "owner": "writer", "remove": [], "replace": false,
        "entries": [{"name": "web", "switch": "s1", "flow": flow}],
    }});
    assert_eq!(last(), expected);
    lab.order(&lab.write, "DELETE", "/v1/static/web?owner=alice", "");
    let order = &last()["set_static"];
    assert_eq!((&order["owner"], &order["remove"]), (&json!("alice"), &json!(["web"])));
    lab.get("/v1/static?switch=s1&owner=alice&limit=3");
    let expected = json!({"list_static": {
        "name": null, "switch": "s1", "owner": "alice", "page": {"skip": 0, "limit": 3},
    }});
    assert_eq!(last(), expected);
    assert_eq!(lab.get("/v1/static/web").json()["state"], "installed");

    let one = lab.order(&lab.write, "PUT", "/v1/static/wrong", body).problem(400, "invalid");
    assert_eq!(one["field"], "flow.match", "a body that is one entry has no list");
    let two = r#"{"entries": [{"name": "a", "switch": "s1"}, {"name": "wrong", "switch": "s1"}]}"#;
    let two = lab.order(&lab.write, "POST", "/v1/static", two).problem(400, "invalid");
    assert_eq!(two["field"], "entries[1].flow.match");
    let unknown = r#"{"switch": "s1", "flow": {"nonsense": 1}}"#;
    let unknown = lab.order(&lab.write, "PUT", "/v1/static/web", unknown).problem(400, "invalid");
    assert_eq!(unknown["field"], "flow.nonsense");
    // Fields have names, at every depth.
    for (body, field) in [
        (r#"{"entries": [["web", "s1"]]}"#, "entries[0]"),
        (
            r#"{"entries": [{"name": "w", "switch": "s1", "flow": [0, 7, "any", "output:2"]}]}"#,
            "entries[0].flow",
        ),
    ] {
        let list = lab.order(&lab.write, "POST", "/v1/static", body).problem(400, "invalid");
        assert_eq!(list["field"], field);
        let detail = list["detail"].as_str().unwrap();
        assert!(detail.contains("give an object with named fields"), "{detail}");
    }
    lab.order(&lab.read, "PUT", "/v1/static/web", body).problem(403, "forbidden");
    lab.send("PUT", "/v1/static/web", &[], body).problem(401, "unauthorized");
}

#[test]
fn a_wrong_request_gets_a_problem_that_names_the_mistake() {
    let lab = Lab::new();
    let detail = |problem: &Value| problem["detail"].as_str().unwrap().to_owned();

    let problem = lab.get("/v1/switch").problem(404, "not_found");
    assert!(detail(&problem).contains("/v1/openapi.json"));
    lab.get("/v1/switches/s9").problem(404, "not_found");
    let problem = lab.order(&lab.write, "PUT", "/v1/switches", "").problem(405, "wrong_method");
    assert!(detail(&problem).contains("/v1/switches has no PUT"));

    let problem = lab.get("/v1/hosts?limt=3").problem(400, "invalid");
    assert!(detail(&problem).contains("unknown field `limt`"), "{problem}");
    assert_eq!(problem["field"], "limt");
    let problem = lab.get("/v1/hosts?limit=x").problem(400, "invalid");
    assert!(detail(&problem).contains("give a whole number"), "{problem}");
    assert_eq!(problem["field"], "limit");
    let problem = lab.get("/v1/events?alarming=perhaps").problem(400, "invalid");
    assert_eq!(problem["field"], "alarming");
    let problem = lab.get("/v1/switches/s1/reply").problem(400, "invalid");
    assert_eq!(problem["field"], "request", "what is missing");
    let problem = lab.get("/v1/hosts?limit=0").problem(400, "invalid");
    assert_eq!(problem["field"], "limit");

    let post = |body: &str| lab.order(&lab.write, "POST", "/v1/reservations", body);
    let problem = post(r#"{"from": "a", "to": "b", "rate_kbps": "fast"}"#).problem(400, "invalid");
    assert_eq!(problem["field"], "rate_kbps");
    let problem = post(r#"{"from": "a", "to": "b"}"#).problem(400, "invalid");
    assert!(detail(&problem).contains("missing field `rate_kbps`"), "{problem}");
    assert_eq!(problem["field"], "rate_kbps");
    let problem = post(r#"{"from": "a", "to": "b", "rate_kbps": 0}"#).problem(400, "invalid");
    assert_eq!(problem["field"], "rate_kbps");
    let problem = post(" ").problem(400, "invalid");
    assert!(detail(&problem).contains("the body is empty; send a JSON object"), "{problem}");
    for body in ["", "{", "[]", r#"{"from": "a", "to": "b", "rate_kbps": 1} x"#, "\u{0}"] {
        post(body).problem(400, "invalid");
    }
    let wrong = lab.order(&lab.write, "DELETE", "/v1/reservations/x", "");
    let wrong = wrong.problem(400, "invalid");
    assert_eq!(wrong["field"], "id");
    assert!(detail(&wrong).ends_with(r#""x" is here; give a whole number"#), "{wrong}");
    let missing = lab.order(&lab.write, "DELETE", "/v1/static/missing", "");
    assert_eq!(missing.problem(404, "not_found")["field"], "name");
    let missing = lab.order(&lab.write, "POST", "/v1/static", r#"{"remove": ["missing"]}"#);
    assert_eq!(missing.problem(404, "not_found")["field"], "remove");
    lab.order(&lab.write, "DELETE", "/v1/reservations/8", "").problem(404, "not_found");
    lab.order(&lab.write, "POST", "/v1/quarantine", r#"{"host": "panic"}"#)
        .problem(500, "internal");

    let large = format!(r#"{{"host": "{}"}}"#, "x".repeat(2 << 20));
    lab.order(&lab.write, "POST", "/v1/quarantine", &large).problem(413, "too_large");
    assert_eq!(lab.counter("bodies_too_large"), 1);
    assert_eq!(lab.get("/v1/status").status, 200, "it goes on");
}

#[test]
fn changes_need_a_token_with_the_scope() {
    let lab = Lab::new();
    let body = r#"{"host": "10.0.0.1"}"#;
    let block = |headers: &[(&str, &str)]| lab.send("POST", "/v1/quarantine", headers, body);
    let reply = block(&[]);
    reply.problem(401, "unauthorized");
    assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
    block(&[("authorization", "Bearer bellrock_00")]).problem(401, "unauthorized");
    block(&[("authorization", "Basic dTpw")]).problem(401, "unauthorized");
    lab.order(&lab.read, "POST", "/v1/quarantine", body).problem(403, "forbidden");
    assert_eq!(lab.operator.requests.lock().unwrap().len(), 0, "nothing was asked");
    assert_eq!(lab.order(&lab.write, "POST", "/v1/quarantine", body).status, 200);
    assert_eq!((lab.counter("requests_unauthorized"), lab.counter("requests_forbidden")), (3, 1));
    let problem = lab.order(&lab.expired, "GET", "/v1/status", "").problem(401, "unauthorized");
    assert!(
        problem["detail"].as_str().unwrap().contains("the token old expired at 2"),
        "{problem}"
    );
    // A wrong token is an error where none is needed too: a script would never notice.
    lab.order("bellrock_00", "GET", "/v1/status", "").problem(401, "unauthorized");
}

#[test]
fn a_request_that_only_an_experimenter_understands_needs_a_token_for_changes() {
    let lab = Lab::new();
    // OpenFlow 1.3: a multipart request of an experimenter (type 0xffff), and one for groups (6).
    let path = |kind: &str| {
        format!("/v1/switches/s1/reply?request=0412001800000000{kind}0000000000000000232000000000")
    };
    let (vendor, groups) =
        (path("ffff"), "/v1/switches/s1/reply?request=04120010000000000006000000000000");
    lab.get(&vendor).problem(403, "forbidden");
    lab.order(&lab.read, "GET", &vendor, "").problem(403, "forbidden");
    assert_eq!(lab.operator.requests.lock().unwrap().len(), 0, "nothing was asked");
    assert_eq!(lab.order(&lab.write, "GET", &vendor, "").status, 200);
    assert_eq!(lab.get(groups).status, 200);
}

#[test]
fn wrong_tokens_are_limited_and_the_right_one_does_not_wait_with_them() {
    let lab = Lab::new();
    let mut statuses = Vec::new();
    for _ in 0..60 {
        statuses.push(lab.order("bellrock_00", "GET", "/v1/status", "").status);
    }
    assert_eq!(statuses[..10], [401; 10]);
    assert!(lab.counter("requests_unauthorized") + lab.counter("requests_over_limit") == 60);
    // All users of a machine have the address of the loopback, and all clients behind a proxy its
    // address.
    for _ in 0..60 {
        lab.order("bellrock_00", "GET", "/v1/status", "");
        assert_eq!(lab.order(&lab.read, "GET", "/v1/status", "").status, 200);
    }
    assert!(lab.counter("requests_over_limit") > 0, "wrong ones are over the limit meanwhile");
    assert_eq!(lab.get("/v1/status").status, 200, "requests without one are not affected");
}

#[test]
fn a_server_without_tokens_lets_nobody_change_anything() {
    let lab = Lab::with(|settings| settings.tokens = None);
    assert_eq!(lab.get("/v1/status").status, 200);
    let problem = lab.send("POST", "/v1/quarantine", &[], "{}").problem(401, "unauthorized");
    assert!(problem["detail"].as_str().unwrap().contains("`http.tokens`"), "{problem}");
    lab.order(&lab.write, "GET", "/v1/status", "").problem(401, "unauthorized");
}

#[test]
fn a_page_of_somebody_else_cannot_ask_by_a_name_of_its_own() {
    let lab = Lab::new();
    let with = |host: &str| lab.send("GET", "/v1/status", &[("host", host)], "");
    for good in ["localhost", "127.0.0.1:8080", "[::1]:80"] {
        assert_eq!(with(good).status, 200, "{good}");
    }
    for bad in ["evil.example", "10.0.0.1", "localhost.evil.example:80"] {
        with(bad).problem(421, "other_host");
    }
    assert_eq!(lab.counter("hosts_refused"), 3);
    // Of two it is unknown which one a proxy in between has looked at.
    let counted = lab.counter("requests_invalid");
    for second in ["localhost", "evil.example"] {
        let both = [("host", "localhost"), ("host", second)];
        lab.send("GET", "/v1/status", &both, "").problem(400, "invalid");
    }
    assert_eq!(lab.counter("requests_invalid"), counted + 2);
    // RFC 9112 §3.2. HTTP/1.0 has no such field.
    for (version, status) in [("1.1", 400), ("1.0", 200)] {
        let mut stream = lab.connect();
        let head = format!("GET /healthz HTTP/{version}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(crate::client::reply(&bytes).status, status);
    }
    assert_eq!(lab.counter("requests_invalid"), counted + 3);
}

#[test]
fn a_client_that_has_the_content_does_not_get_it_again() {
    let lab = Lab::new();
    let first = lab.get("/v1/reservations");
    let tag = first.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let again = lab.send("GET", "/v1/reservations", &[("if-none-match", tag)], "");
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let other = lab.send("GET", "/v1/reservations", &[("if-none-match", "\"0\"")], "");
    assert_eq!((other.status, other.body), (200, first.body));
}

#[test]
fn the_page_of_the_interface_lists_all_paths_and_loads_nothing() {
    let lab = Lab::new();
    let page = lab.get("/v1");
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    for path in openapi()["paths"].as_object().unwrap().keys() {
        assert!(page.body.contains(path), "{path}");
    }
    assert!(!page.body.contains("<script") && !page.body.contains("src="));
    let text = openapi().to_string();
    assert!(!text.contains("[`"), "links of the sources");
    assert!(!text.contains("prefixItems"), "a list in which the place says what a value is");
    for name in ["`None`", "::", "DEFAULT_", "MAX_"] {
        assert!(!text.contains(name), "{name} is a name of Rust");
    }
}
