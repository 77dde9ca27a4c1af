//! The OpenAPI document, and a page to read it without a program of somebody else.

use std::fmt::Write as _;

use axum::http::{HeaderName, header};
use bellrock_query::{Form, MAX_PAGE_ROWS, Method, Param, ParamKind, Route, Schemas, TAGS};
use serde_json::{Map, Value, json};

/// Headers of the page: it loads its style, and runs nothing.
pub(crate) const PAGE_POLICY: [(HeaderName, &str); 2] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'self'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// Style of the page.
pub(crate) const PAGE_STYLE: &str = "\
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, dt { font-family: ui-monospace, monospace }
h2 { margin-top: 2.5rem }
h3 { margin: .5rem 0 }
section { border-top: 1px solid #8888; padding: .5rem 0 }
dd { margin: 0 0 .4rem 2rem }
";

/// What the whole interface is for.
const ABOUT: &str = "Asks a Bellrock OpenFlow controller, and orders changes. Datapath ids, ports and addresses \
    are text. Names of fields have their units. Where a switch is named in a path, its datapath id and its name \
    in the configuration are the same.\n\nOn a loopback address reading needs no token. Changes, and everything \
    on other addresses, need `Authorization: Bearer TOKEN`. Errors are problems of RFC 9457.";

/// A route with the type of its answer, as [`Declared`](bellrock_query::Declared) has it.
pub(crate) struct Operation {
    pub(crate) route: &'static Route,
    pub(crate) answer: &'static str,
    pub(crate) row: Option<&'static str>,
}

/// The document as JSON. Links of the sources in its texts become plain words, and `None` becomes
/// what JSON has for it.
pub(crate) fn document(operations: &[Operation], schemas: &Schemas) -> Value {
    let schemas: Map<String, Value> = schemas
        .iter()
        // The list of a type is written where it is used.
        .filter(|(name, _)| !name.starts_with("Vec_"))
        .map(|(name, schema)| (name.clone(), serde_json::to_value(schema).unwrap_or_default()))
        .collect();
    let mut paths = json!({});
    for operation in operations {
        let Route { method, path, .. } = operation.route;
        paths[path][method.to_string().to_lowercase()] = described(operation);
    }
    let tags: Vec<_> =
        TAGS.iter().map(|(name, about)| json!({"name": name, "description": about})).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bellrock",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "version": env!("CARGO_PKG_VERSION"),
        },
        // Generators of clients need an address to begin with: that of the document.
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "tags": tags,
    });
    name_rows(&mut document);
    unlink(&mut document);
    document
}

/// A route in the document.
fn described(Operation { route, answer, row }: &Operation) -> Value {
    let about: Vec<_> = route.about.iter().map(|line| line.trim()).collect();
    let about = about.join("\n");
    let (summary, more) = about.split_once("\n\n").unwrap_or((&about, ""));
    let json = |schema: Value| json!({"application/json": {"schema": schema}});
    let whole = match (*answer, row) {
        ("Vec", Some(row)) => json!({"type": "array", "items": named(row)}),
        ("Option", Some(row)) => json!({"oneOf": [{"type": "null"}, named(row)]}),
        (list, Some(row)) => named(&format!("{list}_{row}")),
        (answer, None) => named(answer),
    };
    let text = json!({"schema": {"type": "string"}});
    let mut answered = json!({"description": route.answer, "content": json(whole)});
    match (route.form, row) {
        (Form::One, Some(row)) => answered["content"] = json(named(row)),
        (Form::Created, _) => {
            answered["headers"] =
                json!({"location": {"description": "Its path.", "schema": {"type": "string"}}});
        }
        (Form::Stream, _) => answered["content"]["text/event-stream"] = text,
        (Form::Text, _) => answered["content"] = json!({"text/plain": text}),
        (Form::Whole | Form::One, _) => {}
    }
    let status = if route.form == Form::Created { "201" } else { "200" };
    let mut operation = json!({
        "tags": [route.tag],
        "summary": summary,
        "operationId": route.id,
        "responses": {
            status: answered,
            "default": {
                "description": "A problem.",
                "content": {"application/problem+json": {"schema": named("Problem")}},
            },
        },
    });
    if !more.is_empty() {
        operation["description"] = more.into();
    }
    if !route.params.is_empty() {
        let params = route.params.iter().flat_map(|param| parameters(route, param));
        operation["parameters"] = params.collect();
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({"content": json(named(body)), "required": true});
    }
    if route.method != Method::Get {
        operation["security"] = json!([{"token": []}]);
    }
    operation
}

