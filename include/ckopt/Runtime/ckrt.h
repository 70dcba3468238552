/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* ckrt.h - the runtime's C interface
 *
 * The runtime loads a compiled training step, owns its arena, and runs it. The
 * artifact contains everything that a step needs besides this library.
 *
 * Ownership: the caller destroys what it creates; a program must outlive its
 * sessions; pointers that getters return live as long as the object asked.
 * Every call that can fail returns a ckrt_status; ckrt_last_error() is the text
 * of the calling thread's last failure. Only one thread at a time may use a
 * session, outside of OpenMP parallel regions. Functions exist since ABI
 * version 1 unless stated otherwise.
 */
#ifndef CKOPT_RUNTIME_CKRT_H
#define CKOPT_RUNTIME_CKRT_H

#include "ckopt/Runtime/Export.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CKRT_ABI_VERSION 4

typedef enum ckrt_status {
  CKRT_OK = 0,
  CKRT_INVALID_ARGUMENT = 1, /* wrong use of this interface */
  CKRT_BAD_ARTIFACT = 2,     /* not an artifact, damaged, or another version */
  CKRT_WRONG_MACHINE = 3,    /* a CPU feature or threads are missing */
  CKRT_OUT_OF_MEMORY = 4,
  CKRT_NOT_FOUND = 5,   /* no tensor or function of that name */
  CKRT_MISMATCH = 6,    /* shape or type of host data does not fit */
  CKRT_UNSUPPORTED = 7, /* the library cannot run a primitive, or cannot
                           count allocations */
  CKRT_EXECUTION = 8,   /* a kernel failed */
  CKRT_NON_FINITE = 9,  /* ckrt_set_check_finite found a value */
  CKRT_VERIFY = 10,     /* a recomputed value differs from its first one */
  CKRT_IO = 11,
  /* Devices; since ABI version 2. */
  CKRT_NO_DEVICE = 12,      /* no driver library, or no such device */
  CKRT_DEVICE_TOO_OLD = 13, /* the device or its driver is too old */
  CKRT_DEVICE_MEMORY = 14,  /* the arena exceeds the free memory */
  CKRT_DEVICE_CODE = 15,    /* the driver refuses the code, or a kernel */
  CKRT_DEVICE_LOST = 16,    /* the device no longer responds */
  CKRT_KERNEL = 17,         /* a kernel failed on the device */
  CKRT_NO_LIBRARY = 18,     /* cuBLASLt or cuDNN is missing, or refuses */
  CKRT_LOCK = 19, /* the lock file names algorithms that are missing */
  CKRT_RANK = 20  /* another rank does not answer */
} ckrt_status;

/* The element types, numbered as ckopt::DType. */
typedef enum ckrt_dtype {
  CKRT_F64 = 0,
  CKRT_F32,
  CKRT_F16,
  CKRT_BF16,
  CKRT_I64,
  CKRT_I32,
  CKRT_I16,
  CKRT_I8,
  CKRT_U8,
  CKRT_BOOL,
  CKRT_U64,
  CKRT_U32,
  CKRT_U16
} ckrt_dtype;

typedef struct ckrt_env ckrt_env;
typedef struct ckrt_program ckrt_program;
typedef struct ckrt_session ckrt_session;

/* Returns the text of this thread's last failed call; never NULL. */
CKRT_EXPORT const char *ckrt_last_error(void);
CKRT_EXPORT uint32_t ckrt_abi_version(void);

/*--- Functions that generated code calls ------------------------------------*/

/* A step or eval function: straight-line code over the arena. Returns 0 on
 * success. */
typedef int32_t (*ckrt_fn)(const ckrt_env *env, char *arena);
/* A kernel (or one stage of it) on [begin, end) of its parallel dimension. */
typedef void (*ckrt_kernel)(void *const *args, const int64_t *scalars,
                            int64_t begin, int64_t end, void *scratch);

/* Runs the kernel over [0, trip) in contiguous ranges whose bounds are
 * multiples of `grain` (except the last end), at most one for each thread; on
 * the calling thread if trip <= grain. Allocates nothing. */
CKRT_EXPORT void ckrt_parallel_for(const ckrt_env *env, ckrt_kernel kernel,
                                   void *const *args, const int64_t *scalars,
                                   int64_t trip, int64_t grain, void *scratch);
/* Runs primitive `index` of the manifest. Returns nonzero on failure, which the
 * step returns at once (ckrt_run's caller gets the text). */
