# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as steps; skipped where torch or its exporter is missing."""

import copy

import numpy
import pytest
from conftest import run_driver

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


class Averaging(nn.Module):
    """A network and the average of its weights, which forward moves."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 5)
        self.teacher = copy.deepcopy(self.layer).requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for p, q in zip(self.layer.parameters(), self.teacher.parameters()):
                q.mul_(0.5).add_(p * 0.5 + 0.1)
        return self.layer(x) - self.teacher(x)


@pytest.mark.parametrize("make, name", [
    (lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5))),
     "parametrizations.weight.0._u"),
    (lambda: Averaging(), "teacher.weight"),
    (lambda: nn.Sequential(nn.Unflatten(1, (2, 3)),
                           nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(),
                           nn.Linear(6, 5)), "1.running_mean")], ids=["spectral", "average", "instance"])
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


def test_dropout_is_off_in_the_comparison_only(monkeypatch):
    module, batches = network(dropout=0.5), data(3)
    step = ckopt.torch.compile_step(module, batches[0][0], loss="cross_entropy",
                                    optimizer=ckopt.SGD(lr=0.0), **SETTINGS)
    # Another export need not be the function that trains.
    monkeypatch.delattr("ckopt.torch._write")
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


@pytest.mark.parametrize("types", [{"param_type": "bf16"}, {"state_type": "int8"},
                                   {"param_type": "bf16", "state_type": "bf16"}])
def test_types_of_updates_are_no_part_of_the_comparison(types):
    (x, y), = data(1)
    step = ckopt.torch.compile_step(network(), (x,), loss="cross_entropy",
                                    optimizer=ckopt.AdamW(lr=1e-3), **types, **SETTINGS)
    assert numpy.isfinite(step(x, y))
    assert step.updates == 1


def test_fit_compares_its_first_batch(tmp_path):
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
    numpy.savez(tmp_path / "lossy.npz", x=x.numpy(), y=y.numpy())
    with pytest.raises(ckopt.torch.ComparisonError, match="layer.weight"):
        step.fit(tmp_path / "lossy.npz")  # its first batch is read for the comparison


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


class Language(nn.Module):
    """A small language model that returns its loss; the labels shift by one."""

    def __init__(self, tied=False):
        super().__init__()
        self.table, self.norm = nn.Embedding(12, 8), nn.LayerNorm(8)
        self.head = nn.Linear(8, 12, bias=False)
        if tied:
            self.head.weight = self.table.weight
        self.prompt = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, input_ids, labels):
        shifted = nn.functional.pad(labels, (0, 1), value=-100)[..., 1:]
        scores = self.head(self.norm(self.table(input_ids) + self.prompt))
        return nn.functional.cross_entropy(scores.flatten(0, 1), shifted.flatten())


def follow(module, step, batches, lr=0.5):
    """Trains a copy in PyTorch beside the step: losses, and all tensors after sync."""
    eager = copy.deepcopy(module)
    frozen = {name: p.detach().clone() for name, p in
              module.named_parameters(remove_duplicate=False) if not p.requires_grad}
    optimizer = torch.optim.SGD([p for p in eager.parameters() if p.requires_grad], lr=lr)
    for batch in batches:
        optimizer.zero_grad()
        loss = eager(**batch) if isinstance(batch, dict) else eager(*batch)
        loss.backward()
        optimizer.step()
        flat = torch.utils._pytree.tree_leaves(batch)
        assert step(*flat) == pytest.approx(loss.item(), rel=1e-4)
    step.sync()
    expected = eager.state_dict()
    for name, value in module.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=2e-3, atol=2e-4, msg=name)
    for name, p in module.named_parameters(remove_duplicate=False):
        assert name not in frozen or torch.equal(p, frozen[name]), name


def masked():
    ids = torch.randint(0, 12, (4, 6), generator=torch.Generator().manual_seed(2))
    labels = ids.clone()
    labels[:, :3] = -100
    return ids, labels


@pytest.mark.parametrize("example", [
    lambda ids: (ids, ids), lambda ids: (ids, ids.view(4, 6)),
    lambda ids: (torch.stack([ids, ids])[0], torch.stack([ids, ids])[1]),
    lambda ids: {"labels": ids, "input_ids": ids}], ids=["same", "view", "slices", "named"])
def test_equal_examples_are_two_inputs(example):
    """The exporter takes tensors that share memory for one input."""
    ids, labels = masked()
    module = Language()
    step = ckopt.torch.compile_step(module, example(ids), optimizer=ckopt.SGD(lr=0.5), **SETTINGS)
    assert list(step.inputs) == ["input_ids", "labels"]
    follow(module, step, [(ids, labels), (ids.flip(0), labels), (ids, ids)])


def test_examples_nest():
    """Tuples and mappings within are inputs of their own, and shared tensors too."""
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 5)

        def forward(self, pair, *, extra=None, offset):
            return (self.layer(pair["x"]) * pair["parts"][0] + offset).square().mean()

    x, scale = torch.randn(4, 6), torch.randn(4, 5)
    module = Nested()
    batch = {"pair": {"x": x, "parts": (scale,)}, "offset": scale}
    step = ckopt.torch.compile_step(module, batch, optimizer=ckopt.SGD(lr=0.5), **SETTINGS)
    assert sorted(step.inputs) == ["offset", "pair_parts_0", "pair_x"]
    follow(module, step, [batch, {"pair": {"x": x, "parts": (-scale,)}, "offset": scale}])


def test_inputs_that_nothing_reads_are_errors():
    """Values for it would be taken in silence; a name says that it is known."""
    class Ignores(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 5)

        def forward(self, x, mask):
            return self.layer(x).square().mean()

    x = torch.randn(4, 6)
    settings = dict(optimizer=ckopt.SGD(lr=0.5), **SETTINGS)
    with pytest.raises(ckopt.InputError, match="'mask'.*unused_inputs"):
        ckopt.torch.compile_step(Ignores(), (x, x), **settings)
    with pytest.raises(ckopt.UsageError, match="'x' has an effect"):
        ckopt.torch.compile_step(Ignores(), (x, x), unused_inputs="x,mask", **settings)
    with pytest.raises(ckopt.UsageError, match="'masks'"):
        ckopt.torch.compile_step(Ignores(), (x, x), unused_inputs=["masks"], **settings)
    module = Ignores()
    step = ckopt.torch.compile_step(module, (x, x), unused_inputs="mask", **settings)
    assert step(x=x, mask=x) == pytest.approx(module(x, x).item(), rel=1e-5)


def shared_layer():
    layer = nn.Linear(6, 6)
    module = nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(6, 5))
    layer.requires_grad_(False)
    return module


def frozen_views():
    """Two parameters over one matrix, none of them trained."""
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 5))
    whole = torch.randn(12, 6)
    module[0].weight = nn.Parameter(whole[:6], requires_grad=False)
    module[2].weight = nn.Parameter(whole[3:9], requires_grad=False)
    return module


def normed():
    module = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)), nn.Linear(6, 5))
    module[0].parametrizations.weight.original0.requires_grad_(False)
    return module


class Adapted(nn.Module):
    """A frozen layer with a low-rank part beside it, and a buffer that views its weight."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 5).requires_grad_(False)
        self.register_buffer("rows", self.base.weight.detach()[:2])
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 5, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) + (x @ self.rows.T).sum(1, keepdim=True)


