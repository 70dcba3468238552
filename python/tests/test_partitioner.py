# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A byte budget inside torch.compile; skipped where torch (2.15 on) is missing."""

import copy
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch._inductor.custom_graph_pass")
if not hasattr(__import__("torch._inductor.custom_graph_pass", fromlist=["x"]),
               "CustomPartitionerFn"):
    pytest.skip("this PyTorch has no hook for a partitioner (2.15 has)", allow_module_level=True)

import torch._inductor.config as inductor  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import ckopt  # noqa: E402
import ckopt.torch  # noqa: E402
from ckopt import _joint, _speeds  # noqa: E402

nn, F = torch.nn, torch.nn.functional
KIB = 1024


class Net(nn.Module):
    """Convolution, batch norm, dropout and attention, small."""

    def __init__(self, tagged=False):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.mix, self.out = nn.Linear(64, 192), nn.Linear(64, 5)
        self.mlp = nn.ModuleList([nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(),
                                                nn.Dropout(0.2), nn.Linear(256, 64))
                                  for _ in range(3)])
        self.tagged = tagged

    def forward(self, x, y):
        h = F.relu(self.norm(self.conv(x))).flatten(2)
        q, k, v = self.mix(h).chunk(3, -1)
        h = h + F.dropout((q @ k.transpose(1, 2) / 8).softmax(-1), 0.1, self.training) @ v
        for block in self.mlp:
            h = h + (checkpoint(block, h, use_reentrant=False) if self.tagged else block(h))
        return F.cross_entropy(self.out(h.mean(1)), y)


def batch():
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(64, 2, 8, 8, generator=generator),
            torch.randint(0, 5, (64,), generator=generator))


def train(module, hook, steps=2, data=None, compiled=True):
    """Losses, gradients and state after some steps of torch.compile with the hook."""
    torch._dynamo.reset()
    module = copy.deepcopy(module).train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    with inductor.patch(custom_partitioner_fn=hook, force_disable_caches=True):
        step = torch.compile(module, dynamic=False) if compiled else module
        torch.manual_seed(3)
        losses, gradients = [], []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = step(*(data or batch()))
            loss.backward()
            gradients.append([p.grad.clone() for p in module.parameters()])
            optimizer.step()
            losses.append(loss.item())
    return losses, gradients, module.state_dict()


def assert_same(one, other):
    torch.testing.assert_close(one[0], other[0], rtol=1e-6, atol=1e-7)
    for a, b in zip(one[1], other[1]):
        for x, y in zip(a, b):
            torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-6)
    for name, value in one[2].items():
        torch.testing.assert_close(value, other[2][name], rtol=1e-4, atol=1e-6, msg=name)


def plan_only(module, budget, data=None, **options):
    """The hook's figures; nothing is compiled after it."""
    class Stop(Exception):
        pass

    hook = ckopt.torch.partitioner(budget, **options)
    call = type(hook).__call__

    class Stopping(type(hook)):
        def __call__(self, *args, **kwargs):
            self.modules = call(self, *args, **kwargs)
            raise Stop

    hook.__class__ = Stopping
    torch._dynamo.reset()
    with inductor.patch(custom_partitioner_fn=hook, force_disable_caches=True):
        try:
            torch.compile(copy.deepcopy(module), dynamic=False)(*(data or batch()))
        except Exception as error:
            if "Stop" not in repr(error):
                raise
    return hook


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture(scope="module")
def default(net):
    """Bytes that the step takes where nothing is computed again for the budget's sake."""
    return plan_only(net, "1GiB", check=False).figures["peak"]


def test_training_is_that_of_torch_compile(net, default):
    """Loss, gradients, running statistics and dropout's masks do not depend on the budget."""
    expected = train(net, None)
    hook = ckopt.torch.partitioner(int(0.7 * default))
    assert_same(train(net, hook), expected)
    assert hook.figures["peak"] <= 0.7 * default
    assert hook.figures["recomputed_ops"] > 0
    assert int(expected[2]["norm.num_batches_tracked"]) == 2


def test_bytes_follow_the_budget(net, default):
    """Peaks are within the budgets and fall with them; time only rises."""
    figures = [plan_only(net, int(share * default), check=False).figures
               for share in (1.1, 0.85, 0.7, 0.6)]
    for share, one in zip((1.1, 0.85, 0.7, 0.6), figures):
        assert one["peak"] <= share * default
    peaks = [one["peak"] for one in figures]
    times = [one["slower_by_the_model"] for one in figures]
    assert peaks == sorted(peaks, reverse=True) and peaks[-1] < peaks[0]
    # The first is what torch.compile does anyway, whatever the model says of its time.
    assert times[0] == 0 and times[1:] == sorted(times[1:])
    assert figures[0]["by_the_model"] == figures[0]["activations_and_gradients"]


