//! A Kubernetes API server of one's own: the program of `testenv/`, as a child process.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Mutex, OnceLock, mpsc},
    thread,
};

use serde::Deserialize;
use tempfile::TempDir;

/// A running API server. It ends and removes its files when this is dropped, or with the test process, whichever is first.
#[derive(Debug)]
pub struct Server {
    kubeconfig: PathBuf,
    process: Child,
    _data: TempDir,
}

/// What the server prints when it is ready.
#[derive(Debug, Deserialize)]
struct ReadyLine {
    kubeconfig: PathBuf,
}

impl Server {
    /// The server that all scenarios share which run no hub.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// A server that nobody else uses, from the pool. One is always kept warm: as soon as it is taken, the next is started.
    pub(crate) fn take() -> Self {
        static POOL: OnceLock<Mutex<mpsc::Receiver<Server>>> = OnceLock::new();
        let pool = POOL.get_or_init(|| {
            let (give, take) = mpsc::sync_channel(0);
            thread::spawn(move || while give.send(Self::start()).is_ok() {});
            Mutex::new(take)
        });
        pool.lock().expect("no other scenario died here").recv().expect("the pool starts servers for ever")
    }

    /// A server with Drover's custom resources.
    #[must_use]
    pub fn start() -> Self {
        let data = data_folder();
        let crds = data.path().join("crds");
        fs::create_dir(&crds).expect("the data folder is writable");
        for crd in drover_api::crds() {
            let name = crd.metadata.name.as_deref().expect("a CRD has a name");
            // JSON is YAML.
            let text = serde_json::to_vec(&crd).expect("a CRD is JSON");
            fs::write(crds.join(name).with_extension("yaml"), text).expect("the data folder is writable");
        }
        Self::spawn(data, Some(&crds))
    }

    /// A server as Kubernetes comes, without any custom resource.
    pub(crate) fn bare() -> Self {
        Self::spawn(data_folder(), None)
    }

    fn spawn(data: TempDir, crds: Option<&Path>) -> Self {
        let mut command = Command::new(Self::program());
        command.args(["--stdin-eof", "--remove-data"]).arg("--data-dir").arg(data.path());
        if let Some(crds) = crds {
            command.arg("--crds").arg(crds);
        }
        // The server ends when its standard input does, which is held open by `process`.
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("testenv can be run");
        match ready_line(process.stdout.take()) {
            Some(ready) => Self { kubeconfig: ready.kubeconfig, process, _data: data },
            None => panic!("the API server did not start: {}", complaints(process)),
        }
    }

    /// The kubeconfig of an administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The program that the server is, for what else it can do.
    #[must_use]
    pub fn program() -> PathBuf {
        programs().join("testenv")
    }

    /// The `kubectl` of the server's version.
    #[must_use]
    pub fn kubectl() -> PathBuf {
        programs().join("kubectl")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn data_folder() -> TempDir {
    tempfile::Builder::new().prefix("drover-testenv-").tempdir().expect("there is room for temporary files")
}

fn ready_line(stdout: Option<ChildStdout>) -> Option<ReadyLine> {
    let mut line = String::new();
    BufReader::new(stdout?).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// What a server that did not start said on standard error.
fn complaints(mut process: Child) -> String {
    let mut text = String::new();
    if let Some(stderr) = &mut process.stderr {
        let _ = stderr.read_to_string(&mut text);
    }
    let _ = process.wait();
    text
}

/// The folder with `testenv` and `kubectl`, built if they are not in the cache.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testenv/build");
        let output = Command::new(&script).stderr(Stdio::inherit()).output().expect("testenv/build can be run");
        assert!(output.status.success(), "testenv/build failed; its output says why");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path is text").trim_end())
    })
}
