# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as steps; skipped where torch or its exporter is missing."""

import copy

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import ckopt  # noqa: E402
import ckopt.torch  # noqa: E402

nn = torch.nn
SETTINGS = dict(threads=2, effort=0)


def network(dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
                         nn.Dropout(dropout), nn.Flatten(), nn.Linear(4 * 36, 16),
                         nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 5)).train()


def data(batches=6, batch=8):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(batch, 1, 6, 6, generator=generator),
             torch.randint(0, 5, (batch,), generator=generator)) for _ in range(batches)]


def train_eagerly(module, batches, lr):
    optimizer = torch.optim.SGD(module.parameters(), lr=lr, momentum=0.9)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_is_pytorchs():
    """Losses, weights and running statistics are PyTorch's after sync."""
    module, batches = network(), data()
    eager = copy.deepcopy(module)
    before = copy.deepcopy(module.state_dict())
    step = ckopt.torch.compile_step(module, batches[0][0], loss="cross_entropy",
                                    optimizer=ckopt.SGD(lr=0.05, momentum=0.9), budget="min",
                                    **SETTINGS)
    losses = [step(x, y) for x, y in batches]
    numpy.testing.assert_allclose(losses, train_eagerly(eager, batches, 0.05), rtol=1e-4)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), f"{name} changed before sync"
    assert step.sync() is module
    expected = eager.state_dict()
    for name, value in module.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=2e-3, atol=2e-4, msg=name)
    assert int(module[1].num_batches_tracked) == len(batches)
    # ONNX's own variance differs by N/(N-1) where it is not converted.
    torch.testing.assert_close(module[1].running_var, expected["1.running_var"], rtol=1e-5,
                               atol=1e-7)


def test_loss_function_is_exported():
    """A loss of PyTorch's with settings of its own is part of the step, or it is refused."""
    module, batches = network(), data(2)
    step = ckopt.torch.compile_step(module, batches[0][0], example_targets=batches[0][1],
                                    loss=nn.CrossEntropyLoss(label_smoothing=0.1),
                                    optimizer=ckopt.SGD(lr=0.01), **SETTINGS)
    expected = nn.functional.cross_entropy(copy.deepcopy(module)(batches[0][0]), batches[0][1],
                                           label_smoothing=0.1).item()
    assert step(*batches[0]) == pytest.approx(expected, rel=1e-4)
    step.sync()


def test_what_is_lost_is_found():
    """An export of another network is an exception that names loss and tensors."""
    class Lossy(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 5)

        def forward(self, x):
            hidden = self.first(x)
            if torch.compiler.is_exporting():  # as an exporter with a defect would
                hidden = hidden * 1.5
            return self.second(hidden)

    x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 3])
    settings = dict(loss="cross_entropy", optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    step = ckopt.torch.compile_step(Lossy(), x, **settings)
    with pytest.raises(ckopt.torch.ComparisonError, match="gradient of 'second.weight'"):
        step(x, y)
    unchecked = ckopt.torch.compile_step(Lossy(), x, check=False, **settings)
    assert numpy.isfinite(unchecked(x, y))


def test_comparison_of_noise_says_that_it_is_noise():
    """What differs from run to run in PyTorch is no loss of the exporter."""
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 5)

        def forward(self, x):
            return self.layer(x + torch.randn_like(x))

    x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 3])
    step = ckopt.torch.compile_step(Noisy(), x, loss="cross_entropy",
                                    optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    with pytest.raises(ckopt.torch.ComparisonError, match="draws random numbers"):
        step(x, y)


def test_comparison_is_of_the_weights_of_now(tmp_path):
    """A step that was resumed, or got other weights, is compared with these."""
    module, batches = network(), data(3)
    settings = dict(loss="cross_entropy", optimizer=ckopt.AdamW(lr=0.01), **SETTINGS)
    first = ckopt.torch.compile_step(module, batches[0][0], **settings)
    for x, y in batches[:2]:
        first(x, y)
    first.checkpoint(tmp_path / "two.ckpt")
    weights = first.state_dict()
    expected = first(*batches[2])
    torch.manual_seed(3)
    other = copy.deepcopy(module)
    nn.init.normal_(other[8].weight)
    resumed = ckopt.torch.compile_step(other, batches[0][0], **settings)
    assert resumed.resume(tmp_path / "two.ckpt") == 2
    assert resumed(*batches[2]) == expected
    loaded = ckopt.torch.compile_step(other, batches[0][0], **settings)
    loaded.load_state_dict(weights)
    assert loaded(*batches[2]) == expected


@pytest.mark.parametrize("make, name", [
    (lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5))),
     "parametrizations.weight.0._u"),
    (lambda: nn.Sequential(nn.Unflatten(1, (2, 3)),
                           nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(),
                           nn.Linear(6, 5)), "1.running_mean")], ids=["spectral", "instance"])
