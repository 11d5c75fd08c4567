//! `stair retrieve`: questions in, sections out.

use crate::cache::CacheArgs;
use crate::model::{KvArg, ModelArgs};
use crate::output::{self, Failure};
use crate::tuned::{self, Answer};
use clap::ValueEnum;
use serde_json::{Value, json};
use stair::eval::{Tuning, tuning::Refusal};
use stair::search::Scoring;
use stair::{CancelToken, Error, Hit, Index, RetrieveOptions, Retriever, RetrieverOptions, Stats};
use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::Duration;

/// Ask an index questions
///
/// Without a question on the command line they are read from standard input, one a line, and one
/// JSON object a line is printed for each, in order and at once.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(short, long, value_name = "X.stair")]
    index: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// Number of sections to find [default: 3, or all when there are fewer]
    #[arg(short)]
    k: Option<usize>,
    /// Print one JSON object for each question
    #[arg(long)]
    json: bool,
    /// Print the sections' texts too
    #[arg(long)]
    text: bool,
    /// How titles are scored: exact, or local, which is cheaper and ranks worse
    #[arg(long, value_enum, default_value = "exact")]
    scoring: ScoringArg,
    /// How much a section's words count beside what the model says: its score is the
    /// log-probability and W times its lexical score [default: what `stair tune` chose, else 0]
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    lexical_weight: Option<f32>,
    /// Leave out what `stair tune` chose for the model
    #[arg(long)]
    no_tune: bool,
    /// Print what each answer cost
    #[arg(long)]
    stats: bool,
    /// Give up on a question after this time [default, and 0: never]
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// Threads that compute [default: all that the process may use]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Questions from standard input to ask at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    callers: usize,
    /// Questions that share the model's work
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_parallel: u32,
    /// Room for one question, in tokens
    #[arg(long, value_name = "N", default_value_t = 512)]
    max_question_tokens: u32,
    /// Length of the context, in tokens [default: what is needed]
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// Number type of the keys and values that the model remembers
    #[arg(long, value_enum, default_value = "f16")]
    kv_type: KvArg,
    /// Bit-equal scores whatever else is asked: one question at a time
    #[arg(long)]
    deterministic: bool,
    #[command(flatten)]
    cache: CacheArgs,
    /// Read the index into memory rather than map it, for network drives
    #[arg(long)]
    copy: bool,
    /// The questions
    questions: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScoringArg {
    Exact,
    Local,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let index = match args.copy {
        true => Index::open_copy(&args.index)?,
        false => Index::open(&args.index)?,
    };
    let tuning = match (&args.model.model, args.no_tune) {
        (Some(model), false) => tuned::beside(model, &index),
        _ => None,
    };
    let retriever = match args.model.open()? {
        Some(model) => Retriever::new(Arc::new(model), Arc::new(index), &args.retriever())?,
        None => Retriever::lexical(Arc::new(index)),
    };
    let asking = Asking::new(args, &retriever, tuning);
    if args.questions.is_empty() {
        return from_stdin(&asking);
    }
    let bar = output::spinner("reading the table of contents".to_owned());
    retriever.warm(&CancelToken::new())?;
    bar.finish_and_clear();
    let mut code = ExitCode::SUCCESS;
    for question in &args.questions {
        let result = asking.ask(question);
        if args.json {
            output::json_line(&result_json(args, question, &result))?;
        } else {
            match &result {
                Ok(answer) => print_answer(args, question, answer)?,
                Err(error) => eprintln!("stair: {error} [{}]", error.code().name()),
            }
        }
        if result.is_err() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

impl Args {
    fn retriever(&self) -> RetrieverOptions {
        let mut options = RetrieverOptions::default();
        options.threads = self.threads;
        options.max_question_tokens = self.max_question_tokens;
        // Room for questions that are never asked at the same time would only take memory.
        let callers = u32::try_from(self.callers.max(1)).unwrap_or(u32::MAX);
        options.max_parallel = self.max_parallel.min(callers);
        options.context_tokens = self.context;
        options.kv_type = self.kv_type.into();
        options.deterministic = self.deterministic;
        options.cache_dir = self.cache.folder();
        options
    }

    fn options(&self, lexical_weight: f32) -> RetrieveOptions {
        let mut options = RetrieveOptions::default();
        options.k = self.k;
        options.scoring = match self.scoring {
            ScoringArg::Exact => Scoring::Exact,
            ScoringArg::Local => Scoring::Local,
        };
        options.lexical_weight = lexical_weight;
        options.timeout = self
            .timeout_ms
            .filter(|&ms| ms > 0)
            .map(Duration::from_millis);
        options
    }
}

/// A retriever, and how it is asked.
struct Asking<'a> {
    args: &'a Args,
    retriever: &'a Retriever,
    lexical_weight: f32,
    refusal: Option<Refusal>,
}

impl<'a> Asking<'a> {
    fn new(args: &'a Args, retriever: &'a Retriever, tuning: Option<Tuning>) -> Self {
        let tuned_weight = tuning.as_ref().map_or(0.0, |tuning| tuning.lexical_weight);
        let lexical_weight = args.lexical_weight.unwrap_or(tuned_weight);
        // What was chosen for one score says nothing about another.
        let applies = matches!(args.scoring, ScoringArg::Exact) && lexical_weight == tuned_weight;
        Self {
            args,
            retriever,
            lexical_weight,
            refusal: tuning.and_then(|tuning| tuning.refusal).filter(|_| applies),
        }
    }

    fn ask(&self, question: &str) -> stair::Result<Answer> {
        let options = self.args.options(self.lexical_weight);
        tuned::retrieve(self.retriever, question, options, self.refusal.as_ref())
    }
}

/// Answers the lines of standard input in order, `callers` of them at the same time.
fn from_stdin(asking: &Asking<'_>) -> Result<ExitCode, Failure> {
    if io::stdin().is_terminal() {
        eprintln!("one question a line; end with Ctrl-D");
    }
    let callers = asking.args.callers.clamp(1, 1024);
    let printed = Printed::default();
    let lines = Mutex::new((0usize, io::BufReader::new(io::stdin())));
    let next = || -> Option<(usize, io::Result<Vec<u8>>)> {
        // A thread that panicked held no half-read line.
        let mut lines = lines
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // Reads no further while too many answers wait to be printed.
        printed.wait_for(lines.0.saturating_sub(AHEAD * callers));
        let mut line = Vec::new();
        let read = lines.1.read_until(b'\n', &mut line);
        lines.0 += 1;
        if lines.0 == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        match read {
            Ok(0) => None,
            Ok(_) => Some((lines.0, Ok(line))),
            Err(error) => Some((lines.0, Err(error))),
        }
    };
    let (answers, answered) = mpsc::channel();
    std::thread::scope(|scope| {
        // Also when printing fails: whoever waits goes on, and finds that nobody listens.
        let _all = printed.all_at_the_end();
        // Moved in here, so that it is gone before the callers are waited for.
        let answered = answered;
        for _ in 0..callers {
            let answers = answers.clone();
            let printed = &printed;
            scope.spawn(move || {
                let _others = printed.all_after_a_panic();
                while let Some((number, line)) = next() {
                    let stop = line.is_err();
                    let answer = line.map(|line| answer_line(asking, &line));
                    // Nobody prints any more: nobody needs an answer.
                    if answers.send((number, answer)).is_err() || stop {
                        break;
                    }
                }
            });
        }
        drop(answers);
        let mut early = BTreeMap::new();
        let mut due = 1;
        for (number, answer) in answered {
            early.insert(number, answer);
            while let Some(answer) = early.remove(&due) {
                let answer = answer.map_err(|e| Error::io("read", "standard input", e))?;
                output::json_line(&answer)?;
                printed.set(due);
                due += 1;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// What some editors put before a file's first line; no part of a question.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Lines that are read before the answers of earlier ones are printed, for each caller.
const AHEAD: usize = 16;

/// Number of the last line whose answer was printed.
#[derive(Default)]
struct Printed {
    line: Mutex<usize>,
    more: Condvar,
}

impl Printed {
    fn set(&self, line: usize) {
        let mut printed = self.lock();
        *printed = line.max(*printed);
        self.more.notify_all();
    }

    fn wait_for(&self, line: usize) {
        let mut printed = self.lock();
        while *printed < line {
            printed = self
                .more
                .wait(printed)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// When what it returns is dropped, nobody has to wait any more.
    fn all_at_the_end(&self) -> All<'_> {
        All {
            printed: self,
            only_after_a_panic: false,
        }
    }

    /// The same, if the thread panicked: its line is never printed.
    fn all_after_a_panic(&self) -> All<'_> {
        All {
            printed: self,
            only_after_a_panic: true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        // A number is whole whoever panicked.
        self.line
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct All<'a> {
    printed: &'a Printed,
    only_after_a_panic: bool,
}

impl Drop for All<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() || !self.only_after_a_panic {
            self.printed.set(usize::MAX);
        }
    }
}

fn answer_line(asking: &Asking<'_>, line: &[u8]) -> Value {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(question) => {
            let result = asking.ask(question);
            result_json(asking.args, question, &result)
        }
        Err(error) => {
            let error = Error::InvalidUtf8 {
                what: "the question".to_owned(),
                at: error.valid_up_to(),
            };
            result_json(asking.args, &String::from_utf8_lossy(line), &Err(error))
        }
    }
}

fn result_json(args: &Args, question: &str, result: &stair::Result<Answer>) -> Value {
    let Answer { hits, answerable } = match result {
        Ok(answer) => answer,
        Err(error) => return json!({"query": question, "error": output::error_json(error)}),
    };
    let list: Vec<Value> = hits.hits.iter().map(|hit| hit_json(args, hit)).collect();
    let mut value = json!({"query": question, "hits": list, "legal_mass": hits.legal_mass});
    if let Some(answerable) = answerable {
        value["answerable"] = (*answerable).into();
    }
    if args.stats {
        value["stats"] = stats_json(&hits.stats);
    }
    value
}

fn hit_json(args: &Args, hit: &Hit) -> Value {
    let mut value = json!({
        "section": hit.section,
        "number": hit.number,
        "title": hit.title,
        "path": hit.path,
        "log_prob": hit.log_prob,
        "span": [hit.span.start, hit.span.end],
    });
    if let Some(lexical) = hit.lexical {
        value["score"] = hit.score.into();
        value["lexical"] = lexical.into();
    }
    if let Some(page) = hit.page {
        value["page"] = page.into();
    }
    if args.text {
        value["text"] = hit.text.clone().into();
    }
    value
}

fn stats_json(stats: &Stats) -> Value {
    let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    json!({
        "decodes": stats.decodes,
        "question_tokens": stats.question_tokens,
        "search_tokens": stats.search_tokens,
        "prefix_tokens": stats.prefix_tokens,
        "restored_tokens": stats.restored_tokens,
        "prefill_ms": ms(stats.prefill),
        "search_ms": ms(stats.search),
        "total_ms": ms(stats.total),
    })
}

/// The model's probability of the title in percent; without a model, the lexical score.
fn confidence(hit: &Hit) -> String {
    match hit.log_prob.map(|log_prob| 100.0 * log_prob.exp()) {
        Some(percent) if percent < 1.0 => "<1 %".to_owned(),
        Some(percent) => format!("{percent:.0} %"),
        None => format!("{:.1}", hit.score),
    }
}

fn print_answer(args: &Args, question: &str, answer: &Answer) -> Result<(), Failure> {
    let Answer { hits, answerable } = answer;
    let mut out = io::stdout().lock();
    writeln!(out, "{question}")?;
    if *answerable == Some(false) {
        writeln!(out, "  No section seems to answer this. The nearest are:")?;
    }
    for (rank, hit) in hits.hits.iter().enumerate() {
        let identifier = match hit.number.as_str() {
            "" => hit.title.clone(),
            number => format!("{number} {}", hit.title),
        };
        let above = match hit.path.split_last() {
            Some((_, above)) if !above.is_empty() => format!("  ({})", above.join(" > ")),
            _ => String::new(),
        };
        let sure = confidence(hit);
        writeln!(out, "  {}. {identifier}{above}  {sure}", rank + 1)?;
        if args.text {
            let text = hit
                .text
                .as_deref()
                .unwrap_or("(the index was built without texts)");
            for line in text.lines() {
                writeln!(out, "     {line}")?;
            }
        }
    }
    if args.stats {
        let stats = stats_json(&hits.stats);
        match hits.legal_mass {
            Some(mass) => writeln!(out, "  legal mass {mass:.3}; {stats}")?,
            None => writeln!(out, "  {stats}")?,
        }
    }
    writeln!(out)?;
    Ok(())
}
