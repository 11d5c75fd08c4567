//! The warm file: what a model remembers of a prefix, kept on disk, so that the next process need
//! not decode the table of contents again. It is a cache: whatever is wrong with it, or with the
//! folder, is a miss, which the log says at level warn, and the prefix is decoded.
//!
//! This file knows no llama.cpp. The state is bytes to it, and the state's key a number.

use super::log::{self, Level};
use crate::error::{Error, Result};
use crate::files::{self, AtomicFile};
use crate::panics;
use bytemuck::{Pod, Zeroable, bytes_of};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// First eight bytes of a file, as those of an index: whatever takes it for text mangles them.
const MAGIC: [u8; 8] = *b"\x93STW\r\n\x1a\n";

/// Version of what follows. Files of another one have another name.
const VERSION: u32 = 1;

/// Read back as this value only on a machine that agrees about the order of bytes.
const BYTE_ORDER_MARK: u32 = 0x0A0B_0C0D;

/// End of every warm file's name, after 32 hexadecimal digits.
const EXTENSION: &str = "warm";

/// Most bytes of warm files that a folder keeps, unless the newest alone is larger.
const MOST_BYTES: u64 = 2 << 30;

/// A temporary file that nobody wrote to for so long belongs to a process that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The first 64 bytes of a file; the state follows, and nothing else.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    byte_order: u32,
    key: [u64; 2],
    /// Tokens of the prefix.
    tokens: u64,
    /// Length of the state in bytes.
    state_len: u64,
    /// XXH3-64 of the state.
    state_checksum: u64,
    /// XXH3-64 of the header's bytes before this field.
    header_checksum: u64,
}

impl Header {
    fn checksum(&self) -> u64 {
        let bytes = bytes_of(self);
        xxh3_64(&bytes[..bytes.len() - size_of::<u64>()])
    }
}

/// The place of one prefix's state in a cache folder.
#[derive(Debug, Clone)]
pub(crate) struct WarmFile {
    path: PathBuf,
    key: u128,
    tokens: u64,
    /// See [`WarmFile::is_good`]; of all its clones.
    good: Arc<AtomicBool>,
}

/// Why there is no state.
enum Miss {
    /// There is no file.
    Absent,
    /// There is one, and it cannot be used.
    Unusable(String),
}

impl WarmFile {
    /// The file in `folder` for `prefix`, where `state_key` stands for all that a state depends on
    /// beside the tokens ([`LanguageModel::state_key`]). Nothing is read or written.
    ///
    /// [`LanguageModel::state_key`]: crate::search::model::LanguageModel::state_key
    pub fn new(folder: &Path, state_key: u128, prefix: &[u32]) -> Self {
        let mut hash = Xxh3Default::new();
        hash.update(&VERSION.to_le_bytes());
        hash.update(&state_key.to_le_bytes());
        hash.update(bytemuck::cast_slice(prefix));
        let key = hash.digest128();
        Self {
            path: folder.join(format!("{key:032x}.{EXTENSION}")),
            key,
            tokens: prefix.len() as u64,
            good: Arc::default(),
        }
    }

    /// Where it lies, or will lie.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file was read or written whole by now, rather than only stands there: the last
    /// that was done with it went well.
    pub fn is_good(&self) -> bool {
        self.good.load(Ordering::Acquire)
    }

    /// The state in the file, if there is one and the file is whole.
    pub fn read(&self) -> Option<Vec<u8>> {
        match self.load() {
            Ok(state) => {
                self.good.store(true, Ordering::Release);
                Some(state)
            }
            Err(Miss::Absent) => {
                self.good.store(false, Ordering::Release);
                self.say(Level::Info, "is not there yet");
                None
            }
            Err(Miss::Unusable(why)) => {
                self.good.store(false, Ordering::Release);
                self.say(Level::Warn, &format!("is not used: {why}"));
                None
            }
        }
    }

    /// Says that the model did not take what [`WarmFile::read`] gave.
    pub fn refused(&self, error: &Error) {
        self.good.store(false, Ordering::Release);
        self.say(Level::Warn, &format!("is not used: {error}"));
    }

    /// Says why the model gives no state to keep.
    pub fn not_kept(&self, error: &Error) {
        self.good.store(false, Ordering::Release);
        self.say(Level::Warn, &format!("is not written: {error}"));
    }

