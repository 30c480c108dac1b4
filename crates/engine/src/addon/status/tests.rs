use drover_api::{
    addon::{HealthCheck, HealthCheckMode},
    names::{AVAILABLE, GIVEN, PROGRESSING, PROVEN},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    addon::progress::Obstacle,
    condition::Holds,
    revision::{
        fixtures::{at, config, hub, type_, version},
        markers::Verdict,
    },
};

/// An add-on on one cluster through its life: each step is one call, one second after the last.
struct Life {
    status: Option<ManagedClusterAddOnStatus>,
    vocabulary: Vocabulary,
    supported: Vec<Version>,
    second: i64,
}

/// What a step has to say beyond the set and the finding.
#[derive(Clone, Copy, Default)]
struct More<'a> {
    failure: Option<Failure>,
    unsupported: &'a [ConfigGroupResource],
    invalid: Option<&'a Version>,
    hindrance: Option<&'a str>,
    pending: Option<&'a str>,
    generation: Option<i64>,
}

impl Life {
    fn new(vocabulary: Vocabulary) -> Self {
        Self { status: None, vocabulary, supported: Vec::new(), second: 0 }
    }

    fn by_version(supported: &[&str]) -> Self {
        let supported = supported.iter().map(|text| version(text)).collect();
        Self { supported, ..Self::new(Vocabulary::Version) }
    }

    fn advance(&mut self, turn: Turn<'_>, more: More<'_>) {
        self.second += 1;
        let facts = Facts {
            stored: self.status.as_ref(),
            vocabulary: self.vocabulary,
            turn,
            unsupported: more.unsupported,
            invalid_version: more.invalid,
            hindrance: more.hindrance,
            pending: more.pending,
            supported_versions: &self.supported,
        };
        let status = status(&facts, at(self.second));
        let again = super::status(&Facts { stored: Some(&status), ..facts }, at(self.second + 100));
        assert_eq!(again, status, "the same facts say the same again, with the same times");
        self.status = Some(status);
    }

    fn step_with(&mut self, set: &Set, finding: &Finding, more: More<'_>) {
        let given = Given { set: set.fingerprint(), since: at(0) };
        let generation = |_: &SetConfig| more.generation;
        let holding = Holding { given: &given, set, finding, failure: more.failure, generation: &generation };
        self.advance(Turn::Come(holding), more);
    }

    fn step(&mut self, set: &Set, finding: &Finding) {
        self.step_with(set, finding, More::default());
    }

    fn wait(&mut self, wait: Wait<'_>) {
        self.advance(Turn::Waits(wait), More::default());
    }

    fn status(&self) -> &ManagedClusterAddOnStatus {
        self.status.as_ref().expect("a step was made")
    }

    fn condition(&self, type_: &str) -> &Condition {
        let conditions = &self.status().conditions;
        conditions.iter().find(|condition| condition.type_ == type_).expect(type_)
    }

    /// `False/InstallSucceed: install completed with no errors.`
    fn progressing(&self) -> String {
        self.said("Progressing")
    }

    fn said(&self, type_: &str) -> String {
        let Condition { status, reason, message, .. } = self.condition(type_);
        format!("{status}/{reason}: {message}")
    }

    fn finished(&self) -> i64 {
        self.condition("Progressing").last_transition_time.0.as_second()
    }

    fn versions(&self) -> [Option<&str>; 3] {
        let status = self.status();
        [&status.last_version, &status.current_version, &status.wanted_version]
            .map(|version| version.as_ref().map(Version::as_str))
    }

    fn json(&self) -> Value {
        serde_json::to_value(self.status()).expect("a status")
    }
}

fn moving() -> Finding {
    Finding::Moving(Obstacle::NoWorks)
}

fn failing() -> Finding {
    Finding::Failing(Obstacle::NoWorks)
}

fn unhealthy() -> Finding {
    Finding::Unhealthy(Obstacle::NotWell { available: Holds::No, message: "crashed".to_owned() })
}

