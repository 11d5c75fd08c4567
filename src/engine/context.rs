//! A llama.cpp context as a [`LanguageModel`]: several sequences over one prefix. Whatever
//! llama.cpp would assert on is checked here before the call, since an assertion ends the process.

use super::backend::backend;
use super::log;
use super::model::Model;
use crate::error::{Error, Result};
use crate::search::model::{Batch, Capacity, LanguageModel, Seq};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::num::NonZeroU32;

/// Most sequences that llama.cpp holds (`LLAMA_MAX_SEQ`).
pub const MAX_SEQUENCES: u16 = 256;

/// Longest context, in tokens. No model is that long; llama.cpp would take tens of gigabytes for its
/// bookkeeping alone before it found that the rest does not fit.
const MAX_CONTEXT: u32 = 1 << 24;

/// Most tokens of one decode that the processor works on together. Larger is faster on a prefix,
/// smaller leaves cancellation less to wait for.
const UBATCH: u32 = 512;

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
        let flash = match model.on_gpu || options.kv_type == KvType::Q8_0 {
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
            batch: LlamaBatch::new(capacity.batch, 1),
            capacity: Capacity {
                batch: capacity.batch.min(llama.n_batch() as usize),
                ..capacity
            },
            vocab_size: u32::try_from(model.llama.n_vocab()).unwrap_or_default(),
            lengths: vec![0; usize::from(capacity.sequences)],
            llama,
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

    fn check_seq(&self, seq: Seq) -> Result<usize> {
        match seq.0 < self.capacity.sequences {
            true => Ok(usize::from(seq.0)),
            false => {
                let (seq, of) = (seq.0, self.capacity.sequences);
                Err(Error::Internal(format!("sequence {seq} of {of}")))
            }
        }
    }

    fn check_batch(&self, batch: &Batch) -> Result<()> {
        let internal = |what: String| Err(Error::Internal(what));
        if batch.is_empty() {
            return internal("a decode of nothing".to_owned());
        }
        if !Batch::default().has_room(self.capacity, batch.token_count(), batch.row_count()) {
            let (tokens, rows) = (batch.token_count(), batch.row_count());
            return internal(format!("{tokens} tokens and {rows} rows in one decode"));
        }
        for append in batch.appends() {
            let length = self.lengths[self.check_seq(append.seq)?];
            let tokens = batch.tokens(append);
            if tokens.is_empty() || append.position != length {
                let at = append.position;
                return internal(format!("tokens at {at} of a sequence of {length}"));
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

    fn fork(&mut self, from: Seq, to: Seq) -> Result<()> {
        let (source, target) = (self.check_seq(from)?, self.check_seq(to)?);
        if self.lengths[target] != 0 || source == target {
            return Err(Error::Internal(format!(
                "fork to sequence {}, which is in use",
                to.0
            )));
        }
        self.llama
            .kv_cache_seq_cp(i32::from(from.0), i32::from(to.0), None, None)
            .map_err(|error| Error::Decode(error.to_string()))?;
        self.lengths[target] = self.lengths[source];
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
            let seq = [i32::from(append.seq.0)];
            for (i, &token) in batch.tokens(append).iter().enumerate() {
                // In range: `check_batch` compared them with the context and the vocabulary.
                let (token, position) =
                    (LlamaToken(token as i32), append.position as i32 + i as i32);
                self.batch
                    .add(token, position, &seq, i >= append.first_row)
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
        for append in batch.appends() {
            self.lengths[usize::from(append.seq.0)] += batch.tokens(append).len() as u32;
        }
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
