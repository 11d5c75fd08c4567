//! Many questions from several callers at a time: memory that does not grow, answers that do not
//! change.

use crate::memory::anonymous;
use crate::report::{Anything, Report};
use stair::index::{BuildOptions, build};
use stair::prompt::Template;
use stair::toc::{ReadOptions, read_markdown};
use stair::{Hit, Index, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const CALLERS: usize = 8;

/// Questions, unless `STAIR_SOAK` says otherwise.
const SOAK: usize = 20_000;

/// From here on memory is not to grow: every buffer has its size, every thread its heap.
const SETTLED: usize = 1_000;

/// How far a score may move with what shares a decode (docs/abi.md, "How exact scores are").
const EPSILON: f64 = 1.2;

/// Asks many questions from eight callers and compares each answer with what one caller gets in
/// deterministic mode: the best score may differ by what sharing a decode may do, and the section
/// must have that score there too, give or take as much.
///
/// - `soak_rss_growth` is by what fraction the process's own memory (RssAnon) grew from the 1,000th
///   question to the last.
/// - `soak_wrong_answers` is how many were missing, or further off than that. On a Q8_0 model scores of
///   these questions moved by up to 0.87. Beside the figure stands by how much; a wrong answer would be off by
///   whole units.
///
/// With SmolLM2-135M it takes some minutes on two quiet cores; the model that `benches/tiny_model.py` makes
/// takes one. Document, prompt and questions are the shortest that still have a search to do, because many
/// questions are the matter here, not long ones.
pub fn measure(model: &Path, report: &mut Report) -> Anything {
    let all = match std::env::var("STAIR_SOAK") {
        Ok(number) => number.parse()?,
        Err(_) => SOAK,
    };
    let model = Arc::new(Model::open(model, &ModelOptions::default())?);
    let index = Arc::new(index(&model)?);
    let questions = questions();
    let mut options = RetrieverOptions::default();
    options.max_question_tokens = 32;
    let alone = {
        let mut options = options.clone();
        options.deterministic = true;
        let retriever = Retriever::new(Arc::clone(&model), Arc::clone(&index), &options)?;
        let leaves = index.leaves() as usize;
        let asked = questions
            .iter()
            .map(|question| Ok(retriever.retrieve(question, &top(leaves))?.hits));
        asked.collect::<stair::Result<Vec<_>>>()?
    };
    let retriever = Retriever::new(model, index, &options)?;

    let [next, right, elsewhere] = [const { AtomicUsize::new(0) }; 3];
    let (sizes, most) = (Mutex::new(Vec::new()), Mutex::new(0f64));
    let settled = SETTLED.min(all / 2);
    let started = Instant::now();
    let look = |number: usize| -> Anything {
        let bytes = anonymous()?;
        let rate = number as f64 / started.elapsed().as_secs_f64();
        println!(
            "soak: {number} questions, {:.2} MB, {rate:.1} a second",
            bytes / 1e6
        );
        sizes.lock().expect("no caller panicked").push(bytes);
        Ok(())
    };
    let caller = || -> Result<(), String> {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= all {
                return Ok(());
            }
            if number == settled || (number > settled && number % (all / 10).max(1) == 0) {
                look(number).map_err(|error| error.to_string())?;
            }
            let place = number % questions.len();
            let hits = retriever.retrieve(&questions[place], &top(1));
            let hit = &hits.map_err(|error| error.to_string())?.hits[0];
            let moved = moved(hit, &alone[place]);
            right.fetch_add(usize::from(moved <= EPSILON), Relaxed);
            let mut most = most.lock().expect("no caller panicked");
            *most = most.max(moved);
            drop(most);
            elsewhere.fetch_add(usize::from(hit.section != alone[place][0].section), Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|result| result.expect("a caller panicked"))
    })?;
    look(all)?;

    let sizes = sizes.into_inner().expect("no caller panicked");
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
        return Err("STAIR_SOAK is too small".into());
    };
    let wrong = all - right.into_inner();
    report.note(format!(
        "soak: {all} questions, {} of them distinct, from {CALLERS} callers; {wrong} wrong or lost; {} had \
         another best section than alone; scores moved by {:.2} at most; {:.2} MB after {settled}, {:.2} MB at the end",
        questions.len().min(all),
        elsewhere.into_inner(),
        most.into_inner().expect("no caller panicked"),
        first / 1e6,
        last / 1e6,
    ));
    report.at_most("soak_rss_growth", last / first - 1.0, 0.01);
    report.at_most("soak_wrong_answers", wrong as f64, 0.0);
    Ok(())
}

/// How far scores moved at least that `hit` is the best, where `alone` is the ranking of all sections.
fn moved(hit: &Hit, alone: &[Hit]) -> f64 {
    let from = |other: &Hit| (hit.score - other.score).abs();
    let same = alone.iter().find(|other| other.section == hit.section);
    from(&alone[0]).max(same.map_or(f64::INFINITY, from))
}

fn top(k: usize) -> RetrieveOptions {
    let mut options = RetrieveOptions::default();
    options.k = Some(k);
    options
}

/// Four leaves of a word each, and a prompt of hardly more.
fn index(model: &Model) -> Anything<Index> {
    let source = b"# Shop\n\n## Bread\n\n## Shoes\n\n## Music\n\n## Trains\n";
    let mut toc = read_markdown(source, "Shop", &ReadOptions::default())?;
    for section in &mut toc.sections {
        section.number.clear();
    }
    let mut template = Template::default();
    template.head = "{title}\n".to_owned();
    template.leaf = "{section}".to_owned();
    template.anchor = "\nQ:".to_owned();
    template.after_question = "\nA:".to_owned();
    let mut options = BuildOptions::default();
    options.template = template;
    let (bytes, _) = build(&toc, model, &options, &|_| ())?;
    Ok(Index::from_bytes(&bytes)?)
}

/// Questions of two words.
fn questions() -> Vec<String> {
    let kinds = [
        "Fresh", "Old", "Cheap", "Fast", "Warm", "New", "Small", "Red",
    ];
    let things = [
        "rolls", "boots", "songs", "tracks", "flour", "laces", "drums", "stations",
    ];
    let pairs = kinds
        .iter()
        .flat_map(|kind| things.iter().map(move |thing| (kind, thing)));
    pairs
        .map(|(kind, thing)| format!("{kind} {thing}?"))
        .collect()
}
