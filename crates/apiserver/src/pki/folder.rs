//! The folder that the roots of a server are kept in, so that its clients know it again.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use k8s_openapi::jiff::Timestamp;

use super::{Pair, Pki, Roots, Unwritable, key_in};

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const TOKENS: &str = "sa.key";
const ADMIN_CERTIFICATE: &str = "admin.crt";
const ADMIN_KEY: &str = "admin.key";

/// A folder with keys.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Why the keys of a server can not be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file can not be read or written.
    #[error("could not use {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Some of the files are there, and some are not.
    #[error(
        "{missing} is missing beside {found}: put it back, or remove all of {folder} to begin with new keys, which no client knows"
    )]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// A file that is there.
        found: &'static str,
        /// A file that is not.
        missing: &'static str,
    },
    /// A file is not what it should be.
    #[error(
        "{path} can not be read as a key in PEM: put the right one back, or remove the folder to begin with new keys, which no client knows"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// Keys and certificates could not be made.
    #[error("could not make keys and certificates: {0}")]
    Unwritable(#[from] Unwritable),
}

impl Folder {
    /// The folder at that path, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The roots that are kept there, or new ones, which are kept there from now on.
    pub fn roots(&self, now: Timestamp) -> Result<Roots, FolderError> {
        match self.read()? {
            Some(roots) => Ok(roots),
            None => self.keep(Roots::new(now)?),
        }
    }

    /// Writes down what people look for: what the administrator shows to the server.
    pub fn show(&self, pki: &Pki) -> Result<(), FolderError> {
        self.write(ADMIN_CERTIFICATE, &pki.admin.certificate)?;
        self.write(ADMIN_KEY, &pki.admin.key)
    }

    fn read(&self) -> Result<Option<Roots>, FolderError> {
        let names = [CA_CERTIFICATE, CA_KEY, TOKENS];
        let [certificate, key, tokens] = [self.text(names[0])?, self.text(names[1])?, self.text(names[2])?];
        match (certificate, key, tokens) {
            (None, None, None) => Ok(None),
            (Some(certificate), Some(key), Some(tokens)) => {
                for (name, text) in [(CA_KEY, &key), (TOKENS, &tokens)] {
                    key_in(text).map_err(|_| FolderError::Unreadable { path: self.0.join(name) })?;
                }
                Ok(Some(Roots { authority: Pair { certificate, key }, tokens }))
            }
            (certificate, key, tokens) => {
                let there = [certificate.is_some(), key.is_some(), tokens.is_some()];
                let name = |is_there| there.iter().position(|it| *it == is_there).map_or("", |place| names[place]);
                Err(FolderError::Incomplete { folder: self.0.clone(), found: name(true), missing: name(false) })
            }
        }
    }

    /// Keeps new roots. The CA's certificate comes last, so that who was interrupted begins anew.
    fn keep(&self, roots: Roots) -> Result<Roots, FolderError> {
        let folder = |error| FolderError::File { path: self.0.clone(), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(folder)?;
        let Roots { authority, tokens } = &roots;
        let files = [(TOKENS, tokens), (CA_KEY, &authority.key), (CA_CERTIFICATE, &authority.certificate)];
        let partial = |name: &str| format!(".{name}");
        for (name, text) in files {
            self.write(&partial(name), text)?;
        }
        for (name, _) in files {
            let (from, to) = (self.0.join(partial(name)), self.0.join(name));
            fs::rename(&from, &to).map_err(|error| FolderError::File { path: to, error })?;
        }
        Ok(roots)
    }

    fn text(&self, name: &str) -> Result<Option<String>, FolderError> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FolderError::File { path, error }),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let path = self.0.join(name);
        write_private(&path, text.as_bytes()).map_err(|error| FolderError::File { path, error })
    }
}

/// Writes a file that nobody else can read.
pub fn write_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    // One that is there with other rights would keep them.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(contents)?;
    file.sync_all()
}
