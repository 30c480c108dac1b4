//! Configurations: which of them add-ons refer to, what they contain, and whom a change concerns.
//!
//! A configuration can be of any type, and which there are is known only from who refers to them. So a type is watched from
//! when the first refers to it until the last does not any more. Templates and hub configurations always are: they say
//! which versions of an add-on there are.

mod content;
mod definition;
mod mention;
mod revision;
#[cfg(test)]
mod tests;
mod watching;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ConfigGroupResource, ConfigReferent, ManagedClusterAddOn},
    drover::{AddOnRollout, SetConfig},
    grammar::SpecHash,
};
use drover_engine::addon::{
    catalog::Found,
    config_revision::{ContentSources, Evidence, TypeState},
    configuration::Problem,
};
use drover_runtime::{
    informer::{Freshness, Member, Refusal, Sighting},
    store::{Change, ObjectKey, Store},
};
use tokio::sync::watch;
use tracing::{info, warn};

pub(crate) use self::{
    content::Config,
    revision::{Revisions, missing},
    watching::Watching,
};
use self::{
    content::{Stored, own_types},
    definition::Definition,
    mention::{Mention, Mentions},
    revision::Kept,
};
use crate::cache::{Cache, Queues, remove_from};

/// The configurations that somebody refers to, and their types.
pub(crate) struct Configs {
    types: BTreeMap<ConfigGroupResource, Type>,
    /// The templates of each add-on.
    templates: BTreeMap<String, BTreeSet<ObjectKey>>,
    definitions: Store<Definition>,
    kept: Kept,
    /// The types that are to be watched.
    wanted: watch::Sender<Wanted>,
    freshness: Freshness,
    /// Whom the last changes concern.
    concerned: Concerned,
}

/// Whom changes of configurations concern.
#[derive(Debug, Default)]
struct Concerned {
    users: BTreeSet<User>,
    /// The add-ons whose templates are others.
    templated: BTreeSet<String>,
}

/// The types that are to be watched.
pub(crate) type Wanted = BTreeMap<ConfigGroupResource, Arc<Ticket>>;

/// What a type is watched by, from when the first refers to it until the last does not any more.
#[derive(Debug)]
pub(crate) struct Ticket {
    /// Nothing is given to clusters before a type that somebody refers to has been listed.
    member: Arc<Member>,
    /// Told whenever the type's definition has changed.
    definition: watch::Sender<()>,
}

/// A type that somebody refers to.
struct Type {
    ticket: Arc<Ticket>,
    state: TypeState,
    /// All configurations of the type, be they referred to or not.
    configs: Store<Stored>,
    /// The configurations that have each content.
    contents: BTreeMap<SpecHash, BTreeSet<ObjectKey>>,
    /// Who refers to the type.
    users: BTreeSet<User>,
    /// Who refers to which configuration.
    users_of: BTreeMap<ObjectKey, BTreeSet<User>>,
}

/// The state of a type that the server refuses to list.
fn state_of(refusal: Refusal) -> TypeState {
    match refusal {
        Refusal::NoSuchKind => TypeState::Absent,
        Refusal::Forbidden => TypeState::Forbidden,
        Refusal::Failing => TypeState::Unknown,
    }
}

/// Somebody who refers to configurations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum User {
    /// The hub itself, to some types as a whole.
    Hub,
    /// An add-on.
    AddOn(ObjectKey),
    /// An add-on on one cluster.
    OnCluster(ObjectKey),
}

impl User {
    /// The add-on, wherever it is.
    fn addon(&self) -> Option<ObjectKey> {
        match self {
            Self::Hub => None,
            Self::AddOn(key) | Self::OnCluster(key) => Some(ObjectKey::cluster_wide(&key.name)),
        }
    }
}

impl Configs {
    pub(crate) fn new(namespace: &str, freshness: &Freshness) -> Self {
        Self {
            types: BTreeMap::new(),
            templates: BTreeMap::new(),
            definitions: Store::default(),
            kept: Kept::new(namespace),
            wanted: watch::Sender::new(Wanted::new()),
            freshness: freshness.clone(),
            concerned: Concerned::default(),
        }
    }

