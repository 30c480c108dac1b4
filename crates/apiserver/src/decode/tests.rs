use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    kind::{Scope, Subresources},
    schema::Schema,
};

fn version(schema: Schema) -> Version {
    Version {
        name: "v1".to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::new(schema),
        openapi: Arc::new(Value::Null),
        columns: Vec::new(),
        subresources: Subresources::default(),
        selectable_fields: Vec::new(),
    }
}

fn kind(group: &str, name: &str, origin: Origin, schema: Schema) -> Kind {
    Kind {
        group: group.to_owned(),
        plural: format!("{}s", name.to_lowercase()),
        singular: name.to_lowercase(),
        kind: name.to_owned(),
        list_kind: format!("{name}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: vec![version(schema)],
        origin,
    }
}

/// A small Deployment.
fn deployment() -> Kind {
    let container = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "image": { "type": "string" },
        "ports": { "type": "array", "items": { "type": "object", "properties": {
            "containerPort": { "type": "integer", "format": "int32" },
            "target": { "type": "string", "format": "int-or-string" },
        }}},
    }});
    let spec = json!({ "type": "object", "properties": {
        "replicas": { "type": "integer", "format": "int32" },
        "paused": { "type": "boolean" },
        "selector": { "type": "object", "additionalProperties": { "type": "string" } },
        "containers": { "type": "array", "items": { "$ref": "#/definitions/io.k8s.api.core.v1.Container" } },
        "time": { "type": "string", "format": "date-time" },
        "data": { "type": "object", "additionalProperties": { "type": "string", "format": "byte" } },
    }});
    let read = |schema: &Value| Some(Arc::new(Schema::read(schema, &|_| None)));
    let inner = |name: &str| if name.ends_with("Container") { read(&container) } else { None };
    let definitions = |name: &str| {
        if name.ends_with("DeploymentSpec") { Some(Arc::new(Schema::read(&spec, &inner))) } else { inner(name) }
    };
    let schema = json!({ "type": "object", "properties": {
        "apiVersion": { "type": "string" }, "kind": { "type": "string" }, "metadata": { "type": "object" },
        "spec": { "$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec" },
    }});
    kind("apps", "Deployment", Origin::BuiltIn, Schema::read(&schema, &definitions))
}

fn foo() -> Kind {
    kind("example.com", "Foo", Origin::Custom, Schema::default())
}

fn problem(spec: &Value) -> String {
    let kind = deployment();
    let object = json!({ "kind": "Deployment", "spec": spec });
    check(&object, &kind, &kind.versions[0]).unwrap_err().message
}

#[test]
fn a_value_of_another_type_is_told_with_its_field() {
    let prefix = "Deployment in version \"v1\" cannot be handled as a Deployment: ";
    let told = |spec: Value| problem(&spec).strip_prefix(prefix).unwrap().to_owned();
    let expected = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
    assert_eq!(told(json!({ "replicas": "two" })), expected);
    let expected = "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32";
    assert_eq!(told(json!({ "replicas": 1.5 })), expected);
    let expected = "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string";
    assert_eq!(told(json!({ "containers": [{ "image": 1 }] })), expected);
    let expected =
        "json: cannot unmarshal object into Go struct field DeploymentSpec.spec.containers of type []v1.Container";
    assert_eq!(told(json!({ "containers": {} })), expected);
    let expected = "json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.selector of type string";
    assert_eq!(told(json!({ "selector": { "a": true } })), expected);
    let expected = "json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec";
    assert_eq!(told(json!("x")), expected);
}

