//! Which taints of a cluster a placement puts up with, and for how long.
//!
//! Each taint is tolerated until the last of the tolerations that match it runs out, which for most is never. What a taint
//! that is not tolerated does depends on its effect: NoSelect leaves the cluster out; NoSelectIfNew does so unless the
//! cluster was selected already; PreferNoSelect lets it in, behind every cluster that has no such taint.

use drover_api::cluster::{Taint, TaintEffect, Toleration};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Problem;

/// The tolerations of a placement.
#[derive(Debug, Default)]
pub(super) struct Tolerations(Vec<Tolerated>);

#[derive(Debug)]
struct Tolerated {
    key: Option<String>,
    /// Any value where there is none.
    value: Option<String>,
    effect: Option<TaintEffect>,
    seconds: Option<i64>,
}

/// Until when something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    Time(Timestamp),
    Forever,
}

/// What a cluster's taints come to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tainted<'a> {
    /// The first taint that leaves the cluster out.
    pub(super) out: Option<&'a Taint>,
    /// The cluster is selected only behind others.
    pub(super) avoided: bool,
    /// It would be different if the cluster were selected already, or were not.
    pub(super) hinges_on_selection: bool,
    /// When it may be different because a toleration runs out.
    pub(super) may_change: Option<Timestamp>,
}

impl Tolerations {
    pub(super) fn compile(tolerations: &[Toleration]) -> Result<Self, Problem> {
        let compiled = tolerations.iter().enumerate().map(|(index, toleration)| Tolerated::compile(toleration, index));
        compiled.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn judge<'a>(&self, taints: &'a [Taint], already_selected: bool, now: Timestamp) -> Tainted<'a> {
        let mut tainted = Tainted::default();
        let mut expiries = Vec::new();
        for taint in taints {
            match self.until(taint) {
                // The first taint that is not tolerated gives the verdict its reason, so one that stands before it matters.
                Some(Until::Time(time)) if now < time => expiries.push((time, taint.effect, tainted.out.is_none())),
                Some(Until::Forever) => {}
                _ => tainted.strike(taint, already_selected),
            }
        }
        for (time, effect, first) in expiries {
            tainted.hinges_on_selection |= effect == TaintEffect::NoSelectIfNew;
            if first && tainted.would_change(effect, already_selected) {
                tainted.may_change = Some(tainted.may_change.map_or(time, |other| other.min(time)));
            }
        }
        tainted
    }

    /// Until when a taint is tolerated, if it ever was.
    fn until(&self, taint: &Taint) -> Option<Until> {
        self.0.iter().filter(|toleration| toleration.matches(taint)).map(|toleration| toleration.until(taint)).max()
    }
}

impl Tolerated {
    fn compile(toleration: &Toleration, index: usize) -> Result<Self, Problem> {
        let key = toleration.key.clone().filter(|key| !key.is_empty());
        let value = toleration.value.clone().filter(|value| !value.is_empty());
        let value = match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" if key.is_none() => return Err(Problem::TolerationKey { index }),
            // Equal without a value is equal to none.
            "" | "Equal" => Some(value.unwrap_or_default()),
            "Exists" => match value {
                Some(value) => return Err(Problem::TolerationValue { index, value }),
                None => None,
            },
            operator => return Err(Problem::TolerationOperator { index, operator: operator.to_owned() }),
        };
        Ok(Self { key, value, effect: toleration.effect, seconds: toleration.toleration_seconds })
    }

    fn matches(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| value == taint.value.as_deref().unwrap_or_default())
    }

    /// Seconds count from when the taint was added. One that does not say so was added just now: the hub is about to
    /// stamp it, and then it is judged again.
    fn until(&self, taint: &Taint) -> Until {
        match (self.seconds, &taint.time_added) {
            (Some(seconds), Some(added)) => {
                added.0.checked_add(SignedDuration::from_secs(seconds)).map_or(Until::Forever, Until::Time)
            }
            (Some(seconds), None) if seconds <= 0 => Until::Time(Timestamp::MIN),
            _ => Until::Forever,
        }
    }
}

impl<'a> Tainted<'a> {
    /// Whether one more taint with this effect, in front of all others, would make a difference.
    fn would_change(&self, effect: TaintEffect, already_selected: bool) -> bool {
        match effect {
            TaintEffect::NoSelect => true,
            TaintEffect::PreferNoSelect => self.out.is_none() && !self.avoided,
            TaintEffect::NoSelectIfNew => !already_selected,
        }
    }

    /// Lets a taint that is not tolerated have its effect.
    fn strike(&mut self, taint: &'a Taint, already_selected: bool) {
        match taint.effect {
            TaintEffect::NoSelect => self.out = self.out.or(Some(taint)),
            TaintEffect::PreferNoSelect => self.avoided = true,
            TaintEffect::NoSelectIfNew => {
                self.hinges_on_selection = true;
                if !already_selected {
                    self.out = self.out.or(Some(taint));
                }
            }
        }
    }
}
