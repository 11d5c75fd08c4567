"""A whole run on a tiny model: stopped, resumed, exported, refused."""

import json
import math
import os
import signal
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from conftest import LEAVES, PREFIX, VOCABULARY, example, model
from stair_train import base as bases
from stair_train import adapter, checkpoint, data, loop
from stair_train.__main__ import main
from stair_train.errors import TrainingError
from stair_train.loop import Options, Trainer

OPTIONS = dict(rank=4, alpha=8.0, batch=4, epochs=6, warmup=1, learning_rate=1e-2, dropout=0.1)


def trainer(data_file, run: Path, **changes) -> Trainer:
    torch.manual_seed(0)
    base = bases.Base(model(), folder_of_a_base(run.parent / "tiny"), "llama")
    options = Options(**(OPTIONS | changes))
    adapted = base.model if options.full else bases.with_lora(base, options.rank, options.alpha, options.dropout)
    if not options.full:
        torch.manual_seed(5)
    file = data.read(data_file("train.jsonl"))
    run.mkdir(exist_ok=True)
    return Trainer(base, adapted, file, file, run, options)


def folder_of_a_base(path: Path, end: bytes = b"end") -> Path:
    """What identifies a base; the model itself is made in memory."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(bytes(3 * bases.MIB) + end)
    return path


def equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_training_learns_and_logs(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run", epochs=400, patience=400, dropout=0.0, full=True, learning_rate=3e-3)
    assert run.fit(100, 5) == 1.0
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert {"step", "epoch", "dev_recall_at_1", "examples_per_second"} <= lines[0].keys()


def test_questions_that_nothing_answers_are_not_counted(data_file, tmp_path, examples):
    run = trainer(data_file, tmp_path / "run")
    unanswered = [example(None, [40, n], f"none{n}") for n in range(50, 53)]
    run.dev = data.read(data_file("dev.jsonl", examples + unanswered))
    run.evaluate([])
    run.dev = data.read(data_file("dev.jsonl", unanswered))
    # Without a question to measure by, the latest weights are the best.
    assert run.evaluate([]) and run.evaluate([])
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["dev_questions"] for line in lines] == [3, 0, 0]


def test_a_resumed_run_ends_where_an_unbroken_one_does(data_file, tmp_path):
    """Adapter, optimizer, schedule, dropout's randomness and order of the data all go on."""
    whole = trainer(data_file, tmp_path / "whole")
    whole.fit(2, 5)
    stopped(data_file, tmp_path / "broken", 3)
    second = trainer(data_file, tmp_path / "broken")
    assert second.resume() and second.step == 3
    second.fit(2, 5)
    assert second.step == whole.step
    assert equal(second.weights(), whole.weights())


def stopped(data_file, run: Path, steps: int, **changes) -> Trainer:
    """A run saved after some steps, as a signal would end it."""
    first = trainer(data_file, run, **changes)
    for _ in range(steps):
        with first._compute():
            first.one_step()
    first.save()
    return first


def test_a_run_resumed_while_the_prefix_is_held_ends_where_an_unbroken_one_does(data_file, tmp_path):
    whole = trainer(data_file, tmp_path / "whole", hold=4)
    whole.fit(2, 5)
    stopped(data_file, tmp_path / "broken", 3, hold=4)
    second = trainer(data_file, tmp_path / "broken", hold=4)
    assert second.resume()
    second.fit(2, 5)
    assert second.step == whole.step == 6
    assert equal(second.weights(), whole.weights())


def test_a_checkpoint_without_what_is_held_is_gone_on_from(data_file, tmp_path):
    stopped(data_file, tmp_path / "run", 3, hold=4)
    state = checkpoint.load(tmp_path / "run")
    for key in ("held", "cuda_rng"):
        del state[key]
    checkpoint.save(tmp_path / "run", state)
    second = trainer(data_file, tmp_path / "run", hold=4)
    assert second.resume()
    second.fit(2, 5)
    assert second.step == 6


def test_a_gpu_s_randomness_goes_on(data_file, tmp_path, monkeypatch):
    run = trainer(data_file, tmp_path / "run")
    run.device = torch.device("cuda")
    found = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.tensor([7]))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: found.append(state.item()))
    run.save()
    run.resume()
    assert found == [7]


