//! Why pods go where they go: golden pages, and what holds of every explanation. To accept what is
//! said now, run the tests with `UPDATE_EXPECT=1` and read the difference.
//!
//! Invariant: an explanation speaks of the plan as it is, and its numbers add up.

use std::fmt::Write;
use std::path::Path;

use expect_test::expect_file;
use longshore_core::answer::{Candidate, Plan, Target};
use longshore_core::explain::{
    Asked, By, Choice, Fate, NodeAnswer, OneMore, choices, explain_nodes, one_more,
};
use longshore_core::ids::ShapeId;
use longshore_core::plan;
use longshore_core::pool::DisruptionReason;
use longshore_core::question::PlanInput;

use super::render::dollars;
use super::scenario;

/// Divides a world from what is asked of it: `=== ask web db`.
const DIVIDER: &str = "=== ask ";
/// Asks what becomes of every node.
const NODES: &str = "nodes";

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

#[expect(clippy::disallowed_methods, reason = "a test reads its scenario")]
fn texts(name: &str) -> Vec<(std::path::PathBuf, String)> {
    let files = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = files.collect();
    paths.sort_unstable();
    let read = |path: std::path::PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

fn sold(candidate: &Candidate) -> String {
    let price = dollars(candidate.price_micro_usd_per_hour);
    let Candidate { instance_type, zone, capacity_type, .. } = candidate;
    format!("{instance_type} {} in {zone} at {price}", capacity_type.label())
}

fn write_choice(text: &mut String, choice: &Choice) {
    let Choice { target, nodes, pods, bound, admitting_nodes, .. } = choice;
    let how = if *bound { "bound" } else { "go" };
    let place = target.name().unwrap_or("new");
    writeln!(text, "{pods} pods {how} to {nodes} x {place}, {admitting_nodes} hosts admit")
        .unwrap();
    for share in &choice.shares {
        let percent = share.ppm() / 10_000;
        writeln!(text, "  takes {percent}% of {}", share.resource).unwrap();
    }
    if let (Some(node), Some(pod)) =
        (choice.node_price_micro_usd_per_hour, choice.pod_price_micro_usd_per_hour)
    {
        writeln!(text, "  costs {} of {}", dollars(pod), dollars(node)).unwrap();
    }
    for other in &choice.company {
        writeln!(text, "  beside {} pods of {}/{}", other.pods, other.namespace, other.owner)
            .unwrap();
    }
    let Some(purchase) = &choice.purchase else { return };
    for step in &purchase.narrowings {
        let (types, offers) = (step.types, step.offers);
        writeln!(text, "  {types:>2} types {offers:>2} offers {}: {}", step.by.code(), step.by)
            .unwrap();
    }
    writeln!(text, "  chosen {} of NodePool {}", sold(&purchase.chosen), purchase.pool).unwrap();
    purchase.next.iter().for_each(|next| writeln!(text, "  next {}", sold(next)).unwrap());
    purchase.alone.iter().for_each(|alone| writeln!(text, "  alone {}", sold(alone)).unwrap());
}

fn write_more(text: &mut String, more: &OneMore) {
    write!(text, "one more {}", dollars(more.price_micro_usd_per_hour)).unwrap();
    more.existing.iter().for_each(|host| write!(text, " on {}", host.name().unwrap()).unwrap());
    writeln!(text).unwrap();
    more.added.iter().for_each(|node| writeln!(text, "  adds {}", sold(node)).unwrap());
    more.dropped.iter().for_each(|node| writeln!(text, "  drops {}", sold(node)).unwrap());
    more.refused.iter().for_each(|reason| writeln!(text, "  refused {reason}").unwrap());
}

#[test]
fn every_page_says_why() {
    let pages = texts("explanations");
    assert!(!pages.is_empty());
    for (path, page) in pages {
        let (world, rest) = page.split_once(DIVIDER).unwrap();
        let asked = rest.lines().next().unwrap();
        let read = scenario::read(world);
        let input = read.input(0..read.changes.len());
        let answer = plan(&input);
        let mut text = format!("{world}{DIVIDER}{asked}\n");
        for name in asked.split(' ').filter(|name| *name != NODES) {
            let shape = ShapeId::new(name);
            writeln!(text, "--- {name}").unwrap();
            let found = choices(&input, &answer, Asked::Shape(&shape));
            found.iter().for_each(|choice| write_choice(&mut text, choice));
            one_more(&input, &answer, &shape).iter().for_each(|more| write_more(&mut text, more));
        }
        if asked == NODES {
            explain_nodes(&input, &answer).iter().for_each(|node| write_node(&mut text, node));
        }
        expect_file![path].assert_eq(&text);
    }
}

fn write_node(text: &mut String, answer: &NodeAnswer) {
    let fate = match answer.fate {
        Fate::Leaving(reason) => format!("leaving {}", reason.map_or("", DisruptionReason::name)),
        Fate::Goes(reason) => format!("goes {}", reason.name()),
        Fate::MustGo(reason) => format!("must go {}", reason.name()),
        Fate::Stays => "stays".to_owned(),
    };
    writeln!(text, "--- {} {fate}", answer.node).unwrap();
    for hold in &answer.holds {
        writeln!(text, "{} {}: {}", hold.rule.code(), hold.subject, hold.rule).unwrap();
    }
}

/// What keeps nodes is said of all scenarios, and never of one that goes.
#[test]
fn every_node_of_all_scenarios_goes_or_is_kept() {
    for (path, text) in texts("scenarios") {
        let world = text.split("=== plan").next().unwrap();
        let read = scenario::read(world);
        let input = read.input(0..read.changes.len());
        let answer = plan(&input);
        for node in explain_nodes(&input, &answer) {
            let goes = matches!(node.fate, Fate::Goes(_) | Fate::Leaving(_));
            assert_eq!(goes, node.holds.is_empty(), "{}: {node:?}", path.display());
        }
    }
}

/// What holds of every explanation of a plan; returns whether something besides requirements, room
/// and company narrowed a choice.
fn examine(input: &PlanInput, answer: &Plan, name: &str) -> bool {
    let (mut parts, mut counted, mut rest) = (0, 0, false);
    for shape in input.world.shapes.keys() {
        for choice in choices(input, answer, Asked::Shape(shape)) {
            let Target::New(at) = choice.target else { continue };
            let node = &answer.launches[at];
            let purchase = choice.purchase.as_ref().unwrap();
            assert_eq!(purchase.chosen, node.candidates[0], "{name}");
            let left: Vec<_> = purchase.narrowings.iter().map(|n| (n.types, n.offers)).collect();
            let falls = left.windows(2).all(|two| two[1].0 <= two[0].0 && two[1].1 < two[0].1);
            assert!(falls && left.last().unwrap().1 >= 1, "{name}: {left:?}");
            let cost = purchase.chosen.cost_micro_usd_per_hour;
            let dearer = |next: &Candidate| next.cost_micro_usd_per_hour >= cost;
            assert!(purchase.next.iter().all(dearer), "{name}: {purchase:?}");
            let others: i64 = choice.company.iter().map(|company| company.pods).sum();
            let all = i64::try_from(node.pods.len()).unwrap();
            assert_eq!(choice.pods + others * choice.nodes, all * choice.nodes, "{name}");
            parts += choice.pod_price_micro_usd_per_hour.unwrap() * choice.pods;
            counted += choice.pods;
            rest |= purchase.narrowings.iter().any(|step| step.by == By::Rest);
        }
    }
    let full = answer.launches.iter().filter(|node| !node.pods.is_empty());
    let price: i64 = full.map(|node| node.candidates[0].price_micro_usd_per_hour).sum();
    assert!((0..=counted).contains(&(price - parts)), "{name}: {parts} of {price}");
    rest
}

/// Where nothing but requirements, room and company narrows the choice, the cheapest is chosen.
#[test]
fn explanations_of_all_scenarios_add_up() {
    let (mut limited, mut unexplained) = (0, Vec::new());
    for (path, text) in texts("scenarios") {
        let world = text.split("=== plan").next().unwrap();
        let read = scenario::read(world);
        let input = read.input(0..read.changes.len());
        let answer = plan(&input);
        let name = path.display().to_string();
        let rest = examine(&input, &answer, &name);
        let soft = ["limit", "reserve", "@", ":PreferNoSchedule"];
        if rest && !soft.iter().any(|word| world.contains(word)) {
            unexplained.push(name.clone());
        }
        limited += u32::from(rest);
        let Some(first) = answer.placements.first() else { continue };
        let found = choices(&input, &answer, Asked::Pod(&first.pod));
        let [choice] = &found[..] else { panic!("{name}: {} has no one place", first.pod) };
        assert_eq!((&choice.target, choice.pods), (&first.target, 1), "{name}");
    }
    assert_eq!(unexplained, Vec::<String>::new());
    assert!(limited > 0, "no scenario has a limit that matters");
}

#[test]
fn pods_that_are_unknown_or_belong_to_their_node_have_no_price() {
    let text = "type m.large cpu 4 mem 16Gi pods 20 od 0.20\npool default\n\
                shape agent cpu 1 mem 1Gi daemon yes\n";
    let read = scenario::read(text);
    let input = read.input(0..read.changes.len());
    let answer = plan(&input);
    assert_eq!(one_more(&input, &answer, &ShapeId::new("agent")), None);
    assert_eq!(one_more(&input, &answer, &ShapeId::new("nobody")), None);
    assert_eq!(choices(&input, &answer, Asked::Shape(&ShapeId::new("nobody"))), Vec::new());
}
