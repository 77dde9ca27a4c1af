"""What programs do with a datapath and with other apps. A packet-in orders it; lines report it."""

import os

from questions import Question
from ryu.base import app_manager
from ryu.controller import dpset, ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub


class Details(app_manager.RyuApp):
    _CONTEXTS = {"dpset": dpset.DPSet}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.name = "details"
        self.dpset = kwargs["dpset"]
        self.datapaths = {}

    def say(self, *words):
        os.write(1, " ".join(map(str, ("event", *words))).encode() + b"\n")

    @set_ev_cls(ofp_event.EventOFPStateChange, [CONFIG_DISPATCHER, MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state(self, ev):
        """As monitors do it."""
        if ev.state == MAIN_DISPATCHER:
            self.datapaths[ev.datapath.id] = ev.datapath
        elif ev.state == DEAD_DISPATCHER and ev.datapath.id is not None:
            del self.datapaths[ev.datapath.id]
            self.say("left", ev.datapath.id, ev.datapath.is_active, sorted(self.datapaths))

    @set_ev_cls(dpset.EventDP)
    def dp(self, ev):
        self.say("dp", ev.enter, ev.dp.id, sorted(port.port_no for port in ev.ports))

    @set_ev_cls([dpset.EventPortAdd, dpset.EventPortDelete, dpset.EventPortModify])
    def port(self, ev):
        self.say(type(ev).__name__, ev.port.port_no, sorted(port.port_no for port in self.dpset.get_ports(ev.dp.id)))

    @set_ev_cls(ofp_event.EventOFPPortStateChange, MAIN_DISPATCHER)
    def port_state(self, ev):
        self.say("port_state", ev.reason, ev.port_no, sorted(ev.datapath.ports))

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def barrier(self, ev):
        self.say("barrier", ev.msg.xid == self.barrier_xid)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def error(self, ev):
        self.say("error", ev.msg.type, ev.msg.code)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        order = bytes(ev.msg.data).split(b"\0")[0].decode()
        getattr(self, f"do_{order}")(ev.msg.datapath)

    def do_barrier(self, datapath):
        request = datapath.ofproto_parser.OFPBarrierRequest(datapath)
        self.barrier_xid = datapath.set_xid(request)
        self.say("sent", datapath.send_msg(request), self.barrier_xid == datapath.xid)
        # The second way; its reply comes second.
        datapath.send_barrier()

    def do_bricks(self, datapath):
        found = [app_manager.lookup_service_brick(name) for name in ("ofp_event", "dpset", "details")]
        self.say("bricks", *(type(brick).__name__ for brick in found))
        self.say("dps", [dpid for dpid, _ in self.dpset.get_all()], self.dpset.get(datapath.id) is datapath)

    def do_spawn(self, datapath):
        def work():
            hub.sleep(0.01)
            self.say("spawned", datapath.is_active)

        thread = hub.spawn(work)
        hub.joinall([thread])
        self.say("joined")

    def do_ask(self, datapath):
        self.say("answer", self.send_request(Question("of an app")).text)

    def do_large(self, datapath):
        parser = datapath.ofproto_parser
        data = bytes(60000)
        for _ in range(200):
            datapath.send_msg(parser.OFPPacketOut(datapath, 0xFFFFFFFF, 1, [parser.OFPActionOutput(2)], data))
        self.say("sent 12 MB")

    def do_close(self, datapath):
        datapath.close()
        self.say("closed", datapath.is_active in (True, False), datapath.send_msg(datapath.ofproto_parser.OFPBarrierRequest(datapath)))
