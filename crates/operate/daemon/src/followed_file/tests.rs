//! Block lists that are followed.

use std::fs::File;
use std::io::Write;

use bellrock_apps::quarantine::{BlockLists, MAX_BLOCKED};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{what}: it does not happen");
        thread::sleep(Duration::from_millis(2));
    }
}

fn blocked(lists: &BlockLists) -> Vec<String> {
    lists.entries().iter().map(|entry| entry.blocked.to_string()).collect()
}

#[test]
fn a_list_is_followed_however_it_is_replaced_and_a_wrong_one_changes_nothing() {
    let place = crate::test_directory("block-list");
    let (path, lists) = (place.join("blocked"), BlockLists::default());
    let missing = FollowedFile::open(&path, lists.clone()).err().unwrap().to_string();
    assert!(missing.contains("No such file") && missing.contains("empty file"), "{missing}");

    fs::write(&path, "10.0.0.1\n").unwrap();
    drop(FollowedFile::open(&path, lists.clone()).unwrap());
    assert!(blocked(&lists).is_empty(), "a list that is only read is not in force");
    let watch = FollowedFile::open(&path, lists.clone()).unwrap().follow();
    assert_eq!(blocked(&lists), ["10.0.0.1"]);
    fs::write(&path, "10.0.0.2\n").unwrap();
    until("the list that was written", || blocked(&lists) == ["10.0.0.2"]);
    fs::write(place.join("new"), "10.0.0.3\n").unwrap();
    fs::rename(place.join("new"), &path).unwrap();
    until("the list that was moved there", || blocked(&lists) == ["10.0.0.3"]);

    fs::write(&path, "10.0.0.4\nnobody\n").unwrap();
    until("the problem", || lists.file_problem().is_some());
    let problem = lists.file_problem().unwrap();
    assert!(problem.starts_with(&format!("{}:2: \"nobody\" is no", path.display())), "{problem}");
    assert_eq!(blocked(&lists), ["10.0.0.3"], "the list of before");
    fs::write(&path, "").unwrap();
    until("the empty list", || blocked(&lists).is_empty());
    assert_eq!(lists.file_problem(), None);
    drop(watch);
    fs::remove_dir_all(place).unwrap();
}

/// `slow-script > blocked`: the file is empty for several checks, and then half written.
#[test]
fn a_list_that_is_being_written_is_not_read_before_it_is_closed() {
    let place = crate::test_directory("block-list-slow");
    let (path, lists) = (place.join("blocked"), BlockLists::default());
    fs::write(&path, "10.0.0.1\n").unwrap();
    let _watch = FollowedFile::open(&path, lists.clone()).unwrap().follow();
    let mut slow = File::create(&path).unwrap();
    for part in ["10.0.0.2\n", "10.0.0.3\n"] {
        thread::sleep(AT_REST + Duration::from_millis(1500));
        assert_eq!(blocked(&lists), ["10.0.0.1"], "before {part:?}");
        slow.write_all(part.as_bytes()).unwrap();
    }
    drop(slow);
    until("the list that was closed", || blocked(&lists) == ["10.0.0.2", "10.0.0.3"]);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_list_that_does_not_fit_beside_ordered_hosts_is_refused() {
    let place = crate::test_directory("block-list-full");
    let (path, lists) = (place.join("blocked"), BlockLists::default());
    let host = |n: usize| format!("10.{}.{}.{}\n", n >> 16, n >> 8 & 255, n & 255);
    fs::write(&path, (0..MAX_BLOCKED).map(host).collect::<String>()).unwrap();
    assert!(FollowedFile::open(&path, lists.clone()).is_ok(), "alone it fits");
    lists.add("192.0.2.1".parse().unwrap()).unwrap();
    let refused = FollowedFile::open(&path, lists).err().unwrap().to_string();
    assert!(refused.contains("more would not fit"), "{refused}");
    fs::remove_dir_all(place).unwrap();
}

/// Opening it would take until somebody writes.
#[test]
fn a_pipe_is_refused_at_once() {
    let place = crate::test_directory("block-list-pipe");
    let path = place.join("blocked");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    let refused = FollowedFile::open(&path, BlockLists::default()).err().unwrap().to_string();
    assert!(refused.contains("no regular file"), "{refused}");
    fs::remove_dir_all(place).unwrap();
}

/// `truncate` changes a file, and no close is reported.
#[test]
fn a_list_that_nobody_closes_is_read_when_it_has_rested() {
    let place = crate::test_directory("block-list-open");
    let (path, lists) = (place.join("blocked"), BlockLists::default());
    fs::write(&path, "10.0.0.1\n").unwrap();
    let mut watched = Watched::new(&path, lists.clone()).unwrap();
    fs::write(&path, "10.0.0.1\n10.0.0.2\n").unwrap();
    watched.take_notices();
    watched.being_written = true;
    let now = Instant::now();
    for (rested, expected) in [(AT_REST * 2, 0), (LEFT_OPEN, 2)] {
        // A machine that was started just now has no earlier time.
        let Some(since) = now.checked_sub(rested) else { continue };
        watched.seen = (identity(&path), since);
        watched.reload(false);
        assert_eq!(blocked(&lists).len(), expected, "after {rested:?}");
    }
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn an_empty_file_is_not_believed_where_nobody_tells_whether_it_is_written() {
    let place = crate::test_directory("block-list-empty");
    let (elsewhere, path) = (place.join("elsewhere"), place.join("blocked"));
    fs::create_dir(&elsewhere).unwrap();
    let target = elsewhere.join("list");
    fs::write(&target, "10.0.0.1\n").unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let lists = BlockLists::default();
    let _watch = FollowedFile::open(&path, lists.clone()).unwrap().follow();
    fs::write(&target, "").unwrap();
    until("the problem", || lists.file_problem().is_some());
    assert!(lists.file_problem().unwrap().contains("such as `# nobody`"));
    assert_eq!(blocked(&lists), ["10.0.0.1"], "the list of before");
    fs::write(&target, "# nobody\n").unwrap();
    until("the list of nobody", || blocked(&lists).is_empty());
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_link_to_elsewhere_is_followed_too() {
    let place = crate::test_directory("block-list-link");
    let (elsewhere, path) = (place.join("elsewhere"), place.join("blocked"));
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("list"), "10.0.0.1\n").unwrap();
    std::os::unix::fs::symlink(elsewhere.join("list"), &path).unwrap();
    let lists = BlockLists::default();
    let _watch = FollowedFile::open(&path, lists.clone()).unwrap().follow();
    fs::write(elsewhere.join("list"), "10.0.0.22\n").unwrap();
    until("the list behind the link", || blocked(&lists) == ["10.0.0.22"]);
    fs::remove_dir_all(place).unwrap();
}
