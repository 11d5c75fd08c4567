//! Checksums: XXH3-64 of every block of the body, so that damage is not only found but placed.

use super::format::BLOCK;
use xxhash_rust::xxh3::xxh3_64;

/// Number of blocks in a body of `len` bytes; `None` when `len` is absurd.
pub fn block_count(len: u64) -> Option<u64> {
    len.checked_add(BLOCK as u64 - 1).map(|n| n / BLOCK as u64)
}

/// The checksum of every block of `body`, in order.
pub fn blocks(body: &[u8]) -> impl Iterator<Item = u64> + '_ {
    body.chunks(BLOCK).map(xxh3_64)
}

/// The checksum of `bytes` as a whole.
pub fn of(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}
