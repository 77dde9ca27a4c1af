"""A learning switch on os-ken, for OpenFlow 1.0 and 1.3. Usage: os_ken_learning.py HOST PORT"""
import sys
from os_ken.lib import hub
hub.patch(thread=False)
from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import set_ev_cls
from os_ken.lib.mac import haddr_to_str
from os_ken.ofproto import ofproto_v1_0 as v1_0, ofproto_v1_3 as v1_3


class Learning(OSKenApp):
    OFP_VERSIONS = [v1_0.OFP_VERSION, v1_3.OFP_VERSION]
    ports = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn)
    def packet_in(self, event):
        packet, switch, old = event.msg, event.msg.datapath, event.msg.version == v1_0.OFP_VERSION
        ofp, make = switch.ofproto, switch.ofproto_parser
        port, dst, src = packet.in_port if old else packet.match['in_port'], packet.data[:6], packet.data[6:12]
        self.ports[switch.id, src] = port
        actions = [make.OFPActionOutput(self.ports.get((switch.id, dst), ofp.OFPP_FLOOD))]
        buffered = packet.buffer_id != ofp.OFP_NO_BUFFER
        if known := (switch.id, dst) in self.ports:
            if old:
                flow = {'match': make.OFPMatch(in_port=port, dl_src=src, dl_dst=dst), 'actions': actions}
            else:
                flow = {'match': make.OFPMatch(in_port=port, eth_src=haddr_to_str(src), eth_dst=haddr_to_str(dst)),
                        'instructions': [make.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]}
            switch.send_msg(make.OFPFlowMod(switch, buffer_id=packet.buffer_id, priority=100, **flow))
        if not (known and buffered):
            switch.send_msg(make.OFPPacketOut(switch, buffer_id=packet.buffer_id, in_port=port, actions=actions,
                                              data=None if buffered else packet.data))


cfg.CONF(['--ofp-listen-host', sys.argv[1], '--ofp-tcp-listen-port', sys.argv[2]], project='os_ken')
AppManager.run_apps([__name__, 'os_ken.controller.ofp_handler'])
