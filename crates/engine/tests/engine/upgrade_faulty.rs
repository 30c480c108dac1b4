//! Deciders of upgrades that are wrong on purpose, each caught by the property that is there for it.

use drover_api::{
    cluster::{ManagedCluster, ManagedClustersUpgrade, ManagedClustersUpgradeStatus, UpgradeStrategy},
    drover::{ClusterUpgrade, ClusterUpgradePhase as Phase},
    grammar::SetFingerprint,
    names::{LOCAL_CLUSTER_LABEL, PAUSE_ANNOTATION, UPGRADE_PRIORITY_LABEL, UPGRADED_BY_ANNOTATION},
    reference::ClusterName,
};
use drover_engine::{
    plan::{NoAction, Plan, PlanPart, Subresource, Verb, Write, WriteResult},
    tracker::{Dirty, KeyState},
    upgrade::{UpgradeState, naming::Part, target::Target},
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::{
    counterexample::counterexample_of,
    sending::{patched, picky_servers},
    upgrade_history::{History, canary_histories, histories},
    upgrade_known::{CANARY_LABEL, Known, KnownSite, US, available},
    upgrade_properties::{self as properties, Property, every_cluster_has_its_turn},
    upgrade_world::{Decider, HubTime, has_slot, phase_of, plan},
};

/// How many histories a property may take to find out about a decider. Most need a few.
const CASES: u32 = 4096;

/// Whether a property finds out about a decider.
fn is_caught(decider: &dyn Decider, property: Property) -> bool {
    let in_some = |history: History| property(decider, &history);
    counterexample_of(&canary_histories(), CASES / 16, 0, in_some).is_some()
        || counterexample_of(&histories(), CASES, 0, in_some).is_some()
}

macro_rules! is_caught {
    ($($test:ident: $decider:ident by $property:ident;)*) => {$(
        #[test]
        fn $test() {
            assert!(is_caught(&$decider, properties::$property));
        }
    )*};
}

is_caught! {
    who_counts_no_place_after_the_platform_is_caught: CountsPlatformsOnly by never_more_than_the_limit;
    who_frees_places_before_that_is_stored_is_caught: FreesPlacesTooEarly by never_more_than_the_limit;
    who_believes_what_is_not_stored_is_caught: FreesPlacesTooEarly by the_counts_are_right;
    who_opens_the_gate_for_one_canary_is_caught: OpensForOneCanary by a_gate_opens_for_canaries_that_are_done;
    who_trusts_the_canaries_of_another_target_is_caught: TrustsAnyTarget by nothing_passes_a_shut_gate;
    who_does_not_wait_for_the_soak_is_caught: DoesNotSoak by nothing_passes_a_shut_gate;
    who_goes_on_past_a_failed_canary_is_caught: GoesOnWithCanaries by nobody_is_begun_once_a_canary_has_failed;
    who_lets_a_canary_widen_the_selection_is_caught: WidensTheSelection by only_who_is_selected_is_begun;
    who_begins_what_is_unsure_is_caught: TakesUnsureForSelected by only_who_is_selected_is_begun;
    who_begins_the_unreachable_is_caught: TakesAllForReachable by only_who_can_be_upgraded_is;
    who_takes_what_is_anothers_is_caught: TakesAllForItsOwn by only_who_can_be_upgraded_is;
    who_forgets_what_was_begun_is_caught: ForgetsWhenItRestarts by each_cluster_is_asked_once;
    who_interrupts_clusters_is_caught: RetargetsUnderWay by a_target_stays_while_a_cluster_is_under_way;
    who_overlooks_pauses_is_caught: OverlooksPauses by a_paused_upgrade_starts_nobody;
    who_overlooks_failures_is_caught: OverlooksFailures by nobody_is_begun_beyond_the_failure_budget;
    who_upgrades_the_hub_beside_others_is_caught: OverlooksTheHub by the_hub_is_upgraded_alone;
    who_skips_the_check_is_caught: SkipsTheCheck by nobody_is_complete_without_the_check;
    who_keeps_the_place_of_what_is_degraded_is_caught: KeepsThePlaceOfDegraded by a_quiet_fleet_comes_to_rest;
    who_keeps_what_is_done_is_caught: NeverLetsGo by a_quiet_fleet_comes_to_rest;
    who_never_wakes_is_caught: NeverWakes by a_quiet_fleet_comes_to_rest;
    who_prefers_whom_it_has_seen_is_caught: PrefersWhomItHasSeen by a_look_at_everybody_finds_nothing_new;
    who_never_forgives_is_caught: NeverForgives by late_success_repairs;
    who_tries_again_with_what_has_failed_is_caught: TriesAgainWithTheSame by a_retry_is_a_new_attempt;
    who_forgets_what_it_has_dropped_is_caught: ForgetsDroppedPlans by a_plan_that_is_dropped_is_made_again;
}

#[test]
fn cursor_that_stands_still_or_moves_with_a_dropped_plan_is_caught() {
    let faults: [&dyn Decider; 2] = [&RecordsNoResults, &RecordsDroppedPlans];
    for (number, fault) in faults.into_iter().enumerate() {
        let found = counterexample_of(&picky_servers(), CASES, 0, |server| every_cluster_has_its_turn(fault, &server));
        assert!(found.is_some(), "fault {number}");
    }
}

// ---- What is spoiled

/// Plans from something else than what is known.
fn plan_from(known: &Known, state: &mut UpgradeState, time: HubTime, spoil: impl FnOnce(&mut Known)) -> Plan {
    let mut spoiled = known.clone();
    spoil(&mut spoiled);
    // What is spoiled changes without an event.
    state.mark(Dirty::All);
    plan(&spoiled, state, time)
}

fn strategy_of(upgrade: &mut ManagedClustersUpgrade) -> &mut UpgradeStrategy {
    upgrade.spec.upgrade_strategy.get_or_insert_default()
}

/// Plans with clusters that are taken for other ones.
fn plan_with_sites(known: &Known, state: &mut UpgradeState, time: HubTime, spoil: impl FnMut(&mut KnownSite)) -> Plan {
    plan_from(known, state, time, |known| known.sites.values_mut().for_each(spoil))
}

/// A plan without some of its writes.
fn without(mut plan: Plan, is_lost: impl Fn(&Write) -> bool) -> Plan {
    plan.parallel.retain(|write| !is_lost(write));
    plan
}

/// The cluster whose record a write is about.
fn recorded(write: &Write) -> Option<ClusterName> {
    write.kind().is::<ClusterUpgrade>().then(|| ClusterName::from(&*write.key().namespace))
}

fn phase(site: &KnownSite) -> Phase {
    phase_of(site.record.as_ref().and_then(|record| record.status.as_ref()))
}

fn reason(site: &KnownSite) -> Option<&str> {
    site.record.as_ref()?.status.as_ref()?.reason.as_deref()
}

/// What a write tells of a cluster.
fn told(known: &Known, write: &Write) -> Option<(ClusterName, ClusterUpgrade)> {
    let name = recorded(write).filter(|_| write.subresource() == Some(Subresource::Status))?;
    let record = known.sites.get(&name)?.record.as_ref()?;
    Some((name, patched(record, &write.body()?)))
}

fn is_canary(site: &KnownSite) -> bool {
    site.cluster.as_ref().is_some_and(|cluster| cluster.labels().contains_key(CANARY_LABEL))
}

// ---- Who is wrong

/// Counts those whose platform is upgraded, and nobody whose operators are or who is checked.
struct CountsPlatformsOnly;

impl Decider for CountsPlatformsOnly {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let is_uncounted = |site: &&KnownSite| matches!(phase(site), Phase::Operators | Phase::PostAction);
        let more = i32::try_from(known.sites.values().filter(is_uncounted).count()).expect("a few");
        plan_from(known, state, time, |known| {
            known.ask(|upgrade| {
                let strategy = strategy_of(upgrade);
                strategy.max_concurrency = strategy.max_concurrency.map(|limit| limit + more);
            });
        })
    }
}