    /// Watches templates and hub configurations from now on, whoever refers to them.
    pub(crate) fn watch_own_types(&mut self, queues: &Queues) {
        let own = own_types().map(|group_resource| Mention { group_resource, object: None });
        self.refer(&User::Hub, &Mentions::new(), &own.into(), queues);
    }

    /// The types that are to be watched, now and later.
    pub(crate) fn wanted(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    /// What there is of a configuration.
    pub(crate) fn find(&self, config: &AddOnConfig) -> Found {
        let Some(type_) = self.types.get(&config.group_resource) else { return Found::NotYet };
        let key = key_of(config);
        match type_.state {
            TypeState::Unknown => Found::NotYet,
            TypeState::Absent => Found::NoSuchType,
            TypeState::Forbidden => Found::Forbidden,
            TypeState::Listed => match type_.configs.get(&key) {
                Some(config) => config.spec.found(),
                // It can not be read, and nobody knows what it says.
                None if type_.configs.has(&key) => Found::NotYet,
                None => Found::Missing,
            },
        }
    }

    /// The add-on that a configuration is a template of, if it is one.
    pub(crate) fn owner_of_template(&self, config: &AddOnConfig) -> Option<&str> {
        let type_ = self.types.get(&config.group_resource).filter(|type_| type_.state == TypeState::Listed)?;
        type_.configs.get(&key_of(config))?.spec.template_of()
    }

    /// Why the templates that exist are not known, if they are not.
    pub(crate) fn are_templates_unknown(&self) -> Option<Problem> {
        let state = self.types.get(&content::templates()).map_or(TypeState::Unknown, |type_| type_.state);
        state.why_templates_are_unknown()
    }

    /// The templates of an add-on.
    pub(crate) fn templates_of(&self, addon: &str) -> impl Iterator<Item = (&ObjectKey, &Config)> {
        let templates = self.types.get(&content::templates()).map(|type_| &type_.configs);
        let keys = self.templates.get(addon).into_iter().flatten();
        keys.filter_map(move |key| Some((key, &templates?.get(key)?.spec)))
    }

    /// The add-ons that refer to a configuration that asks for a version, be it on one cluster.
    pub(crate) fn users_of_hub_config(&self, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let users = self.users_of_hub_configs().and_then(|users_of| users_of.get(key));
        users.into_iter().flatten().filter_map(User::addon).collect()
    }

    fn users_of_hub_configs(&self) -> Option<&BTreeMap<ObjectKey, BTreeSet<User>>> {
        self.types.get(&content::hub_configs()).map(|type_| &type_.users_of)
    }

    /// Marks the configurations by which versions of an add-on are asked for.
    pub(crate) fn mark_hub_configs_of(&self, addon: &str, queues: &Queues) {
        let is_used = |user: &User| user.addon().is_some_and(|user| &*user.name == addon);
        for (key, users) in self.users_of_hub_configs().into_iter().flatten() {
            if users.iter().any(is_used) {
                queues.hub_configs.mark(key.clone());
            }
        }
    }

    /// What is remembered of an add-on's rollouts.
    pub(crate) fn rollout(&self, key: &ObjectKey) -> Option<&AddOnRollout> {
        self.kept.rollouts.get(key).map(|rollout| &**rollout)
    }

    /// Where a content exists.
    fn sources(&self, group_resource: &ConfigGroupResource, hash: &SpecHash) -> ContentSources {
        let type_ = self.types.get(group_resource);
        ContentSources {
            type_state: type_.map(|type_| type_.state),
            is_live: type_.is_some_and(|type_| type_.contents.contains_key(hash)),
            stored: Evidence::of(self.kept.keeps((group_resource, hash)), || self.kept.has_unreadable_revision()),
            recorded: Evidence::of(self.kept.is_recorded((group_resource, hash)), || {
                self.kept.rollouts.unknown().next().is_some()
            }),
        }
    }

    /// A configuration that has this content: the one that is meant, or any other of its type.
    fn with_content(&self, SetConfig { group_resource, config }: &SetConfig) -> Option<(AddOnConfig, &Config)> {
        let type_ = self.types.get(group_resource)?;
        let meant = AddOnConfig { group_resource: group_resource.clone(), referent: config.referent.clone() };
        let those = type_.contents.get(&config.spec_hash)?;
        let key = those.get(&key_of(&meant)).or_else(|| those.first())?;
        let namespace = Some(key.namespace.to_string()).filter(|namespace| !namespace.is_empty());
        let source = AddOnConfig { referent: ConfigReferent { namespace, name: key.name.to_string() }, ..meant };
        Some((source, &type_.configs.get(key)?.spec))
    }

    /// The content that is meant, from whoever has it: it is the same wherever it is, and no other can be taken for it.
    pub(crate) fn content(&self, config: &SetConfig) -> Option<Arc<str>> {
        let live = self.with_content(config).and_then(|(_, live)| live.content.clone());
        live.or_else(|| self.kept.content(&config.group_resource, &config.config.spec_hash))
    }

    /// Whether nothing has the content of a configuration of a revision any more.
    pub(crate) fn is_lost(&self, SetConfig { group_resource, config }: &SetConfig) -> bool {
        self.sources(group_resource, &config.spec_hash).is_lost()
    }

    /// Takes note of the configurations that an add-on refers to now.
    pub(crate) fn cma_changed(&mut self, change: &Change<ClusterManagementAddOn>, queues: &Queues) {
        let of = |addon: &Option<Arc<ClusterManagementAddOn>>| addon.as_ref().map(|it| mention::of_addon(it));
        let (old, new) = (of(&change.old).unwrap_or_default(), of(&change.new).unwrap_or_default());
        self.refer(&User::AddOn(change.key.clone()), &old, &new, queues);
    }

    /// Takes note of the configurations that an add-on refers to now on one cluster.
    pub(crate) fn mca_changed(&mut self, change: &Change<ManagedClusterAddOn>, queues: &Queues) {
        let of = |addon: &Option<Arc<ManagedClusterAddOn>>| addon.as_ref().map(|it| mention::on_cluster(it));
        let (old, new) = (of(&change.old).unwrap_or_default(), of(&change.new).unwrap_or_default());
        self.refer(&User::OnCluster(change.key.clone()), &old, &new, queues);
    }

    fn refer(&mut self, user: &User, old: &Mentions, new: &Mentions, queues: &Queues) {
        let hub_configs = content::hub_configs();
        for mention in new.symmetric_difference(old).filter(|mention| mention.group_resource == hub_configs) {
            mention.object.iter().for_each(|key| queues.hub_configs.mark(key.clone()));
        }
        for mention in new.difference(old) {
            self.add(user, mention);
        }
        // What is still referred to has to stay in between, or its watch would begin anew.
        for mention in old.difference(new) {
            self.remove(user, mention, queues);
        }
    }

    fn add(&mut self, user: &User, Mention { group_resource, object }: &Mention) {
        if !self.types.contains_key(group_resource) {
            let type_ = Type::new(group_resource, &self.freshness);
            let ticket = Arc::clone(&type_.ticket);
            self.wanted.send_modify(|wanted| drop(wanted.insert(group_resource.clone(), ticket)));
            self.types.insert(group_resource.clone(), type_);
        }
        let Some(type_) = self.types.get_mut(group_resource) else { return };
        let users = match object {
            None => &mut type_.users,
            Some(key) => type_.users_of.entry(key.clone()).or_default(),
        };
        users.insert(user.clone());
    }

    fn remove(&mut self, user: &User, Mention { group_resource, object }: &Mention, queues: &Queues) {
        let Some(type_) = self.types.get_mut(group_resource) else { return };
        match object {
            None => drop(type_.users.remove(user)),
            Some(key) => {
                if let Some(users) = type_.users_of.get_mut(key) {
                    users.remove(user);
                    if users.is_empty() {
                        type_.users_of.remove(key);
                    }
                }
            }
        }
        if type_.users.is_empty() {
            self.forget(group_resource, queues);
        }
    }

    /// Stops watching a type that nobody refers to.
    fn forget(&mut self, group_resource: &ConfigGroupResource, queues: &Queues) {
        self.clear(group_resource, queues);
        self.types.remove(group_resource);
        self.wanted.send_modify(|wanted| drop(wanted.remove(group_resource)));
        self.kept.mark_type(group_resource, queues);
    }

    /// Takes note of what was seen of a type by who watches it for this ticket.
    fn see(
        &mut self,
        group_resource: &ConfigGroupResource,
        ticket: &Arc<Ticket>,
        sighting: Sighting<Stored>,
        queues: &Queues,
    ) {
        let Some(type_) = self.types.get_mut(group_resource).filter(|type_| type_.is_watched_by(ticket)) else {
            return;
        };
        match sighting {
            Sighting::ListBegins => type_.configs.begin_list(),
            Sighting::Object(config) => {
                let change = type_.configs.apply(config);
                self.changed(group_resource, change, queues);
            }
            Sighting::Damaged(damaged) => {
                type_.configs.keep(&ObjectKey::of_meta(&damaged.metadata), damaged.defect);
            }
            Sighting::Gone(last) => {
                let change = type_.configs.delete(&last);
                self.changed(group_resource, change, queues);
            }
            Sighting::ListEnds => {
                let changes = type_.configs.end_list();
                self.changed(group_resource, changes, queues);
                self.settle(group_resource, TypeState::Listed, queues);
            }
            Sighting::Broken => {}
            Sighting::Refused(refusal) => self.settle(group_resource, state_of(refusal), queues),
        }
    }

    /// Has a type that somebody refers to consist of these objects.
    #[cfg(test)]
    pub(crate) fn list_all(
        &mut self,
        group_resource: &ConfigGroupResource,
        objects: impl IntoIterator<Item = kube::api::DynamicObject>,
        queues: &Queues,
    ) {
        let ticket = self.types.get(group_resource).map(|type_| Arc::clone(&type_.ticket)).expect("it is referred to");
        self.see(group_resource, &ticket, Sighting::ListBegins, queues);
        for object in objects {
            self.see(group_resource, &ticket, Sighting::Object(Config::store(group_resource, &object)), queues);
        }
        self.see(group_resource, &ticket, Sighting::ListEnds, queues);
    }

    /// Takes note that a type is served otherwise than before, so that nothing is known of it any more.
    fn start_anew(&mut self, group_resource: &ConfigGroupResource, ticket: &Arc<Ticket>, queues: &Queues) {
        if self.types.get(group_resource).is_some_and(|type_| type_.is_watched_by(ticket)) {
            self.settle(group_resource, TypeState::Unknown, queues);
        }
    }

    /// Takes note of what is known of a type now.
    fn settle(&mut self, group_resource: &ConfigGroupResource, state: TypeState, queues: &Queues) {
        if state != TypeState::Listed {
            self.clear(group_resource, queues);
        }
        let Some(type_) = self.types.get_mut(group_resource) else { return };
        if std::mem::replace(&mut type_.state, state) == state {
            return;
        }
        tell(group_resource, state);
        self.concerned.users.extend(type_.users.iter().chain(type_.users_of.values().flatten()).cloned());
        self.kept.mark_type(group_resource, queues);
    }

    /// Forgets the configurations of a type.
    fn clear(&mut self, group_resource: &ConfigGroupResource, queues: &Queues) {
        let Some(type_) = self.types.get_mut(group_resource) else { return };
        type_.configs.begin_list();
        let changes = type_.configs.end_list();
        self.changed(group_resource, changes, queues);
    }

    /// Takes note of changes of configurations, and of whom they concern.
    fn changed(
        &mut self,
        group_resource: &ConfigGroupResource,
        changes: impl IntoIterator<Item = Change<Stored>>,
        queues: &Queues,
    ) {
        for Change { key, old, new } in changes {
            let (old, new) = (old.as_deref().map(|old| &old.spec), new.as_deref().map(|new| &new.spec));
            if old == new {
                continue;
            }
            if let Some(type_) = self.types.get_mut(group_resource) {
                for content in type_.recount(&key, old, new) {
                    self.kept.mark(group_resource, &content, queues);
                    self.kept.mark_who_misses(group_resource, &content, queues);
                }
                self.concerned.users.extend(type_.users_of.get(&key).into_iter().flatten().cloned());
            }
            self.sort_template(&key, old, new);
        }
    }

    /// Keeps the templates of each add-on together.
    fn sort_template(&mut self, key: &ObjectKey, old: Option<&Config>, new: Option<&Config>) {
        let (old, new) = (old.and_then(Config::template_of), new.and_then(Config::template_of));
        if let Some(addon) = old {
            remove_from(&mut self.templates, &addon.to_owned(), key);
        }
        if let Some(addon) = new {
            self.templates.entry(addon.to_owned()).or_default().insert(key.clone());
        }
        self.concerned.templated.extend(old.into_iter().chain(new).map(str::to_owned));
    }

    /// Has the type that is defined by a CustomResourceDefinition of this name looked at again.
    fn definition_changed(&mut self, name: &str) {
        let Some((resource, group)) = name.split_once('.') else { return };
        let group_resource = ConfigGroupResource { group: group.to_owned(), resource: resource.to_owned() };
        if let Some(type_) = self.types.get(&group_resource) {
            type_.ticket.definition.send_replace(());
        }
    }
}

impl Type {
    fn new(group_resource: &ConfigGroupResource, freshness: &Freshness) -> Self {
        let member = Arc::new(freshness.join(&group_resource.to_string()));
        Self {
            ticket: Arc::new(Ticket { member, definition: watch::Sender::new(()) }),
            state: TypeState::Unknown,
            configs: Store::default(),
            contents: BTreeMap::new(),
            users: BTreeSet::new(),
            users_of: BTreeMap::new(),
        }
    }

