//! The second opinion finds what is planted, and finds nothing in what the planner makes.
//!
//! Invariant: each planted mistake is the only one of its plan.

use longshore_core::answer::{Candidate, NewNode, Plan, Target};
use longshore_core::capacity_group::CapacityGroup;
use longshore_core::check::{Rule, check};
use longshore_core::explain::explain_pod;
use longshore_core::labels;
use longshore_core::offers::{LaunchQuery, closed_pools, launch_candidates};
use longshore_core::plan;
use longshore_core::question::{MinValuesPolicy, PlanInput};
use longshore_core::reason::Obstacle;

use super::random::Random;
use super::scenario;

const WORLD: &str = "
now 2h
type m.small cpu 2 mem 8Gi pods 20 od 0.10 zones a,b
type m.large cpu 8 mem 32Gi pods 50 od 0.40 zones a,b
pool default limit cpu=20 after 0s taint team=dev
shape web cpu 1 mem 1Gi tolerate team=dev select topology.kubernetes.io/zone=a apart host:web
pods web 2
shape job cpu 1 mem 1Gi tolerate team=dev
pods job 1 on n1
pods job 1 on n2
pdb job app job allowed 1
node n1 type m.small pool default
node n2 type m.small pool default
node other type m.large state cordoned
";

fn sound() -> (PlanInput, Plan) {
    let scenario = scenario::read(WORLD);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new());
    (input, answer)
}

#[track_caller]
fn finds(rule: Rule, plant: impl FnOnce(&mut Plan)) {
    let (input, mut answer) = sound();
    plant(&mut answer);
    let found = check(&answer, &input);
    assert!(found.iter().any(|violation| violation.rule == rule), "{rule:?} not in {found:?}");
}

fn to(answer: &mut Plan, pod: &str, node: &str) {
    let placement = answer.placements.iter_mut().find(|p| p.pod.as_str() == pod).unwrap();
    placement.target = Target::Node(node.into());
}

#[test]
fn planted_mistakes_are_found() {
    finds(Rule::Target, |answer| to(answer, "web-0000", "other"));
    finds(Rule::Complete, |answer| drop(answer.placements.pop()));
    finds(Rule::AntiAffinity, |answer| {
        to(answer, "web-0000", "n2");
        to(answer, "web-0001", "n2");
    });
    finds(Rule::Resources, |answer| {
        to(answer, "web-0000", "n1");
        to(answer, "web-0001", "n1");
    });
    finds(Rule::Bound, |answer| answer.launch_price_micro_usd_per_hour += 1);
    finds(Rule::Bound, |answer| answer.bound.cost_micro_usd_per_hour = i64::MAX);
}

#[test]
fn a_launch_is_checked_against_pool_taints_limits_and_catalogue() {
    let text = "
        type m.small cpu 2 mem 8Gi pods 20 od 0.10
        pool default limit cpu=4 taint team=dev
        shape web cpu 1500m mem 1Gi tolerate team=dev
        pods web 2
        shape bare cpu 100m mem 1Gi
        pods bare 1
    ";
    let scenario = scenario::read(text);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new());
    assert_eq!(answer.launches.len(), 2);
    let rules = |answer: &Plan| -> Vec<Rule> {
        check(answer, &input).into_iter().map(|violation| violation.rule).collect()
    };
    let mut more = answer.clone();
    more.launches.push(more.launches[0].clone());
    assert!(rules(&more).contains(&Rule::Limits));
    let mut cheaper = answer.clone();
    cheaper.launches[0].candidates[0].price_micro_usd_per_hour = 1;
    assert!(rules(&cheaper).contains(&Rule::Target));
    let mut wrong = answer.clone();
    let bare = wrong.unplaced.remove(0).pods.remove(0);
    wrong.launches[0].pods.insert(0, bare.clone());
    let target = Target::New(0);
    wrong.placements.push(longshore_core::answer::Placement { pod: bare, target });
    assert!(rules(&wrong).contains(&Rule::Taints));
}

fn violated(text: &str, plant: impl FnOnce(&mut Plan)) -> Vec<Rule> {
    let scenario = scenario::read(text);
    let input = scenario.input(0..scenario.changes.len());
    let mut answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new());
    plant(&mut answer);
    check(&answer, &input).into_iter().map(|violation| violation.rule).collect()
}

