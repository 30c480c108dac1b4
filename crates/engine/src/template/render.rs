//! The works of one cluster, made from a template.

use std::{borrow::Cow, collections::BTreeMap};

use drover_api::{
    addon::{AddOnDeploymentConfig, AddOnDeploymentConfigSpec, CustomizedVariable, ImageMirror, ManagedClusterAddOn},
    drover::SetConfig,
    names::{
        ADDON_NAME_LABEL, ADDON_VERSION_LABEL, AGENT_NAMESPACE, HOLDS_ANNOTATION, SET_ANNOTATION, WORKS_ANNOTATION,
    },
    work::{ManifestWork, ManifestWorkSpec, ManifestsTemplate},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::{
    blueprint::{Blueprint, Draft},
    configs::{configs, is_kept_up},
    credential::KUBECONFIG,
    decoration::Decoration,
    digest::{digest, hold_mark, short},
    flaw::{Fault, Flaw},
    home::Home,
    manifest::{Object, annotate, flaw},
    orphans::delete_option,
    piece::Piece,
    pod::has_pods,
    proxy,
    split::{LIMIT, split},
    variables::Variables,
    vitals::{Workload, WorkloadKind},
};
use crate::revision::{Set, hashes};

/// What the works of one cluster are made from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The add-on on the cluster.
    pub on_cluster: &'a ManagedClusterAddOn,
    /// The set that the cluster was given.
    pub set: &'a Set,
    /// The set's template.
    pub blueprint: &'a Blueprint,
    /// The set's settings, if it has some.
    pub settings: Option<&'a AddOnDeploymentConfigSpec>,
    /// The registries that the cluster takes images from, where the settings say nothing about that.
    pub registries: &'a [ImageMirror],
}

/// What a cluster gets of an add-on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    /// The works, in the order of their names' numbers.
    pub works: Vec<RenderedWork>,
    /// The namespace on the cluster that the agent runs in.
    pub namespace: String,
}

/// One work of an add-on.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedWork {
    /// The work.
    pub work: ManifestWork,
    /// The digest of what it applies.
    pub digest: String,
    /// What it deploys that says how it is.
    pub workloads: Vec<Workload>,
}

/// What the names of an add-on's works begin with; a number follows. The names are OCM's.
#[must_use]
pub fn work_prefix(addon: &str) -> String {
    format!("addon-{addon}-deploy-")
}

/// What works hold of others besides their own, by the name of the work: what those objects are called.
pub type Holds = BTreeMap<String, Vec<String>>;

/// How many bytes of manifests a work may hold for a while. That is what two works hold, and about half of what a server takes.
const HOLDING_LIMIT: usize = 2 * LIMIT;

/// Makes the works of one cluster. The same inputs make the same works.
pub fn render(inputs: &Inputs<'_>) -> Result<Rendering, Flaw> {
    render_holding(inputs, &Holds::new())
}

/// Makes the works of one cluster, with what they hold of others besides. One that would be too large with that is left out.
pub fn render_holding(inputs: &Inputs<'_>, holds: &Holds) -> Result<Rendering, Flaw> {
    let namespace = install_namespace(inputs);
    let fingerprint = inputs.set.fingerprint();
    let pieces = pieces(inputs, &namespace, fingerprint.as_str())?;
    let counts = split(pieces.iter().map(|piece| piece.size));
    let metadata = metadata(inputs, fingerprint.as_str(), counts.len());
    let names = (0..counts.len()).map(|number| format!("{}{number}", work_prefix(inputs.addon())));
    let held: Vec<Vec<_>> = names.clone().map(|name| held(&pieces, holds.get(&name))).collect();
    let mut pieces = pieces.into_iter();
    let works = names.zip(counts).zip(held).filter_map(|((name, count), held)| {
        let (own, metadata) =
            (pieces.by_ref().take(count).collect(), ObjectMeta { name: Some(name), ..metadata.clone() });
        if held.is_empty() { Some(work(inputs, metadata, own)) } else { holding(inputs, metadata, own, held) }
    });
    Ok(Rendering { works: works.collect(), namespace })
}

/// The pieces that a work holds of others.
fn held(pieces: &[Piece], objects: Option<&Vec<String>>) -> Vec<Piece> {
    let Some(objects) = objects.filter(|objects| !objects.is_empty()) else { return Vec::new() };
    pieces.iter().filter(|piece| objects.contains(&short(&piece.object))).cloned().collect()
}

