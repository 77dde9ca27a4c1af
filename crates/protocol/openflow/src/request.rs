//! Requests: the messages that expect a reply, and the replies that end them.

use crate::{FromSwitch, MessageKind, MultipartKind, ToSwitch};

/// The kind of a request, which decides the reply that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// `ECHO_REQUEST`.
    Echo,
    /// `FEATURES_REQUEST`.
    Features,
    /// `GET_CONFIG_REQUEST`.
    Config,
    /// `BARRIER_REQUEST`.
    Barrier,
    /// `QUEUE_GET_CONFIG_REQUEST`.
    QueueConfig,
    /// `ROLE_REQUEST`.
    Role,
    /// `GET_ASYNC_REQUEST`.
    Async,
    /// An experimenter's message that expects a reply. Only its sender knows that it does.
    Experimenter,
    /// `MULTIPART_REQUEST` (1.0: `STATS_REQUEST`) of this kind.
    Multipart(MultipartKind),
}

/// The requests with a reply of one message, and the types of both messages (1.0 §5.3, 1.3.5 §7.3).
const REPLIES: [(MessageKind, RequestKind, MessageKind); 7] = {
    use MessageKind as M;
    [
        (M::EchoRequest, RequestKind::Echo, M::EchoReply),
        (M::FeaturesRequest, RequestKind::Features, M::FeaturesReply),
        (M::GetConfigRequest, RequestKind::Config, M::GetConfigReply),
        (M::BarrierRequest, RequestKind::Barrier, M::BarrierReply),
        (M::QueueGetConfigRequest, RequestKind::QueueConfig, M::QueueGetConfigReply),
        (M::RoleRequest, RequestKind::Role, M::RoleReply),
        (M::GetAsyncRequest, RequestKind::Async, M::GetAsyncReply),
    ]
};

impl RequestKind {
    /// Returns the kind of request of a message; `None` if the message expects no reply. This is
    /// the case for an experimenter's message: its sender knows.
    #[must_use]
    pub fn of(message: &ToSwitch<'_>) -> Option<Self> {
        if let ToSwitch::MultipartRequest(request) = message {
            return Some(RequestKind::Multipart(request.body.kind()));
        }
        let kind = message.kind();
        REPLIES.iter().find(|(request, _, _)| *request == kind).map(|(_, it, _)| *it)
    }

    /// Returns the kind of request of a message whose sender awaits a reply: as
    /// [`RequestKind::of`], and an experimenter's message is a request too. `None`: no switch
    /// answers it.
    #[must_use]
    pub fn awaited_by(message: &ToSwitch<'_>) -> Option<Self> {
        match message {
            ToSwitch::Experimenter(_) => Some(RequestKind::Experimenter),
            message => RequestKind::of(message),
        }
    }

    /// Returns the kind of request that a message answers; `None` if it is no reply. A multipart
    /// reply is not covered: it answers its request with its last part.
    #[must_use]
    pub fn answered_by(message: &FromSwitch<'_>) -> Option<Self> {
        if let FromSwitch::Experimenter(_) = message {
            return Some(RequestKind::Experimenter);
        }
        let kind = message.kind();
        REPLIES.iter().find(|(_, _, reply)| *reply == kind).map(|(_, it, _)| *it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, FlowMod, Match, MultipartRequest, RequestBody, Version};

    #[test]
    fn each_request_of_the_specification_has_one_kind_and_the_reply_of_its_name() {
        let names = |kind: MessageKind| kind.name(Version::V1_3);
        let multipart = MessageKind::MultipartRequest;
        let requests = MessageKind::ALL.iter().copied().filter(|kind| *kind != multipart);
        let expected: Vec<(String, String)> = requests
            .filter_map(|kind| {
                let name = names(kind).strip_suffix("_REQUEST")?;
                Some((names(kind).to_owned(), format!("{name}_REPLY")))
            })
            .collect();
        let known: Vec<(String, String)> = REPLIES
            .iter()
            .map(|(request, _, reply)| (names(*request).to_owned(), names(*reply).to_owned()))
            .collect();
        assert_eq!(known, expected);
        for (at, (_, kind, _)) in REPLIES.iter().enumerate() {
            assert_eq!(REPLIES.iter().position(|(_, other, _)| other == kind), Some(at));
        }
    }

    #[test]
    fn a_message_is_a_request_of_its_kind_or_expects_no_reply() {
        let desc = ToSwitch::MultipartRequest(MultipartRequest::of(RequestBody::Desc));
        let any = Match::any();
        for (message, kind) in [
            (ToSwitch::BarrierRequest, Some(RequestKind::Barrier)),
            (ToSwitch::EchoRequest(Bytes(b"hi")), Some(RequestKind::Echo)),
            (ToSwitch::GetAsyncRequest, Some(RequestKind::Async)),
            (desc, Some(RequestKind::Multipart(MultipartKind::Desc))),
            (ToSwitch::EchoReply(Bytes(b"hi")), None),
            (ToSwitch::FlowMod(FlowMod::delete(&any)), None),
        ] {
            assert_eq!(RequestKind::of(&message), kind, "{message:?}");
            assert_eq!(RequestKind::awaited_by(&message), kind, "{message:?}");
        }
        for (message, kind) in [
            (FromSwitch::BarrierReply, Some(RequestKind::Barrier)),
            (FromSwitch::EchoReply(Bytes(b"hi")), Some(RequestKind::Echo)),
            (FromSwitch::EchoRequest(Bytes(b"hi")), None),
        ] {
            assert_eq!(RequestKind::answered_by(&message), kind, "{message:?}");
        }
    }
}
