//! Transport parameters byte by byte, and which are refused.

use polypath_wire::quic::{Role, TransportParameters};

use crate::hex;

#[test]
fn by_hand() {
    let parameters = TransportParameters {
        max_idle_timeout: 30_000,
        initial_max_path_id: Some(4),
        disable_active_migration: true,
        ..TransportParameters::default()
    };
    let mut out = Vec::new();
    parameters.encode(&mut out).unwrap();
    assert_eq!(out, hex("01 04 80007530 3e 01 04 0c 00"));
    // A reserved one (27 + 31 N) and another unknown one, which stands there twice, are ignored.
    let mut bytes = hex("1b 02 aabb 7fff 00 7fff 00");
    bytes.extend(out);
    let parsed = TransportParameters::parse(&bytes, Role::Client);
    assert_eq!(parsed, Ok(parameters));
    let none = TransportParameters::parse(&[], Role::Server);
    assert_eq!(none, Ok(TransportParameters::default()));
}

#[test]
fn refused() {
    use Role::{Client, Server};
    let token = "00".repeat(16);
    let addresses = "00".repeat(24);
    for (bytes, parameter, sender) in [
        ("01 01 00 01 01 00", 0x01, Server),
        (
            "c0000000ff04de1b 01 00 c0000000ff04de1b 01 00",
            0xff04_de1b,
            Server,
        ),
        ("03 02 44af", 0x03, Server),
        ("08 08 d000000000000001", 0x08, Server),
        ("09 08 d000000000000001", 0x09, Server),
        ("0a 01 15", 0x0a, Server),
        ("0b 04 80004000", 0x0b, Server),
        ("0e 01 01", 0x0e, Server),
        ("3e 08 c000000100000000", 0x3e, Server),
        // One microsecond more than max_ack_delay.
        ("c0000000ff04de1b 04 800061a9", 0xff04_de1b, Server),
        ("01 02 00", 0x01, Server),
        ("01 02 0000", 0x01, Server),
        ("01 00", 0x01, Server),
        ("0c 01 00", 0x0c, Server),
        ("02 0f 000000000000000000000000000000", 0x02, Server),
        (&format!("0f 15 {token}0000000000"), 0x0f, Server),
        // An address without a connection id.
        (&format!("0d 29 {addresses}00{token}"), 0x0d, Server),
        ("00 00", 0x00, Client),
        (&format!("02 10 {token}"), 0x02, Client),
        (&format!("0d 2a {addresses}01aa{token}"), 0x0d, Client),
        ("10 00", 0x10, Client),
        ("40", 0, Client),
    ] {
        let error = TransportParameters::parse(&hex(bytes), sender).unwrap_err();
        assert_eq!(error.parameter, parameter, "{bytes}: {error}");
    }
    for at_the_edge in [
        "03 02 44b0",
        "0a 01 14",
        "0b 02 7fff",
        "0e 01 02",
        "3e 08 c0000000ffffffff",
        "c0000000ff04de1b 04 800061a8",
    ] {
        TransportParameters::parse(&hex(at_the_edge), Client).unwrap();
    }
}

#[test]
fn emitted_only_if_valid() {
    let parameters = TransportParameters {
        ack_delay_exponent: 21,
        ..TransportParameters::default()
    };
    let mut out = vec![1];
    assert!(parameters.encode(&mut out).is_err());
    assert_eq!(out, [1]);
}
