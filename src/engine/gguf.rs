//! The header of a GGUF file, read before llama.cpp sees it: for errors that say what is wrong, and
//! because a file that ends too early would end the process when a mapped page is touched.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use crate::error::{Error, Result};
use llama_cpp_sys_2 as sys;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::ops::Range;
use std::path::Path;

/// What llama.cpp asserts on: layers, experts, and how many of these a token uses. A file may have one
/// number for each layer instead; what is in such a list is not looked at.
const COUNTS: [&str; 3] = [".block_count", ".expert_count", ".expert_used_count"];

/// `LLAMA_MAX_LAYERS`.
const MOST_LAYERS: u64 = 512;

/// `LLAMA_MAX_EXPERTS`.
const MOST_EXPERTS: u64 = 1024;

/// Longest key or text that is kept.
const MAX_TEXT: u64 = 1 << 20;

/// Most dimensions of a tensor (`GGML_MAX_DIMS`).
const MAX_DIMS: u32 = 4;

/// What this library needs to know of a model before it is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// `general.architecture`.
    pub architecture: String,
    /// Longest context that the model was trained on, in tokens; 0 when it does not say.
    pub context_length: u64,
    /// Whether attention looks only backwards; an encoder's does not.
    pub causal: bool,
    /// Number of tokens in the vocabulary; 0 when there is none.
    pub vocab_size: u64,
    /// `tokenizer.ggml.model`: the kind of tokenizer; empty when there is none.
    pub tokenizer: String,
    /// Number of tensors.
    pub tensors: u64,
    /// Where each of them lies in the file.
    pub data: Vec<Range<u64>>,
}

impl Header {
    /// Reads the header of the file at `path` and checks that all tensors lie inside the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::NotAFile`], [`Error::NotAModel`] or [`Error::ModelCorrupt`].
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("read", path, e))?;
        let metadata = file.metadata().map_err(|e| Error::io("read", path, e))?;
        if !metadata.is_file() {
            return Err(Error::NotAFile(path.to_path_buf()));
        }
        let reader = Reader {
            file: BufReader::with_capacity(1 << 16, file),
            at: 0,
            len: metadata.len(),
        };
        reader.header().map_err(|problem| match problem {
            Problem::Io(error) => Error::io("read", path, error),
            Problem::NotGguf(why) => Error::NotAModel {
                path: path.to_path_buf(),
                why,
            },
            Problem::Corrupt(why) => Error::ModelCorrupt {
                path: path.to_path_buf(),
                why,
            },
        })
    }
}

enum Problem {
    Io(std::io::Error),
    NotGguf(String),
    Corrupt(String),
}

struct Reader<R> {
    file: BufReader<R>,
    at: u64,
    len: u64,
}

/// A metadata value, as far as it matters here.
enum Value {
    Number(u64),
    Text(String),
    /// The number of elements.
    Array(u64),
    Other,
}

