//! Rates and times from the amendments of IEEE 802.11. Clauses are those of IEEE Std 802.11-2016.

use crate::ids::Nanos;

const US: Nanos = 1_000;

/// Slot time and SIFS of every OFDM PHY in the 5 GHz band (17.4.4, 19.4.4, 21.4.4).
pub(crate) const SLOT: Nanos = 9 * US;
pub(crate) const SIFS: Nanos = 16 * US;
/// The contention window (17.4.4); access category AC_BE has it as it is (9.4.2.29).
pub(crate) const CW_MIN: u32 = 15;
pub(crate) const CW_MAX: u32 = 1023;
/// aPPDUMaxTime (21.4.4), which L-SIG's length implies for HT-mixed, too (19.3.9.3.5).
pub(crate) const LONGEST_PPDU: Nanos = 5_484 * US;
/// MPDUs that one block ack covers (9.3.1.9).
pub(crate) const BLOCK_ACK_WINDOW: u64 = 64;

/// Data and control symbols with the long guard interval.
const SYMBOL: Nanos = 4 * US;
const SHORT_GUARD_SYMBOL: Nanos = 3_600;
/// Preamble and SIGNAL of the OFDM PHY (17.3.3).
const LEGACY_PREAMBLE: Nanos = 20 * US;
const LEGACY_SUBCARRIERS: u32 = 48;
const SERVICE_BITS: u64 = 16;
const TAIL_BITS: u64 = 6;

/// Ack and compressed BlockAck (9.3.1.4, 9.3.1.9).
const ACK_BYTES: u64 = 14;
const BLOCK_ACK_BYTES: u64 = 32;
/// MPDU delimiter (9.7.1).
const DELIMITER_BYTES: u64 = 4;

/// Bits per subcarrier, and the coding rate as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Modulation(u32, u32, u32);

const BPSK_12: Modulation = Modulation(1, 1, 2);
const BPSK_34: Modulation = Modulation(1, 3, 4);
const QPSK_12: Modulation = Modulation(2, 1, 2);
const QPSK_34: Modulation = Modulation(2, 3, 4);
const QAM16_12: Modulation = Modulation(4, 1, 2);
const QAM16_34: Modulation = Modulation(4, 3, 4);
const QAM64_23: Modulation = Modulation(6, 2, 3);
const QAM64_34: Modulation = Modulation(6, 3, 4);
const QAM64_56: Modulation = Modulation(6, 5, 6);
const QAM256_34: Modulation = Modulation(8, 3, 4);
const QAM256_56: Modulation = Modulation(8, 5, 6);

impl Modulation {
    /// Mbit/s of the non-HT reference rate (10.7.6.5.3).
    fn reference(self) -> u32 {
        let Self(bits, numerator, denominator) = self;
        match (
            bits,
            LEGACY_SUBCARRIERS * bits * numerator / denominator / 4,
        ) {
            (_, rate) if rate < 54 => rate,
            _ => 54,
        }
    }

    /// Mbit/s at which the answer is sent: the highest mandatory rate up to the reference rate (10.7.6.5.2).
    fn answer(self) -> u32 {
        [24, 12]
            .into_iter()
            .find(|rate| *rate <= self.reference())
            .unwrap_or(6)
    }
}

/// One amendment.
#[derive(Debug)]
pub struct Standard {
    pub name: &'static str,
    pub summary: &'static str,
    pub source: &'static str,
    /// Widths in MHz with their data subcarriers.
    widths: &'static [(u32, u32)],
    modulations: &'static [Modulation],
    most_streams: u32,
    /// Whether an index counts on through the modulations for each further stream.
    index_has_streams: bool,
    /// Preamble and header without the long training fields, which take a symbol each.
    preamble: Nanos,
    /// Mbit/s beyond which another convolutional encoder takes part, so that each adds tail bits; 0: there is one.
    encoder_mbps: u32,
    short_guard: bool,
    /// AIFSN, or what DIFS is in these terms.
    aifs_slots: u32,
    aggregation: Option<Aggregation>,
}

#[derive(Clone, Copy, Debug)]
struct Aggregation {
    bytes: u64,
    /// Whether a single MPDU is an A-MPDU, too, and the last one is padded as others are.
    always: bool,
}

