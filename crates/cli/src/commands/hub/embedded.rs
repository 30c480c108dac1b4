//! The hub's own API server, for where there is no Kubernetes: it runs in this process, with Drover's API and the roles and policies of `deploy/`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use drover_apiserver::{ApiServer, Listening, Options, RandomIds, pki::Hosts, user::User, write_private};
use drover_runtime::clock::Clock;
use futures_util::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde_json::Value;

use super::NAMESPACE;
use crate::commands::crds::POLICIES;

/// The roles of the hub and of agents.
const ROLES: [&str; 2] =
    [include_str!("../../../../../deploy/hub/agents.yaml"), include_str!("../../../../../deploy/hub/role.yaml")];
/// In whose name the server's own part of Drover is written.
const MANAGER: &str = "drover";

/// A running API server.
pub(super) struct Embedded {
    server: ApiServer,
    listening: Listening,
    kubeconfig: PathBuf,
}

impl Embedded {
    /// Starts an API server with Drover's API, which keeps everything in a folder and is reached at an address.
    pub(super) async fn start(data: &Path, listen: SocketAddr) -> anyhow::Result<Self> {
        let hosts = Hosts { names: Vec::new(), addresses: vec![listen.ip()] };
        let options =
            Options { data: Some(data.to_owned()), hosts, clock: Clock::system(), ids: Arc::new(RandomIds::default()) };
        let server = ApiServer::start(options).await?;
        install(&server.client(administrator())).await?;
        let listening = server.listen(listen).await?;
        let kubeconfig = data.join("admin.kubeconfig");
        let url = format!("https://{}", listening.address());
        write_private(&kubeconfig, server.kubeconfig(&url).as_bytes())
            .with_context(|| format!("could not write {}", kubeconfig.display()))?;
        Ok(Self { server, listening, kubeconfig })
    }

    /// The client of the hub, with the rights that it has on any Kubernetes.
    pub(super) fn client(&self) -> Client {
        let account = |name: &str| format!("system:serviceaccount:{NAMESPACE}:{name}");
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{NAMESPACE}"), "system:authenticated"];
        let groups = groups.map(str::to_owned).to_vec();
        self.server.client(User { name: account("drover-hub"), groups, ..User::default() })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// The kubeconfig of its administrator.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) async fn stop(self) {
        self.listening.stop().await;
        self.server.stop().await;
    }
}

fn administrator() -> User {
    User { name: "drover".to_owned(), groups: vec!["system:masters".to_owned()], ..User::default() }
}

/// Puts Drover's API onto a server, with its roles and policies, or brings it up to date. All at once, on all cores, and so that it is written to the disk together.
async fn install(client: &Client) -> anyhow::Result<()> {
    let definitions = drover_api::crds().into_iter().map(|crd| define(client.clone(), crd)).map(tokio::spawn);
    let definitions: Vec<_> = definitions.collect();
    let mut objects = Vec::new();
    for file in ROLES.iter().chain(&POLICIES) {
        for object in serde_saphyr::from_multiple::<Value>(file)? {
            objects.push(serde_json::from_value::<DynamicObject>(object)?);
        }
    }
    let is_namespace = |object: &DynamicObject| object.types.as_ref().is_some_and(|types| types.kind == "Namespace");
    let (namespaces, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_namespace);
    for batch in [namespaces, others] {
        let applied = batch.into_iter().map(|object| apply(client.clone(), object)).map(tokio::spawn);
        try_join_all(applied).await?.into_iter().collect::<anyhow::Result<()>>()?;
    }
    try_join_all(definitions).await?.into_iter().collect()
}

async fn define(client: Client, crd: CustomResourceDefinition) -> anyhow::Result<()> {
    let (definitions, name) = (Api::<CustomResourceDefinition>::all(client), crd.name_any());
    let applied = definitions.patch(&name, &by_force(), &Patch::Apply(crd)).await;
    applied.map(drop).with_context(|| format!("could not install {name}"))
}

async fn apply(client: Client, object: DynamicObject) -> anyhow::Result<()> {
    let name = object.name_any();
    let types = object.types.clone().unwrap_or_default();
    let kind = GroupVersionKind::try_from(&types).with_context(|| format!("{name} says not what it is"))?;
    let (resource, capabilities) = pinned_kind(&client, &kind).await?;
    let api: Api<DynamicObject> = match (&capabilities.scope, object.namespace()) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, &namespace, &resource),
        _ => Api::all_with(client, &resource),
    };
    let applied = api.patch(&name, &by_force(), &Patch::Apply(object)).await;
    applied.map(drop).with_context(|| format!("could not install the {} {name}", kind.kind))
}

fn by_force() -> PatchParams {
    PatchParams::apply(MANAGER).force()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn all_files_of_the_hub_are_installed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/hub");
        let mut there: Vec<_> = fs::read_dir(folder)
            .expect("the folder is there")
            .map(|file| fs::read_to_string(file.expect("a file").path()).expect("a text"))
            .collect();
        let mut installed = ROLES.map(str::to_owned).to_vec();
        there.sort();
        installed.sort();
        assert_eq!(there, installed);
    }
}
