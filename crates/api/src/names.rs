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

/// The label of a work that names its add-on.
pub const ADDON_NAME_LABEL: &str = "open-cluster-management.io/addon-name";
/// The label of a work with the version of its add-on.
pub const ADDON_VERSION_LABEL: &str = "open-cluster-management.io/addon-version";
/// The annotation of a work with the hashes of the configurations that it was made from, as OCM spells it.
pub const CONFIG_SPEC_HASH_ANNOTATION: &str = "open-cluster-management.io/config-spec-hash";
/// The same annotation, as the add-on lifecycle specification spells it.
pub const FLAT_CONFIG_SPEC_HASH_ANNOTATION: &str = "configSpecHash";
/// The name that v1beta1 clients give to a default configuration that there is none of: the type is supported, no more.
pub const NO_DEFAULT_CONFIG: &str = "__reserved_no_default__";
