//! Names that several programs have to agree on: labels, annotations, and objects with a fixed name.

/// The label of a cluster that says in which exclusive set it is.
pub const CLUSTER_SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
/// The label of a PlacementDecision that names its placement.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";
/// The label of a PlacementDecision with the index of its group.
pub const DECISION_GROUP_INDEX_LABEL: &str = "cluster.open-cluster-management.io/decision-group-index";
/// The label of a PlacementDecision with the name of its group.
pub const DECISION_GROUP_NAME_LABEL: &str = "cluster.open-cluster-management.io/decision-group-name";
/// The lease in a cluster's namespace that its agent renews.
pub const CLUSTER_LEASE: &str = "managed-cluster-lease";

/// The label of whatever belongs to a cluster, with the cluster's name.
pub const CLUSTER_NAME_LABEL: &str = "open-cluster-management.io/cluster-name";
/// The condition of a cluster that says whether the hub accepts it.
pub const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
/// The condition of a cluster by which its agent says that it has joined.
pub const CLUSTER_JOINED: &str = "ManagedClusterJoined";
/// The condition of a cluster that says whether it is available.
pub const CLUSTER_AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// The condition of a cluster by which its agent says whether it could renew its certificate.
pub const CERTIFICATE_ROTATED: &str = "ClusterCertificateRotated";
/// The label of a claim that stays on its cluster.
pub const SPOKE_ONLY_LABEL: &str = "open-cluster-management.io/spoke-only";
/// The condition of a cluster that says whether its clock and the hub's agree.
pub const CLUSTER_CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
/// The condition of a cluster that says what its deletion waits for.
pub const CLUSTER_DELETING: &str = "Deleting";
/// The annotation of a cluster whose clock is not to be compared with the hub's.
pub const SKIP_CLOCK_SYNC_ANNOTATION: &str = "registration.open-cluster-management.io/skip-clock-sync-check";
/// The annotation of a cluster whose deletion does not wait for its agent.
pub const FORCE_DELETE_ANNOTATION: &str = "drover.dev/force-delete";
/// The annotation that the hub puts on a cluster that has joined: whoever may bring clusters in gets no certificate for it any more.
pub const JOINED_ANNOTATION: &str = "drover.dev/joined";
/// The annotation of a cluster that has joined and is to be let in once more, with new credentials.
pub const REJOIN_ANNOTATION: &str = "drover.dev/rejoin";
/// The annotation of an add-on or work that says in which turn it is removed with its cluster: 0, which goes first, to 100.
pub const CLEANUP_PRIORITY_ANNOTATION: &str = "open-cluster-management.io/cleanup-priority";
/// The taint of a cluster that has not been heard of, or not for a while.
pub const UNREACHABLE_TAINT: &str = "cluster.open-cluster-management.io/unreachable";
/// The taint of a cluster whose agent says that it is not available.
pub const UNAVAILABLE_TAINT: &str = "cluster.open-cluster-management.io/unavailable";
/// The finalizer of a cluster: what belongs to it on the hub has to be removed.
pub const CLUSTER_FINALIZER: &str = "cluster.open-cluster-management.io/api-resource-cleanup";
/// Another finalizer of a cluster with the same meaning, which OCM's hub adds.
pub const RESOURCE_CLEANUP_FINALIZER: &str = "cluster.open-cluster-management.io/resource-cleanup";
/// The finalizer of the binding that lets an agent finish its works.
pub const WORK_BINDING_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
/// What the names of agents, and of their groups, begin with.
pub const AGENT_PREFIX: &str = "system:open-cluster-management:";
/// The group of all agents.
pub const AGENTS_GROUP: &str = "system:open-cluster-management:managed-clusters";

