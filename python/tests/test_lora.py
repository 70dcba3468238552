# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adapters beside PEFT's; skipped, loudly, where torch, its exporter or peft is missing."""

import copy
import json

import numpy
import pytest
from conftest import run_driver

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
peft = pytest.importorskip("peft")

import ckopt  # noqa: E402
import ckopt.torch  # noqa: E402

nn = torch.nn
SETTINGS = dict(threads=2, effort=0)


class Block(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.q_proj = nn.Linear(size, size)
        self.v_proj = nn.Linear(size, size, bias=False)
        self.out = nn.Linear(size, size)

    def forward(self, x):
        h = self.norm(x)
        weights = torch.softmax(self.q_proj(h) @ h.transpose(1, 2) / 4, -1)
        return x + self.out(weights @ self.v_proj(h))


class Network(nn.Module):
    def __init__(self, classes=7):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(16, classes, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(0)
    network = Network().eval()
    path = tmp_path / "model.onnx"
    ids = torch.randint(0, 20, (4, 6))
    torch.onnx.export(network, (ids,), str(path), input_names=["ids"], dynamo=True,
                      optimize=False, verbose=False)
    return network, path


def batches(count):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 20, (4, 6), generator=generator),
             torch.randint(0, 7, (4,), generator=generator)) for _ in range(count)]


def adapted(network, step, **settings):
    """PEFT's model with the adapters of the step as they are now."""
    config = peft.LoraConfig(r=4, lora_alpha=12, bias="none", **settings)
    model = peft.get_peft_model(copy.deepcopy(network), config)
    state = {name: torch.from_numpy(value.copy()) for name, value in step.state_dict().items()
             if "lora_" in name}
    result = peft.set_peft_model_state_dict(model, state)
    assert not result.unexpected_keys
    expected = peft.get_peft_model_state_dict(model)
    assert set(state) == set(expected), "PEFT's names"
    return model, expected


TARGETS = ["q_proj", "v_proj", "out"]


@pytest.mark.parametrize("dora", [False, True])
def test_training_is_pefts(model, dora):
    """Names, first values, losses and trained adapters are PEFT's."""
    network, path = model
    step = ckopt.compile(path, loss="cross_entropy", optimizer=ckopt.SGD(lr=0.5),
                         lora=ckopt.LoRA(4, alpha=12, dora=dora), **SETTINGS)
    tuned, first = adapted(network, step, target_modules=TARGETS, use_dora=dora)
    for name, value in first.items():
        if "lora_A" in name:
            assert value.abs().max() <= 0.25 and value.abs().max() > 0.2  # 1 / sqrt(16)
        elif "lora_B" in name:
            assert not value.any()
        else:
            module = network.get_submodule(name[len("base_model.model."):].rsplit(".", 1)[0])
            torch.testing.assert_close(value, module.weight.detach().norm(dim=1))
    optimizer = torch.optim.SGD([p for p in tuned.parameters() if p.requires_grad], lr=0.5)
    for ids, y in batches(8):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(tuned(ids), y)
        loss.backward()
        optimizer.step()
        assert step(ids=ids.numpy(), y=y.numpy()) == pytest.approx(loss.item(), rel=2e-5)
    state = step.state_dict()
    for name, value in peft.get_peft_model_state_dict(tuned).items():
        numpy.testing.assert_allclose(state[name], value.numpy(), rtol=2e-3, atol=2e-5,
                                      err_msg=name)
    frozen = {name: value for name, value in network.state_dict().items() if name in state}
    assert len(frozen) > 10
    for name, value in frozen.items():
        assert numpy.array_equal(state[name], value.numpy()), f"{name} is frozen"


@pytest.mark.parametrize("dora", [False, True])
def test_files_go_both_ways(model, tmp_path, dora):
    """PEFT loads what ckopt writes; both programs' adapters are merged to their outputs."""
    network, path = model
    step = ckopt.compile(path, loss="cross_entropy", optimizer=ckopt.SGD(lr=0.5),
                         lora=ckopt.LoRA(4, alpha=12, targets="q_proj|v_proj", dora=dora),
                         **SETTINGS)
    for ids, y in batches(4):
        step(ids=ids.numpy(), y=y.numpy())
    ours = tmp_path / "ours"
    ours.mkdir()
    step.save(ours / "adapter_model.safetensors")
    ids = batches(1)[0][0]
    expected = step.predict(ids=ids.numpy())
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(network), str(ours))
    numpy.testing.assert_allclose(loaded(ids).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    assert json.loads((ours / "adapter_config.json").read_text())["use_dora"] is dora

    theirs = tmp_path / "theirs"
    with torch.no_grad():
        for name, value in loaded.named_parameters():
            if "lora_" in name:
                value.add_(torch.randn(value.shape) * 0.05)
    loaded.save_pretrained(str(theirs))
    numpy.savez(tmp_path / "data.npz", ids=ids.numpy())
    for folder, outputs in ((ours, expected), (theirs, loaded(ids).detach().numpy())):
        merged = tmp_path / f"{folder.name}.onnx"
        run_driver("merge", path, f"--weights={folder}", "-o", merged)
        out = tmp_path / f"{folder.name}.npz"
        run_driver("run", merged, f"--data={tmp_path / 'data.npz'}", "-o", out)
        numpy.testing.assert_allclose(next(iter(numpy.load(out).values())), outputs, rtol=1e-4,
                                      atol=1e-5)


def test_dropout_and_budget(model):
    """Dropout on the adapter's input draws the same numbers at every budget."""
    _, path = model
    runs = []
    for budget in (None, "min"):
        step = ckopt.compile(path, loss="cross_entropy", optimizer=ckopt.AdamW(lr=0.01),
                             budget=budget, lora=ckopt.LoRA(4, dropout=0.3, dora=True), **SETTINGS)
        runs.append([step(ids=ids.numpy(), y=y.numpy()) for ids, y in batches(6)])
    assert runs[0] == runs[1]
    plain = ckopt.compile(path, loss="cross_entropy", optimizer=ckopt.AdamW(lr=0.01),
                          lora="4::", **SETTINGS)
    assert [plain(ids=ids.numpy(), y=y.numpy()) for ids, y in batches(6)] != runs[0]


def test_refused(model, tmp_path):
    """What cannot be is an error that says what could."""
    network, path = model
    with pytest.raises(ckopt.InputError, match="layers.0.q_proj"):
        ckopt.compile(path, loss="cross_entropy", lora="4:8:nothing", **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="lora"):
        ckopt.compile(path, loss="cross_entropy", dora=True, **SETTINGS)
    step = ckopt.compile(path, loss="cross_entropy", lora=ckopt.LoRA(4), **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="ckopt merge"):
        step.save(tmp_path / "tuned.onnx")
    with pytest.raises(ckopt.UsageError, match="PEFT"):
        ckopt.torch.compile_step(network, batches(1)[0][0], loss="cross_entropy", lora="4")
