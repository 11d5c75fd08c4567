"""Recall@1 on development questions, by constrained decoding.

At each step the most probable token among those that continue some title is taken, so that what
comes out is a leaf. The engine's search is exact and finds at least as good a title; this is its
cheap stand-in during training. Where a title can only go one way no model is asked.
"""

import torch

from .data import Example
from .packing import logits, pack, prefix_state


class Trie:
    """The leaves' titles, token by token; `sections` at the ends."""

    def __init__(self, leaves: dict[int, tuple[int, ...]]):
        self.root: dict = {}
        for section, tokens in leaves.items():
            node = self.root
            for token in tokens[:-1]:
                node = node.setdefault(token, {})
            node[tokens[-1]] = section

    @staticmethod
    def follow(node, path: list[int]):
        """Goes on while there is one way only; a dict or a section."""
        while isinstance(node, dict) and len(node) == 1:
            token, node = next(iter(node.items()))
            path.append(token)
        return node


@torch.no_grad()
def recall_at_1(model, prefix, leaves, questions: list[Example], device, batch: int) -> float:
    """Share of the questions, each with a gold leaf, whose greedy title is that leaf's."""
    if not questions:
        return 0.0
    trie = Trie(leaves)
    held = prefix_state(model, prefix, device)
    right = 0
    ordered = sorted(questions, key=lambda question: len(question.tokens))
    for first in range(0, len(ordered), batch):
        right += _decode(model, prefix, trie, ordered[first : first + batch], held, device)
    return right / len(questions)


def _decode(model, prefix, trie, questions, held, device) -> int:
    paths = [[] for _ in questions]
    nodes = [Trie.follow(trie.root, path) for path in paths]
    while open_ := [i for i, node in enumerate(nodes) if isinstance(node, dict)]:
        asked = []
        for i in open_:
            question = questions[i]
            tokens = question.tokens[: question.start] + tuple(paths[i])
            # The row before the end is the one that is read.
            asked.append(Example("", "", question.section, tokens + (0,), len(tokens), len(tokens) + 1))
        packed = pack(prefix, asked, device, held)
        rows = logits(model, packed, packed.rows)
        for row, i in zip(rows, open_):
            ways = list(nodes[i])
            token = ways[int(row[torch.tensor(ways, device=row.device)].argmax())]
            paths[i].append(token)
            nodes[i] = Trie.follow(nodes[i][token], paths[i])
    return sum(node == question.section for node, question in zip(nodes, questions))
