//! Making and changing objects.

use drover_testkit::World;

use super::Desk;

drover_testkit::scenarios! {
    Shared {
        objects_of_each_kind_are_made,
        objects_are_changed_in_each_way,
        who_waits_is_told,
    }
}

async fn objects_of_each_kind_are_made(world: World) {
    let desk = Desk::new(world).await;
    let (name, namespace) = (desk.world.unique("made"), &desk.namespace);
    let commands = [
        (format!("create namespace {name}"), format!("namespace/{name}")),
        ("create configmap settings --from-literal=colour=red".to_owned(), "configmap/settings".to_owned()),
        ("create secret generic hidden --from-literal=password=x".to_owned(), "secret/hidden".to_owned()),
        ("create serviceaccount robot".to_owned(), "serviceaccount/robot".to_owned()),
        (
            "create role reader --verb=get --resource=pods".to_owned(),
            "role.rbac.authorization.k8s.io/reader".to_owned(),
        ),
        (
            format!("create rolebinding robots --role=reader --serviceaccount={namespace}:robot"),
            "rolebinding.rbac.authorization.k8s.io/robots".to_owned(),
        ),
        (
            format!("create clusterrole {name} --verb=* --resource=secrets"),
            format!("clusterrole.rbac.authorization.k8s.io/{name}"),
        ),
        ("create deployment web --image=nginx".to_owned(), "deployment.apps/web".to_owned()),
        ("create job once --image=busybox -- true".to_owned(), "job.batch/once".to_owned()),
        ("create cronjob often --image=busybox --schedule=@daily".to_owned(), "cronjob.batch/often".to_owned()),
    ];
    for (command, made) in commands {
        assert_eq!(desk.says(&command).await, format!("{made} created\n"));
    }
    let again = desk.complains("create configmap settings").await;
    assert_eq!(again, "error: failed to create configmap: configmaps \"settings\" already exists\n");
    assert_eq!(desk.says("get secret hidden -o jsonpath={.data.password}").await, "eA==");
    assert_eq!(desk.says("get cronjob often -o jsonpath={.spec.concurrencyPolicy}").await, "Allow");
}

async fn objects_are_changed_in_each_way(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create configmap settings --from-literal=colour=red").await;
    assert_eq!(desk.says("label cm settings tier=front").await, "configmap/settings labeled\n");
    assert_eq!(desk.says("label cm settings tier-").await, "configmap/settings unlabeled\n");
    assert_eq!(desk.says("annotate cm settings note=hello").await, "configmap/settings annotated\n");
    let kept = desk.complains("annotate cm settings note=other").await;
    let expected = "error: --overwrite is false but found the following declared annotation(s): 'note' already has a value (hello)\n";
    assert_eq!(kept, expected);

    let editor = "sed -i s/colour:.red/colour:\\ blue/";
    let edited = desk.command().env("KUBE_EDITOR", editor).args(["edit", "cm", "settings"]).output().await;
    let edited = edited.expect("kubectl can be run");
    assert_eq!(String::from_utf8_lossy(&edited.stdout), "configmap/settings edited\n");
    assert_eq!(desk.says("get cm settings -o jsonpath={.data.colour}").await, "blue");

    desk.says("create deployment web --image=nginx").await;
    let patched = "deployment.apps/web patched\n";
    let variable =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"nginx","env":[{"name":"A","value":"1"}]}]}}}}"#;
    assert_eq!(desk.says_to("patch deploy web -p", variable).await, patched);
    let containers = "get deploy web -o jsonpath={.spec.template.spec.containers[*]['image','env']}";
    assert_eq!(desk.says(containers).await, r#"nginx [{"name":"A","value":"1"}]"#);
    assert_eq!(desk.says_to("patch deploy web --type merge -p", r#"{"spec":{"paused":true}}"#).await, patched);
    let resume = r#"[{"op":"test","path":"/spec/paused","value":true},{"op":"remove","path":"/spec/paused"}]"#;
    assert_eq!(desk.says_to("patch deploy web --type json -p", resume).await, patched);
    let fails = desk.run("patch deploy web --type json -p", &[resume]).await.failure();
    assert_eq!(fails, "The request is invalid: the server rejected our request due to an error in our request\n");
    let status = r#"{"spec":{"replicas":7},"status":{"replicas":2}}"#;
    assert_eq!(desk.says_to("patch deploy web --subresource=status --type merge -p", status).await, patched);
    let replicas = "get deploy web -o jsonpath={.spec.replicas},{.status.replicas}";
    assert_eq!(desk.says(replicas).await, "1,2");

    assert_eq!(desk.says("scale deploy web --replicas=5").await, "deployment.apps/web scaled\n");
    let other = desk.complains("scale deploy web --replicas=6 --current-replicas=7").await;
    assert_eq!(other, "error: Expected replicas to be 7, was 5\n");
    assert_eq!(desk.says(replicas).await, "5,2");
    let text = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"only":"this"}}"#;
    assert_eq!(desk.feed("replace -f -", text).await.success(), "configmap/settings replaced\n");
    assert_eq!(desk.says("get cm settings -o jsonpath={.data}").await, r#"{"only":"this"}"#);
}

async fn who_waits_is_told(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create deployment web --image=nginx").await;
    let met = "deployment.apps/web condition met\n";
    let late = desk.complains("wait deploy web --for=condition=Available --timeout=1s").await;
    assert_eq!(late, "error: timed out waiting for the condition on deployments/web\n");
    let available = r#"{"status":{"replicas":1,"conditions":[{"type":"Available","status":"True"}]}}"#;
    let (waited, _) = tokio::join!(
        desk.says("wait deploy web --for=condition=Available --timeout=60s"),
        desk.says_to("patch deploy web --subresource=status --type merge -p", available),
    );
    assert_eq!(waited, met);
    assert_eq!(desk.says("wait deploy web --for=jsonpath={.status.replicas}=1 --timeout=60s").await, met);
    let (waited, _) =
        tokio::join!(desk.says("wait deploy web --for=delete --timeout=60s"), desk.says("delete deploy web"));
    // Nothing is said if it was gone before it was looked for.
    assert!(waited.is_empty() || waited == met, "{waited}");
}
