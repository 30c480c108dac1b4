//! The sets that an add-on remembers: all that somebody still goes by, and the last few besides.

use std::{collections::BTreeSet, sync::Arc};

use drover_api::{
    drover::{AddOnRolloutStatus, ConfigSet, RolloutProgress},
    grammar::SetFingerprint,
};
use k8s_openapi::jiff::Timestamp;

use crate::{revision::Set, rollout::Sets};

/// How many sets are remembered although nobody goes by them: they can be returned to.
const REMEMBERED: usize = 10;

/// The sets that are stored.
#[must_use]
pub fn stored(status: Option<&AddOnRolloutStatus>) -> Sets<Set> {
    let sets = status.into_iter().flat_map(|status| &status.sets);
    sets.map(|set| (set.fingerprint.clone(), Arc::new(Set::read(set)))).collect()
}

/// The sets that are to be stored: those that somebody goes by, and the last ones that were wanted.
#[must_use]
pub fn keep(
    former: &[ConfigSet],
    known: &Sets<Set>,
    needed: &BTreeSet<SetFingerprint>,
    now: Timestamp,
) -> Vec<ConfigSet> {
    let is_new = |set: &&SetFingerprint| !former.iter().any(|former| former.fingerprint == **set);
    let new = needed.iter().filter(is_new).filter_map(|set| known.get(set)).map(|set| set.stored(now));
    let mut sets: Vec<_> = former.iter().cloned().chain(new).collect();
    sets.sort_by(|one, other| {
        let latest_first = other.first_wanted.0.cmp(&one.first_wanted.0);
        latest_first.then_with(|| one.fingerprint.cmp(&other.fingerprint))
    });
    let mut spare = 0;
    sets.retain(|set| {
        spare += usize::from(!needed.contains(&set.fingerprint));
        needed.contains(&set.fingerprint) || spare <= REMEMBERED
    });
    sets
}

/// The sets that a placement goes by.
pub fn needed(progress: &RolloutProgress) -> impl Iterator<Item = SetFingerprint> {
    let own = [&progress.wanted, &progress.last_known_good, &progress.last_applied].into_iter().flatten();
    let gates = progress.gates.iter().map(|gate| &gate.set);
    let pin = progress.pin.iter().map(|pin| &pin.set);
    own.chain(&progress.trusted).chain(gates).chain(pin).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    fn set(number: usize) -> Set {
        Set::new([], Some(format!("v{number}").parse().expect("a version")))
    }

    fn kept(former: &[ConfigSet], needed: &[usize]) -> Vec<usize> {
        let all: Vec<_> = (0..30).map(set).collect();
        let known: Sets<Set> = all.iter().map(|set| (set.fingerprint(), Arc::new(set.clone()))).collect();
        let needed = needed.iter().map(|number| all[*number].fingerprint()).collect();
        let sets = keep(former, &known, &needed, at(100));
        sets.iter().filter_map(|set| all.iter().position(|known| known.fingerprint() == set.fingerprint)).collect()
    }

    #[test]
    fn what_is_needed_stays_however_old_it_is_and_of_the_rest_the_last_ten() {
        let former: Vec<_> =
            (0..20).map(|number| set(number).stored(at(i64::try_from(number).expect("small")))).collect();
        assert_eq!(kept(&former, &[0, 25]), [25, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 0]);
    }

    #[test]
    fn a_set_keeps_the_time_when_it_was_first_wanted() {
        let former = [set(1).stored(at(5))];
        let known = [(set(1).fingerprint(), Arc::new(set(1)))].into_iter().collect();
        let kept = keep(&former, &known, &[set(1).fingerprint()].into(), at(9));
        assert_eq!(kept, former);
    }
}
