"""What the nodes of a cluster share beside their files: names, circuits, limits and tokens, ordered at any node."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from harness.cluster import LIMIT_S, NAMES, ClusterTest
from harness.controller import without_own_variables
from harness.localcluster import LocalCluster
from harness.openvswitch import command
from harness.rest import RestClient
from harness.topologies import Ring
from harness.waiting import until
from test_cluster_circuits import LINKS, PAIRS, circuit_flows, final_flows

HTTP = {"a": 8081, "b": 8082, "c": 8083}
SHARED = """\
# Of the whole network.
switches: {core-1: a1, core-2: a2}
packet_ins_per_second: 500
apps:
  - provisioning: {circuits: {blue: [core-1:1, core-2:2]}}
"""


class Shared(LocalCluster):
    """Three nodes with files of their own."""

    def settings(self, name):
        files = {"switches": {"of-the-file": "a9"}, "apps": ["provisioning", "learning"]}
        return files | {"http": {"listen": f"127.0.0.1:{HTTP[name]}"}}

    def write(self, text):
        file = self.run_dir / "network.yaml"
        file.write_text(text)
        return str(file)

    def share(self, name, text, *more):
        return self.nodes[name].ask("cluster", "config", self.write(text), *more)

    def shared(self, name):
        return self.nodes[name].ask("cluster", "config")

    def names(self, name):
        return sorted(row["name"] for row in self.nodes[name].ask("status")["missing_switches"])

    def circuits(self, name):
        return [row["name"] for row in self.nodes[name].ask("circuits")]

    def agree(self, generation, names, circuits, nodes=NAMES):
        def state(node):
            shared = self.shared(node)
            return shared["generation"], shared["trouble"], self.names(node), self.circuits(node)
        for node in nodes:
            until(lambda node=node: state(node) == (generation, None, names, circuits), LIMIT_S,
                  f"generation {generation} is in force at {node}, without trouble")

    def test_one_order_reaches_all_nodes_and_a_node_that_starts_later(self):
        self.assertEqual(self.shared("a")["generation"], 0)
        self.agree(0, ["of-the-file"], [])
        dry = self.share("b", SHARED, "--dry-run")
        self.assertFalse(dry["applied"])
        self.agree(0, ["of-the-file"], [])
        self.kill("c")
        changed = {change["setting"] for change in self.share("b", SHARED)["changes"]}
        self.assertEqual(changed, {change["setting"] for change in dry["changes"]})
        self.assertIn("apps.provisioning.circuits.blue", changed)
        self.agree(1, ["core-1", "core-2"], ["blue"], ("a", "b"))
        answer = self.shared("a")
        self.assertEqual((answer["text"], answer["node"]), (SHARED, "b"))
        self.nodes["c"].start()
        self.agree(1, ["core-1", "core-2"], ["blue"])
        # What the command prints can be given back.
        printed = command(self.nodes["c"].binary, "cluster", "config", "--control", str(self.nodes["c"].control))
        self.assertEqual(printed, SHARED)
        # A reload of a file leaves what is shared.
        config = json.loads(self.nodes["a"].config_file.read_text())
        self.nodes["a"].write_config(config | {"log_level": "debug"})
        self.assertEqual([change["setting"] for change in self.nodes["a"].ask("reload")["changes"]], ["log_level"])
        self.agree(1, ["core-1", "core-2"], ["blue"])
        # The end of it: each has its file again.
        self.nodes["a"].ask("cluster", "config", "--none")
        self.agree(2, ["of-the-file"], [])

    def test_a_wrong_text_changes_nothing_and_says_where(self):
        self.share("a", SHARED)
        for text, said in (
                ("listen: 0.0.0.0:6653\n", 'shared configuration:1:1: "listen" is no setting that nodes share'),
                ("switches: {x: a1, y: a1}\n", "shared configuration:1:"),
                ("apps: [provisioning: {circuits: {blue: [a1:1]}}]\n", "needs 2 to 64 endpoints"),
                ("http: {token_hashes: {x: read 12}}\n", "x: the hash is not 64 hexadecimal digits"),
                ("a: [\n", "shared configuration:")):
            said_so = self.nodes["b"].refused("cluster", "config", self.write(text))
            self.assertIn(said, said_so)
        self.assertIn("--none", self.nodes["b"].refused("cluster", "config", self.write("")))
        self.agree(1, ["core-1", "core-2"], ["blue"])

    def http(self, name, token):
        request = urllib.request.Request(f"http://127.0.0.1:{HTTP[name]}/v1/reload?dry_run=true", method="POST",
                                         headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def token(self):
        """A new token that may write, and the setting for it."""
        words = [os.environ["BELLROCK_BIN"], "token", "deploy", "--scope", "write"]
        made = subprocess.run(words, capture_output=True, text=True, check=True, timeout=LIMIT_S, env=without_own_variables())
        line = next(line for line in made.stderr.splitlines() if line.startswith("http:"))
        return made.stdout.strip(), f"{line}\n"

    def test_a_shared_token_works_at_all_nodes_until_it_is_taken_away(self):
        token, setting = self.token()
        self.assertNotIn(token, setting)
        self.assertEqual(self.http("a", token), 401)
        self.share("c", setting)
        for name in NAMES:
            until(lambda name=name: self.http(name, token) == 200, LIMIT_S, f"{name} takes the token")
            self.assertEqual(self.http(name, token + "0"), 401)
        self.nodes["a"].ask("cluster", "config", "--none")
        for name in NAMES:
            until(lambda name=name: self.http(name, token) == 401, LIMIT_S, f"{name} takes it no more")

    def test_a_node_that_cannot_apply_it_keeps_what_it_has_and_says_so(self):
        config = json.loads(self.nodes["c"].config_file.read_text())
        # Its file has other VLANs, too few for the circuits of the others.
        few = {"provisioning": {"vlans": "2000-2007"}}
        self.kill("c")
        self.nodes["c"].write_config(config | {"apps": [few, "learning"]})
        self.nodes["c"].start()
        self.share("a", SHARED)
        self.agree(1, ["core-1", "core-2"], ["blue"])
        second = SHARED.replace("blue: [core-1:1, core-2:2]", "blue: [core-1:1, core-2:2], red: [core-1:3, core-2:4]")
        self.share("a", second)
        self.agree(2, ["core-1", "core-2"], ["blue", "red"], ("a", "b"))
        until(lambda: self.shared("c")["generation"] == 2, LIMIT_S, "c knows it")
        why = "2 circuits need 16 VLANs, but `vlans` has only 8"
        until(lambda: why in (self.shared("c")["trouble"] or ""), LIMIT_S, "c says why it is not in force")
        events = lambda: [row["text"] for row in self.nodes["c"].ask("events", "--kind", "app_event")]
        until(lambda: any("generation 2 of what nodes share" in text and "not in force here" in text for text in events()), LIMIT_S, "an alarm")
        # Its file is put right, and a reload takes both.
        self.kill("c")
        self.nodes["c"].write_config(config)
        self.nodes["c"].start()
        self.agree(2, ["core-1", "core-2"], ["blue", "red"])

    def test_an_order_by_rest_for_a_generation_that_is_gone(self):
        token, setting = self.token()
        self.share("a", setting)
        path = "/v1/cluster/configuration"
        api = RestClient(f"http://127.0.0.1:{HTTP['a']}", token)
        answer = api.ask(path)[1]
        self.assertEqual((answer["generation"], answer["text"]), (1, setting))
        text = f"{setting}switches: {{core: a1}}\n"
        status, problem = api.ask(path, "PUT", {"text": text, "generation": 0})
        self.assertEqual((status, problem["detail"][:20]), (409, "nothing has changed:"), problem)
        self.assertEqual(api.ask(path, "PUT", {"text": text, "generation": 1, "dry_run": True})[1]["applied"], False)
        status, answer = api.ask(path, "PUT", {"text": text, "generation": 1})
        self.assertEqual((status, [change["setting"] for change in answer["changes"]]), (200, ["switches.core", "switches.of-the-file"]))
        self.agree(2, ["core"], [])

    def test_orders_at_three_nodes_at_once(self):
        with ThreadPoolExecutor() as pool:
            texts = [f"switches: {{name-of-{name}: b{number}}}\n" for number, name in enumerate(NAMES)]
            files = [self.run_dir / f"{name}.yaml" for name in NAMES]
            for file, text in zip(files, texts):
                file.write_text(text)
            outcomes = list(pool.map(lambda pair: self.attempt(pair[0], "cluster", "config", str(pair[1])), zip(NAMES, files)))
        # Each that was not refused has had a generation of its own, and the last one is in force everywhere.
        done = sum(outcome == 0 for outcome in outcomes)
        self.assertGreaterEqual(done, 1, outcomes)
        until(lambda: {self.shared(name)["generation"] for name in NAMES} == {done}, LIMIT_S, "all know the last one")
        self.assertEqual(len({self.shared(name)["text"] for name in NAMES}), 1)

    def attempt(self, name, *words):
        node = self.nodes[name]
        words = [node.binary, *words, "--json", "--control", str(node.control)]
        return subprocess.run(words, capture_output=True, timeout=LIMIT_S, check=False, env=without_own_variables()).returncode

    def test_etcd_is_restored_from_a_snapshot_of_before(self):
        self.share("a", "switches: {earlier: a1}\n")
        self.agree(1, ["earlier"], [])
        snapshot = self.run_dir / "snapshot"
        self.etcd.save(snapshot)
        self.share("b", SHARED)
        self.agree(2, ["core-1", "core-2"], ["blue"])
        self.etcd.restore(snapshot, "restored")
        stored = lambda: self.etcd.ask("get", "--print-value-only", "/bellrock/test/configuration/configuration")  # noqa: E731
        until(lambda: '"generation":2' in stored(), LIMIT_S, "a node puts it back")
        self.agree(2, ["core-1", "core-2"], ["blue"])
        self.nodes["c"].ask("cluster", "config", "--none")
        self.agree(3, ["of-the-file"], [])


class Circuits(ClusterTest):
    """Four switches in a ring, and a circuit that no file has."""

    apps = ("provisioning", "routing")
    time_limit_s = 300

    def test_a_leader_that_starts_with_a_file_without_the_circuit_leaves_it_alone(self):
        self.attach(Ring())
        for node in self.nodes.values():
            until(lambda node=node: len(node.ask("links")) == LINKS, LIMIT_S, f"{node.name} knows all links")
        file = self.run_dir / "network.yaml"
        file.write_text('apps: [provisioning: {circuits: {blue: ["1:1", "3:2"]}}]\n')
        self.nodes["b"].ask("cluster", "config", str(file))
        for node in self.nodes.values():
            until(lambda node=node: [row["state"] for row in node.ask("circuits")] == ["up"], LIMIT_S, f"{node.name}: it is up")
        until(lambda: self.net.unreachable(PAIRS) == [], LIMIT_S, "it carries frames")
        flows, _ = final_flows(lambda: circuit_flows(switch.name for switch in self.net.switches))
        # Each leads at some time, and none has the circuit in its file.
        for name in NAMES:
            self.nodes[name].kill()
            self.settle(self.others(name))
            self.nodes[name].start()
            self.settle()
            until(lambda name=name: [row["state"] for row in self.nodes[name].ask("circuits")] == ["up"], LIMIT_S, f"{name} has it again")
        self.assertEqual(circuit_flows(switch.name for switch in self.net.switches)[0], flows, "nothing was laid anew")
        self.assertEqual(self.net.unreachable(PAIRS), [])
