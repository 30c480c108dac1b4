mod shipped;

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    kind::{Kind, Origin, Scope, Subresources, Version},
    user::{Part, User},
};

/// A kind that is served in these versions.
fn kind(group: &str, plural: &str, kind: &str, versions: &[&str]) -> Kind {
    let version = |name: &&str| Version {
        name: (*name).to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::default(),
        openapi: Arc::default(),
        columns: Vec::new(),
        subresources: Subresources::default(),
        selectable_fields: Vec::new(),
    };
    Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: versions.iter().map(version).collect(),
        origin: Origin::Custom,
    }
}

fn converted(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    object["convertedTo"] = version.into();
    object
}

fn widgets() -> Kind {
    kind("example.com", "widgets", "Widget", &["v1", "v2"])
}

fn request<'a>(kind: &'a Kind, user: &'a User, object: &'a Value) -> Request<'a> {
    Request {
        operation: Operation::Create,
        kind,
        version: "v1",
        part: Part::Whole,
        namespace: "default",
        name: "",
        user,
        object: Some(object),
        old: None,
        namespace_object: None,
        options: None,
        is_dry_run: false,
        convert: &converted,
    }
}

/// A policy about widgets with these fields besides.
fn policy(spec: &Value) -> Value {
    let rule = json!({ "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"], "operations": ["CREATE"] });
    let mut policy = json!({
        "metadata": { "name": "p" },
        "spec": { "failurePolicy": "Fail", "matchConstraints": { "matchPolicy": "Equivalent", "resourceRules": [rule] } },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        policy["spec"][field] = value.clone();
    }
    policy
}

fn binding(actions: &[&str]) -> Value {
    json!({ "metadata": { "name": "b" }, "spec": { "policyName": "p", "validationActions": actions } })
}

fn policies(policy: &Value, binding: &Value) -> Policies {
    let mut policies = Policies::default();
    policies.apply("ValidatingAdmissionPolicy", policy);
    policies.apply("ValidatingAdmissionPolicyBinding", binding);
    policies
}

fn widget() -> Value {
    json!({ "metadata": { "name": "w", "labels": { "a": "b" } }, "spec": { "size": 3 } })
}

