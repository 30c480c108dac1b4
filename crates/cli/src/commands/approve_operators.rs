//! `drover approve-operators`: has operators of one cluster upgraded, by approving the install plans that wait for it.
//!
//! What to do is decided by [`drover_engine::upgrade::approval`]; here is who watches the cluster, approves and tells. It may be killed at any
//! moment: whoever starts it again finds the versions that were wanted in the record, and everything else on the cluster.

mod cluster;
mod record;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use drover_api::{
    cluster::OperatorRef,
    grammar::Timeout,
    olm::{InstallPlan, Subscription},
};
use drover_engine::upgrade::approval::{Approval, Decision, Scope, Standing, Targets, Wish};
use drover_runtime::clock::Clock;
use kube::{
    Api, Client, CustomResourceExt as _,
    api::{Patch, PatchParams},
};
use parking_lot::Mutex;
use serde_json::json;

use self::{
    cluster::{Cluster, Refused},
    record::{Record, RecordName},
};
use super::{announce, connect, log};

/// As whom install plans are approved.
const MANAGER: &str = "drover-approve-operators";
/// After how long everything is listed anew. Changes are seen at once; this is for one that nobody told.
const SECOND_LOOK: Duration = Duration::from_mins(1);
/// After how long is tried again what the server did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// How often it is tried to say where the operators are in the end.
const REPORTS: usize = 3;

/// Approve the install plans that the upgrades of operators wait for, and wait until the operators are upgraded.
///
/// An operator is named by the namespace and the name of its Subscription. Only operators whose Subscription says `installPlanApproval: Manual` are touched. They are upgraded to the
/// versions that are offered when this begins, and no further. An install plan that would upgrade somebody who was not asked for is never approved.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("operators").required(true).args(["all", "include"])))]
pub(crate) struct ApproveOperators {
    /// The kubeconfig of the cluster; that of the pod, or the usual one, where it is not set.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Upgrade every operator.
    #[arg(long)]
    all: bool,
    /// Upgrade this operator; can be given several times.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    include: Vec<OperatorRef>,
    /// Never upgrade this operator, whatever else is said; can be given several times.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    exclude: Vec<OperatorRef>,
    /// How long it may take until all are upgraded, such as 90s or 1h30m.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    timeout: Timeout,
    /// A ConfigMap in which the versions are kept that were offered at the beginning, so that whoever goes on after a restart goes for the same, and where each operator
    /// is. It is made if it is not there, and belongs to one upgrade: delete it before the next.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    record: Option<RecordName>,
}

impl ApproveOperators {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        log();
        // It waits nearly all the time.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve(Clock::system()))
    }

    fn wish(&self) -> Wish {
        let scope = if self.all { Scope::All } else { Scope::Only(self.include.iter().cloned().collect()) };
        Wish { scope, exclude: self.exclude.iter().cloned().collect() }
    }

    async fn serve(self, clock: Clock) -> anyhow::Result<()> {
        let end = clock.tick().after(self.timeout.get());
        let client = connect(self.kubeconfig.as_deref()).await?;
        let approver = Approver {
            wish: self.wish(),
            record: self.record.as_ref().map(|name| Record::new(&client, name, clock.clone())),
            cluster: Cluster::new(clock.clone()),
            client,
            clock: clock.clone(),
            last: Mutex::default(),
        };
        tokio::select! {
            outcome = approver.run() => outcome,
            () = clock.wait_for(end) => bail!("gave up after {}: {}", self.timeout, approver.what_is_left()),
        }
    }
}

/// Who approves.
struct Approver {
    wish: Wish,
    record: Option<Record>,
    cluster: Cluster,
    client: Client,
    clock: Clock,
    /// What was decided last.
    last: Mutex<Option<Decision>>,
}

/// Whether something has to be tried again soon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Through,
    Again,
}