CKRT_EXPORT int32_t ckrt_execute(const ckrt_env *env, int64_t index,
                                 void *const *args, void *workspace);
/* Returns the size at which the code of a step with an open size runs. Since 4.
 */
CKRT_EXPORT int64_t ckrt_open_size(const ckrt_env *env);
/* Instrumented code calls this after kernel call `call` of Manifest::calls; if
 * the result is nonzero, the step returns it at once. */
CKRT_EXPORT int32_t ckrt_call_done(const ckrt_env *env, int64_t call,
                                   char *arena);

/* Portable scalar form of what generated dropout computes: Philox4x32-10 with
 * key = seed (low, high word), counter = (element/4 low, element/4 high, step
 * (low 32 bits), site (low 32 bits)), word element%4; (word >> 8) * 2^-24, in
 * [0, 1). An element is kept iff the number is >= ratio. Elements are counted
 * row-major in the logical shape. */
CKRT_EXPORT float ckrt_dropout_uniform(uint64_t seed, uint64_t step,
                                       uint64_t site, uint64_t element);
CKRT_EXPORT void ckrt_philox4x32_10(const uint32_t counter[4],
                                    const uint32_t key[2], uint32_t out[4]);

/* An environment without a session, for tests of generated code and kernels.
 * Primitives are ckopt::runtime::PrimitiveDesc (Primitive.h). */
CKRT_EXPORT ckrt_env *ckrt_env_create(int32_t threads, int32_t keep_denormals);
CKRT_EXPORT ckrt_status ckrt_env_add_primitive(ckrt_env *env, const void *desc,
                                               int64_t *index);
/* Runs fn with the environment's floating-point mode on all its threads. */
CKRT_EXPORT int32_t ckrt_env_run(ckrt_env *env, ckrt_fn fn, char *arena);
CKRT_EXPORT void ckrt_env_destroy(ckrt_env *env);

/*--- Programs ---------------------------------------------------------------*/

/* Loads a shared library made by `ckopt compile` (symbols ckopt_manifest,
 * ckopt_manifest_size (uint64_t), the functions that the manifest names, and
 * where tensors have a dataOffset ckopt_data and ckopt_data_size (uint64_t)).
 */
CKRT_EXPORT ckrt_status ckrt_program_load_file(const char *path,
                                               ckrt_program **program);
/* The path may also be a folder: an artifact for a device (docs/cuda.md; since
 * 2). */
/* Loads a program from memory: functions[i] is the code of the manifest's
 * function i.
 * `data` holds the first values of tensors with a dataOffset (NULL if none).
 * Code and data must outlive the program; the manifest is copied. */
CKRT_EXPORT ckrt_status ckrt_program_load_memory(
    const void *manifest, size_t manifest_size, const ckrt_fn *functions,
    size_t num_functions, const void *data, size_t data_size,
    ckrt_program **program);
/* Loads a device's program from memory: `code` is PTX text; everything is
 * copied except `data`, which must outlive the program. Needs no device.
 * Since 2. */
CKRT_EXPORT ckrt_status
ckrt_program_load_device(const void *manifest, size_t manifest_size,
                         const char *code, size_t code_size, const void *data,
                         size_t data_size, ckrt_program **program);
/* Makes the program of another size of a step that was compiled for a range of
 * them (`--dim=NAME=LOW..HIGH`), on the CPU. It has the same code, and must not
 * outlive `program`. A session of it goes into the arena of a session of the
 * largest size (arena_of). CKRT_INVALID_ARGUMENT: a size that is not in the
 * range. Since 4. */
CKRT_EXPORT ckrt_status ckrt_program_at(const ckrt_program *program,
                                        int64_t size, ckrt_program **other);
CKRT_EXPORT void ckrt_program_destroy(ckrt_program *program);
/* Returns the parsed ckopt::runtime::Manifest, for C++ callers. */
CKRT_EXPORT const void *ckrt_program_manifest(const ckrt_program *program);

/*--- Sessions ---------------------------------------------------------------*/

/* Says of a primitive (an index into the manifest's) who runs it: by_library !=
 * 0 for cuBLASLt or cuDNN, with the algorithm; else our own kernel, or nobody,
 * with the reason. */
typedef void (*ckrt_library_hook)(void *user, int64_t primitive, int by_library,
                                  const char *what);

