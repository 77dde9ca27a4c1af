//! Requests of etcd's JSON gateway: protobuf's JSON, with bytes in base64 and 64-bit numbers as
//! text.

use std::borrow::Cow;

use data_encoding::BASE64;
use hyper::body::Bytes;
use serde::{Serialize, Serializer};

use super::transaction::{Compare, Operation, Transaction, Write};

pub(super) const RANGE: &str = "/v3/kv/range";
pub(super) const TXN: &str = "/v3/kv/txn";
pub(super) const WATCH: &str = "/v3/watch";
pub(super) const LEASE_GRANT: &str = "/v3/lease/grant";
pub(super) const LEASE_KEEPALIVE: &str = "/v3/lease/keepalive";
pub(super) const LEASE_REVOKE: &str = "/v3/lease/revoke";
pub(super) const LEASE_TIME_TO_LIVE: &str = "/v3/lease/timetolive";
pub(super) const STATUS: &str = "/v3/maintenance/status";
pub(super) const AUTHENTICATE: &str = "/v3/auth/authenticate";

/// Asks for a sign of life on a watch.
pub(super) const PROGRESS: &str = "{\"progress_request\":{}}\n";

#[derive(Default, Serialize)]
struct Range<'a> {
    key: Base64<'a>,
    #[serde(skip_serializing_if = "Base64::is_empty")]
    range_end: Base64<'a>,
    #[serde(skip_serializing_if = "Number::is_zero")]
    limit: Number,
    #[serde(skip_serializing_if = "Number::is_zero")]
    revision: Number,
}

#[derive(Serialize)]
struct Txn<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compare: Vec<Comparison<'a>>,
    success: Vec<Request<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failure: Vec<Request<'a>>,
}

#[derive(Serialize)]
struct Comparison<'a> {
    key: Base64<'a>,
    result: &'static str,
    target: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mod_revision: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Base64<'a>>,
}

#[derive(Serialize)]
enum Request<'a> {
    #[serde(rename = "request_range")]
    Range(Range<'a>),
    #[serde(rename = "request_put")]
    Put {
        key: Base64<'a>,
        value: Base64<'a>,
        #[serde(skip_serializing_if = "Number::is_zero")]
        lease: Number,
    },
    #[serde(rename = "request_delete_range")]
    Delete { key: Base64<'a> },
    #[serde(rename = "request_txn")]
    Txn(Txn<'a>),
}

/// Reads one key, linearizable. `revision` 0 is the newest.
pub(super) fn read_key(key: &[u8], revision: i64) -> Bytes {
    encode(&Range { key: Base64::of(key), revision: Number(revision), ..Range::default() })
}

/// Reads the keys from `from` that begin with `prefix`, linearizable and in order.
pub(super) fn read_page(from: &[u8], prefix: &[u8], limit: usize, revision: i64) -> Bytes {
    encode(&Range {
        key: Base64::of(from),
        range_end: Base64(after_prefix(prefix).into()),
        limit: Number(i64::try_from(limit).unwrap_or(i64::MAX)),
        revision: Number(revision),
    })
}

/// The first key after all that begin with a prefix.
fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // etcd's form of "no end".
    vec![0]
}

/// A transaction. If a compare fails, it reads the keys of its compares.
pub(super) fn transaction(prefix: &[u8], transaction: &Transaction) -> Bytes {
    let read = |key| Request::Range(Range { key: full(prefix, key), ..Range::default() });
    encode(&Txn {
        compare: transaction.compares.iter().map(|one| comparison(prefix, one)).collect(),
        success: transaction.operations.iter().map(|one| operation(prefix, one)).collect(),
        failure: transaction.compared_keys().into_iter().map(read).collect(),
    })
}

/// Independent writes in one transaction, each a transaction inside of it.
pub(super) fn batch(prefix: &[u8], writes: &[Write]) -> Bytes {
    let one = |write| Request::Txn(conditional(prefix, write));
    let success = writes.iter().map(one).collect();
    encode(&Txn { compare: Vec::new(), success, failure: Vec::new() })
}

fn conditional<'a>(prefix: &[u8], write: &'a Write) -> Txn<'a> {
    let key = || full(prefix, write.operation.key());
    let unchanged = Comparison {
        key: key(),
        result: "EQUAL",
        target: "MOD",
        mod_revision: Some(Number(write.revision)),
        value: None,
    };
    Txn {
        compare: vec![unchanged],
        success: vec![operation(prefix, &write.operation)],
        failure: vec![Request::Range(Range { key: key(), ..Range::default() })],
    }
}

fn comparison<'a>(prefix: &[u8], compare: &'a Compare) -> Comparison<'a> {
    let (target, mod_revision, value) = match compare {
        Compare::Revision { revision, .. } => ("MOD", Some(Number(*revision)), None),
        Compare::Value { value, .. } => ("VALUE", None, Some(Base64::of(value))),
    };
    let key = full(prefix, compare.key());
    Comparison { key, result: "EQUAL", target, mod_revision, value }
}

fn operation<'a>(prefix: &[u8], operation: &'a Operation) -> Request<'a> {
    let key = full(prefix, operation.key());
    match operation {
        Operation::Put { value, lease, .. } => Request::Put {
            key,
            value: Base64::of(value),
            lease: Number(lease.map_or(0, |lease| lease.0)),
        },
        Operation::Delete { .. } => Request::Delete { key },
    }
}

