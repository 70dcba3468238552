#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans the training step of a JAX function by ckopt.remat, and runs it before and after.

The step goes through jax.export: its StableHLO is planned, put back, and compiled by XLA. Needs jax;
without it, says so and exits with 77.
"""

import dataclasses
import sys

try:
    import jax
    import jax.export
    import jax.numpy as jnp
    import numpy as np
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
except ImportError as error:
    print(f"SKIPPED: {error}; pip install jax", file=sys.stderr)
    sys.exit(77)

import ckopt


def remat(exported, **options):
    """Returns an exported function whose module was planned, and what ckopt.remat says of it."""
    with ir.Context():
        planned = ckopt.remat(exported.mlir_module(serialized=False), ops="stablehlo", **options)
    artifact = stablehlo.serialize_portable_artifact_str(
        planned.text, stablehlo.get_current_version())
    return dataclasses.replace(exported, mlir_module_serialized=artifact), planned


def loss(weights, x):
    for w in weights:
        x = jnp.sin(jnp.exp(jnp.tanh(x @ w)))
    return (x * x).sum()


def main():
    key = jax.random.PRNGKey(0)
    weights = [0.1 * jax.random.normal(jax.random.fold_in(key, i), (64, 64)) for i in range(8)]
    arguments = (weights, jax.random.normal(key, (2048, 64)))
    exported = jax.export.export(jax.jit(jax.value_and_grad(loss)))(*arguments)

    def run(step):
        compiled = jax.jit(step.call).lower(*arguments).compile()
        results = [np.asarray(result) for result in jax.tree.leaves(compiled(*arguments))]
        return results, compiled.memory_analysis().temp_size_in_bytes

    expected, before = run(exported)
    for apart in ["attribute", "stablehlo.optimization_barrier"]:
        step, planned = remat(exported, budget="0.8x", apart=apart)
        results, after = run(step)
        figures = planned.figures
        equal = sum(a.tobytes() == b.tobytes() for a, b in zip(results, expected, strict=True))
        print(f"{apart}: {figures['recomputed_steps']} ops again; planned bytes "
              f"{figures['full_arena_bytes']:,} before, {figures['planned_peak_bytes']:,} after; "
              f"XLA's temporary bytes {before:,} before, {after:,} after; "
              f"{equal} of {len(expected)} results are equal")
        # Barriers keep XLA from fusing some ops, which may then round in another way.
        for a, b in zip(results, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        assert figures["recomputed_steps"] and (apart != "attribute" or equal == len(expected))


if __name__ == "__main__":
    main()
