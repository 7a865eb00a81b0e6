//! Every offer with what it leaves for pods, what it draws on limits, and who may use it.
//!
//! Invariant: answers about requirements are computed once for each distinct question and kept for
//! the plan; an offer admits a question exactly when flavour, type and offering all do.

mod daemon_sets;
pub(crate) mod domains;
pub(crate) mod min_values;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use daemon_sets::DaemonSets;

use crate::answer::steps::Priced;
use crate::model::Model;
use crate::offers::market::{Offer, PoolOffers, offering_admits};
use crate::offers::priced::domains::Places;
use crate::offers::priced::min_values::Share;
use crate::pack::problem::limits::LimitSet;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::Vector;
use crate::planted;
use crate::vocabulary::catalogue::capacity_group::CapacityGroup;
use crate::vocabulary::catalogue::{InstanceType, Offering};
use crate::vocabulary::ids::ReservationId;
use crate::vocabulary::labels::{HOSTNAME, RESERVATION_ID};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::{Resources, total};
use crate::vocabulary::taint::{Toleration, untolerated};
use crate::world::claim::NodeClaim;
use crate::world::drawn;
use crate::world::topology::NodeFilter;

/// The market with everything that does not depend on what is being packed.
pub(crate) struct PricedOffers<'m, 'a> {
    model: &'m Model<'a>,
    /// All offers.
    pub(crate) all: Vec<Offer<'a>>,
    /// Facts of each offer.
    pub(crate) facts: Vec<Facts>,
    /// Node-rule states that offers start with.
    pub(crate) starts: Vec<NodeState>,
    /// Limits of each pool, then reservations.
    pub(crate) limit_sets: Vec<LimitSet>,
    kinds: Vec<&'a Offering>,
    /// Labels of capacity groups that pods look at.
    pub(crate) group_keys: BTreeSet<&'static str>,
    known: RefCell<BTreeMap<Question, Rc<Answer>>>,
    /// What topology keys tell apart.
    pub(crate) places: Places,
    /// What `minValues` leaves of each offer.
    pub(crate) flexible: Vec<Option<Rc<Share>>>,
    by_cost: OnceCell<Vec<usize>>,
    sizes: RefCell<BTreeMap<(usize, Requirements), Rc<Sizes<'a>>>>,
}

/// Types of a pool with what they have for pods and DaemonSets.
#[derive(Debug, Default)]
pub(crate) struct Sizes<'a> {
    /// The types, in order of name.
    pub(crate) types: Vec<(&'a InstanceType, Resources)>,
    /// Of each resource what the largest of them has.
    pub(crate) most: Resources,
}

/// Facts of one offer.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// What it costs, in micro-dollars per hour.
    pub(crate) cost: i64,
    /// What pods may use.
    pub(crate) room: Vector,
    /// The same without DaemonSets that labels keep away which the pool leaves open: what a proof
    /// may count on; none when there are no such.
    pub(crate) most_room: Option<Vector>,
    /// What it draws on the limits of its pool.
    pub(crate) charge: Vector,
    /// Reservation it draws on, as an index of the sets of limits.
    pub(crate) reservation: Option<usize>,
    /// Index of the state it starts with.
    pub(crate) start: usize,
    /// Index of its offering's kind: zone, capacity type, reservation, and capacity group where
    /// pods look at it.
    pub(crate) kind: usize,
    /// Requests of its DaemonSets, as shapes.
    pub(crate) daemons: Rc<Vec<usize>>,
    /// False when they request more than there is, of whatever resource: then no pod may use
    /// anything.
    pub(crate) daemons_fit: bool,
}

/// Tolerates whatever there is.
const ALL_TAINTS: Toleration =
    Toleration { key: String::new(), exists: true, value: String::new(), effect: None };

type Question = (Requirements, Vec<Toleration>);

/// Which flavours, types and kinds of offering admit a question.
#[derive(Debug)]
pub(crate) struct Answer {
    pools: Vec<(Vec<bool>, Vec<bool>)>,
    kinds: Vec<bool>,
}

impl Answer {
    fn admits(&self, offer: &Offer<'_>, kind: usize) -> bool {
        let (flavours, types) = &self.pools[offer.pool_offers];
        self.kinds[kind] && types[offer.kind] && flavours[offer.flavour]
    }
}

impl<'m, 'a> PricedOffers<'m, 'a> {
    /// How much there is on offer.
    pub(crate) fn counts(&self) -> Priced {
        Priced { pools: self.model.market.pools.len(), offers: self.all.len() }
    }

