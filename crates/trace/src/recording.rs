//! The tables of a recording. docs/recording.md defines their meaning, and a test checks that both agree.
//!
//! Times are in nanoseconds since the start of the run; ids are positions in the Plan's lists.

use crate::table::{Text, tables};

tables! {
    /// What a run leaves: a table for each kind of observation.
    Recording {
        /// One end of a subflow at a sampling instant.
        subflows: SubflowTable of SubflowRow {
            time_ns: i64,
            connection: u32,
            /// `client` or `server`.
            side: Text,
            subflow: u32,
            state: Text,
            cwnd_packets: u32,
            /// [`u32::MAX`]: none yet.
            ssthresh_packets: u32,
            srtt_us: u64,
            rttvar_us: u64,
            in_flight_packets: u32,
            /// This and the counts below up to `reinjected_bytes` are running totals of payload.
            sent_bytes: u64,
            acked_bytes: u64,
            received_bytes: u64,
            retransmitted_bytes: u64,
            reinjected_bytes: u64,
            receive_window_bytes: u64,
            /// What waits at this end's subflow level.
            out_of_order_bytes: u64,
        }
        /// One end of a connection at a sampling instant.
        connections: ConnectionTable of ConnectionRow {
            time_ns: i64,
            connection: u32,
            /// `client` or `server`.
            side: Text,
            /// What the application got in order; a running total.
            delivered_bytes: u64,
            reassembly_bytes: u64,
            send_buffer_bytes: u64,
            send_queue_bytes: u64,
            receive_buffer_bytes: u64,
        }
        /// One direction of a link at a sampling instant.
        links: LinkTable of LinkRow {
            time_ns: i64,
            link: u32,
            /// `forward` or `backward`.
            direction: Text,
            /// This and the counts below up to `lost_packets` are running totals.
            sent_bytes: u64,
            sent_packets: u64,
            /// By the queue.
            dropped_packets: u64,
            /// By the loss model, or because the link was down.
            lost_packets: u64,
            queue_packets: u64,
            queue_bytes: u64,
        }
        /// What became of the time of a link that bounds what an end of a connection sends.
        account: AccountTable of AccountRow [optional] {
            time_ns: i64,
            connection: u32,
            /// That sends.
            side: Text,
            link: u32,
            /// `forward` or `backward`.
            direction: Text,
            /// What the link sent, or why it idled.
            cause: Text,
            /// The link that dropped or lost packets, or was down.
            at_link: Option<u32>,
            /// The subflow that carried the first byte that was not acknowledged.
            head: Option<u32>,
            /// A running total: what the link sent, or could have sent.
            bytes: i64,
        }
        /// Something that happened.
        events: EventTable of EventRow {
            time_ns: i64,
            kind: Text,
            host: Text,
            connection: Option<u32>,
            subflow: Option<u32>,
            link: Option<u32>,
            value: Option<f64>,
            detail: Text,
        }
        /// One request of a request/response, fetch, ping-pong or ping application.
        requests: RequestTable of RequestRow {
            application: u32,
            index: u32,
            sent_ns: i64,
            /// Absent: unanswered.
            delay_ns: Option<i64>,
        }
        /// A segment of a video that its player asked for.
        chunks: ChunkTable of ChunkRow [optional] {
            application: u32,
            index: u32,
            asked_ns: i64,
            arrived_ns: Option<i64>,
            /// Which of the video's rates, from 0.
            representation: u32,
            rate_bps: u64,
            /// Without heads.
            bytes: u64,
            /// What was there to play when it was asked for.
            buffer_ns: i64,
            /// When its first picture is shown, as far as that is settled; later than the run's end, too.
            played_ns: Option<i64>,
        }
        /// An object of a web page that was asked for.
        objects: ObjectTable of ObjectRow [optional] {
            /// That asked for it.
            application: u32,
            /// Its place among the page's objects.
            object: u32,
            bytes: u64,
            asked_ns: i64,
            arrived_ns: Option<i64>,
        }
        /// A host's counter at the end.
        counters: CounterTable of CounterRow {
            host: Text,
            /// As in Linux's MIBs.
            name: Text,
            value: u64,
        }
        /// A segment sent by an endpoint.
        segments: SegmentTable of SegmentRow {
            time_ns: i64,
            connection: u32,
            side: Text,
            subflow: u32,
            /// Relative to the initial number, as `ack` and `dsn` are.
            seq: u64,
            ack: u64,
            dsn: Option<u64>,
            payload_bytes: u32,
            /// `data`, `retransmission`, `reinjection` or `ack`.
            kind: Text,
        }
        /// A SACK block of a segment (RFC 2018 section 3), in the order on the wire.
        sack_blocks: SackBlockTable of SackBlockRow [optional] {
            time_ns: i64,
            connection: u32,
            /// That sent the segment.
            side: Text,
            subflow: u32,
            /// Of the segment. Relative to the initial number, as `begin` and `end` are.
            ack: u64,
            begin: u64,
            end: u64,
            /// The data arrived twice (RFC 2883 section 4).
            duplicate: bool,
        }
        /// What the header of a segment says besides: flags and options, other than SACK; of a packet of QUIC its
        /// type and frames.
        headers: HeaderTable of HeaderRow [optional] {
            /// The row in `segments`, from 0.
            segment: u32,
            flags: Text,
            /// TSval and TSecr (RFC 7323 section 3).
            timestamp: Option<u32>,
            timestamp_echo: Option<u32>,
            /// Of DSS (RFC 8684 section 3.3), as offsets in the streams, as `dsn` is.
            data_ack: Option<u64>,
            data_seq: Option<u64>,
            /// As on the wire: with DATA_FIN one more; 0 of an infinite mapping.
            data_bytes: Option<u32>,
            data_fin: bool,
            /// The others, and the frames.
            options: Text,
        }
        /// What a capture tells of a packet of QUIC besides.
        packets: PacketTable of PacketRow [optional] {
            /// The row in `segments`, from 0.
            segment: u32,
            /// Whose packet numbers it has (RFC 10069 section 2.3).
            path: u64,
            /// With its header and its tag.
            bytes: u32,
            /// When the first acknowledgement of it passed.
            acked_ns: Option<i64>,
            /// For how long the peer says that it had it by then; absent: it is not the largest that this acknowledgement names.
            ack_delay_ns: Option<i64>,
            /// One that was sent three later was acknowledged before (RFC 9002 section 6.1.1).
            lost: bool,
        }
        /// An application's connection, totals.
        connection_ends: ConnectionEndTable of ConnectionEndRow {
            application: u32,
            connection: u32,
            name: Text,
            /// `tcp`, `mptcp` or `fallback`.
            transport: Text,
            /// How it ended.
            state: Text,
            start_ns: i64,
            established_ns: Option<i64>,
            end_ns: Option<i64>,
            first_byte_ns: Option<i64>,
            last_byte_ns: Option<i64>,
            client_received_bytes: u64,
            server_received_bytes: u64,
        }
        /// What an end of a connection waited for before it could deliver data that was there, totals.
        blocking: BlockingTable of BlockingRow {
            connection: u32,
            /// The receiving end.
            side: Text,
            /// `subflow`: behind a hole of the subflow; `connection`: in sequence there, out of order in the stream.
            level: Text,
            /// The one inside which data waited, or that brought what was missing.
            subflow: Option<u32>,
            /// How the missing bytes came: `late`, `retransmitted`, `reinjected` or `missing`.
            cause: Text,
            time_ns: u64,
            byte_s: f64,
            max_bytes: u64,
        }
        /// A subflow, totals for both directions.
        subflow_ends: SubflowEndTable of SubflowEndRow {
            connection: u32,
            subflow: u32,
            source: Text,
            source_port: u32,
            destination: Text,
            destination_port: u32,
            interface: Text,
            backup: bool,
            established_ns: Option<i64>,
            closed_ns: Option<i64>,
            client_sent_bytes: u64,
            server_sent_bytes: u64,
            client_received_bytes: u64,
            server_received_bytes: u64,
            client_retransmitted_bytes: u64,
            server_retransmitted_bytes: u64,
            client_reinjected_bytes: u64,
            server_reinjected_bytes: u64,
        }
        /// One direction of a link, totals.
        link_ends: LinkEndTable of LinkEndRow {
            link: u32,
            name: Text,
            /// `forward` or `backward`.
            direction: Text,
            sent_bytes: u64,
            sent_packets: u64,
            dropped_packets: u64,
            lost_packets: u64,
            max_queue_packets: u64,
            busy_ns: u64,
        }
        /// A middlebox, totals.
        middleboxes: MiddleboxTable of MiddleboxRow {
            link: u32,
            /// On its link, from the first end.
            position: u32,
            name: Text,
            received_packets: u64,
            changed_packets: u64,
            made_packets: u64,
            sent_packets: u64,
            dropped_packets: u64,
            absorbed_packets: u64,
        }
        /// A direction of a tunnel, totals of the packets that were routed into it.
        tunnels: TunnelTable of TunnelRow [optional] {
            application: u32,
            /// `forward` (from the client) or `backward`.
            direction: Text,
            entered_packets: u64,
            /// Those that the connection took.
            carried_packets: u64,
            carried_bytes: u64,
            /// Those that came out at the far end.
            left_packets: u64,
            /// Dropped at the entry: the connection did not stand.
            unconnected_packets: u64,
            queue_full_packets: u64,
            too_long_packets: u64,
            /// Of a kind that is not carried.
            unfit_packets: u64,
            /// Arrived behind one that was sent later.
            reordered_packets: u64,
            /// Went on behind one that was sent later.
            late_packets: u64,
        }
        /// A UDP application, totals.
        datagrams: DatagramTable of DatagramRow {
            application: u32,
            sent_packets: u64,
            received_packets: u64,
            received_bytes: u64,
            delay_mean_ns: Option<i64>,
        }
        /// A UDP application at a sampling instant from its first datagram on. Counts are running totals.
        datagram_samples: DatagramSampleTable of DatagramSampleRow [optional] {
            time_ns: i64,
            application: u32,
            sent_packets: u64,
            received_packets: u64,
            received_bytes: u64,
            /// Interarrival jitter at the receiver (RFC 3550 section 6.4.1); absent before the second datagram.
            jitter_ns: Option<i64>,
        }
        /// A switch with tables at a sampling instant.
        switches: SwitchTable of SwitchRow [optional] {
            time_ns: i64,
            /// Its node.
            switch: u32,
            /// In all of its tables.
            entries: u64,
            /// This and the counts below are running totals.
            packet_ins: u64,
            packet_outs: u64,
            flow_mods: u64,
        }
        /// A switch with tables, totals.
        switch_ends: SwitchEndTable of SwitchEndRow [optional] {
            switch: u32,
            name: Text,
            entries: u64,
            max_entries: u64,
            packet_ins: u64,
            packet_outs: u64,
            flow_mods: u64,
            group_mods: u64,
            flows_removed: u64,
            port_statuses: u64,
            /// By tables that said nothing else.
            dropped_packets: u64,
            /// Those that had crossed too many links.
            ttl_exceeded_packets: u64,
            /// Orders that it refused.
            errors: u64,
        }
        /// How a flow was made known to the switches.
        flow_setups: FlowSetupTable of FlowSetupRow [optional] {
            time_ns: i64,
            /// The switch that did not know it.
            switch: u32,
            source: Text,
            source_port: u32,
            destination: Text,
            destination_port: u32,
            protocol: u32,
            /// Packets that went to the controller until the first came back.
            packet_ins: u64,
            /// Absent: the first never did.
            delay_ns: Option<i64>,
        }
        /// A bridge's port took a role or a state.
        bridge_ports: BridgePortTable of BridgePortRow [optional] {
            time_ns: i64,
            /// Its node.
            switch: u32,
            /// As the tree numbers it, from 1 on.
            port: u32,
            interface: Text,
            role: Text,
            state: Text,
        }
        /// A bridge, totals.
        bridge_ends: BridgeEndTable of BridgeEndRow [optional] {
            switch: u32,
            name: Text,
            /// Whether it is the root of its tree.
            root: bool,
            /// That it knows at the end, and at most.
            addresses: u64,
            max_addresses: u64,
            /// An address was heard, or heard by another port.
            learned: u64,
            /// Addresses that went because the tree had changed.
            flushed: u64,
            bpdus_sent: u64,
            bpdus_received: u64,
            /// Copies beyond the first.
            flooded_packets: u64,
            /// At ports that discard, and of packets that had no other port to leave by.
            dropped_packets: u64,
            ttl_exceeded_packets: u64,
        }
    }
}
