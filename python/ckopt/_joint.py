# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a saved set costs: PyTorch's joint graph, cut into two modules, as Inductor runs them.

Problem: the partitioner of ``torch.compile`` chooses which values of the forward
part are saved; the rest of what the backward part reads is computed again in it.
Inductor then fuses: most values of the graph never lie in memory. Bytes and time
of a choice have to be known without compiling it.

Method: each module is lowered in a model of Inductor. A pointwise op becomes part
of its readers unless it is an output, a kernel from a library reads it, or it is
read several times and is expensive; a loop joins the last kernel that it reads
from where the loops agree; a buffer that only its own kernel reads is gone; a loop
may write to an input that it reads last. The rest is liveness in the order in
which PyTorch emits the backward part, and a roofline for time.

Guarantee: none. The figures are estimates, which Inductor's own schedule checks
(_schedule.py). Complexity: linear in nodes and edges for each choice.
"""

from __future__ import annotations

import operator

import torch
from torch._functorch import partitioners as _aot
from torch.utils.flop_counter import flop_registry

from ._speeds import of_device, unit_of, whole_units
from .errors import UnsupportedError

_aten, _prims = torch.ops.aten, torch.ops.prims

SOURCE, VIEW, POINT, LOOP, LIBRARY, NOTHING = range(6)

_VIEWS = {"view", "_unsafe_view", "t", "transpose", "permute", "unsqueeze", "squeeze", "expand",
          "slice", "select", "alias", "detach", "as_strided", "reshape", "split", "unbind",
          "split_with_sizes", "diagonal", "unfold", "broadcast_in_dim"}
# Lowered to loops without a pointwise tag.
_POINTS = {"clone", "_to_copy", "convert_element_type", "full", "full_like", "zeros", "ones", "iota",
           "arange", "scalar_tensor", "zeros_like", "ones_like", "new_zeros", "new_full", "empty",
           "empty_like", "inductor_random", "inductor_randint", "inductor_lookup_seed", "embedding",
           "index", "gather", "index_select", "select_scatter", "slice_scatter", "constant_pad_nd",
           "fma", "upsample_nearest2d", "avg_pool2d_backward", "flip", "repeat", "where", "copy_",
           "_low_memory_max_pool_offsets_to_indices", "lift_fresh_copy", "triu", "tril", "roll",
           "max_pool2d_with_indices_backward", "_low_memory_max_pool2d_offsets_to_indices"}
_LIBRARY = {"mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "_int_mm",
            "_scaled_mm", "_addmm_activation", "linear", "mkldnn_rnn_layer"}
# What Inductor computes once for several readers on the CPU; weights are of an add.
_HEAVY = {"exp": 8, "log": 8, "log10": 8, "log1p": 8, "log2": 8, "sigmoid": 10, "tanh": 10}
_WEIGHTS = {**_HEAVY, "erf": 12, "gelu": 14, "silu": 10, "pow": 8, "rsqrt": 4, "sqrt": 4, "div": 2,
            "inductor_random": 40, "sin": 12, "cos": 12}


def _name(node):
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._overloadpacket.__name__
    return getattr(target, "__name__", str(target))


def nbytes(value):
    """Bytes of a tensor's elements as they lie in memory (strides may leave gaps), in
    whole units of its device's allocator."""
    if not isinstance(value, torch.Tensor):
        return 0
    if value.layout is not torch.strided or value.numel() == 0:
        span = value.numel()
    else:
        span = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride()) if n > 1)
        # An expanded tensor is smaller than its elements only while it is a view.
        span = max(span, value.numel())
    return whole_units(span * value.element_size(), unit_of(value.device))


def _is_random_source(node):
    """Draws from a generator: again, it would give other numbers.

    inductor_random is none: it is a function of the seed that it reads.
    """
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return _aot.is_rng_op(node)
    return False


def _may_not_repeat(node):
    """Why a node runs once, or None."""
    target = node.target
    if target is operator.getitem:
        return None
    if not isinstance(target, torch._ops.OpOverload):
        known = getattr(target, "__module__", "") in ("_operator", "math")
        return None if known else "a higher-order op"
    if _is_random_source(node):
        return "draws random numbers"
    if target._schema.is_mutable:
        return "changes a tensor"
    if target.namespace in ("_c10d_functional", "c10d_functional", "c10d"):
        return "a collective"
    return None


