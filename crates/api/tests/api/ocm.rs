//! Whoever speaks to OCM's hub can say the same to Drover's: our definitions take what OCM's take, and mean the same.

mod definitions;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::{Map, Value, json};

use self::definitions::{OCM_API, ocm_definitions};
use crate::schema::{fields, root};

/// Where ours differ on purpose: the place, with `*` for anything, the keyword, and what ours has there.
const INTENDED: [(&str, &str, &str); 25] = [
    // Rules read these names, and the API server refuses rules on texts without a bound. Kubernetes has no longer names.
    ("*.group", "maxLength", "253"),
    ("*.resource", "maxLength", "253"),
    ("*.namespace", "maxLength", "253"),
    ("*.name", "maxLength", "253"),
    // Rules walk over these lists, or over lists inside them.
    ("ClusterManagementAddOn * .spec.installStrategy.placements", "maxItems", "100"),
    ("ManifestWorkReplicaSet * .spec.placementRefs", "maxItems", "100"),
    ("ClusterManagementAddOn * .spec.supportedConfigs", "maxItems", "64"),
    ("ClusterManagementAddOn * .spec.defaultConfigs", "maxItems", "64"),
    ("ClusterManagementAddOn * .spec.installStrategy.placements[].configs", "maxItems", "64"),
    ("ManagedClusterAddOn * .spec.configs", "maxItems", "64"),
    // Rules read these durations and counts; some of the rules stand for patterns of OCM's.
    ("*.rolloutStrategy.*.minSuccessTime", "maxLength", "64"),
    ("*.rolloutStrategy.*.progressDeadline", "maxLength", "64"),
    ("*.rolloutStrategy.*.maxFailures", "maxLength", "16"),
    ("*.rolloutStrategy.progressive.maxConcurrency", "maxLength", "16"),
    ("Placement * .spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup", "maxLength", "16"),
    // Without a spec these say nothing.
    ("ManagedClusterSetBinding * .spec", "required", "true"),
    ("ClusterClaim * .spec", "required", "true"),
    ("ManifestWork * .spec", "required", "true"),
    ("AppliedManifestWork * .spec", "required", "true"),
    ("ManifestWorkReplicaSet * .spec", "required", "true"),
    // OCM's webhook demands that the set is named.
    ("ManagedClusterSetBinding * .spec.clusterSet", "required", "true"),
    // A cluster without a spec gets the defaults of the spec's fields.
    ("ManagedCluster * .spec", "default", "{}"),
    // OCM counts in Go's int, which is an int64 but has no format in a schema.
    ("ManifestWorkReplicaSet * .status.summary.*", "format", "int64"),
    ("ManifestWorkReplicaSet * .status.placementSummary[].summary.*", "format", "int64"),
    // The same texts match with one more pair of parentheses, as taints and tolerations have them.
    (
        "Placement * .spec.spreadPolicy.spreadConstraints[].topologyKey",
        "pattern",
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    ),
];

#[test]
fn what_ocm_takes_drover_takes() {
    let differences = compare(&ocm_definitions(), &drover_api::crds());
    let unintended = differences.iter().filter(|found| !INTENDED.iter().any(|entry| covers(entry, found)));
    let mut unintended: Vec<_> = unintended.map(Difference::to_string).collect();
    // OCM defines some kinds twice, and one difference to both is one.
    unintended.sort();
    unintended.dedup();
    assert!(unintended.is_empty(), "not as in {OCM_API}:\n{}", unintended.join("\n"));
    for entry in &INTENDED {
        assert!(differences.iter().any(|found| covers(entry, found)), "no longer a difference to OCM: {entry:?}");
    }
}

/// What OCM and Drover say differently about one thing.
struct Difference {
    /// The kind, and where they are told apart the version and the field.
    at: String,
    /// The part of the definition, mostly a keyword of the schema.
    keyword: String,
    ocm: String,
    ours: String,
}

