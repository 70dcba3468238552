# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Datasets of single samples, and updates of several batches whose number is not known."""

import numpy
import pytest
from conftest import compile_digits as compile_with_threads
from test_fit import parts, text_model
from test_step import assert_same_bits

import ckopt


def compile_digits(**settings):
    """On one thread: two wait long for each other where others are at work."""
    return compile_with_threads(threads=1, **settings)


class Pairs:
    """What torch calls a map-style dataset: a length, and items by number."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.asked = []

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        self.asked.append(index)
        return self.images[index], self.labels[index]


def test_a_dataset_has_the_bits_of_its_arrays(digits):
    """A list of mappings, one of tuples, and a dataset without an iterator: shuffled alike."""
    images, labels = digits[0][:325], digits[1][:325]
    whole = compile_digits(seed=5)
    expected = whole.fit({"x": images, "y": labels}, epochs=2)
    for samples in (Pairs(images, labels),
                    [{"y": int(label), "x": image.tolist()} for image, label in zip(images, labels)],
                    [*zip(images, labels)]):
        step = compile_digits(seed=5)
        with pytest.warns(ckopt.Warning, match="5 samples of each epoch's last batch"):
            result = step.fit(samples, epochs=2, validation=samples)
        assert result.losses == expected.losses and result.dropped == 5
        assert result.validation["count"] == 325
        assert step.evaluate(samples) == result.validation
        assert_same_bits(whole.state_dict(), step.state_dict())
    with pytest.raises(ckopt.InputError, match="5 samples"):
        compile_digits(last_batch="error").fit(Pairs(images, labels))
    with pytest.raises(ckopt.UsageError, match="samples_per_epoch is for batches"):
        step.fit(Pairs(images, labels), samples_per_epoch=325)


def test_a_dataset_is_resumed_within_an_epoch(digits, tmp_path):
    """And reads no sample that it has trained on before."""
    images, labels = digits[0][:320], digits[1][:320]
    whole = compile_digits(seed=5)
    whole.fit(Pairs(images, labels), epochs=2)
    half = compile_digits(seed=5)
    half.fit(Pairs(images, labels), epochs=2, max_steps=13, checkpoint=tmp_path / "half.ckpt")
    resumed, samples = compile_digits(seed=5), Pairs(images, labels)
    assert resumed.fit(samples, epochs=2, resume=tmp_path / "half.ckpt").steps == 7
    assert_same_bits(whole.state_dict(), resumed.state_dict())
    assert len(set(samples.asked[1:])) == 7 * 32
    with pytest.raises(ckopt.InputError, match="the data was"):
        compile_digits(seed=5).fit(Pairs(images[:300], labels[:300]), epochs=2,
                                   resume=tmp_path / "half.ckpt")


def test_a_share_of_a_dataset_is_held_out(digits):
    images, labels = digits[0][:320], digits[1][:320]
    whole, step, samples = compile_digits(seed=5), compile_digits(seed=5), Pairs(images, labels)
    expected = whole.fit({"x": images, "y": labels}, epochs=2, holdout=0.2)
    result = step.fit(samples, epochs=2, holdout=0.2)
    assert result.losses == expected.losses and result.validation == expected.validation
    assert result.validation["count"] == 64
    assert_same_bits(whole.state_dict(), step.state_dict())
    with pytest.raises(ckopt.UsageError, match="no share of its samples can be held out"):
        step.fit(parts(images, labels, [32]), holdout=0.2)


def test_single_samples_of_an_iterator_keep_their_order(digits):
    images, labels = digits[0][:320], digits[1][:320]
    batches = compile_digits()
    batches.fit(parts(images, labels, [32]))
    step = compile_digits()
    step.fit(zip(images, labels))
    assert_same_bits(batches.state_dict(), step.state_dict())
    assert step.evaluate(zip(images[:40], labels[:40]))["count"] == 40


def test_samples_of_other_lengths_say_what_to_do(digits, tmp_path):
    step = ckopt.compile(text_model(tmp_path), loss="cross_entropy", batch=2, threads=1, effort=0)
    rows = [numpy.arange(16), numpy.arange(16), numpy.arange(12)]
    samples = [{"x": row, "y": row} for row in rows]
    with pytest.raises(ckopt.InputError, match=r"'x' of sample 2 has shape \[12\], the step takes "
                       r"\[16\]: samples of other lengths are padded"):
        step.fit(samples)
    with pytest.raises(ckopt.InputError, match="'x' of sample 2 has shape"):
        step.evaluate(samples)
    with pytest.raises(ckopt.InputError, match="padded to this one"):
        step.fit(iter(samples))


def test_accumulation_goes_over_epochs_of_unknown_length(digits):
    """As where the number is known: what is left at the end of all changes nothing."""
    images, labels = digits[0][:32 * 5], digits[1][:32 * 5]
    settings = dict(optimizer=ckopt.SGD(lr=0.1, accumulate=2))
    known, step = compile_digits(**settings), compile_digits(**settings)
    expected = known.fit(lambda: parts(images, labels, [32]), epochs=3, samples_per_epoch=160)
    result = step.fit(lambda: parts(images, labels, [32]), epochs=3)
    assert result.losses == expected.losses and result.steps == 7
    assert result.dropped_batches == expected.dropped_batches == 1
    # The dropped batch moved running statistics (not there, where the number is known).
    trained = [name for name in step.state_dict() if "running" not in name]
    assert_same_bits({name: known.state_dict()[name] for name in trained},
                     {name: step.state_dict()[name] for name in trained})
    # And it is in no later update.
    state = known.state_dict()
    for one in (known, step):
        one.load_state_dict(state)
        one.fit([(images[:64], labels[:64])], samples_per_epoch=64 if one is known else None)
    assert_same_bits(known.state_dict(), step.state_dict())


def test_an_update_that_an_error_ended_is_forgotten(digits):
    images, labels = digits

    def broken():
        yield images[:32], labels[:32]
        raise OSError("the disk is gone")

    settings = dict(optimizer=ckopt.SGD(lr=0.1, accumulate=2))
    plain, step = compile_digits(**settings), compile_digits(**settings)
    with pytest.raises(OSError, match="the disk is gone"):
        step.fit(broken())
    batches = [(images[32:64], labels[32:64]), (images[64:96], labels[64:96])] * 2
    assert step.fit(batches).losses == plain.fit(batches).losses


def test_accumulation_of_a_stream_without_end(digits):
    images, labels = digits

    def endless():
        while True:
            yield from parts(images[:320], labels[:320], [50])

    step = compile_digits(optimizer=ckopt.SGD(lr=0.1, accumulate=3))
    result = step.fit(endless(), max_steps=4)
    assert result.steps == 4 and step.updates == 4 and result.dropped_batches == 0
    with pytest.raises(ckopt.InputError, match="one update takes 3 batches of 32 samples, but the "
                       "run has 2 in all"):
        step.fit(parts(images[:64], labels[:64], [32]))
    assert step.fit(parts(images[:96], labels[:96], [32])).steps == 1


def test_inputs_of_a_text_are_named(tmp_path):
    """A model of several inputs has to say what each takes of a text."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(text_model(tmp_path))
    helper = onnx.helper
    model.graph.input.append(helper.make_tensor_value_info(
        "labels", onnx.TensorProto.INT64, ["batch", 16]))
    model.graph.node.append(helper.make_node("Transpose", ["scores"], ["turned"], perm=[0, 2, 1]))
    model.graph.node.append(helper.make_node("SoftmaxCrossEntropyLoss", ["turned", "labels"],
                                             ["loss"], "lose"))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, []))
    settings = dict(batch=8, threads=1, effort=0)
    tokens = ckopt.Tokens(tmp_path / "train.bin", sequence=16)
    step = ckopt.compile(model, **settings)
    with pytest.raises(ckopt.UsageError, match="inputs=.x=tokens,labels=next"):
        step.fit(tokens)
    step = ckopt.compile(model, inputs="x=tokens,labels=next", **settings)
    assert step.fit(tokens, max_steps=3).steps == 3
