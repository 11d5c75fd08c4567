//! Arguments of `stair.h` out of an input's bytes: numbers, texts and structs, right as a rule and
//! wrong in all the ways that C allows. Each buffer is its own allocation of exactly the size that
//! the call is told, so that the sanitizer sees a byte too many.

use std::alloc::Layout;
use std::ffi::{c_char, c_void};
use std::ptr::null;

/// Length of a text that ends with a NUL, as in the header.
const STAIR_NTS: usize = usize::MAX;

/// Bytes that decide, 0 when they are used up. 0 is always the usual choice.
pub struct Choices<'a> {
    block: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Bytes that one call has. So a call more or less leaves the others as they were, and a seed
    /// is a number of calls with a few bytes set.
    const BLOCK: usize = 16;

    pub fn new(input: &'a [u8]) -> Self {
        Self {
            block: &[],
            rest: input,
        }
    }

    /// Goes on to the next call, if there is one.
    pub fn next_call(&mut self) -> bool {
        let len = self.rest.len().min(Self::BLOCK);
        (self.block, self.rest) = self.rest.split_at(len);
        len > 0
    }

    /// All bytes of the calls that would follow, which then do not.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.block.split_first() else {
            return 0;
        };
        self.block = rest;
        first
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// Small numbers, those that mean something, and any.
    pub fn u32(&mut self) -> u32 {
        match self.byte() {
            n @ 0..=239 => u32::from(n) % 12,
            240..=243 => u32::MAX,
            244..=247 => 1 << (self.byte() % 32),
            _ => u32::from_le_bytes(self.bytes()),
        }
    }

    /// `usual`, or any number.
    pub fn u32_or(&mut self, usual: u32) -> u32 {
        match self.byte() {
            0..=159 => usual,
            _ => self.u32(),
        }
    }

    pub fn f32(&mut self) -> f32 {
        match self.byte() {
            0..=99 => 0.0,
            100..=199 => 0.5,
            200..=209 => -0.0,
            210..=219 => f32::NAN,
            220..=229 => f32::INFINITY,
            230..=239 => f32::MIN_POSITIVE / 2.0,
            _ => f32::from_le_bytes(self.bytes()),
        }
    }

    pub fn yes(&mut self) -> bool {
        self.byte() % 4 != 3
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// A size that may be right, for a struct of `size` bytes.
    pub fn struct_size(&mut self, size: usize) -> usize {
        match self.byte() {
            0..=199 => size,
            200..=219 => size - 4,
            220..=229 => size + 4 * usize::from(self.byte()),
            230..=239 => 4096 + usize::from(self.byte() % 2),
            240..=249 => usize::from(self.byte()),
            _ => self.u32() as usize,
        }
    }

    /// A struct of options; the size takes the place of the first field. Or NULL.
    pub fn options(&mut self, fields: &[u32]) -> Option<Memory> {
        if !self.yes() {
            return None;
        }
        let size = self.struct_size(4 * fields.len());
        // What a newer header has is 0, or not.
        let unknown = self.byte() / 128;
        let memory = Memory::new(size.min(4096), unknown);
        let fields = [&[size as u32][..], &fields[1..]].concat();
        memory.fill(fields.iter().flat_map(|field| field.to_le_bytes()));
        Some(memory)
    }

    /// A struct for the library to fill; or NULL.
    pub fn output(&mut self, size: usize) -> Option<Memory> {
        self.yes().then(|| {
            let size = self.struct_size(size);
            let memory = Memory::new(size.min(4096), Memory::UNSET);
            memory.fill((size as u32).to_le_bytes());
            memory
        })
    }

    /// `bytes` as a text argument, with its length or a NUL; or a wrong one.
    pub fn text(&mut self, bytes: &[u8]) -> Text {
        let copy = || Some(Memory::of(bytes));
        let (memory, len) = match self.byte() {
            0..=199 => (copy(), bytes.len()),
            200..=229 => (Some(Memory::of(&[bytes, &[0]].concat())), STAIR_NTS),
            230..=239 => (None, usize::from(self.byte())),
            240..=244 => (None, STAIR_NTS),
            245..=249 => (copy(), usize::MAX - 1 - usize::from(self.byte())),
            _ => (copy(), 0),
        };
        Text { memory, len }
    }
}

/// A text argument.
pub struct Text {
    memory: Option<Memory>,
    pub len: usize,
}

impl Text {
    pub fn ptr(&self) -> *const c_char {
        self.memory.as_ptr().cast()
    }
}

/// Memory of a caller: aligned, and of exactly as many bytes as were asked for, but for the four
/// that each struct has.
pub struct Memory {
    start: *mut u8,
    layout: Layout,
}

impl Memory {
    /// What nobody has set.
    const UNSET: u8 = 0xA5;

    fn new(size: usize, byte: u8) -> Self {
        let layout = Layout::from_size_align(size.max(4), 8).expect("a small size");
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc(layout) };
        assert!(!start.is_null());
        // SAFETY: as large as was asked for.
        unsafe { start.write_bytes(byte, layout.size()) };
        Self { start, layout }
    }

    pub fn unset(size: usize) -> Self {
        Self::new(size, Self::UNSET)
    }

    pub fn of(bytes: &[u8]) -> Self {
        let memory = Self::new(bytes.len(), 0);
        memory.fill(bytes.iter().copied());
        memory
    }

    fn fill(&self, bytes: impl IntoIterator<Item = u8>) {
        for (i, byte) in bytes.into_iter().take(self.layout.size()).enumerate() {
            // SAFETY: inside.
            unsafe { self.start.add(i).write(byte) };
        }
    }

    pub fn as_mut_ptr(&self) -> *mut c_void {
        self.start.cast()
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: initialised, and nothing writes while the slice is looked at.
        unsafe { std::slice::from_raw_parts(self.start, self.layout.size()) }
    }

    /// Whether nothing was written, apart from the size that the caller set.
    pub fn is_unset(&self) -> bool {
        self.as_slice()[4..].iter().all(|&byte| byte == Self::UNSET)
    }

    /// What the library wrote, if there was room for all of it.
    ///
    /// # Safety
    ///
    /// The library wrote a `T`.
    pub unsafe fn value<T: Copy>(&self) -> Option<T> {
        // SAFETY: as the caller promises; aligned and large enough.
        (self.layout.size() >= size_of::<T>()).then(|| unsafe { self.start.cast::<T>().read() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated so.
        unsafe { std::alloc::dealloc(self.start, self.layout) };
    }
}

/// The address of memory that may be missing.
pub trait OrNull {
    fn as_ptr(&self) -> *const c_void;

    fn as_mut_ptr(&self) -> *mut c_void {
        self.as_ptr().cast_mut()
    }
}

impl OrNull for Option<Memory> {
    fn as_ptr(&self) -> *const c_void {
        self.as_ref()
            .map_or(null(), |memory| memory.as_mut_ptr().cast_const())
    }
}
