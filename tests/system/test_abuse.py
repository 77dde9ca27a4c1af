"""Clients of HTTP that are wrong, rude, slow or far too many: the switches do not notice, and each kind is counted."""

import json
import os
import re
import resource
import socket
import ssl
import time
from contextlib import contextmanager

from harness.case import SystemTest
from harness.network import Line, Pings
from harness.openvswitch import command
from harness.waiting import until

HTTP, HTTPS, RYU = ("127.0.0.1", 8080), ("127.0.0.1", 8443), ("127.0.0.1", 8081)
LIMIT_S = 60
CONNECTIONS = 10_000
# Files of this process besides the connections.
OTHER_FILES = 500
SLOW_CLIENTS = 100
# Clients of TLS that stop in the middle of their handshake.
HALF_HANDSHAKES = 50
# Requests of one slow client. Each answer has more than 80 kB.
ASKED = 200
# Pings go on to the end of the abuse.
PING_INTERVAL_S = 0.01
BODY_BYTES = 64 << 20
MAX_GROWTH_BYTES = 64 << 20
WRONG_BODIES = (
    b"", b"{", b"null", b"[1, 2", b"\xff\xfe\x00", b'{"host": 7}', b'{"host": "10.0.0.1", "nonsense": 1}', b"[" * 100_000,
    b'{"host": "10.0.0.0/99"}', b'{"host": "' + b"x" * 100_000 + b'"}',
)
WRONG_PATHS = (
    "/v1/../../etc/passwd", "/v1/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/v1/switches/%00", "/v1/switches/%ff%fe/flows",
    "/v1/static/..%2f..%2fetc%2fpasswd", "/v1/hosts?limit=99999999999999999999", "/v1/hosts?nonsense=1", "/" + "a/" * 10_000,
)


