/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* ckopt.h - ckopt's compiler, training steps and planner from C
 *
 *   ckopt_model *model;
 *   ckopt_options *options;
 *   ckopt_step *step;
 *   ckopt_model_from_file("model.onnx", &model);
 *   ckopt_options_create(&options);
 *   ckopt_options_set(options, "loss", "cross_entropy");
 *   ckopt_options_set(options, "memory-budget", "64MiB");
 *   if (ckopt_compile(model, options, &step))
 *     fprintf(stderr, "%s\n", ckopt_last_error());
 *   ckopt_step_run(step, batch, 2, &loss, NULL);
 *   ckopt_step_save(step, "trained.onnx", 0);
 *
 * docs/c-api.md is the guide. Runtime/ckrt.h is the smaller interface that runs
 * compiled artifacts and needs no compiler.
 *
 * Errors. Every call that can fail returns a ckopt_status;
 * ckopt_last_error() is the text of the calling thread's last failure. A null
 * pointer, a size or a type that is wrong is CKOPT_INVALID_ARGUMENT. No
 * exception leaves the library. Where a call fails, its results are unchanged,
 * but handles that it would have made are NULL.
 *
 * Ownership. The caller destroys each handle that a `ckopt_..._create`, a
 * `ckopt_..._from_...` or a result of type `ckopt_... **` gave it; destroying
 * NULL does nothing. A handle keeps alive what it needs of others: model and
 * options may go once a step is compiled. What a caller passes is read during
 * the call alone, but for callbacks and their `user`, of which each entry says
 * how long they are kept. Pointers that getters return live as long as the
 * handle that was asked.
 *
 * Threads. Calls on different handles may run at the same time. Calls on one
 * step wait for each other. Options must not be changed while another thread
 * uses them. Plans, tensors and models never change, and may be read by any
 * threads. Callbacks run on the thread that made the call, and must return to
 * it: no longjmp, no exception. The functions of a step return CKOPT_BUSY to
 * its own callbacks, but for those that an entry allows. During a call the
 * thread's LC_NUMERIC is that of the C locale, in callbacks, too.
 *
 * ABI. Handles are opaque. Structs with a member `size` may grow at their end:
 * the caller sets it to sizeof, and the library reads and writes no more than
 * that; members of a later version than the caller's are as if zero. Other
 * structs, and values of constants, never change. A function, once there, stays
 * under its symbol version (CKOPT_1 ...) while the library's major version
 * (libckopt.so.1) does. Types of enumerations are int32_t in calls.
 */
#ifndef CKOPT_C_CKOPT_H
#define CKOPT_C_CKOPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CKOPT_API __attribute__((visibility("default")))
#else
#define CKOPT_API
#endif

#define CKOPT_ABI_VERSION 1

/* Outcomes. Those below 100 are the exit codes of the program `ckopt`. */
typedef int32_t ckopt_status;
enum {
  CKOPT_OK = 0,
  CKOPT_INPUT_ERROR = 1,   /* a bad file, shape, type or value */
  CKOPT_INFEASIBLE = 2,    /* no plan fits the budget */
  CKOPT_NO_PLAN_FOUND = 3, /* none was found within the time limit */
  CKOPT_UNSUPPORTED = 4,   /* an operator or opset that ckopt does not know */
  CKOPT_NON_FINITE = 5,    /* a loss or a value is not finite */
  CKOPT_NO_DEVICE = 10,    /* no CUDA driver, or no such device */
  CKOPT_DEVICE_TOO_OLD = 11,
  CKOPT_DEVICE_MEMORY = 12, /* the arena does not fit the device's memory */
  CKOPT_DEVICE_CODE = 13,   /* the driver refuses the code */
  CKOPT_DEVICE_LOST = 14,
  CKOPT_KERNEL_FAILED = 15,
  CKOPT_NO_LIBRARY = 16, /* cuBLASLt or cuDNN is missing, or refuses */
  CKOPT_LOCK = 17,       /* the lock file names algorithms that are missing */
  CKOPT_RANK = 20,       /* another rank does not answer, or differs */
  CKOPT_USAGE = 64,      /* an option is unknown or wrong, or does not fit */
  CKOPT_INTERNAL = 70,   /* a defect of ckopt */
  CKOPT_IO_ERROR = 74,   /* cannot write */
  CKOPT_INVALID_ARGUMENT = 100, /* wrong use of this interface */
  CKOPT_BUSY = 101,             /* a step was called by its own callback */
  CKOPT_OUT_OF_MEMORY = 102,
  CKOPT_NOT_FOUND = 103, /* nothing has this name */
  CKOPT_STOPPED = 104    /* a callback asked to stop */
};

