//! Which library this is.

use super::boundary::infallible;
use std::ffi::{CStr, c_char};

/// Version of the ABI that the header describes. A library serves a program that was built with the
/// same number; see `stair_abi_version`.
pub const STAIR_ABI_VERSION: u32 = 1;

/// Version of the library that the header came with: major.
pub const STAIR_VERSION_MAJOR: u32 = 0;
/// Version of the library that the header came with: minor.
pub const STAIR_VERSION_MINOR: u32 = 1;
/// Version of the library that the header came with: patch.
pub const STAIR_VERSION_PATCH: u32 = 0;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a version has no NUL"),
    };

const BUILD_INFO: &CStr = match CStr::from_bytes_with_nul(
    concat!(
        "libstair ",
        env!("CARGO_PKG_VERSION"),
        "; ABI 1; index format 1; llama-cpp-2 0.1.160; ",
        env!("STAIR_TARGET"),
        "; features: ",
        env!("STAIR_FEATURES"),
        "\0"
    )
    .as_bytes(),
) {
    Ok(text) => text,
    Err(_) => panic!("a build's description has no NUL"),
};

/// The ABI version of the loaded library. Compare it with `STAIR_ABI_VERSION` before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn stair_abi_version() -> u32 {
    STAIR_ABI_VERSION
}

/// The library's version, `"0.1.0"`. Static.
#[unsafe(no_mangle)]
pub extern "C" fn stair_version() -> *const c_char {
    VERSION.as_ptr()
}

/// How the library was built: version, target, features. Static.
#[unsafe(no_mangle)]
pub extern "C" fn stair_build_info() -> *const c_char {
    infallible(VERSION.as_ptr(), || BUILD_INFO.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_numbers_are_the_packages() {
        let numbers = [
            STAIR_VERSION_MAJOR,
            STAIR_VERSION_MINOR,
            STAIR_VERSION_PATCH,
        ];
        let text: Vec<String> = numbers.iter().map(u32::to_string).collect();
        assert_eq!(VERSION.to_str(), Ok(text.join(".").as_str()));
        assert!(BUILD_INFO.to_string_lossy().contains("ABI 1;"));
        assert_eq!(
            crate::index::format::MAJOR,
            1,
            "BUILD_INFO names the format"
        );
        let manifest = include_str!("../../Cargo.toml");
        assert!(manifest.contains("llama-cpp-2 = { version = \"=0.1.160\""));
    }
}
