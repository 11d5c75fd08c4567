//! The records of a `.stair` file. `docs/format.md` describes every byte; this file is its
//! counterpart in code, and the only place where offsets and magic numbers stand.
//!
//! Everything is little-endian. Every section starts at a multiple of [`ALIGNMENT`].

use bytemuck::{Pod, Zeroable};

#[cfg(target_endian = "big")]
compile_error!("a .stair file is mapped as it is, so libstair runs on little-endian machines only");

/// First eight bytes of a file. The high byte, the CR LF and the control-Z are there to be
/// mangled by anything that takes the file for text, so that mangling is noticed at once.
pub const MAGIC: [u8; 8] = *b"\x93STR\r\n\x1a\n";

/// Major version of the format: a reader of another major version refuses the file.
pub const MAJOR: u16 = 1;

/// Minor version of the format: later ones only add sections that older readers may skip. A file says
/// the lowest that describes it: 1 with [`kind::ASKED`], else 0.
pub const MINOR: u16 = 1;

/// Read back as this value only on a machine that agrees about the order of bytes.
pub const BYTE_ORDER_MARK: u32 = 0x0A0B_0C0D;

/// Alignment of every section, in bytes.
pub const ALIGNMENT: usize = 8;

/// Bytes that one block checksum covers.
pub const BLOCK: usize = 4096;

/// Bits of [`Header::required_flags`] that this version understands. There are none yet.
pub const KNOWN_FLAGS: u16 = 0;

/// "No section", "no parent", "no page".
pub const NONE: u32 = u32::MAX;

/// The first 64 bytes of a file.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`MAJOR`].
    pub major: u16,
    /// 0 to [`MINOR`], or that of a later writer.
    pub minor: u16,
    /// [`BYTE_ORDER_MARK`].
    pub byte_order: u32,
    /// Length of the whole file, in bytes.
    pub file_len: u64,
    /// Bytes after the header that the block checksums cover; the checksums follow them.
    pub body_len: u64,
    /// Number of entries in the section table, which follows the header.
    pub table_len: u16,
    /// Features without which the file cannot be read rightly; see [`KNOWN_FLAGS`].
    pub required_flags: u16,
    /// Number of tokens in the vocabulary that the index was built for.
    pub vocab_size: u32,
    /// Fingerprint of that vocabulary; see [`crate::tokens::fingerprint`].
    pub fingerprint: u64,
    /// XXH3-64 of the block checksums.
    pub body_checksum: u64,
    /// XXH3-64 of the header's bytes before this field.
    pub header_checksum: u64,
}

/// One entry of the section table.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct TableEntry {
    /// What the section holds; see [`kind`]. A reader skips kinds that it does not know.
    pub kind: u32,
    /// Size of one record, in bytes.
    pub record_size: u32,
    /// Where it starts, in bytes from the start of the file; a multiple of [`ALIGNMENT`].
    pub offset: u64,
    /// Number of records.
    pub count: u64,
}

/// The kinds of section in a file.
pub mod kind {
    /// One [`super::Meta`].
    pub const META: u32 = 1;
    /// UTF-8 bytes: titles, numbers and the template's texts, a NUL after each.
    pub const STRINGS: u32 = 2;
    /// [`super::SectionRecord`]s in document order.
    pub const SECTIONS: u32 = 3;
    /// `u32` token ids of the prompt up to the question.
    pub const PREFIX: u32 = 4;
    /// [`super::TrieNode`]s in breadth-first order, and one more that ends the last node.
    pub const TRIE: u32 = 5;
    /// UTF-8 bytes: the sections' texts, a NUL after each. Absent when the index was built without text.
    pub const TEXT: u32 = 6;
    /// [`super::AskedRecord`]s: leaves with questions that they are known to answer. Absent when there
    /// are none.
    pub const ASKED: u32 = 7;
    /// UTF-8 bytes: those questions, a line each; a NUL after each leaf's. There with
    /// [`ASKED`].
    pub const ASKED_TEXT: u32 = 8;
}

/// A text in the section [`kind::STRINGS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct TextRef {
    /// Offset in bytes in [`kind::STRINGS`].
    pub offset: u32,
    /// Length in bytes, without the NUL that follows.
    pub len: u32,
}

/// What there is one of: counts, and the template of a prompt.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Meta {
    /// Number of sections.
    pub sections: u32,
    /// Number of leaves among them.
    pub leaves: u32,
    /// Number of trie nodes, the root included and the end marker not.
    pub nodes: u32,
    /// Length in tokens of the longest title, its terminator included: the trie's depth.
    pub longest_title: u32,
    /// The token that ends every title.
    pub terminator: u32,
    /// Bit 0: the template's texts may name special tokens. Other bits are 0.
    pub template_flags: u32,
    /// The document's title.
    pub title: TextRef,
    /// The template's text right before a question's; its tokens end the prefix.
    pub anchor: TextRef,
    /// Text between [`Self::anchor`] and the question.
    pub before_question: TextRef,
    /// Text after the question; the title follows it.
    pub after_question: TextRef,
    /// Text before the identifier of a section in a generated title.
    pub before_title: TextRef,
}

/// [`Meta::template_flags`]: the template's texts may name special tokens.
pub const TEMPLATE_SPECIAL: u32 = 1;

/// One section of the document.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct SectionRecord {
    /// Its number; empty when it has none.
    pub number: TextRef,
    /// Its title.
    pub title: TextRef,
    /// The section it belongs to, or [`NONE`].
    pub parent: u32,
    /// Page in the original, or [`NONE`].
    pub page: u32,
    /// 0 for a top-level section, else its parent's depth and one.
    pub depth: u16,
    /// Bit 0: it is a leaf. Other bits are 0.
    pub flags: u16,
    /// Always 0.
    pub reserved: u32,
    /// First byte of the section in the original document.
    pub span_start: u64,
    /// Byte after its last one.
    pub span_end: u64,
    /// Offset of its text in [`kind::TEXT`], in bytes.
    pub text_offset: u64,
    /// Length of its text, in bytes, without the NUL that follows.
    pub text_len: u64,
}

/// [`SectionRecord::flags`]: the section is a leaf.
pub const SECTION_LEAF: u16 = 1;

/// The questions of one leaf.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct AskedRecord {
    /// The leaf.
    pub section: u32,
    /// Length of its questions in bytes, without the NUL that follows.
    pub len: u32,
    /// Their offset in [`kind::ASKED_TEXT`], in bytes.
    pub offset: u64,
}

/// One node of the trie. The children of node `i` are the nodes from its `first_child` to the
/// `first_child` of node `i + 1`, sorted by token. Twelve bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct TrieNode {
    /// The token on the edge from the parent; [`NONE`] for the root and the end marker.
    pub token: u32,
    /// Its first child.
    pub first_child: u32,
    /// For a node whose token is the terminator, the section whose title ends here; else
    /// [`NONE`].
    pub section: u32,
}

const _: () = {
    assert!(size_of::<Header>() == 64);
    assert!(size_of::<TableEntry>() == 24);
    assert!(size_of::<Meta>() == 64);
    assert!(size_of::<SectionRecord>() == 64);
    assert!(size_of::<AskedRecord>() == 16);
    assert!(size_of::<TrieNode>() == 12);
};
