//! The works of add-ons that are made from templates: they follow what the cluster was given, and nothing else. What somebody changes is
//! repaired, what somebody removes comes back.

use drover_api::work::ManifestWork;
use drover_engine::{
    addon::progress::Maker,
    plan::Write,
    template::{Holds, Marks, Order, Rendering, is_kin},
};
use kube::ResourceExt;

use super::workshop::{Commission, Making};
use crate::adopt::{Adopt, CreateOrAdopt};

/// What has to be written so that the works are those that were made. `fresh` is what was made just now, if it was.
pub(super) fn works(commission: &Commission<'_>, making: &Making, fresh: Option<Rendering>) -> Works {
    let Maker::Template(expected) = making.maker() else { return Works::default() };
    let Commission { cache, on_cluster, .. } = *commission;
    let found = cache.addons.works_of(on_cluster).into_iter();
    let found = found.filter(|work| work.metadata.namespace == on_cluster.metadata.namespace);
    let order = Order::new(&on_cluster.name_any(), found, expected);
    let turn = order.turn();
    if turn.is_empty() {
        let writes = order.surplus().into_iter().map(Write::delete).collect();
        return Works { writes, ..Works::default() };
    }
    let Some(rendering) = rendering(commission, making, fresh, &turn) else { return Works::default() };
    let made = rendering.works.into_iter().map(|made| made.work);
    let made = made.filter(|work| turn.contains_key(&work.name_any()));
    let mut works = Works::default();
    for work in made {
        match order.work(&work.name_any()) {
            Some(stored) => works.writes.push(Write::replace(stored, brought(stored, &work))),
            None => works.creations.push(CreateOrAdopt::new(work)),
        }
    }
    works
}

/// What is written so that the works are those that were made.
#[derive(Default)]
pub(crate) struct Works {
    /// Works that are changed or deleted.
    pub(super) writes: Vec<Write>,
    /// Works that are missing.
    pub(super) creations: Vec<CreateOrAdopt<ManifestWork>>,
}

impl Works {
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.creations.is_empty()
    }
}

/// What is to be written. What was made just now is of use if no work has to hold anything besides its own.
fn rendering(
    commission: &Commission<'_>,
    making: &Making,
    fresh: Option<Rendering>,
    turn: &Holds,
) -> Option<Rendering> {
    let holds_nothing = turn.values().all(Vec::is_empty);
    let workshop = &commission.cache.addons.workshop;
    fresh.filter(|_| holds_nothing).or_else(|| workshop.render(commission, making.blueprint()?, turn).ok())
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