class Joint:
    """A joint graph as lists over the positions of its nodes."""

    def __init__(self, graph, info, forward_outputs):
        self.nodes = nodes = list(graph.nodes)
        self.at = {node: i for i, node in enumerate(nodes)}
        # Where no gradient goes in: the forward part, and what may run in either.
        self.forward = [n not in info.tangents_closure and n.op != "output" for n in nodes]
        self.required = [info.is_required_fw(n) for n in nodes]
        outputs = [n for n in nodes if n.op == "output"][0]
        flat = torch.utils._pytree.arg_tree_leaves(*outputs.args)
        def positions(some):
            return [self.at[n] for n in some if isinstance(n, torch.fx.Node)]
        self.forward_outputs = positions(flat[:forward_outputs])
        self.backward_outputs = positions(flat[forward_outputs:])
        # Of each input its gradient, if it has one.
        backward = flat[forward_outputs:]
        inputs = [i for i, n in enumerate(nodes) if _aot._is_primal(n)]
        self.gradients = [(p, g) for p, g in zip(inputs, backward)]
        self.tangents = {i for i, n in enumerate(nodes) if _aot._is_tangent(n)}
        self.primals = [i for i, n in enumerate(nodes) if _aot._is_primal(n)]
        self.static = {self.at[n] for n in info.static_lifetime_input_nodes}
        device = next((n.meta["val"].device for n in nodes
                       if isinstance(n.meta.get("val"), torch.Tensor) and
                       n.meta["val"].device.type != "cpu"), torch.device("cpu"))
        self.device = device.type
        self.speeds = of_device(device)
        self._describe()
        self._mark_kept()

    def _describe(self):
        nodes = self.nodes
        count = len(nodes)
        self.kind, self.bytes, self.numel = [NOTHING] * count, [0] * count, [0] * count
        self.args, self.weight, self.heavy = [()] * count, [0] * count, [False] * count
        self.work, self.items, self.reduced = [0.0] * count, [()] * count, [0] * count  # work: seconds
        self.drawn = [False] * count  # Inductor gives random numbers memory of their own
        self.extra = [0] * count  # results of a library's kernel that nobody reads
        for i, node in enumerate(nodes):
            value = node.meta.get("val")
            self.bytes[i] = nbytes(value)
            self.numel[i] = value.numel() if isinstance(value, torch.Tensor) else 0
            if node.op in ("placeholder", "get_attr"):
                self.kind[i] = SOURCE
                continue
            if node.op != "call_function":
                continue
            self.args[i] = tuple(self.at[a] for a in node.all_input_nodes)
            self._describe_call(i, node, value)
        for i, node in enumerate(nodes):
            if node.op == "call_function" and isinstance(node.meta.get("val"), (tuple, list)) and \
                    self.kind[i] != VIEW:
                self.items[i] = tuple(self.at[u] for u in node.users
                                      if u.target is operator.getitem)
                taken = {u.args[1] for u in node.users if u.target is operator.getitem}
                self.extra[i] = sum(nbytes(v) for k, v in enumerate(node.meta["val"])
                                    if k not in taken)
        # Whose memory a value lies in: views have none, so several saved views are one buffer.
        self.root = root = list(range(count))
        for i in range(count):
            if self.kind[i] == VIEW and self.args[i]:
                a = self.args[i][0]
                root[i] = i if i in self.items[a] else root[a]

    def _describe_call(self, i, node, value):
        name = _name(node)
        if node.target is operator.getitem:
            # Of a split it is a view, else a result of its own.
            self.kind[i] = VIEW
            return
        if name in _VIEWS:
            self.kind[i] = VIEW
            return
        if not isinstance(value, (torch.Tensor, tuple, list)):
            self.kind[i] = NOTHING
            return
        tags = getattr(node.target, "tags", ())
        if name in _LIBRARY or "_scaled_dot_product" in name or "flash_attention" in name or \
                not self._is_lowered(node):
            self.kind[i] = LIBRARY
        elif torch.Tag.pointwise in tags or name in _POINTS or \
                node.target in _pointwise_overloads():
            self.kind[i] = POINT
        else:
            self.kind[i] = LOOP
            first = self.args[i][0] if self.args[i] else i
            outs = value if isinstance(value, (tuple, list)) else [value]
            self.numel[i] = max((v.numel() for v in outs if isinstance(v, torch.Tensor)), default=0)
            if self.numel[first] > self.numel[i]:
                self.reduced[i] = self.numel[first]
        self.drawn[i] = name in ("inductor_random", "inductor_randint")
        self.weight[i] = _WEIGHTS.get(name, 1)
        self.heavy[i] = name in _HEAVY and self.device == "cpu"
        if self.kind[i] == LIBRARY:
            count = flop_registry.get(getattr(node.target, "_overloadpacket", None))
            if count is not None:
                def plain(x):
                    return x.meta.get("val") if isinstance(x, torch.fx.Node) else x
                args = torch.utils._pytree.tree_map(plain, (node.args, node.kwargs))
                try:
                    self.work[i] = float(count(*args[0], **args[1], out_val=value)) / \
                        self._rate(node)
                except (TypeError, ValueError, AssertionError):
                    self.work[i] = 0.0

    def _rate(self, node):
        """Operations a second of a library's kernel, by what it multiplies."""
        dtypes = [a.meta["val"].dtype for a in node.all_input_nodes
                  if isinstance(a.meta.get("val"), torch.Tensor)]
        floats = [d for d in dtypes if d.is_floating_point]
        # The narrowest: sums and statistics beside it are wider.
        dtype = min(floats or dtypes, key=lambda d: d.itemsize, default=torch.float32)
        return self.speeds.of(dtype, "convolution" in _name(node))

    @staticmethod
    def _is_lowered(node):
        from torch._inductor import lowering
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            return False
        packet = target._overloadpacket
        if target in lowering.fallbacks or packet in lowering.fallbacks:
            return False
        return target in lowering.lowerings or packet in lowering.lowerings

    def _mark_kept(self):
        """Values that are never computed again, and those that are never saved."""
        nodes = self.nodes
        self.once = [None] * len(nodes)       # why the node must not run twice
        self.savable = [False] * len(nodes)
        mutated = {self.at[n.args[0]] for n in nodes if n.op == "call_function" and
                   n.target is _aten.copy_.default and n.args[0].op == "placeholder"}
        mutated |= {i for i in self.primals
                    if nodes[i].meta.get("aot_runtime_epilogue_input_mutation", False)}
        for i, node in enumerate(nodes):
            if not self.forward[i]:
                continue
            marked = _aot.must_recompute(node)
            tensor = isinstance(node.meta.get("val"), torch.Tensor)
            if node.op == "placeholder":
                self.savable[i] = i not in mutated
                continue
            if node.op != "call_function":
                continue
            self.savable[i] = tensor and not marked
            if marked:
                continue  # the user's word: again, also what is random (PyTorch replays it)
            self.once[i] = _may_not_repeat(node)
            if node.meta.get("recompute") == _aot.CheckpointPolicy.MUST_SAVE:
                self.once[i] = "marked to be saved"
            if any(a in mutated for a in self.args[i]):
                self.once[i] = "reads what the step changes"
        self.mutated = mutated

    def needed(self, saved):
        """What the backward part holds for a saved set.

        Returns (nodes of the backward part in the joint order, values that are
        saved in the end): of ``saved`` those that are read, and those that cannot
        be had otherwise. Raises UnsupportedError for a value that can neither be
        saved nor computed again.
        """
        seen, kept = set(), set()
        stack = [i for i in self.backward_outputs]
        while stack:
            i = stack.pop()
            if i in seen:
                continue
            seen.add(i)
            if not self.forward[i]:
                stack.extend(self.args[i])
                continue
            if i in saved and self.savable[i] or self._must_be_saved(i):
                kept.add(i)
                continue
            if self.nodes[i].op == "placeholder" or (self.once[i] and not self.savable[i]):
                if self.nodes[i].op == "placeholder" and i not in self.mutated:
                    kept.add(i)
                    continue
                raise UnsupportedError(
                    f"the backward part reads '{self.nodes[i].name}', which can neither be saved "
                    f"nor computed again ({self.once[i] or 'the step changes it'})")
            stack.extend(self.args[i])
        return sorted(seen - kept), kept

    def _must_be_saved(self, i):
        """A tensor that its maker must not make again."""
        if not self.savable[i]:
            return False
        if self.once[i] or self.nodes[i].op == "placeholder":
            return True
        if self.nodes[i].target is operator.getitem:
            maker = self.args[i][0]
            while self.nodes[maker].target is operator.getitem:
                maker = self.args[maker][0]
            return bool(self.once[maker])
        return False

    def mimic(self, backward):
        """The backward part's order: true backward nodes, what they read just before them."""
        inside = set(backward)
        first = min((i for i in inside if any(a in self.tangents for a in self.args[i])),
                    default=min(inside, default=0))
        order, done = [], set()
        for start in backward:
            if start < first or start in done:
                continue
            found, stack = set(), [start]
            while stack:
                i = stack.pop()
                if i in found or i in done or i not in inside:
                    continue
                found.add(i)
                stack.extend(self.args[i])
            for i in sorted(found):
                done.add(i)
                order.append(i)
        return order


