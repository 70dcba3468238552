# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_times.py PROFILE.json SECONDS [joined]: kernels of a ckopt-profile/1, each at
least as slow (within a microsecond), and with `joined` updates that were."""

import json
import sys

profile = json.load(open(sys.argv[1]))
least = float(sys.argv[2])
seconds = {op["op"]: op["seconds"] for op in profile["ops"]}
assert profile["format"] == "ckopt-profile/1" and len(seconds) > 5, seconds
for kernel, time in seconds.items():
    assert time > least - 1e-6, (kernel, time)
for launch in profile.get("launches", []):
    joined = launch["kernel"].startswith("k_joined_")
    assert joined != (launch["kernel"] in seconds) and launch["count"] > 0 and launch["bytes"] > 0, launch
# Kernels that join updates are one line of their own, since plans do not know them.
assert not any(kernel.startswith("k_joined_") for kernel in seconds), seconds
if sys.argv[3:] == ["joined"]:
    assert profile["updates"]["bytes"] > 0 and profile["updates"]["seconds"] > least - 1e-6, profile["updates"]
