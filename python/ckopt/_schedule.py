# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The peak of a forward and a backward module by Inductor's own schedule.

Both modules are lowered and scheduled by Inductor as it will do when it compiles
them (its passes, layouts, fusion and order), on copies, and thrown away before
any code is made. Its memory model then says what lies in memory at each step;
what the caller holds throughout (parameters, inputs) is not counted.
"""

from __future__ import annotations

import copy

import torch
from torch._inductor import memory
from torch._inductor.compile_fx import (_recursive_post_grad_passes,
                                        _recursive_record_original_output_strides,
                                        fake_tensor_prop, view_to_reshape)
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V

from ._speeds import unit_of, whole_units


def _lowered(module, backward, strides):
    """(peak bytes, strides of the outputs by name) of one module; ``strides`` of its inputs."""
    module = copy.deepcopy(module)
    order = [n.name if isinstance(n, torch.fx.Node) else None
             for n in module.graph.find_nodes(op="output")[0].args[0]]
    inputs = []
    fake = None
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            fake = fake or value.fake_mode
            if node.name in strides and tuple(value.stride()) != strides[node.name]:
                with fake:
                    value = torch.empty_strided(value.shape, strides[node.name], dtype=value.dtype,
                                                device=value.device)
        inputs.append(value)
    unit = max((unit_of(v.device) for v in inputs if isinstance(v, torch.Tensor)), default=1)
    view_to_reshape(module)
    with torch.no_grad():
        mode = fake_tensor_prop(module, inputs)
    _recursive_record_original_output_strides(module)
    with V.set_fake_mode(mode):
        _recursive_post_grad_passes(module, is_inference=False)
        lowered = GraphLowering(module, example_inputs=inputs, is_backward=backward,
                                is_inference=False)
        with V.set_graph_handler(lowered), V.set_extern_kernel_nodes([]), DebugContext():
            lowered.run(*inputs)
            lowered.init_wrapper_code()
            lowered._update_scheduler()
            nodes = lowered.scheduler.nodes
            outputs = set(lowered.get_output_names())
            freeable = memory.get_freeable_input_buf(nodes, set(lowered.graph_inputs))
            buffers, _, _ = memory.compute_memory_timeline(nodes, freeable, outputs)
            for one in buffers:
                one.size_alloc = whole_units(one.size_alloc, unit)
                one.size_free = whole_units(one.size_free, unit)
            peak, _ = memory.peak_memory_from_buf_info_list(buffers, len(nodes))
    found = {}
    for name, out in zip(order, lowered.graph_outputs or ()):
        try:
            found[name] = tuple(int(s) for s in out.get_stride())
        except (AttributeError, NotImplementedError, TypeError):
            pass
    return peak, found


def peak(forward, backward):
    """Bytes of the larger of both modules' peaks, and the peaks."""
    counters = {k: v.copy() for k, v in torch._dynamo.utils.counters.items()}
    try:
        first, strides = _lowered(forward, False, {})
        second, _ = _lowered(backward, True, strides)
    finally:
        # What was lowered for the estimate alone is no compilation.
        torch._dynamo.utils.counters.clear()
        torch._dynamo.utils.counters.update(counters)
    return max(first, second), (first, second)
