//! Counters under the names of Linux's MIBs (`net/mptcp/mib.c`, `net/ipv4/proc.c`).

macro_rules! mib {
    ($($name:ident $doc:literal)*) => {
        /// A counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Mib {
            $(#[doc = $doc] $name,)*
        }

        impl Mib {
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, stringify!($name)),)*];
        }
    };
}

mib! {
    TcpActiveOpens "connections opened actively"
    TcpPassiveOpens "connections accepted"
    TcpAttemptFails "attempts that failed"
    TcpEstabResets "established connections reset"
    TcpInSegs "segments received"
    TcpOutSegs "segments sent, retransmissions not counted"
    TcpRetransSegs "segments retransmitted"
    TcpInCsumErrors "segments with a wrong checksum"
    TcpOutRsts "resets sent"
    TcpExtTCPTimeouts "retransmission timeouts"
    TcpExtTCPLossProbes "tail loss probes sent"
    TcpExtTCPLossProbeRecovery "losses repaired by a tail loss probe"
    TcpExtTCPSackRecovery "fast recoveries with SACK"
    TcpExtTCPRenoRecovery "fast recoveries without SACK"
    TcpExtTCPFullUndo "reductions undone after full recovery"
    TcpExtTCPPartialUndo "reductions undone in mid-recovery"
    TcpExtTCPLossUndo "timeouts undone"
    TcpExtTCPDSACKUndo "reductions undone by DSACK"
    TcpExtTCPSACKReorder "reordering seen by SACK"
    TcpExtTCPTSReorder "reordering seen by timestamps"
    TcpExtTCPSpuriousRTOs "timeouts that F-RTO found needless"
    TcpExtTCPLostRetransmit "retransmissions lost again"
    TcpExtTCPDSACKOldSent "DSACKs sent for data below the window"
    TcpExtTCPDSACKOfoSent "DSACKs sent for out-of-order data"
    TcpExtTCPDSACKRecv "DSACKs received"
    TcpExtTCPOFOQueue "segments queued out of order"
    TcpExtTCPAbortOnTimeout "connections given up after too many timeouts"
    TcpExtTCPKeepAlive "keep-alive probes sent"
    TcpExtTCPChallengeACK "ACKs that challenge a reset or a SYN"
    TcpExtTCPSYNChallenge "SYNs in a synchronised state"
    TcpExtPAWSEstab "segments refused by PAWS"
    TcpExtDelayedACKs "delayed ACKs sent"
    TcpExtTCPAckCompressed "ACKs of out-of-order segments left out for a later one"
    TcpExtTCPZeroWindowDrop "data beyond the offered window"
    TcpExtTCPToZeroWindowAdv "times the offered window closed"
    TcpExtTCPWinProbe "zero-window probes sent"
    TcpExtTCPMTUPFail "probes for the path's MTU that were lost"
    TcpExtTCPMTUPSuccess "probes for the path's MTU that arrived"
    TcpExtOutOfWindowIcmps "ICMP messages about segments that are not in flight"
    MPTcpExtMPCapableSYNRX "SYN with MP_CAPABLE received"
    MPTcpExtMPCapableSYNTX "attempts with MP_CAPABLE, each once however often its SYN was sent"
    MPTcpExtMPCapableSYNACKRX "SYN/ACK with MP_CAPABLE received"
    MPTcpExtMPCapableACKRX "third ACK with MP_CAPABLE received"
    MPTcpExtMPCapableFallbackACK "server fell back: no MP_CAPABLE on the third ACK"
    MPTcpExtMPCapableFallbackSYNACK "client fell back: no MP_CAPABLE on the SYN/ACK"
    MPTcpExtMPCapableSYNTXDrop "client fell back: SYNs with MP_CAPABLE were lost"
    MPTcpExtMPCapableSYNTXDisabled "client began without MP_CAPABLE: SYNs with it were lost before"
    MPTcpExtBlackhole "a SYN without MP_CAPABLE was answered after those with it were lost"
    MPTcpExtMPTCPRetrans "bytes' segments sent again on another subflow"
    MPTcpExtMPJoinNoTokenFound "MP_JOIN with an unknown token"
    MPTcpExtMPJoinSynRx "MP_JOIN SYN received"
    MPTcpExtMPJoinSynBackupRx "MP_JOIN SYN received that asks for a backup"
    MPTcpExtMPJoinPortSynRx "MP_JOIN SYN received at another port than the connection's"
    MPTcpExtMPJoinSynTx "attempts with MP_JOIN, each once however often its SYN was sent"
    MPTcpExtMPJoinSynAckRx "MP_JOIN SYN/ACK received"
    MPTcpExtMPJoinSynAckBackupRx "MP_JOIN SYN/ACK received that asks for a backup"
    MPTcpExtMPJoinSynAckHMacFailure "MP_JOIN SYN/ACK with a wrong HMAC"
    MPTcpExtMPJoinAckRx "MP_JOIN handshakes completed and accepted"
    MPTcpExtMPJoinAckHMacFailure "MP_JOIN third ACK with a wrong HMAC"
    MPTcpExtMPJoinRejected "MP_JOIN handshakes completed and then refused"
    MPTcpExtDSSNotMatching "mappings that contradict earlier ones"
    MPTcpExtInfiniteMapTx "fallbacks told by an infinite mapping"
    MPTcpExtInfiniteMapRx "infinite mappings received"
    MPTcpExtDSSNoMatchTCP "mappings that do not fit their segment"
    MPTcpExtDataCsumErr "data with a wrong DSS checksum"
    MPTcpExtOFOQueue "data queued out of order at connection level"
    MPTcpExtDuplicateData "data received again at connection level"
    MPTcpExtAddAddr "ADD_ADDR received"
    MPTcpExtAddAddrTx "ADD_ADDR sent"
    MPTcpExtEchoAdd "ADD_ADDR echo received"
    MPTcpExtEchoAddTx "ADD_ADDR echo sent"
    MPTcpExtAddAddrTxDrop "ADD_ADDR without room for it"
    MPTcpExtAddAddrDrop "ADD_ADDR refused"
    MPTcpExtRmAddr "REMOVE_ADDR received"
    MPTcpExtRmAddrTx "REMOVE_ADDR sent"
    MPTcpExtRmSubflow "subflows closed as this host's address went away"
    MPTcpExtMPPrioTx "MP_PRIO sent"
    MPTcpExtMPPrioRx "MP_PRIO received"
    MPTcpExtMPFailTx "MP_FAIL sent"
    MPTcpExtMPFailRx "MP_FAIL received"
    MPTcpExtMPFastcloseTx "MP_FASTCLOSE sent"
    MPTcpExtMPFastcloseRx "MP_FASTCLOSE received"
    MPTcpExtMPRstTx "MP_TCPRST sent"
    MPTcpExtMPRstRx "MP_TCPRST received"
    MPTcpExtSubflowStale "subflows taken for stale"
    PayloadMismatch "bytes delivered that are not those sent at their offset; 0 unless the simulator is wrong"
}

/// A value for each [`Mib`].
#[derive(Clone, Debug)]
pub struct Counters(Box<[u32; Mib::ALL.len()]>);

impl Default for Counters {
    fn default() -> Self {
        Self(Box::new([0; Mib::ALL.len()]))
    }
}

impl Counters {
    pub fn add(&mut self, mib: Mib, count: u32) {
        let slot = &mut self.0[mib as usize];
        *slot = slot.saturating_add(count);
    }

    /// Takes back what was counted too early.
    pub fn subtract(&mut self, mib: Mib, count: u32) {
        let slot = &mut self.0[mib as usize];
        *slot = slot.saturating_sub(count);
    }

    pub fn increment(&mut self, mib: Mib) {
        self.add(mib, 1);
    }

    /// Adds what others counted.
    pub fn absorb(&mut self, others: &Self) {
        for (slot, other) in self.0.iter_mut().zip(&*others.0) {
            *slot = slot.saturating_add(*other);
        }
    }

    pub fn value(&self, mib: Mib) -> u32 {
        self.0[mib as usize]
    }
}
