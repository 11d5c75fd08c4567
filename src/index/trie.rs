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
/// once and stays inside the slice, whatever it reads, and children are only ever found after
/// their parent; a changed file gives wrong sections, never a walk outside the map or without end.
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

    /// The node where the title of `section` ends. Looks at every node.
    pub fn end(&self, section: u32) -> Option<NodeId> {
        let at = (0..self.len()).find(|&at| self.nodes[at].section == section)?;
        (section != NONE).then_some(NodeId(at as u32))
    }

    /// The node before `node`; none for the root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        // In breadth-first order children stand in the order of their parents: the last one whose
        // children begin at `node` or before.
        let nodes = self.nodes.get(..node.0 as usize)?;
        let after = nodes.partition_point(|other| other.first_child <= node.0);
        let parent = NodeId(after.checked_sub(1)? as u32);
        let children = self.child_range(parent);
        children.contains(&(node.0 as usize)).then_some(parent)
    }

    /// The token that leads to `node`.
    pub fn token(&self, node: NodeId) -> Option<u32> {
        (node != NodeId::ROOT).then_some(self.nodes.get(node.0 as usize)?.token)
    }

    /// For every node the `value`s of the sections whose titles lead through it, put together by
    /// `join`, for which minus infinity is nothing. One pass from the last node to the first, because
    /// children come after their parents; the memory of `folded` is used again.
    pub(crate) fn fold_up(
        &self,
        value: impl Fn(u32) -> f32,
        join: impl Fn(f32, f32) -> f32,
        folded: &mut Vec<f32>,
    ) {
        folded.clear();
        folded.resize(self.len(), f32::NEG_INFINITY);
        // Each node's children end where those of the node after it begin. Cutting them off there
        // keeps this to one pass over nodes that changed, too.
        let mut end = folded.len();
        for at in (0..folded.len()).rev() {
            let first = self
                .nodes
                .get(at)
                .map_or(end, |node| node.first_child as usize);
            let first = first.clamp((at + 1).min(end), end);
            let own = self
                .section(NodeId(at as u32))
                .map_or(f32::NEG_INFINITY, &value);
            folded[at] = folded[first..end].iter().copied().fold(own, &join);
            end = first;
        }
    }

    fn child_range(&self, node: NodeId) -> Range<usize> {
        let at = node.0 as usize;
        match (self.nodes.get(at), self.nodes.get(at.saturating_add(1))) {
            (Some(this), Some(next)) => {
                let start = this.first_child as usize;
                let end = (next.first_child as usize).min(self.len());
                match at < start && start < end {
                    true => start..end,
                    false => 0..0,
                }
            }
            _ => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const END: u32 = 7;

    /// The nodes of `titles`, made level by level from the set of all their prefixes.
    fn nodes(titles: &BTreeMap<Vec<u32>, u32>) -> Vec<TrieNode> {
        let prefixes: BTreeSet<(usize, &[u32])> = titles
            .keys()
            .flat_map(|title| (0..=title.len()).map(move |len| (len, &title[..len])))
            .collect();
        let parents: Vec<Option<usize>> = prefixes
            .iter()
            .map(|&(len, prefix)| {
                let above = len.checked_sub(1)?;
                prefixes
                    .iter()
                    .position(|&(_, other)| other == &prefix[..above])
            })
            .collect();
        let first_child = |node| parents.iter().position(|&p| p >= Some(node));
        let mut nodes: Vec<TrieNode> = prefixes
            .iter()
            .enumerate()
            .map(|(node, &(_, prefix))| TrieNode {
                token: prefix.last().copied().unwrap_or(NONE),
                first_child: first_child(node).unwrap_or(prefixes.len()) as u32,
                section: titles.get(prefix).copied().unwrap_or(NONE),
            })
            .collect();
        nodes.push(TrieNode {
            token: NONE,
            first_child: prefixes.len() as u32,
            section: NONE,
        });
        nodes
    }

    fn any_titles() -> impl Strategy<Value = BTreeMap<Vec<u32>, u32>> {
        let title = prop::collection::vec(0..END, 0..6).prop_map(|mut title| {
            title.push(END);
            title
        });
        prop::collection::btree_map(title, 0u32..1000, 1..30)
    }

    fn any_node() -> impl Strategy<Value = TrieNode> {
        let field = || prop_oneof![0u32..20, Just(NONE), Just(NONE - 1), any::<u32>()];
        (field(), field(), field()).prop_map(|(token, first_child, section)| TrieNode {
            token,
            first_child,
            section,
        })
    }

    proptest! {
        #[test]
        fn a_walk_is_a_look_into_the_set_of_titles(titles in any_titles()) {
            let nodes = nodes(&titles);
            let trie = Trie::new(&nodes);
            prop_assert_eq!(trie.len(), nodes.len() - 1);
            prop_assert!(!trie.is_empty());
            let prefixes: BTreeSet<&[u32]> =
                titles.keys().flat_map(|title| (0..=title.len()).map(|len| &title[..len])).collect();
            prop_assert_eq!(prefixes.len(), trie.len());
            let mut found = BTreeSet::new();
            for &prefix in &prefixes {
                let node = trie.find(prefix).expect("is in it");
                found.insert(node);
                prop_assert_eq!(trie.section(node), titles.get(prefix).copied());
                let expected: Vec<u32> = (0..=END)
                    .filter(|&token| prefixes.contains(&[prefix, &[token]].concat()[..]))
                    .collect();
                let children: Vec<(u32, NodeId)> = trie.children(node).collect();
                prop_assert_eq!(children.iter().map(|c| c.0).collect::<Vec<_>>(), expected.clone());
                prop_assert_eq!(trie.degree(node), expected.len());
                prop_assert_eq!(trie.children(node).len(), expected.len());
                let only = (children.len() == 1).then(|| children[0]);
                prop_assert_eq!(trie.only_child(node), only);
                prop_assert_eq!(trie.token(node), prefix.last().copied());
                let above = prefix.len().checked_sub(1).and_then(|len| trie.find(&prefix[..len]));
                prop_assert_eq!(trie.parent(node), above);
                if let Some(section) = trie.section(node) {
                    let end = trie.end(section).expect("is in it");
                    prop_assert_eq!(trie.section(end), Some(section));
                }
                for token in (0..=END + 1).chain([NONE]) {
                    let child = children.iter().find(|c| c.0 == token).map(|c| c.1);
                    prop_assert_eq!(trie.child(node, token), child);
                    if child.is_none() {
                        prop_assert_eq!(trie.find(&[prefix, &[token]].concat()), None);
                    }
                }
            }
            // Every node was found over exactly one prefix.
            prop_assert_eq!(found.len(), trie.len());
        }

        /// What a file may hold after it changed under the map.
        #[test]
        fn walks_over_garbage_end(nodes in prop::collection::vec(any_node(), 0..24)) {
            let trie = Trie::new(&nodes);
            for from in (0..30).chain([NONE - 1, NONE]).map(NodeId) {
                prop_assert!(trie.degree(from) <= trie.len());
                let _ = (trie.section(from), trie.only_child(from), trie.find(&[from.0, 0]));
                let _ = (trie.token(from), trie.end(from.0));
                prop_assert!(trie.parent(from).is_none_or(|parent| parent < from));
                for last in [false, true] {
                    let (mut node, mut steps) = (from, 0);
                    loop {
                        let mut children = trie.children(node);
                        let next = if last { children.last() } else { children.next() };
                        let Some((token, child)) = next else { break };
                        prop_assert!(child > node && (child.0 as usize) < trie.len());
                        let _ = trie.child(node, token);
                        node = child;
                        steps += 1;
                    }
                    prop_assert!(steps <= trie.len());
                }
            }
        }
    }

    /// The largest value below `node`, by definition.
    fn best(trie: Trie<'_>, node: NodeId, value: &dyn Fn(u32) -> f32) -> f32 {
        let own = trie.section(node).map_or(f32::NEG_INFINITY, value);
        let below = trie
            .children(node)
            .map(|(_, child)| best(trie, child, value));
        below.fold(own, f32::max)
    }

    proptest! {
        #[test]
        fn the_best_below_is_the_best_of_all_titles_below(titles in any_titles(), seed in 1u32..99) {
            let nodes = nodes(&titles);
            let trie = Trie::new(&nodes);
            let value = |section: u32| (section * seed % 37) as f32 - 20.0;
            let mut found = vec![f32::NAN; 3];
            trie.fold_up(value, f32::max, &mut found);
            let expected: Vec<f32> =
                (0..trie.len()).map(|node| best(trie, NodeId(node as u32), &value)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_best_below_garbage_is_found_in_one_pass(
            nodes in prop::collection::vec(any_node(), 0..24),
        ) {
            let trie = Trie::new(&nodes);
            let mut found = Vec::new();
            trie.fold_up(|section| section as f32, f32::max, &mut found);
            prop_assert_eq!(found.len(), trie.len());
        }
    }

    #[test]
    fn no_nodes_are_an_empty_trie() {
        for nodes in [&[][..], &nodes(&BTreeMap::from([(vec![END], 0)]))[..1]] {
            let trie = Trie::new(nodes);
            assert!(trie.is_empty());
            assert_eq!(trie.children(NodeId::ROOT).count(), 0);
            assert_eq!(trie.find(&[END]), None);
            assert_eq!(trie.find(&[]), Some(NodeId::ROOT));
        }
    }
}