const TWO_ZONES: &str = "
    type m.large cpu 4 mem 16Gi pods 20 od 0.20 zones a,b
    pool default not-ready nothing
    node n1 type m.large zone a
    node n2 type m.large zone b
    node n3 type m.large zone b drop-label zone
";

#[test]
fn rules_over_zones_are_checked() {
    let spread = format!("{TWO_ZONES}\nshape web cpu 1 mem 1Gi spread zone:1\npods web 2");
    assert!(violated(&spread, |answer| to(answer, "web-0000", "n3")).contains(&Rule::Spread));
    let both = |answer: &mut Plan| {
        to(answer, "web-0000", "n1");
        to(answer, "web-0001", "n1");
    };
    assert!(violated(&spread, both).contains(&Rule::Spread));
    let near = format!(
        "{TWO_ZONES}\nshape db cpu 1 mem 1Gi\npods db 1 on n2\nshape web cpu 1 mem 1Gi near zone:db\npods web 2"
    );
    assert!(violated(&near, both).contains(&Rule::Affinity));
    // Each is the other's company there, but neither would have been bound first.
    let own =
        format!("{TWO_ZONES}\nshape web cpu 1 mem 1Gi near zone:web\npods web 2\npods web 1 on n2");
    assert!(violated(&own, both).contains(&Rule::Affinity));
    let apart = format!("{TWO_ZONES}\nshape web cpu 1 mem 1Gi apart zone:web\npods web 2");
    assert!(violated(&apart, both).contains(&Rule::AntiAffinity));
    let inverse = format!(
        "{TWO_ZONES}\nshape shy cpu 1 mem 1Gi apart zone:web\npods shy 1 on n1\nshape web cpu 1 mem 1Gi\npods web 2"
    );
    assert!(violated(&inverse, both).contains(&Rule::AntiAffinity));
}

#[test]
fn flexibility_and_reservations_are_checked() {
    let types = "type a.large cpu 4 mem 16Gi pods 20 od 0.10 reserve a/cr-1=1@0.001
        type b.large cpu 4 mem 16Gi pods 20 od 0.15";
    let few = format!("{types}\npool default need type@2\nshape web cpu 1 mem 1Gi\npods web 1");
    let one = |answer: &mut Plan| answer.launches[0].candidates.truncate(1);
    assert!(violated(&few, one).contains(&Rule::MinValues));
    let held = format!("{types}\npool default\nshape web cpu 4 mem 1Gi\npods web 1");
    let twice = |answer: &mut Plan| answer.launches.push(answer.launches[0].clone());
    assert!(violated(&held, twice).contains(&Rule::Limits));
}

/// Two reservations of one type in one zone, alike but for their names.
const RESERVED: &str = "
type a.large cpu 4 mem 16Gi pods 20 od 0.10 reserve a/cr-1=1@0.001 reserve a/cr-2=1@0.001
pool default
shape web cpu 4 mem 1Gi
pods web 3
";

#[test]
fn a_candidate_is_of_a_reservation_that_its_launch_is_for() {
    let of = |id: Option<&'static str>| {
        move |answer: &mut Plan| answer.launches[0].candidates[0].reservation = id.map(Into::into)
    };
    for wrong in ["cr-2", "cr-3"] {
        assert!(violated(RESERVED, of(Some(wrong))).contains(&Rule::Target), "{wrong}");
    }
    assert!(violated(RESERVED, of(None)).contains(&Rule::Target));
}

#[test]
fn the_list_of_a_launch_made_anew_stays_in_its_reservation() {
    let read = scenario::read(RESERVED);
    let input = read.input(0..read.changes.len());
    let plan = plan(&input);
    let reservations = |of: &[Candidate]| -> Vec<Option<String>> {
        of.iter().map(|it| it.reservation.as_ref().map(ToString::to_string)).collect()
    };
    let each = plan.launches.iter().map(|launch| reservations(&launch.candidates));
    let one = |id: Option<&str>| vec![id.map(str::to_owned)];
    let expected = [one(Some("cr-1")), one(Some("cr-2")), one(None)];
    assert_eq!(each.collect::<Vec<_>>(), expected);
    for launch in &plan.launches {
        let anew = made_anew(&input, launch);
        assert_eq!(reservations(&anew), reservations(&launch.candidates));
    }
}

