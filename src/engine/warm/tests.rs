//! Warm files that are whole, damaged, foreign, or cannot be written.

use super::*;
use proptest::prelude::*;

const PREFIX: [u32; 3] = [5, 6, 7];

fn state() -> Vec<u8> {
    (0..1000u32).map(|i| (i * i % 251) as u8).collect()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A file with [`state`] in it.
fn written(folder: &Path) -> WarmFile {
    let file = WarmFile::new(folder, 1, &PREFIX);
    file.write(&state()).expect("writes");
    file
}

fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().expect("lists");
    let name = |entry: io::Result<std::fs::DirEntry>| {
        let name = entry.expect("an entry").file_name();
        name.to_string_lossy().into_owned()
    };
    entries.map(name).collect()
}

#[test]
fn what_was_written_is_read_and_nothing_else_is_left() {
    let folder = folder();
    let below = folder.path().join("a/b");
    let file = written(&below);
    assert_eq!(file.read(), Some(state()));
    assert_eq!(names(&below).len(), 1);
    let len = std::fs::metadata(file.path()).expect("is there").len();
    assert_eq!(len, 64 + 1000);
}

#[test]
fn a_file_is_good_that_was_read_or_written_and_not_one_that_stands_there() {
    let folder = folder();
    let below = folder.path().join("a");
    let written = written(&below);
    assert!(written.is_good());
    let file = WarmFile::new(&below, 1, &PREFIX);
    assert!(file.path().is_file() && !file.is_good());
    assert!(file.read().is_some() && file.is_good());
    let clone = file.clone();
    file.refused(&Error::Closed);
    assert!(!clone.is_good(), "the model did not take it");
    // Damaged, and then no folder to write to.
    let file = WarmFile::new(&below, 1, &PREFIX);
    std::fs::write(file.path(), b"something else").expect("writes");
    assert!(file.read().is_none() && !file.is_good());
    std::fs::remove_dir_all(&below).expect("removes");
    std::fs::write(&below, b"in the way").expect("writes");
    let writer = file.write_aside(state()).expect("a thread");
    writer.join().expect("no panic");
    assert!(!file.is_good());
    std::fs::remove_file(&below).expect("removes");
    file.write(&state()).expect("writes");
    assert!(file.is_good());
}

