//! The warm file of a real model: the same answers to the bit, and nothing but a miss whatever is
//! wrong with it.

#![cfg(all(feature = "engine", feature = "building"))]

mod common;

use common::{QUESTIONS, alone, handbook, model, model_path, scratch, top};
use rand::{Rng, SeedableRng};
use stair::engine::{Context, ContextOptions};
use stair::search::model::{Batch, Capacity, LanguageModel, Seq};
use stair::{
    CancelToken, Hits, Index, KvType, Model, ModelOptions, Retriever, RetrieverOptions, Stats,
};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A small table of contents: decoding it is quick, and so is a search.
fn index() -> Arc<Index> {
    static INDEX: OnceLock<Arc<Index>> = OnceLock::new();
    let build = || {
        let source = "# Holidays\n\nText.\n\n# Safety\n\nText.\n\n# Travel\n\nText.\n";
        let path = Path::new("small.md");
        let bytes = common::index_bytes(source.as_bytes(), path, common::vocabulary());
        Arc::new(Index::from_bytes(&bytes).expect("opens"))
    };
    Arc::clone(INDEX.get_or_init(build))
}

fn options(folder: Option<&Path>) -> RetrieverOptions {
    let mut options = RetrieverOptions::default();
    options.deterministic = true;
    // Where others compute too, one thread waits for nobody.
    options.threads = Some(1);
    options.max_question_tokens = 64;
    options.cache_dir = folder.map(Path::to_path_buf);
    options
}

fn retriever(folder: Option<&Path>) -> Retriever {
    Retriever::new(model(), index(), &options(folder)).expect("a retriever")
}

fn ask(retriever: &Retriever) -> Hits {
    retriever.retrieve(QUESTIONS[0], &top(3)).expect("answers")
}

/// The hits, with their scores to the bit.
fn bits(hits: &Hits) -> Vec<(u32, u64, u64)> {
    let bits = |number: f64| number.to_bits();
    hits.hits
        .iter()
        .map(|hit| {
            (
                hit.section,
                bits(hit.score),
                bits(hit.log_prob.expect("a model")),
            )
        })
        .collect()
}

fn prefix() -> u32 {
    index().prefix().len() as u32
}

/// The answer to the question without a warm file.
fn cold() -> &'static Hits {
    static COLD: OnceLock<Hits> = OnceLock::new();
    COLD.get_or_init(|| ask(&retriever(None)))
}

fn assert_cold(hits: &Hits, what: &str) {
    assert_eq!(bits(hits), bits(cold()), "{what}");
    let Stats {
        prefix_tokens,
        restored_tokens,
        ..
    } = hits.stats;
    assert_eq!((prefix_tokens, restored_tokens), (prefix(), 0), "{what}");
}

fn assert_restored(hits: &Hits, what: &str) {
    assert_eq!(bits(hits), bits(cold()), "{what}");
    let Stats {
        prefix_tokens,
        restored_tokens,
        ..
    } = hits.stats;
    assert_eq!((prefix_tokens, restored_tokens), (0, prefix()), "{what}");
}

/// Writes the warm file, and says where.
fn written(folder: &Path) -> PathBuf {
    let retriever = retriever(Some(folder));
    assert_cold(&ask(&retriever), "there is no file yet");
    let path = retriever.warm_file().expect("a place for it").to_path_buf();
    drop(retriever);
    assert!(path.is_file(), "dropping the retriever waits for the file");
    path
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(scratch()).expect("a folder")
}

fn files(folder: &Path) -> usize {
    folder.read_dir().expect("lists").count()
}

#[test]
fn a_restored_prefix_answers_to_the_bit_as_a_decoded_one() {
    let _alone = alone();
    let folder = folder();
    written(folder.path());
    let retriever = retriever(Some(folder.path()));
    let first = ask(&retriever);
    assert_restored(&first, "the first question");
    let second = ask(&retriever);
    assert_eq!(bits(&second), bits(&first));
    assert_eq!(
        (second.stats.prefix_tokens, second.stats.restored_tokens),
        (0, 0)
    );
    // Other questions too, and more than one at a time.
    let mut shared = options(Some(folder.path()));
    shared.deterministic = false;
    let shared = Retriever::new(model(), index(), &shared).expect("a retriever");
    let plain = self::retriever(None);
    for question in &QUESTIONS[..3] {
        let cold = plain.retrieve(question, &top(3)).expect("answers");
        for retriever in [&retriever, &shared] {
            let warm = retriever.retrieve(question, &top(3)).expect("answers");
            assert_eq!(bits(&warm), bits(&cold), "{question}");
        }
    }
    drop((retriever, shared));
    assert_eq!(files(folder.path()), 1, "nothing was written again");
}

