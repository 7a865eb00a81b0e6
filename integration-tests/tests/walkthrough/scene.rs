//! What the walkthroughs have in common: a region made for one cluster, and waiting for what a user
//! waits for.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use longshore_it::demo::audit;
use longshore_it::parts::poll;
use longshore_it::stage::eyes::{self, Sight};
use longshore_it::stage::world::{ROOT, World, WorldConfig};
use longshore_it::stage::{agreement, hands, iam};
use longshore_lab::instance::InstanceSource;
use longshore_lab::region::{NODE_ROLE, RegionConfig};
use serde_json::Value;

/// Most time for anything that ends with running pods; instances of the lab boot at once.
pub const LIMIT: Duration = Duration::from_secs(90);
/// Name of the controller's role in every walkthrough.
pub const CONTROLLER_ROLE: &str = longshore_lab::region::CONTROLLER_ROLE;

/// How AWS says that a policy does not allow something.
const DENIALS: [&str; 3] = ["UnauthorizedOperation", "AccessDenied", "AccessDeniedException"];

/// A world on a real control plane.
pub struct Scene {
    /// The world.
    pub world: World,
    /// Whether the actuator has what `longshore iam` prints.
    by_command: bool,
}

/// A region whose network, roles and queue belong to `cluster`.
pub fn region(name: &str, cluster: &str) -> Result<RegionConfig> {
    let mut config = RegionConfig::simple(name)?;
    let owned = |tags: &mut longshore_lab::region::Tags| {
        for value in tags.values_mut().filter(|value| *value == "lab") {
            cluster.clone_into(value);
        }
    };
    config.subnets.iter_mut().for_each(|subnet| owned(&mut subnet.tags));
    config.security_groups.iter_mut().for_each(|group| owned(&mut group.tags));
    config.queues.iter_mut().for_each(|queue| cluster.clone_into(&mut queue.name));
    config.clusters.iter_mut().for_each(|known| cluster.clone_into(&mut known.name));
    Ok(config)
}

/// Gives the controller exactly the policy of a rendered document.
pub fn restrict_controller(config: &mut RegionConfig, document: &str) -> Result<()> {
    let file = Path::new(ROOT).join("deploy/iam/rendered").join(document);
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let role = config.roles.iter_mut().find(|role| role.name == CONTROLLER_ROLE);
    role.context("no controller role")?.policies = vec![serde_json::from_str(&text)?];
    Ok(())
}

/// Gives the controller what `longshore iam` prints for the cluster, where it may do everything.
fn restrict_by_command(config: &mut RegionConfig, cluster: &str) -> Result<bool> {
    let everything = RegionConfig::simple(&config.name)?;
    let open = everything.roles.into_iter().find(|role| role.name == CONTROLLER_ROLE);
    let open = open.context("no controller role")?.policies;
    let nodes = config.instance_profiles.iter().filter_map(|profile| profile.role.clone());
    let nodes: Vec<String> = nodes.collect();
    let role = config.roles.iter_mut().find(|role| role.name == CONTROLLER_ROLE);
    let role = role.context("no controller role")?;
    let is_open = role.policies == open;
    if is_open {
        let flags = ["--region", &config.name, "--node-role", &nodes.join(",")];
        role.policies = vec![iam::policy(cluster, &flags)?];
    }
    Ok(is_open)
}

/// Gives the controller one right more.
pub fn allow_controller(config: &mut RegionConfig, action: &str) -> Result<()> {
    let role = config.roles.iter_mut().find(|role| role.name == CONTROLLER_ROLE);
    role.context("no controller role")?.policies.push(serde_json::json!({
        "Version": "2012-10-17",
        "Statement": [{ "Effect": "Allow", "Action": action, "Resource": "*" }],
    }));
    Ok(())
}

/// Renames the node role, as the walkthrough's account has it.
pub fn rename_node_role(config: &mut RegionConfig, name: &str) {
    for role in config.roles.iter_mut().filter(|role| role.name == NODE_ROLE) {
        name.clone_into(&mut role.name);
    }
    for profile in &mut config.instance_profiles {
        profile.role = Some(name.to_owned());
    }
    let acting = config.principals.iter_mut().filter(|principal| principal.role == NODE_ROLE);
    acting.for_each(|principal| name.clone_into(&mut principal.role));
}

