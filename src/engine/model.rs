//! A GGUF model, loaded once and shared by every retriever made with it.

use super::backend::{backend, has_gpu};
use super::fingerprint::{Identity, Weights};
use super::gguf::Header;
use super::log;
use super::memory::Memory;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::panics;
use crate::tokens::{Special, Tokenizer, fingerprint};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a model is loaded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Layers to keep on the graphics processor; `None` for all of them when one is there.
    pub gpu_layers: Option<u32>,
    /// Map the file rather than read it. Off for network drives.
    pub mmap: bool,
    /// Load the vocabulary only: enough to build an index, not to retrieve.
    pub vocabulary_only: bool,
    /// Memory that the contexts of all retrievers with this model may take together, in bytes;
    /// `None` for as much as they need. With less than that, the context of the retriever that was
    /// asked longest ago gives way to the one that is asked, and is made again at its next question:
    /// fast with a [`cache_dir`], else at the price of decoding the table of contents again. The
    /// weights are not counted. What a context takes is computed beforehand, to within some tens of
    /// megabytes.
    ///
    /// [`cache_dir`]: crate::RetrieverOptions::cache_dir
    pub context_memory: Option<u64>,
    /// Cancels the loading.
    pub cancel: CancelToken,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            gpu_layers: None,
            mmap: true,
            vocabulary_only: false,
            context_memory: None,
            cancel: CancelToken::new(),
        }
    }
}

/// What a model says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its architecture, `"llama"`.
    pub architecture: String,
    /// Number of parameters; 0 when only the vocabulary was loaded.
    pub parameters: u64,
    /// Size of its tensors in bytes; 0 when only the vocabulary was loaded.
    pub bytes: u64,
    /// Longest context that it was trained on, in tokens.
    pub context_length: u32,
    /// Number of tokens in its vocabulary.
    pub vocab_size: u32,
    /// Fingerprint of its vocabulary.
    pub fingerprint: u64,
}

/// A loaded model. It never changes, and any number of threads may use it at once.
pub struct Model {
    pub(super) llama: LlamaModel,
    path: PathBuf,
    info: ModelInfo,
    vocabulary_only: bool,
    pub(super) on_gpu: bool,
    /// Layers that were to be kept on the graphics processor.
    pub(super) gpu_layers: u32,
    pub(super) weights: Weights,
    pub(crate) memory: Arc<Memory>,
}