impl Approver {
    async fn run(&self) -> anyhow::Result<()> {
        let recorded = match &self.record {
            Some(record) => record.read().await?,
            None => None,
        };
        tokio::select! {
            outcome = self.approve(recorded.clone()) => outcome,
            refused = self.cluster.watch(&self.client) => self.give_up(&refused, recorded.as_ref()),
        }
    }

    /// Ends where the cluster does not show its operators. One that has no kind for them has none that wait.
    fn give_up(&self, refused: &Refused, recorded: Option<&Targets>) -> anyhow::Result<()> {
        match refused {
            Refused::NotServed(_) if recorded.is_none_or(BTreeMap::is_empty) && self.decided().is_none() => {
                announce(format_args!(
                    "the cluster has no {}, so there is no Operator Lifecycle Manager: nothing to approve",
                    Subscription::crd_name()
                ));
                Ok(())
            }
            Refused::NotServed(kind) => {
                bail!("the cluster does not serve {kind} any more: {}", self.what_is_left())
            }
            Refused::Forbidden(kind) => {
                bail!("{kind} can not be read: allow whoever runs this to get, list and watch them in all namespaces")
            }
        }
    }

    /// Goes on until there is nothing left to approve or to wait for.
    async fn approve(&self, recorded: Option<Targets>) -> anyhow::Result<()> {
        self.cluster.is_listed().await;
        let was_begun = recorded.is_some();
        let targets = match recorded {
            Some(targets) => targets,
            None => self.begin().await?,
        };
        let mut told = BTreeMap::new();
        let mut reported = String::new();
        let mut is_first = true;
        loop {
            let decision = self.cluster.decide(&self.wish, &targets);
            tell(&mut told, &decision);
            self.note(&decision);
            self.report(&mut reported, &decision).await;
            if decision.is_over() {
                return self.conclude(&decision, is_first && !was_begun);
            }
            is_first = false;
            let pause = match self.carry_out(&decision).await? {
                Attempt::Through => SECOND_LOOK,
                Attempt::Again => PAUSE,
            };
            tokio::select! {
                () = self.cluster.changes() => {}
                () = self.clock.sleep(pause) => self.cluster.look_again().await,
            }
        }
    }

    /// Finds out what operators are upgraded to, and keeps that before anything is approved.
    async fn begin(&self) -> anyhow::Result<Targets> {
        let targets = self.cluster.pin(&self.wish);
        match &self.record {
            Some(record) => record.make(targets).await,
            None => Ok(targets),
        }
    }

    async fn carry_out(&self, decision: &Decision) -> anyhow::Result<Attempt> {
        let mut attempt = Attempt::Through;
        for approval in &decision.approve {
            if self.approve_plan(approval).await? == Attempt::Again {
                attempt = Attempt::Again;
            }
        }
        Ok(attempt)
    }

    /// Approves a plan, if it is still the one that was judged.
    async fn approve_plan(&self, approval: &Approval) -> anyhow::Result<Attempt> {
        let Approval { namespace, name, resource_version, versions } = approval;
        let patch = json!({ "metadata": { "resourceVersion": resource_version }, "spec": { "approved": true } });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let plans = Api::<InstallPlan>::namespaced(self.client.clone(), namespace);
        match plans.patch(name, &params, &Patch::Merge(patch)).await {
            Ok(plan) => {
                announce(format_args!("approved the install plan {namespace}/{name}: {}", versions.join(", ")));
                self.cluster.has_become(plan);
                Ok(Attempt::Through)
            }
            // Somebody else was faster; what has become of it is on its way to us.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(Attempt::Through),
            Err(error) if is_forbidden(&error) => Err(error).with_context(|| {
                format!("the install plan {namespace}/{name} may not be approved: allow whoever runs this to patch installplans")
            }),
            Err(error) => {
                announce(format_args!("could not approve the install plan {namespace}/{name}, and will try again: {error}"));
                Ok(Attempt::Again)
            }
        }
    }

