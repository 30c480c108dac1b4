//! What people do with kubectl. Every server must give it the same answers.

mod access;
mod apply;
mod change;
mod delete;
mod look;

use std::process::Stdio;

use drover_testkit::{Kubectl, World};

/// kubectl in a namespace of its own.
struct Desk {
    world: World,
    namespace: String,
}

impl Desk {
    async fn new(world: World) -> Self {
        let namespace = world.namespace("desk").await;
        Self { world, namespace }
    }

    /// Runs kubectl in the namespace. The arguments are separated by spaces; what has spaces itself is in `extra`.
    async fn run(&self, command: &str, extra: &[&str]) -> Kubectl {
        let arguments = ["-n", &self.namespace].into_iter().chain(command.split_whitespace());
        self.world.kubectl(arguments.chain(extra.iter().copied())).await
    }

    /// What it says where it succeeds.
    async fn says(&self, command: &str) -> String {
        self.run(command, &[]).await.success()
    }

    /// What it says, where the last argument has spaces in it.
    async fn says_to(&self, command: &str, last: &str) -> String {
        self.run(command, &[last]).await.success()
    }

    /// What it complains of where it fails.
    async fn complains(&self, command: &str) -> String {
        self.run(command, &[]).await.failure()
    }

    /// Runs it with text for its standard input.
    async fn feed(&self, command: &str, input: &str) -> Kubectl {
        let arguments = ["-n", &self.namespace].into_iter().chain(command.split_whitespace());
        self.world.kubectl_with_input(arguments, input.as_bytes()).await
    }

    /// kubectl that is to be used in another way, such as with an editor.
    fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(drover_testkit::Server::kubectl());
        command
            .args(["-n", &self.namespace, "--kubeconfig"])
            .arg(self.world.kubeconfig())
            .env_remove("KUBECONFIG")
            .env("KUBECTL_KUBERC", "false")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}
