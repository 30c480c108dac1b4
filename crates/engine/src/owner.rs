//! Owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// Adds an owner reference, as the controller unless the object has another controller.
pub fn own(owners: &mut Vec<OwnerReference>, owner: &OwnerReference) {
    let group = |owner: &OwnerReference| owner.api_version.split_once('/').map(|(group, _)| group.to_owned());
    let is_same =
        |there: &OwnerReference| (&there.kind, &there.name, group(there)) == (&owner.kind, &owner.name, group(owner));
    let is_controlled = owners.iter().any(|there| there.controller == Some(true) && !is_same(there));
    // There can be one controller. Who owns without being it still takes the object along.
    let owner = OwnerReference { controller: (!is_controlled).then_some(true), ..owner.clone() };
    match owners.iter_mut().find(|there| is_same(there)) {
        // Another version of the API names the same object.
        Some(there) if there.uid == owner.uid && there.controller == owner.controller => {}
        Some(there) => *there = owner,
        None => owners.push(owner),
    }
}