    /// Has the record say where operators are, if it says something else. Only the last of it is worth another attempt.
    async fn report(&self, reported: &mut String, decision: &Decision) {
        let (Some(record), summary) = (&self.record, decision.summary()) else { return };
        if *reported == summary {
            return;
        }
        let attempts = if decision.is_over() { REPORTS } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                self.clock.sleep(PAUSE).await;
            }
            match record.report(&summary).await {
                Ok(()) => {
                    *reported = summary;
                    return;
                }
                Err(error) => announce(format_args!("could not write where the operators are: {error}")),
            }
        }
    }

    fn conclude(&self, decision: &Decision, is_first: bool) -> anyhow::Result<()> {
        if !decision.is_done() {
            bail!("not every operator can be upgraded: {}", self.what_is_left());
        }
        announce(format_args!(
            "{}",
            if is_first { "nothing to approve" } else { "all that was asked for is upgraded" }
        ));
        Ok(())
    }

    fn note(&self, decision: &Decision) {
        *self.last.lock() = Some(decision.clone());
    }

    fn decided(&self) -> Option<Decision> {
        self.last.lock().clone()
    }

    /// Which operators are not upgraded, and why.
    fn what_is_left(&self) -> String {
        let Some(decision) = self.decided() else {
            return "the operators of the cluster could not be read".to_owned();
        };
        let is_left = |standing: &Standing| {
            matches!(standing, Standing::Ready { .. } | Standing::Waiting(_) | Standing::Blocked(_))
        };
        let left = decision.operators.iter().filter(|(_, standing)| is_left(standing));
        left.map(|(operator, standing)| format!("{operator}: {standing}")).collect::<Vec<_>>().join("; ")
    }
}

/// Tells where operators are, of those who are somewhere else than when it was last told.
fn tell(told: &mut BTreeMap<OperatorRef, Standing>, decision: &Decision) {
    for (operator, standing) in &decision.operators {
        if told.get(operator) != Some(standing) {
            announce(format_args!("{operator}: {standing}"));
        }
    }
    told.clone_from(&decision.operators);
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        command: ApproveOperators,
    }

    fn read(line: &str) -> Result<ApproveOperators, String> {
        let read = Line::try_parse_from(line.split(' ')).map_err(|error| error.to_string());
        read.map(|line| line.command)
    }

    #[test]
    fn a_line_says_which_operators_are_meant() {
        let command = read("x --include a/b --include a/c --exclude a/c --timeout 90s --record r/s").expect("valid");
        let names = |names: &[&str]| names.iter().map(|name| name.parse().expect("an operator")).collect();
        let wish = Wish { scope: Scope::Only(names(&["a/b", "a/c"])), exclude: names(&["a/c"]) };
        assert_eq!(command.wish(), wish);
        assert_eq!(command.timeout.get(), Duration::from_secs(90));
        let command = read("x --all").expect("valid");
        assert_eq!(command.wish(), Wish { scope: Scope::All, exclude: names(&[]) });
        assert_eq!(command.timeout.get(), Duration::from_mins(10));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_answered_with_what_to_write() {
        for (line, answer) in [
            ("x", "<--all|--include <NAMESPACE/NAME>>"),
            ("x --exclude a/b", "<--all|--include <NAMESPACE/NAME>>"),
            ("x --all --include a/b", "cannot be used with"),
            ("x --include gitops", "openshift-operators/openshift-gitops-operator"),
            ("x --all --exclude a/b/c", "openshift-operators/openshift-gitops-operator"),
            ("x --all --timeout 10", "write one such as 90s, 30m or 1h30m"),
            ("x --all --timeout 0s", "write one such as 90s, 30m or 1h30m"),
            ("x --all --record here", "write its namespace and name, such as default/approved-operators"),
        ] {
            let refused = read(line).expect_err(line);
            assert!(refused.contains(answer), "{line}: {refused}");
        }
    }
}
