//! Adapters that do not belong, on files of a few tensors; and one that does, on the tests' model,
//! against llama.cpp's own way of applying it.

use super::*;
use crate::Code;
use crate::engine::gguf_file::GgufFile;
use std::path::PathBuf;

/// A tensor of a file that a test writes: its name, its sides, and its numbers.
type Written<'a> = (&'a str, &'a [usize], Vec<f32>);

/// Writes a GGUF of texts, one float and tensors of 32-bit floats.
fn write_gguf(path: &Path, texts: &[(&str, &str)], alpha: Option<f32>, tensors: &[Written<'_>]) {
    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((texts.len() as u64 + u64::from(alpha.is_some())).to_le_bytes());
    for (key, value) in texts {
        text(&mut out, key);
        out.extend(8u32.to_le_bytes());
        text(&mut out, value);
    }
    if let Some(alpha) = alpha {
        text(&mut out, "adapter.lora.alpha");
        out.extend(6u32.to_le_bytes());
        out.extend(alpha.to_le_bytes());
    }
    let mut at = 0u64;
    for (name, shape, numbers) in tensors {
        assert_eq!(numbers.len(), shape.iter().product::<usize>(), "{name}");
        text(&mut out, name);
        out.extend((shape.len() as u32).to_le_bytes());
        for &side in *shape {
            out.extend((side as u64).to_le_bytes());
        }
        out.extend(0u32.to_le_bytes());
        out.extend(at.to_le_bytes());
        at += (numbers.len() as u64 * 4).next_multiple_of(32);
    }
    for (_, _, numbers) in tensors {
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(bytemuck::cast_slice::<f32, u8>(numbers));
    }
    out.resize(out.len().next_multiple_of(32), 0);
    std::fs::write(path, out).expect("writes");
}

const MODEL: &[(&str, &str)] = &[("general.type", "model"), ("general.architecture", "llama")];
const LORA: &[(&str, &str)] = &[
    ("general.type", "adapter"),
    ("general.architecture", "llama"),
    ("adapter.type", "lora"),
];

/// A folder with a model of three matrices, two of them with an `output.weight` apart.
struct Small {
    folder: tempfile::TempDir,
    base: PathBuf,
    adapter: PathBuf,
}

impl Small {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().join("base.gguf");
        let tensors = [
            ("token_embd.weight", &[4, 6][..], vec![1.0; 24]),
            ("blk.0.attn_q.weight", &[4, 2], vec![1.0; 8]),
            ("blk.0.ffn_up_exps.weight", &[4, 2, 3], vec![1.0; 24]),
            ("blk.0.scaled.weight", &[4, 2], vec![1.0; 8]),
            ("blk.0.scaled.scale", &[1], vec![1.0]),
            ("blk.0.empty.weight", &[0, 2], vec![]),
        ];
        write_gguf(&base, MODEL, None, &tensors);
        let adapter = folder.path().join("lora.gguf");
        Self {
            folder,
            base,
            adapter,
        }
    }

    /// What merging comes to with an adapter of these tensors.
    fn refusal(&self, texts: &[(&str, &str)], tensors: &[Written<'_>]) -> String {
        write_gguf(&self.adapter, texts, Some(8.0), tensors);
        self.merged()
    }

    fn merged(&self) -> String {
        let output = self.folder.path().join("out.gguf");
        let mut options = MergeOptions::default();
        options.to = Some("f16");
        let error = merge(&self.base, &self.adapter, &output, &options).expect_err("refused");
        assert_eq!(error.code(), Code::Adapter, "{error}");
        assert_eq!(
            std::fs::read_dir(self.folder.path())
                .expect("lists")
                .count(),
            2
        );
        error.to_string()
    }
}

fn pair<'a>(names: [&'a str; 2], a: &'a [usize], b: &'a [usize]) -> [Written<'a>; 2] {
    let zeros = |shape: &[usize]| vec![0.5; shape.iter().product()];
    [(names[0], a, zeros(a)), (names[1], b, zeros(b))]
}

const Q: [&str; 2] = ["blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b"];

