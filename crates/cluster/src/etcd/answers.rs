//! Answers of etcd's JSON gateway. Fields with the value zero are absent in them.

use data_encoding::BASE64;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Entry, LeaseId};

/// Begins every answer. (Those inside of a transaction have the revision only.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    #[serde(deserialize_with = "unsigned")]
    pub(super) cluster_id: u64,
    #[serde(deserialize_with = "unsigned")]
    pub(super) member_id: u64,
    #[serde(deserialize_with = "signed")]
    pub(super) revision: i64,
    #[serde(deserialize_with = "unsigned")]
    pub(super) raft_term: u64,
}

/// An answer that says which cluster it is of.
pub(super) trait Answer: DeserializeOwned {
    fn header(&self) -> Header;
}

macro_rules! answers {
    ($($name:ident),*) => {
        $(impl Answer for $name {
            fn header(&self) -> Header {
                self.header
            }
        })*
    };
}
answers!(Range, Txn, Lease, Status, Authenticated);

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Range {
    pub(super) header: Header,
    pub(super) kvs: Vec<KeyValue>,
    /// Whether there are keys after the last one.
    pub(super) more: bool,
}

/// An entry with its whole key.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "base64")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "base64")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "signed")]
    pub(super) mod_revision: i64,
    #[serde(deserialize_with = "signed")]
    pub(super) lease: i64,
}

impl KeyValue {
    /// The entry, without the prefix of the client. `None`: its key does not begin with it.
    pub(super) fn entry(self, prefix: &[u8]) -> Option<Entry> {
        Some(Entry {
            key: self.key.strip_prefix(prefix)?.to_vec(),
            value: self.value,
            mod_revision: self.mod_revision,
            lease: (self.lease != 0).then_some(LeaseId(self.lease)),
        })
    }
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Txn {
    pub(super) header: Header,
    pub(super) succeeded: bool,
    pub(super) responses: Vec<Response>,
}

/// The answer to one operation of a transaction; one of them is there.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) response_range: Option<Range>,
    pub(super) response_txn: Option<Txn>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Lease {
    pub(super) header: Header,
    /// Seconds that are left. 0 or less: there is no such lease.
    #[serde(rename = "TTL", deserialize_with = "signed")]
    pub(super) ttl: i64,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) header: Header,
    pub(super) version: String,
    /// Member id of the leader, or 0.
    #[serde(deserialize_with = "unsigned")]
    pub(super) leader: u64,
    #[serde(rename = "dbSize", deserialize_with = "signed")]
    pub(super) database_bytes: i64,
    /// Alarms and a missing leader, in words.
    pub(super) errors: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Authenticated {
    pub(super) header: Header,
    pub(super) token: String,
}

/// An answer of a stream: a result, or an error that ends it.
#[derive(Debug, Deserialize)]
pub(super) struct Streamed<T> {
    pub(super) result: Option<T>,
    pub(super) error: Option<StreamError>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct StreamError {
    /// `grpc_code` up to etcd 3.5, `code` later.
    #[serde(alias = "grpc_code")]
    code: i64,
    message: String,
}

impl From<StreamError> for Refusal {
    fn from(error: StreamError) -> Self {
        Refusal { code: error.code, message: error.message }
    }
}

/// An answer that is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct WatchResponse {
    pub(super) header: Header,
    /// 0 is the watch, -1 the answer to a request for a sign of life.
    #[serde(deserialize_with = "signed")]
    pub(super) watch_id: i64,
    pub(super) created: bool,
    pub(super) canceled: bool,
    /// The next message is the rest of this one.
    pub(super) fragment: bool,
    #[serde(deserialize_with = "signed")]
    pub(super) compact_revision: i64,
    pub(super) cancel_reason: String,
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: EventType,
    pub(super) kv: KeyValue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum EventType {
    #[default]
    #[serde(rename = "PUT")]
    Put,
    #[serde(rename = "DELETE")]
    Delete,
}

/// Reads an answer.
pub(super) fn parse<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Base64;
    impl Visitor<'_> for Base64 {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("bytes in base64")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
            BASE64.decode(text.as_bytes()).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Base64)
}

