//! Rollouts by example: one for each rule, corner case and defect of others that has a name.

use std::collections::BTreeMap;

use drover_api::{drover::RolloutState, reference::ClusterName};
use drover_engine::{
    member::Failure,
    presence::Source,
    revision::Set,
    revision::markers::Verdict,
    rollout::{
        Course, Entry, Happening, Standing, Step,
        member::{Presence, scatter},
    },
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::rollout_world::{
    Cluster, Engine, World, Writes, fingerprint, goal, letter, listed, missing_config, nobody, own_extras, settings_of,
    unlisted,
};

type Fleet = World<'static>;

/// A strategy that moves so many at a time.
fn rolling(window: impl Into<Value>) -> Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxConcurrentlyUpdating": window.into() } })
}

/// A strategy that moves so many at a time, once a canary placement is well.
fn behind(canary: &str, window: impl Into<Value>) -> Value {
    let placement = json!({ "namespace": "default", "name": canary });
    let settings = json!({ "placement": placement, "maxConcurrentlyUpdating": window.into() });
    json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": settings })
}

/// Placements with their strategies, and no clusters yet.
fn fleet<'a>(placements: impl IntoIterator<Item = (&'a str, Value)>) -> Fleet {
    fleet_of(placements.into_iter().map(|(name, strategy)| listed(name, &strategy)))
}

/// A strategy with more settings.
fn with_limits(mut strategy: Value, limits: &Value) -> Value {
    let settings = if strategy["type"] == "RollingUpdate" { "rollingUpdate" } else { "rollingUpdateWithCanary" };
    for (name, value) in limits.as_object().into_iter().flatten() {
        strategy[settings][name] = value.clone();
    }
    strategy
}

/// One of OCM's own strategies.
fn of_ocm(type_: &str, settings: &str, limits: &Value) -> Value {
    json!({ "type": type_, settings: limits })
}

/// Clusters behind canaries, all of them on A.
fn behind_canaries() -> Fleet {
    fleet([("aws", behind("canary", 1)), ("canary", rolling("100%"))])
        .with(["canary"], ["k1", "k2"])
        .with(["aws"], ["a1", "a2", "a3"])
        .on('A')
}

fn fleet_of(entries: impl IntoIterator<Item = Entry>) -> Fleet {
    World::new(&Engine, entries.into_iter().collect())
}

impl Fleet {
    fn entry(&self, placement: &str) -> usize {
        let name = |entry: &Entry| match &entry.source {
            Source::Listed(placement) | Source::Canaries(placement) => placement.name.clone(),
            Source::Nobody => "nobody".to_owned(),
        };
        self.entries.iter().position(|entry| name(entry) == placement).expect("a placement of that name")
    }

    /// Clusters that some placements select, with the add-on on them.
    fn with<const N: usize, const M: usize>(mut self, placements: [&str; N], names: [&str; M]) -> Self {
        self.join(placements, names);
        self
    }

    fn join<const N: usize, const M: usize>(&mut self, placements: [&str; N], names: [&str; M]) {
        let matches: BTreeMap<_, _> = placements.into_iter().map(|placement| (self.entry(placement), 0)).collect();
        for name in names {
            self.change(name, |cluster, _| {
                cluster.matches = matches.clone();
                cluster.is_online = true;
                cluster.addon.get_or_insert_with(Presence::default);
                cluster.decide();
            });
        }
    }

    /// The same when all run a set.
    fn on(mut self, letter: char) -> Self {
        self.want(letter);
        self.settle().expect("it comes to rest");
        self
    }

    fn want(&mut self, letter: char) {
        for wish in &mut self.wishes {
            wish.configured = wish.configured.as_ref().map(|_| Ok(goal(letter)));
        }
    }

    /// What the hub gives now, and to whom.
    fn gives(&mut self) -> Vec<String> {
        let plan = self.plan();
        self.write(&plan, Writes::All);
        let mut gives: Vec<_> =
            plan.gives.iter().map(|give| format!("{}={}", give.cluster, letter(&give.set))).collect();
        gives.sort();
        gives
    }

    fn each<const N: usize>(&mut self, names: [&str; N], change: impl Fn(&mut Cluster, Timestamp)) {
        for name in names {
            self.change(name, &change);
        }
    }

    fn succeed<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, now| cluster.prove(Verdict::Proven, now));
    }

    fn report<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, now| cluster.prove(Verdict::Moving, now));
    }

    /// What they were given can not be applied.
    fn fail<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, now| cluster.prove(Verdict::Failing, now));
    }

    /// They report nothing current any more on what they were given.
    fn fall_silent<const N: usize>(&mut self, names: [&str; N]) {
        self.report(names);
    }

    /// They ran it, and are not well any more.
    fn sicken<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, now| cluster.prove(Verdict::Unhealthy, now));
    }

    /// They can not be reached any more, so that placements drop them.
    fn leave<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, _| cluster.is_online = false);
        self.each(names, |cluster, _| cluster.decide());
    }

    fn come_back<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, _| cluster.is_online = true);
        self.each(names, |cluster, _| cluster.decide());
    }

    fn skip<const N: usize>(&mut self, names: [&str; N]) {
        self.each(names, |cluster, _| cluster.steering.is_skipped = true);
    }

    fn pause(&mut self, placement: &str) {
        let entry = self.entry(placement);
        self.wishes[entry].pause = Some("somebody".to_owned());
    }

    fn resume(&mut self, placement: &str) {
        let entry = self.entry(placement);
        self.wishes[entry].pause = None;
    }

    fn want_at(&mut self, placement: &str, letter: char) {
        let entry = self.entry(placement);
        self.wishes[entry].configured = Some(Ok(goal(letter)));
    }

    /// A configuration is deleted.
    fn lose_config(&mut self) {
        for wish in &mut self.wishes {
            wish.configured = wish.configured.as_ref().map(|_| Err(missing_config()));
        }
    }

    fn pin(&mut self, placement: &str, letter: Option<char>) {
        let entry = self.entry(placement);
        self.wishes[entry].pin = letter.map(fingerprint);
    }

    fn overrides(&mut self, name: &str, overrides: drover_engine::revision::Overrides) {
        self.change(name, |cluster, now| {
            cluster.addon.as_mut().expect("an add-on").overrides = Some(overrides.into());
            cluster.prove(Verdict::Moving, now);
        });
    }

    /// Plans and writes, and lets all succeed, until nothing is given any more. Returns in which order they were given it.
    fn waves(&mut self) -> Vec<Vec<String>> {
        let mut waves = Vec::new();
        loop {
            let gives = self.gives();
            if gives.is_empty() {
                return waves;
            }
            for name in gives.iter().filter_map(|give| give.split('=').next()) {
                self.succeed([name]);
            }
            waves.push(gives);
        }
    }

    fn standing(&mut self, name: &str) -> Standing {
        self.plan();
        self.standing_of(&name.into()).expect("a cluster of that name")
    }

    fn state(&mut self, placement: &str) -> RolloutState {
        self.course(placement).progress.state.expect("a state")
    }

    fn course(&mut self, placement: &str) -> Course<Set> {
        let entry = self.entry(placement);
        self.plan().courses.swap_remove(entry)
    }

    fn hold(&mut self, placement: &str) -> String {
        self.course(placement).hold.map(|hold| hold.to_string()).unwrap_or_default()
    }

    /// What a cluster was given.
    fn given(&self, name: &str) -> Option<char> {
        let addon = self.clusters.get(&ClusterName::from(name))?.addon.as_ref()?;
        addon.given.as_ref().map(|given| letter(&given.set))
    }
}

