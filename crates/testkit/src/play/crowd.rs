//! A crowd of clusters, played together with one client: for one add-on, both the manager that is not ours, as people build
//! it on OCM's Go framework, and the agents of all clusters.
//!
//! It goes by what it sees: whenever an add-on, a work or what is asked of a cluster changes, that cluster is looked at again
//! and does the next thing that is missing. Many clusters are served at a time, each by one request after the other.

mod member;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Weak},
    time::Duration,
};

use drover_api::{addon::ManagedClusterAddOn, names::ADDON_NAME_LABEL, work::ManifestWork};
use drover_runtime::decode::Decoded;
use futures_util::{StreamExt, stream};
use k8s_openapi::{NamespaceResourceScope, serde::de::DeserializeOwned};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tracing::warn;

pub use self::member::Behaviour;
use self::member::{Act, Health, Member, Step};

/// How many requests are on their way at a time.
const CONCURRENCY: usize = 32;
/// How long a cluster rests after a request that failed.
const REST: Duration = Duration::from_secs(1);

/// A crowd that plays until it is dropped.
pub struct Crowd {
    stage: Arc<Stage>,
    /// They end with this.
    _tasks: JoinSet<()>,
}

impl Crowd {
    /// Plays an add-on's manager and all agents from now on. The client has to be an administrator's.
    #[must_use]
    pub fn gather(client: Client, addon: &str) -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        let stage =
            Arc::new(Stage { addon: addon.to_owned(), client: client.clone(), members: Mutex::default(), queue });
        let addons = watcher::Config::default().fields(&format!("metadata.name={addon}"));
        let works = watcher::Config::default().labels(&format!("{ADDON_NAME_LABEL}={addon}"));
        let mut tasks = JoinSet::new();
        tasks.spawn(follow::<ManagedClusterAddOn>(Arc::clone(&stage), Api::all(client.clone()), addons));
        tasks.spawn(follow::<ManifestWork>(Arc::clone(&stage), Api::all(client), works));
        tasks.spawn(serve(Arc::clone(&stage), queued));
        Self { stage, _tasks: tasks }
    }

    /// Plays all agents from now on, as far as works with these labels are concerned. The client has to be an administrator's.
    #[must_use]
    pub fn of_agents(client: Client, labels: &str) -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        let stage =
            Arc::new(Stage { addon: labels.to_owned(), client: client.clone(), members: Mutex::default(), queue });
        let works = watcher::Config::default().labels(labels);
        let mut tasks = JoinSet::new();
        tasks.spawn(follow::<ManifestWork>(Arc::clone(&stage), Api::all(client), works));
        tasks.spawn(serve(Arc::clone(&stage), queued));
        Self { stage, _tasks: tasks }
    }

    /// Has a cluster's agent treat works like this, those that it has already answered too.
    pub fn behave(&self, cluster: &str, behaviour: Behaviour) {
        self.stage.change(cluster, |member| member.behave(behaviour));
    }

    /// Has the add-on report that it is not available on a cluster.
    pub fn unhealthy(&self, cluster: &str) {
        self.stage.change(cluster, |member| member.report_health(Health::Unhealthy));
    }

    /// Has the add-on report that it is available on a cluster. Without it, nothing is reported.
    pub fn healthy(&self, cluster: &str) {
        self.stage.change(cluster, |member| member.report_health(Health::Healthy));
    }

    /// On how many clusters the add-on is, as the crowd sees it, like this.
    #[must_use]
    pub fn count(&self, is_so: impl Fn(&ManagedClusterAddOn) -> bool) -> usize {
        self.stage.members().values().filter_map(Member::addon).filter(|addon| is_so(addon)).count()
    }
}

/// What all who play share.
struct Stage {
    /// The add-on that is managed, or whose works it is about.
    addon: String,
    client: Client,
    members: Mutex<BTreeMap<String, Member>>,
    /// The clusters that are to be looked at.
    queue: UnboundedSender<String>,
}

/// What is watched of every cluster.
trait Watched:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static
{
    /// Where a cluster has what was seen of it, by name.
    fn shelf(member: &mut Member) -> &mut BTreeMap<String, Self>;
}

impl Watched for ManagedClusterAddOn {
    fn shelf(member: &mut Member) -> &mut BTreeMap<String, Self> {
        &mut member.addons
    }
}

impl Watched for ManifestWork {
    fn shelf(member: &mut Member) -> &mut BTreeMap<String, Self> {
        &mut member.works
    }
}

impl Stage {
    /// The clusters. What a panic left behind is as good as before: each change is one assignment.
    fn members(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        self.members.lock()
    }

    /// Changes something of a cluster and has it looked at, unless that is going on already: then it sees the change anyway.
    fn change(&self, cluster: &str, change: impl FnOnce(&mut Member)) {
        let mut members = self.members();
        let member = members.entry(cluster.to_owned()).or_default();
        change(member);
        if !member.is_served {
            member.is_served = true;
            // Nobody receives it when the crowd is about to end.
            let _ = self.queue.send(cluster.to_owned());
        }
    }

    /// Notes an object, unless it is older than what is known.
    fn seen<K: Watched>(&self, object: K) {
        let (cluster, name) = place(&object);
        self.change(&cluster, |member| {
            let shelf = K::shelf(member);
            if shelf.get(&name).is_none_or(|known| !is_older(&object, known)) {
                shelf.insert(name, object);
            }
        });
    }

    /// Notes what can be parsed of an object: scenarios have agents report invalid values.
    fn seen_decoded<K: Watched>(&self, object: Decoded<K>) {
        if let Some(object) = object.0.map_or_else(|damaged| damaged.without_defects(), Some) {
            self.seen(object);
        }
    }

