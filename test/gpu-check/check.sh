#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs two small networks with tools/gpu-check and runs the archive on the
# stand-in driver: all checks pass there; a kernel that fails, other bits,
# findings of compute-sanitizer (a script in its place), results that cannot be
# written and a machine without a driver are found and said. A visit that is
# killed has every finished result in its file, and the next one goes on.
# Usage: check.sh SOURCE BUILD PYTHON
set -euo pipefail
source=$1 build=$2
# Not a script in its place, which would change the PATH.
python=$("$3" -c 'import sys; print(sys.executable)')
work=$build/test/gpu-check
rm -rf "$work"
mkdir -p "$work"
cd "$work"
fail() { echo "check.sh: $*" >&2; exit 1; }

"$python" "$source/tools/gpu-check/pack" -o archive.tar.gz --build="$build" --networks=mlp,lenet --large= --work=8000000 --emulation \
  >pack.log 2>&1 || { cat pack.log; fail "pack"; }
grep -q '^archive.tar.gz: [0-9.]* MiB (at most 60), 2 networks' pack.log && grep -q ' KiB  steps/lenet$' pack.log ||
  { cat pack.log; fail "what takes the room is not said"; }
# A name with a space; all runs start in another folder.
mkdir "un packed"
tar xf archive.tar.gz -C "un packed"
there="un packed/gpu-check"
for binary in "$there"/bin/* "$there"/lib/*; do
  ! ldd "$binary" | grep -Ev 'linux-vdso|/(libc|libm|libgcc_s)\.so|/ld-linux' || fail "$binary needs more than the C library"
  ! grep -qF "$build" "$binary" || fail "$binary names the folder it was built in"
done
# Nothing of the build is used from here on but the stand-in.
standin=$build/cuda-standin/libcuda.so.1
on_standin() {
  ${start:-} env -u CUDA_HOME -u LD_LIBRARY_PATH PATH="${tools:+$tools:}/usr/bin:/bin" CKOPT_CUDA_DRIVER="$standin" CKOPT_CUBLASLT="$standin" \
    CKOPT_CUDNN="$standin" "$@"
}
# visit STATE EXPECTED-CODE ARGUMENTS...: runs the archive; variables for the
# stand-in are in $with.
visit() {
  local state=$1 expected=$2 code=0
  shift 2
  # shellcheck disable=SC2086
  on_standin ${with:-} "$python" "$there/run" --state="$state" "$@" >"$state.log" 2>&1 || code=$?
  [ $code -eq "$expected" ] || { cat "$state.log"; fail "$state: exit code $code, not $expected"; }
}
# told STATE PATTERN: a line of the report.
told() { grep -Eq -- "$2" "$1/report.md" || { cat "$1/report.md"; fail "$1: the report lacks $2"; }; }
only() { grep -E "$1" "$there"/all-cases >"$there"/cases; }
cp "$there"/cases "$there"/all-cases

# --- all passes ---------------------------------------------------------------
# One log of all processes: each opens it anew.
mkfifo pipe
cat pipe >calls &
reader=$!
exec 9>pipe
with="CKOPT_STANDIN_LOG=$work/pipe" visit all 0 --jobs=3 9>&-
exec 9>&-
wait $reader
told all '^All checks passed'
told all '^2 of 2 networks have the same gradients to the bit'
told all '^\| lenet \| yes \| [0-9.]+e-[0-9]+ \|$'
[ "$(grep -Ec '^\| (mlp|lenet) \| (tf32|bf16|stored-bf16) \| ([0-9.e-]+) \| \3 \([0-9.e-]+ to [0-9.e-]+\) \| [0-9.e-]+ \|$' all/report.md)" -eq 6 ] ||
  { cat all/report.md; fail "no rows for rounded operands"; }
told all '^\| lenet \| gradients \| [0-9]+, [0-9]+, [0-9]+, [0-9]+ \| yes \| yes \|$'
told all '^\| lenet \| training \| [0-9]+, [0-9]+, [0-9]+, [0-9]+ \| yes \| yes \|$'
told all '^- sanitizer/mlp/gradients/3/memcheck: compute-sanitizer is not installed'
sizes=$(sed -n 's/^| lenet | gradients | \([0-9, ]*\) |.*/\1/p' all/report.md)
[ "${sizes%%,*}" -gt "${sizes##*, }" ] || fail "the smallest budget of lenet is not below the largest plan"
[ "$(grep -c cuInit calls)" -gt 24 ] || fail "the log lacks processes"
! grep -E 'VIOLATION|LEAK' calls || fail "the stand-in objects"
# What is there is not done again.
cp all/results.jsonl before
visit all 0
cmp -s before all/results.jsonl || fail "a second visit does something again"

