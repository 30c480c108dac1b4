//! What becomes of the requests of add-ons' agents, and what is said of it.

use std::{fs, path::PathBuf};

use drover_api::{
    cluster::ManagedCluster,
    names::{ADDON_NAME_LABEL, CERTIFICATES_SIGNED, CLUSTER_NAME_LABEL},
};
use drover_engine::{
    certificate::CLIENT_SIGNER,
    plan::{Subresource, WriteResult},
};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::*;
use crate::addon::scene::{Scene, drain, noon, words};

const SIGNER: &str = "example.com/signer";
const PATCH_REQUEST: &str = "Patch CertificateSigningRequest request";
const PATCH_ADDON: &str = "Patch ManagedClusterAddOn one/hello";

fn key() -> ObjectKey {
    ObjectKey::cluster_wide("request")
}

fn addon() -> ObjectKey {
    ObjectKey::namespaced("one", "hello")
}

/// A controller that leaves clients of the API server to Kubernetes.
fn controller() -> AddOnRequests {
    AddOnRequests::new("hub".to_owned(), None)
}

/// A fleet with an add-on that registers with the API server and with a signer of its own.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.cluster("one", &json!({}));
    let subject = json!({ "user": "user1", "groups": ["g1", "g2"], "organizationUnit": ["o1"] });
    let custom = json!({ "signerName": SIGNER, "subject": subject, "signingCA": { "name": "ca" } });
    let specs = json!([{ "type": "KubeClient" }, { "type": "CustomSigner", "customSigner": custom }]);
    scene.template("hello", &specs);
    let given = scene.given("hello");
    scene.on_cluster("one", "hello", &json!({ "status": { "conditions": [given] } }));
    drain(&scene.queues.addon_requests);
    scene
}

/// A request of the cluster's agent, for this signer.
fn request(csr: &str, signer: &str) -> Value {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests-data").join(csr);
    json!({
        "metadata": { "labels": { CLUSTER_NAME_LABEL: "one", ADDON_NAME_LABEL: "hello" } },
        "spec": {
            "request": ByteString(fs::read(file).expect("a request")),
            "signerName": signer,
            "usages": ["digital signature", "key encipherment", "client auth"],
            "username": "system:open-cluster-management:one:agent",
            "groups": ["system:open-cluster-management:one"],
        },
    })
}

fn custom() -> Value {
    request("agent.csr", SIGNER)
}

fn with_status(mut request: Value, condition: &str, certificate: Option<&str>) -> Value {
    request["status"] = json!({ "conditions": [{ "type": condition, "status": "True" }] });
    if let Some(certificate) = certificate {
        request["status"]["certificate"] = json!(certificate);
    }
    request
}

fn approved(request: Value) -> Value {
    with_status(request, "Approved", None)
}

fn signed(request: Value) -> Value {
    with_status(request, "Approved", Some(""))
}

impl Scene {
    fn asks(&mut self, name: &str, request: Value) {
        self.set::<CertificateSigningRequest>(None, name, request);
    }

    fn request(&self) -> &CertificateSigningRequest {
        self.cache.belongings.requests.get(&key()).expect("the request is there")
    }

    /// Has the add-on say this of its certificates.
    fn says(&mut self, status: &str) {
        self.says_why(status, "", "");
    }

