# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of lit with a cache of compiled kernels each."""

import copy
import os
import shutil

import lit.formats


class ShTest(lit.formats.ShTest):
    """The cache is empty when a test begins: most compile one model several
    times, and none depends on what others compiled."""

    def execute(self, test, lit_config):
        folder, name = os.path.split(test.getExecPath())
        cache = os.path.join(folder, "Output", name + ".cache")
        shutil.rmtree(cache, ignore_errors=True)
        test.config = copy.copy(test.config)
        test.config.environment = dict(test.config.environment, CKOPT_CACHE_DIR=cache)
        return super().execute(test, lit_config)
