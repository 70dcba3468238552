"""masked_attention.py FORM TOKENS FILE [--data=NPZ]: one attention, masked as exporters write it at that length.

FORM: where (Transformers: ranges, compare, and, where, add), window (the same with a bound from
below), eager (the same for two samples, with the least f32), padded (with each sample's padding),
triangle (a table of bool), band (the same with a bound from below), bias (a table of 0 and -inf),
low (a table of 0 and the least f32), trilu (Trilu of ones), is_causal (the operator Attention),
left_window (the same with a window), softcap (Gemma 2: scores capped before a mask is added),
softcap_operator (the operator Attention with a softcap).
Packed samples: segments (numbers that are compared, as one writes it in PyTorch), positions
(Transformers: positions that start again, and numbers that count where they do), both (the same
with a window)."""

import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

form, tokens, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
width = 8
packs = form in ("segments", "positions", "both")
samples = 2 if packs or form == "eager" else 1
nodes, constants = [], []
inputs = [h.make_tensor_value_info("x", T.FLOAT, [samples, 2, tokens, width])]
if packs:
    inputs.append(h.make_tensor_value_info("numbers", T.INT64, [samples, tokens]))


def add(op, operands, result, **options):
    nodes.append(h.make_node(op, operands, [result], **options))


def constant(name, value, kind):
    constants.append(nh.from_array(np.asarray(value, dtype=kind), name))


for x in "qkv":
    constant("w" + x, np.linspace(0.5, 1.5, width), "f")
    add("Mul", ["x", "w" + x], x)
constant("zero", 0, "f")
constant("low", -np.inf, "f")
scores = "scores"
if form == "is_causal":
    add("Attention", ["q", "k", "v"], "o", is_causal=1)
elif form == "softcap_operator":
    add("Attention", ["q", "k", "v"], "o", is_causal=1, softcap=2.0)