def test_saved_views_of_one_buffer_count_once():
    """Queries, keys and values are views of one product, which lies in memory once."""
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, 4, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
            return (self.out(y) ** 2).mean()

    hook = plan_only(Attention(), "1GiB", data=(torch.randn(8, 64, 64),), check=False)
    product = 8 * 64 * 192 * 4
    assert product <= hook.figures["saved"] < 2 * product


def test_never_slower_than_a_ratio(net, default, monkeypatch):
    """At the bytes of PyTorch's own choice for a ratio, what is found takes no longer."""
    from ckopt import _saved
    found, real = [], _saved.Search.find

    def find(self, budget):
        for ratio in (0.75, 0.5):
            theirs = self._judge(self._theirs(ratio))
            found.append((theirs.seconds, real(self, theirs.peak).seconds))
        return real(self, budget)

    monkeypatch.setattr(_saved.Search, "find", find)
    plan_only(net, int(0.7 * default), check=False)
    assert found and all(ours <= theirs for theirs, ours in found)


def test_what_is_random_runs_once(net, default):
    """Seeds are made in the forward module alone: the backward one would draw others."""
    hook = plan_only(net, int(0.6 * default), check=False)
    names = [[str(n.target) for n in m.graph.nodes if n.op == "call_function"]
             for m in hook.modules]
    assert any("inductor_seeds" in n for n in names[0])
    assert not any("inductor_seeds" in n for n in names[1])


def test_checkpoint_tags_are_kept(default):
    """What the user tagged is computed again even where bytes are plenty."""
    torch.manual_seed(0)
    tagged = Net(tagged=True)
    hook = plan_only(tagged, "1GiB", check=False)
    saved = {n.name for n in hook.modules[1].graph.nodes if n.op == "placeholder"}
    marked = {n.name for n in hook.modules[0].graph.nodes
              if n.meta.get("recompute") is not None and n.op == "call_function" and
              "MUST_SAVE" not in str(n.meta["recompute"])}
    assert marked and not marked & saved
    again = {n.name for n in hook.modules[1].graph.nodes if n.op == "call_function"}
    assert marked & again


def test_mutated_inputs_are_not_read_later():
    """A buffer that the step changes is not saved: the backward part would read the new one.

    PyTorch 2.15's own choice does read it, so eager training says what is right.
    """
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(32, 32)
            self.register_buffer("scale", torch.full((32,), 0.5))

        def forward(self, x):
            h = torch.tanh(self.layer(x) + self.scale)
            self.scale.mul_(1.5)
            return (h * h).mean()

    torch.manual_seed(0)
    module, data = Counts(), (torch.randn(64, 32),)
    expected = train(module, None, data=data, compiled=False)
    for budget in ("64KiB", "1GiB"):
        assert_same(train(module, ckopt.torch.partitioner(budget), data=data), expected)
    assert float(expected[2]["scale"][0]) == pytest.approx(0.5 * 1.5**2)


def test_what_does_not_fit_names_bytes(net, default):
    with pytest.raises(Exception, match="the smallest found needs [0-9,]+ bytes"):
        plan_only(net, int(0.2 * default), check=False)
    with pytest.raises(Exception, match="optimizer state .* alone need [0-9,]+ bytes"):
        plan_only(net, "300KB", optimizer=torch.optim.AdamW)


