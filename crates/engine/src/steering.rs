//! What people ask for by annotations, and what the hub has taken up of it.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    drover::{Acknowledged, AcknowledgedCluster},
    grammar::SetFingerprint,
    names::{PAUSE_ANNOTATION, PIN_ANNOTATION, RETRY_ANNOTATION, SKIP_ANNOTATION},
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use crate::presence::Source;

/// The annotations of an object.
type Annotations = BTreeMap<String, String>;

/// The name under which clusters are steered that no placement selects.
const NOBODY: &str = "defaults";

/// What people ask for on an add-on as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steering {
    pause: Pause,
    skip: BTreeSet<ClusterName>,
    pins: BTreeMap<Target, SetFingerprint>,
    /// What could not be understood, and what to write instead.
    pub complaints: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Pause {
    #[default]
    Nothing,
    Everything,
    Some(BTreeSet<Target>),
}

/// Which clusters of an add-on are meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Placement(PlacementRef),
    Nobody,
}

impl Target {
    fn of(source: &Source) -> Option<Self> {
        match source {
            Source::Listed(placement) => Some(Self::Placement(placement.clone())),
            Source::Nobody => Some(Self::Nobody),
            Source::Canaries(_) => None,
        }
    }

    /// The target of that name, if the add-on has it; otherwise what is wrong with the name.
    fn known(text: &str, known: &BTreeSet<Self>) -> Result<Self, String> {
        let target = Self::read(text).ok_or_else(|| format!("{text:?} is no placement"))?;
        if known.contains(&target) { Ok(target) } else { Err(format!("the add-on does not list {text}")) }
    }

    fn read(text: &str) -> Option<Self> {
        if text == NOBODY {
            return Some(Self::Nobody);
        }
        let (namespace, name) =
            text.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())?;
        Some(Self::Placement(PlacementRef { namespace: namespace.to_owned(), name: name.to_owned() }))
    }
}

/// What people have asked for on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSteering {
    /// Whether it is told to wait.
    pub is_paused: bool,
    /// Whether it is to be left out.
    pub is_skipped: bool,
    /// When it was last told to try again.
    pub retried: Option<Timestamp>,
}

impl Steering {
    /// What the annotations of an add-on ask for that reaches clusters in these ways.
    #[must_use]
    pub fn read<'a>(annotations: &Annotations, sources: impl Iterator<Item = &'a Source>) -> Self {
        let known: BTreeSet<_> = sources.filter_map(Target::of).collect();
        let mut steering = Self::default();
        if let Some(text) = annotations.get(PAUSE_ANNOTATION) {
            steering.pause = steering.read_pause(text, &known);
        }
        if let Some(text) = annotations.get(SKIP_ANNOTATION) {
            steering.skip = items(text).map(ClusterName::from).collect();
        }
        if let Some(text) = annotations.get(PIN_ANNOTATION) {
            steering.pins = steering.read_pins(text, &known);
        }
        steering
    }

    fn read_pause(&mut self, text: &str, known: &BTreeSet<Target>) -> Pause {
        if let Some(is_on) = switch(text) {
            return if is_on { Pause::Everything } else { Pause::Nothing };
        }
        let usage = "write true, or placements of the list such as default/canary";
        let read = |item| Target::known(item, known).map_err(|what| format!("{PAUSE_ANNOTATION}: {what}: {usage}"));
        let targets: Result<BTreeSet<_>, _> = items(text).map(read).collect();
        let nothing = || format!("{PAUSE_ANNOTATION}: {text:?} names nothing: {usage}");
        let targets = targets.and_then(|targets| if targets.is_empty() { Err(nothing()) } else { Ok(targets) });
        // Somebody wanted to stop something: as long as it is not clear what, everything stops.
        targets.map_or_else(
            |complaint| {
                self.complaints.push(complaint);
                Pause::Everything
            },
            Pause::Some,
        )
    }

    fn read_pins(&mut self, text: &str, known: &BTreeSet<Target>) -> BTreeMap<Target, SetFingerprint> {
        let mut pins = BTreeMap::new();
        for item in items(text) {
            match read_pin(item, known) {
                Ok((target, set)) => drop(pins.insert(target, set)),
                Err(complaint) => self.complaints.push(complaint),
            }
        }
        pins
    }

    /// Who has paused an entry.
    #[must_use]
    pub fn paused_by(&self, source: &Source) -> Option<String> {
        let is_paused = match &self.pause {
            Pause::Nothing => false,
            Pause::Everything => true,
            Pause::Some(targets) => Target::of(source).is_some_and(|target| targets.contains(&target)),
        };
        is_paused.then(|| format!("the annotation {PAUSE_ANNOTATION} of the ClusterManagementAddOn"))
    }

    /// The set that an entry is held at.
    #[must_use]
    pub fn pin(&self, source: &Source) -> Option<&SetFingerprint> {
        self.pins.get(&Target::of(source)?)
    }

    /// What is asked for on one cluster, by the add-on as a whole and by the add-on that is there.
    #[must_use]
    pub fn of_cluster(
        &self,
        cluster: &ClusterName,
        annotations: &Annotations,
        acknowledged: &[AcknowledgedCluster],
    ) -> MemberSteering {
        let is_on = |key| annotations.get(key).is_some_and(|text| switch(text) != Some(false));
        let of_cluster = entry_of(acknowledged, cluster);
        MemberSteering {
            is_paused: is_on(PAUSE_ANNOTATION),
            is_skipped: is_on(SKIP_ANNOTATION) || self.skip.contains(cluster),
            retried: of_cluster.and_then(|entry| entry.retried.as_ref()).map(|time| time.0),
        }
    }
}