# Some steps alone, and the others later.
visit some 0 --only='^golden/mlp/(f32|tf32)$'
[ "$(wc -l <some/results.jsonl)" -eq 2 ] || fail "--only does other steps"
visit some 0 --part=A
[ "$(grep -c '"golden/' some/results.jsonl)" -eq 8 ] || fail "steps that --only left are not done later"
visit some 64 --only='('
visit some 64 --only=nothing
visit some 64 --device=gpu
[ ! -e some/results.jsonl ] || ! grep -q failed some/results.jsonl || fail "a wrong device left failures behind"

# --- large networks, on a small one ---------------------------------------------
toy=$there/steps/toy
mkdir -p "$toy"/{none,auto,variants}
for kind in 0:0 1:1 min:3 tf32:0 bf16:0 stored-bf16:0; do
  cp -r "$there"/steps/lenet/training/${kind#*:} "$toy"/none/${kind%:*}
  cp "$there"/steps/lenet/training/${kind#*:}.so "$toy"/none/${kind%:*}.so
done
# Libraries with our own kernels beside them, and other tiles: toy NAME FLAG...
compile_toy() {
  local name=$1
  shift
  "$build/bin/ckopt" compile "$source/test/data/golden/lenet/model.onnx" --loss=cross_entropy --momentum=0.9 --target=cuda --quiet \
    --work-limit=1000000 -O 0 --cuda-emulation="$toy/$name.so" -o "$toy/$name" "$@"
}
compile_toy auto/0
compile_toy auto/tf32 --matmul-precision=tf32
compile_toy variants/tile128 --cuda-libs=none --matmul-precision=tf32 --cuda-contractions=tile=128
compile_toy variants/stages1 --cuda-libs=none --matmul-precision=tf32 --cuda-contractions=stages=1
echo "large toy x target 6 -1:1 0:10" >"$there"/cases
with="CKOPT_STANDIN_SLOW=200 CKOPT_STANDIN_REFUSE=cudnn:1" visit large 0 --steps=3
[ "$(grep -Ec '^\| toy \| ckopt, .* --cuda-libs=(none|auto) \| [0-9.]+ s \| [0-9.]+ s \| [0-9.]+ s \| [0-9.]+ MiB \|' large/report.md)" -eq 8 ] ||
  { cat large/report.md; fail "no rows for a large network"; }
# What a library refused, what it took, and what other tiles would give.
told large '^\| cudnn \| 120400 \|$'
told large '^- our own kernel runs convolution.*: cuDNN has no deterministic algorithm'
told large '^\| kernel \| calls \| ours us \| library us \|'
told large '^## Variants of contractions$'
told large '^\| (stages1|tile128) \| [0-9.]+ \|$'
told large '^\| toy \| ckopt, f32, --memory-budget=min, --cuda-libs=none \| .* MiB \| [0-9.]+ MiB \|$'
told large '^### Kernels of toy/none/tf32$'
tar xOf large/logs.tar kernel-times/toy.none.tf32.json >times.json || fail "the archive of logs lacks times of kernels"
# The stand-in takes 200 us for each kernel, and nothing else is timed.
"$python" - times.json <<'END'
import json, sys
profile = json.load(open(sys.argv[1]))
assert profile["format"] == "ckopt-profile/1"
kernels = {op["op"]: op["seconds"] for op in profile["ops"]}
launched = {launch["kernel"] for launch in profile["launches"]}
assert len(kernels) > 10 and {name for name in launched if not name.startswith("k_joined_")} == set(kernels)
assert ("updates" in profile) == (launched != set(kernels)), profile.keys()
assert all(launch["seconds"] > 199e-6 and launch["bytes"] > 0 for launch in profile["launches"]), profile
END

# --- killed, and going on --------------------------------------------------------
cp "$there"/all-cases "$there"/cases
# Without a shell between, which would be killed in the place of the visit.
start=exec on_standin CKOPT_STANDIN_SLOW=3000 "$python" "$there"/run --part=A --jobs=1 --state=killed >killed.log 2>&1 &
visitor=$!
until [ -f killed/results.jsonl ] && [ "$(wc -l <killed/results.jsonl)" -ge 4 ]; do
  kill -0 $visitor || { cat killed.log; fail "ended before it was killed"; }
  sleep 0.2
done
kill -KILL $visitor
wait $visitor 2>/dev/null && fail "not killed"
sed -n 's/^gpu-check: \([a-z]*\/[^:]*\)$/\1/p' killed.log >begun
sed '$d' begun | sort >finished
[ "$(wc -l <finished)" -ge 4 ] || { cat killed.log; fail "too little was done before the kill"; }
"$python" -c 'import json, sys
for line in open("killed/results.jsonl"): print(json.loads(line)["id"])' | sort >there.txt
[ -z "$(comm -23 finished there.txt)" ] || { cat killed.log; fail "finished results are not in the file: $(comm -23 finished there.txt)"; }
# What it had started ends with it.
goes_on() { readlink /proc/[0-9]*/exe | grep -q "^$work/$there/bin/ckopt-run"; }
! goes_on || sleep 1
! goes_on || fail "a process goes on after the visit was killed"
# A line that was cut is no result; the others are not done again.
printf '{"id": "golden/lenet/bf16", "sta' >>killed/results.jsonl
visit killed 0 --part=A
sed -n 's/^gpu-check: \([a-z]*\/[^:]*\)$/\1/p' killed.log | sort >again
[ -z "$(comm -12 finished again)" ] || fail "done again: $(comm -12 finished again)"
told killed '^2 of 2 networks have the same gradients to the bit'
# No step begins that would end after the deadline: golden ones are expected to
# take 6 s.
with="CKOPT_STANDIN_SLOW=1000" visit late 75 --part=A --deadline=5.5
told late '^- golden/mlp/f32$'
told late '^- golden/lenet/bf16$'
told late '^No check failed so far'
! grep -q '"golden/' late/results.jsonl || fail "a step began that would end after the deadline"
visit late 0 --part=A

# --- scripts in the place of tools --------------------------------------------------
# A sanitizer that finds something with one of its tools, and a PyTorch.
mkdir tools
cat >tools/compute-sanitizer <<'END'
#!/bin/bash
[ "$1" != --version ] || { echo "Version 1.2.3"; exit; }
while [[ $1 == --* ]]; do
  case $1 in --tool) tool=$2 ;; --log-file) log=$2 ;; --error-exitcode) found=$2 ;; esac
  shift 2
