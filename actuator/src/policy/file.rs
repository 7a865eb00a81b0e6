//! The file that the policy is in, read again when it changes.
//!
//! Invariant: the first reading must succeed; of later ones, each that does not is said once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;

use super::Policy;

/// How often the file is looked at: a mounted ConfigMap changes within a minute.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where the policy is.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// What each cluster may have of this region, whatever is asked for: a YAML file. Without it
    /// nothing is limited. Read again when it changes.
    #[arg(long = "policy", env = "LONGSHORE_POLICY", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// The policy as it is at any time.
#[derive(Clone, Debug)]
pub struct Policies(watch::Receiver<Arc<Policy>>);

impl Policies {
    /// One that limits nothing, for ever.
    #[must_use]
    pub fn open() -> Self {
        Self(watch::channel(Arc::new(Policy::open())).1)
    }

    /// The policy now.
    #[must_use]
    pub fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.0.borrow())
    }
}

impl PolicyArgs {
    /// Reads the file; and what keeps reading it, for ever.
    ///
    /// # Errors
    /// When it cannot be read, or is no policy; the message says where.
    pub fn read(&self) -> anyhow::Result<(Policies, impl Future<Output = ()> + Send + use<>)> {
        let source = self.file.clone();
        let text = source.as_ref().map(content).transpose()?.unwrap_or_default();
        let policy = match &source {
            Some(file) => parsed(&text).with_context(|| format!("--policy {}", file.display()))?,
            None => Policy::open(),
        };
        let (sender, receiver) = watch::channel(Arc::new(policy));
        let keeping = async move {
            let Some(file) = source else { return };
            keep(file, text, sender).await;
        };
        Ok((Policies(receiver), keeping))
    }
}

async fn keep(file: PathBuf, mut text: String, sender: watch::Sender<Arc<Policy>>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Ok(now) = content(&file) else { continue };
        if now == text {
            continue;
        }
        text = now;
        match parsed(&text) {
            Ok(policy) => {
                tracing::info!(file = %file.display(), "policy changed");
                sender.send_replace(Arc::new(policy));
            }
            Err(error) => {
                tracing::warn!(
                    file = %file.display(),
                    "the policy before goes on, as the new one is of no use: {error:#}"
                );
            }
        }
    }
}

fn content(file: &PathBuf) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("--policy {}", file.display()))
}

pub(super) fn parsed(text: &str) -> anyhow::Result<Policy> {
    Ok(serde_saphyr::from_str(text)?)
}
