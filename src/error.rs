//! The one error type of the library. Every variant says the cause and the remedy, and has a
//! stable [`Code`] that never changes its number and is never reused.

use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The stable number of an error's kind, the same in Rust, in C and in every binding.
///
/// Families: 1xx argument, 2xx input and output, 3xx document or index, 4xx model, 5xx while
/// answering, 9xx internal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Code {
    /// An argument is outside its documented range.
    InvalidArgument = 100,
    /// A pointer that must not be NULL is NULL.
    NullPointer = 101,
    /// A text is not UTF-8.
    InvalidUtf8 = 102,
    /// A question contains a NUL character.
    NulInQuestion = 103,
    /// A question has no visible character.
    EmptyQuestion = 104,
    /// A question has more tokens than the room kept for it.
    QuestionTooLong = 105,
    /// The number of hits asked for is 0 or above the number of leaves.
    InvalidK = 106,
    /// The `struct_size` of an options or output struct is not one this library knows.
    StructSize = 107,
    /// A handle was never given out, was freed, or is of another kind.
    InvalidHandle = 108,
    /// A file could not be read or written.
    Io = 200,
    /// A file does not exist.
    NotFound = 201,
    /// The file system refused access.
    PermissionDenied = 202,
    /// A path names something that is not a regular file.
    NotAFile = 203,
    /// A document cannot be read as its format.
    Document = 300,
    /// A document has no headings, so there is nothing to retrieve.
    NoHeadings = 301,
    /// A prompt template is not usable.
    Template = 302,
    /// A `tokenizer.json` is not usable.
    Tokenizer = 303,
    /// A title's tokens depend on what stands before it.
    UnstableBoundary = 304,
    /// A document is beyond a limit of the index format.
    TooLarge = 305,
    /// A file is not a `.stair` index.
    NotAnIndex = 310,
    /// An index was written in a version of the format that this library does not read.
    IndexVersion = 311,
    /// An index is truncated or damaged.
    IndexCorrupt = 312,
    /// A file of questions is not usable.
    Questions = 320,
    /// A file is not a GGUF model.
    NotAModel = 400,
    /// A model file is truncated or damaged.
    ModelCorrupt = 401,
    /// A model's architecture is unknown to this build of llama.cpp, or does not generate text.
    ModelArchitecture = 402,
    /// A model file has no usable vocabulary.
    ModelVocabulary = 403,
    /// llama.cpp refused a model for a reason of its own.
    ModelLoad = 404,
    /// An index was built for another vocabulary.
    VocabularyMismatch = 405,
    /// No compute backend could be loaded.
    Backend = 406,
    /// An adapter is not one, is damaged, or does not belong to the model.
    Adapter = 407,
    /// The context is too small for the table of contents, a question and the search.
    ContextTooSmall = 500,
    /// The caller cancelled.
    Cancelled = 501,
    /// The deadline passed.
    Timeout = 502,
    /// Memory ran out.
    OutOfMemory = 503,
    /// llama.cpp failed to decode.
    Decode = 504,
    /// The retriever was closed.
    Closed = 505,
    /// Too many questions wait for the retriever already.
    Busy = 506,
    /// The library contradicted itself; please report it.
    Internal = 900,
    /// The library panicked; the panic was caught at the C boundary.
    Panic = 901,
}

