//! Questions that a switch does not answer as it should: what others do, for tests of controllers.

use bellrock_openflow::{ErrorCode, MultipartKind, Version};

use super::{Close, Request, Switch};

/// What a switch does with a multipart request (1.0: for statistics) instead of answering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing. It goes on with what comes behind, and answers a barrier.
    Silent,
    /// It answers with an error.
    Refused,
    /// It answers with a body that ends in the middle of an entry.
    Garbled,
}

impl Switch {
    /// From now on requests of this kind are dealt with so; `None`: they are answered.
    pub fn set_unanswered(&mut self, kind: MultipartKind, how: Option<Unanswered>) {
        self.unanswered.retain(|(its, _)| *its != kind);
        self.unanswered.extend(how.map(|how| (kind, how)));
    }

    /// What becomes of a request of this kind.
    pub(super) fn unanswered(&self, kind: MultipartKind) -> Option<Unanswered> {
        self.unanswered.iter().find(|(its, _)| *its == kind).map(|(_, how)| *how)
    }

    pub(super) fn leave_unanswered(
        &mut self,
        index: usize,
        request: Request<'_>,
        kind: MultipartKind,
        how: Unanswered,
    ) -> Result<(), Close> {
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
    // OFPT_STATS_REPLY and OFPT_MULTIPART_REPLY; the latter is padded before its body.
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
