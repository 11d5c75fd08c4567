//! Statuses: the numbers of [`crate::Code`] as C sees them.

use super::boundary::infallible;
use std::ffi::{CStr, c_char};

/// What a function came to: `STAIR_OK`, or why it failed. 1xx argument, 2xx input and output, 3xx
/// document or index, 4xx model, 5xx while answering, 9xx internal. A number never changes its
/// meaning; later versions may add some, so treat an unknown one as a failure.
pub type stair_status = i32;

/// It worked.
pub const STAIR_OK: stair_status = 0;
/// An argument is outside its documented range.
pub const STAIR_ERR_INVALID_ARGUMENT: stair_status = 100;
/// A pointer that must not be NULL is NULL.
pub const STAIR_ERR_NULL_POINTER: stair_status = 101;
/// A text is not UTF-8.
pub const STAIR_ERR_INVALID_UTF8: stair_status = 102;
/// A question contains a NUL character.
pub const STAIR_ERR_NUL_IN_QUESTION: stair_status = 103;
/// A question has no visible character.
pub const STAIR_ERR_EMPTY_QUESTION: stair_status = 104;
/// A question has more tokens than the room kept for it.
pub const STAIR_ERR_QUESTION_TOO_LONG: stair_status = 105;
/// The number of hits asked for is 0 or above the number of leaves.
pub const STAIR_ERR_INVALID_K: stair_status = 106;
/// The `struct_size` of an options or output struct is not one this library knows.
pub const STAIR_ERR_STRUCT_SIZE: stair_status = 107;
/// A handle was never given out, was freed, or is of another kind.
pub const STAIR_ERR_INVALID_HANDLE: stair_status = 108;
/// A file could not be read or written.
pub const STAIR_ERR_IO: stair_status = 200;
/// A file does not exist.
pub const STAIR_ERR_NOT_FOUND: stair_status = 201;
/// The file system refused access.
pub const STAIR_ERR_PERMISSION_DENIED: stair_status = 202;
/// A path names something that is not a regular file.
pub const STAIR_ERR_NOT_A_FILE: stair_status = 203;
/// A document cannot be read as its format.
pub const STAIR_ERR_DOCUMENT: stair_status = 300;
/// A document has no headings, so there is nothing to retrieve.
pub const STAIR_ERR_NO_HEADINGS: stair_status = 301;
/// A prompt template is not usable.
pub const STAIR_ERR_TEMPLATE: stair_status = 302;
/// A `tokenizer.json` is not usable.
pub const STAIR_ERR_TOKENIZER: stair_status = 303;
/// A title's tokens depend on what stands before it.
pub const STAIR_ERR_UNSTABLE_BOUNDARY: stair_status = 304;
/// A document is beyond a limit of the index format.
pub const STAIR_ERR_TOO_LARGE: stair_status = 305;
/// A file is not a `.stair` index.
pub const STAIR_ERR_NOT_AN_INDEX: stair_status = 310;
/// An index was written in a version of the format that this library does not read.
pub const STAIR_ERR_INDEX_VERSION: stair_status = 311;
/// An index is truncated or damaged.
pub const STAIR_ERR_INDEX_CORRUPT: stair_status = 312;
/// A file of questions is not usable.
pub const STAIR_ERR_QUESTIONS: stair_status = 320;
/// A file is not a GGUF model.
pub const STAIR_ERR_NOT_A_MODEL: stair_status = 400;
/// A model file is truncated or damaged.
pub const STAIR_ERR_MODEL_CORRUPT: stair_status = 401;
/// A model's architecture is unknown to this build of llama.cpp, or does not generate text.
pub const STAIR_ERR_MODEL_ARCHITECTURE: stair_status = 402;
/// A model file has no usable vocabulary.
pub const STAIR_ERR_MODEL_VOCABULARY: stair_status = 403;
/// llama.cpp refused a model for a reason of its own.
pub const STAIR_ERR_MODEL_LOAD: stair_status = 404;
/// An index was built for another vocabulary.
pub const STAIR_ERR_VOCABULARY_MISMATCH: stair_status = 405;
/// No compute backend could be loaded.
pub const STAIR_ERR_BACKEND: stair_status = 406;
/// An adapter is not one, is damaged, or does not belong to the model.
pub const STAIR_ERR_ADAPTER: stair_status = 407;
/// The context is too small for the table of contents, a question and the search.
pub const STAIR_ERR_CONTEXT_TOO_SMALL: stair_status = 500;
/// The caller cancelled.
pub const STAIR_ERR_CANCELLED: stair_status = 501;
/// The deadline passed.
pub const STAIR_ERR_TIMEOUT: stair_status = 502;
/// Memory ran out.
pub const STAIR_ERR_OUT_OF_MEMORY: stair_status = 503;
/// llama.cpp failed to decode.
pub const STAIR_ERR_DECODE: stair_status = 504;
/// The retriever was closed.
pub const STAIR_ERR_CLOSED: stair_status = 505;
/// Too many questions wait for the retriever already.
pub const STAIR_ERR_BUSY: stair_status = 506;
/// The library contradicted itself; please report it.
pub const STAIR_ERR_INTERNAL: stair_status = 900;
/// The library panicked; the panic was caught at the C boundary.
pub const STAIR_ERR_PANIC: stair_status = 901;

