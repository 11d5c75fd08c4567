//! Asks an index questions and prints the sections that answer them.
//!
//! usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION...

use stair::{Hits, Index, Model, ModelOptions, RetrieveOptions, Retriever, RetrieverOptions};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let args: Result<Vec<String>, OsString> = std::env::args_os()
        .skip(1)
        .map(OsString::into_string)
        .collect();
    let Ok(args) = args else {
        eprintln!("error: INVALID_UTF8: an argument is not UTF-8");
        return ExitCode::FAILURE;
    };
    let usage = || {
        eprintln!("usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION...");
        ExitCode::from(2)
    };
    let (files, callers, questions) = match args.as_slice() {
        [model, index, flag, n, questions @ ..] if flag == "--callers" => match n.parse() {
            Ok(callers @ 1..) => ([model, index], callers, questions),
            _ => return usage(),
        },
        [model, index, questions @ ..] => ([model, index], 0usize, questions),
        _ => return usage(),
    };
    if questions.is_empty() {
        return usage();
    }
    match ask(files, callers, questions) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}: {error}", error.code().name());
            ExitCode::FAILURE
        }
    }
}

fn ask(
    [model, index]: [&String; 2],
    callers: usize,
    questions: &[String],
) -> stair::Result<ExitCode> {
    let model = Arc::new(Model::open(model, &ModelOptions::default())?);
    let index = Arc::new(Index::open(index)?);
    let mut options = RetrieverOptions::default();
    options.deterministic = true;
    let retriever = Retriever::new(model, index, &options)?;

    let mut answers = Vec::new();
    for question in questions {
        let answer = retriever.retrieve(question, &RetrieveOptions::default())?;
        print(question, &answer);
        answers.push(answer);
    }
    if callers == 0 {
        return Ok(ExitCode::SUCCESS);
    }

    // One retriever serves any number of threads.
    let differing: usize = std::thread::scope(|scope| {
        let caller = || {
            let mut differing = 0;
            for (question, expected) in questions.iter().zip(&answers) {
                let answer = retriever.retrieve(question, &RetrieveOptions::default())?;
                differing += usize::from(answer.hits != expected.hits);
            }
            stair::Result::Ok(differing)
        };
        let callers: Vec<_> = (0..callers).map(|_| scope.spawn(caller)).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("a caller panicked"))
            .sum::<stair::Result<usize>>()
    })?;
    let each = questions.len();
    if differing > 0 {
        println!("{callers} callers, {each} answers each: {differing} differ");
        return Ok(ExitCode::FAILURE);
    }
    println!("{callers} callers, {each} answers each: all the same");
    Ok(ExitCode::SUCCESS)
}

fn print(question: &str, answer: &Hits) {
    println!("{question}");
    for (rank, hit) in answer.hits.iter().enumerate() {
        let identifier = match hit.number.as_str() {
            "" => hit.title.clone(),
            number => format!("{number} {}", hit.title),
        };
        let path = hit.path.join(" > ");
        println!("  {}. {identifier}  ({path})  {:.3}", rank + 1, hit.score);
    }
    println!();
}