impl Code {
    /// Every code, in the order of the numbers.
    pub const ALL: &'static [Self] = &[
        Self::InvalidArgument,
        Self::NullPointer,
        Self::InvalidUtf8,
        Self::NulInQuestion,
        Self::EmptyQuestion,
        Self::QuestionTooLong,
        Self::InvalidK,
        Self::StructSize,
        Self::InvalidHandle,
        Self::Io,
        Self::NotFound,
        Self::PermissionDenied,
        Self::NotAFile,
        Self::Document,
        Self::NoHeadings,
        Self::Template,
        Self::Tokenizer,
        Self::UnstableBoundary,
        Self::TooLarge,
        Self::NotAnIndex,
        Self::IndexVersion,
        Self::IndexCorrupt,
        Self::Questions,
        Self::NotAModel,
        Self::ModelCorrupt,
        Self::ModelArchitecture,
        Self::ModelVocabulary,
        Self::ModelLoad,
        Self::VocabularyMismatch,
        Self::Backend,
        Self::Adapter,
        Self::ContextTooSmall,
        Self::Cancelled,
        Self::Timeout,
        Self::OutOfMemory,
        Self::Decode,
        Self::Closed,
        Self::Busy,
        Self::Internal,
        Self::Panic,
    ];

    /// The code's name, the same in every language: `"VOCABULARY_MISMATCH"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NullPointer => "NULL_POINTER",
            Self::InvalidUtf8 => "INVALID_UTF8",
            Self::NulInQuestion => "NUL_IN_QUESTION",
            Self::EmptyQuestion => "EMPTY_QUESTION",
            Self::QuestionTooLong => "QUESTION_TOO_LONG",
            Self::InvalidK => "INVALID_K",
            Self::StructSize => "STRUCT_SIZE",
            Self::InvalidHandle => "INVALID_HANDLE",
            Self::Io => "IO",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::NotAFile => "NOT_A_FILE",
            Self::Document => "DOCUMENT",
            Self::NoHeadings => "NO_HEADINGS",
            Self::Template => "TEMPLATE",
            Self::Tokenizer => "TOKENIZER",
            Self::UnstableBoundary => "UNSTABLE_BOUNDARY",
            Self::TooLarge => "TOO_LARGE",
            Self::NotAnIndex => "NOT_AN_INDEX",
            Self::IndexVersion => "INDEX_VERSION",
            Self::IndexCorrupt => "INDEX_CORRUPT",
            Self::Questions => "QUESTIONS",
            Self::NotAModel => "NOT_A_MODEL",
            Self::ModelCorrupt => "MODEL_CORRUPT",
            Self::ModelArchitecture => "MODEL_ARCHITECTURE",
            Self::ModelVocabulary => "MODEL_VOCABULARY",
            Self::ModelLoad => "MODEL_LOAD",
            Self::VocabularyMismatch => "VOCABULARY_MISMATCH",
            Self::Backend => "BACKEND",
            Self::Adapter => "ADAPTER",
            Self::ContextTooSmall => "CONTEXT_TOO_SMALL",
            Self::Cancelled => "CANCELLED",
            Self::Timeout => "TIMEOUT",
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::Decode => "DECODE",
            Self::Closed => "CLOSED",
            Self::Busy => "BUSY",
            Self::Internal => "INTERNAL",
            Self::Panic => "PANIC",
        }
    }
}

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is outside its documented range.
    #[error("{0}")]
    InvalidArgument(String),

    /// A pointer that must not be NULL is NULL.
    #[error("{0} is NULL: pass a valid pointer")]
    NullPointer(&'static str),

    /// A text is not UTF-8.
    #[error("{what} is not UTF-8 (first bad byte at {at}): convert it to UTF-8")]
    InvalidUtf8 {
        /// Which text.
        what: String,
        /// Offset in bytes of the first byte that is not UTF-8.
        at: usize,
    },

    /// A question contains a NUL character.
    #[error("the question has a NUL character at byte {at}: remove it")]
    NulInQuestion {
        /// Offset in bytes.
        at: usize,
    },

    /// A question has no visible character.
    #[error("the question is empty: ask something")]
    EmptyQuestion,

    /// A question has more tokens than the room kept for it.
    #[error(
        "the question is {}{tokens} tokens long and at most {max} fit: shorten it, or raise max_question_tokens when the retriever is made",
        if *.at_least { "at least " } else { "" }
    )]
    QuestionTooLong {
        /// Its length in tokens.
        tokens: usize,
        /// Whether it is longer still: a very long question is not counted to its end.
        at_least: bool,
        /// The room kept for a question, in tokens.
        max: usize,
    },

    /// The number of hits asked for is 0 or above the number of leaves.
    #[error("k is {k} and this index has {leaves} leaf sections: ask for 1 to {leaves} hits")]
    InvalidK {
        /// The number of hits asked for.
        k: usize,
        /// The number of leaf sections in the index.
        leaves: usize,
    },

    /// The weight of lexical evidence is negative or not finite.
    #[error(
        "lexical_weight is {weight} and may be 0, which leaves lexical evidence out, or any finite number above"
    )]
    LexicalWeight {
        /// The weight asked for.
        weight: f32,
    },

    /// The `struct_size` of an options or output struct is not one this library knows.
    #[error(
        "{what}.struct_size is {found} and this library reads {expected}: set it with the struct's init function, and use one version of header and library"
    )]
    StructSize {
        /// The struct's name.
        what: &'static str,
        /// What the caller set.
        found: usize,
        /// What this library knows.
        expected: usize,
    },

    /// A handle was never given out, was freed, or is of another kind.
    #[error("{0} is not a live handle: it was freed already, or is a handle of another kind")]
    InvalidHandle(&'static str),

    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), io_remedy(source))]
    Io {
        /// `"read"`, `"write"`...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// A path names something that is not a regular file.
    #[error("{} is a folder, a device or something else that is no file: give the path of a file", .0.display())]
    NotAFile(PathBuf),

    /// A document cannot be read as its format.
    #[error("cannot read the document: {0}")]
    Document(String),

    /// A document has no headings.
    #[error(
        "the document has no headings (a toc.json: no sections), so there is nothing to retrieve: add headings, or describe its sections in a toc.json"
    )]
    NoHeadings,

    /// A prompt template is not usable.
    #[error("the prompt template is not usable: {0}")]
    Template(String),

    /// A `tokenizer.json` is not usable.
    #[error("the tokenizer is not usable: {0}")]
    Tokenizer(String),

    /// A title's tokens depend on what stands before it.
    #[error(
        "the tokens of the title {title:?} run together with the prompt before it, so it could not be generated: change the title's first characters, or end the template's `after_question` differently"
    )]
    UnstableBoundary {
        /// The title.
        title: String,
    },

    /// A document is beyond a limit of the index format.
    #[error("{what}: {found} is above the format's limit of {limit}: split the document")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        found: u64,
        /// How large it may be.
        limit: u64,
    },

    /// A file is not a `.stair` index.
    #[error("not a .stair index: {0}; make one with `stair build`")]
    NotAnIndex(String),

    /// An index was written in a version of the format that this library does not read.
    #[error(
        "the index has format version {found_major}.{found_minor}{} and this library reads {supported}.x: {}",
        if *.unknown_flags != 0 { format!(" with unknown required features {unknown_flags:#x}") } else { String::new() },
        if found_major < supported { "rebuild it with this version's `stair build`" } else { "update the library" }
    )]
    IndexVersion {
        /// Major version in the file.
        found_major: u16,
        /// Minor version in the file.
        found_minor: u16,
        /// Bits of required features that this library does not know.
        unknown_flags: u16,
        /// Major version that this library reads.
        supported: u16,
    },

    /// An index is truncated or damaged.
    #[error("the index is damaged at byte {at}: {what}; copy it again or rebuild it")]
    IndexCorrupt {
        /// Offset in bytes from the start of the file of the first thing that is wrong.
        at: u64,
        /// What is wrong there.
        what: String,
    },

    /// A file of questions is not usable.
    #[error("the questions in {}, line {line}: {why}", path.display())]
    Questions {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there, and what to do.
        why: String,
    },

    /// A file is not a GGUF model.
    #[error("{} is not a GGUF model ({why}): give a .gguf file", path.display())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// How one can tell.
        why: String,
    },

    /// A model file is truncated or damaged.
    #[error("the model {} is damaged: {why}; download or copy it again", path.display())]
    ModelCorrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },

    /// A model's architecture is unknown to this build of llama.cpp, or does not generate text.
    #[error(
        "the model {} has architecture {architecture:?}, {why}: use a decoder model that this version supports", path.display()
    )]
    ModelArchitecture {
        /// The file.
        path: PathBuf,
        /// `general.architecture`.
        architecture: String,
        /// Why it cannot serve.
        why: &'static str,
    },

    /// A model file has no usable vocabulary.
    #[error("the model {} has no usable vocabulary: {why}", path.display())]
    ModelVocabulary {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: String,
    },

    /// llama.cpp refused a model for a reason of its own.
    #[error("llama.cpp could not load the model {}: {why}", path.display())]
    ModelLoad {
        /// The file.
        path: PathBuf,
        /// What it said.
        why: String,
    },

    /// An index was built for another vocabulary.
    #[error(
        "the index was built for another vocabulary: {0}; rebuild it with `stair build` and this model"
    )]
    VocabularyMismatch(String),

    /// No compute backend could be loaded.
    #[error("no compute backend could be loaded: {0}")]
    Backend(String),

    /// An adapter is not one, is damaged, or does not belong to the model.
    #[error("the adapter {} cannot be used: {why}", path.display())]
    Adapter {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },

    /// The context is too small for the table of contents, a question and the search.
    #[error(
        "the context needs {needed} tokens ({prefix} for the table of contents, the rest for questions and the search) and {available} are available: {remedy}"
    )]
    ContextTooSmall {
        /// Tokens needed.
        needed: usize,
        /// Of these, the table of contents.
        prefix: usize,
        /// Tokens available.
        available: usize,
        /// What to do.
        remedy: &'static str,
    },

    /// The caller cancelled.
    #[error("cancelled by the caller")]
    Cancelled,

    /// The deadline passed.
    #[error("the deadline of {timeout_ms} ms passed: allow more time, or ask for fewer hits")]
    Timeout {
        /// The deadline that was set, in milliseconds.
        timeout_ms: u64,
    },

    /// Memory ran out.
    #[error("out of memory: {0}")]
    OutOfMemory(String),

    /// llama.cpp failed to decode.
    #[error("llama.cpp failed to decode: {0}")]
    Decode(String),

    /// The retriever was closed.
    #[error("the retriever was closed, or its worker ended: make a new one")]
    Closed,

    /// Too many questions wait already.
    #[error(
        "{waiting} questions wait for this retriever already, and max_waiting is {max}: ask again later, ask another process, or raise it"
    )]
    Busy {
        /// Questions that wait.
        waiting: usize,
        /// Most that may.
        max: usize,
    },

    /// The library contradicted itself.
    #[error("internal error, please report it: {0}")]
    Internal(String),

    /// The library panicked.
    #[error("the library panicked, please report it: {0}")]
    Panic(String),
}

