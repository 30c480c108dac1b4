//! Agents of add-ons that are made from templates: the certificates that they ask for, and what they may do with them, on a real server, with
//! a hub that has the role which `deploy/` ships and what an administrator has granted besides.

mod forgeries;
mod permissions;
mod signers;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    fs,
    pin::pin,
    time::Duration,
};

use drover_api::{
    addon::{AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn, RegistrationConfig},
    names::LIFECYCLE_ANNOTATION,
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::ManualClock;
use drover_testkit::{
    World, objects,
    play::{Agent, Asked, Wish},
    wait,
};
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::SelfSubjectReview,
        authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
        certificates::v1::CertificateSigningRequest,
        core::v1::Secret,
        rbac::v1::{ClusterRole, PolicyRule, Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ListParams, ObjectMeta, PostParams},
};
use serde_json::{Value, json};

use crate::{
    documents::{read, repository},
    running::{NAMESPACE, as_hub, change, create, hub_clock, options, show_what_hubs_say},
};

/// As time passes where the hub has to try again: so much of the hub's for so much of anybody else's.
const STEP: Duration = Duration::from_secs(1);
const MEANWHILE: Duration = Duration::from_millis(10);

/// Which roles of the hub take up the rules of roles with which label.
const AGGREGATED: [(&str, &str); 2] =
    [("drover-hub-signers", "drover.dev/hub-signs"), ("drover-hub-bindings", "drover.dev/hub-binds")];

/// A server that a hub is going to run on, with the hub's own client.
pub(crate) struct Ground {
    pub(crate) world: World,
    hub: Client,
}

impl Ground {
    pub(crate) async fn prepare(world: World) -> Self {
        let hub = as_hub(&world).await;
        Self { world, hub }
    }

    /// Applies files of the template example, as people do.
    async fn apply(&self, files: &[&str]) {
        for file in files {
            let path = repository().join("examples/template").join(file);
            let path = path.to_str().expect("a path is text");
            self.world.kubectl(["apply", "--server-side", "-f", path]).await.success();
        }
    }

    /// The roles for the hub that the example has, in force.
    async fn grant_as_in_the_example(&self) {
        self.grant(read(&repository().join("examples/template/hub-roles.yaml"))).await;
    }

    /// Lets the hub approve and sign for these signers.
    pub(crate) async fn grant_signers(&self, name: &str, signers: &[&str]) {
        let role = json!({
            "metadata": { "name": name, "labels": { "drover.dev/hub-signs": "true" } },
            "rules": [{ "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": signers,
                "verbs": ["approve", "sign"] }],
        });
        self.grant(vec![serde_json::from_value(role).expect("a role")]).await;
    }

    /// Makes labelled roles, and waits until the hub has what is in them. Kubernetes has a controller that collects the rules of labelled
    /// roles; there is none here, so this does it.
    async fn grant(&self, granted: Vec<ClusterRole>) {
        let roles = Api::<ClusterRole>::all(self.world.client());
        let rules: Vec<_> = granted.iter().flat_map(|role| role.rules.clone().unwrap_or_default()).collect();
        for role in granted {
            create(&roles, role).await;
        }
        for (role, label) in AGGREGATED {
            let labelled = ListParams::default().labels(&format!("{label}=true"));
            let labelled = roles.list(&labelled).await.expect("roles can be read");
            let rules: Vec<_> = labelled.items.into_iter().flat_map(|role| role.rules.unwrap_or_default()).collect();
            change(&roles, role, json!({ "rules": rules })).await;
        }
        for rule in &rules {
            may(&self.hub, rule, None).await;
        }
    }

    /// Lets the hub read these Secrets in its namespace.
    pub(crate) async fn lend(&self, secrets: &[&str]) {
        let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": secrets, "verbs": ["get"] });
        let role = json!({ "metadata": { "name": "get-ca" }, "rules": [rule] });
        create(&Api::namespaced(self.world.client(), NAMESPACE), of::<Role>(role)).await;
        let binding = json!({
            "metadata": { "name": "get-ca" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "get-ca" },
            "subjects": [{ "kind": "ServiceAccount", "name": "drover-hub", "namespace": NAMESPACE }],
        });
        create(&Api::namespaced(self.world.client(), NAMESPACE), of::<RoleBinding>(binding)).await;
        may(&self.hub, &of(rule), Some(NAMESPACE)).await;
    }

