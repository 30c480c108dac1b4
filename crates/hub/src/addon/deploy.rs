//! Writes the works of add-ons that are rendered from templates. They follow what the cluster was
//! assigned: changes by others are reverted, and works that were deleted are created again.

use std::sync::Arc;

use drover_api::work::ManifestWork;
use drover_engine::{
    addon::{facts::Deployment, progress::Maker, render_state::RenderState},
    manifestwork::WorkPatch,
    plan::Write,
    template::{AddOnWork, Holds, Marks, Order, Rendering},
};
use kube::{Resource, ResourceExt};

use super::render_cache::RenderRequest;
use crate::adopt::{CreateOrAdopt, WorkOwner};

/// What has to be written so that the works are those of the revision.
pub(super) fn deploy(request: &RenderRequest<'_>) -> Deployment<CreateOrAdopt> {
    let (state, fresh) = request.cache.addons.render_cache.make(request);
    let (writes, creations) = works(request, &state, fresh);
    Deployment { state, writes, creations }
}

/// The works that are changed or deleted, and those that are created. `fresh` was rendered just now.
fn works(
    request: &RenderRequest<'_>,
    state: &RenderState,
    fresh: Option<Rendering>,
) -> (Vec<Write>, Vec<CreateOrAdopt>) {
    let (mut writes, mut creations) = (Vec::new(), Vec::new());
    let Maker::Template(expected) = state.maker() else { return (writes, creations) };
    let RenderRequest { cache, on_cluster, .. } = *request;
    let found = cache.addon_works(on_cluster).into_iter();
    let found = found.filter(|work| work.meta().namespace == on_cluster.metadata.namespace);
    let order = Order::new(&on_cluster.name_any(), found, expected);
    let turn = order.turn();
    if turn.is_empty() {
        return (order.surplus().into_iter().map(Write::delete).collect(), creations);
    }
    let Some(rendering) = rendering(request, state, fresh, &turn) else { return (writes, creations) };
    let rendered = rendering.works.into_iter().map(|rendered| rendered.work);
    for work in rendered.filter(|work| turn.contains_key(&work.name_any())) {
        match order.work(&work.name_any()) {
            Some(stored) if Marks::of(&work).is_owner_of(stored) => writes.extend(change(stored, work)),
            // The references of a stored work to its owners are known only when it is read.
            _ => creations.push(CreateOrAdopt::new(work.into(), WorkOwner::AddOn)),
        }
    }
    (writes, creations)
}

/// What is to be written. What was rendered just now is of use if no work has to hold anything besides
/// its own manifests.
fn rendering(
    request: &RenderRequest<'_>,
    state: &RenderState,
    fresh: Option<Rendering>,
    turn: &Holds,
) -> Option<Rendering> {
    let holds_nothing = turn.values().all(Vec::is_empty);
    let cache = &request.cache.addons.render_cache;
    fresh.filter(|_| holds_nothing).or_else(|| cache.render(request, state.blueprint()?, turn).ok())
}

/// The write by which a stored work becomes as it was rendered. What others have added to its
/// metadata stays.
fn change(stored: &AddOnWork, rendered: ManifestWork) -> Option<Write> {
    let mut patch = WorkPatch::default();
    Marks::patch(&rendered, &mut patch);
    patch.replace_spec(Arc::new(rendered.spec));
    patch.write(stored)
}

#[cfg(test)]
mod tests {
    use drover_api::{
        names::{ADDON_NAME_LABEL, ADDON_VERSION_LABEL, HOLDS_ANNOTATION, SET_ANNOTATION},
        work::ManifestWorkSpec,
    };
    use drover_engine::manifestwork::WorkMetadata;
    use serde_json::Value;

    use super::*;

    #[test]
    fn change_names_the_marks_of_the_hub_and_no_others() {
        let mut rendered = ManifestWork::new("addon-hello-deploy-0", ManifestWorkSpec::default());
        rendered.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
        rendered.annotations_mut().insert(SET_ANNOTATION.to_owned(), "0123456789abcdef".to_owned());
        let stored = AddOnWork::of(&rendered, &WorkMetadata::default()).expect("it is of an add-on");
        let body = change(&stored, rendered).and_then(|write| write.body()).expect("a patch");
        let (labels, annotations) = (&body["metadata"]["labels"], &body["metadata"]["annotations"]);
        assert_eq!(
            (&labels[ADDON_NAME_LABEL], labels.get(ADDON_VERSION_LABEL)),
            (&Value::from("hello"), Some(&Value::Null))
        );
        assert_eq!(annotations[SET_ANNOTATION], "0123456789abcdef");
        assert_eq!(annotations.get(HOLDS_ANNOTATION), Some(&Value::Null));
        assert_eq!(labels.get("team"), None);
    }
}
