//! A step of a plan whose rows come in.

use super::frontier::Beginning;
use crate::index::trie::NodeId;
use std::ops::Range;

/// A run of tokens, which may pass several branchings.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    /// In the plan's tokens, from the one whose row comes next.
    pub rows: Range<usize>,
    /// Where the chain begins that this token is in.
    pub chain: usize,
    /// The node after this token.
    pub node: NodeId,
    /// The slot that takes the tokens.
    pub slot: u16,
    /// The beginning that the chain continues. None where it is still in the frontier, and when no
    /// title below counts any more.
    pub beginning: Option<Beginning>,
}