impl Model {
    /// Loads the model at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::NotAFile`], [`Error::NotAModel`], [`Error::ModelCorrupt`],
    /// [`Error::ModelArchitecture`], [`Error::ModelVocabulary`], [`Error::ModelLoad`],
    /// [`Error::Backend`] or [`Error::Cancelled`].
    pub fn open(path: impl AsRef<Path>, options: &ModelOptions) -> Result<Self> {
        let path = path.as_ref();
        let backend = backend()?;
        let identity = Identity::of(path);
        let header = Header::read(path)?;
        check(path, &header)?;

        let gpu_layers = match options.gpu_layers {
            _ if options.vocabulary_only => 0,
            None if has_gpu() => u32::MAX,
            None => 0,
            Some(layers) => layers,
        };
        let cancel = options.cancel.clone();
        let params = LlamaModelParams::default()
            .with_n_gpu_layers(gpu_layers)
            .with_use_mmap(options.mmap)
            .with_vocab_only(options.vocabulary_only)
            .with_progress_callback(move |_| !cancel.is_triggered());
        if options.cancel.is_triggered() {
            return Err(Error::Cancelled);
        }
        let (llama, errors) = log::capture(|| LlamaModel::load_from_file(backend, path, &params));
        let llama = llama.map_err(|error| {
            if options.cancel.is_triggered() {
                return Error::Cancelled;
            }
            if errors.contains("unknown model architecture") {
                return Error::ModelArchitecture {
                    path: path.to_path_buf(),
                    architecture: header.architecture.clone(),
                    why: "which this version of llama.cpp does not know",
                };
            }
            let why = match errors.is_empty() {
                true => error.to_string(),
                false => errors,
            };
            Error::ModelLoad {
                path: path.to_path_buf(),
                why,
            }
        })?;
        if !options.vocabulary_only && (llama.is_recurrent() || llama.is_hybrid()) {
            return Err(Error::ModelArchitecture {
                path: path.to_path_buf(),
                architecture: header.architecture,
                why: "which is recurrent, so its sequences cannot share a table of contents",
            });
        }
        let (vocab_size, fingerprint) = vocabulary(&llama);
        let parameters = |value: u64| if options.vocabulary_only { 0 } else { value };
        let info = ModelInfo {
            architecture: header.architecture,
            parameters: parameters(llama.n_params()),
            bytes: parameters(llama.size()),
            context_length: u32::try_from(header.context_length).unwrap_or(u32::MAX),
            vocab_size,
            fingerprint,
        };
        // The host may change its working directory later.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Self {
            llama,
            weights: Weights::new(&path, identity, header.data),
            path,
            info,
            vocabulary_only: options.vocabulary_only,
            on_gpu: gpu_layers > 0 && has_gpu(),
            gpu_layers,
            memory: Arc::new(Memory::new(options.context_memory)),
        })
    }

    /// What the model says of itself.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Bytes that the contexts of this model's retrievers take now, as they are counted against
    /// [`ModelOptions::context_memory`].
    pub fn context_memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// The file that it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether only the vocabulary was loaded.
    pub fn is_vocabulary_only(&self) -> bool {
        self.vocabulary_only
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("path", &self.path)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Tokenizer for Model {
    fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>> {
        let mut tokens = Vec::new();
        self.encode_into(text, special, &mut tokens)?;
        Ok(tokens)
    }

    fn encode_into(&self, text: &str, special: Special, tokens: &mut Vec<u32>) -> Result<()> {
        if i32::try_from(text.len()).is_err() {
            let why = format!(
                "a text of {} bytes is above llama.cpp's limit of {}",
                text.len(),
                i32::MAX
            );
            return Err(Error::Tokenizer(why));
        }
        check_words(text)?;
        let parse_special = special == Special::AsToken;
        tokens.clear();
        // Enough as a rule; else llama.cpp has to do it twice.
        tokens.reserve((text.len() / 2).max(8));
        // A vector of the one becomes a vector of the other in the same memory.
        let ours = std::mem::take(tokens).into_iter();
        let mut theirs: Vec<_> = ours.map(|token| LlamaToken(token as i32)).collect();
        let mut tokenize = || {
            let vocab = self.llama.vocab();
            vocab.tokenize_into(text.as_bytes(), &mut theirs, false, parse_special);
        };
        if text.len() <= SHORT_TEXT {
            tokenize();
        } else {
            let bytes = text.chars().count().saturating_mul(STACK_A_CHARACTER);
            with_stack(bytes.min(MOST_STACK), tokenize)?;
        }
        // Ids are never negative; were one, it would be outside every vocabulary.
        *tokens = theirs.into_iter().map(|token| token.0 as u32).collect();
        Ok(())
    }

    fn vocab_size(&self) -> u32 {
        self.info.vocab_size
    }

    fn fingerprint(&self) -> u64 {
        self.info.fingerprint
    }

    fn end_of_text(&self) -> Option<u32> {
        u32::try_from(self.llama.vocab().eos().0).ok()
    }

    fn token(&self, text: &str) -> Option<u32> {
        let vocab = self.llama.vocab();
        (0..self.info.vocab_size).find(|&id| {
            let token = vocab.text(LlamaToken(id as i32));
            token.is_some_and(|token| token.to_bytes() == text.as_bytes())
        })
    }
}

/// For many vocabularies llama.cpp cuts a text with a regular expression whose matcher recurses for every
/// character of a match, with some hundred bytes of stack each. How much a match takes in depends on the
/// vocabulary and can be all of the text, so a longer one than this, in bytes, gets a stack of its own ...
const SHORT_TEXT: usize = 256;
/// ... of so many bytes for each of its characters. With 2,100 the worst text that was found still ended
/// well.
const STACK_A_CHARACTER: usize = 4096;

/// Enough for the longest question. A longer text is the prompt of a large document, which has a line
/// break after each title, and no match reaches past that.
const MOST_STACK: usize = 512 << 20;

/// Does `work` on a thread with `bytes` of stack, and some more.
fn with_stack(bytes: usize, work: impl FnOnce() + Send) -> Result<()> {
    let bytes = bytes + (1 << 20);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("stair-tokenizer".to_owned());
        let thread = thread.stack_size(bytes);
        let thread = thread.spawn_scoped(scope, || panics::catch(work));
        let thread = thread.map_err(|error| {
            Error::OutOfMemory(format!(
                "cannot start a thread with {bytes} bytes of stack, which a text of this length may \
                 need: {error}; shorten it"
            ))
        })?;
        let panicked = |_| Error::Panic("while a text was tokenized".to_owned());
        thread.join().map_err(panicked)?
    })
}

