//! Volumes: where they can be used, and how many a pod attaches.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::Value;

use super::{read, read_pod};
use crate::project::shape::stateful_set;
use crate::project::surroundings::Surroundings;
use crate::project::{pod, volumes};

fn around(class: &str) -> Surroundings {
    let class: StorageClass = read(class);
    let mut around = Surroundings::default();
    around.classes.insert(class.metadata.name.clone().unwrap(), (&class).into());
    around
}

#[test]
fn volumes_to_be_made_bring_the_zones_of_their_class() {
    let around = around(
        "{ metadata: { name: gp3 }, provisioner: ebs.csi.aws.com,
          volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{ matchLabelExpressions:
          [{ key: topology.ebs.csi.aws.com/zone, values: [a, b] }] }] }",
    );
    let set: StatefulSet = read(
        "metadata: { namespace: default, name: db }
spec:
  selector: {}
  template: { spec: { containers: [{ name: a }] } }
  volumeClaimTemplates: [{ metadata: { name: data }, spec: { storageClassName: gp3 } }]",
    );
    let shape = stateful_set(&set, &around).unwrap();
    let zone = &shape.volume_terms[0].requirements[0];
    assert_eq!(
        (zone.key.as_str(), &zone.values[..]),
        ("topology.kubernetes.io/zone", &["a".to_owned(), "b".to_owned()][..])
    );
}

/// Surroundings from a list of objects, each told by its kind.
fn cluster(objects: &str) -> Surroundings {
    let mut around = Surroundings::default();
    for mut object in read::<Vec<Value>>(objects) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let kind = object.as_object_mut().unwrap().remove("kind").unwrap();
        let text = object.to_string();
        match kind.as_str().unwrap() {
            "StorageClass" => {
                drop(around.classes.insert(name, (&read::<StorageClass>(&text)).into()));
            }
            "PersistentVolume" => {
                drop(around.volumes.insert(name, (&read::<PersistentVolume>(&text)).into()));
            }
            _ => {
                let claim: PersistentVolumeClaim = read(&text);
                around.claims.insert(("default".to_owned(), name), (&claim).into());
            }
        }
    }
    around
}

/// A volume of a pod by the claim it names.
fn by_claim(name: &str) -> String {
    format!("{{ name: {name}, persistentVolumeClaim: {{ claimName: {name} }} }}")
}

fn demand(volumes: &str, around: &Surroundings) -> volumes::Demand {
    let pod = read_pod(&format!("spec: {{ containers: [], volumes: [{volumes}] }}"));
    volumes::demand("default", "p", &pod.spec.unwrap(), around)
}

#[test]
fn volumes_that_cannot_be_had_say_what_to_do() {
    let around = cluster(
        "[{ kind: StorageClass, metadata: { name: gp2 }, provisioner: x },
          { kind: StorageClass, metadata: { name: now }, provisioner: x, volumeBindingMode: Immediate },
          { kind: StorageClass, metadata: { name: late }, provisioner: x,
            volumeBindingMode: WaitForFirstConsumer },
          { kind: PersistentVolume, metadata: { name: v }, spec: {} },
          { kind: Claim, metadata: { name: leaving, deletionTimestamp: '2026-01-01T00:00:00Z' }, spec: {} },
          { kind: Claim, metadata: { name: lost }, spec: { volumeName: v }, status: { phase: Lost } },
          { kind: Claim, metadata: { name: binding }, spec: { volumeName: v }, status: { phase: Pending } },
          { kind: Claim, metadata: { name: bound }, spec: { volumeName: v }, status: { phase: Bound } },
          { kind: Claim, metadata: { name: noted, annotations: { pv.kubernetes.io/bind-completed: 'yes' } },
            spec: { volumeName: v } },
          { kind: Claim, metadata: { name: orphan }, spec: { volumeName: w }, status: { phase: Bound } },
          { kind: Claim, metadata: { name: eager }, spec: { storageClassName: now } },
          { kind: Claim, metadata: { name: patient }, spec: { storageClassName: late } },
          { kind: Claim, metadata: { name: typo }, spec: { storageClassName: gp22 } },
          { kind: Claim, metadata: { name: classless }, spec: {} },
          { kind: Claim, metadata: { name: manual }, spec: { storageClassName: '' } }]",
    );
    let table = [
        ("unknown", "does not exist; create it"),
        ("leaving", "is being deleted"),
        ("lost", "has lost its volume v"),
        ("binding", "is not bound to it yet"),
        ("bound", ""),
        ("noted", ""),
        ("orphan", "PersistentVolume w of claim orphan does not exist"),
        ("eager", "use volumeBindingMode WaitForFirstConsumer"),
        ("patient", ""),
        ("typo", "StorageClass gp22 of PersistentVolumeClaim typo does not exist"),
        ("classless", "give it a class or make one the default"),
        ("manual", "empty storageClassName keeps one from being made"),
    ];
    for (claim, expected) in table {
        let impossible = demand(&by_claim(claim), &around).impossible;
        assert!(impossible.contains(expected), "{claim}: {impossible}");
        assert_eq!(impossible.is_empty(), expected.is_empty(), "{claim}: {impossible}");
    }
}

