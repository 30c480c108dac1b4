//! `drover crds`: the CustomResourceDefinitions, and the policies that guard them, as YAML.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use clap::Args;

/// Print the CustomResourceDefinitions of Drover's API and its ValidatingAdmissionPolicies, as YAML.
///
/// Apply them with `drover crds | kubectl apply --server-side -f -`.
#[derive(Debug, Args)]
pub(crate) struct Crds {
    /// Write the definitions alone into this folder, one file each, instead of printing everything.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

/// The policies that guard what RBAC can not, each with its binding.
const POLICIES: [&str; 8] = [
    include_str!("../../../../deploy/policies/accept-cluster.yaml"),
    include_str!("../../../../deploy/policies/bind-cluster-set.yaml"),
    include_str!("../../../../deploy/policies/describe-cluster.yaml"),
    include_str!("../../../../deploy/policies/join-cluster-set.yaml"),
    include_str!("../../../../deploy/policies/name-cluster.yaml"),
    include_str!("../../../../deploy/policies/name-executor.yaml"),
    include_str!("../../../../deploy/policies/report-cluster.yaml"),
    include_str!("../../../../deploy/policies/use-placement.yaml"),
];

impl Crds {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.output_dir {
            None => print(),
            Some(folder) => write_into(&folder),
        }
    }
}

fn print() -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    for crd in drover_api::crds() {
        write!(stdout, "---\n{}", yaml(&crd)?)?;
    }
    for policy in POLICIES {
        write!(stdout, "---\n{policy}")?;
    }
    stdout.flush()?;
    Ok(())
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
