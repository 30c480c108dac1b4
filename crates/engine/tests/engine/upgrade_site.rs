//! A cluster that is upgraded: what it is, what the hub has stored for it, and its agent, which does as its script says.

use std::collections::BTreeMap;

use drover_api::{
    drover::ClusterUpgrade,
    work::{
        FeedbackValue, FieldValue, FieldValueType, ManifestResourceMeta, ManifestResourceStatus, ManifestStatus,
        ManifestWork, ManifestWorkStatus, StatusFeedback,
    },
};
use drover_engine::upgrade::{member::Owner, naming::Part, operator_work};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use crate::upgrade_world::later;

/// How something ends on a cluster, and after how many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Well(i64),
    Badly(i64),
    Never,
}

impl Ending {
    fn time(self, since: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Well(after) | Self::Badly(after) => Some(later(since, after)),
            Self::Never => None,
        }
    }
}

/// What a cluster does with what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// Whether it says that it can be upgraded.
    pub(crate) is_upgradeable: bool,
    pub(crate) pre_action: Ending,
    /// After how many seconds it runs what it was asked for, if it ever does.
    pub(crate) platform: Option<i64>,
    pub(crate) operators: Ending,
    pub(crate) post_action: Ending,
}

impl Script {
    pub(crate) const fn well() -> Self {
        let soon = Ending::Well(40);
        Self { is_upgradeable: true, pre_action: soon, platform: Some(900), operators: soon, post_action: soon }
    }
}

/// A work.
#[derive(Clone, Debug)]
pub(crate) struct SiteWork {
    pub(crate) work: ManifestWork,
    /// By which it is told from another of its part.
    pub(crate) number: u32,
    /// When the agent took it up.
    taken_up: Option<Timestamp>,
}

/// A cluster as it is, and what is stored for it.
#[expect(clippy::struct_excessive_bools, reason = "each of them changes by itself")]
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// How often it, its record or its works have changed: the resource version of all of them.
    pub(crate) version: u64,
    pub(crate) is_selected: bool,
    /// Whether it is selected as a canary, whether it is upgraded or not.
    pub(crate) is_canary: bool,
    pub(crate) is_there: bool,
    pub(crate) incarnation: u32,
    pub(crate) is_accepted: bool,
    pub(crate) is_online: bool,
    pub(crate) offline_since: Option<Timestamp>,
    pub(crate) owner: Owner,
    pub(crate) is_hub: bool,
    pub(crate) priority: i64,
    pub(crate) record: Option<ClusterUpgrade>,
    /// How many records and works it has had.
    pub(crate) made: u32,
    pub(crate) works: BTreeMap<Part, SiteWork>,
    /// Whether it says by a claim what it runs, and what it has said last.
    pub(crate) claims: bool,
    pub(crate) claim: Option<String>,
    /// What it runs.
    pub(crate) runs: String,
    /// What it is on its way to, and when it gets there.
    pub(crate) moving: Option<(String, Option<Timestamp>)>,
    pub(crate) script: Script,
}

impl Site {
    pub(crate) fn new(runs: &str, script: Script) -> Self {
        Self {
            version: 1,
            is_selected: true,
            is_canary: false,
            is_there: true,
            incarnation: 1,
            is_accepted: true,
            is_online: true,
            offline_since: None,
            owner: Owner::Nobody,
            is_hub: false,
            priority: 0,
            record: None,
            made: 0,
            works: BTreeMap::new(),
            claims: true,
            claim: None,
            runs: runs.to_owned(),
            moving: None,
            script,
        }
    }

    pub(crate) fn uid(&self) -> String {
        format!("uid-{}", self.incarnation)
    }

    /// What is stored of this cluster, and not of a former one of its name.
    pub(crate) fn own_record(&self) -> Option<&ClusterUpgrade> {
        self.record.as_ref().filter(|record| record.spec.cluster_uid == Some(self.uid()) && self.is_there)
    }

    /// What the agent has said last of the ClusterVersion, in whichever work: the version, and whether the cluster has got there.
    pub(crate) fn reported(&self) -> Option<(String, bool)> {
        let work = [Part::Platform, Part::Preflight].into_iter().find_map(|part| self.works.get(&part))?;
        let manifests = &work.work.status.as_ref()?.resource_status.as_ref()?.manifests;
        let values = &manifests.first()?.status_feedback.as_ref()?.values;
        let text = |name: &str| values.iter().find(|value| value.name == name)?.field_value.string.clone();
        Some((text("version")?, text("state")? == "Completed"))
    }

    // ---- What the hub does

    /// Stores a work as the hub has written it.
    pub(crate) fn store(&mut self, part: Part, mut written: ManifestWork) {
        written.metadata.resource_version = Some(self.version.to_string());
        if let Some(site) = self.works.get_mut(&part) {
            let is_other = site.work.spec != written.spec;
            written.metadata.generation =
                site.work.metadata.generation.map(|generation| generation + i64::from(is_other));
            written.status = site.work.status.take();
            site.work = written;
            return;
        }
        self.made += 1;
        (written.metadata.generation, written.metadata.uid) = (Some(1), Some(format!("work-{}", self.made)));
        self.works.insert(part, SiteWork { work: written, number: self.made, taken_up: None });
    }

    // ---- What the agent does

