//! Looking at objects and at what there is.

use drover_testkit::World;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::Desk;

drover_testkit::scenarios! {
    Shared {
        objects_are_shown_as_they_are_asked_for,
        objects_are_found_by_labels_and_fields,
        a_change_is_seen_by_who_watches,
        kinds_are_explained,
        what_there_is_is_listed,
        objects_are_described,
    }
}

/// A table without the ages.
fn without_ages(table: &str) -> Vec<Vec<&str>> {
    let rows = table.lines().filter(|line| !line.is_empty());
    rows.map(|line| {
        let mut words: Vec<_> = line.split_whitespace().collect();
        words.pop();
        words
    })
    .collect()
}

async fn objects_are_shown_as_they_are_asked_for(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create configmap settings --from-literal=colour=red --from-literal=size=1").await;
    desk.says("create deployment web --image=nginx --replicas=2").await;
    desk.says("create job once --image=busybox").await;

    let table = desk.says("get cm settings").await;
    assert_eq!(without_ages(&table), [vec!["NAME", "DATA"], vec!["settings", "2"]]);
    let table = desk.says("get deploy web").await;
    let expected = [vec!["NAME", "READY", "UP-TO-DATE", "AVAILABLE"], vec!["web", "0/2", "0", "0"]];
    assert_eq!(without_ages(&table), expected);
    let wide = desk.says("get deploy web -o wide --no-headers").await;
    let words: Vec<_> = wide.split_whitespace().collect();
    assert_eq!((&words[..4], &words[5..]), (&["web", "0/2", "0", "0"][..], &["nginx", "nginx", "app=web"][..]));
    let table = desk.says("get job once --no-headers").await;
    assert_eq!(table.split_whitespace().take(3).collect::<Vec<_>>(), ["once", "Running", "0/1"]);

    let yaml = desk.says("get cm settings -o yaml").await;
    assert!(yaml.starts_with("apiVersion: v1\ndata:\n  colour: red\n  size: \"1\"\nkind: ConfigMap\n"), "{yaml}");
    let json: Value = serde_json::from_str(&desk.says("get cm -o json").await).expect("a list");
    assert_eq!((&json["kind"], &json["items"][0]["data"]["size"]), (&"List".into(), &"1".into()));
    assert_eq!(desk.says("get cm settings -o jsonpath={.data.colour}").await, "red");
    assert_eq!(desk.says("get cm,deploy -o name").await, "configmap/settings\ndeployment.apps/web\n");
    let columns = desk.says("get cm -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour").await;
    assert_eq!(columns, "NAME       COLOUR\nsettings   red\n");

    let absent = desk.complains("get cm nothing").await;
    assert_eq!(absent, "Error from server (NotFound): configmaps \"nothing\" not found\n");
    assert_eq!(desk.complains("get nothing").await, "error: the server doesn't have a resource type \"nothing\"\n");
}

async fn objects_are_found_by_labels_and_fields(world: World) {
    let desk = Desk::new(world).await;
    for name in ["one", "two", "three"] {
        desk.says(&format!("create configmap {name}")).await;
    }
    desk.says("label cm one two tier=front").await;

    assert_eq!(desk.says("get cm -l tier=front -o name").await, "configmap/one\nconfigmap/two\n");
    assert_eq!(desk.says("get cm -l tier!=front -o name").await, "configmap/three\n");
    assert_eq!(desk.says_to("get cm -o name -l", "tier in (back)").await, "");
    assert_eq!(desk.says("get cm --field-selector metadata.name=two -o name").await, "configmap/two\n");
    let unknown = desk.complains("get cm --field-selector data.colour=red").await;
    let expected = "Error from server (BadRequest): Unable to find \"/v1, Resource=configmaps\" that match label selector \"\", \
        field selector \"data.colour=red\": \"data.colour\" is not a known field selector: only \"metadata.name\", \
        \"metadata.namespace\"\n";
    assert_eq!(unknown, expected);
    let everywhere = "get cm --all-namespaces -l tier=front --no-headers";
    let everywhere = desk.says(everywhere).await;
    let own = everywhere.lines().filter(|line| line.split_whitespace().next() == Some(&desk.namespace));
    assert_eq!(own.count(), 2);
}