    /// Who still watches for somebody who has gone is not heard.
    fn is_watched_by(&self, ticket: &Arc<Ticket>) -> bool {
        Arc::ptr_eq(&self.ticket, ticket)
    }

    /// Takes note of which configurations have which content, and returns the contents that there were not before, or are no more.
    fn recount(&mut self, key: &ObjectKey, old: Option<&Config>, new: Option<&Config>) -> Vec<SpecHash> {
        let (old, new) = (old.map(|old| &old.hash), new.map(|new| &new.hash));
        if old == new {
            return Vec::new();
        }
        let before = |hash: &&SpecHash| !self.contents.contains_key(*hash);
        let mut turned: Vec<_> = new.filter(before).cloned().into_iter().collect();
        if let Some(new) = new {
            self.contents.entry(new.clone()).or_default().insert(key.clone());
        }
        if let Some(old) = old {
            remove_from(&mut self.contents, old, key);
            turned.extend(Some(old).filter(|old| !self.contents.contains_key(*old)).cloned());
        }
        turned
    }
}

impl Cache {
    /// Takes note of what was seen of a type by who watches it for this ticket.
    fn see_config(
        &mut self,
        group_resource: &ConfigGroupResource,
        ticket: &Arc<Ticket>,
        sighting: Sighting<Stored>,
        queues: &Queues,
    ) {
        self.configs.see(group_resource, ticket, sighting, queues);
        self.mark_concerned(queues);
    }

