//! What can be done with the objects of a kind.

use crate::kind::{Kind, Origin};

impl Kind {
    /// Whether putting an object where there is none creates it.
    #[must_use]
    pub fn allows_create_on_update(&self) -> bool {
        if self.origin == Origin::Custom {
            return false;
        }
        match self.group.as_str() {
            "" => matches!(self.plural.as_str(), "events" | "services" | "endpoints" | "limitranges"),
            "events.k8s.io" => self.plural == "events",
            "coordination.k8s.io" => matches!(self.plural.as_str(), "leases" | "leasecandidates"),
            "rbac.authorization.k8s.io" => true,
            "node.k8s.io" => self.plural == "runtimeclasses",
            _ => false,
        }
    }

    /// Whether a change need not say which state of the object it was made of.
    #[must_use]
    pub fn allows_unconditional_update(&self) -> bool {
        if self.origin == Origin::Custom {
            return false;
        }
        match self.group.as_str() {
            "coordination.k8s.io"
            | "node.k8s.io"
            | "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "apiregistration.k8s.io" => false,
            "policy" => self.plural != "poddisruptionbudgets",
            "certificates.k8s.io" => self.plural == "certificatesigningrequests",
            "storage.k8s.io" => matches!(self.plural.as_str(), "storageclasses" | "volumeattributesclasses"),
            _ => true,
        }
    }

    /// Whether objects count how often what is wanted of them changed.
    #[must_use]
    pub fn has_generation(&self) -> bool {
        if self.origin == Origin::Custom {
            return true;
        }
        match self.group.as_str() {
            "" => matches!(self.plural.as_str(), "pods" | "podtemplates" | "replicationcontrollers"),
            "apps" => self.plural != "controllerrevisions",
            "networking.k8s.io" => {
                matches!(self.plural.as_str(), "ingresses" | "ingressclasses" | "networkpolicies")
            }
            "batch"
            | "policy"
            | "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "scheduling.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "discovery.k8s.io" => true,
            _ => false,
        }
    }
}