async fn a_change_is_seen_by_who_watches(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create configmap settings --from-literal=a=1").await;
    let mut process = desk.command().args(["get", "cm", "settings", "--watch"]).spawn().expect("kubectl can be run");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let mut next = async || lines.next_line().await.expect("it is text").expect("it does not end");
    assert_eq!(without_ages(&next().await), [["NAME", "DATA"]]);
    assert_eq!(without_ages(&next().await), [["settings", "1"]]);
    desk.run("patch cm settings -p", &[r#"{"data":{"b":"2"}}"#]).await.success();
    assert_eq!(without_ages(&next().await), [["settings", "2"]]);
    process.kill().await.expect("it runs");
}

async fn kinds_are_explained(world: World) {
    let desk = Desk::new(world).await;
    let text = desk.says("explain configmap.data").await;
    assert!(text.starts_with("KIND:       ConfigMap\nVERSION:    v1\n\nFIELD: data <map[string]string>\n"), "{text}");
    let text = desk.says("explain deployment.spec.strategy --recursive").await;
    let fields = "FIELDS:\n  rollingUpdate\t<RollingUpdateDeployment>\n    maxSurge\t<IntOrString>\n    \
        maxUnavailable\t<IntOrString>\n  type\t<string>\n  enum: Recreate, RollingUpdate\n";
    assert!(text.contains(fields), "{text}");
    let text = desk.says("explain managedcluster.spec.hubAcceptsClient").await;
    let expected = "GROUP:      cluster.open-cluster-management.io\nKIND:       ManagedCluster\nVERSION:    v1\n\n\
        FIELD: hubAcceptsClient <boolean>\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("Whether this hub accepts the cluster."), "{text}");
    let text = desk.complains("explain deployment.spec.nothing").await;
    assert_eq!(text, "error: field \"nothing\" does not exist\n");
}

async fn what_there_is_is_listed(world: World) {
    let desk = Desk::new(world).await;
    let core = desk.says("api-resources --api-group=apps --no-headers -o wide").await;
    let deployments = core.lines().find(|line| line.starts_with("deployments ")).expect("they are listed");
    let words: Vec<_> = deployments.split_whitespace().collect();
    let verbs = "create,delete,deletecollection,get,list,patch,update,watch";
    assert_eq!(words, ["deployments", "deploy", "apps/v1", "true", "Deployment", verbs, "all"]);
    let names = desk.says("api-resources --api-group=drover.dev -o name").await;
    assert!(names.lines().any(|name| name == "addonrollouts.drover.dev"), "{names}");
    let versions = desk.says("api-versions").await;
    for version in ["v1", "apps/v1", "drover.dev/v1alpha1", "rbac.authorization.k8s.io/v1"] {
        assert!(versions.lines().any(|line| line == version), "{version} is not in {versions}");
    }
    let version: Value = serde_json::from_str(&desk.says("version -o json").await).expect("an object");
    assert_eq!((&version["serverVersion"]["major"], &version["serverVersion"]["minor"]), (&"1".into(), &"36".into()));
}

async fn objects_are_described(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create configmap settings --from-literal=colour=red").await;
    let expected = format!(
        "Name:         settings\nNamespace:    {}\nLabels:       <none>\nAnnotations:  <none>\n\nData\n====\ncolour:\n\
        ----\nred\n\n\nBinaryData\n====\n\nEvents:  <none>\n",
        desk.namespace
    );
    assert_eq!(desk.says("describe cm settings").await, expected);

    let name = desk.world.unique("described");
    let cluster = serde_json::json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": name }, "spec": { "hubAcceptsClient": false },
    });
    desk.feed("create -f -", &cluster.to_string()).await.success();
    let uid = desk.says(&format!("get managedcluster {name} -o jsonpath={{.metadata.uid}}")).await;
    let involved = serde_json::json!({ "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "name": name, "uid": uid });
    let event = serde_json::json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": format!("{name}.1"), "namespace": "default" },
        "involvedObject": involved, "reason": "Greeted", "message": "hello there", "type": "Normal",
        "source": { "component": "somebody" }, "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    desk.world.kubectl_with_input(["create", "-f", "-"], event.to_string().as_bytes()).await.success();
    let text = desk.says(&format!("describe managedcluster {name}")).await;
    assert!(text.contains("Kind:         ManagedCluster\n"), "{text}");
    let row = text.lines().last().expect("it ends with the events");
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        (&words[..2], &words[words.len() - 3..]),
        (&["Normal", "Greeted"][..], &["somebody", "hello", "there"][..])
    );
    let selector = format!("involvedObject.name={name}");
    let events = desk.world.kubectl(["get", "events", "-n", "default", "--no-headers", "--field-selector", &selector]);
    let events = events.await.success();
    let words: Vec<_> = events.split_whitespace().skip(1).collect();
    assert_eq!(words, ["Normal", "Greeted", &format!("managedcluster/{name}"), "hello", "there"]);
}
