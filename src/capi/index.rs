//! `stair_index`: an index.

use super::boundary::{fallible, infallible, not_null};
use super::error::stair_error;
use super::handle::Table;
use super::model::{self, flag, stair_model};
use super::options::{self, Sized32};
use super::status::stair_status;
use super::text::{self, Text};
use crate::error::{Error, Result};
use crate::index::Info;
use crate::{Index, files};
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

/// An index. It never changes: any number of threads may use it, and it may be freed while
/// retrievers made with it live.
pub struct stair_index;

pub(super) struct Record {
    pub index: Arc<Index>,
    title: Text,
}

static INDEXES: Table<Record> = Table::new("index", 3);

/// `stair_index_open`: read the file into memory rather than map it. For network drives, and for
/// files that may be truncated while they are used: a mapped one then ends the process (SIGBUS).
pub const STAIR_INDEX_COPY: u32 = 1;

/// `stair_build_options.format`: Markdown.
pub const STAIR_FORMAT_MARKDOWN: u32 = 1;
/// `stair_build_options.format`: a toc.json, as docs/toc-json.md describes it.
pub const STAIR_FORMAT_TOC_JSON: u32 = 2;

/// No page, no parent.
pub const STAIR_NONE: u32 = u32::MAX;

/// What an index says of itself.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_index_info {
    /// sizeof(stair_index_info).
    pub struct_size: u32,
    /// Number of sections, leaves included. Ids go from 0 to this.
    pub sections: u32,
    /// Number of leaves: what can be retrieved.
    pub leaves: u32,
    /// Number of trie nodes.
    pub trie_nodes: u32,
    /// Tokens of the longest title.
    pub longest_title: u32,
    /// Tokens of the prompt up to the question.
    pub prefix_tokens: u32,
    /// Number of tokens in the vocabulary that it was built for.
    pub vocab_size: u32,
    /// 1 if the sections' texts are in the file.
    pub has_text: u32,
    /// Fingerprint of the vocabulary that it was built for.
    pub fingerprint: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The document's title, until the index is freed; NULL from `stair_index_peek`.
    pub title: *const c_char,
    /// Its length in bytes.
    pub title_len: usize,
    /// Version of the format: major.
    pub version_major: u32,
    /// Version of the format: minor.
    pub version_minor: u32,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_index_info {
    const NAME: &'static str = "stair_index_info";
    const FIRST_SIZE: usize = 72;
}

/// One section. Its texts live until the index is freed.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_section {
    /// sizeof(stair_section).
    pub struct_size: u32,
    /// Position in document order, from 0.
    pub id: u32,
    /// The section that it belongs to, or STAIR_NONE.
    pub parent: u32,
    /// 0 for a top-level section.
    pub depth: u32,
    /// 1 if it has no subsection.
    pub leaf: u32,
    /// Page in the original, or STAIR_NONE.
    pub page: u32,
    /// First byte in the original document.
    pub span_start: u64,
    /// The byte after its last.
    pub span_end: u64,
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
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_section {
    const NAME: &'static str = "stair_section";
    const FIRST_SIZE: usize = 88;
}

/// How an index is built. 0 everywhere is the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct stair_build_options {
    /// sizeof(stair_build_options).
    pub struct_size: u32,
    /// STAIR_FORMAT_MARKDOWN (the default) or STAIR_FORMAT_TOC_JSON.
    pub format: u32,
    /// 1 to leave the sections' texts out.
    pub omit_text: u32,
    /// 1 to keep cover, copyright and contents as sections.
    pub keep_front_matter: u32,
    /// Questions that sections are known to answer: the text (UTF-8) of a file of questions, a JSON
    /// object with `id`, `query`, `section` and `split` a line. Their words then count for their
    /// sections in every lexical score; they can be read in the index. NULL for none.
    pub questions: *const c_char,
    /// Its length in bytes, or STAIR_NTS.
    pub questions_len: usize,
    /// The split of them to take; NULL for `"train"`.
    pub split: *const c_char,
    /// Its length in bytes, or STAIR_NTS.
    pub split_len: usize,
}

