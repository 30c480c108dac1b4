//! What is taken from the cluster again.

use drover_api::work::{AppliedResource, DeleteOption};
use drover_engine::{
    plan::WriteResult,
    work::{Fate, Owner, Removal, fate_of_applied, removal, removal_turn},
};
use drover_runtime::pace::result_of;
use kube::{
    Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, Patch, Preconditions},
};
use tracing::warn;

use super::object::{Place, changing, read};

/// How often somebody else may be faster before an object is left for later.
const ATTEMPTS: usize = 5;

/// Removes objects of an owner, those first that stand last in the order of applying; what stands earlier waits until these are gone. Says what is left.
pub(super) async fn remove_in_turn(
    managed: &Client,
    mut left: Vec<AppliedResource>,
    owner: &Owner,
    option: Option<&DeleteOption>,
) -> Result<Vec<AppliedResource>, kube::Error> {
    loop {
        let turn = removal_turn(&left);
        for resource in &turn {
            let fate = fate_of_applied(option, resource);
            if remove_if_allowed(managed, resource, owner, fate).await? == Gone::Yes {
                left.retain(|there| there != resource);
            }
        }
        if turn.is_empty() || turn.iter().any(|resource| left.contains(resource)) {
            return Ok(left);
        }
    }
}

/// Whether something that is to go has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    Yes,
    NotYet,
}

/// Whether nothing keeps an object any more that was just deleted.
fn is_gone(deleted: &DynamicObject) -> Gone {
    let waits = deleted.metadata.deletion_grace_period_seconds.unwrap_or_default() > 0;
    if deleted.finalizers().is_empty() && !waits { Gone::Yes } else { Gone::NotYet }
}

/// Removes one object, if it is ours to remove. What the cluster refuses holds up no other: it is tried again.
async fn remove_if_allowed(
    managed: &Client,
    resource: &AppliedResource,
    owner: &Owner,
    fate: Fate,
) -> Result<Gone, kube::Error> {
    match remove(managed, resource, owner, fate).await {
        Err(kube::Error::Api(status)) => {
            let place = Place::of_applied(resource);
            warn!(%place, reason = status.message, "an object can not be removed, and will be tried again");
            Ok(Gone::NotYet)
        }
        removed => removed,
    }
}

async fn remove(managed: &Client, resource: &AppliedResource, owner: &Owner, fate: Fate) -> Result<Gone, kube::Error> {
    let place = Place::of_applied(resource);
    let api = place.api(managed.clone());
    for _ in 0..ATTEMPTS {
        let live = match read(&api, place.name()).await {
            // By the code: a kind that is not served any more has no objects, and its answer has no reason.
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            live => live?,
        };
        let done = match removal(resource, live.as_ref(), owner, fate) {
            Removal::Forget | Removal::Leave => return Ok(Gone::Yes),
            Removal::Await => return Ok(Gone::NotYet),
            Removal::DropOwner(patch) => {
                api.patch(place.name(), &changing(), &Patch::Merge(patch)).await.map(|_| Gone::Yes)
            }
            Removal::Delete { uid } => {
                let only = Preconditions { uid: Some(uid), resource_version: None };
                let deleted = api.delete(place.name(), &DeleteParams::background().preconditions(only)).await;
                deleted.map(|left| left.left().map_or(Gone::Yes, |object| is_gone(&object)))
            }
        };
        match done {
            Err(error) if matches!(result_of(&error), WriteResult::Conflict | WriteResult::Gone(_)) => {}
            done => return done,
        }
    }
    Ok(Gone::NotYet)
}
