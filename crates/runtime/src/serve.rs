//! What the process tells about itself over HTTP: `/healthz`, `/readyz` and `/metrics`.

use std::{io, net::SocketAddr, time::Duration};

use axum::{
    Router,
    http::{StatusCode, header},
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, metrics::Metrics};

/// How long requests may go on after the shutdown has begun.
const GRACE: Duration = Duration::from_secs(5);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The endpoints that every process has. `missing` names what has to be listed before the process is ready; empty means ready.
///
/// More endpoints are merged into the router that this returns.
pub fn endpoints(metrics: Metrics, missing: impl Fn() -> Vec<String> + Clone + Send + Sync + 'static) -> Router {
    let readiness = move || async move { readiness(&missing()) };
    let metrics = move || async move { ([(header::CONTENT_TYPE, OPENMETRICS)], metrics.encode()) };
    Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(readiness)).route("/metrics", get(metrics))
}

fn readiness(missing: &[String]) -> (StatusCode, String) {
    if missing.is_empty() {
        (StatusCode::OK, "ok".to_owned())
    } else {
        let sentence = format!("not ready: the first list is not complete of {}", missing.join(", "));
        (StatusCode::SERVICE_UNAVAILABLE, sentence)
    }
}

/// A server that has its address, and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Takes that address. Port 0 is any port that is free.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown`, then finishes the requests that have begun. A client that does not finish is not waited for long.
    pub async fn run(self, router: Router, clock: &Clock, shutdown: CancellationToken) -> io::Result<()> {
        let serving = axum::serve(self.listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
        let too_late = async {
            shutdown.cancelled().await;
            clock.sleep(GRACE).await;
        };
        tokio::select! {
            result = serving => result,
            () = too_late => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use k8s_openapi::jiff::Timestamp;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        sync::watch,
        task::JoinHandle,
    };

    use super::*;
    use drover_engine::plan::Verb;

    use crate::clock::ManualClock;

    struct Running {
        address: SocketAddr,
        clock: ManualClock,
        shutdown: CancellationToken,
        task: JoinHandle<io::Result<()>>,
    }

    impl Running {
        async fn start(router: Router) -> Self {
            let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
            let address = server.address();
            assert_ne!(address.port(), 0);
            let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
            let (clock, shutdown) = (manual.clock(), CancellationToken::new());
            let token = shutdown.clone();
            let task = tokio::spawn(async move { server.run(router, &clock, token).await });
            Self { address, clock: manual, shutdown, task }
        }

        /// The whole answer, head and body.
        async fn get(&self, path: &str) -> String {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }

        async fn stop(self) {
            self.shutdown.cancel();
            self.task.await.unwrap().unwrap();
        }
    }

    fn assert_answer(answer: &str, head: &str, body: &str) {
        assert!(answer.starts_with(head), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
    }

    #[tokio::test]
    async fn ready_means_that_nothing_is_missing() {
        let (missing, seen) = watch::channel(vec!["ManagedCluster".to_owned(), "Placement".to_owned()]);
        let server = Running::start(endpoints(Metrics::new(), move || seen.borrow().clone())).await;
        assert_answer(&server.get("/healthz").await, "HTTP/1.1 200", "ok");
        let sentence = "not ready: the first list is not complete of ManagedCluster, Placement";
        assert_answer(&server.get("/readyz").await, "HTTP/1.1 503", sentence);
        missing.send_replace(Vec::new());
        assert_answer(&server.get("/readyz").await, "HTTP/1.1 200", "ok");
        server.stop().await;
    }

    #[tokio::test]
    async fn metrics_are_served_as_openmetrics() {
        let metrics = Metrics::new();
        let server = Running::start(endpoints(metrics.clone(), Vec::new)).await;
        metrics.wrote("Placement", Verb::Patch);
        let answer = server.get("/metrics").await;
        assert_answer(&answer, "HTTP/1.1 200", &metrics.encode());
        assert!(answer.contains(OPENMETRICS), "{answer}");
        assert!(answer.contains(r#"drover_writes_total{kind="Placement",verb="patch"} 1"#), "{answer}");
        server.stop().await;
    }

    #[tokio::test]
    async fn more_endpoints_can_be_merged() {
        let more = Router::new().route("/debug/placements", get(async || "because"));
        let server = Running::start(endpoints(Metrics::new(), Vec::new).merge(more)).await;
        assert_answer(&server.get("/debug/placements").await, "HTTP/1.1 200", "because");
        assert_answer(&server.get("/healthz").await, "HTTP/1.1 200", "ok");
        server.stop().await;
    }

    #[tokio::test]
    async fn a_client_that_never_finishes_does_not_hold_the_shutdown() {
        let server = Running::start(endpoints(Metrics::new(), Vec::new)).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
        // Who comes later was answered, so the one before was let in.
        assert_answer(&server.get("/healthz").await, "HTTP/1.1 200", "ok");
        server.shutdown.cancel();
        while !server.task.is_finished() {
            server.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        server.task.await.unwrap().unwrap();
    }
}
