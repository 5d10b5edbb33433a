"""What ripl_random.py, ripl_hashed.py and ripl_spanning_tree.py have in common: the reactive mode of RipL-POX.

Switches are found by LLDP frames to their neighbours, and hosts by their packets. A flow's first packet
comes here, and every switch of its path gets an entry. After a link fails, all flows are requested again.
"""

from collections import deque

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import lldp, packet
from os_ken.lib.packet.ether_types import ETH_TYPE_IP, ETH_TYPE_LLDP
from os_ken.lib.packet.ethernet import ethernet
from os_ken.lib.packet.ipv4 import ipv4
from os_ken.lib.packet.tcp import tcp
from os_ken.lib.packet.udp import udp
from os_ken.ofproto import ofproto_v1_3

IDLE_TIMEOUT = 10


class Ripl(OSKenApp):
    """Subclasses choose one of several paths."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.switches = {}
        self.ports = {}
        self.links = {}  # of each switch and port the neighbour and its port
        self.hosts = {}  # of each Ethernet address the switch and port

    def choose(self, paths, flow):
        """One of the shortest paths, each a list of switches."""
        raise NotImplementedError

    def paths(self, first, last):
        """The shortest paths from switch to switch, in the order of their switches."""
        distance, queue = {last: 0}, deque([last])
        while queue:
            here = queue.popleft()
            for near in self.neighbours(here):
                if near not in distance:
                    distance[near] = distance[here] + 1
                    queue.append(near)
        found = [[first]] if first in distance else []
        while found and found[0][-1] != last:
            found = [
                [*path, near]
                for path in found
                for near in self.neighbours(path[-1])
                if distance.get(near) == distance[path[-1]] - 1
            ]
        return found

    def neighbours(self, switch):
        return sorted({near for (here, _), (near, _) in self.links.items() if here == switch})

    def port(self, switch, near):
        return min(port for (here, port), (there, _) in self.links.items() if (here, there) == (switch, near))

    # Switches and links

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, event):
        switch = event.msg.datapath
        parser, constants = switch.ofproto_parser, switch.ofproto
        self.switches[switch.id] = switch
        self.add(switch, 0, parser.OFPMatch(), constants.OFPP_CONTROLLER)
        switch.send_msg(parser.OFPPortDescStatsRequest(switch, 0))

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def described(self, event):
        switch = event.msg.datapath
        numbers = [port.port_no for port in event.msg.body if port.port_no <= switch.ofproto.OFPP_MAX]
        self.ports[switch.id] = numbers
        for number in numbers:
            self.probe(switch, number)

    def probe(self, switch, number):
        """Has a port say whose it is."""
        name = lldp.ChassisID(subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=str(switch.id).encode())
        port = lldp.PortID(subtype=lldp.PortID.SUB_LOCALLY_ASSIGNED, port_id=str(number).encode())
        frame = packet.Packet()
        frame.add_protocol(ethernet(lldp.LLDP_MAC_NEAREST_BRIDGE, "02:00:00:00:00:00", ETH_TYPE_LLDP))
        frame.add_protocol(lldp.lldp([name, port, lldp.TTL(ttl=120), lldp.End()]))
        frame.serialize()
        self.send(switch, number, bytes(frame.data))

    def heard(self, switch, number, frame):
        name, port = frame.get_protocol(lldp.lldp).tlvs[:2]
        there = (int(name.chassis_id), int(port.port_id))
        self.links[switch.id, number], self.links[there] = there, (switch.id, number)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def changed(self, event):
        switch, described = event.msg.datapath, event.msg.desc
        here = (switch.id, described.port_no)
        if not described.state & switch.ofproto.OFPPS_LINK_DOWN:
            self.probe(switch, described.port_no)
            return
        far = self.links.pop(here, None)
        self.links.pop(far, None)
        for each in self.switches.values():
            parser, constants = each.ofproto_parser, each.ofproto
            each.send_msg(
                parser.OFPFlowMod(
                    datapath=each,
                    command=constants.OFPFC_DELETE,
                    out_port=constants.OFPP_ANY,
                    out_group=constants.OFPG_ANY,
                    match=parser.OFPMatch(eth_type=ETH_TYPE_IP),
                )
            )

    # Flows

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        switch, number, data = event.msg.datapath, event.msg.match["in_port"], event.msg.data
        frame = packet.Packet(data)
        header = frame.get_protocol(ethernet)
        if header.ethertype == ETH_TYPE_LLDP:
            self.heard(switch, number, frame)
            return
        if (switch.id, number) not in self.links:
            self.hosts[header.src] = (switch.id, number)
        ip = frame.get_protocol(ipv4)
        if ip is None:
            return
        if header.dst not in self.hosts:
            self.flood(switch.id, number, data)
            return
        last, out = self.hosts[header.dst]
        paths = self.paths(switch.id, last)
        if not paths:
            return
        fields = self.fields(frame, ip)
        path = self.choose(paths, tuple(fields.values()))
        for here, near in zip(path, [*path[1:], None], strict=True):
            each = self.switches[here]
            leaves = out if near is None else self.port(here, near)
            self.add(each, 100, each.ofproto_parser.OFPMatch(**fields), leaves, IDLE_TIMEOUT)
        self.send(self.switches[last], out, data)

    def fields(self, frame, ip):
        fields = {"eth_type": ETH_TYPE_IP, "ip_proto": ip.proto, "ipv4_src": ip.src, "ipv4_dst": ip.dst}
        for kind in (tcp, udp):
            ports = frame.get_protocol(kind)
            if ports is not None:
                name = kind.__name__
                fields |= {f"{name}_src": ports.src_port, f"{name}_dst": ports.dst_port}
        return fields

    def flood(self, source, number, data):
        """Nobody has heard of the destination: out by all ports at which there is no switch."""
        for here, ports in self.ports.items():
            for port in ports:
                if (here, port) not in self.links and (here, port) != (source, number):
                    self.send(self.switches[here], port, data)

    def add(self, switch, priority, match, port, idle_timeout=0):
        parser, constants = switch.ofproto_parser, switch.ofproto
        output = parser.OFPActionOutput(port, constants.OFPCML_NO_BUFFER)
        switch.send_msg(
            parser.OFPFlowMod(
                datapath=switch,
                priority=priority,
                idle_timeout=idle_timeout,
                match=match,
                instructions=[parser.OFPInstructionActions(constants.OFPIT_APPLY_ACTIONS, [output])],
            )
        )

    def send(self, switch, port, data):
        parser, constants = switch.ofproto_parser, switch.ofproto
        switch.send_msg(
            parser.OFPPacketOut(
                datapath=switch,
                buffer_id=constants.OFP_NO_BUFFER,
                in_port=constants.OFPP_CONTROLLER,
                actions=[parser.OFPActionOutput(port)],
                data=data,
            )
        )