    /// Stores a Secret in the hub's namespace.
    pub(crate) async fn store(&self, name: &str, parts: &[(&str, Vec<u8>)]) {
        create(&secrets(&self.world), secret(name, parts)).await;
    }

    /// Has the hub run.
    async fn start(self) -> Site {
        self.start_with(options()).await
    }

    async fn start_with(self, options: Options) -> Site {
        show_what_hubs_say();
        let clock = hub_clock();
        let hub = Hub::start(self.hub.clone(), &options, clock.clock()).await.expect("the hub starts");
        Site { ground: self, hub, clock }
    }
}

/// A file of a CA of some kind.
pub(crate) fn file(name: &str) -> Vec<u8> {
    fs::read(repository().join("crates/hub/tests-data/ca").join(name)).expect("there is a CA of this kind")
}

/// A hub that runs, and what it acts on.
struct Site {
    ground: Ground,
    hub: Hub,
    clock: ManualClock,
}

impl Site {
    fn world(&self) -> &World {
        &self.ground.world
    }

    fn client(&self) -> Client {
        self.ground.world.client()
    }

    fn now(&self) -> Timestamp {
        self.clock.clock().now()
    }

    /// A cluster that has joined, and whose agent does what works say.
    async fn join(&self, cluster: &str) -> Agent {
        let agent = Agent::join(self.world(), cluster).await;
        // It goes on until the scenario ends.
        drop(agent.obey());
        agent
    }

    /// Declares an add-on that is made from a template which registers like this, and puts it on clusters.
    async fn deploy(&self, addon: &str, registration: Value, clusters: &[&str]) {
        self.template(addon, addon, registration).await;
        let declared = json!({
            "metadata": { "name": addon, "annotations": { LIFECYCLE_ANNOTATION: "addon-manager" } },
            "spec": { "supportedConfigs": [{ "group": "addon.open-cluster-management.io", "resource": "addontemplates",
                "defaultConfig": { "name": addon } }] },
        });
        create(&Api::all(self.client()), of::<ClusterManagementAddOn>(declared)).await;
        for cluster in clusters {
            create(&self.on(cluster), objects::addon_on(cluster, addon)).await;
        }
    }

    /// Makes a template of an add-on.
    async fn template(&self, name: &str, addon: &str, registration: Value) {
        let workload = json!({ "manifests": [objects::config_map(addon)] });
        let template = json!({
            "metadata": { "name": name },
            "spec": { "addonName": addon, "agentSpec": { "workload": workload }, "registration": registration },
        });
        create(&Api::all(self.client()), of::<AddOnTemplate>(template)).await;
    }

    fn on(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.client(), cluster)
    }

    fn bindings(&self, namespace: &str) -> Api<RoleBinding> {
        Api::namespaced(self.client(), namespace)
    }

    fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.client())
    }

    /// How an add-on on a cluster says that its agent is to register, once it does.
    async fn registrations(&self, cluster: &str, addon: &str) -> Vec<RegistrationConfig> {
        let registers = |addon: &ManagedClusterAddOn| {
            addon.status.as_ref().map(|status| status.registrations.clone()).unwrap_or_default()
        };
        let addons = self.on(cluster);
        let said = wait::until(&addons, addon, "it says how to register", |addon| !registers(addon).is_empty()).await;
        registers(&said)
    }

    /// Waits until a condition of an add-on on a cluster has this status and reason, and its message contains this.
    async fn says(&self, cluster: &str, addon: &str, (type_, status, reason): (&str, &str, &str), message: &str) {
        let what = format!("{type_} is {status}/{reason}, with {message:?}");
        wait::until(&self.on(cluster), addon, &what, |addon| {
            condition(addon, type_)
                .is_some_and(|said| said.status == status && said.reason == reason && said.message.contains(message))
        })
        .await;
    }

    /// Waits for something for which the hub has to try again, while time passes for it.
    async fn later<T>(&self, something: impl Future<Output = T>) -> T {
        let mut something = pin!(something);
        let mut time = tokio::time::interval(MEANWHILE);
        loop {
            tokio::select! {
                done = &mut something => return done,
                _ = time.tick() => self.clock.advance(STEP),
            }
        }
    }

    /// Asks for a certificate as somebody.
    async fn ask(&self, somebody: &Client, wish: &Wish) -> Asked {
        Asked::new(self.world(), somebody.clone(), wish).await
    }

    /// What was decided on a request, once something is: which way, for which reason, and in which words.
    async fn decided(&self, request: &str) -> (String, String, String) {
        let decided = wait::until(&self.requests(), request, "it is decided on", |it| decision(it).is_some()).await;
        decision(&decided).expect("it was waited for")
    }
}

