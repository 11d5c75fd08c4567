//! `stair_results`: the answer to one question.

use super::boundary::{fallible, infallible, not_null};
use super::error::stair_error;
use super::handle::Table;
use super::index::STAIR_NONE;
use super::options::{self, Sized32};
use super::status::stair_status;
use super::text::Text;
use crate::error::{Error, Result};
use crate::{Hit, Hits, Stats};
use std::ffi::c_char;
use std::ptr;

/// The answer to one question. It never changes and needs neither retriever nor index.
pub struct stair_results;

struct Record {
    hits: Vec<HitRecord>,
    stats: stair_stats,
}

struct HitRecord {
    hit: Hit,
    number: Text,
    title: Text,
    text: Option<Text>,
    path: Vec<Text>,
}

static RESULTS: Table<Record> = Table::new("results", 5);

/// One section that may answer the question. Its texts live until the results are freed.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_hit {
    /// sizeof(stair_hit).
    pub struct_size: u32,
    /// The section's id in the index.
    pub section: u32,
    /// Page in the original, or STAIR_NONE.
    pub page: u32,
    /// Number of entries that `stair_results_path` gives, the section itself last.
    pub path_len: u32,
    /// First byte in the original document.
    pub span_start: u64,
    /// The byte after its last.
    pub span_end: u64,
    /// Natural logarithm of the probability that the model gives its title; NaN without a model.
    pub log_prob: f64,
    /// Its number, `"4.2"`; empty when it has none.
    pub number: *const c_char,
    /// Length of the number in bytes.
    pub number_len: usize,
    /// Its title.
    pub title: *const c_char,
    /// Length of the title in bytes.
    pub title_len: usize,
    /// Its text; NULL when the index was built without texts.
    pub text: *const c_char,
    /// Length of the text in bytes.
    pub text_len: usize,
    /// What it is ranked by: `log_prob`, and `lexical_weight` times `lexical` when that was asked
    /// for; `lexical` without a model.
    pub score: f64,
    /// Its lexical score for the question: BM25 of number, title and text, and of passages and known
    /// questions; 0 when they share no word. NaN with a model and a `lexical_weight` of 0. The
    /// formula may change between versions.
    pub lexical: f64,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_hit {
    const NAME: &'static str = "stair_hit";
    const FIRST_SIZE: usize = 88;
}

/// What the answer cost.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_stats {
    /// sizeof(stair_stats).
    pub struct_size: u32,
    /// Decodes that the question had a part in.
    pub decodes: u32,
    /// Tokens of the question, with the template's own around it.
    pub question_tokens: u32,
    /// Tokens that the search evaluated.
    pub search_tokens: u32,
    /// Tokens of the table of contents that were decoded while this question waited; 0 when it
    /// was decoded before.
    pub prefix_tokens: u32,
    /// Tokens of the table of contents that were read from the warm file while this question waited,
    /// rather than decoded.
    pub restored_tokens: u32,
    /// How much of its probability the model gave to tokens that this document allows, along the
    /// best hit, 0 to 1: low when it wanted something that is not in this document. NaN without a
    /// model.
    pub legal_mass: f64,
    /// Time for the table of contents, decoded or read.
    pub prefill_ms: f64,
    /// Time for the question and the search.
    pub search_ms: f64,
    /// Time for the whole call, with waiting.
    pub total_ms: f64,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_stats {
    const NAME: &'static str = "stair_stats";
    const FIRST_SIZE: usize = 56;
}

/// A handle for `hits`.
pub(super) fn new(hits: &Hits) -> Result<*mut stair_results> {
    RESULTS.insert(Record {
        hits: hits.hits.iter().map(HitRecord::new).collect(),
        stats: stats(hits.legal_mass.unwrap_or(f64::NAN), &hits.stats),
    })
}

/// Number of hits; 0 for NULL and for a handle that is not live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_results_count(results: *const stair_results) -> usize {
    infallible(0, || {
        RESULTS.find(results).map_or(0, |record| record.hits.len())
    })
}

