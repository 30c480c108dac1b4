use drover_api::{
    addon::{ConfigGroupResource, ConfigReferent, ConfigSpecHash},
    names::{CONFIG_SPEC_HASH_ANNOTATION, FLAT_CONFIG_SPEC_HASH_ANNOTATION, ORPHAN_ANNOTATION},
    work::ExecutorSubjectType,
};
use serde_json::json;

use super::*;
use crate::template::{
    Expected,
    fixtures::{Case, config_map, manifest, view, workload},
    objects,
};

fn in_namespace(mut manifest: Value, namespace: Option<&str>) -> Value {
    manifest["metadata"]["namespace"] = namespace.into();
    manifest
}

fn agent(kind: &str, namespace: Option<&str>) -> Value {
    in_namespace(workload(kind, &json!({ "name": "main" })), namespace)
}

fn namespace(case: &Case) -> String {
    install_namespace(&case.inputs(&case.blueprint().expect("it makes sense")))
}

/// A set of one template and one AddOnDeploymentConfig.
fn set() -> Set {
    let config = |resource: &str, namespace: Option<&str>| SetConfig {
        group_resource: ConfigGroupResource {
            group: "addon.open-cluster-management.io".to_owned(),
            resource: resource.to_owned(),
        },
        config: ConfigSpecHash {
            referent: ConfigReferent { namespace: namespace.map(str::to_owned), name: "hello".to_owned() },
            spec_hash: "h1".parse().expect("any text is a hash"),
        },
    };
    let version = Some("v1".parse().expect("a version"));
    Set::new([config("addontemplates", None), config("addondeploymentconfigs", Some("one"))], version)
}

/// A manifest of about so many bytes.
fn large(name: &str, size: usize) -> Value {
    let mut manifest = config_map(name);
    manifest["data"] = json!({ "x": "x".repeat(size) });
    manifest
}