/* Element types, with the numbers of ckrt_dtype. */
typedef int32_t ckopt_dtype;
enum {
  CKOPT_F64 = 0,
  CKOPT_F32,
  CKOPT_F16,
  CKOPT_BF16,
  CKOPT_I64,
  CKOPT_I32,
  CKOPT_I16,
  CKOPT_I8,
  CKOPT_U8,
  CKOPT_BOOL, /* one byte, 0 or 1 */
  CKOPT_U64,
  CKOPT_U32,
  CKOPT_U16
};

typedef struct ckopt_model ckopt_model;
typedef struct ckopt_options ckopt_options;
typedef struct ckopt_plan ckopt_plan;
typedef struct ckopt_step ckopt_step;
typedef struct ckopt_tensors ckopt_tensors;

/*--- The library ------------------------------------------------------------*/

/* Returns ckopt's version, "0.1.0", and with the commit and LLVM's version:
 * "ckopt 0.1.0 (commit 95f63ff2c1de, LLVM 22.1.8)". */
CKOPT_API const char *ckopt_version(void);
CKOPT_API const char *ckopt_version_line(void);
/* Returns the CKOPT_ABI_VERSION that the library was built with. */
CKOPT_API uint32_t ckopt_abi_version(void);
/* Returns what a status means, "no plan fits the budget"; "unknown status" for
 * other numbers. The text is static. */
CKOPT_API const char *ckopt_status_string(ckopt_status status);
/* Returns the text of this thread's last failed call, with the errors that were
 * also given to a handler; "" before the first. It lives until the thread's
 * next failure. */
CKOPT_API const char *ckopt_last_error(void);
/* Returns "f32", ...; NULL for other numbers. The text is static. */
CKOPT_API const char *ckopt_dtype_name(ckopt_dtype dtype);
/* Returns the bytes of an element; 0 for other numbers. */
CKOPT_API size_t ckopt_dtype_size(ckopt_dtype dtype);

/*--- Tensors ----------------------------------------------------------------*/

/* A dense tensor in row-major order. */
typedef struct ckopt_tensor {
  const char *name;
  ckopt_dtype dtype;
  int32_t rank;
  const int64_t *shape; /* `rank` extents; NULL where that is 0 */
  const void *data;
  size_t bytes; /* of the data: all elements of the shape */
} ckopt_tensor;

/* Reads all arrays of a .npz, .npy or .safetensors file. */
CKOPT_API ckopt_status ckopt_tensors_from_file(const char *path,
                                               ckopt_tensors **tensors);
CKOPT_API void ckopt_tensors_destroy(ckopt_tensors *tensors);
/* Returns the number of tensors; 0 for NULL. */
CKOPT_API size_t ckopt_tensors_count(const ckopt_tensors *tensors);
/* Gets a tensor by its place or name. Its pointers live as long as
 * `tensors`. CKOPT_NOT_FOUND: there is none; the error lists the names. */
CKOPT_API ckopt_status ckopt_tensors_get(const ckopt_tensors *tensors,
                                         size_t index, ckopt_tensor *tensor);
