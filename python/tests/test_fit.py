# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by the library's loop: the driver's bits, sources, refusals, Ctrl-C."""

import json
import os
import signal
import struct
import zlib

import numpy
import pytest
from conftest import DATA, MODEL, run_driver
from conftest import compile_digits as compile_with_threads
from test_step import assert_same_bits, read_safetensors

import ckopt


def compile_digits(**settings):
    """On one thread: two wait long for each other where others are at work."""
    return compile_with_threads(threads=1, **settings)


def driver_flags(tmp_path, **flags):
    return ["train", MODEL, f"--data={DATA}", "--inputs=x=images", "--targets=labels",
            "--loss=cross_entropy", "--optimizer=adamw", "--lr=0.001", "--batch=32",
            "--threads=1", "--quiet", "--seed=5", "-o", tmp_path / "driver.safetensors",
            *[f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]]


def parts(images, labels, sizes):
    """The samples one after another, in batches of these sizes, over and over."""
    at, number = 0, 0
    while at < len(images):
        size = sizes[number % len(sizes)]
        yield images[at:at + size], labels[at:at + size]
        at, number = at + size, number + 1


def test_arrays_and_files_have_the_drivers_bits(digits, tmp_path):
    """Also where two calls make the epochs of one run, and with validation between."""
    images, labels = digits
    run_driver(*driver_flags(tmp_path, epochs=2, holdout=0.2))
    driver = read_safetensors(tmp_path / "driver.safetensors")
    whole = compile_digits(seed=5)
    result = whole.fit({"x": images, "y": labels}, epochs=2, holdout=0.2)
    assert_same_bits(driver, whole.state_dict())
    assert result.steps == len(result.losses) == whole.updates and result.epochs == 2
    assert result.validation["count"] == 359 and 0.3 < result.validation["accuracy"] <= 1
    twice = compile_digits(seed=5, budget="min", inputs="x=images", targets="labels")
    for _ in range(2):
        last = twice.fit(DATA, holdout=0.2, validate_every=20)
    assert_same_bits(driver, twice.state_dict())
    assert last.validation == result.validation and last.epochs == 2