/// What to do about what the operating system said, as far as that is known.
fn io_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": check the path, and that its folder exists",
        io::ErrorKind::PermissionDenied => ": let this process read or write there",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": make room there",
        io::ErrorKind::ReadOnlyFilesystem => ": choose a folder that can be written to",
        _ => "",
    }
}

impl Error {
    /// An input or output error on `path`.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        Self::Io {
            action,
            path,
            source,
        }
    }

    /// The stable number of this error's kind.
    pub fn code(&self) -> Code {
        match self {
            Self::InvalidArgument(_) | Self::LexicalWeight { .. } => Code::InvalidArgument,
            Self::NullPointer(_) => Code::NullPointer,
            Self::InvalidUtf8 { .. } => Code::InvalidUtf8,
            Self::NulInQuestion { .. } => Code::NulInQuestion,
            Self::EmptyQuestion => Code::EmptyQuestion,
            Self::QuestionTooLong { .. } => Code::QuestionTooLong,
            Self::InvalidK { .. } => Code::InvalidK,
            Self::StructSize { .. } => Code::StructSize,
            Self::InvalidHandle(_) => Code::InvalidHandle,
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Code::NotFound,
                io::ErrorKind::PermissionDenied => Code::PermissionDenied,
                io::ErrorKind::IsADirectory => Code::NotAFile,
                io::ErrorKind::OutOfMemory => Code::OutOfMemory,
                _ => Code::Io,
            },
            Self::NotAFile(_) => Code::NotAFile,
            Self::Document(_) => Code::Document,
            Self::NoHeadings => Code::NoHeadings,
            Self::Template(_) => Code::Template,
            Self::Tokenizer(_) => Code::Tokenizer,
            Self::UnstableBoundary { .. } => Code::UnstableBoundary,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::NotAnIndex(_) => Code::NotAnIndex,
            Self::IndexVersion { .. } => Code::IndexVersion,
            Self::IndexCorrupt { .. } => Code::IndexCorrupt,
            Self::Questions { .. } => Code::Questions,
            Self::NotAModel { .. } => Code::NotAModel,
            Self::ModelCorrupt { .. } => Code::ModelCorrupt,
            Self::ModelArchitecture { .. } => Code::ModelArchitecture,
            Self::ModelVocabulary { .. } => Code::ModelVocabulary,
            Self::ModelLoad { .. } => Code::ModelLoad,
            Self::VocabularyMismatch(_) => Code::VocabularyMismatch,
            Self::Backend(_) => Code::Backend,
            Self::Adapter { .. } => Code::Adapter,
            Self::ContextTooSmall { .. } => Code::ContextTooSmall,
            Self::Cancelled => Code::Cancelled,
            Self::Timeout { .. } => Code::Timeout,
            Self::OutOfMemory(_) => Code::OutOfMemory,
            Self::Decode(_) => Code::Decode,
            Self::Closed => Code::Closed,
            Self::Busy { .. } => Code::Busy,
            Self::Internal(_) => Code::Internal,
            Self::Panic(_) => Code::Panic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_named_once() {
        for pair in Code::ALL.windows(2) {
            assert!((pair[0] as i32) < pair[1] as i32, "{pair:?}");
        }
        let names: std::collections::HashSet<_> = Code::ALL.iter().map(|c| c.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn a_missing_file_has_its_own_code() {
        let error = Error::io("read", "x", io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.to_string().contains("cannot read x"));
    }

    #[test]
    fn an_older_index_is_to_be_rebuilt_and_a_newer_one_needs_an_update() {
        let version = |found_major| Error::IndexVersion {
            found_major,
            found_minor: 0,
            unknown_flags: 0,
            supported: 2,
        };
        assert!(version(1).to_string().contains("rebuild"));
        assert!(version(3).to_string().contains("update the library"));
    }
}