/// The namespace on the cluster that the agent runs in: the settings' own, else that of the template's first workload, else the one that
/// the add-on asks for.
#[must_use]
pub fn install_namespace(inputs: &Inputs<'_>) -> String {
    if let Some(home) = Home::of(inputs.settings) {
        return home.namespace().to_owned();
    }
    let variables = Variables::new(inputs.cluster(), KUBECONFIG, inputs.customized());
    // A workload that is to be wherever the agent is does not decide where that is.
    let of_template = inputs.blueprint.namespaces().iter().filter_map(|text| variables.filled_in(text).ok());
    let of_addon = inputs.on_cluster.spec.install_namespace.as_deref().map(Cow::Borrowed);
    let namespace = of_template.chain(of_addon).find(|namespace| !namespace.is_empty());
    namespace.map_or_else(|| AGENT_NAMESPACE.to_owned(), Cow::into_owned)
}

impl<'a> Inputs<'a> {
    /// The add-on's name.
    pub(super) fn addon(&self) -> &'a str {
        self.on_cluster.metadata.name.as_deref().unwrap_or_default()
    }

    fn cluster(&self) -> &'a str {
        self.on_cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn customized(&self) -> &'a [CustomizedVariable] {
        self.settings.map_or(&[], |settings| &settings.customized_variables)
    }

    /// The registries that images are taken from: the settings' or, if they name none, the cluster's.
    pub(super) fn mirrors(&self) -> &'a [ImageMirror] {
        let own = self.settings.map_or(&[][..], |settings| &settings.registries);
        if own.is_empty() { self.registries } else { own }
    }

    /// What people call the settings.
    fn settings_name(&self) -> String {
        let is_settings = |config: &&SetConfig| {
            config.group_resource.group == AddOnDeploymentConfig::group(&())
                && config.group_resource.resource == AddOnDeploymentConfig::plural(&())
        };
        let referent = self.set.configs().iter().find(is_settings).map(|config| &config.config.referent);
        referent.map_or_else(String::new, |referent| match &referent.namespace {
            Some(namespace) => format!("{namespace}/{}", referent.name),
            None => referent.name.clone(),
        })
    }
}

/// Everything that is applied, in order.
fn pieces(inputs: &Inputs<'_>, namespace: &str, fingerprint: &str) -> Result<Vec<Piece>, Flaw> {
    let settings = inputs.settings;
    let certificates = settings.map_or(Ok(None), proxy::certificates);
    let certificates = certificates.map_err(|_| Flaw::CaBundle { settings: inputs.settings_name() })?;
    let variables = Variables::new(inputs.cluster(), KUBECONFIG, inputs.customized());
    let variables = variables.in_namespace(namespace);
    let maker = Maker {
        inputs,
        decoration: Decoration::new(inputs, &variables, certificates.is_some()),
        variables,
        home: Home::of(settings),
        set: fingerprint,
    };
    let mut pieces = maker.of_template()?;
    if let Some(certificates) = certificates {
        let config_map = proxy::config_map(inputs.addon(), namespace, certificates);
        let piece = maker.piece(0, &Draft { manifest: config_map, has_variables: false })?;
        let first_pods = pieces.iter().position(|piece| has_pods(&piece.object)).unwrap_or(pieces.len());
        pieces.insert(first_pods, piece);
    }
    check_unique(inputs.blueprint.name(), &pieces)?;
    Ok(pieces)
}

/// Makes manifests into what is applied to one cluster.
struct Maker<'a> {
    inputs: &'a Inputs<'a>,
    variables: Variables<'a>,
    decoration: Decoration<'a>,
    home: Option<Home<'a>>,
    set: &'a str,
}

