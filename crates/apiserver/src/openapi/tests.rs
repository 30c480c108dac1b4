use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Definitions, document, documents, index};
use crate::{
    kind::{Kind, Origin, Scale, Scope, Subresources, Version},
    schema::Schema,
};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn kind(group: &str, version: &str, kind: &str, origin: Origin, openapi: Value) -> Kind {
    let scale = Scale { spec_replicas: String::new(), status_replicas: String::new(), label_selector: None };
    let subresources = Subresources { status: true, scale: Some(scale), others: Vec::new() };
    let version = Version {
        name: version.to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::new(Schema::default()),
        openapi: Arc::new(openapi),
        columns: Vec::new(),
        subresources,
        selectable_fields: Vec::new(),
    };
    let singular = kind.to_lowercase();
    Kind {
        group: group.to_owned(),
        plural: format!("{singular}s"),
        singular,
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: vec![version],
        origin,
    }
}

fn thing() -> Kind {
    let schema = json!({
        "type": "object",
        "description": "A thing.",
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {
                "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            }},
        },
    });
    let mut thing = kind("addon.example.com", "v1alpha1", "Thing", Origin::Custom, schema);
    thing.versions[0].selectable_fields = vec![".spec.color".to_owned()];
    thing
}

fn definitions() -> Definitions {
    let text = json!({"type": "string", "description": "In words."});
    let definitions = json!({
        (format!("{META}.ObjectMeta")): {"type": "object", "properties": {
            "creationTimestamp": {"description": "When.", "$ref": format!("#/definitions/{META}.Time")},
        }},
        (format!("{META}.Time")): {"type": "string", "format": "date-time"},
        (format!("{META}.Status")): {"type": "object", "properties": {"apiVersion": text, "kind": text}},
        (format!("{META}.Unused")): {"type": "object"},
        "io.k8s.api.core.v1.Pod": {
            "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
        },
    });
    definitions.as_object().cloned().unwrap_or_else(Map::new)
}

fn read(kind: Kind) -> Value {
    let (group, version) = (kind.group.clone(), kind.versions[0].name.clone());
    let document = document(&[Arc::new(kind)], &group, &version, &definitions()).unwrap();
    serde_json::from_str(&document.text).unwrap()
}

