"""Writes the models of this folder; needs PyTorch 2.9 or later.

Each is small and has a trap: what the exporter folds or merges when nothing is
said (default.onnx; script.onnx by the TorchScript exporter). data.npz has one
batch (x, y), and the mean squared error with its gradients in float64.
usage: python make.py [NAME...]
"""
import copy
import os
import re
import sys

import numpy
import torch
from torch import nn


class Tied(nn.Module):
    """An embedding tied to the head, a position table, equal LayerNorms."""
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(12, 6)
        self.wpe = nn.Embedding(5, 6)
        self.ln1, self.ln2 = nn.LayerNorm(6), nn.LayerNorm(6)
        self.fc = nn.Linear(6, 6)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.wte.weight
    def forward(self, x):
        h = self.ln1(self.wte(x) + self.wpe(torch.arange(x.shape[1])))
        return self.head(self.ln2(h + self.fc(h)))


class Shared(nn.Module):
    """One module under two names and used twice; clones that start equal."""
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = self.a
        self.c = copy.deepcopy(self.a)
        self.out = nn.Linear(6, 3)
    def forward(self, x):
        return self.out(self.c(torch.relu(self.b(torch.tanh(self.a(x))))))


class Zeros(nn.Module):
    """Parameters and buffers of zeros, scalars that are parameters."""
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(6))
        self.register_buffer("mask", torch.zeros(6))
        self.register_buffer("scale", torch.rand(6))
        self.t, self.u = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor(0.7))
        self.fc = nn.Linear(6, 6)
    def forward(self, x):
        h = self.fc(x + self.shift) * self.scale + self.mask
        return h * self.t + self.u * x


class Gru(nn.Module):
    """Packed weights: two layers, two directions."""
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(8, 2)
    def forward(self, x):
        return self.out(self.rnn(x)[0])


class Cell(nn.Module):
    """A cell whose first step folds to its bias."""
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 4)
        for i in range(x.shape[1]):
            h, c = self.cell(x[:, i], (h, c))
        return h


class Norms(nn.Module):
    """Norms whose weights are stored reshaped; a batch norm without a convolution."""
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm1d(4), nn.Conv1d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.PReLU(),
            nn.Conv1d(8, 8, 1), nn.GroupNorm(2, 8), nn.PReLU(8), nn.Conv1d(8, 4, 1, bias=False), nn.RMSNorm(6))
    def forward(self, x):
        return self.body(x)


class Token(nn.Module):
    """A repeated token, low-rank factors that are transposed in a line."""
    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.randn(1, 1, 6))
        self.A, self.B = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(6, 2))
    def forward(self, x):
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1)
        return x + (x @ self.A.t()) @ self.B.t()


class Encoder(nn.Module):
    """Layers that are copies of one, a mask, zero biases that are dropped."""
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    def forward(self, x):
        mask = torch.full((x.shape[1], x.shape[1]), -torch.inf, dtype=x.dtype).triu(1)
        return self.body(x, mask=mask, is_causal=False)


class Filled(nn.Module):
    """Scores that a mask fills with the least float, which is no parameter."""
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(6, 6), nn.Linear(6, 6)
    def mask(self, x):
        places = torch.arange(x.shape[1])
        open = (places[None, :] <= places[:, None]) & (x[:, None, :, 0] < 9)
        # As Transformers makes it.
        none = torch.tensor(0.0, device=x.device, dtype=x.dtype)
        return torch.where(open, none, torch.finfo(x.dtype).min)
    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) * 0.5 + self.mask(x)
        return scores.softmax(-1) @ x


class FoldedNorm(nn.Module):
    """A batch norm that goes into a convolution: lost."""
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
    def forward(self, x):
        return self.bn(self.conv(x))


class Temperature(nn.Module):
    """exp(logit) and 1 + gain are folded, w is folded in part: lost."""
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.logit = nn.Parameter(torch.tensor(0.7))
        self.gain = nn.Parameter(torch.zeros(6))
        self.w = nn.Parameter(torch.rand(6, 6))
    def forward(self, x):
        x = self.fc(x) * self.logit.exp()
        x = x * (1 + self.gain)
        return x @ self.w + x @ (self.w * self.w)