def text_model(tmp_path, tokens=16):
    """Scores of the next of 50 tokens from the one before."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    random = numpy.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(random.normal(size=shape).astype("f4") * 0.1, name)
               for name, shape in (("table", (50, 8)), ("out", (8, 50)))]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "x"], ["e"], "look"),
         helper.make_node("MatMul", ["e", "out"], ["scores"], "score")], "text",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["batch", tokens])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["batch", tokens, 50])],
        weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    path = tmp_path / "text.onnx"
    onnx.save(model, path)
    numbers = numpy.cumsum(random.integers(1, 4, 4001)) % 50
    numbers.astype("u2").tofile(tmp_path / "train.bin")
    numbers[:400].astype("u1").tofile(tmp_path / "valid.bin")
    return path


def test_tokens_have_the_drivers_bits(tmp_path):
    path = text_model(tmp_path)
    made = dict(loss="cross_entropy", optimizer=ckopt.AdamW(lr=1e-2), batch=8, threads=1, effort=0,
                seed=3)
    train = tmp_path / "train.bin"
    run_driver("train", path, f"--tokens={train}", "--sequence=16", "--loss=cross_entropy",
               "--optimizer=adamw", "--lr=0.01", "--batch=8", "--threads=1", "--quiet", "--seed=3",
               "--epochs=2", "-o", tmp_path / "driver.safetensors")
    step = ckopt.compile(path, **made)
    result = step.fit(ckopt.Tokens(train, sequence=16), epochs=2,
                      validation=ckopt.Tokens(tmp_path / "valid.bin", sequence=16, type="uint8"),
                      metrics=["perplexity", "top5"])
    assert_same_bits(read_safetensors(tmp_path / "driver.safetensors"), step.state_dict())
    assert result.steps == 62 and result.dropped == 2 and result.losses[-1] < result.losses[0]
    again = step.evaluate(ckopt.Tokens(tmp_path / "valid.bin", 16, numpy.uint8),
                          metrics=["perplexity", "top5"])
    assert again == result.validation and again["count"] == 24 * 16
    with pytest.raises(ckopt.InputError, match=r"train.bin: samples have 32 tokens, and 'x' takes "
                       r"\[16\] a sample: give sequence=16"):
        step.fit(ckopt.Tokens(train, sequence=32))
    with pytest.raises(ckopt.UsageError, match="'token_type': 'float32' is not one of"):
        step.fit(ckopt.Tokens(train, sequence=16, type=numpy.float32))


def write_png(path, pixels):
    """A gray image of uint8."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def test_image_folders_have_the_drivers_bits(digits, tmp_path):
    images, labels = digits
    for i in range(150):
        folder = tmp_path / ("train" if i < 110 else "valid") / f"digit-{labels[i]}"
        folder.mkdir(parents=True, exist_ok=True)
        write_png(folder / f"{i}.png", numpy.pad(images[i, 0] * 15, ((1, 1), (2, 2))))
    run_driver(*[flag for flag in driver_flags(tmp_path, epochs=2) if not str(flag).startswith(
        ("--data", "--inputs", "--targets"))], f"--images={tmp_path / 'train'}", "--augment=crop,flip",
        "--normalize=0.5/0.25")
    step = compile_digits(seed=5)
    result = step.fit(ckopt.ImageFolder(tmp_path / "train", augment=["crop", "flip"],
                                        normalize=(0.5, [0.25])), epochs=2,
                      validation=ckopt.ImageFolder(tmp_path / "valid", normalize="0.5/0.25"))
    assert_same_bits(read_safetensors(tmp_path / "driver.safetensors"), step.state_dict())
    assert result.classes == [f"digit-{n}" for n in range(10)]
    assert result.validation["count"] == 40
    step.save(tmp_path / "trained.safetensors")
    assert b"digit-7" in (tmp_path / "trained.safetensors").read_bytes()
    with pytest.raises(ckopt.UsageError, match="is neither 'imagenet' nor"):
        step.fit(ckopt.ImageFolder(tmp_path / "train", normalize=3))
    with pytest.raises(ckopt.UsageError, match="'augment'.*'flop'"):
        step.fit(ckopt.ImageFolder(tmp_path / "train", augment="flop"))


def test_the_end_of_a_schedule_is_named(digits, tmp_path):
    images, labels = digits
    made = dict(schedule=ckopt.Cosine(total_steps=10))
    step = compile_digits(**made)
    step(images[:32], labels[:32])
    step.checkpoint(tmp_path / "one.ckpt")
    with pytest.raises(ckopt.InputError, match="ends at step 10, .* step 20; give total_steps=10"):
        compile_digits(schedule=ckopt.Cosine(total_steps=20)).resume(tmp_path / "one.ckpt")
    with pytest.raises(ckopt.InputError, match="(?s)'lr_schedule' was 'cosine'") as info:
        compile_digits().resume(tmp_path / "one.ckpt")
    assert "schedule-steps" not in str(info.value)


def test_resumed_runs_have_the_bits_of_unbroken_ones(digits, tmp_path):
    """From a checkpoint of fit and one of the driver, in the middle of an epoch."""
    images, labels = digits
    run_driver(*driver_flags(tmp_path, epochs=2))
    driver = read_safetensors(tmp_path / "driver.safetensors")
    arrays = {"x": images, "y": labels}
    half = compile_digits(seed=5)
    half.fit(arrays, epochs=2, max_steps=70, checkpoint=tmp_path / "half.ckpt")
    assert half.updates == 70
    resumed = compile_digits(seed=5, budget="min")
    result = resumed.fit(arrays, epochs=2, resume=tmp_path / "half.ckpt")
    assert_same_bits(driver, resumed.state_dict())
    assert resumed.updates == 112 and result.steps == 42
    run_driver(*driver_flags(tmp_path, epochs=2, max_steps=70, checkpoint=tmp_path / "driver.ckpt"))
    other = compile_digits(seed=5)
    other.fit(arrays, epochs=2, resume=tmp_path / "driver.ckpt")
    assert_same_bits(driver, other.state_dict())
    with pytest.raises(ckopt.InputError, match="the data was"):
        compile_digits(seed=5).fit({"x": images + 1, "y": labels}, epochs=2,
                                   resume=tmp_path / "half.ckpt")
    # Updates that the loop did not make cannot be found again by one that goes on.
    mixed = compile_digits(seed=5)
    mixed(images[:32], labels[:32])
    mixed.fit(arrays, checkpoint=tmp_path / "mixed.ckpt")
    with pytest.raises(ckopt.InputError, match="updates outside of its epochs"):
        compile_digits(seed=5).fit(arrays, epochs=2, resume=tmp_path / "mixed.ckpt")


