//! Files over real UDP sockets: our endpoint with itself, and with the `noq` crate in either role.
//!
//! Loopback has an address for each path: 127.0.0.1 and 127.0.0.2. Both sides run in real time; nothing here depends on
//! speed.

#[path = "../examples/noq/files.rs"]
mod noq_files;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use polypath_live::LiveError;
use polypath_live::quic::{Algorithms, Fetch, Fetched, News, PathReport, Serve, fetch, serve};
use polypath_transport::quic::ResetKey;
use polypath_wire::payload;
use sha2::{Digest, Sha256};

/// Bytes of the file: more than the window that an endpoint offers at first, so many that a second path that opens late
/// carries its part, too, and not a multiple of anything.
const LEN: usize = 40_000_003;
/// A wait that takes longer has failed, however slow the machine is.
const LIMIT: Duration = Duration::from_secs(120);

const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

const RESET_KEY: [u8; 32] = [3; 32];

/// A folder of its own for each test, with a file in it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", process::id()));
        fs::create_dir_all(&path).expect("a folder for tests");
        fs::write(path.join("file"), content()).expect("room for the file");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn content() -> Vec<u8> {
    let mut bytes = vec![0; LEN];
    payload::fill(0x0051_4943, 0, &mut bytes);
    bytes
}

/// The content without a period that an offset off by a multiple would hide.
fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server of ours that ends with its first connection.
fn our_server(folder: &Folder, single: bool) -> (SocketAddr, Receiver<News>, JoinHandle<()>) {
    let (tell, news) = channel();
    let settings = Serve {
        root: folder.0.clone(),
        listen: vec![SocketAddr::new(FIRST, 0)],
        once: true,
        algorithms: Algorithms {
            single,
            ..Algorithms::default()
        },
        reset_key: Some(RESET_KEY),
        seed: 1,
    };
    let thread = spawn(move || {
        let mut tell = |news| {
            let _ = tell.send(news);
        };
        serve(&settings, &mut tell, &mut || false).expect("serves");
    });
    match news.recv_timeout(LIMIT) {
        Ok(News::Listening { at }) => (at[0], news, thread),
        other => panic!("{other:?}"),
    }
}

fn from_both(server: SocketAddr) -> Fetch {
    Fetch {
        server,
        name: "file".into(),
        from: vec![FIRST, SECOND],
        algorithms: Algorithms::default(),
        seed: 2,
    }
}

fn fetched(settings: &Fetch) -> (Fetched, Vec<u8>) {
    let mut bytes = Vec::new();
    let fetched = fetch(settings, &mut bytes, &mut || false).expect("the file");
    assert_eq!(fetched.bytes, bytes.len() as u64);
    assert_eq!(fetched.sha256, hash(&bytes));
    (fetched, bytes)
}

fn assert_both_carried(paths: &[PathReport], bytes: impl Fn(&PathReport) -> u64) {
    let locals: Vec<IpAddr> = paths.iter().map(|path| path.local.ip()).collect();
    let remotes: Vec<IpAddr> = paths.iter().map(|path| path.remote.ip()).collect();
    assert!(
        locals == [FIRST, SECOND] || remotes == [FIRST, SECOND],
        "{paths:?}"
    );
    assert!(paths.iter().all(|path| bytes(path) > 100_000), "{paths:?}");
}

fn ended(news: &Receiver<News>) -> (Vec<(String, Option<u64>)>, Vec<PathReport>) {
    match news.recv_timeout(LIMIT) {
        Ok(News::Ended {
            how, asked, paths, ..
        }) => {
            assert_eq!(how, "finished");
            (asked, paths)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn our_client_has_the_file_of_our_server_over_two_paths() {
    let folder = Folder::new("ours");
    let (at, news, server) = our_server(&folder, false);
    let (fetched, bytes) = fetched(&from_both(at));
    assert!(bytes == content());
    assert!(fetched.multipath);
    assert_both_carried(&fetched.paths, |path| path.received);
    let (asked, paths) = ended(&news);
    assert_eq!(asked, [("file".to_string(), Some(LEN as u64))]);
    assert_both_carried(&paths, |path| path.acked);
    server.join().expect("no panic");
}

#[test]
fn without_multipath_on_one_side_there_is_one_path() {
    let folder = Folder::new("single");
    let (at, _, server) = our_server(&folder, true);
    let (fetched, bytes) = fetched(&from_both(at));
    assert!(bytes == content());
    assert!(!fetched.multipath && fetched.paths.len() == 1);
    server.join().expect("no panic");
}

/// A thread with tokio's runtime in it.
fn on_tokio<T: Send + 'static>(
    work: impl Future<Output = Result<T, noq_files::Failure>> + Send + 'static,
) -> JoinHandle<T> {
    spawn(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let limited = async { tokio::time::timeout(LIMIT, work).await };
        runtime.block_on(limited).expect("in time").expect("done")
    })
}

fn noq_server(folder: &Folder) -> SocketAddr {
    let (tell, told): (Sender<SocketAddr>, _) = channel();
    let bound = move |at| tell.send(at).expect("somebody waits");
    let listen = SocketAddr::new(FIRST, 0);
    let path = folder.0.clone();
    // It ends with the process.
    spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(noq_files::serve(path, listen, bound))
    });
    told.recv_timeout(LIMIT).expect("it listens")
}