class Calls(nn.Module):
    """What no operator of ONNX says: padding_idx, detach, label smoothing, and that
    nothing passes at the bounds of a clamp. raw.onnx has the calls."""
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 6, padding_idx=0)
        self.fc = nn.Linear(6, 6, bias=False)
    def forward(self, x):
        h = self.fc(self.table(x))
        h = nn.functional.relu6(h) + h.clamp(min=0)
        h = h + (h.round() - h).detach()
        loss = nn.functional.cross_entropy(h.flatten(0, 1) * 0.1, x.flatten(), label_smoothing=0.1)
        return self.fc(h + self.table(x)) + loss


class Widened(nn.Module):
    """Vectors with dimensions of size 1 around them; of b, only the source tells which: lost."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(torch.randn(3)) for _ in range(3))
        self.d = nn.Parameter(torch.randn(3, 4))
        self.token = nn.Parameter(torch.randn(1, 3, 1))
    def forward(self, x):
        x = torch.cat((self.token.repeat(x.shape[0], 1, 1), x), 2)
        x = x * self.a[:, None] + self.b.view(1, -1, 1)
        return x * self.c.unsqueeze(0).unsqueeze(-1) + self.d[None]


class Transposed(nn.Module):
    """The embedding's transpose as output weight: folded, and read as it is."""
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(12, 6)
    def forward(self, x):
        return torch.tanh(self.e(x)) @ self.e.weight.t()


class Normalized(nn.Module):
    """A function of a parameter that is read as it is, too, and a penalty."""
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(12, 6)
    def forward(self, x):
        weight = nn.functional.normalize(self.e.weight)
        penalty = 0.1 * (self.e.weight ** 2).sum()
        return torch.tanh(self.e(x)) @ weight.t() + penalty
def squared(weight):
    return weight * weight


class Hidden(nn.Module):
    """w is read, and folded where no line names it: lost."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(6, 6))
    def forward(self, x):
        w = self.w
        return x @ w + x @ squared(w)


class Stops(nn.Module):
    """Values that are detached, and a part without gradients."""
    def __init__(self):
        super().__init__()
        self.fc, self.gate = nn.Linear(6, 6), nn.Linear(6, 6)
        self.w = nn.Parameter(torch.randn(6, 6))
    def forward(self, x):
        h = self.fc(x)
        g = self.gate(h)
        with torch.no_grad():
            far = torch.tanh(self.gate(h + 1))
        w = self.w + (self.w.sign() - self.w).detach()
        return h * g.detach() + g * far + (h.detach() + x) @ w


class Types(nn.Module):
    """Tables of which constants look up the first row, or rows in order."""
    def __init__(self):
        super().__init__()
        self.word, self.kind = nn.Embedding(12, 6), nn.Embedding(1, 6)
        self.position = nn.Embedding(5, 6)
    def forward(self, x):
        h = self.word(x) + self.kind(torch.zeros_like(x))
        return h + self.position(torch.arange(x.shape[1]).expand(x.shape[0], -1))


class Attention(nn.Module):
    """A packed weight whose bias alone has its name in script.onnx."""
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        nn.init.normal_(self.attention.in_proj_bias)
    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Parts(nn.Module):
    """A weight of which three calls read a third each: lost."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(18, 6))
    def forward(self, x):
        q, k = nn.functional.linear(x, self.w[:6]), nn.functional.linear(x, self.w[6:12])
        return torch.tanh(q * k) + nn.functional.linear(x, self.w[12:])


class Unit(nn.Module):
    """A factor of 1, which makes no operation: lost."""
    def __init__(self):
        super().__init__()
        self.fc, self.scale = nn.Linear(6, 6), nn.Parameter(torch.tensor(1.0))
    def forward(self, x):
        return self.fc(x) * self.scale + x


class PlainNorm(nn.Module):
    """A batch norm without weights that goes into a convolution: lost."""
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, affine=False)
    def forward(self, x):
        return self.bn(self.conv(x))