impl<R: Read + Seek> Reader<R> {
    fn header(mut self) -> Result<Header, Problem> {
        if self.len < 24 {
            return Err(Problem::NotGguf(format!("it has {} bytes", self.len)));
        }
        let magic = self.bytes::<4>()?;
        if &magic != b"GGUF" {
            return Err(Problem::NotGguf("it does not start with GGUF".to_owned()));
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            let why = match version.swap_bytes() {
                2 | 3 => "it is big-endian".to_owned(),
                _ => format!("its GGUF version is {version}, and 2 and 3 are known"),
            };
            return Err(Problem::NotGguf(why));
        }
        let tensors = self.u64()?;
        let keys = self.u64()?;
        // Every key takes at least 13 bytes and every tensor 24, so a count is bounded.
        if keys > self.len / 13 || tensors > self.len / 24 {
            return Err(self.corrupt("its counts are impossible"));
        }
        let mut header = Header {
            causal: true,
            tensors,
            ..Header::default()
        };
        let mut alignment = 32;
        // Keys of an architecture may stand before the architecture itself.
        let mut lengths = Vec::new();
        let mut causal = Vec::new();
        let mut counts = Vec::new();
        let mut lists = Vec::new();
        for _ in 0..keys {
            let key = self.text()?;
            let value = match key.as_str() {
                "tokenizer.ggml.tokens" => self.tokens()?,
                _ => self.value()?,
            };
            match (key.as_str(), value) {
                ("general.architecture", Value::Text(text)) => header.architecture = text,
                ("general.alignment", Value::Number(number)) => alignment = number,
                ("tokenizer.ggml.model", Value::Text(text)) => header.tokenizer = text,
                ("tokenizer.ggml.tokens", Value::Array(count)) => header.vocab_size = count,
                (key, Value::Number(number)) => {
                    if let Some(architecture) = key.strip_suffix(".context_length") {
                        lengths.push((architecture.to_owned(), number));
                    } else if let Some(architecture) = key.strip_suffix(".attention.causal") {
                        causal.push((architecture.to_owned(), number != 0));
                    } else if COUNTS.iter().any(|count| key.ends_with(count)) {
                        counts.push((key.to_owned(), number));
                    }
                }
                (key, Value::Array(_)) if COUNTS.iter().any(|count| key.ends_with(count)) => {
                    lists.push(key.to_owned());
                }
                _ => (),
            }
        }
        let of = |architecture: &String| *architecture == header.architecture;
        header.context_length = lengths.iter().find(|(a, _)| of(a)).map_or(0, |&(_, n)| n);
        header.causal = causal.iter().find(|(a, _)| of(a)).is_none_or(|&(_, c)| c);
        let [layers, experts, used] = COUNTS.map(|count| {
            let key = format!("{}{count}", header.architecture);
            counts
                .iter()
                .find(|(k, _)| *k == key)
                .map(|&(_, number)| number)
        });
        if layers.is_some_and(|layers| !(1..=MOST_LAYERS).contains(&layers)) {
            return Err(self.corrupt(&format!(
                "it has {} layers, and 1 to {MOST_LAYERS} are possible",
                layers.unwrap_or_default()
            )));
        }
        // Where one is a list nothing is known of both.
        let is_list = lists.iter().any(|key: &String| {
            let own = key.strip_prefix(header.architecture.as_str());
            own.is_some_and(|key| COUNTS[1..].contains(&key))
        });
        let [experts, used] = [experts, used].map(Option::unwrap_or_default);
        // Of one expert llama.cpp makes none for some architectures.
        let fits = used <= experts && (used == 0) == (experts == 0) || experts == 1 && used == 0;
        if !is_list && !fits || experts > MOST_EXPERTS {
            return Err(self.corrupt(&format!(
                "it uses {used} of {experts} experts, and at most {MOST_EXPERTS} are possible"
            )));
        }
        if !alignment.is_power_of_two() || alignment > 1 << 20 {
            return Err(self.corrupt(&format!("its alignment is {alignment}")));
        }
        header.data = self.tensors(tensors, alignment)?;
        Ok(header)
    }