#[test]
fn our_client_has_the_file_of_a_noq_server_over_two_paths() {
    let folder = Folder::new("noq-server");
    let (fetched, bytes) = fetched(&from_both(noq_server(&folder)));
    assert!(bytes == content());
    assert!(fetched.multipath);
    assert_both_carried(&fetched.paths, |path| path.received);
}

#[test]
fn a_noq_client_has_the_file_of_our_server_over_two_paths() {
    let folder = Folder::new("noq-client");
    let (at, news, server) = our_server(&folder, false);
    let client = on_tokio(async move {
        let mut bytes = Vec::new();
        let from = [FIRST, SECOND];
        let (paths, _) = noq_files::fetch(at, "file", &from, &mut bytes).await?;
        Ok((paths, bytes))
    });
    let (paths, bytes) = client.join().expect("no panic");
    assert!(paths == 2 && bytes == content());
    let (_, paths) = ended(&news);
    assert_both_carried(&paths, |path| path.acked);
    server.join().expect("no panic");
}

#[test]
fn a_file_that_is_not_there_is_one_line() {
    let folder = Folder::new("missing");
    // It is there, but not in what is served.
    let outside = format!("../missing-{}/file", process::id());
    for (server, name) in [
        (our_server(&folder, false).0, outside.as_str()),
        (noq_server(&folder), "nothing"),
    ] {
        let settings = Fetch {
            name: name.into(),
            ..from_both(server)
        };
        let error = fetch(&settings, &mut Vec::new(), &mut || false).expect_err(name);
        let expected =
            format!("{server} gave up the file after 0 bytes: it has no such file (error 0x1)");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_address_of_another_host_is_one_line() {
    let settings = Fetch {
        from: vec![[203, 0, 113, 1].into()],
        ..from_both(SocketAddr::new(FIRST, 9))
    };
    let error = fetch(&settings, &mut Vec::new(), &mut || false).expect_err("refused");
    assert!(matches!(error, LiveError::Bind(..)), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("203.0.113.1 cannot be used: ")
    );
}

#[test]
fn who_stops_a_fetch_is_obeyed_and_the_server_told() {
    let folder = Folder::new("stopped");
    let (at, news, server) = our_server(&folder, false);
    let enough = AtomicBool::new(false);
    struct Seen<'a>(&'a AtomicBool);
    impl std::io::Write for Seen<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.store(!bytes.is_empty(), Ordering::Relaxed);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut stop = || enough.load(Ordering::Relaxed);
    let error = fetch(&from_both(at), &mut Seen(&enough), &mut stop).expect_err("stopped");
    assert!(matches!(error, LiveError::Stopped), "{error}");
    ended(&news);
    server.join().expect("no panic");
}

#[test]
fn a_packet_of_a_connection_that_is_not_known_is_answered_by_a_reset() {
    let folder = Folder::new("reset");
    let (at, _news, server) = our_server(&folder, true);
    let socket = UdpSocket::bind((FIRST, 0)).expect("a port");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let stray = [0x41; 100];
    let mut reset = [0; 1500];
    socket.send_to(&stray, at).expect("it leaves");
    let (len, from) = socket.recv_from(&mut reset).expect("an answer");
    assert_eq!(from, at);
    let key = ResetKey::new(RESET_KEY);
    assert_eq!(key.answer(&stray).as_deref(), Some(&reset[..len]));
    // The server ends with its first connection.
    fetched(&from_both(at));
    server.join().expect("it ends");
}
