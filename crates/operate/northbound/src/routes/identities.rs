//! The certificates of switches.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use bellrock_query::{ForgetIdentity, ListIdentities, PinRow, Rows};

use super::PageParams;
use super::network::switch_ref;
use crate::access::Caller;
use crate::answer::{Known, NoParams, Params, Part, Shared, Tagged};
use crate::problem::Problem;

/// The datapath ids that have a certificate
///
/// Of switches that connect by TLS. Such a datapath id is refused to all others.
#[utoipa::path(get, path = "/v1/identities", tag = "network", params(PageParams), responses(
    (status = 200, description = "A page of the datapath ids.", body = Rows<PinRow>),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn identities(
    State(shared): State<Arc<Shared>>,
    Params(page): Params<PageParams>,
    known: Known,
) -> Result<Tagged<Rows<PinRow>>, Problem> {
    Ok(Tagged { answer: shared.ask(ListIdentities { page: page.page()? }).await?, known })
}

/// Free a datapath id from its certificate
///
/// The next certificate that connects with it has it. The answer is what is forgotten.
#[utoipa::path(delete, path = "/v1/identities/{switch}", tag = "network", security(("token" = [])),
    params(("switch" = String, Path, description = "The switch: its datapath id or its name.")),
    responses(
    (status = 200, description = "It is free.", body = PinRow),
    (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn forget(
    State(shared): State<Arc<Shared>>,
    _: NoParams,
    Extension(caller): Extension<Caller>,
    Part(switch): Part<String>,
) -> Result<axum::Json<PinRow>, Problem> {
    let order = ForgetIdentity { switch: switch_ref(&switch) };
    Ok(axum::Json(shared.order(caller, order).await?))
}