/// Gives a place to the next as soon as it sees that a cluster is done.
struct FreesPlacesTooEarly;

impl Decider for FreesPlacesTooEarly {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let mut first = plan(known, state, time);
        let is_over =
            |record: &ClusterUpgrade| matches!(phase_of(record.status.as_ref()), Phase::Complete | Phase::Failed);
        let over = first.parallel.iter().filter_map(|write| told(known, write));
        let over: Vec<_> = over.filter(|(_, record)| is_over(record)).collect();
        if over.is_empty() {
            return first;
        }
        let next = plan_from(known, state, time, |known| {
            for (name, record) in &over {
                known.sites.entry(name.clone()).and_modify(|site| site.record = Some(record.clone()));
            }
        });
        let is_free = |write: &Write| recorded(write).is_some_and(|name| over.iter().all(|(other, _)| *other != name));
        let more = next.parallel.into_iter().filter(|write| is_free(write) && !first.parallel.contains(write));
        let more: Vec<_> = more.collect();
        first.parallel.extend(more);
        first
    }
}

/// Takes one canary that is done for all of them.
struct OpensForOneCanary;

impl Decider for OpensForOneCanary {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let is_done = |site: &KnownSite| is_canary(site) && phase(site) == Phase::Complete;
        let is_one_done = known.sites.values().any(is_done);
        plan_with_sites(known, state, time, |site| {
            if is_one_done && !is_done(site) {
                site.change(|cluster| drop(cluster.labels_mut().remove(CANARY_LABEL)));
            }
        })
    }
}

