//! Bodies of requests: objects whose fields are read one by one, with the name of each that is
//! wrong.

use std::cell::RefCell;

use axum::extract::{FromRequest, Request};
use bellrock_api::openflow::{Port, Version};
use bellrock_northbound::guest::{GuestState, Problem};
use serde_json::{Map, Value};
use tracing::debug;

use super::Failure;
use super::numbers::{Names, integer, port_of, ports};

/// Maximum number of nodes in a literal of Python: values, lists and objects.
pub const MAX_LITERAL_NODES: usize = 20_000;

/// The body of a request: an object in JSON, or a literal of Python, which Ryu reads. Without a
/// body: an empty object.
pub(super) struct Body(pub(super) Map<String, Value>);

impl FromRequest<GuestState> for Body {
    type Rejection = axum::response::Response;

    async fn from_request(request: Request, state: &GuestState) -> Result<Self, Self::Rejection> {
        use axum::response::IntoResponse;
        let body = state.read_body(request, read).await.map_err(Problem::into_response)?;
        body.map(Body).map_err(Failure::into_response)
    }
}

fn read(bytes: &[u8]) -> Result<Map<String, Value>, Failure> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    let value = serde_json::from_slice(bytes).or_else(|error| {
        // A literal of Python: single quotes, commas at ends, hexadecimal numbers. YAML has them.
        let is_object = bytes.trim_ascii_start().starts_with(b"{");
        let text = std::str::from_utf8(bytes).ok().filter(|_| is_object);
        text.and_then(literal).ok_or_else(|| {
            let why = format!(
                "it is neither JSON nor a literal of Python with at most {MAX_LITERAL_NODES} values: {error}"
            );
            Failure::wrong("body", why)
        })
    })?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Failure::wrong("body", "it is no object; write {\"dpid\": 1, ...}")),
    }
}

/// A literal of Python, as YAML reads it.
fn literal(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_LITERAL_NODES },
    };
    serde_saphyr::from_str_with_options(text, options).ok()
}

/// Fields that change what a flow does, and that not every version or object has. Ryu ignores them
/// where they do not belong: with `instructions`, its flow of 1.3 drops all packets.
const MEANT: &[&str] = &["instructions", "table_id", "cookie_mask", "out_group", "cookie", "flags"];

/// Fields of a body that nobody reads.
#[derive(Default)]
pub(super) struct Ignored(RefCell<Vec<String>>);

impl Ignored {
    /// Number of fields that the log names.
    const MAX_NAMED: usize = 8;

    fn note(&self, place: String) {
        self.0.borrow_mut().push(place);
    }

    /// Writes one line to the log, if there are any.
    pub(super) fn log(&self) {
        let fields = self.0.borrow();
        if !fields.is_empty() {
            let named = fields.iter().take(Self::MAX_NAMED).map(String::as_str);
            let named: Vec<&str> = named.collect();
            debug!(
                fields = named.join(", "),
                number = fields.len(),
                "fields of a request to the interface of Ryu are unknown and ignored, as Ryu does"
            );
        }
    }
}

/// The known field that a slip of the pen makes `key` of.
fn near_miss<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    /// From this length on, two slips are one word; below, one.
    const LONG: usize = 6;
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let written = plain(key);
    let slips = |name: &str| strsim::osa_distance(&written, &plain(name));
    let is_part = |name: &str| name.split_once('_').is_some_and(|(first, _)| first == key);
    let (distance, nearest) = known.iter().map(|name| (slips(name), *name)).min()?;
    let allowed = if nearest.len().max(written.len()) < LONG { 1 } else { 2 };
    match distance <= allowed {
        true => Some(nearest),
        // "table" for "table_id".
        false => known.iter().copied().find(|name| is_part(name)),
    }
}

/// An object of a body.
#[derive(Clone, Copy)]
pub(super) struct Object<'v> {
    map: &'v Map<String, Value>,
    /// Its place in the body, with a point at its end; empty for the body itself.
    path: &'v str,
    version: Version,
    ignored: &'v Ignored,
}

