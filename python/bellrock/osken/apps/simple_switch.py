"""A learning switch of OpenFlow 1.0."""

from __future__ import annotations

from typing import Any

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.mac import haddr_to_bin
from os_ken.lib.packet import ether_types, ethernet, packet
from os_ken.ofproto import ofproto_v1_0


class SimpleSwitch(app_manager.OSKenApp):
    """Learns which address is behind which port, and installs a flow for each pair of addresses that talk.

    Subclasses call `add_flow`, read `mac_to_port` (by datapath id, then by address), and replace the handlers.
    """

    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mac_to_port: dict[int, dict[str, int]] = {}

    def add_flow(self, datapath: Any, in_port: int, dst: str, src: str, actions: list[Any]) -> None:
        """Installs a flow for packets of one address to another, whose end is reported."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        match = parser.OFPMatch(in_port=in_port, dl_dst=haddr_to_bin(dst), dl_src=haddr_to_bin(src))
        datapath.send_msg(
            parser.OFPFlowMod(
                datapath=datapath, match=match, cookie=0, command=ofproto.OFPFC_ADD, idle_timeout=0, hard_timeout=0,
                priority=ofproto.OFP_DEFAULT_PRIORITY, flags=ofproto.OFPFF_SEND_FLOW_REM, actions=actions)
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev: Any) -> None:
        msg = ev.msg
        datapath = msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        frame = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        if frame is None or frame.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        self.logger.info("packet in %s %s %s %s", datapath.id, frame.src, frame.dst, msg.in_port)
        known = self.mac_to_port.setdefault(datapath.id, {})
        known[frame.src] = msg.in_port
        port = known.get(frame.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        if port != ofproto.OFPP_FLOOD:
            self.add_flow(datapath, msg.in_port, frame.dst, frame.src, actions)
        data = msg.data if msg.buffer_id == ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(
            parser.OFPPacketOut(datapath=datapath, buffer_id=msg.buffer_id, in_port=msg.in_port, actions=actions, data=data)
        )

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port_status_handler(self, ev: Any) -> None:
        ofproto = ev.msg.datapath.ofproto
        names = {ofproto.OFPPR_ADD: "added", ofproto.OFPPR_DELETE: "deleted", ofproto.OFPPR_MODIFY: "modified"}
        self.logger.info("port %s %s", names.get(ev.msg.reason, ev.msg.reason), ev.msg.desc.port_no)