/// Names in the order in which their turn comes.
fn scattered<const N: usize>(mut names: [&str; N]) -> [&str; N] {
    names.sort_by_key(|name| scatter(name));
    names
}

// ---- Proof and failure

#[test]
fn a_success_counts_only_for_the_set_that_it_proves() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let first = fleet.gives();
    assert_eq!(first.len(), 1);
    // What is known of it is still that it runs A.
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn a_soak_counts_from_proven() {
    let mut fleet =
        fleet([("p", with_limits(rolling(1), &json!({ "minSuccessTime": "60s" })))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    assert_eq!(fleet.gives(), [format!("{first}=B")]);
    fleet.pass(500);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(59);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.plan().wake, Some(fleet.now + SignedDuration::from_secs(1)));
    fleet.pass(1);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn what_can_not_be_applied_for_a_minute_has_failed() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, _] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.fail([first]);
    fleet.pass(59);
    assert!(matches!(fleet.standing(first), Standing::Moving { .. }));
    fleet.pass(1);
    assert_eq!(fleet.standing(first), Standing::Failed(Failure::NotApplied));
}

#[test]
fn who_takes_longer_than_the_deadline_has_failed() {
    let mut fleet =
        fleet([("p", with_limits(rolling(1), &json!({ "progressDeadline": "5m" })))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, _] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.report([first]);
    fleet.pass(299);
    assert_eq!(fleet.hold("p"), "");
    fleet.pass(1);
    assert_eq!(fleet.standing(first), Standing::Failed(Failure::TooLate));
    assert!(fleet.hold("p").starts_with("1 failed where 0 may"));
}

#[test]
fn who_was_too_late_stays_so_though_it_can_not_be_applied_either() {
    let mut fleet = fleet([("p", with_limits(rolling(1), &json!({ "progressDeadline": "100s" })))]).with(["p"], ["c"]);
    fleet.gives();
    fleet.pass(50);
    fleet.fail(["c"]);
    fleet.pass(50);
    assert_eq!(fleet.course("p").late, 1);
    // Nothing happens that anybody could be told of.
    fleet.pass(50);
    assert_eq!(fleet.course("p").late, 1);
    fleet.restart();
    assert_eq!(fleet.course("p").late, 1);
}

#[test]
fn who_turns_unhealthy_in_a_rollout_has_failed() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, _] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.succeed([first]);
    fleet.sicken([first]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.state("p"), RolloutState::Halted);
}

#[test]
fn who_turns_unhealthy_when_all_is_done_is_no_failure() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.sicken(["c1", "c2"]);
    assert_eq!(fleet.state("p"), RolloutState::Complete);
    fleet.join(["p"], ["c3"]);
    assert_eq!(fleet.gives(), ["c3=A"]);
}