impl Difference {
    fn new(at: &str, keyword: &str, ocm: &Value, ours: &Value) -> Self {
        Self { at: at.trim_end().into(), keyword: keyword.into(), ocm: text(ocm), ours: text(ours) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: OCM has {} {}, ours {}", self.at, self.keyword, self.ocm, self.ours)
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Everything about our definitions that a client of OCM's does not get along with.
fn compare(ocm: &[CustomResourceDefinition], ours: &[CustomResourceDefinition]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for theirs in ocm {
        if let Some(our) = ours.iter().find(|our| our.metadata.name == theirs.metadata.name) {
            differences.extend(compare_names(theirs, our));
            differences.extend(compare_versions(theirs, our));
        } else {
            let (kind, group) = (&theirs.spec.names.kind, json!(theirs.spec.group));
            differences.push(Difference::new(kind, "this kind in", &group, &Value::Null));
        }
    }
    for our in ours {
        differences.extend(versions_that_ocm_lacks(ocm, our));
    }
    differences
}

fn compare_names(ocm: &CustomResourceDefinition, ours: &CustomResourceDefinition) -> Vec<Difference> {
    let kind = &ocm.spec.names.kind;
    let mut differences = Vec::new();
    let (their_names, our_names) = (names(ocm), names(ours));
    for (what, name) in &their_names {
        if our_names[what] != *name {
            differences.push(Difference::new(kind, what, name, &our_names[what]));
        }
    }
    let short_names = ours.spec.names.short_names.as_deref().unwrap_or_default();
    for name in ocm.spec.names.short_names.iter().flatten() {
        if !short_names.contains(name) {
            differences.push(Difference::new(kind, "short name", &json!(name), &json!(short_names)));
        }
    }
    differences
}

/// The names by which clients find a kind, as the API server completes them.
fn names(crd: &CustomResourceDefinition) -> BTreeMap<&'static str, Value> {
    let names = &crd.spec.names;
    let singular = names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase());
    let list_kind = names.list_kind.clone().unwrap_or_else(|| format!("{}List", names.kind));
    BTreeMap::from([
        ("kind", json!(names.kind)),
        ("plural", json!(names.plural)),
        ("singular", json!(singular)),
        ("listKind", json!(list_kind)),
        ("scope", json!(crd.spec.scope)),
    ])
}

fn compare_versions(ocm: &CustomResourceDefinition, ours: &CustomResourceDefinition) -> Vec<Difference> {
    let kind = &ocm.spec.names.kind;
    let mut differences = Vec::new();
    for theirs in &ocm.spec.versions {
        let at = format!("{kind} {}", theirs.name);
        match ours.spec.versions.iter().find(|our| our.name == theirs.name) {
            Some(our) => {
                differences.extend(compare_version(&at, theirs, our));
                differences.extend(compare_schemas(&at, &root(theirs), &root(our)));
            }
            None => differences.push(Difference::new(kind, "version", &json!(theirs.name), &Value::Null)),
        }
    }
    differences
}

fn compare_version(
    at: &str,
    ocm: &CustomResourceDefinitionVersion,
    ours: &CustomResourceDefinitionVersion,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (what, theirs, our) in [("served", ocm.served, ours.served), ("storage", ocm.storage, ours.storage)] {
        if theirs != our {
            differences.push(Difference::new(at, what, &json!(theirs), &json!(our)));
        }
    }
    if has_status(ocm) && !has_status(ours) {
        differences.push(Difference::new(at, "subresource", &json!("status"), &Value::Null));
    }
    differences
}

fn has_status(version: &CustomResourceDefinitionVersion) -> bool {
    version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some())
}

/// The versions of ours that none of OCM's definitions of the kind has. There are two where a version came later.
fn versions_that_ocm_lacks(ocm: &[CustomResourceDefinition], ours: &CustomResourceDefinition) -> Vec<Difference> {
    let same_kind = ocm.iter().filter(|theirs| theirs.metadata.name == ours.metadata.name);
    let known: BTreeSet<_> = same_kind.flat_map(|theirs| &theirs.spec.versions).map(|version| &version.name).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let extra = ours.spec.versions.iter().map(|version| &version.name).filter(|name| !known.contains(name));
    extra.map(|name| Difference::new(&ours.spec.names.kind, "version", &Value::Null, &json!(name))).collect()
}

