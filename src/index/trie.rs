//! The token trie: every leaf's title as a path of tokens that ends with the terminator.

use super::format::{NONE, TrieNode};
use std::ops::Range;

/// A node of a [`Trie`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The root: no token generated yet.
    pub const ROOT: Self = Self(0);
}

/// A walk over the nodes of an index. Copying it is free.
///
/// The nodes may lie in a mapped file that another process changes, so every step reads a field
/// once and stays inside the slice, whatever it reads; a changed file gives wrong sections, never
/// a walk outside the map.
#[derive(Debug, Clone, Copy)]
pub struct Trie<'a> {
    /// The nodes in breadth-first order, and the end marker.
    nodes: &'a [TrieNode],
}

impl<'a> Trie<'a> {
    /// The trie over `nodes`, the end marker included.
    pub(crate) fn new(nodes: &'a [TrieNode]) -> Self {
        Self { nodes }
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// Whether there is not even a root.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The children of `node`, sorted by token.
    pub fn children(&self, node: NodeId) -> impl ExactSizeIterator<Item = (u32, NodeId)> + 'a {
        let range = self.child_range(node);
        let first = range.start;
        let children = self.nodes.get(range).unwrap_or_default();
        let with_id =
            move |(at, child): (usize, &TrieNode)| (child.token, NodeId((first + at) as u32));
        children.iter().enumerate().map(with_id)
    }

    /// The child of `node` over `token`, by binary search.
    pub fn child(&self, node: NodeId, token: u32) -> Option<NodeId> {
        let range = self.child_range(node);
        let first = range.start;
        let children = self.nodes.get(range)?;
        let at = children
            .binary_search_by_key(&token, |child| child.token)
            .ok()?;
        Some(NodeId((first + at) as u32))
    }

    /// The only child of `node`, when it has exactly one.
    pub fn only_child(&self, node: NodeId) -> Option<(u32, NodeId)> {
        let range = self.child_range(node);
        match self.nodes.get(range.clone())? {
            [child] => Some((child.token, NodeId(range.start as u32))),
            _ => None,
        }
    }

    /// Number of children of `node`.
    pub fn degree(&self, node: NodeId) -> usize {
        self.child_range(node).len()
    }

    /// The section whose title ends at `node`.
    pub fn section(&self, node: NodeId) -> Option<u32> {
        let section = self.nodes.get(node.0 as usize)?.section;
        (section != NONE).then_some(section)
    }

    /// The node that `tokens` lead to from the root.
    pub fn find(&self, tokens: &[u32]) -> Option<NodeId> {
        tokens
            .iter()
            .try_fold(NodeId::ROOT, |node, &token| self.child(node, token))
    }

    fn child_range(&self, node: NodeId) -> Range<usize> {
        let at = node.0 as usize;
        match (self.nodes.get(at), self.nodes.get(at.saturating_add(1))) {
            (Some(this), Some(next)) => {
                let start = this.first_child as usize;
                let end = (next.first_child as usize).min(self.len());
                start..end.max(start)
            }
            _ => 0..0,
        }
    }
}
