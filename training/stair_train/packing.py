"""From examples to a model call and a loss."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .attention import Layout
from .data import Example

# Tokens that are computed together on a CPU, beside a prefix: their activations take memory in
# proportion.
PIECE = 1536


@dataclass
class Packed:
    """A batch: `tokens` (1, N); `rows` are the places whose next token is a target, `targets` those."""

    layout: Layout
    tokens: torch.Tensor
    rows: torch.Tensor
    targets: torch.Tensor


def pack(prefix: tuple[int, ...], examples: list[Example], device, held=None) -> Packed:
    """Lays out a batch behind its prefix, or behind held keys and values of it."""
    width = max(len(example.tokens) for example in examples)
    layout = Layout(len(prefix), len(examples), width, held)
    first = 0 if held is not None else len(prefix)
    tokens = [] if held is not None else list(prefix)
    rows, targets = [], []
    for place, example in enumerate(examples):
        base = first + place * width
        rows += range(base + example.start - 1, base + example.end - 1)
        targets += example.tokens[example.start : example.end]
        # What pads comes after everything that is read, so any token serves.
        tokens += list(example.tokens) + [0] * (width - len(example.tokens))
    tokens, rows, targets = (torch.tensor(v, device=device) for v in (tokens, rows, targets))
    return Packed(layout, tokens[None], rows, targets)


def pieces(examples: list[Example], most: int) -> list[list[Example]]:
    """Cuts a batch, sorted by length, into runs of at most `most` tokens each, padding counted.

    Less is padded than in one piece, and a piece's memory is bounded whatever its examples' lengths.
    """
    found: list[list[Example]] = []
    for example in examples:
        if found and len(example.tokens) * (len(found[-1]) + 1) <= most:
            found[-1].append(example)
        else:
            found.append([example])
    return found


def logits(model, packed: Packed, rows: torch.Tensor) -> torch.Tensor:
    """Logits of the given rows, shape (rows, vocabulary), in f32."""
    output = model(
        input_ids=packed.tokens,
        position_ids=packed.layout.position_ids(packed.tokens.device),
        shared_prefix=packed.layout,
        logits_to_keep=rows,
        use_cache=False,
    )
    return output.logits[0].float()


def loss(model, packed: Packed) -> torch.Tensor:
    """Mean cross-entropy of a target token, in nats."""
    return F.cross_entropy(logits(model, packed, packed.rows), packed.targets)


def backward(model, prefix, examples: list[Example], device, held=None, most=PIECE) -> float:
    """Adds a batch's gradient to the weights', piece by piece; returns the loss as `loss` does."""
    # A prefix that is not held would be computed for every piece anew.
    cut = device.type == "cpu" and (held is not None or len(prefix) < most // 8)
    packed = [
        pack(prefix, piece, device, held) for piece in (pieces(examples, most) if cut else [examples])
    ]
    targets = sum(len(piece.targets) for piece in packed)
    total = 0.0
    for piece in packed:
        share = loss(model, piece) * (len(piece.targets) / targets)
        share.backward()
        total += share.item()
    return total


@torch.no_grad()
def prefix_state(model, prefix: tuple[int, ...], device) -> dict:
    """Every layer's keys and values of the prefix."""
    layout = Layout(len(prefix), 0, 0, collected={})
    tokens = torch.tensor(prefix, device=device)[None]
    last = torch.tensor([len(prefix) - 1], device=device)
    logits(model, Packed(layout, tokens, last, last), last)
    return layout.collected
