# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights as Transformers and PEFT write and read them; skipped where these are missing."""

import json
import shutil

import numpy
import pytest
from conftest import run_driver

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

import ckopt  # noqa: E402
import ckopt.torch  # noqa: E402

SETTINGS = dict(threads=2, effort=0)


class Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.lm = model

    def forward(self, input_ids, labels):
        return self.lm(input_ids=input_ids, labels=labels, use_cache=False).loss


def llama(seed, **given):
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **dict(dict(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                    num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False),
               **given)))


def export(module, path):
    ids = torch.randint(0, 64, (2, 6))
    batch = torch.export.Dim("batch", min=1, max=64)
    torch.onnx.export(module, (ids, ids.clone()), str(path), dynamo=True, optimize=False,
                      verbose=False, input_names=["input_ids", "labels"],
                      output_names=["loss"], dynamic_shapes=({0: batch}, {0: batch}))


@pytest.fixture
def batch():
    ids = numpy.random.default_rng(0).integers(0, 64, (4, 6))
    return dict(input_ids=ids, labels=ids)


@pytest.fixture
def published(tmp_path):
    """A model in two shards of bf16, and a file of the same network with other weights."""
    model = llama(1).to(torch.bfloat16)
    model.save_pretrained(tmp_path / "hf", max_shard_size="10KB")
    export(Loss(llama(2)), tmp_path / "m.onnx")
    return tmp_path / "hf", tmp_path / "m.onnx"


def loss_of(folder, batch):
    model = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return float(Loss(model)(**{k: torch.tensor(v) for k, v in batch.items()}))


def test_shards_are_read_by_folder_index_and_one_by_one(published, batch):
    folder, path = published
    index = folder / "model.safetensors.index.json"
    assert len(set(json.loads(index.read_text())["weight_map"].values())) == 2
    want = loss_of(folder, batch)
    for given in (folder, f"{folder}/", index):
        step = ckopt.compile(path, optimizer="sgd", lr=0, batch=4, weights=given, **SETTINGS)
        assert step(**batch) == pytest.approx(want, rel=1e-6)
    first = sorted(folder.glob("*.safetensors"))[0]
    step = ckopt.compile(path, optimizer="sgd", batch=4, weights=first, **SETTINGS)
    for name, value in safetensors.load_file(first).items():
        numpy.testing.assert_array_equal(step.state_dict()["lm." + name], value.float())


def test_a_tied_weight_goes_by_either_name(batch, tmp_path):
    """A file has the name that the model's file has not; folders keep the name of theirs."""
    tied = dict(tie_word_embeddings=True)
    export(Loss(llama(2, **tied)), tmp_path / "m.onnx")
    llama(1, **tied).save_pretrained(tmp_path / "hf")
    names = set(safetensors.load_file(tmp_path / "hf/model.safetensors"))
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    want = loss_of(tmp_path / "hf", batch)
    common = dict(optimizer="sgd", lr=0, batch=4, **SETTINGS)
    step = ckopt.compile(tmp_path / "m.onnx", weights=tmp_path / "hf", **common)
    assert step(**batch) == pytest.approx(want, rel=1e-6)
    step.save(f"{tmp_path}/out/")
    assert set(safetensors.load_file(tmp_path / "out/model.safetensors")) == names
    assert loss_of(tmp_path / "out", batch) == pytest.approx(want, rel=1e-6)
    both = safetensors.load_file(tmp_path / "hf/model.safetensors")
    both["lm_head.weight"] = both["model.embed_tokens.weight"].clone()
    safetensors.save_file(both, tmp_path / "both.safetensors")
    step = ckopt.compile(tmp_path / "m.onnx", weights=tmp_path / "both.safetensors", **common)
    assert step(**batch) == pytest.approx(want, rel=1e-6)
    both["lm_head.weight"] += 1
    safetensors.save_file(both, tmp_path / "both.safetensors")
    with pytest.raises(ckopt.InputError, match="have other numbers, and are one weight"):
        ckopt.compile(tmp_path / "m.onnx", weights=tmp_path / "both.safetensors", **common)


