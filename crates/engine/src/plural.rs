//! Resources, and the kinds that they may be of. Only the discovery of a cluster knows for sure.

/// Whether objects of a kind may go by this resource.
pub(crate) fn may_be(resource: &str, kind: &str) -> bool {
    let singular = kind.to_lowercase();
    let ending = |ending: &str| resource.strip_suffix(ending).is_some_and(|stem| stem == singular);
    let is_ies = || resource.strip_suffix("ies").is_some_and(|stem| singular.strip_suffix('y') == Some(stem));
    resource == singular || ending("s") || ending("es") || is_ies()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_have_its_resource_in_several_ways() {
        for (resource, kind) in [
            ("pods", "Pod"),
            ("ingresses", "Ingress"),
            ("policies", "Policy"),
            ("gateways", "Gateway"),
            ("endpoints", "Endpoints"),
        ] {
            assert!(may_be(resource, kind), "{resource} {kind}");
        }
        assert!(!may_be("pods", "Node") && !may_be("policys", "Polic"));
    }
}
