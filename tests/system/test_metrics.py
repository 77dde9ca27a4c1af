"""Metrics: Debian's Prometheus scrapes a real run, and every query of the dashboards has an answer."""

import json
import re
import subprocess
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
PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
VARIABLES = {"$dp_name": "left", "$port": ".*", "$__rate_interval": "20s"}


def fetch(url):
    with urllib.request.urlopen(url, timeout=LIMIT_S) as reply:
        return reply.read().decode()


class Prometheus:
    """A server of its own, with its data in the folder of the test."""

    def __init__(self, directory):
        self.directory = directory
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(PACKAGING / "prometheus/bellrock.rules.yml")],
            "scrape_configs": [{"job_name": "bellrock", "static_configs": [{"targets": [HTTP]}]}],
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
        """Labels and values that an expression has now."""
        data = self.ask("query", query=expression)
        return [(row["metric"], float(row["value"][1])) for row in data["result"]] if data else []


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
    """A controller that is scraped, with a switch that is missing."""

    time_limit_s = 240

    def start(self, version):
        switches = {"left": "0000000000000001", "right": "0000000000000002", "gone": "0000000000000009"}
        http = {"listen": HTTP, "poll_ports": "1 s", "poll_flows": "1 s"}
        circuits = {"c1": ["left:7", "right:7"]}
        apps = ["quarantine", "bandwidth", {"provisioning": {"circuits": circuits}}, "learning"]
        controller = self.controller(config={"apps": apps, "switches": switches, "http": http})
        network = self.network(Line(switches=2, hosts=(1, 2)), version)
        return controller, network

    def assert_clean(self, text):
        """What promtool says of the metrics: nothing."""
        check = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
        self.assertEqual((check.returncode, check.stdout, check.stderr), (0, "", ""))

    @on_both_versions
    def prometheus_answers_every_query_of_the_dashboards(self, version):
        """And the alerts know the switch that is missing."""
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
                until(lambda: prometheus.query(expression), QUERY_LIMIT_S, f"{dashboard}, {title}: {expression}")
                seen += 1
            self.assertGreater(seen, 15, dashboard)
        status = {labels["dp_name"]: value for labels, value in prometheus.query("dp_status")}
        self.assertEqual(status, {"left": 1, "right": 1, "gone": 0})
        alerts = until(lambda: prometheus.ask("alerts")["alerts"], LIMIT_S, "an alert")
        missing = [alert["labels"]["dp_name"] for alert in alerts if alert["labels"]["alertname"] == "SwitchMissing"]
        self.assertEqual(missing, ["gone"])
        # The rates that the dashboards of Faucet read.
        until(lambda: prometheus.query('instance_port:of_port_rx_bits:rate1m{dp_name="left",port="2"}'), QUERY_LIMIT_S,
              "recorded rates")

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

    def test_alerts_fire_when_they_should(self):
        """promtool plays series, and checks the files."""
        rules = PACKAGING / "prometheus"
        self.assertIn("SUCCESS", command("promtool", "check", "rules", str(rules / "bellrock.rules.yml")))
        self.assertIn("SUCCESS", command("promtool", "test", "rules", str(rules / "bellrock.test.yml")))