def _pointwise_overloads():
    global _known_points
    if _known_points is None:
        _known_points = set()
        for packet in _aot.pointwise_ops():
            _known_points.update(getattr(packet, o) for o in packet.overloads())
    return _known_points


_known_points = None


_NONE: frozenset[int] = frozenset()


class Module:
    """One of the two modules, lowered: kernels, buffers, live bytes, time."""

    def __init__(self, joint, order, inputs, outputs, resident, crossing=()):
        self.joint = joint
        self.both = bool(crossing)  # the whole joint graph: nothing is fused across its parts
        self._lower(order, inputs, outputs, crossing)
        self._fuse()
        self._live(resident)

    def _lower(self, order, inputs, outputs, crossing):
        joint = self.joint
        kind, args, items = joint.kind, joint.args, joint.items
        users, forced = {}, set(outputs)
        inside = set(order)
        # Outputs and readers that need memory reach through views to what is below.
        for i in reversed(order):
            if kind[i] == VIEW:
                if i in forced:
                    forced.update(args[i])
            elif kind[i] == LIBRARY:
                forced.update(args[i])
            for a in args[i]:
                users[a] = users.get(a, 0) + 1
        reads, ops, heavy = {}, {}, set()
        self.kernels = []  # (node, buffers read, buffers written, is a loop)
        for i in inputs:
            reads[i] = frozenset((joint.root[i],))
        for i in order:
            if i in reads:
                continue
            k = kind[i]
            if k == NOTHING:
                continue
            if k == SOURCE:
                reads[i] = frozenset((i,))
                continue
            if k == VIEW:
                a = args[i][0] if args[i] else None
                if a is not None and i in items[a]:
                    reads[i] = frozenset((i,))
                else:
                    reads[i] = reads.get(a, _NONE)
                    ops[i] = ops.get(a, 0)
                    if a in heavy:
                        heavy.add(i)
                continue
            mine = args[i]
            r, n = reads.get(mine[0], _NONE) if mine else _NONE, joint.weight[i]
            for a in mine:
                n += ops.get(a, 0)
                more = reads.get(a, _NONE)
                if more is not r and not more <= r:
                    r |= more
            if k == POINT:
                h = joint.heavy[i]
                for a in mine:
                    h = h or a in heavy
                several = users[i] > 1 if i in users else False
                if not (i in forced or len(r) > 8 or joint.drawn[i] or i in crossing and
                        (n > 8 or joint.bytes[i] < max((joint.bytes[b] for b in r), default=0)) or
                        several and (h or len(r) > 4 or n > 60)):
                    reads[i], ops[i] = r, n
                    if h:
                        heavy.add(i)
                    continue
            writes = [g for g in items[i] if g in inside] if items[i] else [i]
            self.kernels.append((i, r, writes, k != LIBRARY, n))
            for w in writes:
                reads[w] = frozenset((w,))
            if items[i]:
                reads[i] = frozenset(writes)
        self.outputs = set()
        for o in outputs:
            self.outputs |= reads.get(o, _NONE)
        self.inputs = {joint.root[i] for i in inputs}

    def _fuse(self):
        """Puts each loop into the last kernel that it reads from, if the loops agree."""
        joint = self.joint
        maker, readers_of = {}, {}
        groups = []  # [kernels, loop?, numel, kept numel of a reduction, forward?]
        self.group_of = group_of = []
        for index, (i, reads, writes, loop, _) in enumerate(self.kernels):
            last = max((maker[b] for b in reads if b in maker), default=-1)
            full = joint.reduced[i] or joint.numel[i]
            kept = joint.numel[i] if joint.reduced[i] else None
            joined = None
            if loop:
                near = [last] if last >= 0 else []
                near += sorted({g for b in reads for g in readers_of.get(b, ()) if g > last})
                for g in near:
                    _, is_loop, numel, kept_there, side = groups[g]
                    if not is_loop or side != joint.required[i] and self.both:
                        continue
                    if full == numel and (kept is None or kept_there in (None, kept)) or \
                            kept is None and kept_there == full:
                        joined = g
                        break
            if joined is None:
                joined = len(groups)
                groups.append([[], loop, full, kept, joint.required[i]])
            group = groups[joined]
            group[0].append(index)
            if kept is not None and full == group[2]:
                group[3] = kept
            group_of.append(joined)
            for w in writes:
                maker[w] = joined
            for b in reads:
                readers_of.setdefault(b, set()).add(joined)
        self.groups, self.maker, self.readers_of = groups, maker, readers_of

    def _live(self, resident):
        """The peak of live bytes, and seconds."""
        joint, bytes_of = self.joint, self.joint.bytes
        last = {}
        for b, groups in self.readers_of.items():
            last[b] = max(groups)
        gone = {b for b, g in self.maker.items()
                if b not in self.outputs and self.readers_of.get(b) == {g} and
                self.groups[g][1]}
        live = sum(bytes_of[b] for b in self.inputs if b not in resident)
        dying = {}
        for b, g in last.items():
            if b not in resident and b not in self.outputs and b not in gone and \
                    (b in self.maker or b in self.inputs):
                dying.setdefault(g, []).append(b)
        for b in self.inputs:
            if b not in last and b not in resident and b not in self.outputs:
                live -= bytes_of[b]  # never read: freed at once
        peak, seconds, at = live, 0.0, -1
        for g, (kernels, loop, *_) in enumerate(self.groups):
            new, read, arithmetic, work, extra = [], set(), 0.0, 0.0, 0
            for k in kernels:
                i, reads, writes, _, ops = self.kernels[k]
                new += [w for w in writes if w not in gone]
                read |= reads
                work += joint.work[i]
                extra += joint.extra[i]
                if loop:
                    arithmetic += ops * (joint.reduced[i] or joint.numel[i])
            dead = dying.get(g, [])
            made = sum(bytes_of[w] for w in new)
            if loop:
                sizes = sorted(bytes_of[b] for b in dead if b not in new)
                reuse = 0
                for w in new:
                    if bytes_of[w] in sizes:
                        sizes.remove(bytes_of[w])
                        reuse += bytes_of[w]
            else:
                reuse = 0
            now = live + made - reuse + extra
            if now > peak:
                peak, at = now, g
            live += made - sum(bytes_of[b] for b in dead)
            live -= sum(bytes_of[w] for w in new
                        if w not in self.outputs and w not in last)
            moved = made + sum(bytes_of[b] for b in read if self.maker.get(b) != g)
            seconds += max(work, moved / joint.speeds.bandwidth,
                           arithmetic / joint.speeds.elements)
        self.peak, self.seconds, self.at, self.end = peak, seconds, at, live

    def alive_at_peak(self, count=5):
        """The largest values made here that lie in memory at the peak: (name, bytes)."""
        joint = self.joint
        found = []
        for b, g in self.maker.items():
            until = max(self.readers_of.get(b, {g}))
            if g <= self.at and (until >= self.at or b in self.outputs):
                found.append((joint.nodes[b].name, joint.bytes[b]))
        return sorted(found, key=lambda pair: -pair[1])[:count]


