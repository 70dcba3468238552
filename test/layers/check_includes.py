#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The include rule of the layers: a layer includes only what its row allows.

check_includes.py ROOT        checks include/ckopt and lib under ROOT
check_includes.py --self-test shows that each kind of violation is found

Checked, on every header and source of a layer:
  - ckopt headers of layers that are not in its row of LAYERS;
  - no MLIR in PLAIN layers, no LLVM in the runtime and what plays its device,
    no protobuf or ONNX schema outside of Frontend: neither directly nor through
    headers of ckopt that it includes;
  - private headers of other layers ("../Runtime/...") by the same rows;
  - no MLIR behind ckopt/ckopt.h, the header of programs;
  - nothing but the C++ standard library and POSIX in Base;
  - every layer that lib/CMakeLists.txt names has a row, in the same order, and
    a folder with sources;
  - the folders of lib/Planner (ROOMS): each includes only the folders in its
    row, and of those only the headers that they offer.
"""

import os
import re
import sys
import tempfile

COMMON = ["Base", "Support", "Interfaces", "Dialect", "Reference", "Analysis"]
# The layers whose sources are in lib/Transforms.
TRANSFORMS = ["Normalize", "Autodiff", "Distribute", "Losses", "Optimizers", "Layout", "Fuse",
              "MemoryPlan", "Remat", "Overlap", "Precision"]
EVERYTHING = COMMON + TRANSFORMS + ["CodeGen", "Target", "Target/Cpu", "Target/Cuda", "Train/Data",
                                    "Planner", "Runtime", "Ranks", "Frontend", "Compiler"]

PLAIN = ["Base", "Support", "Train/Data", "Planner", "Runtime", "Ranks"]

# Layer: the layers that it may include besides itself, lowest layer first. A
# layer is named by its folder under include/ckopt; under lib it has the same
# one, or lib/Transforms/NAME. Of several folders that hold a file, the
# innermost is its layer.
LAYERS = {
    "Base": [],
    "Support": ["Base"],
    "Train/Data": ["Base", "Support"],
    "Planner": ["Base", "Support"],
    "Runtime": ["Base"],
    "Ranks": ["Base", "Support", "Runtime"],
    "Interfaces": ["Base", "Support"],
    "Dialect": ["Base", "Support", "Interfaces"],
    "Reference": ["Base", "Support", "Interfaces", "Dialect"],
    "Target": ["Base", "Support", "Runtime"],
    "Analysis": COMMON + ["Planner", "Runtime", "Target"],
    "Normalize": COMMON,
    "MemoryPlan": COMMON + ["Planner"],
    "Autodiff": COMMON,
    "Distribute": COMMON + ["Planner", "Target", "MemoryPlan", "Autodiff"],
    "Losses": COMMON + ["Distribute"],
    "Optimizers": COMMON + ["Autodiff", "Distribute"],
    "Layout": COMMON + ["Runtime"],
    "Fuse": COMMON + ["Runtime"],
    "Remat": COMMON + ["Planner", "Target"],
    "Overlap": COMMON + ["Planner", "MemoryPlan", "Target", "Distribute", "Remat"],
    "CodeGen": COMMON + ["Runtime", "Target"],
    "Precision": COMMON + ["Runtime", "Target", "CodeGen"],
    "Target/Cpu": COMMON + ["Runtime", "Target", "CodeGen"],
    "Target/Cuda": COMMON + ["Runtime", "Target", "CodeGen", "Target/Cpu"],
    "Frontend": COMMON,
    "Compiler": EVERYTHING,
    "Train": EVERYTHING,
    "Settings": EVERYTHING + ["Train"],
    "CAPI": EVERYTHING + ["Train", "Settings"],
    "Plugin": EVERYTHING,
}


def folder_of(layer):
    """The folder of a layer's sources, under lib."""
    return "Transforms/" + layer if layer in TRANSFORMS else layer


# What begins an include, and the layers that may not reach it.
FOREIGN = {
    "mlir/": PLAIN,
    "llvm/": ["Base", "Runtime"],
    "mlir-c/": PLAIN,
    "onnx/": [layer for layer in LAYERS if layer != "Frontend"],
    "google/protobuf": [layer for layer in LAYERS if layer != "Frontend"],
}

