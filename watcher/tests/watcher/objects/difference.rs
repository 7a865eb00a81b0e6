//! What two definitions of a kind do not have in common.

use std::collections::BTreeSet;

use super::facts::{Attributes, Facts};

/// What differs when one side does not know a field at all.
pub(super) const FIELD: &str = "field";

/// One attribute that differs; of the object itself where the path is empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Kind of the object.
    pub kind: String,
    /// Path of the field.
    pub path: String,
    /// Which attribute.
    pub what: String,
    /// Its value in Karpenter's definition.
    pub theirs: Option<String>,
    /// Its value in ours.
    pub ours: Option<String>,
}

/// All differences, by kind and path.
pub(super) fn differences(theirs: &Facts, ours: &Facts) -> Vec<Difference> {
    let mut found = Vec::new();
    for (kind, object) in &ours.objects {
        let other = &theirs.objects[kind];
        found.extend(of_attributes(kind, "", (&other.about, &object.about)));
        let paths: BTreeSet<&String> = other.fields.keys().chain(object.fields.keys()).collect();
        for path in paths {
            match (other.fields.get(path), object.fields.get(path)) {
                (Some(theirs), Some(ours)) => {
                    found.extend(of_attributes(kind, path, (theirs, ours)))
                }
                (theirs, ours) => found.push(Difference {
                    kind: kind.clone(),
                    path: path.clone(),
                    what: FIELD.to_owned(),
                    theirs: theirs.map(|_| "yes".to_owned()),
                    ours: ours.map(|_| "yes".to_owned()),
                }),
            }
        }
    }
    found
}

fn of_attributes(
    kind: &str,
    path: &str,
    (theirs, ours): (&Attributes, &Attributes),
) -> Vec<Difference> {
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let differing = names.into_iter().filter(|name| theirs.get(*name) != ours.get(*name));
    differing
        .map(|name| Difference {
            kind: kind.to_owned(),
            path: path.to_owned(),
            what: name.clone(),
            theirs: theirs.get(name).cloned(),
            ours: ours.get(name).cloned(),
        })
        .collect()
}

#[test]
fn differences_are_found() {
    let facts = |text: &str| Facts::read(&format!("karpenter 1\nkind K\n{text}"));
    let theirs =
        facts("about scope=Cluster\na type=string\nb type=string | pattern=1\nc type=string");
    let ours = facts("about scope=Cluster\na type=string\nb type=string\nd type=string");
    let difference =
        |path: &str, what: &str, theirs: Option<&str>, ours: Option<&str>| Difference {
            kind: "K".to_owned(),
            path: path.to_owned(),
            what: what.to_owned(),
            theirs: theirs.map(str::to_owned),
            ours: ours.map(str::to_owned),
        };
    assert_eq!(
        differences(&theirs, &ours),
        [
            difference("b", "pattern", Some("1"), None),
            difference("c", FIELD, Some("yes"), None),
            difference("d", FIELD, None, Some("yes")),
        ]
    );
}