impl Scene {
    /// Starts a world on a real control plane; `adjust` sees the configuration first.
    pub async fn start(
        region: RegionConfig,
        cluster: &str,
        adjust: impl FnOnce(&mut WorldConfig),
    ) -> Result<Self> {
        let dir = crate::kept_dir(&format!("walkthrough-{cluster}-"))?;
        let mut region = region;
        let by_command = restrict_by_command(&mut region, cluster)?;
        let mut config = WorldConfig::new(region, cluster, &dir);
        config.real = true;
        adjust(&mut config);
        let world = World::start(config).await?;
        Ok(Self { world, by_command })
    }

    /// Manifests of an example.
    pub fn example(&self, name: &str) -> Result<Vec<Value>> {
        hands::manifests(&Path::new(ROOT).join("deploy/examples").join(name))
    }

    /// Applies manifests like `kubectl apply`.
    pub async fn apply(&self, manifests: &[Value]) -> Result<()> {
        hands::apply(&self.world.client, manifests).await
    }

    /// Waits until the workload looks as wanted.
    pub async fn until(
        &mut self,
        what: &str,
        selector: &str,
        done: impl Fn(&Sight) -> bool,
    ) -> Result<Sight> {
        let client = self.world.client.clone();
        let seen = poll::until(what, LIMIT, || async {
            let sight = eyes::look(&client, "default", selector).await?;
            ensure!(done(&sight), "{sight:?}");
            Ok::<_, anyhow::Error>(sight)
        });
        let seen = seen.await;
        self.world.ensure_running()?;
        seen.map_err(|error| error.context(self.logs()))
    }

    /// Waits until an Event's or condition's text contains all of `parts`; returns the text.
    pub async fn told(&mut self, parts: &[&str]) -> Result<String> {
        let client = self.world.client.clone();
        let what = format!("{parts:?} is said");
        let told = poll::until(&what, LIMIT, || async {
            let all = texts(&client).await?;
            let says = |text: &&String| parts.iter().all(|part| text.contains(part));
            let found = all.iter().find(says).cloned();
            found.with_context(|| format!("said so far: {all:#?}"))
        });
        told.await.map_err(|error| error.context(self.logs()))
    }

    /// Instances, launches and claims agree: nothing twice, nothing left over.
    pub async fn balanced(&self) -> Result<()> {
        let claims = eyes::claims(&self.world.client).await?;
        let claimed: BTreeSet<String> = agreement::provider_ids(&claims).collect();
        let books = audit::books(&self.world.region.instances(), &claimed);
        ensure!(books.duplicates == 0 && books.leaks == 0, "{books:?}");
        let rights = self.world.rights.as_ref().context("the control plane is not real")?;
        let denied = rights.asked()?.denied;
        ensure!(denied.is_empty(), "the chart does not give the watcher: {denied:#?}");
        let calls = self.world.region.calls();
        let refused = calls.iter().filter(|call| DENIALS.contains(&call.outcome()));
        let refused: Vec<_> = refused.map(|call| (&call.api, &call.summary)).collect();
        ensure!(
            refused.is_empty() || !self.by_command,
            "the policy does not give the actuator: {refused:#?}"
        );
        Ok(())
    }

    /// Waits until no node and no instance of the pools is left.
    pub async fn gone(&self) -> Result<()> {
        let client = self.world.client.clone();
        poll::until("all nodes are gone", LIMIT, || async {
            let nodes = eyes::pool_nodes(&client).await?;
            ensure!(nodes.is_empty(), "{} nodes are left", nodes.len());
            let claims = eyes::claims(&client).await?;
            ensure!(claims.is_empty(), "{} claims are left", claims.len());
            Ok::<_, anyhow::Error>(())
        })
        .await
        .map_err(|error| error.context(self.logs()))?;
        self.balanced().await
    }

