//! In whose name a work is applied: what an account of the cluster may not do itself is not done for it.

use std::{collections::BTreeMap, time::Duration};

use drover_api::work::Executor;
use drover_engine::{
    plan::WriteResult,
    work::{Fate, Target},
};
use drover_runtime::{cache::SharedCache, clock::after, pace::result_of};
use k8s_openapi::{
    api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{PostParams, Request},
};

use super::{object::Place, site::Site};

/// After how long it is asked again whether an account has more rights, or less.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// The kinds by which rights are given away.
const RIGHTS: [&str; 4] = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];

/// What accounts were found to be allowed lately: objects are looked at whenever they change, and some change all the time. What is not allowed is asked anew
/// each time, since somebody may have just allowed it.
#[derive(Debug, Default)]
pub(crate) struct Rights(BTreeMap<Right, Timestamp>);

/// That an account may do this to an object: the user, the verb, and the object.
type Right = (String, &'static str, Place);

impl Rights {
    fn has(&self, right: &Right, now: Timestamp) -> bool {
        self.0.get(right).is_some_and(|until| now < *until)
    }

    fn note(&mut self, right: Right, now: Timestamp) {
        self.0.retain(|_, until| now < *until);
        self.0.insert(right, after(now, PATIENCE));
    }
}

/// An account of the cluster.
struct Account {
    user: String,
    groups: Vec<String>,
}

/// Whether the account in whose name a work is applied may write an object itself; if not, in words for who has made the work.
pub(super) async fn check(
    managed: &Client,
    site: &SharedCache<Site>,
    executor: &Executor,
    (target, fate): (&Target, Fate),
    now: Timestamp,
) -> Result<Result<(), String>, kube::Error> {
    let subject = executor.subject.as_ref();
    let Some(account) = subject.and_then(|subject| subject.service_account.as_ref()) else {
        return Ok(Err(
            "spec.executor names no service account: set spec.executor.subject.serviceAccount, or leave it out"
                .to_owned(),
        ));
    };
    let account = Account::new(&account.namespace, &account.name);
    let verbs = ["create", "update", "patch", "get"].into_iter().chain((fate == Fate::Removed).then_some("delete"));
    for verb in verbs {
        let right = (account.user.clone(), verb, Place::of(target));
        if site.read().rights.has(&right, now) {
            continue;
        }
        if !account.may(managed, verb, target).await? {
            return Ok(Err(account.denial(verb, target)));
        }
        site.update(|site, _| site.rights.note(right, now));
    }
    let gives_rights = target.manifest.group == "rbac.authorization.k8s.io" && RIGHTS.contains(&&*target.resource);
    if gives_rights { account.give(managed, target).await } else { Ok(Ok(())) }
}

impl Account {
    fn new(namespace: &str, name: &str) -> Self {
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        Self { user: format!("system:serviceaccount:{namespace}:{name}"), groups: groups.to_vec() }
    }

    async fn may(&self, managed: &Client, verb: &str, target: &Target) -> Result<bool, kube::Error> {
        let manifest = &target.manifest;
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(manifest.group.clone()),
            version: Some(manifest.version.clone()),
            resource: Some(target.resource.clone()),
            namespace: Some(manifest.namespace.clone()),
            name: Some(manifest.name.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(self.user.clone()),
            groups: Some(self.groups.clone()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(managed.clone()).create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Whether the account could give away the rights that an object gives: it is made in its name, and not kept.
    async fn give(&self, managed: &Client, target: &Target) -> Result<Result<(), String>, kube::Error> {
        let place = Place::of(target);
        let url = place.api(managed.clone()).resource_url().to_owned();
        let body = serde_json::to_vec(&target.manifest.object).map_err(kube::Error::SerdeError)?;
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let mut request = Request::new(url).create(&params, body).map_err(kube::Error::BuildRequest)?;
        let headers = request.headers_mut();
        let groups = self.groups.iter().map(|group| ("impersonate-group", group));
        for (name, value) in std::iter::once(("impersonate-user", &self.user)).chain(groups) {
            if let Ok(value) = http::HeaderValue::from_str(value) {
                headers.append(name, value);
            }
        }
        let Err(error) = managed.request_text(request).await else { return Ok(Ok(())) };
        match result_of(&error) {
            // It is there already, and whether it may be given was asked before that.
            WriteResult::Exists(_) | WriteResult::Conflict => Ok(Ok(())),
            WriteResult::Forbidden(why) => Ok(Err(format!(
                "not allowed to apply the resource {place}, {} can not give away rights that it has not: {why}",
                self.user
            ))),
            _ => Err(error),
        }
    }

    fn denial(&self, verb: &str, target: &Target) -> String {
        let place = Place::of(target);
        format!(
            "not allowed to apply the resource {place}, {} may not {verb} it: give the account of spec.executor a role for that on the cluster",
            self.user
        )
    }
}

#[cfg(test)]
mod tests {
    use drover_runtime::store::ObjectKey;

    use super::*;
    use crate::work::object::Resource;

    #[test]
    fn a_right_is_remembered_for_a_while() {
        let resource = Resource { group: String::new(), version: "v1".to_owned(), name: "secrets".to_owned() };
        let place = |name| Place { resource: resource.clone(), key: ObjectKey::namespaced("default", name) };
        let (now, right) = (Timestamp::UNIX_EPOCH, |name| ("jane".to_owned(), "get", place(name)));
        let mut rights = Rights::default();
        rights.note(right("a"), now);
        assert!(rights.has(&right("a"), now));
        assert!(!rights.has(&right("b"), now), "names can be allowed one by one");
        assert!(!rights.has(&("jane".to_owned(), "delete", place("a")), now));
        assert!(!rights.has(&("joe".to_owned(), "get", place("a")), now));
        let later = after(now, PATIENCE);
        assert!(!rights.has(&right("a"), later));
        rights.note(right("b"), later);
        assert_eq!(rights.0.len(), 1, "what is not known any more is not kept");
    }
}