@pytest.mark.parametrize("make", [shared_layer, frozen_views, normed, Adapted])
def test_frozen_memory_keeps_its_bits(make):
    torch.manual_seed(1)
    module = make()
    loss = nn.MSELoss()
    x, y = torch.randn(4, 6), torch.randn(4, 5)
    step = ckopt.torch.compile_step(module, x, loss=loss, example_targets=y,
                                    optimizer=ckopt.SGD(lr=0.1), **SETTINGS)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x, y):
            return loss(self.module(x), y)

    follow(Whole(), step, [(x, y)] * 3, lr=0.1)


@pytest.mark.parametrize("by", ["requires_grad", "freeze"])
def test_frozen_weights_are_frozen_under_all_names(by):
    """A file names a tied weight by any of its names, PyTorch by the first."""
    torch.manual_seed(1)
    module = Language(tied=True)
    flags = dict(freeze="table.*|norm.*") if by == "freeze" else {}
    module.requires_grad_(by == "freeze")
    module.prompt.requires_grad_(True)
    step = ckopt.torch.compile_step(module, masked(), optimizer=ckopt.SGD(lr=0.5), **flags,
                                    **SETTINGS)
    if by == "freeze":
        module.requires_grad_(False)
        module.prompt.requires_grad_(True)
    follow(module, step, [masked()] * 3)


