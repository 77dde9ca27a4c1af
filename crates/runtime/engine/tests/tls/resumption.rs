//! Sessions that are resumed: without a new handshake, but never without the rights.

use std::time::{Duration, SystemTime};

use bellrock_api::{Dpid, Version};
use bellrock_engine::{
    Engine, Identities, IdentityMap, Pins, TlsFiles, TlsServer, UnnamedIdentity,
};
use rustls::version::{TLS12, TLS13};

use super::peer::{Peer, counter, until};
use super::pki::Pki;
use super::tunnel::Tunnel;
use super::{last_refusal, start_tls, start_with_identities, tls_address, up};

/// Connects a switch, and lets it go.
fn come_and_go(engine: &Engine, tunnel: &Tunnel, dpid: u64) {
    drop(up(engine, tunnel, Version::V1_3, dpid));
    until("it is gone", || engine.network().switch(Dpid(dpid)).is_none());
}

#[test]
fn a_switch_that_comes_back_resumes_its_session_and_is_the_same() {
    let pki = Pki::new();
    let (engine, _) = start_tls(2, &pki);
    for (dpid, version) in [(12, &TLS12), (13, &TLS13)] {
        let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[version], "switch"));
        let mut first = up(&engine, &tunnel, Version::V1_3, dpid);
        first.ping(1);
        let identity = |dpid| engine.network().switch(Dpid(dpid)).unwrap().identity.clone();
        let before = identity(dpid).unwrap();
        drop(first);
        until("it is gone", || engine.network().switch(Dpid(dpid)).is_none());
        assert_eq!(tunnel.resumed(), 0);
        up(&engine, &tunnel, Version::V1_3, dpid).ping(2);
        assert_eq!(tunnel.resumed(), 1, "{version:?}");
        let after = identity(dpid).unwrap();
        assert_eq!((&after.name, after.fingerprint), (&before.name, before.fingerprint));
        assert_eq!(after.certificates, before.certificates);
        // Once more: each session gives what resumes the next one.
        until("it is gone", || engine.network().switch(Dpid(dpid)).is_none());
        come_and_go(&engine, &tunnel, dpid);
        assert_eq!(tunnel.resumed(), 2, "{version:?}");
    }
}

#[test]
fn a_revoked_certificate_does_not_come_back_by_resumption() {
    let pki = Pki::new();
    for version in [&TLS12, &TLS13] {
        let (engine, server) = start_tls(1, &pki);
        let tunnel = Tunnel::start(tls_address(&engine), pki.client(&[version], "switch"));
        come_and_go(&engine, &tunnel, 7);
        let files = TlsFiles { revocations: Some(pki.revoke("switch")), ..pki.files() };
        server.replace(TlsServer::read(&files).unwrap());
        Peer::connect(tunnel.address(), Version::V1_3, 7).wait_closed();
        until("the refusal is an event", || last_refusal(&engine).is_some());
        let (_, said) = last_refusal(&engine).unwrap();
        assert!(said.contains("its certificate is revoked"), "{said}");
    }
}

#[test]
fn a_certificate_that_has_expired_meanwhile_does_not_come_back_by_resumption() {
    let pki = Pki::new();
    let (engine, _) = start_tls(1, &pki);
    let mut lifetime = Duration::from_secs(2);
    let (tunnel, end) = loop {
        let end = SystemTime::now() + lifetime;
        let tunnel = Tunnel::start(tls_address(&engine), pki.ending("switch", end));
        let mut peer = Peer::connect(tunnel.address(), Version::V1_3, 7);
        let is_up = || engine.network().switch(Dpid(7)).is_some();
        until("it is up, or refused", || {
            peer.turn();
            is_up() || peer.closed
        });
        // On a busy machine it may come too late.
        if is_up() {
            peer.ping(1);
            break (tunnel, end);
        }
        lifetime *= 2;
    };
    until("it is gone", || engine.network().switch(Dpid(7)).is_none());
    // Certificates end at whole seconds.
    until("its certificate has ended", || SystemTime::now() > end + Duration::from_secs(1));
    Peer::connect(tunnel.address(), Version::V1_3, 7).wait_closed();
    assert_eq!(tunnel.resumed(), 1, "the handshake itself verifies nothing");
    until("the refusal is an event", || last_refusal(&engine).is_some());
    let (_, said) = last_refusal(&engine).unwrap();
    assert!(said.contains("its certificate has expired"), "{said}");
}

#[test]
fn an_identity_that_was_forgotten_does_not_come_back_by_resumption() {
    let pki = Pki::new();
    let server = TlsServer::read(&pki.files()).unwrap();
    let pin = UnnamedIdentity::Pin;
    let identities = Identities::new(&server, pin, IdentityMap::new(), Pins::new(), None);
    let engine = start_with_identities(1, &server, &identities);
    let tunnel = |name| Tunnel::start(tls_address(&engine), pki.client(&[&TLS13], name));
    let (old, new) = (tunnel("old"), tunnel("new"));
    come_and_go(&engine, &old, 7);
    assert!(identities.forget(Dpid(7)).is_some());
    let mut owner = up(&engine, &new, Version::V1_3, 7);
    Peer::connect(old.address(), Version::V1_3, 7).wait_closed();
    assert_eq!((old.resumed(), counter(&engine, "identity_refusals")), (1, 1));
    owner.ping(1);
}
