//! Files by HTTP/0.9 over the `noq` crate, as an independent program would serve them: tokio, noq's sockets and timers,
//! the system's randomness.
//!
//! Only the certificate is ours, and the verifier that accepts it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, ConnectionError, Endpoint, FourTuple, PathError, PathStatus, ServerConfig,
    TransportConfig, VarInt,
};
use polypath_transport::quic::crypto::certificate::{self, ThisOne};
use rustls::crypto::ring::default_provider;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

const PROTOCOL: &[u8] = b"hq-interop";
const REQUEST: usize = 4096;
const PATHS: u32 = 8;
/// Error of a stream whose file does not exist.
const NO_FILE: u32 = 1;

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_multipath_paths(PATHS)
        // A path that is gone is not the end of the connection.
        .default_path_max_idle_timeout(Some(Duration::from_secs(10)));
    Arc::new(transport)
}

/// Serves the files of a folder, one connection after the other, until it is dropped. `bound` is told the address.
pub async fn serve(
    folder: PathBuf,
    at: SocketAddr,
    bound: impl FnOnce(SocketAddr),
) -> Result<(), Failure> {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate::certificate()], certificate::key())?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, at)?;
    bound(endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        loop {
            let (mut send, mut receive) = match connection.accept_bi().await {
                Ok(streams) => streams,
                Err(ConnectionError::ApplicationClosed(_)) => break,
                Err(error) => return Err(error.into()),
            };
            let request = receive.read_to_end(REQUEST).await?;
            let line = String::from_utf8(request)?;
            let name = line.trim_end().strip_prefix("GET /").ok_or("no GET")?;
            match tokio::fs::File::open(folder.join(name)).await {
                Ok(mut file) => {
                    tokio::io::copy(&mut file, &mut send).await?;
                    send.finish()?;
                }
                Err(_) => send.reset(VarInt::from_u32(NO_FILE))?,
            }
        }
    }
    Ok(())
}

/// Fetches a file over a path from each local address. Returns how many paths there were at the end, and its bytes in all.
pub async fn fetch(
    server: SocketAddr,
    name: &str,
    from: &[IpAddr],
    into: &mut (impl AsyncWriteExt + Unpin),
) -> Result<(usize, u64), Failure> {
    let provider = Arc::new(default_provider());
    let verifier = ThisOne {
        algorithms: provider.signature_verification_algorithms,
    };
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let any = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let endpoint = Endpoint::client(any.parse()?)?;
    let connection = endpoint
        .connect_with(config, server, certificate::NAME)?
        .await?;
    let mut paths = 1;
    for &local in from.iter().skip(1) {
        let way = FourTuple::new(server, Some(local));
        // The server's ids for further paths come after the handshake.
        while let Err(error) = connection.open_path(way, PathStatus::Available).await {
            let early = [PathError::RemoteCidsExhausted, PathError::MaxPathIdReached];
            if !early.contains(&error) {
                return Err(error.into());
            }
            sleep(Duration::from_millis(1)).await;
        }
        paths += 1;
    }
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET /{name}\r\n").as_bytes())
        .await?;
    send.finish()?;
    let bytes = tokio::io::copy(&mut receive, into).await?;
    into.flush().await?;
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok((paths, bytes))
}