    fn says_why(&mut self, status: &str, reason: &str, message: &str) {
        let condition = json!({ "type": CERTIFICATES_SIGNED, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let given = self.given("hello");
        self.on_cluster("one", "hello", &json!({ "status": { "conditions": [given, condition] } }));
    }
}

fn forbidden() -> WriteResult {
    WriteResult::Forbidden("no".to_owned())
}

/// Has what is done about a request come to this.
fn comes_to(scene: &mut Scene, controller: &AddOnRequests, request: &ObjectKey, result: &WriteResult) {
    let plan = scene.plan(controller, request);
    match (plan.actions.last(), plan.ordered.last()) {
        (Some(sign), _) => scene.sent(controller, request, PlanPart::Action(sign), result),
        (None, Some(decision)) => scene.sent(controller, request, PlanPart::Write(decision), result),
        (None, None) => panic!("nothing is done about the request"),
    }
}

/// What a plan decides on its request.
fn decided(plan: &Plan<Sign>) -> Option<(Subresource, String)> {
    let [write] = &plan.ordered[..] else { return None };
    let condition = &write.body()?["status"]["conditions"][0]["type"];
    Some((write.subresource()?, condition.as_str()?.to_owned()))
}

/// The CA that a controller would sign the request with.
fn ca(scene: &Scene, controller: &AddOnRequests) -> Option<String> {
    let blueprint = blueprint(&scene.cache, &addon(), noon()).expect("it is known");
    controller.ca(scene.request(), blueprint.registrations()).map(|ca| ca.to_string())
}

#[test]
fn a_request_is_approved_and_then_signed_with_the_add_ons_ca() {
    let (mut scene, controller) = (scene(), controller());
    scene.asks("request", custom());
    assert_eq!(drain(&scene.queues.addon_requests), ["request"]);
    assert_eq!(drain(&scene.queues.requests).len(), 0, "it is none of a cluster's agent");
    let plan = scene.plan(&controller, &key());
    assert_eq!(decided(&plan), Some((Subresource::Approval, "Approved".to_owned())));
    assert_eq!(plan.actions, [], "it is not approved yet");
    scene.asks("request", approved(custom()));
    assert_eq!(drain(&scene.queues.addon_requests), ["request"]);
    // The CA is in the hub's own namespace.
    let (request, ca) = (scene.cache.belongings.requests.get(&key()).cloned(), ObjectKey::namespaced("hub", "ca"));
    let sign = Sign { request: request.expect("it is there"), ca, now: noon() };
    assert_eq!(scene.plan(&controller, &key()), Plan::act(sign));
    scene.asks("request", signed(custom()));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
}

#[test]
fn what_is_not_the_add_ons_is_denied() {
    let (mut scene, controller) = (scene(), controller());
    let mut foreign = custom();
    foreign["spec"]["username"] = json!("system:open-cluster-management:two:agent");
    scene.asks("request", foreign.clone());
    let denied = Some((Subresource::Approval, "Denied".to_owned()));
    assert_eq!(decided(&scene.plan(&controller, &key())), denied);
    scene.asks("request", approved(foreign));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0, "whoever has approved it, it is not signed");
}

#[test]
fn whose_registration_is_not_known_waits_until_it_is() {
    let (mut scene, controller) = (scene(), controller());
    scene.on_cluster("one", "hello", &json!({ "status": { "namespace": "x" } }));
    scene.asks("request", custom());
    let plan = scene.plan(&controller, &key());
    assert_eq!((words(&plan).len(), plan.wake), (0, Some(after(noon(), PATIENCE))), "nobody may tell when it is");
    scene.asks("other", signed(custom()));
    assert_eq!(scene.plan(&controller, &ObjectKey::cluster_wide("other")).wake, None, "nothing is to be done about it");
    drain(&scene.queues.addon_requests);
    let given = scene.given("hello");
    scene.on_cluster("one", "hello", &json!({ "status": { "conditions": [given] } }));
    assert_eq!(drain(&scene.queues.addon_requests), ["request"]);
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_REQUEST]);
}

#[test]
fn whose_cluster_is_not_accepted_waits_until_it_is() {
    let (mut scene, controller) = (scene(), controller());
    scene.set::<ManagedCluster>(None, "one", json!({ "spec": { "hubAcceptsClient": false } }));
    scene.asks("request", custom());
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
    drain(&scene.queues.addon_requests);
    scene.cluster("one", &json!({}));
    assert_eq!(drain(&scene.queues.addon_requests), ["request"]);
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_REQUEST]);
    scene.cluster("other", &json!({}));
    assert_eq!(drain(&scene.queues.addon_requests).len(), 0);
}

#[test]
fn clients_of_the_api_server_are_signed_for_where_kubernetes_does_not() {
    let mut scene = scene();
    let by_hub = AddOnRequests::new("hub".to_owned(), Some(ObjectKey::namespaced("kube-system", "client-ca")));
    scene.asks("request", request("addon.csr", CLIENT_SIGNER));
    assert_eq!(words(&scene.plan(&controller(), &key())), [PATCH_REQUEST]);
    scene.asks("request", approved(request("addon.csr", CLIENT_SIGNER)));
    assert_eq!(words(&scene.plan(&controller(), &key())).len(), 0, "Kubernetes signs");
    assert_eq!(words(&scene.plan(&by_hub, &key())), [PATCH_REQUEST]);
    assert_eq!(ca(&scene, &by_hub).as_deref(), Some("kube-system/client-ca"));
}

#[test]
fn the_ca_for_clients_of_the_api_server_signs_nobody_whom_a_template_has_named() {
    let mut scene = scene();
    let by_hub = AddOnRequests::new("hub".to_owned(), Some(ObjectKey::namespaced("hub", "ca")));
    scene.asks("request", approved(custom()));
    assert_eq!(ca(&scene, &by_hub).as_deref(), Some("hub/ca"));
    assert_eq!(words(&scene.plan(&by_hub, &key())), [PATCH_ADDON], "it is said, and nothing is signed");
}

