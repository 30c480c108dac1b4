//! What a scenario is handed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::Namespace};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ObjectMeta, PostParams},
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{Server, embedded::Embedded, play::identity};

/// A server to act on, an administrator's client for it, and names that nobody else uses.
pub struct World {
    home: Home,
    config: Config,
    client: Client,
}

/// Whose server it is.
#[derive(Debug)]
pub(crate) enum Home {
    Shared(&'static Server),
    Own(Server),
    Embedded(Embedded),
}

impl Home {
    fn kubeconfig(&self) -> &Path {
        match self {
            Self::Shared(server) => server.kubeconfig(),
            Self::Own(server) => server.kubeconfig(),
            Self::Embedded(server) => server.kubeconfig(),
        }
    }
}

impl World {
    pub(crate) async fn connect(home: Home) -> Self {
        let kubeconfig = Kubeconfig::read_from(home.kubeconfig()).expect("the server's kubeconfig can be read");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("the server's kubeconfig is valid");
        let client = Client::try_from(config.clone()).expect("a client can be made");
        Self { home, config, client }
    }

    /// That server, with nobody else on it.
    pub async fn on(server: Server) -> Self {
        Self::connect(Home::Own(server)).await
    }

    /// Drover's own API server with Drover's custom resources, for a scenario that compares it with the one it is handed.
    pub async fn embedded() -> Self {
        Self::connect(Home::Embedded(Embedded::with_drover())).await
    }

    /// A real Kubernetes without any custom resource, with nobody else on it: that of a managed cluster on which others define what they need.
    pub async fn kube() -> Self {
        Self::connect(Home::Own(Server::bare())).await
    }

    /// A second server of the same sort, with nobody else on it: that of a managed cluster, say.
    pub async fn another(&self) -> Self {
        match self.home {
            Home::Embedded(_) => Self::embedded().await,
            Home::Shared(_) | Home::Own(_) => Self::connect(Home::Own(Server::take())).await,
        }
    }

    /// An administrator's client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// An administrator's client that does not ask again when the server is not ready to answer.
    ///
    /// # Panics
    ///
    /// Never: another one was made of the same configuration.
    #[must_use]
    pub fn impatient_client(&self) -> Client {
        let mut config = self.config.clone();
        config.default_retry = false;
        Client::try_from(config).expect("a client can be made")
    }

    /// How to reach the server, with nobody's credentials.
    pub(crate) fn anonymous(&self) -> Config {
        let mut config = self.config.clone();
        config.auth_info = AuthInfo::default();
        config
    }

    /// The client of a service account that is there.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Client {
        identity::by_token(self, namespace, name).await
    }

    /// The kubeconfig of a service account that is there. It goes with the server.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        identity::kubeconfig_with_token(self, namespace, name).await
    }

    /// The client of somebody who has been given this token.
    #[must_use]
    pub fn bearing(&self, token: TokenRequest) -> Client {
        identity::with_token(self, token)
    }

    /// The client of somebody who has a certificate for that user and those groups.
    pub async fn certified(&self, user: &str, groups: &[&str]) -> Client {
        identity::by_certificate(self, user, groups).await
    }

    /// The kubeconfig of an administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.home.kubeconfig()
    }

    /// A name that begins with `prefix` and that no other scenario uses.
    #[must_use]
    pub fn unique(&self, prefix: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// A new namespace.
    pub async fn namespace(&self, prefix: &str) -> String {
        self.namespace_named(&self.unique(prefix)).await
    }

    /// A new namespace of this name.
    pub async fn namespace_named(&self, name: &str) -> String {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces = Api::<Namespace>::all(self.client());
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace can be made").name_any()
    }

    /// Runs `kubectl` as an administrator.
    pub async fn kubectl<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Kubectl {
        self.kubectl_with_input(args, b"").await
    }

    /// Runs `kubectl` as an administrator, with text for its standard input.
    pub async fn kubectl_with_input<'a>(&self, args: impl IntoIterator<Item = &'a str>, input: &[u8]) -> Kubectl {
        self.run_kubectl(self.kubeconfig(), args, input).await
    }

    /// Runs `kubectl` as whose kubeconfig this is.
    pub async fn kubectl_as<'a>(&self, kubeconfig: &Path, args: impl IntoIterator<Item = &'a str>) -> Kubectl {
        self.run_kubectl(kubeconfig, args, b"").await
    }

    /// Writes a kubeconfig of that name with somebody's credentials, which goes with the server.
    pub(crate) fn write_kubeconfig(&self, name: &str, credentials: &AuthInfo) -> PathBuf {
        let mut kubeconfig = Kubeconfig::read_from(self.kubeconfig()).expect("the server's kubeconfig can be read");
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(credentials.clone());
        }
        let path = self.kubeconfig().with_file_name(format!("{name}.kubeconfig"));
        // JSON is YAML.
        let text = serde_json::to_vec(&kubeconfig).expect("a kubeconfig is JSON");
        fs::write(&path, text).expect("the server's folder is writable");
        path
    }

    async fn run_kubectl<'a>(
        &self,
        kubeconfig: &Path,
        args: impl IntoIterator<Item = &'a str>,
        input: &[u8],
    ) -> Kubectl {
        let mut process = Command::new(Server::kubectl())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(args)
            // Whatever the person who runs the tests has set up must not show.
            .env_remove("KUBECONFIG")
            .env("KUBECTL_KUBERC", "false")
            .env("HOME", self.kubeconfig().parent().expect("a kubeconfig is in a folder"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl can be run");
        let mut stdin = process.stdin.take().expect("standard input is piped");
        stdin.write_all(input).await.expect("kubectl reads its input");
        drop(stdin);
        Kubectl(process.wait_with_output().await.expect("kubectl ends"))
    }
}

/// What became of a call of `kubectl`.
#[derive(Debug)]
pub struct Kubectl(Output);

impl Kubectl {
    /// What it printed, if it succeeded.
    #[expect(clippy::must_use_candidate, reason = "that it came out so is often all that matters")]
    pub fn success(&self) -> String {
        assert!(self.0.status.success(), "kubectl failed: {}", String::from_utf8_lossy(&self.0.stderr));
        self.printed()
    }

    /// What it printed, however it ended.
    #[must_use]
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    /// What it complained of, if it failed.
    #[expect(clippy::must_use_candidate, reason = "that it came out so is often all that matters")]
    pub fn failure(&self) -> String {
        assert!(!self.0.status.success(), "kubectl succeeded: {}", String::from_utf8_lossy(&self.0.stdout));
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}