#[test]
fn an_adapter_goes_into_the_model_that_it_was_trained_on() {
    let small = Small::new();
    let tensors = [("blk.0.attn_q.weight", &[4, 2][..], vec![1.0; 8])];
    let merged = |adapter| [MODEL, &[("stair.provenance.adapter", adapter)]].concat();
    let trained_on = |adapter| [LORA, &[("stair.train.base_adapter", adapter)]].concat();
    for (model, texts, fits) in [
        (merged("one"), LORA.to_vec(), false),
        (merged("one"), trained_on("another"), false),
        (merged("one"), trained_on("one"), true),
        (MODEL.to_vec(), trained_on("one"), false),
        (MODEL.to_vec(), LORA.to_vec(), true),
    ] {
        write_gguf(&small.base, &model, None, &tensors);
        let base = GgufFile::open(&small.base).expect("opens");
        write_gguf(
            &small.adapter,
            &texts,
            Some(8.0),
            &pair(Q, &[4, 2], &[2, 2]),
        );
        match Adapter::open(&small.adapter, &base) {
            Ok(_) => assert!(fits),
            Err(error) => assert!(!fits && error.to_string().contains("already"), "{error}"),
        }
    }
}

#[test]
fn an_adapter_that_does_not_belong_is_refused_with_the_reason() {
    let small = Small::new();
    let good = pair(Q, &[4, 2], &[2, 2]);
    let embedding = ["token_embd.weight.lora_a", "token_embd.weight.lora_b"];
    let scaled = ["blk.0.scaled.weight.lora_a", "blk.0.scaled.weight.lora_b"];
    let other = ["blk.9.attn_q.weight.lora_a", "blk.9.attn_q.weight.lora_b"];
    let experts = [
        "blk.0.ffn_up_exps.weight.lora_a",
        "blk.0.ffn_up_exps.weight.lora_b",
    ];
    let empty = ["blk.0.empty.weight.lora_a", "blk.0.empty.weight.lora_b"];
    for (texts, tensors, words) in [
        (
            MODEL,
            &good[..],
            &["general.type", "\"model\"", "\"adapter\""][..],
        ),
        (&LORA[..2], &good, &["adapter.type", "\"lora\""]),
        (
            &[LORA[0], ("general.architecture", "gemma"), LORA[2]],
            &good,
            &["\"gemma\"", "\"llama\""],
        ),
        (LORA, &[], &["no pair"]),
        (LORA, &good[..1], &["lora_b is missing"]),
        (LORA, &good[1..], &["lora_a is missing"]),
        (LORA, &pair(["x", "y"], &[1], &[1]), &["\"x\"", "convert"]),
        (
            LORA,
            &pair(other, &[4, 2], &[2, 2]),
            &["does not have", "blk.9"],
        ),
        (
            LORA,
            &pair(Q, &[5, 2], &[2, 2]),
            &["[5, 2]", "[2, 2]", "[4, 2]"],
        ),
        (LORA, &pair(Q, &[4, 2], &[2, 3]), &["[2, 3]", "[4, 2]"]),
        (LORA, &pair(Q, &[4, 1], &[2, 2]), &["[4]", "[2, 2]"]),
        (LORA, &pair(experts, &[4, 1], &[1, 2]), &["[4, 2, 3]"]),
        (LORA, &pair(embedding, &[2, 6], &[2, 4]), &["output too"]),
        (LORA, &pair(scaled, &[4, 2], &[2, 2]), &["scales"]),
        (LORA, &pair(empty, &[0, 2], &[2, 2]), &["no numbers"]),
    ] {
        let why = small.refusal(texts, tensors);
        for word in words {
            assert!(why.contains(word), "no {word:?} in: {why}");
        }
    }
}

#[test]
fn numbers_that_are_none_and_damaged_files_are_refused() {
    let small = Small::new();
    let mut diverged = pair(Q, &[4, 2], &[2, 2]);
    diverged[1].2[3] = f32::NAN;
    assert!(small.refusal(LORA, &diverged).contains("diverged"));
    // Numbers, but not after they are multiplied, or not as the type that is asked for.
    for large in [f32::MAX, 1e6] {
        diverged[1].2[3] = large;
        assert!(small.refusal(LORA, &diverged).contains("diverged"));
    }

    write_gguf(&small.adapter, LORA, None, &pair(Q, &[4, 2], &[2, 2]));
    let bytes = std::fs::read(&small.adapter).expect("reads");
    for len in [0, 3, 20, 100, bytes.len() - 32] {
        std::fs::write(&small.adapter, &bytes[..len]).expect("writes");
        let why = small.merged();
        assert!(why.contains("damaged") || why.contains("no GGUF"), "{why}");
    }

    // The model and the adapter the wrong way round; and an output that is an input.
    std::fs::write(&small.adapter, &bytes).expect("writes");
    let output = small.folder.path().join("out.gguf");
    let options = MergeOptions::default();
    let of = |base, adapter, output| merge(base, adapter, output, &options).expect_err("refused");
    let error = of(&small.adapter, &small.base, &output);
    assert!(matches!(error, Error::NotAModel { .. }), "{error}");
    for input in [&small.base, &small.adapter] {
        let error = of(&small.base, &small.adapter, input);
        assert!(error.to_string().contains("replace"), "{error}");
    }
    // This model does not say its number type.
    let error = of(&small.base, &small.adapter, &output);
    assert!(error.to_string().contains("--type"), "{error}");
}