#[test]
fn ephemeral_volumes_follow_their_template_until_their_claim_exists() {
    let around =
        around("{ metadata: { name: gp2 }, provisioner: x, volumeBindingMode: Immediate }");
    for (class, expected) in [("none", "StorageClass none of"), ("gp2", "WaitForFirstConsumer")] {
        let volume = format!(
            "{{ name: v, ephemeral: {{ volumeClaimTemplate: {{ spec: {{ storageClassName: {class} }} }} }} }}"
        );
        let impossible = demand(&volume, &around).impossible;
        assert!(impossible.contains("p-v") && impossible.contains(expected), "{impossible}");
    }
}

#[test]
fn of_several_default_classes_the_newest_counts() {
    let class = |name: &str, created: &str, zone: &str| {
        format!(
            "{{ kind: StorageClass, provisioner: x, volumeBindingMode: WaitForFirstConsumer, metadata: {{
               name: {name}, creationTimestamp: '{created}',
               annotations: {{ storageclass.kubernetes.io/is-default-class: 'true' }} }},
               allowedTopologies: [{{ matchLabelExpressions: [{{ key: zone, values: [{zone}] }}] }}] }}"
        )
    };
    let (old, new) =
        (class("a", "2025-01-01T00:00:00Z", "old"), class("b", "2026-01-01T00:00:00Z", "new"));
    let around =
        cluster(&format!("[{new}, {old}, {{ kind: Claim, metadata: {{ name: c }}, spec: {{}} }}]"));
    assert_eq!(demand(&by_claim("c"), &around).terms[0].requirements[0].values, ["new"]);
}

/// Three bound claims: one in a or b, one in b or c, one in d alone.
fn places() -> Surroundings {
    let term = |zone: &str| {
        format!("{{ matchExpressions: [{{ key: zone, operator: In, values: [{zone}] }}] }}")
    };
    let bound = |name: &str, zones: &[&str]| {
        let terms = zones.iter().map(|zone| term(zone)).collect::<Vec<_>>().join(", ");
        format!(
            "{{ kind: PersistentVolume, metadata: {{ name: {name} }}, spec: {{ csi: {{ driver: ebs.csi.aws.com,
                volumeHandle: h }}, nodeAffinity: {{ required: {{ nodeSelectorTerms: [{terms}] }} }} }} }},
             {{ kind: Claim, metadata: {{ name: {name} }}, spec: {{ volumeName: {name} }},
                status: {{ phase: Bound }} }}"
        )
    };
    let (ab, bc, d) = (bound("ab", &["a", "b"]), bound("bc", &["b", "c"]), bound("d", &["d"]));
    cluster(&format!("[{ab}, {bc}, {d}]"))
}

#[test]
fn several_volumes_leave_the_places_that_suit_all_of_them() {
    let around = places();
    let both = demand(&format!("{}, {}", by_claim("ab"), by_claim("bc")), &around);
    let zones: Vec<_> = both.terms.iter().map(|term| &term.requirements[0].values).collect();
    assert_eq!((zones, both.impossible.as_str()), (vec![&vec!["b".to_owned()]], ""));
    let apart = demand(&format!("{}, {}", by_claim("ab"), by_claim("d")), &around);
    assert!(apart.impossible.contains("in different places"), "{}", apart.impossible);
}

