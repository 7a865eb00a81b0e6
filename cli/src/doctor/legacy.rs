//! Objects of the first API, with the v1 manifests that they amount to.
//!
//! Invariant: a manifest is written from the watcher's own reading of the object, so it means what
//! Longshore takes the object to mean, webhook defaults included.

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{ConsolidationPolicy, Operator, TaintEffect};
use longshore_watcher::api::{AWSNodeTemplate, Provisioner, crd};
use longshore_watcher::project::{legacy, node_template};
use serde_json::{Map, Value, json};

use super::facts::{Facts, Kind, name};
use super::{Finding, Severity};

/// Provisioners and AWSNodeTemplates.
pub fn check(facts: &Facts) -> Vec<Finding> {
    let templates: Vec<AWSNodeTemplate> =
        facts.of(Kind::AWSNodeTemplate).filter_map(|it| crd::decode(it.clone()).ok()).collect();
    let provisioners = facts.of(Kind::Provisioner).map(|it| {
        let manifest = provisioner(it, &templates);
        finding(name("Provisioner", it), manifest)
    });
    let classes = facts.of(Kind::AWSNodeTemplate).map(|it| {
        let manifest = crd::decode::<AWSNodeTemplate>(it.clone())
            .map_err(|error| error.to_string())
            .and_then(|it| node_template::node_template(&it).map_err(|fault| fault.to_string()))
            .and_then(|class| yaml(&[node_class(&class)]));
        finding(name("AWSNodeTemplate", it), manifest)
    });
    provisioners.chain(classes).collect()
}

fn finding(object: String, manifest: Result<String, String>) -> Finding {
    Finding {
        severity: if manifest.is_ok() { Severity::Advice } else { Severity::Problem },
        object,
        message: "is of the first API, which Karpenter has removed; Longshore still reads it"
            .to_owned(),
        evidence: match &manifest {
            Ok(_) => "it is read as the manifest below".to_owned(),
            Err(error) => format!("it cannot be read: {error}"),
        },
        remedy: match manifest {
            Ok(text) => format!("kubectl apply -f - <<'END'\n{text}END"),
            Err(_) => "mend the field that is named, or delete the object".to_owned(),
        },
    }
}

fn provisioner(object: &Value, templates: &[AWSNodeTemplate]) -> Result<String, String> {
    let read: Provisioner = crd::decode(object.clone()).map_err(|error| error.to_string())?;
    let named = legacy::template_name(&read.spec);
    let template = templates.iter().find(|it| it.metadata.name.as_deref() == named);
    let pool = legacy::provisioner(&read, template).map_err(|fault| fault.to_string())?;
    let mut manifests: Vec<Value> = pool.class.iter().map(node_class).collect();
    manifests.push(node_pool(&pool.pool));
    yaml(&manifests)
}

fn yaml(manifests: &[Value]) -> Result<String, String> {
    let texts: Result<Vec<String>, _> = manifests.iter().map(serde_saphyr::to_string).collect();
    Ok(texts.map_err(|error| error.to_string())?.join("---\n"))
}

/// Name of a class in v1, where all classes are of one kind.
fn short(class: &str) -> &str {
    class.split_once('/').map_or(class, |(_, name)| name)
}

fn node_pool(pool: &wire::NodePool) -> Value {
    let disruption = pool.disruption.clone().unwrap_or_default();
    let underutilized = ConsolidationPolicy::WhenEmptyOrUnderutilized;
    let policy =
        if disruption.policy() == underutilized { "WhenEmptyOrUnderutilized" } else { "WhenEmpty" };
    let seconds = |duration: Option<&prost_types::Duration>| {
        duration.map_or_else(|| "Never".to_owned(), |it| format!("{}s", it.seconds))
    };
    let spec = json!({
        "weight": (pool.weight > 0).then_some(pool.weight),
        "limits": pool.limits.as_ref().map(limits),
        "disruption": {
            "consolidationPolicy": policy,
            "consolidateAfter": seconds(disruption.consolidate_after.as_ref()),
        },
        "template": {
            "metadata": { "labels": pool.labels, "annotations": pool.annotations },
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass",
                    "name": short(&pool.node_class),
                },
                "expireAfter": seconds(pool.expire_after.as_ref()),
                "requirements": pool.requirements.iter().map(requirement).collect::<Vec<_>>(),
                "taints": pool.taints.iter().map(taint).collect::<Vec<_>>(),
                "startupTaints": pool.startup_taints.iter().map(taint).collect::<Vec<_>>(),
            },
        },
    });
    let metadata = json!({ "name": pool.name });
    dense(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec,
    }))
}

