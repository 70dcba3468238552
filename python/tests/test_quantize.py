# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules whose frozen weights are stored in few bits."""

import copy

import pytest
from conftest import run_driver

torch = pytest.importorskip("torch")

import ckopt  # noqa: E402
import ckopt.torch  # noqa: E402
from torch import nn  # noqa: E402


class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(4, base.in_features) / 8)
        self.up = nn.Parameter(torch.randn(base.out_features, 4) / 8)

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


class Tied(nn.Module):
    """A language model of one layer, its head tied to its embedding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 128)
        self.layer = Adapted(nn.Linear(128, 128))
        self.head = nn.Linear(128, 256, bias=False)
        self.head.weight = self.embed.weight
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name in ("layer.down", "layer.up"))

    def forward(self, tokens):
        return self.head(torch.tanh(self.layer(self.embed(tokens))))


@pytest.mark.parametrize("kind, bits", [("int8", 8), ("int4", 4), ("nf4", 4)])
def test_a_tied_model_learns_on_few_bits(kind, bits):
    """The step's losses are those of the quantized module in PyTorch; a weight takes its bits."""
    torch.manual_seed(0)
    model = Tied()
    plain = copy.deepcopy(model.head.weight)
    assert ckopt.torch.quantize_base(model, kind, group=32) == ["embed", "head", "layer.base"]
    assert model.head.matrix is model.embed.matrix
    worst = (model.head.weight - plain).abs().max() / plain.abs().max()
    assert worst < {"int8": 0.01, "int4": 0.1, "nf4": 0.2}[kind]
    tokens, targets = torch.randint(0, 256, (16,)), torch.randint(0, 256, (16,))
    peer = copy.deepcopy(model)
    step = ckopt.torch.compile_step(model, (tokens,), loss="cross_entropy", optimizer=ckopt.SGD(lr=0.1))
    optimizer = torch.optim.SGD([p for p in peer.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        expected = nn.functional.cross_entropy(peer(tokens), targets)
        assert step(tokens, targets) == pytest.approx(expected.item(), rel=1e-5)
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
    step.sync()
    assert torch.allclose(model.layer.up, peer.layer.up, atol=1e-5)


def test_only_frozen_layers_are_quantized():
    """What is trained, small, or not made of groups stays; nothing to do is an error."""
    model = nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 16), nn.Linear(16, 100), nn.Linear(100, 100))
    with pytest.raises(ckopt.InputError, match="freeze the base first"):
        ckopt.torch.quantize_base(model)
    model.requires_grad_(False)
    assert ckopt.torch.quantize_base(model) == ["0"]
    with pytest.raises(ckopt.UsageError, match="groups are of 32, 64 or 128"):
        ckopt.torch.quantize_base(model, group=48)
    with pytest.raises(ckopt.UsageError, match="int3"):
        ckopt.torch.quantize_base(model, "int3")


@pytest.mark.parametrize("bits", ["bf16", "int4"])
def test_a_base_in_few_bits_takes_adapters(tmp_path, bits):
    """A Llama of bf16, and quantized by the driver: no whole logits, scores or wide weights exist."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=640, hidden_size=128, intermediate_size=384, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2)).to(torch.bfloat16)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.lm = model

        def forward(self, input_ids, labels):
            return self.lm(input_ids=input_ids, labels=labels, use_cache=False).loss

    ids = torch.randint(0, 640, (2, 256))
    path = tmp_path / "bf16.onnx"
    torch.onnx.export(Loss().eval(), (ids, ids.clone()), str(path), dynamo=True, optimize=False,
                      verbose=False, input_names=["input_ids", "labels"], output_names=["loss"])
    if bits == "int4":
        run_driver("quantize", path, "--type=int4", "--group-size=32", "-o", tmp_path / "int4.onnx")
        path = tmp_path / "int4.onnx"
    else:
        with torch.no_grad():
            want = float(Loss()(ids, ids))
    ir = tmp_path / "step.mlir"
    run_driver("plan", path, "--lora=4", "--optimizer=adamw", "--chunk-vocab=64",
               "--compile-to=fuse", "-o", ir)
    text = ir.read_text()
    assert "4x256x256x" not in text and "512x640x" not in text and "ckopt.attention" in text
    assert "640x128xf32" not in text.split("func.func private")[0]
    step = ckopt.compile(path, lora="4", optimizer=ckopt.AdamW(lr=1e-2), chunk_vocab=64, threads=2)
    losses = [step(input_ids=ids.numpy(), labels=ids.numpy()) for _ in range(6)]
    if bits == "bf16":
        assert losses[0] == pytest.approx(want, rel=1e-2)
    assert losses[-1] < losses[0] - 0.05
