//! Asking: what an [`Account`] holds, read from AWS through the actuator's own client.
//!
//! Invariant: reads only, as whoever runs the command; what cannot be asked does not stop the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use longshore_actuator::cloud::{
    Access as _, Caller, Class, CloudError, Fleet as _, Messages as _,
};
use longshore_actuator::ec2::Aws;
use longshore_actuator::ec2::inspect::AccessEntry;
use longshore_actuator::nodeclass::{Place, survey};
use longshore_proto::types::v1::ClusterFacts;
use longshore_runtime::clock::Clock;
use longshore_watcher::api::keys::labels::REGION;

use super::account::{Account, Asked, Queue, Role};
use super::facts::{Facts, Kind, label, list};
use super::{identity, pools};
use crate::args::DoctorArgs;

/// Longest wait for everything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait for the first answer, which shows whether there are credentials at all.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// Role that spot requests need.
pub const SPOT_ROLE: &str = "AWSServiceRoleForEC2Spot";

/// What has to be known before anything can be asked.
struct Settings {
    region: String,
    facts: ClusterFacts,
}

/// Asks AWS everything that the checks look at.
///
/// # Errors
/// In words: why AWS could not be asked at all, and what to do about it.
pub async fn ask(args: &DoctorArgs, facts: &Facts) -> Result<Account, String> {
    if args.no_aws {
        return Err("--no-aws is given".to_owned());
    }
    let settings = settings(args, facts).ok_or("the region is not known; give --region")?;
    let aws = Aws::connect(&settings.region, &Clock::system()).await;
    let caller = tokio::time::timeout(FIRST_PATIENCE, aws.caller()).await;
    let caller = caller.map_err(|_| "no answer; is there a way to AWS from here?".to_owned())?;
    let caller = caller.map_err(|error| no_answer(&error))?;
    let asking = ask_as(&aws, caller, settings, facts);
    let asking = async {
        let mut account = asking.await;
        if args.takeover {
            account.instances = Some(aws.instances().await);
        }
        account
    };
    tokio::time::timeout(PATIENCE, Box::pin(asking))
        .await
        .map_err(|_| format!("no complete answer within {} s", PATIENCE.as_secs()))
}

/// The error's gist: the SDK appends its own structures in parentheses.
fn no_answer(error: &CloudError) -> String {
    let gist = error.message.split(" (").next().unwrap_or_default();
    format!("{}: {gist}; set AWS_PROFILE, or log in", error.action)
}

/// As given, else as our own pods have it, else as the nodes show it.
fn settings(args: &DoctorArgs, facts: &Facts) -> Option<Settings> {
    let given = |given: &Option<String>, names: [&str; 2]| {
        let given = given.clone().filter(|text| !text.is_empty());
        given.or_else(|| of_pods(facts, names)).unwrap_or_default()
    };
    let of_nodes = || facts.of(Kind::Node).find_map(|node| label(node, REGION)).map(str::to_owned);
    let region = given(&args.region, ["LONGSHORE_REGION", "AWS_REGION"]);
    let region = Some(region).filter(|region| !region.is_empty());
    let region = region.or_else(of_nodes).or_else(|| args.aws_region.clone())?;
    let profile = ["LONGSHORE_DEFAULT_INSTANCE_PROFILE", "AWS_DEFAULT_INSTANCE_PROFILE"];
    let facts = ClusterFacts {
        name: given(&args.cluster_name, ["LONGSHORE_CLUSTER_NAME", "CLUSTER_NAME"]),
        interruption_queue: given(
            &args.interruption_queue,
            ["LONGSHORE_INTERRUPTION_QUEUE", "INTERRUPTION_QUEUE"],
        ),
        default_instance_profile: given(&None, profile),
        region: region.clone(),
        ..ClusterFacts::default()
    };
    Some(Settings { region, facts })
}

/// A variable of our own pods, under either of its names.
fn of_pods(facts: &Facts, names: [&str; 2]) -> Option<String> {
    let containers = facts.of(Kind::Pod).flat_map(|pod| list(&pod["spec"]["containers"]));
    let mut variables = containers.flat_map(|container| list(&container["env"]));
    let found = variables.find(|it| names.iter().any(|name| it["name"] == *name));
    found.and_then(|it| it["value"].as_str()).map(str::to_owned)
}

async fn ask_as(aws: &Aws, caller: Caller, settings: Settings, facts: &Facts) -> Account {
    let Settings { region, facts: cluster } = settings;
    let place = Place { region: region.clone(), caller_arn: caller.arn.clone() };
    let classes = pools::classes(facts);
    let surveys = classes.iter().map(|class| survey(aws, &place, &cluster, class));
    let spot = async {
        if pools::naming_spot(facts).is_empty() {
            None
        } else {
            Some(aws.role_arn(SPOT_ROLE).await)
        }
    };
    let (surveys, queue, spot_role, roles) = tokio::join!(
        join_all(surveys),
        queue(aws, &cluster.interruption_queue),
        spot,
        roles(aws, &caller, &cluster.name, facts),
    );
    let classes = classes.into_iter().zip(surveys).collect();
    let (caller_arn, cluster) = (caller.arn, cluster.name);
    let instances = None;
    Account { region, cluster, caller_arn, classes, queue, spot_role, roles, instances }
}

async fn queue(aws: &Aws, name: &str) -> Option<Queue> {
    if name.is_empty() {
        return None;
    }
    let url = match aws.queue_url(name).await {
        Ok(url) => Ok(Some(url)),
        Err(error) if error.class == Class::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let settings = match &url {
        Ok(Some(url)) => Some(aws.queue_settings(url).await),
        Ok(None) | Err(_) => None,
    };
    Some(Queue { name: name.to_owned(), url, settings })
}

/// Roles of nodes, with their access entries, and roles of service accounts.
async fn roles(aws: &Aws, caller: &Caller, cluster: &str, facts: &Facts) -> BTreeMap<String, Role> {
    let of_nodes: BTreeSet<String> = identity::roles_of_nodes(facts);
    let all: BTreeSet<String> =
        of_nodes.iter().cloned().chain(identity::roles_of_accounts(facts)).collect();
    let asked = all.into_iter().map(|name| {
        let joins = of_nodes.contains(&name) && !cluster.is_empty();
        async move {
            let arn = aws.role_arn(&name).await;
            let entry = match &arn {
                Ok(Some(arn)) if joins => Some(aws.access_entry(cluster, arn).await),
                Err(_) if joins => entry_by_name(aws, caller, cluster, &name).await,
                Ok(_) | Err(_) => None,
            };
            (name, Role { arn, entry })
        }
    });
    join_all(asked).await.into_iter().collect()
}

/// The entry of a role whose ARN may not be asked. None shows nothing: the role may have a path.
async fn entry_by_name(
    aws: &Aws,
    caller: &Caller,
    cluster: &str,
    role: &str,
) -> Option<Asked<Option<AccessEntry>>> {
    let partition = caller.arn.split(':').nth(1).unwrap_or("aws");
    let arn = format!("arn:{partition}:iam::{}:role/{role}", caller.account_id);
    Some(aws.access_entry(cluster, &arn).await).filter(|entry| *entry != Ok(None))
}