#[test]
fn what_has_a_reader_of_its_own_is_told_in_its_words() {
    let told = |spec: Value| problem(&spec).split_once("as a Deployment: ").unwrap().1.to_owned();
    let expected = "parsing time \"soon\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"soon\" as \"2006\"";
    assert_eq!(told(json!({ "time": "soon" })), expected);
    let expected = "json: cannot unmarshal number into Go struct field DeploymentSpec.spec.time of type string";
    assert_eq!(told(json!({ "time": 1 })), expected);
    assert_eq!(told(json!({ "data": { "a": "ab!d" } })), "illegal base64 data at input byte 2");
    assert_eq!(told(json!({ "data": { "a": "abcde" } })), "illegal base64 data at input byte 4");
    assert_eq!(told(json!({ "data": { "a": "ab=d" } })), "illegal base64 data at input byte 2");
    assert_eq!(told(json!({ "data": { "a": "a===" } })), "illegal base64 data at input byte 1");
    let target = json!({ "containers": [{ "ports": [{ "target": true }] }] });
    assert!(told(target).ends_with(".spec.containers.ports.target of type int32"));
}

#[test]
fn right_values_and_nothing_are_fine() {
    let kind = deployment();
    let object = json!({ "spec": {
        "replicas": 1, "paused": null, "time": "2024-01-02T03:04:05Z", "data": { "a": "YQ==", "b": "YWI=" },
        "containers": [{ "name": "a", "ports": [{ "target": "http" }, { "target": 80 }] }],
    }});
    assert_eq!(check(&object, &kind, &kind.versions[0]), Ok(()));
}

#[test]
fn fields_that_the_kind_does_not_have_are_dropped_and_told() {
    let kind = deployment();
    let mut object = json!({ "metadata": { "name": "a" }, "foo": 1, "spec": {
        "bar": {}, "containers": [{ "name": "", "image": "", "baz": 1, "ports": [] }], "selector": {}, "paused": null,
    }});
    let found = trim(&mut object, &kind.versions[0].schema);
    let expected = ["unknown field \"foo\"", "unknown field \"spec.bar\"", "unknown field \"spec.containers[0].baz\""];
    assert_eq!(found, expected);
    assert_eq!(object, json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "" }] } }));
}

#[test]
fn zero_stays_where_it_is_not_nothing() {
    let kind = deployment();
    let mut object = json!({ "spec": { "replicas": 0, "paused": false } });
    trim(&mut object, &kind.versions[0].schema);
    assert_eq!(object, json!({ "spec": { "replicas": 0 } }));
}

#[test]
fn strictness_decides_what_becomes_of_them() {
    let (kind, object) = (deployment(), json!({ "kind": "Deployment" }));
    let found = || vec!["unknown field \"spec.foo\"".to_owned(), "duplicate field \"spec.bar\"".to_owned()];
    assert_eq!(Strictness::Ignore.judge(&object, &kind, "v1", found()), Ok(Vec::new()));
    assert_eq!(Strictness::Warn.judge(&object, &kind, "v1", found()), Ok(found()));
    let failure = Strictness::Strict.judge(&object, &kind, "v1", found()).unwrap_err();
    let expected = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \
        \"spec.foo\", duplicate field \"spec.bar\"";
    assert_eq!((failure.code, failure.message.as_str()), (400, expected));
}

#[test]
fn what_is_no_json_is_told_where() {
    let told = |text: &str| read_json(text.as_bytes()).unwrap_err();
    assert_eq!(told(""), "unexpected end of JSON input");
    assert_eq!(told("{"), "unexpected end of JSON input");
    assert_eq!(told("x"), "invalid character 'x' looking for beginning of value");
    assert_eq!(told("{a"), "invalid character 'a' looking for beginning of object key string");
    assert_eq!(told("{\"a\" 1}"), "invalid character '1' after object key");
    assert_eq!(told("{\"a\":1 \"b\""), "invalid character '\"' after object key:value pair");
    assert_eq!(told("{\"a\":1,}"), "invalid character '}' looking for beginning of object key string");
    assert_eq!(told("[1 2]"), "invalid character '2' after array element");
    assert_eq!(told("{} x"), "invalid character 'x' after top-level value");
    assert_eq!(told("trve"), "invalid character 'v' in literal true (expecting 'u')");
    assert_eq!(told("-a"), "invalid character 'a' in numeric literal");
    assert_eq!(told("1.a"), "invalid character 'a' after decimal point in numeric literal");
    assert_eq!(told("1ea"), "invalid character 'a' in exponent of numeric literal");
    assert_eq!(told("[01]"), "invalid character '1' after array element");
    assert_eq!(told("\"\\x\""), "invalid character 'x' in string escape code");
    assert_eq!(told("\"\\u00g0\""), "invalid character 'g' in \\u hexadecimal character escape");
    assert_eq!(told("\"a\nb\""), "invalid character '\\n' in string literal");
}

