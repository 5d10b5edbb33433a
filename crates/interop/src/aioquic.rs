//! aioquic as an end of a world. A Python program holds the connection; time and datagrams pass over its standard input
//! and output.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use polypath_transport::quic::Codepoint;
use polypath_transport::quic::crypto::certificate;
use polypath_transport::{NEVER, Nanos, Tuple};
use polypath_wire::payload;

use crate::end::{Arrival, Departure, End, Outcome, Received, Side};
use crate::ours::SERVER_PORT;
use crate::peer::Setup;
use crate::world::{client_address, server_address};

const CLIENT_PORT: u16 = 50_000;
/// The program; the kinds of requests and events are its.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/aioquic_end.py");

/// What is asked of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    New,
    Receive,
    Timer,
    Open,
    Send,
    Close,
    UpdateKeys,
    Move,
    Drop,
}

/// A running program. It ends when it is dropped.
pub struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    version: String,
    connections: u32,
}

impl Program {
    /// Starts it with an interpreter of Python.
    ///
    /// # Errors
    /// There is no such interpreter, or it cannot import aioquic.
    pub fn start(python: &Path) -> io::Result<Self> {
        let mut child = Command::new(python)
            .arg(PROGRAM)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("no pipe to the program");
        let input = Some(child.stdin.take().ok_or_else(missing)?);
        let mut output = child.stdout.take().ok_or_else(missing)?;
        let version = match framed(&mut output) {
            Ok(version) => String::from_utf8_lossy(&version).into_owned(),
            Err(_) => {
                let mut said = String::new();
                if let Some(errors) = &mut child.stderr {
                    errors.read_to_string(&mut said)?;
                }
                child.wait()?;
                let last = said.lines().last().unwrap_or("it said nothing");
                return Err(io::Error::other(last.to_string()));
            }
        };
        if let Some(mut errors) = child.stderr.take() {
            // A full pipe would stop the program.
            std::thread::spawn(move || io::copy(&mut errors, &mut io::stderr()));
        }
        Ok(Self {
            child,
            input,
            output,
            version,
            connections: 0,
        })
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    fn ask(
        &mut self,
        request: Request,
        index: u32,
        now: Nanos,
        rest: &[u8],
    ) -> io::Result<Vec<u8>> {
        let gone = || io::Error::other("the program ended");
        let input = self.input.as_mut().ok_or_else(gone)?;
        let mut bytes = (13 + rest.len() as u32).to_be_bytes().to_vec();
        bytes.push(request as u8);
        bytes.extend(index.to_be_bytes());
        bytes.extend(now.to_be_bytes());
        bytes.extend(rest);
        input.write_all(&bytes)?;
        input.flush()?;
        framed(&mut self.output)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // At the end of its input it leaves.
        self.input = None;
        let _ = self.child.wait();
    }
}

fn framed(output: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    output.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
    output.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// An endpoint of aioquic and its one connection.
pub struct Aioquic {
    side: Side,
    program: Rc<RefCell<Program>>,
    index: u32,
    /// Of the socket.
    local: SocketAddr,
    deadline: Nanos,
    secrets: Vec<String>,
    established: bool,
    outcome: Option<Outcome>,
    received: BTreeMap<u64, Received>,
    out: Vec<Departure>,
}

impl Aioquic {
    pub fn client(program: &Rc<RefCell<Program>>, setup: &Setup) -> Self {
        let local = SocketAddr::new(client_address(0), CLIENT_PORT);
        Self::new(Side::Client, program, local, setup)
    }

    pub fn server(program: &Rc<RefCell<Program>>, setup: &Setup) -> Self {
        let local = SocketAddr::new(server_address(), SERVER_PORT);
        Self::new(Side::Server, program, local, setup)
    }

    fn new(side: Side, program: &Rc<RefCell<Program>>, local: SocketAddr, setup: &Setup) -> Self {
        let index = {
            let mut program = program.borrow_mut();
            program.connections += 1;
            program.connections
        };
        let mut end = Self {
            side,
            program: Rc::clone(program),
            index,
            local,
            deadline: NEVER,
            secrets: Vec::new(),
            established: false,
            outcome: None,
            received: BTreeMap::new(),
            out: Vec::new(),
        };
        end.ask(Request::New, 0, as_json(side, setup).as_bytes());
        end
    }

    /// Lines of a key log since this was last asked.
    pub fn secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    pub fn update_keys(&mut self, now: Nanos) {
        self.ask(Request::UpdateKeys, now, &[]);
    }

    /// The client's socket has the address on another link from now on.
    pub fn move_to(&mut self, link: usize, now: Nanos) {
        self.local.set_ip(client_address(link));
        self.ask(Request::Move, now, &[]);
    }

    /// Asks, and takes in what the answer says. Returns its result.
    fn ask(&mut self, request: Request, now: Nanos, rest: &[u8]) -> u64 {
        let answer = self
            .program
            .borrow_mut()
            .ask(request, self.index, now, rest);
        let result = match &answer {
            Ok(answer) => self.take_in(&mut Answer(answer)),
            Err(error) => Err(error.to_string()),
        };
        result.unwrap_or_else(|error| {
            self.outcome.get_or_insert(Outcome::Error(error));
            self.deadline = NEVER;
            0
        })
    }

    fn take_in(&mut self, answer: &mut Answer<'_>) -> Result<u64, String> {
        self.deadline = answer.u64()?;
        let result = answer.u64()?;
        for _ in 0..answer.u32()? {
            let address = Ipv4Addr::from(answer.array::<4>()?);
            let port = u16::from_be_bytes(answer.array()?);
            let bytes = answer.bytes()?.to_vec();
            self.out.push(Departure {
                tuple: Tuple {
                    local: self.local,
                    remote: SocketAddr::new(address.into(), port),
                },
                bytes,
                ecn: Codepoint::NotEct,
            });
        }
        for _ in 0..answer.u32()? {
            let [kind] = answer.array()?;
            let (first, second) = (answer.u64()?, answer.u64()?);
            let bytes = answer.bytes()?;
            match kind {
                0 => self.established = true,
                1 => self.came(first, second == 1, bytes)?,
                _ => {
                    let reason = String::from_utf8_lossy(bytes).into_owned();
                    self.outcome.get_or_insert(match (kind, first) {
                        (2, 0) => Outcome::Closed,
                        (2, _) if reason == "Idle timeout" => Outcome::TimedOut,
                        (2, code) => Outcome::Error(format!("error {code:#x}: {reason}")),
                        _ => Outcome::Error(format!("aioquic raised {reason}")),
                    });
                }
            }
        }
        let lines = String::from_utf8_lossy(answer.bytes()?).into_owned();
        self.secrets.extend(lines.lines().map(str::to_string));
        Ok(result)
    }

    fn came(&mut self, stream: u64, ended: bool, bytes: &[u8]) -> Result<(), String> {
        let received = self.received.entry(stream).or_default();
        payload::check(self.side.other().content(stream), received.bytes, bytes)
            .map_err(|at| format!("stream {stream} has another byte at {at}"))?;
        received.bytes += bytes.len() as u64;
        received.ended = ended;
        Ok(())
    }
}

impl Drop for Aioquic {
    fn drop(&mut self) {
        self.ask(Request::Drop, 0, &[]);
    }
}

fn as_json(side: Side, setup: &Setup) -> String {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let (mut chain, mut key) = (Vec::new(), String::new());
    if side == Side::Server {
        chain = certificate::chain(setup.intermediates);
        key = hex(certificate::key().secret_der());
    }
    let chain: Vec<String> = chain.iter().map(|it| format!("\"{}\"", hex(it))).collect();
    format!(
        "{{\"client\": {}, \"seed\": {}, \"retry\": {}, \"window\": {}, \"resumes\": {}, \"alpn\": \"hq-interop\", \"name\": \"{}\", \
         \"server\": [\"{}\", {SERVER_PORT}], \"key\": \"{key}\", \"certificates\": [{}]}}",
        side == Side::Client,
        setup.seed,
        setup.retry,
        setup.window.unwrap_or(0),
        setup.sessions.is_some(),
        certificate::NAME,
        server_address(),
        chain.join(", "),
    )
}

/// What is left of an answer.
struct Answer<'a>(&'a [u8]);

impl<'a> Answer<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let short = || "an answer of the program is short".to_string();
        let (head, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_be_bytes)
    }

    /// Bytes behind their number.
    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let len = self.u32()? as usize;
        let short = || "an answer of the program is short".to_string();
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }
}

