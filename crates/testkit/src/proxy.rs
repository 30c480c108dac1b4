//! Somebody between a client and a server, who passes requests on, takes them down, and can be told to fail.
//!
//! TLS ends here, so the proxy has a certificate of its own, and the server learns from it in whose name a request is sent: whoever shows the proxy a
//! certificate that the server would take is impersonated. So permissions are those of the client, and so are the names in what it makes.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::body::{Body, to_bytes};
use drover_apiserver::pki::{Hosts, Pki, Roots};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use k8s_openapi::{ByteString, jiff::Timestamp};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use parking_lot::{Mutex, MutexGuard};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;
use tower::service_fn;
use x509_cert::der::{Decode, asn1::AnyRef, oid::db::rfc4519};

/// What is wrong with the server, as far as those can tell who go by a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// It answers every request with this code.
    Code(u16),
    /// It takes everything and answers nothing, not even on connections that are there.
    Silence,
    /// It takes no connection.
    Closed,
}

/// A request that was passed on, or not.
#[derive(Clone, Debug)]
pub struct Seen {
    /// How.
    pub method: Method,
    /// To what.
    pub uri: Uri,
    /// What its body is.
    pub content_type: Option<HeaderValue>,
}

/// A proxy at work. It ends when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    authority: String,
    trouble: watch::Sender<Trouble>,
    turned_away: Arc<watch::Sender<usize>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    _accepting: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy in front of the server whose administrator's kubeconfig this is, beside which its authority is.
    pub async fn start(kubeconfig: &Path) -> Self {
        let read = Kubeconfig::read_from(kubeconfig).expect("the server's kubeconfig can be read");
        let mut config =
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("it is valid");
        config.default_retry = false;
        // Watches may be silent for as long as the client likes.
        config.read_timeout = None;
        let client = Client::try_from(config).expect("a client can be made");
        let clients = fs::read(kubeconfig.with_file_name("pki").join("ca.crt")).expect("the authority is shown");
        let now = Timestamp::now();
        let pki = Pki::new(Roots::new(now).expect("keys can be made"), &Hosts::default(), now);
        let pki = pki.expect("certificates can be made");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let (trouble, turned_away, seen) = (watch::Sender::new(Trouble::None), Arc::default(), Arc::default());
        let door = Door {
            acceptor: TlsAcceptor::from(Arc::new(tls(&pki, &clients))),
            client,
            trouble: trouble.subscribe(),
            turned_away: Arc::clone(&turned_away),
            seen: Arc::clone(&seen),
        };
        let accepting = AbortOnDropHandle::new(tokio::spawn(accept(listener, door)));
        Self { address, authority: pki.authority.certificate, trouble, turned_away, seen, _accepting: accepting }
    }

    /// A kubeconfig with the credentials of another, by which the server is reached through this. It is beside the other.
    #[must_use]
    pub fn kubeconfig(&self, of: &Path) -> PathBuf {
        let mut kubeconfig = Kubeconfig::read_from(of).expect("the kubeconfig can be read");
        let authority = serde_json::to_value(ByteString(self.authority.clone().into_bytes())).expect("bytes are JSON");
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("https://{}", self.address));
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = authority.as_str().map(str::to_owned);
        }
        let name = of.file_name().and_then(|name| name.to_str()).expect("a file has a name");
        let path = of.with_file_name(format!("by-proxy-{name}"));
        // JSON is YAML.
        fs::write(&path, serde_json::to_vec(&kubeconfig).expect("a kubeconfig is JSON")).expect("it can be written");
        path
    }

    /// From now on the server is like this. Connections that are there are cut, but those that nothing is to be heard on any more.
    pub fn has(&self, trouble: Trouble) {
        self.turned_away.send_replace(0);
        self.trouble.send_replace(trouble);
    }

    /// Waits until so many connections and requests have met the trouble that there is. Who is met by silence need not try again.
    pub async fn turned_away(&self, times: usize) {
        // The sender is ours, so the wait does not fail.
        let _ = self.turned_away.subscribe().wait_for(|turned_away| *turned_away >= times).await;
    }

    /// What was asked since this was last called.
    #[must_use]
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *lock(&self.seen))
    }
}

fn lock(seen: &Mutex<Vec<Seen>>) -> MutexGuard<'_, Vec<Seen>> {
    seen.lock()
}

fn tls(pki: &Pki, clients: &[u8]) -> ServerConfig {
    let certificate = |pem: &[u8]| CertificateDer::from_pem_slice(pem).expect("a certificate in PEM");
    let mut roots = RootCertStore::empty();
    roots.add(certificate(clients)).expect("an authority can be trusted");
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.allow_unauthenticated().build().expect("clients can be verified");
    let key = PrivateKeyDer::from_pem_slice(pki.serving.key.as_bytes()).expect("a key in PEM");
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("there are versions").with_client_cert_verifier(verifier);
    let chain = vec![certificate(pki.serving.certificate.as_bytes())];
    config.with_single_cert(chain, key).expect("the key is the certificate's")
}

