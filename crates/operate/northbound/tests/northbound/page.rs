//! The web page: its files, and what they do not do.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::client::{Lab, Reply};

/// The files of the page with their text.
fn files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn path_of(name: &str) -> String {
    if name == "index.html" { "/".to_owned() } else { format!("/page/{name}") }
}

fn header<'r>(reply: &'r Reply, name: &str) -> &'r str {
    let line = reply.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name}: {reply:?}"))
}

#[test]
fn each_file_is_served_as_it_is_and_with_its_policy() {
    let lab = Lab::new();
    for (name, text) in files() {
        let reply = lab.get(&path_of(&name));
        assert_eq!((reply.status, &reply.body), (200, &text), "{name}");
        let media_type = match name.rsplit_once('.').unwrap().1 {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{other}"),
        };
        assert_eq!(header(&reply, "content-type"), media_type);
        let policy = header(&reply, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(header(&reply, "x-content-type-options"), "nosniff");
        assert_eq!(header(&reply, "referrer-policy"), "no-referrer");
        let known = [("if-none-match", header(&reply, "etag"))];
        let again = lab.send("GET", &path_of(&name), &known, "");
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{name}");
    }
}

#[test]
fn unknown_files_of_the_page_are_not_served() {
    let lab = Lab::new();
    lab.get("/page/nothing.js").problem(404, "not_found");
    lab.get("/page/../tokens").problem(404, "not_found");
    lab.send("POST", "/", &[], "").problem(405, "wrong_method");
}

#[test]
fn the_page_asks_nobody_else_and_makes_no_markup_of_text() {
    let served: BTreeSet<String> = files().into_iter().map(|(name, _)| name).collect();
    for (name, text) in files() {
        for foreign in ["http://", "https://", "//cdn", "url("] {
            let own = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!own.contains(foreign), "{name}: {foreign}");
        }
        for markup in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ] {
            assert!(!text.contains(markup), "{name}: {markup}");
        }
        for import in text.split(" from \"./").skip(1) {
            let file = import.split('"').next().unwrap();
            assert!(served.contains(file), "{name}: {file}");
        }
        if name == "index.html" {
            assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" on"));
            assert_eq!(
                text.matches("<script").count(),
                text.matches("<script type=\"module\" src=\"/page/").count()
            );
        }
    }
}