#[test]
fn what_could_not_be_done_is_said_before_it_is_tried_again() {
    let (mut scene, controller) = (scene(), controller());
    scene.asks("request", custom());
    comes_to(&mut scene, &controller, &key(), &WriteResult::Conflict);
    let report = say(&scene.cache, &addon(), Signing::Failed("why"), noon()).expect("it is news");
    scene.sent(&controller, &key(), PlanPart::Write(&report), &forbidden());
    assert_eq!(
        words(&scene.plan(&controller, &key())),
        [PATCH_REQUEST],
        "somebody was faster, or it was something else"
    );
    comes_to(&mut scene, &controller, &key(), &forbidden());
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_ADDON, PATCH_REQUEST]);
    // What was said of one step is not said of the next.
    scene.asks("request", approved(custom()));
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_REQUEST]);
    comes_to(&mut scene, &controller, &key(), &forbidden());
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_ADDON, PATCH_REQUEST]);
    scene.gone::<CertificateSigningRequest>(None, "request");
    assert_eq!(drain(&scene.queues.addon_requests), ["request"]);
    scene.plan(&controller, &key());
    assert!(controller.attempts().is_empty());
}

#[test]
fn a_denial_that_the_hub_has_no_right_to_is_left_for_a_while_and_then_tried_again() {
    let (mut scene, controller) = (scene(), controller());
    scene.asks("request", request("agent.csr", "example.com/other"));
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_REQUEST]);
    comes_to(&mut scene, &controller, &key(), &WriteResult::Rejected("no".to_owned()));
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_REQUEST]);
    comes_to(&mut scene, &controller, &key(), &forbidden());
    let later = after(noon(), PATIENCE);
    for now in [noon(), after(noon(), PATIENCE / 2)] {
        let plan = scene.plan_at(&controller, &key(), now);
        assert_eq!((words(&plan).len(), plan.wake), (0, Some(later)), "however often it is looked at");
    }
    assert_eq!(words(&scene.plan_at(&controller, &key(), later)), [PATCH_REQUEST]);
    comes_to(&mut scene, &controller, &key(), &forbidden());
    let plan = scene.plan_at(&controller, &key(), later);
    assert_eq!((words(&plan).len(), plan.wake), (0, Some(after(later, PATIENCE))));
}

#[test]
fn that_all_is_signed_is_said_where_it_was_not_and_when_no_other_waits() {
    let (mut scene, controller) = (scene(), controller());
    scene.asks("request", signed(custom()));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
    scene.says("False");
    scene.asks("other", approved(custom()));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0, "another waits");
    scene.asks("other", with_status(custom(), "Denied", None));
    assert_eq!(words(&scene.plan(&controller, &key())), [PATCH_ADDON]);
    scene.says("True");
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
}

#[test]
fn a_refusal_says_what_to_do() {
    let refused = |result: &WriteResult| Refusal::of(result).map(|refusal| (refusal.why, refusal.is_forbidden));
    let (why, is_forbidden) = refused(&forbidden()).expect("the hub has no right to it");
    assert!(is_forbidden && why.contains("drover.dev/hub-signs"), "{why}");
    assert_eq!(refused(&WriteResult::Rejected("no CA".to_owned())), Some(("no CA".to_owned(), false)));
    assert_eq!(refused(&WriteResult::Conflict), None);
    assert_eq!(refused(&WriteResult::Unreachable("refused".to_owned())), None);
}

/// Has these requests be approved, tried, and refused because there is no CA.
fn could_not_sign(scene: &mut Scene, controller: &AddOnRequests, names: &[&str]) {
    for name in names {
        scene.asks(name, approved(custom()));
        let key = ObjectKey::cluster_wide(name);
        comes_to(scene, controller, &key, &WriteResult::Rejected("there is no CA".to_owned()));
    }
    drain(&scene.queues.addon_requests);
}

#[test]
fn what_is_said_names_the_first_request_that_failed_and_its_signer() {
    let (mut scene, controller) = (scene(), controller());
    could_not_sign(&mut scene, &controller, &["request", "other"]);
    let said = |name: &str| {
        Some(format!("could not sign the request {name} for the signer example.com/signer: there is no CA"))
    };
    assert_eq!(controller.failure(&scene.cache, &addon()), said("other"));
    scene.asks("other", signed(custom()));
    assert_eq!(controller.failure(&scene.cache, &addon()), said("request"));
    scene.gone::<CertificateSigningRequest>(None, "request");
    assert_eq!(controller.failure(&scene.cache, &addon()), None);
}

