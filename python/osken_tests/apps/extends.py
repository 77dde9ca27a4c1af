"""Extends applications of Ryu, as programs of courses do."""

import os
import sys

# In front of the next ones, if it is asked for.
if os.environ.get("OWN_APPS"):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import own_apps

from ryu.app import simple_monitor_13, simple_switch, simple_switch_13
from ryu.app.ofctl import api
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub

PAUSE_S = 0.05


class Mine(simple_monitor_13.SimpleMonitor13):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        assert issubclass(Mine, simple_switch_13.SimpleSwitch13)
        assert callable(api.get_datapath) and simple_switch.SimpleSwitch.OFP_VERSIONS == [1]
        self.threads.append(hub.spawn(self.watch))

    def say(self, *words):
        os.write(1, " ".join(map(str, ("event", *words))).encode() + b"\n")

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet_in_handler(self, ev):
        super()._packet_in_handler(ev)
        self.say("learned", ev.msg.datapath.id, sorted(self.mac_to_port[ev.msg.datapath.id]))

    def watch(self):
        while not self.datapaths:
            hub.sleep(PAUSE_S)
        self.say("monitored", *self.datapaths)