/// The standards, by name.
pub const STANDARDS: &[Standard] = &[
    Standard {
        name: "802.11a",
        summary: "OFDM in 20 MHz, 6 to 54 Mbit/s as MCS 0 to 7, DCF without aggregation",
        source: "IEEE Std 802.11-2016, clauses 10.3 and 17",
        widths: &[(20, LEGACY_SUBCARRIERS)],
        modulations: &[
            BPSK_12, BPSK_34, QPSK_12, QPSK_34, QAM16_12, QAM16_34, QAM64_23, QAM64_34,
        ],
        most_streams: 1,
        index_has_streams: false,
        preamble: LEGACY_PREAMBLE,
        encoder_mbps: 0,
        short_guard: false,
        aifs_slots: 2,
        aggregation: None,
    },
    Standard {
        name: "802.11n",
        summary: "HT in 20 or 40 MHz, MCS 0 to 31 with a stream more for each eight, EDCA and A-MPDUs of 64 kB",
        source: "IEEE Std 802.11-2016, clauses 10.13, 10.22.2 and 19",
        widths: &[(20, 52), (40, 108)],
        modulations: &[
            BPSK_12, QPSK_12, QPSK_34, QAM16_12, QAM16_34, QAM64_23, QAM64_34, QAM64_56,
        ],
        most_streams: 4,
        index_has_streams: true,
        // L-STF and L-LTF, L-SIG, HT-SIG, HT-STF (19.4.3)
        preamble: 32 * US,
        encoder_mbps: 300,
        short_guard: true,
        aifs_slots: 3,
        aggregation: Some(Aggregation {
            bytes: 65_535,
            always: false,
        }),
    },
    Standard {
        name: "802.11ac",
        summary: "VHT in 20, 40 or 80 MHz, MCS 0 to 9 on each of up to four streams, EDCA and A-MPDUs of 1 MB",
        source: "IEEE Std 802.11-2016, clauses 10.13, 10.22.2 and 21",
        widths: &[(20, 52), (40, 108), (80, 234)],
        modulations: &[
            BPSK_12, QPSK_12, QPSK_34, QAM16_12, QAM16_34, QAM64_23, QAM64_34, QAM64_56, QAM256_34,
            QAM256_56,
        ],
        most_streams: 4,
        index_has_streams: false,
        // L-STF and L-LTF, L-SIG, VHT-SIG-A, VHT-STF, VHT-SIG-B (21.4.3)
        preamble: 36 * US,
        encoder_mbps: 540,
        short_guard: true,
        aifs_slots: 3,
        aggregation: Some(Aggregation {
            bytes: 1_048_575,
            always: true,
        }),
    },
];

impl Standard {
    pub fn by_name(name: &str) -> Option<&'static Self> {
        STANDARDS.iter().find(|standard| standard.name == name)
    }

    /// How many indices there are.
    pub fn indices(&self) -> u32 {
        let streams = if self.index_has_streams {
            self.most_streams
        } else {
            1
        };
        self.modulations.len() as u32 * streams
    }

    /// DIFS or AIFS (10.3.2.3).
    pub(crate) fn space(&self) -> Nanos {
        SIFS + Nanos::from(self.aifs_slots) * SLOT
    }

    pub(crate) fn aggregates(&self) -> bool {
        self.aggregation.is_some()
    }

    /// What an index means in a channel of this kind; nothing where there is none.
    pub fn rate(&'static self, phy: Phy, index: u32) -> Option<Rate> {
        let (_, subcarriers) = *self.widths.iter().find(|(width, _)| *width == phy.width)?;
        let count = self.modulations.len() as u32;
        let (more, place) = if self.index_has_streams {
            (index / count, index % count)
        } else {
            (0, index)
        };
        let modulation = *self.modulations.get(place as usize)?;
        let streams = phy.streams + more;
        let fits = (1..=self.most_streams).contains(&streams)
            && (more == 0 || phy.streams == 1)
            && (phy.streams == 1 || !self.index_has_streams)
            && (self.short_guard || !phy.short_guard);
        let coded = subcarriers * modulation.0 * streams;
        let bits = coded * modulation.1 / modulation.2;
        let encoders = match self.encoder_mbps {
            0 => 1,
            // With the long guard interval bits in 4 us are quarters of Mbit/s.
            most => bits.div_ceil(4 * most).max(1),
        };
        // What each encoder gives has to fill whole symbols (21.3.10.3, 21.5).
        let even = coded % (encoders * modulation.2) == 0;
        (fits && even).then_some(Rate {
            standard: self,
            modulation,
            bits: u64::from(bits),
            encoders: u64::from(encoders),
            training: u64::from(if streams == 3 { 4 } else { streams }),
            symbol: if phy.short_guard {
                SHORT_GUARD_SYMBOL
            } else {
                SYMBOL
            },
        })
    }
}

