//! What the works of a set are called, and how it is told whose they are.

use drover_api::work::ManifestWorkReplicaSet;
use kube::ResourceExt;

use crate::hash::name_suffix;

/// How long the value of a label may be.
const LONGEST: usize = 63;

/// Why works of a set can not say whose they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The set's own name is too long.
    #[error(
        "works carry {0} as a label, which may have {LONGEST} characters and has {length}: make the set anew with a shorter name",
        length = .0.len()
    )]
    Set(String),
    /// The name of a placement is too long.
    #[error(
        "works carry the name of the Placement {0} as a label, which may have {LONGEST} characters and has {length}: list a placement \
         with a shorter name",
        length = .0.len()
    )]
    Placement(String),
}

/// The label of works by which they are known as those of a set.
#[must_use]
pub fn owner_label(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// The namespace and name of the set that a label names. There is no dot in the name of a namespace, though there may be in that of a set.
#[must_use]
pub fn owner(label: &str) -> Option<(&str, &str)> {
    label.split_once('.').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
}

/// The name of a set's works, the same on every cluster: who makes one twice finds the first. Sets of one name in two namespaces have
/// different works.
#[must_use]
pub fn work_name(namespace: &str, name: &str) -> String {
    format!("{name}-{}", name_suffix(namespace, name))
}

/// Whether works of a set can say whose they are, and which placement they were made for.
pub fn check(set: &ManifestWorkReplicaSet) -> Result<(), Unfit> {
    let label = owner_label(&set.namespace().unwrap_or_default(), &set.name_any());
    if label.len() > LONGEST {
        return Err(Unfit::Set(label));
    }
    let too_long = set.spec.placement_refs.iter().find(|placement| placement.name.len() > LONGEST);
    too_long.map_or(Ok(()), |placement| Err(Unfit::Placement(placement.name.clone())))
}

#[cfg(test)]
mod tests {
    use drover_api::work::{ManifestWorkReplicaSetSpec, PlacementRollout};
    use proptest::prelude::*;

    use super::*;

    fn set(namespace: &str, name: &str, placement: &str) -> ManifestWorkReplicaSet {
        let placement = PlacementRollout { name: placement.to_owned(), rollout_strategy: None };
        let spec = ManifestWorkReplicaSetSpec { placement_refs: vec![placement], ..Default::default() };
        let mut set = ManifestWorkReplicaSet::new(name, spec);
        set.metadata.namespace = Some(namespace.to_owned());
        set
    }

    #[test]
    fn names_are_the_same_for_ever() {
        assert_eq!(work_name("default", "hello"), "hello-a159efe0");
    }

    #[test]
    fn a_name_with_a_dot_is_found_again() {
        assert_eq!(owner(&owner_label("default", "a.b.c")), Some(("default", "a.b.c")));
        assert_eq!([owner("nodot"), owner(".x"), owner("x.")], [None; 3]);
    }

    #[test]
    fn what_does_not_fit_into_a_label_is_said_with_what_to_do() {
        assert_eq!(check(&set("default", &"a".repeat(55), "p")), Ok(()));
        let error = check(&set("default", &"a".repeat(56), "p")).expect_err("too long");
        assert!(
            error.to_string().ends_with("may have 63 characters and has 64: make the set anew with a shorter name")
        );
        assert_eq!(check(&set("default", "a", &"p".repeat(64))), Err(Unfit::Placement("p".repeat(64))));
    }

    proptest! {
        #[test]
        fn no_two_sets_share_a_label(
            one in ("[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?", "[a-z0-9]([-.a-z0-9]{0,5}[a-z0-9])?"),
            other in ("[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?", "[a-z0-9]([-.a-z0-9]{0,5}[a-z0-9])?"),
        ) {
            prop_assert_eq!(owner_label(&one.0, &one.1) == owner_label(&other.0, &other.1), one == other);
            prop_assert_eq!(work_name(&one.0, &one.1) == work_name(&other.0, &other.1), one == other);
            let label = owner_label(&one.0, &one.1);
            prop_assert_eq!(owner(&label), Some((one.0.as_str(), one.1.as_str())));
        }
    }
}
