//! What an agent needs on the cluster that it manages: the kinds in which it keeps there what it has applied, and in which the cluster makes its claims.

use drover_api::{cluster::ClusterClaim, work::AppliedManifestWork};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResourceExt as _, ResourceExt as _,
    api::PostParams,
    runtime::wait::{self, await_condition, conditions},
};

/// Why a cluster lacks what an agent needs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInstalled {
    #[error("{name}: {source}; apply it as an administrator with `drover crds`")]
    Definition { name: String, source: kube::Error },
    #[error("{name} is defined, and not served: {source}")]
    NotServed { name: String, source: wait::Error },
}

/// Makes what is missing. What is there stays as it is: it may be another's.
pub(crate) async fn install(managed: &Client) -> Result<(), NotInstalled> {
    let definitions = Api::<CustomResourceDefinition>::all(managed.clone());
    for name in [AppliedManifestWork::crd_name(), ClusterClaim::crd_name()] {
        let failed = |source| NotInstalled::Definition { name: name.to_owned(), source };
        if definitions.get_opt(name).await.map_err(failed)?.is_none() {
            make(&definitions, name).await.map_err(failed)?;
        }
        let served = await_condition(definitions.clone(), name, conditions::is_crd_established()).await;
        served.map_err(|source| NotInstalled::NotServed { name: name.to_owned(), source })?;
    }
    Ok(())
}

/// Makes one definition. They are written down when one is missing, and not at every start.
async fn make(definitions: &Api<CustomResourceDefinition>, name: &str) -> Result<(), kube::Error> {
    for crd in drover_api::crds().into_iter().filter(|crd| crd.name_any() == name) {
        match definitions.create(&PostParams::default(), &crd).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            made => drop(made?),
        }
    }
    Ok(())
}
