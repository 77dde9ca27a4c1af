//! Errors of serde in words that need no knowledge of Rust: the field, what it is, and what would
//! be right.

use std::fmt::Display;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use serde_json::error::Category;

use crate::problem::Problem;

/// The problem of a body.
pub(crate) fn wrong_body(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let inner = error.inner();
    let place = format!("at line {}, column {}", inner.line(), inner.column());
    let text = inner.to_string();
    let why = text.rsplit_once(" at line ").map_or(&*text, |(why, _)| why);
    match inner.classify() {
        // Where the text is no JSON, serde knows no field.
        Category::Eof => Problem::invalid(format!("the body ends early, {place}")),
        Category::Syntax | Category::Io => {
            Problem::invalid(format!("the body is not JSON: {why} {place}"))
        }
        Category::Data => wrong_field("the body is wrong", why, error.path()),
    }
}

/// A body without content.
pub(crate) fn no_body() -> Problem {
    Problem::invalid("the body is empty; send a JSON object, whose fields /v1/openapi.json lists")
}

/// The problem of the parameters behind the `?` of a path.
pub(crate) fn wrong_params<E: Display>(error: &serde_path_to_error::Error<E>) -> Problem {
    wrong_field("the parameters are wrong", &error.inner().to_string(), error.path())
}

/// The problem of a part of a path.
pub(crate) fn wrong_path(error: PathRejection) -> Problem {
    let why = match error {
        PathRejection::FailedToDeserializePathParams(error) => match error.into_kind() {
            ErrorKind::ParseError { value, .. }
            | ErrorKind::ParseErrorAtKey { value, .. }
            | ErrorKind::ParseErrorAtIndex { value, .. } => {
                format!("{value:?} is here; give a whole number")
            }
            other => other.to_string(),
        },
        other => other.body_text(),
    };
    Problem::invalid(format!("the path is wrong: {why}"))
}

fn wrong_field(what: &str, why: &str, path: &serde_path_to_error::Path) -> Problem {
    let path = path.to_string();
    let path = Some(path.trim_end_matches('?').trim_end_matches('.')).filter(|it| !it.is_empty());
    // Serde names what is missing, and has the path of where it is missing.
    let missing = why.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let field = match (path, missing) {
        (Some(path), Some(missing)) => Some(format!("{path}.{missing}")),
        (None, Some(missing)) => Some(missing.to_owned()),
        (path, None) => path.map(str::to_owned),
    };
    let problem = Problem::invalid(format!("{what}: {}", in_plain_words(why)));
    match field {
        Some(field) => problem.at(&field),
        None => problem,
    }
}

/// What serde reports, in plain words.
fn in_plain_words(why: &str) -> String {
    let types = ["invalid type: ", "invalid value: "];
    if let Some(rest) = types.iter().find_map(|start| why.strip_prefix(start))
        && let Some((found, expected)) = rest.rsplit_once(", expected ")
    {
        return format!("{} is here; give {}", found_value(found), expected_value(expected));
    }
    match why {
        // Numbers and booleans of parameters.
        "invalid digit found in string"
        | "cannot parse integer from empty string"
        | "number too large to fit in target type"
        | "number too small to fit in target type" => "give a whole number".to_owned(),
        "provided string was not `true` or `false`" => "give true or false".to_owned(),
        _ => why.replace(", there are no fields", "; leave it out").replace(", expected", "; give"),
    }
}

/// A value that serde describes, as JSON.
fn found_value(found: &str) -> String {
    let is_quoted = |rest: &str| Some(rest.strip_prefix('`')?.strip_suffix('`')?.to_owned());
    if let Some(text) = found.strip_prefix("string ") {
        return text.to_owned();
    }
    let numbers = ["integer ", "floating point ", "boolean ", "number "];
    if let Some(value) = numbers.iter().find_map(|kind| is_quoted(found.strip_prefix(kind)?)) {
        return value;
    }
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        other => other.to_owned(),
    }
}

/// A type that serde expects.
fn expected_value(expected: &str) -> String {
    let numbers = [
        ("u8", u64::from(u8::MAX)),
        ("u16", u64::from(u16::MAX)),
        ("u32", u64::from(u32::MAX)),
        ("u64", u64::MAX),
        ("usize", u64::MAX),
    ];
    if let Some((_, maximum)) = numbers.iter().find(|(name, _)| *name == expected) {
        return format!("a whole number from 0 to {maximum}");
    }
    match expected {
        "a string" => "text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        structure if structure.starts_with("struct ") => "an object with named fields".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bellrock_query::{ByName, SetStatic};

    use super::*;

    #[test]
    fn no_word_of_rust_or_serde_reaches_who_sent_a_wrong_body() {
        for (body, field, detail) in [
            (r#"{"replace": 1}"#, Some("replace"), "1 is here; give true or false"),
            (r#"{"owner": 1.5}"#, Some("owner"), "1.5 is here; give text"),
            (r#"{"remove": {}}"#, Some("remove"), "an object is here; give a list"),
            (r#"{"remove": "web"}"#, Some("remove"), r#""web" is here; give a list"#),
            (r#"{"rows": []}"#, Some("rows"), "unknown field `rows`; give one of `owner`"),
            (
                r#"{"entries": [{"name": "w", "switch": "s", "flow": {"priority": "x"}}]}"#,
                Some("entries[0].flow.priority"),
                r#""x" is here; give a whole number from 0 to 65535"#,
            ),
            (
                r#"{"entries": [{"name": "w", "switch": "s", "flow": {"priority": 70000}}]}"#,
                Some("entries[0].flow.priority"),
                "70000 is here; give a whole number from 0 to 65535",
            ),
            (r#"{"entries": [{"name": "w"}]}"#, Some("entries[0].switch"), "missing field"),
            (r#"[]"#, None, "a list is here; give an object with named fields"),
            (r#"{"remove": [],}"#, None, "the body is not JSON: "),
            (r#"{"entries": [{"name": "w", "flow": {"a"#, None, "the body ends early, at line 1"),
        ] {
            let mut reader = serde_json::Deserializer::from_slice(body.as_bytes());
            let read = serde_path_to_error::deserialize::<_, ByName<SetStatic>>(&mut reader);
            let problem = wrong_body(&read.unwrap_err());
            let problem = serde_json::to_value(&problem).unwrap();
            assert_eq!(problem["field"].as_str(), field, "{body}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{body}: {problem}");
        }
    }
}
