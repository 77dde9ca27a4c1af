"""Alarms mean the same everywhere: a lost link, a lost switch and a named port that is down, in the command, in REST, in the log and
in the metrics, until they are over."""

import json
import urllib.request

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.waiting import until

HTTP = "127.0.0.1:8080"
LIMIT_S = 30


class Alarms(SystemTest):
    """Two switches with a link, which discovery knows, and a named port with a host."""

    time_limit_s = 180

    def start(self, version):
        config = {"services": "topology", "apps": ["learning"], "http": {"listen": HTTP},
                  "switches": {"left": {"dpid": "1", "ports": {"server": 2}}, "right": "0000000000000002"}}
        self.bellrock = self.controller(config=config)
        # s1 has the link at port 1, and h1 at port 2.
        self.net = self.network(Line(switches=2, hosts=(1, 2)), version)
        until(lambda: len(self.bellrock.ask("links")) == 2, LIMIT_S, "the link is known, both ways")

    def open_alarms(self):
        """The open alarms. They are the same everywhere."""
        rows = self.bellrock.ask("events", "--open")
        self.assertTrue(all(row["alarming"] and row["state"] == "open" for row in rows), rows)
        return sorted(row["event"] for row in rows)

    def await_open(self, events):
        until(lambda: self.open_alarms() == events, LIMIT_S, f"the open alarms are {events}")
        with urllib.request.urlopen(f"http://{HTTP}/v1/events?open=true", timeout=LIMIT_S) as reply:
            self.assertEqual(sorted(row["event"] for row in json.load(reply)["rows"]), events)
        with urllib.request.urlopen(f"http://{HTTP}/metrics", timeout=LIMIT_S) as reply:
            series = [line for line in reply.read().decode().splitlines() if line.startswith("bellrock_alarm{")]
        self.assertEqual(sorted(line.split('event="')[1].split('"')[0] for line in series), events, series)

    def alarm(self, event):
        """The last alarm of this kind."""
        return [row for row in self.bellrock.ask("events", "--alarms") if row["event"] == event][-1]

    @on_both_versions
    def a_cable_is_an_alarm_until_it_is_back(self, version):
        """Both directions of a link, and a named port. A port without a name and without a link is none."""
        self.start(version)
        self.await_open([])
        self.net.net.configLinkStatus("s1", "s2", "down")
        self.await_open(["link_down", "link_down"])
        until(lambda: "WARN link down: left:1 -> right:1" in self.bellrock.text(), LIMIT_S, "the log warns of it")
        self.net.net.configLinkStatus("s1", "s2", "up")
        self.await_open([])
        alarm = self.alarm("link_down")
        self.assertEqual(alarm["state"], "over")
        ends = [row for row in self.bellrock.ask("events") if row.get("ends") == alarm["id"]]
        self.assertEqual([row["event"] for row in ends], ["link_up"])
        self.net.net.configLinkStatus("h2", "s2", "down")
        self.net.net.configLinkStatus("h1", "s1", "down")
        self.await_open(["port_down"])
        self.assertEqual(self.alarm("port_down")["text"].split(" is down")[0], "port left:2 (server)")
        self.net.net.configLinkStatus("h1", "s1", "up")
        self.await_open([])

    @on_both_versions
    def a_lost_switch_is_an_alarm_until_it_is_back(self, version):
        """Its links are no alarms of their own."""
        self.start(version)
        switch = self.net["s2"]
        controller = switch.cmd("ovs-vsctl get-controller s2").strip()
        switch.cmd("ovs-vsctl del-controller s2")
        self.await_open(["switch_down"])
        switch.cmd(f"ovs-vsctl set-controller s2 {controller}")
        self.await_open([])
        self.assertEqual(self.alarm("switch_down")["state"], "over")
        # As Mininet ends: the switch removes its flows first, which is no intruder.
        switch.cmd("ovs-vsctl del-br s2")
        self.await_open(["switch_down"])
        self.assertNotIn("was removed from outside", self.bellrock.text())