CKOPT_API ckopt_status ckopt_tensors_find(const ckopt_tensors *tensors,
                                          const char *name,
                                          ckopt_tensor *tensor);

/*--- Options ----------------------------------------------------------------*/

/* Makes the options of a step: the flags of `ckopt train` on model, loss,
 * optimizer, plan and compiler, without dashes. `ckopt_options_help` lists
 * them. */
CKOPT_API ckopt_status ckopt_options_create(ckopt_options **options);
/* Makes the options of ckopt_plan_graph: "budget" (bytes, "2GiB" or "min"),
 * "budget-ratio" (a share of the program order's peak), "pack" (assign
 * offsets), and how to search: "strategy", "effort", "time-limit", ... */
CKOPT_API ckopt_status ckopt_options_create_for_graph(ckopt_options **options);
CKOPT_API void ckopt_options_destroy(ckopt_options *options);
/* Sets an option by name. Switches take "" or NULL. Options that may be
 * repeated ("dim", "group", ...) collect their values, of others the last
 * counts. CKOPT_USAGE: the name is unknown or the value is wrong; nothing is
 * set. Options that contradict each other are found where they are used. */
CKOPT_API ckopt_status ckopt_options_set(ckopt_options *options,
                                         const char *name, const char *value);
CKOPT_API ckopt_status ckopt_options_set_int(ckopt_options *options,
                                             const char *name, int64_t value);
CKOPT_API ckopt_status ckopt_options_set_real(ckopt_options *options,
                                              const char *name, double value);
/* Returns the names that these options take, with a line on each. NULL for
 * NULL. */
CKOPT_API const char *ckopt_options_help(const ckopt_options *options);

enum {
  CKOPT_SEVERITY_ERROR = 0,
  CKOPT_SEVERITY_WARNING,
  CKOPT_SEVERITY_REMARK,
  CKOPT_SEVERITY_NOTE /* belongs to the message before it */
};
/* `place` says what the message is about ("node 'conv1'"); "" if no place. The
 * texts live during the call. */
typedef void (*ckopt_message_handler)(void *user, int32_t severity,
                                      const char *place, const char *text);
/* Gives messages of compiling, and warnings of training, to `handler`; NULL
 * drops them. Without this call warnings are printed on standard error, and
 * errors are in ckopt_last_error alone. The handler is kept with `user` by the
 * options and the steps made of them. */
CKOPT_API ckopt_status ckopt_options_set_message_handler(
    ckopt_options *options, ckopt_message_handler handler, void *user);

/*--- Models -----------------------------------------------------------------*/

/* Names an ONNX file, which is read where the model is used, and by
 * ckopt_step_save to .onnx. */
CKOPT_API ckopt_status ckopt_model_from_file(const char *path,
                                             ckopt_model **model);
/* Copies the bytes of an ONNX file, to a temporary file that goes with the last
 * handle which needs it. */
CKOPT_API ckopt_status ckopt_model_from_memory(const void *data, size_t bytes,
                                               ckopt_model **model);
CKOPT_API void ckopt_model_destroy(ckopt_model *model);

/*--- Plans ------------------------------------------------------------------*/

/* Plans the step that ckopt_compile would make, without compiling it. NULL
 * options are the defaults. CKOPT_INFEASIBLE: the error names the smallest
 * budget found, and a proven bound. */
CKOPT_API ckopt_status ckopt_plan_model(const ckopt_model *model,
                                        const ckopt_options *options,
                                        ckopt_plan **plan);
/* Plans a graph of operations of any compiler, in the form ckopt-graph/1
 * (docs/planner.md). NULL options are the defaults: no budget. */
CKOPT_API ckopt_status ckopt_plan_graph(const char *json, size_t bytes,
                                        const ckopt_options *options,
                                        ckopt_plan **plan);
/* Replays a ckopt-plan/1 on its graph by a checker that shares no code with the
 * planner. CKOPT_INPUT_ERROR: the error says what is wrong. `budget` stands in
 * for the plan's own, 0: that one. */
