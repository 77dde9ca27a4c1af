//! How requests are asked over HTTP: what is declared of a route besides its request.
//!
//! A face makes the route and its entry in the OpenAPI document of it.

use std::fmt;

use crate::{List, ReadGauges};

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It asks.
    Get,
    /// It orders.
    Post,
    /// It orders to replace a thing.
    Put,
    /// It orders to remove a thing.
    Delete,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        })
    }
}

/// What a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The answer to the request.
    Whole,
    /// The first row of the answer.
    One,
    /// The answer is a created thing, whose path ends with its `id`.
    Created,
    /// The answer, or a stream of its rows as server-sent events.
    Stream,
    /// Plain text.
    Text,
}

/// A route.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Its method. All but [`Method::Get`] need a token.
    pub method: Method,
    /// Name of the operation in the OpenAPI document.
    pub id: &'static str,
    /// Its path. Parts in braces are fields of the request.
    pub path: &'static str,
    /// Name of the chapter that documents it.
    pub tag: &'static str,
    /// What it does, in lines. More than a summary is behind an empty line.
    pub about: &'static [&'static str],
    /// Parts of the path, and parameters behind its `?`. Each is a field of the request.
    pub params: &'static [Param],
    /// Name of the type of its body.
    pub body: Option<&'static str>,
    /// The form of its answer.
    pub form: Form,
    /// What the answer is.
    pub answer: &'static str,
}

/// A parameter of a route.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name, and that of the field.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: ParamKind,
    /// What it is for.
    pub about: &'static str,
}

/// The values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Any text.
    Text,
    /// Text, and it has to be given.
    Required,
    /// A whole number of 32 bits.
    Number,
    /// `true` or `false`.
    Flag,
    /// Two parameters, `skip` and `limit`: the fields of a [`Page`](crate::Page).
    Page,
}

impl Param {
    /// A parameter that takes any text.
    #[must_use]
    pub const fn text(name: &'static str, about: &'static str) -> Self {
        Param { name, kind: ParamKind::Text, about }
    }

    /// A parameter that is `true` or `false`.
    #[must_use]
    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Param { name, kind: ParamKind::Flag, about }
    }

    /// Whether it is a part of this path.
    #[must_use]
    pub fn is_in(&self, path: &str) -> bool {
        path.split('/').any(|part| {
            part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(self.name)
        })
    }
}

/// What is declared of a request.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Its name, such as `list_flows`.
    pub name: &'static str,
    /// Its routes.
    pub routes: &'static [Route],
    /// Name of the type of its answer: a structure, [`Rows`](crate::Rows), or `Vec`.
    pub answer: &'static str,
    /// Name of the type of the answer's rows, if the answer is generic.
    pub row: Option<&'static str>,
    /// How its rows are listed.
    pub list: Option<List>,
    /// Name of the app that answers it. `None`: the controller itself.
    pub app: Option<&'static str>,
    /// How its rows are counted for monitoring.
    pub gauges: Option<ReadGauges>,
    /// Adds the schemas of the answer, and those of the request if it is a body.
    #[cfg(feature = "schema")]
    pub schemas: fn(&mut Schemas),
}

/// Schemas with their names.
#[cfg(feature = "schema")]
pub type Schemas = Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>;

/// Adds the schema of a type, and of all types in it.
#[cfg(feature = "schema")]
pub fn add_schema<T: utoipa::ToSchema>(name: impl Into<String>, to: &mut Schemas) {
    to.push((name.into(), T::schema()));
    T::schemas(to);
}

/// A [`Route`]: what it does, method, name, path, chapter, parameters, and the answer.
#[macro_export]
macro_rules! route {
    (
        $(#[doc = $about:literal])*
        $method:ident $id:ident $path:literal $tag:ident
        $([$($param:expr),*])? $(takes $body:ident)? => $($form:ident)? $answer:literal
    ) => {
        $crate::Route {
            method: $crate::Method::$method,
            id: stringify!($id),
            path: $path,
            tag: stringify!($tag),
            about: &[$($about),*],
            params: &[$($($param),*)?],
            body: $crate::route!(@first $(Some(stringify!($body)),)? None),
            form: $crate::route!(@first $($crate::Form::$form,)? $crate::Form::Whole),
            answer: $answer,
        }
    };
    (@first $first:expr $(, $rest:expr)*) => {
        $first
    };
}
