//! Subflows, announcements and priorities at given times.

use std::net::IpAddr;
use std::str::FromStr;

use polypath_settings::{Algorithm, Lines, algorithm};

use super::{Action, Pair, PathManager, PmView};
use crate::{MICROSECOND, MILLISECOND, NEVER, Nanos, SECOND};

algorithm! {
    "scripted",
    "Does at given times what a list of steps says, and nothing else",
    "the commands of Linux's userspace path manager, Documentation/netlink/specs/mptcp_pm.yaml";
    /// Settings of a script.
    ScriptedConfig {
        /// each "TIME open|close|backup|normal LOCAL REMOTE" or "TIME announce|withdraw LOCAL", with addresses,
        /// counted from when the connection is ready for subflows
        steps: Lines<Step> as Texts = Texts(&[]),
    }
}

impl Algorithm<dyn PathManager> for ScriptedConfig {
    fn make(self) -> Box<dyn PathManager> {
        let mut steps = self.steps.0;
        steps.sort_by_key(|step| step.at);
        Box::new(Scripted { steps, asked: None })
    }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Open,
    Close,
    Backup,
    Normal,
    Announce,
    Withdraw,
}

const VERBS: [(&str, Verb); 6] = [
    ("open", Verb::Open),
    ("close", Verb::Close),
    ("backup", Verb::Backup),
    ("normal", Verb::Normal),
    ("announce", Verb::Announce),
    ("withdraw", Verb::Withdraw),
];

const UNITS: [(&str, Nanos); 3] = [("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND)];

/// What to do at which time.
#[derive(Clone, Debug)]
pub struct Step {
    at: Nanos,
    verb: Verb,
    local: IpAddr,
    /// Of the verbs that concern a pair of addresses.
    remote: Option<IpAddr>,
}

const FORM: &str =
    "a step is for example \"2 s open 10.0.1.1 10.0.0.2\" or \"5 s withdraw 10.0.1.1\"";

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [number, unit, verb, addresses @ ..] = &words[..] else {
            return Err(FORM.into());
        };
        let count: f64 = number
            .parse()
            .ok()
            .filter(|count| (0.0..=1e9).contains(count))
            .ok_or_else(|| format!("'{number}' is no time"))?;
        let scale = UNITS.iter().find(|(known, _)| known == unit);
        let (_, scale) = scale.ok_or_else(|| format!("a time is in s, ms or us, not '{unit}'"))?;
        let verb = VERBS.iter().find(|(known, _)| known == verb);
        let (name, verb) = *verb.ok_or_else(|| {
            let known: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
            format!("'{}' is none of {}", words[2], known.join(", "))
        })?;
        let address = |text: &&str| {
            text.parse::<IpAddr>()
                .map_err(|_| format!("'{text}' is no address"))
        };
        let paired = !matches!(verb, Verb::Announce | Verb::Withdraw);
        let (local, remote) = match addresses {
            [local] if !paired => (address(local)?, None),
            [local, remote] if paired => (address(local)?, Some(address(remote)?)),
            _ if paired => {
                return Err(format!("{name} takes a local and a remote address; {FORM}"));
            }
            _ => return Err(format!("{name} takes a local address; {FORM}")),
        };
        Ok(Self {
            at: (count * *scale as f64) as Nanos,
            verb,
            local,
            remote,
        })
    }
}

struct Scripted {
    /// Still to be done, by time.
    steps: Vec<Step>,
    /// When it was last asked.
    asked: Option<Nanos>,
}

impl Step {
    /// What to do; nothing yet while one of its addresses is unknown or down.
    fn action(&self, view: &PmView) -> Option<Action> {
        let local = view
            .local
            .iter()
            .find(|local| local.address == self.local && local.up)?
            .id;
        let pair = || {
            let remote = view
                .remote
                .iter()
                .find(|remote| Some(remote.address) == self.remote)?
                .id;
            Some(Pair { local, remote })
        };
        Some(match self.verb {
            Verb::Announce => Action::announce(local),
            Verb::Withdraw => Action::Withdraw(local),
            Verb::Open => Action::Open(pair()?),
            Verb::Close => Action::Close(pair()?),
            Verb::Backup | Verb::Normal => Action::Priority {
                pair: pair()?,
                backup: matches!(self.verb, Verb::Backup),
            },
        })
    }
}

impl PathManager for Scripted {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        self.asked = Some(view.now);
        let mut actions = Vec::new();
        self.steps.retain(|step| {
            let action = (step.at <= view.now).then(|| step.action(view)).flatten();
            let waits = action.is_none();
            actions.extend(action);
            waits
        });
        actions
    }

    fn wake(&self) -> Nanos {
        let asked = self.asked.unwrap_or(0);
        self.steps
            .iter()
            .map(|step| step.at)
            .find(|at| *at > asked)
            .unwrap_or(NEVER)
    }
}
