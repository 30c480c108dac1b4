//! The workshop, where the works of add-ons are made from templates: each once for what it is made from, however often it is looked at.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use drover_api::{
    addon::{AddOnDeploymentConfigSpec, ManagedClusterAddOn},
    drover::SetConfig,
    grammar::{SetFingerprint, SpecHash},
    names::{HOSTING_CLUSTER_ANNOTATION, IMAGE_REGISTRIES_ANNOTATION, SET_ANNOTATION},
    reference::ClusterName,
    work::ManifestWork,
};
use drover_engine::{
    addon::{configuration::ConfigName, progress::Maker},
    hash::spec_hash,
    revision::Set,
    template::{self, Blueprint, Expected, Holds, Inputs, Rendering, registries_of, render_holding},
};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use kube::ResourceExt;

use super::AddOns;
use crate::cache::Cache;

/// How many templates are kept read. There are as many as are being rolled out at a time, which are few.
const TEMPLATES: usize = 64;

/// A template that was read, or why it can not be.
type Read = Result<Arc<Blueprint>, String>;

/// Templates that were read, by name and content.
#[derive(Default)]
struct Blueprints {
    kept: BTreeMap<(String, SpecHash), (u64, Read)>,
    /// How often one was asked for.
    asked: u64,
}

impl Blueprints {
    fn get(&mut self, key: &(String, SpecHash)) -> Option<Read> {
        self.asked += 1;
        let (last, blueprint) = self.kept.get_mut(key)?;
        *last = self.asked;
        Some(blueprint.clone())
    }

    /// Keeps a template. If there are too many, the one goes that nobody has asked for the longest.
    fn keep(&mut self, key: (String, SpecHash), blueprint: Read) {
        let oldest = self.kept.iter().min_by_key(|(_, (last, _))| *last).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest.filter(|_| self.kept.len() >= TEMPLATES) {
            self.kept.remove(&oldest);
        }
        self.kept.insert(key, (self.asked, blueprint));
    }
}

/// What is kept of what was made.
#[derive(Default)]
pub(crate) struct Workshop {
    blueprints: Mutex<Blueprints>,
    /// What was last made for each add-on on a cluster.
    made: Mutex<BTreeMap<ObjectKey, Arc<Made>>>,
    /// Where it is counted how often something is made.
    pub(crate) metrics: Metrics,
}

/// What the works of an add-on on a cluster are made from, besides what never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    set: SetFingerprint,
    install_namespace: Option<String>,
    registries: Option<String>,
    owner: Option<String>,
}

/// Works that were made, without what they apply.
pub(crate) struct Made {
    order: Order,
    /// The namespace that the agent runs in; not known if nothing could be made.
    namespace: Option<String>,
    /// The works, or why there are none.
    works: Result<Vec<Expected>, String>,
}

impl Made {
    /// Whether there is anything that can be made.
    pub(crate) fn is_possible(&self) -> bool {
        self.works.is_ok()
    }
}

/// How the works of an add-on on one cluster come about.
pub(crate) enum Making {
    /// Its own manager makes them.
    ByManager,
    /// The hub has made them, but would not make them so now: it renders otherwise than the Drover that has made them, or has lost what
    /// they were made from. They stay.
    Former(Option<Arc<Blueprint>>),
    /// The hub makes them, and has not got to it yet.
    NotYet(Arc<Blueprint>),
    /// They can not be made: the template can not be read.
    Unreadable(String),
    /// They are to be these, or can not be made.
    Made(Arc<Blueprint>, Arc<Made>),
}

impl Making {
    /// Who makes the works, as a proof goes by it.
    pub(crate) fn maker(&self) -> Maker<'_> {
        match self {
            Self::ByManager => Maker::Manager,
            Self::Former(_) => Maker::Former,
            Self::NotYet(_) => Maker::NotYet,
            Self::Unreadable(why) => Maker::Nobody(why),
            Self::Made(_, made) => match &made.works {
                Ok(works) => Maker::Template(works),
                Err(why) => Maker::Nobody(why),
            },
        }
    }

    /// The template, if there is one that can be read.
    pub(crate) fn blueprint(&self) -> Option<&Arc<Blueprint>> {
        match self {
            Self::ByManager | Self::Unreadable(_) => None,
            Self::Former(blueprint) => blueprint.as_ref(),
            Self::NotYet(blueprint) | Self::Made(blueprint, _) => Some(blueprint),
        }
    }

    /// The namespace that the agent runs in, if it is known.
    pub(crate) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Made(_, made) => made.namespace.as_deref(),
            _ => None,
        }
    }
}

