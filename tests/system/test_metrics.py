"""Metrics: Debian's Prometheus scrapes a real run, and every query of the dashboards has an answer."""

import json
import math
import os
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

HTTP = "127.0.0.1:8080"
PROMETHEUS = "127.0.0.1:9090"
LIMIT_S = 30
# Prometheus scrapes every second, and a rate needs two scrapes.
QUERY_LIMIT_S = 60
# Times that the network is stirred, to give each histogram something to count.
MAX_STIRRED = 50
PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
RULES = PACKAGING / "prometheus/bellrock.rules.yml"
VARIABLES = {"$dp_name": "left", "$port": ".*", "$__rate_interval": "20s"}


def fetch(url):
    with urllib.request.urlopen(url, timeout=LIMIT_S) as reply:
        return reply.read().decode()


class Prometheus:
    """A server of its own, with its data in the folder of the test. `scrape`: more of its way to the controller."""

    def __init__(self, directory, target=HTTP, **scrape):
        self.directory = directory
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "bellrock", "static_configs": [{"targets": [target]}], **scrape}],
        }))
        self.command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}",
                        f"--web.listen-address={PROMETHEUS}"]

    def start(self):
        with open(self.directory / "prometheus.log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, path, **arguments):
        """The data of its answer. `None`: it does not answer yet."""
        try:
            answer = json.loads(fetch(f"http://{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"))
        except (ConnectionError, urllib.error.URLError):
            return None
        return answer["data"]

    def query(self, expression):
        """Labels and values that an expression has now. What is no number, such as a quantile of nothing, is no value."""
        data = self.ask("query", query=expression)
        rows = [(row["metric"], float(row["value"][1])) for row in data["result"]] if data else []
        return [(labels, value) for labels, value in rows if not math.isnan(value)]

    def alerts(self, name):
        """The labels of the alerts with this name, also of those that wait for their time."""
        data = self.ask("alerts")
        return [alert["labels"] for alert in data["alerts"] if alert["labels"]["alertname"] == name] if data else []


def queries(dashboard):
    """The queries of a dashboard, with values for its variables."""
    panels = json.loads((PACKAGING / "grafana" / dashboard).read_text())["panels"]
    for panel in panels:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            yield panel["title"], expression


class Metrics(SystemTest):
    """A controller that is scraped, with a switch that is missing, and one without a name."""

    time_limit_s = 240

    def start(self, version):
        switches = {"left": "0000000000000001", "right": "0000000000000002", "gone": "0000000000000009"}
        http = {"listen": HTTP, "poll_ports": "1 s", "poll_flows": "1 s"}
        circuits = {"c1": ["left:7", "right:7"]}
        apps = ["quarantine", {"bandwidth": {"queues": {"gold": 1}}}, {"provisioning": {"circuits": circuits}}, "learning"]
        self.config = {"apps": apps, "switches": switches, "http": http}
        controller = self.controller(config=self.config)
        network = self.network(Line(switches=3, hosts=(1, 2)), version)
        # The ends of the circuit.
        for switch in ("s1", "s2"):
            end = f"{switch}-end"
            command("ovs-vsctl", "add-port", switch, end, "--", "set", "interface", end, "type=internal", "ofport_request=7")
            command("ip", "link", "set", end, "up")
        return controller, network

    def stir(self, controller, network):
        """Lets the network and an operator do what the histograms count: a new host, a block, a reservation, a lost link,
        and a circuit that gets another VLAN at an end, and so another path."""
        self.stirred += 1
        host = network["h1"]
        host.cmd(f"ip link set {host.defaultIntf()} address 02:00:00:00:{self.stirred >> 8:02x}:{self.stirred & 255:02x}")
        host.cmd("ping -c 1 -W 1 10.0.0.2")
        controller.ask("quarantine", "add", "10.99.0.2")
        controller.ask("quarantine", "remove", "10.99.0.2")
        # By a queue, since 1.0 has no meters. A switch takes flows into a queue that is not set up.
        reserved = controller.ask("reserve", "10.0.0.1", "10.0.0.2", "1M", "--queue", "gold")
        controller.ask("release", str(reserved["id"]))
        network.net.configLinkStatus("s1", "s2", "down")
        until(lambda: len(controller.ask("links")) == 2, LIMIT_S, "the link is lost")
        network.net.configLinkStatus("s1", "s2", "up")
        until(lambda: [row["state"] for row in controller.ask("circuits")] == ["up"], LIMIT_S, "the circuit is up again")
        circuits = self.config["apps"][2]["provisioning"]["circuits"]
        circuits["c1"][0] = "left:7:5" if self.stirred % 2 else "left:7"
        controller.write_config(self.config)
        controller.ask("reload")
        until(lambda: [row["state"] for row in controller.ask("circuits")] == ["up"], LIMIT_S, "the changed circuit is up")
        # A rate needs two scrapes.
        time.sleep(1)

    def assert_clean(self, text):
        """What promtool says of the metrics: nothing."""
        check = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
        self.assertEqual((check.returncode, check.stdout, check.stderr), (0, "", ""))

    @on_both_versions
    def prometheus_answers_every_query_of_the_dashboards(self, version):
        """And the alerts know the switch that is missing, and one without a name that goes."""
        self.stirred = 0
        controller, network = self.start(version)
        prometheus = Prometheus(self.logs)
        self.addCleanup(prometheus.stop)
        prometheus.start()
        until(lambda: network.ping_all() == 0, LIMIT_S, "hosts reach each other")
        controller.ask("quarantine", "add", "10.99.0.1")
        text = fetch(f"http://{HTTP}/metrics")
        self.assert_clean(text)
        for dashboard in ("overview.json", "switch.json"):
            seen = 0
            for title, expression in queries(dashboard):
                while "histogram_quantile" in expression and not prometheus.query(expression):
                    self.assertLess(self.stirred, MAX_STIRRED, f"{dashboard}, {title}: {expression}")
                    self.stir(controller, network)
                until(lambda: prometheus.query(expression), QUERY_LIMIT_S, f"{dashboard}, {title}: {expression}")
                seen += 1
            self.assertGreater(seen, 15, dashboard)
        status = {labels["dp_name"]: value for labels, value in prometheus.query("dp_status")}
        self.assertEqual(status, {"left": 1, "right": 1, "gone": 0, "0000000000000003": 1})
        until(lambda: [labels["dp_name"] for labels in prometheus.alerts("SwitchMissing")] == ["gone"], LIMIT_S, "its alert")
        # The rates that the dashboards of Faucet read.
        rates = re.findall(r'record: "([^"]+)"', RULES.read_text())
        self.assertEqual(len(rates), 7)
        for rate in rates:
            until(lambda: prometheus.query(f'{rate}{{dp_name="left",port="2"}}'), QUERY_LIMIT_S, rate)
        self.assertEqual(prometheus.alerts("SwitchLost"), [])
        command("ovs-vsctl", "del-controller", "s3")
        until(lambda: [labels["dp_id"] for labels in prometheus.alerts("SwitchLost")] == ["0x3"], LIMIT_S, "the switch without a name")

    @on_both_versions
    def counters_of_ports_are_those_of_the_switch(self, version):
        """As Open vSwitch reports them itself, when nothing is sent any more."""
        _, network = self.start(version)
        until(lambda: network.ping_all() == 0, LIMIT_S, "hosts reach each other")

        def same():
            line = re.search(r'^of_port_rx_bytes\{.*dp_name="left",port="2".*\} (\d+)$', fetch(f"http://{HTTP}/metrics"), re.M)
            ports = command("ovs-ofctl", "-O", version, "dump-ports", "s1", "2")
            return line and int(line[1]) == int(re.search(r"rx pkts=\d+, bytes=(\d+)", ports)[1])

        until(same, LIMIT_S, "the metrics have what the switch has")

    def test_by_tls_the_end_of_the_certificate_is_known_openflow13(self):
        """Prometheus scrapes as the manual says, by TLS and with a token that may read. The alert fires for a certificate of
        two days."""
        certificate, key, tokens, token = (self.logs / name for name in ("http.pem", "http-key.pem", "tokens", "token"))
        command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=controller", "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key))
        token.write_text(command(os.environ["BELLROCK_BIN"], "token", "prometheus", "--scope", "read", "--file", str(tokens)))
        self.controller(config={"http": {"listen": "0.0.0.0:8443", "certificate": str(certificate), "key": str(key), "tokens": str(tokens)}})
        prometheus = Prometheus(self.logs, "127.0.0.1:8443", scheme="https", tls_config={"ca_file": str(certificate)},
                                authorization={"credentials_file": str(token)})
        self.addCleanup(prometheus.stop)
        prometheus.start()
        [(_, ends)] = until(lambda: prometheus.query("bellrock_http_certificate_expiry_timestamp_seconds"), QUERY_LIMIT_S, "a scrape")
        known = command("openssl", "x509", "-in", str(certificate), "-noout", "-enddate").strip().removeprefix("notAfter=")
        self.assertEqual(ends, ssl.cert_time_to_seconds(known))
        until(lambda: prometheus.alerts("CertificateExpires"), LIMIT_S, "the alert")

    def test_alerts_fire_when_they_should(self):
        """promtool plays series, and checks the files. Each alert fires in a test."""
        played = PACKAGING / "prometheus/bellrock.test.yml"
        self.assertIn("SUCCESS", command("promtool", "check", "rules", str(RULES)))
        self.assertIn("SUCCESS", command("promtool", "test", "rules", str(played)))
        alerts = re.findall(r"alert: (\w+)", RULES.read_text())
        fired = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", played.read_text())
        self.assertEqual(set(alerts) - set(fired), set())
