//! A region as an actuator reaches it: the trait `Cloud` over the model, late, short and faulty.
//!
//! Invariant: faults come from the world's settings and seed only; a call takes effect at most once,
//! whatever is said of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use longshore_actuator::cloud::{
    Access, Caller, Class, CloudError, EksCluster, Fleet, Found, Image, Instance, Letter, Listing,
    Mail, Market, Network, NewProfile, Order, Outcome, Profile, SecurityGroup, SpotPrice, Subnet,
    TAG_CLAIM, TAG_LAUNCH, Template, TemplateRef, TypeInZone,
};
use longshore_ec2_data::Dataset;
use longshore_proto::types::v1::SelectorTerm;

use crate::net::Net;
use crate::random::Random;
use crate::region::{Refusal, Region};

/// Time that a call takes, shortest and longest, in milliseconds.
const CALL_MS: (u64, u64) = (20, 250);
/// How long a received letter stays hidden, in milliseconds.
const HIDDEN_MS: i64 = 30_000;
/// How long a receive waits for letters.
const RECEIVE_WAIT: Duration = Duration::from_secs(20);
/// Steps in which it looks for them.
const RECEIVE_STEP: Duration = Duration::from_millis(500);
/// Most letters in one answer.
const LETTERS_MAX: usize = 10;

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
    async fn launch(&self, order: &Order) -> Result<Outcome, CloudError> {
        let order = order.clone();
        self.call("ec2:CreateFleet", move |model, now_ms| {
            model.launch(&order, now_ms).map_err(|refusal| match refusal {
                Refusal::TokenReused => {
                    error("ec2:CreateFleet", Class::TokenReused, "IdempotentParameterMismatch")
                }
                Refusal::TemplateMissing => {
                    let code = "InvalidLaunchTemplateName.NotFoundException";
                    error("ec2:CreateFleet", Class::TemplateMissing, code)
                }
            })
        })
        .await
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        let troubles = self.weather.now();
        let all = self
            .call("ec2:DescribeInstances", |model, now_ms| {
                let visible = model.instances.values().filter(|found| {
                    // Listings ask for a tag of ours or of Karpenter's.
                    let tags = &found.seen.tags;
                    let ours = tags.contains_key(TAG_LAUNCH) || tags.contains_key(TAG_CLAIM);
                    ours && found.visible_ms <= now_ms
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
                match model.instances.get(&id).filter(|known| known.visible_ms <= now_ms) {
                    Some(known) => found.instances.push(known.seen.clone()),
                    None => found.unknown.push(id),
                }
            }
            Ok(found)
        })
        .await
    }

    async fn instances_of_launch(
        &self,
        launch_id: &str,
        client_token: &str,
    ) -> Result<Vec<Instance>, CloudError> {
        let (launch_id, token) = (launch_id.to_owned(), client_token.to_owned());
        self.call("ec2:DescribeInstances", move |model, now_ms| {
            let visible = model.instances.values().filter(|found| found.visible_ms <= now_ms);
            let ours = visible
                .filter(|found| found.seen.tag(TAG_LAUNCH) == launch_id || found.token == token);
            Ok(ours.map(|found| found.seen.clone()).collect())
        })
        .await
    }

    async fn terminate(&self, instance_ids: &[String]) -> Result<(), CloudError> {
        let ids = instance_ids.to_vec();
        self.call("ec2:TerminateInstances", move |model, now_ms| {
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

/// Whether any term selects something with these tags and this id.
fn selects(terms: &[SelectorTerm], id: &str, tags: &BTreeMap<String, String>) -> bool {
    terms.iter().any(|term| {
        let by_id = term.id.is_empty() || term.id == id;
        let tagged = |(key, value): (&String, &String)| {
            tags.get(key).is_some_and(|found| value == "*" || found == value)
        };
        by_id && term.tags.iter().all(tagged)
    })
}

#[async_trait]
impl Network for CloudClient {
    async fn subnets(&self, terms: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        let terms = terms.to_vec();
        self.call("ec2:DescribeSubnets", move |model, _| {
            let zone_id = |name: &str| {
                let found = model.config.zones.iter().find(|zone| zone.name == name);
                found.map(|zone| zone.id.clone()).unwrap_or_default()
            };
            let found = model.config.subnets.iter();
            let found = found.filter(|subnet| selects(&terms, &subnet.id, &subnet.tags));
            let subnet = |subnet: &longshore_lab::region::SubnetConfig| Subnet {
                id: subnet.id.clone(),
                zone: subnet.zone.clone(),
                zone_id: zone_id(&subnet.zone),
                free_addresses: 4000,
                tags: subnet.tags.clone(),
            };
            Ok(found.map(subnet).collect())
        })
        .await
    }

    async fn security_groups(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        let terms = terms.to_vec();
        self.call("ec2:DescribeSecurityGroups", move |model, _| {
            let found = model.config.security_groups.iter();
            let found = found.filter(|group| selects(&terms, &group.id, &group.tags));
            let group = |group: &longshore_lab::region::SecurityGroupConfig| SecurityGroup {
                id: group.id.clone(),
                name: group.name.clone(),
                tags: group.tags.clone(),
            };
            Ok(found.map(group).collect())
        })
        .await
    }

    async fn images(&self, terms: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        let terms = terms.to_vec();
        self.call("ec2:DescribeImages", move |model, _| {
            let found = model.config.images.iter();
            let found = found.filter(|image| selects(&terms, &image.id, &image.tags));
            let arch = |name: &str| if name == "x86_64" { "amd64" } else { "arm64" };
            let image = |image: &longshore_lab::region::ImageConfig| Image {
                id: image.id.clone(),
                name: image.name.clone(),
                arch: arch(&image.architecture).to_owned(),
                created: image.creation_date.clone(),
                deprecated: false,
            };
            Ok(found.map(image).collect())
        })
        .await
    }

    async fn parameter(&self, name: &str) -> Result<Option<String>, CloudError> {
        let name = name.to_owned();
        self.call("ssm:GetParameter", move |model, _| {
            Ok(model.config.parameters.get(&name).cloned())
        })
        .await
    }

    async fn eks_cluster(&self, _: &str) -> Result<EksCluster, CloudError> {
        self.call("eks:DescribeCluster", |model, _| {
            let found = model.config.clusters.first();
            Ok(found.map_or_else(EksCluster::default, |cluster| EksCluster {
                endpoint: cluster.endpoint.clone(),
                ca_bundle: cluster.certificate_authority.clone(),
                service_cidr: cluster.service_cidr.clone(),
                kubernetes_version: cluster.version.clone(),
            }))
        })
        .await
    }
}

#[async_trait]
impl Access for CloudClient {
    async fn caller(&self) -> Result<Caller, CloudError> {
        self.call("sts:GetCallerIdentity", |model, _| {
            let account_id = model.config.account_id.clone();
            let arn = format!("arn:aws:sts::{account_id}:assumed-role/longshore/sim");
            Ok(Caller { account_id, arn })
        })
        .await
    }

    async fn decode_denial(&self, _: &str) -> Result<String, CloudError> {
        Err(error("sts:DecodeAuthorizationMessage", Class::Rejected, "InvalidAuthorizationMessage"))
    }

    async fn profile(&self, name: &str) -> Result<Option<Profile>, CloudError> {
        let name = name.to_owned();
        self.call("iam:GetInstanceProfile", move |model, _| {
            let role = longshore_lab::region::NODE_ROLE.to_owned();
            Ok(model.has_profile(&name).then_some(Profile { name, role: Some(role) }))
        })
        .await
    }

    async fn create_profile(&self, profile: &NewProfile) -> Result<(), CloudError> {
        let name = profile.name.clone();
        self.call("iam:CreateInstanceProfile", move |model, _| {
            model.make_profile(&name);
            Ok(())
        })
        .await
    }

    async fn profiles_of_role(&self, _: &str) -> Result<Vec<String>, CloudError> {
        self.call("iam:ListInstanceProfilesForRole", |_, _| Ok(Vec::new())).await
    }
}

#[async_trait]
impl Market for CloudClient {
    async fn listing(&self) -> Result<Listing, CloudError> {
        self.call("ec2:DescribeInstanceTypes", |model, _| {
            let offered = |name: &str| {
                let found = model.config.instance_types.iter().find(|sold| sold.name() == name);
                found.map(|sold| sold.zones.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
            };
            let in_zones = model.types.keys().flat_map(|name| {
                offered(name)
                    .into_iter()
                    .map(|zone| TypeInZone { instance_type: name.clone(), zone })
                    .collect::<Vec<_>>()
            });
            let zones = in_zones.collect();
            Ok(Listing { types: model.types.clone(), zones })
        })
        .await
    }

    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError> {
        let name = self.region.with(|model, _| model.config.name.clone());
        self.call("pricing:GetProducts", move |model, _| {
            let facts = Dataset::embedded().and_then(|facts| facts.region(&name));
            let price = |kind: &String| {
                let found = facts.as_ref().ok()?.on_demand(kind)?;
                Some((kind.clone(), i64::try_from(found.micro_usd_per_hour).ok()?))
            };
            Ok(model.types.keys().filter_map(price).collect())
        })
        .await
    }

    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError> {
        self.call("ec2:DescribeSpotPriceHistory", |model, _| {
            let sold = model.config.instance_types.iter();
            let sold = sold.filter(|sold| model.types.contains_key(sold.name()));
            let prices = sold.flat_map(|sold| {
                sold.zones.iter().filter_map(|(zone, price)| {
                    Some(SpotPrice {
                        instance_type: sold.name().to_owned(),
                        zone: zone.clone(),
                        micro_usd_per_hour: i64::try_from((*price)?).ok()?,
                    })
                })
            });
            Ok(prices.collect())
        })
        .await
    }
}

#[async_trait]
impl Mail for CloudClient {
    async fn queue_url(&self, name: &str) -> Result<String, CloudError> {
        let url = format!("sim://{name}");
        self.call("sqs:GetQueueUrl", move |_, _| Ok(url)).await
    }

    async fn receive(&self, _: &str) -> Result<Vec<Letter>, CloudError> {
        let until = tokio::time::Instant::now() + RECEIVE_WAIT;
        loop {
            let letters = self
                .call("sqs:ReceiveMessage", |model, now_ms| {
                    let due =
                        model.letters.iter_mut().filter(|(_, found)| found.visible_ms <= now_ms);
                    let taken = due.take(LETTERS_MAX).map(|(receipt, found)| {
                        found.visible_ms = now_ms + HIDDEN_MS;
                        Letter { receipt: receipt.to_string(), body: found.body.clone() }
                    });
                    Ok(taken.collect::<Vec<_>>())
                })
                .await?;
            if !letters.is_empty() || tokio::time::Instant::now() >= until {
                return Ok(letters);
            }
            tokio::time::sleep(RECEIVE_STEP).await;
        }
    }

    async fn discard(&self, _: &str, receipt: &str) -> Result<(), CloudError> {
        let receipt: u64 = receipt.parse().unwrap_or_default();
        self.call("sqs:DeleteMessage", move |model, _| {
            model.letters.remove(&receipt);
            Ok(())
        })
        .await
    }
}