#[test]
fn another_key_or_prefix_has_another_file() {
    let folder = folder();
    let file = written(folder.path());
    let others = [
        WarmFile::new(folder.path(), 2, &PREFIX),
        WarmFile::new(folder.path(), 1, &[5, 6]),
        WarmFile::new(folder.path(), 1, &[5, 6, 8]),
    ];
    for other in others {
        assert_ne!(other.path(), file.path());
        assert_eq!(other.read(), None);
        // Nor does it take a file that was given its name.
        std::fs::copy(file.path(), other.path()).expect("copies");
        assert_eq!(other.read(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_file_with_any_byte_changed_is_ignored(at in 0usize..1064, change in 1u8..) {
        let folder = folder();
        let file = written(folder.path());
        let mut bytes = std::fs::read(file.path()).expect("reads");
        bytes[at] ^= change;
        std::fs::write(file.path(), bytes).expect("writes");
        prop_assert_eq!(file.read(), None);
    }

    #[test]
    fn a_file_of_anything_is_ignored(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let folder = folder();
        let file = WarmFile::new(folder.path(), 1, &PREFIX);
        std::fs::write(file.path(), bytes).expect("writes");
        prop_assert_eq!(file.read(), None);
    }
}

#[test]
fn a_file_cut_short_anywhere_or_grown_is_ignored_and_written_anew() {
    let folder = folder();
    let file = written(folder.path());
    let whole = std::fs::read(file.path()).expect("reads");
    for len in 0..whole.len() {
        std::fs::write(file.path(), &whole[..len]).expect("writes");
        assert_eq!(file.read(), None, "cut to {len}");
    }
    let grown = [&whole[..], &[0]].concat();
    std::fs::write(file.path(), grown).expect("writes");
    assert_eq!(file.read(), None);
    file.write(&state()).expect("writes");
    assert_eq!(file.read(), Some(state()));
}

#[test]
fn a_header_that_promises_too_much_is_refused_before_memory_is_taken() {
    let folder = folder();
    let file = written(folder.path());
    let mut bytes = std::fs::read(file.path()).expect("reads");
    for len in [u64::MAX, u64::MAX - 63, 1 << 62, 0] {
        let mut header: Header = bytemuck::pod_read_unaligned(&bytes[..64]);
        header.state_len = len;
        header.header_checksum = header.checksum();
        bytes[..64].copy_from_slice(bytes_of(&header));
        std::fs::write(file.path(), &bytes).expect("writes");
        assert_eq!(file.read(), None);
    }
}

#[test]
fn a_folder_or_a_pipe_in_the_way_is_a_miss() {
    let folder = folder();
    let file = WarmFile::new(folder.path(), 1, &PREFIX);
    std::fs::create_dir(file.path()).expect("makes");
    assert_eq!(file.read(), None);
    assert!(file.write(&state()).is_err());
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        std::fs::remove_dir(file.path()).expect("removes");
        let name = std::ffi::CString::new(file.path().as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the name is NUL-terminated.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(file.read(), None);
    }
}

#[test]
fn a_folder_that_is_a_file_is_a_miss() {
    let folder = folder();
    let path = folder.path().join("file");
    std::fs::write(&path, "no folder").expect("writes");
    let file = WarmFile::new(&path, 1, &PREFIX);
    assert_eq!(file.read(), None);
    assert!(file.write(&state()).is_err());
    let writer = file.write_aside(state()).expect("a thread");
    writer.join().expect("does not panic");
    assert_eq!(std::fs::read(&path).expect("reads"), b"no folder");
}

#[test]
fn writers_at_the_same_time_do_no_harm() {
    let folder = folder();
    let file = written(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    file.write(&state()).expect("writes");
                    assert_eq!(file.read(), Some(state()));
                }
            });
        }
    });
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn what_a_killed_writer_left_goes_after_a_day_and_is_harmless_until_then() {
    let folder = folder();
    let (old, new) = (
        folder.path().join(".stair-old"),
        folder.path().join(".stair-new"),
    );
    for path in [&old, &new] {
        std::fs::write(path, "half").expect("writes");
    }
    let yesterday = SystemTime::now() - 2 * ABANDONED;
    let touched = File::options().write(true).open(&old).expect("opens");
    touched.set_modified(yesterday).expect("sets its time");
    let file = written(folder.path());
    assert_eq!(file.read(), Some(state()));
    assert!(!old.exists() && new.exists());
}

#[test]
fn a_full_folder_loses_the_files_that_were_used_least_lately_and_no_others() {
    let folder = folder();
    let foreign = [folder.path().join("x.warm"), folder.path().join("notes")];
    for path in &foreign {
        std::fs::write(path, [0; 5000]).expect("writes");
    }
    let files: Vec<WarmFile> = (0..4)
        .map(|key| WarmFile::new(folder.path(), key, &PREFIX))
        .collect();
    for (age, file) in files.iter().rev().enumerate() {
        file.write(&state()).expect("writes");
        let time = SystemTime::now() - Duration::from_secs(100 * (4 - age as u64));
        let opened = File::options()
            .write(true)
            .open(file.path())
            .expect("opens");
        opened.set_modified(time).expect("sets its time");
    }
    // The oldest is 3. Reading it makes it the youngest.
    assert!(files[3].read().is_some());
    tidy(folder.path(), files[2].path(), 2 * 1064);
    let left: Vec<bool> = files.iter().map(|file| file.path().exists()).collect();
    assert_eq!(left, [false, false, true, true]);
    assert!(foreign.iter().all(|path| path.exists()));
}
