//! From the events of the parser to a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

use super::{Entry, Key, Node, Scalar, Value, scalar};
use crate::{Place, Problem, Problems};

/// Maximum number of nodes of a document, with each alias counted as all nodes that it stands for:
/// a few lines of aliases of aliases would have billions.
pub(crate) const MAX_NODES: usize = 4_000_000;

/// Maximum length of a file, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 64 << 20;

/// What to look for where the text is no YAML.
const ADVICE: &str = "look here and just above for a missing bracket, quote or colon, and a wrong \
     indentation; put values with special signs in quotes";

/// The most recent version of YAML whose rules differ.
const YAML_1_1: (u32, u32) = (1, 1);

/// Reads one document. Duplicate keys and unknown tags are problems; then, and where the text is no
/// YAML, there is no tree. An empty document is a null.
pub(crate) fn compose(text: &str, file: &Arc<Path>, problems: &mut Problems) -> Option<Node> {
    let before = problems.list.len() + problems.left_out;
    let mut composer = Composer {
        file,
        problems,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        document: None,
        documents: 0,
    };
    match composer.run(text) {
        Ok(()) => {}
        Err(Problem { place, message }) => composer.problems.add(&place, message),
    }
    let document = composer.document.take();
    let start = Place { file: Arc::clone(file), line: 1, column: 1 };
    let is_right = problems.list.len() + problems.left_out == before;
    let null = || Arc::new(Node { place: start, value: Value::Scalar(Scalar::Null) });
    is_right.then(|| Arc::unwrap_or_clone(document.unwrap_or_else(null)))
}

struct Composer<'a> {
    file: &'a Arc<Path>,
    problems: &'a mut Problems,
    /// The lists and maps around what is read now, the innermost last.
    open: Vec<Open>,
    /// A node with the number of its nodes; `None` while it is open.
    anchors: BTreeMap<usize, Option<(Arc<Node>, usize)>>,
    document: Option<Arc<Node>>,
    documents: usize,
}

/// A list or map that has begun.
struct Open {
    place: Place,
    anchor: usize,
    /// Number of nodes in it, and itself.
    nodes: usize,
    content: Content,
}

enum Content {
    List(Vec<Arc<Node>>),
    Map(Map),
}

struct Map {
    entries: Vec<Entry>,
    /// Where each key stands first.
    seen: BTreeMap<Key, (u32, u32)>,
    merged: Vec<Entry>,
    has_merge: bool,
    key: NextKey,
}

enum NextKey {
    /// The next node is a key.
    Awaited,
    Scalar(Place, Scalar),
    /// `<<`, as it is written without quotes.
    Merge(Place),
    /// It cannot be a key, and that was said.
    Wrong,
}