#[test]
fn fields_that_are_said_twice_are_told_with_their_place() {
    let text = r#"{"a":{"b":1,"b":2},"l":[{"c":1},{"c":1,"c":2}],"a":3}"#;
    let (value, twice) = read_json(text.as_bytes()).unwrap();
    assert_eq!(twice, ["duplicate field \"a.b\"", "duplicate field \"l[1].c\"", "duplicate field \"a\""]);
    assert_eq!(value["a"], 3);
}

#[test]
fn what_can_not_be_read_is_shown() {
    let failure = json(b"{\"kind\": \"Deployment\", \"spec\": x}", &deployment()).unwrap_err();
    let expected = "the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse \
        error: invalid character 'x' looking for beginning of value ({\"kind\": \"Deployment\", \"spec\": ...)";
    assert_eq!(failure.message, expected);
    let failure = json(b"", &deployment()).unwrap_err();
    assert!(failure.message.ends_with("json parse error: unexpected end of JSON input (<empty>)"));
    let failure = json(b"hi", &deployment()).unwrap_err();
    assert!(failure.message.ends_with("(6869)"), "{}", failure.message);
}

#[test]
fn yaml_is_read_as_well() {
    let (value, _) = yaml(b"kind: Deployment\nspec:\n  replicas: 2\n", &deployment()).unwrap();
    assert_eq!(value, json!({ "kind": "Deployment", "spec": { "replicas": 2 } }));
    assert_eq!(yaml(b"a: [", &deployment()).unwrap_err().code, 400);
}

fn identified(object: &Value, kind: &Kind) -> Result<Value, String> {
    let mut object = object.clone();
    let body = object.to_string();
    let is_known = |version: &str, kind: &str| version == "v1" && kind == "Secret";
    identify(&mut object, kind, "v1", body.as_bytes(), &is_known).map_err(|failure| failure.message)?;
    Ok(object)
}

#[test]
fn objects_of_built_in_kinds_need_not_say_what_they_are() {
    let object = identified(&json!({}), &deployment()).unwrap();
    assert_eq!(object, json!({ "apiVersion": "apps/v1", "kind": "Deployment" }));
}

#[test]
fn objects_of_another_kind_are_told_so() {
    let told = identified(&json!({ "apiVersion": "v1", "kind": "Secret" }), &deployment()).unwrap_err();
    let expected = "Secret in version \"v1\" cannot be handled as a Deployment: converting (v1.Secret) to (apps.Deployment): unknown conversion";
    assert_eq!(told, expected);
    let told = identified(&json!({ "apiVersion": "apps/v2", "kind": "Deployment" }), &deployment()).unwrap_err();
    let expected = "Deployment in version \"v2\" cannot be handled as a Deployment: no kind \"Deployment\" is registered for version \
        \"apps/v2\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"";
    assert_eq!(told, expected);
}

#[test]
fn objects_of_custom_kinds_say_what_they_are() {
    let told = identified(&json!({ "a": 1 }), &foo()).unwrap_err();
    let expected = "the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in '{\"a\":1}' ({\"a\":1})";
    assert_eq!(told, expected);
    let told = identified(&json!({ "kind": "Foo", "apiVersion": "example.com/v2" }), &foo()).unwrap_err();
    let expected =
        "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)";
    assert_eq!(told, expected);
    let told = identified(&json!({ "kind": 1 }), &foo()).unwrap_err();
    assert!(told.contains("json: cannot unmarshal number into Go struct field .kind of type string"), "{told}");
}

