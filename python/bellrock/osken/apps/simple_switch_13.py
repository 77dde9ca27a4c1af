"""A learning switch of OpenFlow 1.3: the class that most programs of Ryu extend."""

from __future__ import annotations

from typing import Any

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ether_types, ethernet, packet
from os_ken.ofproto import ofproto_v1_3

TABLE_MISS, LEARNED = 0, 1
"""Priorities of its flows."""


class SimpleSwitch13(app_manager.OSKenApp):
    """Learns which address is behind which port, and installs a flow for each pair of addresses that talk.

    Subclasses call `add_flow`, read `mac_to_port` (by datapath id, then by address), and replace the handlers.
    """

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mac_to_port: dict[int, dict[str, int]] = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_features_handler(self, ev: Any) -> None:
        datapath = ev.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        whole = parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)
        self.add_flow(datapath, TABLE_MISS, parser.OFPMatch(), [whole])

    def add_flow(self, datapath: Any, priority: int, match: Any, actions: list[Any], buffer_id: int | None = None) -> None:
        """Installs a flow. With `buffer_id` the switch sends that packet by it too."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)
        buffered = {"buffer_id": buffer_id} if buffer_id else {}
        datapath.send_msg(
            parser.OFPFlowMod(datapath=datapath, priority=priority, match=match, instructions=[apply], **buffered)
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev: Any) -> None:
        msg = ev.msg
        datapath, in_port = msg.datapath, msg.match["in_port"]
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        frame = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        if frame is None or frame.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        self.logger.info("packet in %s %s %s %s", datapath.id, frame.src, frame.dst, in_port)
        known = self.mac_to_port.setdefault(datapath.id, {})
        known[frame.src] = in_port
        port = known.get(frame.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        is_buffered = msg.buffer_id != ofproto.OFP_NO_BUFFER
        if port != ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_dst=frame.dst, eth_src=frame.src)
            if is_buffered:
                self.add_flow(datapath, LEARNED, match, actions, msg.buffer_id)
                return
            self.add_flow(datapath, LEARNED, match, actions)
        data = None if is_buffered else msg.data
        datapath.send_msg(
            parser.OFPPacketOut(datapath=datapath, buffer_id=msg.buffer_id, in_port=in_port, actions=actions, data=data)
        )
