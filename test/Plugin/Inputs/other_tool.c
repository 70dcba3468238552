/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A tool of another MLIR, as the plugin sees it: other_tool PLUGIN MAJOR MINOR loads
 * it as MLIR does, and says whether a loader would take it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned version[2];

/* LLVM's, exported as by a tool that has LLVM inside. */
void LLVMGetVersion(unsigned *major, unsigned *minor, unsigned *patch) {
  *major = version[0];
  *minor = version[1];
  *patch = 3;
}

struct PluginInfo {
  uint32_t apiVersion;
  const char *name, *version;
  void *callback;
};

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IONBF, 0); /* in order with errors */
  if (argc != 4)
    return 2;
  version[0] = (unsigned)atoi(argv[2]);
  version[1] = (unsigned)atoi(argv[3]);
  void *plugin = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL);
  if (!plugin) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  static const char *const entries[] = {"mlirGetPassPluginInfo",
                                        "mlirGetDialectPluginInfo"};
  for (int i = 0; i < 2; ++i) {
    struct PluginInfo (*entry)(void) =
        (struct PluginInfo(*)(void))dlsym(plugin, entries[i]);
    if (!entry)
      return 2;
    struct PluginInfo info = entry();
    printf("%s: %s\n", info.name, info.apiVersion == 1 ? "taken" : "refused");
  }
  return 0;
}
