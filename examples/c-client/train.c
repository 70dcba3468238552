/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Compiles an ONNX model into a training step of at most so many bytes, trains
 * it on the program's own samples and writes what it learned:
 *
 *   c-train digits_cnn.onnx digits.npz 2MiB 20 0.001 trained.safetensors
 *   c-train ... trained.safetensors run.ckpt          writes a checkpoint
 *   c-train ... trained.safetensors run.ckpt resume   goes on from it
 *
 * It gives the bits of `ckopt train` and refuses the same things; its exit code
 * is the status of the call that failed, which is `ckopt`'s, too. */
#include <ckopt-c/ckopt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program where a call fails. */
static void check(ckopt_status status) {
  if (status == CKOPT_OK)
    return;
  fprintf(stderr, "c-train: %s: %s\n", ckopt_status_string(status),
          ckopt_last_error());
  exit(status);
}

static void print_message(void *user, int32_t severity, const char *place,
                          const char *text) {
  const char *program = user;
  if (severity == CKOPT_SEVERITY_WARNING)
    fprintf(stderr, "%s: warning: %s%s%s\n", program, place, *place ? ": " : "",
            text);
}

/* Samples in memory. The order is the one that ckopt gives files, and so are
 * the bits. */
struct digits {
  ckopt_tensors *arrays;
  ckopt_tensor images, labels;
  int64_t samples, pixels;
  int64_t *order;
  int64_t epoch; /* that `order` is of; -1: none yet */
};

static int64_t next_digits(void *user, ckopt_batch_request *request) {
  struct digits *digits = user;
  if (digits->epoch != request->epoch) {
    if (ckopt_epoch_order(digits->samples, request->seed, request->epoch,
                          digits->order)) {
      request->error = "cannot draw the order of the samples";
      return -1;
    }
    digits->epoch = request->epoch;
  }
  unsigned char *images = request->buffers[0];
  int64_t *labels = request->buffers[1];
  int64_t given = 0;
  for (; given < request->count && request->position + given < digits->samples;
       ++given) {
    int64_t sample = digits->order[request->position + given];
    memcpy(images + given * digits->pixels,
           (const unsigned char *)digits->images.data + sample * digits->pixels,
           (size_t)digits->pixels);
    labels[given] = ((const int64_t *)digits->labels.data)[sample];
  }
  return given;
}

static void read_digits(struct digits *digits, const char *path) {
  check(ckopt_tensors_from_file(path, &digits->arrays));
  check(ckopt_tensors_find(digits->arrays, "images", &digits->images));
  check(ckopt_tensors_find(digits->arrays, "labels", &digits->labels));
  if (digits->images.dtype != CKOPT_U8 || digits->labels.dtype != CKOPT_I64 ||
      digits->images.rank != 4) {
    fprintf(stderr, "c-train: the arrays of %s have other types\n", path);
    exit(CKOPT_INPUT_ERROR);
  }
  digits->samples = digits->images.shape[0];
  digits->pixels = (int64_t)digits->images.bytes / digits->samples;
  digits->order = malloc((size_t)digits->samples * sizeof(int64_t));
  digits->epoch = -1;
  if (!digits->order)
    exit(CKOPT_OUT_OF_MEMORY);
}

static ckopt_step *compile(const char *path, const char *budget,
                           const char *rate) {
  ckopt_model *model;
  ckopt_options *options;
  ckopt_step *step;
  check(ckopt_model_from_file(path, &model));
  check(ckopt_options_create(&options));
  check(ckopt_options_set(options, "loss", "cross_entropy"));
  check(ckopt_options_set(options, "optimizer", "adamw"));
  check(ckopt_options_set(options, "lr", rate));
  check(ckopt_options_set(options, "memory-budget", budget));
  check(ckopt_options_set_int(options, "batch", 32));
  check(ckopt_options_set_int(options, "threads", 2));
  check(ckopt_options_set_message_handler(options, print_message, "c-train"));
  check(ckopt_compile(model, options, &step));
  ckopt_options_destroy(options);
  ckopt_model_destroy(model);
  return step;
}

int main(int argc, char **argv) {
  if (argc < 7 || argc > 9) {
    fprintf(stderr, "usage: c-train MODEL DATA BUDGET STEPS RATE OUT "
                    "[CHECKPOINT [resume]]\n");
    return CKOPT_USAGE;
  }
  struct digits digits;
  read_digits(&digits, argv[2]);
  ckopt_step *step = compile(argv[1], argv[3], argv[5]);
  if (argc > 8)
    check(ckopt_step_resume(step, argv[7], NULL));

  /* Pixels stay bytes; the step's f32 are made of them batch by batch. */
  ckopt_field fields[2] = {
      {"x", CKOPT_U8, 3, digits.images.shape + 1, /*batched=*/1},
      {"y", CKOPT_I64, 0, NULL, /*batched=*/1}};
  ckopt_source source = {.size = sizeof(source)};
  source.name = "the program's digits";
  source.fields = fields;
  source.num_fields = 2;
  source.num_samples = digits.samples;
  source.can_seek = 1;
  source.next = next_digits;
  source.user = &digits;
  ckopt_train_options how = {.size = sizeof(how)};
  how.epochs = 1000;
  how.max_updates = atoll(argv[4]);
  ckopt_train_result result = {.size = sizeof(result)};
  check(ckopt_step_train(step, &source, &how, &result));

  ckopt_step_info info = {.size = sizeof(info)};
  ckopt_memory memory = {.size = sizeof(memory)};
  check(ckopt_step_get_info(step, &info));
  check(ckopt_step_get_memory(step, &memory));
  printf("steps %lld, loss %g, planned peak %lld bytes, measured %lld\n",
         (long long)info.updates, result.final_loss,
         (long long)memory.planned_peak, (long long)memory.measured_peak);
  if (argc == 8)
    check(ckopt_step_checkpoint(step, argv[7]));
  check(ckopt_step_save(step, argv[6], /*averaged=*/0));
  ckopt_step_destroy(step);
  ckopt_tensors_destroy(digits.arrays);
  free(digits.order);
  return 0;
}
