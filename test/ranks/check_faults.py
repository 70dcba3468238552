# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_faults.py CKOPT CC SOURCE TESTS...: what happens when a rank of a run fails.

`kill`: a rank is killed inside a collective: all ranks end, and the run that is resumed has the bits
of one that nobody killed. `kills`: a rank is killed inside a collective, while it compiles, while it writes its share of
a checkpoint, and around the index: all ranks end with a message that names it, the last complete
checkpoint stays, and the run that is resumed has the bits of one that nobody killed.
`many-kills`: the same at 50 points; all ranks are gone 10 seconds after.
`disk`: a rank's disk is full. `hang`: a rank stops (SIGSTOP), and others find it by
--rank-timeout, which counts no work of rank 0. `memory`: rank 0 writes weights with little memory. `signals`: signals end a run, of one process and
of several, behind a whole step. `network`: a network with delays that loses packets.

Ends with 77 where mpirun or the MPI engine is missing."""
import array
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

tool, compiler, source = sys.argv[1:4]
data = pathlib.Path(source) / "test"
work = pathlib.Path(tempfile.mkdtemp(prefix="ckopt-faults-"))
engine = pathlib.Path(tool).parents[1] / "lib" / "libckopt_mpi.so.1"
limit = 300  # seconds after which something hangs
preload = work / "faults.so"
MPI = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca",
       "btl_vader_single_copy_mechanism", "none"]
STEPS = 12


def environment(**more):
    env = dict(os.environ, CKOPT_CACHE_DIR="off", OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_base_warn_component_unused="0")
    env.update(more)
    return env


def command(parallel, *flags, mpi=(), wrapper=()):
    ranks = 1
    for part in parallel.split(","):
        ranks *= int(part.split(":")[1])
    train = [tool, "train", f"{data}/ckopt/Inputs/sharded_mlp.onnx",
             f"--data={data}/data/digits.npz", "--inputs=x=images", "--targets=labels",
             "--loss=cross_entropy", "--threads=1", "--batch=48", "--optimizer=sgd",
             "--momentum=0.9", "--lr=0.05", "--quiet", *flags]
    if ranks == 1:
        return [*wrapper, *train]
    return [*MPI, *mpi, "-n", str(ranks), *wrapper, *train, f"--parallel={parallel}"]


def run(line, env=None):
    done = subprocess.run(line, env=env or environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=limit)
    return done.returncode, done.stdout


def succeed(line, env=None):
    code, text = run(line, env)
    if code:
        sys.exit(f"{' '.join(map(str, line))} ended with {code}:\n{text}")


def check(condition, what, text=""):
    if not condition:
        sys.exit(f"{what}\n{text}")


wholes = {}


def whole(parallel):
    """The weights of a run that nobody stops."""
    if parallel not in wholes:
        out = work / f"whole-{parallel.replace(':', '').replace(',', '-')}.safetensors"
        succeed(command(parallel, f"--max-steps={STEPS}", "-o", str(out)))
        wholes[parallel] = out.read_bytes()
    return wholes[parallel]


def resumes(parallel, folder, what):
    """Goes on from what is there, to the bits of the unbroken run."""
    checkpoint, out = folder / "c.safetensors", folder / "out.safetensors"
    flags = [f"--resume={checkpoint}"] if checkpoint.exists() else []
    succeed(command(parallel, f"--max-steps={STEPS}", *flags, f"--checkpoint={checkpoint}",
                    "-o", str(out)))
    check(out.read_bytes() == whole(parallel), f"{what}: the resumed run has other bits")
    shards = folder / "c.safetensors.shards"
    if shards.exists():
        saves = {re.match(r"\.?save(\d+)", file.name)[1] for file in shards.iterdir()}
        check(len(saves) == 1, f"{what}: shares of several saves are left: {saves}")
    return "resumed" if flags else "begun again"


def kill_once(number, parallel, fault, timed):
    folder = work / f"kill{number}"
    folder.mkdir()
    reached = folder / "reached"
    env = environment(LD_PRELOAD=str(preload), CKOPT_FAULT=fault, CKOPT_FAULT_FILE=str(reached))
    if "objects" in fault:
        env["CKOPT_CACHE_DIR"] = str(folder / "objects")
    line = command(parallel, f"--max-steps={STEPS}", "--checkpoint-every=3",
                   f"--checkpoint={folder}/c.safetensors",
                   mpi=["-x", "LD_PRELOAD", "-x", "CKOPT_FAULT", "-x", "CKOPT_FAULT_FILE"])
    code, text = run(line, env)
    ended = time.time()
    what = f"{parallel}, {fault}"
    if not reached.exists():
        check(code == 0, f"{what}: ended with {code} without the fault", text)
        print(f"{what}: not reached", flush=True)
        return False
    rank = fault.split()[0]
    check(code == 137, f"{what}: exit code {code}, not 137", text)
    check(re.search(rf"process rank {rank} .*exited on signal 9", text),
          f"{what}: nobody names the rank", text)
    if timed:
        seconds = ended - reached.stat().st_mtime
        check(seconds < 10, f"{what}: ranks were there {seconds:.1f} s later", text)
    said = re.search(r"rank \d on \S+, step \d+: .*rank \d on \S+ was killed", text)
    how = resumes(parallel, folder, what)
    shutil.rmtree(folder)
    print(f"{what}: exit code {code}, {'step named, ' if said else ''}{how}: same bits", flush=True)
    return bool(said)


def kill():
    kill_once(0, "fsdp:2", "1 MPI_Isend 60 KILL", timed=False)


def kills():
    said = 0
    for number, (parallel, fault) in enumerate([
            ("fsdp:2", "1 MPI_Isend 60 KILL"),
            ("dp:2", "0 MPI_Isend 80 KILL"),
            ("fsdp:2", "1 rename 2 KILL save"),
            ("dp:2", "0 rename 4 KILL c.safetensors"),
            ("dp:2", "1 rename 1 KILL objects")]):
        said += kill_once(number, parallel, fault, timed=False)
    check(said, "no survivor named the rank, its step and its host")


def many_kills():
    draw, reached, number = random.Random(15), 0, 0
    while reached < 50:
        number += 1
        check(number < 100, "too few of the points are reached")
        parallel = draw.choice(["dp:2", "fsdp:2", "dp:2,fsdp:2"])
        rank = draw.randrange(4 if "," in parallel else 2)
        fault = draw.choice([f"MPI_Isend {draw.randrange(1, 250)} KILL",
                             f"rename {draw.randrange(1, 5)} KILL save",
                             f"fsync {draw.randrange(1, 9)} KILL",
                             f"rename 1 KILL objects",
                             f"rename {draw.randrange(1, 5)} KILL c.safetensors"])
        folder = work / f"kill{number}"
        kill_once(number, parallel, f"{rank} {fault}", timed=True)
        reached += not folder.exists()


def disk():
    """One rank can write files of 20 KiB at most, and has a larger share."""
    folder = work / "disk"
    folder.mkdir()
    checkpoint = folder / "c.safetensors"
    succeed(command("fsdp:2", "--max-steps=4", f"--checkpoint={checkpoint}"))
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    limited = ["bash", "-c", '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -f 20; exec "$@"', "rank"]
    code, text = run(command("fsdp:2", "--max-steps=8", f"--resume={checkpoint}",
                             f"--checkpoint={checkpoint}", wrapper=limited,
                             mpi=["--mca", "btl", "tcp,self"]))
    check(code == 74, f"a full disk: exit code {code}, not 74", text)
    check(re.search(r"rank 1 on \S+, step 8: .*the checkpoint before stays.*save2-rank1of2"
                    r".*File too large", text), "a full disk: another message", text)
    # A lock whose owner was killed stays, and holds nobody up.
    after = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()
             and (path.parent == folder or path.name.startswith("save1"))
             and path.suffix != ".lock"}
    check(before == after, "a full disk: the checkpoint is not as it was")
    print(f"a full disk: {resumes('fsdp:2', folder, 'a full disk')}: same bits")


def hang():
    folder = work / "hang"
    folder.mkdir()
    flags = [f"--max-steps={STEPS}", "--checkpoint-every=3",
             f"--checkpoint={folder}/c.safetensors"]
    pass_on = ["-x", "LD_PRELOAD", "-x", "CKOPT_FAULT", "-x", "CKOPT_FAULT_FILE"]
    reached = folder / "reached"

    def env(fault, **more):
        return environment(LD_PRELOAD=str(preload), CKOPT_FAULT=fault,
                           CKOPT_FAULT_FILE=str(reached), **more)

    code, text = run(command("fsdp:2", *flags, "--rank-timeout=4", mpi=pass_on),
                     env("1 MPI_Isend 90 STOP"))
    check(code == 20, f"a rank that stops: exit code {code}, not 20", text)
    check(re.search(r"rank 0 on \S+, step \d+: .*rank 1 on \S+ has not answered for 4 seconds",
                    text), "a rank that stops: another message", text)
    reached.unlink()
    print(f"a rank that stops: found, {resumes('fsdp:2', folder, 'a rank that stops')}")
    # Of three, the two others wait for each other as well: neither is to be blamed.
    for stopped, at in [(2, 40), (1, 41), (0, 60), (2, 77)]:
        code, text = run(command("dp:3", "--max-steps=100", "--rank-timeout=3", mpi=pass_on),
                         env(f"{stopped} MPI_Isend {at} STOP"))
        check(code == 20 and reached.exists(), f"rank {stopped} of 3 stops: exit code {code}", text)
        reached.unlink()
        named = set(re.findall(r"rank (\d) on \S+ has not answered for 3 seconds", text))
        check(named == {str(stopped)}, f"rank {stopped} of 3 stops: {named} are named", text)
    print("one of three ranks that stops: named")
    # A rank that never comes to MPI's start, which itself waits for ever.
    late = ["bash", "-c", '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec sleep 100; exec "$@"', "rank"]
    code, text = run(command("dp:2", "--max-steps=1", "--rank-timeout=1", wrapper=late))
    check(code == 20, f"a rank that does not start: exit code {code}, not 20", text)
    check("MPI has not started all ranks within 11 seconds" in text, "another message", text)
    print("a rank that does not start: found", flush=True)
    # Work of more than twice the time that ranks wait is no reason to end.
    for fault in ["0 rename 1 9 objects", "0 rename 1 9 c.safetensors", "1 rename 1 9 save"]:
        succeed(command("dp:2", *flags, "--rank-timeout=4", mpi=pass_on),
                env(fault, CKOPT_CACHE_DIR=str(folder / "objects")))
        check(reached.exists(), f"{fault} was not reached")
        reached.unlink()
        shutil.rmtree(folder / "objects", ignore_errors=True)
        print(f"a rank that works for long ({fault}): waited for", flush=True)


def large_model(path):
    """A network for digits of 64 MiB and a little more, as a file of protobuf's."""
    def varint(value):
        low = bytes([value & 127 | (128 if value > 127 else 0)])
        return low + varint(value >> 7) if value > 127 else low

    def field(number, value):
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        value = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(value)) + value

    def tensor(name, rows, columns):
        numbers = array.array("f", [(i % 7 - 3) / 64 for i in range(rows * 10)])
        return field(1, rows) + field(1, columns) + field(2, 1) + field(8, name) + field(
            9, numbers.tobytes() * (columns // 10))

    def node(kind, *names):
        return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1])
                     + field(3, names[-1]) + field(4, kind))

    def info(name, *sizes):
        dims = b"".join(field(1, field(2 if isinstance(s, str) else 1, s)) for s in sizes)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))

    wide = 262140
    graph = (node("Flatten", "x", "f") + node("MatMul", "f", "w", "h") + node("Relu", "h", "r")
             + node("MatMul", "r", "v", "y") + field(2, "large") + field(5, tensor("w", 64, wide))
             + field(5, tensor("v", wide, 10)) + field(11, info("x", "N", 1, 8, 8))
             + field(12, info("y", "N", 10)))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 17)))