#[test]
fn many_volumes_forget_none_of_their_demands() {
    let zones: Vec<String> = (0..9).map(|n| format!("z{n}")).collect();
    let topology = |key: &str| {
        let each = zones.iter().map(|zone| {
            format!("{{ matchLabelExpressions: [{{ key: {key}, values: [{zone}] }}] }}")
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let class = |name: &str| {
        format!(
            "{{ kind: StorageClass, metadata: {{ name: {name} }}, provisioner: x,
                volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{}] }},
             {{ kind: Claim, metadata: {{ name: {name} }}, spec: {{ storageClassName: {name} }} }}",
            topology(name)
        )
    };
    let around = cluster(&format!("[{}, {}]", class("one"), class("two")));
    let terms = demand(&format!("{}, {}", by_claim("one"), by_claim("two")), &around).terms;
    assert_eq!(terms.len(), 64);
    assert!(terms.iter().all(|term| term.requirements.len() == 2), "each demands both");
}

#[test]
fn volumes_are_counted_by_the_driver_that_attaches_them() {
    let mut around = places();
    around.classes.extend(
        cluster(
            "[{ kind: StorageClass, metadata: { name: gp2 }, provisioner: kubernetes.io/aws-ebs,
                volumeBindingMode: WaitForFirstConsumer },
              { kind: StorageClass, metadata: { name: local }, provisioner: kubernetes.io/no-provisioner,
                volumeBindingMode: WaitForFirstConsumer }]",
        )
        .classes,
    );
    let ephemeral = |class: &str| {
        format!(
            "{{ name: e-{class}, ephemeral: {{ volumeClaimTemplate: {{ spec: {{ storageClassName: {class} }} }} }} }}"
        )
    };
    let volumes = [
        by_claim("ab"),
        "{ name: again, persistentVolumeClaim: { claimName: ab } }".to_owned(),
        by_claim("bc"),
        ephemeral("gp2"),
        ephemeral("local"),
        "{ name: old, awsElasticBlockStore: { volumeID: vol-1 } }".to_owned(),
        "{ name: secrets, csi: { driver: secrets-store.csi.k8s.io } }".to_owned(),
        "{ name: scratch, emptyDir: {} }".to_owned(),
    ];
    let spec = format!("{{ containers: [], volumes: [{}] }}", volumes.join(", "));
    let pod = read_pod(&format!("{{ metadata: {{ name: p, namespace: default }}, spec: {spec} }}"));
    let requests = pod::pod(&pod, &around).unwrap().shape.requests.unwrap();
    let expected = [
        ("attachable-volumes-ebs.csi.aws.com".to_owned(), 4),
        ("attachable-volumes-secrets-store.csi.k8s.io".to_owned(), 1),
    ];
    assert_eq!(requests.extended, expected.into());
}

#[test]
fn a_stateful_sets_own_volumes_count_as_well() {
    let around = around(
        "{ metadata: { name: gp3 }, provisioner: ebs.csi.aws.com, volumeBindingMode: WaitForFirstConsumer }",
    );
    let set: StatefulSet = read(
        "metadata: { namespace: default, name: db }
spec:
  selector: {}
  template: { spec: { containers: [{ name: a }],
    volumes: [{ name: s, ephemeral: { volumeClaimTemplate: { spec: { storageClassName: gp3 } } } }] } }
  volumeClaimTemplates: [{ metadata: { name: data }, spec: { storageClassName: gp3 } },
                         { metadata: { name: log }, spec: { storageClassName: gp3 } }]",
    );
    let requests = stateful_set(&set, &around).unwrap().requests.unwrap();
    assert_eq!(requests.extended, [("attachable-volumes-ebs.csi.aws.com".to_owned(), 3)].into());
}

#[test]
fn a_local_volume_keeps_its_zone_and_loses_its_host() {
    let volume: PersistentVolume = read(
        "spec: { local: { path: /x }, nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [
          { key: kubernetes.io/hostname, operator: In, values: [n1] },
          { key: topology.kubernetes.io/zone, operator: In, values: [a] }] }] } } }",
    );
    let terms = crate::project::volume_terms::volume_terms(&volume);
    assert_eq!(terms.len(), 1);
    assert_eq!(terms[0].requirements.len(), 1);
    assert_eq!(terms[0].requirements[0].values, ["a"]);
}
