#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Only the places of an op know it by name: others ask interfaces and traits.

check_ops.py ROOT        checks lib, include and tools under ROOT
check_ops.py --self-test shows that each kind of list is found, and no other

A pass that lists ops treats one that joins the dialect as none of them, and says
nothing. This finds such lists of the dialect's ops (those that Ckopt*Ops.td define):
`isa` of MOST + 1 or more of them, and cases of a TypeSwitch. PLACES are where
docs/architecture.md, "To add an op", sends somebody who adds one; REASONS are the
lists that stay, and why a new op is safe without an entry. Chains of `dyn_cast`, by
which patterns are matched and each op gets its code, are left to the reader.
"""

import os
import re
import sys
import tempfile

MOST = 2  # an op and its gradient

# The places of an op (docs/architecture.md).
PLACES = re.compile(r"/Dialect/Ckopt/IR/|/Frontend/Onnx/.*Handlers\.cpp$|(Models|Rules)\.cpp$")

# File, by the end of its path: how many lists it has, and why.
REASONS = {
    "Normalize/AttentionMatch.cpp": (4, "the ops of a pattern; other ops are no attention, which is right"),
    "Normalize/MakeEval.cpp": (1, "the ops of a pattern; a statistic behind others is that of the batch, with a remark"),
    "Autodiff/Bounds.cpp": (2, "algebra of signs and poles, for rules; the tutorial's step 3 sends there"),
}

DEFINITION = re.compile(r"^def Ckopt_(\w+Op)\b", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*")
ISA = re.compile(r"\bisa(?:_and_nonnull|_and_present)?<([^<>;(){}]*)>")
SWITCH = re.compile(r"\bTypeSwitch<")
CASES = re.compile(r"\.Case<([^<>;(){}]*)>|\.Case\(\s*\[[^\]]*\]\(\s*(?:\w+::)*(\w+)")


def ops_of(root):
    """The classes of the dialect's ops."""
    found = set()
    for folder, _, names in os.walk(os.path.join(root, "include")):
        for name in names:
            if re.fullmatch(r"Ckopt\w*Ops\.td", name):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found |= set(DEFINITION.findall(file.read()))
    return found


def named(text, ops):
    """The ops in a list of template arguments, other dialects' left out."""
    names = [name.strip().removeprefix("ckopt::") for name in text.split(",")]
    return [name for name in names if name in ops]


def lists_of(text, ops):
    """(line, ops) of each list in a source."""
    text = COMMENT.sub("", text)
    line = lambda at: text.count("\n", 0, at) + 1
    for match in ISA.finditer(text):
        listed = named(match.group(1), ops)
        if len(listed) > MOST:
            yield line(match.start()), listed
    for match in SWITCH.finditer(text):
        cases = CASES.findall(text[match.start() : text.find(";\n}", match.start())])
        listed = [op for case in cases for op in named(",".join(case), ops)]
        if listed:
            yield line(match.start()), listed


def check(root):
    ops, errors, files = ops_of(root), [], 0
    if not ops:
        return [f"no ops under {root}/include"], 0
    for base in ("include", "lib", "tools"):
        for folder, _, names in sorted(os.walk(os.path.join(root, base))):
            for name in sorted(names):
                path = os.path.join(folder, name)
                where = os.path.relpath(path, root)
                if not name.endswith((".h", ".cpp")) or PLACES.search("/" + where):
                    continue
                files += 1
                with open(path, encoding="utf-8") as file:
                    found = list(lists_of(file.read(), ops))
                most, reason = next((REASONS[end] for end in REASONS if where.endswith(end)), (0, None))
                if len(found) > most:
                    errors += [f"{where}:{at}: lists {', '.join(listed)}: ask an interface or a "
                               "trait (Interfaces/StructureInterface.td)" for at, listed in found]
                if reason and len(found) < most:
                    errors.append(f"{where}: {len(found)} lists, not {most}: correct REASONS")
    return errors, files


def self_test():
    """Each kind of list must be found, and what is none must pass."""
    clean = {
        "include/CkoptXOps.td": "".join(f"def Ckopt_{x}Op : X;\n" for x in "ABCD"),
        "lib/Pass.cpp": "isa<AOp, BOp>(op); isa<scf::AOp, scf::BOp, scf::COp>(op); // isa<AOp, BOp, COp>\n",
        "lib/ARules.cpp": "isa<AOp, BOp, COp>(op);\n",
        "lib/Dialect/Ckopt/IR/A.cpp": "TypeSwitch<T>(op).Case<AOp>(f);\n}\n",
        "lib/Types.cpp": "TypeSwitch<Type>(t).Case<FloatType>(f).Case([](IntegerType) {});\n}\n",
        **{f"lib/{name}": "isa<AOp, BOp, COp>(op);\n" * most for name, (most, _) in REASONS.items()},
    }
    bad = {
        "isa": {"lib/P.cpp": "if (isa<AOp,\n  BOp, COp>(op))\n"},
        "isa among others": {"lib/P.h": "isa_and_present<ckopt::AOp, scf::IfOp, BOp, COp>(op)"},
        "switch": {"tools/t.cpp": "TypeSwitch<Operation *>(op)\n.Case<scf::IfOp, AOp>(f);\n}\n"},
        "switch by argument": {"lib/P.cpp": "TypeSwitch<Operation *, int>(op).Case([&](AOp o) { f; });\n}\n"},
        "one more where some have a reason": {"lib/Transforms/Normalize/MakeEval.cpp": "isa<AOp, BOp, COp>(op);\n" * 2},
        "a reason for nothing": {"lib/Transforms/Normalize/MakeEval.cpp": "\n"},
        "no ops": {"include/CkoptXOps.td": "\n"},
    }
    failures = []
    for name, files in [("clean", {})] + list(bad.items()):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**clean, **files}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            errors, _ = check(root)
            if bool(errors) == (name == "clean"):
                failures.append(f"{name}: {errors or 'not found'}")
    return failures


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 64
    if sys.argv[1] == "--self-test":
        errors, done = self_test(), "every kind of list is found"
    else:
        errors, files = check(sys.argv[1])
        done = f"{files} files name no lists of ops"
    print("\n".join(errors) if errors else done)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