fn at_version(text: &str) -> Set {
    Set::new([config("settings", "global", "h1")], Some(version(text)))
}

fn one() -> ConfigGroupResource {
    type_("hubs")
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, second: i64) -> Value {
    let time = format!("1970-01-01T00:00:{second:02}Z");
    json!({ "type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time })
}

#[test]
fn a_fresh_install_and_a_rolling_upgrade_to_another_object() {
    let (xxx, yyy) = (hub("hub-xxx", "hash-x"), hub("hub-yyy", "hash-y"));
    let mut life = Life::new(Vocabulary::Lifecycle);
    let expected = |[name, desired, last]: [&str; 3], applied: Value, conditions: [Value; 4]| {
        let mut reference = json!({
            "group": "example.com",
            "resource": "hubs",
            "name": name,
            "lastObservedGeneration": 4,
            "desiredConfig": { "name": name, "specHash": desired },
            "desiredConfigSpecHash": desired,
            "lastAppliedConfigSpecHash": last,
        });
        if !applied.is_null() {
            reference["lastAppliedConfig"] = applied;
        }
        json!({ "configReferences": [reference], "conditions": conditions })
    };
    let given = |set: &Set| condition(GIVEN, "True", "Given", set.fingerprint().as_str(), 0);
    let proven = |set: &Set, status: &str, reason: &str, second| {
        condition(PROVEN, status, reason, set.fingerprint().as_str(), second)
    };
    let configured = || condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured", 1);
    let progressing =
        |status: &str, reason: &str, message: &str, second| condition("Progressing", status, reason, message, second);
    let step = |life: &mut Life, set: &Set, finding: &Finding| {
        life.step_with(set, finding, More { generation: Some(4), ..More::default() });
    };

    step(&mut life, &xxx, &moving());
    let conditions = [
        given(&xxx),
        proven(&xxx, "False", "Moving", 1),
        configured(),
        progressing("True", "Installing", "installing...", 1),
    ];
    assert_eq!(life.json(), expected(["hub-xxx", "hash-x", ""], Value::Null, conditions));

    step(&mut life, &xxx, &Finding::Proven);
    let conditions = [
        given(&xxx),
        configured(),
        progressing("False", "InstallSucceed", "install completed with no errors.", 2),
        proven(&xxx, "True", "Proven", 2),
    ];
    let applied = json!({ "name": "hub-xxx", "specHash": "hash-x" });
    assert_eq!(sorted(life.json()), sorted(expected(["hub-xxx", "hash-x", "hash-x"], applied.clone(), conditions)));

    step(&mut life, &yyy, &moving());
    let conditions = [
        given(&yyy),
        configured(),
        progressing("True", "Upgrading", "upgrading...", 3),
        proven(&yyy, "False", "Moving", 3),
    ];
    assert_eq!(sorted(life.json()), sorted(expected(["hub-yyy", "hash-y", "hash-x"], applied, conditions)));

    step(&mut life, &yyy, &Finding::Proven);
    let conditions = [
        given(&yyy),
        configured(),
        progressing("False", "UpgradeSucceed", "upgrade completed with no errors.", 4),
        proven(&yyy, "True", "Proven", 4),
    ];
    let applied = json!({ "name": "hub-yyy", "specHash": "hash-y" });
    assert_eq!(sorted(life.json()), sorted(expected(["hub-yyy", "hash-y", "hash-y"], applied, conditions)));
}

/// The status, with its conditions by type: their order means nothing.
fn sorted(mut status: Value) -> Value {
    let conditions = status["conditions"].as_array_mut().expect("conditions");
    conditions.sort_by_key(|condition| condition["type"].as_str().map(ToOwned::to_owned));
    status
}

#[test]
fn versions_through_install_upgrade_rollback_and_versions_that_do_not_exist() {
    let mut life = Life::by_version(&["v1", "v2"]);
    let (v0, v3) = (version("v0"), version("v3"));

    life.step(&at_version("v1"), &moving());
    assert_eq!(life.progressing(), "True/Installing: Installing addon to version v1.");
    assert_eq!(life.versions(), [None, Some("unknown"), Some("v1")]);
    life.step(&at_version("v1"), &Finding::Proven);
    assert_eq!(life.progressing(), "False/Succeed: install completed with no errors.");
    assert_eq!(life.versions(), [None, Some("v1"), Some("v1")]);

    life.step(&at_version("v2"), &moving());
    assert_eq!(life.progressing(), "True/Upgrading: Upgrading addon to version v2.");
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v2")]);
    life.step(&at_version("v2"), &Finding::Proven);
    assert_eq!(life.progressing(), "False/Succeed: install completed with no errors.");
    assert_eq!((life.versions(), life.finished()), ([Some("v1"), Some("v2"), Some("v2")], 4));

    life.step(&at_version("v1"), &moving());
    assert_eq!(life.progressing(), "True/Rollingback: Rollingback addon to version v1.");
    assert_eq!(life.versions(), [Some("v2"), Some("unknown"), Some("v1")]);
    life.step(&at_version("v1"), &Finding::Proven);
    assert_eq!(life.progressing(), "False/Succeed: install completed with no errors.");
    assert_eq!(life.versions(), [Some("v2"), Some("v1"), Some("v1")]);

    life.step_with(&at_version("v1"), &Finding::Proven, More { invalid: Some(&v3), ..More::default() });
    assert_eq!(life.progressing(), "False/Failed: could not upgrade to invalid version v3");
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v3")]);

    // What does not exist was never there to go back from.
    life.step(&at_version("v1"), &moving());
    assert_eq!(life.progressing(), "True/Installing: Installing addon to version v1.");
    assert_eq!(life.versions(), [Some("unknown"), Some("unknown"), Some("v1")]);
    life.step(&at_version("v1"), &Finding::Proven);
    assert_eq!(life.versions(), [Some("unknown"), Some("v1"), Some("v1")]);

    life.step_with(&at_version("v1"), &Finding::Proven, More { invalid: Some(&v0), ..More::default() });
    assert_eq!(life.progressing(), "False/Failed: could not rollback to invalid version v0");
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v0")]);
}

#[test]
fn a_version_that_does_not_exist_is_not_installed_either() {
    let mut life = Life::by_version(&["v1"]);
    let v9 = version("v9");
    life.advance(Turn::Waits(Wait::For("")), More { invalid: Some(&v9), ..More::default() });
    assert_eq!(life.progressing(), "False/Failed: could not install invalid version v9");
    assert_eq!(life.versions(), [None, Some("unknown"), Some("v9")]);
    life.step(&at_version("v1"), &moving());
    assert_eq!(life.versions(), [Some("unknown"), Some("unknown"), Some("v1")]);
}

#[test]
fn a_version_that_failed_is_named_and_not_said_to_run() {
    let mut life = Life::by_version(&["v1", "v2"]);
    life.step(&at_version("v1"), &Finding::Proven);
    life.step_with(&at_version("v2"), &failing(), More { failure: Some(Failure::NotApplied), ..More::default() });
    assert_eq!(life.progressing(), "False/Failed: could not upgrade to version v2: it has no work yet");
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v2")]);
}

#[test]
fn a_version_that_ran_is_known_though_it_is_not_offered_any_more() {
    let mut life = Life::by_version(&["v1"]);
    life.step(&at_version("v1"), &Finding::Proven);
    life.supported = vec![version("v2")];
    life.step(&at_version("v2"), &moving());
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v2")]);
}

#[test]
fn any_version_is_known_where_none_are_declared() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&at_version("v1"), &moving());
    life.step(&at_version("v2"), &moving());
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v2")]);
    assert_eq!(life.progressing(), "True/Installing: installing...", "nothing was applied yet");
}

