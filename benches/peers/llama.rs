//! llama.cpp as a program uses it that has no libstair: a model, a context, and a prefix that is
//! decoded once and shared by every question.

use crate::Anything;
use crate::protocol::Document;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::{LlamaBackend, load_backends_from_path};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};
use std::num::NonZeroU32;

/// Tokens in one decode, and those of it that are worked on together: libstair's own figures.
const BATCH: usize = 512;

const PREFIX: i32 = 0;
const QUESTION: i32 = 1;

/// A context with a warm prefix.
pub struct Llama {
    pub model: &'static LlamaModel,
    pub context: LlamaContext<'static>,
    batch: LlamaBatch<'static>,
    prefix: i32,
    /// Tokens of the question and of what was generated for it.
    length: i32,
    /// Decodes and tokens since the question.
    pub decodes: u32,
    pub tokens: u32,
}

impl Llama {
    /// Loads the model and decodes the prefix. Once in a process.
    pub fn open(document: &Document) -> Anything<Self> {
        send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
        // The same kernels as libstair's, which stand beside its library.
        let program = std::env::current_exe()?.canonicalize()?;
        let folder = program.ancestors().nth(2).ok_or("no folder above")?;
        load_backends_from_path(&folder.join("stair-backends"));
        // Both live as long as the process.
        let backend: &'static LlamaBackend = Box::leak(Box::new(LlamaBackend::init()?));
        let params = LlamaModelParams::default();
        let model = LlamaModel::load_from_file(backend, &document.model, &params)?;
        let model: &'static LlamaModel = Box::leak(Box::new(model));

        let longest = document.titles.iter().map(|title| title.tokens.len()).max();
        let room = document.longest_question + 2 * longest.unwrap_or(0);
        let length = u32::try_from(document.prefix.len() + room)?;
        let threads = i32::try_from(document.threads)?;
        // As libstair's own on a CPU: without flash attention small decodes are faster.
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(length))
            .with_n_batch(BATCH as u32)
            .with_n_ubatch(BATCH as u32)
            .with_n_seq_max(2)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_flash_attention_policy(llama_cpp_sys_2::LLAMA_FLASH_ATTN_TYPE_DISABLED)
            .with_kv_unified(true)
            .with_no_perf(true);
        let mut llama = Self {
            context: model.new_context(backend, params)?,
            model,
            batch: LlamaBatch::new(BATCH, 1),
            prefix: i32::try_from(document.prefix.len())?,
            length: 0,
            decodes: 0,
            tokens: 0,
        };
        llama.append(PREFIX, 0, &document.prefix)?;
        Ok(llama)
    }

    /// Forgets the last question and decodes this one after the prefix. Logits are those after its
    /// last token.
    pub fn ask(&mut self, question: &[u32]) -> Anything {
        self.context
            .clear_kv_cache_seq(Some(QUESTION as u32), None, None)?;
        self.context.kv_cache_seq_cp(PREFIX, QUESTION, None, None)?;
        (self.length, self.decodes, self.tokens) = (0, 0, 0);
        self.go_on(question)
    }

    /// Appends to the question.
    pub fn go_on(&mut self, tokens: &[u32]) -> Anything {
        self.append(QUESTION, self.prefix + self.length, tokens)?;
        self.length += i32::try_from(tokens.len())?;
        Ok(())
    }

    /// The logits after the last token.
    pub fn logits(&self) -> &[f32] {
        self.context.get_logits_ith(self.last_row())
    }

    /// Where in the last decode the row of logits is.
    pub fn last_row(&self) -> i32 {
        self.batch.n_tokens() - 1
    }

    /// The text of a token; control tokens have none.
    pub fn piece(&self, token: u32) -> Vec<u8> {
        let token = LlamaToken(token as i32);
        self.model.vocab().token_to_piece(token, false, None)
    }

    fn append(&mut self, sequence: i32, position: i32, tokens: &[u32]) -> Anything {
        let mut at = position;
        for piece in tokens.chunks(BATCH) {
            self.batch.clear();
            for (i, &token) in piece.iter().enumerate() {
                let last = i + 1 == piece.len();
                self.batch
                    .add(LlamaToken(token as i32), at, &[sequence], last)?;
                at += 1;
            }
            self.context.decode(&mut self.batch)?;
            self.decodes += 1;
            self.tokens += piece.len() as u32;
        }
        Ok(())
    }
}
