//! Reads the flow statistics of this folder. Tests of several crates include this file.

use bellrock_api::Version;

/// Flow statistics entries that strict reading rejects, one by one.
pub(crate) fn odd_flows(version: Version) -> Vec<Vec<u8>> {
    let (folder, head) = match version {
        Version::V1_0 => ("v10", 12),
        Version::V1_3 => ("v13", 16),
    };
    // Crates are at several depths.
    let mut above = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let odd = above.find_map(|one| Some(one.join("vectors/odd")).filter(|path| path.is_dir()));
    let files =
        std::fs::read_dir(odd.unwrap().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_flows = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.contains("_reply_flow_") && name.ends_with(".hex")
    };
    let mut entries = Vec::new();
    for path in files.filter(is_flows) {
        let text = std::fs::read_to_string(path).unwrap();
        let digits = text.lines().filter_map(|line| line.split('#').next());
        let bytes = digits.flat_map(str::split_whitespace);
        let bytes = bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap());
        let flows: Vec<u8> = bytes.skip(head).collect();
        let mut rest = flows.as_slice();
        while let Some(length) = rest.first_chunk() {
            let (entry, behind) = rest.split_at(u16::from_be_bytes(*length).into());
            entries.push(entry.to_vec());
            rest = behind;
        }
    }
    assert!(entries.len() >= 3, "{} entries", entries.len());
    entries
}