def logged(run: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_finished_run_called_again_logs_nothing(data_file, tmp_path):
    # The last evaluation of the first is out of turn.
    for name, every in (("a", 4), ("b", 2)):
        trainer(data_file, tmp_path / name).fit(every, 5)
        log = (tmp_path / name / "log.jsonl").read_bytes()
        again = trainer(data_file, tmp_path / name)
        assert again.resume()
        again.fit(every, 5)
        assert (tmp_path / name / "log.jsonl").read_bytes() == log
    assert logged(tmp_path / "a") == [4, 6] and logged(tmp_path / "b") == [2, 4, 6]


@pytest.mark.parametrize("old", [False, True])
def test_what_was_logged_after_the_checkpoint_is_logged_once(data_file, tmp_path, old):
    """Killed at step 5, before the evaluation of step 4 was saved."""
    run = trainer(data_file, tmp_path / "run", epochs=3)
    run.fit(2, 5)
    assert logged(tmp_path / "run") == [2, 3]
    if old:
        state = checkpoint.load(tmp_path / "run")
        del state["evaluated"]
        checkpoint.save(tmp_path / "run", state)
    with open(tmp_path / "run/log.jsonl", "a") as log:
        log.write('{"step": 4}\n{"step": 5, "epo')
    again = trainer(data_file, tmp_path / "run")
    assert again.resume()
    again.fit(2, 5)
    assert logged(tmp_path / "run") == [2, 3, 4, 6]


def test_an_evaluation_that_was_not_saved_is_logged_once(data_file, tmp_path):
    """Saved at step 3 by the clock, then evaluated at the same step, which was the last, and killed."""
    stopped(data_file, tmp_path / "run", 3).evaluate([1.0])
    assert logged(tmp_path / "run") == [3]
    again = trainer(data_file, tmp_path / "run", epochs=3)
    assert again.resume()
    again.fit(2, 5)
    assert logged(tmp_path / "run") == [3]
    assert (tmp_path / "run/adapter.gguf").exists()


def test_a_new_run_begins_a_new_log(data_file, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/log.jsonl").write_text('{"step": 4}\n')
    trainer(data_file, tmp_path / "run").fit(6, 5)
    assert logged(tmp_path / "run") == [6]


def test_a_signal_ends_the_run_with_everything_saved(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run")
    inner = run.one_step

    def step():
        if run.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return inner()

    run.one_step = step
    with pytest.raises(loop.Stopped):
        run.fit(100, 5)
    assert checkpoint.load(tmp_path / "run")["step"] == 3


def test_another_run_s_folder_is_refused(data_file, tmp_path):
    trainer(data_file, tmp_path / "run").save()
    with pytest.raises(TrainingError, match="other data, base or options"):
        trainer(data_file, tmp_path / "run", learning_rate=1e-3).resume()


def test_another_base_of_the_same_name_is_refused(data_file, tmp_path):
    trainer(data_file, tmp_path / "run").save()
    assert trainer(data_file, tmp_path / "run").resume()
    other = folder_of_a_base(tmp_path / "elsewhere" / "tiny", b"END")
    second = trainer(data_file, tmp_path / "run")
    moved = Trainer(
        bases.Base(second.base.model, other, "llama"), second.model, second.train, second.dev, second.run, second.options
    )
    with pytest.raises(TrainingError, match="other data, base or options"):
        moved.resume()


def test_a_base_s_fingerprint_is_of_its_content(tmp_path):
    folder = folder_of_a_base(tmp_path / "tiny")
    copy = folder_of_a_base(tmp_path / "elsewhere" / "tiny")
    assert bases.fingerprint(folder) == bases.fingerprint(copy)
    before = bases.fingerprint(folder)
    (folder / "config.json").write_text('{"layers": 2}')
    assert bases.fingerprint(folder) != before
    file = tmp_path / "tiny.gguf"
    file.write_bytes(bytes(5 * bases.MIB))
    before = bases.fingerprint(file)
    file.write_bytes(bytes(2 * bases.MIB) + b"x" + bytes(3 * bases.MIB - 1))
    assert bases.fingerprint(file) != before


def test_a_run_that_knew_its_base_by_name_goes_on_and_says_so(data_file, tmp_path, capsys):
    run = trainer(data_file, tmp_path / "run")
    run.save()
    state = checkpoint.load(tmp_path / "run") | {"identity": run._identity("tiny")}
    checkpoint.save(tmp_path / "run", state)
    assert run.resume()
    assert "noted its base by name alone" in capsys.readouterr().err
    run.save()
    assert run.resume()
    assert capsys.readouterr().err == ""


def test_a_run_starts_from_another_s_best_weights(data_file, tmp_path):
    first = trainer(data_file, tmp_path / "first")
    first.fit(1, 5)
    second = trainer(data_file, tmp_path / "second", learning_rate=1e-3)
    second.start_from(tmp_path / "first")
    assert equal(second.weights(), first.best["weights"]) and second.step == 0
    with pytest.raises(TrainingError, match="no such file"):
        second.start_from(tmp_path / "none")
    with pytest.raises(TrainingError, match="other weights"):
        trainer(data_file, tmp_path / "third", rank=2).start_from(tmp_path / "first")


def test_a_run_starts_from_an_adapter_s_file(data_file, tmp_path):
    first = trainer(data_file, tmp_path / "first")
    first.fit(1, 5)
    written = tmp_path / "first" / "adapter.gguf"
    second = trainer(data_file, tmp_path / "second", learning_rate=1e-3)
    second.start_from(written)
    found, expected = second.weights(), first.best["weights"]
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        # The file has them in f16.
        assert torch.allclose(found[name], value, rtol=1e-3, atol=1e-6), name
        assert value.abs().max() > 0
    other = tmp_path / "other.gguf"
    other.write_bytes(b"no GGUF at all")
    with pytest.raises(TrainingError, match="not an adapter"):
        second.start_from(other)
    with pytest.raises(TrainingError, match="another base"):
        trainer(data_file, tmp_path / "third", rank=2).start_from(written)
    with pytest.raises(TrainingError, match="--alpha"):
        trainer(data_file, tmp_path / "fourth", alpha=3.0).start_from(written)


def test_a_damaged_checkpoint_says_so(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run")
    (tmp_path / "run" / checkpoint.FILE).write_bytes(b"PK\x03\x04 not a checkpoint")
    with pytest.raises(TrainingError, match="damaged"):
        run.resume()


def test_a_loss_that_is_no_number_stops_and_loses_nothing(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run")
    run.save()
    before = (tmp_path / "run" / checkpoint.FILE).read_bytes()
    with torch.no_grad():
        next(iter(run.trained.values())).fill_(float("nan"))
    with pytest.raises(TrainingError, match="learning rate below"):
        run.fit(1, 0)
    assert (tmp_path / "run" / checkpoint.FILE).read_bytes() == before


def test_a_gradient_that_is_no_number_stops_and_loses_nothing(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run")
    run.save()
    before = (tmp_path / "run" / checkpoint.FILE).read_bytes()
    weights = run.weights()
    next(iter(run.trained.values())).register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(TrainingError, match="gradient's norm is .* checkpoint is whole.* learning rate below"):
        run.fit(1, 0)
    assert equal(run.weights(), weights)
    assert (tmp_path / "run" / checkpoint.FILE).read_bytes() == before
    (tmp_path / "run" / checkpoint.FILE).unlink()
    with pytest.raises(TrainingError, match="step 0: start a new run"):
        run.fit(1, 0)


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    with pytest.raises(TrainingError, match="make room .* there is no checkpoint yet"):
        checkpoint.save(tmp_path, FullDisk())
    checkpoint.save(tmp_path, {"step": 1})
    with pytest.raises(TrainingError, match="make room .* goes on from the last checkpoint"):
        checkpoint.save(tmp_path, FullDisk())
    assert checkpoint.load(tmp_path) == {"step": 1}
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.FILE]


class FullDisk:
    def __reduce__(self):
        raise OSError(28, "No space left on device")


def test_a_full_disk_at_export_loses_nothing(data_file, tmp_path, monkeypatch):
    whole = trainer(data_file, tmp_path / "whole")
    whole.fit(2, 5)
    run = trainer(data_file, tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(gguf.GGUFWriter, "write_tensors_to_file", no_room)
        with pytest.raises(TrainingError, match="adapter.gguf: .*No space.* goes on from the last checkpoint"):
            run.fit(2, 5)
    assert checkpoint.load(tmp_path / "run")["step"] == 2
    again = trainer(data_file, tmp_path / "run")
    assert again.resume()
    again.fit(2, 5)
    assert equal(again.weights(), whole.weights())
    assert sorted(p.name for p in again.run.iterdir()) == sorted(p.name for p in whole.run.iterdir())
    assert (again.run / "adapter.gguf").read_bytes() == (whole.run / "adapter.gguf").read_bytes()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("No space left on device")])
def test_a_full_disk_leaves_the_folder_before_it(data_file, tmp_path, monkeypatch, error):
    run = trainer(data_file, tmp_path / "run")
    run.fit(2, 5)
    before = (tmp_path / "run/peft/adapter_model.safetensors").read_bytes()

    def half(folder, **arguments):
        Path(folder).mkdir()
        (Path(folder) / "adapter_model.safetensors").write_bytes(b"half")
        raise error

    monkeypatch.setattr(run.model, "save_pretrained", half)
    with pytest.raises(TrainingError, match="peft: cannot be written: .*No space"):
        run.export()
    assert (tmp_path / "run/peft/adapter_model.safetensors").read_bytes() == before
    assert not list((tmp_path / "run").glob("*.part"))


def test_a_log_that_cannot_be_written_promises_no_checkpoint_where_there_is_none(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run")
    (tmp_path / "run/log.jsonl").mkdir()
    with pytest.raises(TrainingError, match="log.jsonl: cannot be written: .* there is no checkpoint yet"):
        run.evaluate([])
    run.save()
    with pytest.raises(TrainingError, match="log.jsonl: cannot be written: .* goes on from the last checkpoint"):
        run.evaluate([])


def no_room(*arguments):
    raise OSError(28, "No space left on device")


def test_the_adapter_is_written_in_llama_cpp_s_names_and_order(data_file, tmp_path):
    """Folding the written adapter into rows in llama.cpp's order is permuting the folded matrix."""
    run = trainer(data_file, tmp_path / "run")
    run.fit(1, 5)
    reader = gguf.GGUFReader(tmp_path / "run/adapter.gguf")
    assert reader.get_field("general.type").contents() == "adapter"
    assert reader.get_field("general.architecture").contents() == "llama"
    assert reader.get_field("stair.train.prefix_checksum").contents() == "00c0ffee00c0ffee"
    assert reader.get_field("adapter.lora.alpha").contents() == run.options.alpha
    tensors = {t.name: np.array(t.data, np.float32).reshape(tuple(reversed(t.shape.tolist()))) for t in reader.tensors}
    assert len(tensors) == 2 * 2 * 7
    weights = run.best["weights"]
    attention = "base_model.model.model.layers.1.self_attn.k_proj.lora_{}.default.weight"
    delta = weights[attention.format("B")] @ weights[attention.format("A")]
    heads, rows, columns = 2, *delta.shape
    expected = delta.view(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)
    written = tensors["blk.1.attn_k.weight.lora_b"] @ tensors["blk.1.attn_k.weight.lora_a"]
    assert np.allclose(written, expected.numpy(), atol=1e-3)
    assert (tmp_path / "run/peft/adapter_model.safetensors").exists()


@pytest.mark.parametrize(
    ("architecture", "interleaved"),
    [("llama", True), ("granite", True), ("smollm3", True), ("arcee", True), ("mistral3", True), ("olmo", True)]
    + [("qwen2", False), ("qwen3", False), ("gemma", False), ("cohere2", False), ("stablelm", False)],
)
def test_rows_are_interleaved_where_llama_cpp_wants_them(tmp_path, architecture, interleaved):
    config = model().config
    module = "base_model.model.model.layers.0.self_attn.{}_proj.lora_B"
    rows = {module.format(p): torch.arange(n)[:, None].float() for p, n in (("q", 32), ("k", 16), ("v", 16))}
    path = tmp_path / "adapter.gguf"
    adapter.write_lora(path, rows, architecture, config, 8.0, {})
    written = {t.name: t.data.flatten().tolist() for t in gguf.GGUFReader(path).tensors}
    pairs = [0, 4, 1, 5, 2, 6, 3, 7]
    head = pairs if interleaved else list(range(8))
    assert written["blk.0.attn_q.weight.lora_b"][8:16] == [8 + row for row in head]
    assert written["blk.0.attn_k.weight.lora_b"][8:16] == [8 + row for row in head]
    assert written["blk.0.attn_v.weight.lora_b"] == list(range(16))
    back = adapter.read_lora(path, {k: v.shape for k, v in rows.items()}, architecture, config, 8.0)
    assert equal(back, rows)


def test_every_architecture_whose_rows_are_known_is_one_of_llama_cpp_s():
    known = set(gguf.MODEL_ARCH_NAMES.values())
    assert adapter.INTERLEAVED | adapter.AS_THEY_ARE <= known
    assert not adapter.INTERLEAVED & adapter.AS_THEY_ARE


def test_an_architecture_whose_rows_are_not_known_is_refused(data_file, tmp_path):
    known = trainer(data_file, tmp_path / "run")
    unknown = bases.Base(known.base.model, known.base.path, "chatglm")
    with pytest.raises(TrainingError, match="queries and keys of 'chatglm' is not known"):
        Trainer(unknown, known.model, known.train, known.dev, known.run, known.options)


def test_full_fine_tuning_trains_every_weight(data_file, tmp_path):
    run = trainer(data_file, tmp_path / "run", full=True, epochs=2)
    before = run.weights()
    run.fit(1, 5)
    assert not any(torch.equal(before[name], value) for name, value in run.weights().items())
    assert (tmp_path / "run/model/config.json").exists()


def gguf_of(path: Path, state: dict, norms_plus: float = 0.0) -> None:
    """`state` as llama.cpp's converter writes it, apart from metadata that no test reads."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    for key, value in state.items():
        module, _, kind = key.rpartition(".")
        if module == "lm_head":
            continue
        heads = {"q_proj": 4, "k_proj": 2}.get(module.rpartition(".")[2])
        if heads:
            value = torch.cat([head[[0, 4, 1, 5, 2, 6, 3, 7]] for head in value.split(8)])
        plus = norms_plus if module.endswith("norm") else 0.0
        writer.add_tensor(f"{names.get_name(module)}.{kind}", value.numpy() + np.float32(plus))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def full_trainer(data_file, folder: Path, norms_plus: float = 0.0) -> Trainer:
    whole = model(attention_bias=True)
    with torch.no_grad():
        for name, value in whole.named_parameters():
            if name.endswith("bias"):
                value.copy_(torch.randn_like(value))
    gguf_of(folder / "base.gguf", whole.state_dict(), norms_plus)
    base = bases.Base(whole, folder / "base.gguf", "llama")
    file = data.read(data_file("train.jsonl"))
    run = folder / "run"
    run.mkdir()
    options = Options(**(OPTIONS | {"full": True, "epochs": 2}))
    return Trainer(base, whole, file, file, run, options)


def test_a_fully_tuned_model_is_written_in_llama_cpp_s_order_with_its_biases(data_file, tmp_path):
    run = full_trainer(data_file, tmp_path)
    before = {t.name: np.array(t.data) for t in gguf.GGUFReader(tmp_path / "base.gguf").tensors}
    run.fit(1, 5)
    gguf_of(tmp_path / "expected.gguf", run.best["weights"])
    expected = {t.name: t.data for t in gguf.GGUFReader(tmp_path / "expected.gguf").tensors}
    written = {t.name: t.data for t in gguf.GGUFReader(tmp_path / "run/model.gguf").tensors}
    assert written.keys() == expected.keys() == before.keys()
    for name, values in written.items():
        # Through bf16 and f16.
        assert np.allclose(values, expected[name], rtol=1e-2, atol=1e-3), name
        assert not np.array_equal(values.astype(np.float32), before[name]), name
    assert (tmp_path / "run/model/config.json").exists()
    assert not list((tmp_path / "run").glob("*.part"))


def test_a_model_that_cannot_be_written_back_is_refused_before_it_is_trained(data_file, tmp_path):
    with pytest.raises(TrainingError, match="norm.weight' of 'llama' is kept otherwise in GGUF"):
        full_trainer(data_file, tmp_path, norms_plus=1.0)


def test_the_command_says_what_is_wrong_in_one_line(data_file, tmp_path, capsys):
    arguments = ["--base", str(tmp_path / "no.gguf"), "--data", str(data_file("t.jsonl")), "-o", str(tmp_path / "r")]
    assert main(arguments) == 1
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "no.gguf").write_bytes(b"GGUF nothing")
    assert main(arguments) == 1
    assert "not a GGUF file" in capsys.readouterr().err


@pytest.mark.parametrize("dropout", ["1", "-0.1", "nan"])
def test_a_dropout_outside_its_range_is_refused(data_file, tmp_path, capsys, dropout):
    arguments = ["--base", "no.gguf", "--data", str(data_file("t.jsonl")), "-o", str(tmp_path / "r")]
    assert main([*arguments, f"--dropout={dropout}"]) == 1
    assert "--dropout wants" in capsys.readouterr().err


def test_another_vocabulary_than_the_base_s_is_refused():
    with pytest.raises(TrainingError, match=f"5 tokens, .* has {VOCABULARY}"):
        bases.check_vocabulary(bases.Base(model(), Path("x"), "llama"), 5)


def test_the_same_question_is_answered_however_it_is_batched():
    questions = [example(0, [40, 41]), example(1, [43]), example(2, [44, 45, 46])]
    trained = model()
    recalls = {
        loop.recall_at_1(trained, PREFIX, LEAVES, questions, torch.device("cpu"), batch) for batch in (1, 2, 3)
    }
    assert len(recalls) == 1