/// Whether works are to be made from a template.
enum Begun {
    /// They come about otherwise.
    Otherwise(Making),
    /// They are made from this one, and may have been before.
    Here(Arc<Blueprint>, Option<Arc<Made>>),
}

/// A set that an add-on on a cluster was given, with what a user has asked for instead.
#[derive(Clone, Copy)]
pub(crate) struct Commission<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) on_cluster: &'a ManagedClusterAddOn,
    pub(crate) set: &'a Set,
}

impl Workshop {
    /// How the works come about, as far as that is known without making them.
    pub(crate) fn look(&self, commission: &Commission<'_>) -> Making {
        match self.begin(commission) {
            Begun::Otherwise(making) => making,
            Begun::Here(blueprint, None) => Making::NotYet(blueprint),
            Begun::Here(blueprint, Some(made)) => Making::Made(blueprint, made),
        }
    }

    /// How the works come about; they are made if they have not been. What was made just now is handed over with it.
    pub(crate) fn make(&self, commission: &Commission<'_>) -> (Making, Option<Rendering>) {
        let blueprint = match self.begin(commission) {
            Begun::Otherwise(making) => return (making, None),
            Begun::Here(blueprint, Some(made)) => return (Making::Made(blueprint, made), None),
            Begun::Here(blueprint, None) => blueprint,
        };
        let rendering = self.render(commission, &blueprint, &Holds::new());
        let made = Arc::new(match &rendering {
            Ok(rendering) => Made {
                order: commission.order(),
                namespace: Some(rendering.namespace.clone()),
                works: Ok(rendering.works.iter().map(Expected::of).collect()),
            },
            Err(why) => Made { order: commission.order(), namespace: None, works: Err(why.clone()) },
        });
        self.all_made().insert(ObjectKey::of(commission.on_cluster), Arc::clone(&made));
        (Making::Made(blueprint, made), rendering.ok())
    }

    /// Makes the works, whether they have been made or not, with what they have to hold of others.
    pub(crate) fn render(
        &self,
        commission: &Commission<'_>,
        blueprint: &Blueprint,
        holds: &Holds,
    ) -> Result<Rendering, String> {
        self.metrics.stepped(AddOns::NAME, "render", 1);
        commission.render(blueprint, holds)
    }