/// Everything that OCM's schema of a version takes and ours does not, or takes for something else. Fields that only
/// ours has are no difference.
fn compare_schemas(version: &str, ocm: &Value, ours: &Value) -> Vec<Difference> {
    let ours: BTreeMap<_, _> = fields(ours).into_iter().map(|field| (field.path, field.schema)).collect();
    let mut differences = Vec::new();
    for field in fields(ocm) {
        // Every object has these; the API server adds them to each schema itself.
        if [".apiVersion", ".kind", ".metadata"].contains(&field.path.as_str()) {
            continue;
        }
        let at = format!("{version} {}", field.path);
        if let Some(our) = ours.get(&field.path) {
            differences.extend(compare_keywords(&at, field.schema, our));
            differences.extend(compare_required(&at, field.schema, our));
            differences.extend(compare_rules(&at, field.schema, our));
        } else {
            let theirs = format!("of type {}", text(&field.schema["type"]));
            differences.push(Difference::new(&at, "a field", &json!(theirs), &Value::Null));
        }
    }
    differences
}

/// Keywords that say nothing about values, or that are compared field by field or entry by entry.
const COMPARED_ELSEWHERE: [&str; 6] =
    ["description", "items", "properties", "required", "title", "x-kubernetes-validations"];

fn compare_keywords(at: &str, ocm: &Value, ours: &Value) -> Vec<Difference> {
    let mut keywords: BTreeSet<_> = [ocm, ours].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
    keywords.retain(|keyword| !COMPARED_ELSEWHERE.contains(&keyword.as_str()));
    let differing = keywords.into_iter().filter(|keyword| !is_compatible(keyword, &ocm[*keyword], &ours[*keyword]));
    differing.map(|keyword| Difference::new(at, keyword, &ocm[keyword], &ours[keyword])).collect()
}

/// Whether what passes OCM's keyword also passes ours, and comes out the same. A keyword that is not set is null.
fn is_compatible(keyword: &str, ocm: &Value, ours: &Value) -> bool {
    let not_above = |unset: f64| ours.as_f64().unwrap_or(unset) <= ocm.as_f64().unwrap_or(unset);
    let not_below = |unset: f64| ours.as_f64().unwrap_or(unset) >= ocm.as_f64().unwrap_or(unset);
    match keyword {
        "minLength" | "minItems" | "minProperties" => not_above(0.0),
        "minimum" => not_above(f64::NEG_INFINITY),
        "maxLength" | "maxItems" | "maxProperties" | "maximum" => not_below(f64::INFINITY),
        "enum" => ocm.as_array().is_some_and(|values| values.iter().all(|value| holds(ours, value))),
        // Some patterns are rules in ours, whose messages say what to write instead.
        "pattern" => ours.is_null() || ours == ocm,
        // The values of a map are a field of their own.
        "additionalProperties" if ocm.is_object() => true,
        _ => ours == ocm,
    }
}

fn holds(list: &Value, value: &Value) -> bool {
    list.as_array().is_some_and(|values| values.contains(value))
}

/// The fields that ours demand and OCM's do not, each under its own path.
fn compare_required(at: &str, ocm: &Value, ours: &Value) -> Vec<Difference> {
    let demanded = ours["required"].as_array().into_iter().flatten();
    let added = demanded.filter(|name| !holds(&ocm["required"], name));
    added
        .map(|name| Difference::new(&format!("{at}.{}", text(name)), "required", &json!(false), &json!(true)))
        .collect()
}

/// The rules of OCM's that ours have not. What further rules ours have is not looked at here.
fn compare_rules(at: &str, ocm: &Value, ours: &Value) -> Vec<Difference> {
    let ours = rules(ours);
    let lost = rules(ocm).into_iter().filter(|rule| !ours.contains(rule));
    lost.map(|rule| Difference::new(at, "rule", &json!(rule), &Value::Null)).collect()
}

/// The CEL rules of one field, with one kind of quotes: both mean the same.
fn rules(schema: &Value) -> Vec<String> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules.map(|rule| text(&rule["rule"]).replace('"', "'")).collect()
}

fn covers((at, keyword, ours): &(&str, &str, &str), difference: &Difference) -> bool {
    matches(at, &difference.at) && *keyword == difference.keyword && *ours == difference.ours
}

