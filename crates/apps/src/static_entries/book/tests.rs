//! Orders to the book of static entries: what they change, what they are refused for, and ends.

use bellrock_api::openflow::{Action, GroupType};
use bellrock_api::{BucketEntry, Flow, GroupEntry, Match, MeterEntry, Port};

use super::*;

fn flow(name: &str, dpid: u64, port: u32) -> StaticEntry {
    let flow = Flow::new(Match::any().in_port(Port(port))).output(Port(9));
    StaticEntry {
        name: name.to_owned(),
        owner: "alice".to_owned(),
        dpid: Dpid(dpid),
        wanted: flow.into(),
        end: None,
        number: 0,
    }
}

fn set(book: &mut Book, entries: &[StaticEntry]) -> Result<StaticChange, String> {
    let owner = entries[0].owner.clone();
    let order = StaticOrder { owner, set: entries.to_vec(), ..StaticOrder::default() };
    book.change(order, Duration::ZERO).map_err(|error| error.to_string())
}

fn remove(book: &mut Book, owner: &str, names: &[&str]) -> Result<StaticChange, String> {
    let remove = names.iter().map(|name| (*name).to_owned()).collect();
    let order = StaticOrder { owner: owner.to_owned(), remove, ..StaticOrder::default() };
    book.change(order, Duration::ZERO).map_err(|error| error.to_string())
}

fn names(book: &Book) -> Vec<(&str, u32)> {
    book.entries().map(|entry| (&*entry.name, entry.number)).collect()
}

#[test]
fn a_name_keeps_its_number() {
    let mut book = Book::default();
    let change = set(&mut book, &[flow("a", 1, 1), flow("b", 1, 2)]).unwrap();
    assert_eq!((change.set, change.numbers.len()), (2, 2));
    // One is as before, one moves, and one is new.
    let change = set(&mut book, &[flow("c", 1, 3), flow("b", 2, 2), flow("a", 1, 1)]).unwrap();
    assert_eq!((change.set, change.unchanged), (2, 1));
    assert_eq!(names(&book), [("a", 1), ("b", 2), ("c", 3)]);
    // Two exchange their places.
    assert_eq!(set(&mut book, &[flow("a", 1, 3), flow("c", 1, 1)]).unwrap().set, 2);
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![flow("d", 1, 1)],
        remove: vec!["c".to_owned()],
        replace: true,
    };
    let change = book.change(order, Duration::ZERO).unwrap();
    assert_eq!((change.set, change.removed, change.numbers.len()), (1, 3, 4));
    assert_eq!(names(&book), [("d", 4)]);
}

#[test]
fn a_change_is_taken_back_except_for_what_came_later() {
    let mut book = Book::default();
    set(&mut book, &[flow("kept", 1, 1), flow("moved", 1, 2), flow("removed", 1, 3)]).unwrap();
    let before: Vec<_> = book.entries().cloned().collect();
    let order = || StaticOrder {
        owner: "alice".to_owned(),
        // "new" takes the place of "removed".
        set: vec![flow("kept", 1, 1), flow("moved", 2, 2), flow("new", 1, 3)],
        remove: vec!["removed".to_owned()],
        replace: false,
    };
    let change = book.change(order(), Duration::ZERO).unwrap();
    let numbers = book.undo(&change);
    assert_eq!(book.entries().cloned().collect::<Vec<_>>(), before);
    assert_eq!(numbers, BTreeSet::from([1, 2, 3, 4]));

    let change = book.change(order(), Duration::ZERO).unwrap();
    set(&mut book, &[flow("moved", 7, 2)]).unwrap();
    book.undo(&change);
    let places: Vec<_> = book.entries().map(|entry| (&*entry.name, entry.dpid.0)).collect();
    assert_eq!(places, [("kept", 1), ("moved", 7), ("removed", 1)]);
    // The book is as whole as before.
    assert_eq!(book.places.len(), 3);
    assert_eq!(book.numbers.len(), 3);
    assert_eq!(book.revisions.len(), 3);
}

