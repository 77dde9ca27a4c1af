"""Reloads of the configuration under traffic: nothing is lost, and only what has changed is sent."""

import os
import re
import ssl
import time
import urllib.error
import urllib.request

from harness.case import SystemTest, on_both_versions
from harness.network import Line, Pings
from harness.openvswitch import command
from harness.waiting import until

HTTPS = "127.0.0.1:8443"
# Each of seven kinds of change, so often: more than a hundred in all.
ROUNDS = 15
LIMIT_S = 30
FOUND_S = 60
PING_INTERVAL_S = 0.05
# In every block list, so that its flows stay.
KEPT = "10.98.0.1"
# Time without a change after which all is sent.
SETTLED_S = 4
# The circuit "blue" joins h1 and h2, and never changes. "red" joins h3 and h4, and comes and goes.
HOSTS = (1, 2, 1, 2)
BLUE, RED = ["left:2", "right:2"], ["left:3", "right:3"]
BLUE_PORT = 2


def flows(version, port):
    """The flows of s1 whose packets come from a port, with their ages in seconds."""
    ages = {}
    for line in command("ovs-ofctl", "-O", version, "--no-names", "dump-flows", "s1").splitlines():
        if re.search(rf"in_port={port}\b", line):
            age = float(re.search(r"duration=([\d.]+)s", line)[1])
            ages[re.sub(r"(duration|n_packets|n_bytes|idle_age)=[^,]*, ", "", line).strip()] = age
    return ages


def drop_ages(version):
    """The flows of s1 that drop packets of the host that stays in the list, with their ages in seconds."""
    lines = command("ovs-ofctl", "-O", version, "--no-names", "dump-flows", "s1").splitlines()
    lines = [line for line in lines if re.search(rf"{re.escape(KEPT)}\b", line)]
    return {re.sub(r"(duration|n_packets|n_bytes|idle_age)=[^,]*, ", "", line).strip(): float(re.search(r"duration=([\d.]+)s", line)[1])
            for line in lines}


