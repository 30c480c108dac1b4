//! What an add-on publishes of its placements: one value for each, in the shape of the specification and in OCM's.

use drover_api::{
    addon::{
        AddOnConfig, AddOnSummary, ClusterManagementAddOnStatus, ConfigSpecHash, DefaultConfigReference,
        FlatInstallConfigReference, FlatInstallProgression, InstallConfigReference, InstallProgression,
    },
    drover::SetConfig,
    grammar::{SpecHash, Version},
    reference::PlacementRef,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use super::{
    beside::beside,
    words::{self, Counts, Progress, Vocabulary},
};
use crate::revision::Set;

/// What the status of an add-on follows from.
#[derive(Clone, Copy, Debug)]
pub struct Overview<'a> {
    /// The status that is stored.
    pub stored: Option<&'a ClusterManagementAddOnStatus>,
    /// The generation of the ClusterManagementAddOn that all this was worked out from.
    pub generation: Option<i64>,
    /// In whose words it is to be said.
    pub vocabulary: Vocabulary,
    /// The default configurations.
    pub defaults: &'a [DefaultConfig],
    /// The placements, in their order.
    pub placements: &'a [PlacementProgress<'a>],
    /// All clusters of the add-on.
    pub clusters: Clusters,
    /// The versions that the add-on can be installed in.
    pub supported_versions: &'a [Version],
    /// The version that is installed where none is asked for.
    pub default_version: Option<&'a Version>,
}

/// A default configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultConfig {
    /// Which it is.
    pub config: AddOnConfig,
    /// Its hash, if the hub can tell. Otherwise the add-on's manager does.
    pub hash: Option<SpecHash>,
}

/// How far an add-on is on the clusters of one placement.
#[derive(Clone, Copy, Debug)]
pub struct PlacementProgress<'a> {
    /// The placement.
    pub placement: &'a PlacementRef,
    /// The set that is configured, though somebody may hold it at another; none if nobody can tell, because something is missing or
    /// contradicts itself.
    pub desired: Option<&'a Set>,
    /// The last set that was known to be good.
    pub last_known_good: Option<&'a Set>,
    /// The last set that ran on all clusters.
    pub last_applied: Option<&'a Set>,
    /// What is going on.
    pub progress: Progress,
    /// Its clusters.
    pub counts: Counts,
    /// What else there is to say: what it waits for, who paused it, why it was halted.
    pub note: Option<&'a str>,
}

/// All clusters of an add-on, each counted once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clusters {
    /// All.
    pub total: usize,
    /// Those that were given what is wanted for them: moving or done.
    pub given: usize,
    /// Those on which the add-on is available.
    pub available: usize,
    /// What is going on with those that no placement decides for, if there are any.
    pub others: Option<Progress>,
}

/// The whole status of the add-on.
#[must_use]
pub fn progressions(overview: &Overview<'_>, now: Timestamp) -> ClusterManagementAddOnStatus {
    let ocm: Vec<_> = overview.placements.iter().map(|placement| progression(placement, overview, now)).collect();
    let stored = overview.stored.cloned().unwrap_or_default();
    let plain = ClusterManagementAddOnStatus {
        default_config_references_v1alpha1: defaults(overview.defaults, &stored.default_config_references_v1alpha1),
        install_progressions: ocm.clone(),
        ..ClusterManagementAddOnStatus::default()
    };
    if overview.vocabulary == Vocabulary::Ocm {
        return plain;
    }
    ClusterManagementAddOnStatus {
        summary: summary(overview),
        default_config_references_v1beta1: defaults(overview.defaults, &stored.default_config_references_v1beta1),
        install_progression: ocm.into_iter().map(flat).collect(),
        supported_versions: overview.supported_versions.to_vec(),
        default_version: overview.default_version.cloned(),
        ..plain
    }
}