#[test]
fn requests_that_can_not_be_signed_leave_each_other_alone() {
    let (mut scene, controller) = (scene(), controller());
    could_not_sign(&mut scene, &controller, &["request", "other"]);
    let plan = |scene: &mut Scene, name: &str| words(&scene.plan(&controller, &ObjectKey::cluster_wide(name)));
    assert_eq!(plan(&mut scene, "request"), [PATCH_ADDON, PATCH_REQUEST]);
    let message = controller.failure(&scene.cache, &addon()).expect("two have failed");
    scene.says_why("False", "SigningFailed", &message);
    assert_eq!(drain(&scene.queues.addon_requests), [""; 0], "what was said is no reason to try again");
    for name in ["request", "other"] {
        let writes = plan(&mut scene, name);
        assert_eq!(writes, [format!("Patch CertificateSigningRequest {name}")], "it was said already");
    }
}

#[test]
fn requests_are_marked_by_what_they_depend_on() {
    let mut scene = scene();
    scene.asks("request", custom());
    let given = scene.given("hello");
    let mut marked = |object: Value| {
        drain(&scene.queues.addon_requests);
        scene.on_cluster("one", "hello", &object);
        drain(&scene.queues.addon_requests)
    };
    let well = json!({ "type": "Available", "status": "True", "reason": "", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    assert_eq!(marked(json!({ "status": { "conditions": [given, well] } })), [""; 0]);
    let registrations = json!([{ "signerName": SIGNER }]);
    let status = json!({ "conditions": [given], "registrations": registrations });
    assert_eq!(marked(json!({ "status": status })), ["request"], "it says otherwise how to register");
    let spec = json!({ "installNamespace": "other" });
    assert_eq!(marked(json!({ "spec": spec, "status": status })), ["request"]);
    let mut other = given.clone();
    other["lastTransitionTime"] = json!("2026-01-02T00:00:00Z");
    let status = json!({ "conditions": [other], "registrations": registrations });
    assert_eq!(marked(json!({ "spec": spec, "status": status })), ["request"], "it was given anew");
    let going = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z" });
    assert_eq!(marked(json!({ "metadata": going, "spec": spec, "status": status })), ["request"]);
    let successor = json!({ "uid": "another" });
    assert_eq!(marked(json!({ "metadata": successor, "spec": spec, "status": status })), ["request"]);
}

#[test]
fn when_the_request_that_failed_is_gone_or_denied_the_add_on_says_so() {
    let (mut scene, controller) = (scene(), controller());
    could_not_sign(&mut scene, &controller, &["other", "request"]);
    scene.says("False");
    drain(&scene.queues.addon_requests);

    scene.gone::<CertificateSigningRequest>(None, "request");
    scene.plan(&controller, &key());
    assert_eq!(drain(&scene.queues.addon_requests), ["one/hello", "request"]);
    assert_eq!(words(&scene.plan(&controller, &addon())).len(), 0, "another waits");

    scene.asks("other", with_status(custom(), "Denied", None));
    let other = ObjectKey::cluster_wide("other");
    assert_eq!(words(&scene.plan(&controller, &other)), [PATCH_ADDON]);
    scene.gone::<CertificateSigningRequest>(None, "other");
    assert_eq!(words(&scene.plan(&controller, &addon())), [PATCH_ADDON]);
}

#[test]
fn what_was_said_of_a_request_that_has_gone_while_no_hub_was_there_is_put_right() {
    let (mut scene, controller) = (scene(), controller());
    scene.gone::<ManagedClusterAddOn>(Some("one"), "hello");
    drain(&scene.queues.addon_requests);
    scene.says("False");
    assert_eq!(drain(&scene.queues.addon_requests), ["one/hello"]);
    assert_eq!(words(&scene.plan(&controller, &addon())), [PATCH_ADDON]);
    scene.says("True");
    assert_eq!(words(&scene.plan(&controller, &addon())).len(), 0);
}

#[test]
fn a_request_that_is_approved_and_not_ours_to_sign_is_no_reason_to_say_that_all_is_signed() {
    let (mut scene, controller) = (scene(), controller());
    scene.says("False");
    scene.asks("request", approved(request("addon.csr", CLIENT_SIGNER)));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
}

#[test]
fn a_request_of_a_clusters_agent_is_looked_at_until_it_is_signed() {
    let mut scene = scene();
    let of_cluster = |mut request: Value| {
        request["metadata"]["labels"] = json!({ CLUSTER_NAME_LABEL: "one" });
        request
    };
    let asked = || of_cluster(request("cluster.csr", CLIENT_SIGNER));
    for (request, is_marked) in [(asked(), true), (approved(asked()), true), (signed(asked()), false)] {
        scene.asks("request", request);
        assert_eq!(drain(&scene.queues.requests).len(), usize::from(is_marked));
        assert_eq!(drain(&scene.queues.addon_requests).len(), 0, "it is of no add-on");
    }
}