#[test]
fn a_version_that_was_never_there_is_upgraded_from_all_the_same() {
    let mut life = Life::by_version(&["v1", "v2"]);
    life.step(&at_version("v1"), &moving());
    life.step(&at_version("v2"), &moving());
    assert_eq!(life.progressing(), "True/Upgrading: Upgrading addon to version v2.");
}

#[test]
fn who_waits_keeps_what_was_noted_of_versions() {
    let mut life = Life::by_version(&["v1"]);
    life.step(&at_version("v1"), &Finding::Proven);
    life.wait(Wait::For("nothing is wanted"));
    assert_eq!(life.versions(), [None, Some("v1"), Some("v1")]);
}

#[test]
fn a_change_of_configuration_under_one_version_is_an_upgrade() {
    let other = Set::new([config("settings", "global", "h2")], Some(version("v1")));
    let mut life = Life::by_version(&["v1"]);
    life.step(&at_version("v1"), &Finding::Proven);
    life.step(&other, &moving());
    assert_eq!(life.progressing(), "True/Upgrading: Upgrading addon to version v1.");
    assert_eq!(life.versions(), [None, Some("unknown"), Some("v1")]);
}

#[test]
fn a_version_is_followed_by_none_and_found_again() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&at_version("v1"), &Finding::Proven);
    life.step(&hub("one", "h1"), &Finding::Proven);
    assert_eq!(life.versions(), [Some("v1"), None, None]);
    life.step(&at_version("v2"), &Finding::Proven);
    assert_eq!(life.versions(), [Some("v1"), Some("v2"), Some("v2")]);
}

