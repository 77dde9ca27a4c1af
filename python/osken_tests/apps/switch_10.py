"""A learning switch of OpenFlow 1.0, in the style of Ryu's programs."""

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ethernet, packet
from ryu.ofproto import ofproto_v1_0


class Switch10(app_manager.RyuApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath, parser = message.datapath, message.datapath.ofproto_parser
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        ports = self.ports.setdefault(datapath.id, {})
        ports[frame.src] = message.in_port
        port = ports.get(frame.dst, datapath.ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        if port != datapath.ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=message.in_port, dl_src=frame.src, dl_dst=frame.dst)
            datapath.send_msg(parser.OFPFlowMod(
                datapath=datapath, match=match, cookie=0, command=datapath.ofproto.OFPFC_ADD, idle_timeout=0,
                hard_timeout=0, priority=100, flags=datapath.ofproto.OFPFF_SEND_FLOW_REM, actions=actions))
        data = message.data if message.buffer_id == datapath.ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=message.buffer_id, in_port=message.in_port, actions=actions, data=data))
