//! The file that everything is in, so that it is there again when the process is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use redb::{Builder, Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::{
    batch::Changes,
    history::Change,
    key::Resource,
    object::{Span, Stored},
    state::State,
};

/// An object by resource and position.
const OBJECTS: TableDefinition<'_, (&str, &str), Row<'_>> = TableDefinition::new("objects");
/// An object's revision, where its labels begin, how long they are, and its bytes.
type Row<'a> = (u64, u32, u32, &'a [u8]);
/// The revision of what last happened in a resource. The largest of all is the store's.
const RESOURCES: TableDefinition<'_, &str, u64> = TableDefinition::new("resources");
/// What there is to know about the file itself.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
const FORMAT: u64 = 1;

/// Everything is in memory too, so the file's own cache need not be large.
const CACHE_BYTES: usize = 16 << 20;

/// Why a store can not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or a file in it can not be used.
    #[error("can not use {path}: {source}")]
    Unusable {
        /// What can not be used.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process uses the folder.
    #[error("another process uses {0}: stop that one first, or use another folder")]
    InUse(PathBuf),
    /// The file is not as it was written.
    #[error("{path} is damaged ({reason}): put a copy in its place, or move it away to begin without any objects")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of a version that is not known here.
    #[error("{path} is of format {format}, and this program knows format {FORMAT} only: use the version that wrote it")]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
}

/// The file, while it is open. Nobody else can open it until this is gone.
pub(super) struct Journal {
    database: Database,
    path: PathBuf,
    /// It is held for as long as the file is open. It stands last, so that it is let go last.
    _lock: Option<fs::File>,
}

impl Journal {
    /// Opens the file in a folder, and reads what is in it. Neither has to be there.
    pub(super) fn open(folder: &Path) -> Result<(Self, State), OpenError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Unusable { path, source }
        };
        create_folder(folder).map_err(unusable(folder))?;
        let lock_path = folder.join("lock");
        let lock = private_file(&lock_path).map_err(unusable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(OpenError::InUse(folder.to_owned())),
            Err(fs::TryLockError::Error(source)) => return Err(unusable(&lock_path)(source)),
        }
        let path = folder.join("store.redb");
        let file = private_file(&path).map_err(unusable(&path))?;
        let (mut journal, state) = Self::read(path, Some(lock), || builder().create_file(file))?;
        if journal.is_loose(&state)
            && let Err(error) = journal.compact()
        {
            tracing::warn!(%error, file = %journal.path.display(), "the file can not be made smaller");
        }
        Ok((journal, state))
    }

    /// Reads what is in a database.
    pub(super) fn read(
        path: PathBuf,
        lock: Option<fs::File>,
        database: impl FnOnce() -> Result<Database, redb::DatabaseError>,
    ) -> Result<(Self, State), OpenError> {
        // Parts of the file that make no sense at all can make the library panic.
        let read = std::panic::AssertUnwindSafe(|| {
            let mut database = database()?;
            database.check_integrity()?;
            let format = prepare(&database)?;
            let state = if format == FORMAT { load(&database)? } else { State::new() };
            Ok::<_, redb::Error>((database, format, state))
        });
        match std::panic::catch_unwind(read) {
            Ok(Ok((database, FORMAT, state))) => Ok((Self { database, path, _lock: lock }, state)),
            Ok(Ok((_, format, ..))) => Err(OpenError::OtherFormat { path, format }),
            Ok(Err(redb::Error::DatabaseAlreadyOpen)) => Err(OpenError::InUse(path)),
            // A file that is no database at all is invalid data to the library.
            Ok(Err(redb::Error::Io(source))) if source.kind() != io::ErrorKind::InvalidData => {
                Err(OpenError::Unusable { path, source })
            }
            Ok(Err(error)) => Err(OpenError::Damaged { path, reason: error.to_string() }),
            Err(_) => Err(OpenError::Damaged { path, reason: "it can not be read".to_owned() }),
        }
    }

    /// Writes changes. When this is over, they are on the disk, all of them, or none.
    pub(super) fn commit(&mut self, changes: &Changes) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut resources = transaction.open_table(RESOURCES)?;
            for (resource, event) in &changes.events {
                let (key, object) = ((resource.as_str(), event.object.position()), &event.object);
                if event.change == Change::Deleted {
                    objects.remove(key)?;
                } else {
                    let Span(from, length) = object.labels_at();
                    objects.insert(key, (object.revision(), from, length, object.bytes().as_ref()))?;
                }
                resources.insert(resource.as_str(), event.revision())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Whether most of the file is air. That is so after much was deleted.
    fn is_loose(&self, state: &State) -> bool {
        /// A file that is smaller than this is not worth the trouble.
        const SMALL: u64 = 16 << 20;
        // An object can need twice its size, and some air is good for changes.
        let needed = state.bytes().saturating_mul(4);
        let size = fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        size > needed.max(SMALL)
    }

    /// Makes the file as small as it can be.
    pub(super) fn compact(&mut self) -> Result<(), redb::Error> {
        self.database.compact()?;
        Ok(())
    }
}

pub(super) fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Makes the tables that are not there yet, and tells the format of those that are.
fn prepare(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let format = transaction.open_table(ABOUT)?.get("format")?.map(|format| format.value());
    let Some(format) = format else {
        transaction.open_table(ABOUT)?.insert("format", FORMAT)?;
        transaction.open_table(OBJECTS)?;
        transaction.open_table(RESOURCES)?;
        transaction.commit()?;
        return Ok(FORMAT);
    };
    transaction.abort()?;
    Ok(format)
}

/// Everything that is in the file.
fn load(database: &Database) -> Result<State, redb::Error> {
    let mut state = State::new();
    let transaction = database.begin_read()?;
    for entry in transaction.open_table(RESOURCES)?.iter()? {
        let (resource, last) = entry?;
        state.restore_resource(Resource::of(resource.value()), last.value());
    }
    let mut resource = Resource::of("");
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, object) = entry?;
        let (name, position) = key.value();
        let (revision, from, length, bytes) = object.value();
        if resource.as_str() != name {
            resource = Resource::of(name);
        }
        let position = Arc::from(position);
        let object = Stored::restored(revision, position, Span(from, length), Bytes::copy_from_slice(bytes));
        state.restore(&resource, object);
    }
    Ok(state)
}

/// Objects can be secrets, so nobody else may look.
#[cfg(unix)]
fn create_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

fn private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
