use serde_json::{Value, json};

use super::{escalation::Write, *};

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.into(), groups: groups.iter().map(ToString::to_string).collect(), ..User::default() }
}

fn role(name: &str, rules: &Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

fn role_in(namespace: &str, name: &str, rules: &Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": namespace }, "rules": rules })
}

fn rule(verb: &str, group: &str, resource: &str) -> Value {
    json!({ "verbs": [verb], "apiGroups": [group], "resources": [resource] })
}

fn binding(namespace: &str, name: &str, (kind, role): (&str, &str), subject: (&str, &str)) -> Value {
    let mut metadata = json!({ "name": name });
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    json!({
        "metadata": metadata,
        "roleRef": { "apiGroup": RBAC, "kind": kind, "name": role },
        "subjects": [{ "kind": subject.0, "name": subject.1 }],
    })
}

fn resource<'a>(group: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Resource<'a> {
    Resource { group, version: "v1", resource, namespace, name, ..Resource::default() }
}

fn rules() -> Rules {
    let mut rules = Rules::default();
    rules.apply("ClusterRole", &role("reader", &json!([rule("get", "", "secrets")])));
    rules.apply("Role", &role_in("a", "lister", &json!([rule("list", "", "secrets")])));
    rules.apply("ClusterRoleBinding", &binding("", "all", ("ClusterRole", "reader"), ("Group", "readers")));
    rules.apply("RoleBinding", &binding("a", "in-a", ("Role", "lister"), ("User", "jane")));
    rules.apply("RoleBinding", &binding("a", "robot", ("ClusterRole", "reader"), ("ServiceAccount", "robot")));
    rules
}

fn decision(user: &User, verb: &str, target: Resource<'_>) -> Decision {
    rules().allows(&Attributes::resource(user, verb, target))
}

#[test]
fn a_binding_gives_a_role_where_it_is() {
    let (jane, reader) = (user("jane", &[]), user("joe", &["readers"]));
    assert_eq!(
        decision(&jane, "list", resource("", "secrets", "a", "")).reason,
        r#"RBAC: allowed by RoleBinding "in-a/a" of Role "lister" to User "jane""#
    );
    assert_eq!(
        decision(&reader, "get", resource("", "secrets", "b", "x")).reason,
        r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "readers""#
    );
    for (who, verb, target) in [
        (&jane, "list", resource("", "secrets", "b", "")),
        (&jane, "list", resource("", "secrets", "", "")),
        (&jane, "get", resource("", "secrets", "a", "x")),
        (&reader, "get", resource("apps", "secrets", "", "x")),
        (&reader, "get", resource("", "pods", "", "x")),
    ] {
        assert_eq!(decision(who, verb, target), Decision::default(), "{} {verb} {target:?}", who.name);
    }
}

#[test]
fn a_service_account_is_meant_in_the_namespace_of_the_binding() {
    let robot = user("system:serviceaccount:a:robot", &[]);
    let allowed = decision(&robot, "get", resource("", "secrets", "a", "x"));
    assert_eq!(
        allowed.reason,
        r#"RBAC: allowed by RoleBinding "robot/a" of ClusterRole "reader" to ServiceAccount "robot/a""#
    );
    assert!(!decision(&user("system:serviceaccount:b:robot", &[]), "get", resource("", "secrets", "a", "x")).allowed);
}

#[test]
fn masters_may_do_everything() {
    let target = resource("x", "y", "", "");
    assert_eq!(decision(&user("a", &[MASTERS]), "z", target), Decision { allowed: true, reason: String::new() });
}

#[test]
fn what_is_removed_gives_nothing_any_more() {
    let reader = user("joe", &["readers"]);
    let target = resource("", "secrets", "", "x");
    let mut rules = rules();
    rules.remove("ClusterRole", "", "reader");
    let decision = rules.allows(&Attributes::resource(&reader, "get", target));
    assert_eq!(decision.reason, r#"RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found"#);
    rules.remove("ClusterRoleBinding", "", "all");
    assert_eq!(rules.allows(&Attributes::resource(&reader, "get", target)), Decision::default());
    rules.apply("ClusterRoleBinding", &binding("", "all", ("ClusterRole", "reader"), ("Group", "others")));
    assert_eq!(rules.allows(&Attributes::resource(&reader, "get", target)), Decision::default());
}

#[test]
fn rules_name_parts_names_and_addresses() {
    let cases = [
        (json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }), "pods", "log", "x", true),
        (json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }), "pods", "log", "x", false),
        (json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"] }), "pods", "log", "x", true),
        (json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["*/log"] }), "pods", "log", "x", true),
        (json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["*/log"] }), "pods", "", "x", false),
        (
            json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["y"] }),
            "pods",
            "",
            "x",
            false,
        ),
        (
            json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"] }),
            "pods",
            "",
            "x",
            true,
        ),
        (
            json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": null }),
            "pods",
            "",
            "x",
            true,
        ),
    ];
    let jane = user("jane", &[]);
    for (rule, resource, subresource, name, allowed) in cases {
        let mut rules = Rules::default();
        rules.apply("ClusterRole", &role("r", &json!([rule])));
        rules.apply("ClusterRoleBinding", &binding("", "b", ("ClusterRole", "r"), ("User", "jane")));
        let target = Resource { resource, subresource, name, ..Resource::default() };
        assert_eq!(rules.allows(&Attributes::resource(&jane, "get", target)).allowed, allowed, "{rule}");
        assert!(!rules.allows(&Attributes::path(&jane, "get", "/healthz")).allowed);
    }
    let mut rules = Rules::default();
    rules.apply("ClusterRole", &role("r", &json!([{ "verbs": ["get"], "nonResourceURLs": ["/api/*", "/version"] }])));
    rules.apply("ClusterRoleBinding", &binding("", "b", ("ClusterRole", "r"), ("User", "jane")));
    let gets = |path| rules.allows(&Attributes::path(&jane, "get", path)).allowed;
    assert_eq!([gets("/api/v1"), gets("/api"), gets("/version"), gets("/version/")], [true, false, true, false]);
}

