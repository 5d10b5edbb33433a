//! The tables of a recording. The reference page of tables and the types in Python are made from this file.
//!
//! Times are in nanoseconds since the start of the run; ids are positions in the Plan's lists.

use crate::table::{Text, tables};

tables! {
    /// What a run leaves: a table for each kind of observation.
    Recording {
        /// One end of a subflow at a sampling instant, and at each change of its state, for example by a loss.
        subflows: SubflowTable of SubflowRow {
            time_ns: i64,
            connection: u32,
            /// `client` or `server`.
            side: Text,
            subflow: u32,
            /// Of the handshake, the congestion state or the end.
            state: Text,
            /// The congestion window. Null if the engine or the capture does not know it.
            cwnd_packets: u32,
            /// The slow-start threshold; 4294967295 before one exists. Null if the engine or the capture does not know it.
            ssthresh_packets: u32,
            /// Smoothed RTT (RFC 6298).
            srtt_us: u64,
            /// RTT variation (RFC 6298).
            rttvar_us: u64,
            /// Sent, and neither acknowledged nor marked lost.
            in_flight_packets: u32,
            /// A running total of payload.
            sent_bytes: u64,
            /// A running total of payload.
            acked_bytes: u64,
            /// A running total of payload.
            received_bytes: u64,
            /// A running total of payload.
            retransmitted_bytes: u64,
            /// A running total of payload. Null if the engine or the capture does not know it.
            reinjected_bytes: u64,
            /// The window that this end announces.
            receive_window_bytes: u64,
            /// Data that waits at this end's subflow level. Null if the engine or the capture does not know it.
            out_of_order_bytes: u64,
        }
        /// One end of a connection at a sampling instant.
        connections: ConnectionTable of ConnectionRow {
            time_ns: i64,
            connection: u32,
            /// `client` or `server`.
            side: Text,
            /// Bytes delivered to the application in order; a running total.
            delivered_bytes: u64,
            /// Data that waits for missing bytes of the stream. Null if the engine or the capture does not know it.
            reassembly_bytes: u64,
            /// The size of the send buffer. Null if the engine or the capture does not know it.
            send_buffer_bytes: u64,
            /// Written by the application and not yet acknowledged. Null if the engine or the capture does not know it.
            send_queue_bytes: u64,
            /// The size of the receive buffer. Null if the engine or the capture does not know it.
            receive_buffer_bytes: u64,
        }
        /// One direction of a link at a sampling instant.
        links: LinkTable of LinkRow {
            time_ns: i64,
            link: u32,
            /// `forward` or `backward`.
            direction: Text,
            /// A running total.
            sent_bytes: u64,
            /// A running total.
            sent_packets: u64,
            /// Drops by the queue, including the one in the sending host; a running total.
            dropped_packets: u64,
            /// Losses by the loss model or a link that is down; a running total.
            lost_packets: u64,
            queue_packets: u64,
            queue_bytes: u64,
        }
        /// The use of the time of a link that limits one end of a connection, at a sampling instant; changes only.
        account: AccountTable of AccountRow [optional] {
            time_ns: i64,
            connection: u32,
            /// The sending side: `client` or `server`.
            side: Text,
            link: u32,
            /// `forward` or `backward`.
            direction: Text,
            /// What the link sent, or why it idled.
            cause: Text,
            /// The link that dropped or lost packets, or was down.
            at_link: Option<u32>,
            /// The subflow that carried the first unacknowledged byte.
            head: Option<u32>,
            /// What the link sent, or could have sent; a running total.
            bytes: i64,
        }
        /// Something that happened.
        events: EventTable of EventRow {
            time_ns: i64,
            /// One of the kinds of events.
            kind: Text,
            host: Text,
            connection: Option<u32>,
            subflow: Option<u32>,
            link: Option<u32>,
            value: Option<f64>,
            detail: Text,
        }
        /// One request of a request/response, fetch, ping-pong, video, page or ping application, or one message of
        /// `messages`.
        requests: RequestTable of RequestRow {
            application: u32,
            index: u32,
            sent_ns: i64,
            /// Null for an unanswered request. For a message it is the one-way delay, and null if the message was lost or
            /// refused.
            delay_ns: Option<i64>,
        }
        /// A segment of a video that its player requested.
        chunks: ChunkTable of ChunkRow [optional] {
            application: u32,
            index: u32,
            asked_ns: i64,
            arrived_ns: Option<i64>,
            /// The place among the video's rates, from 0, the lowest.
            representation: u32,
            rate_bps: u64,
            /// Without heads.
            bytes: u64,
            /// The playable time in the buffer when the segment was requested.
            buffer_ns: i64,
            /// When the first picture is shown, as far as that is settled. It may be later than the run's end.
            played_ns: Option<i64>,
        }
        /// A requested object of a web page.
        objects: ObjectTable of ObjectRow [optional] {
            /// The application that requested the object.
            application: u32,
            /// Its place in the page, from 0.
            object: u32,
            /// Without the head.
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
        /// A segment sent by an endpoint; of QUIC a packet.
        segments: SegmentTable of SegmentRow {
            time_ns: i64,
            connection: u32,
            side: Text,
            subflow: u32,
            /// Relative to the initial number; of QUIC the packet number.
            seq: u64,
            /// Relative to the initial number; of QUIC the largest number that its ACK frame names, whichever path the frame
            /// concerns.
            ack: u64,
            /// The data sequence number, relative to the initial one.
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
            /// The segment's; relative, as `begin` and `end` are.
            ack: u64,
            /// Relative to the initial number.
            begin: u64,
            /// Relative to the initial number.
            end: u64,
            /// The data arrived twice (RFC 2883 section 4).
            duplicate: bool,
        }
        /// The rest of a segment's header: flags, and options other than SACK; of a QUIC packet its type and frames.
        headers: HeaderTable of HeaderRow [optional] {
            /// The segment's row in `segments`, from 0.
            segment: u32,
            /// SYN, ACK and the like; of QUIC the packet type, such as 1-RTT.
            flags: Text,
            /// TSval (RFC 7323 section 3).
            timestamp: Option<u32>,
            /// TSecr (RFC 7323 section 3).
            timestamp_echo: Option<u32>,
            /// Of DSS (RFC 8684 section 3.3), as an offset in the stream.
            data_ack: Option<u64>,
            /// Of DSS, as an offset in the stream.
            data_seq: Option<u64>,
            /// The length on the wire, which a DATA_FIN increases by one; 0 of an infinite mapping.
            data_bytes: Option<u32>,
            data_fin: bool,
            /// The other options and their contents, and frames. Keys and HMACs are hexadecimal.
            options: Text,
        }
        /// What else a capture tells of a QUIC packet.
        packets: PacketTable of PacketRow [optional] {
            /// The packet's row in `segments`, from 0.
            segment: u32,
            /// The path whose packet number it has (RFC 10069 section 2.3).
            path: u64,
            /// With header and tag.
            bytes: u32,
            /// When its first acknowledgement passed the place of capture.
            acked_ns: Option<i64>,
            /// How long the peer reports that it held the packet by then. Null if another packet was the largest.
            ack_delay_ns: Option<i64>,
            /// A packet that was sent three later was acknowledged earlier (RFC 9002 section 6.1.1).
            lost: bool,
        }
        /// Bytes of a stream in a QUIC packet of a capture (RFC 9000 section 19.8), in the order on the wire.
        stream_frames: StreamFrameTable of StreamFrameRow [optional] {
            /// The packet's row in `segments`, from 0.
            segment: u32,
            stream: u64,
            offset: u64,
            bytes: u32,
        }
        /// An application's connection, totals.
        connection_ends: ConnectionEndTable of ConnectionEndRow {
            application: u32,
            connection: u32,
            name: Text,
            /// `tcp`, `mptcp`, `quic`, `mpquic`, or `fallback`: Multipath TCP fell back to TCP (RFC 8684 section 3.7).
            transport: Text,
            /// How the connection ended.
            state: Text,
            start_ns: i64,
            established_ns: Option<i64>,
            end_ns: Option<i64>,
            first_byte_ns: Option<i64>,
            last_byte_ns: Option<i64>,
            client_received_bytes: u64,
            server_received_bytes: u64,
        }
        /// Head-of-line blocking: the time for which an end of a connection held data that it could not deliver.
        blocking: BlockingTable of BlockingRow {
            connection: u32,
            /// The receiving end: `client` or `server`.
            side: Text,
            /// `subflow`: behind a hole of the subflow; `connection`: in sequence there, out of order in the stream.
            level: Text,
            /// The subflow in which data waited, or that brought what was missing.
            subflow: Option<u32>,
            /// How the missing bytes came: `late`, `retransmitted`, `reinjected` or `missing`.
            cause: Text,
            /// For how long any data waited.
            time_ns: u64,
            /// Bytes times the seconds for which they waited.
            byte_s: f64,
            /// The most that waited at once.
            max_bytes: u64,
        }
        /// A subflow, totals of both directions.
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
            /// Null if the engine or the capture does not know it.
            client_reinjected_bytes: u64,
            /// Null if the engine or the capture does not know it.
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
            /// For how long the link sent.
            busy_ns: u64,
        }
        /// A middlebox, totals. Received and made packets are those that were sent, dropped, absorbed or held back.
        middleboxes: MiddleboxTable of MiddleboxRow {
            link: u32,
            /// The place on the link, from its first end, from 0.
            position: u32,
            name: Text,
            received_packets: u64,
            changed_packets: u64,
            /// Pieces beyond the first, and answers of the box itself.
            made_packets: u64,
            sent_packets: u64,
            dropped_packets: u64,
            /// Merged into another packet, or received in the host's place.
            absorbed_packets: u64,
        }
        /// One direction of a tunnel, totals of the packets that were routed into it.
        tunnels: TunnelTable of TunnelRow [optional] {
            application: u32,
            /// `forward` from the client to the server, or `backward`.
            direction: Text,
            /// Routed into the tunnel.
            entered_packets: u64,
            /// Taken by the connection.
            carried_packets: u64,
            carried_bytes: u64,
            /// Came out at the far end.
            left_packets: u64,
            /// Dropped at the entry: the connection was not established.
            unconnected_packets: u64,
            /// Dropped at the entry: the queue was full.
            queue_full_packets: u64,
            /// Dropped at the entry: longer than a datagram may be.
            too_long_packets: u64,
            /// Dropped at the entry: of a kind that the tunnel does not carry.
            unfit_packets: u64,
            /// Arrived behind one that was sent later.
            reordered_packets: u64,
            /// Went on behind one that was sent later.
            late_packets: u64,
        }
        /// A program of the machine, which engines with real stacks run.
        programs: ProgramTable of ProgramRow [optional] {
            name: Text,
            host: Text,
            start_ns: i64,
            end_ns: Option<i64>,
            /// `exited`, `killed by a signal`, `ended with the run`, `open` or `not started`.
            state: Text,
            /// 128 plus the signal's number if a signal killed the program.
            exit_code: Option<u32>,
            stdout_bytes: u64,
            stderr_bytes: u64,
            /// The hash of its output, standard output first.
            output_sha256: Text,
        }
        /// A UDP application or a `ping`, totals. A ping counts answered packets, there and back.
        datagrams: DatagramTable of DatagramRow {
            application: u32,
            sent_packets: u64,
            received_packets: u64,
            received_bytes: u64,
            delay_mean_ns: Option<i64>,
        }
        /// A UDP application at a sampling instant, from its first datagram on. Counts are running totals.
        datagram_samples: DatagramSampleTable of DatagramSampleRow [optional] {
            time_ns: i64,
            application: u32,
            sent_packets: u64,
            received_packets: u64,
            received_bytes: u64,
            /// Interarrival jitter at the receiver (RFC 3550 section 6.4.1), not a total. Null before the second datagram.
            jitter_ns: Option<i64>,
        }
        /// A switch under a controller, at a sampling instant.
        switches: SwitchTable of SwitchRow [optional] {
            time_ns: i64,
            /// The switch's node.
            switch: u32,
            /// In all its tables.
            entries: u64,
            /// A running total.
            packet_ins: u64,
            /// A running total.
            packet_outs: u64,
            /// A running total.
            flow_mods: u64,
        }
        /// A switch under a controller, totals.
        switch_ends: SwitchEndTable of SwitchEndRow [optional] {
            /// The switch's node.
            switch: u32,
            name: Text,
            entries: u64,
            max_entries: u64,
            packet_ins: u64,
            packet_outs: u64,
            /// With those before the run.
            flow_mods: u64,
            group_mods: u64,
            flows_removed: u64,
            port_statuses: u64,
            /// Dropped by tables.
            dropped_packets: u64,
            /// Had crossed 64 links.
            ttl_exceeded_packets: u64,
            /// Orders that the switch refused.
            errors: u64,
        }
        /// How the switches learned a flow.
        flow_setups: FlowSetupTable of FlowSetupRow [optional] {
            time_ns: i64,
            /// The switch that did not know the flow.
            switch: u32,
            source: Text,
            source_port: u32,
            destination: Text,
            destination_port: u32,
            protocol: u32,
            /// Packets that went to the controller until the first came back.
            packet_ins: u64,
            /// From the first packet until a switch sends it out; null: never.
            delay_ns: Option<i64>,
        }
        /// A bridge's port took a role or a state.
        bridge_ports: BridgePortTable of BridgePortRow [optional] {
            time_ns: i64,
            /// The bridge's node.
            switch: u32,
            /// Counts from 1.
            port: u32,
            interface: Text,
            /// `disabled`, `root`, `designated`, `alternate` or `backup`.
            role: Text,
            /// `discarding`, `learning` or `forwarding`.
            state: Text,
        }
        /// A bridge, totals.
        bridge_ends: BridgeEndTable of BridgeEndRow [optional] {
            /// The bridge's node.
            switch: u32,
            name: Text,
            /// Whether it is the root of its tree.
            root: bool,
            /// Known at the end.
            addresses: u64,
            /// Known at most.
            max_addresses: u64,
            /// Times that an address was heard first, or by another port.
            learned: u64,
            /// Addresses removed because the tree changed.
            flushed: u64,
            bpdus_sent: u64,
            bpdus_received: u64,
            /// Copies beyond the first.
            flooded_packets: u64,
            /// Dropped at discarding ports, or without another port to leave by.
            dropped_packets: u64,
            ttl_exceeded_packets: u64,
        }
    }
}