/// A channel's width in MHz, the spatial streams that are chosen apart from the index, and the guard interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    pub width: u32,
    pub streams: u32,
    pub short_guard: bool,
}

/// An index in a channel.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    standard: &'static Standard,
    modulation: Modulation,
    /// Data bits of a symbol.
    bits: u64,
    encoders: u64,
    /// Long training fields of HT and VHT.
    training: u64,
    symbol: Nanos,
}

impl Rate {
    /// Bit/s while data is sent.
    pub fn bps(&self) -> u64 {
        self.bits * 1_000_000_000 / self.symbol
    }

    /// How long a PPDU with so many bytes takes (17.4.3, 19.4.3, 21.4.3).
    pub(crate) fn ppdu(&self, bytes: u64) -> Nanos {
        let bits = SERVICE_BITS + 8 * bytes + TAIL_BITS * self.encoders;
        let data = bits.div_ceil(self.bits) * self.symbol;
        let training = if self.standard.aggregates() {
            self.training * SYMBOL
        } else {
            0
        };
        self.standard.preamble + training + data.div_ceil(SYMBOL) * SYMBOL
    }

    /// How long the answer takes to one MPDU or to several.
    pub(crate) fn answer(&self, mpdus: u64) -> Nanos {
        let bytes = if mpdus > 1 {
            BLOCK_ACK_BYTES
        } else {
            ACK_BYTES
        };
        let bits = SERVICE_BITS + 8 * bytes + TAIL_BITS;
        let of_symbol = u64::from(self.modulation.answer()) * 4;
        LEGACY_PREAMBLE + bits.div_ceil(of_symbol) * SYMBOL
    }
}

/// The bytes of a PPDU as MPDUs are put into it (9.7.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Psdu {
    standard: &'static Standard,
    pub mpdus: u64,
    /// Of the first MPDU by itself.
    first: u64,
    /// With delimiters, and without padding after the last.
    bytes: u64,
}

impl Psdu {
    pub fn new(standard: &'static Standard) -> Self {
        Self {
            standard,
            mpdus: 0,
            first: 0,
            bytes: 0,
        }
    }

    pub fn with(mut self, mpdu: u64) -> Self {
        if self.mpdus == 0 {
            self.first = mpdu;
        }
        self.mpdus += 1;
        self.bytes = self.bytes.next_multiple_of(4) + DELIMITER_BYTES + mpdu;
        self
    }

    pub fn bytes(&self) -> u64 {
        match self.standard.aggregation {
            Some(aggregation) if aggregation.always => self.bytes.next_multiple_of(4),
            _ if self.mpdus == 1 => self.first,
            _ => self.bytes,
        }
    }