/// ggml would refuse it too, after it wrote about it to standard error.
#[test]
fn numbers_that_the_type_cannot_hold_are_not_quantised() {
    let small = Small::new();
    let output = small.folder.path().join("out.gguf");
    for (number, to) in [
        (f32::NAN, "f32"),
        (f32::INFINITY, "bf16"),
        (7e4, "f16"),
        (-7e4, "q8_0"),
    ] {
        let tensors = [("token_embd.weight", &[1, 2][..], vec![1.0, number])];
        write_gguf(&small.base, MODEL, None, &tensors);
        let error = crate::engine::quantize(&small.base, &output, to, 1).expect_err("refused");
        assert!(error.to_string().contains("token_embd.weight"), "{error}");
        assert!(!output.exists());
    }
}

#[test]
fn what_is_added_is_the_product_scaled_by_alpha_over_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let (base, adapter) = (folder.path().join("b"), folder.path().join("a"));
    let tensors = [
        ("token_embd.weight", &[2, 3][..], vec![0.0; 6]),
        ("output.weight", &[2, 3], vec![0.0; 6]),
        ("blk.0.up.weight", &[2, 3, 2], vec![0.0; 12]),
    ];
    write_gguf(&base, MODEL, None, &tensors);
    let numbers = |from: u8, count: u8| (from..from + count).map(f32::from).collect();
    let pairs: [Written<'_>; 4] = [
        // The embedding's pair: a row of A for each token.
        ("token_embd.weight.lora_a", &[1, 3], numbers(1, 3)),
        ("token_embd.weight.lora_b", &[1, 2], numbers(10, 2)),
        ("blk.0.up.weight.lora_a", &[2, 1, 2], numbers(1, 4)),
        ("blk.0.up.weight.lora_b", &[1, 3, 2], numbers(1, 6)),
    ];
    let sum = |alpha, name, layer| {
        write_gguf(&adapter, LORA, alpha, &pairs);
        let base = GgufFile::open(&base).expect("opens");
        let lora = Adapter::open(&adapter, &base).expect("opens");
        let delta = lora.delta(name, layer).expect("reads").expect("is there");
        let mut rows = vec![100.0; 6];
        // In parts, as a large tensor is.
        add(&mut rows[..2], 2, 0, &delta, 1);
        add(&mut rows[2..], 2, 1, &delta, 2);
        rows
    };
    let embedding = "token_embd.weight";
    assert_eq!(
        sum(None, embedding, 0),
        [110.0, 111.0, 120.0, 122.0, 130.0, 133.0]
    );
    assert_eq!(
        sum(Some(2.0), embedding, 0),
        [120.0, 122.0, 140.0, 144.0, 160.0, 166.0]
    );
    // The second expert: (3, 4) times 4, 5 and 6.
    assert_eq!(
        sum(None, "blk.0.up.weight", 1),
        [112.0, 116.0, 115.0, 120.0, 118.0, 124.0]
    );
}

/// Numbers between -1 and 1, the same in every run.
fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((state >> 40) as f32) / ((1u64 << 23) as f32) - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(feature = "building")]
mod with_a_model {
    use super::*;
    use crate::engine::{Context, ContextOptions, KvType, quantize};
    use crate::index::{BuildOptions, build};
    use crate::search::model::{Batch, Capacity, LanguageModel, Seq};
    use crate::search::{Hints, Scoring, SearchOptions, top_k};
    use crate::toc::{ReadOptions, read_markdown};
    use crate::tokens::{Special, Tokenizer};

