//! Templates for many similar flows of an app.

use bellrock_openflow::{EncodeError, Filling, FlowMod, Out, PacketInView, Version};

use crate::{AppId, Error, Result};

/// A flow_mod of an app that is encoded once, and installed millions of times with other values:
/// the fields of its match, its buffer, and the port of its final output action.
///
/// Made by [`Switch::template`](crate::Switch::template), or for all switches of a version by
/// [`Network::template`](crate::Network::template). Installed by
/// [`Switch::install_for`](crate::Switch::install_for) and
/// [`Switch::install_from`](crate::Switch::install_from). The flows have the cookie and priority
/// band of the template's app. That app gets the switch's answers, whichever handler installs them.
///
/// [`bellrock_openflow::FlowModTemplate`] lists the values that can change.
#[derive(Clone, Debug)]
pub struct FlowTemplate(bellrock_openflow::FlowModTemplate);

impl FlowTemplate {
    /// The OpenFlow version of the template.
    #[must_use]
    #[inline]
    pub fn version(&self) -> Version {
        self.0.version()
    }

    /// See [`bellrock_openflow::FlowModTemplate::fill`].
    ///
    /// # Errors
    /// As for that function.
    #[inline(always)]
    pub fn fill<'f>(&'f self, count: u32, out: &'f mut Out) -> Result<Filling<'f>, EncodeError> {
        self.0.fill(count, out)
    }

    /// See [`bellrock_openflow::FlowModTemplate::fill_for`].
    ///
    /// # Errors
    /// As for that function.
    #[inline(always)]
    pub fn fill_for<'f>(
        &'f self,
        packet: &PacketInView<'_>,
        count: u32,
        out: &'f mut Out,
    ) -> Result<Filling<'f>, EncodeError> {
        self.0.fill_for(packet, count, out)
    }
}

impl AppId {
    /// Prepares flows of this app.
    ///
    /// # Errors
    /// Those of [`AppId::owned_flow_mod`], what the version does not support, and a flow_mod of
    /// more than [`bellrock_openflow::MAX_TEMPLATE_LEN`] bytes.
    pub fn template(self, version: Version, flow: &FlowMod<'_>) -> Result<FlowTemplate, Error> {
        let flow = self.owned_flow_mod(version, flow)?;
        Ok(FlowTemplate(bellrock_openflow::FlowModTemplate::new(version, self.owner(), &flow)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use bellrock_openflow::{Action, Match, Out, Port, ToSwitch, xid};

    use super::*;

    #[test]
    fn its_flows_are_those_that_the_app_installs_one_by_one() {
        let app = AppId::new(2, "app").unwrap();
        let (any, to_one) = (Match::any(), [Action::output(Port(1))]);
        for version in Version::ALL {
            for priority in [0, 0xabc, FlowMod::DEFAULT_PRIORITY] {
                let flow = FlowMod::add(&any).priority(priority).cookie(7).actions(&to_one);
                let template = app.template(version, &flow).unwrap();
                let (mut filled, mut encoded) = (Out::with_capacity(512), Out::with_capacity(512));
                template.fill(9, &mut filled).unwrap().finish().unwrap();
                let flow = ToSwitch::FlowMod(app.owned_flow_mod(version, &flow).unwrap());
                flow.encode(version, xid::xid(app.owner(), 9), &mut encoded).unwrap();
                assert_eq!(filled.as_slice(), encoded.as_slice(), "{version} {priority}");
            }
            let above = app.template(version, &FlowMod::add(&any).priority(4096));
            assert_eq!(above.err(), Some(Error::Priority { priority: 4096 }));
        }
    }
}