@pytest.mark.parametrize("tied", [False, True])
def test_a_modules_step_saves_a_folder_with_its_configuration(tied, batch, tmp_path):
    model = llama(3, tie_word_embeddings=tied)
    step = ckopt.torch.compile_step(
        Loss(model.train()), {k: torch.tensor(v) for k, v in batch.items()},
        optimizer=ckopt.SGD(lr=0.5), **SETTINGS)
    step(**batch)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    step.save(f"{tmp_path}/out/")
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])  # sync() alone writes to the module
    loaded, info = transformers.LlamaForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert loss_of(tmp_path / "out", batch) == pytest.approx(
        step.evaluate(**batch)["loss"], rel=1e-5)
    step.sync()
    for name, value in model.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[name])


def test_damaged_sets_are_refused(published):
    folder, path = published

    def error(given):
        with pytest.raises(ckopt.InputError) as info:
            ckopt.compile(path, optimizer="sgd", batch=4, weights=given, **SETTINGS)
        return str(info.value)

    index = folder / "model.safetensors.index.json"
    whole = json.loads(index.read_text())
    name, file = next(iter(whole["weight_map"].items()))
    other = next(f for f in whole["weight_map"].values() if f != file)
    index.write_text(json.dumps({"weight_map": {**whole["weight_map"], name: other}}))
    assert f"lacks what its index says: '{name}'" in error(folder)
    index.write_text(json.dumps({"weight_map": {name: "../x.safetensors"}}))
    assert "is in no .safetensors of its folder" in error(folder)
    index.write_text("{}")
    assert "weight_map" in error(index)
    index.unlink()
    assert "several sets of weights" in error(folder)
    (folder / file).unlink()
    empty = folder.parent / "empty"
    empty.mkdir()
    assert "has no .safetensors" in error(empty)
    index.write_text(json.dumps(whole))
    assert file in error(folder)


def test_another_network_is_still_refused(published, tmp_path):
    _, path = published
    other = tmp_path / "other.safetensors"
    safetensors.save_file({f"encoder.{i}.weight": torch.zeros(3) for i in range(4)}, other)
    with pytest.raises(ckopt.InputError, match="holds no weight of"):
        ckopt.compile(path, optimizer="sgd", batch=4, weights=other, **SETTINGS)


def test_a_folder_is_loaded_by_from_pretrained(published, batch, tmp_path):
    folder, path = published
    step = ckopt.compile(path, optimizer="sgd", lr=0.5, batch=4, weights=folder, **SETTINGS)
    for _ in range(2):
        step(**batch)
    out = tmp_path / "out"
    step.save(f"{out}/")
    model, info = transformers.LlamaForCausalLM.from_pretrained(
        out, output_loading_info=True, dtype=torch.float32)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    names = set(safetensors.load_file(out / "model.safetensors"))
    assert names == set(json.loads(
        (folder / "model.safetensors.index.json").read_text())["weight_map"])
    values = step.state_dict()
    for name, value in model.state_dict().items():
        numpy.testing.assert_array_equal(values["lm." + name], value)
    step.save(out, max_shard_size=8000)
    assert len(list(out.glob("model-*"))) > 2 and not (out / "model.safetensors").exists()
    assert loss_of(out, batch) == pytest.approx(step.evaluate(**batch)["loss"], rel=1e-5)
    with pytest.raises(ckopt.UsageError, match="began with"):
        step.save(folder)
    data = tmp_path / "d.npz"
    numpy.savez(data, **batch)
    common = ["train", path, f"--data={data}", "--batch=4", "--max-steps=1"]
    shard = sorted(folder.glob("*.safetensors"))[0]
    for given in (folder, shard, folder / "model.safetensors.index.json"):
        run_driver(*common, f"--weights={given}", "-o", f"{folder}/", code=64)
    new = tmp_path / "new"
    run_driver(*common, f"--checkpoint={new}/model.safetensors", "-o", f"{new}/", code=64)
    assert loss_of(folder, batch) > 0
    # Over shards of another save nothing of these stays.
    shutil.copytree(folder, tmp_path / "again")
    step.save(tmp_path / "again")
    assert not list((tmp_path / "again").glob("model-*"))
    assert loss_of(tmp_path / "again", batch) == pytest.approx(loss_of(out, batch), rel=0)


