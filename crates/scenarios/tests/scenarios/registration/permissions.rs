//! What the agent of an add-on may do on the hub: exactly what its template says, for as long as it says so.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use drover_api::{
    addon::ClusterManagementAddOn,
    names::{AVAILABLE, MANIFEST_APPLIED, REGISTRATION_APPLIED, TEMPLATE_BINDING_LABEL},
};
use drover_runtime::clock::after;
use drover_testkit::{
    World,
    certificate::Certificate,
    objects,
    play::{Asked, Wish},
    wait,
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::{ClusterRole, PolicyRule, Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use serde_json::{Value, json};

use super::{Ground, Site, allowed, forbidden, of, who};
use crate::{
    documents::{read, repository},
    running::{change, create},
};

drover_testkit::scenarios! {
    Own {
        an_agent_may_do_what_its_template_says_and_nothing_else,
        permissions_change_with_the_template_and_go_with_the_addon,
        both_ways_to_write_a_permission_mean_the_same,
        a_role_that_the_hub_may_not_give_is_told_and_holds_up_nothing,
        a_template_gives_nobody_what_the_hub_has_itself,
    }
}

/// The namespace in which all agents of the example may do something.
const SINGLE: &str = "open-cluster-management";
/// For how long the control plane's own signer signs.
const YEAR: Duration = Duration::from_hours(365 * 24);
const APPLIED: (&str, &str, &str) = (REGISTRATION_APPLIED, "True", "SetPermissionApplied");

/// The ground of the example, where the hub has been granted all that it needs.
async fn granted(world: World) -> Ground {
    let ground = Ground::prepare(world).await;
    ground.world.namespace_named(SINGLE).await;
    ground.apply(&["roles.yaml"]).await;
    ground.grant_as_in_the_example().await;
    ground
}

async fn an_agent_may_do_what_its_template_says_and_nothing_else(world: World) {
    let site = granted(world).await.start().await;
    let agent = site.join("cluster1").await;
    site.join("cluster10").await;
    site.ground.apply(&["addon-template.yaml", "addon-deployment-config.yaml"]).await;
    site.ground.apply(&["cluster-management-addon.yaml", "managed-cluster-addon.yaml"]).await;
    // The other cluster has the same add-on, whose agent must not be taken for this one.
    create(&site.on("cluster10"), objects::addon_on("cluster10", "hello-template")).await;
    for cluster in ["cluster1", "cluster10"] {
        site.says(cluster, "hello-template", APPLIED, "").await;
    }
    let registrations = site.registrations("cluster1", "hello-template").await;
    let wish = Wish::of_addon("cluster1", "hello-template", &registrations[0]);

    let asked = site.ask(&agent.client(), &wish).await;

    let (type_, reason, _) = site.decided(asked.name()).await;
    assert_eq!((&*type_, &*reason), ("Approved", "AgentOfAddOn"));
    let (_, until) = Certificate::read(&asked.certificate(site.world()).await).validity();
    assert!(until > after(site.now(), YEAR / 2), "the control plane signs for a year, the hub for a day");
    let client = asked.client(site.world()).await;
    let (user, groups) = who(&client).await;
    assert_eq!(user, "system:open-cluster-management:cluster:cluster1:addon:hello-template:agent:hello-template-agent");
    let expected = ["cluster:cluster1:addon:hello-template", "addon:hello-template"];
    assert_eq!(groups, expected.map(|group| format!("system:open-cluster-management:{group}")).into());

    let (admin, reader) = roles();
    until_allowed(&client, "cluster1").await;
    let (own, everybody) = (asked.kubeconfig(site.world()).await, nobody(&site).await);
    for (namespace, rules) in [("cluster1", &*admin), (SINGLE, &reader), ("cluster10", &[]), ("default", &[])] {
        let mut rights = list(&site, &own, namespace).await;
        for line in list(&site, &everybody, namespace).await {
            assert!(rights.remove(&line), "everybody may do that in {namespace}, and so may an agent: {line}");
        }
        assert_eq!(rights, rules.iter().flat_map(lines).collect(), "in {namespace}");
    }
    try_out(&client).await;
    site.hub.stop().await;
}

/// Tries what an agent of the add-on on cluster1 may do, and what not.
async fn try_out(client: &Client) {
    let maps = |namespace: &str| Api::<ConfigMap>::namespaced(client.clone(), namespace);
    create(&maps("cluster1"), map("own")).await;
    maps(SINGLE).list(&ListParams::default()).await.expect("it reads in the single namespace");
    for namespace in [SINGLE, "cluster10", "default"] {
        let made = maps(namespace).create(&PostParams::default(), &map("other")).await;
        assert_eq!(forbidden(made), Ok(()), "in {namespace}");
    }
    for namespace in ["cluster10", "default"] {
        let read = maps(namespace).list(&ListParams::default()).await;
        assert_eq!(forbidden(read), Ok(()), "in {namespace}");
    }
    for namespace in ["cluster1", SINGLE, "cluster10"] {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        let read = secrets.list(&ListParams::default()).await;
        assert_eq!(forbidden(read), Ok(()), "in {namespace}");
    }
}

fn map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

/// Waits until an agent may make ConfigMaps in its cluster's namespace and read them in the single one: the server learns of bindings a
/// moment after they were written.
async fn until_allowed(client: &Client, cluster: &str) {
    let own = Api::<ConfigMap>::namespaced(client.clone(), cluster);
    wait::attempt("the agent has its role", async || allowed(own.create(&dry_run(), &map("dry")).await)).await;
    let single = Api::<ConfigMap>::namespaced(client.clone(), SINGLE);
    wait::attempt("the agent has its other role", async || allowed(single.get_opt("none").await)).await;
}

fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// What the example's roles allow: in the cluster's namespace, and in the single one.
fn roles() -> (Vec<PolicyRule>, Vec<PolicyRule>) {
    let roles: Vec<Value> = read(&repository().join("examples/template/roles.yaml"));
    let rules = |name: &str| {
        let role = roles.iter().find(|role| role["metadata"]["name"] == name).expect("the example has such a role");
        of(role["rules"].clone())
    };
    (rules("cm-admin"), rules("cm-reader"))
}

/// The kubeconfig of somebody who may do no more than everybody whom the server knows.
async fn nobody(site: &Site) -> PathBuf {
    Asked::approved(site.world(), &Wish::to_be("nobody", &[])).await.kubeconfig(site.world()).await
}

/// What somebody may do in a namespace, line by line as kubectl lists it.
async fn list(site: &Site, kubeconfig: &Path, namespace: &str) -> BTreeSet<String> {
    let listed =
        site.world().kubectl_as(kubeconfig, ["auth", "can-i", "--list", "--no-headers", "-n", namespace]).await;
    let lines = listed.success();
    lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A rule, as kubectl lists it.
fn lines(rule: &PolicyRule) -> Vec<String> {
    let group = match rule.api_groups.as_deref() {
        Some([group]) if group.is_empty() => String::new(),
        Some([group]) => format!(".{group}"),
        groups => panic!("the example's rules have one group each: {groups:?}"),
    };
    let verbs = rule.verbs.join(" ");
    rule.resources.iter().flatten().map(|resource| format!("{resource}{group} [] [] [{verbs}]")).collect()
}

/// A registration with the hub, with a role in the cluster's namespace and one in the single one.
fn registers(current: &str, single: &str) -> Value {
    json!([{ "type": "KubeClient", "kubeClient": { "hubPermissions": [
        { "type": "CurrentCluster", "currentCluster": { "clusterRoleName": current } },
        { "type": "SingleNamespace", "singleNamespace": { "namespace": SINGLE,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": single } } },
    ] } }])
}

/// The names of the bindings of an add-on on a cluster: in the cluster's namespace, and in the single one.
fn names(addon: &str, cluster: &str, current: &str, single: &str) -> [String; 2] {
    let name = |role: &str| format!("open-cluster-management:{addon}:{cluster}:{role}");
    [name(&format!("clusterrole:{current}")), name(&format!("role:{single}"))]
}

/// Makes roles that do not go beyond reading, one for the cluster's namespace and one for the single one, and lets the hub give them away.
async fn make_others(site: &Site) {
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }]);
    let client = site.client();
    let current: ClusterRole = of(json!({ "metadata": { "name": "cm-getter" }, "rules": rules }));
    create(&Api::all(client.clone()), current).await;
    let single: Role = of(json!({ "metadata": { "name": "cm-single-getter" }, "rules": rules }));
    create(&Api::namespaced(client, SINGLE), single).await;
    let bind = |resource: &str, name: &str, verbs: &[&str]| {
        let group = "rbac.authorization.k8s.io";
        json!({ "apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": verbs })
    };
    let granted = json!({
        "metadata": { "name": "others", "labels": { "drover.dev/hub-binds": "true" } },
        "rules": [
            bind("clusterroles", "cm-getter", &["bind"]),
            bind("roles", "cm-single-getter", &["bind", "bind-elsewhere"]),
        ],
    });
    site.ground.grant(vec![of(granted)]).await;
}

async fn permissions_change_with_the_template_and_go_with_the_addon(world: World) {
    let site = granted(world).await.start().await;
    make_others(&site).await;
    let agent = site.join("c1").await;
    site.join("c10").await;
    site.deploy("hello", registers("cm-admin", "cm-reader"), &["c1", "c10"]).await;
    let both = async |cluster: &str, roles: (&str, &str), is_there: bool| {
        let [current, single] = names("hello", cluster, roles.0, roles.1);
        for (namespace, name) in [(cluster, current), (SINGLE, single)] {
            let bindings = site.bindings(namespace);
            if is_there {
                wait::until(&bindings, &name, "it is there", |_| true).await;
            } else {
                wait::gone(&bindings, &name).await;
            }
        }
    };
    let (first, second) = (("cm-admin", "cm-reader"), ("cm-getter", "cm-single-getter"));
    both("c1", first, true).await;
    both("c10", first, true).await;
    let registrations = site.registrations("c1", "hello").await;
    let asked = site.ask(&agent.client(), &Wish::of_addon("c1", "hello", &registrations[0])).await;
    let client = asked.client(site.world()).await;
    until_allowed(&client, "c1").await;

    site.template("hello-v2", "hello", registers(second.0, second.1)).await;
    let default = json!({ "spec": { "supportedConfigs": [{ "group": "addon.open-cluster-management.io",
        "resource": "addontemplates", "defaultConfig": { "name": "hello-v2" } }] } });
    change(&Api::<ClusterManagementAddOn>::all(site.client()), "hello", default).await;

    for cluster in ["c1", "c10"] {
        both(cluster, second, true).await;
        both(cluster, first, false).await;
        site.says(cluster, "hello", APPLIED, "").await;
    }
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "c1");
    wait::attempt("it may no longer make ConfigMaps", async || forbidden(maps.create(&dry_run(), &map("dry")).await))
        .await;
    wait::attempt("it may get them", async || allowed(maps.get_opt("none").await)).await;

    site.on("c1").delete("hello", &DeleteParams::default()).await.expect("an add-on can be deleted");
    both("c1", second, false).await;
    wait::attempt("it may nothing", async || forbidden(maps.get_opt("none").await)).await;
    both("c10", second, true).await;
    site.hub.stop().await;
}

async fn both_ways_to_write_a_permission_mean_the_same(world: World) {
    let site = granted(world).await.start().await;
    site.join("cluster1").await;
    site.ground.apply(&["addon-template.yaml", "addon-deployment-config.yaml", "cluster-management-addon.yaml"]).await;
    site.ground.apply(&["managed-cluster-addon.yaml", "registration-flat.yaml"]).await;
    let declared = json!({
        "metadata": { "name": "hello-registration" },
        "spec": { "supportedConfigs": [{ "group": "addon.open-cluster-management.io", "resource": "addontemplates",
            "defaultConfig": { "name": "hello-registration" } }] },
    });
    create(&Api::all(site.client()), of::<ClusterManagementAddOn>(declared)).await;
    create(&site.on("cluster1"), objects::addon_on("cluster1", "hello-registration")).await;

    let mut found = Vec::new();
    for addon in ["hello-template", "hello-registration"] {
        site.says("cluster1", addon, APPLIED, "").await;
        let [current, single] = names(addon, "cluster1", "cm-admin", "cm-reader");
        for (namespace, name) in [("cluster1", current), (SINGLE, single)] {
            let binding = site.bindings(namespace).get(&name).await.expect("the binding is there");
            found.push(essence(&binding, addon));
        }
    }
    let flat = found.split_off(2);
    assert_eq!(found, flat);
    let group = "system:open-cluster-management:cluster:cluster1:addon:ADDON";
    let subjects = json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group }]);
    assert!(found.iter().all(|binding| binding["subjects"] == subjects), "{found:#?}");
    let labelled = ListParams::default().labels("open-cluster-management.io/addon-template-name");
    let all = Api::<RoleBinding>::all(site.client()).list(&labelled).await.expect("bindings can be read");
    assert_eq!(all.items.len(), 4, "and there are no others");
    site.hub.stop().await;
}