#[test]
fn metadata_is_a_record_in_all_kinds() {
    let foo = foo();
    let object = json!({ "kind": "Foo", "metadata": { "labels": { "a": 1 } } });
    let told = check(&object, &foo, &foo.versions[0]).unwrap_err().message;
    let expected = "Foo in version \"v1\" cannot be handled as a Foo: json: cannot unmarshal number into Go struct field \
        ObjectMeta.labels of type string";
    assert_eq!(told, expected);
    let object = json!({ "kind": "Foo", "metadata": { "ownerReferences": [{ "name": 1 }] } });
    let told = check(&object, &foo, &foo.versions[0]).unwrap_err().message;
    assert!(told.ends_with("Go struct field OwnerReference.ownerReferences.name of type string"), "{told}");
    let mut object = json!({ "metadata": { "name": "a", "foo": 1 }, "other": 1 });
    assert_eq!(tidy_metadata(&mut object), ["unknown field \"metadata.foo\""]);
    assert_eq!(object, json!({ "metadata": { "name": "a" }, "other": 1 }));
}

#[test]
fn bodies_that_nest_too_deeply_are_not_read() {
    let limit = crate::depth::MAX_DEPTH;
    let braces = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let brackets = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let blocks = |levels: usize| format!("{}1", "- ".repeat(levels));
    let indented = |levels: usize| (0..levels).map(|at| " ".repeat(at) + "a:\n").collect::<String>();
    let expected = "exceeded max depth: objects nest at most 100 levels".to_owned();
    for text in [braces, brackets] as [fn(usize) -> String; 2] {
        for read in [read_json, read_yaml] as [fn(&[u8]) -> Result<Read, String>; 2] {
            assert!(read(text(limit).as_bytes()).is_ok());
            for levels in [limit + 1, limit + 11, 200, 256, 7000, 1_000_000] {
                assert_eq!(read(text(levels).as_bytes()), Err(expected.clone()), "{levels} levels");
            }
        }
    }
    for levels in [limit + 1, limit + 11, 200, 1000] {
        assert_eq!(read_yaml(blocks(levels).as_bytes()), Err(expected.clone()), "{levels} levels");
        assert_eq!(read_yaml(indented(levels).as_bytes()), Err(expected.clone()), "{levels} levels");
    }
    assert!(read_yaml(blocks(limit).as_bytes()).is_ok() && read_yaml(indented(limit).as_bytes()).is_ok());
}

/// An alias nests what it stands for.
#[test]
fn aliases_can_not_nest_deeper_than_the_limit() {
    let lists = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let text = |levels: usize| format!("a: &a {}\nb: &b {}\nc: [*b]\n", lists(50), lists(levels).replace('1', "*a"));
    assert!(read_yaml(text(48).as_bytes()).is_ok());
    for levels in [49, 90] {
        let problem = read_yaml(text(levels).as_bytes()).unwrap_err();
        assert!(problem.contains("exceeded max depth"), "{problem}");
    }
}

#[test]
fn null_in_maps_and_lists_of_texts_is_an_empty_text() {
    let mut object = json!({ "metadata": {
        "name": "a", "labels": { "a": null, "b": "c" }, "annotations": { "x": null }, "finalizers": [null, "a/b"],
    }});
    assert!(tidy_metadata(&mut object).is_empty());
    let expected = json!({ "metadata": {
        "name": "a", "labels": { "a": "", "b": "c" }, "annotations": { "x": "" }, "finalizers": ["", "a/b"],
    }});
    assert_eq!(object, expected);
}

/// A body that has one name of 1.5 MB around many fields is read once, not once for each field.
#[test]
fn long_name_around_many_fields_is_cheap() {
    let fields: Vec<_> = (0..100_000).map(|at| format!("\"{at}\":1,\"a\":{{\"x\":1,\"x\":1}}")).collect();
    let body = format!("{{\"{}\":{{{}}}}}", "n".repeat(1_500_000), fields.join(","));
    let (_, twice) = read_json(body.as_bytes()).expect("it is JSON");
    assert_eq!(twice.len(), 1);
}
