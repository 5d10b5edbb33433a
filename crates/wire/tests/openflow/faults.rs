//! The error for each defect (section 7.4.4). The bytes are written out, so only the parser decides.

use polypath_wire::openflow::{Fault, parse, split};

/// A message of a type with this body.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (8 + body.len()) as u16;
    let mut bytes = vec![4, kind];
    bytes.extend(len.to_be_bytes());
    bytes.extend([0, 0, 0, 9]);
    bytes.extend_from_slice(body);
    bytes
}

fn fault(bytes: &[u8]) -> (u16, u16) {
    let Fault { kind, code } = parse(bytes).expect_err("it is wrong");
    (kind, code)
}

/// An `OFPT_FLOW_MOD` with this match, padded, and these instructions.
fn flow_mod(oxms: &[u8], instructions: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 40];
    let len = 4 + oxms.len();
    body.extend([0, 1]);
    body.extend((len as u16).to_be_bytes());
    body.extend_from_slice(oxms);
    body.resize(40 + len.next_multiple_of(8), 0);
    body.extend_from_slice(instructions);
    message(14, &body)
}

const IPV4: [u8; 6] = [0x80, 0, 10, 2, 0x08, 0x00];
const TCP: [u8; 5] = [0x80, 0, 20, 1, 6];

#[test]
fn headers() {
    assert_eq!(split(&[4, 0, 0]), Ok(None));
    assert_eq!(split(&[4, 0, 0, 7, 0, 0, 0, 0]), Err(Fault::BAD_LEN));
    let mut other = message(5, &[]);
    other[0] = 1;
    assert_eq!(fault(&other), (1, 0), "OFPBRC_BAD_VERSION");
    assert_eq!(fault(&message(30, &[])), (1, 1), "OFPBRC_BAD_TYPE");
    assert_eq!(
        fault(&message(4, &[0; 8])),
        (1, 3),
        "OFPBRC_BAD_EXPERIMENTER"
    );
    assert_eq!(fault(&message(5, &[0])), (1, 6), "OFPBRC_BAD_LEN");
    assert_eq!(fault(&message(9, &[0; 3])), (1, 6), "OFPBRC_BAD_LEN");
    let kind = [0, 12, 0, 0, 0, 0, 0, 0];
    assert_eq!(fault(&message(18, &kind)), (1, 2), "OFPBRC_BAD_MULTIPART");
}

#[test]
fn matches() {
    let oxm = |oxms: &[u8]| fault(&flow_mod(oxms, &[]));
    assert_eq!(oxm(&[0x80, 1, 0, 4, 0, 0, 0, 1]), (4, 6), "another class");
    assert_eq!(oxm(&[0x80, 0, 12, 2, 0, 1]), (4, 6), "OXM_OF_VLAN_VID");
    assert_eq!(oxm(&[0x80, 0, 0, 3, 0, 0, 1]), (4, 1), "a short port");
    assert_eq!(oxm(&[0x80, 0, 0, 5, 0, 0, 0, 1, 0]), (4, 1), "a long port");
    assert_eq!(oxm(&[0x80, 0, 0, 9, 0]), (4, 1), "beyond the match");
    let masked = [0x80, 0, 1, 8, 0, 0, 0, 1, 255, 255, 255, 255];
    assert_eq!(oxm(&masked), (4, 8), "a port has no mask");
    let wild = [
        IPV4.as_slice(),
        &[0x80, 0, 25, 8, 10, 0, 0, 1, 255, 0, 0, 0],
    ]
    .concat();
    assert_eq!(oxm(&wild), (4, 5), "OFPBMC_BAD_WILDCARDS");
    let lone = [0x80, 0, 22, 4, 10, 0, 0, 1];
    assert_eq!(oxm(&lone), (4, 9), "an address without its EtherType");
    let late = [lone.as_slice(), &IPV4].concat();
    assert_eq!(oxm(&late), (4, 9), "or before it");
    let port = [IPV4.as_slice(), &TCP, &[0x80, 0, 30, 2, 0, 80]].concat();
    assert_eq!(oxm(&port), (4, 9), "a port of UDP in TCP");
    let twice = [IPV4, IPV4].concat();
    assert_eq!(oxm(&twice), (4, 10), "OFPBMC_DUP_FIELD");
    let mut standard = flow_mod(&[], &[]);
    standard[49] = 0;
    assert_eq!(fault(&standard), (4, 0), "OFPMT_STANDARD");
    let mut long = flow_mod(&[], &[]);
    long[51] = 200;
    assert_eq!(fault(&long), (4, 1), "longer than the message");
    assert!(parse(&flow_mod(&[IPV4.as_slice(), &TCP].concat(), &[])).is_ok());
}

#[test]
fn instructions_and_actions() {
    let instruction = |bytes: &[u8]| fault(&flow_mod(&[], bytes));
    assert_eq!(instruction(&[0, 9, 0, 8, 0, 0, 0, 0]), (3, 0), "unknown");
    assert_eq!(instruction(&[0, 6, 0, 8, 0, 0, 0, 1]), (3, 1), "a meter");
    assert_eq!(instruction(&[255, 255, 0, 8, 0, 0, 0, 1]), (3, 5));
    assert_eq!(instruction(&[0, 1, 0, 4]), (3, 7), "no multiple of eight");
    assert_eq!(instruction(&[0, 1, 0, 16, 1, 0, 0, 0]), (3, 7), "cut short");
    let goto = [0, 1, 0, 8, 1, 0, 0, 0];
    assert_eq!(instruction(&[goto, goto].concat()), (3, 1), "twice");
    let applied = |action: &[u8]| {
        let len = (8 + action.len()) as u8;
        let head = [0, 4, 0, len, 0, 0, 0, 0];
        instruction(&[head.as_slice(), action].concat())
    };
    assert_eq!(
        applied(&[0, 25, 0, 8, 0, 0, 0, 0]),
        (2, 0),
        "OFPAT_SET_FIELD"
    );
    assert_eq!(applied(&[0, 0, 0, 8, 0, 0, 0, 1]), (2, 1), "a short output");
    assert_eq!(applied(&[0, 22, 0, 0, 0, 0, 0, 1]), (2, 1), "no length");
    assert_eq!(applied(&[255, 255, 0, 8, 0, 0, 0, 1]), (2, 2));
}

#[test]
fn groups_and_packets() {
    let group = [0, 0, 1, 0, 0, 0, 0, 1];
    let bucket = [group.as_slice(), &[0, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(fault(&message(15, &bucket)), (6, 12), "OFPGMFC_BAD_BUCKET");
    let packet_out = [255, 255, 255, 255, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        fault(&message(13, &packet_out)),
        (1, 6),
        "actions are missing"
    );
}
