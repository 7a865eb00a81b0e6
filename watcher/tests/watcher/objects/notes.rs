//! What each difference means for a manifest, kept by hand.

use longshore_watcher::api::advice::UNREAD;

use super::difference::Difference;
use super::notes::Effect::{Other, Same};

/// Whether a manifest may notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Something is refused by one side alone, or means something else.
    Other,
    /// It is written in another way and checks the same.
    Same,
}

/// About attributes that differ.
#[derive(Debug)]
pub(super) struct Note {
    /// Path, or the end of one, after its kind where it is meant for one alone.
    pub field: &'static str,
    /// The attributes.
    pub what: &'static [&'static str],
    /// Whether a manifest may notice.
    pub effect: Effect,
    /// What it notices, or why it does not.
    pub text: &'static str,
}

impl Note {
    pub(super) fn is_about(&self, difference: &Difference) -> bool {
        let place = format!("{} {}", difference.kind, difference.path);
        let before = place.strip_suffix(self.field);
        before.is_some_and(|before| before.is_empty() || before.ends_with([' ', '.']))
            && self.what.contains(&difference.what.as_str())
    }
}

/// About fields that nothing acts on.
#[derive(Debug)]
pub(super) struct Unused {
    /// Kind of the object.
    pub kind: &'static str,
    /// Path, of it and all fields in it.
    pub field: &'static str,
    /// What happens instead.
    pub text: &'static str,
}

