/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Plans a graph of another compiler (ckopt-graph/1) under a byte budget, and
 * checks the plan:
 *
 *   c-plan graph.json 64MiB
 */
#include <ckopt-c/ckopt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(ckopt_status status) {
  if (status == CKOPT_OK)
    return;
  fprintf(stderr, "c-plan: %s: %s\n", ckopt_status_string(status),
          ckopt_last_error());
  exit(status);
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long bytes = -1;
  if (file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 &&
      !fseek(file, 0, SEEK_SET) && (text = malloc((size_t)bytes + 1))) {
    text[fread(text, 1, (size_t)bytes, file)] = 0;
    fclose(file);
    return text;
  }
  fprintf(stderr, "c-plan: cannot read %s\n", path);
  exit(CKOPT_INPUT_ERROR);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: c-plan GRAPH.json BUDGET\n");
    return CKOPT_USAGE;
  }
  char *graph = read_file(argv[1]);
  ckopt_options *options;
  ckopt_plan *plan;
  check(ckopt_options_create_for_graph(&options));
  check(ckopt_options_set(options, "budget", argv[2]));
  check(ckopt_options_set(options, "pack", NULL));
  check(ckopt_plan_graph(graph, strlen(graph), options, &plan));

  ckopt_plan_figures figures = {.size = sizeof(figures)};
  const char *table, *json;
  const int64_t *nodes;
  size_t steps;
  check(ckopt_plan_get_figures(plan, &figures));
  check(ckopt_plan_get_text(plan, CKOPT_PLAN_TABLE, &table));
  check(ckopt_plan_get_text(plan, CKOPT_PLAN_JSON, &json));
  check(ckopt_plan_get_steps(plan, &nodes, &steps));
  fputs(table, stdout);
  printf("order:");
  for (size_t i = 0; i < steps; ++i)
    printf(" %lld", (long long)nodes[i]);
  printf("\n%lld of %lld bytes\n", (long long)figures.peak_bytes,
         (long long)figures.full_bytes);
  check(ckopt_check_plan(graph, strlen(graph), json, strlen(json),
                         /*budget=*/0));
  ckopt_plan_destroy(plan);
  ckopt_options_destroy(options);
  free(graph);
  return 0;
}