def memory():
    """Rank 0 writes weights of 64 MiB that it has half of, and may take 24 MiB more for it."""
    model, reached = work / "large.onnx", work / "reached"
    large_model(model)
    outs = {}
    for ending in ["onnx", "safetensors"]:
        for parallel in ["dp:2", "fsdp:2"]:
            out = work / f"trained-{parallel[:-2]}.{ending}"
            shutil.rmtree(work / "c.safetensors.shards", ignore_errors=True)
            line = command(parallel, "--max-steps=1", "-O", "0", "--effort=0", "-o", str(out),
                           f"--checkpoint={work}/c.safetensors",
                           mpi=["-x", "LD_PRELOAD", "-x", "CKOPT_FAULT", "-x", "CKOPT_FAULT_FILE"])
            line[line.index(f"{data}/ckopt/Inputs/sharded_mlp.onnx")] = str(model)
            # What is behind the checkpoint is the writing of weights.
            succeed(line, environment(LD_PRELOAD=str(preload), CKOPT_FAULT_FILE=str(reached),
                                      CKOPT_FAULT=f"0 rename 1 LIMIT c.safetensors"))
            check(reached.exists(), "rank 0 saves no checkpoint")
            reached.unlink()
            outs[parallel] = out.read_bytes()
        check(outs["dp:2"] == outs["fsdp:2"], f"{ending}: other bits")
        print(f"{len(outs['dp:2'])} bytes .{ending}: written within 24 MiB", flush=True)


