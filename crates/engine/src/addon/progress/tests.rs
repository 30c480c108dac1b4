//! What works prove, and what does not.

use drover_api::{
    addon::ManagedClusterAddOnSpec,
    names::{
        ADDON_NAME_LABEL, CONFIG_SPEC_HASH_ANNOTATION, SET_ANNOTATION, WORK_APPLIED, WORK_AVAILABLE, WORKS_ANNOTATION,
    },
    work::{ManifestWork, ManifestWorkSpec, ManifestWorkStatus},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use serde_json::{Value, json};

use super::*;
use crate::{
    revision::fixtures,
    template::{Marks, Workload, WorkloadKind, digest, fixtures::view},
};

const GENERATION: i64 = 3;

fn set(hash: &str, version: Option<&str>) -> Set {
    Set::new([fixtures::config("hubs", "one", hash)], version.map(fixtures::version))
}

fn says(type_: &str, status: &str, generation: Option<i64>) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "Test".to_owned(),
        message: "as was said".to_owned(),
        observed_generation: generation,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// A world in which an add-on has proven its set; tests spoil one thing of it at a time.
struct World {
    addon: ManagedClusterAddOn,
    works: Vec<ManifestWork>,
    set: Set,
    supported: Vec<Version>,
    health: Health,
    /// What a template is to make, if there is one.
    expected: Option<Vec<Expected>>,
    /// Whether another Drover has made what is there.
    is_former: bool,
}

impl World {
    fn well() -> Self {
        let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
        addon.status.get_or_insert_default().conditions =
            vec![says(MANIFEST_APPLIED, "True", None), says(AVAILABLE, "True", None)];
        let works = ["addon-hello-deploy-0", "addon-hello-deploy-1"].map(|name| work(name, "h1")).into();
        Self {
            addon,
            works,
            set: set("h1", None),
            supported: Vec::new(),
            health: Health::Counts,
            expected: None,
            is_former: false,
        }
    }

    fn finding(&self) -> Finding {
        self.with_evidence(prove)
    }

    fn with_evidence<T>(&self, look: impl FnOnce(&Evidence<'_>) -> T) -> T {
        let works: Vec<_> = self.works.iter().map(view).collect();
        let works: Vec<_> = works.iter().collect();
        let maker = match &self.expected {
            _ if self.is_former => Maker::Former,
            Some(expected) => Maker::Template(expected),
            None => Maker::Manager,
        };
        look(&Evidence {
            addon: &self.addon,
            works: &works,
            set: &self.set,
            supported_versions: &self.supported,
            health: self.health,
            maker,
        })
    }

    fn conditions(&mut self) -> &mut Vec<Condition> {
        &mut self.addon.status.get_or_insert_default().conditions
    }

    /// Replaces a condition of the add-on, or takes it away.
    fn say(&mut self, type_: &str, status: Option<&str>) {
        self.conditions().retain(|condition| condition.type_ != type_);
        let said = status.map(|status| says(type_, status, None));
        self.conditions().extend(said);
    }

    /// Replaces a condition of the second work, or takes it away.
    fn report(&mut self, type_: &str, status: Option<(&str, i64)>) {
        let conditions = &mut self.works[1].status.get_or_insert_default().conditions;
        conditions.retain(|condition| condition.type_ != type_);
        conditions.extend(status.map(|(status, generation)| says(type_, status, Some(generation))));
    }

    fn stamp(&mut self, hashes: &str) {
        self.works[1].annotations_mut().insert(CONFIG_SPEC_HASH_ANNOTATION.to_owned(), hashes.to_owned());
    }

    fn label(&mut self, version: &str) {
        for work in &mut self.works {
            work.labels_mut().insert(ADDON_VERSION_LABEL.to_owned(), version.to_owned());
        }
    }

    fn remember(&mut self, set: &Set, verdict: Verdict) {
        let proof = Proof { set: set.fingerprint(), verdict, since: Timestamp::UNIX_EPOCH };
        *self.conditions() = proof.write(self.conditions().clone());
    }
}

fn work(name: &str, hash: &str) -> ManifestWork {
    let mut work = ManifestWork::new(name, ManifestWorkSpec::default());
    work.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
    work.metadata.generation = Some(GENERATION);
    let hashes = format!(r#"{{"hubs.example.com//one":"{hash}"}}"#);
    work.annotations_mut().insert(CONFIG_SPEC_HASH_ANNOTATION.to_owned(), hashes);
    let conditions = [WORK_APPLIED, WORK_AVAILABLE].map(|type_| says(type_, "True", Some(GENERATION))).into();
    work.status = Some(ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() });
    work
}

fn spoilt(spoil: impl FnOnce(&mut World)) -> Finding {
    let mut world = World::well();
    spoil(&mut world);
    world.finding()
}

fn second(defect: Defect) -> Obstacle {
    Obstacle::Work { name: "addon-hello-deploy-1".to_owned(), defect }
}

#[test]
fn stored_proof_of_a_verified_cluster_yields_to_a_failure_that_is_reported_now() {
    let (before, now) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(9).expect("a time"));
    let mut world = World::well();
    let stored = |world: &World, verdict| Proof { set: world.set.fingerprint(), verdict, since: before };
    let current = |world: &World, verdict| {
        let proof = world.with_evidence(|evidence| current(stored(world, verdict), evidence, now));
        (proof.verdict, proof.since)
    };
    assert_eq!(current(&world, Verdict::Proven), (Verdict::Proven, before));
    assert_eq!(current(&world, Verdict::Unhealthy), (Verdict::Unhealthy, before), "a success counts once it is stored");
    assert_eq!(current(&world, Verdict::Moving), (Verdict::Moving, before));
    let status = world.works[0].status.get_or_insert_default();
    status.conditions = vec![says(WORK_APPLIED, "False", Some(GENERATION))];
    assert_eq!(current(&world, Verdict::Proven), (Verdict::NoLongerApplied, now));
    let other = Proof { set: set("h2", None).fingerprint(), ..stored(&world, Verdict::Proven) };
    assert_eq!(world.with_evidence(|evidence| super::current(other.clone(), evidence, now)), other);
}

#[test]
fn works_made_from_the_set_that_are_applied_and_there_prove_it() {
    assert_eq!(World::well().finding(), Finding::Proven);
}

#[test]
fn everything_that_is_in_the_way_is_named() {
    type Spoil = fn(&mut World);
    let message = || "as was said".to_owned();
    let rows: [(Spoil, Obstacle, &str); 15] = [
        (
            |world| world.say(MANIFEST_APPLIED, None),
            Obstacle::Awaited(Manifests::Own),
            "its manager has not set the condition ManifestApplied yet",
        ),
        (
            |world| {
                world.addon.annotations_mut().insert(HOSTING_CLUSTER_ANNOTATION.to_owned(), "host".to_owned());
            },
            Obstacle::Awaited(Manifests::Hosting),
            "its manager has not set the condition HostingManifestApplied yet",
        ),
        (|world| world.works.clear(), Obstacle::NoWorks, "it has no work yet"),
        (|world| world.works = vec![work("addon-hello-pre-delete", "h1")], Obstacle::NoWorks, "it has no work yet"),
        (
            |world| world.stamp(r#"{"hubs.example.com//one":"h2"}"#),
            second(Defect::OtherConfigs(Difference::OtherState("hubs.example.com//one".to_owned()))),
            "work addon-hello-deploy-1 was made from another state of hubs.example.com//one",
        ),
        (
            |world| {
                world.set = set("h1", Some("v2"));
                world.label("v1");
                world.works[0].labels_mut().insert(ADDON_VERSION_LABEL.to_owned(), "v2".to_owned());
            },
            second(Defect::OtherVersion { label: Some("v1".to_owned()), wanted: "v2".parse().expect("a version") }),
            "work addon-hello-deploy-1 is for version v1, not v2",
        ),
        (
            |world| world.report(WORK_APPLIED, None),
            second(Defect::NotReported(Report::Applied)),
            "work addon-hello-deploy-1 is not known to be applied yet",
        ),
        (
            |world| world.report(WORK_AVAILABLE, None),
            second(Defect::NotReported(Report::Available)),
            "work addon-hello-deploy-1 is not known to be available yet",
        ),
        (
            |world| world.report(WORK_APPLIED, Some(("False", GENERATION - 1))),
            second(Defect::Outdated(Report::Applied)),
            "work addon-hello-deploy-1 was changed, and is not known to be applied since",
        ),
        (
            |world| world.report(WORK_AVAILABLE, Some(("True", GENERATION - 1))),
            second(Defect::Outdated(Report::Available)),
            "work addon-hello-deploy-1 was changed, and is not known to be available since",
        ),
        (
            |world| world.report(WORK_APPLIED, Some(("Unknown", GENERATION))),
            second(Defect::Not { report: Report::Applied, message: message() }),
            "work addon-hello-deploy-1 is not applied: as was said",
        ),
        (
            |world| world.report(WORK_AVAILABLE, Some(("False", GENERATION))),
            second(Defect::Not { report: Report::Available, message: message() }),
            "work addon-hello-deploy-1 is not available: as was said",
        ),
        (
            |world| world.say(MANIFEST_APPLIED, Some("False")),
            Obstacle::NotApplied { manifests: Manifests::Own, message: message() },
            "its manager says that ManifestApplied is not true: as was said",
        ),
        (
            |world| world.say(AVAILABLE, Some("False")),
            Obstacle::NotWell { available: Holds::No, message: message() },
            "it is not available: as was said",
        ),
        (
            |world| world.say(AVAILABLE, Some("Unknown")),
            Obstacle::NotWell { available: Holds::Unknown, message: message() },
            "nobody knows whether it is available: as was said",
        ),
    ];
    for (spoil, obstacle, sentence) in rows {
        assert_eq!(obstacle.to_string(), sentence);
        assert_eq!(spoilt(spoil), Finding::Moving(obstacle));
    }
}

#[test]
fn what_can_not_be_read_is_in_the_way_too() {
    let finding = spoilt(|world| world.stamp("not JSON"));
    let Finding::Moving(Obstacle::Work { defect: Defect::OtherConfigs(Difference::Unreadable(_)), .. }) = finding
    else {
        panic!("{finding:?}")
    };
}

#[test]
fn a_set_without_content_is_never_proven() {
    let finding = spoilt(|world| {
        world.set = set("", None);
        world.works = vec![work("addon-hello-deploy-0", "")];
    });
    assert_eq!(finding.verdict(), Verdict::Moving);
}

#[test]
fn works_that_clean_up_do_not_count() {
    for name in ["addon-hello-pre-delete", "addon-hello-pre-delete-hosting-one"] {
        assert_eq!(spoilt(|world| world.works.push(work(name, "other"))), Finding::Proven, "{name}");
    }
}

#[test]
fn a_label_counts_where_it_is_there_or_versions_are_declared() {
    let v2 = || "v2".parse().expect("a version");
    let rows = [
        (None, None, false, true),
        (Some("v2"), None, false, true),
        (Some("v2"), Some("v2"), false, true),
        (Some("v2"), Some("v1"), false, false),
        (Some("v2"), None, true, false),
        (Some("v2"), Some("v2"), true, true),
        (None, Some("v1"), true, true),
    ];
    for (version, label, declares, proven) in rows {
        let finding = spoilt(|world| {
            world.set = set("h1", version);
            if let Some(label) = label {
                world.label(label);
            }
            world.supported = if declares { vec![v2()] } else { Vec::new() };
        });
        assert_eq!(finding == Finding::Proven, proven, "{version:?} {label:?} {declares}: {finding:?}");
    }
}

#[test]
fn a_work_of_the_set_that_is_refused_now_is_failing() {
    let refused = Defect::Not { report: Report::Applied, message: "as was said".to_owned() };
    let finding = spoilt(|world| world.report(WORK_APPLIED, Some(("False", GENERATION))));
    assert_eq!(finding, Finding::Failing(second(refused)));
}

#[test]
fn a_refused_work_of_another_set_says_nothing_about_this_one() {
    let finding = spoilt(|world| {
        world.report(WORK_APPLIED, Some(("False", GENERATION)));
        world.stamp(r#"{"hubs.example.com//one":"h0"}"#);
    });
    assert_eq!(finding.verdict(), Verdict::Moving);
}

#[test]
fn an_add_on_without_health_is_well() {
    assert_eq!(spoilt(|world| world.say(AVAILABLE, None)), Finding::Proven);
    let ignored = spoilt(|world| {
        world.say(AVAILABLE, Some("False"));
        world.health = Health::DoesNotCount;
    });
    assert_eq!(ignored, Finding::Proven);
}

#[test]
fn only_what_ran_the_set_turns_unhealthy() {
    let rows = [
        ("h1", Verdict::Proven, Verdict::Unhealthy),
        ("h1", Verdict::Unhealthy, Verdict::Unhealthy),
        ("h1", Verdict::Unsettled, Verdict::Unhealthy),
        ("h1", Verdict::NoLongerApplied, Verdict::Unhealthy),
        ("h1", Verdict::Moving, Verdict::Moving),
        ("h1", Verdict::Failing, Verdict::Moving),
        ("h0", Verdict::Proven, Verdict::Moving),
    ];
    for (hash, former, expected) in rows {
        let finding = spoilt(|world| {
            world.remember(&set(hash, None), former);
            world.say(AVAILABLE, Some("Unknown"));
        });
        assert_eq!(finding.verdict(), expected, "{hash} {former:?}");
    }
    let lost = |available| {
        spoilt(|world| {
            world.remember(&set("h1", None), Verdict::Proven);
            world.works.clear();
            world.say(AVAILABLE, Some(available));
        })
    };
    assert_eq!(lost("False").verdict(), Verdict::Unhealthy, "whatever is going on with its works");
    assert_eq!(lost("True"), Finding::Moving(Obstacle::NoWorks));
}

#[test]
fn health_comes_before_a_refused_work_only_where_the_revision_ran() {
    for (former, expected) in [(Verdict::Proven, Verdict::Unhealthy), (Verdict::Moving, Verdict::Failing)] {
        let finding = spoilt(|world| {
            world.remember(&set("h1", None), former);
            world.report(WORK_APPLIED, Some(("False", GENERATION)));
            world.say(AVAILABLE, Some("False"));
        });
        assert_eq!(finding.verdict(), expected, "{former:?}");
    }
}

#[test]
fn a_hosted_add_on_needs_both_words() {
    let hosted = |status| {
        spoilt(|world| {
            world.addon.annotations_mut().insert(HOSTING_CLUSTER_ANNOTATION.to_owned(), "host".to_owned());
            world.say(HOSTING_MANIFEST_APPLIED, Some(status));
        })
    };
    assert_eq!(hosted("True"), Finding::Proven);
    assert_eq!(hosted("False").verdict(), Verdict::Moving);
}

impl World {
    /// A world in which an add-on has proven a set by what was made from its template: two works, of which the second deploys an agent.
    fn templated() -> Self {
        let mut world = Self::well();
        world.conditions().retain(|condition| condition.type_ != MANIFEST_APPLIED);
        let workload = Workload {
            kind: WorkloadKind::Deployment,
            namespace: "agents".to_owned(),
            name: "agent".to_owned(),
            is_stamped: true,
        };
        let workloads = [Vec::new(), vec![workload]];
        let works = world.works.iter().zip(workloads);
        let expected = works.map(|(work, workloads)| Expected {
            name: work.name_any(),
            digest: digest(&work.spec),
            objects: Vec::new(),
            marks: Marks::of(work),
            workloads,
        });
        world.expected = Some(expected.collect());
        let set = world.set.fingerprint();
        world.hear(&json!({ "drover-set": set.as_str(), "drover-generation": 2, "drover-observed-generation": 2,
            "drover-wanted": 1, "drover-total": 1, "drover-updated": 1, "drover-available": 1 }));
        world
    }

    /// Has the agent that is deployed say this of itself.
    fn hear(&mut self, values: &Value) {
        let values = values.as_object().expect("values by name").iter().map(|(name, value)| {
            let value = match value {
                Value::String(text) => json!({ "type": "String", "string": text }),
                number => json!({ "type": "Integer", "integer": number }),
            };
            json!({ "name": name, "fieldValue": value })
        });
        let meta =
            json!({ "ordinal": 0, "group": "apps", "kind": "Deployment", "namespace": "agents", "name": "agent" });
        let feedback = json!({ "values": values.collect::<Vec<_>>() });
        let manifest = json!({ "resourceMeta": meta, "statusFeedback": feedback, "conditions": [] });
        let status = serde_json::from_value(json!({ "manifests": [manifest] })).expect("a status");
        self.works[1].status.get_or_insert_default().resource_status = Some(status);
    }
}

fn spoilt_template(spoil: impl FnOnce(&mut World)) -> Finding {
    let mut world = World::templated();
    spoil(&mut world);
    world.finding()
}

#[test]
fn what_a_template_makes_proves_its_set() {
    assert_eq!(World::templated().finding(), Finding::Proven);
    let beside = spoilt_template(|world| world.works.push(work("somebody-else-s", "other")));
    assert_eq!(beside, Finding::Proven, "what somebody has added is none of it");
}

#[test]
fn everything_that_a_template_makes_has_to_be_there_and_to_run() {
    type Spoil = fn(&mut World);
    let rows: [(Spoil, &str); 9] = [
        (|world| drop(world.works.remove(1)), "work addon-hello-deploy-1 is not there"),
        (
            |world| world.works[1].metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)),
            "work addon-hello-deploy-1 is not there",
        ),
        (
            |world| world.works[1].spec.workload.get_or_insert_default().manifests.push(json!({})),
            "work addon-hello-deploy-1 was changed by somebody else",
        ),
        (|world| world.works.push(work("addon-hello-deploy-2", "h1")), "work addon-hello-deploy-2 has to go first"),
        (|world| world.stamp("{}"), "work addon-hello-deploy-1 was made without hubs.example.com//one"),
        (|world| world.report(WORK_AVAILABLE, None), "work addon-hello-deploy-1 is not known to be available yet"),
        (
            |world| world.works[1].status.get_or_insert_default().resource_status = None,
            "work addon-hello-deploy-1 deploys the Deployment agents/agent, of which nothing was reported yet",
        ),
        (
            |world| world.hear(&json!({ "drover-set": "0123456789abcdef" })),
            "work addon-hello-deploy-1 deploys the Deployment agents/agent, which is still at the set 0123456789abcdef",
        ),
        (
            |world| {
                let set = world.set.fingerprint();
                world.hear(
                    &json!({ "drover-set": set.as_str(), "drover-generation": 2, "drover-observed-generation": 2,
                    "drover-wanted": 1, "drover-total": 2, "drover-updated": 1, "drover-available": 1 }),
                );
            },
            "work addon-hello-deploy-1 deploys the Deployment agents/agent, which has old pods that are still to go: 1",
        ),
    ];
    for (spoil, sentence) in rows {
        let finding = spoilt_template(spoil);
        assert_eq!(finding.verdict(), Verdict::Moving, "{sentence}");
        assert_eq!(finding.obstacle().map(ToString::to_string).as_deref(), Some(sentence));
    }
}

#[test]
fn who_has_shown_once_that_it_runs_a_set_has_shown_it() {
    let finding = spoilt_template(|world| {
        world.remember(&set("h1", None), Verdict::Proven);
        world.hear(
            &json!({ "drover-set": world.set.fingerprint().as_str(), "drover-wanted": 2, "drover-available": 1 }),
        );
    });
    assert_eq!(finding, Finding::Proven, "whether it is well stands in another condition");
}

#[test]
fn what_can_not_be_made_is_failing() {
    let world = World::well();
    let works: Vec<_> = world.works.iter().map(view).collect();
    let works: Vec<_> = works.iter().collect();
    let maker = Maker::Nobody("the template makes no sense");
    let (set, health) = (set("h1", None), Health::Counts);
    let evidence = |works: &[&AddOnWork], maker| {
        let addon = World::well().addon;
        prove(&Evidence { addon: &addon, works, set: &set, supported_versions: &[], health, maker })
    };
    let expected = Finding::Failing(Obstacle::NotMade("the template makes no sense".to_owned()));
    assert_eq!(evidence(&works, maker), expected);
    assert_eq!(evidence(&works, Maker::NotYet), Finding::Moving(Obstacle::NoWorks));
    assert_eq!(evidence(&works, Maker::Former), Finding::Proven, "they prove what they can");
    assert_eq!(evidence(&[], Maker::Former), Finding::Moving(Obstacle::NoWorks));
}

#[test]
fn who_is_not_heard_of_is_not_unhealthy_before_it_says_so_itself() {
    let finding = |reason: &str| {
        spoilt(|world| {
            world.remember(&set("h1", None), Verdict::Proven);
            world.say(AVAILABLE, Some("Unknown"));
            let said = world.conditions().iter_mut().find(|said| said.type_ == AVAILABLE).expect("it was said");
            said.reason = reason.to_owned();
        })
    };
    assert_eq!(finding(UNREACHABLE), Finding::Moving(Obstacle::Unreachable));
    assert_eq!(finding("ManagedClusterAddOnLeaseNotFound").verdict(), Verdict::Unhealthy);
}

/// What another Drover has made of a template, and this one would make otherwise.
fn spoilt_former(spoil: impl FnOnce(&mut World)) -> Finding {
    let mut world = World::templated();
    world.is_former = true;
    let marks = [(SET_ANNOTATION, world.set.fingerprint().to_string()), (WORKS_ANNOTATION, "2".to_owned())];
    for work in &mut world.works {
        work.annotations_mut().extend(marks.clone().map(|(key, value)| (key.to_owned(), value)));
    }
    spoil(&mut world);
    world.finding()
}

#[test]
fn what_another_drover_has_made_proves_its_set_by_running_it() {
    type Spoil = fn(&mut World);
    assert_eq!(spoilt_former(|_| ()), Finding::Proven);
    let unstamped = spoilt_former(|world| world.hear(&json!({ "drover-generation": 2, "drover-wanted": 1 })));
    assert_eq!(unstamped, Finding::Proven, "what is not kept up with its manifest has no stamp");
    let rows: [(Spoil, &str); 7] = [
        (|world| world.works.clear(), "it has no work yet"),
        (|world| drop(world.works.remove(1)), "work addon-hello-deploy-1 is not there"),
        (
            |world| world.works[1].metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)),
            "work addon-hello-deploy-1 is not there",
        ),
        (
            |world| {
                let annotations = world.works[1].annotations_mut();
                annotations.insert(SET_ANNOTATION.to_owned(), "0123456789abcdef".to_owned());
            },
            "work addon-hello-deploy-1 was made from the set 0123456789abcdef",
        ),
        (
            |world| world.hear(&json!({})),
            "work addon-hello-deploy-1 deploys the Deployment agents/agent, which has not reported yet which set it runs",
        ),
        (
            |world| world.hear(&json!({ "drover-set": "0123456789abcdef" })),
            "work addon-hello-deploy-1 deploys the Deployment agents/agent, which is still at the set 0123456789abcdef",
        ),
        (
            |world| {
                let set = world.set.fingerprint();
                world.hear(
                    &json!({ "drover-set": set.as_str(), "drover-generation": 2, "drover-observed-generation": 2,
                    "drover-wanted": 1, "drover-total": 2, "drover-updated": 1, "drover-available": 1 }),
                );
            },
            "work addon-hello-deploy-1 deploys the Deployment agents/agent, which has old pods that are still to go: 1",
        ),
    ];
    for (spoil, sentence) in rows {
        let finding = spoilt_former(spoil);
        assert_eq!(finding.verdict(), Verdict::Moving, "{sentence}");
        assert_eq!(finding.obstacle().map(ToString::to_string).as_deref(), Some(sentence));
        let shown = spoilt_former(|world| {
            world.remember(&set("h1", None), Verdict::Proven);
            spoil(world);
        });
        let is_shown = sentence.contains("deploys");
        assert_eq!(shown == Finding::Proven, is_shown, "who has shown it once has shown it: {sentence}");
    }
}
