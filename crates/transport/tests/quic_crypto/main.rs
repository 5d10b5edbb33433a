//! TLS and packet protection of QUIC.

mod handshake;
mod protection;

use polypath_transport::quic::crypto::{Level, Session};

const ALPN: &[u8] = b"hq-interop";

/// What one side wrote.
type Flight = Vec<(Level, Vec<u8>)>;

fn flight(session: &mut Session) -> Flight {
    std::iter::from_fn(|| session.write()).collect()
}

/// Carries bytes between two sessions until neither writes, client first. Returns all of them.
fn handshake(client: &mut Session, server: &mut Session) -> Vec<Flight> {
    let mut flights: Vec<Flight> = Vec::new();
    loop {
        let (from, to) = if flights.len() % 2 == 0 {
            (&mut *client, &mut *server)
        } else {
            (&mut *server, &mut *client)
        };
        let flight = flight(from);
        if flight.is_empty() {
            return flights;
        }
        for (level, bytes) in &flight {
            to.read(*level, bytes).unwrap();
        }
        flights.push(flight);
    }
}

fn pair(seeds: (u64, u64)) -> (Session, Session, Vec<Flight>) {
    let mut client = Session::client(seeds.0, b"of the client".to_vec(), ALPN);
    let mut server = Session::server(seeds.1, b"of the server".to_vec(), ALPN);
    let flights = handshake(&mut client, &mut server);
    (client, server, flights)
}
