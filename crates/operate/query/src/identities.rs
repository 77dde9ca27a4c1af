//! Which certificate speaks for which switch, by TLS.

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};

use crate::{Page, SwitchRef, text};

/// Asks for the datapath ids that have a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListIdentities {
    /// Which of them.
    pub page: Page,
}

/// Frees a datapath id from its certificate: the next certificate that connects with it has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ForgetIdentity {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
}

/// A datapath id and its certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PinRow {
    /// The datapath id.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// The switch's name in the configuration.
    #[serde(default)]
    pub switch_name: Option<String>,
    /// Common name of the certificate.
    pub name: String,
    /// Fingerprint of its public key: `sha256:` and 64 hexadecimal digits.
    pub key: String,
}