/// Whether a text is as the pattern has it, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).any(|skipped| text.get(skipped..).is_some_and(|text| matches(rest, text)))
}

#[test]
fn a_narrower_or_other_schema_is_reported() {
    let number = |bounds: Value| with(&json!({ "type": "integer" }), &bounds);
    let string = |bounds: Value| with(&json!({ "type": "string" }), &bounds);
    let list = |marks: Value| with(&json!({ "type": "array", "items": { "type": "string" } }), &marks);
    let object = |marks: Value| with(&json!({ "type": "object", "properties": { "a": { "type": "string" } } }), &marks);
    let cases = [
        (object(json!({})), json!({ "type": "object" }), "Kind v1 .spec.a: OCM has a field of type string, ours none"),
        (list(json!({})), json!({ "type": "array" }), "Kind v1 .spec[]: OCM has a field of type string, ours none"),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            json!({ "type": "object" }),
            "Kind v1 .spec{}: OCM has a field of type string, ours none",
        ),
        (string(json!({})), number(json!({})), "Kind v1 .spec: OCM has type string, ours integer"),
        (number(json!({ "format": "int32" })), number(json!({})), "Kind v1 .spec: OCM has format int32, ours none"),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!({}),
            "Kind v1 .spec: OCM has x-kubernetes-int-or-string true, ours none",
        ),
        (
            string(json!({ "default": "1m" })),
            string(json!({ "default": "2m" })),
            "Kind v1 .spec: OCM has default 1m, ours 2m",
        ),
        (string(json!({ "default": "1m" })), string(json!({})), "Kind v1 .spec: OCM has default 1m, ours none"),
        (string(json!({})), string(json!({ "default": "1m" })), "Kind v1 .spec: OCM has default none, ours 1m"),
        (
            string(json!({ "enum": ["A", "B"] })),
            string(json!({ "enum": ["A", "C"] })),
            r#"Kind v1 .spec: OCM has enum ["A","B"], ours ["A","C"]"#,
        ),
        (string(json!({})), string(json!({ "enum": ["A"] })), r#"Kind v1 .spec: OCM has enum none, ours ["A"]"#),
        (object(json!({})), object(json!({ "required": ["a"] })), "Kind v1 .spec.a: OCM has required false, ours true"),
        (object(json!({})), object(json!({ "required": ["b"] })), "Kind v1 .spec.b: OCM has required false, ours true"),
        (
            string(json!({ "maxLength": 63 })),
            string(json!({ "maxLength": 62 })),
            "Kind v1 .spec: OCM has maxLength 63, ours 62",
        ),
        (string(json!({})), string(json!({ "maxLength": 63 })), "Kind v1 .spec: OCM has maxLength none, ours 63"),
        (string(json!({})), string(json!({ "minLength": 1 })), "Kind v1 .spec: OCM has minLength none, ours 1"),
        (number(json!({})), number(json!({ "minimum": 0 })), "Kind v1 .spec: OCM has minimum none, ours 0"),
        (number(json!({ "maximum": 9 })), number(json!({ "maximum": 8 })), "Kind v1 .spec: OCM has maximum 9, ours 8"),
        (list(json!({ "maxItems": 9 })), list(json!({ "maxItems": 8 })), "Kind v1 .spec: OCM has maxItems 9, ours 8"),
        (
            list(json!({ "x-kubernetes-list-type": "set" })),
            list(json!({ "x-kubernetes-list-type": "atomic" })),
            "Kind v1 .spec: OCM has x-kubernetes-list-type set, ours atomic",
        ),
        (
            object(json!({ "x-kubernetes-preserve-unknown-fields": true })),
            object(json!({})),
            "Kind v1 .spec: OCM has x-kubernetes-preserve-unknown-fields true, ours none",
        ),
        (string(json!({ "nullable": true })), string(json!({})), "Kind v1 .spec: OCM has nullable true, ours none"),
        (
            string(json!({ "pattern": "a" })),
            string(json!({ "pattern": "b" })),
            "Kind v1 .spec: OCM has pattern a, ours b",
        ),
        (string(json!({})), string(json!({ "pattern": "b" })), "Kind v1 .spec: OCM has pattern none, ours b"),
        (
            string(json!({ "x-kubernetes-validations": [{ "rule": "self != 'a'" }] })),
            string(json!({ "x-kubernetes-validations": [{ "rule": "self != 'b'" }] })),
            "Kind v1 .spec: OCM has rule self != 'a', ours none",
        ),
    ];
    for (ocm, ours, expected) in cases {
        assert_eq!(reported(&ocm, &ours), [expected]);
    }
}

