//! Writes the works of add-ons that are rendered from templates. They follow what the cluster was
//! assigned: changes by others are reverted, and works that were deleted are created again.

use drover_api::work::ManifestWork;
use drover_engine::{
    addon::{facts::Deployment, progress::Maker, render_state::RenderState},
    plan::Write,
    template::{Holds, Marks, Order, Rendering, is_kin},
};
use kube::ResourceExt;

use super::render_cache::RenderRequest;
use crate::adopt::{Adopt, CreateOrAdopt};

/// What has to be written so that the works are those of the revision.
pub(super) fn deploy(request: &RenderRequest<'_>) -> Deployment<CreateOrAdopt<ManifestWork>> {
    let (state, fresh) = request.cache.addons.render_cache.make(request);
    let (writes, creations) = works(request, &state, fresh);
    Deployment { state, writes, creations }
}

/// The works that are changed or deleted, and those that are created. `fresh` was rendered just now.
fn works(
    request: &RenderRequest<'_>,
    state: &RenderState,
    fresh: Option<Rendering>,
) -> (Vec<Write>, Vec<CreateOrAdopt<ManifestWork>>) {
    let (mut writes, mut creations) = (Vec::new(), Vec::new());
    let Maker::Template(expected) = state.maker() else { return (writes, creations) };
    let RenderRequest { cache, on_cluster, .. } = *request;
    let found = cache.addons.works_of(on_cluster).into_iter();
    let found = found.filter(|work| work.metadata.namespace == on_cluster.metadata.namespace);
    let order = Order::new(&on_cluster.name_any(), found, expected);
    let turn = order.turn();
    if turn.is_empty() {
        return (order.surplus().into_iter().map(Write::delete).collect(), creations);
    }
    let Some(rendering) = rendering(request, state, fresh, &turn) else { return (writes, creations) };
    let rendered = rendering.works.into_iter().map(|rendered| rendered.work);
    for work in rendered.filter(|work| turn.contains_key(&work.name_any())) {
        match order.work(&work.name_any()) {
            Some(stored) => writes.push(Write::replace(stored, brought(stored, &work))),
            None => creations.push(CreateOrAdopt::new(work)),
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

impl Adopt for ManifestWork {
    fn adopted(there: &Self, wanted: &Self) -> Option<Self> {
        is_kin(there, wanted).then(|| brought(there, wanted))
    }
}

/// A work that is there, brought to what was made. What others have added to its metadata stays.
fn brought(there: &ManifestWork, made: &ManifestWork) -> ManifestWork {
    let mut wanted = ManifestWork { metadata: there.metadata.clone(), ..made.clone() };
    Marks::copy(made, &mut wanted);
    wanted
}

#[cfg(test)]
mod tests {
    use drover_api::{
        names::{ADDON_NAME_LABEL, SET_ANNOTATION},
        work::ManifestWorkSpec,
    };

    use super::*;

    #[test]
    fn what_others_have_added_to_a_work_stays() {
        let marked = |label: (&str, &str), annotation: (&str, &str)| {
            let mut work = ManifestWork::new("addon-hello-deploy-0", ManifestWorkSpec::default());
            work.labels_mut().insert(label.0.to_owned(), label.1.to_owned());
            work.annotations_mut().insert(annotation.0.to_owned(), annotation.1.to_owned());
            work
        };
        let there = marked(("team", "a"), ("note", "b"));
        let made = marked((ADDON_NAME_LABEL, "hello"), (SET_ANNOTATION, "0123456789abcdef"));
        let brought = brought(&there, &made);
        let labels: Vec<_> = brought.labels().keys().map(String::as_str).collect();
        let annotations: Vec<_> = brought.annotations().keys().map(String::as_str).collect();
        assert_eq!((labels, annotations), (vec![ADDON_NAME_LABEL, "team"], vec![SET_ANNOTATION, "note"]));
    }
}
