"""Routing `hashed` of Polypath as an os-ken application, for two edge switches with others between them.

Switches 1 and 2 have a host each, at port 1; each of the four others has a link to both. The scenario has seed 1.
"""

from ipaddress import ip_address

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet.ipv4 import ipv4
from os_ken.lib.packet.packet import Packet
from os_ken.lib.packet.tcp import tcp
from os_ken.ofproto import ofproto_v1_3

WORD = (1 << 64) - 1
SEED = 1
MIDDLES = (3, 4, 5, 6)
HOSTS = {"10.0.0.1": 1, "10.0.0.2": 2}


def mix(value):
    """SplitMix64."""
    z = (value + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def flow_hash(source, source_port, destination, destination_port):
    label = 0
    for address, port in ((source, source_port), (destination, destination_port)):
        label = (mix(label ^ int(ip_address(address))) + port) & WORD
    return mix(mix(SEED ^ label) ^ 6)


class Hashed(OSKenApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.switches = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def begin(self, event):
        switch = event.msg.datapath
        self.switches[switch.id] = switch
        constants = switch.ofproto
        self.add(switch, 0, {}, constants.OFPP_CONTROLLER, constants.OFPCML_NO_BUFFER)

    def add(self, switch, priority, fields, port, max_len=0):
        parser, constants = switch.ofproto_parser, switch.ofproto
        actions = [parser.OFPActionOutput(port, max_len)]
        apply = parser.OFPInstructionActions(constants.OFPIT_APPLY_ACTIONS, actions)
        match = parser.OFPMatch(**fields)
        switch.send_msg(parser.OFPFlowMod(datapath=switch, priority=priority, match=match, instructions=[apply]))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        switch = event.msg.datapath
        packet = Packet(event.msg.data)
        ip, ports = packet.get_protocol(ipv4), packet.get_protocol(tcp)
        last = self.switches[HOSTS[ip.dst]]
        number = flow_hash(ip.src, ports.src_port, ip.dst, ports.dst_port) % len(MIDDLES)
        middle = self.switches[MIDDLES[number]]
        fields = {
            "eth_type": 0x0800,
            "ip_proto": 6,
            "ipv4_src": ip.src,
            "ipv4_dst": ip.dst,
            "tcp_src": ports.src_port,
            "tcp_dst": ports.dst_port,
        }
        # An edge switch has its host at port 1 and the others after it; the others have the edge switches at 1 and 2.
        self.add(switch, 100, fields, 2 + number)
        self.add(middle, 100, fields, last.id)
        self.add(last, 100, fields, 1)
        parser, constants = last.ofproto_parser, last.ofproto
        last.send_msg(
            parser.OFPPacketOut(
                datapath=last,
                buffer_id=constants.OFP_NO_BUFFER,
                in_port=constants.OFPP_CONTROLLER,
                actions=[parser.OFPActionOutput(1)],
                data=event.msg.data,
            )
        )
