//! A llama.cpp context as a [`LanguageModel`]: several sequences over one prefix. Whatever
//! llama.cpp would assert on is checked here before the call, since an assertion ends the process.

use super::backend::{backend, kernels};
use super::log::{self, Level};
use super::model::Model;
use crate::error::{Error, Result};
use crate::search::model::{Batch, Capacity, LanguageModel, Seq};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_2::context::session::LlamaStateSeqFlags;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::num::NonZeroU32;
use xxhash_rust::xxh3::xxh3_128;

/// Most sequences that llama.cpp holds (`LLAMA_MAX_SEQ`).
pub const MAX_SEQUENCES: u16 = 256;

/// Longest context, in tokens. No model is that long; llama.cpp would take tens of gigabytes for its
/// bookkeeping alone before it found that the rest does not fit.
const MAX_CONTEXT: u32 = 1 << 24;

/// Most tokens of one decode that the processor works on together. Larger is faster on a prefix,
/// smaller leaves cancellation less to wait for.
const UBATCH: u32 = 512;

/// The llama.cpp whose states a context reads and writes, by the version of the crate that brings it.
const LLAMA_CPP: &str = "0.1.161";

/// First four bytes of a sequence's state (`io_magic` in `llama-context.cpp`).
const STATE_MAGIC: u32 = 0xaf14_3cd8;

/// Number type of the keys and values that the model remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvType {
    /// 16-bit floats.
    #[default]
    F16,
    /// 8-bit blocks: half the memory, slightly different scores.
    Q8_0,
    /// 32-bit floats.
    F32,
}

/// How a context is made.
#[derive(Debug, Clone, Copy)]
pub struct ContextOptions {
    /// What it has to hold.
    pub capacity: Capacity,
    /// Threads that compute.
    pub threads: u32,
    /// Number type of keys and values.
    pub kv_type: KvType,
}

/// Sequences that a model continues. One thread uses it at a time.
pub struct Context<'m> {
    pub(super) llama: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    capacity: Capacity,
    vocab_size: u32,
    /// Number of tokens in each sequence.
    lengths: Vec<u32>,
    /// The same after the decode that is being checked.
    next_lengths: Vec<u32>,
    /// The sequences of one token.
    seqs: Vec<i32>,
    model: &'m Model,
    kv_type: KvType,
    flash: bool,
    /// Tokens of a decode as they were asked for. llama.cpp grants fewer only where the whole
    /// context is smaller, and then a prefix is one decode either way.
    piece: u32,
}

impl ContextOptions {
    /// About how many bytes a context of `model` takes: keys and values, logits twice (where they
    /// are computed and where they are read), and the attention's scores, the largest of what is
    /// held while it computes.
    pub fn bytes(&self, model: &Model) -> u64 {
        // A vocabulary has no layers, and llama.cpp ends the process when it is asked for their
        // heads. Making the context says what is wrong.
        if model.is_vocabulary_only() {
            return 0;
        }
        let llama = &model.llama;
        let number = |key: &str| {
            let key = format!("{}.attention.{key}", model.info().architecture);
            llama.meta_val_str(&key).ok()?.parse::<u64>().ok()
        };
        let heads = u64::from(llama.n_head()).max(1);
        let head = u64::from(llama.n_embd().unsigned_abs()) / heads;
        let key = number("key_length").unwrap_or(head);
        let value = number("value_length").unwrap_or(head);
        // A block of Q8_0 is 32 numbers and a scale.
        let per_element = match self.kv_type {
            KvType::F16 => (2, 1),
            KvType::Q8_0 => (34, 32),
            KvType::F32 => (4, 1),
        };
        let capacity = self.capacity;
        let cells = capacity.context as u64;
        let kv = cells * u64::from(llama.n_layer()) * u64::from(llama.n_head_kv()) * (key + value);
        let kv = kv * per_element.0 / per_element.1;
        let logits = 2 * capacity.rows as u64 * u64::from(model.info().vocab_size) * 4;
        let tokens = capacity.batch.min(UBATCH as usize) as u64;
        let scores = tokens * cells * heads * 4;
        kv + logits + scores
    }
}

