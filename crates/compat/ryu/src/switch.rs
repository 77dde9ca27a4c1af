//! A switch that a request names, and messages to it.

use axum::http::StatusCode;
use bellrock_api::Dpid;
use bellrock_api::openflow::{
    EncodeError, FromSwitch, List, MAX_MESSAGE_LEN, MultipartKind, MultipartRequest, Out, PortDesc,
    ReplyBody, RequestBody, ToSwitch, Version,
};
use bellrock_query::{
    AskSwitch, ListSwitches, MessageBytes, Operator, Page, SwitchRef, SwitchReply,
};

use super::Failure;
use super::numbers::integer_of;

/// Transaction id of messages; the controller replaces it.
const XID: u32 = 0;

/// A switch that answers requests.
#[derive(Clone, Copy)]
pub(super) struct Switch<'o> {
    operator: &'o dyn Operator,
    pub(super) dpid: Dpid,
    pub(super) version: Version,
}

impl<'o> Switch<'o> {
    /// The switch with the number in a text.
    pub(super) fn find(operator: &'o dyn Operator, text: &str) -> Result<Self, Failure> {
        let number = integer_of(text).ok_or_else(|| {
            Failure::wrong(
                "dpid",
                format!("{text:?} is no datapath id; give a number, such as 1 or 0x1f"),
            )
        })?;
        let dpid = Dpid(number);
        let query = ListSwitches { switch: Some(SwitchRef::Dpid(dpid)), page: Page::default() };
        let rows = operator.ask(query)?.rows;
        let up = rows.iter().find(|row| row.is_reachable());
        let missing =
            || Failure::new(StatusCode::NOT_FOUND, format!("switch {number} is not connected"));
        Ok(Switch { operator, dpid, version: up.ok_or_else(missing)?.version })
    }

    /// Sends a request, and passes the multipart reply to `show`. `show` returns `None` for a reply
    /// of another kind.
    pub(super) fn multipart<T>(
        &self,
        body: RequestBody<'_>,
        show: impl FnOnce(ReplyBody<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let kind = body.kind();
        let request = ToSwitch::MultipartRequest(MultipartRequest::of(body));
        let reply = self.ask(&request)?;
        let number =
            reply.multipart.and_then(|number| MultipartKind::from_wire(self.version, number));
        let decoded = ReplyBody::decode_parts(self.version, number.unwrap_or(kind), &reply.bytes.0);
        decoded.ok().and_then(show).ok_or_else(other_reply)
    }

    /// The same for a reply that is one message.
    pub(super) fn message<T>(
        &self,
        request: &ToSwitch<'_>,
        show: impl FnOnce(FromSwitch<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let reply = self.ask(request)?;
        let decoded = FromSwitch::decode(&reply.bytes.0);
        decoded.ok().and_then(|message| show(message.body)).ok_or_else(other_reply)
    }

    /// Asks for the ports, and passes them to `show`.
    pub(super) fn ports<T>(
        &self,
        show: impl FnOnce(List<'_, PortDesc>) -> T,
    ) -> Result<T, Failure> {
        if !self.version.has_oxm() {
            return self.message(&ToSwitch::FeaturesRequest, |reply| match reply {
                FromSwitch::FeaturesReply(features) => Some(show(features.ports)),
                _ => None,
            });
        }
        self.multipart(RequestBody::PortDesc, |reply| match reply {
            ReplyBody::PortDesc(ports) => Some(show(ports)),
            _ => None,
        })
    }

    fn ask(&self, request: &ToSwitch<'_>) -> Result<SwitchReply, Failure> {
        let request = self.encode(request)?;
        Ok(self.operator.ask(AskSwitch { switch: SwitchRef::Dpid(self.dpid), request })?)
    }

    /// The bytes of a message to the switch.
    pub(super) fn encode(&self, message: &ToSwitch<'_>) -> Result<MessageBytes, Failure> {
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        match message.encode(self.version, XID, &mut out) {
            Ok(()) => Ok(MessageBytes(out.as_slice().to_vec())),
            Err(EncodeError::Unsupported { what, .. }) => Err(Failure::unsupported(what)),
            Err(error) => Err(Failure::new(StatusCode::BAD_REQUEST, error.to_string())),
        }
    }
}

fn other_reply() -> Failure {
    Failure::new(StatusCode::BAD_GATEWAY, "the switch answered something else")
}