/// The list of default configurations. What the hub can not tell stays as it is stored in this very list: the add-on's manager writes it,
/// in the list of its own version of the API.
fn defaults(defaults: &[DefaultConfig], stored: &[DefaultConfigReference]) -> Vec<DefaultConfigReference> {
    let stored = |config: &AddOnConfig| {
        let of_type = stored.iter().filter(|reference| reference.group_resource == config.group_resource);
        let mut states = of_type.filter_map(|reference| reference.desired_config.as_ref());
        states.find(|state| state.referent == config.referent).map(|state| state.spec_hash.clone())
    };
    let reference = |DefaultConfig { config, hash }: &DefaultConfig| {
        let spec_hash = hash.clone().or_else(|| stored(config)).unwrap_or(SpecHash::Missing);
        let AddOnConfig { group_resource, referent } = config.clone();
        DefaultConfigReference { group_resource, desired_config: Some(ConfigSpecHash { referent, spec_hash }) }
    };
    defaults.iter().map(reference).collect()
}

fn progression(placement: &PlacementProgress<'_>, overview: &Overview<'_>, now: Timestamp) -> InstallProgression {
    let PlacementProgress { progress, counts, note, .. } = *placement;
    let sentence = words::of_placement(progress, overview.vocabulary, counts, note);
    let stored = stored_conditions(placement.placement, overview.stored);
    InstallProgression {
        placement: placement.placement.clone(),
        config_references: references(placement),
        conditions: words::progressing(stored, &sentence, overview.generation, now),
    }
}

fn stored_conditions(placement: &PlacementRef, stored: Option<&ClusterManagementAddOnStatus>) -> Vec<Condition> {
    let progressions = stored.map_or(&[][..], |stored| &stored.install_progressions);
    let stored = progressions.iter().find(|progression| progression.placement == *placement);
    stored.map(|progression| progression.conditions.clone()).unwrap_or_default()
}

/// One reference for each configuration that is wanted, with those beside it that were good, or ran, in its place.
fn references(placement: &PlacementProgress<'_>) -> Vec<InstallConfigReference> {
    let PlacementProgress { desired, last_known_good, last_applied, .. } = *placement;
    // Where nothing is wanted, what ran is all that there is to list.
    let Some(listed) = desired.or(last_applied).or(last_known_good) else { return Vec::new() };
    let good = beside(listed.configs(), configs(last_known_good));
    let ran = beside(listed.configs(), configs(last_applied));
    let reference = |((config, good), ran): ((&SetConfig, Option<&ConfigSpecHash>), Option<&ConfigSpecHash>)| {
        InstallConfigReference {
            group_resource: config.group_resource.clone(),
            desired_config: desired.map(|_| config.config.clone()),
            last_known_good_config: good.cloned(),
            last_applied_config: ran.cloned(),
        }
    };
    listed.configs().iter().zip(good).zip(ran).map(reference).collect()
}

fn configs(set: Option<&Set>) -> &[SetConfig] {
    set.map_or(&[], Set::configs)
}

fn flat(progression: InstallProgression) -> FlatInstallProgression {
    let InstallProgression { placement, config_references, conditions } = progression;
    let config_references = config_references.into_iter().filter_map(flat_reference).collect();
    FlatInstallProgression { placement, config_references, conditions }
}

/// A reference is named by what is wanted; what was good or ran has no name of its own here.
fn flat_reference(reference: InstallConfigReference) -> Option<FlatInstallConfigReference> {
    let InstallConfigReference { group_resource, desired_config, last_known_good_config, last_applied_config } =
        reference;
    let hash =
        |config: &Option<ConfigSpecHash>| config.as_ref().map_or(SpecHash::Missing, |config| config.spec_hash.clone());
    Some(FlatInstallConfigReference {
        desired_config_spec_hash: hash(&desired_config),
        last_known_good_config_spec_hash: hash(&last_known_good_config),
        last_applied_config_spec_hash: hash(&last_applied_config),
        config: AddOnConfig {
            group_resource,
            referent: desired_config.or(last_applied_config).or(last_known_good_config)?.referent,
        },
    })
}

