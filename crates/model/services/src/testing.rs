//! A switch for unit tests of handlers: events go in, messages come out.

use std::net::SocketAddr;
use std::time::Duration;

use bellrock_api::openflow::{FixedStr, Out, RequestKind, xid};
use bellrock_api::runtime::Requests;
use bellrock_api::{
    AppId, Cookie, Dpid, Error, MacAddr, Port, PortDesc, Result, Switch, SwitchInfo, Version,
};

/// Bytes that all apps may write in one turn.
pub(crate) const ROOM_BYTES: usize = 1 << 20;

/// A switch with this many ports, up since second 1.
pub(crate) fn info(ports: u32) -> SwitchInfo {
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut info = SwitchInfo::new(Dpid(1), Version::V1_3, peer);
    info.n_tables = 1;
    info.ports = (1..=ports).map(port).collect();
    info.since = Duration::from_secs(1);
    info
}

/// A port that is up.
pub(crate) fn port(number: u32) -> PortDesc {
    PortDesc::new(Port(number), MacAddr::from_u64(number.into()), FixedStr::new("port"))
}

/// Runs one event with space for `room_bytes` of messages. Returns its result and the messages.
pub(crate) fn event<T>(
    info: &SwitchInfo,
    now: Duration,
    room_bytes: usize,
    event: impl FnOnce(&mut Switch<'_>) -> T,
) -> (T, Out) {
    let mut out = Out::with_capacity(room_bytes);
    let (mut xids, app) = (xid::XidSource::default(), AppId::new(0, "service").unwrap());
    let result = event(&mut Switch::new(info, &mut out, &mut xids, &mut Asked, now, app));
    (result, out)
}

/// Allows every request.
struct Asked;

impl Requests for Asked {
    fn expect_answer(&mut self, _: u32, _: RequestKind, _: Duration) -> Result<(), Error> {
        Ok(())
    }

    fn expect_nothing(&mut self, _: u32) {}

    fn expect_removal(&mut self, _: u32, _: Cookie, _: Port, _: Duration) -> Result<(), Error> {
        Ok(())
    }
}
