//! Messages about the connection, the switch, its ports and its queues.

use std::fmt::{self, Display, Formatter};

use super::{Bits, Hex, ITEM, SUBITEM, VersionName, commas, count, dump, lines};
use crate::bytes::escaped;
use crate::message::bitmap_versions;
use crate::{
    AsyncConfig, AsyncMasks, BundleAdd, Bytes, ErrorCode, ErrorMessage, Experimenter, Features,
    Header, Hello, HelloElement, Message, MessageKind, PortDesc, PortFeatures, PortMod, PortReason,
    PortStatus, Property, Queue, QueueConfig, QueueProperty, RoleExtension, RoleKind, RoleMessage,
    RoleReason, RoleStatus, SwitchConfig, TableMod, Version,
};

/// Prints the versions in a hello.
pub(super) fn hello(hello: &Hello<'_>, version: Version, f: &mut Formatter<'_>) -> fmt::Result {
    any_hello(hello, version.wire(), f)
}

/// Prints a hello with this version in its header, supported or not.
pub(super) fn any_hello(hello: &Hello<'_>, version: u8, f: &mut Formatter<'_>) -> fmt::Result {
    let elements = hello.elements(version);
    if elements.iter().next().is_none() {
        return write!(f, "version={}", VersionName(version));
    }
    for (i, element) in elements.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        element.fmt(f)?;
    }
    Ok(())
}

impl Display for HelloElement<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            HelloElement::VersionBitmap(words) => {
                f.write_str("versions=")?;
                commas(bitmap_versions(words).map(VersionName), f)
            }
            HelloElement::Unknown { kind, body } => write!(f, "element({kind},{})", Hex(body)),
        }
    }
}

/// Prints its elements. In a hello before 1.3 these are bytes without a meaning.
impl Display for Hello<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        any_hello(self, Version::HIGHEST.wire(), f)
    }
}

impl<'a> Hello<'a> {
    /// Returns the whole line of a hello from [`Hello::decode_any`]. Its version may be one that a
    /// [`crate::Message`] cannot have.
    #[must_use]
    pub fn display(self, header: Header) -> impl Display + use<'a> {
        fmt::from_fn(move |f| {
            write!(f, "OFPT_HELLO (OF{}) (xid={:#x}): ", VersionName(header.version), header.xid)?;
            any_hello(&self, header.version, f)
        })
    }
}

pub(super) fn echo(payload: &Bytes<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    count(payload.len(), "byte", f)?;
    f.write_str(" of payload")?;
    dump(payload, f)
}

/// Prints the name of the error and its subject: the name of the faulty message, or a text.
pub(super) fn error(
    error: &ErrorMessage<'_>,
    version: Option<Version>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let (code, data) = match error {
        ErrorMessage::Standard { code, data } => (*code, data),
        ErrorMessage::Experimenter { experimenter, kind, data } => {
            write!(f, "experimenter={experimenter:#010x} type={kind} data={}", Hex(data))?;
            return dump(data, f);
        }
    };
    let kind_name = |kind| version.and_then(|version| ErrorCode::kind_name(version, kind));
    match code {
        ErrorCode::Unknown { kind, code } => match kind_name(kind) {
            Some(name) => write!(f, "{name} code {code}")?,
            None => write!(f, "type {kind} code {code}")?,
        },
        code => code.fmt(f)?,
    }
    match (code, Header::read(data)) {
        _ if data.is_empty() => {}
        (ErrorCode::HelloIncompatible | ErrorCode::HelloPermission, _) => {
            f.write_str(" \"")?;
            escaped(data, f)?;
            f.write_str("\"")?;
        }
        (_, Some(header)) => {
            let kind = Version::from_wire(header.version).and_then(|version| {
                Some(MessageKind::from_wire(version, header.kind)?.name(version))
            });
            let of = VersionName(header.version);
            match kind {
                Some(name) => write!(f, " in {name} (OF{of})")?,
                None => write!(f, " in message type {} (OF{of})", header.kind)?,
            }
            write!(f, " (xid={:#x}) of {} bytes", header.xid, header.length)?;
        }
        (_, None) => write!(f, " data={}", Hex(data))?,
    }
    dump(data, f)
}

impl Display for ErrorMessage<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        error(self, None, f)
    }
}

/// Prints a message to a switch, with the one inside if it has one.
pub(super) fn experimenter(
    message: &Experimenter<'_>,
    version: Version,
    xid: u32,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let Some(Ok(add)) = BundleAdd::read(message, version, xid) else { return message.fmt(f) };
    let BundleAdd { bundle, flags, message: inside, properties } = add;
    write!(f, "bundle_add bundle={bundle} flags={flags}")?;
    for Property { kind, content } in properties {
        write!(f, " property({kind},{})", Hex(&content))?;
    }
    write!(f, "{ITEM}{}", Message { version, xid, body: inside.body() })
}

impl Display for Experimenter<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "experimenter={:#010x}", self.experimenter)?;
        if let Some(kind) = self.kind {
            write!(f, " type={kind}")?;
        }
        if let Some(extension) = RoleExtension::read(self) {
            return write!(f, " {extension}");
        }
        write!(f, " data={}", Hex(&self.data))?;
        dump(&self.data, f)
    }
}

impl Display for RoleExtension {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RoleExtension::Request(role) => write!(f, "role_request role={role}"),
            RoleExtension::Reply(role) => write!(f, "role_reply role={role}"),
            RoleExtension::Status(RoleStatus { role, reason }) => {
                write!(f, "role_status {role}, reason={reason}")
            }
        }
    }
}

