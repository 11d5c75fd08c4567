"""Writes tokenizer.json and tokenizer_config.json: a byte-level BPE vocabulary of 400 tokens.

    python3 make_tokenizer.py

It is small on purpose: the golden indexes in v1/ depend on every token of it, so the two files
are committed and this script need not be run again. The same script gives the same bytes.
"""

import collections
import json
import pathlib

TEXT = """
### Book: Pick the best section from the table of contents below which can answer the user query
below. Only generate the section name, do not generate any explanation! ### Table of Contents
leaf ### Query: ### Section: leaf The small handbook of safety and tools in the workshop
Introduction Gloves Goggles Cleaning Machines Chapter Part Appendix Safety Tools Measuring Cutting
Первая помощь Перчатки 手袋 安全 
"""
VOCABULARY = 400
SPECIAL = ["<|endoftext|>", "<|user|>"]


def byte_characters():
    """GPT-2's characters for the 256 bytes."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters = {byte: chr(byte) for byte in visible}
    rest = (byte for byte in range(256) if byte not in characters)
    characters.update({byte: chr(256 + i) for i, byte in enumerate(rest)})
    return characters


def main():
    characters = byte_characters()
    words = collections.Counter()
    for word in TEXT.split():
        for form in (word, " " + word):
            words[tuple(characters[byte] for byte in form.encode())] += 1
    vocabulary = sorted(characters.values())
    merges = []
    while len(vocabulary) < VOCABULARY - len(SPECIAL):
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        # Ties go to the pair that sorts first, so that the result does not depend on a hash.
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(list(pair))
        vocabulary.append("".join(pair))
        merged = collections.Counter()
        for word, count in words.items():
            out = []
            for symbol in word:
                if out and (out[-1], symbol) == pair:
                    out[-1] += symbol
                else:
                    out.append(symbol)
            merged[tuple(out)] += count
        words = merged
    ids = {token: i for i, token in enumerate(vocabulary)}
    special = [
        {
            "id": len(ids) + i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, token in enumerate(SPECIAL)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": merges,
        },
    }
    folder = pathlib.Path(__file__).parent
    (folder / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n"
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": SPECIAL[0]}) + "\n"
    )


main()
