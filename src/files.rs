//! Writing files so that nobody ever sees half of one.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that appears at its path whole, or not at all: it is written in the same folder, flushed to
/// the disk and renamed. A process that has the old file mapped keeps the old one. Dropped before
/// [`AtomicFile::commit`] it leaves nothing behind; nor does a process that is killed, where the
/// system knows files without a name (Linux, on most file systems).
pub struct AtomicFile {
    file: Unfinished,
    folder: PathBuf,
    path: PathBuf,
}

/// A file before it has its name.
enum Unfinished {
    /// It has none, and a path by which this process finds it.
    #[cfg(target_os = "linux")]
    Nameless(File, PathBuf),
    /// It has a temporary one.
    Named(NamedTempFile),
}

impl Unfinished {
    fn new(folder: &Path, mode: u32) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some((file, path)) = nameless::create(folder, mode) {
            return Ok(Self::Nameless(file, path));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        // Temporary files are private by default.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        #[cfg(not(unix))]
        let _ = mode;
        Ok(Self::Named(builder.tempfile_in(folder)?))
    }

    fn file(&mut self) -> &mut File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file, _) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    fn path(&self) -> &Path {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(_, path) => path,
            Self::Named(file) => file.path(),
        }
    }

    /// Puts it into `folder` at `path`.
    fn persist(self, folder: &Path, path: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(_, at) => {
                // A link takes no other file's place, so it goes by a temporary name.
                let name = |name: &Path| nameless::link(&at, name);
                let named = tempfile::Builder::new()
                    .prefix(PREFIX)
                    .make_in(folder, name)?;
                named.into_temp_path().persist(path).map_err(|e| e.error)
            }
            Self::Named(file) => file.persist(path).map(|_| ()).map_err(|e| e.error),
        }
    }
}

/// How a temporary file's name begins.
pub(crate) const PREFIX: &str = ".stair-";

impl AtomicFile {
    /// Begins to write the file that will stand at `path`, or that a link at `path` leads to.
    ///
    /// # Errors
    ///
    /// [`Error::NotAFile`] when something else than a file stands there, such as a folder, a pipe or a
    /// device; else [`Error::Io`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let mut path = path.as_ref().to_path_buf();
        if path.is_symlink() {
            // What is no file may have no name that leads to it, as a pipe has none.
            if path.exists() && !path.is_file() {
                return Err(Error::NotAFile(path));
            }
            // A link that leads nowhere is an error: what was meant to stand there is unknown.
            path = path
                .canonicalize()
                .map_err(|e| Error::io("write", &path, e))?;
        }
        Self::create_in_place(path)
    }

    /// [`AtomicFile::create`] that takes the place of a link itself.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`].
    pub(crate) fn create_in_place(path: PathBuf) -> Result<Self> {
        // A rename would take the place of a device or a pipe as of a file.
        match path.symlink_metadata() {
            Ok(found) if !found.is_file() && !found.is_symlink() => {
                return Err(Error::NotAFile(path));
            }
            _ => (),
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        // It becomes an ordinary file, to which the process's umask applies, or takes the place of
        // one, which may be more private.
        #[cfg(unix)]
        let mode = unix::mode(&path).map_or(0o666, |mode| mode | 0o600);
        #[cfg(not(unix))]
        let mode = 0o666;
        let file = Unfinished::new(&folder, mode).map_err(|e| Error::io("write", &path, e))?;
        Ok(Self { file, folder, path })
    }

    /// Where the bytes lie until [`AtomicFile::commit`], for a writer that wants a path.
    pub fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .file()
            .write_all(bytes)
            .map_err(|e| Error::io("write", &self.path, e))
    }

    /// Flushes the file to the disk and gives it its name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; what stood at the path before still stands there.
    pub fn commit(self) -> Result<()> {
        let Self {
            mut file,
            folder,
            path,
        } = self;
        let fail = |error| Error::io("write", &path, error);
        // Opened anew by name: another writer may have put its own file there. To write, because
        // Windows flushes nothing else.
        File::options()
            .write(true)
            .open(file.path())
            .and_then(|file| file.sync_all())
            .map_err(fail)?;
        #[cfg(unix)]
        unix::keep_mode(&path, file.file());
        file.persist(&folder, &path).map_err(fail)?;
        // The new name itself reaches the disk with the folder; Windows has no such call.
        if cfg!(unix) {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(fail)?;
        }
        Ok(())
    }
}

