"""One packed step is worth exactly its examples taken one by one."""

import torch
import torch.nn.functional as F

from conftest import LEAVES, PREFIX, model
from stair_train.decode import recall_at_1
from stair_train.packing import backward, loss, pack, prefix_state


def gradients(model) -> dict[str, torch.Tensor]:
    return {name: value.grad.clone() for name, value in model.named_parameters()}


def separately(examples) -> tuple[float, dict]:
    """Every example alone behind its own prefix, through the model's own plain attention."""
    plain = model("eager")
    targets = sum(example.end - example.start for example in examples)
    total = 0.0
    for example in examples:
        tokens = torch.tensor(PREFIX + example.tokens)[None]
        rows = plain(input_ids=tokens).logits[0]
        first = len(PREFIX) + example.start
        wanted = torch.tensor(example.tokens[example.start : example.end])
        part = F.cross_entropy(rows[first - 1 : first - 1 + len(wanted)], wanted, reduction="sum")
        (part / targets).backward()
        total += part.item() / targets
    return total, gradients(plain)


def test_a_packed_step_has_the_gradient_of_separate_examples(examples):
    packed = model()
    value = loss(packed, pack(PREFIX, examples, torch.device("cpu")))
    value.backward()
    expected, wanted = separately(examples)
    assert abs(value.item() - expected) < 1e-5
    for name, gradient in gradients(packed).items():
        difference = (gradient - wanted[name]).norm() / wanted[name].norm()
        assert difference < 1e-4, f"{name}: {difference}"


def test_pieces_have_the_gradient_of_the_whole(examples):
    whole, cut = model(), model()
    device = torch.device("cpu")
    examples = sorted(examples, key=lambda example: len(example.tokens))
    held = prefix_state(whole, PREFIX, device)
    value = loss(whole, pack(PREFIX, examples, device, held))
    value.backward()
    longest = len(examples[-1].tokens)
    assert abs(backward(cut, PREFIX, examples, device, held, most=longest) - value.item()) < 1e-5
    wanted = gradients(whole)
    for name, gradient in gradients(cut).items():
        assert (gradient - wanted[name]).norm() <= 1e-4 * wanted[name].norm(), name


def test_a_held_prefix_gives_the_same_loss(examples):
    held_model = model()
    held = prefix_state(held_model, PREFIX, torch.device("cpu"))
    with_held = loss(held_model, pack(PREFIX, examples, torch.device("cpu"), held))
    without = loss(held_model, pack(PREFIX, examples, torch.device("cpu")))
    assert torch.allclose(with_held, without, atol=1e-6)


def test_examples_do_not_see_each_other(examples):
    packed = model()
    alone = loss(packed, pack(PREFIX, examples[:1], torch.device("cpu"))).item()
    parts = [loss(packed, pack(PREFIX, [e], torch.device("cpu"))).item() for e in examples[:2]]
    together = loss(packed, pack(PREFIX, examples[:2], torch.device("cpu"))).item()
    counts = [e.end - e.start for e in examples[:2]]
    assert abs(parts[0] - alone) < 1e-6
    mean = sum(p * c for p, c in zip(parts, counts)) / sum(counts)
    assert abs(together - mean) < 1e-5


def test_decoding_names_the_leaf_that_plain_scoring_prefers_greedily(examples):
    """Greedy by hand: at each branch the allowed token with the larger logit."""
    trained = model()
    plain = model("eager")
    questions = examples[:3]
    right = 0
    for question in questions:
        path = []
        candidates = dict(LEAVES)
        while len(candidates) > 1:
            place = len(path)
            ways = {tokens[place] for tokens in candidates.values()}
            if len(ways) > 1:
                tokens = PREFIX + question.tokens[: question.start] + tuple(path)
                row = plain(input_ids=torch.tensor(tokens)[None]).logits[0, -1]
                path.append(max(ways, key=lambda token: row[token].item()))
            else:
                path.append(ways.pop())
            candidates = {s: t for s, t in candidates.items() if t[place] == path[place]}
        right += next(iter(candidates)) == question.section
    found = recall_at_1(trained, PREFIX, LEAVES, questions, torch.device("cpu"), 2)
    assert found == right / len(questions)