    /// Takes up works, lets go of those that are withdrawn, and reports. Tells whether anything has changed.
    pub(crate) fn serve(&mut self, now: Timestamp) -> bool {
        if !self.is_online || !self.is_there {
            return false;
        }
        let before = (self.works.len(), self.claim.clone(), self.runs.clone(), self.moving.clone());
        self.works.retain(|_, site| site.work.metadata.deletion_timestamp.is_none());
        self.take_up_target(now);
        if let Some((to, Some(done))) = &self.moving
            && *done <= now
        {
            (self.runs, self.moving) = (to.clone(), None);
        }
        self.claim = self.claims.then(|| self.runs.clone());
        let mut has_changed = before != (self.works.len(), self.claim.clone(), self.runs.clone(), self.moving.clone());
        let reports: Vec<_> = self.works.iter().map(|(part, site)| (*part, self.report(*part, site, now))).collect();
        for (part, report) in reports {
            let Some(site) = self.works.get_mut(&part) else { continue };
            site.taken_up.get_or_insert(now);
            if site.work.status.as_ref() != Some(&report) {
                site.work.status = Some(report);
                site.work.metadata.resource_version = Some((self.version + 1).to_string());
                has_changed = true;
            }
        }
        self.version += u64::from(has_changed);
        has_changed
    }

    /// Asks the cluster for what the work says, unless it was asked for that before.
    fn take_up_target(&mut self, now: Timestamp) {
        let Some(work) = self.works.get(&Part::Platform) else { return };
        let manifests = work.work.spec.manifests();
        let asked = manifests.iter().find_map(|manifest| manifest.pointer("/spec/desiredUpdate/version")?.as_str());
        let Some(asked) = asked.map(str::to_owned) else { return };
        let is_known = self.moving.as_ref().is_some_and(|(to, _)| *to == asked) || self.runs == asked;
        if !is_known {
            self.moving = Some((asked, self.script.platform.map(|after| later(now, after))));
        }
    }

    /// When something happens to it by itself.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.is_online || !self.is_there {
            return None;
        }
        let ends = self.works.iter().filter_map(|(part, site)| self.ending(*part)?.time(site.taken_up?));
        let moves = self.moving.as_ref().and_then(|(_, done)| *done);
        ends.chain(moves).filter(|time| *time > now).min()
    }

    fn ending(&self, part: Part) -> Option<Ending> {
        match part {
            Part::PreAction => Some(self.script.pre_action),
            Part::Operators => Some(self.script.operators),
            Part::PostAction => Some(self.script.post_action),
            Part::Preflight | Part::Platform => None,
        }
    }

    fn report(&self, part: Part, site: &SiteWork, now: Timestamp) -> ManifestWorkStatus {
        let since = site.taken_up.unwrap_or(now);
        let ending = self.ending(part).filter(|ending| ending.time(since).is_some_and(|time| time <= now));
        let (is_well, is_bad) = (matches!(ending, Some(Ending::Well(_))), matches!(ending, Some(Ending::Badly(_))));
        let generation = site.work.metadata.generation;
        let mut conditions = vec![condition("Applied", true, generation), condition("Available", true, generation)];
        let manifest = match part {
            Part::Preflight | Part::Platform => Some(self.cluster_version()),
            Part::Operators => Some(approver(is_well, is_bad)),
            Part::PreAction | Part::PostAction => {
                conditions.push(condition("Complete", is_well, generation));
                conditions.push(condition("Degraded", is_bad, generation));
                None
            }
        };
        let resource_status = Some(ManifestResourceStatus { manifests: manifest.into_iter().collect() });
        ManifestWorkStatus { conditions, resource_status }
    }

    fn cluster_version(&self) -> ManifestStatus {
        let (version, state) = match &self.moving {
            Some((to, _)) => (to.as_str(), "Partial"),
            None => (self.runs.as_str(), "Completed"),
        };
        let upgradeable = if self.script.is_upgradeable { "True" } else { "False" };
        let values = [("version", version), ("state", state), ("upgradeable", upgradeable), ("desired", version)];
        let values = values.map(|(name, value)| text(name, value)).into();
        manifest([Some("config.openshift.io"), Some("clusterversions"), None, Some("version")], values)
    }
}

fn approver(is_well: bool, is_bad: bool) -> ManifestStatus {
    let values = match (is_well, is_bad) {
        (true, _) => vec![count("succeeded")],
        (_, true) => vec![count("failed"), text("givenUp", "True")],
        _ => vec![count("active")],
    };
    let name = operator_work::NAME;
    manifest([Some("batch"), Some("jobs"), Some(name), Some(name)], values)
}

fn manifest(names: [Option<&str>; 4], values: Vec<FeedbackValue>) -> ManifestStatus {
    let [group, resource, namespace, name] = names.map(|name| name.map(str::to_owned));
    let resource_meta = ManifestResourceMeta { group, resource, namespace, name, ..ManifestResourceMeta::default() };
    ManifestStatus { resource_meta, status_feedback: Some(StatusFeedback { values }), conditions: Vec::new() }
}

fn text(name: &str, value: &str) -> FeedbackValue {
    let value = Some(value.to_owned());
    let field_value =
        FieldValue { kind: FieldValueType::String, string: value, integer: None, boolean: None, json_raw: None };
    FeedbackValue { name: name.to_owned(), field_value }
}

fn count(name: &str) -> FeedbackValue {
    let field_value =
        FieldValue { kind: FieldValueType::Integer, integer: Some(1), string: None, boolean: None, json_raw: None };
    FeedbackValue { name: name.to_owned(), field_value }
}

fn condition(type_: &str, holds: bool, generation: Option<i64>) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: "Said".to_owned(),
        message: String::new(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: generation,
    }
}
