//! GGUF metadata read and written independently of the library: for models that no converter would
//! make, and for the `tokenizer.json` of a GGUF's vocabulary.

use std::path::Path;

/// A metadata value. Numbers and arrays of numbers keep their bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Texts(Vec<Vec<u8>>),
    /// Type and bytes.
    Plain(u32, Vec<u8>),
    /// Type of the elements, their number, and their bytes.
    Plains(u32, u64, Vec<u8>),
}

impl Value {
    pub fn u32(value: u32) -> Self {
        Self::Plain(4, value.to_le_bytes().to_vec())
    }

    pub fn bool(value: bool) -> Self {
        Self::Plain(7, vec![value.into()])
    }

    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Texts(texts) => texts
                .iter()
                .map(|text| String::from_utf8(text.clone()).expect("a token is UTF-8"))
                .collect(),
            other => panic!("{other:?} is no array of texts"),
        }
    }

    /// The elements of an array of 32-bit integers.
    pub fn i32s(&self) -> Vec<i32> {
        match self {
            Self::Plains(4 | 5, _, bytes) => bytes
                .chunks_exact(4)
                .map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
            other => panic!("{other:?} is no array of integers"),
        }
    }
}

/// The metadata of a file, and where in it the rest begins.
#[derive(Debug, Clone)]
pub struct Metadata {
    pub entries: Vec<(String, Value)>,
    /// Offset of the first byte after the metadata: the tensors' descriptions.
    pub end: usize,
}

impl Metadata {
    /// Reads the metadata of a model.
    pub fn read(path: &Path) -> Self {
        use std::io::Read;
        // The metadata of the tests' model takes 2 MiB.
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).expect("the model opens");
        file.take(64 << 20).read_to_end(&mut bytes).expect("reads");
        let mut at = 4;
        assert_eq!(&bytes[..4], b"GGUF");
        assert_eq!(number(&bytes, &mut at, 4), 3, "GGUF version");
        let _tensors = number(&bytes, &mut at, 8);
        let keys = number(&bytes, &mut at, 8);
        let entries = (0..keys)
            .map(|_| {
                let key = String::from_utf8(text(&bytes, &mut at)).expect("UTF-8");
                let kind = number(&bytes, &mut at, 4) as u32;
                (key, value(&bytes, &mut at, kind))
            })
            .collect();
        Self { entries, end: at }
    }

    pub fn value(&self, key: &str) -> &Value {
        let entry = self.entries.iter().find(|(k, _)| k == key);
        &entry.unwrap_or_else(|| panic!("the model has no {key}")).1
    }

    /// The same with `key` set to `value`.
    pub fn with(&self, key: &str, value: Value) -> Self {
        let mut changed = self.without(key);
        changed.entries.push((key.to_owned(), value));
        changed
    }

    /// The same without `key`.
    pub fn without(&self, key: &str) -> Self {
        let mut changed = self.clone();
        changed.entries.retain(|(k, _)| k != key);
        changed
    }

    /// A GGUF with this metadata and no tensors: enough for a vocabulary.
    pub fn to_gguf(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend(0u64.to_le_bytes());
        out.extend((self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            put_text(&mut out, key.as_bytes());
            match value {
                Value::Text(text) => {
                    out.extend(8u32.to_le_bytes());
                    put_text(&mut out, text.as_bytes());
                }
                Value::Texts(texts) => {
                    out.extend(9u32.to_le_bytes());
                    out.extend(8u32.to_le_bytes());
                    out.extend((texts.len() as u64).to_le_bytes());
                    for text in texts {
                        put_text(&mut out, text);
                    }
                }
                Value::Plain(kind, bytes) => {
                    out.extend(kind.to_le_bytes());
                    out.extend(bytes);
                }
                Value::Plains(kind, count, bytes) => {
                    out.extend(9u32.to_le_bytes());
                    out.extend(kind.to_le_bytes());
                    out.extend(count.to_le_bytes());
                    out.extend(bytes);
                }
            }
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }

    /// The `tokenizer.json` and the `tokenizer_config.json` that a byte-level BPE vocabulary with
    /// SmolLM2's pre-tokenizer was converted from.
    pub fn tokenizer_json(&self) -> (Vec<u8>, Vec<u8>) {
        use serde_json::{Map, Value as Json, json};
        let tokens = self.value("tokenizer.ggml.tokens").texts();
        let kinds = self.value("tokenizer.ggml.token_type").i32s();
        let merges = self.value("tokenizer.ggml.merges").texts();
        let vocab: Map<String, Json> = tokens
            .iter()
            .enumerate()
            .map(|(id, token)| (token.clone(), id.into()))
            .collect();
        // 3 is a control token; 4 is one that the user added.
        let added: Vec<Json> = tokens
            .iter()
            .zip(&kinds)
            .enumerate()
            .filter(|(_, (_, kind))| matches!(kind, 3 | 4))
            .map(|(id, (token, kind))| {
                json!({"id": id, "content": token, "single_word": false, "lstrip": false,
                       "rstrip": false, "normalized": false, "special": *kind == 3})
            })
            .collect();
        let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false,
                                "trim_offsets": true, "use_regex": true});
        let digits = json!({"type": "Digits", "individual_digits": true});
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
            "normalizer": null,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
            "post_processor": null, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": null, "unk_token": null,
                      "continuing_subword_prefix": null, "end_of_word_suffix": null,
                      "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                      "vocab": vocab, "merges": merges},
        });
        let end = match self.value("tokenizer.ggml.eos_token_id") {
            Value::Plain(4, id) => u32::from_le_bytes(id[..4].try_into().expect("four bytes")),
            other => panic!("{other:?} is no token"),
        };
        let config = json!({"eos_token": tokens[end as usize]});
        (
            tokenizer.to_string().into_bytes(),
            config.to_string().into_bytes(),
        )
    }
}

fn number(bytes: &[u8], at: &mut usize, size: usize) -> u64 {
    let mut value = [0; 8];
    value[..size].copy_from_slice(&bytes[*at..*at + size]);
    *at += size;
    u64::from_le_bytes(value)
}

fn text(bytes: &[u8], at: &mut usize) -> Vec<u8> {
    let len = number(bytes, at, 8) as usize;
    *at += len;
    bytes[*at - len..*at].to_vec()
}

fn size(kind: u32) -> usize {
    match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => panic!("metadata of type {kind}"),
    }
}

fn value(bytes: &[u8], at: &mut usize, kind: u32) -> Value {
    let take = |at: &mut usize, count: usize| {
        *at += count;
        bytes[*at - count..*at].to_vec()
    };
    match kind {
        8 => Value::Text(String::from_utf8(text(bytes, at)).expect("UTF-8")),
        9 => {
            let element = number(bytes, at, 4) as u32;
            let count = number(bytes, at, 8);
            match element {
                8 => Value::Texts((0..count).map(|_| text(bytes, at)).collect()),
                _ => Value::Plains(element, count, take(at, size(element) * count as usize)),
            }
        }
        _ => Value::Plain(kind, take(at, size(kind))),
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}