#[test]
fn a_work_says_what_it_was_made_from() {
    let mut case = Case::new([config_map("a")]);
    case.set = set();
    let rendering = case.render();
    let metadata = &rendering.works[0].work.metadata;
    assert_eq!(metadata.name.as_deref(), Some("addon-hello-deploy-0"));
    assert_eq!(metadata.namespace.as_deref(), Some("one"));
    let labels = metadata.labels.as_ref().expect("it is labelled");
    assert_eq!((&*labels[ADDON_NAME_LABEL], &*labels[ADDON_VERSION_LABEL]), ("hello", "v1"));
    let annotations = metadata.annotations.as_ref().expect("it is annotated");
    assert_eq!(annotations[SET_ANNOTATION], case.set.fingerprint().as_str());
    let (ocm, flat) = (&annotations[CONFIG_SPEC_HASH_ANNOTATION], &annotations[FLAT_CONFIG_SPEC_HASH_ANNOTATION]);
    assert!(ocm.contains(r#""addontemplates.addon.open-cluster-management.io//hello":"h1""#), "{ocm}");
    assert!(flat.contains(r#""addontemplates.addon.open-cluster-management.io/hello":"h1""#), "{flat}");
    let [owner] = &metadata.owner_references.as_ref().expect("it is owned")[..] else { panic!("one owner") };
    assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("ManagedClusterAddOn", "uid", Some(true)));
}

#[test]
fn a_work_made_from_no_configuration_says_nothing_of_hashes() {
    let rendering = Case::new([config_map("a")]).render();
    let metadata = &rendering.works[0].work.metadata;
    let annotations: Vec<_> = metadata.annotations.iter().flatten().map(|(key, _)| key.as_str()).collect();
    assert_eq!(annotations, [SET_ANNOTATION, WORKS_ANNOTATION]);
    assert_eq!(metadata.labels.as_ref().expect("it is labelled").len(), 1);
}

#[test]
fn what_the_template_says_of_works_is_kept() {
    let subject = json!({ "type": "ServiceAccount", "serviceAccount": { "namespace": "ns", "name": "account" } });
    let case = Case::new([config_map("a")])
        .with("/agentSpec/executor", json!({ "subject": subject }))
        .with("/agentSpec/deleteOption", json!({ "propagationPolicy": "Orphan", "ttlSecondsAfterFinished": 9 }));
    let spec = &case.render().works[0].work.spec;
    let executor = spec.executor.as_ref().and_then(|executor| executor.subject.as_ref()).expect("it is kept");
    assert_eq!(executor.kind, ExecutorSubjectType::ServiceAccount);
    assert_eq!(spec.delete_option.as_ref().expect("it is kept").ttl_seconds_after_finished, Some(9));
}

#[test]
fn the_agent_is_where_the_settings_the_template_or_the_add_on_say() {
    let settings = |namespace: &str| json!({ "agentInstallNamespace": namespace });
    let case = |manifests: &[Value]| Case::new(manifests);
    let all = [agent("StatefulSet", Some("s")), agent("DaemonSet", Some("ds")), agent("Deployment", Some("d"))];
    assert_eq!(namespace(&case(&all)), "d");
    assert_eq!(namespace(&case(&all).settings(settings(""))), "d");
    assert_eq!(namespace(&case(&all).settings(settings("home"))), "home");
    assert_eq!(namespace(&case(&all[..2])), "ds");
    assert_eq!(namespace(&case(&all[..1])), "s");
    let mut bare = case(&[config_map("a"), agent("Deployment", None)]);
    assert_eq!(namespace(&bare), AGENT_NAMESPACE);
    bare.on_cluster.spec.install_namespace = Some(String::new());
    assert_eq!(namespace(&bare), AGENT_NAMESPACE);
    bare.on_cluster.spec.install_namespace = Some("asked".to_owned());
    assert_eq!(namespace(&bare), "asked");
    assert_eq!(bare.render().namespace, "asked");
}

#[test]
fn a_namespace_may_be_a_variable_but_not_its_own() {
    let variable =
        json!({ "customizedVariables": [{ "name": "NS", "value": "mine" }, { "name": "EMPTY", "value": "" }] });
    let case = |namespaces: &[&str]| {
        let workloads = namespaces.iter().zip(["Deployment", "DaemonSet", "StatefulSet"]);
        let workloads: Vec<_> = workloads.map(|(namespace, kind)| agent(kind, Some(namespace))).collect();
        Case::new(workloads).settings(variable.clone())
    };
    assert_eq!(namespace(&case(&["{{NS}}-{{CLUSTER_NAME}}"])), "mine-one");
    assert_eq!(namespace(&case(&["{{INSTALL_NAMESPACE}}"])), AGENT_NAMESPACE);
    assert_eq!(namespace(&case(&["{{INSTALL_NAMESPACE}}", "{{EMPTY}}", "{{NS}}"])), "mine");
    let manifests = case(&["{{INSTALL_NAMESPACE}}", "{{NS}}"]).manifests();
    assert_eq!(manifests[0]["metadata"]["namespace"], "mine");
}

#[test]
fn variables_are_filled_in_everywhere_in_manifests() {
    let mut manifest = config_map("{{NAME}}");
    manifest["data"] = json!({ "{{KEY}}": "{{CLUSTER_NAME}}:{{VALUE}}", "list": ["{{VALUE}}", 1] });
    let variables = json!([{ "name": "NAME", "value": "a" }, { "name": "VALUE", "value": "\"}\n{{NAME}}" }]);
    let case = Case::new([manifest]).settings(json!({ "customizedVariables": variables }));
    let mut expected = config_map("a");
    expected["data"] = json!({ "{{KEY}}": "one:\"}\n{{NAME}}", "list": ["\"}\n{{NAME}}", 1] });
    assert_eq!(case.manifests(), [expected]);
}

#[test]
fn an_unknown_variable_is_a_flaw_of_its_manifest() {
    let mut manifest = config_map("a");
    manifest["data"] = json!({ "x": "{{WHAT}}" });
    let flaw = Case::new([manifest]).flaw();
    let expected =
        "in the AddOnTemplate hello-template, the ConfigMap ns/a uses the variable {{WHAT}}, which has no value: ";
    assert!(flaw.starts_with(expected), "{flaw}");
}

#[test]
fn what_variables_make_of_a_manifest_is_looked_at_too() {
    let named = |name: &str| {
        Case::new([config_map("{{NAME}}"), config_map("b")])
            .settings(json!({ "customizedVariables": [{ "name": "NAME", "value": name }] }))
    };
    assert_eq!(named("a").manifests().len(), 2);
    assert!(named("b").flaw().contains("the ConfigMap ns/b is there twice: "));
    assert!(named("").flaw().contains("the ConfigMap ns/{{NAME}} has no metadata.name"));
    let kind = Case::new([manifest("batch/v1", "{{KIND}}", "a")])
        .settings(json!({ "customizedVariables": [{ "name": "KIND", "value": "Job" }] }));
    assert_eq!(kind.manifests()[0]["kind"], "Job");
}

#[test]
fn what_would_be_one_object_in_one_namespace_is_refused() {
    let case = Case::new([in_namespace(config_map("a"), Some("one")), in_namespace(config_map("a"), Some("two"))]);
    assert_eq!(case.manifests().len(), 2);
    let flaw = case.settings(json!({ "agentInstallNamespace": "home" })).flaw();
    assert!(flaw.contains("the ConfigMap home/a is there twice once everything is in one namespace"), "{flaw}");
}

#[test]
fn a_manifest_in_the_place_of_the_proxy_s_certificates_is_refused() {
    let pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
    let case = Case::new([config_map("hello-proxy-ca"), agent("Deployment", Some("ns"))]);
    let flaw = case.settings(json!({ "proxyConfig": { "caBundle": pem } })).flaw();
    assert!(flaw.contains("the ConfigMap ns/hello-proxy-ca is there twice: "), "{flaw}");
}

#[test]
fn certificates_that_are_none_name_the_settings() {
    let mut case = Case::new([config_map("a")]).settings(json!({ "proxyConfig": { "caBundle": "AAAA" } }));
    case.set = set();
    assert_eq!(case.try_render(), Err(Flaw::CaBundle { settings: "one/hello".to_owned() }));
}

#[test]
fn workloads_are_stamped_and_their_pods_are_not() {
    let kinds = ["Deployment", "DaemonSet", "StatefulSet"];
    let mut job = agent("Job", Some("ns"));
    job["apiVersion"] = json!("batch/v1");
    let mut manifests: Vec<_> = kinds.iter().map(|kind| agent(kind, Some("ns"))).collect();
    manifests.extend([job, config_map("a")]);
    let case = Case::new(manifests);
    let rendering = case.render();
    let work = &rendering.works[0];
    for (place, manifest) in work.work.spec.manifests().iter().enumerate() {
        let stamp = manifest.pointer("/metadata/annotations").and_then(|annotations| annotations.get(SET_ANNOTATION));
        let expected = (place < 3).then(|| json!(case.set.fingerprint().as_str()));
        assert_eq!(stamp, expected.as_ref(), "{}", manifest["kind"]);
        assert_eq!(manifest.pointer("/spec/template/metadata"), None);
    }
    let found: Vec<_> = work.workloads.iter().map(|workload| (workload.kind.as_str(), workload.is_stamped)).collect();
    assert_eq!(found, kinds.map(|kind| (kind, true)));
}

#[test]
fn annotations_of_workloads_are_kept_beside_the_stamp() {
    let mut agent = agent("Deployment", Some("ns"));
    agent["metadata"]["annotations"] = json!({ "own": "1", "drover.dev/set": "another" });
    let case = Case::new([agent]);
    let annotations = &case.manifests()[0]["metadata"]["annotations"];
    assert_eq!(annotations, &json!({ "own": "1", "drover.dev/set": case.set.fingerprint().as_str() }));
}

#[test]
fn many_manifests_make_several_works() {
    let sizes = [200_000, 200_000, 200_000, 10, 300_000];
    let manifests: Vec<_> = sizes.iter().enumerate().map(|(place, size)| large(&format!("m{place}"), *size)).collect();
    let mut case = Case::new(manifests.clone());
    case.template["agentSpec"]["workload"]["manifests"][3] = agent("Deployment", Some("ns"));
    let rendering = case.render();
    let names: Vec<_> = rendering.works.iter().map(|work| work.work.name_any()).collect();
    assert_eq!(names, ["addon-hello-deploy-0", "addon-hello-deploy-1", "addon-hello-deploy-2"]);
    let counts: Vec<_> = rendering.works.iter().map(|work| work.work.spec.manifests().len()).collect();
    assert_eq!(counts, [2, 2, 1]);
    assert!(
        rendering.works.iter().all(|work| work.work.annotations()[WORKS_ANNOTATION] == "3"),
        "each counts them all"
    );
    let workloads: Vec<_> = rendering.works.iter().map(|work| work.workloads.len()).collect();
    assert_eq!(workloads, [0, 1, 0]);
    let configs: Vec<_> = rendering.works.iter().map(|work| work.work.spec.manifest_configs.len()).collect();
    assert_eq!(configs, [0, 1, 0]);
}

/// What the works of a template with these manifests are when the first has to hold so many objects of the second.
fn holding(case: &Case, count: usize) -> (Rendering, Vec<RenderedWork>) {
    let in_the_end = case.render();
    let held = objects(&in_the_end.works[1].work.spec).into_iter().take(count).collect();
    let holds = Holds::from([("addon-hello-deploy-0".to_owned(), held)]);
    let blueprint = case.blueprint().expect("it makes sense");
    let rendering = render_holding(&case.inputs(&blueprint), &holds).expect("it can be made");
    (in_the_end, rendering.works)
}

#[test]
fn a_work_holds_objects_of_others_with_all_that_is_said_of_them() {
    let mut kept = large("kept", 100_000);
    kept["metadata"]["annotations"] = json!({ ORPHAN_ANNOTATION: "" });
    let case = Case::new([large("a", 400_000), kept, agent("Deployment", Some("ns")), large("c", 10)]);
    let (in_the_end, works) = holding(&case, 2);
    let (first, own) = (&works[0].work, view(&in_the_end.works[0].work));
    let expected = Expected::of(&in_the_end.works[0]);
    assert!(expected.is_holding(&view(first)) && !expected.is_made(&view(first)));
    assert!(expected.is_made(&own) && !expected.is_holding(&own));
    assert_eq!(first.spec.manifests()[1..], in_the_end.works[1].work.spec.manifests()[..2]);
    assert_eq!(first.spec.manifest_configs, in_the_end.works[1].work.spec.manifest_configs, "how it is applied");
    assert_eq!(first.spec.delete_option, in_the_end.works[1].work.spec.delete_option, "what stays when it lets go");
    assert_eq!(works[1..], in_the_end.works[1..], "the others are as they will be");
}

#[test]
fn a_work_that_would_be_too_large_with_what_it_holds_is_left_out() {
    let case = Case::new([large("a", 400_000), large("b", 400_000), large("c", 400_000)]);
    assert_eq!(holding(&case, 1).1.len(), 3, "two works fit into one for a while");
    let in_the_end = case.render();
    let of_others = in_the_end.works[1..].iter().flat_map(|made| objects(&made.work.spec)).collect();
    let holds = Holds::from([("addon-hello-deploy-0".to_owned(), of_others)]);
    let blueprint = case.blueprint().expect("it makes sense");
    let rendering = render_holding(&case.inputs(&blueprint), &holds).expect("it can be made");
    assert_eq!(rendering.works, in_the_end.works[1..]);
}

#[test]
fn a_manifest_that_fits_into_no_work_is_refused() {
    let overhead = large("a", 0).to_string().len();
    assert_eq!(Case::new([large("a", LIMIT - overhead)]).manifests().len(), 1);
    let flaw = Case::new([large("a", LIMIT - overhead + 1)]).flaw();
    let expected = "the ConfigMap ns/a has 409601 bytes, and a work holds 409600 at most: ";
    assert!(flaw.contains(expected), "{flaw}");
}

#[test]
fn the_same_inputs_make_the_same_works_and_others_make_others() {
    let case = Case::new([agent("Deployment", Some("ns")), config_map("a")]);
    assert_eq!(case.render(), case.render());
    let text = |case: &Case| serde_json::to_string(&case.render().works[0].work).expect("it can be written");
    assert_eq!(text(&case), text(&case));
    let mut other = case.clone();
    other.set = set();
    assert_ne!(other.render().works[0].digest, case.render().works[0].digest);
    let mut elsewhere = case.clone();
    elsewhere.on_cluster.metadata.namespace = Some("two".to_owned());
    assert_ne!(elsewhere.render().works[0].digest, case.render().works[0].digest);
}

#[test]
fn a_digest_is_that_of_the_work() {
    let rendering = Case::new([agent("Deployment", Some("ns"))]).render();
    let work = &rendering.works[0];
    assert_eq!(work.digest, digest(&work.work.spec));
    assert_eq!(work.digest.len(), 16);
}

#[test]
fn a_blueprint_can_be_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Blueprint>();
}
