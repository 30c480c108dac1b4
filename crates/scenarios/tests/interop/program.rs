//! The programs that take part, each as a process of its own.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
};

use tempfile::TempDir;

/// A program that runs until this is dropped. If the scenario fails, what it has said is shown.
pub(crate) struct Program {
    name: String,
    process: Child,
    folder: TempDir,
}

impl Program {
    /// Starts a part of `interop/`, which is made of OCM's code. It gets a folder of its own besides what it is told.
    pub(crate) fn ocm<T: AsRef<OsStr>>(part: &str, args: impl IntoIterator<Item = T>) -> Self {
        let mut command = Command::new(interop());
        // It ends with its standard input, and so with this process at the latest.
        command.args([part, "--stdin-eof"]).args(args);
        Self::start(&format!("OCM's {part}"), command)
    }

    /// Starts a command of `drover`.
    pub(crate) fn drover<T: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = T>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drover-under-test"));
        command.args([name, "--health-listen", "127.0.0.1:0"]).args(args);
        Self::start(&format!("drover {name}"), command)
    }

    fn start(name: &str, mut command: Command) -> Self {
        let folder = tempfile::Builder::new().prefix("drover-interop-").tempdir().expect("there is room for files");
        let log = File::create(folder.path().join("log")).expect("the folder is writable");
        let copy = log.try_clone().expect("a file can be shared");
        // Where it keeps what it needs between starts.
        let process = command
            .current_dir(folder.path())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(copy)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} can be run: {error}"));
        Self { name: name.to_owned(), process, folder }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
            let mut stderr = std::io::stderr().lock();
            let _ = writeln!(stderr, "---- {} has said:", self.name);
            let _ = stderr.write_all(&log);
        }
    }
}

/// What a command of `interop/` prints that ends by itself.
pub(crate) fn printed(args: &[&str]) -> Vec<u8> {
    let output = Command::new(interop()).args(args).stderr(Stdio::inherit()).output().expect("interop can be run");
    assert!(output.status.success(), "interop {args:?} failed; its output says why");
    output.stdout
}

/// The program of `interop/`, built if it is not in the cache.
fn interop() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let script = repository().join("interop/build");
        let output = Command::new(&script).stderr(Stdio::inherit()).output().expect("interop/build can be run");
        assert!(output.status.success(), "interop/build failed; its output says why");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path is text").trim_end())
    })
}

/// The repository's folder.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
