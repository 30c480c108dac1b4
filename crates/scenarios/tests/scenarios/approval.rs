//! Operators of a managed cluster are upgraded by `drover approve-operators`, run as the Job of an upgrade would run it: as a process, with the arguments
//! that the work gives it, and as the account that the work makes for it. The scenario plays the Operator Lifecycle Manager.

mod script;

use std::{path::PathBuf, process::Stdio, time::Duration};

use drover_api::{
    cluster::{OperatorRef, OperatorUpgrades},
    olm::{ClusterServiceVersion, InstallPlan, Subscription},
    work::ManifestWorkSpec,
};
use drover_engine::upgrade::operator_work::{Approver, NAME, work};
use drover_testkit::{World, wait};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    documents::{read, repository},
    running::{apply, change, create},
};

drover_testkit::scenarios! {
    Bare {
        decisions_7_8_and_62_exactly_the_included_plan_is_approved_and_it_ends_when_the_operator_runs,
        decisions_57_and_58_all_are_approved_but_those_left_out,
        decision_59_a_plan_that_carries_a_neighbour_is_left_while_others_go_on,
        decision_60_where_nothing_waits_it_ends_well_at_once,
        decision_61_who_is_killed_after_approving_is_followed_by_one_that_wants_the_same,
        when_time_is_up_it_says_what_it_waited_for,
        a_cluster_without_operators_has_nothing_to_approve,
        a_record_that_can_not_be_read_is_complained_about,
        the_account_may_do_nothing_else,
    }
}

/// The namespace of the operators.
const HOME: &str = "operators";
/// Longer than a scenario takes.
const LONG: Duration = Duration::from_mins(10);

/// A cluster with operators, and the account of the approver.
struct Field {
    world: World,
    kubeconfig: PathBuf,
}

impl Field {
    async fn new(world: World) -> Self {
        let kinds = repository().join("crates/scenarios/tests/operators.yaml");
        apply(&world.client(), read(&kinds)).await;
        let definitions = Api::<CustomResourceDefinition>::all(world.client());
        for kind in ["subscriptions", "installplans", "clusterserviceversions"] {
            let is_served = |definition: &CustomResourceDefinition| {
                let conditions = definition.status.iter().flat_map(|status| &status.conditions).flatten();
                conditions.into_iter().any(|said| said.type_ == "Established" && said.status == "True")
            };
            let name = format!("{kind}.operators.coreos.com");
            wait::until(&definitions, &name, "it is established", is_served).await;
        }
        world.namespace_named(HOME).await;
        let field = Self::without_operators(world).await;
        field.until_account_can_list(Result::is_ok).await;
        field
    }

    /// A cluster that has no Operator Lifecycle Manager.
    async fn without_operators(world: World) -> Self {
        let work = work(&all(), LONG, &approver());
        let manifests = work.manifests().iter().filter(|manifest| manifest["kind"] != "Job").cloned();
        apply(&world.client(), manifests.map(|manifest| serde_json::from_value(manifest).expect("an object"))).await;
        let kubeconfig = world.service_account_kubeconfig(NAME, NAME).await;
        Self { world, kubeconfig }
    }

    /// Waits until the server has taken up what the account may do, and which kinds there are.
    async fn until_account_can_list(&self, is_so: impl Fn(&kube::Result<()>) -> bool) {
        let account = self.account().await;
        wait::attempt("the server knows what the account may do", async || {
            let params = ListParams::default();
            let listed = Api::<Subscription>::all(account.clone()).list(&params).await.map(drop);
            let listed = listed.and(Api::<InstallPlan>::all(account.clone()).list(&params).await.map(drop));
            let listed = listed.and(Api::<ClusterServiceVersion>::all(account.clone()).list(&params).await.map(drop));
            if is_so(&listed) { Ok(()) } else { Err(format!("{listed:?}")) }
        })
        .await;
    }

    async fn account(&self) -> Client {
        self.world.service_account(NAME, NAME).await
    }

    fn subscriptions(&self) -> Api<Subscription> {
        Api::namespaced(self.world.client(), HOME)
    }

    fn plans(&self) -> Api<InstallPlan> {
        Api::namespaced(self.world.client(), HOME)
    }

    fn versions(&self) -> Api<ClusterServiceVersion> {
        Api::namespaced(self.world.client(), HOME)
    }

    fn record(&self) -> Api<ConfigMap> {
        Api::namespaced(self.world.client(), NAME)
    }

    /// An operator that has its first version and is offered the second by a plan of its own, `install-NAME`.
    async fn operator(&self, name: &str) {
        self.plan(&format!("install-{name}"), &[&format!("{name}.v2")]).await;
        self.subscribe(name, &format!("install-{name}")).await;
    }