impl Maker<'_> {
    fn of_template(&self) -> Result<Vec<Piece>, Flaw> {
        let drafts = self.inputs.blueprint.manifests().iter().enumerate();
        drafts.map(|(place, draft)| self.piece(place, draft)).collect()
    }

    fn piece(&self, place: usize, draft: &Draft) -> Result<Piece, Flaw> {
        self.made(draft).map_err(|fault| flaw(self.inputs.blueprint.name(), place, &draft.manifest, fault))
    }

    fn made(&self, draft: &Draft) -> Result<Piece, Fault> {
        let mut manifest = draft.manifest.clone();
        if draft.has_variables {
            self.variables.fill_in(&mut manifest)?;
        }
        let was = Object::of(&manifest)?;
        let mut object = was.clone();
        if let Some(home) = self.home {
            home.take_in(&mut object, &mut manifest);
        }
        self.decoration.put_on(&object, &mut manifest)?;
        let workload = self.stamped(&was, &object, &mut manifest)?;
        let size = manifest.to_string().len();
        if size > LIMIT {
            return Err(Fault::TooLarge { size, limit: LIMIT });
        }
        Ok(Piece { was, object, manifest, size, workload })
    }

    /// Stamps what says how it is with the set; not its pods, which would start anew for that. What is not kept up with its manifest would
    /// never lose its first stamp.
    fn stamped(&self, was: &Object, object: &Object, manifest: &mut Value) -> Result<Option<Workload>, Fault> {
        let Some(kind) = WorkloadKind::of(object) else { return Ok(None) };
        let is_stamped = is_kept_up(&self.inputs.blueprint.frame().manifest_configs, was, object);
        if is_stamped {
            annotate(manifest, SET_ANNOTATION, self.set)?;
        }
        let Object { namespace, name, .. } = object.clone();
        Ok(Some(Workload { kind, namespace, name, is_stamped }))
    }
}

/// Whether no two manifests are for one object, now that variables are filled in and everything is where it will be.
fn check_unique(template: &str, pieces: &[Piece]) -> Result<(), Flaw> {
    let mut seen = BTreeMap::new();
    for (place, piece) in pieces.iter().enumerate() {
        if let Some(other) = seen.insert(&piece.object, piece) {
            let fault = if other.was == piece.was { Fault::Twice } else { Fault::TwiceInOneNamespace };
            return Err(flaw(template, place, &piece.manifest, fault));
        }
    }
    Ok(())
}

/// The metadata of all works, but for their names.
fn metadata(inputs: &Inputs<'_>, fingerprint: &str, count: usize) -> ObjectMeta {
    let version = inputs.set.version().map(|version| (ADDON_VERSION_LABEL.to_owned(), version.to_string()));
    let mut labels = BTreeMap::from([(ADDON_NAME_LABEL.to_owned(), inputs.addon().to_owned())]);
    labels.extend(version);
    let mut annotations = hashes::annotations(inputs.set);
    annotations.insert(SET_ANNOTATION.to_owned(), fingerprint.to_owned());
    // Who finds them later, and would make others, can tell whether they are all there.
    annotations.insert(WORKS_ANNOTATION.to_owned(), count.to_string());
    ObjectMeta {
        namespace: inputs.on_cluster.namespace(),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: inputs.on_cluster.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

fn work(inputs: &Inputs<'_>, metadata: ObjectMeta, pieces: Vec<Piece>) -> RenderedWork {
    let frame = inputs.blueprint.frame();
    let home = Home::of(inputs.settings);
    let mut spec = ManifestWorkSpec {
        workload: None,
        delete_option: delete_option(frame.delete_option.as_ref(), &pieces, home),
        manifest_configs: configs(&frame.manifest_configs, &pieces, home),
        executor: frame.executor.clone(),
    };
    let (manifests, workloads): (Vec<_>, Vec<_>) =
        pieces.into_iter().map(|piece| (piece.manifest, piece.workload)).unzip();
    spec.workload = Some(ManifestsTemplate { manifests });
    let digest = digest(&spec);
    let work = ManifestWork { metadata, spec, status: None };
    RenderedWork { work, digest, workloads: workloads.into_iter().flatten().collect() }
}

/// A work that holds pieces of others besides its own; nothing if they do not fit.
fn holding(inputs: &Inputs<'_>, metadata: ObjectMeta, own: Vec<Piece>, held: Vec<Piece>) -> Option<RenderedWork> {
    let all: Vec<_> = own.iter().cloned().chain(held).collect();
    if all.iter().map(|piece| piece.size).sum::<usize>() > HOLDING_LIMIT {
        return None;
    }
    let in_the_end = work(inputs, metadata.clone(), own);
    let mut made = work(inputs, metadata, all);
    let mark = hold_mark(&in_the_end.digest, &made.digest);
    made.work.annotations_mut().insert(HOLDS_ANNOTATION.to_owned(), mark);
    Some(made)
}

#[cfg(test)]
mod tests;
