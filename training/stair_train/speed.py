"""Examples a second of three ways to train on the same examples: `python -m stair_train.speed -h`."""

import argparse
import itertools
import time

import torch

from . import base as bases
from . import data
from .loop import _Compute
from .packing import loss, pack, prefix_state


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m stair_train.speed", description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2, help="measured in turns, best kept [%(default)s]")
    given = parser.parse_args()
    device, dtype = bases.device_and_dtype()
    base = bases.load(given.base, device, dtype)
    model = bases.with_lora(base, 16, 32.0, 0.0)
    train = data.read(given.data)
    order = data.Order(list(train.examples), given.batch, 0.5, 0)
    examples = order.step(0)

    def separate():
        """Two examples, each behind its own prefix: what they cost does not depend on how many."""
        for example in examples[:: max(1, len(examples) // 2)][:2]:
            loss(model, pack(train.prefix, [example], device)).backward()
        return 2

    def packed():
        loss(model, pack(train.prefix, examples, device)).backward()
        return len(examples)

    held = prefix_state(model, train.prefix, device)

    def holding():
        loss(model, pack(train.prefix, examples, device, held)).backward()
        return len(examples)

    ways = {"separate": separate, "packed": packed, "packed, contents held": holding}
    best = dict.fromkeys(ways, 0.0)
    with _Compute(model, dtype, device.type):
        for _, (name, way) in itertools.product(range(given.rounds + 1), ways.items()):
            began = time.monotonic()
            count = way()
            best[name] = max(best[name], count / (time.monotonic() - began))
            model.zero_grad(set_to_none=True)
    print(f"{len(train.prefix)} tokens of prefix, batch {len(examples)}")
    for name, rate in best.items():
        print(f"{name:24} {rate:7.2f} examples/s  {rate / best['separate']:5.1f} x")


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
