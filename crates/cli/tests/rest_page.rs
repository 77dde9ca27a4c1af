//! The manual's page of paths and types, `reference/rest-paths.md`, is made from the OpenAPI
//! document. With `BLESS=1` the test writes the page, otherwise it compares.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

const HEAD: &str = "\
# REST: paths and types

This page is made from the OpenAPI document, which a controller serves at `/v1/openapi.json`. [REST](rest.md) says how to ask, and who may.
Types are those of JSON, or of [this page](#types). A `?` behind a type means that the value may be `null` or missing.
";

#[test]
fn the_manual_has_every_path_and_type() {
    let made = page(&bellrock::http::openapi());
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/reference/rest-paths.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let difference = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "the page differs from the document, first at {difference:?}; run with BLESS=1 to write it"
    );
}

fn page(document: &Value) -> String {
    let (mut page, mut types) = (HEAD.to_owned(), BTreeSet::new());
    let mut operations = 0;
    for tag in list(&document["tags"]) {
        writeln!(page, "\n## {}\n", text(tag, "description")).unwrap();
        for (path, methods) in map(&document["paths"]) {
            for (method, operation) in map(methods) {
                if operation["tags"][0] == tag["name"] {
                    add_operation(
                        &mut page,
                        &format!("{} {path}", method.to_uppercase()),
                        operation,
                    );
                    names_in(operation, &mut types);
                    operations += 1;
                }
            }
        }
    }
    let all = map(&document["paths"]).map(|(_, methods)| map(methods).count()).sum::<usize>();
    assert_eq!(operations, all, "every operation has a known tag");
    page.push_str("## Types\n");
    let schemas = &document["components"]["schemas"];
    loop {
        let mut more = types.clone();
        types.iter().for_each(|name| names_in(&schemas[name], &mut more));
        if more == types {
            break;
        }
        types = more;
    }
    types.iter().for_each(|name| add_type(&mut page, name, &schemas[name]));
    page
}

fn add_operation(page: &mut String, title: &str, operation: &Value) {
    writeln!(page, "### `{title}`\n\n{}.", text(operation, "summary").trim_end_matches('.'))
        .unwrap();
    if let Some(more) = operation["description"].as_str() {
        writeln!(page, "{}", one_line(more)).unwrap();
    }
    page.push('\n');
    let mut rows = Vec::new();
    for parameter in list(&operation["parameters"]) {
        let place = if parameter["in"] == "path" { "path" } else { "query" };
        let optional = if parameter["required"] == true { "" } else { "?" };
        let form = format!("{}{optional}", form_of(&parameter["schema"]));
        rows.push(format!(
            "| `{}` | {place} | {form} | {} |",
            text(parameter, "name"),
            one_line(text(parameter, "description"))
        ));
    }
    if let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") {
        rows.push(format!("| | body | {} | |", form_of(schema)));
    }
    if !rows.is_empty() {
        writeln!(page, "| Parameter | In | Type | |\n|---|---|---|---|\n{}\n", rows.join("\n"))
            .unwrap();
    }
    page.push_str("| Status | Answer | |\n|---|---|---|\n");
    for (status, answer) in map(&operation["responses"]) {
        let content = map(&answer["content"]).map(|(media, content)| match media.as_str() {
            "application/json" => form_of(&content["schema"]),
            "application/problem+json" => "[problem](rest.md#errors)".to_owned(),
            media => format!("`{media}`"),
        });
        let content: Vec<_> = content.collect();
        let about = one_line(text(answer, "description"));
        writeln!(page, "| {status} | {} | {about} |", content.join(", ")).unwrap();
    }
    page.push('\n');
}

fn add_type(page: &mut String, name: &str, schema: &Value) {
    let name = shown(name);
    writeln!(page, "\n### {name}\n\n{}\n", one_line(text(schema, "description"))).unwrap();
    let alternatives: Vec<&Value> = list(&schema["oneOf"]).chain(list(&schema["anyOf"])).collect();
    let parts: Vec<&Value> = list(&schema["allOf"]).collect();
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        writeln!(page, "One of {}.", values.join(", ")).unwrap();
    } else if !alternatives.is_empty() {
        page.push_str("One of:\n\n");
        for alternative in alternatives {
            let about = one_line(text(alternative, "description"));
            let about = if about.is_empty() { about } else { format!(": {about}") };
            writeln!(page, "- {}{about}", form_of(alternative)).unwrap();
        }
    } else if schema["properties"].is_object() || !parts.is_empty() {
        page.push_str("| Field | Type | |\n|---|---|---|\n");
        for part in parts.into_iter().chain([schema]) {
            if part["$ref"].is_string() {
                writeln!(page, "| | | all fields of {} |", form_of(part)).unwrap();
            }
            add_fields(page, part);
        }
    } else {
        writeln!(page, "{}.", form_of(schema)).unwrap();
    }
}

fn add_fields(page: &mut String, schema: &Value) {
    let required: BTreeSet<&str> =
        list(&schema["required"]).filter_map(|name| name.as_str()).collect();
    for (name, field) in map(&schema["properties"]) {
        let form = form_of(field);
        let optional =
            if required.contains(name.as_str()) || form.ends_with('?') { "" } else { "?" };
        let about = one_line(text(field, "description"));
        writeln!(page, "| `{name}` | {form}{optional} | {about} |").unwrap();
    }
}

/// A schema in a word or two; named ones with a link.
fn form_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        let name = shown(name);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    let alternatives: Vec<&Value> = list(&schema["oneOf"]).chain(list(&schema["anyOf"])).collect();
    if !alternatives.is_empty() {
        let is_null = |form: &&Value| form["type"] == "null";
        let optional = if alternatives.iter().any(is_null) { "?" } else { "" };
        let forms = alternatives.iter().filter(|form| !is_null(form)).map(|form| form_of(form));
        return format!("{}{optional}", forms.collect::<Vec<_>>().join(" or "));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    }
    if let Some(kinds) = schema["type"].as_array() {
        let known = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
        let optional = if kinds.iter().any(|kind| kind == "null") { "?" } else { "" };
        let forms = known.map(|kind| {
            let mut one = schema.clone();
            one["type"] = kind.into();
            form_of(&one)
        });
        return format!("{}{optional}", forms.collect::<Vec<_>>().join(" or "));
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", form_of(&schema["items"])),
        Some("object") if schema["properties"].is_object() => {
            let required: BTreeSet<&str> =
                list(&schema["required"]).filter_map(|name| name.as_str()).collect();
            let fields = map(&schema["properties"]).map(|(name, field)| {
                let form = form_of(field);
                let known = required.contains(name.as_str()) || form.ends_with('?');
                format!("`{name}`: {form}{}", if known { "" } else { "?" })
            });
            format!("object with {}", fields.collect::<Vec<_>>().join(", "))
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", form_of(&schema["additionalProperties"]))
        }
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}

/// Collects the names of all schemas that this value refers to.
fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| match value.as_str() {
            Some(path) if key == "$ref" => names.extend(path.rsplit('/').next().map(str::to_owned)),
            _ => names_in(value, names),
        }),
        Value::Array(values) => values.iter().for_each(|value| names_in(value, names)),
        _ => {}
    }
}

/// The name of a schema without the marks of its module or generic arguments.
fn shown(name: &str) -> String {
    name.replace(['.', '/'], "_")
}

/// A cell of a table has one line, and no bar of its own.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