elif form == "left_window":
    add("Attention", ["q", "k", "v"], "o", is_causal=1, left_window_size=tokens // 4 - 1)
else:
    add("Transpose", ["k"], "kt", perm=[0, 1, 3, 2])
    add("MatMul", ["q", "kt"], "scores")
    lower = np.tril(np.ones((tokens, tokens), dtype=bool))
    if form == "softcap":
        constant("scale", width**-0.5, "f")
        constant("cap", 2, "f")
        add("Mul", ["scores", "scale"], "scaled")
        add("Div", ["scaled", "cap"], "ratio")
        add("Tanh", ["ratio"], "tanh")
        add("Mul", ["tanh", "cap"], "capped")
        scores = "capped"
    if form in ("where", "window", "padded", "eager", "softcap"):
        row = np.repeat(np.arange(tokens).reshape(1, 1, -1, 1), samples, 0)
        constant("row", row, "i8")
        constant("column", row.reshape(samples, 1, 1, -1), "i8")
        constant("one", np.ones((1, 1, 1, 1)), bool)
        add("LessOrEqual", ["column", "row"], "le")
        add("And", ["one", "le"], "open0")
        last = "open0"
        if form in ("window", "eager"):
            constant("from", row - tokens // 4, "i8")
            add("Greater", ["column", "from"], "gt")
            add("And", ["open0", "gt"], "open1")
            last = "open1"
        elif form == "padded":
            inputs.append(h.make_tensor_value_info("keep", T.BOOL, [1, 1, 1, tokens]))
            add("And", ["open0", "keep"], "open1")
            last = "open1"
        if form == "eager":
            constant("least", -3.4028234663852886e38, "f")
        add("Where", [last, "zero", "least" if form == "eager" else "low"], "mask")
        add("Add", [scores, "mask"], "masked")
    elif form == "segments":
        constant("at2", [2], "i8")
        constant("at1", [1], "i8")
        add("Unsqueeze", ["numbers", "at2"], "ofRows")
        add("Unsqueeze", ["numbers", "at1"], "ofKeys")
        add("Equal", ["ofRows", "ofKeys"], "same")
        constant("row", np.arange(tokens).reshape(-1, 1), "i8")
        constant("column", np.arange(tokens).reshape(1, -1), "i8")
        add("LessOrEqual", ["column", "row"], "le")
        add("And", ["same", "le"], "open0")
        add("Unsqueeze", ["open0", "at1"], "open")
        add("Where", ["open", "scores", "low"], "masked")
    elif packs:
        constant("n0", [0], "i8")
        constant("n1", [1], "i8")
        constant("last", [tokens], "i8")
        constant("end", [tokens + 1], "i8")
        constant("axis", [1], "i8")
        constant("one", 1, "i8")
        add("Slice", ["numbers", "n0", "n1", "axis"], "start")
        add("Sub", ["start", "one"], "before")
        add("Concat", ["before", "numbers"], "all", axis=1)
        add("Slice", ["all", "n0", "last", "axis"], "left")
        add("Slice", ["all", "n1", "end", "axis"], "right")
        add("Sub", ["right", "left"], "step")
        add("Equal", ["step", "one"], "counts")
        add("Not", ["counts"], "breaks")
        add("Cast", ["breaks"], "broken", to=T.INT64)
        add("CumSum", ["broken", "one"], "segment")
        at = np.stack(np.broadcast_arrays(np.arange(samples)[:, None], np.arange(tokens)), -1)
        constant("atRows", at.reshape(samples, 1, tokens, 1, 2), "i8")
        constant("atKeys", at.reshape(samples, 1, 1, tokens, 2), "i8")
        for what in ("numbers", "segment"):
            for where in ("Rows", "Keys"):
                add("GatherND", [what, "at" + where], what + where)
        add("LessOrEqual", ["numbersKeys", "numbersRows"], "le")
        add("Equal", ["segmentRows", "segmentKeys"], "same")
        add("And", ["le", "same"], "open0")
        last = "open0"
        if form == "both":
            constant("window", tokens // 8, "i8")
            add("Sub", ["numbersRows", "window"], "from")
            add("Greater", ["numbersKeys", "from"], "gt")
            add("And", ["gt", "open0"], "open1")
            last = "open1"
        constant("least", -3.4028234663852886e38, "f")
        add("Where", [last, "zero", "least"], "mask")
        add("Add", ["scores", "mask"], "masked")
    elif form in ("triangle", "band"):
        if form == "band":
            lower &= ~np.tril(np.ones((tokens, tokens), dtype=bool), -(tokens // 4))
        constant("lower", lower, bool)
        add("Where", ["lower", "scores", "low"], "masked")
    elif form == "bias":
        constant("upper", np.where(lower, 0, -np.inf).reshape(1, 1, tokens, tokens), "f")
        add("Add", ["scores", "upper"], "masked")
    elif form == "low":
        constant("upper", np.where(lower, 0, -3.4028234663852886e38), "f")
        add("Add", ["scores", "upper"], "masked")
    elif form == "trilu":
        constant("ones", np.ones(()), "f")
        constant("shape", [tokens, tokens], "i8")
        add("Expand", ["ones", "shape"], "all")
        add("Trilu", ["all"], "lower", upper=0)
        add("Equal", ["lower", "zero"], "closed")
        add("Where", ["closed", "low", "scores"], "masked")
    add("Softmax", ["masked"], "p", axis=-1)
    add("MatMul", ["p", "v"], "o")
add("ReduceSum", ["o"], "loss", keepdims=0)
graph = h.make_graph(nodes, "attention", inputs, [h.make_tensor_value_info("loss", T.FLOAT, [])], constants)
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 23)], ir_version=10), path)
if len(sys.argv) > 4:
    data = {"x": np.random.default_rng(1).standard_normal((samples, 2, tokens, width)).astype("f")}
    if packs:
        lengths = [[100, 1, 70, tokens - 171], [tokens // 2, tokens - tokens // 2]]
        rows = [[np.arange(n) if form != "segments" else np.full(n, 7 - i) for i, n in enumerate(row)]
                for row in lengths]
        data["numbers"] = np.stack([np.concatenate(row) for row in rows])
    np.savez(sys.argv[4].removeprefix("--data="), **data)