fn read_pin(item: &str, known: &BTreeSet<Target>) -> Result<(Target, SetFingerprint), String> {
    let usage = "write pins such as default/canary=0123456789abcdef";
    let (target, set) =
        item.split_once('=').ok_or_else(|| format!("{PIN_ANNOTATION}: {item:?} names no set: {usage}"))?;
    let target = Target::known(target, known).map_err(|what| format!("{PIN_ANNOTATION}: {what}: {usage}"))?;
    let set = set.parse().map_err(|error| format!("{PIN_ANNOTATION}: {error}"))?;
    Ok((target, set))
}

/// Whether something is switched on or off, if the text says just that.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "" | "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn entry_of<'a>(acknowledged: &'a [AcknowledgedCluster], cluster: &ClusterName) -> Option<&'a AcknowledgedCluster> {
    acknowledged.iter().find(|entry| entry.cluster == *cluster)
}

/// What the hub has taken up when it acts on these annotations: of the add-on, and of those on single clusters that have any.
#[must_use]
pub fn acknowledge<'a>(
    annotations: &Annotations,
    clusters: impl Iterator<Item = (&'a ClusterName, &'a Annotations)>,
    former: Option<&Acknowledged>,
    now: Timestamp,
) -> Option<Acknowledged> {
    let text = |key: &str| annotations.get(key).cloned();
    let (known, when) = former.map_or((None, None), |former| (former.retry.as_ref(), former.retried.as_ref()));
    let (retry, retried) = retry(text(RETRY_ANNOTATION), known, when, now);
    let mut clusters: Vec<_> =
        clusters.filter_map(|(cluster, of)| acknowledge_cluster(cluster, of, former, now)).collect();
    clusters.sort_by(|one, other| one.cluster.cmp(&other.cluster));
    let acknowledged = Acknowledged {
        pause: text(PAUSE_ANNOTATION),
        skip: text(SKIP_ANNOTATION),
        retry,
        retried,
        pin: text(PIN_ANNOTATION),
        clusters,
    };
    (acknowledged != Acknowledged::default()).then_some(acknowledged)
}

fn acknowledge_cluster(
    cluster: &ClusterName,
    annotations: &Annotations,
    former: Option<&Acknowledged>,
    now: Timestamp,
) -> Option<AcknowledgedCluster> {
    let text = |key: &str| annotations.get(key).cloned();
    let former = former.and_then(|former| entry_of(&former.clusters, cluster));
    let (known, when) = former.map_or((None, None), |former| (former.retry.as_ref(), former.retried.as_ref()));
    let (retry, retried) = retry(text(RETRY_ANNOTATION), known, when, now);
    let entry = AcknowledgedCluster {
        cluster: cluster.clone(),
        pause: text(PAUSE_ANNOTATION),
        skip: text(SKIP_ANNOTATION),
        retry,
        retried,
    };
    let says_something =
        entry.pause.is_some() || entry.skip.is_some() || entry.retry.is_some() || entry.retried.is_some();
    says_something.then_some(entry)
}