impl Composer<'_> {
    fn run(&mut self, text: &str) -> Result<(), Problem> {
        if text.len() > MAX_FILE_BYTES {
            let message = format!(
                "the file has {} bytes; at most {MAX_FILE_BYTES} are read: divide it with `include`",
                text.len()
            );
            return Err(Problem { place: Place::start(self.file), message });
        }
        let mut options = Options::default();
        // With comments, many lines of them in a row are an error.
        options.set_emit_comments(false);
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event.map_err(|error| {
                let mark = error.marker();
                let place = self.place(mark.line(), mark.col());
                Problem { place, message: format!("{}; {ADVICE}", error.info()) }
            })?;
            self.event(event, span)?;
        }
        Ok(())
    }

    fn place(&self, line: usize, column_from_0: usize) -> Place {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place {
            file: Arc::clone(self.file),
            line: number(line),
            column: number(column_from_0.saturating_add(1)),
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let place = self.place(span.start.line(), span.start.col());
        match event {
            Event::DocumentStart(_, version) => {
                self.documents += 1;
                let is_old = version.is_some_and(|it| (it.major, it.minor) <= YAML_1_1);
                let message = if self.documents > 1 {
                    "a second document begins here; a file has one: remove the `---`, or use \
                     `include`"
                } else if is_old {
                    "`%YAML 1.1` reads words and numbers in another way; remove this line"
                } else {
                    return Ok(());
                };
                return Err(Problem { place, message: message.to_owned() });
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                if is_plain && text == "<<" && tag.is_none() && self.awaits_key() {
                    self.set_key(NextKey::Merge(place));
                    return Ok(());
                }
                let value = self.scalar(&text, is_plain, tag.as_deref(), &place);
                self.node(Arc::new(Node { place, value: Value::Scalar(value) }), anchor, 1)?;
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(Some((node, nodes))) => {
                    // A scalar of an anchor may be a key; its place is then where it is used.
                    let node = match &node.value {
                        Value::Scalar(_) => Arc::new(Node { place, value: node.value.clone() }),
                        _ => node,
                    };
                    self.node(node, 0, nodes)?;
                }
                _ => {
                    let message = "this alias contains itself; give a value instead".to_owned();
                    return Err(Problem { place, message });
                }
            },
            Event::SequenceStart(_, anchor, tag) => {
                self.collection_tag(tag.as_deref(), "seq", &place);
                self.open(place, anchor, Content::List(Vec::new()));
            }
            Event::MappingStart(_, anchor, tag) => {
                self.collection_tag(tag.as_deref(), "map", &place);
                let map = Map {
                    entries: Vec::new(),
                    seen: BTreeMap::new(),
                    merged: Vec::new(),
                    has_merge: false,
                    key: NextKey::Awaited,
                };
                self.open(place, anchor, Content::Map(map));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let value = match open.content {
                    Content::List(items) => Value::List(items),
                    Content::Map(map) => Value::Map(with(map.entries, map.merged)),
                };
                self.node(Arc::new(Node { place: open.place, value }), open.anchor, open.nodes)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, place: Place, anchor: usize, content: Content) {
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { place, anchor, nodes: 1, content });
    }

    fn awaits_key(&self) -> bool {
        let content = self.open.last().map(|open| &open.content);
        matches!(content, Some(Content::Map(Map { key: NextKey::Awaited, .. })))
    }

    fn set_key(&mut self, new: NextKey) {
        if let Some(Open { content: Content::Map(map), .. }) = self.open.last_mut() {
            map.key = new;
        }
    }

    /// Adds a whole node to what is open.
    fn node(&mut self, node: Arc<Node>, anchor: usize, nodes: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.insert(anchor, Some((Arc::clone(&node), nodes)));
        }
        let Some(open) = self.open.last_mut() else {
            self.document = Some(node);
            return Ok(());
        };
        open.nodes = open.nodes.saturating_add(nodes);
        if open.nodes > MAX_NODES {
            let message = format!(
                "with all its aliases the file has more than {MAX_NODES} values; write less"
            );
            return Err(Problem { place: node.place.clone(), message });
        }
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map(map) => map.node(node, self.problems),
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, is_plain: bool, tag: Option<&Tag>, place: &Place) -> Scalar {
        let Some(tag) = tag else {
            return if is_plain { scalar::plain(text) } else { Scalar::Text(text.into()) };
        };
        let resolved = scalar::plain(text);
        let value = match (tag.core_suffix(), &resolved) {
            (Some("str"), _) => Some(Scalar::Text(text.into())),
            (Some("null"), _) => Some(Scalar::Null),
            (Some("int"), Scalar::Int(_)) | (Some("bool"), Scalar::Bool(_)) => Some(resolved),
            (Some("float"), Scalar::Float(_)) => Some(resolved),
            (Some("float"), Scalar::Int(number)) => Some(Scalar::Float(*number as f64)),
            // `!` alone.
            (None, _) if tag.original() == "!" => Some(Scalar::Text(text.into())),
            _ => None,
        };
        value.unwrap_or_else(|| {
            let message = format!("{text:?} cannot have the tag `{}`; remove it", tag.original());
            self.problems.add(place, message);
            Scalar::Null
        })
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, own: &str, place: &Place) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix() != Some(own)) {
            let message =
                format!("a list or map cannot have the tag `{}`; remove it", tag.original());
            self.problems.add(place, message);
        }
    }
}

impl Map {
    /// Takes the next key, or the value of the last one.
    fn node(&mut self, node: Arc<Node>, problems: &mut Problems) {
        match std::mem::replace(&mut self.key, NextKey::Awaited) {
            NextKey::Awaited => self.key = self.next_key(&node, problems),
            NextKey::Scalar(place, key) => self.entries.push(Entry { place, key, value: node }),
            NextKey::Merge(place) => {
                if std::mem::replace(&mut self.has_merge, true) {
                    let message = "`<<` stands here twice; give it a list of aliases";
                    problems.add(&place, message);
                }
                match merge(&node) {
                    Some(entries) => self.merged = entries,
                    None => {
                        let message = "`<<` takes the entries of a map: give it an alias of a \
                            map, such as `<<: *common`, or a list of them";
                        problems.add(&node.place, message);
                    }
                }
            }
            NextKey::Wrong => {}
        }
    }

    fn next_key(&mut self, node: &Node, problems: &mut Problems) -> NextKey {
        let Value::Scalar(key) = &node.value else {
            problems.add(&node.place, format!("{node} cannot be a key; give a word or a number"));
            return NextKey::Wrong;
        };
        let here = (node.place.line, node.place.column);
        if let Some((line, column)) = self.seen.get(&key.key()) {
            let first = format!("the first is at line {line}, column {column}");
            problems.add(&node.place, format!("`{key}` stands here twice; {first}"));
            return NextKey::Wrong;
        }
        self.seen.insert(key.key(), here);
        NextKey::Scalar(node.place.clone(), key.clone())
    }
}