def test_what_forward_changes_is_refused(make, name):
    """State that the file cannot hold would stay as it was, and its readers with it."""
    x = torch.randn(4, 6)
    settings = dict(loss="cross_entropy", optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    with pytest.raises(ckopt.UnsupportedError, match=name):
        ckopt.torch.compile_step(make(), x, **settings)
    with pytest.warns(ckopt.Warning, match=name):
        ckopt.torch.compile_step(make(), x, check=False, **settings)


@pytest.mark.parametrize("hook", [
    lambda module: module[0].weight.register_hook(lambda grad: grad * 2),
    lambda module: module[0].register_full_backward_hook(lambda *_: None),
])
def test_hooks_of_the_backward_pass_are_refused(hook):
    """A copy of the module loses hooks of parameters, so no comparison would see them."""
    module = nn.Sequential(nn.Linear(6, 3))
    hook(module)
    with pytest.raises(ckopt.UnsupportedError, match="hooks of the backward pass"):
        ckopt.torch.compile_step(module, torch.randn(4, 6), loss="cross_entropy",
                                 optimizer=ckopt.SGD(lr=0.1), **SETTINGS)


def test_dropout_is_off_in_the_comparison_only():
    module, batches = network(dropout=0.5), data(3)
    step = ckopt.torch.compile_step(module, batches[0][0], loss="cross_entropy",
                                    optimizer=ckopt.SGD(lr=0.0), **SETTINGS)
    losses = [step(*batches[0]) for _ in range(3)]
    assert len(set(losses)) == 3


def test_frozen_parameters_stay():
    module, batches = network(), data(2)
    module[0].weight.requires_grad_(False)
    step = ckopt.torch.compile_step(module, batches[0][0], loss="cross_entropy",
                                    optimizer=ckopt.AdamW(lr=0.1), **SETTINGS)
    before = copy.deepcopy(module.state_dict())
    for x, y in batches:
        step(x, y)
    step.sync()
    assert torch.equal(module[0].weight, before["0.weight"])
    assert not torch.equal(module[8].weight, before["8.weight"])


@pytest.mark.parametrize("which", ["one", "all"])
def test_norms_in_eval_stay_so(which):
    """The exporter writes both kinds alike, and fixed statistics are no weights."""
    module, batches = network(), data(2)
    module = nn.Sequential(module[:8], nn.BatchNorm1d(16), module[8]).train()
    fixed = module[1] if which == "one" else module
    fixed.eval()
    module[1].running_var.fill_(3.0)
    module[1].running_mean.fill_(0.5)
    modes = [one.training for one in module.modules()]
    eager = copy.deepcopy(module)
    settings = dict(SETTINGS, loss="cross_entropy", optimizer=ckopt.SGD(lr=0.05, momentum=0.9))
    if which == "all":
        with pytest.warns(ckopt.Warning, match=r"in eval\(\)"):
            step = ckopt.torch.compile_step(module, batches[0][0], **settings)
    else:
        step = ckopt.torch.compile_step(module, batches[0][0], **settings)
    losses = [step(x, y) for x, y in batches]
    numpy.testing.assert_allclose(losses, train_eagerly(eager, batches, 0.05), rtol=1e-4)
    step.sync()
    assert [one.training for one in module.modules()] == modes
    for name, value in eager.state_dict().items():
        torch.testing.assert_close(module.state_dict()[name], value, rtol=2e-3, atol=2e-4, msg=name)


def test_settings_of_losses_are_compared():
    module, batches = network(), data(1)
    x, y = batches[0]
    for settings, named in [(dict(label_smoothing=0.1), dict(label_smoothing=0.1)),
                            (dict(class_weights=[1.0, 2.0, 3.0, 4.0, 5.0], reduction="sum"),
                             dict(weight=torch.arange(1.0, 6.0), reduction="sum"))]:
        step = ckopt.torch.compile_step(module, x, loss="cross_entropy",
                                        optimizer=ckopt.SGD(lr=0.0), **settings, **SETTINGS)
        expected = nn.functional.cross_entropy(copy.deepcopy(module)(x), y, **named)
        assert step(x, y) == pytest.approx(expected.item(), rel=1e-4)


def test_fit_compares_its_first_batch():
    """By tensors, by a DataLoader, and with nothing lost where the comparison fails."""
    module, batches = network(), data(6)
    eager = copy.deepcopy(module)
    step = ckopt.torch.compile_step(module, batches[0][0], loss="cross_entropy",
                                    optimizer=ckopt.SGD(lr=0.05, momentum=0.9), **SETTINGS)
    whole = torch.utils.data.TensorDataset(*(torch.cat(part) for part in zip(*batches)))
    result = step.fit(torch.utils.data.DataLoader(whole, batch_size=12), epochs=2)
    assert result.steps == 12
    numpy.testing.assert_allclose(result.losses[:6], train_eagerly(eager, batches, 0.05), rtol=1e-4)
    step.sync()
    assert int(module[1].num_batches_tracked) == 12

    class Lossy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 5)

        def forward(self, x):
            return self.layer(x) * (1.5 if torch.compiler.is_exporting() else 1.0)

    x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 3])
    for samples in ([(x, y)], {"x": x, "y": y}):
        step = ckopt.torch.compile_step(Lossy(), x, loss="cross_entropy",
                                        optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
        for _ in range(2):  # a second try is compared as well
            with pytest.raises(ckopt.torch.ComparisonError, match="layer.weight"):
                step.fit(samples)
        assert step.updates == 0
    with pytest.raises(ckopt.UsageError, match="check=False"):
        step.fit("file.npz")


def test_refusals():
    x = torch.randn(4, 6)

    class Loops(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            return self.layer(x) if x.sum().item() > 0 else x

    with pytest.raises(ckopt.UnsupportedError, match="(?s)cannot export.*DataDependent"):
        ckopt.torch.compile_step(Loops(), x, loss="mse", **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="example_targets"):
        ckopt.torch.compile_step(nn.Linear(6, 6), x, loss=nn.MSELoss(), **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="no torch.nn.Module"):
        ckopt.torch.compile_step(lambda x: x, x, loss="mse", **SETTINGS)
    module = nn.Linear(6, 2).to("meta")
    with pytest.raises(ckopt.InputError, match="'weight' is on meta"):
        ckopt.torch.compile_step(module, x, loss="mse", **SETTINGS)