def signals():
    # mpirun passes SIGUSR1 on at once; of SIGTERM it makes SIGKILL seconds later.
    for parallel, number in [("dp:1", signal.SIGTERM), ("dp:2", signal.SIGUSR1)]:
        folder = work / f"signal-{parallel[-1]}"
        folder.mkdir()
        checkpoint = folder / "c.safetensors"
        line = command(parallel, "--epochs=100000", "--checkpoint-every=50",
                       f"--checkpoint={checkpoint}")
        started = subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        while not checkpoint.exists():
            check(started.poll() is None, "ended early", started.stdout)
            time.sleep(0.05)
        started.send_signal(number)
        text, _ = started.communicate(timeout=limit)
        step = re.search(rf"{number.name} ended training after step (\d+); --resume=\S+ goes on", text)
        check(step, f"{parallel}: {number.name} is not told of", text)
        check(started.returncode == 128 + number,
              f"exit code {started.returncode}, not {128 + number}", text)
        header = checkpoint.read_bytes()
        check(f'"ckopt.step":"{step[1]}"'.encode() in header, "the checkpoint is another step's")
        steps = int(step[1]) + 3
        outs = [folder / "whole.safetensors", folder / "parts.safetensors"]
        for out, flags in zip(outs, [[], [f"--resume={checkpoint}"]]):
            succeed(command(parallel, "--epochs=100000", f"--max-steps={steps}", *flags, "-o",
                            str(out)))
        check(outs[0].read_bytes() == outs[1].read_bytes(), f"{parallel}: other bits")
        print(f"{parallel}: {number.name} ended it after step {step[1]}, exit code "
              f"{started.returncode}; resumed: same bits", flush=True)