    /// Where every tensor lies, which is inside the file.
    fn tensors(&mut self, count: u64, alignment: u64) -> Result<Vec<Range<u64>>, Problem> {
        let mut end = 0u64;
        let mut data = Vec::new();
        for _ in 0..count {
            let name = self.text()?;
            // ggml compares whole names and then keeps what stands before a NUL, so that two may
            // become one.
            if name.contains('\0') {
                return Err(self.corrupt(&format!("the tensor name {name:?} has a NUL")));
            }
            let dims = self.u32()?;
            if dims > MAX_DIMS {
                return Err(self.corrupt(&format!("tensor {name:?} has {dims} dimensions")));
            }
            let mut shape = [1u64; MAX_DIMS as usize];
            for side in shape.iter_mut().take(dims as usize) {
                *side = self.u64()?;
            }
            let kind = self.u32()?;
            let offset = self.u64()?;
            let bytes = tensor_bytes(kind, shape);
            let stop = bytes.and_then(|bytes| offset.checked_add(bytes));
            let Some(stop) = stop else {
                return Err(self.corrupt(&format!(
                    "tensor {name:?} has type {kind} and shape {shape:?}"
                )));
            };
            end = end.max(stop);
            data.push(offset..stop);
        }
        let start = self.at.next_multiple_of(alignment);
        match start.checked_add(end) {
            Some(end) if end <= self.len => {
                let in_file = |tensor: Range<u64>| start + tensor.start..start + tensor.end;
                Ok(data.into_iter().map(in_file).collect())
            }
            needed => {
                let needed = needed.map_or("more".to_owned(), |n| n.to_string());
                let why = format!("it has {} bytes and its tensors need {needed}", self.len);
                Err(Problem::Corrupt(why))
            }
        }
    }

    fn value(&mut self) -> Result<Value, Problem> {
        let kind = self.u32()?;
        Ok(match kind {
            0 | 1 | 7 => Value::Number(u64::from(self.bytes::<1>()?[0])),
            2 | 3 => Value::Number(u64::from(u16::from_le_bytes(self.bytes()?))),
            4 | 5 => Value::Number(u64::from(self.u32()?)),
            10 | 11 => Value::Number(self.u64()?),
            6 | 12 => {
                self.skip(if kind == 6 { 4 } else { 8 })?;
                Value::Other
            }
            8 => Value::Text(self.text()?),
            9 => {
                let element = self.u32()?;
                let count = self.u64()?;
                self.skip_elements(element, count)?;
                Value::Array(count)
            }
            _ => return Err(self.corrupt(&format!("metadata of unknown type {kind}"))),
        })
    }

    fn skip_elements(&mut self, element: u32, count: u64) -> Result<(), Problem> {
        let size = match element {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => {
                for _ in 0..count {
                    let len = self.u64()?;
                    self.skip(len)?;
                }
                return Ok(());
            }
            // llama.cpp reads no arrays of arrays either.
            _ => return Err(self.corrupt(&format!("an array of unknown type {element}"))),
        };
        match count.checked_mul(size) {
            Some(bytes) => self.skip(bytes),
            None => Err(self.corrupt("an array of impossible length")),
        }
    }

    /// Reads the vocabulary. llama.cpp asserts that no token is in it twice.
    fn tokens(&mut self) -> Result<Value, Problem> {
        if self.u32()? != 9 || self.u32()? != 8 {
            return Err(self.corrupt("its vocabulary is no list of texts"));
        }
        let count = self.u64()?;
        let mut seen = HashSet::new();
        for id in 0..count {
            let mut token = self.text_bytes()?;
            // llama.cpp reads up to a NUL, and names an empty token by its id.
            token.truncate(token.iter().position(|&b| b == 0).unwrap_or(token.len()));
            if token.is_empty() {
                token = format!("[EMPTY_{id}]").into_bytes();
            }
            if !seen.insert(token) {
                return Err(self.corrupt(&format!("token {id} is in its vocabulary twice")));
            }
        }
        Ok(Value::Array(count))
    }

    fn text(&mut self) -> Result<String, Problem> {
        Ok(String::from_utf8_lossy(&self.text_bytes()?).into_owned())
    }

