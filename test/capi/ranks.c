/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Trains the digits by all processes that mpirun started, or that RANK and
 * WORLD_SIZE number (check_ranks.py):
 *
 *   ranks MODEL DATA PARALLEL STEPS OUT [NAME=VALUE...]
 *
 * PARALLEL is the option "parallel"; "": none. The last rank ends early where
 * STEPS is negative: the others have to hear of it. NAME=VALUE are further
 * options. */
#include <ckopt-c/ckopt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(ckopt_status status) {
  if (status == CKOPT_OK)
    return;
  fprintf(stderr, "ranks: %s\n", ckopt_last_error());
  exit(status);
}

struct digits {
  ckopt_tensor images, labels;
  int64_t *order;
};

static int64_t next(void *user, ckopt_batch_request *request) {
  struct digits *digits = user;
  int64_t samples = digits->labels.shape[0], given = 0;
  check(
      ckopt_epoch_order(samples, request->seed, request->epoch, digits->order));
  for (; given < request->count && request->position + given < samples;
       ++given) {
    int64_t sample = digits->order[request->position + given];
    memcpy((char *)request->buffers[0] + given * 64,
           (const char *)digits->images.data + sample * 64, 64);
    ((int64_t *)request->buffers[1])[given] =
        ((const int64_t *)digits->labels.data)[sample];
  }
  return given;
}

int main(int argc, char **argv) {
  static const char *const settings[][2] = {{"loss", "cross_entropy"},
                                            {"optimizer", "adamw"},
                                            {"lr", "0.001"},
                                            {"batch", "32"},
                                            {"seed", "3"}};
  ckopt_tensors *arrays;
  ckopt_model *model;
  ckopt_options *options;
  ckopt_step *step;
  struct digits digits;
  if (argc < 6)
    return CKOPT_USAGE;
  check(ckopt_tensors_from_file(argv[2], &arrays));
  check(ckopt_tensors_find(arrays, "images", &digits.images));
  check(ckopt_tensors_find(arrays, "labels", &digits.labels));
  digits.order = malloc((size_t)digits.labels.shape[0] * sizeof(int64_t));
  check(ckopt_model_from_file(argv[1], &model));
  check(ckopt_options_create(&options));
  for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); ++i)
    check(ckopt_options_set(options, settings[i][0], settings[i][1]));
  if (*argv[3])
    check(ckopt_options_set(options, "parallel", argv[3]));
  for (int i = 6; i < argc; ++i) {
    char *value = strchr(argv[i], '=');
    if (!value)
      return CKOPT_USAGE;
    *value = '\0';
    check(ckopt_options_set(options, argv[i], value + 1));
  }
  check(ckopt_compile(model, options, &step));

  ckopt_step_info info = {.size = sizeof(info)};
  check(ckopt_step_get_info(step, &info));
  int64_t steps = atoll(argv[4]);
  if (steps < 0 && info.rank == info.ranks - 1) {
    fprintf(stderr, "ranks: this one ends early\n");
    return 7;
  }
  ckopt_field fields[2] = {{"x", CKOPT_U8, 3, digits.images.shape + 1, 1},
                           {"y", CKOPT_I64, 0, NULL, 1}};
  ckopt_source source = {.size = sizeof(source)};
  source.fields = fields;
  source.num_fields = 2;
  source.num_samples = digits.labels.shape[0];
  source.can_seek = 1;
  source.next = next;
  source.user = &digits;
  ckopt_train_options how = {.size = sizeof(how)};
  how.epochs = 1000;
  how.max_updates = steps < 0 ? -steps : steps;
  check(ckopt_step_train(step, &source, &how, NULL));
  /* Weights are read and set whole, by all ranks. */
  ckopt_tensors *weights;
  ckopt_tensor weight;
  const char *name = "f.4.0.weight";
  check(ckopt_step_get_weights(step, &name, 1, &weights));
  check(ckopt_tensors_find(weights, name, &weight));
  check(ckopt_step_set_weights(step, &weight, 1));
  ckopt_tensors_destroy(weights);
  check(ckopt_step_save(step, argv[5], 0));
  printf("rank %lld of %lld, batch %lld\n", (long long)info.rank,
         (long long)info.ranks, (long long)info.batch);
  ckopt_step_destroy(step);
  ckopt_options_destroy(options);
  ckopt_model_destroy(model);
  ckopt_tensors_destroy(arrays);
  free(digits.order);
  return 0;
}
