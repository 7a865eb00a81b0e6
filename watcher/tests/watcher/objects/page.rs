//! The page: docs/karpenter-objects.md.
//!
//! Invariant: what stands in a table is derived; only the last cell of a row is a note's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::KINDS;
use super::difference::{Difference, FIELD, differences};
use super::facts::{Attributes, Facts};
use super::notes::{Effect, NOTES, unused};

/// The whole page.
pub(super) fn text(theirs: &Facts, ours: &Facts) -> String {
    let found = differences(theirs, ours);
    let mut page = format!(
        "# Fields of objects, beside Karpenter's\n\n{}{}",
        PREFACE.replace("VERSION", &theirs.version),
        counts(theirs, ours)
    );
    page.push_str(&one_side(&found));
    page.push_str(NOT_ACTED_ON);
    for note in unused() {
        let _ = writeln!(page, "| {} | `{}` | {} |", note.kind, note.field, note.text);
    }
    page.push_str(CHECKED);
    page.push_str(&rows(&found, Effect::Other, "what that means for a manifest here"));
    page.push_str(SPELLED);
    page.push_str(&rows(&found, Effect::Same, "why nothing changes"));
    page.push_str(&about(&found));
    page
}

const PREFACE: &str = "\
For those who have manifests for Karpenter: which fields of them Longshore knows, which it checks otherwise, and which it
accepts without acting on them. Compared are the definitions that Karpenter VERSION publishes for AWS and those under
`deploy/crds`: every field below `spec` and `status`. The page is generated, and tests hold it against both. It says what the
API server does with an object; what Longshore does with it, where that is not what Karpenter does, is in
[another](karpenter-differences.md), and conditions and Events are in [a third](karpenter-names.md).
";
const CHECKED: &str = "
## Fields that are checked otherwise

What the API server refuses by one definition and not by the other. `a / b` is Karpenter's and Longshore's, `-` is nothing;
of patterns and rules it only says that they are not the same, and how many rules there are if their numbers differ.
";
const SPELLED: &str = "
## Fields that are checked the same, in other words

Patterns and rules that are not spelled alike and refuse the same.
";
const NOT_ACTED_ON: &str = "
## Fields that are accepted, but not acted on

An object with such a field is accepted and checked, and its nodes are as if the field were not there. A test gives every
field of NodePool, NodeOverlay and EC2NodeClass other values and looks whether anything else goes to the scheduler; for these
nothing does. NodeClaims are written by Longshore itself.

| kind | field | what happens |
|---|---|---|
";

/// How many fields there are.
fn counts(theirs: &Facts, ours: &Facts) -> String {
    let mut table = String::from(
        "\n## Fields\n\n| kind | version | fields in both | only Karpenter's | only Longshore's |\n\
         |---|---|---|---|---|\n",
    );
    for kind in KINDS.map(|kind| kind.name()) {
        let paths = |facts: &Facts| -> BTreeSet<String> {
            facts.objects[kind].fields.keys().cloned().collect()
        };
        let (their_paths, our_paths) = (paths(theirs), paths(ours));
        let about: &Attributes = &ours.objects[kind].about;
        let _ = writeln!(
            table,
            "| {kind} | {}/{} | {} | {} | {} |",
            about["group"],
            about["version"],
            their_paths.intersection(&our_paths).count(),
            their_paths.difference(&our_paths).count(),
            our_paths.difference(&their_paths).count(),
        );
    }
    table
}

/// Fields that only one side has.
fn one_side(found: &[Difference]) -> String {
    let fields: Vec<&Difference> = found.iter().filter(|it| it.what == FIELD).collect();
    if fields.is_empty() {
        return "\nNo field is known to one of the two alone.\n".to_owned();
    }
    let mut table = String::from("\n| kind | field | known to | why |\n|---|---|---|---|\n");
    for field in fields {
        let side = if field.ours.is_some() { "Longshore" } else { "Karpenter" };
        let note = NOTES.iter().find(|note| note.is_about(field)).map_or("", |note| note.text);
        let _ = writeln!(table, "| {} | `{}` | {side} | {note} |", field.kind, field.path);
    }
    table
}

/// A row for each note, and for each way in which its kinds differ.
fn rows(found: &[Difference], effect: Effect, last: &str) -> String {
    let mut table = format!("\n| kinds | field | differs | {} |\n|---|---|---|---|\n", last);
    for note in NOTES.iter().filter(|note| note.effect == effect) {
        let mut kinds: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        let about = found.iter().filter(|it| it.what != FIELD && !it.path.is_empty());
        for difference in about.filter(|it| note.is_about(it)) {
            let place = (difference.kind.as_str(), difference.path.as_str());
            kinds.entry(place).or_default().push(cell(difference));
        }
        let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for ((kind, _), cells) in kinds {
            alike.entry(cells.join("; ")).or_default().push(kind);
        }
        let field = note.field.rsplit(' ').next().unwrap_or_default();
        for (cell, kinds) in alike {
            let _ =
                writeln!(table, "| {} | `{field}` | {cell} | {} |", kinds.join(", "), note.text);
        }
    }
    table
}

/// What differs, in words.
fn cell(difference: &Difference) -> String {
    let Difference { what, theirs, ours, .. } = difference;
    let side = |value: &Option<String>| match (what.as_str(), value) {
        (_, None) => "-".to_owned(),
        ("validations", Some(digests)) => digests.split(' ').count().to_string(),
        ("pattern", Some(_)) => "another".to_owned(),
        (_, Some(value)) => format!("`{value}`"),
    };
    let (theirs, ours) = (side(theirs), side(ours));
    match what.as_str() {
        "validations" if theirs == ours => "rules".to_owned(),
        "validations" => format!("rules ({theirs} / {ours})"),
        "pattern" if theirs == ours => "pattern".to_owned(),
        "pattern" => format!("pattern ({} / {})", yes(&theirs), yes(&ours)),
        what => format!("{what} ({theirs} / {ours})"),
    }
}

fn yes(side: &str) -> &str {
    if side == "-" { side } else { "yes" }
}

/// Names, columns and the like.
fn about(found: &[Difference]) -> String {
    let mut text = String::from("\n## Names and columns\n\n");
    let differing: Vec<&Difference> = found.iter().filter(|it| it.path.is_empty()).collect();
    if differing.is_empty() {
        text.push_str(
            "Groups, versions, kinds, plurals, short names, categories, scope, subresources and the columns that \
             `kubectl get`\nprints are the same.\n",
        );
        return text;
    }
    text.push_str("| kind | what | Karpenter | Longshore | why |\n|---|---|---|---|---|\n");
    for difference in differing {
        let Difference { kind, what, theirs, ours, .. } = difference;
        let [theirs, ours] = [theirs, ours].map(|it| it.as_deref().unwrap_or("-"));
        let note = NOTES.iter().find(|note| note.is_about(difference)).map_or("", |note| note.text);
        let _ = writeln!(text, "| {kind} | {what} | {theirs} | {ours} | {note} |");
    }
    text
}