def test_what_was_trained_alone_is_what_peft_reads(tmp_path, batch):
    peft = pytest.importorskip("peft")
    base = llama(3)
    base.save_pretrained(tmp_path / "base")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], use_dora=True)
    module = Loss(peft.get_peft_model(base, config))
    export(module, tmp_path / "m.onnx")
    data = tmp_path / "d.npz"
    numpy.savez(data, **batch)
    out = tmp_path / "adapter"
    run_driver("train", tmp_path / "m.onnx", f"--data={data}", "--train=.*lora_.*", "--batch=4",
               "--optimizer=sgd", "--lr=1", "--max-steps=2", "--save-trained", "-o", f"{out}/")
    module.lm.peft_config["default"].save_pretrained(out)
    loaded = peft.PeftModel.from_pretrained(
        transformers.LlamaForCausalLM.from_pretrained(tmp_path / "base"), out)
    mine = safetensors.load_file(out / "adapter_model.safetensors")
    assert mine and all("lora_" in name for name in mine)
    module.lm.save_pretrained(tmp_path / "peft")
    theirs = safetensors.load_file(tmp_path / "peft/adapter_model.safetensors")
    assert {k: v.shape for k, v in mine.items()} == {k: v.shape for k, v in theirs.items()}
    got = peft.get_peft_model_state_dict(loaded)
    assert all(torch.equal(got[name], value) for name, value in mine.items())
    assert any(not torch.equal(theirs[name], value) for name, value in mine.items())
    # And read again: the names of PEFT's files are those of the module's weights.
    step = ckopt.compile(tmp_path / "m.onnx", optimizer="sgd", batch=4, train=".*lora_.*",
                         weights=out / "adapter_model.safetensors", **SETTINGS)
    again = tmp_path / "again.safetensors"
    step.save(again, trained=True)
    for name, value in safetensors.load_file(again).items():
        assert torch.equal(mine[name], value)


def test_steps_of_several_lengths_train_one_model(tmp_path):
    module = Loss(llama(4))
    ids = torch.randint(0, 64, (2, 6))
    dims = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("seq", min=2, max=64)}
    path = tmp_path / "m.onnx"
    torch.onnx.export(module, (ids, ids.clone()), str(path), dynamo=True, optimize=False,
                      verbose=False, input_names=["input_ids", "labels"],
                      output_names=["loss"], dynamic_shapes=(dims, dims))
    rng = numpy.random.default_rng(0)
    batches = [rng.integers(0, 64, (4, length)) for length in (6, 10, 6, 10)]
    steps = {length: ckopt.compile(path, optimizer=ckopt.AdamW(lr=0.1), batch=4,
                                   dim={"seq": length}, **SETTINGS) for length in (6, 10)}
    last = None
    for ids in batches:
        step = steps[ids.shape[1]]
        if last and last is not step:
            step.resume(last)
        step(input_ids=ids, labels=ids)
        last = step
    assert last.updates == 4
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
    for ids in batches:
        optimizer.zero_grad()
        ids = torch.tensor(ids)
        module(ids, ids).backward()
        optimizer.step()
    state = last.state_dict()
    for name, parameter in module.named_parameters():
        numpy.testing.assert_allclose(state[name], parameter.detach(), atol=2e-4)
    other = ckopt.compile(path, optimizer=ckopt.AdamW(lr=0.2), batch=4, dim={"seq": 6}, **SETTINGS)
    with pytest.raises(ckopt.InputError, match="its .lr. is .0.1., here it is .0.2."):
        other.resume(last)