#[test]
fn what_another_manager_has_noted_of_versions_is_taken_over() {
    let mut life = Life::by_version(&["v1", "v2"]);
    let status = ManagedClusterAddOnStatus { current_version: Some(version("v1")), ..Default::default() };
    life.status = Some(status);
    life.step(&at_version("v2"), &moving());
    assert_eq!(life.versions(), [Some("v1"), Some("unknown"), Some("v2")]);
    assert_eq!(life.progressing(), "True/Upgrading: Upgrading addon to version v2.");
}

#[test]
fn it_is_an_install_until_something_was_applied() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&hub("one", "h1"), &moving());
    life.step_with(&hub("one", "h1"), &failing(), More { failure: Some(Failure::NotApplied), ..More::default() });
    assert_eq!(life.progressing(), "False/InstallFailed: install failed: it has no work yet");
    life.step(&hub("one", "h2"), &moving());
    assert_eq!(life.progressing(), "True/Installing: installing...");
    life.step(&hub("one", "h2"), &Finding::Proven);
    assert_eq!(life.progressing(), "False/InstallSucceed: install completed with no errors.");
    life.step(&hub("one", "h3"), &failing());
    assert_eq!(life.progressing(), "True/Upgrading: upgrading...", "a refusal may pass");
    life.step_with(&hub("one", "h3"), &moving(), More { failure: Some(Failure::TooLate), ..More::default() });
    assert_eq!(life.progressing(), "False/UpgradeFailed: upgrade did not end in time: it has no work yet");
    life.step(&hub("one", "h3"), &moving());
    assert_eq!(life.progressing(), "True/Upgrading: upgrading...", "it is tried again");
}

#[test]
fn an_add_on_without_configurations_is_installed_once_too() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&Set::new([], None), &moving());
    assert_eq!(life.progressing(), "True/Installing: installing...");
    life.step(&Set::new([], None), &Finding::Proven);
    assert_eq!(life.progressing(), "False/InstallSucceed: install completed with no errors.");
    life.step(&hub("one", "h1"), &moving());
    life.step(&hub("one", "h1"), &moving());
    assert_eq!(life.progressing(), "True/Upgrading: upgrading...");
}

