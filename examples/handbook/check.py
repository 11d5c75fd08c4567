"""Holds the handbook's questions to what README.md says of them: check.py [FOLDER]."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

# Function words, and what every question may say.
COMMON = set(
    """a about above after again all also am an and another any anybody anyone anything are around as ask
    at away back be because been before being below between both but by can cannot could did do does doing
    done down during each either else ever every few for from further get gets getting go goes going gone
    got had has have having he her here hers him his how i if in instead into is it its itself just keep
    let like made make makes many may me mean might mine more most much must my myself need needs never no
    nobody none nor not nothing now of off often ok okay on once one only onto or other our ours out over
    own per please put really right same say says she should since so some somebody someone something soon
    still such take takes than that the their them then there these they thing things this those through
    till to too two under until up upon us use used using very want wants was way we well were what
    whatever when where whether which while who whole whom whose why will with without within would yes
    yet you your yours""".split()
)
ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")


def words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower().replace("'s", ""))


def stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def content(text: str) -> set[str]:
    return {stem(word) for word in words(text) if len(word) >= 3 and word not in COMMON}


def sections(markdown: str) -> dict[str, str]:
    """Texts by heading."""
    found: dict[str, str] = {}
    heading = None
    for line in markdown.splitlines(keepends=True):
        match = re.match(r"#{2,4} ([0-9.]+ .*)", line)
        if match:
            heading = match[1].strip()
            found[heading] = ""
        elif heading:
            found[heading] += line
    return found


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    all_words = words(text)
    return {tuple(all_words[i : i + length]) for i in range(len(all_words) - length + 1)}


def problems(folder: Path):
    texts = sections((folder / "handbook.md").read_text(encoding="utf-8"))
    leaves = {s for s in texts if not any(o.startswith(s.split()[0] + ".") for o in texts)}
    read = lambda name: [json.loads(line) for line in (folder / name).open(encoding="utf-8")]
    questions, training = read("questions.jsonl"), read("training-questions.jsonl")
    quoted = {leaf: runs(texts[leaf], 5) for leaf in leaves}
    said = {leaf: content(f"{leaf} {texts[leaf]}") for leaf in leaves}
    for question in questions + training:
        leaf, where = question["section"], question["id"]
        if leaf is None:
            continue
        if leaf not in leaves:
            yield f"{where}: no leaf {leaf!r}"
            continue
        if "disjoint" in question and runs(question["query"], 5) & quoted[leaf]:
            yield f"{where}: quotes five words of its section"
        if question.get("disjoint") and (shared := content(question["query"]) & said[leaf]):
            yield f"{where}: shares {sorted(shared)} with its section"
    for leaf in sorted(leaves):
        splits = Counter(q["split"] for q in questions if q["section"] == leaf)
        total = sum(splits.values())
        if total < 12 or any(abs(splits[s] / total - share) > 0.03 for s, share in SHARES.items()):
            yield f"{leaf}: {dict(splits)} is not 60, 10 and 30 % of at least 12"
    for split in SHARES:
        disjoint = [q["disjoint"] for q in questions if q["section"] and q["split"] == split]
        if sum(disjoint) < len(disjoint) / 3:
            yield f"{split}: {sum(disjoint)} of {len(disjoint)} are disjoint, less than a third"
    unanswerable = Counter(q["split"] for q in questions if q["section"] is None)
    if unanswerable["test"] < 40:
        yield f"unanswerable: {dict(unanswerable)}, less than 40 in test"
    every_word = lambda question: set(re.findall(r"\w+", question["query"].lower()))
    held = [every_word(question) for question in questions if question["split"] != "train"]
    for question in training:
        mine = every_word(question)
        if question["split"] != "train" or any(overlap(mine, other) >= 0.6 for other in held):
            yield f"{question['id']}: not apart from dev and test"


def overlap(a: set[str], b: set[str]) -> float:
    return len(a & b) / max(1, len(a | b))


SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    found = list(problems(folder))
    print("\n".join(found) or "the questions are as README.md says")
    sys.exit(bool(found))
