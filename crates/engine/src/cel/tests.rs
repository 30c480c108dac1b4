use super::*;

fn cluster() -> ManagedCluster {
    serde_json::from_value(serde_json::json!({
        "metadata": { "name": "c1", "labels": { "env": "prod", "config": "{\"tier\": 2}" } },
        "spec": { "hubAcceptsClient": true, "leaseDurationSeconds": 60 },
        "status": {
            "version": { "kubernetes": "v1.31.2" },
            "allocatable": { "cpu": "500m", "memory": "2Gi" },
            "clusterClaims": [{ "name": "region", "value": "eu" }]
        }
    }))
    .expect("a cluster")
}

fn holds(source: &str) -> bool {
    let scores = [Score { name: "cpu".into(), value: 70 }];
    let seen = Seen::cluster(&cluster(), [("load", scores.as_slice())]);
    Expression::compile(source, Scope::Cluster).unwrap_or_else(|error| panic!("{source} {error}")).holds(&seen)
}

fn refused(source: &str) -> Invalid {
    Expression::compile(source, Scope::Cluster).expect_err(source)
}

#[test]
fn whole_numbers_equal_literals() {
    assert!(holds("managedCluster.spec.leaseDurationSeconds == 60"));
    assert!(holds("managedCluster.spec.leaseDurationSeconds > 59"));
}

#[test]
fn who_denies_twice_affirms() {
    assert!(holds("!!(managedCluster.metadata.name == 'c1')"));
    assert!(!holds("!!!(managedCluster.metadata.name == 'c1')"));
}

#[test]
fn kubernetes_libraries_are_there() {
    assert!(holds("semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver('1.30.0'))"));
    assert!(holds("quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity('1Gi'))"));
    assert!(holds("managedCluster.status.clusterClaims.exists(c, c.name == 'region' && c.value == 'eu')"));
    assert!(holds("managedCluster.metadata.labels['env'].matches('^pr')"));
    assert!(holds("math.greatest(1, 2) == 2 && sets.contains([1, 2], [1])"));
}

#[test]
fn scores_are_read_by_the_name_of_their_object() {
    assert!(holds("managedCluster.scores('load').filter(s, s.name == 'cpu').all(s, s.value == 70)"));
    assert!(holds("managedCluster.scores('other').size() == 0"));
    assert!(holds("managedCluster.scores('load')[0].value > 50"));
}

#[test]
fn which_scores_are_read_is_known() {
    let scores = |source| Expression::compile(source, Scope::Cluster).expect(source).scores().clone();
    let load = scores("managedCluster.scores('load').size() > 0");
    assert!(load.contains("load") && !load.contains("other"));
    assert!(!scores("true").contains("load"));
    assert!(scores("managedCluster.scores(managedCluster.metadata.name).size() > 0").contains("anything"));
}

#[test]
fn text_that_holds_json_can_be_read() {
    assert!(holds("managedCluster.metadata.labels.config.parseJSON().tier == 2"));
    assert!(!holds("managedCluster.metadata.labels.env.parseJSON().tier == 2"));
}

#[test]
fn what_a_cluster_does_not_have_does_not_hold() {
    assert!(!holds("managedCluster.metadata.labels.zone == 'a'"));
    assert!(!holds("managedCluster.metadata.labels.zone != 'a'"));
    assert!(holds("!has(managedCluster.metadata.labels.zone)"));
    assert!(holds("managedCluster.metadata.labels.?zone.orValue('none') == 'none'"));
    assert!(holds("managedCluster.metadata.?nothing.?zone.orValue('none') == 'none'"));
    assert!(holds("managedCluster.metadata.labels[?'env'].orValue('none') == 'prod'"));
}

#[test]
fn names_that_there_are_not_are_refused_when_compiled() {
    assert_eq!(refused("cluster.metadata.name == 'a'"), Invalid::Undeclared("cluster".into(), Scope::Cluster));
    assert_eq!(refused("true || undefined"), Invalid::Undeclared("undefined".into(), Scope::Cluster));
    assert_eq!(refused("[1].exists(x, y == 1)"), Invalid::Undeclared("y".into(), Scope::Cluster));
    assert_eq!(refused("[1].exists(x, x == 1) && x == 1"), Invalid::Undeclared("x".into(), Scope::Cluster));
    assert_eq!(refused("managedCluster.frobnicate()"), Invalid::UnknownFunction("frobnicate".into()));
    assert_eq!(refused("frobnicate(1)"), Invalid::UnknownFunction("frobnicate".into()));
    assert_eq!(refused("library.frobnicate(1)"), Invalid::Undeclared("library".into(), Scope::Cluster));
    assert_eq!(refused("scores('load').size() > 0"), Invalid::ScoresOfWhat);
    assert_eq!(refused("managedCluster.spec.scores('load').size() > 0"), Invalid::ScoresOfWhat);
}

