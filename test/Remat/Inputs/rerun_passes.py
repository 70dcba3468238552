"""Runs every registered pass from what MLIR prints of it.

For each pass, on the first of some files that it accepts: its pipeline as
--dump-pass-pipeline prints it, pasted into --pass-pipeline, and a reproducer by
--run-reproducer. Both hold all options, those that were not given as well.

    rerun_passes.py FOLDER IR...
"""

import pathlib
import re
import subprocess
import sys


def run(*arguments):
    return subprocess.run(
        ["ckopt-opt", *map(str, arguments)], capture_output=True, text=True
    )


def check(name, ir, reproducer):
    """None: the pass does not take the file."""
    given = run(
        ir,
        "--" + name,
        "--dump-pass-pipeline",
        "--mlir-generate-reproducer=%s" % reproducer,
        "--allow-unregistered-dialect",
    )
    if given.returncode:
        return None
    printed = re.search(r"^\S+\(\n.*?^\)$", given.stderr, re.M | re.S)
    if not printed:
        return "no pipeline in " + given.stderr
    pipeline = "".join(line.strip() for line in printed.group(0).splitlines())
    pasted = run(
        ir, "--pass-pipeline=" + pipeline, "--allow-unregistered-dialect"
    )
    if pasted.returncode or pasted.stdout != given.stdout:
        return "pasted: %s\n%s" % (pipeline, pasted.stderr)
    # MLIR puts the IR after the pass beside the pipeline; the one before it is
    # what a crash would leave.
    text = reproducer.read_text()
    reproducer.write_text(
        pathlib.Path(ir).read_text() + "\n" + text[text.index("{-#") :]
    )
    again = run(reproducer, "--run-reproducer", "--allow-unregistered-dialect")
    if again.returncode or again.stdout != given.stdout:
        return "reproduced: %s\n%s" % (pipeline, again.stderr)
    return ""


def main():
    folder, files = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    listed = run("--list-passes").stdout
    passes = re.findall(r"^  --([\w-]+)(?:=<[^>]*>)? +- ", listed, re.M)
    failed = 0
    for name in sorted(set(passes)):
        wrong = None
        for ir in files:
            wrong = check(name, ir, folder / (name + ".mlir"))
            if wrong is not None:
                break
        if wrong is None:
            print(name, "took none of the files")
        elif wrong:
            failed += 1
            print(name, "does not run again:", wrong)
        else:
            print(name, "runs again")
    return 1 if failed else 0


sys.exit(main())
