//! Messages as JSON, as `bellrock decode --json` writes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail so")]

#[path = "openflow/common/mod.rs"]
mod common;

use common::{Any, vectors};
use serde_json::{Value, json};

fn json_of(folder: &str, name: &str) -> Value {
    let vectors = vectors(folder);
    let vector = vectors.iter().find(|vector| vector.path.file_stem().unwrap() == name).unwrap();
    as_json(&Any::decode(vector.direction, &vector.bytes).unwrap())
}

fn as_json(message: &Any<'_>) -> Value {
    match message {
        Any::From(message) => serde_json::to_value(message),
        Any::To(message) => serde_json::to_value(message),
    }
    .unwrap()
}

#[test]
fn every_message_is_an_object_with_version_xid_and_type() {
    for folder in ["v10", "v13"] {
        for vector in vectors(folder) {
            let message = as_json(&Any::decode(vector.direction, &vector.bytes).unwrap());
            let name = vector.name();
            assert!(message["version"].is_string() && message["xid"].is_u64(), "{name}");
            assert!(message["type"].is_string(), "{name}: {message}");
        }
    }
}

#[test]
fn matches_are_objects_and_bytes_are_hexadecimal() {
    assert_eq!(
        json_of("v13", "flow_mod_add_tcp"),
        json!({
            "version": "1.3",
            "xid": 6,
            "type": "flow_mod",
            "body": {
                "command": "add",
                "table": 0,
                "cookie": 0x1234,
                "cookie_mask": 0,
                "idle_timeout": 30,
                "hard_timeout": 60,
                "priority": 10,
                "buffer_id": null,
                "out_port": "ANY",
                "out_group": 0xffff_ffff_u32,
                "flags": "",
                "matching": {
                    "in_port": 1,
                    "eth_type": "0x0800",
                    "ip_proto": 6,
                    "ipv4_src": "10.0.0.0/24",
                    "ipv4_dst": "10.1.2.3",
                    "tcp_dst": 80,
                },
                "instructions": [{
                    "apply_actions": [
                        {"set_field": {"eth_dst": "00:11:22:33:44:55"}},
                        {"output": {"port": 2, "max_len": 0}},
                    ],
                }],
            },
        })
    );
    let echo = json_of("v10", "echo_request_data");
    assert!(echo["body"].as_str().unwrap().bytes().all(|b| b.is_ascii_hexdigit()), "{echo}");
}

#[test]
fn names_stand_for_numbers() {
    let hello = json_of("v13", "hello_bitmap_10_13");
    assert_eq!(hello["body"], json!({"elements": [{"version_bitmap": [1, 4]}]}));
    let error = json_of("v13", "error_bad_len");
    assert_eq!(error["body"]["standard"]["code"], "OFPBRC_BAD_LEN");
    let barrier = json_of("v13", "barrier_reply");
    assert_eq!(barrier, json!({"version": "1.3", "xid": 0x2ab, "type": "barrier_reply"}));
    let features = json_of("v10", "features_reply");
    assert_eq!(features["body"]["ports"][1]["name"], "cv1");
    assert_eq!(features["body"]["ports"][1]["current"], "RATE_10GB_FD | COPPER");
    let removed = json_of("v13", "flow_removed_idle_timeout");
    assert_eq!(removed["body"]["reason"], "idle_timeout");
    let table = json_of("v13", "multipart_reply_table_features_all_props");
    let properties = &table["body"]["body"]["table_features"][0]["properties"];
    assert_eq!(properties[2]["next_tables"], json!({"miss": false, "tables": [1, 2, 3]}));
    assert_eq!(properties[8]["match"]["oxm"][1], "eth_dst/mask");
}