CKOPT_API ckopt_status ckopt_check_plan(const char *graph, size_t graph_bytes,
                                        const char *plan, size_t plan_bytes,
                                        int64_t budget);
CKOPT_API void ckopt_plan_destroy(ckopt_plan *plan);

/* What plans must do so that bound_bytes speaks of them; without any of these,
 * all plans. bound_cost and `optimal` hold for every order and any
 * recomputation, so only the third and the fourth restrict them. */
enum {
  CKOPT_PLAN_FIXED_ORDER = 1, /* keep the program order */
  CKOPT_PLAN_ORDER_ONLY = 2, /* recompute nothing (that rules do not ask for) */
  CKOPT_PLAN_POLICY = 4,     /* obey the rules that were given */
  CKOPT_PLAN_CALLEE_PLANS = 8, /* leave functions that are called their plans */
  CKOPT_PLAN_COUNTED_BYTES = 16 /* leave out bytes that nobody can count */
};
/* The figures of a plan; those that are not known are 0. */
typedef struct ckopt_plan_figures {
  size_t size;             /* sizeof(ckopt_plan_figures) */
  int64_t peak_bytes;      /* of the arena; of a graph's plan without offsets:
                              the largest sum of live bytes */
  int64_t load_bytes;      /* the largest sum of live bytes */
  int64_t budget_bytes;    /* 0: none */
  int64_t full_bytes;      /* without recomputation, in program order */
  int64_t bound_bytes;     /* proven: no plan of restricted_to needs less */
  int64_t parameter_bytes; /* of a step, as the next three */
  int64_t optimizer_bytes;
  int64_t state_bytes;   /* running statistics, constants */
  int64_t data_bytes;    /* inputs, targets, scalars */
  int64_t steps;         /* kernel calls, or runs of a graph's nodes */
  int64_t recomputed;    /* of them, those that repeat one */
  double cost;           /* seconds of a step (predicted); a graph's unit */
  double full_cost;      /* without recomputation */
  double bound_cost;     /* proven: no plan for the budget costs less */
  double seconds;        /* that planning took, of a step */
  int32_t optimal;       /* the plan is proven to be a cheapest one */
  int32_t restricted_to; /* CKOPT_PLAN_...: which plans the proofs speak of */
} ckopt_plan_figures;
/* Fills the struct, whose `size` is set. */
CKOPT_API ckopt_status ckopt_plan_get_figures(const ckopt_plan *plan,
                                              ckopt_plan_figures *figures);

enum {
  CKOPT_PLAN_TABLE = 0,    /* for people, as `ckopt plan` prints it */
  CKOPT_PLAN_REPORT,       /* JSON: ckopt-step-report/1; a graph's:
                              ckopt-report/1, which has the values' fates */
  CKOPT_PLAN_VALUES,       /* JSON: ckopt-remat-report/1; a graph's: as above */
  CKOPT_PLAN_JSON,         /* ckopt-plan/1: order, offsets, proofs */
  CKOPT_PLAN_GRAPH,        /* ckopt-graph/1: what was planned */
  CKOPT_PLAN_TIMELINE_SVG, /* memory over the step, as a picture */
  CKOPT_PLAN_TIMELINE_TRACE /* the same as trace events, for Perfetto */
};
/* Gets a text of the plan, one of the constants above; it ends in a zero
 * byte. */
CKOPT_API ckopt_status ckopt_plan_get_text(const ckopt_plan *plan, int32_t kind,
                                           const char **text);
/* Gets the ids of the graph's nodes (CKOPT_PLAN_GRAPH) in the order of
 * execution; one that appears again is recomputed. */
CKOPT_API ckopt_status ckopt_plan_get_steps(const ckopt_plan *plan,
                                            const int64_t **nodes,
                                            size_t *count);

