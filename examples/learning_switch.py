"""A learning switch as an os-ken application: `controller = { app = "learning_switch.py" }`."""

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet.ethernet import ethernet
from os_ken.lib.packet.packet import Packet
from os_ken.ofproto import ofproto_v1_3


class LearningSwitch(OSKenApp):
    """Remembers by which port each address was heard; what it does not know goes out by all ports."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    def install(self, switch, priority, match, port, max_len=0):
        parser, constants = switch.ofproto_parser, switch.ofproto
        output = parser.OFPActionOutput(port, max_len)
        apply = parser.OFPInstructionActions(constants.OFPIT_APPLY_ACTIONS, [output])
        switch.send_msg(parser.OFPFlowMod(datapath=switch, priority=priority, match=match, instructions=[apply]))

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def begin(self, event):
        switch = event.msg.datapath
        constants = switch.ofproto
        self.install(switch, 0, switch.ofproto_parser.OFPMatch(), constants.OFPP_CONTROLLER, constants.OFPCML_NO_BUFFER)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        switch, port = message.datapath, message.match["in_port"]
        parser, constants = switch.ofproto_parser, switch.ofproto
        frame = Packet(message.data).get_protocol(ethernet)
        self.ports[switch.id, frame.src] = port
        out = self.ports.get((switch.id, frame.dst), constants.OFPP_FLOOD)
        if out != constants.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=port, eth_dst=frame.dst, eth_src=frame.src)
            self.install(switch, 1, match, out)
        actions = [parser.OFPActionOutput(out)]
        switch.send_msg(
            parser.OFPPacketOut(
                datapath=switch, buffer_id=message.buffer_id, in_port=port, actions=actions, data=message.data
            )
        )
