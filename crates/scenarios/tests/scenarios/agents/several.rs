//! The agents of several clusters in one process, elsewhere than on those clusters. What happens to one of them does not concern the others.

use std::{fs, path::Path};

use drover_api::{cluster::ManagedCluster, names::CLUSTER_JOINED, work::ManifestWork};
use drover_testkit::{World, objects, wait};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use serde_json::json;

use super::{CLUSTER, Pair, cluster_says, config_map, killed::Process, says, work};
use crate::running::create;

drover_testkit::scenarios! {
    Own { several_agents_in_one_process_do_not_disturb_each_other }
}

/// Another cluster, and one whose server nobody can reach.
const OTHER: &str = "two";
const LOST: &str = "lost";

async fn several_agents_in_one_process_do_not_disturb_each_other(world: World) {
    let pair = Pair::without_agent(world).await;
    let (other, hosting) = (pair.hub.another().await, pair.hub.another().await);
    for cluster in [CLUSTER, OTHER, LOST] {
        create(&pair.clusters(), objects::cluster(cluster)).await;
    }
    let kubeconfigs = [(CLUSTER, pair.managed.kubeconfig()), (OTHER, other.kubeconfig())];
    let lost = pair.managed.kubeconfig().with_file_name("lost.kubeconfig");
    let text = fs::read_to_string(pair.managed.kubeconfig()).expect("there is a kubeconfig");
    // Nobody listens there.
    fs::write(&lost, text.replace("https://127.0.0.1:", "https://127.0.0.2:")).expect("the folder is writable");
    let entry = |name: &str, kubeconfig: &Path| json!({ "clusterName": name, "kubeconfig": kubeconfig, "bootstrapKubeconfig": pair.bootstrap, "namespace": format!("agent-of-{name}") });
    let mut entries: Vec<_> = kubeconfigs.iter().map(|(name, kubeconfig)| entry(name, kubeconfig)).collect();
    entries.insert(0, entry(LOST, &lost));
    let file = lost.with_file_name("clusters.yaml");
    // JSON is YAML.
    fs::write(&file, json!(entries).to_string()).expect("the folder is writable");
    let process = Process::of_several(&file, hosting.kubeconfig());

    for (cluster, managed) in [(CLUSTER, &pair.managed), (OTHER, &other)] {
        let clusters = Api::<ManagedCluster>::all(pair.hub.client());
        wait::until(&clusters, cluster, "it has joined", |it| {
            cluster_says(it, CLUSTER_JOINED, "True", "ManagedClusterJoined")
        })
        .await;
        let works = Api::<ManifestWork>::namespaced(pair.hub.client(), cluster);
        let manifests = json!({ "workload": { "manifests": [config_map(cluster, &json!({}))] } });
        create(&works, work("w", &manifests)).await;
        wait::until(&works, "w", "it is applied", |work| says(work, "Applied", "True")).await;
        let maps = Api::<ConfigMap>::namespaced(managed.client(), "default");
        maps.get(cluster).await.expect("it is on its cluster");
        // The credentials are where the process has its own objects, and not on the cluster.
        let home = format!("agent-of-{cluster}");
        let secrets = |world: &World| Api::<Secret>::namespaced(world.client(), &home);
        secrets(&hosting).get("hub-kubeconfig-secret").await.expect("the agent's credentials are there");
        assert!(secrets(managed).get_opt("hub-kubeconfig-secret").await.expect("it can be looked for").is_none());
    }
    drop(process);
    pair.end().await;
}
