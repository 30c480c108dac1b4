//! The line to the hub: a client whose credentials can be exchanged while others use it.
//!
//! Watches and controllers hold a client for as long as they run. When the agent's certificate is renewed they go on with the same one, and their next
//! request goes out under the new certificate.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use parking_lot::RwLock;
use tokio::sync::watch;
use tower::Service;

/// The line to the hub, whoever holds it.
#[derive(Clone)]
pub(crate) struct Line(Arc<Inner>);

struct Inner {
    /// Who talks to the hub at the moment.
    current: RwLock<Client>,
    /// Whether the hub did not know us when it was last asked anything.
    is_stranger: watch::Sender<bool>,
}

impl Line {
    pub(crate) fn new(client: Client) -> Self {
        Self(Arc::new(Inner { current: RwLock::new(client), is_stranger: watch::Sender::new(false) }))
    }

    /// From now on requests go out by this client.
    pub(crate) fn exchange(&self, client: Client) {
        *self.0.current.write() = client;
        self.0.is_stranger.send_replace(false);
    }

    /// A client that goes by whatever the line goes by.
    pub(crate) fn client(&self) -> Client {
        let namespace = self.current().default_namespace().to_owned();
        Client::new(self.clone(), namespace)
    }

    /// Waits until the hub says that it does not know us.
    pub(crate) async fn turned_away(&self) {
        self.wait_for(true).await;
    }

    /// Waits until the hub knows us again.
    pub(crate) async fn let_in(&self) {
        self.wait_for(false).await;
    }

    async fn wait_for(&self, is_stranger: bool) {
        // The sender is ours, so the wait does not fail.
        let _ = self.0.is_stranger.subscribe().wait_for(|is| *is == is_stranger).await;
    }

    fn current(&self) -> Client {
        self.0.current.read().clone()
    }

    fn observe(&self, status: StatusCode) {
        let now = status == StatusCode::UNAUTHORIZED;
        self.0.is_stranger.send_if_modified(|is_stranger| std::mem::replace(is_stranger, now) != now);
    }
}

impl Service<Request<Body>> for Line {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let line = self.clone();
        Box::pin(async move {
            let answer = line.current().send(request).await?;
            line.observe(answer.status());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use kube::Api;

    use super::*;

    /// A client to a server that answers everything with this code.
    fn client(code: StatusCode) -> Client {
        let answer = move |_: Request<Body>| async move {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = code;
            Ok::<_, kube::Error>(response)
        };
        Client::new(tower::service_fn(answer), "default")
    }

    async fn code(client: &Client) -> u16 {
        match Api::<Namespace>::all(client.clone()).get("a").await {
            Err(kube::Error::Api(status)) => status.code,
            other => panic!("no answer of the server: {other:?}"),
        }
    }

    #[tokio::test]
    async fn who_holds_a_client_goes_on_with_what_it_was_exchanged_for() {
        let line = Line::new(client(StatusCode::NOT_FOUND));
        let held = line.client();
        assert_eq!(code(&held).await, 404);
        line.exchange(client(StatusCode::CONFLICT));
        assert_eq!(code(&held).await, 409);
    }

    #[tokio::test]
    async fn it_is_told_that_the_hub_does_not_know_us() {
        let line = Line::new(client(StatusCode::UNAUTHORIZED));
        let waiting = tokio::spawn({
            let line = line.clone();
            async move { line.turned_away().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(code(&line.client()).await, 401);
        waiting.await.expect("it is told");
        line.turned_away().await;
        let waiting = tokio::spawn({
            let line = line.clone();
            async move { line.let_in().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        line.exchange(client(StatusCode::NOT_FOUND));
        assert_eq!(code(&line.client()).await, 404);
        waiting.await.expect("it is told");
    }
}