class Parallel(nn.Module):
    """Norms of one value that start equal, as in GPT-NeoX: lost; a norm that is called twice."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(2):
            layer = nn.Module()
            layer.norm1, layer.norm2 = nn.LayerNorm(6), nn.LayerNorm(6)
            layer.a, layer.b = nn.Linear(6, 6), nn.Linear(6, 6)
            self.layers.append(layer)
        self.last = nn.LayerNorm(6)
        self.p, self.q = nn.Linear(6, 6), nn.Linear(6, 6)
    def forward(self, x):
        for layer in self.layers:
            x = x + layer.a(layer.norm1(x)) + torch.relu(layer.b(layer.norm2(x)))
        return self.p(self.last(x)) + self.q(self.last(x))


class Twins(nn.Module):
    """Branches that start equal: what of them is one call can be told apart, the rest not."""
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(6, 6), nn.ReLU())
        self.b = copy.deepcopy(self.a)
        self.out = nn.Linear(6, 3)
    def forward(self, x):
        return self.out(self.a(x)) * self.b(x).sum()


class Stacked(nn.Module):
    """Heads that start at zero, stacked: one call, unsqueezed once and joined with itself."""
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(6, 2) for _ in range(3)])
        for head in self.heads:
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
    def forward(self, x):
        return torch.stack([head(x) for head in self.heads])


class Turns(nn.Module):
    """Factors that start equal, each read in two steps: which of them a merged call read is lost."""
    def __init__(self):
        super().__init__()
        self.g = nn.ParameterList([nn.Parameter(torch.ones(6)) for _ in range(3)])
    def forward(self, x):
        for i in range(3):
            x = torch.sin(x * self.g[i]) + torch.cos(x * self.g[(i + 1) % 3])
        return x


class Again(nn.Module):
    """A norm that is called three times on one value, beside one that starts equal: lost."""
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(6), nn.LayerNorm(6)
        self.q, self.k = nn.Linear(6, 6), nn.Linear(6, 6)
    def forward(self, x):
        k = self.k(self.first(x))
        q = self.q(self.first(x)) * self.first(x)
        return self.second(q * k)


class Scaled(nn.Module):
    """Factors of 1 in front of a reshape: neither they nor their products are in the file."""
    def __init__(self):
        super().__init__()
        self.scale = nn.ParameterList([nn.Parameter(torch.tensor(1.0)) for _ in range(2)])
        self.fc = nn.Linear(6, 4)
    def forward(self, x):
        return torch.cat([(s * self.fc(x * (i + 1))).reshape(2, 2, 2)
                          for i, s in enumerate(self.scale)])


class FirstTurn(nn.Module):
    """A norm that first reads a map of zeros: a constant that equals the norm's bias."""
    def __init__(self):
        super().__init__()
        self.c, self.n, self.d = nn.Linear(4, 4, bias=False), nn.LayerNorm(4), nn.Linear(4, 4, bias=False)
    def forward(self, x):
        z = torch.zeros_like(x)
        for _ in range(2):
            z = torch.tanh(x + self.d(self.n(self.c(z))))
        return z