#[test]
fn a_refusal_says_who_can_not_do_what_and_where() {
    let jane = user("jane", &[]);
    let said = |verb, target| Attributes::resource(&jane, verb, target).forbidden("").message;
    assert_eq!(
        said("list", resource("", "secrets", "default", "")),
        r#"secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default""#
    );
    let status = Resource { subresource: "status", ..resource("apps", "deployments", "", "x") };
    assert_eq!(
        said("update", status),
        r#"deployments.apps "x" is forbidden: User "jane" cannot update resource "deployments/status" in API group "apps" at the cluster scope"#
    );
    let failure = Attributes::path(&jane, "get", "/<a>").forbidden("RBAC: why");
    assert_eq!(failure.message, r#"forbidden: User "jane" cannot get path "/&lt;a&gt;": RBAC: why"#);
    assert_eq!((failure.code, failure.reason), (403, "Forbidden"));
    assert!(failure.details.is_some());
}

#[test]
fn nobody_gives_away_what_he_does_not_have() {
    let jane = user("jane", &["team", AUTHENTICATED]);
    let mut rules = rules();
    let write = |rules: &Rules, object: &Value| {
        let write = Write { user: &jane, resource: "roles", namespace: "a", name: "", object, old: None };
        escalation::check(&write, rules).map_err(|failure| failure.message)
    };
    assert_eq!(write(&rules, &role("x", &json!([rule("list", "", "secrets")]))), Ok(()));
    let more = json!([{ "verbs": ["list", "get", "watch"], "apiGroups": [""], "resources": ["secrets"] },
        { "verbs": ["get"], "nonResourceURLs": ["/x"] }]);
    let refused = r#"roles.rbac.authorization.k8s.io "x" is forbidden: user "jane" (groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["secrets"], Verbs:["get" "watch"]}
{NonResourceURLs:["/x"], Verbs:["get"]}"#;
    assert_eq!(write(&rules, &role("x", &more)), Err(refused.to_owned()));
    rules.apply("Role", &role_in("a", "lister", &json!([rule("escalate", RBAC, "roles")])));
    assert_eq!(write(&rules, &role("x", &more)), Ok(()));
}

#[test]
fn binding_takes_the_rights_or_the_right_to_bind() {
    let jane = user("jane", &[]);
    let mut rules = rules();
    let bind = |rules: &Rules, object: &Value, old: Option<&Value>| {
        let write = Write { user: &jane, resource: "rolebindings", namespace: "a", name: "", object, old };
        escalation::check(&write, rules).map_err(|failure| (failure.code, failure.message))
    };
    let lister = binding("a", "x", ("Role", "lister"), ("User", "joe"));
    let reader = binding("a", "x", ("ClusterRole", "reader"), ("User", "joe"));
    let missing = binding("a", "x", ("ClusterRole", "none"), ("User", "joe"));
    assert_eq!(bind(&rules, &lister, None), Ok(()));
    assert_eq!(bind(&rules, &reader, None).expect_err("not held").0, 403);
    let not_found = r#"clusterroles.rbac.authorization.k8s.io "none" not found"#.to_owned();
    assert_eq!(bind(&rules, &missing, None), Err((404, not_found)));
    let mut finalized = reader.clone();
    finalized["metadata"]["finalizers"] = json!(["x"]);
    assert_eq!(bind(&rules, &finalized, Some(&reader)), Ok(()));
    rules.apply("Role", &role_in("a", "lister", &json!([rule("bind", RBAC, "clusterroles")])));
    assert_eq!(bind(&rules, &reader, None), Ok(()));
}

#[test]
fn gathering_roles_takes_all_rights() {
    let mut rules = Rules::default();
    for object in bootstrap() {
        rules.apply(object["kind"].as_str().unwrap_or_default(), &object);
    }
    rules.apply("ClusterRole", &role("writer", &json!([rule("create", RBAC, "clusterroles")])));
    rules.apply("ClusterRoleBinding", &binding("", "w", ("ClusterRole", "writer"), ("User", "jane")));
    rules.apply("ClusterRoleBinding", &binding("", "root", ("ClusterRole", "cluster-admin"), ("User", "root")));
    let mut gathering = role("x", &json!([]));
    gathering["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    let write = |name: &str| {
        let user = user(name, &[]);
        let write =
            Write { user: &user, resource: "clusterroles", namespace: "", name: "", object: &gathering, old: None };
        escalation::check(&write, &rules).map_err(|failure| failure.message)
    };
    let refused = r#"clusterroles.rbac.authorization.k8s.io "x" is forbidden: must have cluster-admin privileges to use the aggregationRule"#;
    assert_eq!(write("jane"), Err(refused.to_owned()));
    assert_eq!(write("root"), Ok(()));
}

#[test]
fn roles_that_gather_have_the_rules_of_those_they_select() {
    let labelled = |name: &str, label: &str, verb: &str| {
        let mut role = role(name, &json!([rule(verb, "", "pods")]));
        role["metadata"]["labels"] = json!({ label: "true" });
        role
    };
    let others =
        [labelled("b", "x", "list"), labelled("a", "x", "get"), labelled("c", "y", "watch"), labelled("d", "x", "get")];
    let mut gathering = role("g", &json!(null));
    gathering["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "x": "true" } }] });
    let rules = aggregation::aggregated(&gathering, &others).expect("it gathers");
    assert_eq!(rules.iter().map(|rule| rule.verbs[0].as_str()).collect::<Vec<_>>(), ["get", "list"]);
    assert_eq!(aggregation::aggregated(&role("a", &json!([])), &others), None);
}

#[test]
fn a_fresh_server_lets_people_find_out_and_namespaces_be_administered() {
    let mut rules = Rules::default();
    for object in bootstrap() {
        rules.apply(object["kind"].as_str().unwrap_or_default(), &object);
    }
    for (name, role) in [("ann", "admin"), ("ed", "edit"), ("vi", "view")] {
        rules.apply("RoleBinding", &binding("a", name, ("ClusterRole", role), ("User", name)));
    }
    let may = |name: &str, verb: &str, group: &str, plural: &str| {
        let user = user(name, &[AUTHENTICATED]);
        rules.allows(&Attributes::resource(&user, verb, resource(group, plural, "a", "x"))).allowed
    };
    assert!(["ann", "ed", "vi"].iter().all(|name| may(name, "get", "", "configmaps")));
    assert!(
        ["ann", "ed"].iter().all(|name| may(name, "update", "apps", "deployments") && may(name, "get", "", "secrets"))
    );
    assert!(!may("vi", "get", "", "secrets") && !may("vi", "update", "apps", "deployments"));
    assert!(may("ann", "create", RBAC, "rolebindings") && !may("ed", "create", RBAC, "rolebindings"));
    assert!(may("joe", "create", "authorization.k8s.io", "selfsubjectaccessreviews"));
    let (known, nobody) = (user("joe", &[AUTHENTICATED]), user(ANONYMOUS, &[UNAUTHENTICATED]));
    let gets = |user: &User, path| rules.allows(&Attributes::path(user, "get", path)).allowed;
    assert_eq!([gets(&known, "/apis/apps"), gets(&nobody, "/apis"), gets(&nobody, "/version")], [true, false, true]);
}

#[test]
fn signers_are_named_alone_or_by_domain() {
    let mut rules = Rules::default();
    let mut approve = rule("approve", "certificates.k8s.io", "signers");
    approve["resourceNames"] = json!(["example.com/one", "kubernetes.io/*"]);
    rules.apply("ClusterRole", &role("r", &json!([approve])));
    rules.apply("ClusterRoleBinding", &binding("", "b", ("ClusterRole", "r"), ("User", "jane")));
    let may = |verb, signer| is_allowed_for_signer(&rules, &user("jane", &[]), verb, signer);
    assert!(may("approve", "example.com/one") && may("approve", "kubernetes.io/any"));
    assert!(!may("approve", "example.com/two") && !may("sign", "example.com/one"));
}

fn impersonate(rules: &Rules, headers: &[(&str, &str)]) -> Result<Option<User>, String> {
    let jane = user("jane", &[AUTHENTICATED]);
    let request = Attributes::resource(&jane, "get", resource("", "pods", "default", "x"));
    impersonation::impersonated(headers.iter().copied(), &request, rules).map_err(|failure| failure.message)
}

#[test]
fn acting_as_somebody_takes_the_right_to() {
    let mut rules = Rules::default();
    assert_eq!(impersonate(&rules, &[("Accept", "x")]), Ok(None));
    let refused = r#"pods "x" is forbidden: User "jane" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "default""#;
    assert_eq!(impersonate(&rules, &[("Impersonate-User", "bob")]), Err(refused.to_owned()));
    let mut users = rule("impersonate", "", "users");
    users["resources"] = json!(["users", "groups"]);
    users["resourceNames"] = json!(["bob", "team"]);
    rules.apply("ClusterRole", &role("r", &json!([users])));
    rules.apply("ClusterRoleBinding", &binding("", "b", ("ClusterRole", "r"), ("User", "jane")));
    let bob = impersonate(&rules, &[("impersonate-user", "bob"), ("Impersonate-Group", "team")]);
    assert_eq!(bob, Ok(Some(user("bob", &["team", AUTHENTICATED]))));
    assert!(impersonate(&rules, &[("Impersonate-User", "bob"), ("Impersonate-Group", MASTERS)]).is_err());
    assert!(impersonate(&rules, &[("Impersonate-User", "bob"), ("Impersonate-Uid", "1")]).is_err());
    assert!(impersonate(&rules, &[("Impersonate-User", "bob"), ("Impersonate-Extra-a%2fb", "1")]).is_err());
    assert!(impersonate(&rules, &[("Impersonate-User", "joe")]).is_err());
}

#[test]
fn acting_as_somebody_can_be_limited_to_certain_requests() {
    let mut rules = Rules::default();
    let on = rule("impersonate-on:serviceaccount:get", "", "pods");
    let accounts = rule("impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts");
    rules.apply("ClusterRole", &role("r", &json!([on, accounts])));
    rules.apply("ClusterRoleBinding", &binding("", "b", ("ClusterRole", "r"), ("User", "jane")));
    let robot = impersonate(&rules, &[("Impersonate-User", "system:serviceaccount:a:robot")]);
    let groups = ["system:serviceaccounts", "system:serviceaccounts:a", AUTHENTICATED];
    assert_eq!(robot, Ok(Some(user("system:serviceaccount:a:robot", &groups))));
    rules.apply("ClusterRole", &role("r", &json!([rule("*", "*", "serviceaccounts")])));
    assert!(impersonate(&rules, &[("Impersonate-User", "system:serviceaccount:a:robot")]).is_ok());
}

#[test]
fn a_group_without_a_user_makes_no_sense() {
    let said = impersonate(&Rules::default(), &[("Impersonate-Group", "a"), ("Impersonate-Extra-X", "1")]);
    let expected = r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string{"x":[]string{"1"}}} without impersonating a user name"#;
    assert_eq!(said, Err(expected.to_owned()));
}

#[test]
fn reviews_answer_with_a_status() {
    let (rules, jane) = (rules(), user("jane", &[]));
    let asked = json!({ "spec": { "user": "jane", "resourceAttributes": { "namespace": "a", "verb": "list", "resource": "secrets" } } });
    let answer = review::subject_access(asked.clone(), &rules).expect("an answer");
    let reason = r#"RBAC: allowed by RoleBinding "in-a/a" of Role "lister" to User "jane""#;
    assert_eq!(answer["status"], json!({ "allowed": true, "reason": reason }));
    assert_eq!(
        review::self_subject_access(asked.clone(), &user("joe", &[]), &rules).expect("an answer")["status"],
        json!({ "allowed": false })
    );
    let mut local = asked;
    local["metadata"] = json!({ "namespace": "a" });
    assert_eq!(review::local_subject_access(local.clone(), "a", &rules).expect("an answer")["status"]["allowed"], true);
    local["spec"]["resourceAttributes"]["namespace"] = "b".into();
    let refused = r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace"#;
    assert_eq!(review::local_subject_access(local, "a", &rules).expect_err("refused").message, refused);
    let held = review::self_subject_rules(&json!({ "spec": { "namespace": "a" } }), &jane, &rules).expect("an answer");
    assert_eq!(
        held["status"]["resourceRules"],
        json!([{ "verbs": ["list"], "apiGroups": [""], "resources": ["secrets"] }])
    );
    assert_eq!(review::self_subject(&jane, "now")["status"]["userInfo"], json!({ "username": "jane" }));
}

#[test]
fn reviews_that_ask_nothing_are_refused() {
    let refused = |review| review::subject_access(review, &Rules::default()).expect_err("refused").message;
    assert_eq!(
        refused(json!({ "metadata": { "name": "x" }, "spec": {} })),
        r#".authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified, metadata: Invalid value: {"name":"x"}: must be empty]"#
    );
    let both = json!({ "spec": { "user": "a", "resourceAttributes": {}, "nonResourceAttributes": { "path": "/x" } } });
    let detail = r#"{"Path":"/x","Verb":""}: cannot be specified in combination with resourceAttributes"#;
    assert!(refused(both).ends_with(detail));
}

#[test]
fn token_reviews_say_whose_a_token_is() {
    let ask = |token: &str| {
        let review = json!({ "spec": { "token": token } });
        review::token(review, &["api".to_owned()], |token, audiences| match token {
            "good" => Ok(Some(review::TokenHolder { user: user("jane", &["g"]), audiences: audiences.to_vec() })),
            "old" => Err("it is old".to_owned()),
            _ => Ok(None),
        })
    };
    let status = |token| ask(token).expect("an answer")["status"].take();
    let jane = json!({ "username": "jane", "groups": ["g"] });
    assert_eq!(status("good"), json!({ "authenticated": true, "user": jane, "audiences": ["api"] }));
    assert_eq!(status("old"), json!({ "user": {}, "error": "it is old" }));
    assert_eq!(status("other"), json!({ "user": {}, "error": "invalid bearer token" }));
    assert_eq!(ask("").expect_err("refused").code, 400);
}

#[test]
fn a_check_looks_at_no_bindings_of_others() {
    let mut rules = rules();
    for at in 0..10_000 {
        let subject = format!("user-{at}");
        rules.apply("ClusterRoleBinding", &binding("", &subject, ("ClusterRole", "reader"), ("User", &subject)));
    }
    let one = user("user-77", &["system:authenticated"]);
    // The time is no matter of tests, but ten thousand checks of ten thousand bindings each would be felt.
    for _ in 0..10_000 {
        assert!(rules.allows(&Attributes::resource(&one, "get", resource("", "secrets", "a", "x"))).allowed);
    }
    assert_eq!(rules.rules_for(&one, "a").rules.len(), 1);
}

#[test]
fn service_accounts_are_told_by_their_user_names() {
    assert_eq!(service_account("system:serviceaccount:a:b.c-d"), Some(("a", "b.c-d")));
    let long = format!("system:serviceaccount:a:{}", "b/".repeat(40));
    let others = ["jane", "system:serviceaccount:a", "system:serviceaccount:a.b:c", "system:serviceaccount:a:B", &long];
    assert!(others.iter().all(|name| service_account(name).is_none()));
    assert_eq!(service_account("system:serviceaccount:a:b:c"), None);
}