/// Fills `*hit` with hit `i`, best first, from 0; set its `struct_size` before.
///
/// STAIR_ERR_INVALID_ARGUMENT when there is no such hit, STAIR_ERR_NULL_POINTER,
/// STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_results_get(
    results: *const stair_results,
    i: usize,
    hit: *mut stair_hit,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        let record = RESULTS.find(results)?;
        let found = record.hit(i)?;
        let value = stair_hit {
            struct_size: 0,
            section: found.hit.section,
            page: found.hit.page.unwrap_or(STAIR_NONE),
            path_len: found.path.len() as u32,
            span_start: found.hit.span.start,
            span_end: found.hit.span.end,
            log_prob: found.hit.log_prob.unwrap_or(f64::NAN),
            number: found.number.as_ptr(),
            number_len: found.number.len(),
            title: found.title.as_ptr(),
            title_len: found.title.len(),
            text: found.text.as_ref().map_or(ptr::null(), Text::as_ptr),
            text_len: found.text.as_ref().map_or(0, Text::len),
            score: found.hit.score,
            lexical: found.hit.lexical.map_or(f64::NAN, f64::from),
        };
        // SAFETY: the caller passes NULL or a struct of `struct_size` bytes.
        unsafe { options::write(hit, &value) }
    })
}

/// Gives entry `entry` of hit `i`'s path, from the chapter (0) down to the section itself: number
/// and title, until the results are freed. `len` may be NULL.
///
/// STAIR_ERR_INVALID_ARGUMENT when there is no such hit or entry, STAIR_ERR_NULL_POINTER,
/// STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_results_path(
    results: *const stair_results,
    i: usize,
    entry: usize,
    text: *mut *const c_char,
    len: *mut usize,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(text, "text")?;
        let record = RESULTS.find(results)?;
        let path = &record.hit(i)?.path;
        let Some(found) = path.get(entry) else {
            let what = format!("there is no entry {entry}: the path has {}", path.len());
            return Err(Error::InvalidArgument(what));
        };
        // SAFETY: `text` is not NULL, `len` may be; both are the caller's.
        unsafe {
            text.write(found.as_ptr());
            if !len.is_null() {
                len.write(found.len());
            }
        }
        Ok(())
    })
}

/// Fills `*stats`; set its `struct_size` before.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_results_stats(
    results: *const stair_results,
    stats: *mut stair_stats,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        let record = RESULTS.find(results)?;
        // SAFETY: the caller passes NULL or a struct of `struct_size` bytes.
        unsafe { options::write(stats, &record.stats) }
    })
}

/// Frees results. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_results_free(results: *mut stair_results) {
    infallible((), || RESULTS.remove(results));
}

impl Record {
    fn hit(&self, i: usize) -> Result<&HitRecord> {
        self.hits.get(i).ok_or_else(|| {
            Error::InvalidArgument(format!(
                "there is no hit {i}: there are {}",
                self.hits.len()
            ))
        })
    }
}

impl HitRecord {
    fn new(hit: &Hit) -> Self {
        Self {
            number: Text::new(&hit.number),
            title: Text::new(&hit.title),
            text: hit.text.as_deref().map(Text::new),
            path: hit.path.iter().map(|entry| Text::new(entry)).collect(),
            hit: Hit {
                text: None,
                ..hit.clone()
            },
        }
    }
}

fn stats(legal_mass: f64, stats: &Stats) -> stair_stats {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    stair_stats {
        struct_size: 0,
        decodes: stats.decodes,
        question_tokens: stats.question_tokens,
        search_tokens: stats.search_tokens,
        prefix_tokens: stats.prefix_tokens,
        restored_tokens: stats.restored_tokens,
        legal_mass,
        prefill_ms: ms(stats.prefill),
        search_ms: ms(stats.search),
        total_ms: ms(stats.total),
    }
}