#[test]
fn a_pool_that_can_never_keep_its_min_values_is_closed() {
    let types =
        "type a.large cpu 4 mem 16Gi pods 20 od 0.10\ntype b.large cpu 4 mem 16Gi pods 20 od 0.15";
    let text = format!("{types}\npool two need type@2\npool three need type@3");
    let scenario = scenario::read(&text);
    let input = scenario.input(0..scenario.changes.len());
    let closed = closed_pools(&input);
    let key = "node.kubernetes.io/instance-type".to_owned();
    let obstacle = Obstacle::MinValues { key, wanted: 3, reachable: 2 };
    assert_eq!(closed, [("three".into(), obstacle)].into_iter().collect());
    let best = PlanInput { min_values: MinValuesPolicy::BestEffort, ..input };
    assert!(closed_pools(&best).is_empty());
}

#[test]
fn a_pod_that_opts_out_is_told_so() {
    let text = "pool default\nshape web cpu 1 mem 1Gi need !pool\npods web 1";
    let scenario = scenario::read(text);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new());
    let asked = explain_pod(&input, &answer, &"web-0000".into()).unwrap();
    assert_eq!((asked.target, asked.reason.code()), (None, "OPTED_OUT"));
}

#[test]
fn every_pod_can_be_asked_about() {
    let text = "
        type m.small cpu 2 mem 8Gi pods 20 od 0.10
        pool default
        shape web cpu 1 mem 1Gi
        pods web 1
        shape big cpu 9 mem 1Gi
        pods big 1
    ";
    let scenario = scenario::read(text);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    let placed = explain_pod(&input, &answer, &"web-0000".into()).unwrap();
    assert_eq!((placed.target, placed.reason.code()), (Some(Target::New(0)), "PLACEABLE"));
    let refused = explain_pod(&input, &answer, &"big-0000".into()).unwrap();
    assert_eq!(refused.target, None);
    assert_eq!(refused.reason.causes[0].code(), "REQUESTS_TOO_LARGE");
    assert_eq!(explain_pod(&input, &answer, &"nobody".into()), None);
}

/// What a workload may ask for, none of it twice the same in a world.
const ASKED: [&str; 40] = [
    "",
    "spread zone:1",
    "spread host:2",
    "apart host:w0",
    "apart zone:w1",
    "near zone:w0",
    "near host:w1",
    "port 9100",
    "tolerate arm",
    "need zone=a,b",
    "need bought=spot",
    "prefer arch=arm64",
    "spread zone:2 apart host:w2",
    "spread rack:1",
    "spread rack:1 spread zone:1",
    "spread zone:1 spread bought:1",
    "apart rack:w3",
    "near rack:w0",
    "spread zone:1:min=3",
    "spread zone:1:min=4",
    "spread zone:1:affinity=ignore need zone=a,b",
    "spread zone:1:taints=honor",
    "spread zone:1:app=w0",
    "spread zone:1 spread zone:1:app=w0",
    "spread-wish zone:1",
    "spread-wish host:1",
    "apart-wish 5*zone:w0 near-wish 50*rack:w1",
    "near-wish 5*host:w2",
    "prefer 10*zone=c prefer 20*zone=a,b",
    "priority 100",
    "priority 100 spread zone:1",
    "ns other near zone:w0:default",
    "apart zone:w0:*",
    "volume zone=b spread zone:1",
    "volume zone=a volume zone=c",
    "use attachable-volumes-ebs=1",
    "need pool=main",
    "need zone=a&arch=amd64 need rack=r2",
    "near zone:w4 near zone:w5",
    "spread arch:1 tolerate arm",
];

/// What becomes of nodes.
const STATES: [&str; 10] = [
    "",
    "",
    "",
    "label rack=r1",
    "label rack=r2 taint team=ops",
    "state cordoned",
    "state not-ready taint node.kubernetes.io/not-ready",
    "state deleting",
    "initialized no taint karpenter.sh/unregistered",
    "taint busy:PreferNoSchedule",
];

/// Nodes on their way.
const CLAIMS: [&str; 4] = [
    "need type=m.xlarge label rack=r1",
    "need type=m.xlarge,r.4xlarge need zone=a label rack=r2",
    "launched m.xlarge/b/on-demand label rack=r1",
    "need type=c.large need bought=spot",
];