class Choice:
    """A saved set with what the model says of it."""

    def __init__(self, joint, saved):
        self.joint = joint
        backward, self.saved = joint.needed(saved)
        primals = set(joint.primals)
        self.recomputed = [i for i in backward if joint.forward[i] and
                           joint.kind[i] in (POINT, LOOP, LIBRARY)]
        order = [i for i, f in enumerate(joint.forward) if f]
        self.first = Module(joint, self._reached(order, joint.forward_outputs + list(self.saved)),
                            joint.primals, joint.forward_outputs + sorted(self.saved), primals)
        inputs = sorted(self.saved | (joint.tangents & set(backward)))
        keep = primals | {joint.root[i] for i in joint.forward_outputs}
        self.second = Module(joint, joint.mimic(backward), inputs, joint.backward_outputs, keep)
        # The forward part's outputs stay with the caller.
        held = sum(joint.bytes[i] for i in keep - primals)
        self.peaks = (self.first.peak, self.second.peak + held)
        self.peak = max(self.peaks)
        self.seconds = self.first.seconds + self.second.seconds

    def _reached(self, order, outputs):
        args, seen, stack = self.joint.args, set(), list(outputs)
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                stack.extend(args[i])
        return [i for i in order if i in seen]

    @property
    def saved_bytes(self):
        """Bytes of saved values that are no inputs of the step."""
        joint = self.joint
        held = {joint.root[i] for i in self.saved} - set(joint.primals)
        return sum(joint.bytes[i] for i in held)
