//! What the subcommands share in printing.

use serde_json::{Value, json};
use stair::{Error, files};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a subcommand ended early.
pub enum Failure {
    /// The library refused.
    Stair(Error),
    /// Standard output was closed.
    Pipe,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Stair(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Pipe,
            _ => Self::Stair(Error::io("write", "standard output", error)),
        }
    }
}

/// Refuses an output that would replace a file that it is made from.
pub fn not_an_input<'a>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let mut inputs = inputs.into_iter();
    match inputs.any(|input| files::is_same_file(input, output)) {
        false => Ok(()),
        true => Err(Failure::Stair(Error::InvalidArgument(format!(
            "{} is also what this is made from: name another file with -o",
            output.display()
        )))),
    }
}

/// One line of JSON on standard output, at once.
pub fn json_line(value: &Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(())
}

/// An error as a result's `error`.
pub fn error_json(error: &Error) -> Value {
    json!({"code": error.code() as i32, "name": error.code().name(), "message": error.to_string()})
}

/// A number with its thousands apart: `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A line on a terminal that says what takes so long; nothing anywhere else.
pub fn spinner(message: String) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

/// A bar on a terminal with the time left; nothing anywhere else.
pub fn progress(what: &'static str) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new(0);
    if let Ok(style) =
        indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {eta} left")
    {
        bar.set_style(style);
    }
    bar.with_message(what)
}