#[test]
fn late_success_repairs_and_its_time_is_that_of_the_finish() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    let failed = More { failure: Some(Failure::TooLate), ..More::default() };
    life.step_with(&at_version("v1"), &moving(), failed);
    assert_eq!((life.versions(), life.finished()), ([None, Some("unknown"), Some("v1")], 1));
    life.step_with(&at_version("v1"), &Finding::Proven, failed);
    assert_eq!(life.progressing(), "False/InstallSucceed: install completed with no errors.");
    assert_eq!((life.versions(), life.finished()), ([None, Some("v1"), Some("v1")], 2));
}

#[test]
fn what_has_ended_does_not_begin_anew_by_itself() {
    let mut life = Life::by_version(&["v1"]);
    let set = at_version("v1");
    life.step(&set, &Finding::Proven);
    let steps = [
        (moving(), Verdict::Unsettled),
        (failing(), Verdict::NoLongerApplied),
        (moving(), Verdict::NoLongerApplied),
        (unhealthy(), Verdict::Unhealthy),
        (failing(), Verdict::Unhealthy),
    ];
    for (finding, verdict) in steps {
        life.step(&set, &finding);
        assert_eq!(life.progressing(), "False/Succeed: install completed with no errors.", "{finding:?}");
        assert_eq!((life.versions(), life.finished()), ([None, Some("v1"), Some("v1")], 1));
        let proof = Proof::read(&life.status().conditions).expect("a proof");
        assert_eq!(proof.verdict, verdict, "{finding:?}");
    }
    life.step_with(&set, &unhealthy(), More { failure: Some(Failure::Unhealthy), ..More::default() });
    assert_eq!(life.said(PROVEN), format!("False/Unhealthy: {}", set.fingerprint()));
    assert_eq!(life.condition("Progressing").reason, "Failed");
    assert_eq!(life.status().config_references[0].last_applied_config_spec_hash, Some("h1".parse().expect("a hash")));
}

#[test]
fn going_back_to_what_was_applied_is_not_done_before_it_is_proven() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&hub("one", "h1"), &Finding::Proven);
    life.step(&hub("one", "h2"), &moving());
    life.step(&hub("one", "h1"), &moving());
    assert_eq!(life.progressing(), "True/Upgrading: upgrading...");
    let reference = &life.status().config_references[0];
    assert_eq!(reference.desired_config, reference.last_applied_config);
    life.step(&hub("one", "h1"), &Finding::Proven);
    assert_eq!(life.progressing(), "False/UpgradeSucceed: upgrade completed with no errors.");
}

#[test]
fn a_waiting_add_on_says_so_and_is_not_configured() {
    let rows = [
        (
            Vocabulary::Lifecycle,
            Wait::ForCanary("c1 is not done"),
            "True/WaitingForCanary: waitingForCanary... c1 is not done",
        ),
        (Vocabulary::Lifecycle, Wait::For("paused by ann"), "True/Installing: installing... paused by ann"),
        (
            Vocabulary::Version,
            Wait::ForCanary("c1 is not done"),
            "True/WaitingForCanary: waitingForCanary... c1 is not done",
        ),
        (Vocabulary::Ocm, Wait::For("paused by ann"), "True/Progressing: progressing... paused by ann"),
    ];
    for (vocabulary, wait, said) in rows {
        let mut life = Life::new(vocabulary);
        life.wait(wait);
        assert_eq!(life.progressing(), said);
        let configured = "False/ConfigurationsNotConfigured: Configurations updated and not configured yet";
        assert_eq!(life.said("Configured"), configured);
        assert_eq!((life.status().conditions.len(), life.versions()), (2, [None; 3]));
        life.step(&hub("one", "h1"), &moving());
        assert_eq!(life.said("Configured"), "True/ConfigurationsConfigured: Configurations configured");
    }
}

