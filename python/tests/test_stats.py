"""What switches report: counters, groups, meters and descriptions."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import pytest

import bellrock
from bellrock import (
    Action,
    App,
    Bucket,
    Flow,
    Group,
    Match,
    Meter,
    Network,
    Plan,
    Port,
    Switch,
)
from bellrock.lab import Lab, single

Version = Literal["1.0", "1.3"]
_T = TypeVar("_T")


@pytest.fixture(params=("1.0", "1.3"))
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def answer(
    ask: Callable[[Network, int], Awaitable[_T]], version: Version, plan: Plan | None = None
) -> _T:
    """The answer of a switch that has carried a ping between its ports 1 and 2, by two flows or those of
    a plan."""
    answers: list[_T] = []

    class Asks(App):
        wants_packet_ins = False

        def switch_up(self, network: Network, switch: Switch) -> None:
            if plan is None:
                switch.install(Flow(Match(in_port=1), Action.output(2), idle_timeout=100))
                switch.install(Flow(Match(in_port=2), Action.output(1), hard_timeout=200))
            self.spawn(self.run(network, switch.dpid))

        async def run(self, network: Network, dpid: int) -> None:
            if plan is not None:
                await network.commit(plan)
            await asyncio.sleep(10)
            answers.append(await ask(network, dpid))

    lab = Lab(single(2), Asks(), version=version)
    lab.run_for(1)
    assert lab.ping("h1", "h2")
    assert lab.run_until(lambda: bool(answers or lab.exceptions), 60) and lab.exceptions == []
    return answers[0]


# A ping sends these frames: ARP and echo, each with its answer.
FRAMES_EACH_WAY = 2


def test_flows_have_timeouts_and_actions(version: Version) -> None:
    flows = answer(lambda network, dpid: network.flow_stats(dpid), version)
    first, second = sorted(flows, key=lambda flow: flow.matching["in_port"])
    assert first.actions == [Action.output(2)] and second.actions == [Action.output(1)]
    assert (first.idle_timeout, first.hard_timeout) == (100, 0)
    assert (second.idle_timeout, second.hard_timeout) == (0, 200)
    assert first.packets == second.packets == FRAMES_EACH_WAY
    assert first.goto_table is first.meter is None
    assert repr(first).endswith(f"in_port=1 {first.instructions}: {FRAMES_EACH_WAY} packets>")


def test_sums_over_flows(version: Version) -> None:
    sums = answer(lambda network, dpid: network.aggregate_stats(dpid), version)
    assert (sums.flows, sums.packets) == (2, 2 * FRAMES_EACH_WAY) and sums.bytes > 60
    assert repr(sums) == f"<AggregateStats 2 flows, 4 packets, {sums.bytes} bytes>"
    one = Match(in_port=1)
    sums = answer(lambda network, dpid: network.aggregate_stats(dpid, one), version)
    assert (sums.flows, sums.packets) == (1, FRAMES_EACH_WAY)


def test_tables(version: Version) -> None:
    tables = answer(lambda network, dpid: network.table_stats(dpid), version)
    first = tables[0]
    assert (first.table, first.flows) == (0, 2)
    assert first.lookups >= first.matched >= 2 * FRAMES_EACH_WAY
    # Only 1.0 reports them here.
    assert (first.name is None) == (first.max_flows is None) == (version == "1.3")
    assert all(table.flows == 0 for table in tables[1:])


def test_ports_all_and_one(version: Version) -> None:
    ports = answer(lambda network, dpid: network.port_stats(dpid), version)
    assert {1, 2} <= {port.port for port in ports}
    one = answer(lambda network, dpid: network.port_stats(dpid, 2), version)
    assert [port.port for port in one] == [2] and (one[0].rx_packets or 0) >= FRAMES_EACH_WAY


def test_queues(version: Version) -> None:
    # The switches of the lab have none. So the answer is empty, and an unknown queue is refused.
    assert answer(lambda network, dpid: network.queue_stats(dpid), version) == []
    assert answer(lambda network, dpid: network.queue_stats(dpid, port=1), version) == []

    async def refused(network: Network, dpid: int) -> str:
        with pytest.raises(bellrock.Error) as error:
            await network.queue_stats(dpid, port=1, queue=7)
        return str(error.value)

    assert "queue" in answer(refused, version).lower()


def test_groups_and_meters() -> None:
    plan = Plan()
    plan.meter(1, Meter(3, kbps=10_000, burst_kbits=2_000))
    plan.group(1, Group(1, "select", Bucket(Action.output(1), weight=1)))
    live = Bucket(Action.set_vlan_pcp(3), Action.output(2), watch_port=2)
    plan.group(1, Group(2, "fast_failover", live, Bucket(Action.output(Port.FLOOD), watch_port=1)))
    plan.add(1, Flow(Match(in_port=2), Action.group(1), meter=3))
    plan.add(1, Flow(Match(in_port=1), Action.output(2)))

    async def ask(network: Network, dpid: int) -> Any:
        return (
            await network.group_stats(dpid),
            await network.group_stats(dpid, 1),
            await network.group_descs(dpid),
            await network.meter_stats(dpid),
            await network.meter_configs(dpid, 3),
            await network.flow_stats(dpid, Match(in_port=2)),
        )

    groups, one, descs, meters, configs, flows = answer(ask, "1.3", plan)
    assert sorted(group.group for group in groups) == [1, 2]
    assert [group.group for group in one] == [1] and one[0].references == 1
    assert one[0].packets == FRAMES_EACH_WAY and one[0].buckets == [(one[0].packets, one[0].bytes)]
    first, second = sorted(descs, key=lambda desc: int(desc.group))
    assert (first.kind, second.kind) == ("select", "fast_failover")
    assert [bucket.weight for bucket in first.buckets] == [1]
    assert first.buckets[0].actions == [Action.output(1)]
    assert first.buckets[0].watch_port is first.buckets[0].watch_group is None
    assert [bucket.watch_port for bucket in second.buckets] == [2, 1]
    assert second.buckets[0].actions == [Action.set_vlan_pcp(3), Action.output(2)]
    assert [(meter.meter, meter.flows, meter.packets) for meter in meters] == [
        (3, 1, FRAMES_EACH_WAY)
    ]
    assert len(meters[0].bands) == 1
    config = configs[0]
    assert (config.meter, config.unit) == (3, "kbps")
    band = config.bands[0]
    assert (band.kind, band.rate, band.burst) == ("drop", 10_000, 2_000)
    assert flows[0].meter == 3 and flows[0].actions == [Action.group(1)]
    assert repr(config) == "<MeterConfig 3, drop 10000 kbps>"
    assert repr(second) == "<GroupDesc 2, fast_failover, 2 buckets>"


@pytest.mark.parametrize("name", ["group_stats", "group_descs", "meter_stats", "meter_configs"])
def test_statistics_that_the_version_lacks_are_an_error(name: str) -> None:
    async def ask(network: Network, dpid: int) -> str:
        with pytest.raises(bellrock.Error) as error:
            await getattr(network, name)(dpid)
        return str(error.value)

    assert "1.0" in answer(ask, "1.0")


def test_a_switch_that_is_not_there_is_an_error() -> None:
    async def ask(network: Network, dpid: int) -> str:
        with pytest.raises(bellrock.Error) as error:
            await network.table_stats(dpid + 1)
        return str(error.value)

    assert "no switch" in answer(ask, "1.3")


def test_the_description(version: Version) -> None:
    async def ask(network: Network, dpid: int) -> Any:
        return await network.description(dpid), network.switch(dpid)

    description, info = answer(ask, version)
    assert description.manufacturer == info.manufacturer and description.software == info.software
    assert isinstance(description.serial_number, str) and isinstance(description.datapath, str)
    assert info.hardware in repr(description)