// SAFETY: as the trait asks.
unsafe impl Sized32 for stair_build_options {
    const NAME: &'static str = "stair_build_options";
    const FIRST_SIZE: usize = 16;
}

/// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_build_options_init(
    options: *mut stair_build_options,
    size: usize,
) -> stair_status {
    let defaults = stair_build_options {
        struct_size: 0,
        format: 0,
        omit_text: 0,
        keep_front_matter: 0,
        questions: ptr::null(),
        questions_len: 0,
        split: ptr::null(),
        split_len: 0,
    };
    // SAFETY: the caller passes NULL or a struct of `size` bytes.
    fallible(ptr::null_mut(), || unsafe {
        options::init(options, size, &defaults)
    })
}

/// Opens the index at `path` (UTF-8) and checks all of it. `flags` is 0 or STAIR_INDEX_COPY. Free
/// `*out` with `stair_index_free`. While a mapped file is open, replace it only by renaming
/// another over it.
///
/// STAIR_ERR_NOT_FOUND, STAIR_ERR_PERMISSION_DENIED, STAIR_ERR_NOT_A_FILE, STAIR_ERR_IO,
/// STAIR_ERR_NOT_AN_INDEX, STAIR_ERR_INDEX_VERSION, STAIR_ERR_INDEX_CORRUPT, and those of bad
/// arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_open(
    path: *const c_char,
    path_len: usize,
    flags: u32,
    out: *mut *mut stair_index,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(out, "out")?;
        // SAFETY: the header says what the pointers are.
        let path = unsafe { text::path(path, path_len)? };
        let index = match flags {
            0 => Index::open(path)?,
            STAIR_INDEX_COPY => Index::open_copy(path)?,
            _ => {
                let what = format!("flags is {flags:#x}: use 0 or STAIR_INDEX_COPY");
                return Err(Error::InvalidArgument(what));
            }
        };
        // SAFETY: not NULL, and the caller's.
        unsafe { give(out, index) }
    })
}

/// Copies an index out of memory and checks all of it.
///
/// STAIR_ERR_NOT_AN_INDEX, STAIR_ERR_INDEX_VERSION, STAIR_ERR_INDEX_CORRUPT, and those of bad
/// arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_open_buffer(
    data: *const u8,
    len: usize,
    out: *mut *mut stair_index,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(data, "data")?;
        not_null(out, "out")?;
        if len == text::STAIR_NTS {
            return Err(Error::InvalidArgument(
                "len is STAIR_NTS, and an index is no text".to_owned(),
            ));
        }
        // SAFETY: the caller passes `len` bytes at `data`.
        let bytes = unsafe { text::bytes(data.cast(), len, "data")? };
        // SAFETY: not NULL, and the caller's.
        unsafe { give(out, Index::from_bytes(bytes)?) }
    })
}

/// Builds an index of a document in memory, for the vocabulary of `model` (which may have been
/// opened with `vocabulary_only`). `title` may be NULL: then the document's own is taken.
/// `options` may be NULL. Free `*out` with `stair_index_free`; write it to a file with
/// `stair_index_save`.
///
/// STAIR_ERR_DOCUMENT, STAIR_ERR_NO_HEADINGS, STAIR_ERR_TOKENIZER, STAIR_ERR_TEMPLATE,
/// STAIR_ERR_UNSTABLE_BOUNDARY, STAIR_ERR_TOO_LARGE, STAIR_ERR_QUESTIONS, and those of bad
/// arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_build(
    model: *const stair_model,
    document: *const c_char,
    document_len: usize,
    title: *const c_char,
    title_len: usize,
    options: *const stair_build_options,
    out: *mut *mut stair_index,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(document, "document")?;
        not_null(out, "out")?;
        // SAFETY: the header says what the pointers are.
        let (document, options) = unsafe {
            let document = text::bytes(document, document_len, "document")?;
            (document, options::read(options)?)
        };
        // SAFETY: the header says what the pointers are.
        let known = unsafe { known(&options)? };
        let title = match title.is_null() {
            true => None,
            // SAFETY: the header says what the pointers are.
            false => Some(unsafe { text::utf8(title, title_len, "title")? }),
        };
        let record = model::find(model)?;
        let bytes = building::build(document, title, &options, known, &record.model)?;
        // SAFETY: not NULL, and the caller's.
        unsafe { give(out, Index::from_bytes(&bytes)?) }
    })
}

