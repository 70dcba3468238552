#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes LossGolden.inc: losses and gradients by PyTorch in float64.

make_losses.py > LossGolden.inc; needs torch (2.15 made the committed file).
"""

import torch
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def listed(tensor):
    return "{" + ", ".join(repr(float(v)) for v in tensor.flatten()) + "}"


def case(name, options, function, x, y):
    x = x.clone().requires_grad_()
    loss = function(x, y)
    (gradient,) = torch.autograd.grad(loss, x)
    shape = "x".join(str(n) for n in x.shape) + "x"
    print(f'{{"{name}", "{options}", "{shape}",\n {listed(x.detach())},\n '
          f"{listed(y)},\n {loss.item()!r},\n {listed(gradient)}}},")


def labels(*shape, classes):
    return torch.randint(0, classes, shape)


w3 = torch.tensor([0.5, 2.0, 1.25])
text3 = "0.5,2,1.25"
x43, y4 = torch.randn(4, 3) * 2, labels(4, classes=3)
some = torch.tensor([2, -100, 0, 1])

print("// Written by make_losses.py; torch " + torch.__version__.split("+")[0])
ce = F.cross_entropy
case("ce", "loss=cross_entropy", ce, x43, y4)
case("ce_large", "loss=cross_entropy", ce, x43 * 500, y4)
case("ce_ignored", "loss=cross_entropy", ce, x43, some)
case("ce_ignore_index", "loss=cross_entropy ignore-index=1",
     lambda x, y: ce(x, y, ignore_index=1), x43, torch.tensor([0, 1, 2, 1]))
case("ce_sum", "loss=cross_entropy reduction=sum",
     lambda x, y: ce(x, y, reduction="sum"), x43, some)
case("ce_weights", "loss=cross_entropy class-weights=" + text3,
     lambda x, y: ce(x, y, weight=w3), x43, some)
case("ce_weights_sum", "loss=cross_entropy reduction=sum class-weights=" + text3,
     lambda x, y: ce(x, y, weight=w3, reduction="sum"), x43, some)
case("ce_smooth", "loss=cross_entropy label-smoothing=0.1",
     lambda x, y: ce(x, y, label_smoothing=0.1), x43, some)
case("ce_smooth_sum", "loss=cross_entropy reduction=sum label-smoothing=0.3",
     lambda x, y: ce(x, y, label_smoothing=0.3, reduction="sum"), x43, some)
case("ce_smooth_one", "loss=cross_entropy label-smoothing=1",
     lambda x, y: ce(x, y, label_smoothing=1.0), x43, y4)
case("ce_smooth_weights",
     "loss=cross_entropy label-smoothing=0.1 class-weights=" + text3,
     lambda x, y: ce(x, y, label_smoothing=0.1, weight=w3), x43, some)
case("ce_image", "loss=cross_entropy label-smoothing=0.2 class-weights=" + text3,
     lambda x, y: ce(x, y, label_smoothing=0.2, weight=w3),
     torch.randn(2, 3, 2, 2), labels(2, 2, 2, classes=3))
case("ce_axis1", "loss=cross_entropy class-axis=1", ce, torch.randn(2, 3, 3),
     labels(2, 3, classes=3))
case("ce_last", "loss=cross_entropy class-axis=-1",
     lambda x, y: ce(x.transpose(1, 2), y), torch.randn(2, 3, 3),
     labels(2, 3, classes=3))
p43 = torch.softmax(torch.randn(4, 3), 1)
case("ce_soft", "loss=cross_entropy soft-targets=true", ce, x43, p43)
case("ce_soft_all",
     "loss=cross_entropy soft-targets=true label-smoothing=0.1 class-weights=" +
     text3, lambda x, y: ce(x, y, label_smoothing=0.1, weight=w3), x43, p43)
case("ce_soft_image", "loss=cross_entropy soft-targets=true", ce,
     torch.randn(2, 3, 2, 1), torch.softmax(torch.randn(2, 3, 2, 1), 1))

lp = torch.log_softmax(x43, 1)
case("nll", "loss=nll", F.nll_loss, lp, some)
case("nll_weights", "loss=nll class-weights=" + text3,
     lambda x, y: F.nll_loss(x, y, weight=w3), lp, some)
case("nll_sum", "loss=nll reduction=sum",
     lambda x, y: F.nll_loss(x, y, reduction="sum"), lp, some)
case("nll_image", "loss=nll", F.nll_loss,
     torch.log_softmax(torch.randn(2, 3, 2, 2), 1), labels(2, 2, 2, classes=3))

x23, t23 = torch.randn(2, 3) * 2, torch.randn(2, 3) * 2
same = t23.clone()
same[0, :] = x23[0, :]  # differences of 0
corner = x23 + torch.tensor([[1.0, -1.0, 0.5], [-0.5, 0.25, 3.0]])
for name, function in (("mse", F.mse_loss), ("l1", F.l1_loss),
                       ("smooth_l1", F.smooth_l1_loss), ("huber", F.huber_loss)):
    case(name, "loss=" + name, function, x23, same)
    case(name + "_sum", f"loss={name} reduction=sum",
         lambda x, y: function(x, y, reduction="sum"), x23, t23)
grid = torch.tensor([[0.0, 1.0, 2.0], [-1.0, 0.5, -0.5]])
zero = torch.zeros(2, 3)
case("smooth_l1_beta", "loss=smooth_l1 beta=0.5",
     lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), grid, zero)
case("smooth_l1_corner", "loss=smooth_l1", F.smooth_l1_loss, grid, zero)
case("smooth_l1_zero", "loss=smooth_l1 beta=0",
     lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), grid, zero)
case("huber_delta", "loss=huber delta=0.5",
     lambda x, y: F.huber_loss(x, y, delta=0.5), grid, zero)
case("huber_corner", "loss=huber", F.huber_loss, grid, zero)

bits = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.25, 1.0]])
bce = F.binary_cross_entropy
case("bce", "loss=bce", bce, torch.rand(2, 3), bits)
case("bce_edges", "loss=bce reduction=sum",
     lambda x, y: bce(x, y, reduction="sum"),
     torch.tensor([[0.0, 0.0, 1.0], [1.0, 1e-15, 1e-50]]), bits)
logits = F.binary_cross_entropy_with_logits
case("bce_logits", "loss=bce_logits", logits, x23, bits)
case("bce_logits_far", "loss=bce_logits", logits,
     torch.tensor([[-800.0, 800.0, 0.0], [0.0, 40.0, -40.0]]), bits)
case("bce_logits_pos", "loss=bce_logits pos-weight=3",
     lambda x, y: logits(x, y, pos_weight=torch.tensor(3.0)), x23, bits)
case("bce_logits_columns", "loss=bce_logits pos-weight=" + text3,
     lambda x, y: logits(x, y, pos_weight=w3), x23, bits)

probabilities = torch.softmax(torch.randn(2, 3), 1)
probabilities[0] = torch.tensor([0.0, 1.0, 0.0])
lp23 = torch.log_softmax(x23, 1)
for how in ("mean", "sum", "batchmean"):
    case("kl_" + how, "loss=kl reduction=" + how,
         lambda x, y: F.kl_div(x, y, reduction=how), lp23, probabilities)

signs = torch.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
case("hinge", "loss=hinge", lambda x, y: torch.clamp(1 - y * x, min=0).mean(),
     x23, signs)
case("hinge_corner", "loss=hinge margin=0.5",
     lambda x, y: torch.clamp(0.5 - y * x, min=0).mean(), signs / 2, signs)
case("hinge_embedding", "loss=hinge_embedding margin=0.75",
     lambda x, y: F.hinge_embedding_loss(x, y, margin=0.75), x23, signs)
case("hinge_embedding_corner", "loss=hinge_embedding", F.hinge_embedding_loss,
     torch.ones(2, 3), signs)
case("multi_margin", "loss=multi_margin", F.multi_margin_loss, x43, y4)
case("multi_margin_weights",
     "loss=multi_margin margin=0.5 class-weights=" + text3,
     lambda x, y: F.multi_margin_loss(x, y, margin=0.5, weight=w3), x43, y4)


def cosine(x, y):
    return F.cosine_embedding_loss(x, y, torch.ones(x.shape[0]))


case("cosine", "loss=cosine", cosine, x23, t23)
case("cosine_zero", "loss=cosine", cosine, x23,
     torch.stack([torch.zeros(3), t23[0]]))
