#!/usr/bin/env bash
# What a question costs against the number of leaves: synthetic documents of 50, 500 and 5,000.
#
#   benches/leaves.sh STAIR MODEL.gguf [INDEX.stair...]
#
# First table: the trie alone, without a model. `choices` is the number of places on the way to a title
# where the trie branches, the mean over all leaves; `tokens` is what has to be decoded on that way. A
# search that is sure at every choice takes one decode for the question and one for each choice at most,
# and none takes fewer tokens. It is a matter of the document alone. Each INDEX.stair has a row too.
#
# Second table: the documents with the model, asked about titles of leaves, one question at a time. No
# model was trained on these documents, so it is unsure where a trained one is sure, and under exact
# scoring the searches are wide: compare decodes and tokens from row to row, and take no level from
# here. Local scoring makes it choose at each step, and shows what depth alone costs. Times are of this
# machine as it is now. A table of contents longer than the model's context gives the library's error.
#
#   STAIR_LEAVES_QUERIES    questions a row                          default: 3
#   STAIR_LEAVES_THREADS    threads that compute                     default: all
#   STAIR_LEAVES_MODEL      0 for the first table only: seconds      default: 1
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
exec python3 - "$@" <<'PY'
import json, os, random, statistics, subprocess, sys, tempfile
from pathlib import Path

stair, model, *own = sys.argv[1:]
queries = int(os.environ.get("STAIR_LEAVES_QUERIES", "3"))
threads = os.environ.get("STAIR_LEAVES_THREADS", str(len(os.sched_getaffinity(0))))
with_model = os.environ.get("STAIR_LEAVES_MODEL", "1") != "0"

# Children of each section, level by level; the last level are leaves.
ASKED = [(5, 5, 2), (10, 10, 5), (20, 25, 10)]
SHAPES = ASKED + [(500,), (20, 25), (5, 5, 5, 4)]

FIRST = """annual broken cheap daily early foreign grey heavy idle joint large metal narrow old paper quiet
rapid safe thin urgent vacant warm young clean dry empty flat green hard inner local manual new open
plain red sharp tall upper wet white dark fast kind late long main mixed round soft""".split()
SECOND = """air bag bank belt bill board boat book box brake bridge cable card chain chair clock coat
coin cup desk dish door dust engine farm fence film fire floor food fuel game garden gas glass gold
grain hall hand hat heat horse house ice ink iron key lake lamp land leave letter light line load lock
mail map milk mill mine money motor nail net night oil order oven pack paint park pay pen pipe plate
pool port pump rail rain ring road roof room rope sale salt sand seat shoe shop sign silk skin snow
soil song stage stone sugar table tank""".split()


def document(shape):
    """A Markdown document, and the titles of its leaves."""
    chance = random.Random(1)
    pairs = [f"{first} {second}" for first in FIRST for second in SECOND]
    chance.shuffle(pairs)
    lines, leaves, taken = ["# Synthetic handbook"], [], iter(pairs * 2)

    def level(number, rest):
        for i in range(1, rest[0] + 1):
            here = number + [str(i)]
            title = next(taken).capitalize()
            lines.append(f"{'#' * (len(here) + 1)} {'.'.join(here)} {title}")
            if len(rest) > 1:
                level(here, rest[1:])
            else:
                leaves.append((".".join(here), title))

    level([], list(shape))
    return "\n\n".join(lines) + "\n", leaves


def build(shape, folder):
    source, leaves = document(shape)
    path = folder / ("x".join(map(str, shape)) + ".md")
    path.write_text(source)
    index = path.with_suffix(".stair")
    subprocess.run([stair, "build", path, "-m", model, "-o", index, "--json"], check=True,
                   stdout=subprocess.DEVNULL)
    return index, leaves


