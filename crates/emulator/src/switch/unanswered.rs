//! Multipart requests that a switch does not answer as it should, for tests of controllers.

use bellrock_openflow::{ErrorCode, MultipartKind, Version};

use super::{ChannelClose, EmulatedSwitch, RequestContext};

/// What a switch does with a multipart request (1.0: for statistics) instead of answering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Sends nothing. It handles the next messages, and answers a barrier.
    Silent,
    /// Answers with an error.
    Refused,
    /// Answers with a body that ends in the middle of an entry.
    Garbled,
}

impl EmulatedSwitch {
    /// Sets how to treat requests of this kind from now on; `None`: answer them.
    pub fn set_unanswered(&mut self, kind: MultipartKind, how: Option<Unanswered>) {
        self.unanswered.retain(|(its, _)| *its != kind);
        self.unanswered.extend(how.map(|how| (kind, how)));
    }

    /// How to treat requests of this kind.
    pub(super) fn unanswered(&self, kind: MultipartKind) -> Option<Unanswered> {
        self.unanswered.iter().find(|(its, _)| *its == kind).map(|(_, how)| *how)
    }

    pub(super) fn leave_unanswered(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        kind: MultipartKind,
        how: Unanswered,
    ) -> Result<(), ChannelClose> {
        match how {
            Unanswered::Silent => Ok(()),
            Unanswered::Refused => self.refuse(index, request, ErrorCode::RequestBadMultipart),
            Unanswered::Garbled => {
                let channel = &mut self.channels[index];
                let reply = garbled(channel.version(), request.xid, kind);
                channel.outbox.append(&reply);
                Ok(())
            }
        }
    }
}

/// A multipart reply with three bytes of a body.
fn garbled(version: Version, xid: u32, kind: MultipartKind) -> Vec<u8> {
    // OFPT_STATS_REPLY and OFPT_MULTIPART_REPLY; the second has padding before its body.
    let (message, padding) = match version {
        Version::V1_0 => (17, 0),
        Version::V1_3 => (19, 4),
    };
    let kind = kind.wire(version).unwrap_or_default();
    let len = 12 + padding + 3;
    let mut reply = vec![version.wire(), message, 0, len];
    reply.extend(xid.to_be_bytes());
    reply.extend(kind.to_be_bytes());
    reply.resize(len.into(), 0);
    reply
}