#[test]
fn what_is_no_condition_is_refused_when_compiled() {
    for source in ["1", "'text'", "managedCluster", "[true]", "1 + 1"] {
        assert_eq!(refused(source), Invalid::NotBoolean);
    }
    for source in ["", "managedCluster.", "a ==", "'", "(", "managedCluster.metadata.name = 'a'"] {
        assert!(matches!(refused(source), Invalid::Syntax(_)), "{source}");
    }
    assert!(matches!(refused("Cluster{name: 'a'} == managedCluster"), Invalid::Message(_)));
}

#[test]
fn size_and_depth_are_bounded() {
    assert_eq!(refused(&format!("'{}' == ''", "x".repeat(MAX_LENGTH))), Invalid::TooLong);
    assert_eq!(refused("[1].all(a, [1].all(b, [1].all(c, a + b + c == 3)))"), Invalid::TooManyLoops);
    assert!(holds("[1].all(a, [2].all(b, a + b == 3)) && [1].all(c, c == 1)"));
    assert!(!holds("lists.range(1000000000000).size() > 0"));
    assert!(holds("lists.range(10).size() == 10"));
}

/// What is long in every way that the length allows neither overflows the stack nor panics.
#[test]
fn long_expressions_end_in_a_value_or_a_refusal() {
    let links = (MAX_LENGTH - 100) / 2;
    let long = [
        format!("{}true{}", "(".repeat(links), ")".repeat(links)),
        format!("// '\n{}true{}", "(".repeat(links), ")".repeat(links)),
        format!("'\n{}true{} // '", "(".repeat(links), ")".repeat(links)),
        format!("{}true", "!".repeat(2 * links + 1)),
        format!("{}1 == 1", "-".repeat(2 * links)),
        format!("1{} > 0", "+1".repeat(links)),
        format!("managedCluster{} == 1", ".a".repeat(links)),
        format!("managedCluster{} == 1", "[0]".repeat(links / 2)),
        format!("{}true{}", "true?".repeat(links / 4), ":1".repeat(links / 4)),
        format!("{}true", "true||".repeat(links / 3)),
        format!("{} == []", "[".repeat(links)),
        format!("{}1{} == []", "[".repeat(links), "]".repeat(links)),
        format!("'a'{} == ''", ".trim()".repeat(links / 4)),
    ];
    for source in long {
        if let Ok(expression) = Expression::compile(&source, Scope::Cluster) {
            let holds = source.contains("||") || source.starts_with("!!") || source.starts_with("--");
            assert!(!expression.holds(&Seen::cluster(&cluster(), [])) || holds, "{source}");
        }
    }
}

/// The deepest expressions that are let through, on a stack as small as a thread of the hub has.
#[test]
fn what_is_let_through_can_be_evaluated() {
    let sum = |links: usize| format!("1{} > 0", " + 1".repeat(links));
    assert!(holds(&sum(MAX_DEPTH - 2)));
    assert_eq!(refused(&sum(MAX_DEPTH - 1)), Invalid::TooDeep);
    assert!(holds(&format!("{}true{}", "(".repeat(MAX_DEPTH - 1), ")".repeat(MAX_DEPTH - 1))));
    assert!(holds(&format!("'a'{} == 'a'", ".trim()".repeat(MAX_DEPTH - 2))));
    assert!(holds(&format!("[1].all(a, [2].all(b, 1{} > 0))", " + a * b".repeat(MAX_DEPTH - 20))));
    assert!(holds(&format!("{}true", "true || ".repeat(200))));
}

#[test]
fn arithmetic_at_its_limits_does_not_hold() {
    for source in [
        "9223372036854775807 + 1 > 0",
        "-9223372036854775808 - 1 < 0",
        "1 / 0 == 0",
        "1 % 0 == 0",
        "-(-9223372036854775807 - 1) > 0",
        "(-9223372036854775807 - 1) / -1 > 0",
        "(-9223372036854775807 - 1) % -1 > 0",
        "9223372036854775807 * 2 > 0",
        "[1][-1] == 1",
        "[1][9] == 1",
        "'ä'.substring(1, 0) == ''",
        "timestamp('nonsense') > timestamp('2020-01-01T00:00:00Z')",
        "int(1e300) > 0",
        "uint(-1) > 0u",
    ] {
        assert!(!holds(source), "{source}");
    }
}

/// How much CPU time a thread has used.
fn cpu_time() -> std::time::Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts");
    let nanoseconds = stat.split(' ').next().and_then(|count| count.parse().ok()).expect("a number");
    std::time::Duration::from_nanos(nanoseconds)
}