/// A retry is done once for each token. That it was done stays, also when nobody asks any more: what failed before stays forgiven.
pub(crate) fn retry(
    asked: Option<String>,
    known: Option<&String>,
    when: Option<&Time>,
    now: Timestamp,
) -> (Option<String>, Option<Time>) {
    let is_new = asked.is_some() && asked.as_ref() != known;
    let retried = if is_new { Some(Time(now)) } else { when.cloned() };
    (asked, retried)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn listed(name: &str) -> Source {
        Source::Listed(PlacementRef { namespace: "default".to_owned(), name: name.to_owned() })
    }

    /// What is asked of an add-on with the placements a and b.
    fn read(key: &str, value: &str) -> Steering {
        let sources = [listed("a"), listed("b"), Source::Nobody];
        Steering::read(&annotations(&[(key, value)]), sources.iter())
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    #[test]
    fn a_pause_holds_for_everything_or_for_some_placements() {
        let paused = |value: &str| {
            let steering = read(PAUSE_ANNOTATION, value);
            let is_paused = |source: &Source| steering.paused_by(source).is_some();
            (is_paused(&listed("a")), is_paused(&listed("b")), is_paused(&Source::Nobody), steering.complaints.len())
        };
        assert_eq!(paused("true"), (true, true, true, 0));
        assert_eq!(paused(""), (true, true, true, 0));
        assert_eq!(paused("false"), (false, false, false, 0));
        assert_eq!(paused("default/a"), (true, false, false, 0));
        assert_eq!(paused("default/b, defaults"), (false, true, true, 0));
        for misspelt in ["a", "default/c", ",", "default/a,default/bb"] {
            assert_eq!(
                paused(misspelt),
                (true, true, true, 1),
                "{misspelt} can not be understood, and stops everything"
            );
        }
    }

    #[test]
    fn pins_name_a_placement_and_a_set() {
        let pins = "default/a=0123456789abcdef,b,c=0123456789abcdef,default/b=x,default/d=0123456789abcdef";
        let steering = read(PIN_ANNOTATION, pins);
        assert_eq!(steering.pin(&listed("a")).map(SetFingerprint::as_str), Some("0123456789abcdef"));
        assert_eq!(steering.pin(&listed("b")), None);
        assert_eq!(steering.complaints.len(), 4, "{:?}", steering.complaints);
    }

    #[test]
    fn a_cluster_is_steered_from_both_sides() {
        let steering = read(SKIP_ANNOTATION, "one, two");
        let of = |cluster: &str, own: &[(&str, &str)]| steering.of_cluster(&cluster.into(), &annotations(own), &[]);
        assert!(of("one", &[]).is_skipped && !of("three", &[]).is_skipped);
        assert!(of("three", &[(SKIP_ANNOTATION, "true")]).is_skipped);
        assert!(of("three", &[(PAUSE_ANNOTATION, "true")]).is_paused);
        assert!(!of("three", &[(PAUSE_ANNOTATION, "false")]).is_paused);
    }

    #[test]
    fn a_retry_is_done_once_for_each_token() {
        let none = || std::iter::empty();
        let first = acknowledge(&annotations(&[(RETRY_ANNOTATION, "a")]), none(), None, at(1)).expect("it is taken up");
        assert_eq!(first.retried, Some(Time(at(1))));
        let again =
            acknowledge(&annotations(&[(RETRY_ANNOTATION, "a")]), none(), Some(&first), at(2)).expect("it stays");
        assert_eq!(again, first);
        let next = acknowledge(&annotations(&[(RETRY_ANNOTATION, "b")]), none(), Some(&first), at(3)).expect("another");
        assert_eq!(next.retried, Some(Time(at(3))));
        let gone = acknowledge(&annotations(&[]), none(), Some(&next), at(4)).expect("that it was done stays");
        assert_eq!((gone.retry, gone.retried), (None, Some(Time(at(3)))));
    }

    #[test]
    fn nothing_asked_for_is_nothing_taken_up() {
        let cluster = ClusterName::from("one");
        let of_cluster = annotations(&[("other", "x")]);
        assert_eq!(acknowledge(&annotations(&[]), [(&cluster, &of_cluster)].into_iter(), None, at(1)), None);
    }
}
