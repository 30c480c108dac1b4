//! Renders the works of add-ons from templates, once for each set of inputs.

use std::{collections::BTreeMap, sync::Arc};

use drover_api::{
    addon::{AddOnDeploymentConfigSpec, ManagedClusterAddOn},
    drover::SetConfig,
    grammar::{SetFingerprint, SpecHash},
    names::{HOSTING_CLUSTER_ANNOTATION, IMAGE_REGISTRIES_ANNOTATION},
    reference::ClusterName,
};
use drover_engine::{
    addon::{
        configuration::ConfigName,
        render_state::{RenderState, RenderedWorks},
    },
    hash::spec_hash,
    revision::Set,
    template::{self, AddOnWork, Blueprint, Expected, Holds, Inputs, Rendering, registries_of, render_holding},
};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use kube::ResourceExt;
use parking_lot::{Mutex, MutexGuard};

use super::AddOns;
use crate::cache::Cache;

/// How many parsed templates are kept. Few are rolled out at a time.
const TEMPLATES: usize = 64;

/// A template that was parsed, or why it cannot be.
type Read = Result<Arc<Blueprint>, String>;

/// Templates that were parsed, by name and content.
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

    /// Keeps a template. The least recently used one makes room for it.
    fn keep(&mut self, key: (String, SpecHash), blueprint: Read) {
        let oldest = self.kept.iter().min_by_key(|(_, (last, _))| *last).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest.filter(|_| self.kept.len() >= TEMPLATES) {
            self.kept.remove(&oldest);
        }
        self.kept.insert(key, (self.asked, blueprint));
    }
}

/// Templates that were parsed, and what was last rendered from them.
#[derive(Default)]
pub(crate) struct RenderCache {
    blueprints: Mutex<Blueprints>,
    /// What was last rendered for each add-on on a cluster, and from what.
    rendered: Mutex<BTreeMap<ObjectKey, (RenderInputs, Arc<RenderedWorks>)>>,
    /// Counts how often works are rendered.
    pub(crate) metrics: Metrics,
}

/// What the works of an add-on on a cluster are rendered from, besides what never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RenderInputs {
    set: SetFingerprint,
    install_namespace: Option<String>,
    registries: Option<String>,
    owner: Option<String>,
}

/// Whether works are rendered from a template.
enum RenderDecision {
    /// They come about in another way.
    Other(RenderState),
    /// They are rendered from this one, and may have been before.
    Render(Arc<Blueprint>, Option<Arc<RenderedWorks>>),
}

/// The revision that an add-on on a cluster was assigned, with what a user overrides.
#[derive(Clone, Copy)]
pub(crate) struct RenderRequest<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) on_cluster: &'a ManagedClusterAddOn,
    pub(crate) set: &'a Set,
}

impl RenderCache {
    /// How the works come about, as far as that is known without rendering them.
    pub(crate) fn look(&self, request: &RenderRequest<'_>) -> RenderState {
        match self.decide(request) {
            RenderDecision::Other(making) => making,
            RenderDecision::Render(blueprint, None) => RenderState::Pending(blueprint),
            RenderDecision::Render(blueprint, Some(works)) => RenderState::Rendered(blueprint, works),
        }
    }

    /// How the works come about; they are rendered if they have not been. What was rendered just now is
    /// returned with it.
    pub(crate) fn make(&self, request: &RenderRequest<'_>) -> (RenderState, Option<Rendering>) {
        let blueprint = match self.decide(request) {
            RenderDecision::Other(making) => return (making, None),
            RenderDecision::Render(blueprint, Some(works)) => return (RenderState::Rendered(blueprint, works), None),
            RenderDecision::Render(blueprint, None) => blueprint,
        };
        let rendering = self.render(request, &blueprint, &Holds::new());
        let rendered = Arc::new(match &rendering {
            Ok(rendering) => RenderedWorks {
                namespace: Some(rendering.namespace.clone()),
                works: Ok(rendering.works.iter().map(Expected::of).collect()),
            },
            Err(why) => RenderedWorks { namespace: None, works: Err(why.clone()) },
        });
        self.rendered().insert(ObjectKey::of(request.on_cluster), (request.inputs(), Arc::clone(&rendered)));
        (RenderState::Rendered(blueprint, rendered), rendering.ok())
    }