/// The entries of a map, or of a list of maps, of which the earlier ones win.
fn merge(node: &Node) -> Option<Vec<Entry>> {
    match &node.value {
        Value::Map(entries) => Some(entries.clone()),
        Value::List(items) => {
            let mut all = Vec::new();
            for item in items {
                all = with(all, item.map()?.to_vec());
            }
            Some(all)
        }
        Value::Scalar(_) => None,
    }
}

/// Entries with those of `others` that they lack.
fn with(mut entries: Vec<Entry>, mut others: Vec<Entry>) -> Vec<Entry> {
    if !others.is_empty() {
        let own: BTreeSet<Key> = entries.iter().map(|entry| entry.key.key()).collect();
        others.retain(|other| !own.contains(&other.key.key()));
        entries.append(&mut others);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, Problems> {
        let mut problems = Problems::default();
        compose(text, &Arc::from(Path::new("f")), &mut problems).ok_or(problems)
    }

    fn problem(text: &str) -> String {
        read(text).map_or_else(|problems| problems.to_string(), |_| "it is right".to_owned())
    }

    #[test]
    fn every_node_knows_its_place() {
        let root = read("a: 1\nb:\n  - x\n  - {c: 1.0}\n").unwrap();
        let b = root.get("b").unwrap();
        assert_eq!((b.place.line, b.place.column), (2, 1));
        let inner = &b.value.list().unwrap()[1].map().unwrap()[0];
        assert_eq!((inner.value.place.line, inner.value.place.column), (4, 9));
        assert_eq!(inner.value.scalar(), Some(&Scalar::Float(1.0)));
    }

    #[test]
    fn quotes_make_text_and_tags_are_followed() {
        let root = read("['1', \"true\", !!str 5, !!int '5', ! 7, |\n 1\n]").unwrap_or_else(|_| {
            read("- '1'\n- \"true\"\n- !!str 5\n- !!int '5'\n- ! 7\n- |\n  1\n").unwrap()
        });
        let scalars: Vec<_> =
            root.list().unwrap().iter().map(|node| node.scalar().unwrap().clone()).collect();
        let text = |text: &str| Scalar::Text(text.into());
        let expected = [text("1"), text("true"), text("5"), Scalar::Int(5), text("7"), text("1\n")];
        assert_eq!(scalars, expected);
        assert!(problem("a: !!python/object:x 1").contains("remove it"));
        assert!(problem("a: !!int x").contains("remove it"));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_with_both_places() {
        let message = problem("a: 1\nb: {1: x, 0x1: y}\na: 2\n");
        assert!(
            message.contains("f:2:11: `1` stands here twice; the first is at line 2, column 5")
        );
        assert!(message.contains("f:3:1: `a` stands here twice; the first is at line 1, column 1"));
    }

    #[test]
    fn a_key_that_has_parts_is_refused() {
        assert!(problem("? a: 1\n").contains("a map cannot be a key"));
        assert!(problem("? [a]\n: 1\n").contains("a list cannot be a key"));
    }

    #[test]
    fn merge_keys_give_what_the_map_lacks() {
        let text =
            "x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 5}\nw:\n  <<: *x\n";
        let root = read(text).unwrap();
        let entries = |key: &str| -> Vec<String> {
            let entries = root.get(key).unwrap().value.map().unwrap();
            entries.iter().map(|it| format!("{}={}", it.key, it.value)).collect()
        };
        assert_eq!(entries("z"), ["a=5", "b=2", "c=4"]);
        assert_eq!(entries("w"), ["a=1", "b=2"]);
        assert!(problem("a: {<<: 1}").contains("give it an alias of a map"));
        assert!(read("a: {'<<': 1}").is_ok(), "in quotes it is a key like any other");
    }

    #[test]
    fn aliases_that_multiply_or_contain_themselves_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let inside = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{inside}]\n"));
        }
        assert!(problem(&text).contains("more than 4000000 values"));
        assert!(problem("a: &a [*a]").contains("contains itself"));
        assert!(problem("a: *b").contains("f:1:4: "));
    }

    #[test]
    fn a_file_has_one_document_of_yaml_1_2() {
        assert!(problem("a: 1\n---\nb: 2\n").contains("a second document begins here"));
        assert!(problem("%YAML 1.1\n---\na: yes\n").contains("remove this line"));
        assert!(read("%YAML 1.2\n---\na: yes\n").is_ok());
        assert!(read("").unwrap().is_null());
        assert!(read("# only a comment\n").unwrap().is_null());
    }

    #[test]
    fn nesting_is_bounded_and_many_comments_are_not() {
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&format!("a:\n{}  b: 1\n", "# c\n".repeat(1000))).is_ok());
    }
}
