"""Gathers what `stair eval --json` printed into eval.json beside the folder OUT, and prints the table.

usage: eval.py OUT
"""

import json
import sys
from pathlib import Path

SYSTEMS = ("bm25", "bm25-asked", "dense", "dsi", "stair-local", "stair", "hybrid")
KEYS = {"r1": "recall_at_1", "r3": "recall_at_3", "ndcg3": "ndcg_at_3", "mrr": "mrr"}


def main(out: Path) -> None:
    figures = {}
    for name in ("handbook", "microbiology", "principles-economics-3e"):
        for system in SYSTEMS:
            path = out / f"{name}-{system}.json"
            if path.exists():
                figures.setdefault(name, {})[system] = row(json.loads(path.read_text()))
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


def row(summary: dict) -> dict:
    figures = {short: percent(summary["answerable"][long]) for short, long in KEYS.items()}
    r1 = summary["answerable"]["recall_at_1"]
    figures["r1_interval"] = [round(100 * r1[end], 1) for end in ("low", "high")]
    figures["hallucination"] = percent(summary["hallucination"])
    refusal = summary.get("refusal") or {}
    figures["refused"] = percent(refusal.get("unanswerable"))
    figures["refused_wrongly"] = percent(refusal.get("answerable"))
    figures["questions"] = summary["counts"]["answerable"]
    return figures


def percent(interval: dict | None) -> float | None:
    return None if interval is None else round(100 * interval["value"], 1)


main(Path(sys.argv[1]))