    /// Forgets what was made for an add-on that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.all_made().remove(key);
    }

    /// Finds out whether the works are to be made from the template. What was made before is asked for first: to tell whether the settings
    /// are still there costs a look at all of them.
    fn begin(&self, commission: &Commission<'_>) -> Begun {
        let Some(template) = commission.set.template() else { return Begun::Otherwise(Making::ByManager) };
        let blueprint = match self.blueprint(commission.cache, template) {
            None => return Begun::Otherwise(Making::Former(None)),
            Some(Err(why)) => return Begun::Otherwise(Making::Unreadable(why)),
            Some(Ok(blueprint)) => blueprint,
        };
        let made = self.kept(commission);
        if made.is_none() && (commission.is_of_another_epoch() || commission.is_lost()) {
            return Begun::Otherwise(Making::Former(Some(blueprint)));
        }
        if commission.is_hosted() {
            let why = format!(
                "an add-on that is made from a template runs on its own cluster: remove the annotation {HOSTING_CLUSTER_ANNOTATION}"
            );
            return Begun::Otherwise(Making::Unreadable(why));
        }
        if blueprint.addon() != commission.on_cluster.name_any() {
            let (template, addon) = (blueprint.name(), blueprint.addon());
            let why = format!("the template {template} belongs to the add-on {addon}");
            return Begun::Otherwise(Making::Unreadable(why));
        }
        Begun::Here(blueprint, made)
    }

    /// A template; nothing if its content is kept nowhere.
    fn blueprint(&self, cache: &Cache, template: &SetConfig) -> Option<Read> {
        let name = &template.config.referent.name;
        let key = (name.clone(), template.config.spec_hash.clone());
        if let Some(blueprint) = self.blueprints().get(&key) {
            return Some(blueprint);
        }
        let blueprint = Blueprint::read(name, &content(cache, template)?);
        let blueprint = blueprint.map(Arc::new).map_err(|flaw| flaw.to_string());
        self.blueprints().keep(key, blueprint.clone());
        Some(blueprint)
    }

    /// What was made before from the same.
    fn kept(&self, commission: &Commission<'_>) -> Option<Arc<Made>> {
        let made = self.all_made();
        let made = made.get(&ObjectKey::of(commission.on_cluster))?;
        (made.order == commission.order()).then(|| Arc::clone(made))
    }

    fn blueprints(&self) -> MutexGuard<'_, Blueprints> {
        self.blueprints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_made(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Arc<Made>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Commission<'_> {
    /// Whether the works are there, and were made of this very set by a Drover that renders otherwise. Where there is nothing yet, this one
    /// makes it: a cluster that is new, or has something of its own, can not wait for a turn that it has had already.
    fn is_of_another_epoch(&self) -> bool {
        let set = self.set.fingerprint();
        let is_of_set =
            |work: &&ManifestWork| work.annotations().get(SET_ANNOTATION).is_some_and(|it| it == set.as_str());
        self.set.epoch() != self.cache.epoch && self.cache.addons.works_of(self.on_cluster).iter().any(is_of_set)
    }

    /// Whether the settings are kept nowhere any more.
    fn is_lost(&self) -> bool {
        self.set.settings().is_some_and(|config| content(self.cache, config).is_none())
    }

    /// Whether somebody wants the agent to run on another cluster.
    fn is_hosted(&self) -> bool {
        let host = self.on_cluster.annotations().get(HOSTING_CLUSTER_ANNOTATION);
        host.is_some_and(|host| !host.is_empty())
    }

    fn order(&self) -> Order {
        Order {
            set: self.set.fingerprint(),
            install_namespace: self.on_cluster.spec.install_namespace.clone(),
            registries: self.registries().map(str::to_owned),
            owner: self.on_cluster.metadata.uid.clone(),
        }
    }

    fn cluster(&self) -> ClusterName {
        ClusterName::from(self.on_cluster.metadata.namespace.as_deref().unwrap_or_default())
    }

    fn registries(&self) -> Option<&str> {
        let cluster = self.cache.cluster(&self.cluster())?;
        cluster.annotations().get(IMAGE_REGISTRIES_ANNOTATION).map(String::as_str)
    }

    fn render(&self, blueprint: &Blueprint, holds: &Holds) -> Result<Rendering, String> {
        let settings = self.settings()?;
        let cluster = self.cache.cluster(&self.cluster());
        let registries =
            cluster.map_or(Ok(Vec::new()), |cluster| registries_of(cluster)).map_err(|flaw| flaw.to_string())?;
        let Self { on_cluster, set, .. } = *self;
        let inputs = Inputs { on_cluster, set, blueprint, settings: settings.as_ref(), registries: &registries };
        render_holding(&inputs, holds).map_err(|flaw| flaw.to_string())
    }

    /// The namespace that the agent will run in, if that can be told.
    pub(crate) fn namespace(&self, blueprint: &Blueprint) -> Option<String> {
        let settings = self.settings().ok()?;
        let Self { on_cluster, set, .. } = *self;
        let inputs = Inputs { on_cluster, set, blueprint, settings: settings.as_ref(), registries: &[] };
        Some(template::install_namespace(&inputs))
    }

    fn settings(&self) -> Result<Option<AddOnDeploymentConfigSpec>, String> {
        let Some(config) = self.set.settings() else { return Ok(None) };
        let name = ConfigName::of(config);
        let content = content(self.cache, config).ok_or_else(|| format!("the content of {name} is kept nowhere"))?;
        template::settings(&name.to_string(), &content).map(Some).map_err(|flaw| flaw.to_string())
    }
}

/// A content that is what its hash says. One that somebody has forged is as good as lost.
fn content(cache: &Cache, config: &SetConfig) -> Option<Arc<str>> {
    cache.configs.content(config).filter(|content| spec_hash(content) == config.config.spec_hash)
}

#[cfg(test)]
mod tests;
