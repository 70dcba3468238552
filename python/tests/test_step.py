# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps: bits, weights, files, batches, refusals."""

import threading

import numpy
import pytest
from conftest import DATA, MODEL, compile_digits, run_driver

import ckopt


def assert_same_bits(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name


def read_safetensors(path):
    """Tensors of f32 by name; the format is a header of JSON and the bytes."""
    import json

    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    body = raw[8 + size:]
    return {name: numpy.frombuffer(body[slice(*entry["data_offsets"])],
                                   "<f4").reshape(entry["shape"])
            for name, entry in header.items()}


def test_bits_are_the_drivers(digits, tmp_path):
    """A loop in Python gives the weights of `ckopt train`, also under a tight budget."""
    images, labels = digits
    run_driver("train", MODEL, f"--data={DATA}", "--inputs=x=images", "--targets=labels",
               "--loss=cross_entropy", "--optimizer=adamw", "--lr=0.002", "--weight-decay=0.1",
               "--clip-norm=1", "--lr-schedule=step", "--lr-step-size=10", "--batch=32",
               "--threads=2", "--seed=3", "--max-steps=60", "--epochs=2", "--quiet",
               "-o", tmp_path / "driver.safetensors")
    step = compile_digits(optimizer=ckopt.AdamW(lr=0.002, weight_decay=0.1, clip_norm=1),
                          schedule=ckopt.StepDecay(10), budget="min", seed=3)
    for number, batch in enumerate(ckopt.batches(32, x=images, y=labels, epochs=2, seed=3)):
        if number == 60:
            break
        step(**batch)
    step.save(tmp_path / "python.safetensors")
    driver = read_safetensors(tmp_path / "driver.safetensors")
    assert_same_bits(driver, read_safetensors(tmp_path / "python.safetensors"))
    assert_same_bits(driver, step.state_dict())
    start = compile_digits(seed=3).state_dict()
    assert any((start[name] != driver[name]).any() for name in start), "nothing was trained"


def test_accumulated_batches_make_the_drivers_updates(digits, tmp_path):
    images, labels = digits
    run_driver("train", MODEL, f"--data={DATA}", "--inputs=x=images", "--targets=labels",
               "--loss=cross_entropy", "--optimizer=sgd", "--momentum=0.9", "--accumulate=3",
               "--batch=16", "--threads=2", "--max-steps=5", "--quiet",
               "-o", tmp_path / "driver.safetensors")
    step = compile_digits(optimizer=ckopt.SGD(momentum=0.9, accumulate=3), batch=16)
    for number, batch in enumerate(ckopt.batches(16, x=images, y=labels)):
        if number == 15:
            break
        step(batch)
    assert step.updates == 5
    assert_same_bits(read_safetensors(tmp_path / "driver.safetensors"), step.state_dict())


def test_losses_of_huge_logits(digits):
    """Logits that are all -1e9 have the loss and gradients of logits that are all 0."""
    images, labels = digits
    weights = []
    for bias in (0, -1e9):
        step = compile_digits(optimizer=ckopt.SGD(lr=1.0))
        start = step.state_dict()
        step.load_state_dict({"o.weight": 0 * start["o.weight"],
                              "o.bias": 0 * start["o.bias"] + numpy.float32(bias)}, strict=False)
        assert step(images[:32], labels[:32]) == pytest.approx(numpy.log(10), rel=1e-6)
        weights.append(step.state_dict()["o.weight"])
    assert abs(weights[0]).max() > 0.01
    numpy.testing.assert_allclose(weights[1], weights[0], atol=1e-6)


def test_f16_skips_updates_that_overflow(digits):
    """As torch.amp.GradScaler: nothing that is trained changes, and the scale is halved."""
    images, labels = digits
    step = compile_digits(precision="f16", loss_scale_init=2.0**40)

    def trained():
        return {name: x for name, x in step.state_dict().items() if "running" not in name}

    start = trained()
    assert (step.loss_scale, step.skipped_updates) == (2.0**40, 0)
    step(images[:32], labels[:32])
    assert (step.loss_scale, step.skipped_updates) == (2.0**39, 1)
    assert_same_bits(trained(), start)
    result = step.fit({"x": images, "y": labels}, epochs=1)
    assert 1 < result.skipped_updates < result.steps
    assert step.skipped_updates == 1 + result.skipped_updates
    assert compile_digits().loss_scale is None
    with pytest.raises(ckopt.UsageError, match="power of two"):
        compile_digits(precision="f16", loss_scale=1000)


def test_gradients_that_overflow_are_an_error(digits):
    """As of `ckopt grad`, where all would be NaN; a scale that fits gives those of f32."""
    images, labels = digits
    step = compile_digits(optimizer="none", precision="f16", loss_scale=2.0**40)
    text = "^'grad/.*' is not finite; a smaller 'loss_scale' may help$"
    with pytest.raises(ckopt.NonFiniteError, match=text) as raised:
        step.gradients(images[:32], labels[:32])
    assert raised.value.exit_code == 5
    loss, gradients = compile_digits(optimizer="none", precision="f16").gradients(
        images[:32], labels[:32])
    expected_loss, expected = compile_digits(optimizer="none").gradients(images[:32], labels[:32])
    assert loss == pytest.approx(expected_loss, rel=1e-2)
    for name, value in expected.items():
        # As a whole: a max pool that picks another point changes single numbers.
        off = numpy.linalg.norm(gradients[name] - value)
        assert off <= 0.1 * numpy.linalg.norm(value) + 1e-5, name

    # In f32 as well, and without advice that would not help.
    step = compile_digits(optimizer="none")
    bias = step.state_dict()["o.bias"]
    step.load_state_dict({"o.bias": numpy.full_like(bias, numpy.inf)}, strict=False)
    with pytest.raises(ckopt.NonFiniteError, match="^'loss' is not finite$"):
        step.gradients(images[:32], labels[:32])


def test_all_labels_ignored_is_said(digits):
    images, labels = digits
    step = compile_digits(ignore_index=3)
    threes = labels.copy()[:40] * 0 + 3
    with pytest.raises(ckopt.InputError, match="all labels are the one that is ignored"):
        step.evaluate(x=images[:40], y=threes)


def test_model_as_bytes(digits):
    """The bytes of a file and the message that they hold are the model."""
    onnx = pytest.importorskip("onnx")
    images, labels = digits
    with open(MODEL, "rb") as file:
        raw = file.read()
    losses = []
    for model in (MODEL, raw, onnx.load_from_string(raw)):
        step = ckopt.compile(model, loss="cross_entropy", batch=32, threads=2, effort=0)
        losses.append(step(images[:32], labels[:32]))
    assert losses[0] == losses[1] == losses[2]


def test_weights_go_out_and_in(digits, tmp_path):
    images, labels = digits
    step = compile_digits()
    start = step.state_dict()
    for batch in list(ckopt.batches(32, x=images, y=labels))[:5]:
        step(batch)
    trained = step.state_dict()
    step.save(tmp_path / "trained.onnx")
    other = compile_digits()
    other.load_state_dict(trained)
    assert_same_bits(other.state_dict(), trained)
    assert other.evaluate(x=images, y=labels) == step.evaluate(x=images, y=labels)
    again = ckopt.compile(tmp_path / "trained.onnx", loss="cross_entropy", batch=32, threads=2,
                          effort=0)
    assert_same_bits(again.state_dict(), trained)
    with pytest.raises(ckopt.InputError, match="unknown: nonsense.*missing"):
        other.load_state_dict({"nonsense": numpy.zeros(3, "f4")})
    with pytest.raises(ckopt.InputError, match="shape"):
        other.load_state_dict({"o.bias": numpy.zeros(3, "f4")}, strict=False)
    assert_same_bits(other.state_dict(), trained)
    other.load_state_dict({"o.bias": start["o.bias"], "nonsense": 1.0}, strict=False)
    assert other.state_dict()["o.bias"].tobytes() == start["o.bias"].tobytes()


def test_resumed_run_has_the_bits_of_an_unbroken_one(digits, tmp_path):
    images, labels = digits
    batches = list(ckopt.batches(32, x=images, y=labels))[:12]
    settings = dict(schedule=ckopt.Cosine(total_steps=12))
    whole = compile_digits(**settings)
    for batch in batches:
        whole(batch)
    half = compile_digits(**settings)
    for batch in batches[:6]:
        half(batch)
    half.checkpoint(tmp_path / "run.ckpt")
    resumed = compile_digits(budget="min", **settings)
    assert resumed.resume(tmp_path / "run.ckpt") == 6
    for batch in batches[6:]:
        resumed(batch)
    assert_same_bits(whole.state_dict(), resumed.state_dict())
    other = compile_digits(optimizer=ckopt.AdamW(lr=2e-3), **settings)
    with pytest.raises(ckopt.InputError, match="lr"):
        other.resume(tmp_path / "run.ckpt")


def test_a_checkpoint_has_what_is_trained(digits, tmp_path):
    """Steps of one arena see each other's base; another one is refused before anything is set."""
    images, labels = digits
    first, second = list(ckopt.batches(32, x=images, y=labels))[:2]
    settings = dict(train="o.*", optimizer=ckopt.AdamW(lr=1e-3, ema=0.9))
    step = compile_digits(**settings)
    small = step.at(batch=16)
    step(first)
    step.checkpoint(tmp_path / "a.ckpt")
    trained = {name: value for name, value in step.state_dict().items() if name[:2] == "o."}
    stored = read_safetensors(tmp_path / "a.ckpt")
    assert {name for name in stored if "running" not in name} == \
        {name + state for name in trained for state in ("", "/m", "/v", "/ema")}
    for name, value in trained.items():
        assert (stored[name] == value).all()
    other = compile_digits(**settings)
    assert other.resume(tmp_path / "a.ckpt") == 1
    assert other(second) == step(second)
    assert_same_bits(other.state_dict(), step.state_dict())

    frozen = next(name for name in step.state_dict() if name.startswith("f.") and "running" not in name)
    small.load_state_dict({frozen: step.state_dict()[frozen] * 2}, strict=False)
    step.checkpoint(tmp_path / "b.ckpt")
    before = other.state_dict()
    with pytest.raises(ckopt.InputError, match=f"frozen weight '{frozen}' has other values"):
        other.resume(tmp_path / "b.ckpt")
    assert_same_bits(other.state_dict(), before)
    other.load_state_dict({frozen: step.state_dict()[frozen]}, strict=False)
    assert other.resume(tmp_path / "b.ckpt") == 2


def test_smaller_last_batch(digits):
    images, labels = digits
    step = compile_digits()
    before = step.state_dict()
    with pytest.warns(ckopt.Warning, match="7 samples is skipped"):
        assert numpy.isnan(step(x=images[:7], y=labels[:7]))
    assert step.skipped == 1 and step.updates == 0
    assert_same_bits(before, step.state_dict())
    strict = compile_digits(last_batch="error")
    with pytest.raises(ckopt.InputError, match="7 samples, the step was compiled for 32"):
        strict(x=images[:7], y=labels[:7])
    with pytest.raises(ckopt.InputError, match="33 samples"):
        step(x=images[:33], y=labels[:33])


def test_evaluation_pads_and_masks(digits):
    """Metrics of 70 samples do not depend on how they come."""
    images, labels = digits
    step = compile_digits()
    step(images[:32], labels[:32])
    whole = step.evaluate(x=images[:70], y=labels[:70])
    assert whole["count"] == 70 and 0 <= whole["accuracy"] <= 1
    parts = step.evaluate((images[i:i + 10], labels[i:i + 10]) for i in range(0, 70, 10))
    assert parts["count"] == 70 and parts["accuracy"] == whole["accuracy"]
    assert parts["loss"] == pytest.approx(whole["loss"], rel=1e-6)
    scores = step.predict(x=images[:70])
    assert isinstance(scores, numpy.ndarray) and scores.shape == (70, 10)
    more = step.evaluate(x=images[:70], y=labels[:70], metrics=["top3", "perplexity"])
    best = numpy.argsort(-scores, axis=1, kind="stable")[:, :3]
    assert {name: more[name] for name in whole} == whole
    assert more["top3"] == pytest.approx((best == labels[:70, None]).any(1).mean())
    assert more["perplexity"] == pytest.approx(numpy.exp(whole["loss"]), rel=1e-5)
    halves = step.evaluate(((images[i:i + 35], labels[i:i + 35]) for i in (0, 35)),
                           metrics="top3,perplexity")
    assert halves["top3"] == more["top3"]
    with pytest.raises(ckopt.UsageError, match="mse"):
        step.evaluate(x=images[:70], y=labels[:70], metrics="mse")
    with pytest.raises(ckopt.UsageError, match="metrics: 'top'"):
        step.evaluate(x=images[:70], y=labels[:70], metrics="top")
    assert (scores.argmax(1) == labels[:70]).mean() == pytest.approx(whole["accuracy"])
    logits = scores.astype("f8")
    losses = numpy.log(numpy.exp(logits).sum(1)) - logits[numpy.arange(70), labels[:70]]
    assert losses.mean() == pytest.approx(whole["loss"], rel=1e-6)


def test_evaluation_between_steps_changes_nothing(digits):
    images, labels = digits
    plain, watched = compile_digits(), compile_digits()
    for batch in list(ckopt.batches(32, x=images, y=labels))[:4]:
        plain(batch)
        watched(batch)
        watched.evaluate(x=images[:50], y=labels[:50])
        watched.predict(x=images[:3])
    assert_same_bits(plain.state_dict(), watched.state_dict())


@pytest.mark.parametrize("make, text", [
    (lambda x, y: dict(x=x), "no array for 'y'"),
    (lambda x, y: dict(x=x, y=y, z=y), "takes no 'z'"),
    (lambda x, y: dict(x=x[:, :, :4], y=y), "shape"),
    (lambda x, y: dict(x=x, y=y + 5), "label"),
    (lambda x, y: dict(x=x + numpy.float64(1e-9), y=y), "'x' is float64.*float32"),
    (lambda x, y: dict(x=x, y=y + 0.5), "'y' is float64"),
    (lambda x, y: dict(x=x.astype("f4") * numpy.float32("nan"), y=y), "NaN"),
    (lambda x, y: dict(x=x.astype(complex), y=y), "complex"),
    (lambda x, y: dict(x=numpy.ma.masked_greater(x, 3), y=y), "'x' has masked"),
    (lambda x, y: dict(x=x, y=(2**53 + 1) * numpy.ones(32, "i8")), "label"),
])
def test_refusals_name_the_array(digits, make, text):
    images, labels = digits
    step = compile_digits()
    with pytest.raises((ckopt.InputError, ckopt.UsageError), match=text):
        step(**make(images[:32] * numpy.float32(1), labels[:32]))
    assert step.updates == 0


def test_exact_conversions(digits):
    """Types that hold the values exactly give the same bits."""
    images, labels = digits
    losses = set()
    for x, y in [(images, labels), (images.astype("f4"), labels.astype("i4")),
                 (images.astype("f8"), labels.astype("u1")),
                 (images.astype(">f4"), labels.astype("f8")),
                 (numpy.asfortranarray(images), list(labels[:32]))]:
        losses.add(compile_digits()(x=x[:32], y=y[:32]))
    assert len(losses) == 1
    for wrapped in (labels.astype("u8")[:32] - numpy.uint64(100), labels[:32] * 2.0**63):
        with pytest.raises(ckopt.InputError, match="'y' is .* would be another number"):
            compile_digits()(x=images[:32], y=wrapped)
    rounding = compile_digits(cast="round")
    rounding(x=images[:32] + 1e-9, y=labels[:32])


def test_errors_have_classes_and_texts(tmp_path):
    with pytest.raises(ckopt.BudgetError, match="(?s)smallest|budget") as info:
        compile_digits(budget="1KiB")
    assert info.value.exit_code == 2
    with pytest.raises(ckopt.InputError, match="no_such"):
        ckopt.compile(tmp_path / "no_such.onnx", loss="mse")
    with pytest.raises(ckopt.UsageError, match="unknown setting 'nonsense'$"):
        compile_digits(nonsense=1)
    with pytest.raises(ckopt.UsageError, match="momentum"):
        compile_digits(momentum=0.9)
    with pytest.raises(ckopt.UsageError, match="lr_schedule='cosine' needs 'total_steps'"):
        compile_digits(lr_schedule="cosine")
    with pytest.raises(ckopt.UsageError, match="unknown setting 'epochs'"):
        compile_digits(epochs=3)
    with pytest.raises(ckopt.OutputError):
        compile_digits().save("/no/such/folder/x.onnx")


def test_errors_speak_of_what_the_caller_has():
    """Keywords, not flags; a diagnostic's text without the driver's frame; bytes, not a path."""
    def told(call, kind=ckopt.Error):
        with pytest.raises(kind) as info:
            call()
        text = str(info.value)
        assert "--" not in text and "error: " not in text and "said above" not in text, text
        return text

    for garbage in (b"", b"no model at all"):
        text = told(lambda g=garbage: ckopt.compile(g, loss="mse"), ckopt.InputError)
        assert "the model given as bytes is" in text and ".onnx'" not in text
    with open(MODEL, "rb") as file:
        model = file.read()
    assert "budget" in told(lambda: ckopt.compile(model, loss="cross_entropy", batch=32, effort=0,
                                                  budget="1KiB"), ckopt.BudgetError)
    step = ckopt.compile(model, loss="cross_entropy", batch=32, effort=0, threads=1)
    assert ">the model given as bytes" in step.plan.timeline()
    assert "give its size (batch=N)" in told(lambda: ckopt.compile(model, loss="cross_entropy"))
    assert "'label_smoothing'" in told(lambda: compile_digits(loss="mse", label_smoothing=0.1))
    step = compile_digits()
    assert "ema=D" in told(lambda: step.save("x.safetensors", averaged=True))


def test_divergence_is_an_error(digits):
    images, labels = digits
    step = compile_digits(optimizer=ckopt.SGD(lr=1e38))
    with pytest.raises(ckopt.NonFiniteError, match="finite|infinite|NaN"):
        for batch in ckopt.batches(32, x=images, y=labels):
            step(batch)


def test_plan_says_what_it_does(digits, tmp_path):
    images, labels = digits
    free = compile_digits()
    tight = compile_digits(budget="min", effort=1)
    assert tight.memory["planned_peak_bytes"] < free.memory["planned_peak_bytes"]
    assert "planned peak (arena)" in str(tight.plan)
    assert "<svg" in tight.plan._repr_html_()
    tight(images[:32], labels[:32])
    assert tight.memory["measured_peak_bytes"] == tight.memory["planned_peak_bytes"]
    assert tight.plan.values
    name = tight.plan.values[0]["name"]
    assert name in tight.plan.explain(name)
    with pytest.raises(ckopt.InputError, match="no value 'nonsense'"):
        tight.plan.explain("nonsense")
    tight.timeline(tmp_path / "step.svg")
    tight.timeline(tmp_path / "step.json")
    assert (tmp_path / "step.svg").read_text().startswith("<svg")
    curve = free.plan.pareto(3, effort=0)
    costs = [point["cost"] for point in curve.points]
    assert costs == sorted(costs, reverse=True) and len(costs) > 1


def test_plans_are_checked(digits):
    """The checker replays the step's plan, and refuses a budget that it does not fit."""
    step = compile_digits(budget="min")
    step.plan.check()
    step.plan.check(budget=step.memory["planned_peak_bytes"])
    with pytest.raises(ckopt.InputError, match="@step takes .* are allowed"):
        step.plan.check(budget=step.memory["planned_peak_bytes"] - 1)


def test_refused_arguments():
    """Python's own mistakes are usage errors that say what is wrong."""
    for settings, text in [(dict(budget=1.5), "is no share"), (dict(budget=True), "neither bytes"),
                           (dict(optimizer=ckopt.SGD), "neither a name nor"),
                           (dict(schedule="cosine"), "none of ckopt's schedules"),
                           (dict(last_batch="pad"), "neither 'skip' nor"),
                           (dict(cast="yes"), "neither 'exact' nor")]:
        with pytest.raises(ckopt.UsageError, match=text):
            compile_digits(**settings)
    with pytest.raises(ckopt.UsageError, match="no ckopt.Group"):
        ckopt.SGD(groups=[("norm", 1)])
    with pytest.raises(ckopt.UsageError, match="not two numbers"):
        ckopt.Adam(betas=0.9).settings()
    with pytest.raises(ckopt.UsageError, match="not int"):
        ckopt.compile(3)
    step = compile_digits()
    with pytest.raises(TypeError, match="neither pickled nor"):
        import copy
        copy.deepcopy(step)
    with pytest.raises(ckopt.OutputError):
        step.timeline("/no/such/folder/x.svg")


def test_profile_takes_its_updates_back(digits):
    images, labels = digits
    step = compile_digits(profile=True)
    before = step.state_dict()
    rows = step.profile(images[:32], labels[:32], steps=2)
    assert rows[0]["seconds"] >= rows[-1]["seconds"] >= 0 and rows[0]["seconds"] > 0
    assert_same_bits(before, step.state_dict())
    with pytest.raises(ckopt.UsageError, match="profile"):
        compile_digits().profile(images[:32], labels[:32])


def test_products_by_class(digits):
    """The first loss is that of f32, nearly; what this CPU has no products for is refused."""
    images, labels = digits
    losses = {name: float(compile_digits(matmul_precision=name)(images[:32], labels[:32]))
              for name in ("highest", "high", "medium")}
    assert losses["high"] == losses["highest"]
    assert 0 < abs(losses["medium"] - losses["highest"]) < 1e-2
    with pytest.raises(ckopt.UsageError, match="is for GPUs"):
        compile_digits(matmul_precision="tf32")


def test_averages(digits):
    images, labels = digits
    step = compile_digits(optimizer=ckopt.AdamW(ema=0.9))
    for batch in list(ckopt.batches(32, x=images, y=labels))[:5]:
        step(batch)
    averages, last = step.state_dict(averaged=True), step.state_dict()
    assert (averages["o.weight"] != last["o.weight"]).any()
    with pytest.raises(ckopt.UsageError, match="ema"):
        compile_digits().state_dict(averaged=True)


def test_threads_wait_for_each_other(digits):
    """Calls of several threads come one after another, and the GIL is free in them."""
    images, labels = digits
    step = compile_digits()
    threads = [threading.Thread(target=lambda: [step(images[:32], labels[:32])
                                                for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = compile_digits()
    for _ in range(40):
        alone(images[:32], labels[:32])
    assert step.updates == 40
    assert_same_bits(step.state_dict(), alone.state_dict())


def test_driver_by_module():
    out, _ = run_driver("--version")
    assert out.startswith("ckopt ") and ckopt.__version__ in out
    run_driver("train", "--nonsense", code=64)
    run_driver("plan", MODEL, "--loss=cross_entropy", "--batch=8",
               "--memory-budget=1KiB", code=2)


def test_settings_are_arrays_and_mappings_too():
    weights = numpy.arange(1, 11, dtype="f4") / 8
    assert ckopt.optim.to_text(weights) == ckopt.optim.to_text(weights.tolist())
    assert ckopt.optim.to_text(numpy.float32(0.5)) == "0.5"
    assert ckopt._step._flag_settings({"dim": {"length": 4, "width": 2}}) == [
        ("dim", "length=4"), ("dim", "width=2")]


def test_wrong_calls_are_usage_errors():
    step = compile_digits()
    with pytest.raises(ckopt.UsageError, match="loss=3"):
        compile_digits(loss=3)
    with pytest.raises(ckopt.UsageError, match="not int"):
        step.evaluate(5)
    for batch in (0, -4):
        with pytest.raises(ckopt.UsageError, match="batch="):
            next(ckopt.batches(batch, x=numpy.zeros(8)))
