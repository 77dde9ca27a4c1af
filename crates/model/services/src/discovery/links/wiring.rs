//! Reports links that are wired in an unusual way.

use std::time::Duration;

use bellrock_api::{Event, Link};

use super::{LinkTable, NEW_PORT};

impl LinkTable {
    /// Reports each link that has carried nothing back for long enough, once.
    pub(super) fn report_one_way(&mut self, now: Duration) {
        let after = self.interval + NEW_PORT;
        let old = self.links().map(|up| up.link).filter(|link| link.since + after <= now);
        let old = old.filter(|link| self.is_here(link.from.dpid));
        let one_way: Vec<Link> = old.filter(|link| self.up(link.to).is_none()).collect();
        for link in one_way {
            if let Some(up) = self.up_mut(link.from)
                && !std::mem::replace(&mut up.is_one_way_reported, true)
            {
                self.events.push(Event::OneWay(link));
            }
        }
    }

    /// Reports each link whose receiving port is heard elsewhere than at its sending port, once.
    /// Checks only links that lead to a port of `new`.
    pub(super) fn report_miswired(&mut self, new: Link) {
        let mut senders = self.senders_to(new.from);
        senders.extend(self.senders_to(new.to));
        for from in senders {
            let Some(link) = self.up(from).map(|up| up.link) else { continue };
            let Some(back) = self.up(link.to).map(|up| up.link.to) else { continue };
            if back != from
                && let Some(up) = self.up_mut(from)
                && !std::mem::replace(&mut up.is_miswired_reported, true)
            {
                self.events.push(Event::Miswired { link, receiver: back });
            }
        }
    }
}