/*--- Steps ------------------------------------------------------------------*/

/* Compiles a model to a training step in machine code, and loads it with the
 * model's weights. NULL options are the defaults. */
CKOPT_API ckopt_status ckopt_compile(const ckopt_model *model,
                                     const ckopt_options *options,
                                     ckopt_step **step);
/* Compiles a model to a file FILE.so, or a folder for a device, that ckopt-run
 * and ckrt_program_load_file take. Nothing is loaded: the device need not be
 * here. */
CKOPT_API ckopt_status ckopt_compile_to_file(const ckopt_model *model,
                                             const ckopt_options *options,
                                             const char *path);
/* Waits for calls of other threads that have begun; later ones are an error of
 * the caller. From the step's own callbacks it does nothing. */
CKOPT_API void ckopt_step_destroy(ckopt_step *step);

/* What a step is, and where it stands. */
typedef struct ckopt_step_info {
  size_t size;          /* sizeof(ckopt_step_info) */
  int64_t batch;        /* samples of a batch, of all ranks */
  int64_t accumulate;   /* batches of an update */
  int64_t updates;      /* made so far, those before ckopt_step_resume too */
  double learning_rate; /* of the next update */
  size_t fields;        /* tensors of a batch */
  double loss_scale;    /* with precision=f16, of the next update; else 0 */
  int64_t skipped;      /* updates whose gradients overflowed */
  int64_t rank;  /* of this process, from 0: the option "parallel"; alone: 0 */
  int64_t ranks; /* that train the step together; alone: 1 */
} ckopt_step_info;
/* Fills the struct, whose `size` is set. */
CKOPT_API ckopt_status ckopt_step_get_info(ckopt_step *step,
                                           ckopt_step_info *info);

/* A tensor of a sample: an input of the model, or the targets of a loss. */
typedef struct ckopt_field {
  const char *name;
  ckopt_dtype dtype;
  int32_t rank;
  const int64_t *shape; /* of one sample, without the batch */
  int32_t batched;      /* 0: one constant for all samples, of this shape */
} ckopt_field;
/* Gets what a batch holds: inputs in the model's order, then targets. The
 * pointers live as long as the step. CKOPT_NOT_FOUND: there is no such field.
 */
CKOPT_API ckopt_status ckopt_step_get_field(ckopt_step *step, size_t index,
                                            ckopt_field *field);

/* Bytes of a step's arena. */
typedef struct ckopt_memory {
  size_t size;           /* sizeof(ckopt_memory) */
  int64_t planned_peak;  /* bytes: the arena */
  int64_t measured_peak; /* end of the highest byte that was changed so far */
  int64_t budget;        /* 0: none */
  int64_t parameters, optimizer, state, data;
} ckopt_memory;
/* Fills the struct, whose `size` is set. */
CKOPT_API ckopt_status ckopt_step_get_memory(ckopt_step *step,
                                             ckopt_memory *memory);
/* Makes a handle of the step's plan, which may outlive the step. */
CKOPT_API ckopt_status ckopt_step_get_plan(ckopt_step *step, ckopt_plan **plan);

/* Runs one batch: a tensor [batch, ...] for each field, by name, in any order.
 * Types that differ from the field's are converted: floats are rounded,
 * anything else must fit. `loss` (may be NULL) is that of the batch; `updated`
 * (may be NULL) is 0 where gradients wait for those of further batches
 * (accumulate). CKOPT_INPUT_ERROR: shapes, labels out of range, values that are
 * not finite; nothing ran. CKOPT_NON_FINITE: training diverged; weights are as
 * the update left them. */
CKOPT_API ckopt_status ckopt_step_run(ckopt_step *step,
                                      const ckopt_tensor *batch, size_t count,
                                      double *loss, int32_t *updated);
/* Computes the gradients of one batch, by "grad/" and the parameters' names, in
 * a step compiled with "optimizer" = "none". Running statistics move.
 * CKOPT_NON_FINITE: the loss or a gradient is not finite. */