def inspect(index):
    return json.loads(subprocess.run([stair, "inspect", index, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def ways(trie):
    """For each leaf: places where the trie branches, and tokens that have to be scored."""
    found, stack = [], [(0, 0, 0)]
    while stack:
        node, choices, tokens = stack.pop()
        children = trie[node]["children"]
        if trie[node]["section"] is not None:
            found.append((choices, tokens))
        for _, child in children:
            # The last token, the terminator, is read and never decoded.
            decoded = bool(trie[child]["children"])
            stack.append((child, choices + (len(children) > 1), tokens + decoded))
    return found


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells):
    row(*cells)
    row(*["---:"] * len(cells))


def memory(pid):
    """Resident memory of a process: of its own, and of mapped files, in MB."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    return [round(int(fields[name].split()[0]) * 1024 / 1e6) for name in ("RssAnon", "RssFile")]


def ask(index, leaves, scoring, cache):
    """Asks about `queries` leaves, spread over the document. The answers, and the process's memory;
    or the library's error."""
    command = [stair, "retrieve", "-i", index, "-m", model, "--json", "--stats", "--threads", threads,
               "--scoring", scoring, "--no-tune", "--cache", cache, "--max-parallel", "1"]
    asked = [leaves[(2 * i + 1) * len(leaves) // (2 * queries)] for i in range(queries)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    answers = []
    for number, title in asked:
        try:
            process.stdin.write(f"Where can I read about the {title.lower()}?\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return None, None, process.communicate()[1].strip()
        answer = json.loads(line)
        answer["right"] = answer["hits"][0]["number"] == number
        answers.append(answer)
    resident = memory(process.pid)
    process.stdin.close()
    process.wait()
    return answers, resident, None


def trie_row(name, index):
    info = inspect(index)
    choices, tokens = zip(*ways(info["trie"]))
    depth = 1 + max(section["depth"] for section in info["sections"])
    row(f"{info['leaves']:,}", name, depth, f"{info['prefix_tokens']:,}", f"{info['bytes'] / 1e3:.0f}",
        f"{statistics.mean(choices):.1f}", f"{statistics.mean(tokens):.1f}")


def asked_row(index, leaves, depth, scoring, cache):
    """Prints a row; returns the library's error instead where there is one."""
    about = [f"{len(leaves):,}", depth, f"{inspect(index)['prefix_tokens']:,}", scoring]
    answers, resident, error = ask(index, leaves, scoring, cache)
    if error:
        row(*about, *["error"] * 9)
        return error

    def median(name):
        return statistics.median(answer["stats"][name] for answer in answers)

    first, decodes, time = answers[0]["stats"], median("decodes"), median("search_ms")
    warm = sum(file.stat().st_size for file in cache.glob("*.warm"))
    prefill = f"{first['prefill_ms']:.0f}" + ("" if first["prefix_tokens"] else " (read)")
    row(*about, prefill, f"{warm / 1e6:.1f}", resident[0], f"{median('question_tokens'):g}", f"{decodes:g}",
        f"{median('search_tokens'):g}", f"{time:.0f}", f"{time / decodes:.0f}",
        f"{sum(answer['right'] for answer in answers)} of {queries}")


print("load average:", " ".join(open("/proc/loadavg").read().split()[:3]))
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    print("\nThe trie\n")
    head("leaves", "shape", "depth", "ToC tokens", "index kB", "choices", "tokens")
    for shape in SHAPES:
        trie_row(" x ".join(map(str, shape)), build(shape, folder)[0])
    for path in own:
        trie_row(Path(path).name, path)
    if with_model:
        print(f"\nThe search: {queries} questions a row, k = 3, {threads} threads; medians\n")
        head("leaves", "depth", "ToC tokens", "scoring", "prefill ms", "warm file MB", "own MB", "question tokens",
             "decodes", "search tokens", "query ms", "ms a decode", "right")
        for shape in ASKED:
            index, leaves = build(shape, folder)
            cache = Path(tempfile.mkdtemp(dir=folder))
            for scoring in ("local", "exact"):
                error = asked_row(index, leaves, len(shape), scoring, cache)
                if error:
                    print(f"\n{len(leaves):,} leaves: {error}")
                    break
PY