fn outcome(policy: &Value, change: impl FnOnce(&mut Request<'_>)) -> Result<Vec<Warning>, Failure> {
    let (kind, user, object) = (widgets(), User { name: "jane".into(), ..User::default() }, widget());
    let mut request = request(&kind, &user, &object);
    change(&mut request);
    policies(policy, &binding(&["Deny"])).admit(&request, &Rules::default())
}

fn small() -> Value {
    json!([{ "expression": "object.spec.size < 3" }])
}

#[test]
fn a_refusal_names_the_object_the_policy_and_the_binding() {
    let failure = outcome(&policy(&json!({ "validations": small() })), |_| {}).expect_err("refused");
    let why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.spec.size < 3";
    assert_eq!(failure.message, format!("widgets.example.com \"w\" is forbidden: {why}"));
    assert_eq!((failure.code, failure.reason), (422, "Invalid"));
    let details = serde_json::to_value(failure.details).expect("JSON");
    let expected = json!({ "name": "w", "group": "example.com", "kind": "widgets", "causes": [{ "message": why }] });
    assert_eq!(details, expected);
}

#[test]
fn the_reason_decides_the_code() {
    for (reason, code) in [("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413), ("Invalid", 422)]
    {
        let validation = json!([{ "expression": "false", "reason": reason }]);
        let failure = outcome(&policy(&json!({ "validations": validation })), |_| {}).expect_err("refused");
        assert_eq!((failure.reason, failure.code), (reason, code));
    }
}

#[test]
fn a_message_is_computed_written_or_the_expression() {
    let said = |message: &str, expression: &str| {
        let validation = json!([{ "expression": "false", "message": message, "messageExpression": expression }]);
        let failure = outcome(&policy(&json!({ "validations": validation })), |_| {}).expect_err("refused");
        failure.message.rsplit_once("denied request: ").map(|(_, said)| said.to_owned()).unwrap_or_default()
    };
    assert_eq!(said("written", "' computed ' + object.metadata.name"), "computed w");
    assert_eq!(said(" written ", "object.nothing"), "written");
    assert_eq!(said("written", "'two\\nlines'"), "written");
    assert_eq!(said("written", "' '"), "written");
    assert_eq!(said("", "object.nothing"), "failed expression: false");
}

#[test]
fn what_has_no_value_fails_as_the_policy_says() {
    let broken = json!([{ "expression": "object.nothing == 1" }]);
    let failure = outcome(&policy(&json!({ "validations": broken })), |_| {}).expect_err("refused");
    let why = "expression 'object.nothing == 1' resulted in error: no such key: nothing";
    assert!(failure.message.ends_with(why), "{}", failure.message);
    assert_eq!(failure.code, 422);
    let ignoring = policy(&json!({ "validations": broken, "failurePolicy": "Ignore" }));
    assert_eq!(outcome(&ignoring, |_| {}), Ok(Vec::new()));
    let conditions = json!([{ "name": "a", "expression": "object.nothing" }, { "name": "b", "expression": "false" }]);
    assert_eq!(
        outcome(&policy(&json!({ "validations": small(), "matchConditions": conditions })), |_| {}),
        Ok(Vec::new())
    );
    let conditions = json!([{ "name": "a", "expression": "object.nothing" }]);
    assert!(outcome(&policy(&json!({ "validations": small(), "matchConditions": conditions })), |_| {}).is_err());
}

#[test]
fn a_policy_that_makes_no_sense_refuses_what_it_is_about() {
    let nonsense = policy(&json!({ "validations": [{ "expression": "nonsense" }] }));
    assert!(outcome(&nonsense, |_| {}).is_err());
    assert_eq!(outcome(&nonsense, |request| request.part = Part::Status), Ok(Vec::new()));
    let flaws = flaws(&nonsense);
    assert_eq!(flaws[0].field, "spec.validations[0].expression");
    let parameters = policy(&json!({ "validations": [], "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" } }));
    assert!(outcome(&parameters, |_| {}).is_err());
}

#[test]
fn a_binding_can_warn_instead() {
    let (kind, user, object) = (widgets(), User::default(), widget());
    let request = request(&kind, &user, &object);
    let policy = policy(&json!({ "validations": [{ "expression": "false", "message": "no" }] }));
    let mut policies = policies(&policy, &binding(&["Warn", "Audit"]));
    let warning = Warning("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no".to_owned());
    assert_eq!(policies.admit(&request, &Rules::default()), Ok(vec![warning]));
    policies.remove("ValidatingAdmissionPolicyBinding", "b");
    assert_eq!(policies.admit(&request, &Rules::default()), Ok(Vec::new()));
}

#[test]
fn other_requests_are_none_of_its_business() {
    let policy = policy(&json!({ "validations": small() }));
    let outcome = |change: fn(&mut Request<'_>)| outcome(&policy, change).is_ok();
    assert!(outcome(|request| request.operation = Operation::Update));
    assert!(outcome(|request| request.part = Part::Status));
    assert!(!outcome(|_| {}));
}

#[test]
fn a_rule_for_one_version_is_one_for_all_unless_it_is_exact() {
    let validations = json!([{ "expression": "object.?convertedTo.orValue('') == '' || request.requestResource.version == request.resource.version" }]);
    let mut policy = policy(&json!({ "validations": validations }));
    let in_v2 = |request: &mut Request<'_>| request.version = "v2";
    assert!(outcome(&policy, in_v2).is_err());
    assert_eq!(outcome(&policy, |_| {}), Ok(Vec::new()));
    policy["spec"]["matchConstraints"]["matchPolicy"] = "Exact".into();
    assert_eq!(outcome(&policy, in_v2), Ok(Vec::new()));
}

#[test]
fn selectors_and_exclusions_narrow_what_is_meant() {
    let outcome = |field: &str, value: Value| {
        let mut policy = policy(&json!({ "validations": small() }));
        policy["spec"]["matchConstraints"][field] = value;
        let namespace = json!({ "metadata": { "name": "default", "labels": { "team": "x" } } });
        let (kind, user, object) = (widgets(), User::default(), widget());
        let request = Request { namespace_object: Some(&namespace), ..request(&kind, &user, &object) };
        policies(&policy, &binding(&["Deny"])).admit(&request, &Rules::default()).is_err()
    };
    assert!(outcome("objectSelector", json!({ "matchLabels": { "a": "b" } })));
    assert!(!outcome("objectSelector", json!({ "matchLabels": { "a": "c" } })));
    assert!(outcome(
        "namespaceSelector",
        json!({ "matchExpressions": [{ "key": "team", "operator": "In", "values": ["x"] }] })
    ));
    assert!(!outcome(
        "namespaceSelector",
        json!({ "matchExpressions": [{ "key": "team", "operator": "DoesNotExist" }] })
    ));
    let all = |names: Value| json!([{ "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "resourceNames": names }]);
    assert!(!outcome("excludeResourceRules", all(json!([]))));
    assert!(!outcome("excludeResourceRules", all(json!(["w"]))));
    assert!(outcome("excludeResourceRules", all(json!(["other"]))));
}

#[test]
fn variables_are_made_of_others_and_never_of_themselves() {
    let spec = json!({
        "variables": [
            { "name": "size", "expression": "object.spec.size" },
            { "name": "double", "expression": "variables.size * 2" },
            { "name": "endless", "expression": "variables.endless" },
            { "name": "unused", "expression": "object.nothing" },
        ],
        "validations": [{ "expression": "variables.double == 6" }],
    });
    assert_eq!(outcome(&policy(&spec), |_| {}), Ok(Vec::new()));
    let mut endless = spec;
    endless["validations"] = json!([{ "expression": "variables.endless" }]);
    assert!(outcome(&policy(&endless), |_| {}).is_err());
}

/// The first variable is a number, and each other one a list of the one before.
fn chain(length: usize) -> Value {
    let expression = |at: usize| if at == 0 { "1".to_owned() } else { format!("[variables.v{}]", at - 1) };
    (0..length).map(|at| json!({ "name": format!("v{at}"), "expression": expression(at) })).collect()
}

#[test]
fn variables_can_not_nest_deeper_than_an_expression() {
    let spec = |length: usize| {
        let last = format!("variables.v{} != null", length - 1);
        let each = (0..length).map(|at| json!({ "expression": format!("variables.v{at} != null") }));
        let validations: Value = [json!({ "expression": last })].into_iter().chain(each).collect();
        json!({ "variables": chain(length), "validations": validations })
    };
    // More levels than the stack of a thread has room for.
    assert_eq!(outcome(&policy(&spec(50)), |_| {}), Ok(Vec::new()));
    assert!(flaws(&policy(&spec(50))).is_empty());
    let flaws = flaws(&policy(&spec(5000)));
    assert!(flaws[0].field.starts_with("spec.variables["), "{:?}", flaws[0]);
    assert!(flaws[0].detail.contains("expression recursion limit exceeded"), "{:?}", flaws[0]);
}

#[test]
fn variables_are_made_of_those_before_them() {
    let spec = json!({
        "variables": [
            { "name": "early", "expression": "variables.late" },
            { "name": "late", "expression": "1" },
        ],
        "validations": [{ "expression": "variables.late == 1" }, { "expression": "variables.early == 1" }],
    });
    assert!(outcome(&policy(&spec), |_| {}).unwrap_err().message.contains("no such key: late"));
}

#[test]
fn long_and_nested_expressions_are_not_parsed() {
    let flaw = |expression: String| {
        let flaws = flaws(&policy(&json!({ "validations": [{ "expression": expression }] })));
        flaws.into_iter().next().map(|flaw| flaw.detail).unwrap_or_default()
    };
    assert!(flaw(format!("{}true{}", "(".repeat(300), ")".repeat(300))).contains("recursion limit exceeded: 250"));
    assert!(flaw(format!("'{}' != ''", "a".repeat(10_000))).contains("expression code point size exceeds limit"));
    assert_eq!(flaw(format!("{}true{}", "(".repeat(240), ")".repeat(240))), "");
}

#[test]
fn expressions_see_the_request() {
    let sees = |expression: &str| {
        let validations = json!([{ "expression": expression }]);
        outcome(&policy(&json!({ "validations": validations })), |_| {}).map_err(|failure| failure.message)
    };
    let expressions = [
        "request.operation == 'CREATE' && request.name == 'w' && request.namespace == 'default' && !request.dryRun",
        "request.userInfo.username == 'jane' && request.userInfo.?groups.orValue([]) == []",
        "request.resource == {'group': 'example.com', 'version': 'v1', 'resource': 'widgets'}",
        "request.kind.kind == 'Widget' && !has(request.subResource) && oldObject == null && namespaceObject == null",
    ];
    for expression in expressions {
        assert_eq!(sees(expression), Ok(Vec::new()));
    }
}