    /// Writes the file on a thread of its own, for nobody should wait for a disk; `None` when
    /// there is no thread to be had.
    pub fn write_aside(&self, state: Vec<u8>) -> Option<JoinHandle<()>> {
        let file = self.clone();
        let writer = std::thread::Builder::new().name("stair-warm".to_owned());
        let started = writer.spawn(move || {
            if let Err(error) = panics::catch(|| file.write(&state)).and_then(|written| written) {
                file.not_kept(&error);
            }
        });
        match started {
            Ok(handle) => Some(handle),
            Err(error) => {
                self.not_kept(&Error::OutOfMemory(format!(
                    "cannot start a thread: {error}"
                )));
                None
            }
        }
    }

    fn load(&self) -> Result<Vec<u8>, Miss> {
        let unusable = |why: &str| Err(Miss::Unusable(why.to_owned()));
        // Opening a named pipe would wait for a writer.
        if !std::fs::metadata(&self.path)?.is_file() {
            return unusable("it is no file");
        }
        let mut file = File::open(&self.path)?;
        let len = file.metadata()?.len();
        let mut header = Header::zeroed();
        file.read_exact(bytemuck::bytes_of_mut(&mut header))?;
        if header.magic != MAGIC {
            return unusable("it is no warm file");
        }
        if header.header_checksum != header.checksum() {
            return unusable("its header is damaged");
        }
        if (header.version, header.byte_order) != (VERSION, BYTE_ORDER_MARK)
            || header.key != halves(self.key)
            || header.tokens != self.tokens
        {
            return unusable("it belongs to something else");
        }
        if header.state_len.checked_add(size_of::<Header>() as u64) != Some(len) {
            return unusable("its length is wrong");
        }
        let mut state = Vec::new();
        let room = usize::try_from(header.state_len).ok();
        if room.is_none_or(|room| state.try_reserve_exact(room).is_err()) {
            return unusable("there is no memory for it");
        }
        // No byte more, should it grow meanwhile.
        (&file).take(header.state_len).read_to_end(&mut state)?;
        if state.len() as u64 != header.state_len || xxh3_64(&state) != header.state_checksum {
            return unusable("it is damaged");
        }
        // Which file is the oldest is told by this when the folder is full. It is only a hint.
        let _ = file.set_modified(SystemTime::now());
        Ok(state)
    }

    fn write(&self, state: &[u8]) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        create_folder(folder)?;
        let mut header = Header {
            magic: MAGIC,
            version: VERSION,
            byte_order: BYTE_ORDER_MARK,
            key: halves(self.key),
            tokens: self.tokens,
            state_len: state.len() as u64,
            state_checksum: xxh3_64(state),
            header_checksum: 0,
        };
        header.header_checksum = header.checksum();
        let mut file = AtomicFile::create_in_place(self.path.clone())?;
        file.write(bytes_of(&header))?;
        file.write(state)?;
        file.commit()?;
        self.good.store(true, Ordering::Release);
        self.say(Level::Info, "is written");
        tidy(folder, &self.path, MOST_BYTES);
        Ok(())
    }

    fn say(&self, level: Level, what: &str) {
        log::emit(level, &format!("warm file {} {what}", self.path.display()));
    }
}

impl From<io::Error> for Miss {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::UnexpectedEof => Self::Unusable("it is cut short".to_owned()),
            _ => Self::Unusable(error.to_string()),
        }
    }
}

fn halves(key: u128) -> [u64; 2] {
    [key as u64, (key >> 64) as u64]
}

/// For this user alone where it did not exist: who writes there decides what is answered.
fn create_folder(folder: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| Error::io("write", folder, error))
}

/// Takes out of `folder` the warm files that were used least lately, except `keep`, until `most`
/// bytes are left, and temporary files that a killed process left. Whatever fails is left alone.
fn tidy(folder: &Path, keep: &Path, most: u64) {
    let Ok(entries) = folder.read_dir() else {
        return;
    };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        // Not followed when it is a link, which no library made.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let (path, modified) = (entry.path(), metadata.modified());
        let Some(modified) = modified.ok().filter(|_| metadata.is_file()) else {
            continue;
        };
        if is_warm(&path) {
            files.push((modified, metadata.len(), path));
        } else if entry
            .file_name()
            .to_string_lossy()
            .starts_with(files::PREFIX)
            && modified.elapsed().is_ok_and(|age| age > ABANDONED)
        {
            let _ = std::fs::remove_file(path);
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, len, _)| len).sum();
    for (_, len, path) in files {
        if total <= most {
            break;
        }
        if path != keep && std::fs::remove_file(&path).is_ok() {
            total -= len;
        }
    }
}

fn is_warm(path: &Path) -> bool {
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    path.extension() == Some(OsStr::new(EXTENSION))
        && stem.len() == 32
        && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
