//! Which certificate speaks for which datapath ids.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bellrock_api::{Dpid, EndReason, Event, Fingerprint, Version};
use bellrock_engine::{
    Engine, EngineSettings, Identities, IdentityMap, MAX_PINS_PER_KEY, Pin, Pins, TlsFiles,
    TlsServer, UnnamedIdentity,
};
use rustls::ClientConfig;

use super::peer::{PATIENCE, Peer, counter, start, until};
use super::pki::Pki;
use super::tunnel::Tunnel;
use super::{last, start_with_identities, tls_address, up, with_identities};

struct Lab {
    pki: Pki,
    server: TlsServer,
    identities: Identities,
    engine: Engine,
}

impl Lab {
    fn new(unnamed: UnnamedIdentity, map: &[(&str, &[u64])]) -> Lab {
        Lab::with(unnamed, map, |_| {})
    }

    fn with(
        unnamed: UnnamedIdentity,
        map: &[(&str, &[u64])],
        change: impl FnOnce(&mut EngineSettings),
    ) -> Lab {
        let pki = Pki::new();
        let server = TlsServer::read(&pki.files()).unwrap();
        let identities = Identities::new(&server, unnamed, to_map(map), Pins::new(), None);
        let tls = with_identities(&server, &identities);
        let engine = start(1, |settings| {
            settings.tls = Some(tls);
            change(settings);
        });
        Lab { pki, server, identities, engine }
    }

    fn tunnel(&self, client: Arc<ClientConfig>) -> Tunnel {
        Tunnel::start(tls_address(&self.engine), client)
    }

    fn named(&self, name: &str) -> Tunnel {
        self.tunnel(self.pki.client_of(name, &[]))
    }

    fn up(&self, tunnel: &Tunnel, dpid: u64) -> Peer {
        up(&self.engine, tunnel, Version::V1_3, dpid)
    }

    /// Claims a datapath id, which must be refused. Returns the reason of the first refusal: the
    /// same kind of end of one address is an event once a minute.
    fn refused(&self, tunnel: &Tunnel, dpid: u64) -> String {
        self.refused_at(tunnel.address(), dpid)
    }

    fn refused_at(&self, address: std::net::SocketAddr, dpid: u64) -> String {
        let before = counter(&self.engine, "identity_refusals");
        Peer::connect(address, Version::V1_3, dpid).wait_closed();
        until("it is counted", || counter(&self.engine, "identity_refusals") == before + 1);
        let refusal = |event: &Event| matches!(event, Event::ConnectionEnded { why, .. } if why.reason == EndReason::Identity);
        until("it is an event", || last(&self.engine, refusal).is_some());
        last(&self.engine, refusal).unwrap().1
    }
}

fn to_map(map: &[(&str, &[u64])]) -> IdentityMap {
    let entry = |(name, dpids): &(&str, &[u64])| {
        ((*name).into(), dpids.iter().copied().map(Dpid).collect())
    };
    map.iter().map(entry).collect()
}

#[test]
fn a_certificate_speaks_for_the_datapath_ids_that_it_names() {
    let lab = Lab::new(UnnamedIdentity::Strict, &[("mapped", &[0xa1, 0xa4])]);
    // By URIs, also if there is a name.
    let uris = ["of:00000000000000a1", "https://example.org/", "of:00000000000000a2"];
    let by_uri = lab.tunnel(lab.pki.client_of("00000000000000a3", &uris));
    let (mut first, mut second) = (lab.up(&by_uri, 0xa1), lab.up(&by_uri, 0xa2));
    let text = lab.refused(&by_uri, 0xa3);
    assert!(text.contains("is for 00000000000000a1, 00000000000000a2"), "{text}");
    // By its name.
    let by_name = lab.named("00000000000000a3");
    let mut third = lab.up(&by_name, 0xa3);
    // By the configuration.
    let mapped = lab.named("mapped");
    let mut fourth = lab.up(&mapped, 0xa4);
    [&mut first, &mut second, &mut third, &mut fourth].into_iter().for_each(|peer| peer.ping(1));
    let info = lab.engine.network().switch(Dpid(0xa4)).unwrap();
    let identity = info.identity.clone().unwrap();
    assert_eq!((&*identity.name, identity.protocol), ("mapped", "TLS 1.3"));
    assert_eq!(&*identity.cipher, "TLS_AES_256_GCM_SHA384");
    assert!(identity.not_after > 4_000_000_000 && identity.certificates.len() == 1);
}

