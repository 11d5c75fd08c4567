"""Attention over one shared prefix: the table of contents is computed once for a whole batch.

A step's sequence is the prefix followed by the batch's questions, each padded to one width:

    [ prefix: P tokens | question 0: T tokens | question 1: T tokens | ... ]

A question attends to the prefix and to itself, never to another question, and its positions start
again at P. Every example therefore sees exactly what it would see alone, and the gradient is that
of separate examples, at the cost of P + B*T tokens in place of B*(P + T).

It plugs into transformers as an attention implementation, so any of its decoders trains this way.
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

NAME = "stair_shared_prefix"


@dataclass
class Layout:
    """How a step's one sequence is divided.

    `held`, where given, has every layer's keys and values of the prefix, each (KV heads, P, D),
    and the sequence has no prefix of its own. `collected`, where given, takes them up.
    """

    prefix: int
    questions: int
    width: int
    held: dict[int, tuple[torch.Tensor, torch.Tensor]] | None = None
    collected: dict[int, tuple[torch.Tensor, torch.Tensor]] | None = None
    masks: dict = field(default_factory=dict)

    def position_ids(self, device) -> torch.Tensor:
        """Shape (1, sequence length)."""
        own = self.prefix + torch.arange(self.width, device=device)
        parts = [own.repeat(self.questions)]
        if self.held is None:
            parts.insert(0, torch.arange(self.prefix, device=device))
        return torch.cat(parts)[None]

    def not_before(self, like: torch.Tensor) -> torch.Tensor:
        """Added to scores of (T, T): minus infinity where a key is later than its query."""
        key = (like.dtype, like.device)
        if key not in self.masks:
            mask = torch.full((self.width, self.width), float("-inf"))
            self.masks[key] = mask.triu(1).to(like.device, like.dtype)
        return self.masks[key]


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    """query (1, H, N, D), key and value (1, KV, N, D) -> ((1, N, H, D), None)."""
    layout: Layout = kwargs["shared_prefix"]
    heads, dimension = query.shape[1], query.shape[3]
    scaling = dimension**-0.5 if scaling is None else scaling
    outputs = []
    prefix = layout.prefix
    if layout.held is not None:
        prefix_key, prefix_value = layout.held[module.layer_idx]
    else:
        prefix_key, prefix_value = key[0, :, :prefix], value[0, :, :prefix]
        outputs.append(_causal(query[:, :, :prefix], key[:, :, :prefix], value[:, :, :prefix], scaling))
        query, key, value = query[:, :, prefix:], key[:, :, prefix:], value[:, :, prefix:]
    if layout.collected is not None:
        layout.collected[module.layer_idx] = (prefix_key.detach(), prefix_value.detach())
    if layout.questions:
        outputs.append(_questions(layout, query[0], key[0], value[0], prefix_key, prefix_value, scaling))
    output = torch.cat(outputs, 1) if len(outputs) > 1 else outputs[0]
    return output.view(1, -1, heads, dimension), None


def _causal(query, key, value, scaling):
    """The prefix attends to itself. -> (1, P, H, D)"""
    output = F.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]
    )
    return output.transpose(1, 2)


def _questions(layout, query, key, value, prefix_key, prefix_value, scaling):
    """Each question attends to the prefix and to itself, in one softmax. -> (1, B*T, H, D)

    Query heads that share a key head stand together, so that the shared keys are read once.
    """
    kv, _, d = key.shape
    group = query.shape[0] // kv
    b, t = layout.questions, layout.width
    query = (query * scaling).reshape(kv, group * b * t, d)
    over_prefix = query @ prefix_key.transpose(1, 2)
    own_query = query.view(kv, group, b, t, d)
    own_key, own_value = key.view(kv, 1, b, t, d), value.view(kv, 1, b, t, d)
    over_own = own_query @ own_key.transpose(-1, -2) + layout.not_before(query)
    scores = torch.cat([over_prefix, over_own.reshape(kv, group * b * t, t)], -1)
    weights = torch.softmax(scores, -1)
    p = prefix_key.shape[1]
    from_prefix = weights[..., :p] @ prefix_value
    from_own = weights[..., p:].view(kv, group, b, t, t) @ own_value
    output = from_prefix.view(kv, group, b, t, d) + from_own
    return output.permute(2, 3, 0, 1, 4).reshape(1, b * t, kv * group, d)


def _no_mask(*args, **kwargs):
    """Who attends to whom is in the layout."""
    return None


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, _no_mask)
