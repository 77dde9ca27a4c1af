"""Flows of an earlier run: an app decides about each of them."""

from typing import Any, Literal

import pytest

from bellrock import Action, App, Flow, FlowStats, Match, Network, PacketIn, Port, Switch
from bellrock.lab import Lab, single

Version = Literal["1.0", "1.3"]


@pytest.fixture(params=("1.0", "1.3"))
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


class Cables(App):
    """Forwards between ports 1 and 2, by flows that it makes for the first packet only."""

    def __init__(self) -> None:
        self.asked: list[FlowStats] = []
        self.packets = 0

    def packet_in(self, switch: Switch, packet: PacketIn) -> None:
        self.packets += 1
        to = 3 - packet.in_port
        flow = Flow(Match(in_port=packet.in_port), Action.output(to), number=7, idle_timeout=600)
        switch.install(flow, packet)


class Adopts(Cables):
    def adopt(self, switch: Switch, flow: FlowStats) -> bool:
        self.asked.append(flow)
        # The switch is up, and can be written to.
        assert switch.is_up and self.packets > 0
        return self.decide(flow)

    def decide(self, flow: FlowStats) -> bool:
        return True


def reconnected(app: App, version: Version) -> Lab:
    """A lab in which the switch of an app was away, with the flows of a ping."""
    lab = Lab(single(2), app, version=version)
    assert lab.ping("h1", "h2")
    away_and_back(lab)
    return lab


def away_and_back(lab: Lab) -> None:
    lab.disconnect("s1")
    assert lab.run_until(lambda: not lab.is_up("s1"))
    lab.reconnect("s1")
    assert lab.run_until(lambda: lab.is_up("s1"))
    lab.run_for(1)


def own_flows(lab: Lab) -> list[str]:
    return [flow for flow in lab.flows("s1") if "in_port=" in flow]


def test_adopted_flows_stay(version: Version) -> None:
    app = Adopts()
    lab = reconnected(app, version)
    assert len(own_flows(lab)) == 2 and lab.exceptions == []
    packets = app.packets
    assert lab.ping("h1", "h2") and app.packets == packets, "by flows alone"
    first, second = sorted(app.asked, key=lambda flow: flow.matching["in_port"])
    assert first.is_own and first.app == "Adopts" and first.number == 7
    # The priority is the one that the app gave.
    assert first.priority == Flow(Match()).priority and first.idle_timeout == 600
    assert first.actions == [Action.output(2)] and second.actions == [Action.output(1)]


def test_flows_that_are_not_adopted_are_removed(version: Version) -> None:
    class One(Adopts):
        def decide(self, flow: FlowStats) -> bool:
            return bool(flow.matching["in_port"] == 1)

    app = One()
    lab = reconnected(app, version)
    [left] = own_flows(lab)
    assert "in_port=1" in left and len(app.asked) == 2 and lab.exceptions == []


def test_without_adopt_all_are_removed(version: Version) -> None:
    lab = reconnected(Cables(), version)
    assert own_flows(lab) == []


def test_an_app_whose_handlers_have_no_adopt_keeps_none(version: Version) -> None:
    class Forgets(Cables):
        adopts_flows = True

    lab = reconnected(Forgets(), version)
    assert own_flows(lab) == [] and lab.exceptions == []


def test_a_removal_does_not_hit_what_switch_up_installs(version: Version) -> None:
    class Installs(Adopts):
        def switch_up(self, network: Network, switch: Switch) -> None:
            switch.install(Flow(Match(in_port=1), Action.output(2), number=8))

        def decide(self, flow: FlowStats) -> bool:
            return False

    app = Installs()
    lab = Lab(single(2), app, version=version)
    lab.send("h2", bytes(60))
    lab.run_for(1)
    app.asked.clear()
    away_and_back(lab)
    assert sorted(flow.number for flow in app.asked) == [7, 8]
    [left] = own_flows(lab)
    assert "in_port=1" in left and lab.exceptions == []


def test_an_exception_removes_the_flow_and_takes_back_what_was_written(version: Version) -> None:
    class Fails(Adopts):
        def adopt(self, switch: Switch, flow: FlowStats) -> bool:
            if flow.matching["in_port"] == 1:
                switch.install(Flow(Match(in_port=9)))
                raise RuntimeError("it fails")
            switch.install(Flow(Match(in_port=8)))
            return True

    lab = reconnected(Fails(), version)
    flows = own_flows(lab)
    assert [str(error) for error in lab.exceptions] == ["it fails"]
    assert len(flows) == 2 and any("in_port=2" in flow for flow in flows)
    assert any("in_port=8" in flow for flow in flows)


def test_each_switch_of_a_class_decides_for_itself(version: Version) -> None:
    class Ports:
        asked: list[tuple[int, int]] = []

        def adopt(self, switch: Switch, flow: FlowStats) -> bool:
            self.asked.append((switch.dpid, flow.table))
            return True

        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            switch.install(Flow(Match(in_port=packet.in_port), Action.output(Port.FLOOD)), packet)

    lab = Lab(single(2), Ports, version=version)
    assert lab.ping("h1", "h2")
    away_and_back(lab)
    assert Ports.asked == [(1, 0), (1, 0)] and len(own_flows(lab)) == 2


def test_flows_of_other_apps_are_not_asked_about(version: Version) -> None:
    app = Adopts()
    lab = Lab(single(3), "learning", app, version=version)
    assert lab.ping("h1", "h2")
    away_and_back(lab)
    assert app.asked == [] and len(own_flows(lab)) == 2, "learning adopts its own"


def test_keeping_and_adopting_contradict_each_other() -> None:
    class Both(Adopts):
        keeps_flows = True

    with pytest.raises(ValueError, match="but not both"):
        Lab(single(1), Both())


def test_many_flows(version: Version) -> None:
    count = 2000

    class Many(App):
        def __init__(self) -> None:
            self.is_first = True
            self.asked = 0

        def switch_up(self, network: Network, switch: Switch) -> None:
            if self.is_first:
                for port in range(count):
                    switch.install(Flow(Match(in_port=port + 1), Action.output(1)))
            self.is_first = False

        def adopt(self, switch: Switch, flow: FlowStats) -> bool:
            self.asked += 1
            return False

    app = Many()
    lab = Lab(single(1), app, version=version)
    lab.run_for(1)
    assert len(own_flows(lab)) == count
    away_and_back(lab)
    assert app.asked == count and own_flows(lab) == [] and lab.exceptions == []
