"""Prints each event of a switch, with the state at which it comes."""

import os

from ryu.base import app_manager
from ryu.controller import dpset, ofp_event
from ryu.controller.handler import (
    CONFIG_DISPATCHER,
    DEAD_DISPATCHER,
    HANDSHAKE_DISPATCHER,
    MAIN_DISPATCHER,
    set_ev_cls,
)
from ryu.ofproto import ofproto_v1_3

ALL = [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER, DEAD_DISPATCHER]


class Order(app_manager.RyuApp):
    _CONTEXTS = {"dpset": dpset.DPSet}

    def say(self, *words):
        # In one piece: threads and the log write there too.
        os.write(1, " ".join(map(str, ("event", *words))).encode() + b"\n")

    @set_ev_cls(ofp_event.EventOFPStateChange, ALL)
    def state(self, event):
        # The datapath may be ahead of the event, except at its end.
        at_end = (event.datapath.id, event.datapath.is_active) if event.state == DEAD_DISPATCHER else ()
        self.say("state", event.state, *at_end)

    @set_ev_cls(ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER)
    def hello(self, event):
        self.say("hello", event.msg.version)

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, event):
        message = event.msg
        # It may have sent the next request already.
        self.say("features", message.datapath_id, message.datapath.xid - message.xid in (0, 1))

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, CONFIG_DISPATCHER)
    def ports(self, event):
        self.say("port_desc", [port.port_no for port in event.msg.body])

    @set_ev_cls(ofp_event.EventOFPEchoReply, MAIN_DISPATCHER)
    def echo_reply(self, event):
        self.say("echo_reply", event.msg.data.decode())

    @set_ev_cls(dpset.EventDP)
    def dp(self, event):
        self.say("dp", event.enter, event.dp.id)

    @set_ev_cls(dpset.EventDPReconnected)
    def reconnected(self, event):
        self.say("reconnected", event.dp.id)

    @set_ev_cls(ofp_event.EventOFPPacketIn, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def packet_in(self, event):
        message, datapath = event.msg, event.msg.datapath
        order = bytes(message.data).split(b"\0")[0].decode()
        self.say("packet_in", order, datapath.state, sorted(datapath.ports))
        parser = datapath.ofproto_parser
        if order == "close":
            datapath.close()
        elif order == "echo":
            echo = parser.OFPEchoRequest(datapath)
            echo.data = b"of my own"
            datapath.send_msg(echo)
        elif order == "wrong":
            datapath.send(bytes([4, ofproto_v1_3.OFPT_PACKET_IN, 0, 8, 0, 0, 0, 0]))
        elif order == "raise":
            raise RuntimeError("it fails")
