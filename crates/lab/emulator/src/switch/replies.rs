//! Multipart replies, in one part or more.

use bellrock_openflow::{EncodeError, FromSwitch, List, MultipartReply, Out, ReplyBody, Version};
use bellrock_session as session;

use super::ChannelClose;
use super::misreport::Misreport;
use super::outbox::Outbox;

/// Maximum number of entries in one part. Long entries take more parts.
pub(super) const ENTRIES_PER_PART: usize = 256;

/// The destination of a reply's parts.
pub(super) struct ReplyTarget<'s> {
    pub(super) version: Version,
    pub(super) xid: u32,
    pub(super) scratch: &'s mut Out,
    pub(super) outbox: &'s mut Outbox,
    /// Entries of flow statistics that follow the switch's own.
    pub(super) additional: &'s [u8],
    /// How its flows are misreported.
    pub(super) misreport: Option<Misreport>,
}

impl ReplyTarget<'_> {
    /// Sends a reply in one part.
    pub(super) fn one(&mut self, body: ReplyBody<'_>) -> Result<(), ChannelClose> {
        self.part(MultipartReply::of(body)).map_err(cannot_write)
    }

    /// Sends all entries, in at least one part.
    pub(super) fn all<'a, T>(
        &mut self,
        entries: &'a [T],
        body: impl Fn(List<'a, T>) -> ReplyBody<'a>,
    ) -> Result<(), ChannelClose> {
        self.some(entries, false, &body)
    }

    /// Sends these entries, in at least one part. `has_more`: whether others follow.
    pub(super) fn some<'a, T>(
        &mut self,
        entries: &'a [T],
        more: bool,
        body: &impl Fn(List<'a, T>) -> ReplyBody<'a>,
    ) -> Result<(), ChannelClose> {
        let mut rest = entries;
        loop {
            let (part, later) = rest.split_at(rest.len().min(ENTRIES_PER_PART));
            rest = later;
            self.halves(part, more || !rest.is_empty(), body)?;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends one part, or two halves if it is too long.
    fn halves<'a, T>(
        &mut self,
        entries: &'a [T],
        more: bool,
        body: &impl Fn(List<'a, T>) -> ReplyBody<'a>,
    ) -> Result<(), ChannelClose> {
        match self.part(MultipartReply { more, body: body(List::of(entries)) }) {
            Err(EncodeError::TooLong { .. } | EncodeError::Full) if entries.len() > 1 => {
                let (first, second) = entries.split_at(entries.len() / 2);
                self.halves(first, true, body)?;
                self.halves(second, more, body)
            }
            written => written.map_err(cannot_write),
        }
    }

    /// Sends the last part of flow statistics, with the additional entries, if there are any.
    pub(super) fn flows_beside(&mut self) -> Result<(), ChannelClose> {
        if self.additional.is_empty() {
            return Ok(());
        }
        self.scratch.clear();
        let reply = FromSwitch::MultipartReply(MultipartReply::of(ReplyBody::Flow(List::empty())));
        reply.encode(self.version, self.xid, self.scratch).map_err(cannot_write)?;
        let mut message = self.scratch.as_slice().to_vec();
        message.extend_from_slice(self.additional);
        let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
        if let Some(place) = message.get_mut(2..4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.outbox.append(&message);
        self.scratch.clear();
        Ok(())
    }

    fn part(&mut self, reply: MultipartReply<'_>) -> Result<(), EncodeError> {
        self.scratch.clear();
        FromSwitch::MultipartReply(reply).encode(self.version, self.xid, self.scratch)?;
        self.outbox.append(self.scratch.as_slice());
        self.scratch.clear();
        Ok(())
    }
}

/// A reply that this version cannot express closes the connection: a reply must not be missing.
pub(super) fn cannot_write(error: EncodeError) -> ChannelClose {
    ChannelClose::Session(session::CloseReason::CannotWrite(error))
}
