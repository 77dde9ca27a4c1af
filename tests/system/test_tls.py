"""TLS towards switches: Open vSwitch with certificates of ovs-pki, certificates found in practice, identities."""

import os
import socket
import ssl
import subprocess
import time

import test_reach
import test_restart
from harness.case import SystemTest, on_both_versions
from harness.network import Line, Pings
from harness.pki import run
from harness.waiting import until

LIMIT_S = 30
PORT = 6653
# An address without TLS beside it.
PLAIN_PORT = 6654
REFUSED = "refused"
PING_INTERVAL_S = 0.05


class ReachByTls(test_reach.Reach):
    """The tests of plain connections, by TLS. tshark decrypts what it checks."""

    secure = True


class RestartByTls(test_restart.Restart):
    """The controller stops and starts; switches connect anew by TLS."""

    secure = True


class Switch:
    """The beginning of a switch: a TLS session, and what became of it."""

    def __init__(self, pki, pair=None, authority=None, **versions):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Weak keys and old versions are for the controller to refuse.
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.check_hostname = False
        context.load_verify_locations(authority or pki.controller_authority)
        for name, version in versions.items():
            setattr(context, name, version)
        if pair:
            context.load_cert_chain(*pair)
        self.context = context

    def connect(self, port=PORT):
        """Returns the open session after the first byte of the controller's hello, or None if it was refused."""
        raw = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        try:
            session = self.context.wrap_socket(raw)
            session.sendall(bytes([4, 0, 0, 8, 0, 0, 0, 0]))
            return session if session.recv(1) else None
        except (ssl.SSLError, ConnectionError):
            raw.close()
            return None


