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
        if like.device not in self.masks:
            mask = torch.full((self.width, self.width), float("-inf"))
            self.masks[like.device] = mask.triu(1).to(like.device)
        return self.masks[like.device]


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

    Query heads that share a key head stand together, so that the shared keys are read once. The two
    parts are computed apart and joined by their logarithmic sums.
    """
    kv, _, d = key.shape
    group = query.shape[0] // kv
    b, t = layout.questions, layout.width
    query = (query * scaling).reshape(kv, group * b * t, d)
    of_prefix, sum_prefix = OverPrefix.apply(query, prefix_key, prefix_value)
    own_query = query.view(kv, group, b, t, d)
    own_key, own_value = key.view(kv, 1, b, t, d), value.view(kv, 1, b, t, d)
    scores = (own_query @ own_key.transpose(-1, -2)).float() + layout.not_before(query)
    sum_own = torch.logsumexp(scores, -1).view(kv, -1)
    of_own = (torch.softmax(scores, -1).to(value.dtype) @ own_value).view(kv, -1, d)
    share = torch.sigmoid(sum_prefix - sum_own)[..., None].to(value.dtype)
    output = share * of_prefix + (1 - share) * of_own
    output = output.view(kv, group, b, t, d)
    return output.permute(2, 3, 0, 1, 4).reshape(1, b * t, kv * group, d)


class OverPrefix(torch.autograd.Function):
    """Attention of queries (KV, N, D), already scaled, over keys and values (KV, P, D).

    -> output (KV, N, D), and the logarithm of the sum of exponentials of each query's scores (KV, N),
    in f32. The scores, N x P of them for each head, are never all there: they are made some rows at a
    time, small enough for a processor's cache, and made again for the gradient. Kept, they would be
    most of what a layer keeps of a batch before a long prefix.
    """

    ROWS = 128

    @staticmethod
    def forward(ctx, query, key, value):
        output = torch.empty_like(query)
        sums = query.new_empty(query.shape[:2], dtype=torch.float32)
        with _plain(query):
            across = _across(key)
            for rows in OverPrefix._pieces(query):
                scores = query[:, rows] @ across
                weights = torch.softmax(scores, -1)
                output[:, rows] = weights @ value
                # The largest weight is e to the largest score less the sum's logarithm.
                sums[:, rows] = scores.amax(-1).float() - weights.amax(-1).float().log()
        ctx.save_for_backward(query, key, value, output)
        return output, sums

    @staticmethod
    def backward(ctx, of_output, of_sums):
        query, key, value, output = ctx.saved_tensors
        of_query = torch.empty_like(query)
        of_key, of_value = (
            torch.zeros_like(v, dtype=torch.float32) if needed else None
            for v, needed in zip((key, value), ctx.needs_input_grad[1:])
        )
        with _plain(query):
            of_output = of_output.to(query.dtype)
            # The softmax's own part of the gradient, one number a query.
            own = of_sums - (of_output.float() * output.float()).sum(-1)
            keys_across, values_across = _across(key), _across(value)
            for rows in OverPrefix._pieces(query):
                weights = torch.softmax(query[:, rows] @ keys_across, -1)
                of_scores = of_output[:, rows] @ values_across
                of_scores = (of_scores + own[:, rows, None].to(query.dtype)) * weights
                of_query[:, rows] = of_scores @ key
                if of_key is not None:
                    of_key += of_scores.transpose(1, 2) @ query[:, rows]
                if of_value is not None:
                    of_value += weights.transpose(1, 2) @ of_output[:, rows]
        cast = [v if v is None else v.to(key.dtype) for v in (of_key, of_value)]
        return of_query, *cast

    @staticmethod
    def _pieces(query):
        # A GPU has no use for small pieces; there the memory alone counts.
        size = OverPrefix.ROWS if query.device.type == "cpu" else 16 * OverPrefix.ROWS
        return [slice(first, first + size) for first in range(0, query.shape[1], size)]


def _across(rows: torch.Tensor) -> torch.Tensor:
    """(KV, P, D) -> (KV, D, P), laid out so that no product copies it again."""
    return rows.transpose(1, 2).contiguous()


def _plain(like: torch.Tensor):
    """Autocast would make every softmax an f32 one."""
    return torch.autocast(like.device.type, enabled=False)


def _no_mask(*args, **kwargs):
    """Who attends to whom is in the layout."""
    return None


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, _no_mask)