CKOPT_API ckopt_status ckopt_step_gradients(ckopt_step *step,
                                            const ckopt_tensor *batch,
                                            size_t count, double *loss,
                                            ckopt_tensors **gradients);

/* The metrics of an evaluation; the accuracy is correct / count. */
typedef struct ckopt_metrics {
  size_t size;        /* sizeof(ckopt_metrics) */
  double loss;        /* the mean */
  int64_t count;      /* elements that it is of */
  int64_t correct;    /* of them, those classified right */
  int32_t classified; /* 1: `correct` makes sense */
  int32_t reserved;
} ckopt_metrics;
/* Computes loss and accuracy of any number of samples; the last batch is padded
 * and masked. Dropout is off, batch norms use their running statistics. */
CKOPT_API ckopt_status ckopt_step_evaluate(ckopt_step *step,
                                           const ckopt_tensor *samples,
                                           size_t count,
                                           ckopt_metrics *metrics);
/* Computes the model's outputs for any number of samples; targets may be left
 * out. */
CKOPT_API ckopt_status ckopt_step_predict(ckopt_step *step,
                                          const ckopt_tensor *samples,
                                          size_t count,
                                          ckopt_tensors **outputs);

/*--- Weights and files ------------------------------------------------------*/

/* Copies parameters, running statistics and frozen weights: the `count` of
 * these names, or all of them where `names` is NULL. CKOPT_NOT_FOUND: one is no
 * weight. */
CKOPT_API ckopt_status ckopt_step_get_weights(ckopt_step *step,
                                              const char *const *names,
                                              size_t count,
                                              ckopt_tensors **weights);
/* Copies all of them, with the averages of the option "ema" in place of the
 * parameters. */
CKOPT_API ckopt_status ckopt_step_get_averages(ckopt_step *step,
                                               ckopt_tensors **weights);
/* Sets weights by name; the others, and the optimizer's state, stay. All names,
 * shapes and types are checked before the first is set. */
CKOPT_API ckopt_status ckopt_step_set_weights(ckopt_step *step,
                                              const ckopt_tensor *weights,
                                              size_t count);
/* Writes the weights: to FILE.onnx, the model's file with new values, or
 * FILE.safetensors; `averaged` != 0: the averages. Weights that are not finite
 * are refused. */
CKOPT_API ckopt_status ckopt_step_save(ckopt_step *step, const char *path,
                                       int32_t averaged);
/* Writes what updates change, and hashes of frozen weights (safetensors). */
CKOPT_API ckopt_status ckopt_step_checkpoint(ckopt_step *step,
                                             const char *path);
/* Goes on from such a file with the bits of an unbroken run, whatever the
 * budget was; a checkpoint of other options, or of other frozen weights than
 * the step has, is CKOPT_INPUT_ERROR. `updates`
 * (may be NULL) is the number that were made: the batches that follow are the
 * caller's to find, or ckopt_step_train's. */
CKOPT_API ckopt_status ckopt_step_resume(ckopt_step *step, const char *path,
                                         int64_t *updates);

/*--- Training from a source -------------------------------------------------*/

/* The samples that a source is asked for. */
typedef struct ckopt_batch_request {
  size_t size;          /* of the struct, as the library knows it */
  uint64_t seed;        /* the option "seed" */
  int64_t epoch;        /* from 0 */
  int64_t position;     /* samples of the epoch before the first one */
  int64_t count;        /* samples to write */
  size_t num_buffers;   /* fields */
  void *const *buffers; /* one a field: `count` samples, one after another; of
                           fields that are not batched one constant */
  const char *error;    /* the callback may set it, to a text that lives until
                           its next call, before it returns a negative number */
} ckopt_batch_request;