/// What was decided on a request. More than one decision is a mistake of whoever made the second.
fn decision(request: &CertificateSigningRequest) -> Option<(String, String, String)> {
    let conditions = request.status.as_ref()?.conditions.as_deref()?;
    let [condition] = conditions else { panic!("there has to be one decision: {conditions:?}") };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some((condition.type_.clone(), text(&condition.reason), text(&condition.message)))
}

fn condition<'a>(addon: &'a ManagedClusterAddOn, type_: &str) -> Option<&'a Condition> {
    addon.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client(), NAMESPACE)
}

fn secret(name: &str, parts: &[(&str, Vec<u8>)]) -> Secret {
    let data = parts.iter().map(|(name, bytes)| ((*name).to_owned(), ByteString(bytes.clone())));
    Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data.collect::<BTreeMap<_, _>>()),
        ..Secret::default()
    }
}

/// An object, of how it is written down.
fn of<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("a valid object")
}

/// Whether somebody may do something, as it came out.
fn allowed<T>(result: kube::Result<T>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

/// Whether somebody may not do something, as it came out.
fn forbidden<T: Debug>(result: kube::Result<T>) -> Result<(), String> {
    match result {
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Who somebody is to the server: the user, and the groups but for the one that everybody is in.
async fn who(client: &Client) -> (String, BTreeSet<String>) {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let review =
        reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.expect("everybody may ask");
    let user = review.status.and_then(|status| status.user_info).expect("the server says who it is");
    let groups = user.groups.unwrap_or_default().into_iter().filter(|group| group != "system:authenticated");
    (user.username.unwrap_or_default(), groups.collect())
}

/// Waits until somebody has all rights of a rule, in one namespace or everywhere.
async fn may(client: &Client, rule: &PolicyRule, namespace: Option<&str>) {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let reviews = &reviews;
    for attributes in rights(rule, namespace) {
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        wait::attempt("what was granted is in force", async || {
            let answer = reviews.create(&PostParams::default(), &review).await.expect("everybody may ask");
            let is_allowed = answer.status.as_ref().is_some_and(|status| status.allowed);
            if is_allowed { Ok(()) } else { Err(format!("{:?}: {:?}", review.spec, answer.status)) }
        })
        .await;
    }
}

/// Each single right of a rule.
fn rights(rule: &PolicyRule, namespace: Option<&str>) -> Vec<ResourceAttributes> {
    let all = |texts: &Option<Vec<String>>| texts.clone().unwrap_or_default();
    let right = |verb: &String, group: &String, resource: &String, name: &String| ResourceAttributes {
        verb: Some(verb.clone()),
        group: Some(group.clone()),
        resource: Some(resource.clone()),
        name: Some(name.clone()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let mut rights = Vec::new();
    for group in &all(&rule.api_groups) {
        for resource in &all(&rule.resources) {
            for name in &all(&rule.resource_names) {
                rights.extend(rule.verbs.iter().map(|verb| right(verb, group, resource, name)));
            }
        }
    }
    rights
}
