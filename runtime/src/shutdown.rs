//! Shutdown: a first signal asks, a second one insists.
//!
//! Invariant: nothing but this module listens to signals.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code after a second signal: somebody did not want to wait for a clean end.
const EXIT_CODE_INSISTED: i32 = 130;

/// A token that is cancelled by the first SIGTERM or SIGINT. A second one ends the process at once.
///
/// # Errors
/// When the process may not install signal handlers.
pub fn on_signals() -> std::io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let asked = token.clone();
    let listen = async move {
        let mut signals = 0_u32;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            signals += 1;
            if signals > 1 {
                std::process::exit(EXIT_CODE_INSISTED);
            }
            tracing::info!("shutdown asked for; a second signal ends the process at once");
            asked.cancel();
        }
    };
    #[allow(
        clippy::disallowed_methods,
        reason = "the signal task outlives every supervisor: it is what stops them"
    )]
    tokio::spawn(listen);
    Ok(token)
}