#[test]
fn every_number_type_restores_its_own_state_and_no_others() {
    let _alone = alone();
    let folder = folder();
    let mut paths = Vec::new();
    for kv_type in [KvType::F16, KvType::Q8_0, KvType::F32] {
        let mut options = options(Some(folder.path()));
        options.kv_type = kv_type;
        let new = || Retriever::new(model(), index(), &options).expect("a retriever");
        // Each is dropped, and with it the file written, before the next one is made.
        let ask_new = || ask(&new());
        let (cold, warm) = (ask_new(), ask_new());
        assert_eq!(cold.stats.prefix_tokens, prefix(), "{kv_type:?}");
        assert_eq!(warm.stats.restored_tokens, prefix(), "{kv_type:?}");
        assert_eq!(bits(&cold), bits(&warm), "{kv_type:?}");
        paths.push(new().warm_file().expect("a place").to_path_buf());
    }
    assert_eq!(files(folder.path()), 3);
    // Nor does one of them take another's file under its own name.
    std::fs::copy(&paths[1], &paths[0]).expect("copies");
    assert_cold(&ask(&retriever(Some(folder.path()))), "another type's file");
}

#[test]
fn a_file_with_any_byte_changed_or_cut_short_gives_the_same_answer() {
    let _alone = alone();
    let folder = folder();
    let path = written(folder.path());
    let whole = std::fs::read(&path).expect("reads");
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    // Half of them where llama.cpp's own description stands.
    for case in 0..200 {
        let mut bytes = whole.clone();
        let at = match case % 2 {
            0 => random.random_range(0..bytes.len()),
            _ => random.random_range(0..600),
        };
        match case % 10 {
            9 => bytes.truncate(at),
            _ => bytes[at] ^= random.random_range(1..=255u8),
        }
        std::fs::write(&path, &bytes).expect("writes");
        let retriever = retriever(Some(folder.path()));
        let what = format!("byte {at} of {}", whole.len());
        let stats = retriever.warm(&CancelToken::new()).expect("warms");
        assert_eq!(stats.restored_tokens, 0, "{what}");
        // It is decoded as ever, so a sample of the answers says enough.
        if case % 20 == 9 {
            assert_eq!(bits(&ask(&retriever)), bits(cold()), "{what}");
        }
        drop(retriever);
        assert!(
            std::fs::read(&path).expect("reads") == whole,
            "it is written anew"
        );
    }
    assert_restored(&ask(&retriever(Some(folder.path()))), "the last one");
}

#[test]
fn a_state_that_was_forged_with_right_checksums_ends_nothing() {
    let _alone = alone();
    let model = model();
    let index = index();
    let prefix = &index.prefix()[..8];
    let options = ContextOptions {
        capacity: Capacity {
            sequences: 3,
            batch: 16,
            rows: 2,
            context: 64,
        },
        threads: 1,
        kv_type: KvType::F16,
    };
    let context = || Context::new(&model, &options).expect("a context");
    let mut first = context();
    let mut batch = Batch::default();
    batch.push(Seq::PREFIX, 0, prefix, 8);
    first.decode(&batch, &mut |_, _| Ok(())).expect("decodes");
    let state = first.state(Seq::PREFIX).expect("a state");
    let mut second = context();
    second.set_state(Seq::PREFIX, &state, 8).expect("fits");
    assert!(second.state(Seq::PREFIX).expect("a state") == state);
    assert!(second.set_state(Seq::PREFIX, &state, 8).is_err(), "in use");

    // Whatever became of it, the sequence is whole or empty, and goes on.
    let mut try_state = |state: &[u8], what: &str| {
        second.clear(Seq::PREFIX).expect("clears");
        let taken = second.set_state(Seq::PREFIX, state, 8).is_ok();
        let length = if taken { 8 } else { 0 };
        assert_eq!(second.length(Seq::PREFIX), length, "{what}");
        batch.clear();
        batch.push(Seq::PREFIX, length, &prefix[..1], 0);
        let mut rows = 0;
        let decoded = second.decode(&batch, &mut |_, _| {
            rows += 1;
            Ok(())
        });
        assert!(decoded.is_ok() && rows == 1, "{what}: {decoded:?}");
        taken
    };
    // Every word that describes: llama.cpp's magic number, the sequence, streams, cells, each cell,
    // and what stands before the first keys.
    for at in (0..16 + 8 * 12 + 32).step_by(4) {
        for value in [0u32, 1, 2, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut forged = state.clone();
            forged[at..at + 4].copy_from_slice(&value.to_le_bytes());
            try_state(&forged, &format!("{value} at {at}"));
        }
    }
    for len in (0..state.len()).step_by(9973).chain([state.len() - 1]) {
        assert!(!try_state(&state[..len], "cut short"), "cut to {len}");
    }
    let longer = [&state[..], &[0]].concat();
    assert!(!try_state(&longer, "longer"));
    assert!(try_state(&state, "the honest one"));
}

