# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One step for a range of lengths or of batches."""

import ckopt
import numpy
import pytest
from conftest import MODEL

SETTINGS = dict(threads=2, effort=0, seed=1)


def assert_near(some, others, tolerance):
    """Relative to the largest number of each, or to a thousandth of the largest of all."""
    largest = max(abs(value).max() for value in others.values())
    for name, value in others.items():
        limit = tolerance * max(abs(value).max(), 1e-3 * largest)
        assert abs(some[name] - value).max() <= limit, name


def assert_same_gradients(step, single, batch, tolerance):
    loss, gradients = step.gradients(**batch)
    wanted, others = single.gradients(**batch)
    assert loss == pytest.approx(wanted, rel=tolerance)
    assert_near(gradients, others, tolerance)


def test_batches_of_a_range():
    """Convolutions, batch norms and pooling, in double against steps of one batch each."""
    def make(batch, **more):
        return ckopt.compile(MODEL, loss="cross_entropy", optimizer="none", batch=batch,
                             compute_type="f64", **more, **SETTINGS)

    rng = numpy.random.default_rng(0)
    step = make("1..24")
    state = step.state_dict()
    assert step.batch == 24
    for size in (24, 1, 2, 7, 16, 23):
        batch = dict(x=rng.random((size, 1, 8, 8)), y=rng.integers(0, 10, size))
        single = make(size)
        step.load_state_dict(state)  # running statistics
        single.load_state_dict(state)
        assert_same_gradients(step, single, batch, 1e-9)
        assert step.at(batch=size).batch == size
    with pytest.raises(ckopt.InputError, match="'x' has 25 along 'batch'.*for 1 to 24"):
        step.gradients(x=rng.random((25, 1, 8, 8)), y=rng.integers(0, 10, 25))


def test_a_run_of_batches_of_any_size():
    """One optimizer state, under a budget: as steps of one arena that are each compiled."""
    def make(batch):
        return ckopt.compile(MODEL, loss="cross_entropy", batch=batch, budget="min",
                             optimizer=ckopt.SGD(lr=0.01, momentum=0.9), **SETTINGS)

    step, largest = make("1..64"), make(64)
    apart = {64: largest, 5: largest.at(batch=5), 40: largest.at(batch=40)}
    rng = numpy.random.default_rng(1)
    for size in (40, 5, 64, 5):
        batch = dict(x=rng.random((size, 1, 8, 8), "f4"), y=rng.integers(0, 10, size))
        assert step(**batch) == pytest.approx(apart[size](**batch), rel=1e-4)
        sized = step.at(batch=size)
        assert sized.memory["planned_peak_bytes"] <= step.memory["planned_peak_bytes"]
    assert step.updates == 4 == step.at(batch=3).updates
    assert step.memory["measured_peak_bytes"] == step.memory["planned_peak_bytes"]
    assert_near(step.state_dict(), largest.state_dict(), 1e-3)
    ids = dict(x=rng.random((9, 1, 8, 8), "f4"), y=rng.integers(0, 10, 9))
    assert step.evaluate(**ids)["loss"] == pytest.approx(largest.evaluate(**ids)["loss"], rel=1e-3)
    assert step.predict(x=ids["x"]).shape == (9, 10)


def test_the_last_batch_of_an_epoch_is_trained():
    """By the library's loop, a loop over batches, and batches of an iterator: the same bits."""
    def make(**more):
        return ckopt.compile(MODEL, loss="cross_entropy", batch="2..32", optimizer="adam", **more,
                             **SETTINGS)

    rng = numpy.random.default_rng(5)
    arrays = dict(x=rng.random((75, 1, 8, 8), "f4"), y=rng.integers(0, 10, 75))
    loop, fitted, pulled = make(), make(), make(last_batch="error")
    for batch in ckopt.batches(32, epochs=2, seed=1, rest=True, **arrays):
        loop(**batch)
    result = fitted.fit(arrays, epochs=2)
    assert (result.steps, result.dropped, fitted.skipped) == (6, 0, 0)
    pulled.fit(list(ckopt.batches(32, seed=1, rest=True, **arrays)))
    assert pulled.updates == 3
    state = loop.state_dict()
    for name, value in fitted.state_dict().items():
        assert (value == state[name]).all(), name
    strict = make(last_batch="error")
    strict.fit(arrays)
    few = make(last_batch="error")
    with pytest.raises(ckopt.InputError, match="has 1 samples, the step was compiled for 2 to 32"):
        few.fit(list(ckopt.batches(32, rest=True, x=arrays["x"][:33], y=arrays["y"][:33])))


