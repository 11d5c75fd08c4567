//! `stair warm`: the warm file of an index and a model, made before it is needed.

use crate::cache;
use crate::model::{KvArg, ModelArgs};
use crate::output::{self, Failure};
use serde_json::json;
use stair::engine::log::{self, Level};
use stair::{CancelToken, Code, Error, Index, Retriever, RetrieverOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Keep what a model remembers of an index's table of contents
///
/// Whoever asks afterwards with the same index, model and options need not wait for the model to
/// read it: `stair retrieve`, or a program that names the same folder.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(short, long, value_name = "X.stair")]
    index: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// The folder to keep it in [default: stair in the platform's cache folder]
    #[arg(short, long, visible_alias = "cache", value_name = "DIR")]
    output: Option<PathBuf>,
    /// Room for one question, in tokens
    #[arg(long, value_name = "N", default_value_t = 512)]
    max_question_tokens: u32,
    /// Number type of the keys and values that the model remembers
    #[arg(long, value_enum, default_value = "f16")]
    kv_type: KvArg,
    /// Threads that compute [default: all that the process may use]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let invalid = |what: &str| Error::InvalidArgument(what.to_owned());
    let folder = args.output.clone().or_else(cache::default_folder);
    let folder =
        folder.ok_or_else(|| invalid("this system names no cache folder: give one with -o"))?;
    let index = Index::open(&args.index)?;
    let model = args.model.open()?;
    let model = model.ok_or_else(|| invalid("it is the model that remembers: give it with -m"))?;

    // The library goes on without a warm file and says why in its log.
    let warning = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&warning);
    let listen = move |_, message: &str| {
        if let Ok(mut heard) = heard.lock() {
            message.clone_into(&mut heard);
        }
    };
    log::set(Some((Level::Warn, Arc::new(listen))));

    let mut options = RetrieverOptions::default();
    options.threads = args.threads;
    options.max_question_tokens = args.max_question_tokens;
    options.kv_type = args.kv_type.into();
    options.cache_dir = Some(folder);
    let started = Instant::now();
    let retriever = Retriever::new(Arc::new(model), Arc::new(index), &options)?;
    let bar = output::spinner("reading the table of contents".to_owned());
    let stats = retriever.warm(&CancelToken::new())?;
    // This waits until the file is written.
    let path = retriever.close();
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();

    let bytes = path.as_ref().and_then(|path| std::fs::metadata(path).ok());
    let (Some(path), Some(bytes)) = (path, bytes.filter(std::fs::Metadata::is_file)) else {
        let why = warning.lock().map(|why| why.clone()).unwrap_or_default();
        eprintln!("stair: {why} [{}]", Code::Io.name());
        return Ok(ExitCode::FAILURE);
    };
    let (bytes, restored) = (bytes.len(), stats.restored_tokens > 0);
    if args.json {
        let tokens = stats.prefix_tokens + stats.restored_tokens;
        output::json_line(&json!({
            "path": path,
            "bytes": bytes,
            "tokens": tokens,
            "restored": restored,
            "seconds": (seconds * 1e3).round() / 1e3,
        }))?;
    } else {
        let (path, bytes) = (path.display(), output::thousands(bytes));
        let how = if restored {
            "it was there, and was read"
        } else {
            "written"
        };
        writeln!(
            io::stdout().lock(),
            "{path}: {bytes} bytes, {how} in {seconds:.2} s"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
