//! The kinds that Drover brings itself, shown and described.

use std::{fs, path::Path, sync::Arc};

use drover_apiserver::{
    discovery,
    kind::{Column, Kind, Origin, Scope, Subresources, Version},
    openapi,
    schema::Schema,
    table::{self, Options},
};
use drover_engine::jsonpath::JsonPath;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

fn kinds() -> Vec<Arc<Kind>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let mut files: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |path: &Path| {
        let text = fs::read_to_string(path).expect("a file");
        serde_saphyr::from_str::<Value>(&text).expect("YAML")
    };
    files.iter().map(|file| Arc::new(kind(&read(file)))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn kind(definition: &Value) -> Kind {
    let spec = &definition["spec"];
    let names = &spec["names"];
    Kind {
        group: text(&spec["group"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        kind: text(&names["kind"]),
        list_kind: format!("{}List", text(&names["kind"])),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        scope: if spec["scope"] == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        versions: spec["versions"].as_array().into_iter().flatten().map(version).collect(),
        origin: Origin::Custom,
    }
}

fn version(version: &Value) -> Version {
    let schema = &version["schema"]["openAPIV3Schema"];
    let column = |column: &Value| Column {
        name: text(&column["name"]),
        type_: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or_default().try_into().unwrap_or_default(),
        path: text(&column["jsonPath"]),
    };
    Version {
        name: text(&version["name"]),
        is_served: version["served"] == true,
        is_stored: version["storage"] == true,
        deprecation: None,
        schema: Arc::new(Schema::read(schema, &|_| None)),
        openapi: Arc::new(schema.clone()),
        columns: version["additionalPrinterColumns"].as_array().into_iter().flatten().map(column).collect(),
        subresources: Subresources { status: version["subresources"]["status"].is_object(), ..Subresources::default() },
        selectable_fields: Vec::new(),
    }
}

#[test]
fn every_column_can_be_read() {
    for kind in kinds() {
        for column in kind.versions.iter().flat_map(|version| &version.columns) {
            assert!(JsonPath::parse(&column.path).is_ok(), "{} of {}", column.path, kind.kind);
        }
    }
}

#[test]
fn a_cluster_is_shown_as_kubectl_shows_it() {
    let kinds = kinds();
    let kind = kinds.iter().find(|kind| kind.kind == "ManagedCluster").unwrap();
    let condition = |type_: &str| json!({"type": type_, "status": "True"});
    let cluster = json!({
        "metadata": {
            "name": "cluster1",
            "labels": {"cluster.open-cluster-management.io/clusterset": "production"},
            "creationTimestamp": "2026-11-13T10:00:00Z",
        },
        "spec": {"hubAcceptsClient": true},
        "status": {
            "version": {"kubernetes": "v1.36.4"},
            "conditions": [condition("HubAcceptedManagedCluster"), condition("ManagedClusterJoined"),
                           condition("ManagedClusterConditionAvailable")],
        },
    });
    let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    let version = kind.version("v1").unwrap();
    let shown = table::table(kind, version, &[cluster], &json!({}), Options::default(), now);
    let cells = json!(["cluster1", true, "True", "True", "v1.36.4", "production", "3d2h", null]);
    assert_eq!(shown["rows"][0]["cells"], cells);
    let headings: Vec<_> = shown["columnDefinitions"].as_array().unwrap().iter().map(|it| text(&it["name"])).collect();
    assert_eq!(headings, ["Name", "Accepted", "Joined", "Available", "Version", "Set", "Age", "URLs"]);
}

#[test]
fn every_version_that_is_discovered_is_described() {
    let kinds = kinds();
    let documents = openapi::documents(&kinds, &Map::new(), &[]);
    let groups = discovery::group_list(&kinds);
    let versions = groups["groups"].as_array().unwrap().iter().flat_map(|group| group["versions"].as_array().unwrap());
    let mut discovered: Vec<_> = versions.map(|version| format!("apis/{}", text(&version["groupVersion"]))).collect();
    discovered.sort();
    assert_eq!(documents.iter().map(|document| document.path.clone()).collect::<Vec<_>>(), discovered);
    assert!(
        documents.iter().all(
            |document| document.text.contains("dev.drover") || document.text.contains("io.open-cluster-management")
        )
    );
}
