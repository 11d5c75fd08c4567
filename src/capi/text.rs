//! Texts across the boundary: pointer and length in, pointer and length (and a NUL) out.

use crate::error::{Error, Result};
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

/// Length of a text that ends with a NUL.
pub const STAIR_NTS: usize = usize::MAX;

/// The bytes of an argument.
///
/// # Safety
///
/// `text` is NULL, or valid for `len` bytes, or NUL-terminated when `len` is [`STAIR_NTS`]; for as
/// long as the result is used.
pub(super) unsafe fn bytes<'a>(
    text: *const c_char,
    len: usize,
    name: &'static str,
) -> Result<&'a [u8]> {
    if text.is_null() {
        // An empty text has no address in several languages.
        return match len {
            0 => Ok(&[]),
            _ => Err(Error::NullPointer(name)),
        };
    }
    if len == STAIR_NTS {
        // SAFETY: the caller says that the text is NUL-terminated.
        return Ok(unsafe { CStr::from_ptr(text) }.to_bytes());
    }
    if len > isize::MAX as usize {
        let what = format!("the length of {name} is {len}: no text is that long");
        return Err(Error::InvalidArgument(what));
    }
    // SAFETY: the caller says that the text is valid for `len` bytes.
    Ok(unsafe { std::slice::from_raw_parts(text.cast(), len) })
}

/// An argument as UTF-8.
///
/// # Safety
///
/// As [`bytes`].
pub(super) unsafe fn utf8<'a>(
    text: *const c_char,
    len: usize,
    name: &'static str,
) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(text, len, name) }?;
    std::str::from_utf8(bytes).map_err(|error| Error::InvalidUtf8 {
        what: name.to_owned(),
        at: error.valid_up_to(),
    })
}

/// An argument as a path.
///
/// # Safety
///
/// As [`bytes`].
pub(super) unsafe fn path(text: *const c_char, len: usize) -> Result<PathBuf> {
    if text.is_null() {
        return Err(Error::NullPointer("path"));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { utf8(text, len, "path") }?;
    if text.is_empty() || text.contains('\0') {
        let what = format!("the path {text:?} is empty or has a NUL: give a file's path");
        return Err(Error::InvalidArgument(what));
    }
    Ok(PathBuf::from(text))
}

/// The length of an argument that may be left out: NULL is none, also where [`STAIR_NTS`] stands for its
/// length.
pub(super) fn optional_len(text: *const c_char, len: usize) -> usize {
    match text.is_null() && len == STAIR_NTS {
        true => 0,
        false => len,
    }
}

/// An argument as a path, or `None` when it is NULL or empty.
///
/// # Safety
///
/// As [`bytes`].
pub(super) unsafe fn optional_path(
    text: *const c_char,
    len: usize,
    name: &'static str,
) -> Result<Option<PathBuf>> {
    // SAFETY: as the caller promises.
    let text = unsafe { utf8(text, optional_len(text, len), name) }?;
    if text.contains('\0') {
        let what = format!("the path {text:?} has a NUL: give a folder's path");
        return Err(Error::InvalidArgument(what));
    }
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

/// A text that C may read for as long as its owner lives.
#[derive(Debug)]
pub(super) struct Text(Box<[u8]>);

impl Text {
    pub fn new(text: &str) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
        Self(bytes.into_boxed_slice())
    }

    pub fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    pub fn len(&self) -> usize {
        self.0.len() - 1
    }
}