/// Takes canaries that were upgraded to anything for canaries that were upgraded to this.
struct TrustsAnyTarget;

impl Decider for TrustsAnyTarget {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan_from(known, state, time, |known| {
            let target: SetFingerprint = Target::of(&known.upgrade.spec.cluster_version).name().clone();
            let passed = |status: &mut ManagedClustersUpgradeStatus| {
                status.canaries_passed.iter_mut().for_each(|passed| passed.target = target.clone());
            };
            known.upgrade.status.iter_mut().for_each(passed);
        })
    }
}

/// Has no time.
struct DoesNotSoak;

impl Decider for DoesNotSoak {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan_from(known, state, time, |known| known.ask(|upgrade| strategy_of(upgrade).canary_soak = None))
    }
}

/// Tries the other canaries when one has failed.
struct GoesOnWithCanaries;

impl Decider for GoesOnWithCanaries {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan_from(known, state, time, |known| {
            known.sites.retain(|_, site| !(is_canary(site) && phase(site) == Phase::Failed));
        })
    }
}

/// Upgrades canaries whether they are selected or not.
struct WidensTheSelection;

impl Decider for WidensTheSelection {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan_with_sites(known, state, time, |site| site.is_selected |= is_canary(site))
    }
}

/// Takes those for selected of whom that is not known.
struct TakesUnsureForSelected;

impl Decider for TakesUnsureForSelected {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let unsure = state.unsure.clone();
        plan_from(known, state, time, |known| {
            known.sites.iter_mut().for_each(|(name, site)| site.is_selected |= unsure.contains(name));
        })
    }
}

/// Takes everybody for reachable.
struct TakesAllForReachable;

impl Decider for TakesAllForReachable {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let reach = |cluster: &mut ManagedCluster| {
            cluster.status.iter_mut().for_each(|status| status.conditions = vec![available(true, None)]);
        };
        plan_with_sites(known, state, time, |site| site.change(reach))
    }
}

/// Takes every cluster for its own.
struct TakesAllForItsOwn;

impl Decider for TakesAllForItsOwn {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let own = |cluster: &mut ManagedCluster| {
            cluster.annotations_mut().insert(UPGRADED_BY_ANNOTATION.to_owned(), US.to_owned());
        };
        plan_with_sites(known, state, time, |site| site.change(own))
    }
}

/// Has to begin anew what it had begun when it was killed.
struct ForgetsWhenItRestarts;

impl Decider for ForgetsWhenItRestarts {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let has_just_begun = time.now.duration_since(time.started) < SignedDuration::from_secs(5);
        plan_with_sites(known, state, time, |site| {
            if has_just_begun && phase(site) == Phase::Upgrading {
                site.record.iter_mut().for_each(|record| record.status = None);
            }
        })
    }
}

/// Sends clusters elsewhere in the middle of their upgrade.
struct RetargetsUnderWay;

impl Decider for RetargetsUnderWay {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let mut plan = plan(known, state, time);
        let target = &known.upgrade.spec.cluster_version;
        let under_way = known.sites.values().filter(|site| has_slot(phase(site)));
        for record in under_way.filter_map(|site| site.record.as_ref()) {
            let mut wanted = record.clone();
            wanted.spec.target = target.clone();
            plan.parallel.extend(Write::update(record, &wanted));
        }
        plan
    }
}

/// Pauses for nobody.
struct OverlooksPauses;

impl Decider for OverlooksPauses {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan_from(known, state, time, |known| {
            known.upgrade.annotations_mut().remove(PAUSE_ANNOTATION);
        })
    }
}

/// Goes on whatever comes of it.
struct OverlooksFailures;

impl Decider for OverlooksFailures {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan_from(known, state, time, |known| known.ask(|upgrade| strategy_of(upgrade).max_failures = None))
    }
}

/// Upgrades the cluster on which it runs like any other.
struct OverlooksTheHub;

