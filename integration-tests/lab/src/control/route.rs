//! From method and path to what is asked.
//!
//! Invariant: every path of [`PATHS`] leads somewhere.

use http::{Method, Uri};

use super::refusal::{PATHS, Refusal};
use crate::region::Since;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// What can be asked.
    Help,
    /// What there is.
    State,
    /// Counted calls.
    Calls(Since),
    /// That something fail.
    Faults,
    /// That nothing fail any more.
    NoFaults,
    /// That an offer be limited.
    Capacity,
    /// That a spot price be another.
    Prices,
    /// That something happen to instances.
    Interruptions,
}

impl Asked {
    /// What a request asks.
    ///
    /// # Errors
    /// When path, method or query are none of ours.
    pub fn of(method: &Method, uri: &Uri) -> Result<Self, Refusal> {
        let asked = match (uri.path(), method.as_str()) {
            ("/", "GET") => Self::Help,
            ("/state", "GET") => Self::State,
            ("/calls", "GET") => return Ok(Self::Calls(since(uri)?)),
            ("/faults", "POST") => Self::Faults,
            ("/faults", "DELETE") => Self::NoFaults,
            ("/capacity", "POST") => Self::Capacity,
            ("/prices", "POST") => Self::Prices,
            ("/interruptions", "POST") => Self::Interruptions,
            (path, method) => return Err(unknown(path, method)),
        };
        match uri.query() {
            Some(query) if !query.is_empty() => {
                Err(Refusal::Query(format!("{} takes none", uri.path())))
            }
            Some(_) | None => Ok(asked),
        }
    }
}

fn unknown(path: &str, method: &str) -> Refusal {
    match PATHS.iter().find(|(known, _)| *known == path) {
        Some((_, methods)) => {
            Refusal::WrongMethod { path: path.to_owned(), method: method.to_owned(), methods }
        }
        None => Refusal::UnknownPath(path.to_owned()),
    }
}

/// The number of a call, or a moment.
fn since(uri: &Uri) -> Result<Since, Refusal> {
    let mut since = Since::Start;
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if name != "since" {
            return Err(Refusal::Query(format!("{name} is no parameter of /calls")));
        }
        since = match (value.parse(), value.parse()) {
            (Ok(number), _) => Since::Call(number),
            (_, Ok(at)) => Since::Time(at),
            (Err(_), Err(_)) => {
                return Err(Refusal::Query(format!("{value:?} is neither a number nor a time")));
            }
        };
    }
    Ok(since)
}
