//! A region as an actuator reaches it: the trait `Cloud` over the model, late, short and faulty.
//!
//! Invariant: faults come from the world's settings and seed only; a call takes effect at most
//! once, whatever is said of it.

mod market;
mod surroundings;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use longshore_actuator::cloud::{
    CallMarks, Class, CloudError, Fleet, FleetOutcome, Found, Instance, Order, TAG_BATCH,
    TAG_CLAIM, TAG_LAUNCH, Template, TemplateRef,
};
use longshore_runtime::planted;

use crate::net::Net;
use crate::random::Random;
use crate::region::{Happening, Refusal, Region};

/// Time that a call takes, shortest and longest, in milliseconds.
const CALL_MS: (u64, u64) = (20, 250);

/// What goes wrong with calls, each in percent of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Refused as throttled.
    pub throttled: u64,
    /// Refused with InternalError.
    pub internal: u64,
    /// Refused as unauthorized.
    pub denied: u64,
    /// Take effect, then the reply is lost.
    pub reply_lost: u64,
    /// Answers to launches that are lost; as many repetitions of such a launch are denied.
    pub revoked: u64,
    /// Look-ups of what classes select, refused with InternalError.
    pub lookups: u64,
    /// Listings of instances that leave some out.
    pub short_listings: u64,
    /// Listings of instances that leave all out.
    pub empty_listings: u64,
}

/// The troubles of a region, changed while it runs. Clones are the same.
#[derive(Clone, Default)]
pub struct Weather(Arc<Mutex<Troubles>>);

