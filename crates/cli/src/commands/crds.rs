//! `drover crds`: the CustomResourceDefinitions, and the policies that guard them, as YAML.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::{Context, bail};
use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Print the CustomResourceDefinitions of Drover's API and its ValidatingAdmissionPolicies, as YAML.
///
/// Apply them with `drover crds | kubectl apply --server-side -f -`.
#[derive(Debug, Args)]
pub(crate) struct Crds {
    /// Write the definitions alone into this folder, one file each, instead of printing everything.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print the definitions of one API group alone. On a Kubernetes that has OCM's own definitions, and is to keep them, those
    /// of drover.dev are what the hub lacks.
    #[arg(long, value_name = "GROUP", conflicts_with = "output_dir")]
    group: Option<String>,
}

/// The policies that guard what RBAC can not, each with its binding.
pub(super) const POLICIES: [&str; 11] = [
    include_str!("../../../../deploy/policies/accept-cluster.yaml"),
    include_str!("../../../../deploy/policies/bind-cluster-set.yaml"),
    include_str!("../../../../deploy/policies/bind-template-role.yaml"),
    include_str!("../../../../deploy/policies/describe-cluster.yaml"),
    include_str!("../../../../deploy/policies/join-cluster-set.yaml"),
    include_str!("../../../../deploy/policies/name-cluster.yaml"),
    include_str!("../../../../deploy/policies/name-executor.yaml"),
    include_str!("../../../../deploy/policies/report-addon.yaml"),
    include_str!("../../../../deploy/policies/report-cluster.yaml"),
    include_str!("../../../../deploy/policies/report-work.yaml"),
    include_str!("../../../../deploy/policies/use-placement.yaml"),
];

impl Crds {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match (self.output_dir, self.group) {
            (Some(folder), _) => write_into(&folder),
            (None, Some(group)) => print(&of_group(&group)?, &[]),
            (None, None) => print(&drover_api::crds(), &POLICIES),
        }
    }
}

fn print(crds: &[CustomResourceDefinition], policies: &[&str]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    for crd in crds {
        write!(stdout, "---\n{}", yaml(crd)?)?;
    }
    for policy in policies {
        write!(stdout, "---\n{policy}")?;
    }
    stdout.flush()?;
    Ok(())
}

fn of_group(group: &str) -> anyhow::Result<Vec<CustomResourceDefinition>> {
    let (of_group, others): (Vec<_>, Vec<_>) = drover_api::crds().into_iter().partition(|crd| crd.spec.group == group);
    if of_group.is_empty() {
        let groups: BTreeSet<_> = others.iter().map(|crd| crd.spec.group.as_str()).collect();
        bail!("there is no group {group}: there are {}", groups.into_iter().collect::<Vec<_>>().join(", "));
    }
    Ok(of_group)
}

fn write_into(folder: &std::path::Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not make the folder {}", folder.display()))?;
    for crd in drover_api::crds() {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let file = folder.join(format!("{name}.yaml"));
        fs::write(&file, yaml(&crd)?).with_context(|| format!("could not write {}", file.display()))?;
    }
    Ok(())
}

/// The YAML of an object, with its fields in alphabetical order.
fn yaml(object: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_saphyr::to_string(&serde_json::to_value(object)?)?)
}
