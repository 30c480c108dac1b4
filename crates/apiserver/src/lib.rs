//! A Kubernetes API in one process, for where there is no Kubernetes to run on.
//!
//! What is asked of it is decided in pure code: what an address means ([`request`]), whether an object is as its kind has to be ([`schema`],
//! [`strategy`], [`metadata`]), what a patch makes of it ([`patch`], [`ownership`]), who may do what ([`access`], [`policy`]). A [`store`] keeps the
//! objects, in memory and in a file, and one who tidies up does what follows from changes. Clients reach it by TLS, or without a socket in the same process.

pub mod access;
mod bootstrap;
pub mod catalog;
mod cel;
pub mod decode;
pub mod definition;
pub mod depth;
pub mod discovery;
pub mod failure;
pub mod field;
mod http;
pub mod identity;
mod ids;
mod keeping;
pub mod kind;
mod listen;
pub mod metadata;
pub mod negotiation;
pub mod openapi;
pub mod ownership;
pub mod patch;
pub mod pki;
pub mod policy;
pub mod protobuf;
pub mod request;
pub mod schema;
pub mod selector;
mod server;
pub mod store;
pub mod strategy;
pub mod table;
pub mod user;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use axum::Extension;
use drover_runtime::clock::Clock;
use p256::{ecdsa::SigningKey, pkcs8::DecodePrivateKey as _};
use tokio::{sync::mpsc, task::JoinHandle};

use self::{
    failure::Failure,
    http::Known,
    identity::Issuer,
    keeping::Keeper,
    pki::{Folder, FolderError, Hosts, Pair, Pki, Roots, Unwritable},
    server::{AUDIENCE, Parts, Server},
    store::{Journal, Keep, OpenError, Store},
    user::User,
};
pub use self::{
    ids::RandomIds,
    listen::{ListenError, Listening},
    pki::write_private,
    server::Ids,
};

/// How a server is run.
pub struct Options {
    /// The folder that everything is kept in; nothing is kept where there is none.
    pub data: Option<PathBuf>,
    /// Where it can be reached, as its certificate says it.
    pub hosts: Hosts,
    /// The time.
    pub clock: Clock,
    /// Where names come from that nobody else has.
    pub ids: Arc<dyn Ids>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What is kept can not be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The keys can not be used.
    #[error(transparent)]
    Keys(#[from] FolderError),
    /// Keys could not be made.
    #[error("could not make keys and certificates: {0}")]
    Pki(#[from] Unwritable),
    /// What every server begins with could not be made.
    #[error("could not make the first objects: {0}")]
    Bootstrap(String),
}

/// A Kubernetes API server.
pub struct ApiServer {
    server: Arc<Server>,
    pki: Pki,
    keeper: JoinHandle<()>,
}

impl ApiServer {
    /// Starts a server.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let Options { data, hosts, clock, ids } = options;
        let journal = data.as_ref().map_or(Journal::Memory, |folder| Journal::Folder(folder.clone()));
        let store = Store::open(&journal, Keep::default(), store_time(clock.clone()))?;
        let pki = pki(data, &hosts, &clock)?;
        let key = SigningKey::from_pkcs8_pem(&pki.tokens).map_err(|error| StartError::Bootstrap(error.to_string()))?;
        let (tasks, to_do) = mpsc::unbounded_channel();
        let issuer = Issuer::new(key, AUDIENCE);
        let server = Arc::new(Server::new(Parts { store, clock, issuer, ids, tasks }));
        server.bootstrap().await.map_err(|failure: Failure| StartError::Bootstrap(failure.message))?;
        let keeper = Keeper::new(Arc::clone(&server), pki.authority.clone());
        let keeper = tokio::spawn(keeper.run(to_do));
        Ok(Self { server, pki, keeper })
    }

    /// A client in this process that needs no socket, and acts as somebody.
    #[must_use]
    pub fn client(&self, user: User) -> kube::Client {
        let router = http::router(Arc::clone(&self.server)).layer(Extension(Known(user)));
        kube::Client::new(router, "default")
    }

    /// Serves at an address, by TLS.
    pub async fn listen(&self, address: SocketAddr) -> Result<Listening, ListenError> {
        listen::listen(http::router(Arc::clone(&self.server)), address, &self.pki).await
    }

    /// The kubeconfig of the administrator of a server that is reached there.
    #[must_use]
    pub fn kubeconfig(&self, url: &str) -> String {
        self.pki.kubeconfig(url)
    }

    /// The certificate and the key of the authority that signs for clients of this server.
    #[must_use]
    pub fn authority(&self) -> &Pair {
        &self.pki.authority
    }

    /// Ends it, when everything is kept.
    pub async fn stop(self) {
        self.keeper.abort();
        self.server.store.close().await;
    }
}

/// The time as the store reads it: how long the clock has run.
fn store_time(clock: Clock) -> store::Now {
    let start = clock.tick();
    Arc::new(move || clock.tick().since(start))
}

fn pki(data: Option<PathBuf>, hosts: &Hosts, clock: &Clock) -> Result<Pki, StartError> {
    let now = clock.now();
    let Some(data) = data else { return Ok(Pki::new(Roots::new(now)?, hosts, now)?) };
    let folder = Folder::new(data.join("pki"));
    let pki = Pki::new(folder.roots(now)?, hosts, now)?;
    folder.show(&pki)?;
    Ok(pki)
}
