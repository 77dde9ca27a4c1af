//! What identifies an app's messages and flows.

use bellrock_openflow::{EncodeError, FlowCommand, FlowMod, PriorityBand, Version};

use crate::{Cookie, Error, Result};

/// The app at one place of a chain. It owns transaction ids, cookies and a band of priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppId {
    owner: u8,
    cookie: Cookie,
    band: PriorityBand,
}

impl AppId {
    /// Makes the app with this name at this place, counted from 0. `None` from
    /// [`PriorityBand::PLACES`] on.
    #[must_use]
    pub fn new(place: usize, name: &str) -> Option<Self> {
        let band = PriorityBand::of_place(place)?;
        // The session itself is owner 0.
        Some(AppId { owner: (place + 1) as u8, cookie: Cookie::of_app(name), band })
    }

    /// Owner byte of its transaction ids ([`bellrock_openflow::xid`]).
    #[must_use]
    pub fn owner(self) -> u8 {
        self.owner
    }

    /// Cookies of its flows.
    #[must_use]
    pub fn cookie(self) -> Cookie {
        self.cookie
    }

    /// Band of its flows' priorities.
    #[must_use]
    pub fn band(self) -> PriorityBand {
        self.band
    }

    /// Returns the flow_mod as it goes to the switch, with the app's cookie and a priority of its
    /// band. It changes or removes no flow of another app.
    ///
    /// # Errors
    /// [`Error::Priority`]. In 1.0, commands that match several flows are unsupported: cookies
    /// cannot restrict them to one app there.
    #[inline]
    pub fn owned_flow_mod<'f>(
        self,
        version: Version,
        flow: &FlowMod<'f>,
    ) -> Result<FlowMod<'f>, Error> {
        let priority = self.band.lift(flow.priority);
        let priority = priority.ok_or(Error::Priority { priority: flow.priority })?;
        // Of an exact flow in 1.0 a switch keeps no other priority.
        let priority = version.priority_in_switch(priority, || flow.matching.is_exact());
        let cookie = self.cookie.with(flow.cookie);
        let owned = FlowMod { cookie, priority, ..*flow };
        if flow.command == FlowCommand::Add {
            return Ok(owned);
        }
        if version.selects_by_cookie() {
            return Ok(FlowMod { cookie_mask: owned.cookie_mask | Cookie::MASK, ..owned });
        }
        match flow.command {
            FlowCommand::Modify | FlowCommand::Delete => {
                let what = "changing or removing several flows of one app by one message";
                Err(EncodeError::Unsupported { what, version }.into())
            }
            // Strict commands name a priority, and no other app uses those of the band.
            _ => Ok(owned),
        }
    }
}
