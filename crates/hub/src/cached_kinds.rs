//! The kinds that the hub caches, and so all that it can write.

use drover_api::{
    addon::{AddOnHubConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{
        AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, ManagedClustersUpgrade,
        Placement, PlacementDecision,
    },
    drover::{AddOnRollout, ClusterUpgrade, ConfigRevision},
    work::ManifestWorkReplicaSet,
};
use drover_runtime::caches;
use k8s_openapi::{
    api::{
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::api::PartialObjectMeta;

use crate::{
    cache::{Cache, Queues},
    manifest_work::CachedWork,
};

caches! {
    Cache => Queues;
    AddOnHubConfig,
    AddOnPlacementScore,
    AddOnRollout,
    CachedWork,
    CertificateSigningRequest,
    ClusterManagementAddOn,
    ClusterRole,
    ClusterRoleBinding,
    ClusterUpgrade,
    ConfigRevision,
    Lease,
    ManagedCluster,
    ManagedClusterAddOn,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    ManagedClustersUpgrade,
    ManifestWorkReplicaSet,
    Namespace,
    PartialObjectMeta<CustomResourceDefinition>,
    Placement,
    PlacementDecision,
    Role,
    RoleBinding,
    ServiceAccount,
}