done
"$@" || exit
[ $tool != racecheck ] || { printf '========= COMPUTE-SANITIZER\n========= Error: Race reported\n=========\n' >"$log"; exit $found; }
END
cat >tools/python3 <<'END'
#!/bin/bash
[ "$1" != -c ] || { echo "1.2.3 13.0 91000 yes"; exit; }
[[ $* != *--tf32=off* ]] || { echo "no f32 today" >&2; exit 1; }
echo 'json {"best": 0.1, "median": 0.2, "peak": 1048576, "parameters": 15734, "loss": 2.3}'
END
chmod +x tools/*
echo "large toy x target 6 -1:1 0:10" >"$there"/cases
grep '^golden mlp' "$there"/all-cases >>"$there"/cases
tools=$work/tools visit watched 1 --steps=2
told watched '^\| compute-sanitizer \| Version 1.2.3 \|$'
told watched '^\| mlp/gradients/3 \| memcheck: clean, racecheck: failed, synccheck: clean, initcheck: clean \|$'
told watched '^- sanitizer/mlp/gradients/3/racecheck: .*Race reported'
tar xOf watched/logs.tar sanitizer/mlp.gradients.3.racecheck.log >race.log || fail "the archive of logs lacks the sanitizer's"
grep -q 'Race reported' race.log || fail "the log of compute-sanitizer is lost"
told watched '^\| toy \| PyTorch, compile, bf16 \| 0.100000 s \| 0.200000 s \| *\| *\| 1.0 MiB \|$'
told watched '^- torch/toy/eager/f32: no f32 today'
told watched '^## Failed \(1\)'

# --- failures -------------------------------------------------------------------
# Every step fails, and each is told.
only '^golden mlp'
with="CKOPT_STANDIN_FAIL=cuGraphLaunch:1:719" visit broken 1 --part=ABC
told broken '^\| mlp \| - \|'
told broken '^\| mlp \| training \| .* \| NO \| NO \|$'
told broken '^- golden/mlp/f32: .*one by one'
# A loading that fails stops nothing else.
with="CKOPT_STANDIN_FAIL=cuModuleLoadDataEx:1:218" visit refused 1 --part=A
told refused '^- inventory/device: '
told refused '^- golden/mlp/f32: '
# A step whose file is damaged stops no other; where its file is whole again,
# --again does it, and nothing that passed.
only '^golden'
manifest=$there/steps/mlp/gradients/0/manifest.bin
cp "$manifest" whole
head -c 100 whole >"$manifest"
visit damaged 1 --part=A
told damaged '^- golden/mlp/f32: ckopt-run: error: '
told damaged '^1 of 2 networks have the same gradients to the bit'
cp whole "$manifest"
visit damaged 1 --part=A
visit damaged 0 --part=A --again
told damaged '^2 of 2 networks have the same gradients to the bit'
[ "$(grep -c '"golden/lenet/f32"' damaged/results.jsonl)" -eq 1 ] || fail "--again does what passed"
# Two visits at once must not write to one folder.
(flock 9 && visit damaged 74 --part=A) 9>>damaged/results.jsonl
grep -q 'another run writes to' damaged.log || { cat damaged.log; fail "two visits write to one folder"; }

# Other bits than those of the CPU code.
only '^golden'
sed -i 's/^\(golden mlp .*\) [0-9a-f]*$/\1 0123456789abcdef/' "$there"/cases
visit bits 1 --part=A
told bits '^1 of 2 networks have the same gradients to the bit'
told bits '^\| mlp \| NO \|'
told bits '^- golden/mlp/f32: other bits than the same kernels as CPU code'

# Operands that are not rounded; gradients ten times as far off as those of the
# kernels as CPU code.
only '^rounded mlp .* tf32 '
sed -n 's/^\(rounded mlp .* bf16\) .*/\1 0.000277/p' "$there"/all-cases >>"$there"/cases
sed -n '/^golden mlp/p' "$there"/all-cases >>"$there"/cases
for budget in 0 1; do
  rm -r "$there"/steps/mlp/tf32/$budget
  cp -r "$there"/steps/mlp/gradients/$((budget * 3)) "$there"/steps/mlp/tf32/$budget
