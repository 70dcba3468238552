# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adapters of a model as an object: settings of the driver, with PEFT's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoRA:
    """Low-rank adapters for the products of a model, and nothing else is trained.

    ``targets``: a regular expression of names of products, or of their ends behind
    a dot ("q_proj|v_proj"); None: all but output heads. Adapters are multiplied by
    ``alpha / rank``. ``dropout`` is that of their input, ``dora`` adds a trained
    magnitude of each output.
    """

    rank: int = 8
    alpha: float = 8
    targets: str | None = None
    dropout: float = 0
    dora: bool = False

    def settings(self) -> list[tuple[str, str]]:
        """Returns the driver's settings."""
        settings = [("lora", str(self.rank)), ("lora-alpha", repr(self.alpha))]
        if self.targets:
            settings.append(("lora-targets", self.targets))
        if self.dropout:
            settings.append(("lora-dropout", repr(self.dropout)))
        return settings + ([("dora", "")] if self.dora else [])