    /// An operator that has its first version and is offered the second by that plan.
    async fn subscribe(&self, name: &str, plan: &str) {
        let subscription = json!({ "metadata": { "name": name }, "spec": { "installPlanApproval": "Manual" } });
        create(&self.subscriptions(), serde_json::from_value(subscription).expect("a subscription")).await;
        self.version(&format!("{name}.v1"), "Succeeded").await;
        self.offers(name, "v1", "v2", plan).await;
    }

    /// Has an operator say which version it has, which it moves to, and by which plan.
    async fn offers(&self, name: &str, installed: &str, current: &str, plan: &str) {
        let status = json!({
            "installedCSV": format!("{name}.{installed}"), "currentCSV": format!("{name}.{current}"),
            "installPlanRef": { "namespace": HOME, "name": plan },
        });
        says(&self.subscriptions(), name, status).await;
    }

    async fn plan(&self, name: &str, versions: &[&str]) {
        let spec = json!({ "approval": "Manual", "approved": false, "clusterServiceVersionNames": versions });
        let plan = json!({ "metadata": { "name": name }, "spec": spec });
        create(&self.plans(), serde_json::from_value(plan).expect("a plan")).await;
    }

    async fn version(&self, name: &str, phase: &str) {
        let version = json!({ "metadata": { "name": name }, "spec": {} });
        create(&self.versions(), serde_json::from_value(version).expect("a version")).await;
        says(&self.versions(), name, json!({ "phase": phase })).await;
    }

    /// Carries the plan of an operator out, as far as that its second version is there and not running.
    async fn install(&self, name: &str) {
        self.version(&format!("{name}.v2"), "Installing").await;
        self.offers(name, "v2", "v2", &format!("install-{name}")).await;
    }

    /// The second version of an operator runs.
    async fn run(&self, name: &str) {
        says(&self.versions(), &format!("{name}.v2"), json!({ "phase": "Succeeded" })).await;
    }

    async fn is_approved(&self, plan: &str) -> bool {
        self.plans().get(plan).await.expect("the plan is there").spec.approved
    }

    /// Starts what the Job of an upgrade of these operators starts.
    fn start(&self, operators: &OperatorUpgrades, timeout: Duration) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drover-under-test"));
        command.args(arguments(&work(operators, timeout, &approver())));
        command.arg("--kubeconfig").arg(&self.kubeconfig).env("RUST_LOG", "warn");
        Running::of(command)
    }
}

/// What the Job of a work tells `drover`.
fn arguments(work: &ManifestWorkSpec) -> Vec<String> {
    let container = container(work);
    let words =
        |key: &str| container[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    assert_eq!(container["command"][0], "drover");
    words("command").skip(1).chain(words("args")).collect()
}

fn container(work: &ManifestWorkSpec) -> &Value {
    let job = work.manifests().iter().find(|manifest| manifest["kind"] == "Job").expect("there is a job");
    &job["spec"]["template"]["spec"]["containers"][0]
}

fn approver() -> Approver {
    Approver::Drover { image: "registry.example.com/drover/drover:0.1.0".to_owned() }
}

fn named(names: &[&str]) -> Vec<OperatorRef> {
    names.iter().map(|name| OperatorRef { name: (*name).to_owned(), namespace: HOME.to_owned() }).collect()
}

fn only(names: &[&str]) -> OperatorUpgrades {
    OperatorUpgrades { include: named(names), ..OperatorUpgrades::default() }
}

fn all() -> OperatorUpgrades {
    OperatorUpgrades { approve_all_upgrades: Some(true), ..OperatorUpgrades::default() }
}

/// Has an object say this of itself.
async fn says<K>(api: &Api<K>, name: &str, status: Value)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let status = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &status).await.expect("it has a status");
}

/// A process that runs.
struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Vec<String>,
}

/// How a process has ended.
#[derive(Debug)]
struct Ended {
    succeeded: bool,
    printed: Vec<String>,
    complaint: String,
}

impl Running {
    fn of(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it can be run");
        let lines = BufReader::new(process.stdout.take().expect("standard output is piped")).lines();
        Self { process, lines, printed: Vec::new() }
    }

    /// Waits until it prints a line with this in it.
    async fn prints(&mut self, text: &str) {
        while let Some(line) = self.lines.next_line().await.expect("it prints text") {
            self.printed.push(line);
            if self.printed.last().is_some_and(|line| line.contains(text)) {
                return;
            }
        }
        let complaint = self.complaint().await;
        panic!("it ended and did not print {text:?}, but {:#?} and {complaint}", self.printed);
    }

    async fn complaint(&mut self) -> String {
        let mut complaint = String::new();
        let stderr = self.process.stderr.as_mut().expect("standard error is piped");
        stderr.read_to_string(&mut complaint).await.expect("it complains in text");
        complaint
    }

