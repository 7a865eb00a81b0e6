//! `longshore explain`: what a running scheduler does with a pod or a node, and why.
//!
//! Invariant: the scheduler's answer is printed as it came; nothing is concluded here.

mod node;

use std::time::Duration;

use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{ExplainNodeRequest, ExplainPodRequest, ExplainPodResponse};
use longshore_proto::types::v1::placement::Target;
use longshore_runtime::client;
use longshore_runtime::tls::Server;
use tonic::Status;
use tonic::transport::Channel;

use crate::args::{AskArgs, ExplainNodeArgs, ExplainPodArgs, Output};
use crate::plan::report::why::Why;
use crate::plan::report::{Reason, text};
use crate::services::channel;
use crate::terminal::{Answer, Ending};

/// Longest wait for the scheduler's answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0:?} is no pod; write NAMESPACE/NAME")]
    Name(String),
    #[error("{0:#}")]
    Endpoint(anyhow::Error),
    #[error("{scheduler} does not explain {what} of cluster {cluster}: {status}")]
    Refused { scheduler: String, what: String, cluster: String, status: String },
    #[error("the answer cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Answers `longshore explain pod`.
pub async fn pod(args: &ExplainPodArgs) -> Answer {
    of_pod(args).await.unwrap_or_else(|error| failed(&error))
}

/// Answers `longshore explain node`.
pub async fn node(args: &ExplainNodeArgs) -> Answer {
    of_node(args).await.unwrap_or_else(|error| failed(&error))
}

fn failed(error: &Error) -> Answer {
    let input = matches!(error, Error::Name(_) | Error::Endpoint(_));
    Answer::error(if input { Ending::BadInput } else { Ending::Failed }, error)
}

async fn of_pod(args: &ExplainPodArgs) -> Result<Answer, Error> {
    let parts = args.pod.split_once('/').filter(|(namespace, name)| {
        !namespace.is_empty() && !name.is_empty() && !name.contains('/')
    });
    let Some((namespace, name)) = parts else { return Err(Error::Name(args.pod.clone())) };
    let request = ExplainPodRequest {
        cluster_id: args.asked.cluster.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let answer = client(&args.asked)?.explain_pod(client::with_deadline(request, DEADLINE)).await;
    let refused = |status| refused(&args.asked, format!("pod {}", args.pod), &status);
    told_pod(&args.pod, &answer.map_err(refused)?.into_inner(), args.asked.output)
}

async fn of_node(args: &ExplainNodeArgs) -> Result<Answer, Error> {
    let (cluster_id, name) = (args.asked.cluster.clone(), args.node.clone());
    let request = ExplainNodeRequest { cluster_id, name };
    let answer = client(&args.asked)?.explain_node(client::with_deadline(request, DEADLINE)).await;
    let refused = |status| refused(&args.asked, format!("node {}", args.node), &status);
    Ok(node::told(&answer.map_err(refused)?.into_inner(), args.asked.output)?)
}

fn client(asked: &AskArgs) -> Result<PlanningServiceClient<Channel>, Error> {
    let channel = channel(Server::Scheduler, ("--scheduler", &asked.scheduler), &asked.tls);
    Ok(PlanningServiceClient::new(channel.map_err(Error::Endpoint)?))
}

fn refused(asked: &AskArgs, what: String, status: &Status) -> Error {
    Error::Refused {
        scheduler: asked.scheduler.clone(),
        what,
        cluster: asked.cluster.clone(),
        status: format!("{} ({})", status.message(), status.code()),
    }
}

fn told_pod(pod: &str, answer: &ExplainPodResponse, output: Output) -> Result<Answer, Error> {
    let reason = answer.reason.as_ref().map(Reason::from);
    let place = answer.placement.as_ref().and_then(|placement| placement.target.as_ref());
    let place = place.map(|target| match target {
        Target::Node(node) => format!("node {node}"),
        Target::Claim(claim) => format!("the node that NodeClaim {claim} is waiting for"),
        Target::Planned(index) => format!("planned node {index}"),
    });
    let why = answer.explanation.as_ref().map(Why::live);
    let text = match output {
        Output::Json => {
            let json = serde_json::json!({
                "pod": pod, "plan_id": answer.plan_id, "place": place, "reason": reason, "why": why,
            });
            serde_json::to_string_pretty(&json)? + "\n"
        }
        Output::Table => {
            let mut told = match &place {
                Some(place) => format!("Pod {pod} goes to {place}\n"),
                None => format!("Pod {pod} cannot be placed\n"),
            };
            reason.iter().for_each(|reason| text::tree(&mut told, reason, 1));
            told += &why.map(|why| why.to_string()).unwrap_or_default();
            told + &format!("as of plan {}\n", answer.plan_id)
        }
    };
    let ending = if place.is_some() { Ending::Well } else { Ending::Attention };
    Ok(Answer { text, remarks: Vec::new(), ending })
}

#[cfg(test)]
mod tests {
    use longshore_proto::types::v1 as wire;
    use longshore_runtime::tls::TlsArgs;

    use super::*;

    #[test]
    fn a_pod_without_a_place_is_told_with_its_tree() {
        let leaf = wire::Reason {
            subject: "NodePool/default".to_owned(),
            message: "taint a=b:NoSchedule; add a toleration".to_owned(),
            ..wire::Reason::default()
        };
        let reason = wire::Reason {
            subject: "Deployment/web".to_owned(),
            message: "no NodePool can make a node for it".to_owned(),
            causes: vec![leaf],
            ..wire::Reason::default()
        };
        let answer = ExplainPodResponse {
            reason: Some(reason),
            plan_id: "p-7".to_owned(),
            ..ExplainPodResponse::default()
        };
        let told = told_pod("shop/web-1", &answer, Output::Table).unwrap();
        let expected = "Pod shop/web-1 cannot be placed\n  Deployment/web: no NodePool can make a \
                        node for it\n    NodePool/default: taint a=b:NoSchedule; add a \
                        toleration\nas of plan p-7\n";
        assert_eq!((told.text.as_str(), told.ending), (expected, Ending::Attention));
    }

    #[tokio::test]
    async fn a_name_without_a_namespace_is_bad_input() {
        for pod in ["web", "/web", "shop/", "a/b/c"] {
            let args = ExplainPodArgs {
                pod: pod.to_owned(),
                asked: AskArgs {
                    scheduler: "http://127.0.0.1:1".to_owned(),
                    cluster: "c".to_owned(),
                    output: Output::Table,
                    tls: TlsArgs::default(),
                },
            };
            assert_eq!(super::pod(&args).await.ending, Ending::BadInput, "{pod}");
        }
    }
}
