//! A system's process, from the driver's side.

use crate::Anything;
use crate::protocol::{Answer, Ask, Ready};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a system is waited for. One that takes longer is killed.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until it is ready: it may have to load a model and to decode the table of contents.
    pub start: Duration,
    /// For an answer.
    pub answer: Duration,
    /// Until it has ended, once it has nothing more to read.
    pub end: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30 * 60),
            answer: Duration::from_secs(10 * 60),
            end: Duration::from_secs(30),
        }
    }
}

/// A running system. Dropped, it is killed.
pub struct Running {
    child: Child,
    /// Until its end is wanted.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
    patience: Patience,
    /// What it said when it was ready.
    pub ready: Ready,
    /// Seconds until then.
    pub start_seconds: f64,
    /// Most memory until then, in bytes.
    pub start_bytes: Option<u64>,
}

impl Running {
    /// Starts `command` and waits until it is ready. Its standard error goes to `log`.
    pub fn start(mut command: Command, log: &Path, patience: Patience) -> Anything<Self> {
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
            input: Some(input),
            lines: lines(output),
            log: log.to_owned(),
            patience,
            ready: Ready {
                versions: Default::default(),
            },
            start_seconds: 0.0,
            start_bytes: None,
        };
        let line = running.line(patience.start)?;
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
        // So short a line waits in the pipe, should nobody read it.
        let written = self.input.as_mut().map(|input| input.write_all(&line));
        if !matches!(written, Some(Ok(()))) {
            return Err(self.last_words().into());
        }
        Ok(serde_json::from_str(&self.line(self.patience.answer)?)?)
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
    pub fn end(mut self) {
        // The end of its input is what it waits for.
        self.input = None;
        self.wait();
    }

    fn line(&mut self, patience: Duration) -> Anything<String> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Disconnected) => Err(self.last_words().into()),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                let seconds = patience.as_secs_f64();
                Err(format!("killed: it wrote no line within {seconds} s").into())
            }
        }
    }

    /// Waits until it has ended; `None` when it has not in time.
    fn wait(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + self.patience.end;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Why it ended, as far as one can know.
    fn last_words(&mut self) -> String {
        let status = match self.wait() {
            Some(status) => status.to_string(),
            None => "it reads or writes no more, and has not ended".to_owned(),
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

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing happens to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of `output`, read by a thread, since a read by itself has no end.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
