//! The user's command: plan without a cluster, check a cluster, explain a decision, say who is who,
//! run everything in one process.
//!
//! Invariant: a command turns its arguments into an [`Answer`](terminal::Answer); only
//! [`terminal`] prints. Decisions are made by the libraries of the services, never here.

pub mod args;
pub mod audit;
pub mod certificates;
pub mod doctor;
pub mod explain;
pub mod iam;
pub mod kubernetes;
pub mod plan;
pub mod services;
pub mod terminal;
pub mod up;

use std::process::ExitCode;

use args::{Args, Command, Explain};
use clap::CommandFactory as _;
use terminal::{Answer, Ending, Style};

/// Does what the arguments ask for, prints the answer and gives the exit code.
#[must_use]
pub fn main(args: &Args) -> ExitCode {
    let style = Style::detect(args.no_color);
    let answer = match &args.command {
        Command::Plan(args) => plan::run(args, style),
        Command::Doctor(args) => awaited(doctor::run(args, style)),
        Command::Explain(Explain::Pod(args)) => awaited(explain::pod(args)),
        Command::Explain(Explain::Node(args)) => awaited(explain::node(args)),
        Command::Up(args) => return up::run(args),
        Command::Audit(args) => awaited(audit::run(args, style)),
        Command::Completions { shell } => completions(*shell),
        Command::Iam(args) => iam::run(args),
        Command::Enroll(args) => awaited(certificates::enroll(args)),
        Command::Certificates(what) => awaited(certificates::run(what, style)),
    };
    answer.print();
    ExitCode::from(answer.ending as u8)
}

/// What completes the command in a shell.
fn completions(shell: clap_complete::Shell) -> Answer {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "longshore", &mut text);
    Answer { text: String::from_utf8_lossy(&text).into_owned(), ..Answer::default() }
}

/// Waits for an answer from the network.
fn awaited(answer: impl Future<Output = Answer>) -> Answer {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(answer),
        Err(error) => Answer::error(Ending::Failed, &error),
    }
}