#[test]
fn a_certificate_without_datapath_ids_is_refused_if_identities_are_strict() {
    let lab = Lab::new(UnnamedIdentity::Strict, &[]);
    assert!(lab.refused(&lab.named("switch"), 0xa1).contains("`tls.identity` is strict"));
    assert!(lab.identities.pins().is_empty());
}

#[test]
fn a_stranger_neither_probes_nor_replaces_a_switch_that_is_connected() {
    let lab = Lab::new(UnnamedIdentity::Pin, &[]);
    let honest = lab.named("honest");
    let mut live = lab.up(&honest, 0xa1);
    // A second bridge of the same machine.
    let mut bridge = lab.up(&honest, 0xa2);
    let pins = lab.identities.pins();
    assert_eq!(pins.keys().copied().collect::<Vec<_>>(), [Dpid(0xa1), Dpid(0xa2)]);
    // Neither by another name, nor by the same name and another key, nor without TLS.
    let text = lab.refused(&lab.named("stranger"), 0xa1);
    assert!(text.contains("another certificate has it: \"honest\""), "{text}");
    lab.refused(&lab.named("honest"), 0xa1);
    lab.refused_at(lab.engine.addresses()[0], 0xa1);
    // Nobody asked the real switch whether it is alive, and it works.
    assert_eq!(counter(&lab.engine, "duplicates_refused"), 0);
    live.ping(1);
    bridge.ping(2);
    // Its own second connection is asked as ever.
    let mut twin = Peer::connect(honest.address(), Version::V1_3, 0xa1);
    until("the second one is refused", || {
        live.turn();
        twin.turn();
        counter(&lab.engine, "duplicates_refused") == 1
    });
    twin.wait_closed();
    live.ping(3);
    // An operator can free a datapath id.
    drop((live, bridge));
    until("they are gone", || lab.engine.network().switches().is_empty());
    let pin = lab.identities.forget(Dpid(0xa1));
    assert_eq!(pin.map(|pin| pin.name), Some("honest".into()));
    assert_eq!(lab.identities.forget(Dpid(0xa1)), None);
    lab.up(&lab.named("stranger"), 0xa1).ping(4);
    lab.refused(&honest, 0xa1);
}

/// Its ports and description are not awaited: a stranger has no time.
#[test]
fn a_stranger_is_refused_as_soon_as_its_datapath_id_is_known() {
    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 0];
    const FEATURES_REQUEST: u8 = 5;
    let lab = Lab::with(UnnamedIdentity::Strict, &[], |settings| {
        settings.worker.session.handshake_timeout = Duration::from_secs(86_400);
    });
    let stranger = lab.named("stranger");
    let mut stream = TcpStream::connect(stranger.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&HELLO).unwrap();
    let mut header = [0; 8];
    while header[1] != FEATURES_REQUEST {
        stream.read_exact(&mut header).unwrap();
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        stream.read_exact(&mut vec![0; length - header.len()]).unwrap();
    }
    let mut features = [0; 32];
    features[..4].copy_from_slice(&[4, FEATURES_REQUEST + 1, 0, 32]);
    features[4..8].copy_from_slice(&header[4..]);
    features[15] = 0xa1;
    stream.write_all(&features).unwrap();
    // It answers nothing.
    until("it is counted", || counter(&lab.engine, "identity_refusals") == 1);
}

