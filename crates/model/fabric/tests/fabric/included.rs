//! Files that include others.

use std::path::Path;

use bellrock_fabric::{Declared, Problems, read};

use super::Texts;

const ONE_SWITCH: &str = "dps: {s: {dp_id: 1, interfaces: {1: {native_vlan: office}}}}\n";

fn read_files(files: &[(&str, &str)]) -> Result<Declared, Problems> {
    read(Path::new("/etc/faucet.yaml"), &Texts(files))
}

#[test]
fn paths_begin_at_the_including_file_and_later_entries_win() {
    let declared = read_files(&[
        (
            "/etc/faucet.yaml",
            "include: [net/vlans.yaml]\nvlans: {office: {vid: 1}, guest: {vid: 2}}\n",
        ),
        ("/etc/net/vlans.yaml", "include: [../dps.yaml]\nvlans: {office: {vid: 100}}\n"),
        ("/etc/dps.yaml", ONE_SWITCH),
    ])
    .unwrap();
    let vlans = &declared.intent.vlans;
    assert_eq!((vlans[0].vid, &*vlans[0].name, vlans[1].vid), (100, "office", 2));
    assert_eq!(vlans[0].place.to_string(), "/etc/net/vlans.yaml:2:9");
    assert_eq!(declared.intent.switches[0].place.to_string(), "/etc/dps.yaml:1:7");
    let paths: Vec<_> = declared.files.iter().map(|file| file.path.display().to_string()).collect();
    assert_eq!(paths, ["/etc/faucet.yaml", "/etc/net/vlans.yaml", "/etc/dps.yaml"]);
}

#[test]
fn a_required_file_must_be_there_and_right() {
    let top = format!("include: [a.yaml]\nvlans: {{office: {{vid: 1}}}}\n{ONE_SWITCH}");
    let problems = read_files(&[("/etc/faucet.yaml", &top)]).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "/etc/faucet.yaml:1:11: /etc/a.yaml cannot be read: there is no such file"
    );
    for (text, shown) in [
        ("", "/etc/a.yaml:1:1: the file is empty"),
        ("vlan: {}", "/etc/a.yaml:1:1: `vlan` is no key of the file; did you mean `vlans`?"),
        ("vlans: [", "/etc/a.yaml:"),
    ] {
        let problems =
            read_files(&[("/etc/faucet.yaml", &top), ("/etc/a.yaml", text)]).unwrap_err();
        assert!(problems.to_string().contains(shown), "{problems}");
    }
}

#[test]
fn an_optional_file_may_be_absent_and_is_skipped_if_wrong() {
    let top = format!("include-optional: [a.yaml]\nvlans: {{office: {{vid: 1}}}}\n{ONE_SWITCH}");
    let declared = read_files(&[("/etc/faucet.yaml", &top)]).unwrap();
    assert!(declared.warnings.is_empty());
    assert_eq!(declared.files[1].text, None);
    let declared = read_files(&[("/etc/faucet.yaml", &top), ("/etc/a.yaml", "vlan: {}")]).unwrap();
    let shown: Vec<String> = declared.warnings.iter().map(ToString::to_string).collect();
    assert!(shown[0].ends_with("did you mean `vlans`?; the file is skipped"), "{shown:?}");
    assert!(shown[1].contains("`a.yaml` has problems and is skipped"), "{shown:?}");
}

#[test]
fn files_that_include_themselves_are_refused() {
    for files in [
        &[("/etc/faucet.yaml", "include: [faucet.yaml]\n")][..],
        &[("/etc/faucet.yaml", "include: [a]\n"), ("/etc/a", "include: [./x/../faucet.yaml]\n")][..],
    ] {
        let problems = read_files(files).unwrap_err();
        assert!(problems.to_string().contains("is read already"), "{problems}");
    }
}

#[test]
fn a_file_may_be_included_twice() {
    let declared = read_files(&[
        ("/etc/faucet.yaml", "include: [a, b]\nvlans: {office: {vid: 1}}\n"),
        ("/etc/a", ONE_SWITCH),
        ("/etc/b", "vlans: {x: {vid: 2}}\n"),
    ]);
    assert!(declared.is_ok());
    let twice = read_files(&[
        ("/etc/faucet.yaml", "include: [a, a]\nvlans: {office: {vid: 1}}\n"),
        ("/etc/a", ONE_SWITCH),
    ]);
    assert!(twice.is_ok());
}

#[test]
fn own_keys_fit_into_an_optional_file_that_faucet_skips() {
    let top = format!("include-optional: [own.yaml]\nvlans: {{office: {{vid: 1}}}}\n{ONE_SWITCH}");
    let files = [("/etc/faucet.yaml", &*top), ("/etc/own.yaml", "bellrock: {}\n")];
    assert!(read_files(&files).unwrap().warnings.is_empty());
}

#[test]
fn includes_must_be_paths() {
    let problems =
        read_files(&[("/etc/faucet.yaml", "include: [[5], {'5': 5}, 5.5]\n")]).unwrap_err();
    let shown = problems.to_string();
    assert!(
        shown.contains(":1:11: a list is no file") && shown.contains(":1:16: a map is no file")
    );
}