    /// Lays out the market.
    pub(crate) fn price(model: &'m Model<'a>) -> Self {
        let offers = model.market.offers();
        let mut priced = Self {
            model,
            facts: Vec::with_capacity(offers.len()),
            all: offers,
            starts: Vec::new(),
            limit_sets: model
                .market
                .pools
                .iter()
                .map(|pool_offers| limit(model, pool_offers))
                .collect(),
            kinds: Vec::new(),
            group_keys: group_keys(model),
            known: RefCell::default(),
            places: Places::default(),
            flexible: Vec::new(),
            by_cost: OnceCell::new(),
            sizes: RefCell::default(),
        };
        priced.add_facts();
        priced.flexible = min_values::shares(&priced, |_| true);
        priced
    }

    /// All offers, those of least cost first; of equal ones the cheaper, then in the order of
    /// pools, types and offerings.
    pub(crate) fn by_cost(&self) -> &[usize] {
        self.by_cost.get_or_init(|| {
            let mut order: Vec<usize> = (0..self.all.len()).collect();
            order.sort_unstable_by_key(|at| self.rank(*at));
            order
        })
    }

    /// Place of an offer among all.
    pub(crate) fn rank(&self, offer: usize) -> impl Ord + use<> {
        (self.cost(offer), self.all[offer].offering.price_micro_usd_per_hour, offer)
    }

    /// Types of a pool that it and these requirements allow.
    pub(crate) fn sizes(&self, pool_offers: usize, wanted: &Requirements) -> Rc<Sizes<'a>> {
        let question = (pool_offers, wanted.clone());
        if let Some(known) = self.sizes.borrow().get(&question) {
            return Rc::clone(known);
        }
        let shop = &self.model.market.pools[pool_offers];
        let allowed = shop.types.iter().copied().filter(|kind| shop.type_admits(kind, wanted));
        let types: Vec<_> = allowed.map(|kind| (kind, kind.allocatable())).collect();
        let most = types.iter().fold(Resources::default(), |most, (_, room)| most.larger(room));
        let sizes = Rc::new(Sizes { types, most });
        self.sizes.borrow_mut().insert(question, Rc::clone(&sizes));
        sizes
    }

    /// Who admits these requirements together with these tolerations.
    pub(crate) fn ask(&self, wanted: &Requirements, tolerations: &[Toleration]) -> Rc<Answer> {
        let question = (wanted.clone(), tolerations.to_vec());
        if let Some(known) = self.known.borrow().get(&question) {
            return Rc::clone(known);
        }
        let answer = Rc::new(self.answer(wanted, tolerations));
        self.known.borrow_mut().insert(question, Rc::clone(&answer));
        answer
    }

    /// Answers for each alternative of a shape.
    pub(crate) fn ask_all(&self, shape: usize, alternatives: &[Requirements]) -> Vec<Rc<Answer>> {
        let tolerations = &self.model.shapes[shape].tolerations;
        alternatives.iter().map(|wanted| self.ask(wanted, tolerations)).collect()
    }

    /// True when some answer admits the offer.
    pub(crate) fn admits(&self, answers: &[Rc<Answer>], offer: usize) -> bool {
        let kind = self.facts[offer].kind;
        answers.iter().any(|answer| answer.admits(&self.all[offer], kind))
    }

    /// Value of a label on the node of an offer.
    pub(crate) fn label(&self, offer: usize, key: &str) -> Option<&str> {
        let offer = &self.all[offer];
        self.model.market.pools[offer.pool_offers].label(offer, key)
    }

    /// True when a spread rule looks at the node of an offer.
    pub(crate) fn counts_for(&self, offer: usize, filter: &NodeFilter) -> bool {
        let pool = self.model.market.pools[self.all[offer].pool_offers].pool;
        let admits = |all: &Vec<Requirements>| {
            let answers: Vec<_> =
                all.iter().map(|wanted| self.ask(wanted, &[ALL_TAINTS])).collect();
            self.admits(&answers, offer)
        };
        filter.alternatives.as_ref().is_none_or(admits)
            && filter.tolerations.as_ref().is_none_or(|t| untolerated(&pool.taints, t).is_none())
            && filter.keys.iter().all(|key| key == HOSTNAME || self.label(offer, key).is_some())
    }

    /// What pods may use of an offer: no more than all the types that `minValues` keeps open have.
    pub(crate) fn room(&self, offer: usize) -> &[i64] {
        self.flexible[offer].as_ref().map_or(&self.facts[offer].room, |share| &share.room)
    }

    /// The most that pods may use of an offer, whatever is made of the labels that its pool leaves
    /// open.
    pub(crate) fn most_room(&self, offer: usize) -> &Vector {
        let facts = &self.facts[offer];
        facts.most_room.as_ref().filter(|_| !planted::is("S16g")).unwrap_or(&facts.room)
    }

    /// What an offer draws on the limits of its pool, at most.
    pub(crate) fn charge(&self, offer: usize) -> &[i64] {
        self.flexible[offer].as_ref().map_or(&self.facts[offer].charge, |share| &share.charge)
    }

    /// What an offer costs by the objective, in micro-dollars per hour.
    pub(crate) fn cost(&self, offer: usize) -> i64 {
        self.facts[offer].cost
    }

    /// The world.
    pub(crate) fn model(&self) -> &'m Model<'a> {
        self.model
    }

    fn answer(&self, wanted: &Requirements, tolerations: &[Toleration]) -> Answer {
        let pools = self.model.market.pools.iter().map(|pool_offers| {
            let tolerated = untolerated(&pool_offers.pool.taints, tolerations).is_none();
            let flavours = 0..pool_offers.flavours.len();
            let types = pool_offers.types.iter();
            (
                flavours.map(|f| tolerated && pool_offers.flavour_admits(f, wanted)).collect(),
                types.map(|instance| pool_offers.type_admits(instance, wanted)).collect(),
            )
        });
        let kinds = self.kinds.iter().map(|offering| offering_admits(offering, wanted));
        Answer { pools: pools.collect(), kinds: kinds.collect() }
    }

    fn add_facts(&mut self) {
        let mut kinds = BTreeMap::new();
        let mut reservations = BTreeMap::new();
        let mut kind_of = Vec::with_capacity(self.all.len());
        let grouped = !self.group_keys.is_empty();
        for offer in &self.all {
            let Offering { zone, zone_id, capacity_type, reservation, group, .. } = offer.offering;
            let id = offer.offering.reservation_id();
            let group = grouped.then_some(group);
            let next = self.kinds.len();
            let kind = *kinds.entry((zone, zone_id, *capacity_type, id, group)).or_insert(next);
            if kind == next {
                self.kinds.push(offer.offering);
            }
            let limit_set = reservation.as_ref().map(|reservation| {
                *reservations.entry(&reservation.id).or_insert_with(|| {
                    let left = reservation.remaining - held(self.model, &reservation.id);
                    self.limit_sets.push(LimitSet { left: vec![left.max(0)] });
                    self.limit_sets.len() - 1
                })
            });
            kind_of.push((kind, limit_set));
        }
        let mut daemons = DaemonSets::new(self);
        for (offer, (kind, reservation)) in kind_of.into_iter().enumerate() {
            let facts = daemons.facts(self, offer, kind, reservation);
            self.facts.push(facts);
        }
        self.starts = daemons.starts;
    }
}