def network():
    slow = "ip link set lo up && tc qdisc add dev lo root netem delay 1ms loss 1% && exec \"$@\""
    space = ["unshare", "-n", "bash", "-c", slow, "slow"]
    try:
        can, why = run([*space, "true"])
    except FileNotFoundError as error:
        can, why = 1, str(error)
    if can:
        print(f"SKIPPED: the slow network is NOT tested: {why.strip()}")
        sys.exit(77)
    for parallel in ["dp:2", "fsdp:2"]:
        out = work / "slow.safetensors"
        succeed([*space, *command(parallel, f"--max-steps={STEPS}", "--checkpoint-every=3",
                                  f"--checkpoint={work}/slow-c.safetensors",
                                  "--rank-timeout=30", "-o", str(out),
                                  mpi=["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
                                       "lo", "--mca", "oob_tcp_if_include", "lo"])])
        check(out.read_bytes() == whole(parallel), f"{parallel}: other bits on a slow network")
        print(f"{parallel}: 1 ms and 1 % loss: same bits", flush=True)


def main():
    if not shutil.which("mpirun") or not engine.exists():
        print("SKIPPED: faults of ranks are NOT tested: they need mpirun (openmpi-bin) and", engine)
        sys.exit(77)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", preload,
                    pathlib.Path(__file__).with_name("faults.c"), "-ldl"], check=True)
    tests = {"kill": kill, "kills": kills, "many-kills": many_kills, "disk": disk, "hang": hang,
             "memory": memory,
             "signals": signals, "network": network}
    try:
        for name in sys.argv[4:]:
            tests[name]()
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
