use std::rc::Rc;

use serde_json::json;

use super::*;
use crate::cel::{Expression, Names};

struct World<'a> {
    rules: &'a Rules,
    user: &'a User,
}

impl<'a> Names<'a> for World<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        let request = Resource { resource: "secrets", namespace: "default", ..Resource::default() };
        (name == "authorizer").then(|| Value::Foreign(Rc::new(Check::new(self.rules, self.user, request))))
    }
}

fn rules() -> Rules {
    let mut rules = Rules::default();
    let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"] });
    rules.apply("ClusterRole", &json!({ "metadata": { "name": "r" }, "rules": [rule] }));
    let subjects = json!([{ "kind": "User", "name": "jane" }]);
    let reference = json!({ "kind": "ClusterRole", "name": "r" });
    rules.apply(
        "ClusterRoleBinding",
        &json!({ "metadata": { "name": "b" }, "roleRef": reference, "subjects": subjects }),
    );
    rules
}

fn outcome(source: &str) -> std::result::Result<bool, String> {
    let rules = rules();
    let user = User { name: "jane".into(), ..User::default() };
    let expression = Expression::compile(source, &["authorizer"]).map_err(|error| error.0)?;
    match expression.evaluate(&World { rules: &rules, user: &user }, &Budget::new(10_000_000)) {
        Ok(Value::Bool(truth)) => Ok(truth),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.0),
    }
}

fn assert_holds(sources: &[&str]) {
    for source in sources {
        assert_eq!(outcome(source), Ok(true), "{source}");
    }
}

#[test]
fn rights_can_be_asked_for() {
    let secrets = "authorizer.group('').resource('secrets')";
    assert_eq!(outcome(&format!("{secrets}.name('s').check('get').allowed()")), Ok(true));
    assert_eq!(outcome(&format!("{secrets}.name('s').namespace('x').check('get').allowed()")), Ok(true));
    assert_eq!(outcome(&format!("{secrets}.check('get').allowed()")), Ok(false));
    assert_eq!(outcome(&format!("{secrets}.subresource('x').name('s').check('get').allowed()")), Ok(false));
    assert_holds(&[
        "authorizer.group('').resource('secrets').name('s').check('get').reason().startsWith('RBAC: allowed by')",
        "!authorizer.path('/healthz').check('get').allowed() && !authorizer.path('/healthz').check('get').errored()",
        "!authorizer.serviceAccount('default', 'robot').group('').resource('secrets').name('s').check('get').allowed()",
        "!authorizer.requestResource.check('list').allowed()",
    ]);
}

#[test]
fn asking_has_a_cost() {
    let check = "authorizer.path('/x').check('get').allowed()";
    assert_eq!(outcome(&format!("!{check} && !{check}")), Ok(true));
    let exceeded = Err("operation cancelled: actual cost limit exceeded".to_owned());
    assert_eq!(outcome(&format!("!{check} && !{check} && !{check}")), exceeded);
}
