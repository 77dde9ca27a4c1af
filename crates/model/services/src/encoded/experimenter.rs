//! Which messages of experimenters operators and apps may send.
//!
//! What they do is the switch's affair, except where they do what the controller does itself, or
//! what it would check in a message of OpenFlow.

use bellrock_api::openflow::{Experimenter, NICIRA, ONF, RoleExtension};

const OF_THE_CONNECTION: &str = "it changes what the switch reports to the controller, or in which form, which the controller sets";
const WRAPPED: &str =
    "it carries flow_mods, which the controller could not check; send them as messages of OpenFlow";

/// What the known messages contain. Sources: `nicira-ext.h` of Open vSwitch, and extension 230 of
/// the ONF.
const REFUSED: &[(u32, u32, &str, &str)] = &[
    (NICIRA, 12, "NXT_SET_FLOW_FORMAT", OF_THE_CONNECTION),
    (NICIRA, 13, "NXT_FLOW_MOD", WRAPPED),
    (NICIRA, 15, "NXT_FLOW_MOD_TABLE_ID", OF_THE_CONNECTION),
    (NICIRA, 16, "NXT_SET_PACKET_IN_FORMAT", OF_THE_CONNECTION),
    (NICIRA, 19, "NXT_SET_ASYNC_CONFIG", OF_THE_CONNECTION),
    (NICIRA, 20, "NXT_SET_CONTROLLER_ID", OF_THE_CONNECTION),
    (NICIRA, 27, "NXT_SET_ASYNC_CONFIG2", OF_THE_CONNECTION),
    (ONF, 2300, "ONFT_BUNDLE_CONTROL", WRAPPED),
    (ONF, 2301, "ONFT_BUNDLE_ADD_MESSAGE", WRAPPED),
];

/// Multipart requests of the same: the switch sends updates for ever.
const REFUSED_MULTIPARTS: &[(u32, u32, &str, &str)] = &[
    (NICIRA, 2, "NXST_FLOW_MONITOR", OF_THE_CONNECTION),
    (ONF, 1870, "ONFST_FLOW_MONITOR", OF_THE_CONNECTION),
];

/// Checks a multipart request of an experimenter. Its data starts with the type in both versions.
///
/// # Errors
/// Why nobody may send it but the controller.
pub fn check_multipart(experimenter: u32, data: &[u8]) -> Result<(), String> {
    let kind = data.first_chunk().map(|kind| u32::from_be_bytes(*kind));
    refuse(REFUSED_MULTIPARTS, experimenter, kind)
}

/// Checks a message of an experimenter.
///
/// # Errors
/// Why nobody may send it but the controller.
pub fn check(message: &Experimenter<'_>) -> Result<(), String> {
    if RoleExtension::read(message).is_some() {
        return Err("the controller decides its role itself".to_owned());
    }
    // 1.0 has the kind in the data.
    let in_data = || message.data.first_chunk().map(|kind| u32::from_be_bytes(*kind));
    refuse(REFUSED, message.experimenter, message.kind.or_else(in_data))
}

fn refuse(
    refused: &[(u32, u32, &str, &str)],
    experimenter: u32,
    kind: Option<u32>,
) -> Result<(), String> {
    let is_it =
        |&&(id, number, ..): &&(u32, u32, &str, &str)| (id, Some(number)) == (experimenter, kind);
    match refused.iter().find(is_it) {
        Some((.., name, why)) => Err(format!("it is {name}: {why}")),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use bellrock_api::openflow::Bytes;

    use super::*;

    fn check_one(experimenter: u32, kind: Option<u32>, data: &[u8]) -> Result<(), String> {
        check(&Experimenter { experimenter, kind, data: Bytes::from(data) })
    }

    #[test]
    fn a_message_that_changes_the_connection_or_carries_flow_mods_is_refused_in_both_versions() {
        for &(id, number, name, _) in REFUSED {
            for refused in [
                check_one(id, Some(number), &[0; 24]),
                check_one(id, None, &[&number.to_be_bytes()[..], &[0; 20]].concat()),
            ] {
                assert!(refused.unwrap_err().contains(name));
            }
        }
    }

    #[test]
    fn a_request_for_updates_is_refused() {
        for &(id, number, name, _) in REFUSED_MULTIPARTS {
            let data = [&number.to_be_bytes()[..], &[0; 20]].concat();
            assert!(check_multipart(id, &data).unwrap_err().contains(name));
        }
        // NXST_FLOW, and one without a type.
        check_multipart(NICIRA, &[0; 8]).unwrap();
        check_multipart(ONF, &[7]).unwrap();
    }

    #[test]
    fn other_messages_are_the_switches_affair() {
        // NXT_CT_FLUSH_ZONE, one of another vendor, one without a kind.
        check_one(NICIRA, Some(29), &[0; 8]).unwrap();
        check_one(0x1234, Some(19), &[]).unwrap();
        check_one(NICIRA, None, &[0, 0]).unwrap();
    }
}
