//! The server on the network: TLS, with HTTP/1.1 and HTTP/2.

use std::{io, net::SocketAddr, sync::Arc};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{ServiceExt as _, service_fn};
use tracing::debug;

use crate::{http::Peer, pki::Pki};

/// Why a server can not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken, or not of this machine.
    #[error("could not listen on {address}: {error}; choose another address, or port 0 for a free one")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The keys and certificates are of no use.
    #[error("the keys and certificates can not be used: {0}")]
    Tls(String),
}

/// A server that can be reached.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Listening {
    /// Where it can be reached.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections.
    pub async fn stop(self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Serves at an address. Who shows a certificate of the authority is known by it.
pub(crate) async fn listen(router: Router, address: SocketAddr, pki: &Pki) -> Result<Listening, ListenError> {
    let acceptor = TlsAcceptor::from(Arc::new(tls(pki)?));
    let unreachable = |error| ListenError::Address { address, error };
    let listener = TcpListener::bind(address).await.map_err(unreachable)?;
    let address = listener.local_addr().map_err(unreachable)?;
    let (end, tasks) = (CancellationToken::new(), TaskTracker::new());
    tasks.spawn(accept(listener, acceptor, router, end.clone(), tasks.clone()));
    Ok(Listening { address, end, tasks })
}

fn tls(pki: &Pki) -> Result<ServerConfig, ListenError> {
    let unusable = |error: &dyn std::fmt::Display| ListenError::Tls(error.to_string());
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| unusable(&error));
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&pki.authority.certificate)?).map_err(|error| unusable(&error))?;
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.allow_unauthenticated().build().map_err(|error| unusable(&error))?;
    let key = PrivateKeyDer::from_pem_slice(pki.serving.key.as_bytes()).map_err(|error| unusable(&error))?;
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unusable(&error))?.with_client_cert_verifier(verifier);
    let chain = vec![certificate(&pki.serving.certificate)?];
    let mut config = config.with_single_cert(chain, key).map_err(|error| unusable(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    router: Router,
    end: CancellationToken,
    tasks: TaskTracker,
) {
    while let Some(accepted) = end.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                let served = serve(stream, acceptor.clone(), router.clone());
                let end = end.clone();
                tasks.spawn(async move { end.run_until_cancelled(served).await });
            }
            Err(error) => {
                debug!(%error, "a connection was not accepted");
                // There may be too many; the others will end some time.
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            debug!(%error, "somebody does not speak TLS");
            return;
        }
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let peer = certificates.and_then(<[_]>::first).map(|certificate| Peer(Arc::from(certificate.as_ref())));
    let service = service_fn(move |request: http::Request<_>| {
        let mut request = request.map(axum::body::Body::new);
        if let Some(peer) = peer.clone() {
            request.extensions_mut().insert(peer);
        }
        router.clone().oneshot(request)
    });
    let served = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection has ended");
    }
}