/// Writes an index to the file at `path` (UTF-8), whole or not at all: under a temporary name in
/// the same folder, then renamed.
///
/// STAIR_ERR_NOT_FOUND (of the folder), STAIR_ERR_PERMISSION_DENIED, STAIR_ERR_NOT_A_FILE,
/// STAIR_ERR_IO, and those of bad arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_save(
    index: *const stair_index,
    path: *const c_char,
    path_len: usize,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        let record = find(index)?;
        // SAFETY: the header says what the pointers are.
        let path = unsafe { text::path(path, path_len)? };
        files::write_atomically(path, record.index.bytes())
    })
}

/// Fills `*info` from the header of the file at `path` (UTF-8) alone: cheap, and not checked as
/// `stair_index_open` checks. Set `info->struct_size` before.
///
/// As `stair_index_open`, and STAIR_ERR_STRUCT_SIZE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_peek(
    path: *const c_char,
    path_len: usize,
    info: *mut stair_index_info,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        not_null(info, "info")?;
        // SAFETY: the header says what the pointers are.
        let path = unsafe { text::path(path, path_len)? };
        let value = index_info(&Index::peek(path)?, ptr::null(), 0);
        // SAFETY: the caller passes a struct of `struct_size` bytes.
        unsafe { options::write(info, &value) }
    })
}

/// Fills `*info`; set its `struct_size` before.
///
/// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_get_info(
    index: *const stair_index,
    info: *mut stair_index_info,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        let record = find(index)?;
        let value = index_info(
            &record.index.info(),
            record.title.as_ptr(),
            record.title.len(),
        );
        // SAFETY: the caller passes NULL or a struct of `struct_size` bytes.
        unsafe { options::write(info, &value) }
    })
}

/// Fills `*section` with the section `id`; set its `struct_size` before.
///
/// STAIR_ERR_INVALID_ARGUMENT when there is no such section, STAIR_ERR_NULL_POINTER,
/// STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_section(
    index: *const stair_index,
    id: u32,
    section: *mut stair_section,
    error: *mut *mut stair_error,
) -> stair_status {
    fallible(error, || {
        let record = find(index)?;
        let Some(found) = record.index.section(id) else {
            let count = record.index.sections();
            let what = format!("there is no section {id}: this index has {count}, from 0");
            return Err(Error::InvalidArgument(what));
        };
        // In the file a NUL follows every text, which `Index::open` checked. An empty one may be
        // the stand-in for a text that changed since, so it is given as a literal.
        let pointer = |text: &str| match text.is_empty() {
            true => c"".as_ptr(),
            false => text.as_ptr().cast(),
        };
        let value = stair_section {
            struct_size: 0,
            id,
            parent: found.parent.unwrap_or(STAIR_NONE),
            depth: found.depth.into(),
            leaf: found.leaf.into(),
            page: found.page.unwrap_or(STAIR_NONE),
            span_start: found.span.start,
            span_end: found.span.end,
            number: pointer(found.number),
            number_len: found.number.len(),
            title: pointer(found.title),
            title_len: found.title.len(),
            text: found.text.map_or(ptr::null(), pointer),
            text_len: found.text.map_or(0, str::len),
        };
        // SAFETY: the caller passes NULL or a struct of `struct_size` bytes.
        unsafe { options::write(section, &value) }
    })
}

