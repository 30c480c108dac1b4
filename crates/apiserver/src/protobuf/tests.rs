use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A field with bytes, which may be a message of its own.
fn field(number: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes = vec![number << 3 | 2];
    bytes.extend(varint(content.len() as u64));
    bytes.extend(content);
    bytes
}

/// A field with a number.
fn number(number: u8, value: i64) -> Vec<u8> {
    let mut bytes = vec![number << 3];
    bytes.extend(varint(value.cast_unsigned()));
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn sent(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let type_meta = field(1, [field(1, api_version), field(2, kind)].concat());
    [b"k8s\0".to_vec(), type_meta, field(2, message), field(3, ""), field(4, "")].concat()
}

fn read(api_version: &str, kind: &str, message: &[u8]) -> Value {
    decode(&sent(api_version, kind, message)).unwrap_or_else(|failure| panic!("{}", failure.message))
}

/// What kubectl sends to create a namespace: everything is there, whether it says something or not.
#[test]
fn what_says_nothing_is_not_in_json() {
    let metadata = [
        field(1, "one"),
        field(2, ""),
        field(3, ""),
        field(4, ""),
        field(5, ""),
        field(6, ""),
        number(7, 0),
        field(8, ""),
        field(11, [field(1, "key"), field(2, "")].concat()),
    ]
    .concat();
    let message = [field(1, metadata), field(2, ""), field(3, field(1, ""))].concat();
    let expected = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "one", "labels": { "key": "" } }, "spec": {}, "status": {},
    });
    assert_eq!(read("v1", "Namespace", &message), expected);
}

#[test]
fn what_go_always_writes_is_in_json() {
    let expected = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {}, "rules": null,
    });
    assert_eq!(read("rbac.authorization.k8s.io/v1", "ClusterRole", &[]), expected);
    let service = [field(1, ""), field(2, field(1, ""))].concat();
    let port = json!({ "port": 0, "targetPort": 0 });
    assert_eq!(read("v1", "Service", &service)["spec"], json!({ "ports": [port] }));
}

#[test]
fn bytes_are_base64_and_nothing_at_all_is_an_empty_text() {
    let entry = |key: &str, value: &[u8]| field(2, [field(1, key), field(2, value)].concat());
    let message = [entry("a", b"\0\xff"), entry("b", b""), field(2, field(1, "c"))].concat();
    assert_eq!(read("v1", "Secret", &message)["data"], json!({ "a": "AP8=", "b": "", "c": "" }));
}

