# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes OptimizerGolden.inc: parameters after some steps of torch.optim's
optimizers, in float64. Run by hand where PyTorch is installed:

    python optimizer_golden.py > OptimizerGolden.inc

The problem is that of OptimizerTest.cpp: parameters a and b, gradients and
learning rates that are functions of the step. Lion is not in torch.optim; it is
written out here as in its paper.
"""
import math
import sys

import torch

torch.set_default_dtype(torch.float64)
SHOWN = (1, 2, 6, 20)


def gradients(t):
    a = [0.1 * t, -0.7, math.sin(3.0 * t)]
    b = [math.cos(1.0 * t), 2.0 / t]
    return torch.tensor(a), torch.tensor(b)


def rate(t):
    return 0.1 / t


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(b1 * m + (1 - b1) * p.grad))
                m.mul_(b2).add_((1 - b2) * p.grad)


O = torch.optim
# name, kind here, class, settings of both, settings of b alone, decay of an average
CASES = [
    ("sgd", "sgd", O.SGD, {}, {}, 0),
    ("sgd_decay", "sgd", O.SGD, dict(weight_decay=0.1), {}, 0),
    ("sgd_momentum", "sgd", O.SGD, dict(momentum=0.9), {}, 0),
    ("sgd_dampening", "sgd", O.SGD, dict(momentum=0.9, dampening=0.4, weight_decay=0.05), {}, 0),
    ("sgd_nesterov", "sgd", O.SGD, dict(momentum=0.8, nesterov=True, weight_decay=0.05), {}, 0),
    ("sgd_groups", "sgd", O.SGD, dict(momentum=0.9, weight_decay=0.1), dict(momentum=0.0, weight_decay=0.0, lr=0.25), 0),
    ("sgd_ema", "sgd", O.SGD, dict(momentum=0.9), {}, 0.9),
    ("adam", "adam", O.Adam, {}, {}, 0),
    ("adam_decay", "adam", O.Adam, dict(weight_decay=0.1), {}, 0),
    ("adam_amsgrad", "adam", O.Adam, dict(amsgrad=True, weight_decay=0.1), {}, 0),
    ("adamw", "adamw", O.AdamW, {}, {}, 0),
    ("adamw_betas", "adamw", O.AdamW, dict(beta1=0.5, beta2=0.75, epsilon=0.1, weight_decay=0.3), {}, 0),
    ("adamw_amsgrad", "adamw", O.AdamW, dict(amsgrad=True), {}, 0),
    ("adamw_groups", "adamw", O.AdamW, dict(weight_decay=0.1), dict(weight_decay=0.0, lr=4.0, beta1=0.5), 0),
    ("adamw_ema", "adamw", O.AdamW, {}, {}, 0.75),
    ("rmsprop", "rmsprop", O.RMSprop, {}, {}, 0),
    ("rmsprop_momentum", "rmsprop", O.RMSprop, dict(momentum=0.9, alpha=0.9, weight_decay=0.1), {}, 0),
    ("rmsprop_centered", "rmsprop", O.RMSprop, dict(momentum=0.5, centered=True, epsilon=1e-3), {}, 0),
    ("rmsprop_groups", "rmsprop", O.RMSprop, dict(momentum=0.9), dict(momentum=0.0, lr=0.5, alpha=0.5), 0),
    ("rmsprop_ema", "rmsprop", O.RMSprop, {}, {}, 0.9),
    ("adagrad", "adagrad", O.Adagrad, {}, {}, 0),
    ("adagrad_all", "adagrad", O.Adagrad, dict(lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5), {}, 0),
    ("adadelta", "adadelta", O.Adadelta, {}, {}, 0),
    ("adadelta_all", "adadelta", O.Adadelta, dict(rho=0.8, epsilon=1e-3, weight_decay=0.1), {}, 0),
    ("adamax", "adamax", O.Adamax, {}, {}, 0),
    ("adamax_all", "adamax", O.Adamax, dict(beta1=0.8, beta2=0.9, epsilon=1e-4, weight_decay=0.1), {}, 0),
    ("nadam", "nadam", O.NAdam, {}, {}, 0),
    ("nadam_decay", "nadam", O.NAdam, dict(weight_decay=0.1, momentum_decay=0.01), dict(momentum_decay=0.5), 0),
    ("nadam_decoupled", "nadam", O.NAdam, dict(weight_decay=0.1, decoupled_weight_decay=True), {}, 0),
    ("radam", "radam", O.RAdam, {}, {}, 0),
    ("radam_decay", "radam", O.RAdam, dict(weight_decay=0.1), {}, 0),
    ("radam_decoupled", "radam", O.RAdam, dict(weight_decay=0.1, decoupled_weight_decay=True), {}, 0),
    ("radam_short", "radam", O.RAdam, dict(beta2=0.5), {}, 0),
    ("lion", "lion", Lion, {}, {}, 0),
    ("lion_decay", "lion", Lion, dict(beta1=0.8, weight_decay=0.1), {}, 0),
]


def torch_names(settings, defaults):
    """beta1, beta2, epsilon as PyTorch has them."""
    result = {}
    betas = list(defaults.get("betas", (0, 0)))
    for name, value in settings.items():
        if name in ("beta1", "beta2"):
            betas[int(name[-1]) - 1] = value
        elif name == "epsilon":
            result["eps"] = value
        else:
            result[name] = value
    if "betas" in defaults:
        result["betas"] = tuple(betas)
    return result


def run(maker, settings, own, ema):
    a = torch.nn.Parameter(torch.tensor([1, -2, 0.5]))
    b = torch.nn.Parameter(torch.tensor([3, 0.25]))
    own = dict(own)
    factor = own.pop("lr", 1.0)
    plain = maker([a]).defaults
    common = torch_names(settings, plain)
    plain = dict(plain, **common)
    optimizer = maker([{"params": [a]}, dict(params=[b], **torch_names(own, plain))], **common)
    average = None
    if ema:
        module = torch.nn.ParameterList([a, b])
        average = torch.optim.swa_utils.AveragedModel(
            module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(ema))
    rows = []
    for t in range(1, max(SHOWN) + 1):
        a.grad, b.grad = gradients(t)
        for group, scale in zip(optimizer.param_groups, (1.0, factor)):
            group["lr"] = rate(t) * scale
        optimizer.step()
        if average is not None:
            average.update_parameters(module)
        if t in SHOWN:
            shown = list(average.module) if average is not None else [a, b]
            rows.append([float(x) for p in shown for x in p.detach()])
    return rows


def table(settings):
    return "{" + ", ".join('{"%s", %r}' % (k, float(v)) for k, v in settings.items()) + "}"


print("// Made by optimizer_golden.py with PyTorch %s." % torch.__version__.split("+")[0])
print("// clang-format off")
for name, kind, maker, settings, own, ema in CASES:
    rows = run(maker, settings, own, ema)
    numbers = ",\n   ".join("{" + ", ".join("%.17g" % x for x in row) + "}" for row in rows)
    print('{"%s", "%s", %s, %s, %r,\n  {%s}},' % (name, kind, table(settings), table(own), float(ema), numbers))
print("// clang-format on", file=sys.stdout)