class Ties(nn.Module):
    """Equal extremes: max(dim) and min(dim) choose one, amax shares among all."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]]))
        self.v = nn.Parameter(torch.tensor([[2.0, 2.0, 1.0], [0.0, 4.0, 4.0]]))
    def forward(self, x):
        chosen = self.w.max(1)[0] + self.w.min(dim=0, keepdim=True).values.sum()
        return x * chosen + x * self.v.amax(1)


class Lookup(nn.Module):
    """Tables read by an input: a buffer, a tensor, a parameter."""
    def __init__(self):
        super().__init__()
        self.register_buffer("alpha", torch.linspace(0.9, 0.1, 12))
        self.beta = torch.linspace(0.1, 0.5, 12)
        self.table = nn.Parameter(torch.randn(12, 6))
        self.fc = nn.Linear(6, 6)
    def forward(self, x):
        h = self.fc(self.table[x]) * self.alpha[x][..., None].sqrt()
        return h + self.beta[x][..., None]


class States(nn.Module):
    """Learned initial states for each sample, with the batch as their second dimension."""
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4)
        self.h = nn.Parameter(torch.zeros(1, 1, 4))
        self.query = nn.Parameter(torch.randn(2, 4))
    def forward(self, x):
        y, _ = self.gru(x, self.h.expand(-1, x.shape[1], -1).contiguous())
        return self.query[None].expand(x.shape[0], -1, -1) @ y.transpose(1, 2)


class Gate(nn.Module):
    """A factor of 1 in front of the output."""
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.scale = nn.Parameter(torch.ones(()))
    def forward(self, x):
        return self.fc(x) * self.scale


class Embed(nn.Module):
    """A class token that is repeated on a line of its own."""
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 4))
    def forward(self, x):
        first = self.token.expand(x.shape[0], -1, -1)
        return torch.cat((first, x), dim=1)


class Tables(nn.Module):
    """Buffers that look like parameters: a rotary table, a mask, a level; additions at indices."""
    def __init__(self):
        super().__init__()
        self.embed = Embed()
        angles = torch.arange(6)[:, None] * 10.0 ** -torch.arange(2)
        self.register_buffer("cos", torch.cat([angles, angles], 1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], 1).sin())
        self.register_buffer("mask", torch.tensor([0.0, -100.0]).repeat(6, 3))
        self.register_buffer("level", torch.linspace(0.5, 0.9, 4))
        self.gain = nn.Parameter(torch.rand(4))
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        h = self.fc(self.embed(x)) * self.gain * self.level
        h = h * self.cos + torch.cat([-h[..., 2:], h[..., :2]], -1) * self.sin
        # as attention masks are made: repeated, too
        h = (h @ h.transpose(1, 2) + torch.zeros(1, 6).expand(6, 6) + self.mask).softmax(-1) @ h
        which = (x[0, :, 0] > 0).long()
        return torch.zeros(2, 5, 4).index_add(0, which[:2], h[:, :5])


class NormsEval(nn.Module):
    """A batch norm that the export finds in evaluation mode."""
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6).eval()
    def train(self, mode=True):
        return self
    def forward(self, x):
        return self.norm(x)


class Twice(nn.Module):
    """A batch norm that runs twice in a step, a scalar parameter that is clamped."""
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.scale = nn.Parameter(torch.tensor(2.5))
    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.norm(self.conv(x)) * self.scale.clamp(max=4.6).exp()


class NormInside(nn.Module):
    """Norms in evaluation mode inside of a model that trains."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.frozen, self.norm = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.each = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        for norm in (self.frozen, self.each):
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)
    def train(self, mode=True):
        super().train(mode)
        self.frozen.eval(), self.each.eval()
        return self
    def forward(self, x):
        return self.each(self.norm(torch.relu(self.frozen(self.conv(x)))))


class Dropped(nn.Module):
    """Arguments and changes that have no form in ONNX."""
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 6, scale_grad_by_freq=True)
        self.fc = nn.Linear(6, 6)
        self.teacher = copy.deepcopy(self.fc).requires_grad_(False)
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.count += 1
        with torch.no_grad():
            self.teacher.weight.mul_(0.5).add_(self.fc.weight, alpha=0.5)
        h = torch.nn.functional.avg_pool2d(self.table(x)[None], 2, 1, divisor_override=3)[0]
        h = torch.nn.functional.pad(h, (0, 1))
        return self.teacher(self.fc(h))


class ScatterMean(nn.Module):
    """Means at indices, which ONNX's scatter has not."""
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
    def forward(self, x):
        h, at = self.fc(x), torch.tensor([[0, 0, 2], [0, 1, 2], [3, 1, 2], [0, 1, 2]])
        zero = torch.zeros(4, 3).to(h)
        return (h.scatter_reduce(0, at, h * 2, "mean")
                + zero.scatter_reduce(0, at, h, "mean", include_self=False))


