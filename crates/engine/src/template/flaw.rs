//! What is wrong with a template, or with what it is filled in from.

use drover_api::names::{HOSTED_LOCATION_ANNOTATION, IMAGE_REGISTRIES_ANNOTATION, PRE_DELETE_ANNOTATION};

/// Why nothing can be made from a template. The sentences are for whoever can change that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Nobody can read the template.
    #[error("the AddOnTemplate {template} can not be read: {error}; correct its spec")]
    Template {
        /// The template's name.
        template: String,
        /// What is wrong with it.
        error: String,
    },
    /// Nobody can read the settings.
    #[error("the AddOnDeploymentConfig {settings} can not be read: {error}; correct its spec")]
    Settings {
        /// The settings' name.
        settings: String,
        /// What is wrong with them.
        error: String,
    },
    /// The template deploys nothing.
    #[error("the AddOnTemplate {template} deploys nothing: add manifests to spec.agentSpec.workload.manifests")]
    NoManifests {
        /// The template's name.
        template: String,
    },
    /// One of the template's manifests can not be deployed.
    #[error("in the AddOnTemplate {template}, {manifest} {fault}")]
    Manifest {
        /// The template's name.
        template: String,
        /// The kind and name of the manifest's object, or the manifest's place in the list.
        manifest: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A permission on the hub names no role.
    #[error(
        "the AddOnTemplate {template} gives its agent a permission without a role: name one in \
         spec.registration[{registration}].kubeClient.hubPermissions[{permission}], by currentCluster.clusterRoleName or roleRef"
    )]
    NoRole {
        /// The template's name.
        template: String,
        /// The registration's place in the list.
        registration: usize,
        /// The permission's place in the registration's list.
        permission: usize,
    },
    /// A permission in one namespace does not say in which.
    #[error(
        "the AddOnTemplate {template} gives its agent a permission in one namespace, and does not say in which: set \
         singleNamespace.namespace in spec.registration[{registration}].kubeClient.hubPermissions[{permission}]"
    )]
    NoNamespace {
        /// The template's name.
        template: String,
        /// The registration's place in the list.
        registration: usize,
        /// The permission's place in the registration's list.
        permission: usize,
    },
    /// A registration with a signer of its own does not name it.
    #[error(
        "the AddOnTemplate {template} has a registration of the type CustomSigner without a signer: set customSigner with signerName \
         and signingCA in spec.registration[{registration}]"
    )]
    NoSigner {
        /// The template's name.
        template: String,
        /// The registration's place in the list.
        registration: usize,
    },
    /// The proxy's certificates are something else.
    #[error(
        "the AddOnDeploymentConfig {settings} has a spec.proxyConfig.caBundle that is no list of certificates: set it to one or more \
         certificates in PEM, encoded once in base64"
    )]
    CaBundle {
        /// The settings' name.
        settings: String,
    },
    /// Nobody can read the registries of a cluster.
    #[error(
        "the annotation {IMAGE_REGISTRIES_ANNOTATION} of the ManagedCluster {cluster} can not be read: {error}; write it as \
         {{\"registries\":[{{\"source\":\"quay.io/example\",\"mirror\":\"registry.example.com\"}}]}}, or remove it"
    )]
    Registries {
        /// The cluster's name.
        cluster: String,
        /// What is wrong with the annotation.
        error: String,
    },
}

/// What is wrong with one manifest, to go after its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Something that every object has is missing.
    #[error("has no {0}: set it to a text that is not empty")]
    Without(&'static str),
    /// Something has another form than it must have.
    #[error("has {field} in another form than {form}: correct it")]
    Form {
        /// What it is.
        field: String,
        /// Which form it must have.
        form: &'static str,
    },
    /// Another manifest is for the same object.
    #[error("is there twice: remove one of the two manifests, or give it another name")]
    Twice,
    /// Another manifest is for the same object, now that all are in one namespace.
    #[error(
        "is there twice once everything is in one namespace, as spec.agentInstallNamespace of the AddOnDeploymentConfig says: remove \
         one of the two manifests, give it another name, or set agentInstallNamespace to \"\""
    )]
    TwiceInOneNamespace,
    /// A variable has no value.
    #[error(
        "uses the variable {{{{{0}}}}}, which has no value: set one in spec.customizedVariables of the add-on's AddOnDeploymentConfig, or \
         correct the name"
    )]
    UnknownVariable(String),
    /// It does not fit into a work.
    #[error("has {size} bytes, and a work holds {limit} at most: make it smaller, or divide it into several objects")]
    TooLarge {
        /// The size of the manifest as JSON.
        size: usize,
        /// How many bytes there may be.
        limit: usize,
    },
    /// It is to run before the add-on goes.
    #[error(
        "is to run before the add-on is deleted, and such hooks are not supported with templates: remove the manifest, or \
         {PRE_DELETE_ANNOTATION} from its annotations and labels"
    )]
    PreDelete,
    /// It is for another cluster than the add-on's own.
    #[error(
        "is to be on the cluster that hosts the add-on ({HOSTED_LOCATION_ANNOTATION}={0}), and hosted add-ons are not supported with \
         templates: remove the manifest, or that annotation"
    )]
    Hosted(String),
}