def export_lengths(module, path):
    ids = torch.randint(0, 64, (2, 6))
    dims = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("seq", min=2, max=64)}
    torch.onnx.export(module, (ids, ids.clone()), str(path), dynamo=True, optimize=False,
                      verbose=False, input_names=["input_ids", "labels"],
                      output_names=["loss"], dynamic_shapes=(dims, dims))


def test_steps_of_one_arena_are_those_apart(tmp_path):
    """Lengths and batches in turn: the bits of steps that hand their state on, in one arena."""
    class Scaled(Loss):
        """Has a constant of its own in each step."""

        def forward(self, input_ids, labels):
            scale = torch.arange(3000.0).sin().sum()
            table = torch.tensor([float(i % 7) for i in range(2048)])
            loss = self.lm(input_ids=input_ids, labels=labels, use_cache=False).loss
            return loss * (table[input_ids].mean() + scale)

    path = tmp_path / "m.onnx"
    export_lengths(Scaled(llama(5)), path)
    rng = numpy.random.default_rng(0)
    shapes = [(4, 12), (4, 6), (2, 12), (4, 6), (4, 12), (2, 12)]
    batches = [rng.integers(0, 64, shape) for shape in shapes]
    settings = dict(optimizer=ckopt.AdamW(lr=0.1, accumulate=2, ema=0.9), budget="min", **SETTINGS)

    def make(batch, seq):
        return ckopt.compile(path, batch=batch, dim={"seq": seq}, **settings)

    largest = make(4, 12)
    steps = {(4, 12): largest, (4, 6): largest.at(dim={"seq": 6}), (2, 12): largest.at(batch=2)}
    arena = largest.memory["planned_peak_bytes"]
    assert all(step.memory["planned_peak_bytes"] <= arena for step in steps.values())
    losses = [steps[ids.shape](input_ids=ids, labels=ids) for ids in batches]
    assert all(step.updates == 3 for step in steps.values())
    assert all(step.memory["measured_peak_bytes"] <= arena for step in steps.values())
    states = [step.state_dict(averaged=averaged) for step in steps.values()
              for averaged in (False, True)]
    for pair in zip(states[0::2], states[2::2], states[4::2]):
        for name, value in pair[0].items():
            assert all((value == other[name]).all() for other in pair)

    assert len(losses) == 6 and numpy.isfinite(losses).all()

    # Steps in arenas of their own, which hand on what they have after each batch.
    plain = dict(settings, optimizer=ckopt.AdamW(lr=0.1))
    single = ckopt.compile(path, batch=4, dim={"seq": 6}, **plain)
    beside = ckopt.compile(path, batch=4, dim={"seq": 12}, **plain)
    one = beside.at(dim={"seq": 6})
    rng = numpy.random.default_rng(1)
    last = single
    other = ckopt.compile(path, batch=4, dim={"seq": 12}, **plain)
    for length in (6, 12, 12, 6):
        ids = rng.integers(0, 64, (4, length))
        mine, theirs = (one, single) if length == 6 else (beside, other)
        if theirs is not last:
            theirs.resume(last)
        last = theirs
        assert mine(input_ids=ids, labels=ids) == theirs(input_ids=ids, labels=ids)
        assert mine.evaluate(input_ids=ids, labels=ids) == \
            theirs.evaluate(input_ids=ids, labels=ids)
    for name, value in last.state_dict().items():
        assert (value == one.state_dict()[name]).all()
    with pytest.raises(ckopt.BudgetError):
        single.at(dim={"seq": 64}, batch=64)
    saved = tmp_path / "c.ckpt"
    one.checkpoint(saved)
    again = ckopt.compile(path, batch=4, dim={"seq": 6}, **plain)
    assert again.resume(saved) == 4
    ids = rng.integers(0, 64, (4, 6))
    assert again(input_ids=ids, labels=ids) == one(input_ids=ids, labels=ids)
