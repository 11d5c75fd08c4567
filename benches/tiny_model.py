"""A model of random numbers with the vocabulary of a real one, for what depends on the number of questions
and not on the answers: 40 times less to compute than SmolLM2-135M.

    python benches/tiny_model.py MODEL.gguf TINY.gguf      # needs the package gguf

Written for models of the architecture llama. The same input gives the same file.
"""

import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import quantize

LAYERS, WIDTH, HEADS, INNER = 2, 64, 2, 128

source, target = sys.argv[1:]
reader = GGUFReader(source)
writer = GGUFWriter(target, "llama")
sizes = {
    "llama.block_count": LAYERS,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": 1,
    "llama.rope.dimension_count": WIDTH // HEADS,
}
# The head's size follows from the others; the writer sets the architecture itself.
left_out = ("GGUF.", "general.architecture", "llama.attention.key_length", "llama.attention.value_length")
for name, field in reader.fields.items():
    if name.startswith(left_out):
        continue
    kind = field.types[0]
    inner = field.types[-1] if kind == GGUFValueType.ARRAY else None
    writer.add_key_value(name, sizes.get(name, field.contents()), kind, inner)

chance = np.random.default_rng(1)


def matrix(name, rows, columns):
    numbers = chance.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)
    writer.add_tensor(name, quantize(numbers, GGMLQuantizationType.Q8_0), raw_dtype=GGMLQuantizationType.Q8_0)


def norm(name):
    writer.add_tensor(name, np.ones(WIDTH, dtype=np.float32))


vocabulary = len(reader.fields["tokenizer.ggml.tokens"].data)
matrix("token_embd.weight", vocabulary, WIDTH)
norm("output_norm.weight")
for layer in range(LAYERS):
    block = f"blk.{layer}."
    norm(block + "attn_norm.weight")
    norm(block + "ffn_norm.weight")
    matrix(block + "attn_q.weight", WIDTH, WIDTH)
    matrix(block + "attn_k.weight", WIDTH // HEADS, WIDTH)
    matrix(block + "attn_v.weight", WIDTH // HEADS, WIDTH)
    matrix(block + "attn_output.weight", WIDTH, WIDTH)
    matrix(block + "ffn_gate.weight", INNER, WIDTH)
    matrix(block + "ffn_up.weight", INNER, WIDTH)
    matrix(block + "ffn_down.weight", WIDTH, INNER)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