#[test]
fn a_type_that_is_not_supported_is_said_and_the_rest_goes_on() {
    for vocabulary in [Vocabulary::Lifecycle, Vocabulary::Version, Vocabulary::Ocm] {
        let mut life = Life::new(vocabulary);
        let types = [one()];
        life.step_with(&hub("one", "h1"), &Finding::Proven, More { unsupported: &types, ..More::default() });
        let said =
            "False/ConfigurationUnsupported: Configuration with gvr example.com/hubs is not supported for this addon";
        assert_eq!(life.progressing(), said);
        assert_eq!(Proof::read(&life.status().conditions).expect("a proof").verdict, Verdict::Proven);
        assert_eq!(life.status().config_references[0].last_applied_config, Some(config("hubs", "one", "h1").config));
    }
}

#[test]
fn ocm_gets_its_own_fields_and_words_and_nothing_else() {
    let mut life = Life::new(Vocabulary::Ocm);
    life.step(&at_version("v1"), &moving());
    assert_eq!(life.progressing(), "True/Progressing: progressing... no addon works");
    life.step(&at_version("v1"), &Finding::Proven);
    assert_eq!(life.progressing(), "False/Completed: completed with no errors.");
    let reference = json!([{
        "group": "example.com",
        "resource": "settings",
        "name": "global",
        "desiredConfig": { "name": "global", "specHash": "h1" },
        "lastAppliedConfig": { "name": "global", "specHash": "h1" },
    }]);
    assert_eq!(life.json()["configReferences"], reference);
    let fields: Vec<_> = life.json().as_object().expect("an object").keys().cloned().collect();
    assert_eq!(fields, ["conditions", "configReferences"]);
    life.step(&at_version("v1"), &moving());
    assert_eq!(life.progressing(), "True/Progressing: progressing... no addon works", "in OCM it begins anew");
    life.step_with(&at_version("v1"), &failing(), More { failure: Some(Failure::NotApplied), ..More::default() });
    assert_eq!(life.condition("Progressing").reason, "Failed");
}

#[test]
fn what_others_write_stays() {
    let available = Says { type_: AVAILABLE, holds: Holds::Yes, reason: "Test", message: "", generation: None };
    let others = ManagedClusterAddOnStatus {
        conditions: condition::with(Vec::new(), available, at(0)),
        supported_configs: vec![one()],
        namespace: Some("agents".to_owned()),
        health_check: Some(HealthCheck { mode: Some(HealthCheckMode::Lease) }),
        ..Default::default()
    };
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.status = Some(others.clone());
    life.step(&hub("one", "h1"), &moving());
    let status = life.status();
    assert_eq!(life.condition(AVAILABLE), &others.conditions[0]);
    assert_eq!(status.supported_configs, others.supported_configs);
    assert_eq!(status.namespace, others.namespace);
    assert_eq!(status.health_check, others.health_check);
}

#[test]
fn a_generation_that_was_seen_stays_with_its_content() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    let generation = |life: &Life| life.status().config_references[0].last_observed_generation;
    life.step(&hub("one", "h1"), &moving());
    assert_eq!(generation(&life), None);
    life.step_with(&hub("one", "h1"), &moving(), More { generation: Some(2), ..More::default() });
    assert_eq!(generation(&life), Some(2));
    life.step_with(&hub("one", "h1"), &moving(), More { generation: Some(3), ..More::default() });
    assert_eq!(generation(&life), Some(2), "somebody may have written it");
    life.step_with(&hub("one", "h2"), &moving(), More { generation: Some(3), ..More::default() });
    assert_eq!(generation(&life), Some(3), "another content");
    life.step_with(&hub("two", "h2"), &moving(), More { generation: Some(1), ..More::default() });
    assert_eq!(generation(&life), Some(1), "another object");
    life.step(&hub("two", "h3"), &moving());
    assert_eq!(generation(&life), None, "the object has another content by now");
}

