# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests have to know of the CPU that they run on."""


def multiplies_bf16():
    """Whether oneDNN has products of bf16 for this CPU: with AVX-512 alone.
    Elsewhere products of bf16 are computed in f32."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return {"avx512bw", "avx512dq", "avx512vl"} <= set(flags)
