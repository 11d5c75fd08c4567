//! Which weights a model has, told by a part of its file, so that asking takes milliseconds.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;
use xxhash_rust::xxh3::Xxh3Default;

/// Bytes of a sample.
const SAMPLE: u64 = 4096;

/// A sample is taken where a tensor begins, and after every so many of its bytes.
const STRIDE: u64 = 1 << 16;

/// A model's file and its fingerprint, which is computed when it is first asked for.
///
/// It covers the file's length, everything before the weights (metadata, vocabulary, names and
/// shapes of the tensors) and 4 KiB of every 64 KiB of each tensor from its first byte on. So another
/// model, another number type, another training or a merged adapter gives another one: what trains a
/// tensor changes all of it. It does not find a change that stays within bytes that are no sample,
/// such as a bit that rots in a file on disk.
pub(super) struct Weights {
    path: PathBuf,
    /// The file as it was before it was loaded.
    identity: Option<Identity>,
    /// Where each tensor lies.
    tensors: Vec<Range<u64>>,
    fingerprint: OnceLock<Option<u128>>,
}

impl Weights {
    /// The weights of the file at `path` with its tensors at `tensors`. `identity` was taken before
    /// anything was read.
    pub fn new(path: &Path, identity: Option<Identity>, tensors: Vec<Range<u64>>) -> Self {
        Self {
            path: path.to_path_buf(),
            identity,
            tensors,
            fingerprint: OnceLock::new(),
        }
    }

    /// The fingerprint; `None` when the file cannot be read any more, or is not the one that was
    /// loaded.
    pub fn fingerprint(&self) -> Option<u128> {
        *self.fingerprint.get_or_init(|| {
            let mut file = File::open(&self.path).ok()?;
            let fingerprint = sample(&mut file, &self.tensors).ok()?;
            // Afterwards: it was the same file all the time.
            let identity = Identity::new(&file.metadata().ok()?)?;
            (self.identity.as_ref() == Some(&identity)).then_some(fingerprint)
        })
    }
}

/// What tells a file from one that takes its place, and from itself when it was written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    len: u64,
    modified: SystemTime,
    place: [u64; 2],
}

impl Identity {
    /// That of the file at `path`; `None` when it has none.
    pub fn of(path: &Path) -> Option<Self> {
        Self::new(&std::fs::metadata(path).ok()?)
    }

    fn new(metadata: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        let place = {
            use std::os::unix::fs::MetadataExt;
            [metadata.dev(), metadata.ino()]
        };
        #[cfg(not(unix))]
        let place = [0; 2];
        Some(Self {
            len: metadata.len(),
            modified: metadata.modified().ok()?,
            place,
        })
    }
}

fn sample(file: &mut (impl Read + Seek), tensors: &[Range<u64>]) -> io::Result<u128> {
    let mut hash = Xxh3Default::new();
    let len = file.seek(SeekFrom::End(0))?;
    hash.update(&len.to_le_bytes());
    let mut buffer = vec![0; STRIDE as usize];
    let mut take = |range: Range<u64>| -> io::Result<()> {
        file.seek(SeekFrom::Start(range.start))?;
        let mut left = range.end - range.start;
        while left > 0 {
            let piece = left.min(STRIDE) as usize;
            file.read_exact(&mut buffer[..piece])?;
            hash.update(&buffer[..piece]);
            left -= piece as u64;
        }
        Ok(())
    };
    let head = tensors.iter().map(|tensor| tensor.start).min();
    take(0..head.unwrap_or(len))?;
    for tensor in tensors {
        let mut at = tensor.start;
        while at < tensor.end {
            take(at..tensor.end.min(at + SAMPLE))?;
            at += STRIDE;
        }
    }
    Ok(hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn of(bytes: &[u8], tensors: &[Range<u64>]) -> u128 {
        sample(&mut Cursor::new(bytes), tensors).expect("reads")
    }

    #[test]
    fn the_head_and_the_samples_of_every_tensor_count() {
        let tensors = [1000..1100, 1100..200_000];
        let mut bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let whole = of(&bytes, &tensors);
        let last = 1100 + 3 * STRIDE;
        for at in [
            0,
            999,
            1000,
            1099,
            1100,
            5195,
            1100 + STRIDE,
            last,
            last + 100,
        ] {
            bytes[at as usize] ^= 1;
            assert_ne!(of(&bytes, &tensors), whole, "byte {at}");
            bytes[at as usize] ^= 1;
        }
        // Between two samples it does not look.
        bytes[10_000] ^= 1;
        assert_eq!(of(&bytes, &tensors), whole);
        bytes.push(0);
        assert_ne!(of(&bytes, &tensors), whole);
    }

    #[test]
    fn a_file_that_was_written_to_or_replaced_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("model");
        std::fs::write(&path, [1; 100]).expect("writes");
        let weights = || Weights::new(&path, Identity::of(&path), vec![10..50, 50..100]);
        let same = weights();
        assert!(same.fingerprint().is_some());
        let (grown, replaced) = (weights(), weights());
        std::fs::write(&path, [1; 101]).expect("writes");
        assert_eq!(grown.fingerprint(), None);
        std::fs::remove_file(&path).expect("removes");
        assert_eq!(replaced.fingerprint(), None);
        assert!(same.fingerprint().is_some(), "it is kept");
    }
}
