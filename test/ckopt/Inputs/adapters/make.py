"""make.py FOLDER: adapters.onnx, with weights in the forms that files have (read transposed, stored
in f16, read twice, left of the product); quantized.onnx, with an int8 weight; adapters.npz, its data; lora.safetensors and dora.safetensors,
adapters that were trained for a while; lora.npz and dora.npz, loss and gradients in float64 by
PyTorch, with PEFT's formulas. Needs torch, onnx and safetensors."""
import sys

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

RANK, ALPHA = 2, 6
rng = np.random.default_rng(7)
weights = {
    "fc1.weight": rng.standard_normal((8, 6)).astype(np.float32),
    "fc1.bias": rng.standard_normal(8).astype(np.float32),
    "onnx::MatMul_7": (rng.standard_normal((8, 8)) / 2).astype(np.float16),
    "mix": rng.standard_normal((3, 2)).astype(np.float32),
    "head.weight": rng.standard_normal((12, 5)).astype(np.float32),
}
node = helper.make_node
graph = helper.make_graph([
    node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["a"], transB=1, alpha=0.5, name="/fc1/Gemm"),
    node("Tanh", ["a"], ["b"]),
    node("Cast", ["onnx::MatMul_7"], ["w"], to=TensorProto.FLOAT),
    node("MatMul", ["b", "w"], ["c"], name="/body/fc2/fc2.0/MatMul"),
    node("Tanh", ["c"], ["d"]),
    node("MatMul", ["d", "w"], ["e"], name="/body/fc2/fc2.0/MatMul_1"),
    node("Reshape", ["e", "shape3"], ["f"]),
    node("MatMul", ["mix", "f"], ["g"], name="/mix/MatMul"),
    node("Tanh", ["g"], ["h"]),
    node("Reshape", ["h", "shape2"], ["i"]),
    node("MatMul", ["i", "head.weight"], ["logits"], name="/head/MatMul"),
], "adapters", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 5])],
    [numpy_helper.from_array(value, name) for name, value in weights.items()] +
    [numpy_helper.from_array(np.array(shape), name) for name, shape in
     (("shape3", [-1, 2, 4]), ("shape2", [-1, 12]))])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
onnx.checker.check_model(model)
folder = sys.argv[1]
onnx.save(model, f"{folder}/adapters.onnx")
graph = helper.make_graph([
    node("DequantizeLinear", ["fc.weight_quantized", "scale", "zero"], ["w"], axis=0, name="dequantize"),
    node("Gemm", ["x", "w"], ["a"], transB=1, name="fc"),
    node("Tanh", ["a"], ["b"]),
    node("MatMul", ["b", "head.weight"], ["logits"], name="head"),
], "quantized", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 5])],
    [numpy_helper.from_array(rng.integers(-127, 128, (700, 6), dtype=np.int8), "fc.weight_quantized"),
     numpy_helper.from_array(rng.uniform(0.001, 0.01, 700).astype(np.float32), "scale"),
     numpy_helper.from_array(np.zeros(700, np.int8), "zero"),
     numpy_helper.from_array(np.sin(np.arange(3500, dtype=np.float32)).reshape(700, 5), "head.weight")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
onnx.checker.check_model(model)
onnx.save(model, f"{folder}/quantized.onnx")
x, y = rng.standard_normal((4, 6)).astype(np.float32), rng.integers(0, 5, 4)
np.savez(f"{folder}/adapters.npz", x=x, y=y)


# [outputs, inputs] of each product
wide = {name: torch.from_numpy(value.astype(np.float64)) for name, value in weights.items()}
matrices = {"fc1": wide["fc1.weight"], "body.fc2.0": wide["onnx::MatMul_7"].T, "mix": wide["mix"]}
down = {name: rng.standard_normal((RANK, w.shape[1])) / 2 for name, w in matrices.items()}
up = {name: rng.standard_normal((w.shape[0], RANK)) / 2 for name, w in matrices.items()}
magnitude = {name: w.norm(dim=1).numpy() * rng.uniform(0.5, 1.5, w.shape[0]) for name, w in matrices.items()}
for dora in (False, True):
    parts = {}
    for name in matrices:
        parts[f"base_model.model.{name}.lora_A.weight"] = down[name].astype(np.float32)
        parts[f"base_model.model.{name}.lora_B.weight"] = up[name].astype(np.float32)
        if dora:
            parts[f"base_model.model.{name}.lora_magnitude_vector"] = magnitude[name].astype(np.float32)
    kind = "dora" if dora else "lora"
    save_file(parts, f"{folder}/{kind}.safetensors", metadata={"format": "pt"})
    trained = {name: torch.from_numpy(value.astype(np.float64)).requires_grad_()
               for name, value in parts.items()}

    def matrix(name):
        own = {key.rsplit("lora_", 1)[1]: value for key, value in trained.items() if f".{name}.lora" in key}
        w = matrices[name] + ALPHA / RANK * own["B.weight"] @ own["A.weight"]
        if dora:
            w = (own["magnitude_vector"] / w.norm(dim=1).detach())[:, None] * w
        return w

    b = torch.tanh(0.5 * torch.from_numpy(x).double() @ matrix("fc1").T + wide["fc1.bias"])
    e = torch.tanh(b @ matrix("body.fc2.0").T) @ matrix("body.fc2.0").T
    h = torch.tanh(matrix("mix") @ e.reshape(-1, 2, 4))
    loss = torch.nn.functional.cross_entropy(h.reshape(-1, 12) @ wide["head.weight"], torch.from_numpy(y))
    loss.backward()
    np.savez(f"{folder}/{kind}.npz", loss=loss.detach().numpy(),
             **{f"grad/{name}": value.grad.numpy() for name, value in trained.items()})