#[test]
fn who_was_unhealthy_before_is_no_failure_of_the_way_back() {
    let mut fleet = fleet([("p", rolling(2))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.each(["c1"], |cluster, _| cluster.is_online = false);
    fleet.sicken(["c1"]);
    fleet.want('B');
    fleet.pass(100);
    assert_eq!(fleet.gives(), ["c2=B", "c3=B"]);
    fleet.report(["c2", "c3"]);
    fleet.pass(100);
    fleet.want('A');
    assert_eq!(fleet.waves(), [["c2=A", "c3=A"]]);
    assert_eq!(fleet.state("p"), RolloutState::Complete);
}

#[test]
fn a_late_success_repairs_a_failure() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.fail([first]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn failures_count_per_set() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.fail([first]);
    fleet.pass(60);
    assert_eq!(fleet.state("p"), RolloutState::Halted);
    fleet.want('C');
    assert_eq!(fleet.gives(), [format!("{first}=C")]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=C")]);
}

// ---- Who decides for a cluster

#[test]
fn the_last_placement_in_the_list_decides() {
    let mut fleet = fleet([("one", rolling(1)), ("two", rolling(1))]).with(["one", "two"], ["c"]);
    fleet.want_at("two", 'B');
    assert_eq!(fleet.gives(), ["c=B"]);
    assert_eq!(fleet.course("one").progress.clusters.map(|counts| counts.total), Some(0));
}

#[test]
fn a_canary_takes_its_set_from_the_canary_placement_in_any_order() {
    for order in [["aws", "canary"], ["canary", "aws"]] {
        let strategy = |name| if name == "aws" { behind("canary", 1) } else { rolling(1) };
        let mut fleet =
            fleet(order.map(|name| (name, strategy(name)))).with(["aws", "canary"], ["k"]).with(["aws"], ["a"]).on('A');
        fleet.want('B');
        assert_eq!(fleet.gives(), ["k=B"]);
        fleet.succeed(["k"]);
        assert_eq!(fleet.gives(), ["a=B"]);
        let counts = fleet.course("aws").progress.clusters.expect("counts");
        assert_eq!((counts.total, counts.proven), (2, 1));
    }
}

#[test]
fn a_canary_of_canaries_is_moved_by_the_placement_that_waits_for_nobody() {
    let placements = [("first", rolling(1)), ("second", behind("first", 1)), ("rest", behind("second", 1))];
    let mut fleet = fleet(placements).with(["first", "second", "rest"], ["c"]).with(["rest"], ["r"]);
    assert_eq!(fleet.gives(), ["c=A"]);
    fleet.succeed(["c"]);
    assert_eq!(fleet.gives(), ["r=A"]);
    assert_eq!(fleet.course("rest").progress.clusters.map(|counts| counts.total), Some(2));
}

#[test]
fn an_add_on_made_by_the_hub_stays_as_it_is_when_its_cluster_is_not_selected() {
    let mut fleet = fleet_of([listed("p", &rolling(1)), nobody()]).with(["p"], ["c"]).on('A');
    fleet.each(["c"], |cluster, _| cluster.selected.clear());
    fleet.want('B');
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn without_a_list_all_get_the_defaults_at_once() {
    let mut fleet = fleet_of([nobody()]).with([], ["c1", "c2", "c3"]);
    assert_eq!(fleet.gives(), ["c1=A", "c2=A", "c3=A"]);
}

// ---- The window

#[test]
fn a_quarter_is_moved_at_a_time_where_nobody_has_said() {
    let mut fleet =
        fleet([("p", json!({ "type": "RollingUpdate" }))]).with(["p"], ["c1", "c2", "c3", "c4", "c5"]).on('A');
    fleet.want('B');
    // Two of five: it is rounded up.
    assert_eq!(fleet.waves().iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
}

#[test]
fn the_window_slides() {
    let mut fleet = fleet([("p", rolling(2))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.want('B');
    let [first, _, third] = scattered(["c1", "c2", "c3"]);
    assert_eq!(fleet.gives().len(), 2);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{third}=B")]);
}

#[test]
fn groups_come_one_after_the_other_and_neighbours_are_not_hit_together() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    let [first, second, third] = scattered(["c1", "c2", "c3"]);
    let p = fleet.entry("p");
    fleet.each([first], |cluster, _| cluster.matches = [(p, 7)].into());
    fleet.each([first], |cluster, _| cluster.decide());
    fleet.want('B');
    assert_eq!(fleet.waves().concat(), [format!("{second}=B"), format!("{third}=B"), format!("{first}=B")]);
}

#[test]
fn a_change_of_target_does_not_double_the_disturbance() {
    let mut fleet = fleet([("p", rolling(2))]).with(["p"], ["c1", "c2", "c3", "c4"]).on('A');
    fleet.want('B');
    let [first, second, ..] = scattered(["c1", "c2", "c3", "c4"]);
    let begun = fleet.gives();
    fleet.report([first, second]);
    fleet.want('C');
    // They are turned around in place.
    let turned: Vec<_> = begun.iter().map(|give| give.replace('B', "C")).collect();
    assert_eq!(fleet.gives(), turned);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn who_has_just_been_given_something_is_on_the_way_whatever_it_had_proven_before() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1"]).on('A');
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c1=B"]);
    // Its works are not there yet, so that it is still known to run A.
    fleet.want('C');
    fleet.join(["p"], ["c2"]);
    assert_eq!(fleet.gives(), ["c1=C"]);
}

#[test]
fn who_is_unhealthy_comes_first_and_waits_for_a_slot_like_all_others() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    let [first, second, third] = scattered(["c1", "c2", "c3"]);
    fleet.sicken([second, third]);
    fleet.want('B');
    assert_eq!(fleet.waves(), [second, third, first].map(|name| [format!("{name}=B")]));
}

#[test]
fn clusters_that_turn_unhealthy_for_a_moment_are_not_all_moved_at_once() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.want('B');
    assert_eq!(fleet.gives().len(), 1);
    let [_, second, third] = scattered(["c1", "c2", "c3"]);
    fleet.sicken([second, third]);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn a_failure_that_is_allowed_holds_no_slot() {
    let mut fleet =
        fleet([("p", with_limits(rolling(1), &json!({ "maxFailures": 1 })))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.want('B');
    let [first, second, _] = scattered(["c1", "c2", "c3"]);
    fleet.gives();
    fleet.fail([first]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
    fleet.fail([second]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), [""; 0]);
    assert!(fleet.hold("p").starts_with("2 failed where 1 may"), "{}", fleet.hold("p"));
}

#[test]
fn what_is_in_flight_goes_on_in_a_halt() {
    let mut fleet = fleet([("p", rolling(2))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.want('B');
    let [first, second, third] = scattered(["c1", "c2", "c3"]);
    fleet.gives();
    fleet.fail([first]);
    fleet.pass(60);
    fleet.succeed([second]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!((fleet.given(second), fleet.given(third)), (Some('B'), Some('A')));
}

#[test]
fn a_retry_lifts_a_halt_once() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, _] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.fail([first]);
    fleet.pass(100);
    assert_eq!(fleet.state("p"), RolloutState::Halted);
    fleet.each([first], |cluster, now| cluster.steering.retried = Some(now));
    assert!(matches!(fleet.standing(first), Standing::Moving { .. }));
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(60);
    assert_eq!(fleet.state("p"), RolloutState::Halted);
}

#[test]
fn installs_come_before_upgrades() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [_, last] = scattered(["c1", "c2"]);
    fleet.each([last], |cluster, _| cluster.addon = Some(Presence::default()));
    assert_eq!(fleet.gives(), [format!("{last}=B")]);
}

#[test]
fn who_can_not_be_reached_holds_no_slot_and_catches_up() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.each([first], |cluster, _| cluster.is_online = false);
    fleet.want('B');
    assert_eq!(fleet.waves(), [[format!("{second}=B")]]);
    fleet.come_back([first]);
    assert_eq!(fleet.waves(), [[format!("{first}=B")]]);
}

#[test]
fn who_is_cut_off_by_what_it_was_given_fails_at_the_deadline() {
    let mut fleet =
        fleet([("p", with_limits(rolling(1), &json!({ "progressDeadline": "5m" })))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.each([first], |cluster, _| cluster.is_online = false);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(300);
    assert_eq!(fleet.gives(), [""; 0]);
    assert!(fleet.hold("p").starts_with("1 failed where 0 may"), "{}", fleet.hold("p"));
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn who_failed_and_can_not_be_reached_any_more_has_still_failed() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, _] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.fail([first]);
    fleet.pass(60);
    fleet.each([first], |cluster, _| cluster.is_online = false);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.state("p"), RolloutState::Halted);
}

#[test]
fn who_went_ahead_and_can_not_be_reached_holds_no_slot() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    let [first, second, _] = scattered(["a1", "a2", "a3"]);
    assert_eq!(fleet.gives(), [format!("{first}=B")]);
    fleet.want('C');
    fleet.gives();
    // A canary on its way to C comes over to the clusters behind the gate, which move to B, and is lost.
    fleet.join(["aws"], ["k2"]);
    fleet.each(["k2"], |cluster, _| cluster.is_online = false);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn what_nobody_runs_is_not_complete() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.each(["c1", "c2"], |cluster, _| cluster.is_online = false);
    fleet.want('B');
    fleet.gives();
    let progress = fleet.course("p").progress;
    assert_eq!((progress.last_applied, progress.finished), (Some(fingerprint('A')), None));
    assert_eq!(progress.state, Some(RolloutState::RollingOut));
}

#[test]
fn who_catches_up_is_held_to_the_same_as_the_others() {
    let mut fleet = fleet([("p", with_limits(rolling(1), &json!({ "minSuccessTime": "60s" })))])
        .with(["p"], ["c1", "c2", "c3"])
        .on('A');
    let [first, second, third] = scattered(["c1", "c2", "c3"]);
    fleet.each([second, third], |cluster, _| cluster.is_online = false);
    fleet.want('B');
    fleet.gives();
    fleet.succeed([first]);
    fleet.pass(60);
    fleet.gives();
    assert_eq!(fleet.state("p"), RolloutState::Complete);
    fleet.come_back([second, third]);
    fleet.pass(1);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
    fleet.succeed([second]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.sicken([second]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.state("p"), RolloutState::Halted);
    fleet.succeed([second]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), [format!("{third}=B")]);
    fleet.succeed([third]);
    fleet.pass(60);
    fleet.gives();
    // All are there now, and what happens later is not the rollout's.
    fleet.pass(1);
    fleet.sicken([second]);
    assert_eq!(fleet.state("p"), RolloutState::Complete);
}

// ---- The gate

#[test]
fn a_gate_opens_when_every_canary_has_proven_the_set() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    assert_eq!(fleet.gives(), ["k1=B", "k2=B"]);
    fleet.succeed(["k1"]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "1 of 2 canaries is not done: k2");
    assert_eq!(fleet.state("aws"), RolloutState::WaitingForCanary);
    fleet.succeed(["k2"]);
    let plan = fleet.plan();
    let aws = fleet.entry("aws");
    assert!(plan.happenings.contains(&(aws, Happening::GateOpened(fingerprint('B')))));
    assert_eq!(fleet.waves().concat().len(), 3);
    assert_eq!(fleet.state("aws"), RolloutState::Complete);
}

#[test]
fn canaries_soak_by_their_own_placement() {
    let soaking = with_limits(rolling("100%"), &json!({ "minSuccessTime": "10m" }));
    let mut fleet =
        fleet([("aws", behind("canary", 1)), ("canary", soaking)]).with(["canary"], ["k"]).with(["aws"], ["a"]).on('A');
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k"]);
    fleet.pass(599);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(1);
    assert_eq!(fleet.gives(), ["a=B"]);
}

#[test]
fn a_set_is_stored_as_good_before_anybody_behind_the_gate_gets_it() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    let plan = fleet.plan();
    let aws = fleet.entry("aws");
    assert_eq!(plan.courses[aws].progress.last_known_good, Some(fingerprint('B')));
    assert_eq!(plan.gives.len(), 1);
    // The hub dies between the two writes, and starts anew.
    fleet.write(&plan, Writes::Some(0));
    fleet.restart();
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn a_canary_that_was_cut_off_does_not_vanish_from_the_gate() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.report(["k1", "k2"]);
    fleet.succeed(["k1"]);
    fleet.leave(["k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.restart();
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "1 of 2 canaries is not done: k2");
    fleet.skip(["k2"]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn a_canary_that_was_cut_off_while_it_soaked_does_not_vanish_from_the_gate() {
    let soaking = with_limits(rolling("100%"), &json!({ "minSuccessTime": "10m" }));
    let mut fleet = fleet([("aws", behind("canary", 1)), ("canary", soaking)])
        .with(["canary"], ["k1", "k2"])
        .with(["aws"], ["a"])
        .on('A');
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.leave(["k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.sicken(["k2"]);
    fleet.pass(600);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "1 of 2 canaries is not done: k2");
}

#[test]
fn a_canary_that_is_cut_off_while_others_are_waited_for_does_not_vanish_from_the_gate() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1"]);
    fleet.gives();
    fleet.leave(["k1"]);
    fleet.gives();
    fleet.sicken(["k1"]);
    fleet.succeed(["k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "1 of 2 canaries is not done: k1");
}

#[test]
fn a_canary_that_was_cut_off_is_waited_for_when_it_is_heard_of_again() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1"]);
    fleet.leave(["k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    // It is back, and its placement has not decided on it yet.
    fleet.each(["k2"], |cluster, _| cluster.is_online = true);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.come_back(["k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed(["k2"]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn a_canary_that_leaves_while_it_can_be_reached_is_not_waited_for() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1"]);
    fleet.join(["aws"], ["k2"]);
    fleet.gives();
    assert_eq!(fleet.hold("aws"), "");
    // It is on its way in the other window now.
    fleet.succeed(["k2"]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn changes_among_canaries_do_not_close_an_open_gate() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    fleet.join(["canary"], ["k3"]);
    let [first, second, _] = scattered(["a1", "a2", "a3"]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=B"), "k3=B".to_owned()]);
}

#[test]
fn a_canary_that_turns_unhealthy_after_the_gate_opened_halts_new_starts() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, second, _] = scattered(["a1", "a2", "a3"]);
    fleet.succeed([first]);
    fleet.sicken(["k1"]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert!(fleet.hold("aws").starts_with("the canary k1 was well with this"), "{}", fleet.hold("aws"));
    fleet.succeed(["k1"]);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn a_canary_that_is_cut_off_after_the_gate_opened_halts_new_starts() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.leave(["k1"]);
    fleet.gives();
    fleet.restart();
    fleet.sicken(["k1"]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert!(fleet.hold("aws").starts_with("the canary k1 was well with this"), "{}", fleet.hold("aws"));
    fleet.skip(["k1"]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn a_canary_that_was_unhealthy_before_does_not_keep_anybody_from_going_back() {
    let mut fleet = behind_canaries();
    fleet.sicken(["k1"]);
    fleet.each(["k1"], |cluster, _| cluster.is_online = false);
    fleet.pass(100);
    fleet.want('B');
    fleet.skip(["k1"]);
    fleet.gives();
    fleet.succeed(["k2"]);
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    assert_eq!(fleet.gives(), [format!("{first}=B")]);
    fleet.pass(100);
    fleet.each(["k1"], |cluster, _| cluster.steering.is_skipped = false);
    fleet.want('A');
    assert_eq!(fleet.gives(), [format!("{first}=A"), "k2=A".to_owned()]);
}

#[test]
fn a_gate_says_why_it_stays_shut() {
    let hold = |change: fn(&mut Fleet)| {
        let mut fleet = behind_canaries();
        change(&mut fleet);
        fleet.want_at("aws", 'B');
        assert!(fleet.gives().iter().all(|give| !give.starts_with('a')));
        fleet.hold("aws")
    };
    assert_eq!(
        hold(|_| {}),
        "the clusters of the Placement default/canary are configured to something else: give both placements the same configs and version"
    );
    assert_eq!(hold(|fleet| fleet.join(["aws"], ["k1", "k2"])), "the Placement default/canary selects no cluster");
    assert_eq!(hold(|fleet| fleet.skip(["k1", "k2"])), "all clusters of the Placement default/canary are skipped");
    assert_eq!(
        hold(|fleet| fleet.wishes[1].is_there = false),
        "there is no Placement default/canary: create it, or name another canary placement"
    );
    assert_eq!(
        hold(|fleet| {
            fleet.want_at("canary", 'B');
            fleet.overrides("k2", own_extras());
        }),
        "the canary k2 has configs or a version of its own: remove them, or skip the cluster"
    );
}

#[test]
fn canaries_that_are_taken_back_do_not_vouch_for_what_they_ran() {
    let soaking = with_limits(rolling("100%"), &json!({ "minSuccessTime": "10m" }));
    let mut fleet =
        fleet([("aws", behind("canary", 1)), ("canary", soaking)]).with(["canary"], ["k"]).with(["aws"], ["a"]).on('A');
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k"]);
    fleet.pass(600);
    // Somebody has seen enough of B just before it has soaked.
    fleet.pin("canary", Some('A'));
    assert_eq!(fleet.gives(), ["k=A"]);
}

#[test]
fn a_gate_that_gets_other_canaries_forgets_the_former() {
    let placements = [("aws", behind("canary", 1)), ("canary", rolling("100%")), ("other", rolling("100%"))];
    let mut fleet = fleet(placements).with(["canary"], ["k"]).with(["other"], ["o"]).with(["aws"], ["a"]).on('A');
    fleet.want('B');
    fleet.gives();
    fleet.leave(["k"]);
    fleet.gives();
    fleet.entries[0] = listed("aws", &behind("other", 1));
    fleet.restart();
    assert_eq!(fleet.course("aws").progress.gates[0].canary.name, "other");
    fleet.succeed(["o"]);
    assert_eq!(fleet.gives(), ["a=B"]);
}

#[test]
fn placements_that_wait_for_each_other_are_named() {
    let mut fleet =
        fleet([("one", behind("two", 1)), ("two", behind("one", 1))]).with(["one"], ["c1"]).with(["two"], ["c2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert!(fleet.hold("one").starts_with("these placements wait for each other: default/one, default/two"));
}

#[test]
fn a_skipped_canary_counts_as_absent() {
    let mut fleet = behind_canaries();
    fleet.skip(["k2"]);
    fleet.want('B');
    assert_eq!(fleet.gives(), ["k1=B"]);
    fleet.succeed(["k1"]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn canaries_that_are_not_in_the_list_are_upgraded_by_hand() {
    let entries = [listed("aws", &behind("canary", 1)), unlisted("canary"), nobody()];
    let mut fleet = fleet_of(entries).with(["canary"], ["k"]).with(["aws"], ["a"]);
    fleet.each(["k"], |cluster, _| cluster.addon.as_mut().expect("an add-on").is_hand_made = true);
    fleet.want('B');
    fleet.want_at("nobody", 'A');
    assert_eq!(fleet.gives(), ["k=A"]);
    fleet.succeed(["k"]);
    assert_eq!(fleet.gives(), [""; 0]);
    // The same settings as B has, of a user's own making.
    fleet.overrides("k", settings_of('B'));
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed(["k"]);
    assert_eq!(fleet.gives(), ["a=B"]);
}

#[test]
fn a_canary_that_is_cut_off_by_what_a_user_gave_it_keeps_the_gate_shut() {
    let entries = [listed("aws", &behind("canary", 1)), unlisted("canary"), nobody()];
    let mut fleet = fleet_of(entries).with(["canary"], ["k1", "k2"]).with(["aws"], ["a"]);
    fleet.each(["k1", "k2"], |cluster, _| cluster.addon.as_mut().expect("an add-on").is_hand_made = true);
    fleet.want('B');
    fleet.want_at("nobody", 'A');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.overrides("k1", settings_of('B'));
    fleet.overrides("k2", settings_of('B'));
    fleet.gives();
    fleet.succeed(["k1"]);
    fleet.leave(["k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
}

// ---- One set after the other

#[test]
fn what_came_through_is_finished_before_the_next() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    fleet.want('C');
    // C is tried on the canaries, and B goes on behind them.
    assert_eq!(fleet.gives(), ["k1=C", "k2=C"]);
    fleet.succeed(["k1", "k2"]);
    let [first, second, third] = scattered(["a1", "a2", "a3"]);
    for [done, next] in [[first, second], [second, third]] {
        fleet.succeed([done]);
        assert_eq!(fleet.gives(), [format!("{next}=B")]);
    }
    fleet.succeed([third]);
    assert_eq!(fleet.waves().concat(), scattered(["a1", "a2", "a3"]).map(|name| format!("{name}=C")));
}

#[test]
fn a_halted_set_does_not_hold_up_its_cure() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.fail([first]);
    fleet.pass(60);
    fleet.want('C');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives(), [format!("{first}=C")]);
}

#[test]
fn a_set_that_canaries_were_unhealthy_with_is_not_taken_up_again_when_they_are_cured() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, second, third] = scattered(["a1", "a2", "a3"]);
    fleet.sicken(["k1"]);
    fleet.gives();
    fleet.want('C');
    assert_eq!(fleet.gives(), ["k1=C", "k2=C"]);
    fleet.report(["k1", "k2"]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.waves().concat(), [first, second, third].map(|name| format!("{name}=C")));
}

#[test]
fn what_was_halted_is_not_trusted_when_it_is_wanted_again() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.fail([first]);
    fleet.pass(60);
    assert_eq!(fleet.state("aws"), RolloutState::Halted);
    for other in ['A', 'C'] {
        fleet.want(other);
        fleet.gives();
        fleet.report(["k1", "k2"]);
        fleet.want('B');
        assert_eq!(fleet.gives(), ["k1=B", "k2=B"]);
        fleet.report(["k1", "k2"]);
    }
}

#[test]
fn a_set_that_is_stuck_does_not_hold_up_its_cure() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.report([first]);
    fleet.want('C');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(600);
    assert_eq!(fleet.gives(), [format!("{first}=C")]);
}

#[test]
fn going_back_to_a_trusted_set_needs_no_canary() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.report([first]);
    fleet.want('A');
    let back = fleet.gives();
    assert_eq!(back, [format!("{first}=A"), "k1=A".to_owned(), "k2=A".to_owned()]);
}

#[test]
fn a_record_counts_by_what_was_rolled_out_though_the_hub_has_just_started() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    fleet.waves();
    fleet.want('C');
    fleet.gives();
    fleet.want('D');
    fleet.restart();
    let ended = fleet.plan().ended;
    let counts = ended[0].clusters.clone().expect("counts");
    assert_eq!((ended[0].set.clone(), counts.given, counts.waiting), (fingerprint('C'), 1, 1));
}

// ---- Holds

#[test]
fn a_shut_gate_a_pause_and_a_halt_move_nobody() {
    let mut fleet = behind_canaries();
    fleet.pause("aws");
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "paused by somebody");
    fleet.resume("aws");
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn newcomers_get_the_last_known_good_behind_a_shut_gate() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.join(["aws"], ["a4"]);
    assert_eq!(fleet.gives(), ["a4=A"]);
    fleet.succeed(["a4"]);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn newcomers_never_get_what_was_halted() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    fleet.gives();
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.fail([first]);
    fleet.pass(60);
    fleet.join(["aws"], ["a4"]);
    assert_eq!(fleet.gives(), ["a4=A"]);
    fleet.succeed(["a4"]);
    fleet.want('C');
    fleet.join(["aws"], ["a5"]);
    assert_eq!(fleet.gives(), ["a5=A", "k1=C", "k2=C"]);
}

#[test]
fn without_a_last_known_good_newcomers_wait() {
    let mut fleet =
        fleet([("aws", behind("canary", 1)), ("canary", rolling(1))]).with(["canary"], ["k"]).with(["aws"], ["a"]);
    assert_eq!(fleet.gives(), ["k=A"]);
    assert_eq!(fleet.hold("aws"), "1 of 1 canaries is not done: k");
}

#[test]
fn a_set_with_a_missing_config_is_never_given() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.lose_config();
    fleet.join(["p"], ["c3"]);
    assert_eq!(fleet.gives(), ["c3=A"]);
    assert!(fleet.hold("p").starts_with("the config settings config does not exist"), "{}", fleet.hold("p"));
    assert_eq!(fleet.state("p"), RolloutState::Blocked);
}

#[test]
fn a_strategy_that_nobody_can_read_moves_nobody() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.entries = vec![listed("p", &with_limits(rolling(1), &json!({ "minSuccessTime": "soon" })))];
    fleet.restart();
    fleet.want('B');
    fleet.join(["p"], ["c3"]);
    assert_eq!(fleet.gives(), ["c3=A"]);
    assert!(fleet.hold("p").starts_with("rolloutStrategy: minSuccessTime: "), "{}", fleet.hold("p"));
}

#[test]
fn canaries_do_not_vouch_for_anything_while_nobody_can_tell_how_long_they_have_to() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.entries[1] = listed("canary", &with_limits(rolling(1), &json!({ "minSuccessTime": "soon" })));
    fleet.restart();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "the rolloutStrategy of the Placement default/canary can not be read: correct it");
}

#[test]
fn a_canary_that_was_cut_off_is_not_forgotten_while_nobody_can_read_the_strategy() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1"]);
    fleet.leave(["k2"]);
    fleet.gives();
    let unreadable = with_limits(behind("canary", 1), &json!({ "progressDeadline": "soon" }));
    for strategy in [unreadable, behind("canary", 1)] {
        fleet.entries[0] = listed("aws", &strategy);
        fleet.restart();
        assert_eq!(fleet.gives(), [""; 0]);
    }
}

#[test]
fn a_cluster_that_is_paused_or_skipped_is_left_alone() {
    let mut fleet = fleet([("p", rolling("100%"))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.each(["c1"], |cluster, _| cluster.steering.is_paused = true);
    fleet.skip(["c2"]);
    fleet.want('B');
    assert_eq!(fleet.waves(), [["c3=B"]]);
    assert_eq!(fleet.state("p"), RolloutState::RollingOut);
    fleet.each(["c1"], |cluster, _| cluster.steering.is_paused = false);
    assert_eq!(fleet.waves(), [["c1=B"]]);
    assert_eq!(fleet.state("p"), RolloutState::Complete);
}

#[test]
fn a_pin_holds_until_something_else_is_configured() {
    let mut fleet = fleet([("p", rolling("100%"))]).with(["p"], ["c"]).on('A').on('B');
    fleet.pin("p", Some('A'));
    assert_eq!(fleet.waves(), [["c=A"]]);
    fleet.restart();
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.want('C');
    assert_eq!(fleet.waves(), [["c=C"]]);
    fleet.want('B');
    assert_eq!(fleet.waves(), [["c=B"]]);
    fleet.pin("p", None);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn a_pin_holds_though_nobody_knew_what_was_configured_when_it_was_set() {
    let mut fleet = fleet([("p", rolling("100%"))]).with(["p"], ["c"]).on('A').on('B');
    fleet.lose_config();
    fleet.pin("p", Some('A'));
    assert_eq!(fleet.waves(), [["c=A"]]);
    fleet.want('B');
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.want('C');
    assert_eq!(fleet.waves(), [["c=C"]]);
}

#[test]
fn what_a_user_overrides_is_the_users() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.overrides(first, own_extras());
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.want('B');
    assert_eq!(fleet.waves().concat(), [format!("{first}=B"), format!("{second}=B")]);
    assert_eq!(fleet.standing(first), Standing::OwnWay);
}

// ---- Strategies of OCM, without their defects

#[test]
fn ocm_goes_by_name() {
    let progressive = of_ocm("Progressive", "progressive", &json!({ "maxConcurrency": 1 }));
    let mut fleet = fleet([("p", progressive)]).with(["p"], ["c3", "c1", "c2"]).on('A');
    fleet.want('B');
    assert_eq!(fleet.waves().concat(), ["c1=B", "c2=B", "c3=B"]);
}

fn grouped(strategy: Value, groups: &[(&str, u32)]) -> Fleet {
    let mut fleet = fleet([("p", strategy), ("later", rolling("100%"))]);
    for (name, group) in groups {
        fleet.join(["p"], [*name]);
        fleet.each([*name], |cluster, _| cluster.matches = [(0, *group)].into());
        fleet.each([*name], |cluster, _| cluster.decide());
    }
    fleet.on('A')
}

#[test]
fn a_group_that_belongs_to_another_placement_does_not_starve_the_next() {
    let per_group = of_ocm("ProgressivePerGroup", "progressivePerGroup", &json!({}));
    let mut fleet = grouped(per_group, &[("c1", 0), ("c2", 0), ("c3", 1), ("c4", 1)]);
    fleet.each(["c1", "c2"], |cluster, _| cluster.matches.extend([(1, 0)]));
    fleet.each(["c1", "c2"], |cluster, _| cluster.decide());
    fleet.want_at("p", 'B');
    assert_eq!(fleet.waves(), [["c3=B", "c4=B"]]);
}

#[test]
fn mandatory_groups_leave_the_failure_budget_of_others_alone() {
    let mandatory =
        json!({ "mandatoryDecisionGroups": [{ "groupIndex": 0 }], "maxFailures": "100%", "maxConcurrency": 1 });
    let mut fleet = grouped(of_ocm("Progressive", "progressive", &mandatory), &[("c1", 0), ("c2", 1), ("c3", 1)]);
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c1=B"]);
    fleet.succeed(["c1"]);
    assert_eq!(fleet.gives(), ["c2=B"]);
    fleet.fail(["c2"]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), ["c3=B"]);
}

#[test]
fn a_mandatory_group_may_not_fail_at_all() {
    let mandatory = json!({ "mandatoryDecisionGroups": [{ "groupName": "g0" }], "maxFailures": "100%" });
    let mut fleet = grouped(of_ocm("Progressive", "progressive", &mandatory), &[("c1", 0), ("c2", 1)]);
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c1=B"]);
    fleet.fail(["c1"]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), [""; 0]);
    assert!(fleet.hold("p").starts_with("1 failed where 0 may"));
}

#[test]
fn mandatory_groups_leave_the_window_sliding() {
    let mandatory = json!({ "mandatoryDecisionGroups": [{ "groupIndex": 0 }], "maxConcurrency": 2 });
    let mut fleet =
        grouped(of_ocm("Progressive", "progressive", &mandatory), &[("c1", 0), ("c2", 1), ("c3", 1), ("c4", 1)]);
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c1=B"]);
    fleet.succeed(["c1"]);
    assert_eq!(fleet.gives(), ["c2=B", "c3=B"]);
    fleet.succeed(["c3"]);
    assert_eq!(fleet.gives(), ["c4=B"]);
}

#[test]
fn the_window_counts_who_is_on_the_way_whatever_their_names() {
    let progressive = of_ocm("Progressive", "progressive", &json!({ "maxConcurrency": 2 }));
    let mut fleet = fleet([("p", progressive)]).with(["p"], ["c3", "c4"]).on('A');
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c3=B", "c4=B"]);
    fleet.join(["p"], ["c1", "c2"]);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn gaps_between_groups_lose_nobody() {
    for (type_, settings) in [("All", "all"), ("ProgressivePerGroup", "progressivePerGroup")] {
        let mut fleet = grouped(of_ocm(type_, settings, &json!({})), &[("c1", 0), ("c2", 2)]);
        fleet.want('B');
        assert_eq!(fleet.waves().concat(), ["c1=B", "c2=B"]);
    }
}

#[test]
fn groups_come_one_after_the_other_and_each_has_its_own_budget() {
    let per_group = of_ocm("ProgressivePerGroup", "progressivePerGroup", &json!({ "maxFailures": 1 }));
    let mut fleet = grouped(per_group, &[("c1", 0), ("c2", 0), ("c3", 1), ("c4", 1)]);
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c1=B", "c2=B"]);
    fleet.succeed(["c1"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.fail(["c2"]);
    fleet.pass(60);
    assert_eq!(fleet.gives(), ["c3=B", "c4=B"]);
}

// ---- What agents report moves no cluster out of turn

#[test]
fn cluster_that_fails_to_apply_its_old_revision_waits_for_a_slot() {
    let progressive = of_ocm("Progressive", "progressive", &json!({ "maxConcurrency": 1 }));
    for strategy in [rolling(1), progressive] {
        let mut fleet = fleet([("p", strategy.clone())]).with(["p"], ["a", "b", "c"]).on('A');
        fleet.want('B');
        let begun = fleet.gives();
        assert_eq!(begun.len(), 1, "{strategy}");
        let others = ["a", "b", "c"].into_iter().filter(|name| !begun[0].starts_with(name));
        for name in others {
            fleet.fail([name]);
            assert_eq!(fleet.standing(name), Standing::Waiting(Step::Cure), "{strategy}");
            assert_eq!(fleet.gives(), [""; 0], "{strategy}");
            fleet.fall_silent([name]);
            assert_eq!(fleet.gives(), [""; 0], "{strategy}");
        }
    }
}

#[test]
fn cluster_that_fails_to_apply_its_old_revision_waits_behind_an_open_gate() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    let begun = fleet.gives();
    assert_eq!(begun.len(), 1);
    fleet.fail(["a1", "a2", "a3"]);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn cluster_that_fails_to_apply_its_old_revision_stays_behind_a_closed_gate_and_a_pause() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    assert_eq!(fleet.gives(), ["k1=B", "k2=B"]);
    fleet.fail(["a1", "a2", "a3"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pause("aws");
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives(), [""; 0]);
}

#[test]
fn cluster_that_fails_to_apply_its_old_revision_waits_for_its_group_and_the_soak_before_it() {
    let per_group = of_ocm("ProgressivePerGroup", "progressivePerGroup", &json!({ "minSuccessTime": "60s" }));
    let mut fleet = grouped(per_group, &[("c1", 0), ("c2", 0), ("c3", 1), ("c4", 1)]);
    fleet.pass(60);
    fleet.settle();
    fleet.want('B');
    assert_eq!(fleet.gives(), ["c1=B", "c2=B"]);
    fleet.fail(["c3"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed(["c1", "c2"]);
    fleet.fail(["c4"]);
    assert_eq!(fleet.gives(), [""; 0], "the first group soaks");
    fleet.pass(59);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(1);
    assert_eq!(fleet.gives(), ["c3=B", "c4=B"]);
}

#[test]
fn flapping_report_restarts_a_soak_and_never_shortens_it() {
    let soaking = with_limits(rolling(1), &json!({ "minSuccessTime": "60s", "progressDeadline": "100s" }));
    let mut fleet = fleet([("p", soaking)]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.succeed([first]);
    for _ in 0..5 {
        fleet.pass(30);
        fleet.fail([first]);
        assert_eq!(fleet.gives(), [""; 0]);
        assert!(matches!(fleet.standing(first), Standing::Moving { until: Some(_) }), "it has met the deadline");
        fleet.succeed([first]);
        assert_eq!(fleet.gives(), [""; 0]);
    }
    fleet.pass(59);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.pass(1);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn updated_cluster_that_fails_to_apply_has_a_minute_and_then_halts_the_rollout() {
    let mut fleet = fleet([("p", rolling(2))]).with(["p"], ["c1", "c2", "c3", "c4"]).on('A');
    fleet.want('B');
    let [first, second, third, _] = scattered(["c1", "c2", "c3", "c4"]);
    fleet.gives();
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{third}=B")]);
    fleet.fail([first]);
    fleet.pass(59);
    assert_eq!(fleet.state("p"), RolloutState::RollingOut);
    fleet.pass(1);
    assert_eq!(fleet.standing(first), Standing::Failed(Failure::NotApplied));
    fleet.succeed([second, third]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.fall_silent([first]);
    assert_eq!(fleet.gives(), [""; 0], "a withdrawn report is no success");
    fleet.succeed([first]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn unhealthy_cluster_that_withdraws_its_report_keeps_the_rollout_halted() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    fleet.gives();
    fleet.succeed([first]);
    fleet.sicken([first]);
    for spoil in [Fleet::fall_silent, Fleet::fail] {
        spoil(&mut fleet, [first]);
        assert_eq!(fleet.standing(first), Standing::Failed(Failure::Unhealthy));
        assert_eq!(fleet.gives(), [""; 0]);
    }
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=B")]);
}

#[test]
fn canary_that_fails_to_apply_after_the_gate_opened_halts_new_starts_until_it_recovers() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    assert_eq!(fleet.gives(), [format!("{first}=B")]);
    fleet.fail(["k1"]);
    assert_eq!(fleet.hold("aws"), "", "for a minute");
    assert_eq!(fleet.plan().wake, Some(fleet.now + SignedDuration::from_secs(60)));
    fleet.pass(60);
    assert!(fleet.hold("aws").starts_with("the canary k1 was well"), "{}", fleet.hold("aws"));
    fleet.succeed([first]);
    fleet.fall_silent(["k1"]);
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed(["k1"]);
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn cluster_that_failed_to_apply_before_does_not_halt_the_way_back() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2", "c3"]).on('A');
    fleet.want('B');
    let [first, second, third] = scattered(["c1", "c2", "c3"]);
    fleet.gives();
    fleet.fail([second, third]);
    fleet.pass(600);
    fleet.want('A');
    assert_eq!(fleet.gives(), [format!("{first}=A")]);
}

#[test]
fn tolerated_failures_are_reassigned_within_the_window() {
    let mut fleet = fleet([("p", with_limits(rolling(1), &json!({ "maxFailures": "100%" })))])
        .with(["p"], ["c1", "c2", "c3", "c4"])
        .on('A');
    fleet.want('B');
    for _ in 0..3 {
        let begun = fleet.gives();
        let [name] = begun.as_slice() else { panic!("{begun:?} of a window of one") };
        let name = name.replace("=B", "");
        fleet.fail([name.as_str()]);
        fleet.pass(60);
    }
    fleet.want('C');
    let in_order = scattered(["c1", "c2", "c3", "c4"]).map(|name| [format!("{name}=C")]);
    assert_eq!(fleet.waves(), in_order, "clusters in flight come first, one at a time");
}

// ---- What is so now

#[test]
fn a_canary_whose_works_are_written_again_proves_nothing_until_it_has_reported() {
    let mut fleet = fleet([
        ("aws", behind("canary", 1)),
        ("canary", with_limits(rolling("100%"), &json!({ "minSuccessTime": "60s" }))),
    ])
    .with(["canary"], ["k"])
    .with(["aws"], ["a"])
    .on('A');
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k"]);
    fleet.gives();
    fleet.pass(50);
    fleet.each(["k"], |cluster, now| cluster.prove(Verdict::Unsettled, now));
    fleet.pass(50);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.hold("aws"), "1 of 1 canaries is not done: k");
    fleet.succeed(["k"]);
    fleet.pass(59);
    assert_eq!(fleet.gives(), [""; 0], "it has to stay well from when it has reported");
    fleet.pass(1);
    assert_eq!(fleet.gives(), ["a=B"]);
}

#[test]
fn who_was_there_and_is_unsettled_does_not_begin_anew() {
    let mut fleet =
        fleet([("p", with_limits(rolling(1), &json!({ "progressDeadline": "5m" })))]).with(["p"], ["c"]).on('A');
    fleet.pass(1000);
    fleet.each(["c"], |cluster, now| cluster.prove(Verdict::Unsettled, now));
    assert_eq!(fleet.standing("c"), Standing::Done);
    assert_eq!(fleet.state("p"), RolloutState::Complete);
}

#[test]
fn a_deadline_is_over_for_who_has_met_it() {
    let mut fleet =
        fleet([("p", with_limits(rolling(1), &json!({ "progressDeadline": "5m" })))]).with(["p"], ["c"]).on('A');
    fleet.pass(1000);
    fleet.fail(["c"]);
    assert!(matches!(fleet.standing("c"), Standing::Moving { .. }), "for a minute");
    fleet.pass(60);
    assert_eq!(fleet.standing("c"), Standing::Failed(Failure::NotApplied));
}

#[test]
fn who_is_paused_on_the_way_keeps_its_slot() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1", "c2"]).on('A');
    fleet.want('B');
    let [first, second] = scattered(["c1", "c2"]);
    assert_eq!(fleet.gives(), [format!("{first}=B")]);
    fleet.each([first], |cluster, _| cluster.steering.is_paused = true);
    fleet.want('C');
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [format!("{second}=C")]);
}

#[test]
fn who_has_a_say_of_their_own_waits_for_a_slot_like_anybody() {
    let names = ["c1", "c2", "c3", "c4"];
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], names).on('A');
    for name in names {
        fleet.overrides(name, settings_of('E'));
    }
    fleet.succeed(names);
    // The next set differs in nothing that they run: they are there as soon as they are given it.
    fleet.want('B');
    fleet.pass(1);
    assert_eq!(fleet.waves().concat().len(), 4);
    fleet.pass(1);
    fleet.want('C');
    assert_eq!(fleet.gives().len(), 1);
}

#[test]
fn mandatory_groups_are_waited_for_though_the_add_on_is_not_there_yet() {
    let settings = json!({ "mandatoryDecisionGroups": [{ "groupIndex": 1 }] });
    let mut fleet = fleet([("p", of_ocm("Progressive", "progressive", &settings))]).with(["p"], ["a1", "z1"]);
    let p = fleet.entry("p");
    fleet.each(["z1"], |cluster, _| {
        (cluster.addon, cluster.matches) = (None, [(p, 1)].into());
        cluster.decide();
    });
    assert_eq!(fleet.gives(), [""; 0]);
    fleet.each(["z1"], |cluster, _| cluster.addon = Some(Presence::default()));
    assert_eq!(fleet.gives(), ["z1=A"]);
    fleet.each(["z1"], |cluster, _| {
        cluster.addon = None;
        cluster.is_online = false;
    });
    assert_eq!(fleet.gives(), ["a1=A"], "who can not be reached holds up nobody");
}

#[test]
fn nothing_is_complete_where_nobody_has_anything() {
    let mut fleet = fleet([("p", rolling(1))]).with(["p"], ["c1"]);
    fleet.each(["c1"], |cluster, _| cluster.addon.as_mut().expect("an add-on").is_at_odds = true);
    assert_eq!(fleet.gives(), [""; 0]);
    assert_eq!(fleet.standing("c1"), Standing::AtOdds);
    assert_eq!(fleet.state("p"), RolloutState::RollingOut);
    assert_eq!(fleet.course("p").progress.last_applied, None);
}

#[test]
fn canaries_answer_for_an_open_gate_whatever_the_clock_says() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives().len(), 1);
    fleet.pass(-300);
    fleet.sicken(["k1"]);
    assert!(fleet.hold("aws").starts_with("the canary k1 was well with this"), "{}", fleet.hold("aws"));
}

#[test]
fn who_soaks_behind_a_gate_comes_to_its_end_before_the_next() {
    let strategy = with_limits(behind("canary", "100%"), &json!({ "minSuccessTime": "60s" }));
    let mut fleet =
        fleet([("aws", strategy), ("canary", rolling(1))]).with(["canary"], ["k"]).with(["aws"], ["a"]).on('A');
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k"]);
    fleet.gives();
    fleet.succeed(["a"]);
    fleet.want('C');
    fleet.gives();
    fleet.pass(60);
    fleet.gives();
    let progress = fleet.course("aws").progress;
    assert_eq!(progress.last_applied.as_ref().map(letter), Some('B'));
}

#[test]
fn a_set_whose_content_is_lost_is_given_to_nobody_and_holds_up_nothing_else() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    let begun = fleet.gives();
    assert_eq!(begun.len(), 1);
    fleet.want('C');
    fleet.lost.insert(fingerprint('B'));
    assert_eq!(fleet.gives(), ["k1=C", "k2=C"]);
    assert!(fleet.hold("aws").starts_with("the content of the config settings config"), "{}", fleet.hold("aws"));
    fleet.succeed(["k1", "k2"]);
    let [first, ..] = scattered(["a1", "a2", "a3"]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives().len(), 1);
    assert_eq!(fleet.course("aws").progress.last_known_good.as_ref().map(letter), Some('C'));
}

#[test]
fn what_another_drover_has_made_goes_no_further_and_what_this_one_makes_follows() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    fleet.succeed(["k1", "k2"]);
    assert_eq!(fleet.gives().len(), 1);
    // Another Drover comes, for which the same is C.
    fleet.want('C');
    fleet.outdated.extend(['A', 'B'].map(fingerprint));
    assert_eq!(fleet.gives(), ["k1=C", "k2=C"]);
    assert!(fleet.hold("aws").contains("was made by another Drover"), "{}", fleet.hold("aws"));
    let [first, second, _] = scattered(["a1", "a2", "a3"]);
    fleet.succeed([first]);
    assert_eq!(fleet.gives(), [""; 0], "nobody else is moved to B");
    fleet.join(["aws"], ["a9"]);
    assert_eq!(fleet.gives(), ["a9=B"], "who has nothing can not wait, and gets what is known to be good");
    fleet.succeed(["a9", "k1", "k2"]);
    assert_eq!(fleet.gives().len(), 1);
    let progress = fleet.course("aws").progress;
    assert_eq!(progress.last_known_good.as_ref().map(letter), Some('C'));
    assert_eq!(progress.halt, None, "nothing has failed");

    // Who goes back to what was made before gets what this one makes of it.
    let aws = fleet.entry("aws");
    fleet.wishes[aws].pin = Some(fingerprint('B'));
    fleet.succeed([first, second]);
    assert!(fleet.gives().iter().any(|give| give.ends_with("=B")));
}

#[test]
fn what_is_wanted_in_the_end_is_what_is_counted() {
    let mut fleet = behind_canaries();
    fleet.want('B');
    fleet.gives();
    let counts = fleet.course("aws").decided;
    assert_eq!((counts.total, counts.waiting, counts.given, counts.proven), (3, 3, 0, 0));
}
