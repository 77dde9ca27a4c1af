"""Apps in the lab: every event arrives, and what fails costs nobody else anything."""

import asyncio
import gc
import weakref
from typing import Any, Literal

import pytest

import bellrock
from bellrock import (
    Action,
    App,
    Bucket,
    Flow,
    Group,
    MacAddr,
    Match,
    Meter,
    Network,
    PacketIn,
    PacketIns,
    Port,
    Switch,
    Verdict,
)
from bellrock.lab import Lab, Topology, linear, ring, single, tree

Version = Literal["1.0", "1.3"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.3")


def hub(switch: Switch, packet: PacketIn) -> None:
    switch.packet_out(packet, Port.FLOOD)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_function_is_an_app(version: Version) -> None:
    lab = Lab(tree(2, 2), hub, version=version)
    assert lab.ping_all() and lab.exceptions == []


def test_a_class_is_an_app_with_an_instance_for_each_switch() -> None:
    class Counts:
        made: list["Counts"] = []

        def __init__(self) -> None:
            self.switches: set[int] = set()
            self.made.append(self)

        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            self.switches.add(switch.dpid)
            switch.packet_out(packet, Port.FLOOD)

    lab = Lab(linear(3), Counts)
    assert lab.ping_all()
    assert [handler.switches for handler in Counts.made] == [{1}, {2}, {3}]


def test_a_run_is_repeated_by_its_seed() -> None:
    def digest(seed: int) -> int:
        lab = Lab(linear(3), hub, seed=seed)
        lab.inject(seed, seconds=5)
        lab.ping_all()
        return lab.digest

    assert digest(5) == digest(5) != digest(6)


class Everything(App):
    """Notes all events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self, network: Network) -> None:
        self.network = network
        self.events.append("start")

    def switch_up(self, network: Network, switch: Switch) -> None:
        self.events.append(f"up {switch.dpid}")
        self.switch = switch
        switch.install(Flow(Match(in_port=9), idle_timeout=1, send_flow_removed=True, number=7))
        switch.barrier()

    def packet_in(self, switch: Switch, packet: PacketIn) -> None:
        switch.packet_out(packet, [Action.output(Port.FLOOD)])

    def port_status(self, switch: Switch, status: bellrock.PortStatus) -> None:
        port = switch.port(status.port.number)
        assert port is not None and port.is_up == status.port.is_up
        self.events.append(f"port {status.port.number} {'up' if status.port.is_up else 'down'}")

    def flow_removed(self, switch: Switch, flow: bellrock.FlowRemoved) -> None:
        assert flow.is_own and flow.matching == Match(in_port=9) and flow.number == 7
        self.events.append(f"removed {flow.reason}")

    def barrier(self, switch: Switch, xid: int) -> None:
        self.events.append("barrier")

    def tick(self, switch: Switch) -> None:
        if "tick" not in self.events:
            self.events.append("tick")

    def switch_down(self, switch: Switch) -> None:
        assert not switch.is_up
        self.events.append("down")


def test_all_events_arrive(version: Version) -> None:
    app = Everything()
    lab = Lab(single(2), app, version=version)
    assert lab.ping("h1", "h2")
    lab.run_for(3)
    lab.link_down("h1", "s1")
    lab.link_up("h1", "s1")
    lab.run_for(1)
    lab.disconnect("s1")
    lab.run_for(1)
    assert app.events.index("tick") > app.events.index("barrier")
    app.events.remove("tick")
    expected = ["start", "up 1", "barrier", "removed idle_timeout", "port 1 down", "port 1 up", "down"]
    assert app.events == expected and lab.exceptions == []
    with pytest.raises(bellrock.Error, match="no switch"):
        app.switch.barrier()
    lab.reconnect("s1")
    lab.run_for(5)
    assert "up 1" in app.events[len(expected) :] and app.switch.is_up


def test_an_exception_takes_back_what_its_event_wrote() -> None:
    class Fails(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            switch.packet_out(packet, Port.FLOOD)
            raise RuntimeError("it fails")

    lab = Lab(single(2), Fails())
    assert not lab.ping("h1", "h2")
    assert lab.exceptions and all(str(error) == "it fails" for error in lab.exceptions)


def test_ten_exceptions_disable_an_app_and_no_other() -> None:
    class Fails(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            raise RuntimeError("it fails")

    lab = Lab(single(2), Fails(), hub)
    for _ in range(12):
        lab.ping("h1", "h2")
    assert lab.ping("h1", "h2"), "the hub does it alone"
    assert [str(error) for error in lab.exceptions[:10]] == ["it fails"] * 10
    [disabled] = lab.exceptions[10:]
    assert str(disabled).startswith("APP DISABLED: Fails")



def test_a_handler_of_a_wrong_shape_harms_its_own_switch_only() -> None:
    class Odd:
        def packet_in(self, switch: Switch) -> None:
            raise AssertionError("it lacks an argument")

    class Floods:
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            switch.packet_out(packet, Port.FLOOD)

    class Mixed(App):
        def switch_up(self, network: Network, switch: Switch) -> Any:
            return Odd() if switch.dpid == 3 else Floods()

    lab = Lab(linear(3), Mixed())
    assert lab.ping("h1", "h2"), "the other switches have their handlers"
    [wrong] = lab.exceptions
    assert isinstance(wrong, TypeError) and "packet_in" in str(wrong)


def test_a_cancelled_error_of_a_handler_is_the_fault_of_its_app() -> None:
    class Cancels(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            raise asyncio.CancelledError

    lab = Lab(single(2), Cancels())
    lab.ping("h1", "h2")
    assert lab.exceptions and all(isinstance(error, asyncio.CancelledError) for error in lab.exceptions)


def test_apps_of_bellrock_stand_beside_those_in_python(version: Version) -> None:
    class Firewall(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict | None:
            return None if packet.udp is not None else Verdict.PASS

    lab = Lab(linear(2), Firewall(), "learning", version=version)
    assert lab.udp("h1", "h2", 1) == 0, "it meets the firewall first"
    assert lab.ping("h1", "h2")
    lab = Lab(ring(4), "routing", version=version)
    lab.run_for(5)
    assert lab.ping_all()
    with pytest.raises(ValueError, match="there are hub, learning, routing"):
        Lab(single(1), "nothing")


def test_an_app_has_counters_of_its_own() -> None:
    class Counts(App):
        counters = {"pings": "Echo requests seen.", "others": "Other packets seen."}

        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
            switch.count("pings" if packet.icmp is not None else "others")
            with pytest.raises(KeyError, match="nothing: the app has it not"):
                switch.count("nothing")
            return Verdict.PASS

    lab = Lab(linear(2), Counts(), hub)
    assert lab.ping("h1", "h2")
    lab.udp("h1", "h2", 3)
    assert lab.app_counter("Counts", "pings") == 4, "two packets at two switches"
    assert (lab.app_counter("Counts", "others") or 0) >= 6
    assert lab.exceptions == []


@pytest.mark.parametrize("name", ["", "Pings", "a-b", "packet_ins_dropped", "a" * 300])
def test_a_counter_has_a_name_that_metrics_can_have(name: str) -> None:
    class Counts(App):
        counters = {name: "Nothing."}

    with pytest.raises(ValueError, match="counters: "):
        Lab(single(1), Counts())


def test_a_packet_goes_on_only_if_it_is_passed() -> None:
    class Firewall(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict | None:
            return None if packet.icmp is not None else Verdict.PASS

    lab = Lab(single(2), Firewall(), hub)
    assert not lab.ping("h1", "h2")
    assert lab.udp("h1", "h2", 5) == 5


def test_packets_come_in_batches_to_an_app_that_wants_them(version: Version) -> None:
    class Batches(App):
        def packet_ins(self, switch: Switch, packets: PacketIns) -> list[PacketIn]:
            return [packet for packet in packets if packet.icmp is None]

    lab = Lab(single(2), Batches(), hub, version=version)
    assert not lab.ping("h1", "h2") and lab.udp("h1", "h2", 5) == 5


def test_a_batch_is_a_sequence_that_reads_a_field_of_all_its_packets(version: Version) -> None:
    seen: list[PacketIns] = []

    class Batches(App):
        def packet_ins(self, switch: Switch, packets: PacketIns) -> PacketIns:
            seen.append(packets)
            return packets

    lab = Lab(single(2), Batches(), hub, version=version)
    assert lab.udp("h1", "h2", 5) == 5
    for packets in seen:
        each = list(packets)
        assert len(packets) == len(each) > 0
        assert packets.values("in_port") == [packet.in_port for packet in each]
        sources = [MacAddr(number) for number in packets.values("eth_src")]
        assert sources == [packet.eth_src for packet in each]
        assert packets.values("eth_type") == [packet.eth_type for packet in each]
        ports = [None if packet.udp is None else packet.udp.dst_port for packet in each]
        assert packets.values("udp_dst") == ports
        assert packets[-1].data == each[-1].data and packets[:1][0].data == each[0].data
        with pytest.raises(IndexError):
            packets[len(each)]
        with pytest.raises(TypeError, match="no_field"):
            packets.values("no_field")


def test_flows_for_a_batch_are_those_for_its_packets(version: Version) -> None:
    class Each(App):
        fields: tuple[str, ...] = ()

        def packet_ins(self, switch: Switch, packets: PacketIns) -> None:
            ports = [3 - port for port in packets.values("in_port")]
            switch.install_each(packets, ports, *self.fields, idle_timeout=7, priority=5)

    class OneByOne(App):
        fields: tuple[str, ...] = ()

        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            match = Match.from_packet(packet, *self.fields)
            action = Action.output(3 - packet.in_port)
            switch.install(Flow(match, action, idle_timeout=7, priority=5), packet)

    for fields in [("in_port", "eth_dst"), ("eth_src",), ("in_port", "eth_type", "eth_src")]:
        flows = []
        for app in (Each(), OneByOne()):
            app.fields = fields
            lab = Lab(single(2), app, version=version)
            assert lab.ping("h1", "h2") and not lab.exceptions
            flows.append(sorted(flow.partition("idle_timeout=")[2] for flow in lab.flows("s1")))
        assert flows[0] == flows[1] and any("output:" in flow for flow in flows[0])


def test_a_batch_with_the_wrong_ports_installs_nothing() -> None:
    class Wrong(App):
        def packet_ins(self, switch: Switch, packets: PacketIns) -> None:
            for ports in ([], [1] * (len(packets) + 1)):
                with pytest.raises(ValueError, match="a port, or None, for each"):
                    switch.install_each(packets, ports, "eth_dst")
            with pytest.raises(ValueError, match="tcp_dst"):
                switch.install_each(packets, [1] * len(packets), "tcp_dst")
            with pytest.raises(TypeError):
                switch.install_each(packets, ["1"] * len(packets), "eth_dst")  # type: ignore[list-item]
            others = switch.install_each(packets, [None] * len(packets), "eth_dst")
            assert [packet.data for packet in others] == [packet.data for packet in packets]

    lab = Lab(single(2), Wrong())
    lab.udp("h1", "h2", 1)
    assert not lab.exceptions and not any("output:" in flow for flow in lab.flows("s1"))


def test_a_coroutine_follows_the_clock_of_the_lab() -> None:
    times: list[float] = []

    class Clock(App):
        def start(self, network: Network) -> None:
            self.spawn(self.run(network))

        async def run(self, network: Network) -> None:
            for _ in range(3):
                await asyncio.sleep(3600)
                times.append(network.now())

    lab = Lab(single(1), Clock())
    lab.run_for(3 * 3600 + 1)
    assert [round(time) for time in times] == [3600, 7200, 10800]


def test_changes_are_confirmed_and_refusals_are_exceptions(version: Version) -> None:
    done: list[object] = []

    class Commits(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            self.spawn(self.run(network, switch.dpid))

        async def run(self, network: Network, dpid: int) -> None:
            plan = bellrock.Plan()
            plan.add(dpid, Flow(Match(in_port=1), Action.output(2)))
            plan.add(dpid, Flow(Match(in_port=2), Action.output(1)))
            await network.commit(plan)
            flows = await network.flow_stats(dpid)
            done.append([str(flow.matching) for flow in flows if flow.is_own])
            ports = await network.port_stats(dpid)
            done.append([port.port for port in ports][:2])
            wrong = bellrock.Plan()
            wrong.add(dpid + 7, Flow(Match(in_port=1)))
            try:
                await network.commit(wrong)
            except bellrock.Error as error:
                done.append(type(error).__name__)

    lab = Lab(single(2), Commits(), version=version)
    lab.run_for(5)
    assert done == [["in_port=1", "in_port=2"], [1, 2], "Error"], lab.exceptions
    assert lab.ping("h1", "h2"), "by flows alone"


def test_events_of_the_network_are_a_stream() -> None:
    names: list[str] = []

    class Watches(App):
        def start(self, network: Network) -> None:
            self.spawn(self.run(network))

        async def run(self, network: Network) -> None:
            async for event in network.events():
                if isinstance(event, bellrock.Event):
                    names.append(event.name)

    lab = Lab(single(1), Watches())
    lab.disconnect("s1")
    lab.run_for(2)
    assert "switch_up" in names and "switch_down" in names, names


def test_topology_hosts_and_paths_are_there_for_apps_that_need_them() -> None:
    class Knows(App):
        needs = ("topology", "hosts", "paths")

        def switch_up(self, network: Network, switch: Switch) -> None:
            self.network = network

        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            if packet.in_port not in self.network.flood_ports(switch.dpid):
                return
            for port in self.network.flood_ports(switch.dpid):
                if port != packet.in_port:
                    switch.packet_out(packet, port)

    app = Knows()
    lab = Lab(ring(4), app)
    lab.run_for(10)
    assert lab.ping_all(), "the ring is flooded as a tree"
    assert len(app.network.links) == 8
    hosts = {str(host.mac): host for host in app.network.hosts}
    assert set(hosts) == {str(lab.mac(name)) for name in lab.hosts}
    found = app.network.host_by_ip(lab.ip("h1"))
    assert found is not None and found.dpid == 1 and found.mac == lab.mac("h1")
    path = app.network.path(1, 3)
    assert path is not None and len(path) == 2
    assert app.network.path(1, 99) is None
    lab.link_down("s1", "s2")
    lab.run_for(2)
    assert len(app.network.path(1, 2) or ()) == 3


def test_wrong_names_and_arguments_are_errors_that_say_what_is_right() -> None:
    lab = Lab(single(2), hub)
    with pytest.raises(ValueError, match="h1 to h2|h1 and h2"):
        lab.ping("h1", "h7")
    with pytest.raises(ValueError):
        lab.run_for(-1)
    with pytest.raises(TypeError, match="no app"):
        Lab(single(2))
    with pytest.raises(TypeError, match="no app"):
        Lab(single(2), 7)  # type: ignore[arg-type]
    with pytest.raises(bellrock.Error, match="ring"):
        Lab(ring(2), hub)
    with pytest.raises(TypeError, match="topology"):
        Lab("single", hub)  # type: ignore[arg-type]
    assert lab.ping("h1", "h2"), "the lab goes on"


def test_a_topology_can_be_written() -> None:
    topology = Topology.parse("switch left dpid=0x1\nhost a\nhost b\nlink a left\nlink b left\n")
    lab = Lab(topology, hub)
    assert lab.ping("a", "b") and list(lab.switches) == ["left"]


def test_faults_are_drawn_from_a_seed() -> None:
    lab = Lab(single(2), hub)
    plan = lab.inject(3, "connection_reset", "restart_without_tables", seconds=10)
    assert "reset" in plan
    lab.run_for(30)
    assert lab.ping("h1", "h2") and lab.exceptions == []


def test_an_action_that_the_version_lacks_is_an_error() -> None:
    class Wants(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            switch.install(Flow(Match(in_port=1), Action.push_vlan(0x8100)))

    lab = Lab(single(1), Wants(), version="1.0")
    assert len(lab.exceptions) == 1 and isinstance(lab.exceptions[0], bellrock.Error)
    assert Lab(single(1), Wants(), version="1.3").exceptions == []


def test_a_handler_may_end_the_test() -> None:
    class Stops(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            raise KeyboardInterrupt

    lab = Lab(single(2), Stops())
    with pytest.raises(KeyboardInterrupt):
        lab.ping("h1", "h2")


def test_groups_and_meters_are_installed_before_the_flows_that_use_them() -> None:
    class Spreads(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            self.spawn(self.run(network, switch.dpid))

        async def run(self, network: Network, dpid: int) -> None:
            plan = bellrock.Plan()
            for port in (1, 2):
                other = Group(port, "indirect", Bucket(Action.output(3 - port)))
                plan.add(dpid, Flow(Match(in_port=port), Action.group(port), meter=port))
                plan.group(dpid, other)
                plan.meter(dpid, Meter(port, kbps=10_000))
            await network.commit(plan)

    lab = Lab(single(2), Spreads(), version="1.3")
    assert lab.ping("h1", "h2") and lab.exceptions == []
    assert any("meter:1" in flow and "group:1" in flow for flow in lab.flows("s1"))


def test_desired_state_comes_back_after_a_restart_of_the_switch() -> None:
    class Wants(App):
        keeps_flows = True
        wants_packet_ins = False

        def start(self, network: Network) -> None:
            self.desired = network.desired
            self.set({1: 2, 2: 1})
            self.desired.complete()
            self.spawn(self.change())

        def set(self, cables: dict[int, int]) -> None:
            flows = [Flow(Match(in_port=a), Action.output(b)) for a, b in cables.items()]
            self.desired.set(7, [(1, flow) for flow in flows])

        async def change(self) -> None:
            await asyncio.sleep(60)
            await self.desired.commit(7, [(1, Flow(Match(in_port=1), Action.output(2)))])
            await self.desired.settled()
            self.is_changed = True

    app = Wants()
    lab = Lab(single(2), app)
    lab.run_for(2)
    assert lab.ping("h1", "h2")
    lab.restart("s1")
    assert lab.run_until(lambda: len(lab.flows("s1")) == 2, 30), lab.flows("s1")
    lab.run_for(60)
    assert app.is_changed and len(lab.flows("s1")) == 1 and lab.exceptions == []


def test_desired_state_needs_an_app_that_keeps_flows() -> None:
    class Forgets(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            network.desired.complete()

    lab = Lab(single(1), Forgets())
    assert "keeps_flows = True" in str(lab.exceptions)


def test_a_coroutine_that_lets_no_time_pass_is_an_error() -> None:
    class Spins(App):
        def start(self, network: Network) -> None:
            self.spawn(self.run())

        async def run(self) -> None:
            while True:
                await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="lets no time pass"):
        Lab(single(1), Spins()).run_for(1)


def test_a_lab_is_freed_with_its_apps() -> None:
    app = Everything()
    freed = weakref.ref(app)
    lab = Lab(single(2), app)
    assert lab.ping("h1", "h2")
    del app, lab
    gc.collect()
    assert freed() is None


def test_a_match_is_made_from_a_packet(version: Version) -> None:
    matches: dict[str, Match] = {}

    class Notes(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
            if packet.udp is not None:
                matches["all"] = Match.from_packet(packet)
                matches["some"] = Match.from_packet(packet, "in_port", "udp_dst")
                with pytest.raises(ValueError, match="no tcp_dst"):
                    Match.from_packet(packet, "tcp_dst")
                with pytest.raises(TypeError, match="nonsense"):
                    Match.from_packet(packet, "nonsense")
            elif packet.arp is not None:
                matches["arp"] = Match.from_packet(packet)
            return Verdict.PASS

    lab = Lab(single(2), Notes(), hub, version=version)
    assert lab.udp("h1", "h2", 1) == 1 and lab.exceptions == []
    some = Match(in_port=1, eth_type=0x0800, ip_proto=17, udp_dst=5001)
    assert matches["some"] == some
    everything = matches["all"]
    assert everything["ipv4_src"] == lab.ip("h1") and everything["eth_dst"] == lab.mac("h2")
    assert everything["vlan_vid"] == 0 and everything["udp_src"] == 5000
    assert matches["arp"]["arp_tpa"] in (lab.ip("h1"), lab.ip("h2"))


def test_an_app_that_sees_packets_gets_them_after_an_app_behind_has_flows(version: Version) -> None:
    class Counts(App):
        sees = Match(eth_type=0x0800, ip_proto=6)

        def __init__(self) -> None:
            self.tcp = 0

        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
            self.tcp += packet.tcp is not None
            return Verdict.PASS

    app = Counts()
    lab = Lab(single(2), app, "learning", version=version)
    assert lab.ping_all()
    assert lab.tcp("h1", "h2", 10_000)
    before = app.tcp
    assert before > 10, "each packet comes"
    # Flows of the switch are not the app's: it cannot remove them.
    assert lab.tcp("h1", "h2", 10_000) and app.tcp >= 2 * before - 1
    assert lab.exceptions == [] and lab.warnings == []


def test_an_allowed_match_ends_when_the_app_drops_it(version: Version) -> None:
    tcp = Match(eth_type=0x0800, ip_proto=6)

    class Allows(App):
        sees = [tcp]

        def start(self, network: Network) -> None:
            self.dropping = False

        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
            if packet.tcp is not None:
                switch.allow(tcp, 3600)
            return Verdict.PASS

        def tick(self, switch: Switch) -> None:
            if self.dropping:
                switch.install(Flow(tcp))

    app = Allows()
    lab = Lab(single(2), app, "learning", version=version)
    for _ in range(2):
        assert lab.tcp("h1", "h2")
    app.dropping = True
    lab.run_for(2)
    assert not lab.tcp("h1", "h2") and lab.ping("h1", "h2")
    assert lab.exceptions == []


def test_allow_is_for_what_the_app_sees() -> None:
    class Sees(App):
        sees = Match(eth_type=0x0800)

        def switch_up(self, network: Network, switch: Switch) -> None:
            for seconds in (0, -1, float("nan")):
                with pytest.raises(ValueError, match="give the time"):
                    switch.allow(Match(), seconds)

    class Blind(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            with pytest.raises(ValueError, match=r"write `sees = Match\(…\)`"):
                switch.allow(Match())

    for app in (Sees(), Blind()):
        assert Lab(single(1), app).exceptions == []
    Sees.sees = [Match()] * 65  # type: ignore[assignment]
    with pytest.raises(bellrock.Error, match="64 are the maximum"):
        Lab(single(1), Sees())
    with pytest.raises(TypeError, match="sees has 3"):
        Blind.sees = [3]  # type: ignore[list-item]
        Lab(single(1), Blind())


def test_an_app_that_passes_packets_on_is_a_warning_until_it_says_what_it_sees(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Firewall(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
            return Verdict.PASS

    class Monitor(App):
        def tick(self, switch: Switch) -> None:
            pass

    lab = Lab(single(1), Monitor(), Firewall(), "learning")
    [warning] = lab.warnings
    assert "Firewall" in warning and "`sees`" in warning and warning in caplog.text
    Firewall.sees = ()
    assert Lab(single(1), Monitor(), Firewall(), "learning").warnings == []


def test_an_undeclared_need_is_an_error_that_names_it() -> None:
    class Reads(App):
        def start(self, network: Network) -> None:
            self.network = network

    def errors(network: Network) -> list[str]:
        mac = MacAddr(1)
        found = []
        for read in (
            lambda: network.links,
            lambda: network.hosts,
            lambda: network.host(mac),
            lambda: network.host_by_ip("10.0.0.1"),
            lambda: network.path(1, 2),
            lambda: network.flood_ports(1),
        ):
            try:
                read()
            except bellrock.Error as error:
                found.append(str(error))
        return found

    app = Reads()
    lab = Lab(linear(2), app)
    assert len(errors(app.network)) == 6 and len(errors(lab.network)) == 6
    assert errors(app.network)[-1].startswith('flood_ports needs "paths": write `needs = ("paths",)`')
    Reads.needs = ("topology", "hosts")
    lab = Lab(linear(2), app)
    assert [text.split()[0] for text in errors(app.network)] == ["path", "flood_ports"]
    Reads.needs = ("hosts", "paths")
    lab = Lab(linear(2), app)
    assert errors(app.network) == errors(lab.network) == []
    with pytest.raises(TypeError, match=r"needs = \('topology',\)"):
        Reads.needs = "topology"  # type: ignore[assignment]
        Lab(linear(2), app)


def test_the_lab_refuses_what_a_controller_refuses() -> None:
    class Drops(App):
        forwards = "nothing"
        sees = ()

    for apps, why in (
        ((Drops(), Drops()), "two apps are called Drops"),
        (("learning", Drops()), "put it first"),
        (("hub", "learning"), "leave one of the two out"),
    ):
        with pytest.raises(bellrock.Error, match=why):
            Lab(single(2), *apps)
        assert Lab(single(2), *apps, checked=False).ping("h1", "h2") == ("learning" in apps or "hub" in apps)


def test_a_disabled_app_is_an_exception_of_the_lab(caplog: pytest.LogCaptureFixture) -> None:
    def broken(switch: Switch, packet: PacketIn) -> None:
        raise RuntimeError("always")

    lab = Lab(single(2), broken)
    for _ in range(20):
        lab.ping("h1", "h2")
    [last] = [error for error in lab.exceptions if "APP DISABLED: broken" in str(error)]
    assert str(last) in caplog.text


def test_near_misses_of_names_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    class Misspelt(App):
        need = ("topology",)

        def packetin(self, switch: Switch, packet: PacketIn) -> None: ...
        def PacketIns(self, switch: Switch, packets: object) -> None: ...
        def switchup(self, network: Network, switch: Switch) -> None: ...

    class Empty(App): ...

    class Right(App):
        counter = 0
        names = ("a", "b")

        def __init__(self) -> None:
            self.packets: list[PacketIn] = []
            self.need = 7

        def packet_in(self, switch: Switch, packet: PacketIn) -> None: ...
        def errors(self) -> None: ...
        def packet_out_to(self, switch: Switch, packet: PacketIn) -> None: ...

    class SwitchHandler:
        def port_stat(self, switch: Switch, status: object) -> None: ...

    class Makes(App):
        def switch_up(self, network: Network, switch: Switch) -> object:
            return SwitchHandler()

    Lab(single(1), Misspelt())
    for wrong, right in (
        ("need", "needs"),
        ("packetin", "packet_in"),
        ("PacketIns", "packet_ins"),
        ("switchup", "switch_up"),
    ):
        assert f"{wrong} is not used; did you mean {right}?" in caplog.text
    assert "app Misspelt has no event" in caplog.text
    caplog.clear()
    Lab(single(1), Empty())
    assert "app Empty has no event" in caplog.text
    caplog.clear()
    Lab(single(1), Makes())
    assert "SwitchHandler.port_stat is not used; did you mean port_status?" in caplog.text
    caplog.clear()
    Lab(single(1), Right())
    assert caplog.text == ""


def test_methods_that_cannot_take_their_event_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    class TooFew(App):
        def packet_in(self, packet: PacketIn) -> None: ...  # type: ignore[override]

    class Coroutine(App):
        async def tick(self, switch: Switch) -> None: ...

    class Class:
        def packet_in(self, packet: PacketIn) -> None: ...

    class Swapped(App):
        def packet_in(self, packet: PacketIn, switch: Switch) -> None: ...  # type: ignore[override]

    for app, why in (
        (TooFew(), r"packet_in is called with \(switch, packet\)"),
        (Coroutine(), "tick cannot be a coroutine"),
        (Class, r"packet_in is called with \(switch, packet\)"),
    ):
        with pytest.raises(TypeError, match=why):
            Lab(single(1), app)
    Lab(single(1), Swapped())
    assert "app Swapped: packet_in is called with (switch, packet), in this order" in caplog.text


def test_a_class_of_apps_without_arguments_is_an_app() -> None:
    class Hub(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            switch.packet_out(packet, Port.FLOOD)

    class Needs(App):
        def __init__(self, argument: int) -> None: ...

    assert Lab(single(2), Hub).ping("h1", "h2")
    with pytest.raises(TypeError, match=r"Needs is a class; give an instance: Needs\(…\)"):
        Lab(single(1), Needs)