impl<'m> Context<'m> {
    /// A context of `model` whose sequences are all empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`], or [`Error::OutOfMemory`] when llama.cpp cannot allocate it.
    pub fn new(model: &'m Model, options: &ContextOptions) -> Result<Self> {
        let capacity = options.capacity;
        let invalid = |what: String| Err(Error::InvalidArgument(what));
        if model.is_vocabulary_only() {
            return invalid(
                "the model was opened for its vocabulary only: open it whole".to_owned(),
            );
        }
        if capacity.sequences < 2 || capacity.sequences > MAX_SEQUENCES {
            return invalid(format!(
                "{} sequences are not within 2 and {MAX_SEQUENCES}",
                capacity.sequences
            ));
        }
        let (Ok(context), Ok(batch), Ok(threads)) = (
            u32::try_from(capacity.context),
            u32::try_from(capacity.batch),
            i32::try_from(options.threads),
        ) else {
            return invalid("a context's sizes are beyond 32 bits".to_owned());
        };
        if context == 0 || batch == 0 || capacity.rows == 0 || threads == 0 || context > MAX_CONTEXT
        {
            return invalid(format!(
                "a context's sizes are 0, or its {context} tokens are above {MAX_CONTEXT}"
            ));
        }
        // Flash attention makes a long prefix faster and every small decode slower on a CPU; a
        // quantised value cache does not work without it.
        let with_flash = model.on_gpu || options.kv_type == KvType::Q8_0;
        let flash = match with_flash {
            true => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
            false => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        };
        let kv_type = match options.kv_type {
            KvType::F16 => KvCacheType::F16,
            KvType::Q8_0 => KvCacheType::Q8_0,
            KvType::F32 => KvCacheType::F32,
        };
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(context))
            .with_n_batch(batch)
            .with_n_ubatch(batch.min(UBATCH))
            .with_n_seq_max(u32::from(capacity.sequences))
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_flash_attention_policy(flash)
            .with_type_k(kv_type)
            .with_type_v(kv_type)
            // Sequences share the cells of their common beginning only in a unified cache.
            .with_kv_unified(true)
            // A model with a sliding window must still see the whole table of contents.
            .with_swa_full(true)
            .with_no_perf(true);
        let (llama, errors) = {
            // Making a context writes to the model, so two threads must not do it at once.
            static MAKING: Mutex<()> = Mutex::new(());
            let _making = MAKING.lock();
            log::capture(|| {
                model
                    .llama
                    .new_context(backend()?, params)
                    .map_err(Failure::from)
            })
        };
        let llama = llama.map_err(|failure| match failure {
            Failure::Ours(error) => error,
            Failure::Llama(error) => Error::OutOfMemory(format!(
                "llama.cpp could not make a context of {context} tokens ({error}{}{errors}): use fewer max_parallel or a smaller kv_type",
                if errors.is_empty() { "" } else { "; " },
            )),
        })?;
        if llama.n_ctx() < context || llama.n_batch() < batch.min(context) {
            let (found, batch) = (llama.n_ctx(), llama.n_batch());
            return Err(Error::Internal(format!(
                "asked for a context of {context} and got {found}, batch {batch}"
            )));
        }
        Ok(Self {
            batch: LlamaBatch::new(capacity.batch, i32::from(capacity.sequences)),
            capacity: Capacity {
                batch: capacity.batch.min(llama.n_batch() as usize),
                ..capacity
            },
            vocab_size: u32::try_from(model.llama.n_vocab()).unwrap_or_default(),
            lengths: vec![0; usize::from(capacity.sequences)],
            next_lengths: Vec::new(),
            seqs: Vec::new(),
            llama,
            model,
            kv_type: options.kv_type,
            flash: with_flash,
            piece: batch,
        })
    }

    /// Number of tokens in `seq`; 0 when there is no such sequence.
    pub fn length(&self, seq: Seq) -> u32 {
        self.lengths
            .get(usize::from(seq.0))
            .copied()
            .unwrap_or_default()
    }

    /// Empties every sequence.
    pub fn clear_all(&mut self) {
        self.llama.clear_kv_cache();
        self.lengths.fill(0);
    }

    /// Whether keys are rotated as in a context longer than the model was first trained on. Models
    /// with two tables of factors (LongRoPE) take one or the other by the context's length, so the
    /// same tokens have other keys there.
    fn has_long_positions(&self) -> bool {
        let architecture = &self.model.info().architecture;
        let key = format!("{architecture}.rope.scaling.original_context_length");
        let original = self.model.llama.meta_val_str(&key).ok();
        original
            .and_then(|tokens| tokens.parse::<u32>().ok())
            .is_some_and(|tokens| self.llama.n_ctx() > tokens)
    }

    fn check_seq(&self, seq: Seq) -> Result<usize> {
        match seq.0 < self.capacity.sequences {
            true => Ok(usize::from(seq.0)),
            false => {
                let (seq, of) = (seq.0, self.capacity.sequences);
                Err(Error::Internal(format!("sequence {seq} of {of}")))
            }
        }
    }

    /// Refuses what llama.cpp would assert on, and computes the lengths after the decode.
    fn check_batch(&mut self, batch: &Batch) -> Result<()> {
        let internal = |what: String| Err(Error::Internal(what));
        if batch.is_empty() {
            return internal("a decode of nothing".to_owned());
        }
        if !Batch::default().has_room(self.capacity, batch.token_count(), batch.row_count()) {
            let (tokens, rows) = (batch.token_count(), batch.row_count());
            return internal(format!("{tokens} tokens and {rows} rows in one decode"));
        }
        self.next_lengths.clone_from(&self.lengths);
        for append in batch.appends() {
            let tokens = batch.tokens(append);
            for seq in Batch::seqs(append) {
                let at = self.check_seq(seq)?;
                let length = self.next_lengths[at];
                if tokens.is_empty() || append.position != length {
                    let at = append.position;
                    return internal(format!("tokens at {at} of a sequence of {length}"));
                }
                self.next_lengths[at] = length.saturating_add(tokens.len() as u32);
            }
            if let Some(token) = tokens.iter().find(|&&token| token >= self.vocab_size) {
                return internal(format!(
                    "token {token} of a vocabulary of {}",
                    self.vocab_size
                ));
            }
            let end = append.position as usize + tokens.len();
            if end > self.capacity.context {
                return internal(format!(
                    "{end} tokens in a context of {}",
                    self.capacity.context
                ));
            }
        }
        Ok(())
    }
}