# Layers of the C++ standard library and POSIX alone, whose headers have such names.
STANDARD_ONLY = ["Base"]
STANDARD = re.compile(r"[a-z_]+|(fcntl|pthread|unistd|sys/stat)\.h")

# Folder of lib/Planner, lowest first: the folders that it may include besides
# itself, the headers that it offers to others, and the public headers
# (include/ckopt/Planner) that belong to it.
ROOMS = {
    "Check": ([], [], ["Verifier", "Certificate"]),
    "Model": (
        ["Check"],
        ["Candidate.h", "Canonical.h", "Deadline.h", "Order.h", "Problem.h", "Sequence.h",
         "Strategy.h", "Tuning.h"],
        ["Simulator", "Labels"],
    ),
    "Math": (["Model"], ["MaximumFlow.h", "Milp.h"], []),
    "Structure": (["Model"], ["Structure.h"], ["Repeats"]),
    "Packing": (["Model"], [], ["Packing"]),
    "Bounds": (["Check", "Model", "Math"], ["Gaps.h"], ["Bounds", "MemoryNeed"]),
    "Construct": (
        ["Model", "Math", "Structure", "Bounds"],
        ["Construct.h", "Executor.h"],
        [],
    ),
    "Exact": (["Check", "Model", "Bounds"], ["ExactSearch.h"], []),
    "ExactOrder": (
        ["Check", "Model", "Math", "Bounds", "Construct"],
        ["ExactOrder.h"],
        [],
    ),
    "Improve": (["Model", "Bounds", "Construct", "Exact"], ["Improve.h"], []),
    "Portfolio": (
        ["Check", "Model", "Packing", "Bounds", "Construct", "Exact", "ExactOrder", "Improve"],
        [],
        ["MessagePlanner", "Solve"],
    ),
    "Policy": (["Check", "Model", "Packing", "Portfolio"], [], ["Policy"]),
    "Formats": (
        ["Check", "Model", "Structure", "Packing", "Bounds", "Construct", "Portfolio", "Policy"],
        [],
        ["GraphJson", "Pareto", "PlanCheck", "Report", "Request", "SearchFlags",
         "SearchOptions"],
    ),
}
# What a problem and a plan are: every folder speaks of them.
VOCABULARY = ["Graph", "Plan", "Answer", "Certificate"]

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
SOURCES = (".h", ".cpp", ".c", ".inc", ".def")


def read_includes(path):
    with open(path, encoding="utf-8") as file:
        return INCLUDE.findall(file.read())


def innermost(path, folders):
    """The layer whose folder (folders: layer -> folder) holds `path` most closely."""
    held = [layer for layer, folder in folders.items() if path.startswith(folder + "/")]
    return max(held, key=lambda layer: len(folders[layer]), default=None)


IN_INCLUDE = {layer: layer for layer in LAYERS}
IN_LIB = {layer: folder_of(layer) for layer in LAYERS}


def layer_of(header, root, folder):
    """The layer of an include such as ckopt/Planner/Graph.h, or of a private
    header such as ../Runtime/Session.h seen from `folder`; None of what is not
    ckopt's, the unknown folder's name where no layer has it."""
    if header.startswith("../"):
        path = os.path.relpath(os.path.join(folder, header), os.path.join(root, "lib"))
        return None if path.startswith("..") else innermost(path, IN_LIB) or path
    if not header.startswith("ckopt/"):
        return None
    path = header.removeprefix("ckopt/")
    return innermost(path, IN_INCLUDE) or path.split("/")[0]


def files_of(root, layer):
    for base, folders in (("include/ckopt", IN_INCLUDE), ("lib", IN_LIB)):
        top = os.path.join(root, base)
        for folder, _, names in sorted(os.walk(os.path.join(top, folders[layer]))):
            if innermost(os.path.relpath(folder, top) + "/", folders) != layer:
                continue
            for name in sorted(names):
                if name.endswith(SOURCES):
                    yield os.path.join(folder, name)


def reached(root, path, seen):
    """(include, chain) of everything that `path` includes, through ckopt's own
    headers; `seen` keeps headers from being followed twice."""
    for include in read_includes(path):
        yield include, [include]
        header = os.path.join(root, "include", include)
        if include in seen or not os.path.isfile(header):
            continue
        seen.add(include)
        for deeper, chain in reached(root, header, seen):
            yield deeper, [include] + chain