/// What a binding of an add-on means, but for the add-on's name.
fn essence(binding: &RoleBinding, addon: &str) -> Value {
    let mut text = json!({
        "namespace": binding.namespace(),
        "name": binding.name_any(),
        "labels": binding.labels(),
        "roleRef": binding.role_ref,
        "subjects": binding.subjects,
        "owners": binding.owner_references().iter().map(|owner| (&owner.kind, &owner.name)).collect::<Vec<_>>(),
    })
    .to_string();
    text = text.replace(addon, "ADDON");
    serde_json::from_str(&text).expect("a name is no structure")
}

async fn a_role_that_the_hub_may_not_give_is_told_and_holds_up_nothing(world: World) {
    let ground = Ground::prepare(world).await;
    ground.world.namespace_named(SINGLE).await;
    ground.apply(&["roles.yaml"]).await;
    let site = ground.start().await;
    site.join("c1").await;

    site.deploy("hello", registers("cm-admin", "cm-reader"), &["c1"]).await;

    let failed = (REGISTRATION_APPLIED, "False", "SetPermissionFailed");
    site.later(site.says("c1", "hello", failed, "open-cluster-management:hello:c1:clusterrole:cm-admin")).await;
    site.says("c1", "hello", (MANIFEST_APPLIED, "True", "AddonManifestApplied"), "").await;
    site.says("c1", "hello", (AVAILABLE, "True", "ProbeAvailable"), "").await;
    assert_eq!(site.registrations("c1", "hello").await.len(), 1);

    site.ground.grant_as_in_the_example().await;
    site.later(site.says("c1", "hello", APPLIED, "")).await;
    let [current, single] = names("hello", "c1", "cm-admin", "cm-reader");
    site.bindings("c1").get(&current).await.expect("the binding is there");
    site.bindings(SINGLE).get(&single).await.expect("the binding is there");
    site.hub.stop().await;
}

