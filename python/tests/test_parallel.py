# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by several processes: compile(..., parallel="dp:2") under mpirun."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import ckopt
from conftest import DATA, MODEL

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none",
          "--mca", "btl_vader_single_copy_mechanism", "none"]
PACKAGE = os.path.dirname(ckopt.__file__)

needs_mpi = pytest.mark.skipif(
    not shutil.which("mpirun") or not any(
        os.path.exists(os.path.join(PACKAGE, f"libckopt_{name}.so.1")) for name in ("mpi", "openmpi")),
    reason="training by several processes is NOT tested: needs mpirun (openmpi-bin) and ckopt "
           "built with MPI")

# What every script begins with: the digits, and a step of them.
HEAD = f"""
    import os, sys
    import numpy, ckopt
    with numpy.load({DATA!r}) as data:
        images, labels = data["images"], data["labels"]
    def make(**more):
        settings = dict(loss="cross_entropy", optimizer=ckopt.SGD(lr=0.05), batch=64, threads=1,
                        effort=0, seed=5)
        settings.update(more)
        return ckopt.compile({MODEL!r}, **settings)
"""


def run(*command, code=0, **variables):
    """Runs a command, whose exit code is `code` or one of these; returns what it wrote."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **variables)
    result = subprocess.run(command, env=environment, check=False, timeout=300, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode in (code if isinstance(code, tuple) else (code,)), result.stdout
    return result.stdout


def run_script(folder, body, *arguments, ranks=2, code=0, **variables):
    """Runs a script by `ranks` processes; 0: without mpirun."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body), encoding="utf-8")
    start = [*MPIRUN, "-n", str(ranks)] if ranks else []
    return run(*start, sys.executable, str(path), *map(str, arguments), code=code, **variables)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Weights of 9 updates by the driver, and what it printed, of two processes."""
    out = tmp_path_factory.mktemp("driver") / "driver.safetensors"
    said = run(*MPIRUN, "-n", "2", sys.executable, "-m", "ckopt", "train", MODEL,
               f"--data={DATA}", "--inputs=x=images", "--targets=labels", "--loss=cross_entropy",
               "--optimizer=sgd", "--lr=0.05", "--batch=64", "--threads=1", "--effort=0",
               "--seed=5", "--max-steps=9", "--holdout=0.2", "--parallel=dp:2", "-o", str(out))
    return out.read_bytes(), said


@needs_mpi
def test_fit_gives_the_bits_of_the_driver(tmp_path, driver):
    said = run_script(tmp_path, """
        place = int(os.environ["OMPI_COMM_WORLD_RANK"]), 2
        assert (ckopt.rank(), ckopt.ranks()) == place  # as mpirun says
        step = make(parallel="dp:2")
        assert (ckopt.rank(), ckopt.ranks()) == place
        assert step.batch == 64
        result = step.fit({"x": images, "y": labels}, max_steps=9, holdout=0.2, progress=True,
                          log=sys.argv[2], checkpoint=sys.argv[3])
        step.save(sys.argv[1])
        loss = result.validation["loss"]
        print(f"fitted {len(result.losses)} {loss == loss}")
        """, tmp_path / "own.safetensors", tmp_path / "log.csv", tmp_path / "c.safetensors")
    assert said.count("fitted 9 True") == 2, said
    assert (tmp_path / "own.safetensors").read_bytes() == driver[0]
    # Rank 0 alone wrote: one head and nine lines.
    assert len((tmp_path / "log.csv").read_text(encoding="utf-8").splitlines()) == 10
    assert (tmp_path / "c.safetensors").exists()


@needs_mpi
def test_batches_give_the_bits_of_fit(tmp_path):
    run_script(tmp_path, """
        step = make(parallel="dp:2")
        for number, batch in enumerate(ckopt.batches(64, seed=5, x=images, y=labels)):
            if number == 5:
                break
            step(x=batch["x"], y=batch["y"])
        step.save(sys.argv[1])
        other = make(parallel="dp:2")
        other.fit({"x": images, "y": labels}, max_steps=5)
        other.save(sys.argv[2])
        # Every rank has the weights, and any of them may look.
        assert all((step.state_dict()[name] == value).all()
                   for name, value in other.state_dict().items())
        if ckopt.rank() == 1:
            assert step.evaluate(x=images[:100], y=labels[:100])["count"] == 100
        """, tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


@needs_mpi
@pytest.mark.parametrize("first", ["mpi4py", "ckopt"])
def test_mpi4py_in_the_same_process(tmp_path, driver, first):
    pytest.importorskip("mpi4py", reason="mpi4py beside ckopt is NOT tested: it is not installed")
    said = run_script(tmp_path, """
        if sys.argv[2] == "mpi4py":
            from mpi4py import MPI
        step = make(parallel="dp:2")
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        assert (world.rank, world.size) == (ckopt.rank(), ckopt.ranks())
        # A message of the program's own, of any tag, is not taken for one of ckopt's.
        request = world.isend("hello", dest=1 - world.rank, tag=0)
        step.fit({"x": images, "y": labels}, max_steps=9, holdout=0.2)
        assert world.recv(source=1 - world.rank, tag=0) == "hello"
        request.wait()
        step.save(sys.argv[1])
        total = world.allreduce(1)
        print(f"total {total}")  # one write: ranks share a terminal
        """, tmp_path / "own.safetensors", first)
    assert said.count("total 2") == 2, said
    assert (tmp_path / "own.safetensors").read_bytes() == driver[0]


def test_nobody_started_the_ranks(tmp_path):
    body = "make(**eval(sys.argv[1]))"
    alone = run_script(tmp_path, body, "{'parallel': 'dp:2'}", ranks=0, code=1)
    assert "ckopt.errors.UsageError" in alone, alone
    assert f"this process was started alone: mpirun -n 2 {sys.executable}" in alone, alone
    told = run_script(tmp_path, body, "{}", ranks=0, code=1, RANK="0", WORLD_SIZE="2")
    assert "RANK and WORLD_SIZE" in told and "mpirun -n 2" in told, told
    assert "parallel='dp:2'" in told or "parallel=dp:2" in told, told


@needs_mpi
def test_processes_that_would_train_alone(tmp_path):
    said = run_script(tmp_path, "make()", code=1)
    assert "each of them would train alone: mpirun -n 2" in said, said
    said = run_script(tmp_path, "make(parallel='dp:4')", code=1)
    assert "mpirun started 2 processes" in said and "mpirun -n 4" in said, said


@needs_mpi
def test_ranks_that_differ_are_named(tmp_path):
    differ = {
        "options": "make(parallel='dp:2', seed=int(os.environ['OMPI_COMM_WORLD_RANK']))",
        "samples": """