typedef struct ckrt_session_options {
  size_t size;          /* sizeof(ckrt_session_options) */
  int32_t pattern_fill; /* fill the arena with a pattern (ckrt_measured_peak) */
  int32_t count_allocations; /* see ckrt_allocations */
  uint64_t pattern_seed;
  /* Since 2, for devices: the number of the device (0 is the first; -1: the
   * first, or in a step of several ranks the one of this rank: LOCAL_RANK, or
   * its place among the ranks of its machine, modulo the devices); whether to
   * launch and wait for one kernel at a time instead of replaying a graph, so
   * that a failure certainly names the right kernel. */
  int32_t device;
  int32_t one_by_one;
  /* File to which the first load writes the algorithms of cuBLASLt and cuDNN,
   * and from which later loads read them. NULL: FOLDER.lock beside an artifact
   * that was loaded from a folder, none for one from memory; "": none. Of
   * several ranks each has a file of its own: ".rank-R" is added. */
  const char *lock_file;
  /* Since 3, on the CPU: lives in the arena of this session, which has enough
   * bytes, and whose weights and states lie at the places of this one's: they
   * are those of both. What else one of them writes is lost to the other: a
   * session needs its inputs before each run, and its results are read before
   * another's. Sessions of one arena are used by one thread at a time. */
  ckrt_session *arena_of;
  /* Since 4: is told of each product and convolution that no library runs here
   * and that the program has no kernel of ours for, before the session fails
   * with CKRT_NO_LIBRARY. May be NULL. */
  ckrt_library_hook on_refused;
  void *refused_user;
} ckrt_session_options;

/* Maps the arena and makes the primitives. On a device: opens it, compiles the
 * code, allocates the arena, and captures each function as a graph. options may
 * be NULL. */
CKRT_EXPORT ckrt_status ckrt_session_create(ckrt_program *program,
                                            const ckrt_session_options *options,
                                            ckrt_session **session);
CKRT_EXPORT void ckrt_session_destroy(ckrt_session *session);

/* Runs "step" or "eval". A device may still be at work when this returns: the
 * next call that waits (ckrt_tensor_read, ckrt_synchronize) reports its
 * failures. Tensors that are written afterwards affect the next run only. */
CKRT_EXPORT ckrt_status ckrt_run(ckrt_session *session, const char *function);
/* Waits until all runs and copies are done. Does nothing on the CPU. Since 2.
 */
CKRT_EXPORT ckrt_status ckrt_synchronize(ckrt_session *session);
/* Sets all parameters with an init rule, element by element from (seed, name,
 * row-major index), and zeroes state and optimizer state without a rule. Does
 * not change tensors with other roles. */
CKRT_EXPORT ckrt_status ckrt_init_parameters(ckrt_session *session,
                                             uint64_t seed);

/* Returns the arena's first byte; NULL for a device, whose memory the host
 * cannot access. */
CKRT_EXPORT char *ckrt_arena(ckrt_session *session);
CKRT_EXPORT int64_t ckrt_arena_bytes(const ckrt_session *session);

/*--- Several processes (docs/parallel.md) -----------------------------------*/

/* Meets the other processes that mpirun started: before sessions of a step of
 * several ranks are made. MPI may be initialized already. Another rank is
 * waited for at most so many seconds; 0: for ever. CKRT_RANK: why it cannot.
 * Since 2, as all that follows here. */
CKRT_EXPORT ckrt_status ckrt_world_open(double timeout);
/* Meets them without MPI: for steps on devices, which NCCL connects. `rank` is
 * this process's number of `ranks`; rank 0 gives NCCL's id to the others
 * through the file, which all can see and which is gone afterwards; files of
 * earlier runs do no harm. Each rank is waited for `timeout` seconds (0: five
 * minutes for a rank to come, then for ever). Since 2. */
CKRT_EXPORT ckrt_status ckrt_world_open_nccl(const char *file, int32_t rank,
                                             int32_t ranks, double timeout);
/* This process's number, from 0, and how many there are; alone: 0 and 1. */
CKRT_EXPORT int32_t ckrt_world_rank(void);
CKRT_EXPORT int32_t ckrt_world_size(void);
/* Compares a number of all ranks, a hash of what they must share: CKRT_RANK
 * names the first rank that differs from rank 0, and `what`. All ranks call it
 * at the same place. */
CKRT_EXPORT ckrt_status ckrt_world_compare(uint64_t number, const char *what);
/* Gives `bytes` of every rank to every rank, in their order: `all` has room for
 * ckrt_world_size() times as many. Puts together a tensor that ranks share:
 * TensorInfo::sharing() says which rank has which part. */