/// Where clients come in.
#[derive(Clone)]
struct Door {
    acceptor: TlsAcceptor,
    /// An administrator's.
    client: Client,
    trouble: watch::Receiver<Trouble>,
    turned_away: Arc<watch::Sender<usize>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

async fn accept(listener: TcpListener, door: Door) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        connections.spawn(door.clone().attend(stream));
        while connections.try_join_next().is_some() {}
    }
}

impl Door {
    /// Serves a connection for as long as the server is as it was when it began.
    async fn attend(mut self, stream: TcpStream) {
        let trouble = *self.trouble.borrow_and_update();
        if trouble == Trouble::Closed {
            self.turn_away();
            return;
        }
        let mut changes = self.trouble.clone();
        let mut served = Box::pin(self.serve(stream, trouble));
        loop {
            tokio::select! {
                () = &mut served, if *changes.borrow() != Trouble::Silence => return,
                changed = changes.changed() => {
                    // Who is silent holds what was open; whoever comes back knows nothing of it.
                    if changed.is_err() || *changes.borrow() != Trouble::Silence {
                        return;
                    }
                }
            }
        }
    }

    fn turn_away(&self) {
        self.turned_away.send_modify(|turned_away| *turned_away += 1);
    }

    async fn serve(self, stream: TcpStream, trouble: Trouble) {
        // Small answers are not to wait for more.
        let _ = stream.set_nodelay(true);
        let Ok(stream) = self.acceptor.clone().accept(stream).await else { return };
        let certificates = stream.get_ref().1.peer_certificates();
        let peer = Arc::new(certificates.and_then(<[_]>::first).map(|certificate| Peer::read(certificate)));
        let answer = move |request: Request<_>| {
            let (door, peer) = (self.clone(), Arc::clone(&peer));
            async move { Ok::<_, std::convert::Infallible>(door.answer(request, peer.as_ref().as_ref(), trouble).await) }
        };
        let service = TowerToHyperService::new(service_fn(answer));
        // However it ends, nobody is there any more.
        let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer<B>(&self, request: Request<B>, peer: Option<&Peer>, trouble: Trouble) -> Response<Body>
    where
        B: axum::body::HttpBody<Data = axum::body::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        lock(&self.seen).push(Seen {
            method: request.method().clone(),
            uri: request.uri().clone(),
            content_type: request.headers().get(header::CONTENT_TYPE).cloned(),
        });
        match trouble {
            Trouble::Code(code) => {
                self.turn_away();
                refusal(code)
            }
            _ => self.pass_on(request.map(Body::new), peer).await.unwrap_or_else(|| refusal(502)),
        }
    }

    /// Passes a request on in the name of who has sent it.
    async fn pass_on(&self, request: Request<Body>, peer: Option<&Peer>) -> Option<Response<Body>> {
        let (mut head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.ok()?;
        // The connection's, and not the message's.
        for name in [header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        for (name, value) in peer.into_iter().flat_map(Peer::headers) {
            head.headers.append(name, value);
        }
        let answer = self.client.send(Request::from_parts(head, kube::client::Body::from(body))).await.ok()?;
        let mut answer = answer.map(Body::new);
        answer.headers_mut().remove(header::CONNECTION);
        Some(answer)
    }
}

/// What a server says that refuses.
fn refusal(code: u16) -> Response<Body> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": "the server is in trouble",
    });
    let mut answer = Response::new(Body::from(status.to_string()));
    *answer.status_mut() = StatusCode::from_u16(code).expect("a code");
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Whose a certificate is.
#[derive(Debug)]
struct Peer {
    user: String,
    groups: Vec<String>,
}

impl Peer {
    fn read(certificate: &CertificateDer<'_>) -> Self {
        let read = x509_cert::Certificate::from_der(certificate).expect("it was verified");
        let mut peer = Self { user: String::new(), groups: Vec::new() };
        for part in read.tbs_certificate().subject().iter() {
            let value = AnyRef::from(&part.value);
            let text = String::from_utf8_lossy(value.value()).into_owned();
            match part.oid {
                rfc4519::CN => peer.user = text,
                rfc4519::O => peer.groups.push(text),
                _ => {}
            }
        }
        peer
    }

    fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let groups = self.groups.iter().map(|group| ("impersonate-group", group));
        let all = std::iter::once(("impersonate-user", &self.user)).chain(groups);
        all.map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a name fits into a header")))
    }
}
