"""Gathers the figures of all systems into eval.json beside the folder OUT, and prints the table.

They are those of OUT/NAME-compare.json, which `stair compare --json` printed; the refusals, which
predictions do not have, those of OUT/NAME-SYSTEM.json, which `stair eval --json` printed.

usage: eval.py OUT
"""

import json
import sys
from pathlib import Path

SYSTEMS = ("bm25", "lexical", "lexical-asked", "dense", "dsi", "stair-local", "stair", "stair-cold", "hybrid", "hybrid-dsi", "hybrid-cold")
KEYS = {"r1": "recall_at_1", "r3": "recall_at_3", "ndcg3": "ndcg_at_3", "mrr": "mrr"}


def main(out: Path) -> None:
    figures = {}
    for name in ("handbook", "microbiology", "principles-economics-3e"):
        path = out / f"{name}-compare.json"
        if not path.exists():
            continue
        compared = {summary["system"]: summary for summary in json.loads(path.read_text())["systems"]}
        for system in (system for system in SYSTEMS if system in compared):
            asked = out / f"{name}-{system}.json"
            refusal = json.loads(asked.read_text()).get("refusal") if asked.exists() else None
            few = compared[system]["few_training"]["recall_at_1"]
            figures.setdefault(name, {})[system] = row(compared[system], refusal or {}, few)
    (out.parent / "eval.json").write_text(json.dumps(figures, indent=1) + "\n")
    print("| document | system | R@1 | R@3 | nDCG@3 | invented | refused of unanswerable / of answerable |")
    print("|---|---|---|---|---|---|---|")
    for name, systems in figures.items():
        for system, r in systems.items():
            refused = "" if r["refused"] is None else f"{r['refused']:.1f} / {r['refused_wrongly']:.1f}"
            low, high = r["r1_interval"]
            print(
                f"| {name} | {system} | {r['r1']:.1f} ({low:.1f} to {high:.1f}) | {r['r3']:.1f} | "
                f"{r['ndcg3']:.1f} | {r['hallucination']:.1f} | {refused} |"
            )


def row(summary: dict, refusal: dict, few: dict | None) -> dict:
    figures = {short: percent(summary["answerable"][long]) for short, long in KEYS.items()}
    r1 = summary["answerable"]["recall_at_1"]
    figures["r1_interval"] = [round(100 * r1[end], 1) for end in ("low", "high")]
    figures["hallucination"] = percent(summary["hallucination"])
    figures["refused"] = percent(refusal.get("unanswerable"))
    figures["refused_wrongly"] = percent(refusal.get("answerable"))
    figures["r1_at_0_to_2_training_questions"] = percent(few)
    figures["questions"] = summary["counts"]["answerable"]
    return figures


def percent(interval: dict | None) -> float | None:
    return None if interval is None else round(100 * interval["value"], 1)


main(Path(sys.argv[1]))