class Probabilities(nn.Module):
    """A cross entropy of class probabilities, weighted and smoothed."""
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.register_buffer("weight", torch.rand(5))
    def forward(self, x):
        z, t = self.fc(x), x[:, :5].softmax(1)
        each = nn.functional.cross_entropy(z, t, reduction="none")
        return each * nn.functional.cross_entropy(z, t, self.weight, label_smoothing=0.1)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, g):
        return g


class Unknown(nn.Module):
    """A backward() of its own, and a call whose form nobody has compared."""
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
    def forward(self, x):
        h = self.fc(x)
        return Round.apply(h).as_strided((2, 3), (6, 1)) + h[:, 3:]


def rounded(x):
    return Round.apply(x)


class Late(nn.Module):
    """A norm that reads its statistics behind their update; a Function that a helper calls."""
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(6, 6), nn.BatchNorm1d(6)
    def forward(self, x):
        h = self.norm(self.fc(x))
        self.norm.eval()
        h = self.norm(h)
        self.norm.train()
        return rounded(h)


class Made(nn.Module):
    """Views of what arithmetic made of a parameter, and of uniform numbers: lost."""
    def __init__(self):
        super().__init__()
        self.w, self.scale = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(1, 4))
        self.token = nn.Parameter(torch.ones(1, 1))
    def forward(self, x):
        return (x @ (self.w * 2).t() * self.scale.exp().expand(2, 4)).sin() + self.token.expand(2, 4)


class Views(nn.Module):
    """Equal parameters, of which two calls read a view: one call, and which it read is lost."""
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.full((1, 6), 0.5)) for _ in range(2))
    def forward(self, x):
        x = (x * self.a.expand(2, 6)).sin() + (x * self.b.expand(2, 6)).cos()
        return x * self.a + x.exp() * self.b


class Sliced(nn.Module):
    """The rows of a parameter that the model reads."""
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.places = nn.Parameter(torch.randn(9, 6))
    def forward(self, x):
        return self.fc(x) + self.places[:2]


MODELS = {
    "norm_inside": (NormInside, lambda: torch.randn(4, 3, 6, 6)),
    "dropped": (Dropped, lambda: torch.tensor([[0, 0, 1], [3, 0, 1]])),
    "scatter_mean": (ScatterMean, lambda: torch.randn(4, 6)),
    "probabilities": (Probabilities, lambda: torch.randn(3, 6)),
    "unknown": (Unknown, lambda: torch.randn(2, 6)),
    "late": (Late, lambda: torch.randn(4, 6)),
    "made": (Made, lambda: torch.randn(2, 6)),
    "views": (Views, lambda: torch.randn(2, 6)),
    "sliced": (Sliced, lambda: torch.randn(2, 6)),
    "twice": (Twice, lambda: torch.randn(2, 2, 4, 4)),
    "norms_eval": (NormsEval, lambda: torch.randn(4, 6)),
    "tables": (Tables, lambda: torch.randn(2, 5, 4)),
    "parallel": (Parallel, lambda: torch.randn(2, 4, 6)),
    "twins": (Twins, lambda: torch.randn(2, 6)),
    "lookup": (Lookup, lambda: torch.randint(0, 12, (2, 5))),
    "states": (States, lambda: torch.randn(3, 2, 3)),
    "gate": (Gate, lambda: torch.randn(2, 6)),
    "hidden": (Hidden, lambda: torch.randn(2, 6)),
    "widened": (Widened, lambda: torch.randn(2, 3, 3)),
    "transposed": (Transposed, lambda: torch.randint(0, 12, (2, 5))),
    "normalized": (Normalized, lambda: torch.randint(0, 12, (2, 5))),
    "calls": (Calls, lambda: torch.tensor([[0, 1, 2, 3, 0], [3, 2, 1, 1, 0]])),
    "stops": (Stops, lambda: torch.randn(2, 6)),
    "types": (Types, lambda: torch.randint(0, 12, (2, 5))),
    "attention": (Attention, lambda: torch.randn(2, 4, 6)),
    "parts": (Parts, lambda: torch.randn(2, 4, 6)),
    "unit": (Unit, lambda: torch.randn(2, 6)),
    "plain_norm": (PlainNorm, lambda: torch.randn(2, 1, 4, 4)),
    "tied": (Tied, lambda: torch.randint(0, 12, (2, 5))),
    "shared": (Shared, lambda: torch.randn(2, 6)),
    "zeros": (Zeros, lambda: torch.randn(2, 6)),
    "gru": (Gru, lambda: torch.randn(2, 4, 3)),
    "cell": (Cell, lambda: torch.randn(2, 3, 3)),
    "norms": (Norms, lambda: torch.randn(2, 4, 6)),
    "token": (Token, lambda: torch.randn(2, 3, 6)),
    "filled": (Filled, lambda: torch.randn(2, 9, 6)),
    "encoder": (Encoder, lambda: torch.randn(2, 4, 6)),
    "folded_norm": (FoldedNorm, lambda: torch.randn(2, 1, 4, 4)),
    "stacked": (Stacked, lambda: torch.randn(2, 6)),
    "turns": (Turns, lambda: torch.randn(2, 6)),
    "scaled": (Scaled, lambda: torch.randn(2, 6)),
    "first_turn": (FirstTurn, lambda: torch.randn(2, 4)),
    "ties": (Ties, lambda: torch.randn(2, 2)),
    "again": (Again, lambda: torch.randn(2, 6)),
    "temperature": (Temperature, lambda: torch.randn(2, 6)),
}


