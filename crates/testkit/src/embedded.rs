//! Drover's own API server, in this process.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, mpsc},
    thread::{self, JoinHandle},
};

use drover_apiserver::{ApiServer, Options, RandomIds, pki::Hosts, user::User};
use drover_runtime::clock::Clock;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::PostParams};
use tempfile::TempDir;
use tokio::{runtime, sync::oneshot};

/// A running API server, with a thread of its own. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Embedded {
    kubeconfig: PathBuf,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _data: TempDir,
}

impl Embedded {
    /// A server with Drover's custom resources, that keeps nothing.
    pub(crate) fn with_drover() -> Self {
        // They are made from types, which takes as long as a short scenario.
        static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(drover_api::crds);
        Self::start(CRDS.clone())
    }

    /// A server with these custom resources, that keeps nothing.
    pub(crate) fn start(crds: Vec<CustomResourceDefinition>) -> Self {
        let data = tempfile::Builder::new().prefix("drover-embedded-").tempdir().expect("there is room for files");
        let folder = data.path().to_owned();
        let (ready, started) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
            runtime.block_on(serve(crds, &folder, ready, ended));
        });
        let kubeconfig = started.recv().expect("the server starts");
        Self { kubeconfig, end: Some(end), thread: Some(thread), _data: data }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

async fn serve(
    crds: Vec<CustomResourceDefinition>,
    folder: &Path,
    ready: mpsc::Sender<PathBuf>,
    ended: oneshot::Receiver<()>,
) {
    let options =
        Options { data: None, hosts: Hosts::default(), clock: Clock::system(), ids: Arc::new(RandomIds::default()) };
    let server = ApiServer::start(options).await.expect("the server starts");
    let admin = User { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()], ..User::default() };
    let definitions = Api::<CustomResourceDefinition>::all(server.client(admin));
    for crd in crds {
        definitions.create(&PostParams::default(), &crd).await.expect("the server takes Drover's API");
    }
    let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("there is a free port");
    let url = format!("https://{}", listening.address());
    ready.send(show(folder, &server, &url)).expect("somebody waits");
    // Who has started it may have ended already, which is as good.
    let _ = ended.await;
    listening.stop().await;
    server.stop().await;
}

/// Puts into a folder what scenarios look for beside a server: the kubeconfig, whose path this is, and the CA.
fn show(folder: &Path, server: &ApiServer, url: &str) -> PathBuf {
    let (kubeconfig, pki) = (folder.join("admin.kubeconfig"), folder.join("pki"));
    fs::create_dir(&pki).expect("the folder is writable");
    let authority = server.authority();
    let files = [
        (pki.join("ca.crt"), authority.certificate.clone()),
        (pki.join("ca.key"), authority.key.clone()),
        (kubeconfig.clone(), server.kubeconfig(url)),
    ];
    for (path, text) in files {
        fs::write(path, text).expect("the folder is writable");
    }
    kubeconfig
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // What it has panicked over was told already.
            let _ = thread.join();
        }
    }
}
