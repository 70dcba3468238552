# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers and learning-rate schedules as objects.

An object is a list of the driver's settings: names, defaults and arithmetic are
PyTorch's (docs/training.md). ``None`` leaves a setting at its default.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from .errors import UsageError

Settings = list[tuple[str, str]]
Number = float | None
Betas = tuple[float, float] | None


def to_text(value: Any) -> str:
    """A setting's value as the driver reads it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "tolist"):  # an array or a number of numpy, a tensor
        return to_text(value.tolist())
    if isinstance(value, (list, tuple)):
        return ",".join(to_text(item) for item in value)
    return str(value)


def budget_setting(budget: Any) -> tuple[str, str] | None:
    """The driver's setting of a budget: bytes, '2GiB', 'min', or a share (float)."""
    if budget is None:
        return None
    if isinstance(budget, numbers.Integral) and not isinstance(budget, bool):
        return "memory-budget", str(int(budget))
    if isinstance(budget, numbers.Real) and not isinstance(budget, bool):
        if not 0 < float(budget) <= 1:
            raise UsageError(f"budget={budget!r} is no share: those lie above 0 and up to 1; bytes "
                             "are an int or a text like '2GiB'")
        return "budget-ratio", f"{Decimal(repr(float(budget))):f}"  # without an exponent
    if isinstance(budget, str):
        return "memory-budget", budget
    raise UsageError(f"budget={budget!r} is neither bytes nor a text like '2GiB' nor a share")


def _collect(values: dict[str, Any]) -> Settings:
    settings = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        text = "" if value is True else to_text(value)
        settings.append((name.replace("_", "-"), text))
    return settings


class Group:
    """Settings of the parameters whose name a regular expression is found in.

    ``Group("norm|bias", weight_decay=0, lr=1e-4)``; the first group that matches
    a parameter counts. A group that gets none is an error.
    """

    def __init__(self, pattern: str, **settings: Any):
        self.pattern = pattern
        self.settings = settings

    def text(self) -> str:
        """Returns the driver's form of it."""
        values = []
        for name, value in self.settings.items():
            text = to_text(value)
            if isinstance(value, (list, tuple)):
                text = f"({text})"
            values.append(f"{name}={text}")
        return f"{self.pattern}:{','.join(values)}"


class Optimizer:
    """Base of the optimizers.

    Common to all: ``groups`` (a list of ``Group``), ``clip_norm`` (of all
    gradients together), ``accumulate`` (batches whose gradients make one
    update), ``ema`` (keeps averages ``ema * old + (1 - ema) * new``).
    """

    name = ""

    def __init__(self, lr: float | None = None, *, groups: Group | Iterable[Group] = (),
                 clip_norm: float | None = None, accumulate: int | None = None,
                 ema: float | None = None, **values: Any):
        self._values = dict(values, lr=lr, clip_norm=clip_norm, accumulate=accumulate, ema=ema)
        self._groups = [groups] if isinstance(groups, Group) else list(groups)
        for group in self._groups:
            if not isinstance(group, Group):
                raise UsageError(f"groups: {group!r} is no ckopt.Group")

    def settings(self) -> Settings:
        """Returns the driver's settings."""
        values = dict(self._values)
        betas = values.pop("betas", None)
        if betas is not None:
            if not isinstance(betas, (list, tuple)) or len(betas) != 2:
                raise UsageError(f"betas={betas!r} are not two numbers")
            values["beta1"], values["beta2"] = betas
        settings = [("optimizer", self.name)] + _collect(values)
        return settings + [("group", group.text()) for group in self._groups]

    def __repr__(self) -> str:
        values = {k: v for k, v in self._values.items() if v is not None and v is not False}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in values.items())})"


class SGD(Optimizer):
    """Gradient descent, with momentum where that is given; default rate 1e-3."""

    name = "sgd"

    def __init__(self, lr: Number = None, *, momentum: Number = None, dampening: Number = None,
                 weight_decay: Number = None, nesterov: bool = False, **common: Any):
        super().__init__(lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                         nesterov=nesterov, **common)


class Adam(Optimizer):
    """Adam; weight decay is added to gradients. Default rate 1e-3."""

    name = "adam"

    def __init__(self, lr: Number = None, *, betas: Betas = None, eps: Number = None,
                 weight_decay: Number = None, amsgrad: bool = False, **common: Any):
        super().__init__(lr, betas=betas, epsilon=eps, weight_decay=weight_decay, amsgrad=amsgrad,
                         **common)


class AdamW(Adam):
    """Adam with decoupled weight decay, 0.01 unless given. Default rate 1e-3."""

    name = "adamw"


class RMSprop(Optimizer):
    """RMSprop; default rate 1e-2."""

    name = "rmsprop"

    def __init__(self, lr: Number = None, *, alpha: Number = None, eps: Number = None,
                 weight_decay: Number = None, momentum: Number = None, centered: bool = False,
                 **common: Any):
        super().__init__(lr, alpha=alpha, epsilon=eps, weight_decay=weight_decay,
                         momentum=momentum, centered=centered, **common)


class Adagrad(Optimizer):
    """Adagrad; default rate 1e-2."""

    name = "adagrad"

    def __init__(self, lr: Number = None, *, lr_decay: Number = None, weight_decay: Number = None,
                 initial_accumulator_value: Number = None, eps: Number = None, **common: Any):
        super().__init__(lr, lr_decay=lr_decay, weight_decay=weight_decay,
                         initial_accumulator_value=initial_accumulator_value, epsilon=eps,
                         **common)


