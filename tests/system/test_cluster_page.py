"""What operators see of a cluster: on the page in Chromium, by command, as metrics and events. Certificates are renewed."""

import json
import os
import shutil
import time
import urllib.request

from harness.browser import Browser
from harness.localcluster import LIMIT_S, NODES, LocalCluster
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

HTTP_PORTS = {"a": 8080, "b": 8081, "c": 8082}
SWITCH = "0000000000000001"


def run(*words):
    """Runs a command of the controller."""
    return command(os.environ["BELLROCK_BIN"], *map(str, words))


class Operated(LocalCluster):
    """Three nodes with REST, pages and certificates of `bellrock pki`."""

    time_limit_s = 240

    def setUp(self):
        # Before the nodes, which read them.
        self.made = False
        super().setUp()

    def settings(self, name):
        pki, tokens = self.run_dir / "pki", self.run_dir / "tokens"
        if not self.made:
            self.made = True
            run("pki", "init", "--dir", pki)
            self.token = run("token", "operator", "--scope", "write", "--file", tokens).strip()
        # As an operator copies what the command prints.
        printed = run("pki", "node", name, "--dir", pki).splitlines()
        tls = dict(line.strip().split(": ") for line in printed[printed.index("  tls:") + 1:])
        self.cluster_section = {"tls": tls}
        return {"http": {"listen": f"127.0.0.1:{HTTP_PORTS[name]}", "tokens": str(tokens)}, "switches": {"left": SWITCH}}

    def make(self, name):
        node = super().make(name)
        config = json.loads(node.config_file.read_text())
        config["cluster"] |= self.cluster_section
        node.write_config(config)
        return node

    def page(self, name):
        browser = Browser(self.run_dir / name, f"http://127.0.0.1:{HTTP_PORTS[name]}")
        self.addCleanup(browser.close)
        return browser

    def metrics(self, name):
        """The series of a node."""
        request = urllib.request.Request(f"http://127.0.0.1:{HTTP_PORTS[name]}/metrics", headers={"authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            lines = answer.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def masters(self, seen_by="c"):
        return {row["dpid"]: row["obeys"] for row in self.nodes[seen_by].ask("cluster", "--switches")}

    def wait_until_spread(self):
        """Waits until each of the two switches has a master of its own. Until then the nodes may move one of them."""
        until(lambda: len({row for row in self.masters().values() if row}) == 2, LIMIT_S, "the switches have two masters")

    def events(self, name):
        return [row["event"] for row in self.nodes[name].ask("events")]

    def test_an_operator_moves_a_switch_on_the_page_and_sees_a_lost_node(self):
        self.connect(Line(switches=2, hosts=(1, 2)))
        self.wait_until_spread()
        before = self.masters()[SWITCH]
        browser = self.page(before)
        browser.sign_in(self.token)
        browser.go("cluster")
        until(lambda: f"Nodes of test, as {before} sees them" in browser.text("#list-view"), LIMIT_S, "the nodes")
        until(lambda: "left" in browser.text("#list-view"), LIMIT_S, "the switches")
        until(lambda: "etcd answers" in browser.text("#list-view"), LIMIT_S, "the store")
        until(lambda: f"node {before} of test" in browser.text("#summary"), LIMIT_S, "the name of the node")
        until(lambda: f"left{before}master" in browser.text("#list-view"), LIMIT_S, "this node is its master")
        browser.press("Move", "#list-view")
        after = next(name for name in NODES if name != before)
        browser.fill(node=after)
        browser.submit()
        until(lambda: self.masters()[SWITCH] == after, LIMIT_S, "the switch has moved")
        until(lambda: f"left{after}yes" in browser.text("#list-view"), LIMIT_S, "it is there by order")
        # The other views name the new master.
        browser.go("switches")
        until(lambda: f"stands by for {after}" in browser.text("#list-view"), LIMIT_S, "the list of switches names it")
        row = next(row for row in self.nodes[before].ask("switches") if row["dpid"] == SWITCH)
        self.assertEqual((row["standby"], row["master"]), (True, after))

        lost = next(name for name in NODES if name not in (before, after))
        self.kill(lost)
        browser.go("cluster")
        until(lambda: "dead" in browser.text("#list-view"), LIMIT_S, "the lost node")
        until(lambda: f"does not hear node {lost}" in browser.text("#alarm"), LIMIT_S, "the alarm")
        self.assertIn("node_lost", self.events(before))
        series = self.metrics(before)
        self.assertEqual(series[f'bellrock_cluster_node_up{{node="{lost}"}}'], "0")
        self.assertEqual(series["bellrock_cluster_nodes_alive"], "2")
        self.assertGreater(int(series["bellrock_cluster_epoch"]), 0)
        self.assertGreater(float(series[f'bellrock_cluster_node_silence_seconds{{node="{lost}"}}']), 0.0)
        self.assertLess(float(series["bellrock_cluster_store_silence_seconds"]), LIMIT_S)

        self.kill(after)
        until(lambda: "stands by: it hears no majority" in browser.text("#map-note"), LIMIT_S, "the page says that nobody serves")
        until(lambda: "majority_lost" in self.events(before), LIMIT_S, "the event")
        self.assertEqual(self.metrics(before)["bellrock_cluster_serving"], "0")
        self.assertEqual(browser.console_errors(), [])

    def test_switches_are_balanced_on_the_page_of_any_node(self):
        self.connect(Line(switches=2, hosts=(1, 2)))
        self.wait_until_spread()
        for dpid, master in self.masters().items():
            self.nodes[master].ask("cluster", "move", dpid, "a")
        browser = self.page("b")
        browser.sign_in(self.token)
        browser.go("cluster")
        until(lambda: "leftayes" in browser.text("#list-view"), LIMIT_S, "it is at a by order")
        browser.press("Balance", "#list-view")
        browser.submit()
        until(lambda: "leftayes" not in browser.text("#list-view"), LIMIT_S, "nothing is there by order any more")
        until(lambda: len(set(self.masters().values())) == 2, LIMIT_S, "a gives one of two switches away")
        self.assertEqual(browser.console_errors(), [])

    def test_a_node_is_drained_on_its_page(self):
        self.connect(Line(switches=2, hosts=(1, 1)))
        self.wait_until_spread()
        drained = self.masters()[SWITCH]
        browser = self.page(drained)
        browser.sign_in(self.token)
        browser.go("cluster")
        until(lambda: "Drain this node" in browser.text("#list-view"), LIMIT_S, "the button")
        browser.press("Drain this node", "#list-view")
        browser.submit()
        until(lambda: drained not in self.masters("c" if drained != "c" else "a").values(), LIMIT_S, "it has no switch")
        until(lambda: "draining" in browser.text("#list-view"), LIMIT_S, "its state")
        browser.press("Take switches again", "#list-view")
        browser.submit()
        until(lambda: "Drain this node" in browser.text("#list-view"), LIMIT_S, "it serves again")
        self.assertEqual(browser.console_errors(), [])

    def test_requests_between_nodes_are_counted_and_etcd_that_is_away_is_an_alarm(self):
        self.connect(Line(switches=1, hosts=(1,)))
        until(lambda: self.masters().get(SWITCH), LIMIT_S, "the switch has a master")
        master = self.masters()[SWITCH]
        other = next(name for name in NODES if name != master)
        until(lambda: SWITCH in {row["dpid"] for row in self.nodes[other].ask("switches")}, LIMIT_S, "the other node has it too")
        before = self.nodes[other].ask("cluster")["requests"]
        taken = self.nodes[master].ask("cluster")["requests"]["taken"]
        self.nodes[other].ask("flows", "left")
        after = self.nodes[other].ask("cluster")["requests"]
        self.assertGreater(after["answered"], before["answered"])
        self.assertGreater(self.nodes[master].ask("cluster")["requests"]["taken"], taken)
        lag = lambda: self.nodes[other].ask("cluster")["store"]["last_heard_ms"]
        # Nothing changes, and still etcd is heard.
        time.sleep(2)
        until(lambda: lag() < 1000, LIMIT_S, "etcd gives signs of life")
        for member in range(3):
            self.etcd.kill(member)
        until(lambda: "store_lost" in self.events(other), LIMIT_S, "the event")
        until(lambda: lag() > 3000, LIMIT_S, "nothing is heard any more")
        for member in range(3):
            self.etcd.start_member(member)
        until(self.etcd.is_healthy, LIMIT_S, "etcd has a leader")
        until(lambda: "store_found" in self.events(other), LIMIT_S, "etcd is back")

    def test_nodes_get_another_authority_without_a_restart(self):
        """First all trust both authorities, then each gets a certificate of the new one: as operators do it."""
        old, new = self.run_dir / "pki", self.run_dir / "new-pki"
        run("pki", "init", "--name", "The next authority", "--dir", new)
        both = (old / "ca-cert.pem").read_text() + (new / "ca-cert.pem").read_text()
        (old / "ca-cert.pem").write_text(both)
        for node in self.nodes.values():
            self.assertIn("cluster.tls.ca", json.dumps(node.ask("reload")["renewed"]))
        for name, node in self.nodes.items():
            run("pki", "node", name, "--dir", new)
            for kind in ("cert", "key"):
                shutil.copy(new / f"{name}-{kind}.pem", old / f"{name}-{kind}.pem")
            node.ask("reload")
        # New connections show and trust the new ones: one node starts again, and the others know it.
        self.kill("c")
        states = lambda name: {row["name"]: row["state"] for row in self.nodes[name].ask("cluster")["nodes"]}
        until(lambda: states("a")["c"] == "dead", LIMIT_S, "the node is lost")
        (old / "ca-cert.pem").write_text((new / "ca-cert.pem").read_text())
        for name in ("a", "b"):
            self.nodes[name].ask("reload")
        self.nodes["c"].start()
        until(lambda: all(states(name)["c"] == "serving" for name in ("a", "b")), LIMIT_S, "the node is back")
        # A wrong file changes nothing.
        (old / "a-key.pem").write_text("nothing")
        with self.assertRaisesRegex(AssertionError, "cluster.tls.key"):
            self.nodes["a"].ask("reload")