/// The label of a work that names its add-on.
pub const ADDON_NAME_LABEL: &str = "open-cluster-management.io/addon-name";
/// The label of a work that names the namespace of its add-on, where that is not the work's own.
pub const ADDON_NAMESPACE_LABEL: &str = "open-cluster-management.io/addon-namespace";
/// The label of a work with the version of its add-on.
pub const ADDON_VERSION_LABEL: &str = "open-cluster-management.io/addon-version";
/// The annotation of a work with the hashes of the configurations that it was made from, as OCM spells it.
pub const CONFIG_SPEC_HASH_ANNOTATION: &str = "open-cluster-management.io/config-spec-hash";
/// The same annotation, as the add-on lifecycle specification spells it.
pub const FLAT_CONFIG_SPEC_HASH_ANNOTATION: &str = "configSpecHash";
/// The condition of a work that says whether everything in it is applied.
pub const WORK_APPLIED: &str = "Applied";
/// The condition of a work that says whether everything in it is there.
pub const WORK_AVAILABLE: &str = "Available";
/// The condition of a work, and of an object of it, that says whether it has done what it was for.
pub const WORK_COMPLETE: &str = "Complete";
/// The condition of a work, and of an object of it, that says whether it is being changed.
pub const WORK_PROGRESSING: &str = "Progressing";
/// The condition of a work by which its agent says that it is being removed.
pub const WORK_DELETING: &str = "Deleting";
/// The condition of an object of a work that says whether what is reported of it is up to date.
pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
/// The finalizer of a work: its objects have to be removed from the cluster.
pub const WORK_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
/// The finalizer of what a work has left on a cluster: the objects have to be removed.
pub const APPLIED_WORK_FINALIZER: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
/// In whose name an agent applies objects where nothing else is said.
pub const WORK_FIELD_MANAGER: &str = "work-agent";
/// The condition of a work that says whether what is applied is not well. A rule in the work makes it.
pub const WORK_DEGRADED: &str = "Degraded";
/// The label of a work that names the ManifestWorkReplicaSet it was made for: its namespace, a dot, its name.
pub const REPLICA_SET_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";
/// The label of such a work that names the placement it was made for.
pub const WORK_PLACEMENT_LABEL: &str = "work.open-cluster-management.io/placementname";
/// The finalizer of a ManifestWorkReplicaSet: its works have to be removed.
pub const REPLICA_SET_FINALIZER: &str = "work.open-cluster-management.io/manifest-work-cleanup";
/// The condition of a ManifestWorkReplicaSet that says whether its placements are there and select clusters.
pub const PLACEMENT_VERIFIED: &str = "PlacementVerified";
/// The condition of a ManifestWorkReplicaSet that says whether its template has reached all clusters.
pub const PLACEMENT_ROLLED_OUT: &str = "PlacementRolledOut";
/// The condition of a ManifestWorkReplicaSet that says whether its works are applied and available.
pub const MANIFESTWORK_APPLIED: &str = "ManifestworkApplied";
/// The annotation of a work of a ManifestWorkReplicaSet that says what the cluster was given, and when.
pub const GIVEN_ANNOTATION: &str = "drover.dev/given";
/// The annotation of such a work that says since when the cluster is well with it, where the strategy asks for how long.
pub const PROVEN_ANNOTATION: &str = "drover.dev/proven";
/// The name that v1beta1 clients give to a default configuration that there is none of: the type is supported, no more.
pub const NO_DEFAULT_CONFIG: &str = "__reserved_no_default__";

/// The condition of an add-on on a cluster that says which set it was given, and when.
pub const GIVEN: &str = "drover.dev/Given";
/// The condition of an add-on on a cluster that says which set it has proven to run, and how it stands to it.
pub const PROVEN: &str = "drover.dev/Proven";
/// The condition of an add-on, on a cluster or on a placement, that says whether it is being changed.
pub const PROGRESSING: &str = "Progressing";
/// The condition of an add-on on a cluster that says whether what it runs by is settled. An add-on manager waits for it.
pub const CONFIGURED: &str = "Configured";
/// The condition of an add-on on a cluster that says whether it is available.
pub const AVAILABLE: &str = "Available";
/// The reason of `Available` where no probe has reported yet.
pub const NO_PROBE_RESULT: &str = "NoProbeResult";
/// The condition of an add-on on a cluster by which its manager says that it has made the add-on's works.
pub const MANIFEST_APPLIED: &str = "ManifestApplied";
/// The same condition, for works on the cluster that hosts the add-on's agent.
pub const HOSTING_MANIFEST_APPLIED: &str = "HostingManifestApplied";
/// The annotation of an add-on on a cluster that names another cluster, which hosts the add-on's agent.
pub const HOSTING_CLUSTER_ANNOTATION: &str = "addon.open-cluster-management.io/hosting-cluster-name";
/// The annotation of an add-on on a cluster that the hub has made, and may remove.
pub const INSTALLED_ANNOTATION: &str = "drover.dev/installed";
/// The annotation of an add-on on a cluster with the installVersion that the hub has written. Any other is a user's.
pub const ASSIGNED_VERSION_ANNOTATION: &str = "drover.dev/assigned-version";
/// The annotation of an add-on on a cluster with the keys of the annotations that were copied from the cluster.
pub const COPIED_ANNOTATIONS_ANNOTATION: &str = "drover.dev/copied-annotations";
/// What the keys of annotations begin with that are copied from a cluster to its add-ons.
pub const ADDON_ANNOTATION_PREFIX: &str = "addon.open-cluster-management.io";
/// The annotation of an add-on that says who manages it: the hub, unless it says something else.
pub const LIFECYCLE_ANNOTATION: &str = "addon.open-cluster-management.io/lifecycle";
/// The label of what the agent of an add-on needs to prove itself by tokens.
pub const TOKEN_INFRASTRUCTURE_LABEL: &str = "addon.open-cluster-management.io/token-infrastructure";
/// The label of the same that names the add-on.
pub const TOKEN_ADDON_LABEL: &str = "addon.open-cluster-management.io/name";
/// The condition of an add-on on a cluster that says whether its agent can ask for tokens.
pub const TOKEN_INFRASTRUCTURE_READY: &str = "TokenInfrastructureReady";
/// The condition of an add-on that tells whether its agent has a token.
pub const TOKEN_REFRESHED: &str = "TokenRefreshed";
/// The label of Secrets in which an agent keeps the credentials of add-ons; its value tells whose they are.
pub const KEPT_BY_LABEL: &str = "drover.dev/kept-by";
/// The annotation of an add-on that names its default version.
pub const DEFAULT_VERSION_ANNOTATION: &str = "addon.open-cluster-management.io/default-version";
/// The annotation of an add-on with the versions that its own manager supports, separated by commas.
pub const SUPPORTED_VERSIONS_ANNOTATION: &str = "addon.open-cluster-management.io/supported-versions";
/// The annotation that pauses an add-on, some of its placements, or one cluster.
pub const PAUSE_ANNOTATION: &str = "drover.dev/pause";
/// The annotation that leaves clusters out.
pub const SKIP_ANNOTATION: &str = "drover.dev/skip";
/// The annotation whose token asks, once, to try again what has failed.
pub const RETRY_ANNOTATION: &str = "drover.dev/retry";
/// The annotation that holds placements at a set.
pub const PIN_ANNOTATION: &str = "drover.dev/pin";