/// The parameters that a declared one stands for.
fn parameters(route: &Route, param: &Param) -> Vec<Value> {
    let Param { name, kind, about } = *param;
    let is_in_path = param.is_in(route.path);
    let one = |name: &str, about: &str, schema: Value| {
        let place = if is_in_path { "path" } else { "query" };
        let required = is_in_path || kind == ParamKind::Required;
        json!({
            "name": name, "in": place, "description": about, "required": required, "schema": schema,
        })
    };
    let schema = match kind {
        ParamKind::Page => {
            let limit = json!({"type": "integer", "minimum": 1, "maximum": MAX_PAGE_ROWS});
            return vec![
                one(
                    "skip",
                    "Number of rows before the page.",
                    json!({"type": "integer", "minimum": 0}),
                ),
                one("limit", "Maximum number of rows in the page.", limit),
            ];
        }
        ParamKind::Number => json!({"type": "integer", "format": "int32", "minimum": 0}),
        ParamKind::Flag => json!({"type": "boolean"}),
        ParamKind::Text | ParamKind::Required => json!({"type": "string"}),
    };
    vec![one(name, about, schema)]
}

/// The schema with this name.
fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Lets the schema of a page name the schema of its rows, which it has a copy of: a generated
/// client has one type of them then, with its name.
fn name_rows(document: &mut Value) {
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    let Some(schemas) = schemas else { return };
    let mut rows = Vec::new();
    for (name, schema) in schemas.iter_mut() {
        let row = name.strip_prefix("Rows_");
        if let (Some(row), Some(items)) = (row, schema.pointer_mut("/properties/rows/items")) {
            let named = json!({"$ref": format!("#/components/schemas/{row}")});
            rows.push((row.to_owned(), std::mem::replace(items, named)));
        }
    }
    for (name, row) in rows {
        schemas.entry(name).or_insert(row);
    }
}

/// Takes rustdoc's brackets and names of Rust out of all descriptions.
fn unlink(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "description" || key == "summary" => {
                        *text =
                            text.replace("[`", "`").replace("`]", "`").replace("`None`", "`null`");
                    }
                    value => unlink(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(unlink),
        _ => {}
    }
}

/// The page: each path with its methods, parameters and answers.
pub(crate) fn page(document: &Value) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Bellrock: REST</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <link rel=\"stylesheet\" href=\"/v1/page.css\"></head><body>\
         <h1>Bellrock: REST</h1>",
    );
    let text = |value: &Value, key: &str| escape(value[key].as_str().unwrap_or_default());
    for line in document["info"]["description"].as_str().unwrap_or_default().split("\n\n") {
        let _ = write!(page, "<p>{}</p>", marked(&escape(line)));
    }
    page.push_str(
        "<p>For programs: <a href=\"/v1/openapi.json\">/v1/openapi.json</a> (OpenAPI 3.1), made from the code.</p>",
    );
    let empty = Vec::new();
    for tag in document["tags"].as_array().unwrap_or(&empty) {
        let _ = write!(page, "<h2>{}</h2>", text(tag, "description"));
        let paths = document["paths"].as_object().into_iter().flatten();
        for (path, methods) in paths {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                if operation["tags"][0] != tag["name"] {
                    continue;
                }
                let _ = write!(
                    page,
                    "<section><h3><code>{} {}</code></h3><p>{}{}</p>",
                    method.to_uppercase(),
                    escape(path),
                    marked(&text(operation, "summary")),
                    match operation["description"].as_str() {
                        Some(more) => format!(". {}", marked(&escape(more))),
                        None => ".".to_owned(),
                    }
                );
                let params = operation["parameters"].as_array().unwrap_or(&empty);
                let params =
                    params.iter().map(|param| (text(param, "name"), text(param, "description")));
                let body = operation.pointer("/requestBody/content/application~1json/schema/$ref");
                let fields = body.and_then(Value::as_str).map(|name| fields(document, name));
                let all: Vec<_> = params.chain(fields.into_iter().flatten()).collect();
                if !all.is_empty() {
                    page.push_str("<dl>");
                    for (name, about) in all {
                        let _ = write!(page, "<dt>{name}</dt><dd>{}</dd>", marked(&about));
                    }
                    page.push_str("</dl>");
                }
                page.push_str("</section>");
            }
        }
    }
    page.push_str("</body></html>\n");
    page
}

/// Names and meanings of the fields of a schema, escaped.
fn fields(document: &Value, reference: &str) -> Vec<(String, String)> {
    let properties = reference.strip_prefix('#').and_then(|path| document.pointer(path));
    let properties = properties.and_then(|schema| schema["properties"].as_object());
    let field = |(name, schema): (&String, &Value)| {
        (escape(name), escape(schema["description"].as_str().unwrap_or_default()))
    };
    properties.into_iter().flatten().map(field).collect()
}

/// Escaped text with its code, which is between backticks, as code.
fn marked(escaped: &str) -> String {
    let parts: Vec<&str> = escaped.split('`').collect();
    // One that is left over is a backtick.
    if parts.len().is_multiple_of(2) {
        return escaped.to_owned();
    }
    let mark = |(index, part): (usize, &&str)| match index % 2 {
        0 => (*part).to_owned(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(mark).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_nothing_else() {
        assert_eq!(marked("see `a` and `b`"), "see <code>a</code> and <code>b</code>");
        assert_eq!(marked("one ` alone"), "one ` alone");
        assert_eq!(marked(&escape("`<b>`")), "<code>&lt;b&gt;</code>");
    }
}
