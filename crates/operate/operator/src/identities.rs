//! Answers about the certificates of switches.

use bellrock_api::{Dpid, Names};
use bellrock_engine::{Identities, Pin};
use bellrock_query::{Page, PinRow, QueryError, Rows};

use super::name_of;

pub(super) fn list(identities: &Identities, names: &Names, page: Page) -> Rows<PinRow> {
    let pins: Vec<_> = identities.pins().into_iter().collect();
    Rows::of(pins, page).map(|(dpid, pin)| row(names, dpid, pin))
}

pub(super) fn forget(
    identities: &Identities,
    names: &Names,
    dpid: Dpid,
) -> Result<PinRow, QueryError> {
    let pin = identities.forget(dpid);
    pin.map(|pin| row(names, dpid, pin)).ok_or_else(|| {
        let why =
            format!("datapath id {dpid} has no certificate; `bellrock identities list` lists all");
        QueryError::not_found("switch", why)
    })
}

fn row(names: &Names, dpid: Dpid, pin: Pin) -> PinRow {
    let key = pin.key.to_string();
    PinRow { dpid, switch_name: name_of(names, dpid), name: pin.name.into(), key }
}