/// Each of these would take all memory, or hours, if nobody counted.
fn hostile() -> Vec<String> {
    let chain = |start: &str, link: &str, links: usize, end: &str| format!("{start}{}{end}", link.repeat(links));
    let many = |what: &str| vec![what; 60].join(", ");
    vec![
        // Texts that double, by + and by what functions make of them.
        chain("['aaaaaaaa']", ".map(a, a + a + a + a + a + a + a + a)", 18, ".size() == 1"),
        chain("'aaaaaaaa'", ".replace('a', 'aaaaaaaa')", 18, " != ''"),
        chain("'aaaaaaaa'", ".replace('', 'aaaaaaaa')", 18, " != ''"),
        format!("{}'\"\"\"\"\"\"\"\"'{} != ''", "strings.quote(".repeat(20), ")".repeat(20)),
        format!("{}b'a'{} != ''", "base64.encode(bytes(".repeat(8), "))".repeat(8)),
        "lists.range(1000).map(a, string(a)).join(lists.range(1000).map(a, string(a)).join('')) != ''".to_owned(),
        "lists.range(1000).map(a, '%.60000f').join('').format(lists.range(1000).map(a, 1.0)) != ''".to_owned(),
        // Lists in lists.
        chain("[1]", ".map(a, [a, a, a, a, a, a, a, a])", 18, ".size() == 1"),
        chain("[[1]]", ".map(a, a + a + a + a + a + a + a + a)", 18, ".size() == 1"),
        format!("[[1]].map(a, [{0}]).map(a, [{0}]).map(a, [{0}]).map(a, [{0}]).size() == 1", many("a")),
        format!("[1].map(a, {{'a': [{0}], 'b': [{0}]}}).map(a, [{0}]).map(a, [{0}]).size() == 1", many("a")),
        "lists.range(1000).map(a, lists.range(1000)).map(a, [a, a, a, a]).flatten().size() > 0".to_owned(),
        format!("[{}].size() > 0", vec!["managedCluster"; 140].join(", ")),
        // Loops in loops.
        "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))".to_owned(),
        "lists.range(1000).all(a, lists.range(1000).exists_one(b, a == b))".to_owned(),
        "lists.range(1000).map(a, lists.range(1000).filter(b, true)).size() > 0".to_owned(),
        "(lists.range(1000) + lists.range(1000)).all(a, (lists.range(1000) + lists.range(1000)).all(b, true))"
            .to_owned(),
        // Functions that take longer than their arguments, and what is large in a loop.
        "sets.contains(lists.range(1000).map(a, -a), lists.range(1000))".to_owned(),
        "lists.range(1000).all(a, sets.contains(lists.range(1000), lists.range(1000)))".to_owned(),
        "lists.range(1000).all(a, lists.range(1000).distinct().size() > 0)".to_owned(),
        "lists.range(1000).all(a, managedCluster.metadata.annotations.large.size() > 0)".to_owned(),
        "lists.range(1000).all(a, managedCluster.metadata.annotations.large != '')".to_owned(),
        "lists.range(1000).all(a, managedCluster.metadata.annotations.size() > 0)".to_owned(),
        "lists.range(1000).all(a, managedCluster.metadata.annotations.large.matches('b'))".to_owned(),
        "lists.range(1000).all(a, managedCluster.scores('load').size() > 0)".to_owned(),
        // Regular expressions that are small only as they are written.
        r"'a'.matches('((\\w{200}){200}){200}')".to_owned(),
        r"lists.range(1000).all(a, !'a'.matches('(\\w{50}){20}'))".to_owned(),
        r"'a'.find('(\\pL{100}){' + '100}') == 'a'".to_owned(),
    ]
}

#[test]
fn hostile_expressions_are_refused_or_fail_before_they_cost_much() {
    let mut large = cluster();
    large.metadata.annotations = Some([("large".to_owned(), "a".repeat(200_000))].into());
    let scores: Vec<_> = (0..1000).map(|index| Score { name: format!("score-{index}"), value: index }).collect();
    let large = Seen::cluster(&large, [("load", scores.as_slice())]);
    for source in hostile() {
        let begun = cpu_time();
        let held = Expression::compile(&source, Scope::Cluster).is_ok_and(|expression| expression.holds(&large));
        // Without optimisation, and on a slow machine: a bound, not a measure.
        let took = cpu_time().saturating_sub(begun);
        assert!(took < std::time::Duration::from_secs(2), "{took:?}: {source}");
        assert!(!held, "{source}");
    }
}