impl<'v> Object<'v> {
    /// The whole body.
    pub(super) fn new(
        map: &'v Map<String, Value>,
        version: Version,
        ignored: &'v Ignored,
    ) -> Object<'v> {
        Object { map, path: "", version, ignored }
    }

    /// The object of a value inside. `path`: its place.
    pub(super) fn inside(&self, value: &'v Value, path: &'v str) -> Result<Object<'v>, Failure> {
        let wrong = || Failure::wrong(path.trim_end_matches('.'), "it is no object");
        Ok(Object { map: value.as_object().ok_or_else(wrong)?, path, ..*self })
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// The place of a field.
    pub(super) fn place(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    /// Passes over fields other than these, as Ryu does: scripts have comments and names there.
    /// Refuses one that is nearly one of these, or that would change what the others mean: Ryu
    /// ignores it too, and its flow does what nobody wants.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Failure> {
        let others = self.map.keys().map(String::as_str).filter(|key| !known.contains(key));
        for key in others {
            let why = if let Some(near) = near_miss(key, known) {
                format!("there is no such field; did you mean {near}?")
            } else if MEANT.contains(&key) {
                format!("there is no such field here; give {}", known.join(", "))
            } else {
                self.ignored.note(self.place(key));
                continue;
            };
            return Err(Failure::wrong(&self.place(key), why));
        }
        Ok(())
    }

    pub(super) fn value(&self, key: &str) -> Option<&'v Value> {
        self.map.get(key)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        self.map.iter()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<&'v str, Failure> {
        let text = self.value(key).and_then(Value::as_str);
        text.ok_or_else(|| Failure::wrong(&self.place(key), "give a text"))
    }

    /// A number.
    pub(super) fn number<T: TryFrom<u64>>(&self, key: &str) -> Result<T, Failure> {
        self.read(key, integer, "give a number, such as 7 or \"0x1f\"")
    }

    /// A number, or `default` if it is not given.
    pub(super) fn number_or<T: TryFrom<u64>>(&self, key: &str, default: T) -> Result<T, Failure> {
        if self.has(key) { self.number(key) } else { Ok(default) }
    }

    /// A number, or the name of a reserved one.
    pub(super) fn named<T: TryFrom<u64>>(&self, key: &str, names: &Names) -> Result<T, Failure> {
        self.read(key, |value| names.read(value), &format!("give a number, or {}", names.list()))
    }

    /// The same, or `default` if it is not given.
    pub(super) fn named_or<T: TryFrom<u64>>(
        &self,
        key: &str,
        names: &Names,
        default: T,
    ) -> Result<T, Failure> {
        if self.has(key) { self.named(key, names) } else { Ok(default) }
    }

    /// A port.
    pub(super) fn port(&self, key: &str) -> Result<Port, Failure> {
        let number: u64 = self.named(key, ports(self.version))?;
        port_of(self.version, number)
            .ok_or_else(|| Failure::wrong(&self.place(key), format!("there is no port {number}")))
    }

    /// A port, or `default` if it is not given.
    pub(super) fn port_or(&self, key: &str, default: Port) -> Result<Port, Failure> {
        if self.has(key) { self.port(key) } else { Ok(default) }
    }

    /// A list; an empty one if it is not given.
    pub(super) fn list(&self, key: &str) -> Result<&'v [Value], Failure> {
        match self.value(key) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(Failure::wrong(&self.place(key), "give a list")),
        }
    }

    fn read<T: TryFrom<u64>>(
        &self,
        key: &str,
        read: impl Fn(&Value) -> Option<u64>,
        right: &str,
    ) -> Result<T, Failure> {
        let wrong = |why: String| Failure::wrong(&self.place(key), why);
        let Some(value) = self.value(key) else {
            return Err(wrong(format!("it is missing; {right}")));
        };
        let number =
            read(value).ok_or_else(|| wrong(format!("{value} is no number here; {right}")))?;
        let bits = size_of::<T>() * 8;
        T::try_from(number).map_err(|_| wrong(format!("{number} has more than {bits} bits")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_or_literals_of_python() {
        let json =
            read(br#"{"dpid": 1, "match": {"in_port": 2}, "actions": [{"type": "OUTPUT"}]}"#);
        let python =
            read(b"{'dpid': 0x1, 'match': {'in_port': 2,}, 'actions': [{'type': 'OUTPUT'}], }");
        assert_eq!(json.unwrap(), python.unwrap());
        assert!(read(b" ").unwrap().is_empty());
        for text in [&b"{dpid: "[..], b"[1]", b"7", b"hello", b"\xff", b"{'dpid': 1"] {
            assert_eq!(read(text).unwrap_err().status, 400, "{text:?}");
        }
    }

    #[test]
    fn hostile_literals_are_refused_at_once() {
        let mut aliases = "{'a0': &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned();
        for level in 1..9 {
            let inside = vec![format!("*a{}", level - 1); 10].join(", ");
            aliases.push_str(&format!(", 'a{level}': &a{level} [{inside}]"));
        }
        aliases.push('}');
        let deep = "{'a': ".repeat(100_000);
        for text in [aliases, deep] {
            assert_eq!(read(text.as_bytes()).unwrap_err().status, 400);
        }
    }

    #[test]
    fn a_wrong_field_is_named_with_its_place() {
        let body = serde_json::json!({"in_port": "nowhere", "priority": 65536, "table_id": {}});
        let ignored = Ignored::default();
        let (map, body) = (Map::new(), &body);
        let object = Object::new(&map, Version::V1_3, &ignored).inside(body, "match.").unwrap();
        for (failure, text) in [
            (object.port("in_port").unwrap_err(), "match.in_port: \"nowhere\" is no number here"),
            (
                object.number::<u16>("priority").unwrap_err(),
                "match.priority: 65536 has more than 16 bits",
            ),
            (object.number::<u8>("table_id").unwrap_err(), "match.table_id: {} is no number here"),
            (object.number::<u8>("cookie").unwrap_err(), "match.cookie: it is missing"),
            (
                object.only(&["in_port", "priority"]).unwrap_err(),
                "match.table_id: there is no such field here; give in_port, priority",
            ),
        ] {
            assert!(failure.text.starts_with(text), "{}", failure.text);
        }
    }

    #[test]
    fn unknown_fields_are_ignored_and_slips_refused() {
        let known = ["dpid", "table_id", "idle_timeout", "priority", "match", "actions"];
        let only = |body: Value| {
            let ignored = Ignored::default();
            let body = body.as_object().unwrap();
            let done = Object::new(body, Version::V1_3, &ignored).only(&known);
            done.map(|()| ignored.0.take())
        };
        // What scripts keep beside the fields, some of it from what Ryu lists.
        let body = serde_json::json!({
            "dpid": 1, "name": "r1", "description": "block web", "comment": "", "switch": "s1",
            "length": 96, "byte_count": 0, "duration_sec": 5, "nonsense": 1, "active": true,
        });
        assert_eq!(only(body).unwrap().len(), 9);
        for (key, meant) in [
            ("prioriy", "priority"),
            ("Priority", "priority"),
            ("action", "actions"),
            ("matches", "match"),
            ("dipd", "dpid"),
            ("idleTimeout", "idle_timeout"),
            ("idle-timeout", "idle_timeout"),
            ("table", "table_id"),
        ] {
            let failure = only(serde_json::json!({key: 1})).unwrap_err();
            let expected = format!("{key}: there is no such field; did you mean {meant}?");
            assert_eq!((failure.status.as_u16(), failure.text), (400, expected));
        }
        // Ryu reads it for 1.4 only, and its flow of 1.3 drops.
        let failure = only(serde_json::json!({"instructions": []})).unwrap_err();
        assert!(failure.text.starts_with("instructions: there is no such field here; give dpid"));
    }

    #[test]
    fn a_literal_of_python_has_a_bounded_number_of_values() {
        let literal = |values: usize| format!("{{'dpid': 0x1, 'x': [{}]}}", "1,".repeat(values));
        let object = read(literal(MAX_LITERAL_NODES / 2).as_bytes()).unwrap();
        assert_eq!(object["x"].as_array().unwrap().len(), MAX_LITERAL_NODES / 2);
        let failure = read(literal(MAX_LITERAL_NODES).as_bytes()).unwrap_err();
        assert!(failure.text.contains("at most 20000 values"), "{}", failure.text);
        // JSON is cheap.
        let json = literal(MAX_LITERAL_NODES).replace("0x1", "1").replace('\'', "\"");
        assert!(read(json.replace(",]", "]").as_bytes()).is_ok());
    }
}