    fn text_bytes(&mut self) -> Result<Vec<u8>, Problem> {
        let len = self.u64()?;
        if len > self.len - self.at {
            return Err(self.corrupt("a text reaches past its end"));
        }
        if len > MAX_TEXT {
            self.skip(len)?;
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; len as usize];
        self.file.read_exact(&mut bytes).map_err(Problem::Io)?;
        self.at += len;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        if (N as u64) > self.len - self.at {
            return Err(self.corrupt("it ends inside its header"));
        }
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(Problem::Io)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Problem> {
        if bytes > self.len - self.at {
            return Err(self.corrupt("it ends inside its header"));
        }
        self.at += bytes;
        // Inside the file, so the position fits in 63 bits. A plain seek would throw away what is
        // buffered, and a vocabulary is skipped text by text.
        self.file.seek_relative(bytes as i64).map_err(Problem::Io)
    }

    fn corrupt(&self, what: &str) -> Problem {
        Problem::Corrupt(format!("{what} (at byte {})", self.at))
    }
}

/// The size of a tensor in bytes; `None` for a type or a shape that cannot be.
fn tensor_bytes(kind: u32, shape: [u64; MAX_DIMS as usize]) -> Option<u64> {
    if kind >= sys::GGML_TYPE_COUNT {
        return None;
    }
    // SAFETY: both look a type up that exists. Retired types have size 0.
    let (block, size) = unsafe {
        let kind = kind as sys::ggml_type;
        (sys::ggml_blck_size(kind), sys::ggml_type_size(kind))
    };
    let block = u64::try_from(block)
        .ok()
        .filter(|&block| block > 0 && size > 0)?;
    if !shape[0].is_multiple_of(block) {
        return None;
    }
    shape[1..]
        .iter()
        .try_fold(shape[0] / block, |product, &side| product.checked_mul(side))?
        .checked_mul(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn text(text: &str) -> Vec<u8> {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    }

    /// A model with one tensor of 64 floats.
    fn file() -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(3u64.to_le_bytes());
        bytes.extend(text("llama.context_length"));
        bytes.extend(4u32.to_le_bytes());
        bytes.extend(8192u32.to_le_bytes());
        bytes.extend(text("general.architecture"));
        bytes.extend(8u32.to_le_bytes());
        bytes.extend(text("llama"));
        bytes.extend(text("tokenizer.ggml.tokens"));
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(8u32.to_le_bytes());
        bytes.extend(2u64.to_le_bytes());
        bytes.extend(text("a"));
        bytes.extend(text("b"));
        bytes.extend(text("w"));
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(64u64.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(32) + 256, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Header, Problem> {
        read_from(Cursor::new(bytes), bytes.len())
    }

    fn read_from(file: impl Read + Seek, len: usize) -> Result<Header, Problem> {
        Reader {
            file: BufReader::with_capacity(1 << 16, file),
            at: 0,
            len: len as u64,
        }
        .header()
    }

    /// Counts what is read of it.
    struct Counted<'a>(Cursor<&'a [u8]>, &'a mut usize);

    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            *self.1 += read;
            Ok(read)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn what_is_skipped_is_not_read_again_and_again() {
        let mut bytes = file();
        let at = bytes
            .windows(22)
            .position(|w| w.starts_with(b"tokenizer.ggml.tokens"));
        let mut merges = text("tokenizer.ggml.merges");
        merges.extend(9u32.to_le_bytes());
        merges.extend(8u32.to_le_bytes());
        merges.extend(20_000u64.to_le_bytes());
        (0..20_000).for_each(|_| merges.extend(text("a b")));
        bytes[16] += 1;
        let at = at.expect("the vocabulary") - 8;
        bytes.splice(at..at, merges);
        let padded = bytes.len().next_multiple_of(32);
        bytes.resize(padded, 0);
        let mut count = 0;
        let header = read_from(Counted(Cursor::new(&bytes), &mut count), bytes.len());
        assert!(header.is_ok(), "the file is whole");
        assert!(
            count <= bytes.len(),
            "{count} bytes of {} were read",
            bytes.len()
        );
    }

    #[test]
    fn a_header_is_read() {
        let Ok(header) = read(&file()) else {
            panic!("the file is whole");
        };
        assert_eq!(header.architecture, "llama");
        assert_eq!(header.context_length, 8192);
        assert_eq!(
            (header.vocab_size, header.tensors, header.causal),
            (2, 1, true)
        );
    }

    #[test]
    fn a_vocabulary_with_a_token_twice_is_refused() {
        let mut bytes = file();
        let at = bytes.windows(9).position(|w| w == b"\x01\0\0\0\0\0\0\0b");
        bytes[at.expect("the token b") + 8] = b'a';
        assert!(matches!(read(&bytes), Err(Problem::Corrupt(why)) if why.contains("token 1")));
    }

    #[test]
    fn an_empty_token_has_the_name_that_llama_cpp_gives_it() {
        let mut bytes = file();
        let at = bytes.windows(9).position(|w| w == b"\x01\0\0\0\0\0\0\0a");
        bytes[at.expect("the token a") + 8] = 0;
        let at = bytes.windows(9).position(|w| w == b"\x01\0\0\0\0\0\0\0b");
        let at = at.expect("the token b");
        bytes[at] = 9;
        bytes.splice(at + 8..at + 9, *b"[EMPTY_0]");
        assert!(matches!(read(&bytes), Err(Problem::Corrupt(why)) if why.contains("token 1")));
    }

    #[test]
    fn counts_that_llama_cpp_asserts_on_are_refused() {
        let with = |counts: &[(&str, u32)]| {
            let mut bytes = file();
            let mut keys = Vec::new();
            for (key, number) in counts {
                let key = format!("llama.{key}");
                keys.extend((key.len() as u64).to_le_bytes());
                keys.extend(key.as_bytes());
                keys.extend(4u32.to_le_bytes());
                keys.extend(number.to_le_bytes());
                bytes[16] += 1;
            }
            bytes.splice(24..24, keys);
            let padded = bytes.len().next_multiple_of(32);
            bytes.resize(padded, 0);
            read(&bytes).err().map(|problem| match problem {
                Problem::Corrupt(why) => why,
                _ => panic!("another problem"),
            })
        };
        assert_eq!(with(&[("block_count", 30), ("expert_count", 0)]), None);
        assert_eq!(with(&[("expert_count", 8), ("expert_used_count", 2)]), None);
        for (counts, word) in [
            (&[("block_count", 0)][..], "0 layers"),
            (&[("block_count", 600)], "600 layers"),
            (&[("expert_count", 8)], "uses 0 of 8"),
            (&[("expert_used_count", 1)], "uses 1 of 0"),
            (
                &[("expert_count", 2000), ("expert_used_count", 2)],
                "at most 1024",
            ),
        ] {
            let why = with(counts).expect("refused");
            assert!(why.contains(word), "{why}");
        }
        // A list with a number for each layer.
        let mut bytes = file();
        let mut keys = text("llama.expert_used_count");
        keys.extend([9u32, 4].map(u32::to_le_bytes).concat());
        keys.extend(2u64.to_le_bytes());
        keys.extend([2u32, 4].map(u32::to_le_bytes).concat());
        keys.extend(text("llama.expert_count"));
        keys.extend([4u32, 8].map(u32::to_le_bytes).concat());
        bytes[16] += 2;
        bytes.splice(24..24, keys);
        let padded = bytes.len().next_multiple_of(32);
        bytes.resize(padded, 0);
        assert!(read(&bytes).is_ok());
    }

    #[test]
    fn a_tensor_name_with_a_nul_is_refused() {
        let mut bytes = file();
        let at = bytes.windows(9).position(|w| w == b"\x01\0\0\0\0\0\0\0w");
        bytes[at.expect("the tensor w") + 8] = 0;
        assert!(matches!(read(&bytes), Err(Problem::Corrupt(why)) if why.contains("NUL")));
    }

    #[test]
    fn a_file_cut_short_anywhere_is_refused() {
        let whole = file();
        for len in 0..whole.len() {
            assert!(read(&whole[..len]).is_err(), "cut to {len}");
        }
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0usize..300, byte in any::<u8>()) {
            let mut bytes = file();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = read(&bytes);
        }
    }
}