/// A registration with the hub, with a role in the cluster's namespace.
fn registers_with(role: &str) -> Value {
    let permission = json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": role } });
    json!([{ "type": "KubeClient", "kubeClient": { "hubPermissions": [permission] } }])
}

async fn a_template_gives_nobody_what_the_hub_has_itself(world: World) {
    let ground = Ground::prepare(world).await;
    let rules = json!([{ "apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"] }]);
    let like_the_hubs: ClusterRole = of(json!({ "metadata": { "name": "like-the-hubs" }, "rules": rules }));
    create(&Api::all(ground.world.client()), like_the_hubs).await;
    let site = ground.start().await;
    site.join("c1").await;
    // RBAC would let the hub give that role away, because the hub has what is in it.
    let bindings = Api::<RoleBinding>::namespaced(site.ground.hub.clone(), "c1");
    let binding = |labels: Value| {
        of::<RoleBinding>(json!({
            "metadata": { "name": "dry", "labels": labels },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "drover-hub-addon-tokens" },
        }))
    };
    let labelled = || binding(json!({ TEMPLATE_BINDING_LABEL: "" }));
    wait::attempt("the hub has its role", async || allowed(bindings.create(&dry_run(), &binding(json!({}))).await))
        .await;
    wait::attempt("the policy is in force", async || forbidden(bindings.create(&dry_run(), &labelled()).await)).await;

    site.deploy("greedy", registers_with("drover-hub-addon-tokens"), &["c1"]).await;
    site.deploy("sly", registers_with("like-the-hubs"), &["c1"]).await;

    let failed = (REGISTRATION_APPLIED, "False", "SetPermissionFailed");
    site.says("c1", "greedy", failed, "the role drover-hub-addon-tokens is for the hub itself").await;
    site.later(site.says("c1", "sly", failed, "giving the ClusterRole \"like-the-hubs\" to agents of add-ons needs"))
        .await;
    let of_templates = ListParams::default().labels(TEMPLATE_BINDING_LABEL);
    let given = site.bindings("c1").list(&of_templates).await.expect("bindings can be read");
    assert_eq!(given.items, [], "nothing was given");
    site.hub.stop().await;
}
