#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans the training step of a JAX function as StableHLO, and runs both.

usage: gradients.py CKOPT_OPT STABLEHLO_JSON

Needs jax; without it, says so and exits with 77.
"""

import subprocess
import sys

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib import _jax, xla_client
    from jaxlib.mlir import ir
except ImportError as error:
    print(f"SKIPPED: {error}; pip install jax", file=sys.stderr)
    sys.exit(77)


def loss(weights, x):
    for w in weights:
        x = jax.nn.relu(jnp.tanh(x @ w))
    return (x * x).sum()


def plan(text, opt, table, options):
    """Returns the text of a module with every function within the budget."""
    options = f"remat-ops={table} {options}"
    command = [opt, "--allow-unregistered-dialect", "--mlir-print-op-generic", f"--remat={options}"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


def run(text, arguments):
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        module.operation.verify()
        text = str(module)
    device = jax.devices()[0]
    program = device.client.compile_and_load(
        text, _jax.DeviceList((device,)), xla_client.CompileOptions()
    )
    results = program.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [np.asarray(result[0]) for result in results]


def main():
    opt, table = sys.argv[1:]
    key = jax.random.PRNGKey(0)
    weights = [0.1 * jax.random.normal(jax.random.fold_in(key, i), (64, 64)) for i in range(8)]
    step = jax.jit(jax.value_and_grad(loss))
    arguments = (weights, jax.random.normal(key, (256, 64)))
    module = step.lower(*arguments).compiler_ir("stablehlo")
    text = module.operation.get_asm(print_generic_op_form=True)
    expected = run(text, jax.tree.leaves(arguments))
    for apart in ["attribute", "stablehlo.optimization_barrier"]:
        planned = plan(text, opt, table, f"budget=0.8x apart={apart}")
        clones = planned.count("ckopt.clone")
        results = run(planned, jax.tree.leaves(arguments))
        equal = sum(a.tobytes() == b.tobytes() for a, b in zip(results, expected))
        print(f"{apart}: {clones} clones and barriers; {equal} of {len(expected)} results are equal")
        # Barriers keep XLA from fusing some ops, which then round in another way.
        for a, b in zip(results, expected):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        assert clones and (apart != "attribute" or equal == len(expected))


if __name__ == "__main__":
    main()