def test_batches_of_any_sizes(digits):
    """An iterable's pieces do not matter, only its samples; calls give the same bits."""
    images, labels = digits[0][:325], digits[1][:325]
    by_hand = compile_digits()
    for _ in range(2):
        for start in range(0, 320, 32):
            by_hand(images[start:start + 32], labels[start:start + 32])
    for sizes in ([32], [7, 50, 1], [500]):
        step = compile_digits()
        with pytest.warns(ckopt.Warning, match="5 samples of each epoch's last batch"):
            result = step.fit(lambda: parts(images, labels, sizes), epochs=2)
        assert result.steps == 20 and result.dropped == 5 and step.skipped == 2
        assert_same_bits(by_hand.state_dict(), step.state_dict())
    step = compile_digits(optimizer=ckopt.SGD(lr=0.1, accumulate=4))
    assert step.fit(parts(images, labels, [32]), samples_per_epoch=325).steps == 2


def test_iterators_are_read_once(digits):
    images, labels = digits
    step = compile_digits()
    with pytest.raises(ckopt.InputError, match="read but once"):
        step.fit(parts(images[:64], labels[:64], [32]), epochs=2)
    assert step.updates == 2
    with pytest.raises(ckopt.InputError, match="cannot go back"):
        step.fit(parts(images, labels, [32]), resume="x.ckpt")


def test_validation_of_all_forms(digits, tmp_path):
    images, labels = digits
    held = {"x": images[1600:], "y": labels[1600:]}
    numpy.savez(tmp_path / "held.npz", **held)
    results = []
    for validation in (held, tmp_path / "held.npz", [(held["x"], held["y"])],
                       lambda: parts(held["x"], held["y"], [50])):
        step = compile_digits()
        seen = []
        result = step.fit({"x": images[:1600], "y": labels[:1600]}, validation=validation,
                          validate_every=25, report=seen.append)
        assert [entry["step"] for entry in seen if "validation" in entry] == [25, 50]
        assert len(seen) == 50 and seen[3]["loss"] == result.losses[3]
        assert result.validation == seen[-1]["validation"]
        results.append((result.losses, result.validation))
    assert results[0][1]["count"] == 197
    assert all(one == results[0] for one in results)
    assert step.evaluate(held)["accuracy"] == result.validation["accuracy"]


def test_best_evaluation_is_kept(digits, tmp_path):
    images, labels = digits
    step = compile_digits(optimizer=ckopt.AdamW(lr=0.3))  # gets no better for long
    result = step.fit({"x": images, "y": labels}, epochs=20, holdout=0.2, validate_every=10,
                      metrics=["top5"], best_by="accuracy", early_stop=3,
                      keep_best=tmp_path / "best.onnx")
    assert result.stopped_early and step.updates < 20 * 44
    best = max(point["accuracy"] for point in result.validations)
    assert all(point["top5"] >= point["accuracy"] for point in result.validations)
    assert [point["accuracy"] for point in result.validations].index(best) == \
        len(result.validations) - 4
    kept = ckopt.compile(tmp_path / "best.onnx", loss="cross_entropy", batch=32, threads=1,
                         effort=0, optimizer=ckopt.SGD(lr=0.0))
    again = kept.fit({"x": images, "y": labels}, holdout=0.2, max_steps=1)
    # Running statistics move by the one step of rate zero.
    assert again.validation["accuracy"] == pytest.approx(best, abs=0.1)
    with pytest.raises(ckopt.UsageError, match="best_by"):
        step.fit({"x": images, "y": labels}, holdout=0.2, best_by="beauty")
    with pytest.raises(ckopt.UsageError, match="'keep_best' and 'early_stop'"):
        step.fit({"x": images, "y": labels}, holdout=0.2, best_by="accuracy")
    for unread, said in (
            (dict(validate_every=0, holdout=0.2), "validate_every=0 is no whole number from 1 on"),
            (dict(early_stop=0, holdout=0.2), "early_stop=0 is no whole number from 1 on"),
            (dict(checkpoint_every=5), "'checkpoint_every' is for 'checkpoint'"),
            (dict(metrics="top5"), "'metrics' needs 'validation' or 'holdout'"),
            (dict(samples_per_epoch=64), "samples_per_epoch is for batches")):
        with pytest.raises(ckopt.UsageError, match=said):
            step.fit({"x": images, "y": labels}, **unread)
    with pytest.raises(ckopt.UsageError, match="fit needs samples"):
        step.fit(None)