/// The name of a status, `"INVALID_K"` for example; `"UNKNOWN"` for a number that is none. Static.
#[unsafe(no_mangle)]
pub extern "C" fn stair_status_name(status: stair_status) -> *const c_char {
    infallible(c"UNKNOWN".as_ptr(), || name(status).as_ptr())
}

fn name(status: stair_status) -> &'static CStr {
    match status {
        STAIR_OK => c"OK",
        STAIR_ERR_INVALID_ARGUMENT => c"INVALID_ARGUMENT",
        STAIR_ERR_NULL_POINTER => c"NULL_POINTER",
        STAIR_ERR_INVALID_UTF8 => c"INVALID_UTF8",
        STAIR_ERR_NUL_IN_QUESTION => c"NUL_IN_QUESTION",
        STAIR_ERR_EMPTY_QUESTION => c"EMPTY_QUESTION",
        STAIR_ERR_QUESTION_TOO_LONG => c"QUESTION_TOO_LONG",
        STAIR_ERR_INVALID_K => c"INVALID_K",
        STAIR_ERR_STRUCT_SIZE => c"STRUCT_SIZE",
        STAIR_ERR_INVALID_HANDLE => c"INVALID_HANDLE",
        STAIR_ERR_IO => c"IO",
        STAIR_ERR_NOT_FOUND => c"NOT_FOUND",
        STAIR_ERR_PERMISSION_DENIED => c"PERMISSION_DENIED",
        STAIR_ERR_NOT_A_FILE => c"NOT_A_FILE",
        STAIR_ERR_DOCUMENT => c"DOCUMENT",
        STAIR_ERR_NO_HEADINGS => c"NO_HEADINGS",
        STAIR_ERR_TEMPLATE => c"TEMPLATE",
        STAIR_ERR_TOKENIZER => c"TOKENIZER",
        STAIR_ERR_UNSTABLE_BOUNDARY => c"UNSTABLE_BOUNDARY",
        STAIR_ERR_TOO_LARGE => c"TOO_LARGE",
        STAIR_ERR_NOT_AN_INDEX => c"NOT_AN_INDEX",
        STAIR_ERR_INDEX_VERSION => c"INDEX_VERSION",
        STAIR_ERR_INDEX_CORRUPT => c"INDEX_CORRUPT",
        STAIR_ERR_QUESTIONS => c"QUESTIONS",
        STAIR_ERR_NOT_A_MODEL => c"NOT_A_MODEL",
        STAIR_ERR_MODEL_CORRUPT => c"MODEL_CORRUPT",
        STAIR_ERR_MODEL_ARCHITECTURE => c"MODEL_ARCHITECTURE",
        STAIR_ERR_MODEL_VOCABULARY => c"MODEL_VOCABULARY",
        STAIR_ERR_MODEL_LOAD => c"MODEL_LOAD",
        STAIR_ERR_VOCABULARY_MISMATCH => c"VOCABULARY_MISMATCH",
        STAIR_ERR_BACKEND => c"BACKEND",
        STAIR_ERR_ADAPTER => c"ADAPTER",
        STAIR_ERR_CONTEXT_TOO_SMALL => c"CONTEXT_TOO_SMALL",
        STAIR_ERR_CANCELLED => c"CANCELLED",
        STAIR_ERR_TIMEOUT => c"TIMEOUT",
        STAIR_ERR_OUT_OF_MEMORY => c"OUT_OF_MEMORY",
        STAIR_ERR_DECODE => c"DECODE",
        STAIR_ERR_CLOSED => c"CLOSED",
        STAIR_ERR_BUSY => c"BUSY",
        STAIR_ERR_INTERNAL => c"INTERNAL",
        STAIR_ERR_PANIC => c"PANIC",
        _ => c"UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn every_code_has_its_constant_and_its_name() {
        for &code in Code::ALL {
            assert_eq!(
                name(code as stair_status).to_str(),
                Ok(code.name()),
                "{code:?}"
            );
        }
        assert_eq!(name(12345), c"UNKNOWN");
    }
}