impl LanguageModel for Context<'_> {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn fork(&mut self, from: Seq, to: Seq, length: u32) -> Result<()> {
        let (source, target) = (self.check_seq(from)?, self.check_seq(to)?);
        let held = self.lengths[source];
        if length > held {
            return Err(Error::Internal(format!(
                "a fork of {length} tokens of sequence {}, which has {held}",
                from.0
            )));
        }
        if self.lengths[target] != 0 || source == target {
            return Err(Error::Internal(format!(
                "fork to sequence {}, which is in use",
                to.0
            )));
        }
        self.llama
            .kv_cache_seq_cp(i32::from(from.0), i32::from(to.0), None, Some(length))
            .map_err(|error| Error::Decode(error.to_string()))?;
        self.lengths[target] = length;
        Ok(())
    }

    fn clear(&mut self, seq: Seq) -> Result<()> {
        let at = self.check_seq(seq)?;
        if self.lengths[at] > 0 {
            self.llama
                .kv_cache_seq_rm(i32::from(seq.0), None, None)
                .map_err(|error| Error::Decode(error.to_string()))?;
            self.lengths[at] = 0;
        }
        Ok(())
    }

    fn decode(
        &mut self,
        batch: &Batch,
        row: &mut dyn FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        self.check_batch(batch)?;
        self.batch.clear();
        for append in batch.appends() {
            self.seqs.clear();
            self.seqs
                .extend(Batch::seqs(append).map(|seq| i32::from(seq.0)));
            for (i, &token) in batch.tokens(append).iter().enumerate() {
                // In range: `check_batch` compared them with the context and the vocabulary.
                let (token, position) =
                    (LlamaToken(token as i32), append.position as i32 + i as i32);
                self.batch
                    .add(token, position, &self.seqs, i >= append.first_row)
                    .map_err(|error| Error::Internal(error.to_string()))?;
            }
        }
        if let Err(error) = self.llama.decode(&mut self.batch) {
            // What was computed before the failure may be there or not.
            self.clear_all();
            return Err(Error::Decode(format!(
                "{error}; {} tokens in {} sequences",
                batch.token_count(),
                batch.appends().len()
            )));
        }
        self.lengths.clone_from(&self.next_lengths);
        let mut at = 0;
        for (index, append) in batch.appends().iter().enumerate() {
            let count = batch.tokens(append).len();
            for i in append.first_row..count {
                row(index, self.llama.get_logits_ith(at + i as i32))?;
            }
            at += count as i32;
        }
        Ok(())
    }

    fn state_key(&self) -> Option<u128> {
        let model = self.model;
        let key = format!(
            "libstair {}, llama.cpp {LLAMA_CPP}, {}, {}, kernels {}, weights {:032x}, \
             {} layers on a GPU, keys and values {:?}, flash attention {}, {} tokens a decode, \
             long positions {}",
            env!("CARGO_PKG_VERSION"),
            env!("STAIR_TARGET"),
            env!("STAIR_FEATURES"),
            kernels(),
            model.weights.fingerprint()?,
            if model.on_gpu { model.gpu_layers } else { 0 },
            self.kv_type,
            self.flash,
            // Other pieces of a prefix add in another order.
            self.piece,
            self.has_long_positions(),
        );
        log::emit(Level::Debug, &format!("a state depends on {key}"));
        Some(xxh3_128(key.as_bytes()))
    }

    fn state(&mut self, seq: Seq) -> Result<Vec<u8>> {
        let tokens = self.lengths[self.check_seq(seq)?];
        let (id, flags) = (i32::from(seq.0), LlamaStateSeqFlags::empty());
        let len = self.llama.state_seq_get_size_ext(id, flags);
        let mut state = Vec::new();
        if len == 0 || state.try_reserve_exact(len).is_err() {
            return Err(Error::OutOfMemory(format!("a state of {len} bytes")));
        }
        state.resize(len, 0);
        // SAFETY: there is room for as many bytes as llama.cpp has just said that it writes.
        let written = unsafe {
            self.llama
                .state_seq_get_data_ext(state.as_mut_ptr(), id, flags)
        };
        match written == len && is_state(&state, tokens) {
            true => Ok(state),
            false => Err(Error::Internal(format!(
                "llama.cpp wrote {written} bytes of a state of {len}, or in a form that is not known"
            ))),
        }
    }

    fn set_state(&mut self, seq: Seq, state: &[u8], tokens: u32) -> Result<()> {
        let at = self.check_seq(seq)?;
        let internal = |what: &str| Err(Error::Internal(what.to_owned()));
        if self.lengths[at] != 0 || tokens == 0 || tokens as usize > self.capacity.context {
            return internal("a state for a sequence that is in use or too small for it");
        }
        if !is_state(state, tokens) {
            return internal("the state of something else");
        }
        let (id, flags) = (i32::from(seq.0), LlamaStateSeqFlags::empty());
        // SAFETY: llama.cpp reads no further than the slice, and refuses what does not fit the
        // context; it catches its exceptions.
        let read = unsafe { self.llama.state_seq_set_data_ext(state, id, flags) };
        let whole = read
            && self.llama.kv_cache_seq_pos_min(id) == 0
            && i64::from(self.llama.kv_cache_seq_pos_max(id)) == i64::from(tokens) - 1
            && self.llama.state_seq_get_size_ext(id, flags) == state.len();
        if whole {
            self.lengths[at] = tokens;
            return Ok(());
        }
        // All of it: a cell at an impossible position would survive the emptying of its sequence.
        self.clear_all();
        internal("llama.cpp does not take the state")
    }
}

