//! Every kind of caller against every method.

use anyhow::{Result, ensure};
use longshore_runtime::client::channel_to;
use longshore_runtime::tls::Server;

use super::{
    APPLY, AUDIT, COMPUTE, EXPLAIN, EXPLAIN_NODE, FORGET, PUT, STREAM, SYNC, Stand, WATCH, call,
    is_forbidden,
};

/// Callers, by a word each.
const CALLERS: [(&str, &str); 7] = [
    ("watcher", "longshore://cluster/111122223333/us-east-1/lab"),
    ("scheduler", "longshore://scheduler"),
    ("actuator", "longshore://actuator/111122223333/us-east-1"),
    ("planner", "longshore://client/planner"),
    ("explainer", "longshore://client/explainer"),
    ("onlooker", "longshore://client/onlooker"),
    ("stranger", "longshore://client/stranger"),
];
/// Methods, where they are served, and who may call them.
const METHODS: [(&str, Server, &[&str]); 10] = [
    (SYNC, Server::Scheduler, &["watcher"]),
    (COMPUTE, Server::Scheduler, &["planner"]),
    (STREAM, Server::Scheduler, &["planner"]),
    (EXPLAIN, Server::Scheduler, &["explainer"]),
    (EXPLAIN_NODE, Server::Scheduler, &["explainer"]),
    (PUT, Server::Actuator, &["scheduler"]),
    (APPLY, Server::Actuator, &["scheduler"]),
    (FORGET, Server::Actuator, &["scheduler"]),
    (WATCH, Server::Actuator, &["scheduler", "onlooker"]),
    (AUDIT, Server::Actuator, &["onlooker"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_method_answers_those_who_may_call_it_and_nobody_else() -> Result<()> {
    let stand = Stand::start().await?;
    for (name, uri) in CALLERS {
        let caller = stand.keys.platform(&uri.parse()?)?;
        for (method, server, may) in METHODS {
            let url = match server {
                Server::Scheduler => stand.scheduler.url(),
                Server::Actuator => stand.actuator.url(),
            };
            let answer = call(channel_to(server, &url, &caller)?, method).await;
            let refusal = answer.as_ref().err().filter(|status| is_forbidden(status));
            ensure!(refusal.is_none() == may.contains(&name), "{name} calls {method}: {answer:?}");
            let named = refusal.is_none_or(|status| status.message().contains(uri));
            ensure!(named, "{name} is not named: {refusal:?}");
        }
    }
    Ok(())
}