#[test]
fn a_plain_connection_does_not_get_the_datapath_id_of_a_certificate() {
    let lab = Lab::new(UnnamedIdentity::Pin, &[]);
    drop(lab.up(&lab.named("honest"), 0xa1));
    let plain = lab.engine.addresses()[0];
    let text = lab.refused_at(plain, 0xa1);
    assert!(text.contains("the connection is plain, and \"honest\" speaks for it"), "{text}");
    Peer::up(&lab.engine, Version::V1_3, 0xa2).ping(1);
}

#[test]
fn pins_are_stored_and_taken_over_and_the_configuration_is_above_them() {
    let pki = Pki::new();
    let server = TlsServer::read(&pki.files()).unwrap();
    let other = Pin { key: Fingerprint([7; 32]), name: "other".into() };
    let pins = Pins::from([(Dpid(0xa1), other)]);
    let changes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&changes);
    let changed = Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let pin = UnnamedIdentity::Pin;
    let identities = Identities::new(&server, pin, to_map(&[]), pins, Some(changed));
    let engine = start_with_identities(1, &server, &identities);
    let lab = Lab { pki, server, identities, engine };
    let tunnel = lab.named("switch");
    assert!(lab.refused(&tunnel, 0xa1).contains("another certificate has it: \"other\""));
    assert_eq!(changes.load(Ordering::Relaxed), 0);
    drop(lab.up(&tunnel, 0xa2));
    assert_eq!(changes.load(Ordering::Relaxed), 1);
    lab.identities.replace(pin, to_map(&[("switch", &[0xa1]), ("third", &[0xa3])]));
    lab.up(&tunnel, 0xa1).ping(1);
    lab.refused(&tunnel, 0xa2);
    lab.refused(&lab.named("unnamed"), 0xa3);
}

#[test]
fn a_datapath_id_configured_for_one_certificate_is_not_pinned_to_another() {
    let lab = Lab::new(UnnamedIdentity::Pin, &[("third", &[0xa3])]);
    let text = lab.refused(&lab.named("unnamed"), 0xa3);
    assert!(text.contains("the configuration gives it to \"third\""), "{text}");
    assert!(lab.identities.pins().is_empty());
}

#[test]
fn a_certificate_cannot_take_all_datapath_ids() {
    let lab = Lab::new(UnnamedIdentity::Pin, &[]);
    let greedy = lab.named("greedy");
    let max = MAX_PINS_PER_KEY as u64;
    (1..=max).for_each(|dpid| drop(lab.up(&greedy, dpid)));
    assert!(lab.refused(&greedy, max + 1).contains("datapath ids, the maximum"));
    lab.up(&lab.named("modest"), max + 1).ping(1);
}

#[test]
fn sessions_of_a_revoked_certificate_are_closed_and_others_go_on() {
    let lab = Lab::new(UnnamedIdentity::Pin, &[]);
    let (bad, good) = (lab.named("stolen"), lab.named("good"));
    let (mut stolen, mut kept) = (lab.up(&bad, 1), lab.up(&good, 2));
    assert_eq!(lab.engine.monitor().close_revoked(&lab.server), 0);
    let files = TlsFiles { revocations: Some(lab.pki.revoke("stolen")), ..lab.pki.files() };
    // In the middle of its handshake of OpenFlow.
    let mut halfway = Peer::connect(bad.address(), Version::V1_3, 3);
    while !halfway.turn() {}
    lab.server.replace(TlsServer::read(&files).unwrap());
    assert_eq!(lab.engine.monitor().close_revoked(&lab.server), 1);
    stolen.wait_closed();
    halfway.wait_closed();
    assert!(lab.engine.network().switch(Dpid(3)).is_none());
    kept.ping(1);
    let down = lab.engine.network().events().latest(usize::MAX);
    let down: Vec<_> = down.iter().map(|record| record.event.to_string()).collect();
    assert!(
        down.iter().any(|event| event.contains("its certificate is revoked by `tls.crl`")),
        "{down:?}"
    );
}
