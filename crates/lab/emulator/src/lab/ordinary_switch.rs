//! An ordinary switch between the ports of a lab: it learns addresses, and speaks no OpenFlow.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Lab;

/// Time between two looks at the frames that have come.
const STEP: Duration = Duration::from_millis(1);

/// Maximum number of frames for the switch's own ports that are kept.
const KEPT_FRAMES: usize = 1 << 16;

/// What an ordinary switch does with LLDP frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LldpHandling {
    /// Keeps frames to 01:80:c2:00:00:00 to :0f, as IEEE 802.1D says. LLDP to other addresses
    /// passes.
    #[default]
    ByAddress,
    /// Keeps all frames of LLDP's Ethernet type too.
    ByType,
    /// Passes everything, as cheap ones do.
    Pass,
}

/// An ordinary switch, as between or beside OpenFlow switches. It learns addresses, and floods
/// frames for others.
///
/// Its cables end at hosts of the lab, which carry its frames and must not speak themselves. Hosts
/// at its own ports are the test's: [`send`](Self::send), [`received`](Self::received). Only
/// [`run_for`](Self::run_for) lets it forward.
#[derive(Debug)]
pub struct OrdinarySwitch {
    cables: Vec<String>,
    lldp: LldpHandling,
    /// By address, the cable where it is; `None` for the switch's own ports.
    table: BTreeMap<[u8; 6], Option<usize>>,
    received: Vec<Vec<u8>>,
    forwarded: u64,
}

impl OrdinarySwitch {
    /// Creates the switch, with a cable to the place of each of these hosts.
    ///
    /// # Panics
    /// There is no such host.
    #[track_caller]
    #[must_use]
    pub fn new(lab: &mut Lab, cables: &[&str], lldp: LldpHandling) -> Self {
        for cable in cables {
            lab.capture(cable);
        }
        let cables = cables.iter().map(|it| (*it).to_owned()).collect();
        OrdinarySwitch { cables, lldp, table: BTreeMap::new(), received: Vec::new(), forwarded: 0 }
    }

    /// Sends a frame from a host at a port of its own.
    pub fn send(&mut self, lab: &mut Lab, frame: &[u8]) {
        self.forward(lab, None, frame);
    }

    /// Returns the frames that its own ports got since the last call.
    pub fn received(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.received)
    }

    /// Number of frames that it has forwarded.
    #[must_use]
    pub fn forwarded(&self) -> u64 {
        self.forwarded
    }

    /// Takes a cable out. The host there is one like others.
    pub fn unplug(&mut self, cable: &str) {
        self.cables.retain(|it| it != cable);
        self.table.clear();
    }

    /// Runs the lab for this time, and forwards meanwhile.
    pub fn run_for(&mut self, lab: &mut Lab, time: Duration) {
        let until = lab.now() + time;
        while lab.now() < until {
            lab.run_for(STEP);
            for nth in 0..self.cables.len() {
                let Some(cable) = self.cables.get(nth).cloned() else { continue };
                for frame in lab.capture(&cable) {
                    self.forward(lab, Some(nth), &frame);
                }
            }
        }
    }

    fn forward(&mut self, lab: &mut Lab, from: Option<usize>, frame: &[u8]) {
        let Some((&to, rest)) = frame.split_first_chunk::<6>() else { return };
        let Some(&source) = rest.first_chunk::<6>() else { return };
        let is_link_local = to.starts_with(&[0x01, 0x80, 0xc2, 0, 0]) && to[5] < 16;
        let is_lldp = frame.get(12..14) == Some(&[0x88, 0xcc]);
        let is_kept = match self.lldp {
            LldpHandling::ByAddress => is_link_local,
            LldpHandling::ByType => is_link_local || is_lldp,
            LldpHandling::Pass => false,
        };
        if is_kept {
            return;
        }
        self.forwarded += 1;
        self.table.insert(source, from);
        let is_group = to[0] & 1 == 1;
        let known = self.table.get(&to).copied().filter(|_| !is_group);
        let goes_to = |port: Option<usize>| port != from && known.is_none_or(|known| known == port);
        for (nth, cable) in self.cables.iter().enumerate() {
            if goes_to(Some(nth)) {
                lab.send_frame(cable, frame);
            }
        }
        if goes_to(None) && self.received.len() < KEPT_FRAMES {
            self.received.push(frame.to_vec());
        }
    }
}