class Abuse(SystemTest):
    """Two hosts that ping all the time, and a static flow, beside clients of every bad kind."""

    time_limit_s = 240
    # Where the clients connect, and by which TLS.
    address, tls = HTTP, None

    def start(self, **http):
        tokens = self.logs / "tokens"
        make = (os.environ["BELLROCK_BIN"], "token", "writer", "--scope", "write", "--file", str(tokens))
        self.token = command(*make).strip()
        http = {"listen": "{}:{}".format(*HTTP), "tokens": str(tokens), **http}
        apps = ["quarantine", "static", {"learning": {"idle_timeout": "600 s"}}]
        controller = self.controller(config={"apps": apps, "http": http})
        network = self.network(Line(switches=2, hosts=(1, 2)), "OpenFlow13")
        controller.ask("static", "add", "wall", "0000000000000001", "--match", "in_port=9", "--actions", "drop")
        until(lambda: network.ping_all() == 0, LIMIT_S, "the hosts know each other")
        return controller, network

    def connect(self):
        stream = socket.create_connection(self.address, LIMIT_S)
        return self.tls.wrap_socket(stream) if self.tls else stream

    def http(self, method, path, body=b"", token=None, headers=""):
        """The status of the answer; `None` if there is none."""
        token = f"Authorization: Bearer {token}\r\n" if token else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}{headers}Content-Length: {len(body)}\r\n\r\n"
        with self.connect() as stream:
            try:
                stream.sendall(head.encode() + body)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                pass  # The answer may be there all the same.
            return self.status(stream)

    @staticmethod
    def status(stream):
        try:
            line = stream.makefile("rb").readline()
        except (ConnectionResetError, ssl.SSLError):
            return None
        return int(line.split()[1]) if line else None

    def counted(self, controller, name, at_least):
        """A counter of the server. Asked by the control socket, which no client of HTTP reaches."""
        until(lambda: controller.ask("counters")["http"][name] >= at_least, LIMIT_S, f"{name} counts {at_least}")

    def junk(self):
        """What is no HTTP, as plain bytes."""
        for junk in (b"\x16\x03\x01\x02\x00\x01", b"\x04\x00\x00\x08\x00\x00\x00\x01", os.urandom(4096), b"GET / HTTP/9.9\r\n\r\n"):
            with socket.create_connection(self.address, LIMIT_S) as stream:
                stream.sendall(junk)
                stream.shutdown(socket.SHUT_WR)
                yield stream

    def wrong_requests(self, controller):
        statuses = [self.http("POST", "/v1/quarantine", body, self.token) for body in WRONG_BODIES]
        statuses += [self.http("GET", path) for path in WRONG_PATHS]
        self.assertTrue(all(status and 400 <= status < 500 for status in statuses), statuses)
        self.assertEqual(self.http("BREW", "/v1/status", token=self.token), 405)
        self.counted(controller, "requests_invalid", len(WRONG_BODIES) + len(WRONG_PATHS) - 2)
        # A name with a slash is no path of a file.
        entry = json.dumps({"switch": "1", "flow": {"match": "any", "actions": "fly"}}).encode()
        self.assertEqual(self.http("PUT", "/v1/static/..%2f..%2ftmp%2fx", entry, self.token), 400)
        if not self.tls:
            for stream in self.junk():
                self.assertIn(self.status(stream), (None, 400))
            self.counted(controller, "connections_malformed", 3)

    def wrong_tokens(self, controller):
        order = json.dumps({"host": "10.0.0.1"}).encode()
        for token in (None, "x", self.token[:-1], self.token + "x", "../tokens", "é" * 1000):
            self.assertEqual(self.http("POST", "/v1/quarantine", order, token), 401, token)
        self.counted(controller, "requests_unauthorized", 6)
        self.assertEqual(self.http("GET", "/v1/status", headers="X-Long: " + "x" * 100_000 + "\r\n"), 431)
        status = [self.http("POST", "/v1/quarantine", order, f"wrong-{n}") for n in range(50)]
        self.assertIn(429, status, "guessing is slowed down")
        self.counted(controller, "requests_over_limit", 1)
        until(lambda: self.http("GET", "/v1/status", token=self.token) == 200, LIMIT_S, "the right token works again")

    def huge_bodies(self, controller):
        self.assertEqual(self.http("POST", "/v1/static", b" " * BODY_BYTES, self.token), 413)
        with self.connect() as stream:
            head = f"POST /v1/static HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\nContent-Length: {10 ** 12}\r\n\r\n"
            stream.sendall(head.encode())
            self.assertEqual(self.status(stream), 413)
        self.counted(controller, "bodies_too_large", 2)

    def slow_clients(self, controller):
        """Half a head, half a body, and answers that nobody takes."""
        order = f"POST /v1/quarantine HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\nContent-Length: 9\r\n\r\n{{"
        # Their answers are more than the sockets of both ends take, which is some 10 MiB at most.
        asking = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * ASKED
        starts = ("GET /v1/status HTTP/1.1\r\nHost: loc", order, asking)
        held = [socket.create_connection(HTTP, LIMIT_S) for _ in range(SLOW_CLIENTS)]
        for number, stream in enumerate(held):
            stream.sendall(starts[number % len(starts)].encode())
        began = time.monotonic()
        self.assertEqual(self.http("GET", "/v1/status"), 200)
        print(f"a request beside {SLOW_CLIENTS} slow clients took {(time.monotonic() - began) * 1000:.0f} ms")
        for counter in ("connections_timed_out", "requests_timed_out", "answers_not_taken"):
            self.counted(controller, counter, SLOW_CLIENTS // len(starts))
        for stream in held:
            stream.close()

    def too_many_connections(self, controller):
        """All are open at the same time, as far as the server lets them."""
        held = []
        for _ in range(CONNECTIONS):
            held.append(socket.create_connection(HTTP, LIMIT_S))
        self.counted(controller, "connections", CONNECTIONS)
        # A connection that is idle for a second gives way to a new one.
        counters = lambda: controller.ask("counters")["http"]
        gone = lambda http: http["connections_refused"] + http["connections_displaced"]
        until(lambda: gone(counters()) >= CONNECTIONS - 300, LIMIT_S, "those above the limit are closed")
        for stream in held:
            stream.close()
        until(lambda: self.http("GET", "/v1/status") == 200, LIMIT_S, "there are places again")

    def wrong_handshakes(self, controller):
        """Plain bytes, handshakes that stop half-way, and versions that are too old."""
        for stream in self.junk():
            # An alert of TLS may come, but no answer of HTTP.
            self.assertNotIn(b"HTTP", stream.makefile("rb").read())
        held = [socket.create_connection(self.address, LIMIT_S) for _ in range(HALF_HANDSHAKES)]
        for stream in held:
            stream.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError)), socket.create_connection(self.address, LIMIT_S) as stream:
            old.wrap_socket(stream)
        self.assertEqual(self.http("GET", "/v1/status", token=self.token), 200)
        self.counted(controller, "handshakes_failed", HALF_HANDSHAKES + 4)
        for stream in held:
            stream.close()

    def wrong_requests_of_ryus_kind(self, controller):
        """The same where there are no tokens."""
        for path in ("/stats/flowentry/add", "/stats/flowentry/delete", "/stats/groupentry/add", "/stats/meterentry/add"):
            statuses = [self.http("POST", path, body) for body in WRONG_BODIES]
            self.assertEqual(set(statuses) - {400}, set(), path)
        statuses = [self.http("GET", path) for path in (*WRONG_PATHS, "/stats/flow/nonsense", "/stats/flow/99999999999999999999999")]
        self.assertTrue(all(status and 400 <= status < 500 for status in statuses), statuses)
        self.assertEqual(self.http("POST", "/stats/flowentry/add", b" " * BODY_BYTES), 413)
        # A page of another site that has made its name point here.
        self.assertEqual(self.http("GET", "/stats/switches", headers="X: y\r\n"), 200)
        foreign = b"GET /stats/switches HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        with self.connect() as stream:
            stream.sendall(foreign)
            self.assertEqual(self.status(stream), 421)
        for stream in self.junk():
            self.assertIn(self.status(stream), (None, 400))
        self.counted(controller, "hosts_refused", 1)

    def wrong_files(self, controller):
        """Files for orders: missing, no text, of another kind, far too large. Nothing changes."""
        before = controller.ask("static", "list")
        content = {"none": None, "bytes": os.urandom(4096), "list": b"- 7\n", "deep": b"[" * 100_000, "large": b"# \n" * (16 << 20)}
        for name, text in content.items():
            file = self.run_dir / name
            if text is not None:
                file.write_bytes(text)
            error = controller.refused("static", "apply", str(file))
            self.assertIn(str(file), error)
        rows = [{**row, "ttl_seconds": None} for row in controller.ask("static", "list")]
        self.assertEqual(rows, [{**row, "ttl_seconds": None} for row in before])

    def test_switches_notice_none_of_it_openflow13(self):
        """No ping is lost, no flow changes, and no switch connects again."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertGreaterEqual(hard, CONNECTIONS + OTHER_FILES, "the limit of open files is too low for this test")
        resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + OTHER_FILES, hard))
        with self.undisturbed(*self.start()) as controller:
            for abuse in (self.wrong_requests, self.wrong_tokens, self.huge_bodies, self.slow_clients, self.too_many_connections,
                          self.wrong_files):
                abuse(controller)

    def test_neither_by_tls_nor_at_ryus_listener_openflow13(self):
        """The same clients by TLS, handshakes of every bad kind, and the listener without tokens."""
        certificate, key = self.logs / "http.pem", self.logs / "http-key.pem"
        command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=controller",
                "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key))
        listen = {"listen": "{}:{}".format(*HTTPS), "certificate": str(certificate), "key": str(key), "ryu": "{}:{}".format(*RYU)}
        with self.undisturbed(*self.start(**listen)) as controller:
            self.address, self.tls = HTTPS, ssl.create_default_context(cafile=certificate)
            self.tls.check_hostname = False
            for abuse in (self.wrong_requests, self.wrong_tokens, self.huge_bodies, self.wrong_handshakes):
                abuse(controller)
            self.address, self.tls = RYU, None
            self.wrong_requests_of_ryus_kind(controller)

    @contextmanager
    def undisturbed(self, controller, network):
        """While the body runs, no ping is lost, no flow changes, no switch connects again, and little memory is taken."""
        rules = {switch: self.rules(network, switch) for switch in ("s1", "s2")}
        pings = Pings(network["h1"], network["h2"], PING_INTERVAL_S)
        self.addCleanup(pings.process.kill)
        began, memory = time.monotonic(), controller.resident_bytes()
        yield controller
        took = time.monotonic() - began
        grown = controller.resident_bytes() - memory
        print(f"after {took:.0f} s the controller has {grown / 2 ** 20:.1f} MiB more")
        self.assertLess(grown, MAX_GROWTH_BYTES)
        pings.go_on(LIMIT_S)
        pings.finish()
        self.assertEqual(pings.lost(), [])
        self.assertEqual(rules, {switch: self.rules(network, switch) for switch in rules})
        self.assertEqual(controller.ask("quarantine", "list")["rows"], [])
        totals = [sum(worker[name] for worker in controller.ask("counters")["workers"]) for name in ("switches_up", "switches_down")]
        self.assertEqual(totals, [2, 0], "no switch has connected again")

    @staticmethod
    def rules(network, switch):
        """The flows of a switch without their counters."""
        changing = r"(duration|n_packets|n_bytes|idle_age)=[^,]*, ?"
        return sorted(re.sub(changing, "", flow) for flow in network.flows(switch))
