"""Compares the figures of `stair compare` with pytrec_eval's, on random predictions.

usage: pytrec.py STAIR      (tests/metrics/run.sh makes the environment and calls it)
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytrec_eval

LEAVES = 40
DEPTH = 10
MEASURES = {
    "recall_at_1": "recall_1",
    "recall_at_3": "recall_3",
    "ndcg_at_3": "ndcg_cut_3",
    "mrr": "recip_rank",
}


def predictions(system, questions, generator):
    """A system that finds the gold leaf first about half of the time, and has up to DEPTH hits."""
    lines = []
    for name, gold in questions:
        leaves = generator.sample(range(LEAVES), generator.randint(0, DEPTH))
        if leaves and generator.random() < 0.5 and gold not in leaves:
            leaves[0] = gold
        score = 0.0
        hits = []
        for leaf in leaves:
            score -= generator.random() + 1e-3
            hits.append({"section": leaf, "identifier": f"{leaf} Leaf", "score": score})
        lines.append(
            {
                "id": name,
                "query": f"Question {name}?",
                "split": "test",
                "system": system,
                "gold": gold,
                "gold_identifier": f"{gold} Leaf",
                "hits": hits,
            }
        )
    return lines


def theirs(lines):
    """Means over all questions; a question without hits is a miss."""
    judged = {line["id"]: {str(line["gold"]): 1} for line in lines}
    ranked = {
        line["id"]: {str(hit["section"]): hit["score"] for hit in line["hits"]} for line in lines
    }
    names = {"recall.1,3", "ndcg_cut.3", "recip_rank"}
    values = pytrec_eval.RelevanceEvaluator(judged, names).evaluate(ranked)
    return {
        ours: sum(values.get(line["id"], {}).get(name, 0.0) for line in lines) / len(lines)
        for ours, name in MEASURES.items()
    }


def main():
    stair = sys.argv[1]
    generator = random.Random(20260904)
    compared = 0
    for count in [1, 2, 17, 300]:
        questions = [(f"q{i}", generator.randrange(LEAVES)) for i in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            systems = {}
            for system in ["a", "b", "c"]:
                lines = predictions(system, questions, generator)
                path = Path(folder, f"{system}.jsonl")
                path.write_text("".join(json.dumps(line) + "\n" for line in lines))
                systems[system] = (path, lines)
            paths = [str(path) for path, _ in systems.values()]
            output = subprocess.check_output([stair, "compare", "--json", *paths])
        for summary in json.loads(output)["systems"]:
            expected = theirs(systems[summary["system"]][1])
            for measure, value in expected.items():
                ours = summary["answerable"][measure]["value"]
                if abs(ours - value) > 1e-12:
                    sys.exit(f"{summary['system']}, {count} questions: {measure} is {ours}, pytrec_eval says {value}")
                compared += 1
    print(f"metrics: {compared} figures equal pytrec_eval's")


if __name__ == "__main__":
    main()