CKRT_EXPORT ckrt_status ckrt_world_gather(const void *own, int64_t bytes,
                                          void *all);
/* Ends all ranks at once, with this exit code; returns where there are none. */
CKRT_EXPORT void ckrt_world_abort(int32_t code);
/* Leaves the world, which waits for the others: at the end of the process. */
CKRT_EXPORT void ckrt_world_close(void);

/*--- Tensors (by index in the manifest's order) -----------------------------*/

CKRT_EXPORT int64_t ckrt_tensor_count(const ckrt_session *session);
/* Returns the index of the first tensor of that name, or -1. */
CKRT_EXPORT int64_t ckrt_tensor_find(const ckrt_session *session,
                                     const char *name);
/* Searches the inputs and outputs of one function only; -1 if not found. */
CKRT_EXPORT int64_t ckrt_tensor_find_in(const ckrt_session *session,
                                        const char *function, const char *name);
CKRT_EXPORT const char *ckrt_tensor_name(const ckrt_session *, int64_t tensor);
CKRT_EXPORT const char *ckrt_tensor_role(const ckrt_session *, int64_t tensor);
CKRT_EXPORT ckrt_dtype ckrt_tensor_dtype(const ckrt_session *, int64_t tensor);
CKRT_EXPORT int64_t ckrt_tensor_rank(const ckrt_session *, int64_t tensor);
CKRT_EXPORT const int64_t *ckrt_tensor_shape(const ckrt_session *,
                                             int64_t tensor);
CKRT_EXPORT int64_t ckrt_tensor_elements(const ckrt_session *, int64_t tensor);
/* Copies host data (row-major, `elements` of type `dtype`) to the tensor's own
 * order and type. Converts where every value has an exact or rounded
 * counterpart: any to float types, integers to integers in range; floats to
 * integers are a CKRT_MISMATCH. So are labels and indices beyond what the step
 * takes: nothing is written then. */
CKRT_EXPORT ckrt_status ckrt_tensor_write(ckrt_session *session, int64_t tensor,
                                          const void *data, ckrt_dtype dtype,
                                          int64_t elements);
/* Copies the tensor to a row-major host buffer, converting its elements to
 * `dtype` if that is another type. */
CKRT_EXPORT ckrt_status ckrt_tensor_read(ckrt_session *session, int64_t tensor,
                                         void *data, ckrt_dtype dtype,
                                         int64_t elements);
/* The same of `elements` elements from the element `first` on, in row-major
 * order. */
CKRT_EXPORT ckrt_status ckrt_tensor_read_part(ckrt_session *session,
                                              int64_t tensor, int64_t first,
                                              void *data, ckrt_dtype dtype,
                                              int64_t elements);
/* Begins to copy a tensor of one element, such as a loss, as the runs so far
 * leave it: a device goes on meanwhile, and may be given the next run. One
 * tensor at a time; ckrt_tensor_fetched waits for the copy and converts it. */
CKRT_EXPORT ckrt_status ckrt_tensor_fetch(ckrt_session *session,
                                          int64_t tensor);
CKRT_EXPORT ckrt_status ckrt_tensor_fetched(ckrt_session *session,
                                            int64_t tensor, double *value);
/* Sets *finite to whether all numbers of these `count` tensors are finite;
 * those of integers are. A device looks itself, and one word is copied. */
CKRT_EXPORT ckrt_status ckrt_tensors_finite(ckrt_session *session,
                                            const int64_t *tensors,
                                            int64_t count, int *finite);
/* Fills a scalar or a whole tensor with one value, as ckrt_tensor_write does.
 */
CKRT_EXPORT ckrt_status ckrt_tensor_fill(ckrt_session *session, int64_t tensor,
                                         double value);

/*--- Memory that others use, too --------------------------------------------*/

/* Sessions of a device use its primary context, as CUDA's runtime and PyTorch
 * do: addresses and streams of one are those of the others. A stream is a
 * CUstream of it; NULL or 1 is the default stream, 2 that of the thread. One
 * that is being captured into a graph is refused. All of this is
 * CKRT_INVALID_ARGUMENT on the CPU, but for ckrt_tensor_locate. Since 4. */

/* Where a tensor lies. */
typedef struct ckrt_tensor_place {
  size_t size;            /* sizeof(ckrt_tensor_place) */
  void *data;             /* its first element */
  const int64_t *strides; /* in elements, one a dimension */
  int32_t device;         /* number of the device; -1: the host */
} ckrt_tensor_place;
/* Tells where a tensor lies until the session ends: it never moves. What has
 * the role of a parameter, a state, or frozen keeps its value between runs;
 * other bytes are also used for other things. */