/// Frees an index. NULL is allowed; a call that uses it ends undisturbed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stair_index_free(index: *mut stair_index) {
    infallible((), || INDEXES.remove(index));
}

/// The index of an argument.
pub(super) fn find(index: *const stair_index) -> Result<Arc<Record>> {
    INDEXES.find(index)
}

/// # Safety
///
/// `out` is valid for writing.
unsafe fn give(out: *mut *mut stair_index, index: Index) -> Result<()> {
    let handle = INDEXES.insert(Record {
        title: Text::new(index.title()),
        index: Arc::new(index),
    })?;
    // SAFETY: as the caller promises.
    unsafe { out.write(handle) };
    Ok(())
}

/// The text of known questions, and the split of them.
struct Known<'a> {
    questions: &'a [u8],
    split: &'a str,
}

/// # Safety
///
/// The texts of `options` are as the header says.
unsafe fn known<'a>(options: &stair_build_options) -> Result<Option<Known<'a>>> {
    let questions_len = text::optional_len(options.questions, options.questions_len);
    let split_len = text::optional_len(options.split, options.split_len);
    // SAFETY: as the caller promises.
    let (questions, split) = unsafe {
        (
            text::bytes(options.questions, questions_len, "questions")?,
            text::utf8(options.split, split_len, "split")?,
        )
    };
    Ok((!options.questions.is_null()).then_some(Known {
        questions,
        split: match options.split.is_null() {
            true => "train",
            false => split,
        },
    }))
}

fn index_info(info: &Info, title: *const c_char, title_len: usize) -> stair_index_info {
    stair_index_info {
        struct_size: 0,
        sections: info.sections,
        leaves: info.leaves,
        trie_nodes: info.nodes,
        longest_title: info.longest_title,
        prefix_tokens: info.prefix_tokens,
        vocab_size: info.vocab_size,
        has_text: info.has_text.into(),
        fingerprint: info.fingerprint,
        bytes: info.bytes,
        title,
        title_len,
        version_major: info.version.0.into(),
        version_minor: info.version.1.into(),
    }
}

#[cfg(feature = "building")]
mod building {
    use super::*;
    use crate::index::{BuildOptions, build as build_index};
    use crate::toc::{ReadOptions, read_json, read_markdown};
    use crate::{Model, questions};
    use std::path::PathBuf;

    pub fn build(
        document: &[u8],
        title: Option<&str>,
        options: &stair_build_options,
        known: Option<Known<'_>>,
        model: &Model,
    ) -> Result<Vec<u8>> {
        let read = ReadOptions {
            title: title.map(str::to_owned),
            keep_front_matter: flag(options.keep_front_matter, "keep_front_matter")?,
        };
        let toc = match options.format {
            0 | STAIR_FORMAT_MARKDOWN => read_markdown(document, "Document", &read)?,
            STAIR_FORMAT_TOC_JSON => read_json(document, &read)?,
            format => {
                let what = format!(
                    "format is {format}: use STAIR_FORMAT_MARKDOWN or STAIR_FORMAT_TOC_JSON"
                );
                return Err(Error::InvalidArgument(what));
            }
        };
        let mut build = BuildOptions {
            text: !flag(options.omit_text, "omit_text")?,
            ..BuildOptions::default()
        };
        if let Some(known) = known {
            let name = PathBuf::from("stair_build_options.questions");
            let read = questions::parse(known.questions, &name)?;
            build.asked = questions::known(&[(name, read)], known.split, &toc)?;
        }
        Ok(build_index(&toc, model, &build, &|_| ())?.0)
    }
}

#[cfg(not(feature = "building"))]
mod building {
    use super::*;
    use crate::Model;

    pub fn build(
        _: &[u8],
        _: Option<&str>,
        _: &stair_build_options,
        _: Option<Known<'_>>,
        _: &Model,
    ) -> Result<Vec<u8>> {
        let what = "this libstair was built without the feature `building`: build indexes with `stair build`";
        Err(Error::InvalidArgument(what.to_owned()))
    }
}