    /// The places planned on the new nodes of `claims` claims are taken, by what the watcher saw.
    pub async fn realised(&self, claims: usize) -> Result<Places> {
        realised(self.world.watcher.log_path(), claims, 0).await
    }

    /// The ends of the services' logs, for errors.
    pub fn logs(&self) -> String {
        let files = [
            self.world.actuator.process.log_path(),
            self.world.scheduler.process.log_path(),
            self.world.watcher.log_path(),
        ];
        let tail = |file: &Path| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(25)..].join("\n");
            format!("--- {}\n{tail}", file.display())
        };
        files.map(tail).join("\n")
    }
}

/// Everything that is said about pods, claims and node classes: Events and condition messages.
async fn texts(client: &kube::Client) -> Result<Vec<String>> {
    let events: Api<Event> = Api::all(client.clone());
    let events = events.list(&ListParams::default()).await?.items;
    let mut texts: Vec<String> = events.into_iter().filter_map(|event| event.message).collect();
    let kinds = [
        ("karpenter.sh", "v1", "NodeClaim"),
        ("karpenter.k8s.aws", "v1", "EC2NodeClass"),
        ("karpenter.k8s.aws", "v1alpha1", "AWSNodeTemplate"),
        ("karpenter.sh", "v1alpha5", "Provisioner"),
    ];
    for (group, version, kind) in kinds {
        for object in eyes::list(client, group, version, kind).await? {
            let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
            let messages = conditions.into_iter().flatten().map(|c| c["message"].to_string());
            texts.extend(messages);
        }
    }
    Ok(texts)
}

/// Deletes a Deployment of the default namespace.
pub async fn delete_deployment(client: &kube::Client, name: &str) -> Result<()> {
    let api: Api<k8s_openapi::api::apps::v1::Deployment> = Api::default_namespaced(client.clone());
    api.delete(name, &kube::api::DeleteParams::default()).await?;
    Ok(())
}

/// Pods that were planned on new nodes, by where they run.
#[derive(Clone, Copy, Default)]
pub struct Places {
    /// Where it matters who has which place.
    pub planned: usize,
    /// Those of them that run where planned.
    pub realised: usize,
    /// Where any place is as good as another.
    pub free: usize,
}

/// Once the watcher has seen the pods of `claims` claims run: 99 percent of the places planned on
/// new nodes have a pod of the planned shape, and of the pods that came to these nodes. The first
/// `earlier` claims that its log reports are left out.
#[expect(clippy::print_stdout, reason = "the share is a result of the test")]
pub async fn realised(log: &Path, claims: usize, earlier: usize) -> Result<Places> {
    let what = format!("the pods planned for {claims} claims run");
    let read = || async {
        let reports = reports(log)?.split_off(earlier);
        ensure!(reports.len() >= claims, "{} claims are reported", reports.len());
        let sum = |part: fn(&Places) -> usize| reports.iter().map(part).sum();
        Ok::<_, anyhow::Error>(Places {
            planned: sum(|places| places.planned),
            realised: sum(|places| places.realised),
            free: sum(|places| places.free),
        })
    };
    let places = poll::until(&what, LIMIT, read).await?;
    let Places { planned, realised, free } = places;
    println!("{realised} of {planned} pods run where planned, {free} where any place is as good");
    ensure!(planned + free > 0, "no pod was planned on a new node");
    let enough = realised * 100 >= planned * 99;
    ensure!(enough, "only {realised} of {planned} places are taken as planned");
    Ok(places)
}

/// The pods of each claim that a watcher's log reports.
pub fn reports(log: &Path) -> Result<Vec<Places>> {
    let log = std::fs::read_to_string(log)?;
    let reports = log.lines().filter(|line| line.contains("planned pods run"));
    Ok(reports.filter_map(report).collect())
}

/// One of the watcher's reports.
fn report(line: &str) -> Option<Places> {
    let field = |name: &str| {
        let value = line.rsplit(&format!(" {name}=")).next()?;
        value.split_whitespace().next()?.parse::<usize>().ok()
    };
    Some(Places { planned: field("planned")?, realised: field("realised")?, free: field("free")? })
}
