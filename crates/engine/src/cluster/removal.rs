//! How a cluster leaves: first its add-ons are removed, then its works, then its agent's access.
//!
//! The agent is needed to remove add-ons and works from the cluster itself. If it does not answer, the deletion waits for ever, unless the
//! cluster is annotated with `drover.dev/force-delete: "true"`: then nobody waits for the agent, and what it has applied stays on the cluster.

use drover_api::{
    cluster::ManagedCluster,
    names::{CLEANUP_PRIORITY_ANNOTATION, CLUSTER_DELETING, FORCE_DELETE_ANNOTATION},
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
    jiff::Timestamp,
};
use kube::ResourceExt;

use super::{available, conditions};
use crate::{
    condition::{self, Holds, Says},
    words::enumerate,
};

/// How to go on when the agent does not do its part.
const FORCE_HINT: &str = "annotate the cluster with drover.dev/force-delete=true to go on without it, which leaves on the cluster what \
     was applied there";

/// What is still there of what a cluster leaves behind; of each kind in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remains<'a> {
    /// The metadata of its add-ons.
    pub addons: Vec<&'a ObjectMeta>,
    /// The metadata of its works.
    pub works: Vec<&'a ObjectMeta>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'a> {
    /// These add-ons, or these works, are to be removed, and waited for.
    Remove {
        /// Which of the two.
        what: Remnant,
        /// The objects whose turn it is.
        turn: Vec<Removal<'a>>,
    },
    /// Nothing is left but the agent's access.
    EndAccess,
}

/// A kind of object that a cluster leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remnant {
    /// Its add-ons.
    AddOns,
    /// Its works.
    Works,
}

/// What is to be done about one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Removal<'a> {
    /// It is to be deleted.
    Delete(&'a ObjectMeta),
    /// It is deleted, and is to go without waiting for its finalizers.
    Release(&'a ObjectMeta),
    /// It is deleted, and whoever has a finalizer on it is waited for.
    Await(&'a ObjectMeta),
}

/// What comes next in the removal of a cluster.
#[must_use]
pub fn next<'a>(cluster: &ManagedCluster, remains: &Remains<'a>) -> Step<'a> {
    let force = is_forced(cluster);
    for (what, objects) in [(Remnant::AddOns, &remains.addons), (Remnant::Works, &remains.works)] {
        if let Some(turn) = objects.iter().map(|object| priority(object)).min() {
            let whose = objects.iter().filter(|object| priority(object) == turn);
            return Step::Remove { what, turn: whose.map(|object| removal(object, force)).collect() };
        }
    }
    Step::EndAccess
}

fn removal(object: &ObjectMeta, force: bool) -> Removal<'_> {
    let is_held = object.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    match object.deletion_timestamp {
        None => Removal::Delete(object),
        Some(_) if force && is_held => Removal::Release(object),
        Some(_) => Removal::Await(object),
    }
}

/// Whether the agent is not waited for.
fn is_forced(cluster: &ManagedCluster) -> bool {
    cluster.annotations().get(FORCE_DELETE_ANNOTATION).is_some_and(|value| value == "true")
}

/// In which turn an object goes; what does not say goes first.
fn priority(object: &ObjectMeta) -> u8 {
    let text = object.annotations.as_ref().and_then(|annotations| annotations.get(CLEANUP_PRIORITY_ANNOTATION));
    text.and_then(|text| text.parse().ok()).filter(|priority| *priority <= 100).unwrap_or(0)
}

