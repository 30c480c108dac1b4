//! A disk that remembers what was written to it, and can lose what was not yet safe.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex},
};

use redb::StorageBackend;

use super::*;
use crate::store::{OpenError, journal};

#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<(Mutex<Platter>, Condvar)>);

#[derive(Debug, Default)]
struct Platter {
    /// What was there when it began to be remembered.
    before: Vec<u8>,
    now: Vec<u8>,
    log: Vec<Step>,
    is_full: bool,
    is_stuck: bool,
}

#[derive(Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Resize(u64),
    Sync,
}

impl Step {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, data) => {
                let at = usize::try_from(*at).unwrap();
                // The disk may have forgotten that it grew.
                bytes.resize(bytes.len().max(at + data.len()), 0);
                bytes[at..at + data.len()].copy_from_slice(data);
            }
            Self::Resize(length) => bytes.resize(usize::try_from(*length).unwrap(), 0),
            Self::Sync => {}
        }
    }
}

impl Disk {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let disk = Self::default();
        disk.platter(|platter| (platter.before, platter.now) = (bytes.clone(), bytes));
        disk
    }

    /// A store on this disk.
    pub(super) fn open(&self, keep: Keep) -> Result<Store, OpenError> {
        let disk = self.clone();
        let (file, state) =
            journal::Journal::read(PathBuf::from("disk"), None, || journal::builder().create_with_backend(disk))?;
        Ok(Store::over(file, state, keep, still()).unwrap())
    }

    fn platter<T>(&self, with: impl FnOnce(&mut Platter) -> T) -> T {
        let done = with(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        done
    }

    /// How much was written so far.
    pub(super) fn steps(&self) -> usize {
        self.platter(|platter| platter.log.len())
    }

    /// How often everything became safe since then.
    pub(super) fn syncs_since(&self, steps: usize) -> usize {
        self.platter(|platter| platter.log[steps..].iter().filter(|step| matches!(step, Step::Sync)).count())
    }

    /// From now on nothing can be written.
    pub(super) fn fill(&self) {
        self.platter(|platter| platter.is_full = true);
    }

    /// Nothing becomes safe until it is let go.
    pub(super) fn hold(&self, is_stuck: bool) {
        self.platter(|platter| platter.is_stuck = is_stuck);
    }

    /// What is left if the power fails after so many steps: all that was safe then, and by chance some of the rest.
    pub(super) fn crash(&self, steps: usize, mut chance: u64) -> Vec<u8> {
        self.platter(|platter| {
            let log = &platter.log[..steps];
            let safe = log.iter().rposition(|step| matches!(step, Step::Sync)).unwrap_or(0);
            let mut bytes = platter.before.clone();
            for (number, step) in log.iter().enumerate() {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if number <= safe || chance >> 63 == 1 {
                    step.apply(&mut bytes);
                }
            }
            bytes
        })
    }
}

impl Platter {
    fn take(&mut self, step: Step) -> io::Result<()> {
        if self.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        step.apply(&mut self.now);
        self.log.push(step);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter(|platter| platter.now.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        self.platter(|platter| {
            let bytes = platter.now.get(from..from + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.platter(|platter| platter.take(Step::Resize(length)))
    }

    fn sync_data(&self) -> io::Result<()> {
        let platter = self.0.0.lock().unwrap();
        self.0.1.wait_while(platter, |platter| platter.is_stuck).unwrap().take(Step::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.platter(|platter| platter.take(Step::Write(offset, data.to_vec())))
    }
}
