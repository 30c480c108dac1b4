//! What follows from the spec of an upgrade alone. Actions can be large, so that this is worked out
//! when the spec changes, and not with each report of an agent.

use std::time::Duration;

use drover_api::{
    cluster::{ManagedClustersUpgrade, UpgradeStrategy},
    drover::UpgradeRef,
    grammar::Timeout,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    action::Action,
    member::Course,
    naming::{owner, part_name},
    operator_work::{self, Approver, wants_operators},
    plan::Strategy,
    platform::{Errand, Order},
    selection::ClusterSelector,
    target::Target,
};
use crate::workreport::template;

/// How long the upgrade of a platform may take by default.
const PLATFORM_LIMIT: Duration = Duration::from_hours(2);
/// How long that of operators may take by default.
const OPERATORS_LIMIT: Duration = Duration::from_mins(10);

/// What follows from the spec of an upgrade alone.
#[derive(Clone, Debug)]
pub struct UpgradeSettings {
    /// The name of the ClusterUpgrades, and part of the names of works.
    pub part_name: String,
    /// The value of the annotation on clusters that this upgrade owns.
    pub(super) owner: String,
    /// What clusters are observed by, but for what changes with time.
    pub(super) course: Course,
    pub(super) strategy: Strategy,
    pub(super) selector: Option<ClusterSelector>,
    pub(super) canaries: Option<ClusterSelector>,
    /// What is invalid, so that no cluster is begun.
    pub flaws: Vec<String>,
}

impl UpgradeSettings {
    /// The settings of an upgrade. Operators are upgraded with the approver, if this hub has one.
    #[must_use]
    pub fn of(upgrade: &ManagedClustersUpgrade, approver: Option<&Approver>) -> Self {
        let spec = &upgrade.spec;
        let nothing = UpgradeStrategy::default();
        let written = spec.upgrade_strategy.as_ref().unwrap_or(&nothing);
        let limit = |timeout: &Option<Timeout>, usual| timeout.as_ref().map_or(usual, Timeout::get);
        let platform_limit = limit(&written.cluster_upgrade_timeout, PLATFORM_LIMIT);
        let operators_limit = limit(&written.operators_upgrade_timeout, OPERATORS_LIMIT);
        let mut flaws = Vec::new();
        let mut read = |written, place| match ClusterSelector::of(written, place) {
            Ok(selector) => Some(selector),
            Err(problem) => {
                flaws.push(problem.to_string());
                None
            }
        };
        let selector = spec.cluster_selector.as_ref().and_then(|written| read(written, "spec.clusterSelector"));
        let place = "spec.upgradeStrategy.canaryClusters.clusterSelector";
        let canaries = written.canary_clusters.as_ref().and_then(|canary| read(&canary.cluster_selector, place));
        for (action, place) in
            [(&spec.pre_upgrade_action, "preUpgradeAction"), (&spec.post_upgrade_action, "postUpgradeAction")]
        {
            let flaw = action.as_ref().and_then(|action| template::flaw(&action.manifest_work));
            flaws.extend(
                flaw.map(|flaw| format!("nothing is begun, because spec.{place}.manifestWork can not be sent: {flaw}")),
            );
        }
        let asked = spec.ocp_operators.as_ref().filter(|operators| wants_operators(operators));
        let operator_order = match (asked, approver) {
            (Some(operators), Some(approver)) => {
                Some(Order::of(operator_work::work(operators, operators_limit, approver)))
            }
            (Some(_), None) => {
                flaws.push(NO_APPROVER.to_owned());
                None
            }
            (None, _) => None,
        };
        let (namespace, name) = (upgrade.namespace().unwrap_or_default(), upgrade.name_any());
        let action = |written: &Option<_>| written.as_ref().map(|written| Action::of(written, platform_limit));
        Self {
            part_name: part_name(&namespace, &name),
            owner: owner(&namespace, &name),
            strategy: Strategy {
                limit: usize::try_from(written.max_concurrency.unwrap_or(1)).unwrap_or(1).max(1),
                has_canaries: written.canary_clusters.is_some(),
                soak: limit(&written.canary_soak, Duration::ZERO),
                max_failures: written.max_failures.and_then(|failures| usize::try_from(failures).ok()),
            },
            course: Course {
                upgrade: UpgradeRef { namespace, name, uid: upgrade.metadata.uid.clone() },
                errand: Errand::of(Target::of(&spec.cluster_version)),
                operators: asked.cloned(),
                operator_order,
                pre_action: action(&spec.pre_upgrade_action),
                post_action: action(&spec.post_upgrade_action),
                platform_limit,
                operators_limit,
                may_upgrade_hub: false,
                retried: None,
                is_at_rest: false,
                attentive_since: Timestamp::UNIX_EPOCH,
            },
            selector,
            canaries,
            flaws,
        }
    }

    /// Whether it has selectors of its own, besides placements.
    #[must_use]
    pub fn has_selector(&self) -> bool {
        self.selector.is_some() || self.canaries.is_some()
    }
}

const NO_APPROVER: &str = "nothing is begun, because operators are to be upgraded and this hub does not know by what: start it with --operator-approver-image";