#[test]
fn a_wrong_order_changes_nothing_and_says_why() {
    let mut book = Book::default();
    book.reserve_meters(100);
    set(&mut book, &[flow("a", 1, 1)]).unwrap();
    let meter =
        |id| StaticEntry { wanted: MeterEntry::drop_above_kbps(id, 5).into(), ..flow("m", 1, 1) };
    let high =
        StaticEntry { wanted: Flow::new(Match::any()).priority(4096).into(), ..flow("h", 1, 1) };
    let of_bob = |name| StaticEntry { owner: "bob".to_owned(), ..flow(name, 1, 1) };
    for (entries, part) in [
        (vec![flow("b", 1, 2), flow("", 1, 3)], "is not a name"),
        (vec![flow("a/b", 1, 3)], "is not a name"),
        (vec![flow("b", 1, 2), flow("b", 1, 3)], "b is there twice"),
        (vec![flow("b", 1, 2), flow("c", 1, 2)], "b is the same flow"),
        (vec![flow("b", 1, 1)], "a is the same flow"),
        (vec![of_bob("a")], "belongs to alice"),
        (vec![meter(100)], "give 101 to"),
        (vec![high], "give 0 to 4095"),
    ] {
        let error = set(&mut book, &entries).unwrap_err();
        assert!(error.contains(part), "{error}");
        assert_eq!(names(&book), [("a", 1)], "{error}");
    }
    assert!(remove(&mut book, "alice", &["x"]).unwrap_err().contains("there is no entry x"));
    assert!(remove(&mut book, "bob", &["a"]).unwrap_err().contains("belongs to alice"));
    assert_eq!(remove(&mut book, "alice", &["a"]).unwrap().removed, 1);
    assert!(set(&mut book, &[meter(101)]).is_ok());
}

#[test]
fn entries_are_bounded() {
    let mut book = Book::default();
    let all: Vec<_> =
        (0..=MAX_STATIC_ENTRIES as u32).map(|n| flow(&format!("f{n}"), 1, n)).collect();
    assert!(set(&mut book, &all).unwrap_err().contains("100000 entries is the maximum"));
    set(&mut book, &all[1..]).unwrap();
    assert!(set(&mut book, &all[..1]).is_err());
    assert!(set(&mut book, &all[1..2]).is_ok(), "an entry can be replaced");
}

#[test]
fn an_ended_entry_does_not_block_a_new_one() {
    let mut book = Book::default();
    let until = |end| Some(Duration::from_secs(end));
    let short = StaticEntry { end: until(5), ..flow("a", 1, 1) };
    let long = StaticEntry { end: until(7), ..flow("b", 1, 2) };
    set(&mut book, &[short.clone(), long]).unwrap();
    assert_eq!(book.next_end(), until(5));
    assert_eq!(book.expire(Duration::from_secs(4)), []);
    // The end of an entry moves.
    set(&mut book, &[StaticEntry { end: until(6), ..short }]).unwrap();
    assert_eq!(book.next_end(), until(6));
    let order = StaticOrder {
        owner: "bob".to_owned(),
        set: vec![StaticEntry { owner: "bob".to_owned(), ..flow("c", 1, 1) }],
        ..StaticOrder::default()
    };
    let change = book.change(order, Duration::from_secs(6)).unwrap();
    assert_eq!(change.numbers, BTreeSet::from([1, 3]), "the switch loses the old one");
    assert_eq!(names(&book), [("b", 2), ("c", 3)]);
}

fn group(name: &str, id: u32, next: Option<u32>) -> StaticEntry {
    let actions = next.map_or_else(Vec::new, |next| vec![Action::Group(next)]);
    let group = GroupEntry::new(id, GroupType::All).bucket(BucketEntry::of(&actions));
    StaticEntry { wanted: group.into(), ..flow(name, 1, 0) }
}

fn meter(name: &str, id: u32) -> StaticEntry {
    StaticEntry { wanted: MeterEntry::drop_above_kbps(id, 5).into(), ..flow(name, 1, 0) }
}

fn user(name: &str, text: &str) -> StaticEntry {
    let flow_of = Flow::new(Match::any().in_port(Port(5))).instructions(text).unwrap();
    StaticEntry { wanted: flow_of.into(), ..flow(name, 1, 0) }
}