impl Decider for OverlooksTheHub {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let overlook = |cluster: &mut ManagedCluster| drop(cluster.labels_mut().remove(LOCAL_CLUSTER_LABEL));
        plan_with_sites(known, state, time, |site| site.change(overlook))
    }
}

/// Is content with what it was upgraded to.
struct SkipsTheCheck;

impl Decider for SkipsTheCheck {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let has_operators = known.sites.values().any(|site| phase(site) == Phase::Operators);
        plan_from(known, state, time, |known| {
            if has_operators {
                known.ask(|upgrade| upgrade.spec.post_upgrade_action = None);
            }
        })
    }
}

/// Has those whose action before the upgrade has failed keep their place.
struct KeepsThePlaceOfDegraded;

impl Decider for KeepsThePlaceOfDegraded {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let is_degraded = |site: &&KnownSite| reason(site) == Some("PreActionDegraded");
        let places = known.sites.values().filter(is_degraded).count();
        let limit = known.upgrade.spec.upgrade_strategy.as_ref().and_then(|strategy| strategy.max_concurrency);
        let is_full = i32::try_from(places).ok() >= limit;
        let begins = |(_, record): (ClusterName, ClusterUpgrade)| phase_of(record.status.as_ref()) == Phase::PreAction;
        without(plan(known, state, time), |write| is_full && told(known, write).is_some_and(begins))
    }
}

/// Never lets a cluster go.
struct NeverLetsGo;

impl Decider for NeverLetsGo {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let releases = |write: &Write| {
            let owner = write.body().map(|body| body["metadata"]["annotations"][UPGRADED_BY_ANNOTATION].clone());
            write.kind().is::<ManagedCluster>() && owner.is_some_and(|owner| owner.is_null())
        };
        without(plan(known, state, time), releases)
    }
}

/// Waits for others to wake it.
struct NeverWakes;

impl Decider for NeverWakes {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        Plan { wake: None, ..plan(known, state, time) }
    }
}

/// Has those go first whom it has looked at before.
struct PrefersWhomItHasSeen;

impl Decider for PrefersWhomItHasSeen {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let mut preferred = known.clone();
        for (name, site) in &mut preferred.sites {
            if state.tracker.index.member(name).is_some() {
                let prefer = |cluster: &mut ManagedCluster| drop(cluster.labels_mut().remove(UPGRADE_PRIORITY_LABEL));
                site.change(prefer);
            }
        }
        plan(&preferred, state, time)
    }
}

/// Takes who has failed for failed.
struct NeverForgives;

impl Decider for NeverForgives {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let has_failed = |name: &ClusterName| known.sites.get(name).is_some_and(|site| phase(site) == Phase::Failed);
        without(plan(known, state, time), |write| told(known, write).is_some_and(|(name, _)| has_failed(&name)))
    }
}

/// Goes on after a retry with the works that are there.
struct TriesAgainWithTheSame;

impl Decider for TriesAgainWithTheSame {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let mut plan = plan(known, state, time);
        for (name, site) in &known.sites {
            let Some(record) = site.record.as_ref().filter(|_| reason(site) == Some("Retried")) else { continue };
            let check = Part::PostAction.work_name(name.as_str(), &record.name_any());
            let withdraws = |write: &Write| write.verb() == Verb::Delete && *write.key().name == check;
            let is_about = |write: &Write| *write.key().namespace == *name.as_str();
            if !plan.parallel.iter().any(|write| is_about(write) && withdraws(write)) {
                continue;
            }
            plan.parallel.retain(|write| !is_about(write));
            let mut checked = record.clone();
            checked.status.iter_mut().for_each(|status| status.phase = Some(Phase::PostAction));
            plan.parallel.extend(Write::status(record, &checked));
        }
        plan
    }
}

/// Takes the clusters of a plan for written that was dropped.
struct ForgetsDroppedPlans;

impl Decider for ForgetsDroppedPlans {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let plan = plan(known, state, time);
        let names: Vec<_> = plan.parallel.iter().filter_map(recorded).collect();
        for name in &names {
            state.tracker.pending.remove(name);
        }
        plan
    }
}

/// Never takes note of what writes came to.
struct RecordsNoResults;

impl Decider for RecordsNoResults {
    fn sent(&self, _: &mut UpgradeState, _: &Write, _: &WriteResult, _: Timestamp) {}
}

/// Takes all writes for sent that it plans.
struct RecordsDroppedPlans;

impl Decider for RecordsDroppedPlans {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        let plan = plan(known, state, time);
        for write in &plan.parallel {
            state.sent::<NoAction>(PlanPart::Write(write), &WriteResult::Done, time.now);
        }
        plan
    }
}