def test_one_graph_has_the_budget(net):
    """A second graph, symbolic sizes and texts that are no bytes are refused."""
    class Breaks(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            h = self.a(x).tanh()
            torch._dynamo.graph_break()
            return self.b(h).tanh().sum()

    hook = ckopt.torch.partitioner("1MiB", check=False)
    with pytest.raises(Exception, match=r"a second graph .*1,048,576 bytes .*first one has"):
        train(Breaks(), hook, data=(torch.randn(4, 8),))
    torch._dynamo.reset()
    with inductor.patch(custom_partitioner_fn=ckopt.torch.partitioner("1MiB"),
                        force_disable_caches=True):
        with pytest.raises(Exception, match="symbolic size .*1,048,576 bytes"):
            torch.compile(nn.Linear(8, 8), dynamic=True)(torch.randn(5, 8)).sum().backward()
    for wrong in ("2 apples", -1, True, 1.5):
        with pytest.raises(ckopt.UsageError, match="budget is"):
            ckopt.torch.partitioner(wrong)


def test_uuid_holds_what_decides():
    make = ckopt.torch.partitioner
    one = make("1MiB").uuid()
    assert one == make(2**20).uuid() and ckopt.__version__ in one
    others = [make("2MiB"), make("1MiB", reserve=1), make("1MiB", check=False),
              make("1MiB", optimizer=torch.optim.Adam)]
    assert len({one, *[o.uuid() for o in others]}) == 5


def test_optimizers_state_is_counted():
    parameters = [torch.nn.Parameter(torch.zeros(8, 8))]
    for optimizer, copies in ((torch.optim.AdamW, 2), (torch.optim.SGD, 0),
                              (torch.optim.SGD(parameters, lr=0.1, momentum=0.9), 1),
                              (torch.optim.Adam(parameters, amsgrad=True), 3)):
        hook = ckopt.torch.partitioner("1GiB", optimizer=optimizer)
        assert hook._optimizer.state([10**6]) == pytest.approx(copies * 10**6, rel=0.001)


def card(name, major, minor, count, **more):
    """What torch.cuda.get_device_properties returns, as far as it is read."""
    return types.SimpleNamespace(name=name, major=major, minor=minor, multi_processor_count=count,
                                 **more)


def test_speeds_are_those_of_the_device():
    """Products by the type of their operands, by the table that ckopt's own steps are planned by."""
    h100 = _speeds.of_properties(card("NVIDIA H100 80GB HBM3", 9, 0, 132))
    assert h100.of(torch.bfloat16) == h100.of(torch.float16) > 10 * h100.of(torch.float32)
    assert h100.of(torch.float64) == h100.of(torch.float32) / 2
    assert h100.of(torch.float32, convolution=True) > 5 * h100.of(torch.float32)  # rounds to TF32
    rounds = _speeds.of_properties(card("NVIDIA H100 PCIe", 9, 0, 114), tf32=True,
                                   convolutions_tf32=False)
    assert rounds.of(torch.float32) == h100.of(torch.float32, convolution=True)
    assert rounds.of(torch.float32, convolution=True) == h100.of(torch.float32)
    l4 = _speeds.of_properties(card("NVIDIA L4", 8, 9, 58))
    assert 5 < h100.bandwidth / l4.bandwidth < 20


def test_a_device_that_no_table_has_is_scaled():
    """By multiprocessors and clocks, from the nearest one of its capability."""
    near = _speeds.of_properties(card("NVIDIA GeForce RTX 5090", 12, 0, 170))
    half = _speeds.of_properties(card("NVIDIA New", 12, 0, 85))
    for dtype in (torch.float32, torch.bfloat16):
        assert half.of(dtype) == pytest.approx(near.of(dtype) / 2)
    assert half.elements == pytest.approx(near.elements / 2)
    known = card("NVIDIA New", 12, 0, 85, clock_rate=900_000, memory_clock_rate=14_000_000,
                 memory_bus_width=512)  # 1.79 TB/s by its data sheet
    slow = _speeds.of_properties(known)
    assert slow.of(torch.float32) == pytest.approx(near.of(torch.float32) / 4)
    assert 1.5e12 < slow.bandwidth < 1.79e12


def test_a_product_takes_as_long_as_its_type(monkeypatch):
    from ckopt import _saved
    found, real = [], _saved.Search.find

    def find(self, budget):
        found.append(sum(self.joint.work))
        return real(self, budget)

    monkeypatch.setattr(_saved.Search, "find", find)
    monkeypatch.setattr(_joint, "of_device", lambda device: _speeds.Speeds(
        1e12, 1e12, 1e12, {torch.bfloat16: 8e12}))
    class Two(nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.a, self.b = (nn.Linear(64, 64, dtype=dtype) for _ in range(2))

        def forward(self, x):
            return self.b(self.a(x).tanh()).tanh().sum()

    for dtype in (torch.float32, torch.bfloat16):
        plan_only(Two(dtype), "1GiB", data=(torch.randn(64, 64).to(dtype),), check=False)
    assert found[0] == pytest.approx(8 * found[1]) and found[1] > 0


def test_tensors_of_a_device_count_by_its_allocator():
    """PyTorch's for CUDA hands out multiples of 512 bytes; on the CPU bytes are bytes."""
    with torch._subclasses.FakeTensorMode():
        for elements, there in ((0, 0), (1, 512), (128, 512), (129, 1024), (10**6, 4_000_256)):
            assert _joint.nbytes(torch.empty(elements, device="cuda")) == there
            assert _joint.nbytes(torch.empty(elements)) == 4 * elements