def test_frozen_norms_are_put_into_eval():
    """The module would go on moving statistics that the step keeps."""
    module = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
    flags = dict(freeze="0.*|1.*", freeze_norms=True, loss="cross_entropy",
                 optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    x, y = torch.randn(8, 6), torch.randint(3, (8,))
    with pytest.raises(ckopt.UsageError, match=r"freeze_norms: .*'1' .*eval\(\)"):
        ckopt.torch.compile_step(module, x, **flags)
    module[1].running_mean.fill_(0.5)
    module[1].eval()
    step = ckopt.torch.compile_step(module, x, **flags)
    step(x, y)
    assert step.sync()[1].running_mean.tolist() == [0.5] * 6


def test_dropout_of_evaluations_is_told():
    """The step's evaluations are without dropout, whatever the module's are."""
    class Uncertain(nn.Linear):
        def forward(self, x):
            return nn.functional.dropout(super().forward(x), 0.3, training=True)

    with pytest.warns(ckopt.Warning, match=r"in eval\(\), too"):
        ckopt.torch.compile_step(Uncertain(6, 3), torch.randn(4, 6), loss="mse", **SETTINGS)


@pytest.mark.parametrize("which", ["trained", "frozen", "buffer", "plain"])
def test_views_of_trained_memory_are_refused(which):
    """An update of one moves the other in PyTorch, and not in a file."""
    module = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
    weight = module[0].weight.detach()
    if which == "buffer":
        module[1].register_buffer("rows", weight[1:3])
    elif which == "plain":
        module[1].kept = [weight.t()]
    else:
        module[1].weight = nn.Parameter(weight.t(), requires_grad=which == "trained")
    with pytest.raises(ckopt.UnsupportedError, match="shares memory with the trained '0.weight'"):
        ckopt.torch.compile_step(module, torch.randn(4, 6), loss="mse", **SETTINGS)


def test_the_second_step_is_compared():
    """A number that forward counts up is a constant of the file."""
    class Anneals(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.calls = nn.Linear(6, 5), 0

        def forward(self, x):
            if not torch.compiler.is_exporting():
                self.calls += torch.is_grad_enabled()
            return self.layer(x).square().mean() * (0.5 if self.calls > 1 else 1.0)

    x = torch.randn(4, 6)
    step = ckopt.torch.compile_step(Anneals(), x, optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    with pytest.raises(ckopt.torch.ComparisonError, match="second of two steps"):
        step(x)


def test_functions_with_a_backward_of_their_own_are_named():
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Straight(nn.Module):
        def __init__(self, round_):
            super().__init__()
            self.layer, self.round = nn.Linear(6, 6), round_
            self.shift = nn.Parameter(torch.zeros(6))

        def forward(self, x):
            return (self.round(self.layer(x)) + self.shift - x).square().mean()

    x = torch.randn(4, 6)
    settings = dict(optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    step = ckopt.torch.compile_step(Straight(Round.apply), x, **settings)
    with pytest.raises(ckopt.torch.ComparisonError, match=r"'Round'.*\(x\) - x\)\.detach"):
        step(x)
    # What the error advises.
    module = Straight(lambda x: x + (x.round() - x).detach())
    step = ckopt.torch.compile_step(module, x, **settings)
    follow(module, step, [(x,)] * 2, lr=0.1)


@pytest.mark.parametrize("smoothing, weight, reduction", [
    (0.0, None, "mean"), (0.1, torch.arange(1.0, 6.0), "mean"), (0.2, None, "sum")])
def test_probabilities_are_targets(smoothing, weight, reduction):
    """The exporter writes them as labels, and drops the smoothing."""
    class Soft(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 5)

        def forward(self, x, t):
            return nn.functional.cross_entropy(self.layer(x), t, weight=weight,
                                               label_smoothing=smoothing, reduction=reduction)

    x, t = torch.randn(4, 6), torch.rand(4, 5).softmax(1)
    module = Soft()
    step = ckopt.torch.compile_step(module, (x, t), optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    follow(module, step, [(x, t), (x, t.flip(1))], lr=0.1)


@pytest.mark.parametrize("function, text", [
    (lambda x: torch.cdist(x, x.detach()), r"(?s)aten._cdist_forward.*unsqueeze"),
    (lambda x: x.clamp(1e-7, 1), r"(?s)aten.clamp.*clamp\(1e-7, 1.0\)"),
    (lambda x: torch.polygamma(1, x), r"(?s)aten.polygamma.*test_torch.py:\d+.*other operators"),
], ids=["cdist", "clamp", "polygamma"])
def test_operators_that_cannot_be_exported_are_named(function, text):
    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            return function(self.layer(x)).mean()

    with pytest.raises(ckopt.UnsupportedError, match=text):
        ckopt.torch.compile_step(Calls(), torch.randn(4, 6), **SETTINGS)


def test_one_norm_in_eval_between_others():
    """By module, by function, and by a class of its own that does more than normalize."""
    class Active(nn.BatchNorm2d):
        def forward(self, x):
            return torch.relu(super().forward(x))

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Conv2d(1, 4, 3), Active(4).eval()
            self.second, self.last = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
            self.register_buffer("center", torch.randn(4))
            self.register_buffer("spread", torch.rand(4) + 1)

        def forward(self, x):
            x = self.last(self.second(self.norm(self.first(x))))
            x = nn.functional.batch_norm(x, self.center, self.spread).square() + x
            return x.mean()

    torch.manual_seed(1)
    module = Mixed()
    module.norm.running_var.fill_(3.0)
    batches = [(torch.randn(8, 1, 6, 6),) for _ in range(3)]
    step = ckopt.torch.compile_step(module, batches[0], optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    follow(module, step, batches, lr=0.1)


def test_budgets_are_of_the_step_alone():
    """A share that the compared step, without optimizer, could not keep is no error."""
    module, batches = network(), data(1)
    step = ckopt.torch.compile_step(module, batches[0][0], loss="cross_entropy",
                                    optimizer=ckopt.AdamW(lr=0.01), budget_ratio=0.95, **SETTINGS)
    assert numpy.isfinite(step(*batches[0]))


# --- files that train -------------------------------------------------------------------------

class Tagger(nn.Module):
    """Integer inputs, a table with a padding row, an LSTM, outputs by name."""
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 6, padding_idx=0)
        self.rnn = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 3)

    def forward(self, ids, mask):
        h, _ = self.rnn(self.table(ids))
        return {"logits": self.out(h * mask[..., None]), "sums": h.sum((1, 2))}


class Block(nn.Module):
    """Tied weights, norms that start equal and read one value, a buffer, dropout, two losses."""
    def __init__(self):
        super().__init__()
        self.table, self.place = nn.Embedding(9, 8), nn.Parameter(torch.randn(4, 8))
        self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp, self.drop = nn.Linear(8, 8), nn.Dropout(0.2)
        self.register_buffer("scale", torch.tensor(0.5))
        self.head = nn.Linear(8, 9, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        x = self.table(ids) + self.place[None]
        h = self.first(x)
        x = x + self.attention(h, h, h, need_weights=False)[0] + self.drop(
            self.mlp(self.second(x))) * self.scale
        logits = self.head(x)
        return logits, logits.logsumexp(-1).mean(), logits.argmax(-1)


def test_exported_networks_train_as_pytorchs(tmp_path):
    """A file with batch norm, dropout and frozen layers gives PyTorch's gradients without a flag."""
    module, batches = network(dropout=0.3), data(1)
    module[0].requires_grad_(False)
    before = copy.deepcopy(module.state_dict())
    path = str(tmp_path / "model.onnx")
    ckopt.torch.export(module, (batches[0][0],), path)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), f"{name} changed"
    out, _ = run_driver("check", path)
    assert "verdict: can be trained as the model that was exported" in out
    assert "requires_grad" not in out
    assert "dropout: none" not in out
    assert "  frozen: 2 (" in out
    step = ckopt.compile(path, loss="cross_entropy", optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    assert set(step.inputs) == {"input", "y"}
    step(*batches[0])
    after = step.state_dict()
    assert numpy.array_equal(after["0.weight"], before["0.weight"].numpy())
    assert not numpy.array_equal(after["1.weight"], before["1.weight"].numpy())
    assert not numpy.array_equal(after["1.running_mean"], before["1.running_mean"].numpy())
    # What is trained keeps the note.
    step.save(tmp_path / "trained.onnx")
    assert "  frozen: 2 (" in run_driver("check", tmp_path / "trained.onnx")[0]
    # A name in full is trained.
    out, _ = run_driver("check", path, "--train=0.weight|.*")
    assert "  frozen: 1 (" in out


def test_capped_scores_stay_out_of_memory(tmp_path):
    """Gemma 2 caps the scores of attention: they are no tensor, and gradients are PyTorch's."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8,
        attn_logit_softcapping=2.0, sliding_window=24, max_position_embeddings=136,
        initializer_range=0.4, attn_implementation="eager", use_cache=False)).train()
    ids = torch.randint(0, 32, (2, 136))
    path = str(tmp_path / "gemma.onnx")
    ckopt.torch.export(model, (), path, kwargs=dict(input_ids=ids, labels=ids), check=False)
    model(input_ids=ids, labels=ids).loss.backward()
    step = ckopt.compile(path, loss="output:loss", optimizer="none", **SETTINGS)
    loss, gradients = step.gradients(input_ids=ids.numpy(), labels=ids.numpy())
    assert loss == pytest.approx(model(input_ids=ids, labels=ids).loss.item(), rel=1e-5)
    for name, parameter in model.named_parameters():
        if name in gradients:
            wanted = parameter.grad.numpy()
            assert abs(gradients[name] - wanted).max() <= 1e-4 * abs(wanted).max(), name
    assert len(gradients) == len(list(model.parameters()))
    out, _ = run_driver("plan", path, "--loss=output:loss", "--compile-to=autodiff", "-o", "-")
    assert out.count("softcap = 2.000000e+00") >= 4 and "window = 24" in out
    assert "136x136x" not in out


def test_outputs_and_inputs_have_names(tmp_path):
    """Nested outputs, integer inputs and keywords, a batch without a size."""
    onnx = pytest.importorskip("onnx")
    path, ids = str(tmp_path / "tagger.onnx"), torch.randint(0, 9, (3, 4))
    batch = torch.export.Dim("batch")
    ckopt.torch.export(Tagger(), (ids,), path, kwargs={"mask": torch.rand(3, 4)},
                       dynamic_shapes=({0: batch}, {0: batch}))
    graph = onnx.load(path).graph
    assert [one.name for one in graph.input] == ["ids", "mask"]
    assert [one.name for one in graph.output] == ["logits", "sums"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param
    names = {one.name for one in graph.initializer}
    assert {name for name, _ in Tagger().named_parameters()} <= names


def test_tied_weights_and_equal_norms_stay_apart(tmp_path):
    """What default exports merge, a file that trains has."""
    onnx = pytest.importorskip("onnx")
    path, module = str(tmp_path / "block.onnx"), Block()
    module.table.weight.requires_grad_(False)
    ckopt.torch.export(module, torch.randint(0, 9, (3, 4)), path)
    names = {one.name for one in onnx.load(path).graph.initializer}
    assert {"first.weight", "second.weight", "place", "scale"} <= names
    out, _ = run_driver("check", path)
    assert "  frozen: 1 (" in out and "'head.weight'" in out


def test_a_mapping_may_be_the_last_argument(tmp_path):
    """PyTorch's exporter takes one for keywords."""
    class Joins(nn.Linear):
        def forward(self, x, more):
            return super().forward(x + more["u"] * more["v"][0])

    x = torch.randn(4, 6)
    ckopt.torch.export(Joins(6, 3), (x, {"u": x, "v": [x]}), tmp_path / "joins.onnx")
    step = ckopt.compile(str(tmp_path / "joins.onnx"), loss="mse", **SETTINGS)
    assert list(step.inputs) == ["x", "more_u", "more_v_0", "y"]


def test_a_module_in_eval_is_written_as_it_trains(tmp_path):
    """A warning says so; one part in eval() stays so."""
    module, x = network(dropout=0.3), data(1)[0][0]
    with pytest.warns(ckopt.Warning, match="module.train"):
        ckopt.torch.export(module.eval(), x, tmp_path / "a.onnx", check=False)
    assert not module.training
    assert "evaluation" not in run_driver("check", tmp_path / "a.onnx")[0]
    module.train()[1].eval()
    ckopt.torch.export(module, x, tmp_path / "b.onnx", check=False)
    step = ckopt.compile(str(tmp_path / "b.onnx"), loss="cross_entropy", **SETTINGS)
    before = step.state_dict()
    step(*data(1)[0])
    if "1.running_mean" in before:
        assert numpy.array_equal(step.state_dict()["1.running_mean"], before["1.running_mean"])


def test_what_no_file_says_is_not_written(tmp_path):
    """Nothing is written where the file would be another function."""
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    class Second(nn.Module):
        """The second of two outputs has a gradient that no file has."""
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x):
            h = self.fc(x)
            return h, Rounded.apply(h * 2)

    path, x = tmp_path / "no.onnx", torch.randn(4, 6)
    with pytest.raises(ckopt.torch.ComparisonError, match="Rounded"):
        ckopt.torch.export(Second(), x, path)
    with pytest.raises(ckopt.InputError, match="nothing would train"):
        ckopt.torch.export(Second().requires_grad_(False), x, path)
    with pytest.raises(ckopt.UnsupportedError, match="forward changes 'teacher.weight'"):
        ckopt.torch.export(Averaging(), x, path)
    assert not path.exists()
    ckopt.torch.export(Second(), x, path, check=False)
    assert path.exists()


def test_attention_whose_kernel_orders_its_result_is_exported():
    """PyTorch's own kernel for CPUs gives rows of all heads, of which contiguous() is no copy."""
    transformers = pytest.importorskip("transformers")

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.T5ForConditionalGeneration(transformers.T5Config(
                vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
                dropout_rate=0.0, decoder_start_token_id=0))

        def forward(self, input_ids, labels):
            return self.model(input_ids=input_ids, labels=labels, use_cache=False).loss

    torch.manual_seed(0)
    ids, labels = torch.randint(1, 50, (2, 6)), torch.randint(1, 50, (2, 5))
    step = ckopt.torch.compile_step(Loss().train(), (ids, labels), optimizer=ckopt.SGD(lr=0.1),
                                    threads=1)
    assert numpy.isfinite(step(ids, labels))  # and is what PyTorch computes


def test_classes_may_come_last():
    """A language model's scores are [batch, sequence, classes], and its loss is compared so."""
    module = torch.nn.Sequential(torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11))
    ids = torch.randint(0, 11, (2, 5))
    step = ckopt.torch.compile_step(module, (ids,), loss="cross_entropy", class_axis=-1,
                                    optimizer=ckopt.SGD(lr=0.1), threads=1)
    want = torch.nn.functional.cross_entropy(module(ids).flatten(0, 1), ids.flatten())
    assert step(ids, ids) == pytest.approx(float(want.detach()), rel=1e-5)


def test_a_batch_without_a_label_says_so():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4))
    x, y = torch.randn(2, 3), torch.tensor([-100, -100])
    step = ckopt.torch.compile_step(module, (x,), loss="cross_entropy", threads=1,
                                    optimizer=ckopt.SGD(lr=0.1))
    with pytest.raises(ckopt.Error, match="labels.* ignored"):
        step(x, y)
    with pytest.raises(ckopt.InputError, match="sample 1"):
        step(x, torch.tensor([0, 7]))
