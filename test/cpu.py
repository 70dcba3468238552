# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests have to know of the CPU that they run on."""


def multiplies_bf16():
    """Whether oneDNN has products of bf16 for this CPU: with AVX-512 alone.
    Elsewhere steps of bf16, and products of f32 by pieces of bf16, are refused."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return {"avx512bw", "avx512dq", "avx512vl"} <= set(flags)
