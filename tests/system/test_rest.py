"""REST on real switches: its answers fit its own document and those of the command, and its orders change the switches.

The document itself is checked by openapi-spec-validator.
"""

import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.openvswitch import command
from harness.rest import RestClient
from harness.waiting import until

ROOT = Path(__file__).resolve().parents[2]
HTTP = "127.0.0.1:8080"
HTTPS = "0.0.0.0:8443"
LIMIT_S = 30
FEATURES_REQUEST = {"OpenFlow10": "0105000800000000", "OpenFlow13": "0405000800000000"}
NOTICE_LIMIT_S = 30
# Far more than a socket takes, and than a request may have.
LARGE_BODY_BYTES = 20 << 20
# What this controller does not have, and why.
NOT_HERE = {"/v1/circuits": "app_not_running", "/v1/identities": "refused", "/v1/cluster": "no_cluster",
            "/v1/cluster/switches": "no_cluster", "/v1/cluster/configuration": "no_cluster"}
# A flow_mod of 1.3 that adds a flow without instructions: cookie 0x1234, table 0, priority 7, in_port 9.
DROP_FLOW = ("040e004000000000" "0000000000001234" "0000000000000000" "0000" "0000" "0000" "0007" "ffffffff" "ffffffff"
             "ffffffff" "0000" "0000" "0001000c" "8000000400000009" "00000000")


class EventStream:
    """The events after one, as they come."""

    def __init__(self, after=None, token=None):
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://{HTTP}/v1/events", headers=headers)
        self.reply = urllib.request.urlopen(request, timeout=LIMIT_S)
        self.reply.readline()

    def until(self, event):
        """The next event of this kind."""
        while True:
            line = self.reply.readline().decode()
            if not line:
                raise AssertionError(f"the stream has ended before {event}")
            row = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            if row.get("event") == event:
                return row

    def close(self):
        self.reply.close()