#[test]
fn a_wider_schema_is_not_reported() {
    let ocm = json!({
        "type": "object",
        "required": ["name", "size"],
        "properties": {
            "name": { "type": "string", "pattern": "^a", "minLength": 2, "maxLength": 63 },
            "size": { "type": "string", "enum": ["S", "L"], "x-kubernetes-validations": [{ "rule": r#"self != "X""# }] },
        },
    });
    let ours = json!({
        "type": "object",
        "description": "In our own words.",
        "required": ["name"],
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 253 },
            "size": { "type": "string", "enum": ["S", "M", "L"], "x-kubernetes-validations": [{ "rule": "self != 'X'" }] },
            "colour": { "type": "string", "maxLength": 10 },
        },
    });
    assert!(reported(&ocm, &ours).is_empty());
}

type Alteration = fn(&mut CustomResourceDefinition);

#[test]
fn another_way_to_address_a_kind_is_reported() {
    let crds = drover_api::crds();
    let cluster = crds.iter().find(|crd| crd.spec.names.kind == "ManagedCluster").expect("there are clusters");
    let cases: [(Alteration, &[&str]); 8] = [
        (
            |ours| ours.metadata.name = None,
            &["ManagedCluster: OCM has this kind in cluster.open-cluster-management.io, ours none"],
        ),
        (|ours| ours.spec.scope = "Namespaced".into(), &["ManagedCluster: OCM has scope Cluster, ours Namespaced"]),
        (|ours| ours.spec.names.plural = "mcs".into(), &["ManagedCluster: OCM has plural managedclusters, ours mcs"]),
        (
            |ours| ours.spec.names.list_kind = Some("Clusters".into()),
            &["ManagedCluster: OCM has listKind ManagedClusterList, ours Clusters"],
        ),
        (
            |ours| ours.spec.names.short_names = Some(vec!["mcl".into()]),
            &[r#"ManagedCluster: OCM has short name mcls, ours ["mcl"]"#],
        ),
        (|ours| ours.spec.versions[0].storage = false, &["ManagedCluster v1: OCM has storage true, ours false"]),
        (
            |ours| ours.spec.versions[0].subresources = None,
            &["ManagedCluster v1: OCM has subresource status, ours none"],
        ),
        (
            |ours| ours.spec.versions[0].name = "v2".into(),
            &["ManagedCluster: OCM has version v1, ours none", "ManagedCluster: OCM has version none, ours v2"],
        ),
    ];
    for (alter, expected) in cases {
        let mut ours = cluster.clone();
        alter(&mut ours);
        let differences = compare(std::slice::from_ref(cluster), &[ours]);
        assert_eq!(differences.iter().map(Difference::to_string).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_star_stands_for_anything() {
    for pattern in ["Kind v1 .spec.name", "*.name", "Kind * .spec.name", "*.spec.*", "*"] {
        assert!(matches(pattern, "Kind v1 .spec.name"), "{pattern}");
    }
    for pattern in ["", ".name", "*.nam", "*.status.*", "Other * .spec.name", "Kind v1 .spec"] {
        assert!(!matches(pattern, "Kind v1 .spec.name"), "{pattern}");
    }
}

/// What is said about two schemas of a `.spec`.
fn reported(ocm: &Value, ours: &Value) -> Vec<String> {
    let root = |spec: &Value| json!({ "type": "object", "properties": { "spec": spec } });
    compare_schemas("Kind v1", &root(ocm), &root(ours)).iter().map(Difference::to_string).collect()
}

fn with(schema: &Value, keywords: &Value) -> Value {
    let both = [schema, keywords].into_iter().filter_map(Value::as_object).flatten();
    both.map(|(keyword, value)| (keyword.clone(), value.clone())).collect()
}