/// Whether `state` begins as the state of one sequence of `tokens` tokens does: llama.cpp's magic
/// number, the sequence, one stream of cells, and their number. What follows llama.cpp compares
/// with the context itself, bounds-checked and without an assertion.
fn is_state(state: &[u8], tokens: u32) -> bool {
    let word = |at: usize| {
        let bytes = state.get(4 * at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    [0, 2, 3].map(word) == [Some(STATE_MAGIC), Some(1), Some(tokens)]
}

/// Why a context could not be made.
enum Failure {
    Ours(Error),
    Llama(llama_cpp_2::LlamaContextLoadError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

impl From<llama_cpp_2::LlamaContextLoadError> for Failure {
    fn from(error: llama_cpp_2::LlamaContextLoadError) -> Self {
        Self::Llama(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_bound_to_the_llama_cpp_of_the_manifest() {
        let manifest = include_str!("../../Cargo.toml");
        let pin = format!("llama-cpp-sys-2 = {{ version = \"={LLAMA_CPP}\"");
        assert!(manifest.contains(&pin), "{pin}");
    }

    #[test]
    fn a_state_is_known_by_its_first_words() {
        let words = [STATE_MAGIC, 0, 1, 7, 9];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(is_state(&bytes, 7) && !is_state(&bytes, 8));
        for at in [0, 8, 12] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(!is_state(&other, 7), "byte {at}");
        }
        assert!((0..16).all(|len| !is_state(&bytes[..len], 7)));
    }
}