    /// Notes what became of an object that was changed; not if it is gone by now.
    fn answered<K: Watched>(&self, object: K) {
        let (cluster, name) = place(&object);
        self.change(&cluster, |member| {
            if let Some(known) = K::shelf(member).get_mut(&name)
                && !is_older(&object, known)
            {
                *known = object;
            }
        });
    }

    fn gone<K: Watched>(&self, cluster: &str, name: &str) {
        self.change(cluster, |member| drop(K::shelf(member).remove(name)));
    }

    /// Forgets what a list no longer has.
    fn listed<K: Watched>(&self, listed: &BTreeSet<(String, String)>) {
        let mut gone = Vec::new();
        for (cluster, member) in self.members().iter_mut() {
            let names = K::shelf(member).keys().map(|name| (cluster.clone(), name.clone()));
            gone.extend(names.filter(|place| !listed.contains(place)));
        }
        for (cluster, name) in gone {
            self.gone::<K>(&cluster, &name);
        }
    }

    /// Does what a cluster lacks, one thing after the other.
    async fn serve(self: Arc<Self>, cluster: String) {
        while let Some(act) = self.next(&cluster) {
            if let Err(error) = self.act(&cluster, act).await {
                warn!(addon = self.addon, cluster, %error, "could not play a cluster's part");
                let mut members = self.members();
                return self.look_again(members.entry(cluster.clone()).or_default(), cluster, Instant::now() + REST);
            }
        }
    }

    /// What a cluster does next; nothing if it has nothing to do for now.
    fn next(self: &Arc<Self>, cluster: &str) -> Option<Act> {
        let mut members = self.members();
        let member = members.get_mut(cluster)?;
        match member.next(&self.addon, cluster, Instant::now()) {
            Some(Step::Act(act)) => return Some(act),
            Some(Step::Wait(time)) => self.look_again(member, cluster.to_owned(), time),
            None => member.is_served = false,
        }
        None
    }

    /// Has a cluster looked at again at that time, and before it if something changes.
    fn look_again(self: &Arc<Self>, member: &mut Member, cluster: String, time: Instant) {
        member.is_served = false;
        // One who waits is woken once, however often it is looked at meanwhile.
        if member.wake_up.replace(time) == Some(time) {
            return;
        }
        let stage = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep_until(time).await;
            if let Some(stage) = Weak::upgrade(&stage) {
                stage.change(&cluster, |member| _ = member.wake_up.take_if(|wake_up| *wake_up == time));
            }
        });
    }

    async fn act(&self, cluster: &str, act: Act) -> kube::Result<()> {
        let addons = Api::<ManagedClusterAddOn>::namespaced(self.client.clone(), cluster);
        let works = Api::<ManifestWork>::namespaced(self.client.clone(), cluster);
        let params = PatchParams::default();
        match act {
            Act::Make(work) => match works.create(&PostParams::default(), &work).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {
                    self.read_again(&works, cluster, &work.name_any()).await
                }
                made => made.map(|work| self.seen(work)),
            },
            Act::Change(name, patch) => {
                let changed = works.patch(&name, &params, &Patch::Merge(patch)).await;
                self.settle(&works, cluster, &name, changed).await
            }
            Act::Answer(name, patch) => {
                let answered = works.patch_status(&name, &params, &Patch::Merge(patch)).await;
                self.settle(&works, cluster, &name, answered).await
            }
            Act::Report(patch) => {
                let reported = addons.patch_status(&self.addon, &params, &Patch::Merge(patch)).await;
                self.settle(&addons, cluster, &self.addon, reported).await
            }
        }
    }

    /// Notes what came of a change. Where somebody else was faster, the object is read again, and its cluster goes on from there.
    async fn settle<K: Watched>(
        &self,
        api: &Api<K>,
        cluster: &str,
        name: &str,
        outcome: kube::Result<K>,
    ) -> kube::Result<()> {
        match outcome {
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {
                self.read_again(api, cluster, name).await
            }
            outcome => outcome.map(|object| self.answered(object)),
        }
    }

    async fn read_again<K: Watched>(&self, api: &Api<K>, cluster: &str, name: &str) -> kube::Result<()> {
        match api.get_opt(name).await? {
            Some(object) => self.seen(object),
            None => self.gone::<K>(cluster, name),
        }
        Ok(())
    }
}

/// Serves the clusters that are queued, many at a time.
async fn serve(stage: Arc<Stage>, mut queued: UnboundedReceiver<String>) {
    let clusters = stream::poll_fn(|context| queued.poll_recv(context));
    clusters.for_each_concurrent(CONCURRENCY, |cluster| Arc::clone(&stage).serve(cluster)).await;
}

/// Keeps what is known of all objects of a kind.
async fn follow<K: Watched>(stage: Arc<Stage>, api: Api<Decoded<K>>, config: watcher::Config) {
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                listed.insert(place(&object));
                stage.seen_decoded(object);
            }
            Ok(watcher::Event::InitDone) => stage.listed::<K>(&listed),
            Ok(watcher::Event::Apply(object)) => stage.seen_decoded(object),
            Ok(watcher::Event::Delete(object)) => {
                let (cluster, name) = place(&object);
                stage.gone::<K>(&cluster, &name);
            }
            // A watch that breaks is begun again.
            Err(error) => warn!(addon = stage.addon, %error, "could not watch {}", K::plural(&())),
        }
    }
}

/// The cluster and the name of an object.
fn place<K: Resource>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Whether an object is older than another state of it; if that can not be told, it is not.
fn is_older<K: Resource>(object: &K, other: &K) -> bool {
    let version = |object: &K| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    version(object).zip(version(other)).is_some_and(|(object, other)| object < other)
}