#[test]
fn flat_references_alone_are_understood() {
    let reference = ConfigReference {
        group_resource: one(),
        name: Some("one".to_owned()),
        last_observed_generation: Some(7),
        last_applied_config_spec_hash: Some("h0".parse().expect("a hash")),
        ..Default::default()
    };
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.status = Some(ManagedClusterAddOnStatus { config_references: vec![reference], ..Default::default() });
    life.step(&hub("one", "h1"), &moving());
    assert_eq!(life.progressing(), "True/Upgrading: upgrading...");
    let reference = &life.status().config_references[0];
    assert_eq!(reference.last_observed_generation, Some(7));
    assert_eq!(reference.last_applied_config, Some(config("hubs", "one", "h0").config));
}

#[test]
fn another_vocabulary_says_the_same_without_a_change_of_time() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&at_version("v1"), &Finding::Proven);
    for (vocabulary, reason) in
        [(Vocabulary::Version, "Succeed"), (Vocabulary::Ocm, "Completed"), (Vocabulary::Lifecycle, "UpgradeSucceed")]
    {
        life.vocabulary = vocabulary;
        life.step(&at_version("v1"), &Finding::Proven);
        assert_eq!((life.condition("Progressing").reason.as_str(), life.finished()), (reason, 1));
    }
}

#[test]
fn what_a_user_asks_for_and_can_not_have_is_said_and_changes_nothing_else() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    let set = hub("xxx", "h1");
    life.step(&set, &Finding::Proven);
    let before = life.status().config_references.clone();
    life.step_with(&set, &Finding::Proven, More { hindrance: Some("the config does not exist"), ..More::default() });
    let said = life.condition(PROGRESSING);
    assert_eq!((said.reason.as_str(), said.message.as_str()), ("InstallFailed", "the config does not exist"));
    assert_eq!(life.status().config_references, before);
}

#[test]
fn who_was_there_proves_nothing_while_a_work_is_written_again_and_does_not_begin_anew() {
    let mut life = Life::new(Vocabulary::Lifecycle);
    let set = hub("xxx", "h1");
    life.step(&set, &Finding::Proven);
    for _ in 0..2 {
        life.step(&set, &Finding::Moving(Obstacle::NoWorks));
        assert_eq!(life.said(PROVEN), format!("False/Unsettled: {}", set.fingerprint()));
    }
    life.step(&set, &Finding::Proven);
    assert_eq!(life.condition(PROVEN).last_transition_time.0, at(4), "it has to stay well from now on");
}

#[test]
fn an_add_on_that_ran_before_the_hub_came_stays_configured_while_it_waits() {
    let conditions = json!([
        condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured", 0),
        condition("Progressing", "False", "Completed", "completed with no errors.", 0),
    ]);
    let before: ManagedClusterAddOnStatus =
        serde_json::from_value(json!({ "conditions": conditions })).expect("a status");
    for (vocabulary, said) in [
        (Vocabulary::Lifecycle, "True/Upgrading: upgrading... paused by drover.dev/pause"),
        (Vocabulary::Ocm, "True/Progressing: progressing... paused by drover.dev/pause"),
    ] {
        let mut life = Life { status: Some(before.clone()), ..Life::new(vocabulary) };
        life.wait(Wait::For("paused by drover.dev/pause"));
        assert_eq!(life.said("Configured"), "True/ConfigurationsConfigured: Configurations configured");
        assert_eq!(life.progressing(), said);
    }
}

#[test]
fn what_is_not_known_yet_is_no_failure() {
    let set = hub("hub-xxx", "hash-x");
    let mut life = Life::new(Vocabulary::Lifecycle);
    life.step(&set, &Finding::Proven);
    let more = More { pending: Some("the config hubs own has not been looked up yet"), ..More::default() };
    life.step_with(&set, &Finding::Proven, more);
    assert_eq!(life.progressing(), "True/Installing: installing... the config hubs own has not been looked up yet");
    life.step(&set, &Finding::Proven);
    assert_eq!(life.progressing(), "False/InstallSucceed: install completed with no errors.");
}
