"""wide_copies.py PHASE.mlir: of @step, the results of kernels that follow from weights alone and have
at least as many numbers as a matrix of 4,096: whole weights in another form, between kernels."""
import math
import re
import sys

text = open(sys.argv[1]).read()
body = text[text.index("func.func @step(") :]
head, *lines = body[: body.index("\n  }")].split("\n")
given = set()
for argument in re.split(r"(?=%arg\d+: )", head):
    role = re.search(r'ckopt\.role = "(frozen|constant|parameter)"', argument)
    if role and (role[1] != "parameter" or re.match(r"%arg\d+: tensor<[\dx]*bf16", argument)):
        given.add(argument.split(":")[0])
assert given, "no weights are stored in few bits"
found, calls = [], 0
for line in lines:
    op = re.match(r"\s*(%\w+)(?::\d+)? = (ckopt\.\w+)(?: (@\w+))?(.*)", line)
    if not op:
        continue
    calls += op[2] == "ckopt.kernel_call"
    operands = re.findall(r"%\w+", op[4].split(" : ")[0])
    if operands and given.issuperset(operands):
        given.add(op[1])
        for shape in re.findall(r"tensor<((?:\d+x)+)\w+[,>]", line.rsplit(" -> ", 1)[-1]):
            if op[2] == "ckopt.kernel_call" and math.prod(map(int, shape[:-1].split("x"))) >= 4096:
                found.append(op[3] + " " + shape)
print("%d kernel calls, wide copies of weights: %s" % (calls, ", ".join(found) or "none"))