/// Files without a name, which vanish with the process that has them open.
#[cfg(target_os = "linux")]
mod nameless {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    /// A new file in `folder` and the path to open it by; none where the system cannot do that.
    pub fn create(folder: &Path, mode: u32) -> Option<(File, PathBuf)> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let file = File::from(rustix::fs::open(folder, flags, mode).ok()?);
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        path.exists().then_some((file, path))
    }

    /// Gives the file at such a path its first name.
    pub fn link(file: &Path, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::linkat(
            CWD,
            file,
            CWD,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    /// The permission bits of the file at `path`, if there is one.
    pub fn mode(path: &Path) -> Option<u32> {
        let metadata = std::fs::metadata(path).ok().filter(|m| m.is_file())?;
        Some(metadata.mode() & 0o777)
    }

    /// Gives `new` the permission bits of the file at `old`, where both belong to the same user and
    /// group: for others the same bits would mean other people. Where that cannot be, it stays as
    /// readable as that file at most, and for its owner.
    pub fn keep_mode(old: &Path, new: &File) {
        let owners = |of: &std::fs::Metadata| (of.uid(), of.gid());
        let same =
            std::fs::metadata(old).and_then(|old| Ok(owners(&old) == owners(&new.metadata()?)));
        if let (Ok(true), Some(mode)) = (same, mode(old)) {
            let _ = new.set_permissions(Permissions::from_mode(mode));
        }
    }
}

/// Writes `bytes` to `path`, whole or not at all.
///
/// # Errors
///
/// [`Error::Io`] or [`Error::NotAFile`]; what stood at the path before still stands there.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write(bytes)?;
    file.commit()
}

/// Whether both paths name one existing file, whatever links lie between.
pub fn is_same_file(a: impl AsRef<Path>, b: impl AsRef<Path>) -> bool {
    match (a.as_ref().canonicalize(), b.as_ref().canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// XXH3-64 of the bytes of the file at `path`.
///
/// # Errors
///
/// [`Error::Io`].
pub fn checksum(path: impl AsRef<Path>) -> Result<u64> {
    let path = path.as_ref();
    let fail = |error| Error::io("read", path, error);
    let mut file = File::open(path).map_err(fail)?;
    let mut hash = xxhash_rust::xxh3::Xxh3Default::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(fail)? {
            0 => return Ok(hash.digest()),
            len => hash.update(&buffer[..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        write_atomically(&path, b"old").expect("writes");
        let mut file = AtomicFile::create(&path).expect("begins");
        file.write(b"half").expect("writes");
        assert_eq!(std::fs::read(&path).expect("reads"), b"old");
        drop(file);
        write_atomically(&path, b"new").expect("writes");
        assert_eq!(std::fs::read(&path).expect("reads"), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_in_the_folder_before_the_file_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        let count = || std::fs::read_dir(folder.path()).expect("lists").count();
        let mut file = AtomicFile::create(&path).expect("begins");
        if matches!(file.file, Unfinished::Named(_)) {
            eprintln!("left out: this file system knows no files without a name");
            return;
        }
        file.write(b"whole").expect("writes");
        assert_eq!(count(), 0);
        // Others write to it by its path.
        std::fs::write(file.temporary_path(), b"theirs").expect("writes");
        file.commit().expect("commits");
        assert_eq!(std::fs::read(&path).expect("reads"), b"theirs");
        assert_eq!(count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn who_may_read_a_file_does_not_change_when_it_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        let mode = || {
            std::fs::metadata(&path)
                .expect("is there")
                .permissions()
                .mode()
                & 0o777
        };
        write_atomically(&path, b"old").expect("writes");
        for private in [0o600, 0o640, 0o444, 0o000] {
            let permissions = std::fs::Permissions::from_mode(private);
            std::fs::set_permissions(&path, permissions).expect("sets");
            write_atomically(&path, b"new").expect("writes");
            assert_eq!(mode(), private);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_a_link_leads_to_is_written_and_the_link_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, b"old").expect("writes");
        std::os::unix::fs::symlink("file", &link).expect("links");
        write_atomically(&link, b"new").expect("writes");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).expect("reads"), b"new");
        std::fs::remove_file(&file).expect("removes");
        let error = write_atomically(&link, b"new").expect_err("it leads nowhere");
        assert_eq!(error.code(), crate::Code::NotFound);
        // Where a link must not be followed it is replaced.
        let mut placed = AtomicFile::create_in_place(link.clone()).expect("begins");
        placed.write(b"placed").expect("writes");
        placed.commit().expect("commits");
        assert!(!link.is_symlink() && !file.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, link) = (folder.path().join("socket"), folder.path().join("link"));
        let _socket = std::os::unix::net::UnixListener::bind(&socket).expect("binds");
        std::os::unix::fs::symlink(&socket, &link).expect("links");
        for path in [&socket, &link, Path::new("/dev/null")] {
            let result = write_atomically(path, b"x");
            assert!(matches!(result, Err(Error::NotAFile(_))), "{path:?}");
        }
        assert!(!socket.is_file());
    }

    #[test]
    fn a_folder_in_the_way_and_a_missing_folder_are_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(
            write_atomically(folder.path(), b""),
            Err(Error::NotAFile(_))
        ));
        let error = write_atomically(folder.path().join("no/x"), b"").expect_err("no folder");
        assert_eq!(error.code(), crate::Code::NotFound);
    }
}
