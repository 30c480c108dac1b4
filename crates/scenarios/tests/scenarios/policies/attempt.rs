//! A row of the table: somebody attempts something, and the server allows it or says why not.

use drover_testkit::{World, play::Agent};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Who attempts something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// May do everything.
    Admin,
    /// Registers clusters, and may do nothing else.
    Newcomer,
    /// The agent of the cluster c1.
    AgentOfC1,
    /// The agent of the cluster c10, which somebody has given rights that no agent should have.
    AgentOfC10,
    /// One of a team, without any special right.
    User,
    /// One of a team who holds the special rights: for the cluster west-1, the set team-a, the executor `deployer` on c1,
    /// the placement `everywhere` of the namespace `fleet`, and binding the role `cm-admin`.
    Trusted,
    /// One of a team who may name the executor `deployer` on all clusters.
    Deployer,
    /// The hub, with the role that it is shipped with.
    Hub,
}

impl Who {
    pub(super) fn creates(self, object: Value) -> Attempt {
        self.attempts(Act::Create, object)
    }

    pub(super) fn changes(self, object: Value) -> Attempt {
        self.attempts(Act::Change(By::Update), object)
    }

    pub(super) fn reports(self, object: Value) -> Attempt {
        self.attempts(Act::Report(By::Update), object)
    }

    pub(super) fn attempts(self, act: Act, object: Value) -> Attempt {
        Attempt { who: self, act, object }
    }
}

/// The clients of everybody in the table.
pub(super) struct Cast {
    admin: Client,
    newcomer: Client,
    agent_of_c1: Client,
    agent_of_c10: Client,
    user: Client,
    trusted: Client,
    deployer: Client,
    hub: Client,
}

impl Cast {
    pub(super) async fn assemble(world: &World, hub: Client) -> Self {
        Self {
            admin: world.client(),
            newcomer: world.certified("newcomer", &["system:bootstrappers:managedcluster"]).await,
            agent_of_c1: Agent::join(world, "c1").await.client(),
            agent_of_c10: Agent::join(world, "c10").await.client(),
            user: world.certified("user", &["team"]).await,
            trusted: world.certified("trusted", &["team"]).await,
            deployer: world.certified("deployer", &["team"]).await,
            hub,
        }
    }

    fn client(&self, who: Who) -> Client {
        let client = match who {
            Who::Admin => &self.admin,
            Who::Newcomer => &self.newcomer,
            Who::AgentOfC1 => &self.agent_of_c1,
            Who::AgentOfC10 => &self.agent_of_c10,
            Who::User => &self.user,
            Who::Trusted => &self.trusted,
            Who::Deployer => &self.deployer,
            Who::Hub => &self.hub,
        };
        client.clone()
    }
}

/// What is attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Get,
    List,
    Create,
    /// Gives the stored object these fields besides; null removes one.
    Change(By),
    /// The same, of its status.
    Report(By),
    Delete,
}

/// By which request an object is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The whole object is replaced.
    Update,
    /// A merge patch.
    Patch,
    /// A server-side apply, by somebody who has applied nothing before, and by force.
    Apply,
}

impl By {
    fn verb(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Patch | Self::Apply => "patch",
        }
    }
}

impl Act {
    /// The verb that RBAC has for it.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Change(by) | Self::Report(by) => by.verb(),
            Self::Delete => "delete",
        }
    }
}

/// What the server makes of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Allowed,
    /// RBAC refuses it, and says this.
    Forbidden(String),
    /// This policy refuses it, and says this.
    Refused(&'static str, &'static str),
    /// Two policies refuse it, of which the server tells either.
    RefusedTwice([(&'static str, &'static str); 2]),
}

impl Outcome {
    /// Whether it is this, by what the server told when it refused.
    fn is(&self, told: Option<&str>) -> bool {
        match (self, told) {
            (Self::Allowed, None) => true,
            (Self::Forbidden(saying), Some(told)) => told.contains(saying),
            (Self::Refused(policy, saying), Some(told)) => is_refused_by(policy, saying, told),
            (Self::RefusedTwice(either), Some(told)) => {
                either.iter().any(|(policy, saying)| is_refused_by(policy, saying, told))
            }
            _ => false,
        }
    }
}

fn is_refused_by(policy: &str, saying: &str, told: &str) -> bool {
    let by =
        format!("ValidatingAdmissionPolicy '{policy}.drover.dev' with binding '{policy}.drover.dev' denied request: ");
    told.split_once(&by).is_some_and(|(_, sentence)| sentence.contains(saying))
}

/// A row before it is said what comes of it.
#[derive(Debug)]
pub(super) struct Attempt {
    who: Who,
    act: Act,
    object: Value,
}

impl Attempt {
    pub(super) fn allowed(self) -> Row {
        self.ends(Outcome::Allowed)
    }

    pub(super) fn refused(self, policy: &'static str, saying: &'static str) -> Row {
        self.ends(Outcome::Refused(policy, saying))
    }

