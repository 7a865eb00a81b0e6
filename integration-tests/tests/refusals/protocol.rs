//! The services refuse what breaks the protocol: a status with a machine-readable reason and the
//! way out. A bystander's session on the same process goes on as if nothing had happened.

mod capacity;
mod crowded;
mod planning;
mod sync;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use longshore_it::parts::ports;
use longshore_it::stage::services::Service;
use longshore_proto::reason;
use tonic::{Code, Status};

use super::stage::{says, surroundings};

/// A port picked by the system.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A scheduler whose only actuator does not answer.
async fn scheduler(name: &str) -> Result<Service> {
    scheduler_with(name, &[]).await
}

/// A scheduler with these flags.
async fn scheduler_with(name: &str, flags: &[&str]) -> Result<Service> {
    let nobody = format!("http://127.0.0.1:{}", ports::free()?);
    let mut surroundings = surroundings(name, "")?;
    surroundings.scheduler_flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    surroundings.start_scheduler(ANY_PORT, &[nobody]).await
}

/// Fails unless the answer is this refusal, with all of `parts` in its text.
fn refused<T>(
    answer: Result<T, Status>,
    (code, wanted): (Code, &str),
    parts: &[&str],
) -> Result<()> {
    let status = answer.err().context("it was not refused")?;
    ensure!(status.code() == code, "{status:?}");
    let (name, _) = reason::of_status(&status).with_context(|| format!("no reason: {status:?}"))?;
    ensure!(name == wanted, "{name}: {status:?}");
    says(status.message(), parts)
}
