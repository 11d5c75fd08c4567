//! Structs that begin with their own size, so that header and library may be of different
//! versions: a newer library reads a shorter struct and takes 0 for the rest; an older one takes a
//! longer struct as long as what it does not know is 0.

use crate::error::{Error, Result};

/// A struct of the header that begins with `struct_size`.
///
/// # Safety
///
/// `#[repr(C)]`, begins with a `u32` that is the size of the struct, is valid when all bytes are
/// 0, and has no padding.
pub(super) unsafe trait Sized32: Copy {
    /// Its name in the header.
    const NAME: &'static str;
    /// Its size in version 1 of the ABI; no smaller one exists.
    const FIRST_SIZE: usize;
}

/// Copies an options struct; NULL gives all zeros, the defaults.
///
/// # Safety
///
/// `from` is NULL, or aligned and valid for reading as many bytes as its `struct_size` says.
pub(super) unsafe fn read<T: Sized32>(from: *const T) -> Result<T> {
    // SAFETY: the trait says that zeros are a valid value.
    let mut value: T = unsafe { std::mem::zeroed() };
    if from.is_null() {
        return Ok(value);
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { struct_size(from) };
    check::<T>(size)?;
    let known = size.min(size_of::<T>());
    // SAFETY: both are valid for `known` bytes, and do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast::<u8>(), known)
    };
    // SAFETY: the caller says that `size` bytes are valid.
    let rest = unsafe { std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
    match rest.iter().all(|&byte| byte == 0) {
        true => Ok(value),
        false => Err(wrong_size::<T>(size)),
    }
}

/// Copies `value` out, as much of it as the caller's struct has room for.
///
/// # Safety
///
/// `to` is aligned and valid for reading its `struct_size` and writing as many bytes as that says.
pub(super) unsafe fn write<T: Sized32>(to: *mut T, value: &T) -> Result<()> {
    if to.is_null() {
        return Err(Error::NullPointer(T::NAME));
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { struct_size(to) };
    check::<T>(size)?;
    // SAFETY: valid for `size` bytes; the size itself stays as the caller set it.
    unsafe {
        let (from, to) = ((&raw const *value).cast::<u8>(), to.cast::<u8>());
        let known = size.min(size_of::<T>());
        std::ptr::copy_nonoverlapping(from.add(4), to.add(4), known - 4);
        to.add(known).write_bytes(0, size - known);
    }
    Ok(())
}

/// Sets a caller's struct of `size` bytes to `value`, and its `struct_size` to `size`.
///
/// # Safety
///
/// `to` is NULL, or aligned and valid for writing `size` bytes.
pub(super) unsafe fn init<T: Sized32>(to: *mut T, size: usize, value: &T) -> Result<()> {
    if to.is_null() {
        return Err(Error::NullPointer(T::NAME));
    }
    check::<T>(size)?;
    // SAFETY: valid for `size` bytes, which `check` found to fit in 32 bits.
    unsafe {
        to.cast::<u32>().write(size as u32);
        write(to, value)
    }
}

/// # Safety
///
/// `from` is aligned and begins with a `u32`.
unsafe fn struct_size<T: Sized32>(from: *const T) -> usize {
    // SAFETY: as the caller promises.
    unsafe { from.cast::<u32>().read() as usize }
}

fn check<T: Sized32>(size: usize) -> Result<()> {
    // A page is more than any version will need; what is larger was never set, and what ends in
    // the middle of a field is no version's.
    let possible = (T::FIRST_SIZE..=4096).contains(&size) && size.is_multiple_of(align_of::<T>());
    match possible {
        true => Ok(()),
        false => Err(wrong_size::<T>(size)),
    }
}

fn wrong_size<T: Sized32>(found: usize) -> Error {
    Error::StructSize {
        what: T::NAME,
        found,
        expected: size_of::<T>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(C)]
    struct Options {
        struct_size: u32,
        old: u32,
        new: u32,
        newer: u32,
    }

    // SAFETY: as the trait asks.
    unsafe impl Sized32 for Options {
        const NAME: &'static str = "options";
        const FIRST_SIZE: usize = 8;
    }

    #[test]
    fn an_older_callers_struct_reads_zeros_for_the_rest() {
        let old = [8u32, 5];
        let options = unsafe { read(old.as_ptr().cast::<Options>()) }.expect("reads");
        assert_eq!((options.old, options.new, options.newer), (5, 0, 0));
        let defaults = unsafe { read(std::ptr::null::<Options>()) }.expect("reads");
        assert_eq!(defaults.old, 0);
    }

    #[test]
    fn a_newer_callers_struct_is_read_as_long_as_the_rest_is_zero() {
        let mut newer = [24u32, 5, 6, 7, 0, 0];
        assert!(unsafe { read(newer.as_ptr().cast::<Options>()) }.is_ok());
        newer[5] = 1;
        let error = unsafe { read(newer.as_ptr().cast::<Options>()) }.expect_err("refused");
        assert!(matches!(
            error,
            Error::StructSize {
                found: 24,
                expected: 16,
                ..
            }
        ));
    }

    #[test]
    fn sizes_that_were_never_set_are_refused() {
        for size in [0u32, 4, 7, 9, 15, 5000, u32::MAX] {
            let options = [size, 0, 0, 0];
            assert!(
                unsafe { read(options.as_ptr().cast::<Options>()) }.is_err(),
                "{size}"
            );
        }
    }

    #[test]
    fn writing_stays_inside_the_callers_struct() {
        let value = Options {
            struct_size: 16,
            old: 1,
            new: 2,
            newer: 3,
        };
        let mut old = [8u32, 9, 9, 9];
        unsafe { write(old.as_mut_ptr().cast::<Options>(), &value) }.expect("writes");
        assert_eq!(old, [8, 1, 9, 9]);
        let mut newer = [20u32, 9, 9, 9, 9, 9];
        unsafe { write(newer.as_mut_ptr().cast::<Options>(), &value) }.expect("writes");
        assert_eq!(newer, [20, 1, 2, 3, 0, 9]);
    }
}