    /// Whether the standard has PPDUs of so many bytes and MPDUs.
    pub fn is_allowed(&self) -> bool {
        self.standard
            .aggregation
            .map_or(self.mpdus <= 1, |aggregation| {
                self.bytes() <= aggregation.bytes
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(standard: &str, phy: Phy, index: u32) -> Option<Rate> {
        Standard::by_name(standard).and_then(|standard| standard.rate(phy, index))
    }

    fn kbps(standard: &str, (width, streams): (u32, u32), index: u32) -> Option<u64> {
        let phy = Phy {
            width,
            streams,
            short_guard: false,
        };
        rate(standard, phy, index).map(|rate| rate.bps() / 1000)
    }

    const NARROW: Phy = Phy {
        width: 20,
        streams: 1,
        short_guard: false,
    };

    #[test]
    fn rates_are_those_of_the_tables() {
        let all = |standard: &str, of, indices: std::ops::Range<u32>| -> Vec<u64> {
            let rates = indices.map(|index| kbps(standard, of, index));
            rates.map(Option::unwrap_or_default).collect()
        };
        // Table 17-4
        assert_eq!(
            all("802.11a", (20, 1), 0..8),
            [6000, 9000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000]
        );
        // Tables 19-27 and 19-31
        assert_eq!(
            all("802.11n", (20, 1), 0..8),
            [6500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000]
        );
        assert_eq!(kbps("802.11n", (40, 1), 31), Some(540_000));
        assert_eq!(kbps("802.11n", (20, 1), 32), None);
        assert_eq!(kbps("802.11n", (20, 2), 3), None);
        // Tables 21-30 to 21-45: no MCS 9 in 20 MHz but for three streams, no MCS 6 for three streams in 80 MHz
        assert_eq!(
            all("802.11ac", (20, 1), 0..10),
            [
                6500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000, 78_000, 0
            ]
        );
        assert_eq!(kbps("802.11ac", (20, 3), 9), Some(260_000));
        assert_eq!(kbps("802.11ac", (80, 1), 9), Some(390_000));
        assert_eq!(kbps("802.11ac", (80, 3), 6), None);
        assert_eq!(kbps("802.11ac", (80, 4), 9), Some(1_560_000));
        let short = Phy {
            short_guard: true,
            ..NARROW
        };
        assert_eq!(
            rate("802.11n", short, 7).map(|it| it.bps()),
            Some(72_222_222)
        );
        assert!(rate("802.11a", short, 7).is_none());
    }

    #[test]
    fn a_ppdu_takes_what_its_symbols_take() {
        // 17.4.3: 20 us and ceil((16 + 8 * 1536 + 6) / 216) = 57 symbols.
        let legacy = rate("802.11a", NARROW, 7).expect("54 Mbit/s");
        assert_eq!(legacy.ppdu(1536), 248_000);
        assert_eq!(legacy.answer(1), 28_000);
        // 36 us and ceil((16 + 8 * 1538 + 6) / 260) = 48 symbols.
        let ht = rate("802.11n", NARROW, 7).expect("65 Mbit/s");
        assert_eq!(ht.ppdu(1538), 228_000);
        assert_eq!((ht.answer(1), ht.answer(2)), (28_000, 32_000));
        // At 6 Mbit/s: ceil((16 + 8 * 32 + 6) / 24) = 12 symbols.
        let slow = rate("802.11n", NARROW, 0).expect("6.5 Mbit/s");
        assert_eq!(slow.answer(2), 68_000);
        // 48 symbols of 3.6 us are 172.8 us, rounded up to 176.
        let short = Phy {
            short_guard: true,
            ..NARROW
        };
        let short = rate("802.11n", short, 7).expect("72.2 Mbit/s");
        assert_eq!(short.ppdu(1538), 212_000);
        let two = rate("802.11n", NARROW, 8 + 7).expect("130 Mbit/s");
        assert_eq!(two.ppdu(0), 40_000 + 4_000);
        // Above 300 Mbit/s 802.11n has two encoders: ceil((16 + 8 * 267 + 2 * 6) / 2160) = 2 symbols, and 1 of a byte less (19.3.11.4).
        let wide = Phy {
            width: 40,
            ..NARROW
        };
        let encoders = rate("802.11n", wide, 3 * 8 + 7).expect("540 Mbit/s");
        assert_eq!(
            [266, 267].map(|bytes| encoders.ppdu(bytes)),
            [52_000, 56_000]
        );
        let vht = rate("802.11ac", NARROW, 8).expect("78 Mbit/s");
        assert_eq!(vht.ppdu(0), 40_000 + 4_000);
    }

    #[test]
    fn answers_come_at_the_highest_mandatory_rate() {
        let at = |index| rate("802.11ac", NARROW, index).map(|rate| rate.modulation.answer());
        let rates: Vec<u32> = (0..9).filter_map(at).collect();
        assert_eq!(rates, [6, 12, 12, 24, 24, 24, 24, 24, 24]);
    }

    #[test]
    fn aggregates_have_delimiters_and_padding() {
        let bytes = |standard: &str, mpdus: &[u64]| {
            let standard = Standard::by_name(standard).expect("a standard");
            let psdu = mpdus
                .iter()
                .fold(Psdu::new(standard), |psdu, it| psdu.with(*it));
            psdu.bytes()
        };
        assert_eq!(bytes("802.11n", &[1538]), 1538);
        assert_eq!(bytes("802.11n", &[1538, 101]), 4 + 1538 + 2 + 4 + 101);
        assert_eq!(bytes("802.11ac", &[1538]), 4 + 1538 + 2);
        assert_eq!(bytes("802.11ac", &[1538, 101]), 1544 + 4 + 101 + 3);
    }
}