def test_small_sizes_are_measured_below_their_plan():
    for size in (1, 8, 9, 16):
        step = ckopt.compile(MODEL, loss="cross_entropy", batch="1..16", budget="min",
                             optimizer="sgd", **SETTINGS)
        step(x=numpy.zeros((size, 1, 8, 8), "f4"), y=numpy.zeros(size, int))
        memory = step.at(batch=size).memory
        assert memory["measured_peak_bytes"] <= memory["planned_peak_bytes"]
        if size == 16:
            assert memory["measured_peak_bytes"] == memory["planned_peak_bytes"]


@pytest.fixture(scope="module")
def lengths(tmp_path_factory):
    """A Llama with its own loss, of 2 to 64 tokens."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    pytest.importorskip("transformers")
    from test_weights import Loss, export_lengths, llama
    path = tmp_path_factory.mktemp("lengths") / "m.onnx"
    export_lengths(Loss(llama(3)), path)
    del torch
    return path


def test_lengths_of_a_range(lengths):
    def make(seq):
        return ckopt.compile(lengths, optimizer="none", batch=3, dim={"seq": seq}, **SETTINGS)

    rng = numpy.random.default_rng(2)
    step = make("2..64")
    for length in (64, 2, 3, 17, 33, 63):
        ids = rng.integers(0, 64, (3, length))
        assert_same_gradients(step, make(length), dict(input_ids=ids, labels=ids), 1e-5)
    with pytest.raises(ckopt.InputError, match="has 65 along 'seq'.*for 2 to 64"):
        step.gradients(input_ids=numpy.zeros((3, 65), int), labels=numpy.zeros((3, 65), int))


def test_a_loss_in_blocks_of_any_length(lengths):
    """Their number is that of the largest length; what they lack is filled."""
    def make(seq, **more):
        return ckopt.compile(lengths, optimizer="none", batch=3, dim={"seq": seq},
                             compute_type="f64", evaluation=False, **more, **SETTINGS)

    rng = numpy.random.default_rng(4)
    whole, step = make("2..64", chunk_vocab="off"), make("2..64", chunk_vocab=16)
    assert step.memory["planned_peak_bytes"] < whole.memory["planned_peak_bytes"]
    for length in (64, 2, 3, 8, 9, 37, 63):
        ids = rng.integers(0, 64, (3, length))
        labels = numpy.where(rng.random((3, length)) < 0.3, -100, ids)
        assert_same_gradients(step, make(length, chunk_vocab="off"),
                              dict(input_ids=ids, labels=labels), 1e-9)
        memory = step.at(dim={"seq": length}).memory
        assert memory["measured_peak_bytes"] <= memory["planned_peak_bytes"]
    assert step.memory["measured_peak_bytes"] == step.memory["planned_peak_bytes"]


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "avx512f" in file.read()


needs_avx512 = pytest.mark.skipif(not has_avx512(), reason="libraries order sums by the shape here")


@needs_avx512
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("model", [MODEL, MODEL.replace("digits_cnn", "byte_gpt")])
def test_samples_keep_their_bits_in_other_batches(model, precision):
    step = ckopt.compile(model, loss="cross_entropy", batch="1..16", optimizer="sgd",
                         precision=precision, **SETTINGS)
    name, (dtype, shape) = next(iter(step.inputs.items()))
    rng = numpy.random.default_rng(6)
    samples = rng.random((16, *shape), "f4") if dtype == "float32" else \
        rng.integers(0, 64, (16, *shape))
    whole = step.predict(**{name: samples})
    for size in (1, 3, 8, 15):
        some = step.at(batch=size).predict(**{name: samples[:size]})
        assert (some == whole[:size]).all(), size


@needs_avx512
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_tokens_keep_their_bits_in_longer_rows(tmp_path, precision):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    pytest.importorskip("transformers")
    from test_weights import llama

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lm = llama(3)

        def forward(self, ids):
            return self.lm(input_ids=ids, use_cache=False).logits

    path = tmp_path / "m.onnx"
    torch.onnx.export(Logits(), (torch.zeros(2, 6, dtype=torch.int64),), str(path), dynamo=True,
                      optimize=False, verbose=False, input_names=["ids"], output_names=["logits"],
                      dynamic_shapes={"ids": {1: torch.export.Dim("seq", min=2, max=600)}})
    step = ckopt.compile(path, loss="cross_entropy", class_axis=2, optimizer="sgd",
                         dim={"seq": "2..512"}, precision=precision, **SETTINGS)
    ids = numpy.random.default_rng(7).integers(0, 64, (2, 512))
    whole = step.predict(ids=ids)
    for length in (2, 17, 64, 100, 256, 511):
        some = step.at(dim={"seq": length}).predict(ids=ids[:, :length])
        assert (some == whole[:, :length]).all(), length


def test_lengths_recompute_as_they_must(lengths):
    """Shorter rows have schedules of their own where the longest recompute."""
    step = ckopt.compile(lengths, optimizer="adamw", batch=3, dim={"seq": "2..64"}, budget="min",
                         **SETTINGS)
    assert any("'seq' up to 32 have a schedule of their own" in text for text in step.messages)
    free = ckopt.compile(lengths, optimizer="adamw", batch=3, dim={"seq": "2..64"}, **SETTINGS)
    rng = numpy.random.default_rng(3)
    for length in (64, 20, 5, 40):
        ids = rng.integers(0, 64, (3, length))
        assert step(input_ids=ids, labels=ids) == free(input_ids=ids, labels=ids)
    state = free.state_dict()
    for name, value in step.state_dict().items():
        assert (value == state[name]).all(), name
    assert step.memory["measured_peak_bytes"] <= step.memory["planned_peak_bytes"] < \
        free.memory["planned_peak_bytes"]


def test_ranges_that_cannot_be(lengths):
    with pytest.raises(ckopt.UsageError, match="one range of sizes.*'batch' and 'seq'"):
        ckopt.compile(lengths, batch="1..4", dim={"seq": "2..64"}, **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="LOW..HIGH, with 1 <= LOW < HIGH"):
        ckopt.compile(lengths, batch=2, dim={"seq": "64..2"}, **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="'seq' from 2 to 8, not for 9"):
        ckopt.compile(lengths, batch=2, dim={"seq": "2..8"}, **SETTINGS).at(dim={"seq": 9})
    with pytest.raises(ckopt.UsageError, match="blocks of rows"):
        ckopt.compile(lengths, batch=2, dim={"seq": "2..64"}, tile_rows=16, **SETTINGS)


def export_by_length(function, path, least=1):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.inside = torch.nn.Linear(5, 8)

        def forward(self, x):
            return function(torch.tanh(self.inside(x))).pow(2).mean()

    torch.onnx.export(Model(), (torch.randn(2, 24, 5),), str(path), dynamo=True, optimize=False,
                      verbose=False, input_names=["x"],
                      dynamic_shapes=({1: torch.export.Dim("seq", min=least, max=5000)},))


@pytest.mark.parametrize("least, function", [
    (1, lambda torch, h: h[:, :10]),
    (1, lambda torch, h: h[:, -10:]),
    (1, lambda torch, h: h.sum(1) / torch.sym_min(h.shape[1], 10)),
    (1, lambda torch, h: h * torch.where(torch.full((), 1) * h.shape[1] > 60, 1.0, 2.0)),
    (1, lambda torch, h: h * torch.where(torch.full((), 1) * h.shape[1] == 60, 1.0, 2.0)),
    (1, lambda torch, h: h[:, 0] * h[:, -1]),
    (3, lambda torch, h: torch.cat([h[:, :3] * 2, h[:, -3:].tanh()], 1)),
    (2, lambda torch, h: torch.nn.functional.interpolate(h[:, None], size=(40, 8),
                                                         mode="bicubic")),
], ids=["first", "last", "min", "greater", "equal", "ends", "overlap", "table"])
def test_models_that_are_others_at_small_sizes(least, function, tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.onnx"
    export_by_length(lambda h: function(torch, h), path, least)
    with pytest.raises(ckopt.UnsupportedError, match="no step for all sizes of 'seq'"):
        ckopt.compile(path, optimizer="none", batch=2, dim={"seq": f"{least}..150"}, **SETTINGS)


@pytest.mark.parametrize("function", [
    lambda torch, h: torch.nn.functional.scaled_dot_product_attention(
        h[:, None], h[:, None], h[:, None], is_causal=True),
    lambda torch, h: h[:, 1:] * h[:, :-1],
    lambda torch, h: h.softmax(1) + h.cumsum(1) - h.amax(1, keepdim=True),
], ids=["attention", "shift", "along"])
def test_lengths_of_plain_functions(function, tmp_path):
    """Among them those at which libraries need more workspace than at the largest."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.onnx"
    export_by_length(lambda h: function(torch, h), path, 2)

    def make(seq):
        return ckopt.compile(path, optimizer="none", batch=2, dim={"seq": seq}, **SETTINGS)

    step, rng = make("2..150"), numpy.random.default_rng(4)
    for length in (150, 2, 3, 64, 113, 128, 149):
        x = rng.standard_normal((2, length, 5)).astype("f4")
        assert_same_gradients(step, make(length), dict(x=x), 2e-5)
