//! Provisioners and AWSNodeTemplates: the first API means what it meant.

use longshore_proto::types::v1::{ConsolidationPolicy, Operator};

use super::read;
use crate::api::{AWSNodeTemplate, Provisioner};
use crate::project::legacy::{LegacyPool, provisioner};
use crate::project::node_template::node_template;

fn project(spec: &str) -> LegacyPool {
    let object: Provisioner = read(&manifest(spec));
    provisioner(&object, None).unwrap()
}

fn manifest(spec: &str) -> String {
    format!(
        "{{ apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {{ name: dev }}, spec: {spec} }}"
    )
}

fn requirements(pool: &LegacyPool) -> Vec<String> {
    let line = |r: &longshore_proto::types::v1::Requirement| {
        format!("{} {:?} {}", r.key, r.operator(), r.values.join(","))
    };
    pool.pool.requirements.iter().map(line).collect()
}

#[test]
fn what_is_free_is_defaulted() {
    let pool = project("{ providerRef: { name: default } }");
    assert_eq!(
        requirements(&pool),
        [
            "kubernetes.io/os In linux",
            "kubernetes.io/arch In amd64",
            "karpenter.sh/capacity-type In on-demand",
            "karpenter.k8s.aws/instance-category In c,m,r",
            "karpenter.k8s.aws/instance-generation Gt 2",
        ]
    );
    assert_eq!(pool.pool.node_class, "AWSNodeTemplate/default");
    assert_eq!(pool.pool.labels["karpenter.sh/provisioner-name"], "dev");
    assert!(pool.pool.legacy && pool.class.is_none());
    assert_eq!(pool.pool.expire_after, None);
    let disruption = pool.pool.disruption.unwrap();
    assert_eq!(disruption.consolidate_after, None);
}

#[test]
fn what_is_given_is_not_defaulted() {
    let pool = project(
        "{ providerRef: { name: default }, requirements: [
            { key: karpenter.k8s.aws/instance-family, operator: In, values: [t3] },
            { key: karpenter.sh/capacity-type, operator: In, values: [spot] },
            { key: kubernetes.io/arch, operator: Exists }] }",
    );
    assert_eq!(requirements(&pool)[3..], ["kubernetes.io/os In linux".to_owned()]);
    assert_eq!(pool.pool.requirements[2].operator(), Operator::Exists);
}

#[test]
fn disruption_as_it_was() {
    let table = [
        (
            "consolidation: { enabled: true }",
            ConsolidationPolicy::WhenEmptyOrUnderutilized,
            Some(0),
        ),
        ("consolidation: { enabled: false }", ConsolidationPolicy::WhenEmpty, None),
        ("ttlSecondsAfterEmpty: 30", ConsolidationPolicy::WhenEmpty, Some(30)),
    ];
    for (field, policy, after) in table {
        let pool = project(&format!("{{ providerRef: {{ name: d }}, {field} }}")).pool;
        let disruption = pool.disruption.unwrap();
        assert_eq!(disruption.policy(), policy, "{field}");
        assert_eq!(disruption.consolidate_after.map(|d| d.seconds), after, "{field}");
        let budgets = disruption.budgets.iter();
        let budgets: Vec<_> = budgets.map(|it| (it.nodes.as_str(), &it.reasons[..])).collect();
        let drifted = ["Drifted".to_owned()];
        assert_eq!(budgets, [("10%", &drifted[..])], "{field}: nothing else was bounded");
    }
    let pool = project("{ providerRef: { name: d }, ttlSecondsUntilExpired: 2592000 }").pool;
    assert_eq!(pool.expire_after.unwrap().seconds, 2_592_000);
}

#[test]
fn an_inline_provider_is_a_class_of_its_own() {
    let pool = project(
        "{ provider: { instanceProfile: p, amiFamily: Bottlerocket,
            subnetSelector: { Name: 'EksCluster/EKSVpc/PrivateSubnet*' },
            securityGroupSelector: { aws-ids: 'sg-1, sg-2' } } }",
    );
    let class = pool.class.unwrap();
    assert_eq!(
        (pool.pool.node_class.as_str(), class.name.as_str()),
        ("Provisioner/dev", "Provisioner/dev")
    );
    assert_eq!(class.ami_family, "Bottlerocket");
    assert_eq!(class.ami_terms[0].alias, "bottlerocket@latest");
    assert_eq!(class.subnet_terms[0].tags["Name"], "EksCluster/EKSVpc/PrivateSubnet*");
    let ids: Vec<_> = class.security_group_terms.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(ids, ["sg-1", "sg-2"]);
    assert_eq!(class.metadata_options.unwrap().http_put_response_hop_limit, 2);
}

#[test]
fn a_kubelet_configuration_makes_a_class_of_the_template() {
    let object: Provisioner = read(&manifest(
        "{ providerRef: { name: default }, kubeletConfiguration: { maxPods: 100 } }",
    ));
    let template: AWSNodeTemplate = read(
        "{ apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, metadata: { name: default },
           spec: { subnetSelector: { a: b }, securityGroupSelector: { a: b }, instanceProfile: p } }",
    );
    let pool = provisioner(&object, Some(&template)).unwrap();
    let class = pool.class.unwrap();
    assert_eq!(pool.pool.node_class, "Provisioner/dev");
    assert_eq!(class.kubelet.unwrap().max_pods, Some(100));
    assert_eq!(class.instance_profile, "p");
}

#[test]
fn what_contradicts_itself_says_so() {
    let table = [
        ("{ }", "Provisioner/dev: spec.providerRef: is missing; set it"),
        (
            "{ provider: {}, providerRef: { name: d } }",
            "Provisioner/dev: spec.provider: cannot be combined with providerRef; remove one of the two",
        ),
        (
            "{ providerRef: { name: d }, ttlSecondsAfterEmpty: 30, consolidation: { enabled: true } }",
            "Provisioner/dev: spec.ttlSecondsAfterEmpty: cannot be combined with \
             consolidation.enabled; remove one of the two",
        ),
    ];
    for (spec, expected) in table {
        let object: Provisioner = read(&manifest(spec));
        assert_eq!(provisioner(&object, None).unwrap_err().to_string(), expected);
    }
}

#[test]
fn commas_in_selectors_multiply() {
    let template: AWSNodeTemplate = read(
        "{ apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, metadata: { name: t },
           spec: { subnetSelector: { Name: 'a, b', env: 'x,y' }, amiSelector: { 'aws::name': image, 'aws::owners': self } } }",
    );
    let class = node_template(&template).unwrap();
    let pairs: Vec<_> =
        class.subnet_terms.iter().map(|t| format!("{}{}", t.tags["Name"], t.tags["env"])).collect();
    assert_eq!(pairs, ["ax", "ay", "bx", "by"]);
    let image = &class.ami_terms[0];
    assert_eq!((image.name.as_str(), image.owner.as_str()), ("image", "self"));
}
