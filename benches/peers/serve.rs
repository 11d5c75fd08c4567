//! Being one system: the other end of the pipe.

use crate::protocol::{Answer, Ask, Document, Ready};
use crate::systems::{self, Engine};
use crate::{Anything, every_title, generate, ours};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

/// The arguments of `peers serve`.
#[derive(clap::Args)]
pub struct Args {
    /// Which one
    system: String,
    /// What it is asked about: the driver's document.json
    document: PathBuf,
}

/// Something that answers questions. Its prefix is warm when it is made.
pub trait Serving {
    /// The answer to one question; the time is taken outside.
    fn answer(&mut self, ask: &Ask) -> Anything<Answer>;
}

pub fn run(args: &Args) -> Anything {
    let document: Document = serde_json::from_slice(&std::fs::read(&args.document)?)?;
    let engine = systems::ALL
        .iter()
        .find(|system| system.name == args.system)
        .map(|system| system.engine);
    let mut serving: Box<dyn Serving> = match engine {
        Some(Engine::Ours(how)) => ours::open(&document, how)?,
        Some(Engine::Llama(constraint)) => generate::open(&document, constraint)?,
        Some(Engine::EveryTitle) => every_title::open(&document)?,
        _ => return Err(format!("{} is no system of this program", args.system).into()),
    };
    let mut out = std::io::stdout().lock();
    let mut say = |line: serde_json::Result<String>| -> Anything {
        writeln!(out, "{}", line?)?;
        Ok(out.flush()?)
    };
    say(serde_json::to_string(&Ready {
        versions: versions(),
    }))?;
    for line in std::io::stdin().lock().lines() {
        let ask: Ask = serde_json::from_str(&line?)?;
        let started = Instant::now();
        let mut answer = serving.answer(&ask)?;
        answer.seconds = started.elapsed().as_secs_f64();
        say(serde_json::to_string(&answer))?;
    }
    Ok(())
}

fn versions() -> BTreeMap<String, String> {
    // SAFETY: the text is static and NUL-terminated.
    let build = unsafe { CStr::from_ptr(stair::capi::stair_build_info()) };
    BTreeMap::from([("libstair".to_owned(), build.to_string_lossy().into_owned())])
}
