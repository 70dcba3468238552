"""wide_concat.py COUNT: a function that joins COUNT tensors."""

import sys

count = int(sys.argv[1])
values = ["%%a%d" % i for i in range(count)]
print("func.func @step(%s) -> tensor<%dx4xf32> {" % (", ".join(v + ": tensor<1x4xf32>" for v in values), count))
print("  %%0 = ckopt.concat %s {axis = 0 : i64} : (%s) -> tensor<%dx4xf32>"
      % (", ".join(values), ", ".join(["tensor<1x4xf32>"] * count), count))
print("  return %%0 : tensor<%dx4xf32>\n}" % count)