CKRT_EXPORT ckrt_status ckrt_tensor_locate(ckrt_session *session,
                                           int64_t tensor,
                                           ckrt_tensor_place *place);

/* Puts what the session is given from now on behind all that the stream was
 * given so far. */
CKRT_EXPORT ckrt_status ckrt_wait_for_stream(ckrt_session *session,
                                             void *stream);
/* Puts what the stream is given from now on behind all that the session was
 * given so far. The host does not wait. */
CKRT_EXPORT ckrt_status ckrt_let_stream_wait(ckrt_session *session,
                                             void *stream);

/* An array of the caller's in memory of the session's device. */
typedef struct ckrt_device_array {
  size_t size; /* sizeof(ckrt_device_array) */
  void *data;  /* its first element */
  ckrt_dtype dtype;
  int64_t rank;
  const int64_t *shape;
  const int64_t *strides; /* in elements; NULL: row-major */
  /* Whose work made the array, and may use its memory again afterwards: both
   * calls below come behind what it was given so far, and before what it is
   * given from now on. */
  void *stream;
} ckrt_device_array;
/* Copies an array to a tensor, or a tensor to an array, within the device:
 * behind the last run and before the next one; the host does not wait.
 * CKRT_MISMATCH: another type or shape, elements in too many pieces, or memory
 * that is none of this device's. Values are not looked at. */
CKRT_EXPORT ckrt_status ckrt_tensor_write_array(ckrt_session *session,
                                                int64_t tensor,
                                                const ckrt_device_array *array);
CKRT_EXPORT ckrt_status ckrt_tensor_read_array(ckrt_session *session,
                                               int64_t tensor,
                                               const ckrt_device_array *array);
/* Copies an array to the host, in row-major order, and waits for it, but for
 * no run. */
CKRT_EXPORT ckrt_status ckrt_array_read(ckrt_session *session,
                                        const ckrt_device_array *array,
                                        void *data);
/* Sets *finite to whether all numbers of a dense array are finite; those of
 * integers are. Waits for the stream, but for no run. */
CKRT_EXPORT ckrt_status ckrt_array_finite(ckrt_session *session,
                                          const ckrt_device_array *array,
                                          int *finite);

/*--- Checks of a step's behaviour -------------------------------------------*/

/* Returns the end of the highest byte of the arena that any step (or this
 * library) changed since the session's pattern fill. Needs pattern_fill;
 * compares the arena's bytes with the pattern. */
CKRT_EXPORT ckrt_status ckrt_measured_peak(ckrt_session *session,
                                           int64_t *bytes);
/* Fills the bytes outside of persistent tensors with another pattern, to find a
 * written byte that happened to equal the first one. The peak found so far
 * stays. */
CKRT_EXPORT ckrt_status ckrt_pattern_refill(ckrt_session *session,
                                            uint64_t seed);

typedef struct ckrt_allocation_stats {
  size_t size;         /* sizeof(ckrt_allocation_stats) */
  int64_t calls;       /* allocations during steps, of any size, by anyone */
  int64_t large;       /* of these: 64 KiB or more */
  int64_t largest;     /* bytes */
  int64_t large_bytes; /* sum over the large ones */
  char largest_by[64]; /* file name of the object that made the largest */
  int64_t code_bytes; /* large ones that were then made executable: kernels that
                         a library generates at its first call; not counted
                         above but in `calls` */
} ckrt_allocation_stats;
/* Allocations (malloc family, operator new, mmap) made by any loaded object
 * while a step ran. Needs count_allocations, with which a session opens
 * libckopt_allocations.so.1 (it lies beside this library). */
CKRT_EXPORT ckrt_status ckrt_allocations(ckrt_session *session,
                                         ckrt_allocation_stats *stats);

/* Describes a session's device, and the memory that the driver uses there
 * beside the arena. It is measured while the session is made, by the device's
 * free memory before and after, which other processes change, too. A figure is
 * -1 if it is not known because they freed more than the session took. */
