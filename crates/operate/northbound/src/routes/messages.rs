//! OpenFlow messages as they are.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellrock_api::ToSwitch;
use bellrock_api::openflow::{RequestBody, Strictness};
use bellrock_query::{AskSwitch, MessageBytes, SendMessages, SentMessages, SwitchReply};
use serde::Deserialize;
use utoipa::ToSchema;

use super::network::switch_ref;
use crate::access::Caller;
use crate::answer::{Fields, Known, NoParams, Params, Part, Shared, Tagged};
use crate::problem::Problem;

/// What a switch is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestParams {
    request: String,
}

/// Messages that change a switch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessagesBody {
    /// The messages, each in hexadecimal digits and the OpenFlow version of the switch.
    messages: Vec<String>,
}

/// Asks a switch. What may change it needs more than the right to read.
pub(super) async fn reply(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Part(switch): Part<String>,
    Params(params): Params<RequestParams>,
    known: Known,
) -> Result<Tagged<SwitchReply>, Problem> {
    let request = bytes(&params.request, "request")?;
    if is_of_experimenter(&request) && !caller.may_change() {
        shared.counters.requests_forbidden();
        let why = "a request of an experimenter may change the switch: it needs a token with the scope write";
        return Err(Problem::forbidden(why));
    }
    let query = AskSwitch { switch: switch_ref(&switch), request };
    Ok(Tagged { answer: shared.ask(query).await?, known })
}

/// Sends messages to a switch.
pub(super) async fn send(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Part(switch): Part<String>,
    Fields(body): Fields<MessagesBody>,
) -> Result<Json<SentMessages>, Problem> {
    let messages = body.messages.iter().enumerate();
    let messages = messages.map(|(index, text)| bytes(text, &format!("messages[{index}]")));
    let messages = messages.collect::<Result<_, _>>()?;
    let order = SendMessages { switch: switch_ref(&switch), messages };
    Ok(Json(shared.order(caller, order).await?))
}

/// Whether it is a multipart request that only an experimenter knows the meaning of.
fn is_of_experimenter(request: &MessageBytes) -> bool {
    let decoded = ToSwitch::decode_as(&request.0, Strictness::Liberal);
    // What cannot be read is refused later.
    decoded.is_ok_and(|message| match message.body {
        ToSwitch::MultipartRequest(request) => {
            matches!(request.body, RequestBody::Experimenter { .. })
        }
        _ => false,
    })
}

fn bytes(text: &str, field: &str) -> Result<MessageBytes, Problem> {
    text.parse().map_err(|error: bellrock_query::ParseMessageError| {
        Problem::invalid(error.to_string()).at(field)
    })
}
