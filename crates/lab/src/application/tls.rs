//! TLS as a fetch sees it: the flights of a full handshake, and the overhead of records.
//!
//! The lengths follow from the RFCs' message formats. The handshake uses X25519, AES-128-GCM and one RSA certificate,
//! and no session tickets. The RSA key has 2,048 bits and the certificate 800 bytes. Libraries differ by some hundred
//! bytes, but not in the number of flights.

use polypath_settings::choice;

choice! {
    /// The version of TLS that a fetch runs over.
    Tls {
        V12 = "1.2",
        V13 = "1.3",
    }
}

/// A version's handshake and record layer.
pub(super) struct Layer {
    /// Flights of the client and the server's answers, up to the last answer that the client waits for.
    pub exchanges: &'static [(u64, u64)],
    /// What the client sends along with its first request.
    pub parting: u64,
    /// Bytes of a record besides its plaintext.
    record: u64,
}

/// Plaintext of a record at most (RFC 8446 section 5.1, RFC 5246 section 6.2.1).
const LONGEST: u64 = 1 << 14;

/// Two round trips (RFC 5246 section 7.3): ClientHello against ServerHello, Certificate, ServerKeyExchange (RFC 8422) and ServerHelloDone;
/// ClientKeyExchange, ChangeCipherSpec and Finished against ChangeCipherSpec and Finished. Records as in RFC 5288.
const V12: Layer = Layer {
    exchanges: &[(134, 100 + 815 + 305 + 9), (42 + 6 + 45, 6 + 45)],
    parting: 0,
    record: 5 + 8 + 16,
};

/// One round trip (RFC 8446 section 2): ClientHello against ServerHello, ChangeCipherSpec (appendix D.4) and a record of EncryptedExtensions,
/// Certificate, CertificateVerify and Finished; ChangeCipherSpec and Finished go with the request.
const V13: Layer = Layer {
    exchanges: &[(194, 127 + 6 + 1_141)],
    parting: 6 + 58,
    record: 5 + 1 + 16,
};

/// Nothing but TCP.
const NONE: Layer = Layer {
    exchanges: &[],
    parting: 0,
    record: 0,
};

impl Layer {
    pub fn of(version: Option<Tls>) -> &'static Self {
        match version {
            None => &NONE,
            Some(Tls::V12) => &V12,
            Some(Tls::V13) => &V13,
        }
    }

    /// Bytes on the wire of so much plaintext.
    pub fn sealed(&self, bytes: u64) -> u64 {
        bytes + bytes.div_ceil(LONGEST) * self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_hold_16_kib() {
        let sealed = |version, bytes| Layer::of(version).sealed(bytes);
        assert_eq!(sealed(None, 100_000), 100_000);
        assert_eq!(sealed(Some(Tls::V12), 1), 30);
        assert_eq!(sealed(Some(Tls::V12), 16_384), 16_384 + 29);
        assert_eq!(sealed(Some(Tls::V13), 16_385), 16_385 + 2 * 22);
    }
}
