//! Multipart requests that a switch does not answer as it should, for tests of controllers.

use bellrock_openflow::{
    ErrorCode, FromSwitch, HEADER_LEN, List, MultipartKind, MultipartReply, Out, ReplyBody, Version,
};

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
    pub fn set_unanswered(&mut self, kind: MultipartKind, behaviour: Option<Unanswered>) {
        self.unanswered.retain(|(other, _)| *other != kind);
        self.unanswered.extend(behaviour.map(|how| (kind, how)));
    }

    /// How to treat requests of this kind.
    pub(super) fn unanswered(&self, kind: MultipartKind) -> Option<Unanswered> {
        self.unanswered.iter().find(|(other, _)| *other == kind).map(|(_, how)| *how)
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
    // An empty list of ports, with another kind and three more bytes. All versions have the kind
    // behind the header.
    let mut out = Out::with_capacity(64);
    let empty = MultipartReply::of(ReplyBody::PortStats(List::empty()));
    // It fits.
    let _ = FromSwitch::MultipartReply(empty).encode(version, xid, &mut out);
    let mut reply = out.as_slice().to_vec();
    let kind = kind.wire(version).unwrap_or_default().to_be_bytes();
    if let Some(bytes) = reply.get_mut(HEADER_LEN..HEADER_LEN + kind.len()) {
        bytes.copy_from_slice(&kind);
    }
    reply.extend([0; 3]);
    reply[3] = reply.len() as u8;
    reply
}
