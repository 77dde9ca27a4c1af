"""A learning switch that prints counters of its flows and ports."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from os_ken.app import simple_switch_13
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub

INTERVAL_S = 10
"""Time between two requests to each switch."""


class SimpleMonitor13(simple_switch_13.SimpleSwitch13):
    """Asks all switches for counters, again and again. Subclasses read `datapaths`, and replace the handlers of replies."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.datapaths: dict[int, Any] = {}
        self.monitor_thread = hub.spawn(self._monitor)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state_change_handler(self, ev: Any) -> None:
        dpid = ev.datapath.id
        if ev.state == MAIN_DISPATCHER:
            self.datapaths[dpid] = ev.datapath
        elif self.datapaths.get(dpid) is ev.datapath:
            del self.datapaths[dpid]

    def _monitor(self) -> None:
        while True:
            for datapath in list(self.datapaths.values()):
                self._request_stats(datapath)
            hub.sleep(INTERVAL_S)

    def _request_stats(self, datapath: Any) -> None:
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        datapath.send_msg(parser.OFPFlowStatsRequest(datapath))
        datapath.send_msg(parser.OFPPortStatsRequest(datapath, 0, ofproto.OFPP_ANY))

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def _flow_stats_reply_handler(self, ev: Any) -> None:
        self.logger.info("%-16s %8s %-17s %8s %8s %8s", "datapath", "in-port", "eth-dst", "out-port", "packets", "bytes")
        learned = [flow for flow in ev.msg.body if flow.priority == simple_switch_13.LEARNED]
        for flow in sorted(learned, key=lambda flow: (flow.match["in_port"], flow.match["eth_dst"])):
            self.logger.info(
                "%016x %8x %17s %8x %8d %8d", ev.msg.datapath.id, flow.match["in_port"], flow.match["eth_dst"],
                flow.instructions[0].actions[0].port, flow.packet_count, flow.byte_count)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def _port_stats_reply_handler(self, ev: Any) -> None:
        names = ("datapath", "port", "rx-pkts", "rx-bytes", "rx-error", "tx-pkts", "tx-bytes", "tx-error")
        self.logger.info("%-16s %8s %8s %8s %8s %8s %8s %8s", *names)
        for stat in sorted(ev.msg.body, key=attrgetter("port_no")):
            self.logger.info(
                "%016x %8x %8d %8d %8d %8d %8d %8d", ev.msg.datapath.id, stat.port_no, stat.rx_packets, stat.rx_bytes,
                stat.rx_errors, stat.tx_packets, stat.tx_bytes, stat.tx_errors)