    fn model_path() -> PathBuf {
        let path = match std::env::var_os("STAIR_TEST_MODEL") {
            Some(path) => PathBuf::from(path),
            None => {
                Path::new(env!("CARGO_MANIFEST_DIR")).join("models/smollm2-135m-instruct-q8_0.gguf")
            }
        };
        assert!(
            path.is_file(),
            "{} is missing: run `make model`",
            path.display()
        );
        path
    }

    /// An adapter of random numbers for every matrix of the model's blocks.
    fn write_random(path: &Path, base: &GgufFile) {
        const RANK: usize = 4;
        let matrices: Vec<_> = base
            .tensors()
            .iter()
            .filter(|tensor| tensor.name.starts_with("blk.") && tensor.shape[1] > 1)
            .map(|tensor| {
                let [width, height, ..] = tensor.shape;
                let (a, b) = (
                    format!("{}.lora_a", tensor.name),
                    format!("{}.lora_b", tensor.name),
                );
                (a, b, [width, RANK], [RANK, height])
            })
            .collect();
        let mut tensors: Vec<Written<'_>> = Vec::new();
        for (seed, (a, b, a_shape, b_shape)) in (1..).zip(&matrices) {
            let scaled = |seed, count, scale: f32| -> Vec<f32> {
                noise(seed, count).iter().map(|n| n * scale).collect()
            };
            tensors.push((a, a_shape, scaled(seed * 2, a_shape[0] * RANK, 0.05)));
            tensors.push((b, b_shape, scaled(seed * 2 + 1, RANK * b_shape[1], 0.05)));
        }
        write_gguf(path, LORA, Some(8.0), &tensors);
    }