/// When an expression is told that it costs too much, it must not go on where errors are passed over.
#[test]
fn what_costs_too_much_does_not_hold_though_something_else_does() {
    let hostile = "lists.range(1000).map(a, lists.range(1000)).size() > 0";
    assert!(!holds(&format!("{hostile} || true")));
    assert!(holds(&format!("true || {hostile}")), "nobody asks what comes behind");
    assert!(!holds(&format!("{hostile} ? true : true")));
    assert!(!holds(&format!("[1, 2].exists(c, {hostile} || c == 2)")));
    assert!(holds("[1, 2].exists(c, c == 2)"), "what was spent is forgotten");
}

#[test]
fn what_people_write_is_within_bounds() {
    let mut wide = cluster();
    let claims = (0..300)
        .map(|index| serde_json::json!({ "name": format!("claim-{index}.example.com"), "value": "some value" }));
    wide.status =
        serde_json::from_value(serde_json::json!({ "clusterClaims": claims.collect::<Vec<_>>() })).expect("a status");
    let wide = Seen::cluster(&wide, []);
    for source in [
        "managedCluster.status.clusterClaims.exists(c, c.name == 'claim-299.example.com' && c.value.contains('value'))",
        "managedCluster.status.clusterClaims.filter(c, c.name.startsWith('claim-')).size() == 300",
        "managedCluster.status.clusterClaims.map(c, c.name).join(',').contains('claim-7.')",
        "managedCluster.status.clusterClaims.exists_one(c, c.name.matches('^claim-1[0-9]{2}\\\\.example') && c.name.endsWith('-150.example.com'))",
        "managedCluster.status.clusterClaims.all(c, c.name.split('.')[0].replace('claim-', '') != '')",
        "['eu', 'us'].exists(r, managedCluster.metadata.labels.env == r) || managedCluster.metadata.labels.env in ['prod', 'test']",
    ] {
        assert!(Expression::compile(source, Scope::Cluster).expect(source).holds(&wide), "{source}");
    }
}

fn status_of_a_job() -> Seen {
    Seen::object(&serde_json::json!({
        "metadata": { "name": "once" },
        "status": { "succeeded": 1, "conditions": [{ "type": "Complete", "status": "True" }] },
    }))
}

#[test]
fn an_expression_uses_the_variables_of_what_it_is_about() {
    let rule = Expression::compile("object.status.succeeded == 1", Scope::Object).expect("sound");
    assert_eq!(rule.truth(&status_of_a_job()), Ok(true));
    let message = Expression::compile("result ? object.metadata.name + ' is done' : 'no'", Scope::Message);
    let message = message.expect("sound");
    assert_eq!(message.text(&status_of_a_job().with_result(true)), Ok("once is done".to_owned()));
    assert_eq!(message.text(&status_of_a_job().with_result(false)), Ok("no".to_owned()));

    let refused = |source, scope| Expression::compile(source, scope).expect_err(source);
    assert_eq!(refused("result", Scope::Object), Invalid::Undeclared("result".into(), Scope::Object));
    assert_eq!(refused("object.a == 1", Scope::Cluster), Invalid::Undeclared("object".into(), Scope::Cluster));
    let unknown = refused("managedCluster.a == 1", Scope::Object);
    assert_eq!(unknown.to_string(), "uses \"managedCluster\", which there is not: the object is `object`");
    assert_eq!(refused("object.scores('load').size() > 0", Scope::Object), Invalid::UnknownFunction("scores".into()));
    assert_eq!(refused("hasConditions({})", Scope::Cluster), Invalid::UnknownFunction("hasConditions".into()));
    assert_eq!(refused("object", Scope::Object), Invalid::NotBoolean);
}

#[test]
fn whether_something_has_conditions_can_be_asked_of_anything() {
    let holds = |source| Expression::compile(source, Scope::Object).expect(source).holds(&status_of_a_job());
    assert!(holds("hasConditions(object.status)"));
    assert!(holds("!hasConditions({}) && !hasConditions('bad') && !hasConditions({'conditions': []})"));
    assert!(holds("!hasConditions({'conditions': null}) && !hasConditions(object.metadata)"));
}

#[test]
fn it_is_told_why_an_expression_has_no_value() {
    let truth = |source| Expression::compile(source, Scope::Object).expect(source).truth(&status_of_a_job());
    assert!(matches!(truth("object.missing.key == 1"), Err(Failure::Error(_))));
    assert_eq!(truth("object.status.succeeded"), Err(Failure::NotBoolean("int".into())));
    assert_eq!(truth("lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"), Err(Failure::TooCostly));
    let text = Expression::compile("object.status.succeeded", Scope::Message).expect("sound");
    assert_eq!(text.text(&status_of_a_job()), Err(Failure::NotText("int".into())));
}