impl Weather {
    /// Changes them.
    pub fn set(&self, change: impl FnOnce(&mut Troubles)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn now(&self) -> Troubles {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One process's way to a region.
pub struct CloudClient {
    /// The region.
    pub region: Region,
    /// What goes wrong.
    pub weather: Weather,
    /// The network, for partitions.
    pub net: Net,
    /// The process's address.
    pub host: IpAddr,
    /// The region's address.
    pub address: IpAddr,
    /// Choices.
    pub random: Arc<Mutex<Random>>,
}

impl CloudClient {
    fn chance(&self, percent: u64) -> bool {
        percent > 0 && self.draw(|random| random.chance(percent))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One call: the way there, the effect, the way back.
    async fn call<T>(
        &self,
        action: &'static str,
        effect: impl FnOnce(&mut crate::region::Model, i64) -> Result<T, CloudError> + Send,
    ) -> Result<T, CloudError> {
        let most = self.draw(|random| random.between(CALL_MS.0, CALL_MS.1));
        tokio::time::sleep(Duration::from_millis(most / 2)).await;
        self.pass(self.host, self.address).await;
        let troubles = self.weather.now();
        if self.chance(troubles.throttled) {
            return Err(error(action, Class::Throttled, "RequestLimitExceeded"));
        }
        if self.chance(troubles.internal) {
            return Err(error(action, Class::Unknown, "InternalError"));
        }
        if self.chance(troubles.denied) {
            return Err(error(action, Class::Unauthorized, "UnauthorizedOperation"));
        }
        let outcome = self.region.with(effect);
        if self.chance(troubles.reply_lost) {
            return Err(error(action, Class::Unknown, "connection reset"));
        }
        self.pass(self.address, self.host).await;
        tokio::time::sleep(Duration::from_millis(most - most / 2)).await;
        outcome
    }

    /// The same for what classes select.
    async fn look_up<T>(
        &self,
        action: &'static str,
        effect: impl FnOnce(&mut crate::region::Model, i64) -> Result<T, CloudError> + Send,
    ) -> Result<T, CloudError> {
        if self.chance(self.weather.now().lookups) {
            return Err(error(action, Class::Unknown, "InternalError"));
        }
        self.call(action, effect).await
    }

    /// Tells what the caller hears of its launch.
    fn heard(
        &self,
        token: &str,
        answer: Result<FleetOutcome, CloudError>,
    ) -> Result<FleetOutcome, CloudError> {
        let said = match &answer {
            Ok(got) => {
                format!("{} bought, {} not to be had", got.bought.len(), got.shortages.len())
            }
            Err(error) => error.code.clone(),
        };
        let passing = |error: &CloudError| matches!(error.class, Class::Throttled | Class::Unknown);
        let definite = !answer.as_ref().is_err_and(passing);
        let answered = Happening::Answered { token: token.to_owned(), said, definite };
        self.region.with(|model, _| model.tell(&answered));
        answer
    }

    /// Waits while nothing passes from one to the other.
    async fn pass(&self, from: IpAddr, to: IpAddr) {
        while self.net.is_blocked(from, to) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn error(action: &'static str, class: Class, code: &str) -> CloudError {
    CloudError {
        class,
        action,
        code: code.to_owned(),
        message: "by the simulation".to_owned(),
        request_id: String::new(),
    }
}

#[async_trait]
impl Fleet for CloudClient {
    async fn launch(&self, order: &Order) -> Result<FleetOutcome, CloudError> {
        let order = order.clone();
        let action = "ec2:CreateFleet";
        let token = order.client_token.clone();
        let revoked = self.chance(self.weather.now().revoked);
        let asked_before = |model: &crate::region::Model| model.tokens.contains_key(&token);
        if revoked && self.region.with(|model, _| asked_before(model)) {
            let denied = Err(error(action, Class::Unauthorized, "UnauthorizedOperation"));
            return self.heard(&token, denied);
        }
        let answer = self.call(action, move |model, now_ms| {
            model.launch(&order, now_ms).map_err(|refusal| match refusal {
                Refusal::TokenReused => {
                    error("ec2:CreateFleet", Class::TokenReused, "IdempotentParameterMismatch")
                }
                Refusal::TemplateMissing => {
                    let code = "InvalidLaunchTemplateName.NotFoundException";
                    error("ec2:CreateFleet", Class::TemplateMissing, code)
                }
            })
        });
        let answer = answer.await;
        let lost = || Err(error(action, Class::Unknown, "connection reset"));
        self.heard(&token, if revoked { lost() } else { answer })
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        let troubles = self.weather.now();
        let all = self
            .call("ec2:DescribeInstances", |model, now_ms| {
                let visible = model.instances.values().filter(|found| {
                    // Listings ask for a tag of ours or of Karpenter's.
                    let tags = &found.seen.tags;
                    let adopted = tags.contains_key(TAG_CLAIM) && !planted::is("S2");
                    let launched =
                        [TAG_LAUNCH, TAG_BATCH].iter().any(|key| tags.contains_key(*key));
                    let ours = launched || adopted;
                    let denied = model.denied.contains(&found.seen.instance_id);
                    ours && !denied && found.visible_ms <= now_ms
                });
                Ok(visible.map(|found| found.seen.clone()).collect::<Vec<_>>())
            })
            .await?;
        if self.chance(troubles.empty_listings) {
            return Ok(Vec::new());
        }
        if self.chance(troubles.short_listings) {
            let keep = |_: &Instance| self.chance(70);
            return Ok(all.into_iter().filter(keep).collect());
        }
        Ok(all)
    }

    async fn instances_by_id(&self, instance_ids: &[String]) -> Result<Found, CloudError> {
        let ids = instance_ids.to_vec();
        self.call("ec2:DescribeInstances", move |model, now_ms| {
            let mut found = Found::default();
            for id in ids {
                let known = model.instances.get(&id).filter(|_| !model.denied.contains(&id));
                match known.filter(|known| known.visible_ms <= now_ms) {
                    Some(known) => found.instances.push(known.seen.clone()),
                    None => found.unknown.push(id),
                }
            }
            Ok(found)
        })
        .await
    }

    async fn instances_of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
        let CallMarks { key, value, client_token } = marks;
        let (key, value, token) = (key.to_owned(), value.to_owned(), client_token.to_owned());
        self.call("ec2:DescribeInstances", move |model, now_ms| {
            let visible = model.instances.values().filter(|found| found.visible_ms <= now_ms);
            let ours =
                visible.filter(|found| found.seen.tag(&key) == value || found.token == token);
            Ok(ours.map(|found| found.seen.clone()).collect())
        })
        .await
    }

    async fn tag(
        &self,
        instance_id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        let (id, tags) = (instance_id.to_owned(), tags.clone());
        self.call("ec2:CreateTags", move |model, now_ms| {
            let missing = || error("ec2:CreateTags", Class::NotFound, "InvalidInstanceID.NotFound");
            if model.tag(&id, &tags, now_ms) { Ok(()) } else { Err(missing()) }
        })
        .await
    }

    async fn terminate(&self, instance_ids: &[String]) -> Result<(), CloudError> {
        let ids = instance_ids.to_vec();
        self.call("ec2:TerminateInstances", move |model, now_ms| {
            if ids.iter().any(|id| model.protected.contains(id)) {
                let (action, code) = ("ec2:TerminateInstances", "OperationNotPermitted");
                return Err(error(action, Class::Rejected, code));
            }
            ids.iter().for_each(|id| model.terminate(id, false, now_ms));
            Ok(())
        })
        .await
    }

    async fn ensure_template(&self, template: &Template) -> Result<(), CloudError> {
        let template = template.clone();
        self.call("ec2:CreateLaunchTemplate", move |model, now_ms| {
            model.templates.entry(template.name.clone()).or_insert((template, now_ms));
            Ok(())
        })
        .await
    }

    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError> {
        self.call("ec2:DescribeLaunchTemplates", |model, _| {
            let named = model.templates.iter();
            let reference = |(name, (_, created_ms)): (&String, &(Template, i64))| TemplateRef {
                name: name.clone(),
                created_ms: *created_ms,
            };
            Ok(named.map(reference).collect())
        })
        .await
    }

    async fn delete_template(&self, name: &str) -> Result<(), CloudError> {
        let name = name.to_owned();
        self.call("ec2:DeleteLaunchTemplate", move |model, _| {
            model.templates.remove(&name);
            Ok(())
        })
        .await
    }
}
