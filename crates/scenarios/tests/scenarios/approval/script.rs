//! The script that approves install plans where there is no image of Drover: run by `bash` with an `oc` that answers from files, and with `kubectl` on a server.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use drover_api::cluster::{OperatorRef, OperatorUpgrades};
use drover_engine::upgrade::operator_work::{Approver, work};
use drover_testkit::{Server, World};
use tempfile::TempDir;

use super::{Field, LONG, Running, all, container, named, only};

drover_testkit::scenarios! {
    Bare { the_script_understands_what_a_server_says }
}

/// An `oc` that knows what the script asks for, from files: `kinds`, `subscriptions`, and a file for each plan. What it is told to change it writes down.
const OC: &str = r#"
case "$1 $2" in
  "api-resources --api-group") printf '%s\n' "$(<kinds)" ;;
  "get subscriptions.operators.coreos.com") printf '%s\n' "$(<subscriptions)" ;;
  "get installplans.operators.coreos.com") printf '%s' "$(<"$5.$3")" ;;
  "patch installplans.operators.coreos.com")
    IFS='|' read -r version approved rest <"$5.$3"
    if [[ ${*: -1} != "{\"metadata\":{\"resourceVersion\":\"$version\"},\"spec\":{\"approved\":true}}" ]]; then
      echo "the plan has changed: ${*: -1}" >&2
      exit 1
    fi
    printf '%s|true|%s\n' "$version" "$rest" >"$5.$3"
    ;;
  *)
    echo "unknown: $*" >&2
    exit 1
    ;;
esac
"#;

/// A cluster in files.
struct Files(TempDir);

impl Files {
    /// Subscriptions, as `name|namespace|approval|version to move to|version there|plan`, and plans, as `namespace.name` and `resource version|approved|versions`.
    fn new(subscriptions: &[&str], plans: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("the folder is writable");
        write("kinds", "installplans.operators.coreos.com\nsubscriptions.operators.coreos.com");
        write("subscriptions", &subscriptions.join("\n"));
        for (name, plan) in plans {
            write(name, plan);
        }
        let files = Self(folder);
        files.program("oc", OC);
        // Nobody has to wait for files.
        files.program("sleep", "");
        files
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::write(&path, format!("#!/bin/bash\n{text}")).expect("the folder is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the folder is writable");
    }

    /// Runs the script of a work, with no program but those in the folder.
    fn run(&self, operators: &OperatorUpgrades) -> Output {
        let (arguments, environment) = script(operators, Duration::from_secs(1));
        let mut command = Command::new("/bin/bash");
        command.args(arguments).env_clear().envs(environment).env("PATH", self.path()).current_dir(self.path());
        command.output().expect("bash can be run")
    }

    fn is_approved(&self, plan: &str) -> bool {
        fs::read_to_string(self.path().join(plan)).expect("the plan is there").contains("|true|")
    }
}

/// What the Job of a work that uses `oc` tells `bash`, and its environment.
fn script(operators: &OperatorUpgrades, timeout: Duration) -> (Vec<String>, BTreeMap<String, String>) {
    let work = work(operators, timeout, &Approver::Oc { image: "registry.example.com/tools/oc:4.12".to_owned() });
    let container = container(&work);
    let text = |value: &serde_json::Value| value.as_str().expect("it is a text").to_owned();
    let words: Vec<_> = container["command"].as_array().expect("a command").iter().map(text).collect();
    assert_eq!(words[0], "/bin/bash");
    let environment = container["env"].as_array().expect("an environment").iter();
    (words[1..].to_vec(), environment.map(|entry| (text(&entry["name"]), text(&entry["value"]))).collect())
}

fn told(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{stdout}{stderr}")
}

fn waiting() -> Files {
    Files::new(
        &[
            "gitops|operators|Manual|gitops.v2|gitops.v1|one",
            "gitops-too|operators|Manual|too.v2|too.v1|two",
            "git|operators|Manual|git.v2|git.v1|three",
            "gitops|operators-too|Manual|gitops.v2|gitops.v1|one",
        ],
        &[
            ("operators.one", "1|false|gitops.v2"),
            ("operators.two", "2|false|too.v2"),
            ("operators.three", "3|false|git.v2"),
            ("operators-too.one", "4|false|gitops.v2"),
        ],
    )
}

#[test]
fn the_plan_that_was_asked_for_is_approved_and_no_name_that_is_only_alike() {
    for (operators, approved) in [
        (only(&["gitops"]), vec!["operators.one"]),
        (only(&["gitops-too", "git"]), vec!["operators.three", "operators.two"]),
        (only(&["gitops-too-many", "it"]), vec![]),
    ] {
        let files = waiting();
        let output = files.run(&operators);
        assert!(output.status.success(), "{}", told(&output));
        assert!(told(&output).contains("whether the operators were upgraded is not looked at"), "{}", told(&output));
        assert!(output.stderr.is_empty(), "{}", told(&output));
        for plan in ["operators-too.one", "operators.one", "operators.three", "operators.two"] {
            assert_eq!(files.is_approved(plan), approved.contains(&plan), "{plan}: {}", told(&output));
        }
    }
}