fn one<'w>(random: &mut Random, words: &[&'w str]) -> &'w str {
    words[usize::try_from(random.below(words.len() as u64)).unwrap()]
}

/// Worlds with everything in them, at random.
pub fn anything(random: &mut Random) -> String {
    let mut text = String::from(
        "now 3h
        type c.large cpu 2 mem 4Gi pods 29 od 0.085 spot 0.03 zones a,b,c cap attachable-volumes-ebs=3 reserve a/cr-1=2@0.0001
        type m.xlarge cpu 4 mem 16Gi pods 58 od 0.192 spot 0.07 zones a,b,c
        type r.4xlarge cpu 16 mem 128Gi pods 234 od 1.008 zones a,b
        type a.2xlarge cpu 8 mem 32Gi pods 58 od 0.3 arch arm64 zones b,c
        pool main after 0s need arch=amd64 limit cpu=60 budget 30% need rack=r1,r2
        pool wide need type@2 need arch=amd64 taint soft:PreferNoSchedule limit nodes=3
        pool arm weight 5 need arch=arm64 taint arm after 10m
        shape agent cpu 100m mem 100Mi daemon yes tolerate all\n",
    );
    for index in 0..6 {
        let wish = one(random, &ASKED);
        let (cpu, memory) = (100 * (1 + random.below(20)), 256 * (1 + random.below(16)));
        text += &format!("shape w{index} cpu {cpu}m mem {memory}Mi {wish}\n");
        text += &format!("pods w{index} {}\n", 1 + random.below(9));
    }
    for node in 0..random.below(5) {
        let zone = one(random, &["a", "b", "c"]);
        let state = one(random, &STATES);
        let pods = usize::try_from(random.below(3)).unwrap();
        text += &format!("node n{node} type m.xlarge zone {zone} pool main {state}\n");
        // No two of a workload on one node: that might be what its rules forbid.
        for among in [["w9"; 3], ["w0", "w1", "w9"]].iter().take(pods) {
            let shape = one(random, among);
            text += &format!("shape w9 cpu 300m mem 512Mi\npods {shape} 1 on n{node}\n");
        }
    }
    for claim in 0..random.below(3) {
        let kind = one(random, &CLAIMS);
        text += &format!("claim c{claim} pool main cpu 2 mem 2Gi pods 2 {kind}\n");
    }
    text
}

#[test]
fn random_plans_pass_and_do_not_depend_on_order() {
    let mut random = Random::new(3);
    for round in 0..1_500 {
        let text = anything(&mut random);
        let scenario = scenario::read(&text);
        let input = scenario.input(0..scenario.changes.len());
        let answer = plan(&input);
        assert_eq!(check(&answer, &input), Vec::new(), "round {round}\n{text}");
        let mut order: Vec<usize> = (0..scenario.changes.len()).collect();
        random.shuffle(&mut order);
        assert_eq!(plan(&scenario.input(order.into_iter())), answer, "round {round}\n{text}");
    }
}

#[test]
fn the_list_of_a_launch_made_anew_stays_in_its_capacity_group() {
    let text = include_str!("../scenarios/diversity_quarters.txt");
    let read = scenario::read(text.split("===").next().unwrap());
    let input = read.input(0..read.changes.len());
    let plan = plan(&input);
    let group = |candidate: &Candidate| {
        let Candidate { instance_type, zone, .. } = candidate;
        CapacityGroup::of(instance_type.as_str(), zone.as_str()).label(labels::CAPACITY_QUARTER)
    };
    assert!(plan.launches.iter().any(|launch| launch.candidates.len() > 1));
    for launch in &plan.launches {
        let anew = made_anew(&input, launch);
        let wanted = group(&launch.candidates[0]);
        assert!(anew.len() >= launch.candidates.len());
        assert!(anew.iter().all(|candidate| group(candidate) == wanted), "{anew:?}");
    }
}

/// The candidates of a launch as they are found for its claim.
fn made_anew(input: &PlanInput, launch: &NewNode) -> Vec<Candidate> {
    let query = LaunchQuery {
        requirements: &launch.requirements,
        requests: &launch.requests,
        zones: None,
        max_price_micro_usd_per_hour: None,
        objective: &input.objective,
    };
    let pool = input.world.pools.get(&launch.pool).unwrap();
    launch_candidates(query, input.catalogue_of(pool).unwrap())
}