    fn context(model: &Model) -> Context<'_> {
        let options = ContextOptions {
            capacity: Capacity {
                sequences: 64,
                batch: 2048,
                rows: 256,
                context: 4096,
            },
            threads: 2,
            kv_type: KvType::F32,
        };
        Context::new(model, &options).expect("a context")
    }

    /// The logits after each prompt.
    fn logits(context: &mut Context<'_>, prompts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        let mut batch = Batch::default();
        for (seq, prompt) in (0..).zip(prompts) {
            batch.push(Seq(seq), 0, prompt, prompt.len() - 1);
        }
        let mut rows = vec![Vec::new(); prompts.len()];
        context
            .decode(&batch, &mut |at, row| {
                rows[at] = row.to_vec();
                Ok(())
            })
            .expect("decodes");
        context.clear_all();
        rows
    }

    /// How far `found` is from `expected`, as a part of its length.
    fn distance(found: &[f32], expected: &[f32]) -> f64 {
        let squares = |numbers: &mut dyn Iterator<Item = f32>| -> f64 {
            numbers.map(|n| f64::from(n) * f64::from(n)).sum()
        };
        let apart = squares(&mut found.iter().zip(expected).map(|(a, b)| a - b));
        (apart / squares(&mut expected.iter().copied())).sqrt()
    }

    fn best(context: &mut Context<'_>, index: &Index, question: &[u32]) -> Vec<(u32, f64)> {
        let mut batch = Batch::default();
        let prefix = index.prefix();
        batch.push(Seq::PREFIX, 0, prefix, prefix.len());
        context.decode(&batch, &mut |_, _| Ok(())).expect("decodes");
        let options = SearchOptions {
            k: 3,
            scoring: Scoring::Exact,
            width: 2,
        };
        let found = top_k(
            context,
            index.trie(),
            prefix.len() as u32,
            question,
            options,
            Hints::default(),
        );
        context.clear_all();
        let found = found.expect("finds");
        found
            .iter()
            .map(|hit| (hit.section, hit.log_prob))
            .collect()
    }

    /// The model without the adapter, with it as llama.cpp applies it, and merged.
    struct Compared {
        plain: Vec<Vec<f32>>,
        applied: Vec<Vec<f32>>,
        merged: Vec<Vec<f32>>,
    }

    /// Merges a random adapter into the tests' model with weights of the type `kind`, which is the
    /// type of the result too.
    fn compare(folder: &Path, kind: &str) -> Compared {
        let path = |name: &str| folder.join(format!("{name}.{kind}.gguf"));
        let (base, adapter, output) = (path("base"), path("lora"), path("out"));
        quantize(&model_path(), &base, kind, 2).expect("converts");
        write_random(&adapter, &GgufFile::open(&base).expect("opens"));

        let mut model = Model::open(&base, &ModelOptions::default()).expect("opens");
        let markdown = b"# Moon base\n\n## Air\n\n## Water\n\n## Food\n\n## Doors\n\n## Suits\n";
        let toc = read_markdown(markdown, "t", &ReadOptions::default()).expect("reads");
        let (bytes, _) = build(&toc, &model, &BuildOptions::default(), &|_| ()).expect("builds");
        let index = Index::from_bytes(&bytes).expect("opens");

        let mut options = MergeOptions::default();
        options.index = Some(&index);
        options.threads = 2;
        let report = merge(&base, &adapter, &output, &options).expect("merges");
        assert_eq!(report.file_type, kind);
        assert!(
            report.changed > 100 && report.changed < report.tensors,
            "{report:?}"
        );
        check_metadata(&base, &adapter, &output, &index);

        let prompts: Vec<Vec<u32>> = (0..50)
            .map(|i| {
                let verb = ["open", "close", "clean", "find", "count"][i % 5];
                let text = format!("Who may {verb} door {} at night?", i * 7);
                model.encode(&text, Special::AsText).expect("encodes")
            })
            .collect();
        let question = index.question().encode_question(&model, "What do we eat?");
        let question = question.expect("encodes");
        let plain = logits(&mut context(&model), &prompts);
        let mut lora = model.llama.lora_adapter_init(&adapter).expect("an adapter");
        let (applied, expected) = {
            let mut context = context(&model);
            context.llama.lora_adapter_set(&mut lora, 1.0).expect("set");
            (
                logits(&mut context, &prompts),
                best(&mut context, &index, &question),
            )
        };
        let model = Model::open(&output, &ModelOptions::default()).expect("opens");
        let merged = logits(&mut context(&model), &prompts);
        let hits = best(&mut context(&model), &index, &question);
        let sections = |hits: &[(u32, f64)]| hits.iter().map(|hit| hit.0).collect::<Vec<_>>();
        assert_eq!(
            sections(&hits),
            sections(&expected),
            "{hits:?} {expected:?}"
        );
        Compared {
            plain,
            applied,
            merged,
        }
    }

    fn check_metadata(base: &Path, adapter: &Path, output: &Path, index: &Index) {
        let (before, after) = (GgufFile::open(base), GgufFile::open(output));
        let (before, after) = (before.expect("opens"), after.expect("opens"));
        for key in [
            c"tokenizer.chat_template",
            c"general.architecture",
            c"tokenizer.ggml.pre",
        ] {
            assert_eq!(before.text(key), after.text(key));
        }
        let checksum = |path| files::checksum(path).expect("reads");
        for (key, expected) in [
            (c"stair.provenance.base", checksum(base)),
            (c"stair.provenance.adapter", checksum(adapter)),
            (c"stair.provenance.index", index.checksum()),
        ] {
            assert_eq!(after.text(key), Some(format!("{expected:016x}")));
        }
    }

    /// The farthest that a row of `found` is from that of `expected`.
    fn farthest(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f64 {
        let distances = found.iter().zip(expected).map(|(a, b)| distance(a, b));
        distances.fold(0.0, f64::max)
    }

    #[test]
    fn a_merged_model_computes_what_llama_cpp_computes_with_the_adapter() {
        let folder = tempfile::tempdir().expect("a folder");
        let exact = compare(folder.path(), "f32");
        let half = compare(folder.path(), "f16");
        let change = farthest(&exact.plain, &exact.applied);
        let exactly = farthest(&exact.merged, &exact.applied);
        let halved = farthest(&half.merged, &half.applied);
        // What 16-bit arithmetic alone does to the same weights, with no adapter anywhere.
        let rounding = farthest(&half.plain, &exact.plain);
        eprintln!(
            "the adapter {change:.6}; merged f32 {exactly:.6}, f16 {halved:.6}; f16 itself {rounding:.6}"
        );
        assert!(change > 0.05, "the adapter changes next to nothing");
        assert!(exactly < 1e-4);
        // Every weight that the adapter touches is rounded to 16 bits again. What that costs is of
        // the size of what 16 bits cost this model anyway, 0.009, and so above 1e-3.
        assert!(halved < 1e-3_f64.max(2.0 * rounding));
    }
}
