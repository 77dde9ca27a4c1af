"""Prints what programs learn from the functions of os_ken.topology.api and os_ken.app.ofctl.api, and from events of the topology."""

import os

from ryu.app.ofctl import api as ofctl
from ryu.base import app_manager
from ryu.controller.handler import set_ev_cls
from ryu.lib import hub
from ryu.topology import api, event

INTERVAL_S = 0.2


class Topology(app_manager.RyuApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.threads.append(hub.spawn(self.ask))

    def say(self, *words):
        os.write(1, " ".join(map(str, ("event", *words))).encode() + b"\n")

    def ask(self):
        """Asks again and again, as programs that draw a topology do."""
        last = None
        while True:
            switches, links, hosts = api.get_switch(self), api.get_link(self), api.get_host(self)
            now = (sorted(switch.dp.id for switch in switches), sorted((link.src.dpid, link.dst.dpid) for link in links),
                   sorted(host.mac for host in hosts))
            if now != last:
                self.say("topology", *now)
                last = now
            hub.sleep(INTERVAL_S)

    @set_ev_cls(event.EventSwitchEnter)
    def enter(self, ev):
        self.say("enter", ev.switch.dp.id)
        # A request to another app, which waits for the switch.
        datapath = ofctl.get_datapath(self, ev.switch.dp.id)
        request = datapath.ofproto_parser.OFPDescStatsRequest(datapath)
        reply = ofctl.send_msg(self, request, datapath.ofproto_parser.OFPDescStatsReply)
        self.say("description", reply.body.hw_desc.decode())
        if ofctl.get_datapath(self, 99) is None:
            self.say("no datapath 99")

    @set_ev_cls(event.EventSwitchLeave)
    def leave(self, ev):
        self.say("leave", ev.switch.dp.id)

    @set_ev_cls(event.EventLinkAdd)
    def link_add(self, ev):
        self.say("link_add", ev.link.src.dpid, ev.link.dst.dpid)

    @set_ev_cls(event.EventLinkDelete)
    def link_delete(self, ev):
        self.say("link_delete", ev.link.src.dpid, ev.link.dst.dpid)
