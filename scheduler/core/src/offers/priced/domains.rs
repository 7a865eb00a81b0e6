//! Places: where pods may be, as far as one topology key tells places apart.
//!
//! Invariant: a place lists every offer and every existing node that labels, taints and
//! requirements admit, in a fixed order; room is not looked at. Equal questions are answered once
//! for each plan.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::pack::problem::vector;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::taint::Toleration;
use crate::world::topology::NodeFilter;

/// One domain of a topology key, or what lies outside all of them.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Value of the key; none where nodes do not have the label.
    pub(crate) domain: Option<String>,
    /// Costs with offers, least first.
    offers: Vec<(i64, usize)>,
    /// Existing nodes.
    pub(crate) existing_nodes: Vec<usize>,
}

impl Place {
    /// Least cost of a node that holds one pod; none when no node does.
    pub(crate) fn cost(&self, priced: &PricedOffers<'_, '_>, request: &[i64]) -> Option<i64> {
        let holds = |(_, offer): &&(i64, usize)| vector::fits(request, priced.room(*offer));
        self.offers.iter().find(holds).map(|(cost, _)| *cost)
    }
}

type Question = (String, Vec<Requirements>, Vec<Toleration>);
type Names = BTreeSet<String>;

/// Answers that have been given.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: RefCell<BTreeMap<Question, Rc<Vec<Place>>>>,
    counted: RefCell<BTreeMap<(String, NodeFilter), Rc<Names>>>,
}

impl Places {
    /// The places of a topology key for pods of a shape with these alternatives, in order of
    /// domain.
    pub(crate) fn of(
        &self,
        priced: &PricedOffers<'_, '_>,
        shape: usize,
        alternatives: &[Requirements],
        key: &str,
    ) -> Rc<Vec<Place>> {
        let tolerations = &priced.model().shapes[shape].tolerations;
        let question = (key.to_owned(), alternatives.to_vec(), tolerations.clone());
        if let Some(known) = self.places.borrow().get(&question) {
            return Rc::clone(known);
        }
        let places = Rc::new(places(priced, shape, alternatives, key));
        self.places.borrow_mut().insert(question, Rc::clone(&places));
        places
    }

    /// Domains of the existing nodes that a spread with this filter looks at.
    pub(crate) fn counted(
        &self,
        model: &Model<'_>,
        filter: &NodeFilter,
        key: &str,
    ) -> Rc<BTreeSet<String>> {
        let question = (key.to_owned(), filter.clone());
        if let Some(known) = self.counted.borrow().get(&question) {
            return Rc::clone(known);
        }
        let stays = model
            .existing_nodes
            .iter()
            .filter(|existing| !existing.leaving || !existing.pods.is_empty());
        let counted = stays.filter(|existing| existing.may_count_for(filter));
        // A node to come that may be in one of several domains may bring any of them.
        let domains: BTreeSet<&str> =
            counted.flat_map(|existing| existing.possible_labels.values(key)).collect();
        let domains = Rc::new(domains.into_iter().map(ToOwned::to_owned).collect());
        self.counted.borrow_mut().insert(question, Rc::clone(&domains));
        domains
    }
}

fn places(
    priced: &PricedOffers<'_, '_>,
    shape: usize,
    alternatives: &[Requirements],
    key: &str,
) -> Vec<Place> {
    let model = priced.model();
    let mut places: BTreeMap<Option<&str>, Place> = BTreeMap::new();
    let new = |domain: Option<&str>| Place {
        domain: domain.map(str::to_owned),
        offers: Vec::new(),
        existing_nodes: Vec::new(),
    };
    let answers = priced.ask_all(shape, alternatives);
    for offer in (0..priced.all.len()).filter(|offer| priced.admits(&answers, *offer)) {
        let domain = priced.label(offer, key);
        let place = places.entry(domain).or_insert_with(|| new(domain));
        place.offers.push((priced.cost(offer), offer));
    }
    for (index, existing) in
        model.existing_nodes.iter().enumerate().filter(|(_, existing)| !existing.leaving)
    {
        let domain = existing.label(key);
        // An existing node that may still turn out to be in one of several domains is in none for
        // sure.
        let uncertain = domain.is_none() && existing.possible_labels.mentions(key);
        if !uncertain && existing.admits(model.shapes[shape], alternatives) {
            places.entry(domain).or_insert_with(|| new(domain)).existing_nodes.push(index);
        }
    }
    let mut places: Vec<Place> = places.into_values().collect();
    places.iter_mut().for_each(|place| place.offers.sort_unstable());
    places
}