#[test]
fn a_relative_folder_is_that_of_the_time_when_the_retriever_is_made() {
    let _alone = alone();
    let folder = Path::new("no/such/folder");
    let retriever = retriever(Some(folder));
    let path = retriever.warm_file().expect("a place");
    let here = std::env::current_dir().expect("a working directory");
    assert_eq!(path.parent(), Some(&*here.join(folder)));
    // Nobody asked, so nothing was written.
    let stands = path.exists();
    assert_eq!(retriever.close(), None);
    assert!(!stands && !folder.exists());
}

#[test]
fn closing_says_where_the_file_is_if_this_retriever_read_or_wrote_it() {
    let _alone = alone();
    let folder = folder();
    let path = written(folder.path());
    let unasked = retriever(Some(folder.path()));
    assert_eq!(unasked.close(), None, "it only stands there");
    for damage in [false, true] {
        if damage {
            std::fs::write(&path, "damaged").expect("writes");
        }
        let retriever = retriever(Some(folder.path()));
        retriever.warm(&CancelToken::new()).expect("warms");
        assert_eq!(retriever.close().as_ref(), Some(&path));
    }
    assert_eq!(retriever(None).close(), None);
}

#[test]
fn another_model_in_the_same_place_is_a_miss() {
    let _alone = alone();
    let folder = folder();
    let first = written(folder.path());
    // The same model but for one number in the middle of one tensor's first block.
    let copy = folder.path().join("model.gguf");
    let mut bytes = std::fs::read(model_path()).expect("reads");
    let start = common::gguf::Metadata::read(&model_path()).end;
    let at = (start + bytes.len()) / 2 / 65536 * 65536;
    bytes[at..at + 65536]
        .iter_mut()
        .step_by(34)
        .for_each(|byte| *byte ^= 1);
    std::fs::write(&copy, bytes).expect("writes");
    let other = Model::open(&copy, &ModelOptions::default()).expect("opens");
    let retriever = Retriever::new(Arc::new(other), index(), &options(Some(folder.path())));
    let retriever = retriever.expect("a retriever");
    assert_ne!(retriever.warm_file().expect("a place"), first);
    assert_eq!(ask(&retriever).stats.prefix_tokens, prefix());
}

