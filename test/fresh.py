# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A test format of lit: a shell test that meets no output of an earlier run, as
# in a new clone. A test that passes only behind another run fails at once.

import glob
import os
import shutil

import lit.formats
import lit.TestRunner


class FreshShTest(lit.formats.ShTest):
    def execute(self, test, lit_config):
        _, base = lit.TestRunner.getTempPaths(test)
        for path in glob.glob(glob.escape(base) + "*"):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)
        return super().execute(test, lit_config)
