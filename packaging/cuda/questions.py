"""Chooses questions for carry.sh: reads `stair inspect --json`, prints {"query", "section"} lines.

With a file of such lines, those of its split `test`, if it has splits. With none, one question made
of each section's title, which only shows that the machinery works.
"""

import hashlib
import json
import sys

MOST = 128


def main(path):
    index = json.load(sys.stdin)
    if path:
        with open(path, encoding="utf-8") as file:
            questions = [json.loads(line) for line in file if line.strip()]
        chosen = [q for q in questions if q.get("split") == "test"] or questions
    else:
        leaves = [section for section in index["sections"] if section["leaf"]]
        chosen = [
            {"query": f"What are the rules on {s['title']}?", "section": f"{s['number'] or ''} {s['title']}".strip()}
            for s in leaves
        ]
    # Any first few of them come from all over the document, and always the same.
    unique = {" ".join(q["query"].split()): q["section"] for q in chosen}
    ordered = sorted(unique, key=lambda query: hashlib.sha256(query.encode()).digest())
    for query in ordered[:MOST]:
        print(json.dumps({"query": query, "section": unique[query]}, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1])