    /// Waits until it ends by itself.
    async fn ends(mut self) -> Ended {
        while let Some(line) = self.lines.next_line().await.expect("it prints text") {
            self.printed.push(line);
        }
        let complaint = self.complaint().await;
        let status = self.process.wait().await.expect("it ends");
        Ended { succeeded: status.success(), printed: self.printed, complaint }
    }

    /// Kills it, with no time to put anything in order.
    async fn kill(mut self) {
        self.process.kill().await.expect("it can be killed");
    }
}

impl Ended {
    /// The last that it printed, if it ended well.
    fn well(&self) -> &str {
        assert!(self.succeeded, "{self:#?}");
        self.printed.last().map_or("", String::as_str)
    }

    /// What it complained of, if it did not.
    fn badly(&self) -> &str {
        assert!(!self.succeeded, "{self:#?}");
        &self.complaint
    }
}

async fn decisions_7_8_and_62_exactly_the_included_plan_is_approved_and_it_ends_when_the_operator_runs(world: World) {
    let field = Field::new(world).await;
    for name in ["gitops", "gitops-too", "git"] {
        field.operator(name).await;
    }
    let mut running = field.start(&only(&["gitops", "not-there"]), LONG);
    running.prints("approved the install plan operators/install-gitops: gitops.v2").await;
    assert!(field.is_approved("install-gitops").await);
    // What is wanted was written down before anything was approved.
    let record = field.record().get(NAME).await.expect("there is a record").data.unwrap_or_default();
    assert_eq!(record["targets"], r#"[{"name":"gitops","namespace":"operators","version":"gitops.v2"}]"#);
    field.install("gitops").await;
    running.prints("operators/gitops: waits for gitops.v2 to run; it is Installing").await;
    field.run("gitops").await;
    let ended = running.ends().await;
    assert_eq!(ended.well(), "all that was asked for is upgraded");
    let missing = "operators/not-there: is not on this cluster, and is left out";
    assert!(ended.printed.iter().any(|line| line == missing), "{ended:?}");
    let record = field.record().get(NAME).await.expect("there is a record").data.unwrap_or_default();
    assert_eq!(record["operators"], format!("1 of 2 upgraded; {missing}; operators/gitops: runs gitops.v2"));
    for other in ["install-gitops-too", "install-git"] {
        assert!(!field.is_approved(other).await, "{other}");
    }
}

async fn decisions_57_and_58_all_are_approved_but_those_left_out(world: World) {
    let field = Field::new(world).await;
    for name in ["one", "two", "storage", "automatic"] {
        field.operator(name).await;
    }
    let by_itself = json!({ "spec": { "installPlanApproval": "Automatic" } });
    change(&field.subscriptions(), "automatic", by_itself).await;
    let mut running = field.start(&OperatorUpgrades { exclude: named(&["storage"]), ..all() }, LONG);
    running.prints("approved the install plan operators/install-one").await;
    running.prints("approved the install plan operators/install-two").await;
    for name in ["one", "two"] {
        field.install(name).await;
        field.run(name).await;
    }
    let ended = running.ends().await;
    assert_eq!(ended.well(), "all that was asked for is upgraded");
    let left = "operators/automatic: is upgraded without approval, and is left to itself";
    assert!(ended.printed.iter().any(|line| line == left), "{ended:?}");
    for other in ["install-storage", "install-automatic"] {
        assert!(!field.is_approved(other).await, "{other}");
    }
}

async fn decision_59_a_plan_that_carries_a_neighbour_is_left_while_others_go_on(world: World) {
    let field = Field::new(world).await;
    field.plan("install-both", &["gitops.v2", "storage.v2"]).await;
    field.subscribe("gitops", "install-both").await;
    field.subscribe("storage", "install-both").await;
    field.operator("alone").await;
    let mut running = field.start(&only(&["gitops", "alone"]), LONG);
    running.prints("approved the install plan operators/install-alone: alone.v2").await;
    field.install("alone").await;
    field.run("alone").await;
    let ended = running.ends().await;
    let complaint = "not every operator can be upgraded: operators/gitops: the install plan install-both is not approved: \
                     it also brings storage.v2 of operators/storage, which was not asked for";
    assert!(ended.badly().contains(complaint), "{ended:?}");
    assert!(ended.printed.iter().any(|line| line == "operators/alone: runs alone.v2"), "{ended:?}");
    let record = field.record().get(NAME).await.expect("there is a record").data.unwrap_or_default();
    let held_up = "1 of 2 upgraded; operators/gitops: the install plan install-both is not approved";
    assert!(record["operators"].starts_with(held_up), "{record:?}");
    assert!(!field.is_approved("install-both").await);
}

async fn decision_60_where_nothing_waits_it_ends_well_at_once(world: World) {
    let field = Field::new(world).await;
    assert_eq!(field.start(&all(), LONG).ends().await.well(), "nothing to approve");
    change(&field.record(), NAME, json!({ "data": null })).await;
    field.operator("gitops").await;
    field.offers("gitops", "v1", "v1", "").await;
    assert_eq!(field.start(&only(&["gitops"]), LONG).ends().await.well(), "nothing to approve");
    assert!(!field.is_approved("install-gitops").await);
}

async fn decision_61_who_is_killed_after_approving_is_followed_by_one_that_wants_the_same(world: World) {
    let field = Field::new(world).await;
    field.operator("gitops").await;
    let mut killed = field.start(&all(), LONG);
    killed.prints("approved the install plan").await;
    killed.kill().await;
    // Meanwhile a third version comes out; it was not offered when the upgrade began.
    field.install("gitops").await;
    field.plan("install-later", &["gitops.v3"]).await;
    field.offers("gitops", "v2", "v3", "install-later").await;
    let mut follower = field.start(&all(), LONG);
    follower.prints("operators/gitops: waits for gitops.v2 to run; it is Installing").await;
    field.run("gitops").await;
    assert_eq!(follower.ends().await.well(), "all that was asked for is upgraded");
    assert!(!field.is_approved("install-later").await);
}

async fn when_time_is_up_it_says_what_it_waited_for(world: World) {
    let field = Field::new(world).await;
    field.operator("gitops").await;
    let ended = field.start(&only(&["gitops"]), Duration::from_secs(5)).ends().await;
    let complaint = "gave up after 4s: operators/gitops: the install plan install-gitops is approved, and waits until gitops.v2 is installed";
    assert!(ended.badly().contains(complaint), "{ended:?}");
}

async fn a_cluster_without_operators_has_nothing_to_approve(world: World) {
    let field = Field::without_operators(world).await;
    let is_not_served =
        |listed: &kube::Result<()>| matches!(listed, Err(kube::Error::Api(status)) if status.code == 404);
    field.until_account_can_list(is_not_served).await;
    let ended = field.start(&all(), LONG).ends().await;
    let told = "the cluster has no subscriptions.operators.coreos.com, so there is no Operator Lifecycle Manager: nothing to approve";
    assert_eq!(ended.well(), told);
    // It would be news if there were operators to go on with.
    let targets = r#"[{"name":"gitops","namespace":"operators","version":"gitops.v2"}]"#;
    change(&field.record(), NAME, json!({ "data": { "targets": targets } })).await;
    let ended = field.start(&all(), LONG).ends().await;
    assert!(ended.badly().contains("operators.coreos.com any more"), "{ended:?}");
}

async fn a_record_that_can_not_be_read_is_complained_about(world: World) {
    let field = Field::new(world).await;
    field.operator("gitops").await;
    change(&field.record(), NAME, json!({ "data": { "targets": "gitops" } })).await;
    let ended = field.start(&all(), LONG).ends().await;
    let complaint = "the ConfigMap installplan-approver/installplan-approver does not hold what was recorded under `targets`: delete it to begin anew";
    assert!(ended.badly().contains(complaint), "{ended:?}");
    assert!(!field.is_approved("install-gitops").await);
}

async fn the_account_may_do_nothing_else(world: World) {
    let field = Field::new(world).await;
    field.operator("gitops").await;
    let account = field.account().await;
    let secrets = Api::<Secret>::all(account.clone()).list(&ListParams::default()).await.map(drop);
    let maps = Api::<ConfigMap>::namespaced(account.clone(), NAME).list(&ListParams::default()).await.map(drop);
    let another: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "another" } })).expect("a map");
    let own = Api::<ConfigMap>::namespaced(account.clone(), NAME);
    let made = own.create(&kube::api::PostParams::default(), &another).await.map(drop);
    let elsewhere: Api<ConfigMap> = Api::namespaced(account.clone(), HOME);
    let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": NAME } })).expect("a map");
    let kept_elsewhere = elsewhere.create(&kube::api::PostParams::default(), &map).await.map(drop);
    let plans = Api::<InstallPlan>::namespaced(account.clone(), HOME);
    let removed = plans.delete("install-gitops", &DeleteParams::default()).await.map(drop);
    let subscriptions = Api::<Subscription>::namespaced(account, HOME);
    let automatic = Patch::Merge(json!({ "spec": { "installPlanApproval": "Automatic" } }));
    let changed = subscriptions.patch("gitops", &PatchParams::default(), &automatic).await.map(drop);
    let attempts = [
        ("read secrets", secrets),
        ("list maps", maps),
        ("make maps", made),
        ("write elsewhere", kept_elsewhere),
        ("remove plans", removed),
        ("change subscriptions", changed),
    ];
    for (what, attempt) in attempts {
        let is_forbidden = matches!(&attempt, Err(kube::Error::Api(status)) if status.code == 403);
        assert!(is_forbidden, "the account may {what}: {attempt:?}");
    }
}