def test_logs_and_checkpoints(digits, tmp_path):
    images, labels = digits
    step = compile_digits()
    for _ in range(2):
        step.fit({"x": images[:320], "y": labels[:320]}, log=tmp_path / "run.jsonl",
                 checkpoint=tmp_path / "run.ckpt", checkpoint_every=5)
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 21))
    assert [line["epoch"] for line in lines] == [1] * 10 + [2] * 10
    assert (tmp_path / "run.ckpt").exists()
    with pytest.raises(ckopt.UsageError, match=".csv or .jsonl"):
        step.fit({"x": images, "y": labels}, log=tmp_path / "run.txt")


def test_report_may_look_and_stop(digits, tmp_path):
    """Calls from the report do not wait for themselves; its exceptions come out."""
    images, labels = digits
    step = compile_digits()

    class Enough(Exception):
        pass

    def look(entry):
        assert step.updates == entry["step"]
        step.evaluate(x=images[:40], y=labels[:40])
        with pytest.raises(ckopt.UsageError, match="being trained by fit"):
            step(images[:32], labels[:32])
        if entry["step"] == 3:
            step.save(tmp_path / "third.safetensors")
            raise Enough

    with pytest.raises(Enough):
        step.fit({"x": images, "y": labels}, report=look)
    assert step.updates == 3
    plain = compile_digits()
    plain.fit({"x": images, "y": labels}, max_steps=3)
    assert_same_bits(plain.state_dict(), step.state_dict())
    step(images[:32], labels[:32])
    assert step.updates == 4


def test_interrupt_ends_the_run_between_updates(digits):
    images, labels = digits
    step = compile_digits()

    def interrupt(entry):
        if entry["step"] == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        step.fit({"x": images, "y": labels}, report=interrupt)
    assert step.updates in (4, 5)
    made = step.updates
    step(images[:32], labels[:32])
    assert step.updates == made + 1


def test_errors_of_batches_come_out(digits):
    images, labels = digits

    def broken():
        yield images[:32], labels[:32]
        raise OSError("the disk is gone")

    step = compile_digits()
    with pytest.raises(OSError, match="the disk is gone"):
        step.fit(broken())
    with pytest.raises(ckopt.InputError, match="'x' has shape"):
        step.fit([(images[:32, :, :4], labels[:32])])
    with pytest.raises(ckopt.InputError, match="arrays of"):
        step.fit([(images[:32], labels[:31])])
    with pytest.raises(ckopt.InputError, match="label"):
        step.fit([(images[:32], labels[:32] + 5)])
    with pytest.raises(ckopt.InputError, match="label"):
        step.fit({"x": images, "y": labels + 5})
    with pytest.raises(ckopt.InputError, match="'x' is float64"):
        step.fit({"x": images + 1e-9, "y": labels})
    with pytest.raises(ckopt.UsageError, match="no array for 'y'"):
        step.fit({"x": images})
    with pytest.raises(ckopt.UsageError, match="takes no 'z'"):
        step.fit({"x": images, "y": labels, "z": labels})
    with pytest.raises(ckopt.UsageError, match="validat"):
        step.fit({"x": images, "y": labels}, validate_every=3)
    with pytest.raises(ckopt.UsageError, match="a path, a mapping"):
        step.fit(3)
    with pytest.raises(ckopt.InputError, match="5 samples"):
        compile_digits(last_batch="error").fit({"x": images, "y": labels})
    with pytest.raises(ckopt.InputError, match="5 samples"):
        compile_digits(last_batch="error").fit(parts(images, labels, [32]))