/// The conditions of a cluster that is being deleted, with what its deletion waits for.
#[must_use]
pub fn conditions_of(cluster: &ManagedCluster, remains: &Remains<'_>, now: Timestamp) -> Vec<Condition> {
    let there = conditions(cluster).to_vec();
    if remains.addons.is_empty() && remains.works.is_empty() {
        return there;
    }
    let hint = match hindrance(cluster) {
        Some(why) if !is_forced(cluster) => format!("; {why}, or {FORCE_HINT}"),
        _ => String::new(),
    };
    let left: Vec<_> = [(&remains.addons, "add-on"), (&remains.works, "work")]
        .into_iter()
        .filter(|(objects, _)| !objects.is_empty())
        .map(|(objects, what)| count(objects, what))
        .collect();
    let message = format!("waiting for the removal of {}{hint}", left.join(" and "));
    let says = Says {
        type_: CLUSTER_DELETING,
        holds: Holds::No,
        reason: "ResourceRemaining",
        message: &message,
        generation: None,
    };
    condition::with(there, says, now)
}

/// Why the agent, which has to remove what it has applied, does not, and what helps.
fn hindrance(cluster: &ManagedCluster) -> Option<&'static str> {
    if !cluster.spec.hub_accepts_client {
        Some("the cluster is not accepted, so its agent may not remove them: accept it again until they are gone")
    } else if available(cluster) != Holds::Yes {
        Some("the cluster's agent, which has to remove them, is not available: bring it back")
    } else {
        None
    }
}

/// So many of something, and the first of their names.
fn count(objects: &[&ObjectMeta], what: &str) -> String {
    let names: Vec<_> = objects.iter().filter_map(|object| object.name.as_deref()).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{} {what}{plural} ({})", names.len(), enumerate(&names))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use drover_api::cluster::ManagedClusterSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn cluster() -> ManagedCluster {
        ManagedCluster::new("one", ManagedClusterSpec::default())
    }

    fn object(name: &str, priority: Option<&str>) -> ObjectMeta {
        let annotation = |value: &str| BTreeMap::from([(CLEANUP_PRIORITY_ANNOTATION.to_owned(), value.to_owned())]);
        ObjectMeta { name: Some(name.to_owned()), annotations: priority.map(annotation), ..ObjectMeta::default() }
    }

    fn going(mut object: ObjectMeta) -> ObjectMeta {
        object.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        object.finalizers = Some(vec!["example.com/agent".to_owned()]);
        object
    }

    #[test]
    fn works_wait_for_add_ons_and_access_for_works() {
        let (addon, work) = (object("addon", None), object("work", None));
        let all = Remains { addons: vec![&addon], works: vec![&work] };
        let turn = vec![Removal::Delete(&addon)];
        assert_eq!(next(&cluster(), &all), Step::Remove { what: Remnant::AddOns, turn });
        let turn = vec![Removal::Delete(&work)];
        let works = Remains { addons: Vec::new(), works: vec![&work] };
        assert_eq!(next(&cluster(), &works), Step::Remove { what: Remnant::Works, turn });
        assert_eq!(next(&cluster(), &Remains::default()), Step::EndAccess);
    }

    #[test]
    fn a_later_turn_waits_for_the_earlier() {
        let objects = [
            object("last", Some("100")),
            going(object("first", None)),
            object("nonsense", Some("101")),
            object("middle", Some("7")),
        ];
        let remains = Remains { addons: Vec::new(), works: objects.iter().collect() };
        let turn = vec![Removal::Await(&objects[1]), Removal::Delete(&objects[2])];
        assert_eq!(next(&cluster(), &remains), Step::Remove { what: Remnant::Works, turn });
    }

    #[test]
    fn only_a_forced_deletion_goes_on_without_the_agent() {
        let work = going(object("work", None));
        let remains = Remains { addons: Vec::new(), works: vec![&work] };
        let mut forced = cluster();
        let message = conditions_of(&forced, &remains, Timestamp::UNIX_EPOCH)[0].message.clone();
        assert!(message.contains("1 work (work)") && message.contains("drover.dev/force-delete=true"), "{message}");
        forced.annotations_mut().insert(FORCE_DELETE_ANNOTATION.to_owned(), "true".to_owned());
        let turn = vec![Removal::Release(&work)];
        assert_eq!(next(&forced, &remains), Step::Remove { what: Remnant::Works, turn });
    }
}