#[test]
fn times_are_texts() {
    let time = |seconds, nanoseconds| [number(1, seconds), number(2, nanoseconds)].concat();
    let metadata = field(1, [field(8, time(1_767_323_045, 678_900_000)), field(9, time(-1, 0))].concat());
    let lease = |renewed: Vec<u8>| {
        read("coordination.k8s.io/v1", "Lease", &[metadata.clone(), field(2, field(4, renewed))].concat())
    };
    let read = lease(time(1_767_323_045, 678_900_999));
    assert_eq!(read["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(read["metadata"]["deletionTimestamp"], "1969-12-31T23:59:59Z");
    assert_eq!(read["spec"]["renewTime"], "2026-01-02T03:04:05.678900Z");
    assert_eq!(lease(time(0, 0))["spec"]["renewTime"], "1970-01-01T00:00:00.000000Z");
    assert_eq!(lease(Vec::new())["spec"]["renewTime"], Value::Null);
}

#[test]
fn quantities_and_what_is_a_number_or_a_text_are_what_they_were() {
    let quantity = |number, text| field(number, [field(1, "cpu"), field(2, field(1, text))].concat());
    let probe = |is: Vec<u8>| [field(1, field(2, field(2, is))), number(2, 0), number(4, 3)].concat();
    let container = |is: Vec<u8>| [field(1, "a"), field(8, quantity(1, "100m")), field(10, probe(is))].concat();
    let pod = |is: Vec<u8>| read("v1", "Pod", &field(2, field(2, container(is))))["spec"]["containers"][0].clone();
    let by_name = pod([number(1, 1), number(2, 0), field(3, "web")].concat());
    assert_eq!(by_name["resources"], json!({ "limits": { "cpu": "100m" } }));
    assert_eq!(by_name["livenessProbe"], json!({ "httpGet": { "port": "web" }, "periodSeconds": 3 }));
    assert_eq!(pod([number(1, 0), number(2, 80)].concat())["livenessProbe"]["httpGet"]["port"], 80);
    assert_eq!(pod(number(1, 0))["livenessProbe"]["httpGet"]["port"], 0);
}

#[test]
fn json_within_protobuf_is_json() {
    let revision = |data: Vec<u8>| decode(&sent("apps/v1", "ControllerRevision", &field(2, data)));
    assert_eq!(revision(field(1, r#"{"a":[1.5]}"#)).unwrap()["data"], json!({ "a": [1.5] }));
    assert_eq!(revision(Vec::new()).unwrap()["data"], Value::Null);
    assert_eq!(revision(field(1, "{")).unwrap_err().code, 400);
}

#[test]
fn a_schema_is_what_was_chosen() {
    let schema = |fields: Vec<u8>| {
        let version = field(4, field(1, fields));
        let read = read("apiextensions.k8s.io/v1", "CustomResourceDefinition", &field(2, field(7, version)));
        read["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    };
    // Numbers above 15 take two bytes.
    let far = |number: u16, content: Vec<u8>| {
        [varint(u64::from(number) << 3 | 2), varint(content.len() as u64), content].concat()
    };
    let text = field(5, "string");
    assert_eq!(schema(far(30, number(1, 1))), json!({ "additionalProperties": true }));
    assert_eq!(schema(far(30, number(1, 0))), json!({ "additionalProperties": false }));
    let both = [number(1, 1), field(2, &text)].concat();
    assert_eq!(schema(far(30, both)), json!({ "additionalProperties": { "type": "string" } }));
    assert_eq!(schema(far(24, field(1, &text))), json!({ "items": { "type": "string" } }));
    assert_eq!(
        schema(far(24, [field(2, &text), field(2, "")].concat())),
        json!({ "items": [{ "type": "string" }, {}] })
    );
    let maximum = |number: f64| [vec![9 << 3 | 1], number.to_le_bytes().to_vec()].concat();
    assert_eq!(schema(maximum(5.0)).to_string(), r#"{"maximum":5}"#);
    assert_eq!(schema(maximum(0.5)), json!({ "maximum": 0.5 }));
    assert_eq!(schema(far(20, field(1, "\"a\""))), json!({ "enum": ["a"] }));
}

#[test]
fn a_list_of_its_own_type_is_a_list() {
    let extra = [field(1, "scopes"), field(2, [field(1, "a"), field(1, "b")].concat())].concat();
    let review = field(2, [field(3, "somebody"), field(5, extra)].concat());
    let read = read("authorization.k8s.io/v1", "SubjectAccessReview", &review);
    assert_eq!(read["spec"], json!({ "user": "somebody", "extra": { "scopes": ["a", "b"] } }));
    assert_eq!(read["status"], json!({ "allowed": false }));
}

#[test]
fn numbers_may_be_packed() {
    let pod = |groups: Vec<u8>| read("v1", "Pod", &field(2, field(14, groups)))["spec"]["securityContext"].clone();
    let single = [number(4, 1), number(4, 300)].concat();
    assert_eq!(pod(single), json!({ "supplementalGroups": [1, 300] }));
    assert_eq!(pod(field(4, [varint(1), varint(300)].concat())), json!({ "supplementalGroups": [1, 300] }));
}

#[test]
fn options_of_a_deletion_are_the_same_in_every_group() {
    let message = [number(1, 0), field(4, "Background")].concat();
    for api_version in ["v1", "apps/v1", "example.com/v1alpha1"] {
        let read = read(api_version, "DeleteOptions", &message);
        assert_eq!((&read["gracePeriodSeconds"], &read["propagationPolicy"]), (&json!(0), &json!("Background")));
    }
}

#[test]
fn unknown_fields_and_groups_are_skipped() {
    let group = [vec![15 << 3 | 3], field(1, "x"), vec![15 << 3 | 4]].concat();
    let message = [group, number(14, 1), vec![13 << 3 | 5, 0, 0, 0, 0], field(1, field(1, "one"))].concat();
    assert_eq!(read("v1", "ConfigMap", &message)["metadata"], json!({ "name": "one" }));
}

#[test]
fn what_does_not_say_what_it_is_is_what_was_expected() {
    let body = [b"k8s\0".to_vec(), field(2, field(1, field(1, "one")))].concat();
    let expected = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" } });
    assert_eq!(decode_as(&body, "v1", "ConfigMap").unwrap(), expected);
}

/// The messages were seen on a real server.
#[test]
fn what_is_no_protobuf_fails_as_on_a_real_server() {
    let unrecognized = |why: &str| format!("the object provided is unrecognized (must be of type ConfigMap): {why}");
    let unhandled = |what: &str, why: &str| format!("{what} cannot be handled as a ConfigMap: {why}");
    let config = sent("v1", "ConfigMap", &[0x0a, 0x05]);
    let nonsense = [b"k8s\0\x12\x1b".to_vec(), vec![b'a'; 47]].concat();
    let cases: [(&[u8], String); 9] = [
        (b"", unrecognized("empty data (<empty>)")),
        (b"k8s\0", unrecognized("empty body (6b387300)")),
        (
            b"hello",
            unrecognized(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (68656c6c6f)",
            ),
        ),
        (b"k8s\0\x0a\xff", unrecognized("unexpected EOF (6b3873000aff)")),
        (&nonsense, unrecognized("unexpected EOF (6b387300121b616161616161616161616161616161616161616161616161 ...)")),
        (b"k8s\0\x12\x02ab", unhandled("ConfigMap in version \"v1\"", "unexpected EOF")),
        (&config, unhandled("ConfigMap in version \"v1\"", "unexpected EOF")),
        (
            b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Foo",
            unhandled(
                "Foo in version \"v1\"",
                "no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v2\x12\x09ConfigMap",
            unhandled(
                "ConfigMap in version \"v2\"",
                "no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
        ),
    ];
    for (body, message) in cases {
        assert_eq!(decode_as(body, "v1", "ConfigMap").unwrap_err(), Failure::bad_request(message));
    }
}

#[test]
fn what_is_nested_without_an_end_is_refused() {
    let mut schema = Vec::new();
    for _ in 0..10_000 {
        let not = varint(28 << 3 | 2);
        schema = [not, varint(schema.len() as u64), schema].concat();
    }
    let message = field(2, field(7, field(4, field(1, schema))));
    let failure = decode(&sent("apiextensions.k8s.io/v1", "CustomResourceDefinition", &message)).unwrap_err();
    assert!(failure.message.ends_with("nest at most 100 levels"), "{}", failure.message);
}

const KINDS: [(&str, &str); 5] = [
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ("v1", "Event"),
];

proptest! {
    #[test]
    fn nothing_that_is_sent_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&[PREFIX, &bytes].concat());
        for (api_version, kind) in KINDS {
            let _ = decode(&sent(api_version, kind, &bytes));
        }
    }

    /// Bytes that are more like messages than any bytes are.
    #[test]
    fn no_message_makes_it_panic(
        kind in 0..KINDS.len(),
        path in proptest::collection::vec((1_u8..16, proptest::collection::vec(any::<u8>(), 0..4)), 0..12),
        cut in any::<proptest::sample::Index>(),
    ) {
        let message = path.iter().fold(Vec::new(), |inner, (number, noise)| {
            [field(*number, inner), noise.clone()].concat()
        });
        let (api_version, kind) = KINDS[kind];
        let body = sent(api_version, kind, &message);
        let _ = decode(&body);
        let _ = decode(&body[..cut.index(body.len())]);
    }
}