/* A source of batches. */
typedef struct ckopt_source {
  size_t size;      /* sizeof(ckopt_source) */
  const char *name; /* in messages; NULL: "source" */
  /* What `next` writes. NULL: the step's own fields, in their order. Names are
   * those of the step's fields; types may differ as in ckopt_step_run. */
  const ckopt_field *fields;
  size_t num_fields;
  int64_t num_samples; /* of an epoch; -1: only its end will tell */
  int32_t can_seek;    /* samples depend on seed, epoch and position alone */
  /* Writes the samples of the request, and returns how many: fewer than asked
   * for where the epoch ends. A negative number ends training with
   * CKOPT_STOPPED. */
  int64_t (*next)(void *user, ckopt_batch_request *request);
  void *user;
} ckopt_source;

/* One update of ckopt_step_train. */
typedef struct ckopt_progress {
  size_t size;      /* of the struct, as the library knows it */
  int64_t update;   /* from 1 */
  int64_t epoch;    /* of its last sample, from 0 */
  int64_t position; /* samples of the epoch used so far */
  double loss;      /* mean of the update's batches */
  double learning_rate;
} ckopt_progress;

/* How ckopt_step_train ends, and whom it tells. */
typedef struct ckopt_train_options {
  size_t size;         /* sizeof(ckopt_train_options) */
  int64_t epochs;      /* of the whole run, those before a resume too; 0: 1 */
  int64_t max_updates; /* of the whole run; 0: as many as the epochs have */
  /* Called after each update; may be NULL. Other than 0 ends training, with
   * CKOPT_OK and `stopped`. It may call the step's functions but
   * ckopt_step_run, _gradients, _train, _resume and _profile. */
  int32_t (*progress)(void *user, const ckopt_progress *progress);
  void *user;
} ckopt_train_options;

/* What ckopt_step_train did. */
typedef struct ckopt_train_result {
  size_t size;       /* sizeof(ckopt_train_result) */
  int64_t updates;   /* made by this call */
  double first_loss; /* of its first and last update */
  double final_loss;
  int64_t epoch; /* where the run stands */
  int64_t position;
  int32_t stopped; /* the progress callback ended it */
  int32_t reserved;
} ckopt_train_result;

/* Trains from a source, with the bits of `ckopt train` on the same batches. A
 * run begins where the step stands: after N updates with the batch that follows
 * those of N updates, for which the source must be able to seek and know its
 * number of samples; otherwise it begins with the first epoch, and a step that
 * has made updates is refused (CKOPT_USAGE). Samples that do not fill the last
 * batch of an epoch are left out. NULL options are the defaults, `result` may
 * be NULL. Errors in samples name the source. Callbacks are kept during the
 * call; `next` may call what `progress` may. */
CKOPT_API ckopt_status ckopt_step_train(ckopt_step *step,
                                        const ckopt_source *source,
                                        const ckopt_train_options *options,
                                        ckopt_train_result *result);
/* Writes the order of an epoch's samples as `ckopt train` draws them, a
 * function of the other arguments alone: `order` receives `samples` numbers. */
CKOPT_API ckopt_status ckopt_epoch_order(int64_t samples, uint64_t seed,
                                         int64_t epoch, int64_t *order);

/* The time of one kernel call. Texts live during the callback. */
typedef struct ckopt_call_time {
  size_t size; /* of the struct, as the library knows it */
  const char *kernel;
  const char *source;    /* node of the model */
  const char *primitive; /* of a library; "": generated code */
  int32_t recomputed;
  double seconds; /* mean over the updates */
} ckopt_call_time;
/* Times all kernel calls over `updates` updates of one batch, takes these back,
 * and gives the times to `call` in the order of the step. Needs the option
 * "profile". */
CKOPT_API ckopt_status ckopt_step_profile(
    ckopt_step *step, const ckopt_tensor *batch, size_t count, int64_t updates,
    void (*call)(void *user, const ckopt_call_time *time), void *user);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CKOPT_C_CKOPT_H */