class Certificates(SystemTest):
    """Certificates found in practice. Each refusal has its reason in the log."""

    secure = True

    def setUp(self):
        super().setUp()
        self.run = self.controller(flags=["--listen", f"127.0.0.1:{PLAIN_PORT}"])

    def refused(self, reason, pair=None, **versions):
        before = self.run.text().count(REFUSED)
        switch = Switch(self.pki, pair, **versions)
        self.assertIsNone(switch.connect(), reason)
        until(lambda: self.run.text().count(REFUSED) > before, LIMIT_S, f"a line about the refusal: {reason}")
        last = [line for line in self.run.text().splitlines() if REFUSED in line][-1]
        self.assertIn(reason, last)

    def accepted(self, pair, **versions):
        session = Switch(self.pki, pair, **versions).connect()
        self.assertIsNotNone(session, self.run.text())
        session.close()

    def test_accepted(self):
        """Of ovs-pki, of several kinds of keys, and with each version of TLS."""
        made = self.pki.make("another")
        self.accepted(made)
        self.accepted(made, maximum_version=ssl.TLSVersion.TLSv1_2)
        self.accepted(self.pki.make("00000000000000a1", unique=False))
        self.accepted(self.pki.sign("rsa-4096", "rsa:4096"))
        self.accepted(self.pki.sign("p-256", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"))
        self.accepted(self.pki.sign("p-384", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"))
        self.accepted(self.pki.sign("ed25519", "ed25519"))
        self.accepted(self.pki.sign("for-clients", extensions="extendedKeyUsage=clientAuth"))

    def test_version_1(self):
        """X.509 version 1, as ovs-pki made it before 2018."""
        self.refused("X.509 version 1", self.pki.sign("version-1", extensions=None))

    def test_small_rsa(self):
        self.refused("RSA below 2,048 bits", self.pki.sign("small", "rsa:1024"))

    def test_p_521(self):
        self.refused("a key of a kind that is accepted", self.pki.sign("p-521", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"))

    def test_sha_1(self):
        self.refused("such as SHA-1", self.pki.sign("sha-1", digest="-sha1"))

    def test_expired(self):
        self.refused("has expired", self.pki.sign("expired", period=("20200101000000Z", "20210101000000Z")))

    def test_not_yet_valid(self):
        self.refused("is not valid yet", self.pki.sign("early", period=("20900101000000Z", "20910101000000Z")))

    def test_wrong_usage(self):
        self.refused("is not for clients", self.pki.sign("server", extensions="extendedKeyUsage=serverAuth"))

    def test_an_authority(self):
        """A certificate that may sign others is none of a switch."""
        self.refused("one of an authority", self.pki.sign("authority", extensions="basicConstraints=critical,CA:TRUE"))

    def test_wrong_authority(self):
        """The authority of controllers does not speak for switches."""
        self.refused("no authority of `tls.ca`", self.pki.make("stranger", "controller"))

    def test_no_certificate(self):
        self.refused("it shows no certificate")

    def test_tls_1_1(self):
        self.refused("no TLS newer than 1.1", self.pki.make("old"), minimum_version=ssl.TLSVersion.TLSv1_1,
                     maximum_version=ssl.TLSVersion.TLSv1_1)

    def test_plain_openflow(self):
        """A switch without TLS at an address with TLS, and the reverse."""
        with socket.create_connection(("127.0.0.1", PORT), timeout=LIMIT_S) as plain:
            plain.sendall(bytes([4, 0, 0, 8, 0, 0, 0, 0]))
            self.assertEqual(plain.recv(1), b"")
        until(lambda: "it is not TLS, but OpenFlow without it" in self.run.text(), LIMIT_S, "the reason")
        self.assertIsNone(Switch(self.pki, self.pki.make("eager")).connect(PLAIN_PORT))
        until(lambda: "does not speak OpenFlow" in self.run.text() and "but TLS" in self.run.text(), LIMIT_S, "the reason")


class Identities(SystemTest):
    """One certificate of an Open vSwitch speaks for its bridges, and nobody else does."""

    secure = True

    def start(self, version, topology=None, **tls):
        config = {"tls": self.pki.settings(**tls), "apps": ["learning"]}
        controller = self.controller(config=config)
        return controller, self.network(topology or Line(switches=2, hosts=(1, 2)), version)

    @on_both_versions
    def pinned(self, version):
        """A certificate of ovs-pki is pinned, shown, and kept over a restart; strangers get nothing."""
        pins = self.run_dir / "identities"
        controller, network = self.start(version, pins=str(pins))
        self.assertEqual(network.ping_all(), 0)
        rows = controller.ask("switches")
        self.assertEqual([row["identity"]["protocol"] for row in rows], ["TLS 1.3", "TLS 1.3"])
        self.assertTrue(all(row["identity"]["name"].startswith("switch id:") for row in rows), rows)
        until(lambda: pins.read_text().count("sha256:") == 2, LIMIT_S, "two pins in the file")
        self.assertEqual(controller.stop(), 0)
        controller.start()
        network.await_connected()
        # Another switch with a good certificate, but not that of this bridge.
        stranger = Switch(self.pki, self.pki.make("stranger")).connect()
        self.claim(stranger, 1)
        until(lambda: "may not speak for datapath id 0000000000000001" in controller.text(), LIMIT_S, "the reason")
        while stranger.recv(1 << 16):
            pass
        self.assertEqual(network.ping_all(), 0, "percent lost beside the stranger")

        # Who has it is listed, and an operator can free it.
        rows = controller.ask("identities", "list")
        self.assertEqual([row["dpid"] for row in rows], ["0000000000000001", "0000000000000002"])
        self.assertTrue(controller.ask("identities", "forget", "1")["name"].startswith("switch id:"))
        self.assertIn("has no certificate", controller.refused("identities", "forget", "1"))

    def test_bootstrap(self):
        """Open vSwitch takes the authority of controllers from the first connection."""
        self.ovs.trust(*self.pki.make("bootstrapped"), self.run_dir / "taken-ca.pem", bootstrap=True)
        _, network = self.start("OpenFlow13", Line())
        self.assertEqual(network.ping_all(), 0)
        taken = self.pki.openssl("x509", "-in", str(self.run_dir / "taken-ca.pem"), "-fingerprint", "-noout")
        own = self.pki.openssl("x509", "-in", str(self.pki.controller_authority), "-fingerprint", "-noout")
        self.assertEqual(taken, own)

    def test_reload(self):
        """New files are for new connections; those of a revoked certificate are closed, others lose nothing."""
        certificate, key = self.pki.make("00000000000000a1", unique=False)
        config = {"listen": f"tls:127.0.0.1:{PORT}", "tls": self.pki.settings(), "apps": ["learning"]}
        controller = self.controller(config=config)
        network = self.network(Line(), "OpenFlow13")
        until(lambda: network.unreachable() == [], LIMIT_S, "the hosts reach each other")
        pings = Pings(network["h1"], network["h2"], PING_INTERVAL_S)
        revoked = Switch(self.pki, (certificate, key)).connect()
        self.claim(revoked, 0xA1)
        until(lambda: len(controller.ask("switches")) == 2, LIMIT_S, "the second switch")
        renewed = self.pki.sign("renewed", authority=self.pki.directory / "pki/controllerca")
        config["tls"] |= {"certificate": str(renewed[0]), "key": str(renewed[1]), "crl": str(self.pki.revoke(certificate))}
        controller.write_config(config)
        changed = {change["setting"] for change in controller.ask("reload")["changes"]}
        self.assertEqual(changed, {"tls.certificate", "tls.key", "tls.crl"})
        while revoked.recv(1 << 16):
            pass
        until(lambda: len(controller.ask("switches")) == 1, LIMIT_S, "the revoked switch is gone")
        until(lambda: "its certificate is revoked by `tls.crl`" in controller.text(), LIMIT_S, "the log says why")
        self.assertIsNone(Switch(self.pki, (certificate, key)).connect(), "revoked")
        shown = Switch(self.pki, self.pki.make("next")).connect().getpeercert()
        self.assertIn((("commonName", "renewed"),), shown["subject"])
        # A wrong file changes nothing.
        controller.write_config(config | {"tls": config["tls"] | {"key": str(key)}})
        self.assertIn("it cannot be used with its key", controller.refused("reload"))
        pings.finish()
        self.assertEqual(pings.lost(), [])

    def test_emulated_switches(self):
        """`bellrock emulate` speaks TLS too: the same certificate for all its switches."""
        controller = self.controller(config={"tls": self.pki.settings(), "apps": ["learning"]})
        certificate, key = self.pki.make("emulated")
        for version in ("1.0", "1.3"):
            emulate = [os.environ["BELLROCK_BIN"], "emulate", "--topology", "tree:3,3", "--version", version,
                       "--tls-certificate", str(certificate), "--tls-key", str(key)]
            printed = run(*emulate, "--tls-ca", str(self.pki.controller_authority), "pingall", "--pairs", "100", cwd=self.run_dir)
            self.assertIn("100 of 100 pairs answered", printed)
            pins = controller.ask("identities", "list")
            self.assertEqual({row["name"].partition(" ")[0] for row in pins}, {"emulated"})
        # The authority of switches does not speak for controllers.
        wrong = subprocess.run([*emulate, "--tls-ca", str(self.pki.switch_authority), "--wait", "2s", "pingall"],
                               capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("invalid peer certificate: UnknownIssuer", wrong.stderr)
        until(lambda: "the switch does not trust the controller's certificate" in controller.text(), LIMIT_S, "the reason")

    def test_own_authority(self):
        """`bellrock pki` makes what Open vSwitch and the controller need, and a bridge of another number is refused."""
        place = self.run_dir / "own"
        pki = [os.environ["BELLROCK_BIN"], "pki", "--dir", str(place)]
        run(*pki, "init", cwd=self.run_dir)
        run(*pki, "controller", cwd=self.run_dir)
        printed = run(*pki, "switch", "access-1", "--dpid", "1", cwd=self.run_dir)
        self.assertIn(f"ovs-vsctl set-ssl {place}/access-1-key.pem", printed)
        for name in ("ca-key.pem", "controller-key.pem", "access-1-key.pem"):
            self.assertEqual((place / name).stat().st_mode & 0o777, 0o600, name)
        again = subprocess.run([*pki, "init"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertIn("is there already", again.stderr)
        text = self.pki.openssl("verify", "-CAfile", str(place / "ca-cert.pem"), "-purpose", "sslclient",
                                str(place / "access-1-cert.pem"))
        self.assertIn("OK", text)
        self.ovs.trust(place / "access-1-cert.pem", place / "access-1-key.pem", place / "ca-cert.pem")
        tls = {"certificate": str(place / "controller-cert.pem"), "key": str(place / "controller-key.pem"),
               "ca": str(place / "ca-cert.pem"), "identity": "strict"}
        self.secure = False
        controller = self.controller(config={"tls": tls, "apps": ["learning"]}, listen=f"tls:127.0.0.1:{PORT}")
        network = self.network(Line(switches=2, hosts=(1, 1)), "OpenFlow13", protocol="ssl", connect=False)
        until(lambda: controller.ask("switches"), LIMIT_S, "s1 is connected")
        refusal = "may not speak for datapath id 0000000000000002: its certificate"
        until(lambda: refusal in controller.text(), LIMIT_S, "s2 has no certificate of its own")
        self.assertEqual([row["dpid"] for row in controller.ask("switches")], ["0000000000000001"])
        self.assertEqual(network.unreachable([("h1", "h2")]), [])
        run(*pki, "revoke", str(place / "access-1-cert.pem"), cwd=self.run_dir)
        tls["crl"] = str(place / "crl.pem")
        controller.write_config({"tls": tls, "apps": ["learning"]})
        controller.ask("reload")
        until(lambda: not controller.ask("switches"), LIMIT_S, "the revoked switch is gone")

    def claim(self, session, dpid):
        """Plays a switch of 1.3 until its datapath id is known."""
        session.settimeout(LIMIT_S)
        pending = b"\4"
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            pending += session.recv(1 << 16)
            while len(pending) >= 8 and len(pending) >= int.from_bytes(pending[2:4], "big"):
                kind, length, xid = pending[1], int.from_bytes(pending[2:4], "big"), pending[4:8]
                pending = pending[length:]
                if kind == 5:  # FEATURES_REQUEST
                    body = dpid.to_bytes(8, "big") + bytes(16)
                    session.sendall(bytes([4, 6, 0, 8 + len(body)]) + xid + body)
                    return
        raise AssertionError("the controller did not ask for the datapath id")