#[test]
fn a_folder_that_cannot_be_written_or_is_none_is_as_without() {
    let _alone = alone();
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("writes");
    for place in [
        file.clone(),
        file.join("below"),
        PathBuf::from("/proc/nowhere"),
    ] {
        assert_cold(&ask(&retriever(Some(&place))), &place.display().to_string());
    }
    // A read-only folder is no hindrance for root, so what stands there is a folder of the name.
    let path = written(folder.path());
    std::fs::remove_file(&path).expect("removes");
    std::fs::create_dir(&path).expect("makes");
    assert_cold(&ask(&retriever(Some(folder.path()))), "a folder in the way");
    // A folder that is not there is made.
    let new = folder.path().join("not/there");
    written(&new);
    assert_restored(&ask(&retriever(Some(&new))), "a folder that was made");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_as_no_folder() {
    let _alone = alone();
    // A file system of one MiB takes a mount, which takes root in a container that allows it.
    let folder = folder();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(folder.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        eprintln!("left out: this process may not mount");
        return;
    }
    let hits = ask(&retriever(Some(folder.path())));
    let left = files(folder.path());
    let unmounted = Command::new("umount").arg(folder.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_cold(&hits, "a full disk");
    assert_eq!(left, 0, "half a file was left");
}

#[test]
fn retrievers_that_warm_at_once_do_no_harm() {
    let _alone = alone();
    let folder = folder();
    let answers = std::thread::scope(|scope| {
        let ask_one = || ask(&retriever(Some(folder.path())));
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask_one)).collect();
        let join =
            |thread: std::thread::ScopedJoinHandle<'_, Hits>| thread.join().expect("answers");
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    for hits in answers {
        assert_eq!(bits(&hits), bits(cold()));
    }
    assert_eq!(files(folder.path()), 1);
    assert_restored(&ask(&retriever(Some(folder.path()))), "afterwards");
}

/// The command, over the handbook, with `folder` for a cache.
fn stair(subcommand: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stair"));
    command.args([subcommand, "-m"]).arg(model_path());
    command.arg("-i").arg(&handbook().path);
    command.arg("--cache").arg(folder).args(["--threads", "1"]);
    command
}

#[test]
fn processes_that_are_killed_while_they_warm_leave_nothing_that_a_later_one_stumbles_on() {
    let _alone = alone();
    let folder = folder();
    let warm = || {
        let output = stair("warm", folder.path()).arg("--json").output();
        let output = output.expect("runs");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let started = Instant::now();
    assert_eq!(warm()["restored"], false);
    let whole = started.elapsed();
    std::fs::remove_dir_all(folder.path()).expect("empties");
    // Most of them near the end, when the file is written.
    for share in [0.3, 0.8, 0.9, 0.95, 1.0] {
        let mut child = stair("warm", folder.path());
        let child = child.stdout(Stdio::null()).spawn();
        let mut child = child.expect("runs");
        std::thread::sleep(whole.mul_f64(share));
        child.kill().expect("kills");
        child.wait().expect("ends");
    }
    warm();
    let told = warm();
    assert_eq!(told["restored"], true);
    let path = PathBuf::from(told["path"].as_str().expect("a path"));
    assert_eq!(
        told["bytes"],
        std::fs::metadata(path).expect("is there").len()
    );
}

#[test]
fn processes_that_are_killed_while_they_serve_leave_nothing_that_a_later_one_stumbles_on() {
    let _alone = alone();
    let folder = folder();
    let ask = || {
        let mut command = stair("retrieve", folder.path());
        let output = command.args(["--json", QUESTIONS[0]]).output();
        let output = output.expect("runs");
        assert!(output.status.success(), "{output:?}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let hits = answer["hits"].as_array().expect("hits").clone();
        hits.iter()
            .map(|hit| hit["section"].clone())
            .collect::<Vec<_>>()
    };
    let expected = ask();
    std::fs::remove_dir_all(folder.path()).expect("empties");
    // The warm file is written beside the first answer and after it; then there are more questions.
    for wait in [0, 2, 5, 10, 20, 200] {
        let mut command = stair("retrieve", folder.path());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("runs");
        let mut questions = child.stdin.take().expect("is piped");
        for question in QUESTIONS {
            writeln!(questions, "{question}").expect("asks");
        }
        let mut first = String::new();
        let answers = child.stdout.take().expect("is piped");
        std::io::BufReader::new(answers)
            .read_line(&mut first)
            .expect("answers");
        assert!(first.contains("hits"), "{first}");
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().expect("kills");
        child.wait().expect("ends");
    }
    assert_eq!(ask(), expected);
    assert_eq!(ask(), expected);
    let whole = |entry: std::io::Result<std::fs::DirEntry>| {
        // Where a file cannot be without a name, a killed process leaves a temporary one, for a day.
        let name = entry.expect("lists").file_name();
        !name.to_string_lossy().starts_with(".stair-")
    };
    let left = folder.path().read_dir().expect("lists");
    assert_eq!(
        left.filter_map(|entry| whole(entry).then_some(())).count(),
        1
    );
}

#[test]
fn two_processes_warm_at_the_same_time() {
    let _alone = alone();
    let folder = folder();
    let mut pair = [0, 1].map(|_| {
        let mut command = stair("warm", folder.path());
        command.stdout(Stdio::null()).spawn().expect("runs")
    });
    for child in &mut pair {
        assert!(child.wait().expect("ends").success());
    }
    assert_eq!(files(folder.path()), 1);
    let output = stair("retrieve", folder.path())
        .args(["--json", "--stats", QUESTIONS[0]])
        .output()
        .expect("runs");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["stats"]["prefix_tokens"], 0, "{answer}");
}
