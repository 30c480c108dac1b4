//! What a scenario runs on.

use std::{
    env,
    fs::OpenOptions,
    future::Future,
    io::Write as _,
    thread,
    time::{Duration, Instant},
};

use tokio::{runtime, time::timeout};

use crate::{Server, World, embedded::Embedded, world::Home};

/// What serves the Kubernetes API to a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A real kube-apiserver with etcd.
    Kube,
    /// Drover's own API server, in this process.
    Embedded,
}

/// What a scenario needs of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Drover's custom resources. Other scenarios use the server at the same time.
    Shared,
    /// Drover's custom resources, and nobody else.
    Own,
    /// Nothing but Kubernetes, and nobody else.
    Bare,
}

/// A scenario that takes longer than so many minutes has come to a halt. By hand, there are longer ones: `DROVER_PATIENCE=60`.
const PATIENCE: u64 = 5;

fn patience() -> Duration {
    let by_hand = env::var("DROVER_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_mins(by_hand.unwrap_or(PATIENCE))
}

/// Runs a scenario to its end; for the use of [`scenarios!`](crate::scenarios).
pub fn run<F: Future<Output = ()>>(backend: Backend, need: Need, scenario: impl FnOnce(World) -> F) {
    let asked = Instant::now();
    let home = match (backend, need) {
        (Backend::Kube, Need::Shared) => Home::Shared(Server::shared()),
        (Backend::Kube, Need::Own) => Home::Own(Server::take()),
        (Backend::Kube, Need::Bare) => Home::Own(Server::bare()),
        // They start so quickly that nobody has to share one.
        (Backend::Embedded, Need::Shared | Need::Own) => Home::Embedded(Embedded::with_drover()),
        (Backend::Embedded, Need::Bare) => Home::Embedded(Embedded::start(Vec::new())),
    };
    let begun = Instant::now();
    // A client's connections belong to the runtime that opened them, so every scenario has both for itself.
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let world = World::connect(home).await;
        timeout(patience(), scenario(world)).await.expect("the scenario ends in time");
    });
    note_time(asked.elapsed(), begun.elapsed());
}

/// Writes down how long a scenario took, with its server and without, where somebody wants to know: in the file that `DROVER_TIMES` names.
fn note_time(with_server: Duration, alone: Duration) {
    let Some(file) = env::var_os("DROVER_TIMES") else { return };
    // A test's thread has the name of the test.
    let (thread, seconds) = (thread::current(), [with_server, alone].map(|time| time.as_secs_f64()));
    let line = format!("{} {:.3} {:.3}\n", thread.name().unwrap_or("unnamed"), seconds[0], seconds[1]);
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file can be written");
    // All at once: others write too.
    file.write_all(line.as_bytes()).expect("the file can be written");
}

/// Declares the scenarios of a module, each an `async fn(World)`, under what they need of their server:
///
/// ```text
/// scenarios! {
///     Shared { a_cluster_is_stored }
///     Own { the_hub_starts }
/// }
/// ```
///
/// Each becomes one test for each backend: `on::kube::a_cluster_is_stored` and `on::embedded::a_cluster_is_stored`. A module whose scenarios
/// are about the real server alone begins with `on kube`.
#[macro_export]
macro_rules! scenarios {
    (on kube $($need:ident { $($scenario:ident),+ $(,)? })+) => {
        mod on {
            mod kube {
                $($(
                    #[test]
                    fn $scenario() {
                        $crate::run($crate::Backend::Kube, $crate::Need::$need, super::super::$scenario);
                    }
                )+)+
            }
        }
    };
    ($($need:ident { $($scenario:ident),+ $(,)? })+) => {
        mod on {
            mod kube {
                $($(
                    #[test]
                    fn $scenario() {
                        $crate::run($crate::Backend::Kube, $crate::Need::$need, super::super::$scenario);
                    }
                )+)+
            }
            mod embedded {
                $($(
                    #[test]
                    fn $scenario() {
                        $crate::run($crate::Backend::Embedded, $crate::Need::$need, super::super::$scenario);
                    }
                )+)+
            }
        }
    };
}
