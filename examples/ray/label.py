"""Asks an index every question of a file, with Ray Data: batch labelling.

    python label.py questions.jsonl --index X.stair --model MODEL.gguf --library libstair.so -o out.jsonl

In: one JSON object a line; the text is its field "query" (--field names another), and its "id", if it
has one, is carried along. Out: one line for each that is not blank, in the same order, as `stair
retrieve` prints it: {"id", "query", "hits", "legal_mass"}; or {"id", "query", "error"} for a line that
could not be read or answered. The job goes on after such a line; it ends where no line could be
answered: the model is missing, the index is for another vocabulary.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import ray

import stair_ctypes


class Labeller:
    """One actor: a process of its own with libstair, model and index loaded once."""

    def __init__(self, retriever, ask, field, callers):
        self.retriever = stair_ctypes.Retriever(**retriever)
        self.ask = ask
        self.field = field
        self.callers = ThreadPoolExecutor(callers)

    def __call__(self, batch):
        return {"answer": list(self.callers.map(self.label, batch["line"]))}

    def label(self, line):
        answer = {}
        try:
            record = json.loads(line.decode(), parse_constant=not_json)
            answer["id"] = record.get("id")
            answer["query"] = record[self.field]
            hits, stats = self.retriever.retrieve(answer["query"], **self.ask)
            answer["hits"] = hits
            answer["legal_mass"] = stats["legal_mass"]
        except stair_ctypes.StairError as error:
            answer["error"] = {"code": error.code, "name": error.name, "message": str(error)}
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            message = f"not a JSON object with a text {self.field!r}: {error!r}"
            answer["error"] = {"code": None, "name": "LINE", "message": message}
        return json.dumps(answer)


def not_json(word):
    """Python's reader takes NaN and Infinity, which JSON has not."""
    raise ValueError(f"{word} is not JSON")


def lines(file):
    """The lines of a file that are not blank, as bytes: what is wrong with one is that one's error."""
    return [{"line": line} for line in file["bytes"].split(b"\n") if line.strip()]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", help="a file, or a folder of them, of JSON lines")
    parser.add_argument("--index", required=True, type=os.path.abspath)
    parser.add_argument("--model", required=True, type=os.path.abspath)
    parser.add_argument("--library", required=True, type=os.path.abspath, help="libstair.so")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--cache", type=os.path.abspath, help="the folder of `stair warm -o`: actors start warm")
    parser.add_argument("--field", default="query")
    parser.add_argument("-k", type=int, default=1, help="sections a line")
    parser.add_argument("--lexical-weight", type=float, default=0.0)
    parser.add_argument("--actors", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="processors an actor")
    parser.add_argument("--callers", type=int, default=1,
                        help="questions that an actor asks at the same time; they share decodes")
    parser.add_argument("--batch", type=int, default=16, help="lines that an actor takes at a time")
    return parser.parse_args()


def main():
    args = arguments()
    if "RAY_ADDRESS" in os.environ:
        ray.init()
    else:
        # Ray on this machine alone; the actors keep their processors, and one is left to read with.
        ray.init(num_cpus=args.actors * args.threads + 1, include_dashboard=False)
    ray.data.DataContext.get_current().execution_options.preserve_order = True

    questions = ray.data.read_binary_files(os.path.abspath(args.questions)).flat_map(lines)
    # An actor is given a block at a time, and a file is one block.
    questions = questions.repartition(target_num_rows_per_block=args.batch)
    answers = questions.map_batches(
        Labeller,
        fn_constructor_kwargs={
            "retriever": {
                "library": args.library, "model": args.model, "index": args.index,
                "threads": args.threads, "max_parallel": args.callers, "cache_dir": args.cache,
            },
            "ask": {"k": args.k, "lexical_weight": args.lexical_weight},
            "field": args.field,
            "callers": args.callers,
        },
        batch_size=args.batch,
        num_cpus=args.threads,
        compute=ray.data.ActorPoolStrategy(size=args.actors),
    )
    total = failed = 0
    with open(args.output + ".part", "w", encoding="utf-8") as out:
        for row in answers.iter_rows():
            out.write(row["answer"] + "\n")
            total += 1
            failed += "error" in json.loads(row["answer"])
    os.replace(args.output + ".part", args.output)
    print(f"{args.output}: {total} lines, {failed} of them errors", file=sys.stderr)


if __name__ == "__main__":
    main()