def check_file(root, layer, path):
    errors = []
    where = os.path.relpath(path, root)
    for include in read_includes(path):
        target = layer_of(include, root, os.path.dirname(path))
        if target is None or target == layer:
            continue
        if target not in LAYERS:
            errors.append(f"{where}: includes {include} of unknown layer {target}")
        elif target not in LAYERS[layer]:
            errors.append(f"{where}: layer {layer} must not include {include}")
    for include, chain in reached(root, path, set()):
        for prefix, barred in FOREIGN.items():
            if include.startswith(prefix) and layer in barred:
                errors.append(f"{where}: layer {layer} reaches {' -> '.join(chain)}")
        if layer in STANDARD_ONLY and not include.startswith("ckopt/"):
            if not STANDARD.fullmatch(include):
                errors.append(f"{where}: layer {layer} reaches {' -> '.join(chain)}")
    return errors


def room_of(include):
    """The folder of lib/Planner that an include belongs to, and whether it is
    offered to others; None where it is none."""
    public = re.fullmatch(r"ckopt/Planner/(\w+)\.h", include)
    if public:
        for room, (_, _, headers) in ROOMS.items():
            if public.group(1) in headers:
                return room, True
        return "?", public.group(1) in VOCABULARY
    folder, _, name = include.partition("/")
    if folder in ROOMS and name:
        return folder, name in ROOMS[folder][1]
    return None, True


def check_rooms(root):
    """The folders of lib/Planner keep their order and their interfaces."""
    errors = []
    base = os.path.join(root, "lib", "Planner")
    for room in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        if not os.path.isdir(os.path.join(base, room)):
            continue
        if room not in ROOMS:
            errors.append(f"lib/Planner/{room}: no row in test/layers/check_includes.py")
            continue
        for path in sorted(os.listdir(os.path.join(base, room))):
            if not path.endswith(SOURCES):
                continue
            where = f"lib/Planner/{room}/{path}"
            for include in read_includes(os.path.join(base, room, path)):
                target, offered = room_of(include)
                if target is None or target == room:
                    continue
                name = include.rpartition("/")[2].removesuffix(".h")
                if include.startswith("ckopt/Planner/") and name in VOCABULARY:
                    continue
                if target == "?":
                    errors.append(f"{where}: {include} belongs to no folder")
                elif target not in ROOMS[room][0]:
                    errors.append(f"{where}: folder {room} must not include {include}")
                elif not offered:
                    errors.append(f"{where}: {target} does not offer {include}")
    order = list(ROOMS)
    for room, (allowed, _, _) in ROOMS.items():
        for target in allowed:
            if order.index(target) > order.index(room):
                errors.append(f"{room} may include {target}, which is higher")
    return errors


def check_table(root):
    """lib/CMakeLists.txt and LAYERS must name the same layers."""
    with open(os.path.join(root, "lib", "CMakeLists.txt"), encoding="utf-8") as file:
        text = file.read()
    named = []
    for variable in ("CKOPT_PLAIN_LAYERS", "CKOPT_COMPILER_LAYERS"):
        match = re.search(rf"set\({variable}\s+([^)]*)\)", text)
        if not match:
            return [f"lib/CMakeLists.txt: no list {variable}"]
        named += match.group(1).split()
    errors = []
    folders = [folder_of(layer) for layer in LAYERS]
    if named != folders:
        errors.append(
            "lib/CMakeLists.txt and test/layers/check_includes.py name other layers: "
            f"{named} and {folders}"
        )
    for folder, _, names in sorted(os.walk(os.path.join(root, "lib"))):
        path = os.path.relpath(folder, os.path.join(root, "lib"))
        if any(name.endswith(SOURCES) for name in names) and not innermost(path + "/", IN_LIB):
            errors.append(f"lib/{path}: no row in test/layers/check_includes.py")
    for layer, allowed in LAYERS.items():
        if next(files_of(root, layer), None) is None:
            errors.append(f"layer {layer}: there is no source in lib/{folder_of(layer)}")
        order = list(LAYERS)
        for target in allowed:
            if order.index(target) > order.index(layer):
                errors.append(f"{layer} may include {target}, which is higher")
    return errors


