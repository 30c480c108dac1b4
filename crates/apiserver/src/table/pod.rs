//! Rows of pods, whose state is spread over their containers.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Row, duration,
    look::{age, condition, flag, list, number, some, text, text_or, time},
};

pub(super) fn row(pod: &Value, now: Timestamp) -> Row {
    let seen = Seen::of(pod);
    let restarts = match seen.last_restart.filter(|_| seen.restarts != 0) {
        Some(last) => format!("{} ({} ago)", seen.restarts, duration::since(last, now)),
        None => seen.restarts.to_string(),
    };
    let sidecars = list(pod, "/spec/initContainers").iter().filter(|container| is_sidecar(container)).count();
    let total = list(pod, "/spec/containers").len() + sidecars;
    let cells = vec![
        json!(text(pod, "/metadata/name")),
        json!(format!("{}/{total}", seen.ready)),
        json!(state(pod, &seen)),
        json!(restarts),
        json!(age(pod, now)),
        json!(text_or(pod, "/status/podIPs/0/ip", "<none>")),
        json!(text_or(pod, "/spec/nodeName", "<none>")),
        json!(text_or(pod, "/status/nominatedNodeName", "<none>")),
        json!(readiness_gates(pod)),
    ];
    Row { cells, conditions: finished(pod) }
}

fn finished(pod: &Value) -> Vec<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
}

fn state(pod: &Value, seen: &Seen) -> String {
    let is_going = some(pod, "/metadata/deletionTimestamp").is_some();
    let is_over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    if is_going && text(pod, "/status/reason") == "NodeLost" {
        "Unknown".to_owned()
    } else if is_going && !is_over {
        "Terminating".to_owned()
    } else {
        seen.reason.clone()
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    let open = gates.iter().filter(|gate| condition(pod, text(gate, "/conditionType")) == Some(true)).count();
    if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

/// What the containers of a pod say together.
struct Seen {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// How often something was restarted, and when it was last.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += number(status, "/restartCount");
        self.last = self.last.max(time(status, "/lastState/terminated/finishedAt"));
    }
}

impl Seen {
    fn of(pod: &Value) -> Self {
        let gated = list(pod, "/status/conditions").iter().any(|condition| {
            text(condition, "/type") == "PodScheduled" && text(condition, "/reason") == "SchedulingGated"
        });
        let phase = text_or(pod, "/status/reason", text(pod, "/status/phase"));
        let reason = if gated { "SchedulingGated" } else { phase }.to_owned();
        let mut seen = Self { reason, ready: 0, restarts: 0, last_restart: None };
        let (all, sidecars, is_initializing) = seen.initialize(pod);
        let mut restarts = all;
        if !is_initializing || condition(pod, "Initialized") == Some(true) {
            restarts = sidecars;
            seen.run(pod, &mut restarts);
        }
        seen.restarts = restarts.count;
        seen.last_restart = restarts.last;
        seen
    }

    /// Looks at the containers that run before the others, up to the first that is not done.
    fn initialize(&mut self, pod: &Value) -> (Restarts, Restarts, bool) {
        let (mut all, mut sidecars) = (Restarts::default(), Restarts::default());
        let containers = list(pod, "/spec/initContainers");
        for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
            let name = text(status, "/name");
            let sidecar = containers.iter().any(|container| text(container, "/name") == name && is_sidecar(container));
            all.add(status);
            if sidecar {
                sidecars.add(status);
            }
            let terminated = some(status, "/state/terminated");
            let waiting = text(status, "/state/waiting/reason");
            if terminated.is_some_and(|it| number(it, "/exitCode") == 0) {
                continue;
            }
            if sidecar && flag(status, "/started") {
                self.ready += usize::from(flag(status, "/ready"));
                continue;
            }
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", end_of(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", containers.len()),
            };
            return (all, sidecars, true);
        }
        (all, sidecars, false)
    }

    fn run(&mut self, pod: &Value, restarts: &mut Restarts) {
        let mut is_running = false;
        let mut error = None;
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = some(status, "/state/terminated") {
                self.reason = end_of(terminated);
                if number(terminated, "/exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if flag(status, "/ready") && some(status, "/state/running").is_some() {
                is_running = true;
                self.ready += 1;
            }
        }
        // One container that is done does not make the pod done.
        if self.reason == "Completed" {
            if is_running && condition(pod, "Ready") == Some(true) {
                "Running".clone_into(&mut self.reason);
            } else if let Some(error) = error {
                self.reason = error;
            } else if is_running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

/// Why a container ended.
fn end_of(terminated: &Value) -> String {
    match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