/// The annotation of a work, and of what it deploys, that names the set it was made from.
pub const SET_ANNOTATION: &str = "drover.dev/set";
/// The annotation of a work that says how many works its set was made into on that cluster.
pub const WORKS_ANNOTATION: &str = "drover.dev/works";
/// The annotation of a work that holds objects of others besides its own, until those have applied them.
pub const HOLDS_ANNOTATION: &str = "drover.dev/holds";
/// The annotation of a cluster with the registries that its images are taken from.
pub const IMAGE_REGISTRIES_ANNOTATION: &str = "open-cluster-management.io/image-registries";
/// The annotation of a manifest whose object stays on the cluster when the add-on goes.
pub const ORPHAN_ANNOTATION: &str = "addon.open-cluster-management.io/deletion-orphan";
/// The annotation, or label, of a manifest that is to run before the add-on goes.
pub const PRE_DELETE_ANNOTATION: &str = "addon.open-cluster-management.io/addon-pre-delete";
/// The annotation of a manifest that says on which cluster of a hosted add-on it belongs.
pub const HOSTED_LOCATION_ANNOTATION: &str = "addon.open-cluster-management.io/hosted-manifest-location";
/// The label of a binding that was made for an add-on that is made from a template.
pub const TEMPLATE_BINDING_LABEL: &str = "open-cluster-management.io/addon-template-name";
/// The condition of an add-on on a cluster that says whether its agent may do on the hub what it is to do.
pub const REGISTRATION_APPLIED: &str = "RegistrationApplied";
/// The condition of an add-on on a cluster that says whether the certificates that its agent has asked for were signed.
pub const CERTIFICATES_SIGNED: &str = "drover.dev/CertificatesSigned";
/// What the labels of a cluster begin with that say how an add-on is there, before the add-on's name.
pub const FEATURE_LABEL_PREFIX: &str = "feature.open-cluster-management.io/addon-";
/// The namespace on managed clusters that agents of add-ons are in, unless something else is said.
pub const AGENT_NAMESPACE: &str = "open-cluster-management-agent-addon";

/// The label of works of an upgrade, with the name of the ClusterUpgrade that they are for.
pub const UPGRADE_LABEL: &str = "drover.dev/upgrade";
/// The label of such works that says what they are for.
pub const UPGRADE_PART_LABEL: &str = "drover.dev/upgrade-part";
/// The annotation of a cluster that names the upgrade it is a part of at the moment: its namespace, a slash, its name.
pub const UPGRADED_BY_ANNOTATION: &str = "drover.dev/upgraded-by";
/// The annotation of an upgrade that may upgrade the cluster on which the hub runs.
pub const UPGRADE_HUB_ANNOTATION: &str = "drover.dev/upgrade-hub";
/// The finalizer of an upgrade: clusters have to be let go.
pub const UPGRADE_FINALIZER: &str = "drover.dev/upgrade";
/// The label of the cluster on which the hub runs.
pub const LOCAL_CLUSTER_LABEL: &str = "local-cluster";
/// The label of a cluster that says in which turn it is upgraded: a number, those with a lower one first; 0 without it.
pub const UPGRADE_PRIORITY_LABEL: &str = "drover.dev/upgrade-priority";
/// The claim of a cluster that says which version of OpenShift it runs.
pub const VERSION_CLAIM: &str = "version.openshift.io";
