# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A base in bf16 is read as it is stored; skipped where a package is missing."""

import os
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT, run_driver

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
onnx = pytest.importorskip("onnx")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

import ckopt.torch  # noqa: E402
from test_weights import Loss  # noqa: E402


def export(path, dtype):
    """A small Llama with adapters at all layers, whose base has numbers of bf16."""
    torch.manual_seed(0)
    base = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=250, hidden_size=64, intermediate_size=160, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=24))
    model = peft.get_peft_model(base.to(torch.bfloat16).to(dtype), peft.LoraConfig(
        r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)).train()
    ids = torch.zeros(2, 24, dtype=torch.int64)
    ckopt.torch.export(Loss(model), {"input_ids": ids, "labels": ids}, str(path), check=False)


def store_as_bf16(source, target):
    """Matrices of the base become bf16, with a Cast where they are read."""
    model = onnx.load(source)
    for weight in model.graph.initializer:
        value = onnx.numpy_helper.to_array(weight)
        if value.dtype != numpy.float32 or value.ndim != 2 or "lora" in weight.name:
            continue
        high = (value.view(numpy.uint32) >> 16).astype(numpy.uint16)
        assert (value.view(numpy.uint32) & 0xffff == 0).all()
        for node in model.graph.node:
            for i, name in enumerate(node.input):
                if name == weight.name:
                    node.input[i] = name + ".wide"
        model.graph.node.insert(0, onnx.helper.make_node(
            "Cast", [weight.name], [weight.name + ".wide"], to=onnx.TensorProto.FLOAT))
        weight.CopyFrom(onnx.helper.make_tensor(
            weight.name, onnx.TensorProto.BFLOAT16, value.shape, high.tobytes(), raw=True))
    onnx.save(model, target)


def wide_copies(folder):
    script = os.path.join(ROOT, "test", "ckopt", "Inputs", "wide_copies.py")
    return subprocess.check_output([sys.executable, script, folder / "05-remat.mlir"], text=True)


COMMON = ["--batch=2", "--threads=2", "--train=.*lora.*", "--quiet"]


@pytest.mark.parametrize("isa", ["", "AVX2"])
def test_no_copy_of_a_weight_lives_between_kernels(tmp_path, monkeypatch, isa):
    """Gradients are those of the same numbers in f32, up to the order of sums; where activations
    are rounded, those of an embedding in bf16 are elsewhere."""
    if isa:  # a CPU without products of bf16
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", isa)
    export(tmp_path / "f32.onnx", torch.float32)
    store_as_bf16(tmp_path / "f32.onnx", tmp_path / "bf16.onnx")
    ids = numpy.random.default_rng(0).integers(0, 250, (2, 24))
    numpy.savez(tmp_path / "ids.npz", ids=ids)
    for precision, error in (("f32", 1e-5), ("bf16", 0.1), ("f16", 0.02)):
        run_driver("plan", tmp_path / "bf16.onnx", *COMMON, "--optimizer=adamw", "--effort=0",
                   f"--precision={precision}", f"--dump-phases={tmp_path / precision}")
        assert "wide copies of weights: none" in wide_copies(tmp_path / precision)
        gradients = []
        for file in ("f32", "bf16"):
            out = tmp_path / f"{file}.npz"
            run_driver("grad", tmp_path / f"{file}.onnx", *COMMON, f"--precision={precision}",
                       f"--data={tmp_path / 'ids.npz'}", "--inputs=input_ids=ids,labels=ids",
                       "-o", out)
            with numpy.load(out) as values:
                gradients.append(dict(values))
        assert len(gradients[0]) > 28 and gradients[0].keys() == gradients[1].keys()
        for name, value in gradients[0].items():
            off = numpy.abs(value - gradients[1][name]).max() / numpy.abs(value).max()
            assert off <= error, (precision, name)


def test_a_model_that_computes_in_bf16_has_no_copy(tmp_path):
    export(tmp_path / "m.onnx", torch.bfloat16)
    said = subprocess.run([sys.executable, "-m", "ckopt", "plan", tmp_path / "m.onnx", *COMMON,
                           "--optimizer=adamw", "--effort=0", f"--dump-phases={tmp_path / 'd'}"],
                          capture_output=True, text=True, check=False)
    if "no library primitive: matmul bf16" in said.stderr:
        pytest.skip("this CPU multiplies no bf16")
    assert said.returncode == 0, said.stderr
    assert "wide copies of weights: none" in wide_copies(tmp_path / "d")
