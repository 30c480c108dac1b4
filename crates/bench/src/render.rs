//! What it costs to make the works of an add-on from its template.

use std::{hint::black_box, time::Duration};

use drover_api::{
    addon::{AddOnDeploymentConfigSpec, ConfigReferent, ConfigSpecHash, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    drover::SetConfig,
};
use drover_engine::{
    hash::{content, spec_hash},
    revision::{Set, template_types},
    template::{self, Blueprint, Expected, Flaw, Inputs, Rendering},
};
use serde_json::Value;

use crate::{
    cpu_time::{cpu_time, median},
    report::{Report, Table},
    rounded,
    setup::example,
};

/// What the works of the largest fleet may cost.
const BUDGET: Duration = Duration::from_secs(2);
const SIZES: [u32; 2] = [1_000, 10_000];
/// How often each is measured; the median counts.
const ROUNDS: usize = 5;
/// What the settings are called where something is said of them.
const SETTINGS: &str = "cluster1/hello-template";

pub(crate) fn measure() -> anyhow::Result<Report> {
    let about = format!(
        "The works of all clusters are made from the specification's example, examples/template/addon-template.yaml with the settings in \
         addon-deployment-config.yaml: four manifests, two registrations. Besides rendering, a hub reads the settings and takes digests of what \
         was made. The budget is {} s with 10,000 clusters.",
        BUDGET.as_secs()
    );
    let mut report = Report::new("render", "Works from a template", &about, "render");
    let example = Example::read()?;
    let mut works = Table::new("What is made", &["clusters", "works", "bytes, as JSON", "bytes per cluster"]);
    let mut times = Table::new("Median CPU time", &["what", "clusters", "CPU, s", "CPU per cluster, µs"]);
    for size in SIZES {
        let addons: Vec<_> = (0..size).map(on_cluster).collect();
        works.rows.push(example.product(&addons)?);
        // That all can be rendered is known by now.
        let alone = measured(&addons, |addon| drop(black_box(example.render(addon, &example.settings))));
        let as_hub = measured(&addons, |addon| drop(black_box(example.render_as_hub(addon))));
        times.rows.push(row("rendering", size, alone));
        times.rows.push(row("all that a hub does for it", size, as_hub));
    }
    report.tables.extend([times, works]);
    Ok(report)
}

/// A template with its settings.
struct Example {
    set: Set,
    blueprint: Blueprint,
    settings: AddOnDeploymentConfigSpec,
    /// What is kept of the settings.
    kept: String,
}

impl Example {
    fn read() -> anyhow::Result<Self> {
        let (of_template, of_settings) =
            (example("template/addon-template.yaml")?, example("template/addon-deployment-config.yaml")?);
        let configs = template_types().into_iter().zip([&of_template, &of_settings]);
        let set =
            Set::new(configs.map(|(group_resource, object)| SetConfig { group_resource, config: named(object) }), None);
        let kept = content(&of_settings);
        let blueprint = Blueprint::read("hello-template", &content(&of_template))?;
        Ok(Self { set, blueprint, settings: template::settings(SETTINGS, &kept)?, kept })
    }

    /// Makes the works of one cluster.
    fn render(
        &self,
        on_cluster: &ManagedClusterAddOn,
        settings: &AddOnDeploymentConfigSpec,
    ) -> Result<Rendering, Flaw> {
        let Self { set, blueprint, .. } = self;
        template::render(&Inputs { on_cluster, set, blueprint, settings: Some(settings), registries: &[] })
    }

    /// Makes the works of one cluster from settings that have to be read, and takes their digests.
    fn render_as_hub(&self, on_cluster: &ManagedClusterAddOn) -> Result<Vec<Expected>, Flaw> {
        black_box(spec_hash(&self.kept));
        let rendering = self.render(on_cluster, &template::settings(SETTINGS, &self.kept)?)?;
        Ok(rendering.works.iter().map(Expected::of).collect())
    }

    /// What is made for all these.
    fn product(&self, addons: &[ManagedClusterAddOn]) -> anyhow::Result<Vec<String>> {
        let (mut works, mut bytes) = (0, 0);
        for addon in addons {
            for made in self.render(addon, &self.settings)?.works {
                works += 1;
                bytes += serde_json::to_vec(&made.work)?.len();
            }
        }
        Ok([addons.len(), works, bytes, bytes / addons.len()].map(|count| count.to_string()).into())
    }
}

/// The name and the hash of a configuration.
fn named(object: &Value) -> ConfigSpecHash {
    let of = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    let referent = ConfigReferent { namespace: of("namespace"), name: of("name").unwrap_or_default() };
    ConfigSpecHash { referent, spec_hash: spec_hash(&content(object)) }
}

/// The add-on on one of the clusters.
fn on_cluster(index: u32) -> ManagedClusterAddOn {
    let mut addon = ManagedClusterAddOn::new("hello-template", ManagedClusterAddOnSpec::default());
    addon.metadata.namespace = Some(format!("cluster-{index:05}"));
    addon.metadata.uid = Some(format!("00000000-0000-0000-0000-{index:012}"));
    addon
}

/// The CPU time that something takes for all add-ons together.
fn measured(addons: &[ManagedClusterAddOn], act: impl Fn(&ManagedClusterAddOn)) -> Duration {
    median(ROUNDS, || cpu_time(|| addons.iter().for_each(&act)).0)
}

fn row(what: &str, size: u32, time: Duration) -> Vec<String> {
    let per_cluster = time.as_secs_f64() * 1e6 / f64::from(size);
    vec![what.to_owned(), size.to_string(), rounded(time.as_secs_f64()), rounded(per_cluster)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_rendered_for_every_cluster_with_its_name_and_its_settings() {
        let example = Example::read().unwrap();
        let rendering = example.render(&on_cluster(7), &example.settings).unwrap();
        let [made] = rendering.works.as_slice() else { panic!("it is one work") };
        let text = serde_json::to_string(&made.work).unwrap();
        assert!(text.contains("--cluster-name=cluster-00007") && text.contains("--v=4"), "{text}");
        assert_eq!(example.render_as_hub(&on_cluster(7)).unwrap(), [Expected::of(made)]);
    }

    #[test]
    fn what_is_made_is_counted() {
        let example = Example::read().unwrap();
        let product = example.product(&[on_cluster(1), on_cluster(2)]).unwrap();
        let [clusters, works, bytes, each] = product.as_slice() else { panic!("{product:?}") };
        assert_eq!((clusters.as_str(), works.as_str()), ("2", "2"));
        assert_eq!(bytes.parse::<usize>().unwrap(), 2 * each.parse::<usize>().unwrap());
    }
}