#[test]
fn a_group_or_meter_that_an_entry_uses_stays() {
    let mut book = Book::default();
    let web = user("web", "meter:5,write_actions(group:7)");
    let all = [group("servers", 7, Some(8)), group("backup", 8, None), meter("limit", 5), web];
    set(&mut book, &all).unwrap();
    let before: Vec<_> = book.entries().cloned().collect();
    for (name, part) in [
        ("servers", "its group 7 is used by the entry web of alice"),
        ("backup", "its group 8 is used by the entry servers"),
        ("limit", "its meter 5 is used by the entry web"),
    ] {
        let error = remove(&mut book, "alice", &[name]).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    // An entry that would become another group or meter, or move to another switch.
    for changed in [
        group("servers", 9, None),
        flow("servers", 1, 1),
        StaticEntry { dpid: Dpid(2), ..group("servers", 7, None) },
    ] {
        let order =
            StaticOrder { owner: "alice".to_owned(), set: vec![changed], ..StaticOrder::default() };
        let error = book.change(order, Duration::ZERO).unwrap_err();
        assert_eq!(error.entry, Some(0));
        assert!(matches!(error.why, NotSetReason::InUse { .. }), "{error}");
    }
    // A file that keeps the flow only.
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![user("web", "group:7")],
        replace: true,
        ..StaticOrder::default()
    };
    assert!(book.change(order, Duration::ZERO).unwrap_err().to_string().contains("entry web"));
    // An order that removes a group which it uses.
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![user("other", "group:8")],
        remove: vec!["web".to_owned(), "servers".to_owned(), "backup".to_owned()],
        ..StaticOrder::default()
    };
    assert!(book.change(order, Duration::ZERO).unwrap_err().to_string().contains("entry other"));
    assert_eq!(book.entries().cloned().collect::<Vec<_>>(), before, "nothing has changed");
    // Other buckets are no other group, and another entry may take the group over.
    set(&mut book, &[group("servers", 7, None)]).unwrap();
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![group("again", 7, None)],
        remove: vec!["servers".to_owned()],
        ..StaticOrder::default()
    };
    book.change(order, Duration::ZERO).unwrap();
    assert_eq!(remove(&mut book, "alice", &["web", "again", "limit"]).unwrap().removed, 3);
    assert_eq!(remove(&mut book, "alice", &["backup"]).unwrap().removed, 1);
    assert!(book.references.users(Dpid(1), Reference::Group(8)).next().is_none());
}

#[test]
fn a_removed_group_cannot_be_used() {
    let mut book = Book::default();
    let unresolved = |book: &Book, entry: StaticEntry| {
        let order = StaticOrder { set: vec![entry], ..StaticOrder::default() };
        let used: Vec<_> = book.unresolved(&order).iter().map(|it| it.used).collect();
        used
    };
    // The switch may have them.
    let web = || user("web", "meter:5,group:7");
    assert_eq!(unresolved(&book, web()), [Reference::Group(7), Reference::Meter(5)]);
    set(&mut book, &[web()]).unwrap();
    remove(&mut book, "alice", &["web"]).unwrap();
    set(&mut book, &[group("servers", 7, None)]).unwrap();
    assert_eq!(unresolved(&book, web()), [Reference::Meter(5)]);
    remove(&mut book, "alice", &["servers"]).unwrap();
    let error = set(&mut book, &[web()]).unwrap_err();
    assert!(error.contains("the switch has no group 7"), "{error}");
    set(&mut book, &[web(), group("servers", 7, None)]).unwrap();
    // On another switch it was never an entry.
    set(&mut book, &[StaticEntry { dpid: Dpid(2), ..user("far", "group:7") }]).unwrap();
}

#[test]
fn a_group_that_has_ended_stays_until_nothing_uses_it() {
    let mut book = Book::default();
    let until = |end, entry| StaticEntry { end: Some(Duration::from_secs(end)), ..entry };
    let at = Duration::from_secs;
    let all = [
        until(5, group("servers", 7, Some(8))),
        until(4, group("backup", 8, None)),
        until(9, user("web", "group:7")),
    ];
    set(&mut book, &all).unwrap();
    assert_eq!(book.expire(at(6)), []);
    assert_eq!(book.next_end(), Some(at(9)));
    assert_eq!(book.expire(at(9)).len(), 3);
    assert_eq!((names(&book), book.next_end()), (vec![], None));
    // It goes behind its last user.
    set(&mut book, &[until(5, group("servers", 7, None)), user("web", "group:7")]).unwrap();
    assert_eq!((book.expire(at(6)), book.next_end()), (vec![], None));
    let order = StaticOrder {
        owner: "alice".to_owned(),
        remove: vec!["web".to_owned()],
        ..StaticOrder::default()
    };
    assert_eq!(book.change(order, at(7)).unwrap().removed, 1);
    assert_eq!(book.next_end(), Some(Duration::ZERO), "at once");
    assert_eq!((book.expire(at(7)).len(), names(&book)), (1, vec![]));
    // Given a new end in time, it stays.
    set(&mut book, &[until(5, group("servers", 7, None)), user("web", "group:7")]).unwrap();
    book.expire(at(6));
    set(&mut book, &[until(20, group("servers", 7, None))]).unwrap();
    remove(&mut book, "alice", &["web"]).unwrap();
    assert_eq!((book.expire(at(8)), book.next_end()), (vec![], Some(at(20))));
}
