//! Routes that pass on a request as it is declared, and its answer: nearly all of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts as _;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bellrock_query::{Declared, Form, Page, Param, ParamKind, Request, Route};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _};
use serde_json::{Map, Value, json};

use crate::access::Caller;
use crate::answer::{Known, Part, Shared, Tagged, body_bytes, read_body};
use crate::problem::Problem;

/// Reads the request of a route, and answers it.
pub(super) async fn answer(
    declared: &'static Declared,
    route: &'static Route,
    shared: Arc<Shared>,
    caller: Caller,
    asked: axum::extract::Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = asked.into_parts();
    let Ok(known) = Known::from_request_parts(&mut parts, &()).await;
    let Part(in_path) = Part::<Vec<(String, String)>>::from_request_parts(&mut parts, &()).await?;
    let fields = fields(route, &in_path, parts.uri.query().unwrap_or_default())?;
    let asked = axum::extract::Request::from_parts(parts, body);
    let request = match route.body {
        Some(_) => {
            let read = |bytes: &[u8]| read_body(bytes, BodyOf(declared.name));
            shared.parse(body_bytes(asked, &shared).await?, read).await??
        }
        None => Request::from_json(json!({ declared.name: fields }))?,
    };
    if !request.is_order() {
        return Ok(Tagged { answer: shared.ask_any(request).await?, known }.into_response());
    }
    let answer = shared.order_any(caller, request).await?;
    if route.form != Form::Created {
        return Ok(Json(answer).into_response());
    }
    let id = serde_json::to_value(&answer).map(|answer| answer["id"].to_string());
    let location = format!("{}/{}", route.path, id.unwrap_or_default());
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(answer)).into_response())
}

/// Reads the body that is the request of this name.
struct BodyOf(&'static str);

impl<'de> DeserializeSeed<'de> for BodyOf {
    type Value = Request;

    fn deserialize<D: Deserializer<'de>>(self, body: D) -> Result<Request, D::Error> {
        let wrong = || D::Error::custom(format_args!("{} takes no body", self.0));
        Request::from_body(self.0, body)?.ok_or_else(wrong)
    }
}

/// The fields of a request, from the parts of a path and the parameters behind its `?`.
fn fields(
    route: &Route,
    in_path: &[(String, String)],
    query: &str,
) -> Result<Map<String, Value>, Problem> {
    let (skip, limit) = (Page::default().skip(), Page::default().limit());
    let mut page = (skip, limit);
    let mut given = Vec::new();
    let mut fields = Map::new();
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let is_page = |param: &&Param| match param.kind {
            ParamKind::Page => matches!(&*name, "skip" | "limit"),
            _ => param.name == name && !param.is_in(route.path),
        };
        let Some(param) = route.params.iter().find(is_page) else {
            return Err(unknown(route, &name));
        };
        if given.contains(&name) {
            return Err(Problem::invalid(format!("{WRONG}: duplicate field `{name}`")));
        }
        let wrong = |what: &str| Problem::invalid(format!("{WRONG}: give {what}")).at(&name);
        match (param.kind, &*name) {
            (ParamKind::Page, "skip") => {
                page.0 = text.parse().map_err(|_| wrong("a whole number"))?;
            }
            (ParamKind::Page, _) => page.1 = text.parse().map_err(|_| wrong("a whole number"))?,
            (kind, name) => {
                let value = value(kind, &text).map_err(wrong)?;
                fields.insert(name.to_owned(), value);
            }
        }
        given.push(name);
    }
    for (name, text) in in_path {
        let kind = route.params.iter().find(|param| param.name == name).map(|param| param.kind);
        let value = value(kind.unwrap_or(ParamKind::Text), text).map_err(|what| {
            Problem::invalid(format!("the path is wrong: {text:?} is here; give {what}")).at(name)
        })?;
        fields.insert(name.clone(), value);
    }
    if let Some(param) = route.params.iter().find(|param| param.kind == ParamKind::Page) {
        let page = serde_json::to_value(Page::new(page.0, page.1)?).unwrap_or_default();
        fields.insert(param.name.to_owned(), page);
    }
    Ok(fields)
}

/// Begins what is wrong with parameters.
const WRONG: &str = "the parameters are wrong";

/// The value of a parameter, or what would be one.
fn value(kind: ParamKind, text: &str) -> Result<Value, &'static str> {
    match kind {
        ParamKind::Number => text.parse::<u32>().map(Value::from).map_err(|_| "a whole number"),
        ParamKind::Flag => text.parse::<bool>().map(Value::from).map_err(|_| "true or false"),
        ParamKind::Text | ParamKind::Required | ParamKind::Page => Ok(text.into()),
    }
}

/// The problem of a parameter that a route does not know.
fn unknown(route: &Route, name: &str) -> Problem {
    let names = route.params.iter().filter(|param| !param.is_in(route.path));
    let names = names.flat_map(|param| match param.kind {
        ParamKind::Page => vec!["skip", "limit"],
        _ => vec![param.name],
    });
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let remedy = match &names[..] {
        [] => "leave it out".to_owned(),
        [one] => format!("give {one}"),
        [one, other] => format!("give {one} or {other}"),
        all => format!("give one of {}", all.join(", ")),
    };
    Problem::invalid(format!("{WRONG}: unknown field `{name}`; {remedy}")).at(name)
}