impl Unused {
    pub(super) fn covers(&self, path: &str) -> bool {
        let inner = path.strip_prefix(self.field);
        inner.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

const RULES: &[&str] = &["validations"];
const PATTERN: &[&str] = &["pattern"];

/// A note about rules that are put in other words.
const fn same_rules(field: &'static str, text: &'static str) -> Note {
    Note { field, what: RULES, effect: Same, text }
}

/// A note about patterns that are put in other words.
const fn same_pattern(field: &'static str, text: &'static str) -> Note {
    Note { field, what: PATTERN, effect: Same, text }
}

/// A note about rules of which one refuses more.
const fn other_rules(field: &'static str, text: &'static str) -> Note {
    Note { field, what: RULES, effect: Other, text }
}

/// A note about patterns of which one refuses more.
const fn other_pattern(field: &'static str, text: &'static str) -> Note {
    Note { field, what: PATTERN, effect: Other, text }
}

const NODE_VALUE: &str =
    "`a/b`, which no node accepts, is refused; an empty value, which nodes have, is not";
const WHOLE_ID: &str = "a text that has an id somewhere in it (`my-ami-1x`) is refused";
const EACH_TERM: &str =
    "a term that has an id and says more besides is refused beside sound terms, too";
const THRESHOLD: &str = "an empty or negative threshold is refused";

/// All notes, in the order of the page.
pub(super) const NOTES: &[Note] = &[
    other_rules(
        "requirements[].key",
        "`mykarpenter.sh/x` is accepted: only the domain and those below it are reserved",
    ),
    other_rules("template.metadata.labels", "as the keys of requirements"),
    Note {
        field: "requirements[].values",
        what: &["maxLength", "pattern"],
        effect: Other,
        text: "none by itself: said of a list, these check nothing",
    },
    Note {
        field: "requirements[].values[]",
        what: &["maxLength", "pattern"],
        effect: Other,
        text: "a value that no label can have (`a b`, or more than 63 letters) is refused",
    },
    other_rules(
        "spec.requirements",
        "with Gt, Lt, Gte and Lte, `+5` is refused; a number beyond 64 bits is accepted, and then \
         named by an Event",
    ),
    other_pattern("taints[].value", NODE_VALUE),
    other_pattern("startupTaints[].value", NODE_VALUE),
    Note {
        field: "spec.disruption.consolidateAfter",
        what: &["required", "default"],
        effect: Other,
        text: "`disruption` without it is accepted",
    },
    other_pattern(
        "spec.disruption.budgets[].schedule",
        "a text with more than five fields, or that only begins with a macro, is refused",
    ),
    Note {
        field: "EC2NodeClass spec",
        what: &["required"],
        effect: Other,
        text: "an object without `spec` is refused",
    },
    other_pattern("amiSelectorTerms[].id", WHOLE_ID),
    other_pattern("securityGroupSelectorTerms[].id", WHOLE_ID),
    other_pattern("subnetSelectorTerms[].id", WHOLE_ID),
    other_rules(
        "securityGroupSelectorTerms",
        "a term that has an id or a name and says more besides is refused beside sound terms, too",
    ),
    other_rules("subnetSelectorTerms", EACH_TERM),
    other_rules("capacityReservationSelectorTerms", EACH_TERM),
    other_pattern(
        "blockDeviceMappings[].ebs.volumeSize",
        "18Ti, 19Ti, 28Ti and so on are accepted; `Ti` and `T` without a number are refused",
    ),
    other_pattern("evictionHard.*", THRESHOLD),
    other_pattern("evictionSoft.*", THRESHOLD),
    Note {
        field: "EC2NodeClass status.conditions",
        what: &["list-type", "list-map-keys"],
        effect: Other,
        text: "none; two programs that apply conditions do not erase each other's",
    },
    Note {
        field: "spec.disruption.budgets[].nodes",
        what: &["required"],
        effect: Same,
        text: "it has a default, which is filled in before anything is checked",
    },
    Note {
        field: "requirements[].minValues",
        what: &["format"],
        effect: Same,
        text: "50 is the most in both",
    },
    Note {
        field: "NodeClaim status.conditions[].reason",
        what: &["minLength"],
        effect: Same,
        text: "no text is shorter than nothing",
    },
    same_pattern("requirements[].key", "a needless escape"),
    same_pattern("taints[].key", "a needless escape"),
    same_pattern("startupTaints[].key", "a needless escape"),
    same_pattern("status.conditions[].type", "a needless group"),
    same_pattern("spec.disruption.budgets[].duration", "alternatives in another order"),
    same_pattern("NodeOverlay spec.price", "digits by another name"),
    same_pattern("NodeOverlay spec.priceAdjustment", "digits by another name"),
    same_rules("NodePool spec", "a needless group"),
    same_rules("EC2NodeClass spec", "the same conditions; an alias always has an `@`"),
    same_rules("amiSelectorTerms", "in another order"),
    same_rules("amiSelectorTerms[].alias", "no other family begins with `windows`"),
    same_rules("EC2NodeClass spec.blockDeviceMappings", "in fewer words"),
    same_rules("spec.kubelet", "the message says what is missing, instead of \"no such key\""),
    same_rules("kubelet.kubeReserved", "a list instead of alternatives"),
    same_rules("kubelet.systemReserved", "a list instead of alternatives"),
    same_rules("EC2NodeClass spec.networkInterfaces", "one of the rules is two"),
    same_rules("EC2NodeClass spec.placementGroupSelector", "two of the rules are one"),
    same_rules("EC2NodeClass spec.tags", "four of the rules are one"),
];

const CLASS: &str = "EC2NodeClass";
const POOL: &str = "NodePool";
const NO_TIME: &str = "taints are put on new nodes without a time";

/// Fields of pools that make no difference.
const OF_POOLS: [(&str, &str); 2] = [
    ("spec.template.spec.taints[].timeAdded", NO_TIME),
    ("spec.template.spec.startupTaints[].timeAdded", NO_TIME),
];

/// What happens where a field is not acted on, in the order of the page: of classes what `longshore
/// plan` warns of, and of pools what is no loss.
pub(super) fn unused() -> Vec<Unused> {
    let of_classes = UNREAD.iter().map(|field| (CLASS, field.path, field.instead));
    let of_pools = OF_POOLS.into_iter().map(|(field, text)| (POOL, field, text));
    of_classes.chain(of_pools).map(|(kind, field, text)| Unused { kind, field, text }).collect()
}
