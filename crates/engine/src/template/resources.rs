//! What resources containers ask for, as an add-on's settings say.

use drover_api::addon::{ContainerResourceRequirements, ContainerResources};

use super::manifest::Object;

/// The resources of a container, if the settings say something about it. The last that is said counts.
pub(super) fn resources_of<'a>(
    requirements: &'a [ContainerResourceRequirements],
    object: &Object,
    container: &str,
) -> Option<&'a ContainerResources> {
    if requirements.is_empty() {
        return None;
    }
    let parts = [object.resource(), object.name.clone(), container.to_owned()];
    let found = requirements.iter().rev().find(|requirement| is_for(&requirement.container_id, &parts))?;
    Some(&found.resources)
}

/// Whether an ID is for a container. A part that is a star stands for any, and everything else for itself.
fn is_for(id: &str, parts: &[String; 3]) -> bool {
    let id: Vec<_> = id.split(':').collect();
    id.len() == parts.len() && id.iter().zip(parts).all(|(id, part)| *id == "*" || id == part)
}

#[cfg(test)]
mod tests {
    use drover_api::grammar::Quantity;

    use super::*;

    fn requirement(id: &str, cpu: i64) -> ContainerResourceRequirements {
        let resources = ContainerResources {
            limits: [("cpu".to_owned(), Quantity::Integer(cpu))].into(),
            ..ContainerResources::default()
        };
        ContainerResourceRequirements { container_id: id.to_owned(), resources }
    }

    fn object(kind: &str) -> Object {
        Object { group: "apps".to_owned(), kind: kind.to_owned(), namespace: "ns".to_owned(), name: "agent".to_owned() }
    }

    #[test]
    fn parts_stand_for_themselves_or_for_any() {
        for (id, expected) in [
            ("deployments:agent:main", true),
            ("*:*:*", true),
            ("deployments:*:main", true),
            ("daemonsets:agent:main", false),
            ("deployments:agen.:main", false),
            ("deployments:agent*:main", false),
            ("deployments:agent:side", false),
            ("deployments:agent", false),
            ("*", false),
        ] {
            let requirements = [requirement(id, 1)];
            assert_eq!(resources_of(&requirements, &object("Deployment"), "main").is_some(), expected, "{id}");
        }
        for kind in ["DaemonSet", "StatefulSet", "Job", "CronJob", "Pod", "ReplicaSet", "ReplicationController"] {
            let id = format!("{}s:agent:main", kind.to_lowercase());
            assert!(resources_of(&[requirement(&id, 1)], &object(kind), "main").is_some(), "{id}");
        }
    }

    #[test]
    fn what_is_said_last_counts() {
        let requirements =
            [requirement("deployments:agent:main", 1), requirement("*:*:*", 2), requirement("pods:*:*", 3)];
        let found = resources_of(&requirements, &object("Deployment"), "main");
        assert_eq!(found, Some(&requirements[1].resources));
    }
}