/// A number of 64 bits is text in protobuf's JSON; numbers are accepted, too.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number<T> {
    Text(String),
    Plain(T),
}

fn number<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: std::str::FromStr<Err: std::fmt::Display> + Deserialize<'de>,
    D: Deserializer<'de>,
{
    match Number::<T>::deserialize(deserializer)? {
        Number::Text(text) => text.parse().map_err(D::Error::custom),
        Number::Plain(plain) => Ok(plain),
    }
}

fn signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    number(deserializer)
}

fn unsigned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    number(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = concat!(
        r#"{"cluster_id":"324952591200643719","member_id":"3319814642761637952","#,
        r#""revision":"3","raft_term":"2"}"#
    );

    /// Reads an answer, in which `HEADER` stands for a header.
    fn read<T: DeserializeOwned>(text: &str) -> T {
        parse(text.replace("HEADER", HEADER).as_bytes()).unwrap()
    }

    fn header() -> Header {
        Header {
            cluster_id: 324_952_591_200_643_719,
            member_id: 3_319_814_642_761_637_952,
            revision: 3,
            raft_term: 2,
        }
    }

    // All texts are answers of etcd 3.4.23.
    #[test]
    fn ranges_of_none_and_some() {
        let none: Range = read(r#"{"header":HEADER}"#);
        assert_eq!(none, Range { header: header(), kvs: vec![], more: false });
        let some: Range = read(concat!(
            r#"{"header":HEADER,"kvs":[{"key":"aw==","create_revision":"2","mod_revision":"2","#,
            r#""version":"1","value":"dg==","lease":"77"},{"key":"AP8=","create_revision":"3","#,
            r#""mod_revision":"3","version":"1"}],"more":true,"count":"7"}"#
        ));
        assert!(some.more);
        let [first, second] = <[KeyValue; 2]>::try_from(some.kvs).unwrap();
        assert_eq!((first.key.as_slice(), first.value.as_slice()), (&b"k"[..], &b"v"[..]));
        assert_eq!((first.mod_revision, first.lease), (2, 77));
        assert_eq!((second.key.as_slice(), second.value.as_slice()), (&[0, 255][..], &b""[..]));
        assert!(second.entry(b"k").is_none(), "its key does not begin with the prefix");
        let entry = first.entry(b"k").unwrap();
        assert_eq!((entry.key.as_slice(), entry.lease), (&b""[..], Some(LeaseId(77))));
    }

    #[test]
    fn transactions_that_succeed_and_fail() {
        let done: Txn = read(concat!(
            r#"{"header":HEADER,"succeeded":true,"#,
            r#""responses":[{"response_put":{"header":{"revision":"2"}}}]}"#
        ));
        assert!(done.succeeded && done.header == header());
        let failed: Txn = read(concat!(
            r#"{"header":HEADER,"responses":[{"response_range":{"header":{"revision":"2"},"#,
            r#""kvs":[{"key":"aw==","create_revision":"2","mod_revision":"2","version":"1","#,
            r#""value":"dg=="}],"count":"1"}}]}"#
        ));
        assert!(!failed.succeeded);
        assert_eq!(failed.responses[0].response_range.as_ref().unwrap().kvs[0].value, b"v");
        let batch: Txn = read(concat!(
            r#"{"header":HEADER,"succeeded":true,"responses":[{"response_txn":{"header":{},"#,
            r#""succeeded":true,"responses":[{"response_put":{"header":{"revision":"3"}}}]}},"#,
            r#"{"response_txn":{"header":{},"responses":[{"response_range":{"header":"#,
            r#"{"revision":"3"}}}]}}]}"#
        ));
        let inner: Vec<bool> = batch
            .responses
            .iter()
            .map(|one| one.response_txn.as_ref().unwrap().succeeded)
            .collect();
        assert_eq!(inner, [true, false]);
    }

    #[test]
    fn messages_of_a_watch() {
        let created: Streamed<WatchResponse> =
            read(r#"{"result":{"header":HEADER,"created":true}}"#);
        assert!(created.result.unwrap().created);
        let events: Streamed<WatchResponse> = read(concat!(
            r#"{"result":{"header":HEADER,"events":[{"kv":{"key":"YQ==","create_revision":"3","#,
            r#""mod_revision":"3","version":"1","value":"MQ=="}},{"type":"DELETE","kv":"#,
            r#"{"key":"Yw==","mod_revision":"5"}}]}}"#
        ));
        let events = events.result.unwrap().events;
        assert_eq!((events[0].kind, events[0].kv.value.as_slice()), (EventType::Put, &b"1"[..]));
        assert_eq!((events[1].kind, events[1].kv.mod_revision), (EventType::Delete, 5));
        let alive: Streamed<WatchResponse> =
            read(r#"{"result":{"header":HEADER,"watch_id":"-1"}}"#);
        assert_eq!(alive.result.unwrap().watch_id, -1);
        let compacted: Streamed<WatchResponse> = read(concat!(
            r#"{"result":{"header":{"cluster_id":"324952591200643719","#,
            r#""member_id":"3319814642761637952","raft_term":"2"},"canceled":true,"#,
            r#""compact_revision":"2"}}"#
        ));
        let compacted = compacted.result.unwrap();
        assert!(compacted.canceled && compacted.compact_revision == 2);
        let denied: Streamed<WatchResponse> = read(concat!(
            r#"{"result":{"header":HEADER,"watch_id":"-1","created":true,"canceled":true,"#,
            r#""cancel_reason":"rpc error: code = Unauthenticated desc = etcdserver: invalid auth "#,
            r#"token"}}"#
        ));
        assert!(denied.result.unwrap().cancel_reason.ends_with("invalid auth token"));
        let ended: Streamed<WatchResponse> = read(concat!(
            r#"{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader","#,
            r#""http_status":"Service Unavailable"}}"#
        ));
        let refusal = Refusal::from(ended.error.unwrap());
        assert_eq!(refusal, Refusal { code: 14, message: "etcdserver: no leader".into() });
    }

    #[test]
    fn leases_users_and_members() {
        let lease: Lease = read(r#"{"header":HEADER,"ID":"77","TTL":"4","grantedTTL":"5"}"#);
        assert_eq!(lease.ttl, 4);
        let over: Streamed<Lease> = read(r#"{"result":{"header":HEADER,"ID":"123"}}"#);
        assert_eq!(over.result.unwrap().ttl, 0);
        let unknown: Lease = read(r#"{"header":HEADER,"ID":"123","TTL":"-1"}"#);
        assert_eq!(unknown.ttl, -1);
        let user: Authenticated = read(r#"{"header":HEADER,"token":"PPfyKgIAsxfZaUQd.29"}"#);
        assert_eq!(user.token, "PPfyKgIAsxfZaUQd.29");
        let status: Status = read(concat!(
            r#"{"header":HEADER,"version":"3.4.23","dbSize":"20480","leader":"3319814642761637952","#,
            r#""raftIndex":"21","raftTerm":"2","raftAppliedIndex":"21","#,
            r#""errors":["alarm:NOSPACE "],"dbSizeInUse":"16384"}"#
        ));
        assert_eq!((status.leader, status.database_bytes), (header().member_id, 20480));
        assert_eq!(status.errors, ["alarm:NOSPACE "]);
        let refusal: Refusal = read(concat!(
            r#"{"error":"etcdserver: key is not provided","#,
            r#""message":"etcdserver: key is not provided","code":3}"#
        ));
        assert_eq!(refusal, Refusal { code: 3, message: "etcdserver: key is not provided".into() });
    }

    #[test]
    fn a_malformed_answer_is_refused() {
        for text in [
            "",
            "Not Found",
            r#"{"header":{"revision":"x"}}"#,
            r#"{"header":{"cluster_id":"-1"}}"#,
            r#"{"kvs":[{"key":"a"}]}"#,
            r#"{"header":{}"#,
        ] {
            assert!(parse::<Range>(text.as_bytes()).is_err(), "{text}");
        }
        let later: Header = parse(br#"{"revision":7,"cluster_id":18446744073709551615}"#).unwrap();
        assert_eq!((later.revision, later.cluster_id), (7, u64::MAX));
    }
}
