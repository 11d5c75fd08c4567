//! A system's process, from the driver's side.

use crate::Anything;
use crate::protocol::{Answer, Ask, Ready};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// A running system.
pub struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    log: PathBuf,
    /// What it said when it was ready.
    pub ready: Ready,
    /// Seconds until then.
    pub start_seconds: f64,
    /// Most memory until then, in bytes.
    pub start_bytes: Option<u64>,
}

impl Running {
    /// Starts `command` and waits until it is ready. Its standard error goes to `log`.
    pub fn start(mut command: Command, log: &Path) -> Anything<Self> {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child without pipes".into());
        };
        let mut running = Self {
            child,
            input,
            output: BufReader::new(output),
            log: log.to_owned(),
            ready: Ready {
                versions: Default::default(),
            },
            start_seconds: 0.0,
            start_bytes: None,
        };
        let line = running.line()?;
        running.ready = serde_json::from_str(&line)?;
        running.start_seconds = started.elapsed().as_secs_f64();
        running.start_bytes = running.status("VmHWM");
        // From here on the peak is that of answering. Where the kernel refuses, it stays the whole.
        let _ = fs::write(format!("/proc/{}/clear_refs", running.child.id()), "5");
        Ok(running)
    }

    /// Asks it one question.
    pub fn ask(&mut self, ask: &Ask) -> Anything<Answer> {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        if self.input.write_all(&line).is_err() {
            return Err(self.last_words().into());
        }
        Ok(serde_json::from_str(&self.line()?)?)
    }

    /// Most memory since it was ready, in bytes: pages of the mapped model count.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.status("VmHWM")
    }

    /// Memory of its own at the moment, in bytes: no mapped files.
    pub fn own_bytes(&self) -> Option<u64> {
        self.status("RssAnon")
    }

    /// Ends it.
    pub fn end(self) {
        let Self {
            mut child, input, ..
        } = self;
        // The end of its input is what it waits for.
        drop(input);
        let _ = child.wait();
    }

    fn line(&mut self) -> Anything<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(read) if read > 0 => Ok(line),
            _ => Err(self.last_words().into()),
        }
    }

    /// Why it ended, as far as one can know.
    fn last_words(&mut self) -> String {
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().rfind(|line| !line.trim().is_empty());
        format!("{status}: {}", last.unwrap_or("it said nothing"))
    }

    fn status(&self, field: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with(field))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    }
}