typedef struct ckrt_device_report {
  size_t size; /* sizeof(ckrt_device_report) */
  char name[128];
  int32_t ordinal;
  int32_t compute_capability; /* 90 for 9.0 */
  int32_t driver_version;     /* as cuDriverGetVersion: 12040 */
  int32_t multiprocessors;
  int64_t total_bytes;   /* the device's memory */
  int64_t context_bytes; /* taken by a context: measured by a second one that
                            ckrt_device makes and destroys, since free memory
                            before the first is not known; -1 if there is no
                            memory for it */
  int64_t code_bytes;    /* taken by loading the code */
  int64_t library_bytes; /* taken by cuBLASLt and cuDNN */
  int64_t arena_bytes;   /* taken by the arena (planned peak, rounded up) */
  int64_t graph_bytes;   /* taken by the graphs of the functions */
  int64_t pinned_bytes;  /* host memory for copies */
  int64_t local_bytes;   /* most local memory that a thread of a kernel uses;
                            the driver keeps it outside of the arena */
  int32_t registers;     /* most registers of a kernel's thread */
  int32_t kernels;
  int64_t used_bytes; /* in use before anything was loaded: by the session's
                         context and by all other processes and displays,
                         which no call of the driver's tells apart */
  int64_t nccl_bytes; /* taken by NCCL, for a step of several ranks. Since 2 */
} ckrt_device_report;
/* Returns CKRT_INVALID_ARGUMENT on the CPU. Since 2. */
CKRT_EXPORT ckrt_status ckrt_device(ckrt_session *session,
                                    ckrt_device_report *report);

/* Describes a device without a session, for a compiler that makes code for it.
 * Makes no context. Since 4. */
typedef struct ckrt_device_facts {
  size_t size; /* sizeof(ckrt_device_facts) */
  char name[128];
  int32_t compute_capability; /* 90 for 9.0 */
  int32_t driver_version;     /* as cuDriverGetVersion: 12040 */
  int32_t multiprocessors;
} ckrt_device_facts;
CKRT_EXPORT ckrt_status ckrt_describe_device(int32_t ordinal,
                                             ckrt_device_facts *facts);
/* Returns the bytes of a device's memory that are free beside a context of this
 * process. Since 4. */
CKRT_EXPORT ckrt_status ckrt_device_free_bytes(int32_t ordinal, int64_t *bytes);

/* Says which device each rank has: "rank 0 on cuda:0 (NVIDIA ...) of HOST, rank
 * 1 ..."; "" for a step of one process. Valid until the next call on this
 * thread. Since 2. */
CKRT_EXPORT const char *ckrt_rank_devices(ckrt_session *session);

/* Tells who runs each product and convolution that libraries may run, once for
 * each distinct one. Fixed while the session is made, and written to the lock
 * file. CKRT_INVALID_ARGUMENT on the CPU. Since 2. */
CKRT_EXPORT ckrt_status ckrt_library_choices(ckrt_session *session,
                                             ckrt_library_hook hook,
                                             void *user);

/* For code compiled with instrumentation (ckrt_call_done). check_finite: a
 * floating-point result with a NaN or infinity ends the step with
 * CKRT_NON_FINITE and the kernel's and source node's names. verify: results
 * that are recomputed later are hashed (keep != 0: copied) and compared. On a
 * device no instrumentation is needed: kernels then run one by one and their
 * results are copied to the host. */
CKRT_EXPORT ckrt_status ckrt_set_check_finite(ckrt_session *session, int on);
CKRT_EXPORT ckrt_status ckrt_set_verify_remat(ckrt_session *session, int on,
                                              int keep);
/* Called after every kernel call of instrumented code with the seconds it
 * took; NULL turns it off. */
typedef void (*ckrt_profile_hook)(void *user, int64_t call, double seconds);
CKRT_EXPORT ckrt_status ckrt_set_profile(ckrt_session *session,
                                         ckrt_profile_hook hook, void *user);

/* Times launches on a device by its own clock: each distinct launch of the
 * function (kernel or library call, its constant scalars, the bytes behind its
 * pointers) alone, `replays` replays of a graph of `launches` of it after one
 * that is not counted. The hook gets the seconds of one launch, the median over
 * the replays, once for every launch of the function in order; equal launches
 * get one figure. The arena's contents are lost. CKRT_INVALID_ARGUMENT on the
 * CPU, where ckrt_set_profile does it. Since 2. */
typedef void (*ckrt_launch_hook)(void *user, int64_t call, int64_t launch,
                                 double seconds);
CKRT_EXPORT ckrt_status ckrt_time_launches(ckrt_session *session,
                                           const char *function,
                                           int32_t launches, int32_t replays,
                                           ckrt_launch_hook hook, void *user);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CKOPT_RUNTIME_CKRT_H */
