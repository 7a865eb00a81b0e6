//! Pools and node classes in the index, those of the first API included.
//!
//! Invariant: a NodePool hides a Provisioner of the same name; a Provisioner is read again when the
//! template it names changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched, name_of};
use crate::api::hash;
use crate::api::{AWSNodeTemplate, EC2NodeClass, NodePool, Provisioner};
use crate::project::{Fault, legacy, node_class, node_template, pool};

impl Index {
    /// A pool's row in the view, read from a NodePool or a Provisioner.
    #[must_use]
    pub fn pool_row(&self, name: &str) -> Option<&wire::NodePool> {
        self.pools.rows.get(name)
    }
}

/// Pools and node classes as they were read.
#[derive(Debug, Default)]
pub struct Pools {
    pools: BTreeMap<String, Arc<NodePool>>,
    provisioners: BTreeMap<String, Arc<Provisioner>>,
    classes: BTreeMap<String, Arc<EC2NodeClass>>,
    templates: BTreeMap<String, Arc<AWSNodeTemplate>>,
    /// Karpenter's hashes of classes whose own they are proven to be. To find out is a search.
    hashes: BTreeMap<String, String>,
    /// Rows of the view of the former two.
    rows: BTreeMap<String, wire::NodePool>,
}

impl Pools {
    /// A NodePool.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&Arc<NodePool>> {
        self.pools.get(name)
    }

    /// All NodePools.
    pub fn all(&self) -> impl Iterator<Item = &Arc<NodePool>> {
        self.pools.values()
    }

    /// All Provisioners.
    pub fn all_provisioners(&self) -> impl Iterator<Item = &Arc<Provisioner>> {
        self.provisioners.values()
    }

    /// A Provisioner.
    #[must_use]
    pub fn provisioner(&self, name: &str) -> Option<&Arc<Provisioner>> {
        self.provisioners.get(name)
    }

    /// All EC2NodeClasses.
    pub fn all_classes(&self) -> impl Iterator<Item = &Arc<EC2NodeClass>> {
        self.classes.values()
    }

    /// An EC2NodeClass.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Arc<EC2NodeClass>> {
        self.classes.get(name)
    }

    /// The hash that an EC2NodeClass carries, when it is that of the class as it stands.
    #[must_use]
    pub fn class_hash(&self, name: &str) -> Option<&str> {
        self.hashes.get(name).map(String::as_str)
    }

    /// An AWSNodeTemplate.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<&Arc<AWSNodeTemplate>> {
        self.templates.get(name)
    }
}

impl Index {
    /// Pools and node classes as they were read.
    #[must_use]
    pub const fn pools(&self) -> &Pools {
        &self.pools
    }

    fn put_provisioner(&mut self, name: &str) -> Result<(), Fault> {
        let Some(provisioner) = self.pools.provisioners.get(name).cloned() else { return Ok(()) };
        let template = legacy::template_name(&provisioner.spec);
        let template = template.and_then(|name| self.pools.templates.get(name));
        let read = legacy::provisioner(&provisioner, template.map(Arc::as_ref))?;
        match read.class {
            Some(class) => self.view.put(Kind::NodeClass(class)),
            None => self.remove_class("Provisioner", name),
        };
        if !self.pools.pools.contains_key(name) {
            self.put_pool(read.pool);
        }
        Ok(())
    }

    fn put_pool(&mut self, row: wire::NodePool) {
        self.pools.rows.insert(row.name.clone(), row.clone());
        self.view.put(Kind::NodePool(row));
    }

    /// Reads Provisioners of a template again. One that became unreadable keeps its last state
    /// until it is itself observed again; only the template changed.
    fn refresh_users_of(&mut self, template: &str) {
        let users = self.pools.provisioners.iter();
        let users = users.filter(|(_, p)| legacy::template_name(&p.spec) == Some(template));
        for name in users.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            if let Err(fault) = self.put_provisioner(&name) {
                tracing::warn!(%fault, "a Provisioner does not suit its changed template");
            }
        }
    }

    /// Looks whether a class carries its own hash.
    fn prove_class(&mut self, name: &str) {
        let authority = self.cluster().map_or("", |facts| facts.ca_bundle.as_str());
        let class = self.pools.classes.get(name);
        match class.and_then(|class| hash::of_class(class, authority)) {
            Some(hash) => self.pools.hashes.insert(name.to_owned(), hash),
            None => self.pools.hashes.remove(name),
        };
    }

    /// The same of all classes: the certificate authority is part of each hash.
    pub(super) fn prove_classes(&mut self) {
        let names: Vec<_> = self.pools.classes.keys().cloned().collect();
        names.iter().for_each(|name| self.prove_class(name));
    }

    fn remove_class(&mut self, kind: &str, name: &str) -> bool {
        self.view.remove(&Key::new(ObjectKind::NodeClass, format!("{kind}/{name}")))
    }

    fn remove_pool(&mut self, name: &str) {
        self.pools.rows.remove(name);
        self.view.remove(&Key::new(ObjectKind::NodePool, name));
    }
}

impl Watched for NodePool {
    const SOURCE: Source = Source::NodePool;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let row = pool::pool(&self)?;
        index.pools.pools.insert(row.name.clone(), Arc::new(self));
        index.put_pool(row);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.pools.pools.remove(name);
        index.remove_pool(name);
        // A Provisioner of that name is no longer hidden; it was readable when it was observed.
        if let Err(fault) = index.put_provisioner(name) {
            tracing::warn!(%fault, "the Provisioner behind a removed NodePool cannot be used");
        }
    }
}

impl Watched for Provisioner {
    const SOURCE: Source = Source::Provisioner;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let (_, name) = name_of(&self.metadata);
        index.pools.provisioners.insert(name.clone(), Arc::new(self));
        index.put_provisioner(&name)
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.pools.provisioners.remove(name);
        index.remove_class("Provisioner", name);
        if !index.pools.pools.contains_key(name) {
            index.remove_pool(name);
        }
    }
}

impl Watched for EC2NodeClass {
    const SOURCE: Source = Source::EC2NodeClass;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let row = node_class::ec2_node_class(&self)?;
        let (_, name) = name_of(&self.metadata);
        let new = Arc::new(self);
        let before = index.pools.classes.insert(name.clone(), Arc::clone(&new));
        // Most changes are of its status.
        let notes = |class: &Self| class.metadata.annotations.clone();
        let same = |old: Arc<Self>| old.spec == new.spec && notes(&old) == notes(&new);
        if !before.is_some_and(same) {
            index.prove_class(&name);
        }
        index.view.put(Kind::NodeClass(row));
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.pools.classes.remove(name);
        index.pools.hashes.remove(name);
        index.remove_class("EC2NodeClass", name);
    }
}

impl Watched for AWSNodeTemplate {
    const SOURCE: Source = Source::AWSNodeTemplate;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let row = node_template::node_template(&self)?;
        let (_, name) = name_of(&self.metadata);
        index.pools.templates.insert(name.clone(), Arc::new(self));
        index.view.put(Kind::NodeClass(row));
        index.refresh_users_of(&name);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.pools.templates.remove(name);
        index.remove_class("AWSNodeTemplate", name);
        index.refresh_users_of(name);
    }
}