/// Longest word, in characters. A longer one is no text, and may take the tokenizer quadratic time.
const LONGEST_WORD: usize = 1024;

/// Refuses a text that such an expression could match more than [`LONGEST_WORD`] characters of. They
/// match either white space; or no white space and no punctuation of a sentence; or neither white
/// space nor letters nor digits.
fn check_words(text: &str) -> Result<()> {
    let [mut spaces, mut word, mut symbols] = [0usize; 3];
    let count = |run: &mut usize, continues: bool| *run = if continues { *run + 1 } else { 0 };
    for (at, c) in text.char_indices() {
        let space = c.is_whitespace();
        count(&mut spaces, space);
        count(&mut word, !space && !".,!?…。，、।۔،".contains(c));
        count(&mut symbols, !space && !c.is_alphanumeric());
        if spaces.max(word).max(symbols) > LONGEST_WORD {
            return Err(Error::InvalidArgument(format!(
                "the text has more than {LONGEST_WORD} characters without a break before byte {at}: \
                 no word is that long; put spaces between words, or take spaces out"
            )));
        }
    }
    Ok(())
}

/// Refuses what llama.cpp would load and could not use here.
fn check(path: &Path, header: &Header) -> Result<()> {
    let architecture = |why| Error::ModelArchitecture {
        path: path.to_path_buf(),
        architecture: header.architecture.clone(),
        why,
    };
    // Encoders, and models that write all of a text at once, whose files do not say so. llama.cpp gives
    // them no memory: each decode would see its own tokens alone, and answer all the same.
    const ENCODERS: [&str; 18] = [
        "t5",
        "t5encoder",
        "clip",
        "wavtokenizer-dec",
        "bert",
        "modern-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "neo-bert",
        "eurobert",
        "jina-bert-v2",
        "jina-bert-v3",
        "gemma-embedding",
        "dream",
        "llada",
        "llada-moe",
        "rnd1",
        "clef",
    ];
    if !header.causal || ENCODERS.contains(&header.architecture.as_str()) {
        return Err(architecture(
            "which is an encoder and does not generate text",
        ));
    }
    let vocabulary = |why: &str| Error::ModelVocabulary {
        path: path.to_path_buf(),
        why: format!("{why}; convert the model again, with its tokenizer"),
    };
    if header.architecture.is_empty() {
        return Err(Error::ModelCorrupt {
            path: path.to_path_buf(),
            why: "it does not name its architecture".to_owned(),
        });
    }
    if header.vocab_size == 0 {
        return Err(vocabulary("it has no tokens"));
    }
    // llama.cpp loads such a model and then asserts at the first look at a token.
    if ["", "none", "no_vocab"].contains(&header.tokenizer.as_str()) {
        return Err(vocabulary("it has no tokenizer"));
    }
    if i32::try_from(header.vocab_size).is_err() {
        return Err(vocabulary("it has more tokens than llama.cpp can count"));
    }
    Ok(())
}

/// Size and fingerprint of a vocabulary. Converters fill a vocabulary up with unused tokens to the
/// size of the model's matrices; they count as absent, as they are in a `tokenizer.json`.
fn vocabulary(llama: &LlamaModel) -> (u32, u64) {
    let vocab = llama.vocab();
    let mut texts: Vec<&[u8]> = (0..vocab.n_tokens())
        .map(|id| {
            let token = LlamaToken(id);
            match vocab.attr(token).contains(LlamaTokenAttr::Unused) {
                true => &[],
                false => vocab.text(token).map_or(&[][..], |text| text.to_bytes()),
            }
        })
        .collect();
    while texts.last().is_some_and(|text| text.is_empty()) {
        texts.pop();
    }
    (texts.len() as u32, fingerprint(texts.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_script_pass_and_endless_ones_do_not() {
        for text in [
            "word ".repeat(100_000),
            "それは、とても長い文章です。".repeat(10_000),
            "a".repeat(LONGEST_WORD),
            "x, ".repeat(10_000),
        ] {
            assert!(check_words(&text).is_ok(), "{} bytes", text.len());
        }
        for endless in ["a", "夜", "7", " ", "\n", ".", "-", ".-", "a-", "\u{301}"] {
            let text = endless.repeat(LONGEST_WORD + 1);
            assert!(check_words(&text).is_err(), "{endless:?}");
        }
    }
}