#[test]
fn custom_kinds_are_named_by_their_group_backwards() {
    let document = read(thing());
    let schema = &document["components"]["schemas"]["com.example.addon.v1alpha1.Thing"];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "addon.example.com", "version": "v1alpha1", "kind": "Thing"}])
    );
    assert_eq!(schema["properties"]["apiVersion"], json!({"type": "string", "description": "In words."}));
    let metadata = json!([{"$ref": format!("#/components/schemas/{META}.ObjectMeta")}]);
    assert_eq!(schema["properties"]["metadata"]["allOf"], metadata);
    assert_eq!(schema["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
    let inner = &schema["properties"]["spec"]["properties"]["inner"];
    assert_eq!(inner["required"], json!(["kind", "apiVersion"]));
    assert_eq!(inner["properties"]["metadata"]["allOf"], metadata);
    let list = &document["components"]["schemas"]["com.example.addon.v1alpha1.ThingList"];
    let items = json!({"$ref": "#/components/schemas/com.example.addon.v1alpha1.Thing"});
    assert_eq!(list["properties"]["items"]["items"], items);
}

#[test]
fn a_custom_kind_without_a_schema_may_be_anything() {
    let document = read(kind("example.com", "v1", "Bag", Origin::Custom, Value::Null));
    assert_eq!(
        document["components"]["schemas"]["com.example.v1.Bag"],
        json!({
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Bag"}],
        })
    );
}

#[test]
fn everything_that_is_referred_to_is_there() {
    let document = read(thing());
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert_eq!(
        schemas[&format!("{META}.ObjectMeta")]["properties"]["creationTimestamp"],
        json!({"description": "When.", "allOf": [{"$ref": format!("#/components/schemas/{META}.Time")}]})
    );
    assert!(schemas.contains_key(&format!("{META}.Time")));
    assert!(!schemas.contains_key(&format!("{META}.Unused")));
    assert_eq!(schemas[&format!("{META}.Patch")], json!({"type": "object"}));
}

#[test]
fn built_in_kinds_keep_their_names() {
    let pod = read(kind("", "v1", "Pod", Origin::BuiltIn, json!({"type": "object"})));
    assert!(pod["components"]["schemas"].get("io.k8s.api.core.v1.Pod").is_some());
    assert!(pod["paths"].get("/api/v1/namespaces/{namespace}/pods/{name}").is_some());
    let role = read(kind("rbac.authorization.k8s.io", "v1", "Role", Origin::BuiltIn, json!({"type": "object"})));
    assert!(role["components"]["schemas"].get("io.k8s.api.rbac.v1.Role").is_some());
}

#[test]
fn clients_find_out_what_they_may_send() {
    let document = read(thing());
    let root = "/apis/addon.example.com/v1alpha1";
    let one = &document["paths"][format!("{root}/namespaces/{{namespace}}/things/{{name}}")];
    let own = json!({"group": "addon.example.com", "version": "v1alpha1", "kind": "Thing"});
    for method in ["get", "put", "patch", "delete"] {
        assert_eq!(one[method]["x-kubernetes-group-version-kind"], own);
    }
    let names = |operation: &Value| -> Vec<String> {
        let parameters = operation["parameters"].as_array().unwrap();
        parameters.iter().map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&one["patch"]), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(names(one), ["name", "namespace", "pretty"]);
    let patches = |document: &Value, path: &str| -> bool {
        let content = &document["paths"][path]["patch"]["requestBody"]["content"];
        content.get("application/strategic-merge-patch+json").is_some()
    };
    assert!(!patches(&document, &format!("{root}/namespaces/{{namespace}}/things/{{name}}")));
    let pod = read(kind("", "v1", "Pod", Origin::BuiltIn, json!({"type": "object"})));
    assert!(patches(&pod, "/api/v1/namespaces/{namespace}/pods/{name}"));
    assert!(patches(&pod, "/api/v1/namespaces/{namespace}/pods/{name}/status"));
    assert_eq!(document["paths"][format!("{root}/things")]["get"]["x-kubernetes-action"], "list");
}

#[test]
fn a_review_can_only_be_created() {
    let review = kind("authorization.k8s.io", "v1", "SubjectAccessReview", Origin::Review, json!({"type": "object"}));
    let document = read(Kind { scope: Scope::Cluster, ..review });
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/apis/authorization.k8s.io/v1/subjectaccessreviews"]);
    let path = &document["paths"]["/apis/authorization.k8s.io/v1/subjectaccessreviews"];
    assert_eq!(path.as_object().unwrap().keys().collect::<Vec<_>>(), ["parameters", "post"]);
}

#[test]
fn the_index_leads_to_each_document_as_it_is() {
    let pod = kind("", "v1", "Pod", Origin::BuiltIn, json!({"type": "object"}));
    let kinds = [Arc::new(thing()), Arc::new(pod)];
    let all = documents(&kinds, &definitions(), &[]);
    let index = index(&all);
    let paths: Vec<_> = index["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["api/v1", "apis/addon.example.com/v1alpha1"]);
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap();
    let hash = url.strip_prefix("/openapi/v3/api/v1?hash=").unwrap();
    assert_eq!(hash.len(), 64);
    let mut changed = thing();
    changed.versions[0].openapi = Arc::new(json!({"type": "object"}));
    let changed = document(&[Arc::new(changed)], "addon.example.com", "v1alpha1", &definitions()).unwrap();
    assert_ne!(changed.hash, all[1].hash);
    assert_eq!(document(&kinds, "example.com", "v1", &definitions()), None);
}
