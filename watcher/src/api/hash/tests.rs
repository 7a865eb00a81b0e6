//! Hashes that Karpenter itself has written.

use serde_json::json;

use super::*;

/// The class of the tests that Karpenter v1.14.1 publishes for its own hash.
fn published() -> Value {
    json!({
        "role": "role-1",
        "tags": { "keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2" },
        "context": "fake-context",
        "detailedMonitoring": false,
        "associatePublicIPAddress": false,
        "metadataOptions": { "httpEndpoint": "disabled", "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1, "httpTokens": "optional" },
        "blockDeviceMappings": [
            { "deviceName": "map-device-1", "rootVolume": false, "ebs": {
                "deleteOnTermination": false, "encrypted": false, "iops": 0,
                "kmsKeyID": "fakeKMSKeyID", "snapshotID": "fakeSnapshot", "throughput": 0,
                "volumeSize": "2G", "volumeType": "standard" } },
            { "deviceName": "map-device-2" },
        ],
        "userData": "userdata-test-1",
        "amiSelectorTerms": [{ "id": "ami-1" }],
        "subnetSelectorTerms": [],
        "securityGroupSelectorTerms": [],
    })
}

/// A change of that class, and the hash published for it.
const PUBLISHED: [(&str, &str, &str); 23] = [
    ("", "", "2608468723537941485"),
    ("/userData", r#""userdata-test-2""#, "2153344579995979450"),
    ("/tags/keyTag-test-3", r#""valueTag-test-3""#, "4608386791045313156"),
    ("/context", r#""context-2""#, "11612053647989098410"),
    ("/detailedMonitoring", "true", "11845605438531206428"),
    ("/instanceStorePolicy", r#""RAID0""#, "6430637013089544585"),
    ("/associatePublicIPAddress", "true", "6811176403923819181"),
    ("/metadataOptions/httpEndpoint", r#""enabled""#, "8158886403801636337"),
    ("/metadataOptions/httpProtocolIPv6", r#""enabled""#, "12355196004817691031"),
    ("/metadataOptions/httpPutResponseHopLimit", "10", "8968306366664488826"),
    ("/metadataOptions/httpTokens", r#""required""#, "12408995450371615650"),
    ("/blockDeviceMappings/0/deviceName", r#""map-device-test-3""#, "13986335469721503441"),
    ("/blockDeviceMappings/0/rootVolume", "true", "14242690863945643402"),
    ("/blockDeviceMappings/0/ebs/deleteOnTermination", "true", "12316454167870753581"),
    ("/blockDeviceMappings/0/ebs/encrypted", "true", "17753517657333560591"),
    ("/blockDeviceMappings/0/ebs/iops", "10", "2249322442135400321"),
    ("/blockDeviceMappings/0/ebs/volumeType", r#""io1""#, "16361719363399715944"),
    ("/blockDeviceMappings/0/ebs/volumeSize", r#""10G""#, "3564293065344858862"),
    ("/connectionTracking", r#"{"tcpEstablishedTimeout": 300}"#, "12177489405137904098"),
    ("/connectionTracking", r#"{"udpStreamTimeout": 120}"#, "17567831983996427"),
    ("/connectionTracking", r#"{"udpTimeout": 45}"#, "5078825826133662844"),
    ("/cpuOptions", r#"{"nestedVirtualization": "enabled"}"#, "17001101224536964682"),
    ("/amiSelectorTerms", r#"[{"tags": {"a": "b"}}]"#, "2608468723537941485"),
];

fn class(spec: Value, hash: &str, version: &str) -> EC2NodeClass {
    let mut class = EC2NodeClass::new("c", serde_json::from_value(spec).unwrap());
    let notes = [(EC2_NODE_CLASS_HASH, hash), (EC2_NODE_CLASS_HASH_VERSION, version)];
    let notes = notes.map(|(key, value)| (key.to_owned(), value.to_owned()));
    class.metadata.annotations = Some(notes.into());
    class
}

fn set(spec: &mut Value, path: &str, to: &str) {
    let Some((at, key)) = path.rsplit_once('/') else { return };
    spec.pointer_mut(at).unwrap()[key] = serde_json::from_str(to).unwrap();
}

#[test]
fn published_hashes_of_classes_are_proven_and_no_others() {
    for (path, to, hash) in PUBLISHED {
        let mut spec = published();
        set(&mut spec, path, to);
        let of = |hash, version, ca| of_class(&class(spec.clone(), hash, version), ca);
        assert_eq!(of(hash, "v5", "test-ca-bundle").as_deref(), Some(hash), "{path} {to}");
        assert_eq!(of(hash, "v5", "another"), None, "{path}");
        assert_eq!(of(hash, "v6", "test-ca-bundle"), None, "{path}");
        assert_eq!(of("1", "v5", "test-ca-bundle"), None, "{path}");
    }
    let mut profile = published();
    profile.as_object_mut().unwrap().remove("role");
    profile["instanceProfile"] = json!("test-instance-profile");
    let profile = class(profile, "3585768058063247698", "v5");
    assert!(of_class(&profile, "test-ca-bundle").is_some());
    let bare = EC2NodeClass::new("c", serde_json::from_value(published()).unwrap());
    assert_eq!(of_class(&bare, ""), None);
}

/// Templates, and what the published `NodePool.Hash()` makes of them.
const POOLS: [(&str, &str); 4] = [
    (r#"{"metadata": {}, "spec": {"expireAfter": "720h"}}"#, "4766390988457657529"),
    (
        r#"{"metadata": {"labels": {"a": "b", "c": ""}}, "spec": {"expireAfter": "Never"}}"#,
        "14812296118196617919",
    ),
    (
        r#"{"spec": {"expireAfter": "0s", "terminationGracePeriod": "0s", "taints": []}}"#,
        "9725173246500916773",
    ),
    (
        r#"{"spec": {"expireAfter": "1h30m", "terminationGracePeriod": "10m", "startupTaints": [],
            "taints": [{"key": "a", "effect": "NoSchedule"},
                {"key": "b", "value": "c", "effect": "NoExecute"}]}}"#,
        "10691826932770263353",
    ),
];

/// Specs beside these terms, and what the published `EC2NodeClass.Hash("Q0E=")` makes of them.
const CLASSES: [(&str, &str); 3] = [
    ("{}", "3724969237762702504"),
    (
        r#"{"tags": {}, "kubelet": {"maxPods": 0, "clusterDNS": ["10.0.0.1"], "cpuCFSQuota": false,
            "evictionSoft": {"memory.available": "5%"}, "systemReserved": {"cpu": "100m"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"}}}"#,
        "8790106438924195294",
    ),
    (
        r#"{"networkInterfaces": [
                {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}],
            "placementGroupSelector": {"name": "g"},
            "blockDeviceMappings": [{"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {
                "volumeSize": "2048Gi", "volumeType": "gp3", "volumeInitializationRate": 100}}]}"#,
        "4297649377417763552",
    ),
];

/// What is proven of a pool with this template that carries this hash.
fn pool(template: &Value, hash: &str, version: &str) -> Option<String> {
    let spec = serde_json::from_value(json!({ "template": template })).unwrap();
    let mut pool = NodePool::new("p", spec);
    let notes = [(NODE_POOL_HASH, hash), (NODE_POOL_HASH_VERSION, version)];
    pool.metadata.annotations =
        Some(notes.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    of_pool(&pool)
}

#[test]
fn hashes_of_pools_are_proven_and_no_others() {
    for (template, hash) in POOLS {
        let mut template: Value = serde_json::from_str(template).unwrap();
        template["spec"]["requirements"] = json!([]);
        template["spec"]["nodeClassRef"] =
            json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "general" });
        let of = |hash: &str, version: &str| pool(&template, hash, version);
        assert_eq!(of(hash, "v3").as_deref(), Some(hash), "{hash}");
        assert_eq!(of(hash, "v4"), None);
        assert_eq!(of("1", "v3"), None);
        template["spec"]["expireAfter"] = json!("1h");
        assert_eq!(pool(&template, hash, "v3"), None, "the pool has changed since");
    }
}

#[test]
fn hashes_of_classes_with_all_that_a_class_may_say_are_proven() {
    for (spec, hash) in CLASSES {
        let mut spec: Value = serde_json::from_str(spec).unwrap();
        spec["amiSelectorTerms"] = json!([{ "alias": "bottlerocket@latest" }]);
        spec["subnetSelectorTerms"] = json!([]);
        spec["securityGroupSelectorTerms"] = json!([]);
        spec["role"] = json!("r");
        // Below the API, which would fill in the metadata options.
        let rests = [text("Bottlerocket") ^ text("Q0E=")];
        assert!(matches(&spec, &CLASS, &rests, hash), "{hash}");
        assert!(!matches(&spec, &CLASS, &[0], hash), "{hash}");
    }
}

#[test]
fn sizes_are_written_as_go_writes_them() {
    let table =
        [("20Gi", "20Gi"), ("1024Gi", "1Ti"), ("2000G", "2T"), ("1Ti", "1Ti"), ("5T", "5T")];
    for (text, go) in table {
        assert_eq!(canonical(text).as_deref(), Some(go));
    }
    assert_eq!(canonical("20"), None);
}

#[test]
fn the_index_keeps_a_proven_hash_beside_its_class_and_proves_it_anew_when_something_of_it_changes()
{
    use longshore_proto::types::v1::ClusterFacts;

    use crate::index::Index;
    use crate::observe::reference;

    let hash = "2608468723537941485";
    let mut index = Index::default();
    let facts = |ca: &str| ClusterFacts { ca_bundle: ca.to_owned(), ..ClusterFacts::default() };
    let apply = |index: &mut Index, class: EC2NodeClass| {
        index.apply(reference::<EC2NodeClass>(&class.metadata), Ok(class));
        index.pools().class_hash("c").map(str::to_owned)
    };
    index.set_cluster(facts("another"));
    let good = class(published(), hash, "v5");
    assert_eq!(apply(&mut index, good.clone()), None, "of another authority");
    index.set_cluster(facts("test-ca-bundle"));
    assert_eq!(index.pools().class_hash("c"), Some(hash));
    assert_eq!(apply(&mut index, good.clone()).as_deref(), Some(hash));
    assert_eq!(apply(&mut index, class(published(), "1", "v5")), None, "it carries another");
    let mut changed = published();
    set(&mut changed, "/userData", r#""userdata-test-2""#);
    assert_eq!(apply(&mut index, good.clone()).as_deref(), Some(hash));
    assert_eq!(apply(&mut index, class(changed, hash, "v5")), None, "it is stale");
    assert_eq!(apply(&mut index, good.clone()).as_deref(), Some(hash));
    index.forget::<EC2NodeClass>(&crate::index::name_of(&good.metadata));
    assert_eq!(index.pools().class_hash("c"), None);
}