fn summary(overview: &Overview<'_>) -> Option<AddOnSummary> {
    let Clusters { total, given, available, others } = overview.clusters;
    let progress = Progress::foremost(overview.placements.iter().map(|placement| placement.progress).chain(others));
    (total > 0).then(|| AddOnSummary {
        progress: progress.map(|progress| format!("{given}/{total} {}", progress.word())),
        available: Some(format!("{available}/{total}")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::revision::fixtures::{at, config, hub, version};

    fn placement(name: &str) -> PlacementRef {
        PlacementRef { namespace: "default".to_owned(), name: name.to_owned() }
    }

    /// Two placements, as they stand in the examples: the sets that are wanted, known to be good and applied.
    struct Example<'a> {
        sets: [Option<&'a Set>; 3],
        progress: Progress,
        given: usize,
        note: Option<&'a str>,
    }

    impl<'a> Example<'a> {
        fn of(&self, placement: &'a PlacementRef, total: usize) -> PlacementProgress<'a> {
            let [desired, last_known_good, last_applied] = self.sets;
            let counts = Counts { selected: total, total, given: self.given, ..Counts::default() };
            let Self { progress, note, .. } = *self;
            PlacementProgress { placement, desired, last_known_good, last_applied, progress, counts, note }
        }
    }

    fn overview<'a>(placements: &'a [PlacementProgress<'a>]) -> Overview<'a> {
        Overview {
            stored: None,
            generation: Some(2),
            vocabulary: Vocabulary::Lifecycle,
            defaults: &[],
            placements,
            clusters: Clusters::default(),
            supported_versions: &[],
            default_version: None,
        }
    }

    /// A default configuration, with a hash if the hub can tell it.
    fn default(resource: &str, name: &str, hash: Option<&str>) -> DefaultConfig {
        let SetConfig { group_resource, config } = config(resource, name, hash.unwrap_or_default());
        let hash = hash.map(|_| config.spec_hash);
        DefaultConfig { config: AddOnConfig { group_resource, referent: config.referent }, hash }
    }

    fn json(overview: &Overview<'_>) -> Value {
        serde_json::to_value(progressions(overview, at(5))).expect("a status")
    }

    fn flat_entry(name: &str, config: &str, hashes: [&str; 3], said: [&str; 3]) -> Value {
        let [desired, good, applied] = hashes;
        json!({
            "namespace": "default",
            "name": name,
            "configReferences": [{
                "group": "example.com",
                "resource": "hubs",
                "name": config,
                "desiredConfigSpecHash": desired,
                "lastKnownGoodConfigSpecHash": good,
                "lastAppliedConfigSpecHash": applied,
            }],
            "conditions": [condition(said)],
        })
    }

    fn condition([status, reason, message]: [&str; 3]) -> Value {
        json!({
            "type": "Progressing",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": "1970-01-01T00:00:05Z",
            "observedGeneration": 2,
        })
    }

    #[test]
    fn the_lifecycle_of_a_placement_is_published_flat() {
        let (xxx, yyy) = (hub("hub-xxx", "x"), hub("hub-yyy", "y"));
        let (xxx, yyy) = (Some(&xxx), Some(&yyy));
        let waits = "True WaitingForCanary waitingForCanary... 25/100 of default/canary are done";
        let rows = [
            (
                [xxx, None, None],
                Progress::Installing,
                400,
                "hub-xxx",
                ["x", "", ""],
                "True Installing 400/400 installing...",
            ),
            (
                [xxx, xxx, xxx],
                Progress::Installed,
                400,
                "hub-xxx",
                ["x", "x", "x"],
                "False InstallSucceed 400/400 install completed with no errors.",
            ),
            (
                [yyy, xxx, xxx],
                Progress::Upgrading,
                100,
                "hub-yyy",
                ["y", "x", "x"],
                "True Upgrading 100/400 upgrading...",
            ),
            (
                [yyy, yyy, yyy],
                Progress::Upgraded,
                400,
                "hub-yyy",
                ["y", "y", "y"],
                "False UpgradeSucceed 400/400 upgrade completed with no errors.",
            ),
            ([yyy, xxx, xxx], Progress::WaitingForCanary, 0, "hub-yyy", ["y", "x", "x"], waits),
            (
                [yyy, yyy, xxx],
                Progress::Upgrading,
                200,
                "hub-yyy",
                ["y", "y", "x"],
                "True Upgrading 200/400 upgrading...",
            ),
            (
                [xxx, xxx, xxx],
                Progress::RollingBack,
                100,
                "hub-xxx",
                ["x", "x", "x"],
                "True Upgrading 100/400 upgrading...",
            ),
        ];
        let aws = placement("aws");
        for (sets, progress, given, name, hashes, said) in rows {
            let note = (progress == Progress::WaitingForCanary).then_some("25/100 of default/canary are done");
            let placements = [Example { sets, progress, given, note }.of(&aws, 400)];
            let said: Vec<_> = said.splitn(3, ' ').collect();
            let expected = flat_entry("aws", name, hashes, [said[0], said[1], said[2]]);
            assert_eq!(json(&overview(&placements))["installProgression"], json!([expected]));
        }
    }

    #[test]
    fn both_shapes_say_the_same_and_ocm_s_remembers_what_was_applied_before() {
        let (xxx, yyy) = (hub("hub-xxx", "x"), hub("hub-yyy", "y"));
        let (aws, canary) = (placement("aws"), placement("canary"));
        let of_aws = Example {
            sets: [Some(&yyy), Some(&yyy), Some(&xxx)],
            progress: Progress::Upgrading,
            given: 200,
            note: None,
        };
        let of_canary = Example {
            sets: [Some(&yyy), Some(&yyy), Some(&yyy)],
            progress: Progress::Upgraded,
            given: 100,
            note: None,
        };
        let placements = [of_aws.of(&aws, 400), of_canary.of(&canary, 100)];
        let status = json(&overview(&placements));
        let upgrading = ["True", "Upgrading", "200/400 upgrading..."];
        let upgraded = ["False", "UpgradeSucceed", "100/100 upgrade completed with no errors."];
        let flat = json!([
            flat_entry("aws", "hub-yyy", ["y", "y", "x"], upgrading),
            flat_entry("canary", "hub-yyy", ["y", "y", "y"], upgraded),
        ]);
        assert_eq!(status["installProgression"], flat);
        let state = |name: &str, hash: &str| json!({ "name": name, "specHash": hash });
        let ocm = |name: &str, applied: Value, said| {
            json!({
                "namespace": "default",
                "name": name,
                "configReferences": [{
                    "group": "example.com",
                    "resource": "hubs",
                    "desiredConfig": state("hub-yyy", "y"),
                    "lastKnownGoodConfig": state("hub-yyy", "y"),
                    "lastAppliedConfig": applied,
                }],
                "conditions": [condition(said)],
            })
        };
        let expected =
            json!([ocm("aws", state("hub-xxx", "x"), upgrading), ocm("canary", state("hub-yyy", "y"), upgraded)]);
        assert_eq!(status["installProgressions"], expected);
    }

    #[test]
    fn what_is_not_known_to_be_wanted_has_no_hash_and_what_ran_is_still_listed() {
        let xxx = hub("hub-xxx", "x");
        let aws = placement("aws");
        let example = Example {
            sets: [None, Some(&xxx), Some(&xxx)],
            progress: Progress::Upgraded,
            given: 400,
            note: Some("No."),
        };
        let placements = [example.of(&aws, 400)];
        let status = json(&overview(&placements));
        let said = ["False", "UpgradeSucceed", "400/400 upgrade completed with no errors. No."];
        assert_eq!(status["installProgression"], json!([flat_entry("aws", "hub-xxx", ["", "x", "x"], said)]));
        assert_eq!(status["installProgressions"][0]["configReferences"][0].get("desiredConfig"), None);
        let nothing = Example { sets: [None; 3], progress: Progress::Installing, given: 0, note: None };
        let placements = [nothing.of(&aws, 0)];
        assert_eq!(json(&overview(&placements))["installProgression"][0].get("configReferences"), None);
    }

    #[test]
    fn times_stay_with_their_placement() {
        let (xxx, aws, other) = (hub("hub-xxx", "x"), placement("aws"), placement("other"));
        let example =
            |given| Example { sets: [Some(&xxx), None, None], progress: Progress::Installing, given, note: None };
        let first = [example(1).of(&aws, 400)];
        let stored = progressions(&overview(&first), at(1));
        let then = [example(1).of(&other, 400), example(2).of(&aws, 400)];
        let status = progressions(&Overview { stored: Some(&stored), ..overview(&then) }, at(2));
        let since = |index: usize| status.install_progressions[index].conditions[0].last_transition_time.0;
        assert_eq!((since(0), since(1)), (at(2), at(1)));
        let again = progressions(&Overview { stored: Some(&status), ..overview(&then) }, at(3));
        assert_eq!(again, status);
    }

    #[test]
    fn all_of_the_add_on_is_summed_up() {
        let (xxx, aws) = (hub("hub-xxx", "x"), placement("aws"));
        let example = Example { sets: [Some(&xxx), None, None], progress: Progress::Upgrading, given: 100, note: None };
        let placements = [example.of(&aws, 400)];
        let defaults = [default("hubs", "hub-xxx", Some("x")), default("settings", "gone", Some(""))];
        let versions = [version("v1"), version("v2")];
        let full = Overview {
            defaults: &defaults,
            clusters: Clusters { total: 401, given: 101, available: 398, others: Some(Progress::Installed) },
            supported_versions: &versions,
            default_version: Some(&versions[1]),
            ..overview(&placements)
        };
        let status = json(&full);
        assert_eq!(status["summary"], json!({ "progress": "101/401 upgrading", "available": "398/401" }));
        assert_eq!(status["supportedVersions"], json!(["v1", "v2"]));
        assert_eq!(status["defaultVersion"], json!("v2"));
        let references = json!([
            { "group": "example.com", "resource": "hubs", "desiredConfig": { "name": "hub-xxx", "specHash": "x" } },
            { "group": "example.com", "resource": "settings", "desiredConfig": { "name": "gone", "specHash": "" } },
        ]);
        assert_eq!(status["defaultconfigReferences"], references);
        assert_eq!(status["defaultConfigReferences"], references);

        let ocm = json(&Overview { vocabulary: Vocabulary::Ocm, ..full });
        let fields: Vec<_> = ocm.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(fields, ["defaultconfigReferences", "installProgressions"]);
        let message = "selected clusters 400. configured addons 100/400 progressing..., 0 failed 0 timeout.";
        let said = condition(["True", "Progressing", message]);
        assert_eq!(ocm["installProgressions"][0]["conditions"], json!([said]));
    }

    #[test]
    fn the_hash_of_a_default_that_the_hub_can_not_tell_is_left_to_who_can() {
        let defaults = [default("settings", "unread", None)];
        let overview = Overview { defaults: &defaults, ..overview(&[]) };
        let hashes = |status: &ClusterManagementAddOnStatus| {
            [&status.default_config_references_v1alpha1, &status.default_config_references_v1beta1].map(|list| {
                list[0].desired_config.as_ref().map(|state| state.spec_hash.to_string()).unwrap_or_default()
            })
        };
        let mut status = progressions(&overview, at(1));
        assert_eq!(hashes(&status), ["", ""], "it is listed, so that it can be found out");
        for hash in ["h1", "h2"] {
            let state = status.default_config_references_v1beta1[0].desired_config.as_mut().expect("it is listed");
            state.spec_hash = hash.parse().expect("any text is a hash");
            let again = progressions(&Overview { stored: Some(&status), ..overview }, at(2));
            assert_eq!(again, status, "there is nothing to write");
            assert_eq!(hashes(&again), ["", hash]);
        }
    }

    #[test]
    fn an_add_on_without_clusters_has_no_summary() {
        assert_eq!(json(&overview(&[])), json!({}));
        let clusters = Clusters { total: 3, given: 3, available: 0, others: Some(Progress::Installed) };
        let status = json(&Overview { clusters, ..overview(&[]) });
        assert_eq!(status, json!({ "summary": { "progress": "3/3 installed", "available": "0/3" } }));
    }
}