AS_TRACED = ("norm_inside", "dropped", "scatter_mean", "probabilities", "unknown", "late")


def shorten_traces(path):
    """Leaves out the folders of this machine."""
    import onnx
    model = onnx.load(path)
    for node in model.graph.node:
        for entry in node.metadata_props:
            entry.value = re.sub(r'File "[^"]*/', 'File "', entry.value)
    onnx.save(model, path)


def make(name):
    torch.manual_seed(0)
    kind, inputs = MODELS[name]
    model, x = kind().train(), inputs()
    os.makedirs(name, exist_ok=True)
    exact = copy.deepcopy(model).double()
    torch.set_default_dtype(torch.float64)
    out = exact(x.double() if x.is_floating_point() else x)
    torch.set_default_dtype(torch.float32)
    y = torch.randn(out.shape)
    loss = ((out - y.double()) ** 2).mean()
    loss.backward()
    # Of the names of a tied parameter, the program keeps the last.
    last = {id(p): n for n, p in exact.named_parameters(remove_duplicate=False)}
    grads = {"grad/" + last[id(p)]: p.grad.numpy() for p in exact.parameters() if p.grad is not None}
    numpy.savez_compressed(f"{name}/data.npz", x=x.numpy(), y=y.numpy(), loss=loss.item(), **grads)
    if name in AS_TRACED:
        torch.onnx.export(model, (x,), f"{name}/raw.onnx", dynamo=True, optimize=False, input_names=["x"],
                          output_names=["out"], external_data=False, verbose=False)
        shorten_traces(f"{name}/raw.onnx")
        return
    torch.onnx.export(model, (x,), f"{name}/default.onnx", dynamo=True, input_names=["x"],
                      output_names=["out"], external_data=False, verbose=False)
    if name in ("calls", "stops", "norms_eval", "ties"):  # as it was traced
        torch.onnx.export(model, (x,), f"{name}/raw.onnx", dynamo=True, optimize=False, input_names=["x"],
                          output_names=["out"], external_data=False, verbose=False)
        return
    if name in ("made", "sliced", "views", "filled"):
        return shorten_traces(f"{name}/default.onnx")
    if name in ("transposed", "normalized", "stacked", "turns", "again", "scaled", "first_turn"):
        return
    if name == "twice":  # in training form, as it was traced
        os.remove(f"{name}/default.onnx")
        torch.onnx.export(model, (x,), f"{name}/script.onnx", dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          input_names=["x"], output_names=["out"])
        return
    try:
        torch.onnx.export(model, (x,), f"{name}/script.onnx", dynamo=False, opset_version=17,
                          input_names=["x"], output_names=["out"])
    except Exception as error:
        print(name, "script:", str(error).splitlines()[0])


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name)