class Reload(SystemTest):
    """Two switches with circuits, a block list, and HTTP."""

    time_limit_s = 400

    def config(self):
        quarantine = {"file": str(self.block_list)}
        # In front of the other one, which keeps its number all the same.
        provisioning = {"circuits": {**({"red": RED} if self.has_red else {}), "blue": BLUE}}
        certificate, key = self.certificate
        return {
            "apps": [{"quarantine": quarantine}, {"provisioning": provisioning}],
            "switches": {"left": "0000000000000001", "right": "0000000000000002", self.spare: "00000000000000ff"},
            "http": {"listen": HTTPS, "certificate": str(certificate), "key": str(key), "tokens": str(self.tokens)},
            "log_level": self.log_level,
            "packet_ins_per_second": self.rate,
        }

    def new_certificate(self, name):
        """The files of a certificate and of its key, made by openssl."""
        certificate, key = self.logs / f"{name}.pem", self.logs / f"{name}-key.pem"
        command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key))
        return certificate, key

    def serves_its_certificate(self):
        trust = ssl.create_default_context(cafile=self.certificate[0])
        try:
            with urllib.request.urlopen(f"https://{HTTPS}/healthz", timeout=LIMIT_S, context=trust) as reply:
                return reply.status == 200
        except urllib.error.URLError:
            return False

    @property
    def tokens(self):
        return self.logs / "tokens"

    def new_token(self, name):
        """Makes a token, the only one of the file from now on."""
        # The controller may look at any moment, and a file that is gone is a fault.
        new = self.logs / "new-tokens"
        token = command(os.environ["BELLROCK_BIN"], "token", name, "--scope", "write", "--file", str(new)).strip()
        new.replace(self.tokens)
        return token

    def takes(self, token):
        trust = ssl.create_default_context(cafile=self.certificate[0])
        request = urllib.request.Request(f"https://{HTTPS}/v1/token", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S, context=trust) as reply:
                return reply.status == 200
        except urllib.error.HTTPError as error:
            # Who guesses is slowed down.
            self.assertIn(error.code, (401, 429))
            return False

    def circuits_up(self):
        return [row["name"] for row in self.under_test.ask("circuits") if row["state"] == "up"]

    def dropped(self, version, address):
        """The number of flows of both switches that drop packets of a listed address."""
        dumps = [command("ovs-ofctl", "-O", version, "dump-flows", switch) for switch in ("s1", "s2")]
        return sum(len(re.findall(rf"{re.escape(address)}\b", dump)) for dump in dumps)

    def blocked(self):
        return [row["host"] for row in self.under_test.ask("quarantine", "list")["rows"]]

    def changes_sent(self):
        return sum(worker["changes_sent"] for worker in self.under_test.ask("counters")["workers"])

    def settled_changes(self):
        """How many changes were sent, when no more come."""
        now, since = self.changes_sent(), time.monotonic()
        while time.monotonic() - since < SETTLED_S:
            time.sleep(SETTLED_S / 10)
            later = self.changes_sent()
            if later != now:
                now, since = later, time.monotonic()
        return now

    def reload(self):
        """Applies the configuration."""
        self.under_test.write_config(self.config())
        answer = self.under_test.ask("reload")
        self.assertTrue(answer["applied"], answer)
        self.assertGreater(len(answer["changes"]), 0)

    @on_both_versions
    def a_hundred_reloads_lose_nothing_and_send_only_the_difference(self, version):
        """Each with another change, beside pings over the circuit that stays."""
        block_lists = [self.logs / "blocked-0", self.logs / "blocked-1"]
        for number, path in enumerate(block_lists):
            path.write_text(f"10.99.0.{number}\n{KEPT}\n")
        certificates = [self.new_certificate("first"), self.new_certificate("second")]
        self.has_red, self.block_list, self.spare = False, block_lists[0], "spare"
        self.log_level, self.certificate, self.rate = "info", certificates[0], "off"
        self.new_token("first")
        self.under_test = self.controller(config=self.config())
        network = self.network(Line(switches=2, hosts=HOSTS), version)
        until(lambda: self.circuits_up() == ["blue"], FOUND_S, "the circuit is up")
        until(lambda: network.unreachable([("h1", "h2")]) == [], LIMIT_S, "its ends reach each other")
        until(lambda: 0 < self.dropped(version, KEPT) == self.dropped(version, "10.99.0.0"), LIMIT_S, "the drops")
        kept = drop_ages(version)
        before, drops = flows(version, BLUE_PORT), self.dropped(version, "10.99.0.0")
        self.assertGreater(drops, 0)
        self.assertGreater(len(before), 0)
        pings = Pings(network["h1"], network["h2"], PING_INTERVAL_S)
        self.addCleanup(pings.process.kill)
        start, changes_of_red, token = self.settled_changes(), {}, self.new_token("zero")
        for turn in range(1, ROUNDS + 1):
            self.has_red = not self.has_red
            self.reload()
            until(lambda: ("red" in self.circuits_up()) == self.has_red, LIMIT_S, "the circuit")
            if self.has_red not in changes_of_red:
                # The first time is the measure for all others.
                lists = (turn - 1) * 2 * drops
                changes_of_red[self.has_red] = self.settled_changes() - start - lists - sum(changes_of_red.values())
            # Flows that leave a moment later would not leave at all if the circuit came back before.
            self.settled_changes()
            self.block_list = block_lists[turn % 2]
            self.reload()
            new, old = f"10.99.0.{turn % 2}", f"10.99.0.{1 - turn % 2}"
            self.assertEqual(sorted(self.blocked()), sorted([new, KEPT]))
            until(lambda: (self.dropped(version, new), self.dropped(version, old)) == (drops, 0), LIMIT_S, "the drops")
            self.spare = f"spare-{turn}"
            self.reload()
            self.assertEqual([row["name"] for row in self.under_test.ask("status")["missing_switches"]], [self.spare])
            self.log_level = "debug" if self.log_level == "info" else "info"
            self.reload()
            self.rate = 10_000 + turn
            self.reload()
            self.certificate = certificates[turn % 2]
            self.reload()
            self.assertTrue(self.serves_its_certificate())
            earlier, token = token, self.new_token(f"token-{turn}")
            self.under_test.ask("reload")
            until(lambda: self.takes(token), LIMIT_S, "the new token")
            self.assertFalse(self.takes(earlier))
        # Equal changes send equally many: those of the circuit that comes and goes, and those of one entry of a list.
        # Nothing else sends any.
        times = {True: (ROUNDS + 1) // 2, False: ROUNDS // 2}
        expected = ROUNDS * 2 * drops + sum(times[has_red] * changes for has_red, changes in changes_of_red.items())
        self.assertEqual(self.settled_changes() - start, expected, changes_of_red)
        pings.go_on(LIMIT_S)
        pings.finish()
        self.assertEqual(pings.lost(), [])
        after = flows(version, BLUE_PORT)
        self.assertEqual(after.keys(), before.keys())
        self.assertTrue(all(after[flow] > before[flow] for flow in before), "no flow of it was installed again")
        still = drop_ages(version)
        self.assertEqual(still.keys(), kept.keys())
        self.assertTrue(all(still[flow] > kept[flow] for flow in kept), "no flow of the entry that stays was installed again")

    def test_a_wrong_file_changes_nothing_and_is_explained_openflow13(self):
        """And the next right one is applied."""
        self.has_red, self.block_list, self.spare = False, self.logs / "blocked", "spare"
        self.block_list.write_text("10.99.0.1\n")
        self.new_token("only")
        self.log_level, self.certificate, self.rate = "info", self.new_certificate("first"), "off"
        self.under_test = self.controller(config=self.config())
        until(self.under_test.control.exists, LIMIT_S, "the control socket")
        wrong = self.logs / "wrong"
        wrong.write_text("no address\n")
        self.has_red, self.block_list = True, wrong
        self.under_test.write_config(self.config())
        with self.assertRaisesRegex(AssertionError, "wrong:1: "):
            self.under_test.ask("reload")
        self.assertEqual(len(self.under_test.ask("circuits")), 1)
        self.block_list = self.logs / "blocked"
        os.truncate(self.certificate[1], 0)
        self.under_test.write_config(self.config())
        with self.assertRaisesRegex(AssertionError, "no private key"):
            self.under_test.ask("reload")
        self.assertEqual(len(self.under_test.ask("circuits")), 1)
        self.certificate = self.new_certificate("second")
        self.reload()
        self.assertEqual(len(self.under_test.ask("circuits")), 2)
        self.assertEqual(self.blocked(), ["10.99.0.1"])