def check_program_header(root):
    """Programs that compile and train include no header of MLIR."""
    path = os.path.join(root, "include", "ckopt", "ckopt.h")
    if not os.path.isfile(path):
        return ["include/ckopt/ckopt.h: the header of programs is not there"]
    return [
        f"include/ckopt/ckopt.h reaches {' -> '.join(chain)}"
        for include, chain in reached(root, path, set())
        if include.startswith(("mlir/", "mlir-c/"))
    ]


def check(root):
    errors = check_table(root) + check_rooms(root) + check_program_header(root)
    files = 0
    for layer in LAYERS:
        for path in files_of(root, layer):
            files += 1
            errors += check_file(root, layer, path)
    if files == 0:
        errors.append(f"no sources under {root}")
    return errors, files


def self_test():
    """Each violation must be found, and a clean tree pass."""
    cmake = (
        f"set(CKOPT_PLAIN_LAYERS {' '.join(PLAIN)})\nset(CKOPT_COMPILER_LAYERS "
        + " ".join(folder_of(layer) for layer in list(LAYERS)[len(PLAIN):])
        + ")\n"
    )
    clean = {
        **{f"lib/{folder_of(layer)}/empty.cpp": "" for layer in LAYERS},
        "lib/CMakeLists.txt": cmake,
        "include/ckopt/ckopt.h": '#include "ckopt/Support/A.h"\n',
        "include/ckopt/Base/B.h": "#include <vector>\n",
        "include/ckopt/Support/A.h": '#include "ckopt/Base/B.h"\n' '#include "llvm/ADT/ArrayRef.h"\n',
        "lib/Planner/Model/P.cpp": '#include "ckopt/Support/A.h"\n',
        "lib/Planner/Portfolio/S.cpp": '#include "Model/Problem.h"\n',
        "lib/Transforms/Remat/R.cpp": '#include "ckopt/Planner/P.h"\n#include "mlir/IR/Builders.h"\n',
    }
    bad = {
        "MLIR in the header of programs": {
            "include/ckopt/ckopt.h": '#include "ckopt/Remat/H.h"\n',
            "include/ckopt/Remat/H.h": '#include "mlir/IR/Builders.h"\n',
        },
        "higher layer": {"lib/Dialect/D.cpp": '#include "ckopt/Autodiff/Passes.h"\n'},
        "higher folder": {"lib/Planner/Model/Q.cpp": '#include "Construct/Construct.h"\n'},
        "higher public header": {"lib/Planner/Exact/Q.cpp": '#include "ckopt/Planner/Solve.h"\n'},
        "header that is not offered": {
            "lib/Planner/Portfolio/S.cpp": '#include "Construct/BlockChain.h"\n'
        },
        "planner folder without a row": {"lib/Planner/Attic/Q.cpp": "\n"},
        "solver code in the verifier": {
            "lib/Planner/Check/V.cpp": '#include "Model/Problem.h"\n'
        },
        "MLIR in the planner": {"lib/Planner/Model/Q.cpp": "#include <mlir/IR/Value.h>\n"},
        "LLVM in the runtime": {"lib/Runtime/r.cpp": '#  include "llvm/ADT/APInt.h"\n'},
        "LLVM reached": {
            "include/ckopt/Base/B.h": '#include "llvm/ADT/APInt.h"\n',
            "lib/Runtime/r.cpp": '#include "ckopt/Base/B.h"\n',
        },
        "more than the standard library": {"lib/Base/b.cpp": "#include <zlib.h>\n"},
        "protobuf": {"lib/Compiler/d.cpp": "#include <onnx/onnx_pb.h>\n"},
        "private header": {"lib/Support/s.cpp": '#include "../Planner/P.h"\n'},
        "unknown layer": {"lib/Compiler/d.cpp": '#include "ckopt/Magic/M.h"\n'},
        "folder without a row": {"lib/Magic/M.cpp": "\n"},
        "layer without a folder": {"lib/Reference/empty.cpp": None},
        "missing layer": {"lib/CMakeLists.txt": cmake.replace("Reference ", "")},
    }
    failures = []
    for name, files in [("clean", {})] + list(bad.items()):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**clean, **files}.items():
                if text is None:
                    continue
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
        errors, done = self_test(), "every kind of violation is found"
    else:
        errors, files = check(sys.argv[1])
        done = f"{files} files keep the include rule"
    print("\n".join(errors) if errors else done)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
