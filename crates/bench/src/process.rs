//! What the system tells of a process: its CPU time and its memory.

use std::{fs, time::Duration};

use anyhow::{Context, ensure};

/// A process on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    pub(crate) fn memory_megabytes(self) -> anyhow::Result<f64> {
        self.megabytes("VmRSS:")
    }

    /// The most memory that it has ever had.
    pub(crate) fn peak_memory_megabytes(self) -> anyhow::Result<f64> {
        self.megabytes("VmHWM:")
    }

    /// The part of its memory that no file stands behind: what it has asked for.
    pub(crate) fn private_megabytes(self) -> anyhow::Result<f64> {
        self.megabytes("RssAnon:")
    }

    fn megabytes(self, field: &str) -> anyhow::Result<f64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).context("a process has memory")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// What it has used of all CPUs, in steps of some milliseconds.
    pub(crate) fn cpu(self) -> anyhow::Result<Duration> {
        let stat = self.read("stat")?;
        // The name, in brackets, may hold anything; behind it the first is the state, the 12th and 13th are times of user and system.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        ensure!(fields.next() != Some("Z"), "process {} has ended", self.0);
        let ticks: u64 = fields.skip(10).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
    }

    /// What its present threads have used, to the nanosecond. Time of threads that end is lost, so this is for short times.
    pub(crate) fn cpu_of_threads(self) -> anyhow::Result<Duration> {
        let mut total = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0)).with_context(|| self.is_missing())? {
            // A thread that has ended since.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            total += Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?);
        }
        Ok(total)
    }

    fn read(self, file: &str) -> anyhow::Result<String> {
        fs::read_to_string(format!("/proc/{}/{file}", self.0)).with_context(|| self.is_missing())
    }

    fn is_missing(self) -> String {
        format!("there is no process {} any more, or not on this machine", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread};

    use super::*;

    #[test]
    fn a_process_that_computes_uses_cpu_and_memory() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let process = Process(child.id());
        while process.cpu().unwrap() < Duration::from_millis(30) {
            thread::yield_now();
        }
        let finely = process.cpu_of_threads().unwrap();
        let memory = process.memory_megabytes().unwrap();
        let (private, peak) = (process.private_megabytes().unwrap(), process.peak_memory_megabytes().unwrap());
        child.kill().unwrap();
        assert!(finely >= Duration::from_millis(20), "{finely:?}");
        assert!(0.0 < memory && memory <= peak, "{memory} MB, at most {peak}");
        assert!(0.0 < private && private <= peak, "{private} MB of {peak}");

        // Nobody has waited for it yet: it is listed still.
        let error = loop {
            if let Err(error) = process.cpu() {
                break error.to_string();
            }
        };
        assert_eq!(error, format!("process {} has ended", child.id()));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let nobody = Process(u32::MAX);
        assert_eq!(
            nobody.cpu().unwrap_err().to_string(),
            "there is no process 4294967295 any more, or not on this machine"
        );
    }
}
