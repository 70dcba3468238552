"""Prints a random function @f of elementwise ops, products, loops, slices and
reshapes on 8x8 tensors, and a @main that prints the bits of its result.

random_function.py SEED MAIN: MAIN is a file that holds the text of @main.
"""

import random
import sys

T = "tensor<8x8xf32>"
rng = random.Random(int(sys.argv[1]))


def elementwise(v, a, b):
    if rng.random() < 0.5:
        return f"{v} = math.{rng.choice(['tanh', 'sin', 'cos'])} {a} : {T}"
    return f"{v} = arith.{rng.choice(['addf', 'mulf', 'subf'])} {a}, {b} : {T}"


def product(v, a, b):
    return f"{v} = linalg.matmul ins({a}, {b} : {T}, {T}) outs(%z : {T}) -> {T}"


def loop(v, a, b):
    n = v[1:]
    return f"""{v} = scf.for %i{n} = %c0 to %c3 step %c1 iter_args(%q{n} = {a}) -> ({T}) {{
    %m{n} = arith.mulf %q{n}, {b} : {T}
    %n{n} = math.tanh %m{n} : {T}
    scf.yield %n{n} : {T}
  }}"""


def transpose(v, a, b):
    n = v[1:]
    return f"""{v} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins({a} : {T}) outs(%e : {T}) {{
  ^bb0(%p{n}: f32, %o{n}: f32):
    %t{n} = arith.mulf %p{n}, %p{n} : f32
    linalg.yield %t{n} : f32
  }} -> {T}"""


def insert(v, a, b):
    n, part = v[1:], "tensor<4x8xf32>"
    return f"""%s{n} = tensor.extract_slice {a}[2, 0] [4, 8] [1, 1] : {T} to {part}
  %t{n} = math.tanh %s{n} : {part}
  {v} = tensor.insert_slice %t{n} into {b}[1, 0] [4, 8] [1, 1] : {part} into {T}"""


def reshape(v, a, b):
    n, flat = v[1:], "tensor<64xf32>"
    return f"""%s{n} = tensor.collapse_shape {a} [[0, 1]] : {T} into {flat}
  %t{n} = math.sin %s{n} : {flat}
  {v} = tensor.expand_shape %t{n} [[0, 1]] output_shape [8, 8] : {flat} into {T}"""


lines = [
    "%zero = arith.constant 0.0 : f32",
    "%c0 = arith.constant 0 : index",
    "%c1 = arith.constant 1 : index",
    "%c3 = arith.constant 3 : index",
    f"%e = tensor.empty() : {T}",
    f"%z = linalg.fill ins(%zero : f32) outs(%e : {T}) -> {T}",
]
kinds = [elementwise] * 4 + [product, loop, transpose, insert, reshape]
values = ["%x", "%w"]
for i in range(rng.randint(12, 22)):
    a, b = (rng.choice(values[-5:] + [rng.choice(values)]) for _ in range(2))
    lines.append(rng.choice(kinds)(f"%v{i}", a, b))
    values.append(f"%v{i}")
# What was made first is read last.
last = values[-1]
for i, value in enumerate(reversed(values[:-1])):
    if rng.random() < 0.6:
        lines.append(f"%r{i} = arith.addf {last}, {value} : {T}")
        last = f"%r{i}"

text = open(sys.argv[2]).read()
print("func.func private @printMemrefI32(tensor<*xi32>) attributes {llvm.emit_c_interface}")
print(f"func.func @f(%x: {T}, %w: {T}) -> {T} {{")
for line in lines + [f"return {last} : {T}"]:
    print("  " + line)
print("}\n" + text[text.index("func.func @main") :])