    /// Takes note that a type is served otherwise than before, so that nothing is known of it any more.
    fn start_config_anew(&mut self, group_resource: &ConfigGroupResource, ticket: &Arc<Ticket>, queues: &Queues) {
        self.configs.start_anew(group_resource, ticket, queues);
        self.mark_concerned(queues);
    }

    /// Marks whom the last changes of configurations concern.
    fn mark_concerned(&mut self, queues: &Queues) {
        let Concerned { users, templated } = std::mem::take(&mut self.configs.concerned);
        for user in users {
            match user {
                // Whether it is known which versions there are concerns everybody who asks for one.
                User::Hub => self.mark_all_versions(queues),
                User::AddOn(key) => queues.rollouts.mark(key),
                User::OnCluster(key) => queues.mark_overridden(&key),
            }
        }
        for addon in templated {
            self.mark_versions_of(&addon, queues);
        }
    }
}

/// Says what is known of a type, where somebody can do something about it.
fn tell(group_resource: &ConfigGroupResource, state: TypeState) {
    match state {
        TypeState::Listed => info!(type = %group_resource, "configurations of this type are watched"),
        TypeState::Absent => {
            info!(type = %group_resource, "there is no such type of configurations; they are watched once there is");
        }
        TypeState::Forbidden => {
            warn!(type = %group_resource, "the hub may not read configurations of this type: grant it by a ClusterRole with the label drover.dev/hub-reads-configs=true");
        }
        // Whoever watches it has said why.
        TypeState::Unknown => {}
    }
}

/// The object that an add-on refers to.
fn key_of(config: &AddOnConfig) -> ObjectKey {
    let namespace = config.referent.namespace.as_deref().unwrap_or_default();
    ObjectKey::namespaced(namespace, &config.referent.name)
}