    pub(super) fn refused_twice(self, either: [(&'static str, &'static str); 2]) -> Row {
        self.ends(Outcome::RefusedTwice(either))
    }

    pub(super) fn forbidden(self, saying: String) -> Row {
        self.ends(Outcome::Forbidden(saying))
    }

    pub(super) fn ends(self, outcome: Outcome) -> Row {
        Row { who: self.who, act: self.act, object: self.object, outcome }
    }
}

/// One row of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) who: Who,
    act: Act,
    /// The object, or as much of it as matters.
    object: Value,
    pub(super) outcome: Outcome,
}

impl Row {
    /// The policy that alone refuses the attempt.
    pub(super) fn policy(&self) -> Option<&'static str> {
        match self.outcome {
            Outcome::Refused(policy, _) => Some(policy),
            _ => None,
        }
    }

    /// The row, and if an object is changed in it, the rows that attempt the same by the other requests that can say it.
    ///
    /// What RBAC forbids depends on the request, so that stays one row.
    pub(super) fn in_every_way(self) -> Vec<Self> {
        let act = match (self.act, &self.outcome) {
            (_, Outcome::Forbidden(_)) => return vec![self],
            (Act::Change(_), _) => Act::Change,
            (Act::Report(_), _) => Act::Report,
            _ => return vec![self],
        };
        let apply = (!takes_away(&self.object)).then_some(By::Apply);
        let ways = [By::Update, By::Patch].into_iter().chain(apply);
        ways.map(|by| Self { act: act(by), ..self.clone() }).collect()
    }

    /// What the server does otherwise than the row says, if anything.
    pub(super) async fn complaint(&self, cast: &Cast) -> Option<String> {
        let told = match self.attempt(cast).await {
            Ok(()) => None,
            Err(kube::Error::Api(status)) => Some(status.message),
            Err(error) => panic!("{}: the server did not answer: {error}", self.words()),
        };
        if self.outcome.is(told.as_deref()) {
            return None;
        }
        let told = told.unwrap_or_else(|| "it was allowed".to_owned());
        Some(format!("{}\n  should be: {:?}\n  but: {told}", self.words(), self.outcome))
    }

    async fn attempt(&self, cast: &Cast) -> kube::Result<()> {
        let api = self.api(cast.client(self.who));
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        match self.act {
            Act::Get => api.get(self.name()).await.map(drop),
            Act::List => api.list(&ListParams::default()).await.map(drop),
            Act::Create => {
                let object = serde_json::from_value(self.object.clone()).expect("it is an object");
                api.create(&dry, &object).await.map(drop)
            }
            Act::Change(By::Update) => api.replace(self.name(), &dry, &self.changed(cast).await).await.map(drop),
            Act::Report(By::Update) => api.replace_status(self.name(), &dry, &self.changed(cast).await).await.map(drop),
            Act::Change(By::Patch) => api.patch(self.name(), &dry_patch(), &Patch::Merge(&self.object)).await.map(drop),
            Act::Report(By::Patch) => {
                api.patch_status(self.name(), &dry_patch(), &Patch::Merge(&self.object)).await.map(drop)
            }
            Act::Change(By::Apply) => {
                api.patch(self.name(), &dry_patch().force(), &Patch::Apply(&self.object)).await.map(drop)
            }
            Act::Report(By::Apply) => {
                api.patch_status(self.name(), &dry_patch().force(), &Patch::Apply(&self.object)).await.map(drop)
            }
            Act::Delete => api.delete(self.name(), &DeleteParams::default().dry_run()).await.map(drop),
        }
    }

    /// The stored object with the row's fields besides.
    async fn changed(&self, cast: &Cast) -> DynamicObject {
        let stored = self.api(cast.client(Who::Admin)).get(self.name()).await;
        let stored = stored.unwrap_or_else(|error| panic!("{}: there is no such object: {error}", self.words()));
        let mut object = serde_json::to_value(stored).expect("an object is JSON");
        merge(&mut object, &self.object);
        serde_json::from_value(object).expect("it is an object still")
    }

    /// Where objects of this kind are, for that client.
    fn api(&self, client: Client) -> Api<DynamicObject> {
        let api_version = self.object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = self.object["kind"].as_str().unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match self.object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Who does what to which object.
    fn words(&self) -> String {
        format!("{:?}: {:?} {}", self.who, self.act, self.object)
    }
}

fn dry_patch() -> PatchParams {
    PatchParams { dry_run: true, ..PatchParams::apply("table") }
}

/// Whether a change takes something away, by null or by an empty list. Who has not applied it can not say that by an apply.
fn takes_away(change: &Value) -> bool {
    match change {
        Value::Null => true,
        Value::Array(items) => items.is_empty() || items.iter().any(takes_away),
        Value::Object(fields) => fields.values().any(takes_away),
        _ => false,
    }
}

/// Puts the fields of `change` into `object`, as a JSON merge patch does.
fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    fields.remove(key);
                } else {
                    merge(fields.entry(key).or_insert(json!({})), change);
                }
            }
        }
        (object, change) => *object = change.clone(),
    }
}
