//! The life of a process, as the server sees it: what it writes, and how many writes it lives to see answered.

use std::{future::pending, sync::Arc, time::Duration};

use http::{Method, Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

/// What a process sends to the server, and how many writes it lives to see answered.
#[derive(Clone)]
pub(crate) struct Life {
    inner: Client,
    deeds: Arc<Mutex<Deeds>>,
    over: Arc<Notify>,
}

#[derive(Default)]
struct Deeds {
    /// How many writes may still be sent; without it, any number.
    left: Option<usize>,
    /// The writes that the server has carried out.
    writes: Vec<String>,
}

impl Life {
    /// A life that ends when the server has answered the first write.
    pub(crate) fn of_one_write(inner: &Client) -> Self {
        Self::new(inner, Some(1))
    }

    /// A life that goes on.
    pub(crate) fn without_end(inner: &Client) -> Self {
        Self::new(inner, None)
    }

    fn new(inner: &Client, left: Option<usize>) -> Self {
        let deeds = Arc::new(Mutex::new(Deeds { left, writes: Vec::new() }));
        Self { inner: inner.clone(), deeds, over: Arc::default() }
    }

    /// The client of a process that lives this life.
    pub(crate) fn client(&self) -> Client {
        let life = self.clone();
        Client::new(tower::service_fn(move |request| life.clone().send(request)), "default")
    }

    async fn send(self, request: Request<Body>) -> kube::Result<Response<Body>> {
        if request.method() == Method::GET {
            return self.inner.send(request).await;
        }
        if !self.begin() {
            // It is dead: nothing that it would have sent arrives.
            return pending().await;
        }
        let (what, request) = read(request).await?;
        let answer = self.inner.send(request).await?;
        if answer.status().is_success() {
            self.change(|deeds| deeds.writes.push(what));
        }
        if self.change(|deeds| deeds.left) == Some(0) {
            self.over.notify_one();
            return pending().await;
        }
        Ok(answer)
    }

    /// Takes note of a write that is about to be sent, unless none may be any more.
    fn begin(&self) -> bool {
        self.change(|deeds| match &mut deeds.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Deeds) -> T) -> T {
        change(&mut self.deeds.lock())
    }

    pub(crate) fn writes(&self) -> Vec<String> {
        self.change(|deeds| deeds.writes.clone())
    }

    /// Waits until it is over.
    pub(crate) async fn end(&self) {
        timeout(Duration::from_mins(1), self.over.notified()).await.expect("a hub that has not got there yet writes");
    }
}

/// What a request asks for, and the request.
async fn read(request: Request<Body>) -> kube::Result<(String, Request<Body>)> {
    let (head, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let what = format!("{} {} {}", head.method, head.uri.path(), String::from_utf8_lossy(&body));
    Ok((what, Request::from_parts(head, Body::from(body.to_vec()))))
}
