# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Samples that the library reads itself, as the driver does, with its bits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy

from .errors import UsageError

Path = str | os.PathLike[str]
Settings = list[tuple[str, str]]


@dataclass(frozen=True)
class Tokens:
    """A text as numbers without a header, read as ``ckopt train --tokens`` does.

    path: a file, or a pattern of files ("corpus-*.bin"), mapped and not loaded.
    sequence: tokens of a sample, as many as the model takes.
    type: "uint8", "uint16", "int32", "uint32", or the numpy type.

    Pieces of ``sequence`` tokens are the model's input, the tokens that follow are
    the targets. A model with several inputs says by ``compile(inputs=...,
    targets=...)`` which is "tokens" and which "next".
    """

    path: Path
    sequence: int
    type: Any = "uint16"

    def _settings(self) -> Settings:
        kind = self.type if isinstance(self.type, str) else numpy.dtype(self.type).name
        return [("tokens", os.fspath(self.path)), ("token-type", kind),
                ("sequence", str(self.sequence))]


@dataclass(frozen=True)
class ImageFolder:
    """PNG and JPEG files, a folder for each class, read as ``ckopt train --images`` does.

    Labels count the classes' names in sorted order. Images are scaled, so that the
    shorter side has ``resize`` pixels (default: the smallest that holds what the
    model takes), and the middle is cut out.

    augment: "flip", "crop:4", "resized-crop", or several of them: what is random
        about a sample is a function of (seed, epoch, sample). Samples that only
        evaluate stay as they are.
    normalize: "imagenet", or (means, deviations) of values from 0 to 1, one number
        for each channel or one for all.
    threads: how many threads decode a batch (default: one for each core).
    """

    path: Path
    resize: int | None = None
    augment: str | Iterable[str] | None = None
    normalize: str | tuple[Any, Any] | None = None
    threads: int | None = None

    def _settings(self) -> Settings:
        settings = [("images", os.fspath(self.path))]
        if self.resize is not None:
            settings.append(("resize", str(self.resize)))
        if self.augment:
            augment = self.augment if isinstance(self.augment, str) else ",".join(self.augment)
            settings.append(("augment", augment))
        if self.normalize is not None:
            text = self.normalize
            if not isinstance(text, str):
                try:
                    means, deviations = (numpy.atleast_1d(numpy.asarray(part, "f8"))
                                         for part in text)
                except (TypeError, ValueError):
                    raise UsageError(f"normalize={text!r} is neither 'imagenet' nor (means, "
                                     "deviations)") from None
                text = "/".join(",".join(repr(float(n)) for n in part)
                                for part in (means, deviations))
            settings.append(("normalize", text))
        if self.threads is not None:
            settings.append(("decode-threads", str(self.threads)))
        return settings


def settings_of(samples: object) -> Settings | None:
    """The settings by which the library finds the samples; None: others bring them."""
    if isinstance(samples, (Tokens, ImageFolder)):
        return samples._settings()
    if isinstance(samples, (str, os.PathLike)):
        return [("data", os.fspath(samples))]
    return None