step = make(parallel="dp:2")
step(x=images[ckopt.rank():][:64], y=labels[:64])""",
        "weights": """
step = make(parallel="dp:2")
if ckopt.rank() == 1:
    step.load_state_dict({name: value * 2 for name, value in step.state_dict().items()})
step(x=images[:64], y=labels[:64])""",
    }
    said = run_script(tmp_path, differ["options"], code=(1, 20))
    assert "RankError" in said and "rank 1 differs from rank 0 in its" in said, said
    said = run_script(tmp_path, differ["samples"], code=(1, 20))
    assert "rank 1 read other samples than rank 0" in said, said
    said = run_script(tmp_path, differ["weights"], code=(1, 20))
    assert "was given other weights than rank 0" in said, said


@needs_mpi
def test_a_rank_that_compiles_where_another_makes_a_step(tmp_path):
    said = run_script(tmp_path, """
        step = make(parallel="dp:2")
        if ckopt.rank() == 0:
            call = lambda: make(parallel="dp:2")
        else:
            try:
                make()  # refused here, and not heard of by rank 0
            except ckopt.UsageError:
                print("refused")
            call = lambda: step(x=images[:64], y=labels[:64])
        try:
            call()
        except ckopt.RankError as error:
            assert "rank 1 makes a step where rank 0 compiles" in str(error), error
            print("heard of it")
        step(x=images[:64], y=labels[:64])
        print("went on")
        """)
    assert [said.count(text) for text in ("refused", "heard of it", "went on")] == [1, 2, 2], said


@needs_mpi
def test_a_rank_that_takes_another_of_the_steps(tmp_path):
    said = run_script(tmp_path, """
        steps = [make(parallel="dp:2"), make(parallel="fsdp:2")]
        batch = {"x": images[:64], "y": labels[:64]}
        for step in steps:
            step(batch)
        other = steps[1 - ckopt.rank()]
        for call in (lambda: other(batch), lambda: other.fit({"x": images, "y": labels})):
            try:
                call()
            except ckopt.RankError as error:
                assert "with the 1st compiled step where rank 0 does so with the 2nd" in str(error)
                print("heard of it")
        for step in steps:
            step(batch)
            assert step.updates == 2
        print("went on")
        """)
    assert [said.count(text) for text in ("heard of it", "went on")] == [4, 2], said


@needs_mpi
def test_batches_that_end_earlier_on_one_rank(tmp_path):
    """Of iterables nobody knows the length before their end, and one may fail."""
    said = run_script(tmp_path, """
        step = make(parallel="dp:2")
        def batches(count, fails=False):
            for i in range(count):
                yield {"x": images[64 * i:][:64], "y": labels[64 * i:][:64]}
            if fails:
                raise ValueError("no more of this")
        others = {"rank 1 has another batch where rank 0 has no more":
                      lambda: batches(2 + ckopt.rank()),
                  "rank 1 failed" if ckopt.rank() == 0 else "no more of this":
                      lambda: batches(2, fails=ckopt.rank() == 1)}
        for text, make_batches in others.items():
            try:
                step.fit(make_batches())
            except Exception as error:
                assert text in str(error), error
                print("heard of it")
        assert len(step.fit(batches(3)).losses) == 3
        step(x=images[:64], y=labels[:64])
        print("went on")
        """)
    assert [said.count(text) for text in ("heard of it", "went on")] == [4, 2], said


@needs_mpi
def test_what_ranks_were_given_is_compared(tmp_path):
    said = run_script(tmp_path, """
        rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
        for more in (dict(parallel="dp:2" if rank else "fsdp:2"),
                     dict(parallel="dp:2", threads=1 + rank)):
            try:
                make(**more)
            except ckopt.RankError as error:
                assert "rank 1 differs from rank 0 in its options: rank 1 has" in str(error), error
                print("refused")
        step = make(parallel="dp:2")
        step(x=images[:64], y=labels[:64])
        print("went on")
        """)
    assert [said.count(text) for text in ("refused", "went on")] == [4, 2], said


@needs_mpi
def test_an_exception_of_one_rank_ends_the_others(tmp_path):
    said = run_script(tmp_path, """
        step = make(parallel="dp:2")
        step(x=images[:64], y=labels[:64])
        if ckopt.rank() == 1:
            raise RuntimeError("its own affair")
        for _ in range(1000):
            step(x=images[:64], y=labels[:64])
        """, code=(1, 20))
    assert "its own affair" in said and "rank 1 has left the run" in said, said


@needs_mpi
@pytest.mark.parametrize("parallel", ["dp:2", "fsdp:2"])
def test_a_report_of_one_rank_that_raises(tmp_path, parallel):
    """The rank leaves while the other sends it sums; both end as their programs like."""
    said = run_script(tmp_path, """
        step = make(parallel=sys.argv[1])
        def report(info):
            if info["step"] == 3 and ckopt.rank() == 1:
                raise ValueError("enough")
        try:
            step.fit({"x": images, "y": labels}, max_steps=9, report=report)
        except (ValueError, ckopt.RankError) as error:
            print(str(error))
        """, parallel)
    assert said.count("enough") == 1 and said.count("rank 1 has left the run") == 1, said


@needs_mpi
def test_wrong_batches_of_one_rank_are_errors_on_all(tmp_path):
    said = run_script(tmp_path, """
        step = make(parallel="dp:2")
        wrong = labels[:64].copy()
        wrong[3] = 99 if ckopt.rank() else wrong[3]
        for text in ("rank 1 failed; its own message says why", "99"):
            try:
                step(x=images[:64], y=wrong)
            except ckopt.Error as error:
                assert ("99" if ckopt.rank() else "rank 1 failed") in str(error), error
                print("heard of it")
        step(x=images[:64], y=labels[:64])
        print("went on")
        """)
    assert said.count("heard of it") == 4 and said.count("went on") == 2, said


@needs_mpi
def test_budget_errors_are_those_of_rank_0(tmp_path):
    said = run_script(tmp_path, """
        try:
            make(parallel="dp:2", budget="10KiB")
        except ckopt.BudgetError as error:
            assert str(error).startswith("rank 0: " if ckopt.rank() else "no plan of"), error
            assert "no plan of @step fits the budget of 10.0 KiB" in str(error), error
            print("refused")
        make(parallel="dp:2")
        """)
    assert said.count("refused") == 2, said


@needs_mpi
def test_shards_have_the_bits_of_the_driver(tmp_path, driver):
    """fit() by ranks that share weights; what is saved is whole, and that of dp:2."""
    run_script(tmp_path, """
        step = make(parallel="fsdp:2")
        step.fit({"x": images, "y": labels}, max_steps=9, holdout=0.2, checkpoint=sys.argv[2])
        step.save(sys.argv[1])
        step.checkpoint(sys.argv[3])
        one = make(parallel="dp:2")
        one.resume(sys.argv[3])
        assert one.updates == 9
        assert all((one.state_dict()[name] == value).all()
                   for name, value in step.state_dict().items())
        """, *(tmp_path / f"{name}.safetensors" for name in ("own", "fitted", "written")))
    assert (tmp_path / "own.safetensors").read_bytes() == driver[0]
    assert (tmp_path / "fitted.safetensors").exists()


@needs_mpi
@pytest.mark.parametrize("ranks, parallel", [(2, "fsdp:2"), (4, "dp:2,fsdp:2")])
def test_weights_of_shards_come_and_go_whole(tmp_path, ranks, parallel):
    """Weights, gradients, outputs and metrics are those of ranks that have all."""
    said = run_script(tmp_path, """
        def same(one, other):
            assert one.keys() == other.keys() and len(one) > 0
            for name, value in one.items():
                assert value.shape == other[name].shape, name
                assert (value == other[name]).all(), name
        parallel, ranks = sys.argv[1], int(sys.argv[2])
        share, all_of_them = make(parallel=parallel), make(parallel=f"dp:{ranks}")
        start = all_of_them.state_dict()
        same(share.state_dict(), start)
        for step in (share, all_of_them):
            step.load_state_dict({name: value / 2 for name, value in start.items()})
        same(share.state_dict(), all_of_them.state_dict())
        some = {"x": images[:100], "y": labels[:100]}
        assert share.evaluate(some) == all_of_them.evaluate(some)
        assert (share.predict(x=images[:70]) == all_of_them.predict(x=images[:70])).all()
        batch = {"x": images[:64], "y": labels[:64]}
        assert share(batch) == all_of_them(batch)
        if ranks == 2:  # several groups add in another order
            same(share.state_dict(), all_of_them.state_dict())
            same(make(parallel=parallel, optimizer="none").gradients(batch)[1],
                 make(parallel=f"dp:{ranks}", optimizer="none").gradients(batch)[1])
        assert share.memory["parameter_bytes"] < all_of_them.memory["parameter_bytes"]
        assert "planned peak" in str(share.plan)
        print("the same")
        """, parallel, ranks, ranks=ranks)
    assert said.count("the same") == ranks, said


@needs_mpi
def test_calls_of_one_rank_with_shards_end_in_an_error(tmp_path):
    said = run_script(tmp_path, """
        step = make(parallel="fsdp:2")
        batch = {"x": images[:64], "y": labels[:64]}
        step.checkpoint(sys.argv[2])
        lonely = {"resumes from a checkpoint": lambda: step.resume(sys.argv[2]),
                  "reads weights": step.state_dict,
                  "evaluates": lambda: step.evaluate(batch),
                  "predicts": lambda: step.predict(x=images[:64]),
                  "saves weights": lambda: step.save(sys.argv[1]),
                  "writes a checkpoint": lambda: step.checkpoint(sys.argv[1])}
        for what, call in lonely.items():
            try:
                call() if ckopt.rank() else step(batch)
            except ckopt.RankError as error:
                assert f"rank 1 {what} where rank 0 makes a step" in str(error), error
                print("refused")
        for shares in ((100, 70), (70, 100)):
            try:
                step.evaluate(x=images[:shares[ckopt.rank()]], y=labels[:shares[ckopt.rank()]])
            except ckopt.RankError as error:
                assert "rank 1 came with another number of samples" in str(error), error
                print("refused")
        weights = step.state_dict()
        if ckopt.rank():
            step.load_state_dict({name: value * 2 for name, value in weights.items()})
        try:
            step(batch)
        except ckopt.RankError as error:
            assert "was given other weights than rank 0" in str(error), error
            print("refused")
        assert step.updates == 0
        if ckopt.rank():  # rank 0 is at its end
            try:
                step.state_dict()
            except ckopt.RankError as error:
                assert "rank 0 has left the run" in str(error), error
                print("refused")
        """, tmp_path / "w.safetensors", tmp_path / "c.ckpt")
    assert said.count("refused") == 2 * 6 + 2 * 2 + 2 + 1, said


def test_ranks_on_devices_meet_by_a_file(tmp_path):
    """Without mpirun; the stand-in plays the devices, and its NCCL moves the bytes."""
    standin = os.path.abspath(os.path.join("cuda-standin", "libcuda.so.1"))
    if not os.path.exists(standin):
        pytest.skip(f"ranks on devices are NOT tested: there is no {standin}")
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(HEAD) + textwrap.dedent("""
        assert ckopt.ranks() == 2 and ckopt.rank() == int(os.environ["RANK"])
        step = ckopt.compile(sys.argv[1], loss="cross_entropy", optimizer=ckopt.SGD(lr=0.05),
                             batch=4, seed=5, target="cuda", cuda_libs="none",
                             parallel=sys.argv[2], nccl_id=sys.argv[3])
        assert ckopt.ranks() == 2 and ckopt.rank() == int(os.environ["RANK"])
        result = step.fit({"x": images, "y": labels}, max_steps=2)
        step.save(sys.argv[4])
        """), encoding="utf-8")
    meeting = tmp_path / "id"

    def both(*command):
        shared = dict(os.environ, WORLD_SIZE="2", CKOPT_CUDA_DRIVER=standin, CKOPT_NCCL=standin,
                      CKOPT_STANDIN_DEVICES="2", CKOPT_STANDIN_KERNELS="ptx")
        ranks = [subprocess.Popen([sys.executable, *map(str, command)],
                                  env=dict(shared, RANK=rank), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for rank in "01"]
        said = [rank.communicate(timeout=300)[0] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0, 0], said
        assert not meeting.exists()

    driver = tmp_path / "driver.safetensors"
    both("-m", "ckopt", "train", MODEL, f"--data={DATA}", "--inputs=x=images", "--targets=labels",
         "--loss=cross_entropy", "--optimizer=sgd", "--lr=0.05", "--batch=4", "--seed=5",
         "--max-steps=2", "--quiet", "--target=cuda", "--cuda-libs=none", "--parallel=dp:2",
         f"--nccl-id={meeting}", "-o", driver)
    for parallel in ("dp:2", "fsdp:2"):
        own = tmp_path / "own.safetensors"
        both(script, MODEL, parallel, meeting, own)
        assert own.read_bytes() == driver.read_bytes()