impl Display for RoleReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RoleReason::MasterRequest => f.write_str("master_request"),
            RoleReason::Config => f.write_str("config"),
            RoleReason::Experimenter => f.write_str("experimenter"),
            RoleReason::Unknown(reason) => reason.fmt(f),
        }
    }
}

/// Actions of 1.0, by number.
const ACTIONS_1_0: &[&str] = &[
    "output",
    "set_vlan_vid",
    "set_vlan_pcp",
    "strip_vlan",
    "set_dl_src",
    "set_dl_dst",
    "set_nw_src",
    "set_nw_dst",
    "set_nw_tos",
    "set_tp_src",
    "set_tp_dst",
    "enqueue",
];

impl Display for Features<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "dpid={:016x}, n_buffers={}", self.datapath_id, self.n_buffers)?;
        write!(f, ", n_tables={}", self.n_tables)?;
        if self.auxiliary_id != 0 {
            write!(f, ", auxiliary_id={}", self.auxiliary_id)?;
        }
        write!(f, ", capabilities={}", self.capabilities)?;
        if self.actions != 0 {
            write!(f, ", actions={}", Bits(self.actions, ACTIONS_1_0))?;
        }
        lines(ITEM, self.ports.iter(), f)
    }
}

impl Display for SwitchConfig {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "flags={}, miss_send_len={}", self.flags, self.miss_send_len)
    }
}

impl Display for RoleKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RoleKind::NoChange => f.write_str("nochange"),
            RoleKind::Equal => f.write_str("equal"),
            RoleKind::Master => f.write_str("master"),
            RoleKind::Slave => f.write_str("slave"),
            RoleKind::Unknown(role) => role.fmt(f),
        }
    }
}

impl Display for RoleMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "role={}, generation_id={:#x}", self.role, self.generation_id)
    }
}

impl Display for AsyncMasks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let packet_in = Bits(self.packet_in, &["no_match", "action", "invalid_ttl"]);
        let port_status = Bits(self.port_status, &["add", "delete", "modify"]);
        let reasons = &["idle_timeout", "hard_timeout", "delete", "group_delete"];
        let flow_removed = Bits(self.flow_removed, reasons);
        write!(f, "packet_in={packet_in}, port_status={port_status}, flow_removed={flow_removed}")
    }
}

impl Display for AsyncConfig {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "master({}), slave({})", self.master, self.slave)
    }
}

impl Display for TableMod {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "table={}, config={:#x}", super::packet::TableName(self.table), self.config)
    }
}

impl Display for PortDesc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}): addr={}", self.port, self.name, self.address)?;
        write!(f, ", config={}, state={}", self.config, self.state)?;
        for (name, features) in [
            ("current", self.current),
            ("advertised", self.advertised),
            ("supported", self.supported),
            ("peer", self.peer),
        ] {
            if features != PortFeatures::empty() {
                write!(f, ", {name}={features}")?;
            }
        }
        if (self.current_speed, self.max_speed) != (0, 0) {
            write!(f, ", speed={} kb/s, max_speed={} kb/s", self.current_speed, self.max_speed)?;
        }
        Ok(())
    }
}

impl Display for PortStatus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.reason {
            PortReason::Add => f.write_str("ADD ")?,
            PortReason::Delete => f.write_str("DELETE ")?,
            PortReason::Modify => f.write_str("MODIFY ")?,
            PortReason::Unknown(reason) => write!(f, "reason {reason} ")?,
        }
        self.desc.fmt(f)
    }
}

impl Display for PortMod {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "port={}, addr={}", self.port, self.address)?;
        write!(f, ", config={}, mask={}", self.config, self.mask)?;
        write!(f, ", advertise={}", self.advertise)
    }
}

impl Display for QueueConfig<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "port={}, ", self.port)?;
        count(self.queues.len(), "queue", f)?;
        lines(ITEM, self.queues.iter(), f)
    }
}

impl Display for Queue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "queue={}", self.queue)?;
        // 1.0 does not report the port.
        if self.port != crate::Port::ANY {
            write!(f, ", port={}", self.port)?;
        }
        lines(SUBITEM, self.properties.iter(), f)
    }
}

/// Prints rates in percent of the port's rate.
impl Display for QueueProperty<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            QueueProperty::MinRate(rate) => rate_of("min_rate", *rate, f),
            QueueProperty::MaxRate(rate) => rate_of("max_rate", *rate, f),
            QueueProperty::Experimenter { experimenter, data } => {
                write!(f, "experimenter({experimenter:#010x},{})", Hex(data))
            }
            // 1.0's `OFPQT_NONE`.
            QueueProperty::Unknown { kind: 0, body } if body.is_empty() => f.write_str("none"),
            QueueProperty::Unknown { kind, body } => write!(f, "property({kind},{})", Hex(body)),
        }
    }
}

/// The maximum rate; higher values mean disabled (1.0 §5.2.2; 1.3.5 §7.2.2).
const FULL_RATE: u16 = 1000;

fn rate_of(name: &str, rate: u16, f: &mut Formatter<'_>) -> fmt::Result {
    if rate > FULL_RATE {
        return write!(f, "{name}=disabled({rate})");
    }
    write!(f, "{name}={}.{}%", rate / 10, rate % 10)
}