/// Opens a watch, with a report of the newest revision from time to time. Messages that are larger
/// than etcd's requests may be come in fragments.
pub(super) fn watch(prefix: &[u8], from_revision: i64) -> Bytes {
    #[derive(Serialize)]
    struct Create<'a> {
        key: Base64<'a>,
        range_end: Base64<'a>,
        start_revision: Number,
        progress_notify: bool,
        fragment: bool,
    }
    #[derive(Serialize)]
    struct Watch<'a> {
        create_request: Create<'a>,
    }
    let create_request = Create {
        key: Base64::of(prefix),
        range_end: Base64(after_prefix(prefix).into()),
        start_revision: Number(from_revision),
        progress_notify: true,
        fragment: true,
    };
    let mut line = encode(&Watch { create_request }).to_vec();
    line.push(b'\n');
    line.into()
}

/// A request about a lease. `seconds` is for a new one.
pub(super) fn lease(id: i64, seconds: Option<i64>) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "UPPERCASE")]
    struct Lease {
        id: Number,
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl: Option<Number>,
    }
    encode(&Lease { id: Number(id), ttl: seconds.map(Number) })
}

/// Proves a user.
pub(super) fn authenticate(name: &str, password: &str) -> Bytes {
    #[derive(Serialize)]
    struct Authenticate<'a> {
        name: &'a str,
        password: &'a str,
    }
    encode(&Authenticate { name, password })
}

/// A request without fields.
pub(super) fn empty() -> Bytes {
    Bytes::from_static(b"{}")
}

fn encode(request: &impl Serialize) -> Bytes {
    // Only maps with keys that are not text cannot be written.
    serde_json::to_vec(request).unwrap_or_else(|error| unreachable!("{error}")).into()
}

fn full<'a>(prefix: &[u8], key: &[u8]) -> Base64<'a> {
    Base64([prefix, key].concat().into())
}

/// Bytes, written in base64.
#[derive(Default)]
struct Base64<'a>(Cow<'a, [u8]>);

impl<'a> Base64<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Base64(bytes.into())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

/// A number of 64 bits, written as text.
#[derive(Clone, Copy, Default)]
struct Number(i64);

impl Number {
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LeaseId;
    use super::*;

    fn text(request: &Bytes) -> &str {
        std::str::from_utf8(request).unwrap()
    }

    // These are the bytes that etcd 3.4.23 was asked with, when its answers were recorded.
    #[test]
    fn requests_are_protobufs_json() {
        assert_eq!(text(&read_key(b"k", 0)), r#"{"key":"aw=="}"#);
        assert_eq!(
            text(&read_page(b"/a/x\0", b"/a/", 10, 7)),
            r#"{"key":"L2EveAA=","range_end":"L2Ew","limit":"10","revision":"7"}"#
        );
        let put = Transaction::new().unchanged("k", 0).put("k", "v");
        assert_eq!(
            text(&transaction(b"", &put)),
            concat!(
                r#"{"compare":[{"key":"aw==","result":"EQUAL","target":"MOD","mod_revision":"0"}],"#,
                r#""success":[{"request_put":{"key":"aw==","value":"dg=="}}],"#,
                r#""failure":[{"request_range":{"key":"aw=="}}]}"#
            )
        );
        let others =
            Transaction::new().value("k", "v").put_leased("l", "", LeaseId(77)).delete("m");
        assert_eq!(
            text(&transaction(b"", &others)),
            concat!(
                r#"{"compare":[{"key":"aw==","result":"EQUAL","target":"VALUE","value":"dg=="}],"#,
                r#""success":[{"request_put":{"key":"bA==","value":"","lease":"77"}},"#,
                r#"{"request_delete_range":{"key":"bQ=="}}],"#,
                r#""failure":[{"request_range":{"key":"aw=="}}]}"#
            )
        );
        assert_eq!(
            text(&batch(b"", &[Write::put("a", "1", 0)])),
            concat!(
                r#"{"success":[{"request_txn":{"#,
                r#""compare":[{"key":"YQ==","result":"EQUAL","target":"MOD","mod_revision":"0"}],"#,
                r#""success":[{"request_put":{"key":"YQ==","value":"MQ=="}}],"#,
                r#""failure":[{"request_range":{"key":"YQ=="}}]}}]}"#
            )
        );
        assert_eq!(
            text(&watch(b"/a/", 3)),
            concat!(
                r#"{"create_request":{"key":"L2Ev","range_end":"L2Ew","start_revision":"3","#,
                r#""progress_notify":true,"fragment":true}}"#,
                "\n"
            )
        );
        assert_eq!(text(&lease(77, Some(5))), r#"{"ID":"77","TTL":"5"}"#);
        assert_eq!(text(&lease(77, None)), r#"{"ID":"77"}"#);
        assert_eq!(text(&authenticate("u", "\"")), r#"{"name":"u","password":"\""}"#);
    }

    #[test]
    fn every_key_begins_with_the_prefix() {
        let put = Transaction::new().unchanged("k", 0).put("k", "v");
        assert_eq!(text(&transaction(b"/a/", &put)).matches("L2Evaw==").count(), 3);
        assert_eq!(text(&batch(b"/a/", &[Write::delete("k", 4)])).matches("L2Evaw==").count(), 3);
    }

    #[test]
    fn a_prefix_ends_before_the_next_key() {
        assert_eq!(after_prefix(b"a/"), b"a0");
        assert_eq!(after_prefix(b"a\xff\xff"), b"b");
        assert_eq!(after_prefix(b"\xff"), b"\0");
    }
}