/// Labels of capacity groups that some pods look at.
fn group_keys(model: &Model<'_>) -> BTreeSet<&'static str> {
    let shapes = model.shapes.iter().zip(&model.alternatives);
    let keys = shapes.flat_map(|(shape, alternatives)| {
        let wanted = alternatives.iter().flat_map(Requirements::iter).map(|(key, _)| key);
        shape.topology_keys().into_iter().chain(wanted)
    });
    keys.filter_map(CapacityGroup::key).collect()
}

/// Instances of a reservation that claims not launched yet will draw.
pub(crate) fn held(model: &Model<'_>, id: &ReservationId) -> i64 {
    let draws = |claim: &NodeClaim| {
        let wanted = claim.requirements.get(RESERVATION_ID);
        claim.provider_id.is_empty() && wanted.is_some_and(|ids| ids.allows(Some(id.as_str())))
    };
    let claims = model.input.world.claims.values();
    i64::try_from(claims.filter(|claim| draws(claim)).count()).unwrap_or(i64::MAX)
}

/// What a node of a type draws on the limits of its pool, in order of resource name.
pub(crate) fn charge(pool_offers: &PoolOffers<'_>, instance: &InstanceType) -> Vector {
    let each = pool_offers.pool.limits.keys().map(|name| match name.as_str() {
        "nodes" => 1,
        name => instance.capacity.get(name),
    });
    each.collect()
}

/// What the pool's limits still allow, in order of resource name.
pub(crate) fn limit(model: &Model<'_>, pool_offers: &PoolOffers<'_>) -> LimitSet {
    let used = |name: &str| used(model, pool_offers, name);
    let limits = pool_offers.pool.limits.iter();
    LimitSet { left: limits.map(|(name, limit)| limit.saturating_sub(used(name)).max(0)).collect() }
}

/// What a pool's nodes, claims and instances without a claim already draw on a limit.
pub(crate) fn used(model: &Model<'_>, pool_offers: &PoolOffers<'_>, name: &str) -> i64 {
    let owned = |existing: &&crate::model::existing::ExistingNode<'_>| {
        existing.claim.as_ref().is_some_and(|claim| claim.pool == pool_offers.pool.name)
    };
    let existing_nodes = model.existing_nodes.iter().filter(owned);
    let claimed = existing_nodes
        .map(|existing| if name == "nodes" { 1 } else { existing.capacity.get(name) });
    let unclaimed = model.input.unclaimed.get(&pool_offers.pool.name);
    let catalogue = model.input.catalogue_of(pool_offers.pool);
    let unclaimed = catalogue.map_or(0, |catalogue| drawn::unclaimed(unclaimed, catalogue, name));
    total([total(claimed), unclaimed])
}