class Rest(SystemTest):
    """A controller with quarantine, bandwidth and routing, asked by HTTP."""

    def start(self, version, http=None):
        """A line of two switches, called `left` and `right`, with a host each."""
        self.tokens = self.logs / "tokens"
        self.write = self.token("writer", "write")
        self.read = self.token("reader", "read")
        http = {"listen": HTTP, "tokens": str(self.tokens)} if http is None else http
        names = {"left": "0000000000000001", "right": "0000000000000002"}
        config = {"apps": ["quarantine", "static", "bandwidth", "routing"], "switches": names, "http": http}
        controller = self.controller(config=config)
        self.rest = RestClient(f"http://{HTTP}")
        network = self.network(Line(switches=2, hosts=(1, 2)), version)
        until(lambda: network.ping_all() == 0, NOTICE_LIMIT_S, "the hosts are found")
        return controller, network

    def token(self, name, scope):
        """The text of a new token."""
        return command(os.environ["BELLROCK_BIN"], "token", name, "--scope", scope, "--file", str(self.tokens)).strip()

    def ask(self, path, method="GET", body=None, token=None):
        """The status and the answer, which fits the document."""
        return self.rest.ask(path, method, body, token)

    def test_the_document_is_an_openapi_document(self):
        """By the judgement of another program."""
        self.controller(config={"apps": ["learning"], "http": {"listen": HTTP}})
        file = self.logs / "openapi.json"
        with urllib.request.urlopen(f"http://{HTTP}/v1/openapi.json", timeout=LIMIT_S) as reply:
            document = json.load(reply)
        validator = (command(ROOT / "scripts/tools", "python").strip(), "-m", "openapi_spec_validator", "--schema", "3.1")
        file.write_text(json.dumps(document))
        self.assertIn("OK", command(*validator, file))
        document["paths"]["/v1/status"]["get"]["responses"] = {}
        file.write_text(json.dumps(document))
        with self.assertRaises(Exception, msg="a wrong document is found"):
            command(*validator, file)

    @on_both_versions
    def answers_fit_the_document_and_the_command(self, version):
        """Every path that is read, on a network with hosts, links and flows."""
        controller, network = self.start(version)
        until(lambda: len(controller.ask("links")) == 2, NOTICE_LIMIT_S, "the link is found")
        document = self.rest.document
        status, _ = self.ask("/v1/static/web", "PUT", {"switch": "left", "flow": {"match": "in_port=9", "actions": "drop"}}, self.write)
        self.assertEqual(status, 200)
        seen = 0
        for template, methods in document["paths"].items():
            if "get" not in methods or not template.startswith("/v1/") or template in NOT_HERE:
                continue
            for switch in ("left", "0000000000000002") if "{switch}" in template else ("",):
                path = template.replace("{switch}", switch).replace("{name}", "web")
                if template.endswith("/reply"):
                    path += f"?request={FEATURES_REQUEST[version]}"
                if version == "OpenFlow10" and template.endswith(("/groups", "/meters")):
                    self.assertEqual(self.ask(path)[0], 409, "OpenFlow 1.0 has none")
                    continue
                self.assertEqual(self.ask(path)[0], 200, path)
                seen += 1
        self.assertGreater(seen, 20)
        for path, words in (("/v1/hosts", ["hosts"]), ("/v1/switches", ["switches"]), ("/v1/links", ["links"])):
            rows = self.ask(path)[1]["rows"]
            told = controller.ask(*words)
            same = [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]
            self.assertEqual(same, [{key: value for key, value in row.items() if "seconds" not in key} for row in told], path)
        total = lambda: self.ask("/v1/switches/left/flows?limit=10000")[1]["total"]
        until(lambda: total() == len(network.flows("s1")), LIMIT_S, "as many flows as the switch has")
        for path, reason in NOT_HERE.items():
            self.assertEqual(self.ask(path)[1]["type"], f"urn:bellrock:{reason}")

    @on_both_versions
    def a_host_is_blocked_and_let_back(self, version):
        """By a token that may; the log has its name."""
        controller, network = self.start(version)
        host = network["h2"].IP()
        order = {"host": host}
        for token, status in ((None, 401), ("bellrock_00", 401), (self.read, 403)):
            self.assertEqual(self.ask("/v1/quarantine", "POST", order, token)[0], status)
        self.assertEqual(network.ping_all(), 0, "nothing has changed")
        none = {"gaps": [], "more_gaps": 0, "at_other_nodes": 0}
        self.assertEqual(self.ask("/v1/quarantine", "POST", order, self.write), (200, {"blocked": host} | none))
        until(lambda: network.ping_all() == 100, NOTICE_LIMIT_S, "it is blocked")
        self.assertEqual(self.ask(f"/v1/quarantine/{host}", "DELETE", token=self.write), (200, {"let_back": host} | none))
        until(lambda: network.ping_all() == 0, NOTICE_LIMIT_S, "it is let back")
        counters = self.ask("/v1/counters")[1]["http"]
        self.assertEqual((counters["changes"], counters["requests_unauthorized"], counters["requests_forbidden"]), (2, 2, 1))
        self.assertIn(f'token writer ordered block {{"host":"{host}"}}: done', controller.text())

    @on_both_versions
    def a_stream_has_the_cut_of_a_link_and_is_resumed(self, version):
        """After the last event that came, nothing is repeated and nothing is left out."""
        controller, network = self.start(version)
        until(lambda: len(controller.ask("links")) == 2, NOTICE_LIMIT_S, "the link is found")
        stream = EventStream()
        network.net.configLinkStatus("s1", "s2", "down")
        first = stream.until("link_down")
        stream.close()
        network.net.configLinkStatus("s1", "s2", "up")
        resumed = EventStream(first["id"])
        self.addCleanup(resumed.close)
        seen = [first["id"], resumed.until("link_down")["id"], resumed.until("link_up")["id"], resumed.until("link_up")["id"]]
        listed = [row["id"] for row in controller.ask("events") if row["event"] in ("link_down", "link_up")]
        self.assertEqual(seen, listed[-4:])

    def test_clients_learn_why_a_body_is_refused_openflow13(self):
        """Python sends a whole body before it reads the answer, and curl waits for a word first."""
        self.start("OpenFlow13")
        body = b" " * LARGE_BODY_BYTES
        for token, status in ((self.write, 413), (self.read, 403), ("bellrock_00", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"http://{HTTP}/v1/static", body, headers)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=LIMIT_S)
            problem = json.load(refused.exception)
            self.assertEqual((refused.exception.code, problem["status"]), (status, status))
        file = self.logs / "body"
        file.write_bytes(body)
        for expect in ("Expect: 100-continue", "Expect:"):
            answer = command("curl", "-s", "--data-binary", f"@{file}", "-H", expect, "-H", f"Authorization: Bearer {self.write}",
                             f"http://{HTTP}/v1/static")
            self.assertEqual(json.loads(answer)["type"], "urn:bellrock:too_large", expect)

    def test_a_stream_ends_with_its_token_openflow13(self):
        """Without another request, and before the next event."""
        self.start("OpenFlow13")
        stream = EventStream(token=self.read)
        self.addCleanup(stream.close)
        lines = self.tokens.read_text().splitlines(keepends=True)
        self.tokens.write_text("".join(line for line in lines if not line.startswith("reader ")))
        with self.assertRaises(AssertionError):
            stream.until("nothing")

    def test_messages_and_reloads_openflow13(self):
        """Messages go to a switch as they are, and the configuration is read again."""
        controller, network = self.start("OpenFlow13")
        path, order = "/v1/switches/left/messages", {"messages": [DROP_FLOW]}
        self.assertEqual(self.ask(path, "POST", order, self.read)[0], 403)
        status, answer = self.ask(path, "POST", order, self.write)
        self.assertEqual(status, 200, answer)
        until(lambda: "cookie=0x1234" in " ".join(network.flows("s1")), LIMIT_S, "the flow is in the switch")
        self.assertEqual(self.ask(path, "POST", {"messages": ["04"]}, self.write)[0], 400)
        self.assertEqual(self.ask("/v1/reload", "POST", {}, self.read)[0], 403)
        config = json.loads(controller.config_file.read_text())
        controller.write_config(config | {"switches": {"left": "0000000000000001", "third": "0000000000000003"}})
        status, answer = self.ask("/v1/reload", "POST", {}, self.write)
        self.assertEqual((status, answer["applied"]), (200, True), answer)
        self.assertEqual([row["name"] for row in self.ask("/v1/status")[1]["missing_switches"]], ["third"])
        controller.config_file.write_text("apps: [nothing]")
        status, problem = self.ask("/v1/reload", "POST", {}, self.write)
        self.assertEqual((status, problem["type"]), (400, "urn:bellrock:invalid"), problem)

    def test_bandwidth_is_reserved_and_released_openflow13(self):
        """The meter comes and goes. A reload changes what lines carry."""
        controller, network = self.start("OpenFlow13")
        order = {"from": network["h1"].IP(), "to": network["h2"].IP(), "rate_kbps": 2000}
        status, row = self.ask("/v1/reservations", "POST", order, self.write)
        self.assertEqual((status, row["state"]), (201, "installed"), row)
        self.assertEqual([port.partition(":")[0] for port in row["path"]], ["left", "right"])
        meters = ["ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1"]
        self.assertIn("rate=2000", command(*meters))
        status, problem = self.ask("/v1/reservations", "POST", order, self.write)
        self.assertEqual((status, problem["type"]), (409, "urn:bellrock:refused"), problem)
        self.assertEqual(self.ask(f"/v1/reservations/{row['id']}", "DELETE", token=self.write)[0], 200)
        until(lambda: "rate=2000" not in command(*meters), LIMIT_S, "the meter is gone")
        config = json.loads(controller.config_file.read_text())
        apps = [{"bandwidth": {"rate": "1M"}} if app == "bandwidth" else app for app in config["apps"]]
        controller.write_config(config | {"apps": apps})
        self.assertTrue(self.ask("/v1/reload", "POST", {}, self.write)[1]["applied"])
        status, problem = self.ask("/v1/reservations", "POST", order, self.write)
        self.assertEqual(status, 409, problem)
        self.assertIn("carries 1M, less than 2M", problem["detail"])

    def test_by_tls_everything_needs_a_token_openflow13(self):
        """With a certificate that openssl made."""
        certificate, key = self.logs / "http.pem", self.logs / "http-key.pem"
        command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=controller",
                "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key))
        http = {"listen": HTTPS, "certificate": str(certificate), "key": str(key), "tokens": str(self.logs / "tokens")}
        self.start("OpenFlow13", http)
        trust = ssl.create_default_context(cafile=certificate)
        self.rest = RestClient("https://127.0.0.1:8443", tls=trust)
        self.assertEqual(self.ask("/v1/status")[0], 401)
        self.rest = RestClient("https://127.0.0.1:8443", self.read, trust)
        self.assertEqual(self.ask("/readyz")[0], 200)
        self.assertEqual(self.ask("/v1/status")[1]["switches"], 2)
        later = self.token("later", "read")
        until(lambda: self.ask("/v1/status", token=later)[0] == 200, NOTICE_LIMIT_S, "a new token works")