fn limits(limits: &wire::PoolLimits) -> Value {
    let amounts = limits.values.iter().map(|(name, amount)| {
        let text = if name == "cpu" { format!("{amount}m") } else { amount.to_string() };
        (name.clone(), Value::from(text))
    });
    Value::Object(amounts.collect())
}

fn requirement(from: &wire::Requirement) -> Value {
    let operator = match from.operator() {
        Operator::Unspecified | Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
        Operator::Gte => "Gte",
        Operator::Lte => "Lte",
    };
    json!({ "key": from.key, "operator": operator, "values": from.values })
}

fn taint(from: &wire::Taint) -> Value {
    let effect = match from.effect() {
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::NoSchedule | TaintEffect::Unspecified => "NoSchedule",
    };
    json!({ "key": from.key, "value": from.value, "effect": effect })
}

fn node_class(class: &wire::NodeClass) -> Value {
    let term = |from: &wire::SelectorTerm| {
        json!({
            "alias": from.alias, "id": from.id, "name": from.name, "owner": from.owner,
            "ssmParameter": from.ssm_parameter, "tags": from.tags,
        })
    };
    let terms = |list: &[wire::SelectorTerm]| list.iter().map(term).collect::<Vec<_>>();
    let options = class.metadata_options.as_ref().map(|from| {
        json!({
            "httpEndpoint": from.http_endpoint,
            "httpProtocolIPv6": from.http_protocol_ipv6,
            "httpPutResponseHopLimit": from.http_put_response_hop_limit,
            "httpTokens": from.http_tokens,
        })
    });
    let spec = json!({
        "amiFamily": class.ami_family,
        "amiSelectorTerms": terms(&class.ami_terms),
        "subnetSelectorTerms": terms(&class.subnet_terms),
        "securityGroupSelectorTerms": terms(&class.security_group_terms),
        "role": class.role,
        "instanceProfile": class.instance_profile,
        "tags": class.tags,
        "userData": class.user_data,
        "blockDeviceMappings": class.block_devices.iter().map(device).collect::<Vec<_>>(),
        "metadataOptions": options,
        "kubelet": class.kubelet.as_ref().map(kubelet),
        "detailedMonitoring": class.detailed_monitoring.then_some(true),
    });
    dense(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": { "name": short(&class.name) }, "spec": spec,
    }))
}

fn device(from: &wire::BlockDevice) -> Value {
    let some = |number: i64| (number > 0).then_some(number);
    let size = some(from.volume_size_bytes).map(|bytes| bytes.to_string());
    json!({
        "deviceName": from.device_name,
        "ebs": {
            "volumeSize": size, "volumeType": from.volume_type, "iops": some(from.iops),
            "throughput": some(from.throughput_mib_per_second), "encrypted": from.encrypted,
            "kmsKeyID": from.kms_key_id, "snapshotID": from.snapshot_id,
            "deleteOnTermination": from.delete_on_termination,
        },
    })
}

fn kubelet(from: &wire::Kubelet) -> Value {
    json!({
        "maxPods": from.max_pods, "podsPerCore": from.pods_per_core,
        "clusterDNS": from.cluster_dns, "systemReserved": from.system_reserved,
        "kubeReserved": from.kube_reserved, "evictionHard": from.eviction_hard,
        "evictionSoft": from.eviction_soft,
        "evictionSoftGracePeriod": from.eviction_soft_grace_period,
        "evictionMaxPodGracePeriod": from.eviction_max_pod_grace_period_seconds,
        "imageGCHighThresholdPercent": from.image_gc_high_threshold_percent,
        "imageGCLowThresholdPercent": from.image_gc_low_threshold_percent,
        "cpuCFSQuota": from.cpu_cfs_quota,
    })
}

/// The value without fields that say nothing. Requirements stay, as they are required.
fn dense(value: Value) -> Value {
    let silent = |name: &str, it: &Value| {
        let empty = match it {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        empty && name != "requirements"
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, field)| (name, dense(field)));
            let fields: Map<String, Value> =
                fields.filter(|(name, it)| !silent(name, it)).collect();
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(dense).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
