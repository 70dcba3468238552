# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is checked and measured on a GPU, as steps of one process each.

A step has an id that names it for ever, a kind whose steps take about as long
as each other, seconds that one is expected to take, and a function that returns
its result: a dictionary, with "why" where it failed or was skipped. Steps that
measure no time have a group, whose steps may run side by side. Steps that do
have the device to themselves; what makes the first of them slow is done before,
side by side (`warm`): the driver compiles programs, PyTorch's compiler its
own."""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

FIRST = ["mlp", "gpt", "resnet", "lstm"]
TOOLS = ["memcheck", "racecheck", "synccheck", "initcheck"]
# What ncu tells beside its basic figures: what warps wait for, and what caches
# and memory do.
SECTIONS = ["--section", "WarpStateStats", "--section", "MemoryWorkloadAnalysis", "--section", "ComputeWorkloadAnalysis"]
# run's exit code where the C library is too old or the processor another one.
CANNOT_START = 11
# Where containers have the driver, if the loader does not look there already.
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/wsl/lib")
# A step's result where the device is too small says something of the machine,
# not of ckopt.
TOO_SMALL = 12


class Step:
    def __init__(self, name, kind, estimate, run, group=None, warm=None):
        self.name, self.kind, self.estimate, self.run = name, kind, estimate, run
        self.group, self.warm = group, warm


def skipped(why, **values):
    return dict(values, status="skipped", why=why)


def failed(why, **values):
    return dict(values, status="failed", why=why)


class Checks:
    """Makes the steps of an archive's cases."""

    def __init__(self, visit, home, work, options):
        self.visit, self.home, self.work = visit, home, work
        self.device, self.steps, self.chosen_python = options.device, options.steps, options.python
        self.loads = {}  # by the name of a step's folder
        self.cases = [line.split() for line in (home / "cases").read_text().splitlines() if line.strip()]
        self.environment = dict(os.environ)
        # With this set ckopt-run does not start itself anew, which tools that
        # watch it may not follow.
        self.environment["GOMP_SPINCOUNT"] = "20000"
        # The driver keeps compiled PTX here for the steps and parts to come.
        cache = os.path.join(tempfile.gettempdir(), "gpu-check-cache-%d" % os.getuid())
        self.environment.setdefault("CUDA_CACHE_PATH", cache)
        self.environment.setdefault("CUDA_CACHE_MAXSIZE", str(4 << 30))
        # PyTorch's compiler writes beneath a home that may be read-only.
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            self.environment.setdefault(name, os.path.join(cache, name.lower()))
        self.environment["LD_LIBRARY_PATH"] = ":".join(
            [str(home / "lib")] + [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p] +
            [folder for folder in DRIVER_FOLDERS if os.path.isdir(folder)])

    def of(self, kind):
        return [case[1:] for case in self.cases if case[0] == kind]

    # --- processes ------------------------------------------------------------

    def step(self, name, *arguments, before=()):
        """Runs the step in steps/NAME; what went wrong is logged. Libraries
        choose by the lock file: one for all budgets of a network."""
        folder = self.home / "steps" / name
        environment = dict(self.environment)
        # The archive has these only for a stand-in of the driver
        # (pack --emulation).
        kernels = self.home / "steps" / (name + ".so")
        environment.pop("CKOPT_STANDIN_KERNELS", None)
        if kernels.exists():
            environment["CKOPT_STANDIN_KERNELS"] = str(kernels)
        lock = self.lock(name)
        command = list(before) + [self.home / "bin" / "ckopt-run", folder, "--device=" + self.device, "--lock=%s" % lock]
        done = self.visit.run(command + list(arguments), environment)
        if done.code:
            self.visit.log("failed/%s.txt" % name.replace("/", "."),
                           " ".join(map(str, command)) + "\n" + done.out[-8192:] + done.err)
        return done

    def lock(self, name):
        return self.work / ("lock." + name.rsplit("/", 1)[0].replace("/", "."))

    def why(self, name, done, *arguments):
        """Why a step failed; where a kernel did, which one."""
        if done.code not in (14, 15) or done.late:
            return done.words()
        again = self.step(name, *arguments, "--one-by-one")
        return done.words() + "; one by one: " + again.words()

    def planned(self, name):
        return json.loads((self.home / "steps" / name / "step.json").read_text())["arena_bytes"]

    # --- the machine ------------------------------------------------------------

    def inventory(self):
        def device():
            starts = self.visit.run([self.home / "bin" / "ckopt-run", "--version"], self.environment)
            if starts.code:
                return failed("the archive's programs do not run here: " + starts.words(), code=CANNOT_START)
            # One that can be loaded: a damaged file says nothing of the device.
            for kind, network in [case[:2] for case in self.cases[:3]]:
                name = network + {"golden": "/gradients/0", "rounded": "/tf32/0", "large": "/none/0"}[kind]
                done = self.step(name, "--inspect")
                if not done.code:
                    break
            if done.code:
                return failed(done.words(), code=done.code)
            lines = done.out.splitlines()
            return {"device": lines[0], "driver": lines[1], "lines": lines,
                    "producer": json.loads((self.home / "steps" / name / "step.json").read_text())["producer"]}

        def programs():
            found = {"system": " ".join(os.uname()[0:3:2])}
            for tool, arguments in (("nvidia-smi", []), (self.sanitizer(), ["--version"]), (self.profiler(), ["--version"])):
                if tool and shutil.which(tool):
                    done = self.visit.run([tool] + arguments, limit=20)
                    self.visit.log("inventory/%s.txt" % os.path.basename(tool), done.out + done.err)
                    lines = [line for line in done.out.splitlines() if re.search(r"[Vv]ersion", line)]
                    found[os.path.basename(tool)] = " ".join(lines[:1]).strip("| ") if not done.code else done.words()
            return found

        def torch():
            words = ("import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), "
                     "'yes' if torch.cuda.is_available() else 'no')")
            done = self.visit.run([self.python(), "-c", words], self.environment_of_torch())
            if done.code:
                self.visit.log("failed/torch.txt", done.out + done.err)
                return skipped("%s has no PyTorch (%s): nothing to compare step times with" %
                               (self.python(), (done.err.strip().splitlines() or ["exit code %d" % done.code])[-1]))
            if not done.out.strip().endswith("yes"):
                return skipped("PyTorch %s finds no CUDA device" % done.out.split()[0])
            return {"torch": done.out.strip()[:-4]}

        yield Step("inventory/device", "inspect", 5, device)
        yield Step("inventory/programs", "programs", 5, programs)
        yield Step("inventory/torch", "import", 15, torch)

    @staticmethod
    def found(name, *folders):
        for path in [shutil.which(name)] + [os.path.join(folder, name) for folder in folders]:
            if path and os.path.exists(path):
                return path
        return None

    def sanitizer(self):
        return self.found("compute-sanitizer", "/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")

    def profiler(self):
        return self.found("ncu", "/usr/local/cuda/bin")

    def python(self):
        return self.chosen_python or self.found("python3") or self.found("python") or sys.executable

    def environment_of_torch(self):
        """PyTorch brings its own libraries, and finds the driver itself."""
        environment = dict(self.environment)
        environment.pop("LD_LIBRARY_PATH")
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        return environment

    # --- golden networks --------------------------------------------------------

    def feed(self, network, x, target):
        data = self.home / "golden" / network
        return ["--input=%s=%s" % (x, data / "x.npy"), "--input=%s=%s" % (target, data / "y.npy")]

    @staticmethod
    def errors(done):
        largest = re.search(r"(?m)^largest error of \d+ tensors (\S+)", done.out)
        return {"largest": largest.group(1) if largest else "", "together": done.value("error of all gradients together ")}

    @staticmethod
    def hash(done):
        return done.value("hash of ").split(" ")[-1]

    def exact(self, network, x, target, wanted):
        """f32: the bits of the same kernels as CPU code, then the distance to
        PyTorch's gradients in f64."""

        def run():
            name, feed = network + "/gradients/0", self.feed(network, x, target)
            expect = self.home / "golden" / network / "expect.safetensors"
            done = self.step(name, *feed, "--hash", "--expect=%s" % expect, "--tolerance=1e-4")
            values = dict(self.errors(done), hash=self.hash(done), wanted=wanted)
            values["same_bits"] = values["hash"] == wanted
            if done.code:
                return failed(self.why(name, done, *feed), **values)
            if not values["largest"]:
                return failed("no error is told", **values)
            return values if values["same_bits"] else failed("other bits than the same kernels as CPU code", **values)

        return Step("golden/%s/f32" % network, "golden", 6, run, group="golden")

    def rounded(self, network, x, target, precision, cpu):
        """Rounding moves inputs of relu and max pooling across their kinks, and
        which ones depends on the order of sums, which is the device's. So the
        distance to exact gradients is bounded by that of the same kernels as CPU
        code (pack measured it), and it must not vanish: operands that are not
        rounded are no less wrong. The README says what these bounds see."""

        def run():
            name, feed = "%s/%s/0" % (network, precision), self.feed(network, x, target)
            expect = self.home / "golden" / network / "expect.safetensors"
            done = self.step(name, *feed, "--hash", "--expect=%s" % expect, "--tolerance=1e9")
            least, most = min(float(cpu) / 4, 1e-4), 2 * float(cpu) + 2e-3
            values = dict(self.errors(done), hash=self.hash(done), cpu=cpu, least="%.3g" % least, most="%.3g" % most)
            if done.code:
                return failed(self.why(name, done, *feed), **values)
            try:
                error = float(values["together"])
            except ValueError:
                return failed("error of the gradients: '%s'" % values["together"], **values)
            if not least <= error <= most:
                return failed("error of the gradients %s, not from %.3g to %.3g (%s as CPU code)" %
                              (values["together"], least, most, cpu), **values)
            return values

        return Step("golden/%s/%s" % (network, precision), "golden", 6, run, group="golden")

    def golden_once(self, chosen):
        for network, x, target, wanted in self.of("golden"):
            if chosen(network):
                yield self.exact(network, x, target, wanted)
        for network, x, target, precision, cpu in self.of("rounded"):
            if chosen(network):
                yield self.rounded(network, x, target, precision, cpu)

    def repeated(self, name, first, *arguments):
        """The same bits as those of another step (its id), once more, and the
        highest byte written is the planned one."""

        def run():
            done = self.step(name, *arguments, "--hash", "--check-arena")
            values = {"hash": self.hash(done), "planned": self.planned(name)}
            if done.code:
                return failed(self.why(name, done, *arguments), **values)
            known = self.visit.results.get(first, {}).get("hash")
            values["same_bits"] = not known or values["hash"] == known
            if not values["hash"]:
                return failed("no hash", **values)
            return values if values["same_bits"] else failed("other bits than " + first, **values)

        # One of another id waits for that to be known.
        return Step("budget/" + name, "golden", 6, run, group="first" if first == "budget/" + name else "budgets")

    def budgets(self):
        for first in (True, False):
            for network, x, target, _ in self.of("golden"):
                feed = self.feed(network, x, target)
                for budget in range(0, 1) if first else range(1, 4):
                    yield self.repeated("%s/training/%d" % (network, budget), "budget/%s/training/0" % network, *feed, "--steps=5",
                                        "--lr=0.01")
        for network, x, target, _ in self.of("golden"):
            for budget in range(4):
                yield self.repeated("%s/gradients/%d" % (network, budget), "golden/%s/f32" % network, *self.feed(network, x, target))
        for network, x, target, precision, _ in self.of("rounded"):
            for budget in range(2):
                yield self.repeated("%s/%s/%d" % (network, precision, budget), "golden/%s/%s" % (network, precision),
                                    *self.feed(network, x, target))

    # --- large networks -----------------------------------------------------------

    def timed(self, network, libraries, kind, feed, other=None):
        """Step time, and the time of each kernel. `other`: the id of the step
        that has the same bits."""
        name = "%s/%s/%s" % (network, libraries, kind)

        def run():
            file = self.work / "kernel-times.json"
            if file.exists():
                file.unlink()
            done = self.step(name, *feed, "--steps=%d" % self.steps, "--lr=0.001", "--time", "--hash", "--kernel-times=%s" % file)
            values = {"planned": self.planned(name), "hash": self.hash(done)}
            if done.code == TOO_SMALL:
                return skipped("the device is too small: " + done.words())
            times = re.search(r"(?m)^best step (\S+) s, median (\S+) s", done.out)
            if times:
                values["best"], values["median"] = map(float, times.groups())
            if done.code:
                return failed(self.why(name, done, *feed), **values)
            if not times or not values["hash"]:
                return failed("no time or no hash", **values)
            launches = self.launches(name, file)
            values["launches"] = [[l["kernel"], l["code"], l["count"], l["seconds"], l["bytes"]] for l in launches]
            if libraries != "none":
                values.update(self.chosen(name))
                if not any(launch["library"] for launch in launches):
                    reasons = sorted({why for _, why in values["own"]})
                    more = " (and %d more reasons)" % (len(reasons) - 2) if len(reasons) > 2 else ""
                    return skipped("; ".join(reasons[:2]) + more if reasons else "no call of a library", **values)
            known = self.visit.results.get(other, {}).get("hash") if other else None
            if known and known != values["hash"]:
                return failed("other bits than " + other, **values)
            return values

        return Step("large/" + name, "large." + network, 25, run, warm=self.loaded(name))

    def loaded(self, name):
        """Lets the driver compile a step's code, which it keeps: the same
        function for all that run this step."""
        return self.loads.setdefault(name, lambda: self.step(name, "--inspect"))

    def launches(self, name, file):
        """The times of a step's launches, which the logs keep."""
        profile = file.read_text()
        self.visit.log("kernel-times/%s.json" % name.replace("/", "."), profile)
        return json.loads(profile)["launches"]

    def chosen(self, name):
        """Versions of libraries, and [call, why] of what our own kernels run in
        their place, from the lock file."""
        lock = self.lock(name)
        text = lock.read_text() if lock.exists() else ""
        self.visit.log("locks/%s.txt" % name.replace("/", "."), text)
        return {"versions": dict(re.findall(r"(?m)^(cublaslt|cudnn) (.*)$", text)),
                "own": [list(found) for found in re.findall(r"(?m)^algorithm (\S+) own (.*)$", text)]}

    def variants(self):
        """Contractions with other tiles, slices and buffers than shapes decide:
        the time of each kernel."""
        for network, x, target, batch, values, classes in self.of("large"):
            feed = ["--random=%s:%s" % (x, values), "--random=%s:%s" % (target, classes)]
            for folder in sorted((self.home / "steps" / network / "variants").glob("*/step.json")):
                yield self.variant("%s/variants/%s" % (network, folder.parent.name), feed)

    def variant(self, name, feed):
        def run():
            file = self.work / "kernel-times.json"
            if file.exists():
                file.unlink()
            done = self.step(name, *feed, "--lr=0.001", "--kernel-times=%s" % file)
            if done.code == TOO_SMALL:
                return skipped("the device is too small: " + done.words())
            if done.code:
                return failed(self.why(name, done, *feed))
            return {"launches": [[l["kernel"], l["code"], l["count"], l["seconds"], l["bytes"]] for l in self.launches(name, file)]}

        return Step("variant/" + name, "variant." + name.split("/")[0], 15, run, warm=self.loaded(name))

    def large(self, libraries, kinds):
        for network, x, target, batch, values, classes in self.of("large"):
            feed = ["--random=%s:%s" % (x, values), "--random=%s:%s" % (target, classes)]
            for kind in kinds:
                if (self.home / "steps" / network / libraries / kind).is_dir():
                    other = "large/%s/%s/0" % (network, libraries) if kind in ("1", "min") else None
                    yield self.timed(network, libraries, kind, feed, other)

    def peaks(self):
        """The highest byte written over a pattern, of each budget."""
        for network, x, target, batch, values, classes in self.of("large"):
            feed = ["--random=%s:%s" % (x, values), "--random=%s:%s" % (target, classes)]
            for kind in ("0", "1", "min"):
                if (self.home / "steps" / network / "none" / kind).is_dir():
                    yield self.peak("%s/none/%s" % (network, kind), feed)

    def peak(self, name, feed):
        def run():
            done = self.step(name, *feed, "--check-arena")
            if done.code == TOO_SMALL:
                return skipped("the device is too small: " + done.words())
            # Evaluation may need more than a step, and then decides the arena.
            of_step = re.search(r"(?m)^planned for step (\d+)$", done.out)
            measured = re.search(r"(?m)^highest byte written plus one (\d+)$", done.out)
            values = {"planned": int(of_step.group(1)) if of_step else self.planned(name),
                      "measured": int(measured.group(1)) if measured else -1}
            if done.code:
                return failed(self.why(name, done, *feed), **values)
            if values["measured"] != values["planned"]:
                return failed("measured peak %d, planned %d" % (values["measured"], values["planned"]), **values)
            return values

        return Step("peak/" + name, "peak", 20, run, warm=self.loaded(name))

    def pytorch(self, network, batch, mode, precision, *flags):
        def measure(*more):
            tf32 = "off" if precision == "f32" else "on"
            command = [self.python(), self.home / "bench_torch.py", network, batch, mode, "--tf32=" + tf32, "--device=" + self.device]
            # Inductor compiles for longer than any step of ours runs.
            return self.visit.run(command + (["--amp=bf16"] if precision == "bf16" else []) + list(flags) + list(more),
                                  self.environment_of_torch(), limit=self.visit.limit * (3 if mode == "compile" else 1))

        def run():
            if "torch" not in self.visit.results.get("inventory/torch", {}):
                return skipped("PyTorch is not here")
            done = measure("--steps=%d" % self.steps)
            if done.code:
                self.visit.log("failed/torch.%s.%s.%s.txt" % (network, mode, precision), done.out + done.err)
                return skipped((done.err.strip().splitlines() or ["exit code %d" % done.code])[-1])
            line = done.value("json ")
            return json.loads(line) if line else failed("no times are told")

        def warm():
            """Lets PyTorch's compiler fill its cache. What it measured beside
            other work, to choose between forms of a kernel, is forgotten."""
            if "torch" in self.visit.results.get("inventory/torch", {}):
                measure("--steps=1", "--warmup=1")
                for chosen in pathlib.Path(self.environment["TORCHINDUCTOR_CACHE_DIR"]).rglob("*.best_config"):
                    chosen.unlink()

        tags = [mode] + [flag.strip("-") for flag in flags]
        return Step("torch/%s/%s/%s" % (network, "+".join(tags), precision), "torch." + mode, 90 if mode == "compile" else 30, run,
                    warm=warm if mode == "compile" else None)

    def torch_first(self):
        for network, x, target, batch, values, classes in self.of("large"):
            if network == "gpt2_small":
                yield self.pytorch(network, batch, "compile", "tf32")

    def torch_rest(self, *precisions):
        large = self.of("large")
        for precision in precisions:
            for mode in ("eager", "compile"):
                for network, _, _, batch, _, _ in large:
                    flags = [["--channels-last"]] if network == "resnet50" else [[]]
                    if network == "resnet50" and mode == "eager":
                        flags.append([])
                    for one in flags:
                        yield self.pytorch(network, batch, mode, precision, *one)

    # --- tools ----------------------------------------------------------------------

    def watched(self, tool, name, feed):
        def run():
            program = self.sanitizer()
            if not program:
                return skipped("compute-sanitizer is not installed: memory errors and races of kernels were not looked for")
            log = self.work / ("sanitizer.%s.%s.log" % (name.replace("/", "."), tool))
            if log.exists():
                log.unlink()
            # 99 if it finds something; else the code of what it watches.
            before = [program, "--tool", tool, "--error-exitcode", "99", "--log-file", log]
            done = self.step(name, *feed, before=before + (["--leak-check", "no"] if tool == "memcheck" else []))
            text = log.read_text(errors="replace") if log.exists() else ""
            if not done.code:
                return {}
            self.visit.log("sanitizer/%s.%s.log" % (name.replace("/", "."), tool), text)
            lines = [line.strip("= ") for line in text.splitlines() if line.strip("= ")]
            return failed(done.words() + ": " + " ".join(lines[1:4]))

        return Step("sanitizer/%s/%s" % (name, tool), "sanitizer." + tool, 30, run, group="sanitizer")

    def sanitize(self):
        for tool in TOOLS:
            for network, x, target, _ in self.of("golden"):
                if network in FIRST[:3]:
                    yield self.watched(tool, network + "/gradients/3", self.feed(network, x, target))
        for network, x, target, precision, _ in self.of("rounded"):
            if network in FIRST[:2]:
                for tool in TOOLS[:2]:
                    yield self.watched(tool, "%s/%s/1" % (network, precision), self.feed(network, x, target))

    def profiles(self):
        """Eight kernels by ncu: the slowest ones that A timed."""
        for network, x, target, batch, values, classes in self.of("large"):
            feed = ["--random=%s:%s" % (x, values), "--random=%s:%s" % (target, classes)]
            yield self.profiled(network, "none/tf32", feed)

    def profiled(self, network, kind, feed):
        def run():
            program = self.profiler()
            if not program:
                return skipped("ncu is not installed")
            launches = self.visit.results.get("large/%s/%s" % (network, kind), {}).get("launches", [])
            launches = sorted(launches, key=lambda one: -one[2] * one[3])
            codes = []
            for one in launches:
                if one[1] not in codes and re.match(r"^\w+$", one[1]):
                    codes.append(one[1])
            if not codes:
                return dict(status="later", why="no kernel of it has been timed: part A comes first")
            # The first launch of each, since a kernel has one form of launch.
            before = [program, "--clock-control", "none", "--set", "basic"] + SECTIONS + ["--filter-mode", "per-launch-config",
                      "--launch-count", "1", "--kernel-name", "regex:^(%s)$" % "|".join(codes[:8])]
            done = self.step("%s/%s" % (network, kind), *feed, "--one-by-one", before=before)
            self.visit.log("ncu/%s.%s.txt" % (network, kind.replace("/", ".")), done.out + done.err)
            return skipped(done.words()) if done.code else {"kernels": codes[:8]}

        return Step("ncu/%s/%s" % (network, kind), "ncu", 45, run)

    # --- parts ------------------------------------------------------------------------

    def part(self, name):
        yield from self.inventory()
        if name == "A":
            yield from self.golden_once(lambda network: network in FIRST)
            yield from self.golden_once(lambda network: network not in FIRST)
            yield from self.large("none", ["tf32", "stored-bf16", "0", "bf16"])
            yield from self.large("auto", ["tf32", "stored-bf16", "0"])
            yield from self.torch_first()
            yield from self.variants()
        elif name == "B":
            yield from self.torch_rest("tf32")
            yield from self.large("none", ["1", "min"])
            yield from self.peaks()
            yield from self.torch_rest("bf16", "f32")
        else:
            yield from self.sanitize()
            yield from self.profiles()
            yield from self.budgets()