impl End for Aioquic {
    fn receive(&mut self, arrival: &Arrival<'_>, now: Nanos) {
        // Its socket is bound to one address.
        if arrival.tuple.local != self.local {
            return;
        }
        let SocketAddr::V4(remote) = arrival.tuple.remote else {
            return;
        };
        let mut rest = remote.ip().octets().to_vec();
        rest.extend(remote.port().to_be_bytes());
        rest.extend(arrival.bytes);
        self.ask(Request::Receive, now, &rest);
    }

    fn on_time(&mut self, now: Nanos) {
        self.ask(Request::Timer, now, &[]);
    }

    fn deadline(&self) -> Nanos {
        self.deadline
    }

    fn take(&mut self, _: Nanos) -> Vec<Departure> {
        std::mem::take(&mut self.out)
    }

    fn established(&self) -> bool {
        self.established
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome.clone()
    }

    fn open(&mut self, bidirectional: bool, now: Nanos) -> Option<u64> {
        let stream = self.ask(Request::Open, now, &[bidirectional.into()]);
        Some(stream)
    }

    fn send(&mut self, stream: u64, bytes: u64, now: Nanos) {
        let mut rest = vec![0; bytes as usize];
        payload::fill(self.side.content(stream), 0, &mut rest);
        rest.splice(0..0, stream.to_be_bytes());
        self.ask(Request::Send, now, &rest);
    }

    fn received(&self) -> &BTreeMap<u64, Received> {
        &self.received
    }

    fn close(&mut self, now: Nanos) {
        self.ask(Request::Close, now, &[]);
        self.outcome.get_or_insert(Outcome::Closed);
    }
}