#[test]
fn all_are_approved_but_those_left_out() {
    let files = waiting();
    let elsewhere = OperatorRef { name: "gitops".to_owned(), namespace: "operators-too".to_owned() };
    let mut exclude = named(&["git"]);
    exclude.push(elsewhere);
    let output = files.run(&OperatorUpgrades { exclude, ..all() });
    assert!(output.status.success(), "{}", told(&output));
    assert!(files.is_approved("operators.one") && files.is_approved("operators.two"), "{}", told(&output));
    assert!(!files.is_approved("operators.three") && !files.is_approved("operators-too.one"), "{}", told(&output));
}

#[test]
fn who_is_left_out_stays_so_even_if_included() {
    let files = waiting();
    let output = files.run(&OperatorUpgrades { exclude: named(&["gitops"]), ..only(&["gitops", "git"]) });
    assert!(output.status.success(), "{}", told(&output));
    assert!(files.is_approved("operators.three") && !files.is_approved("operators.one"), "{}", told(&output));
}

fn neighbours(versions: &str) -> Files {
    let subscriptions = [
        "gitops|operators|Manual|gitops.v2|gitops.v1|both",
        "storage|operators|Manual|storage.v2|storage.v1|both",
        "alone|operators|Manual|alone.v2|alone.v1|alone",
    ];
    let both = format!("1|false|{versions}");
    Files::new(&subscriptions, &[("operators.both", both.as_str()), ("operators.alone", "2|false|alone.v2")])
}

#[test]
fn a_plan_that_carries_more_is_left_and_others_go_on() {
    for operators in [only(&["gitops", "alone"]), OperatorUpgrades { exclude: named(&["storage"]), ..all() }] {
        let files = neighbours("gitops.v2 storage.v2");
        let output = files.run(&operators);
        assert!(!output.status.success(), "{}", told(&output));
        let reason =
            "operators/both is not approved: it also brings storage.v2 of operators/storage, which was not asked for";
        assert!(told(&output).contains(reason), "{}", told(&output));
        assert!(!files.is_approved("operators.both") && files.is_approved("operators.alone"), "{}", told(&output));
    }
    let files = neighbours("gitops.v2 storage.v2");
    let output = files.run(&only(&["gitops", "storage"]));
    assert!(output.status.success() && files.is_approved("operators.both"), "{}", told(&output));
}

#[test]
fn a_version_that_nobody_has_is_left_unless_all_were_asked_for() {
    let files = neighbours("gitops.v2 storage.v2 new.v1");
    let output = files.run(&only(&["gitops", "storage"]));
    assert!(!output.status.success() && !files.is_approved("operators.both"), "{}", told(&output));
    assert!(told(&output).contains("new.v1, which no Subscription of the namespace has"), "{}", told(&output));
    let output = files.run(&all());
    assert!(output.status.success() && files.is_approved("operators.both"), "{}", told(&output));
}

#[test]
fn what_needs_no_approval_is_left_to_itself() {
    let subscriptions = [
        "automatic|operators|Automatic|automatic.v2|automatic.v1|one",
        "done|operators|Manual|done.v2|done.v2|two",
        "new|operators|Manual||||",
    ];
    let files =
        Files::new(&subscriptions, &[("operators.one", "1|false|automatic.v2"), ("operators.two", "1|false|done.v2")]);
    let output = files.run(&all());
    assert!(output.status.success(), "{}", told(&output));
    assert!(!files.is_approved("operators.one") && !files.is_approved("operators.two"), "{}", told(&output));
}

#[test]
fn a_cluster_without_operators_has_nothing_to_approve() {
    let files = Files::new(&[], &[]);
    fs::write(files.path().join("kinds"), "").expect("the folder is writable");
    let output = files.run(&all());
    assert!(output.status.success() && told(&output).contains("nothing to approve"), "{}", told(&output));
}

#[test]
fn what_can_not_be_read_is_no_success() {
    let files = Files::new(&["gitops|operators|Manual|gitops.v2|gitops.v1|lost"], &[]);
    let output = files.run(&all());
    assert!(!output.status.success(), "{}", told(&output));
    assert!(told(&output).contains("not everything could be approved within 1 s"), "{}", told(&output));
}

async fn the_script_understands_what_a_server_says(world: World) {
    let field = Field::new(world).await;
    for name in ["gitops", "gitops-too", "storage"] {
        field.operator(name).await;
    }
    field.plan("install-both", &["one.v2", "storage.v2"]).await;
    field.subscribe("one", "install-both").await;
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let oc = folder.path().join("oc");
    let kubectl = format!(
        "#!/bin/bash\nexec '{}' --kubeconfig '{}' \"$@\"\n",
        Server::kubectl().display(),
        field.kubeconfig.display()
    );
    fs::write(&oc, kubectl).expect("the folder is writable");
    fs::set_permissions(&oc, fs::Permissions::from_mode(0o755)).expect("the folder is writable");
    let run = async |operators: &OperatorUpgrades| {
        let (arguments, environment) = script(operators, LONG);
        let mut command = tokio::process::Command::new("/bin/bash");
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        command.args(arguments).env_clear().envs(environment).env("PATH", path).env("HOME", folder.path());
        Running::of(command).ends().await
    };
    let ended = run(&only(&["gitops"])).await;
    assert!(ended.well().contains("everything that was asked for is approved"), "{ended:?}");
    assert!(field.is_approved("install-gitops").await && !field.is_approved("install-gitops-too").await, "{ended:?}");
    let ended = run(&only(&["one"])).await;
    assert!(ended.badly().contains("not everything was approved"), "{ended:?}");
    assert!(!field.is_approved("install-both").await, "{ended:?}");
}