done
cp "$there"/steps/mlp/gradients/0.so "$there"/steps/mlp/tf32/0.so
cp "$there"/steps/mlp/gradients/3.so "$there"/steps/mlp/tf32/1.so
visit other 1 --part=A
told other '^- golden/mlp/tf32: error of the gradients [0-9.]+e-0[678], not from [0-9.]+e-05 to '
told other '^- golden/mlp/bf16: error of the gradients 0.0027[0-9]*, not from [0-9.]+e-05 to 0.00255 \(0.000277 as CPU code\)'
told other '^## Failed \(2\)'

# A reference that is missing.
only '^golden mlp'
sed -i 's/grad/gra_/; t' "$there"/golden/mlp/expect.safetensors
visit off 1 --part=A
told off "^- golden/mlp/f32: .*does not make 'gra_/"

# A full disk: a file may have 1 KiB.
code=0
(ulimit -f 1 && on_standin "$python" "$there"/run --state=full) 2>&1 | cat >full.log || code=$?
[ $code -eq 74 ] && grep -q 'File too large' full.log || { cat full.log; fail "exit code $code on a full disk"; }

# No driver, or a device that is too old: nothing is tried, nothing written
# down, so that the folder serves on the next machine. A newer device will do.
only '^golden lenet'
with="CKOPT_CUDA_DRIVER=$work/none.so" visit none 10
grep -q '^## Not done: there is no driver' none/report.md || fail "the report does not say that there is no driver"
with="CKOPT_STANDIN_SM=75" visit none 11
# Programs that do not start, as for want of a newer C library.
mv "$there"/bin/ckopt-run .
printf '#!/bin/sh\necho "GLIBC_2.34 not found" >&2\nexit 1\n' >"$there"/bin/ckopt-run
chmod +x "$there"/bin/ckopt-run
visit cannot 11
grep -q 'do not run here: GLIBC_2.34 not found' cannot.log || { cat cannot.log; fail "programs that do not start are not told"; }
mv ckopt-run "$there"/bin
grep -q 'compute capability 7.5, the artifact needs 8.0' none.log || { cat none.log; fail "an old device is not told"; }
[ ! -s none/results.jsonl ] || fail "results of machines that can run nothing"
with="CKOPT_STANDIN_SM=120" visit none 0 --part=A
told none '^# ckopt on .* compute capability 12.0'
rm -rf "un packed" archive.tar.gz
