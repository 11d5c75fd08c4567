"""Hugging Face transformers: `generate` with beams and `prefix_allowed_tokens_fn` over a trie of the titles.

usage: transformers_peer.py cold|warm DOCUMENT.json

`cold` gives `generate` the whole prompt for every question. `warm` keeps the keys and values of the
prefix, as the documentation of transformers has it: a copy of a filled cache goes into `generate`. The
driver (`run.rs`) reads and writes its standard streams; `protocol.rs` says what.
"""

import copy
import json
import math
import os
import platform
import sys
import time
from pathlib import Path

import gguf
import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache


def main() -> None:
    variant, path = sys.argv[1:]
    document = json.loads(Path(path).read_text())
    torch.set_num_threads(document["threads"])
    dtype = getattr(torch, os.environ.get("PEERS_DTYPE", "float32"))
    peer = Peer(document, dtype)
    if variant == "warm":
        peer.warm()
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "gguf": gguf_version(),
        "dtype": str(dtype).removeprefix("torch."),
    }
    say({"versions": versions})
    for line in sys.stdin:
        tokens = json.loads(line)["tokens"]
        started = time.perf_counter()
        answer = peer.answer(tokens)
        answer["seconds"] = time.perf_counter() - started
        say(answer)


class Peer:
    def __init__(self, document: dict, dtype: torch.dtype) -> None:
        model = Path(document["model"])
        dense = getattr(transformers, "GgufConfig", None)
        options = {"quantization_config": dense(dequantize=True)} if dense else {}
        self.model = AutoModelForCausalLM.from_pretrained(
            model.parent, gguf_file=model.name, dtype=dtype, **options
        ).eval()
        self.beams = document["k"]
        self.prefix = document["prefix"]
        self.terminator = document["terminator"]
        self.longest = max(len(title["tokens"]) for title in document["titles"])
        self.titles = {tuple(title["tokens"]): title for title in document["titles"]}
        self.trie: dict = {}
        for title in document["titles"]:
            node = self.trie
            for token in title["tokens"]:
                node = node.setdefault(token, {})
        self.cache = None

    @torch.inference_mode()
    def warm(self) -> None:
        cache = DynamicCache(config=self.model.config)
        self.model(torch.tensor([self.prefix]), past_key_values=cache, logits_to_keep=1)
        self.cache = cache

    @torch.inference_mode()
    def answer(self, question: list[int]) -> dict:
        ids = torch.tensor([self.prefix + question])
        length = ids.shape[1]
        trie, terminator = self.trie, self.terminator

        def allowed(_batch: int, so_far: torch.Tensor) -> list[int]:
            node = trie
            for token in so_far[length:].tolist():
                node = node.get(token)
                if node is None:
                    return [terminator]
            return list(node) or [terminator]

        options = {}
        if self.cache is not None:
            # The question's own tokens go through once, not once a beam; `generate` then begins with
            # the last of them.
            cache = copy.deepcopy(self.cache)
            if len(question) > 1:
                self.model(torch.tensor([question[:-1]]), past_key_values=cache, logits_to_keep=1)
            cache.batch_repeat_interleave(self.beams)
            options["past_key_values"] = cache
        found = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            num_beams=self.beams,
            num_return_sequences=self.beams,
            do_sample=False,
            max_new_tokens=self.longest,
            prefix_allowed_tokens_fn=allowed,
            eos_token_id=terminator,
            pad_token_id=terminator,
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
        hits = []
        for sequence, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
            # A beam that never had a legal token is no answer.
            if math.isfinite(score):
                hits.append(self.hit(sequence[length:], score))
        return {"hits": hits}

    def hit(self, tokens: list[int], score: float) -> dict:
        if self.terminator in tokens:
            tokens = tokens[: tokens.index(self.terminator) + 1]
        title = self.titles.get(tuple(tokens))
        return {
            "section": title and title["section"],
            "identifier": title["identifier"] if title else f"tokens {tokens}",
            # Beam search divides the sum of log-probabilities by the length.
            "score": score,
        }


def gguf_version() -> str:
    from importlib.metadata import version

    return version(gguf.__name__)


def say(line: dict) -> None:
    print(json.dumps(line), flush=True)


main()