    /// Renders the works, cached or not, with the manifests that they have to hold for others.
    pub(crate) fn render(
        &self,
        request: &RenderRequest<'_>,
        blueprint: &Blueprint,
        holds: &Holds,
    ) -> Result<Rendering, String> {
        self.metrics.stepped(AddOns::NAME, "render", 1);
        request.render(blueprint, holds)
    }

    /// Removes what was rendered for an add-on that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.rendered().remove(key);
    }

    /// Decides whether the works are rendered from the template. The cache comes first: whether the content
    /// of the settings still exists costs a hash of it.
    fn decide(&self, request: &RenderRequest<'_>) -> RenderDecision {
        let Some(template) = request.set.template() else { return RenderDecision::Other(RenderState::ByManager) };
        let blueprint = match self.blueprint(request.cache, template) {
            None => return RenderDecision::Other(RenderState::Former(None)),
            Some(Err(why)) => return RenderDecision::Other(RenderState::Unreadable(why)),
            Some(Ok(blueprint)) => blueprint,
        };
        let cached = self.cached(request);
        if cached.is_none() && (request.is_of_another_epoch() || request.is_lost()) {
            return RenderDecision::Other(RenderState::Former(Some(blueprint)));
        }
        if request.is_hosted() {
            let why = format!(
                "an add-on that is made from a template runs on its own cluster: remove the annotation {HOSTING_CLUSTER_ANNOTATION}"
            );
            return RenderDecision::Other(RenderState::Unreadable(why));
        }
        if blueprint.addon() != request.on_cluster.name_any() {
            let (template, addon) = (blueprint.name(), blueprint.addon());
            let why = format!("the template {template} belongs to the add-on {addon}");
            return RenderDecision::Other(RenderState::Unreadable(why));
        }
        RenderDecision::Render(blueprint, cached)
    }

    /// A template; `None` if its content is lost.
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

    /// What was rendered before from the same inputs.
    fn cached(&self, request: &RenderRequest<'_>) -> Option<Arc<RenderedWorks>> {
        let rendered = self.rendered();
        let (inputs, works) = rendered.get(&ObjectKey::of(request.on_cluster))?;
        (*inputs == request.inputs()).then(|| Arc::clone(works))
    }

    fn blueprints(&self) -> MutexGuard<'_, Blueprints> {
        self.blueprints.lock()
    }

    fn rendered(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (RenderInputs, Arc<RenderedWorks>)>> {
        self.rendered.lock()
    }
}

impl RenderRequest<'_> {
    /// Whether works of this revision exist that another epoch of the renderer has made. Where there are
    /// none yet, this one renders them: a cluster that is new, or has overrides, has had its turn already.
    fn is_of_another_epoch(&self) -> bool {
        let set = self.set.fingerprint();
        let is_of_set = |work: &&AddOnWork| work.revision() == Some(set.as_str());
        self.set.epoch() != self.cache.epoch && self.cache.addon_works(self.on_cluster).iter().any(is_of_set)
    }

    /// Whether the content of the settings is lost.
    fn is_lost(&self) -> bool {
        self.set.settings().is_some_and(|config| content(self.cache, config).is_none())
    }

    /// Whether the agent should run on another cluster.
    fn is_hosted(&self) -> bool {
        let host = self.on_cluster.annotations().get(HOSTING_CLUSTER_ANNOTATION);
        host.is_some_and(|host| !host.is_empty())
    }

    fn inputs(&self) -> RenderInputs {
        RenderInputs {
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

    /// The namespace that the agent will run in, if the template says so.
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

/// The content of a configuration, if it has its hash. A forged one counts as lost.
fn content(cache: &Cache, config: &SetConfig) -> Option<Arc<str>> {
    cache.configs.content(config).filter(|content| spec_hash(content) == config.config.spec_hash)
}

#[cfg(test)]
mod tests;