class Adadelta(Optimizer):
    """Adadelta; default rate 1."""

    name = "adadelta"

    def __init__(self, lr: Number = None, *, rho: Number = None, eps: Number = None,
                 weight_decay: Number = None, **common: Any):
        super().__init__(lr, rho=rho, epsilon=eps, weight_decay=weight_decay, **common)


class Adamax(Optimizer):
    """Adamax; default rate 2e-3."""

    name = "adamax"

    def __init__(self, lr: Number = None, *, betas: Betas = None, eps: Number = None,
                 weight_decay: Number = None, **common: Any):
        super().__init__(lr, betas=betas, epsilon=eps, weight_decay=weight_decay, **common)


class NAdam(Optimizer):
    """NAdam; default rate 2e-3."""

    name = "nadam"

    def __init__(self, lr: Number = None, *, betas: Betas = None, eps: Number = None,
                 weight_decay: Number = None, momentum_decay: Number = None,
                 decoupled_weight_decay: bool = False, **common: Any):
        super().__init__(lr, betas=betas, epsilon=eps, weight_decay=weight_decay,
                         momentum_decay=momentum_decay,
                         decoupled_weight_decay=decoupled_weight_decay, **common)


class RAdam(Optimizer):
    """RAdam; default rate 1e-3."""

    name = "radam"

    def __init__(self, lr: Number = None, *, betas: Betas = None, eps: Number = None,
                 weight_decay: Number = None, decoupled_weight_decay: bool = False,
                 **common: Any):
        super().__init__(lr, betas=betas, epsilon=eps, weight_decay=weight_decay,
                         decoupled_weight_decay=decoupled_weight_decay, **common)


class Lion(Optimizer):
    """Lion (Chen et al. 2023); default rate 1e-4."""

    name = "lion"

    def __init__(self, lr: Number = None, *, betas: Betas = None, weight_decay: Number = None,
                 **common: Any):
        super().__init__(lr, betas=betas, weight_decay=weight_decay, **common)


class Schedule:
    """Base of the schedules: functions from the update's number to its rate.

    Numbers count updates. ``warmup_steps`` puts a linear warm-up before the
    schedule, whose own numbers then count from its end. It ends at the whole rate;
    with ``warmup_start`` (0 to 1) it begins at that share of it, and the whole rate
    comes in the update behind it: 0 is Transformers' warm-up.
    """

    kind = "constant"

    def __init__(self, **values: Any):
        self._values = values

    def settings(self) -> Settings:
        """Returns the driver's settings."""
        return [("lr-schedule", self.kind)] + _collect(self._values)

    def __repr__(self) -> str:
        values = {k: v for k, v in self._values.items() if v is not None}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in values.items())})"


class Constant(Schedule):
    """The optimizer's rate, after a warm-up if one is given."""

    def __init__(self, warmup_steps: int | None = None, *, warmup_start: Number = None):
        super().__init__(warmup_steps=warmup_steps, warmup_start=warmup_start)


class Linear(Schedule):
    """Falls linearly to ``min_lr_ratio`` (0) of the rate at ``total_steps``."""

    kind = "linear"

    def __init__(self, total_steps: int, *, min_lr_ratio: Number = None,
                 warmup_steps: int | None = None, warmup_start: Number = None):
        super().__init__(total_steps=total_steps, min_lr_ratio=min_lr_ratio,
                         warmup_steps=warmup_steps, warmup_start=warmup_start)


class Cosine(Linear):
    """Falls by half a cosine to ``min_lr_ratio`` (0) of the rate at ``total_steps``."""

    kind = "cosine"


class StepDecay(Schedule):
    """Multiplies the rate by ``gamma`` every ``step_size`` updates (StepLR)."""

    kind = "step"

    def __init__(self, step_size: int, *, gamma: Number = None,
                 warmup_steps: int | None = None, warmup_start: Number = None):
        super().__init__(lr_step_size=step_size, lr_gamma=gamma, warmup_steps=warmup_steps,
                         warmup_start=warmup_start)


class MultiStep(Schedule):
    """Multiplies the rate by ``gamma`` at each of the ``milestones`` (MultiStepLR)."""

    kind = "multistep"

    def __init__(self, milestones: Iterable[int], *, gamma: Number = None,
                 warmup_steps: int | None = None, warmup_start: Number = None):
        super().__init__(lr_milestones=list(milestones), lr_gamma=gamma,
                         warmup_steps=warmup_steps, warmup_start=warmup_start)


class Exponential(Schedule):
    """Multiplies the rate by ``gamma`` at each update (ExponentialLR)."""

    kind = "exponential"

    def __init__(self, gamma: float, *, warmup_steps: int | None = None,
                 warmup_start: Number = None):
        super().__init__(lr_gamma=gamma, warmup_steps=warmup_steps, warmup_start=warmup_start)


class OneCycle(Schedule):
    """OneCycleLR(max_lr = the optimizer's rate, cycle_momentum=False)."""

    kind = "onecycle"

    def __init__(self, total_steps: int, *, pct_start: Number = None, div_factor: Number = None,
                 final_div_factor: Number = None, anneal: str | None = None):
        super().__init__(total_steps=total_steps, lr_pct_start=pct_start,
                         lr_div_factor=div_factor, lr_final_div_factor=final_div_factor,
                         lr_anneal=anneal)
