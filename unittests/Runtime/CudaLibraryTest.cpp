//===- CudaLibraryTest.cpp - products and convolutions by libraries -------===//
//
// Against plain loops over the descriptor's own strides; small whole numbers,
// so that any order of sums gives the same. The stand-in plays the libraries.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/cuda/LockFile.h"
#include "CudaFixture.h"

#include <functional>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

std::string lastError() { return ckrt_last_error(); }

/// Extents that a matrix of the descriptor reaches.
int64_t reach(std::initializer_list<std::pair<int64_t, int64_t>> dims) {
  int64_t last = 0;
  for (auto [extent, stride] : dims)
    last += (extent - 1) * stride;
  return last + 1;
}

struct Sizes {
  int64_t elements[3];
};

Sizes sizesOf(const PrimitiveDesc &desc) {
  if (desc.kind == PrimitiveKind::MatMul) {
    const MatMulDesc &m = desc.matmul;
    int64_t b0 = m.batch[0], b1 = m.batch[1];
    return {{reach({{b0, m.aBatch[0]},
                    {b1, m.aBatch[1]},
                    {m.m, m.aRow},
                    {m.k, m.aCol}}),
             reach({{b0, m.bBatch[0]},
                    {b1, m.bBatch[1]},
                    {m.k, m.bRow},
                    {m.n, m.bCol}}),
             reach({{b0, m.cBatch[0]},
                    {b1, m.cBatch[1]},
                    {m.m, m.cRow},
                    {m.n, m.cCol}})}};
  }
  const ConvDesc &c = desc.conv;
  int64_t x = c.batch * c.inChannels, y = c.batch * c.outChannels;
  int64_t w = c.outChannels * c.inChannels / c.groups;
  for (int64_t d = 0; d < c.rank; ++d)
    x *= c.in[d], y *= c.out[d], w *= c.kernel[d];
  if (desc.kind == PrimitiveKind::ConvForward)
    return {{x, w, y}};
  if (desc.kind == PrimitiveKind::ConvInputGrad)
    return {{y, w, x}};
  return {{x, y, w}};
}

void referenceMatMul(const MatMulDesc &m, const float *a, const float *b,
                     float *c) {
  for (int64_t i = 0; i < m.batch[0]; ++i)
    for (int64_t j = 0; j < m.batch[1]; ++j)
      for (int64_t r = 0; r < m.m; ++r)
        for (int64_t s = 0; s < m.n; ++s) {
          float sum = 0;
          for (int64_t k = 0; k < m.k; ++k)
            sum +=
                a[i * m.aBatch[0] + j * m.aBatch[1] + r * m.aRow + k * m.aCol] *
                b[i * m.bBatch[0] + j * m.bBatch[1] + k * m.bRow + s * m.bCol];
          c[i * m.cBatch[0] + j * m.cBatch[1] + r * m.cRow + s * m.cCol] = sum;
        }
}

/// Index into an activation of the descriptor's order.
int64_t place(const ConvDesc &c, int64_t channels, const int64_t *extents,
              int64_t n, int64_t channel, const int64_t *at) {
  int64_t points = 1, point = 0;
  for (int64_t d = 0; d < c.rank; ++d) {
    points *= extents[d];
    point = point * extents[d] + at[d];
  }
  return c.channelsLast ? (n * points + point) * channels + channel
                        : (n * channels + channel) * points + point;
}

/// All products of the convolution: which of x, w, y is written is `kind`'s.
void referenceConv(const PrimitiveDesc &desc, const float *first,
                   const float *second, float *result) {
  const ConvDesc &c = desc.conv;
  auto extent = [&](const int64_t *of, int64_t d) {
    return d < c.rank ? of[d] : 1;
  };
  int64_t perGroup = c.inChannels / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t k = 0; k < c.outChannels; ++k)
      for (int64_t g = 0; g < perGroup; ++g)
        for (int64_t o = 0;
             o < extent(c.out, 0) * extent(c.out, 1) * extent(c.out, 2); ++o)
          for (int64_t t = 0; t < extent(c.kernel, 0) * extent(c.kernel, 1) *
                                      extent(c.kernel, 2);
               ++t) {
            int64_t out[3], in[3], taps[3], oLeft = o, tLeft = t, weight = 0;
            bool inside = true;
            for (int64_t d = c.rank - 1; d >= 0; --d) {
              out[d] = oLeft % c.out[d], oLeft /= c.out[d];
              taps[d] = tLeft % c.kernel[d], tLeft /= c.kernel[d];
              in[d] = out[d] * c.strides[d] - c.padsLo[d] +
                      taps[d] * c.dilations[d];
              inside &= in[d] >= 0 && in[d] < c.in[d];
            }
            if (!inside)
              continue;
            weight = (k * perGroup + g) * extent(c.kernel, 0) *
                         extent(c.kernel, 1) * extent(c.kernel, 2) +
                     t;
            int64_t channel = k / (c.outChannels / c.groups) * perGroup + g;
            int64_t x = place(c, c.inChannels, c.in, n, channel, in);
            int64_t y = place(c, c.outChannels, c.out, n, k, out);
            if (desc.kind == PrimitiveKind::ConvForward)
              result[y] += first[x] * second[weight];
            else if (desc.kind == PrimitiveKind::ConvInputGrad)
              result[x] += first[y] * second[weight];
            else
              result[weight] += first[x] * second[y];
          }
}

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// One call of the primitive: operands a and b, result c, 4 KiB of workspace.
Manifest manifestOf(const PrimitiveDesc &desc) {
  Manifest m = deviceManifest();
  m.kernels.clear(), m.calls.clear();
  m.functions = {{"step", "ckopt_fn_step", {0, 1}, {2}}};
  m.tensors.clear();
  Sizes sizes = sizesOf(desc);
  int64_t at = 0;
  CallInfo call;
  call.source = "/node/library";
  call.primitive = 0;
  LaunchInfo launch;
  launch.primitive = 0;
  const TensorRole roles[] = {TensorRole::Input, TensorRole::Parameter,
                              TensorRole::Output};
  for (int i = 0; i < 3; ++i) {
    int64_t count = sizes.elements[i];
    m.tensors.push_back(tensor(i == 0   ? "a"
                               : i == 1 ? "b"
                                        : "c",
                               roles[i], DType::F32, {count}, at));
    launch.pointers.push_back({at, count * 4});
    at += aligned(count * 4);
  }
  launch.scratchOffset = call.workspaceOffset = at;
  call.workspaceBytes = 4096;
  m.arenaBytes = at + 4096;
  call.results = {{DType::F32, m.tensors[2].offset, m.tensors[2].bytes}};
  call.launches = {launch};
  m.calls = {call};
  m.primitives = {desc};
  return m;
}

PrimitiveDesc matmul(MatMulDesc m) {
  PrimitiveDesc desc;
  desc.matmul = m;
  return desc;
}

/// A row-major product.
MatMulDesc plain(int64_t m, int64_t n, int64_t k) {
  MatMulDesc d;
  d.m = m, d.n = n, d.k = k;
  d.aRow = k, d.aCol = 1, d.bRow = n, d.bCol = 1, d.cRow = n, d.cCol = 1;
  return d;
}

class CudaLibrary : public Cuda {
protected:
  Environment libraries(Environment more = {}) {
    more.insert(more.begin(), {{"CKOPT_CUBLASLT", CKOPT_STANDIN},
                               {"CKOPT_CUDNN", CKOPT_STANDIN}});
    return more;
  }

  void expectEqual(const PrimitiveDesc &desc) {
    ASSERT_EQ(check(desc), "");
    inChild(libraries(), [&] {
      Sizes sizes = sizesOf(desc);
      std::vector<float> values[3];
      for (int i = 0; i < 3; ++i)
        values[i].resize(static_cast<size_t>(sizes.elements[i]));
      for (int i = 0; i < 2; ++i)
        for (size_t e = 0; e < values[i].size(); ++e)
          values[i][e] = static_cast<float>((e * 7 + i * 3) % 11) - 5;
      OnDevice on(manifestOf(desc));
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      for (int i = 0; i < 3; ++i)
        ASSERT_EQ(ckrt_tensor_write(on.session, i, values[i].data(), CKRT_F32,
                                    sizes.elements[i]),
                  CKRT_OK);
      ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK) << lastError();
      std::vector<float> got(values[2].size());
      ASSERT_EQ(ckrt_tensor_read(on.session, 2, got.data(), CKRT_F32,
                                 sizes.elements[2]),
                CKRT_OK)
          << lastError();
      if (desc.kind == PrimitiveKind::MatMul)
        referenceMatMul(desc.matmul, values[0].data(), values[1].data(),
                        values[2].data());
      else
        referenceConv(desc, values[0].data(), values[1].data(),
                      values[2].data());
      EXPECT_EQ(got, values[2]) << describe(desc);
    });
    expectClean();
  }
};

} // namespace

TEST_F(CudaLibrary, ProductsOfAllOrders) {
  MatMulDesc d = plain(5, 7, 3);
  expectEqual(matmul(d));
  d.aRow = 1, d.aCol = 5; // first transposed
  expectEqual(matmul(d));
  d.bRow = 1, d.bCol = 3; // both
  expectEqual(matmul(d));
  d.cRow = 1, d.cCol = 5; // into a column-major result
  expectEqual(matmul(d));
  d = plain(5, 7, 3);
  d.aRow = 10, d.bRow = 9, d.cRow = 8; // padded rows
  expectEqual(matmul(d));
  for (auto [m, n, k] : {std::tuple(1, 7, 3), std::tuple(5, 1, 3),
                         std::tuple(5, 7, 1), std::tuple(1, 1, 1)})
    expectEqual(matmul(plain(m, n, k)));
}

TEST_F(CudaLibrary, ProductsInBatches) {
  MatMulDesc d = plain(2, 3, 4);
  d.batch[1] = 5;
  d.aBatch[1] = 8, d.bBatch[1] = 12, d.cBatch[1] = 6;
  expectEqual(matmul(d));
  EXPECT_EQ(count("cublasLtMatmul\n") + count("execute cublasLtMatmul"), 1);
  d.bBatch[1] = 0; // one operand for all
  expectEqual(matmul(d));
  d = plain(2, 3, 4);
  d.batch[0] = 2, d.batch[1] = 3; // two that fold into one
  d.aBatch[0] = 24, d.bBatch[0] = 36, d.cBatch[0] = 18;
  d.aBatch[1] = 8, d.bBatch[1] = 12, d.cBatch[1] = 6;
  expectEqual(matmul(d));
  EXPECT_EQ(count("execute cublasLtMatmul"), 1);
  // Heads in place: [B, T, H, D] times [B, T, H, D] transposed.
  d = MatMulDesc();
  d.m = 4, d.n = 4, d.k = 3;
  d.batch[0] = 2, d.batch[1] = 5;
  d.aBatch[0] = d.bBatch[0] = 4 * 5 * 3, d.aBatch[1] = d.bBatch[1] = 3;
  d.aRow = 15, d.aCol = 1, d.bRow = 1, d.bCol = 15;
  d.cBatch[0] = 80, d.cBatch[1] = 16, d.cRow = 4, d.cCol = 1;
  expectEqual(matmul(d));
  EXPECT_EQ(count("execute cublasLtMatmul"), 2) << "a launch for each B";
  // 60 floats between them: addresses are multiples of 16 bytes.
  EXPECT_EQ(count("cublasLtMatmulAlgoGetHeuristic workspace 4096 alignment 16"),
            1);
}

TEST_F(CudaLibrary, ConvolutionsAndTheirGradients) {
  ConvDesc c;
  c.batch = 2, c.inChannels = 4, c.outChannels = 6;
  c.in[0] = 5, c.in[1] = 7;
  c.kernel[0] = 3, c.kernel[1] = 2;
  c.strides[0] = 2, c.dilations[1] = 2;
  c.padsLo[0] = c.padsHi[0] = 1, c.padsLo[1] = c.padsHi[1] = 1;
  c.out[0] = 3, c.out[1] = 7;
  for (PrimitiveKind kind :
       {PrimitiveKind::ConvForward, PrimitiveKind::ConvInputGrad,
        PrimitiveKind::ConvWeightGrad})
    for (bool channelsLast : {false, true})
      for (int64_t groups : {1, 2}) {
        PrimitiveDesc desc;
        desc.kind = kind;
        desc.conv = c;
        desc.conv.channelsLast = channelsLast;
        desc.conv.groups = groups;
        expectEqual(desc);
        EXPECT_EQ(count("execute cudnnTransformTensor"), channelsLast);
      }
  PrimitiveDesc line;
  line.kind = PrimitiveKind::ConvForward;
  line.conv.rank = 1, line.conv.batch = 2;
  line.conv.inChannels = 3, line.conv.outChannels = 2;
  line.conv.in[0] = 9, line.conv.kernel[0] = 3, line.conv.out[0] = 7;
  for (bool channelsLast : {false, true}) {
    line.conv.channelsLast = channelsLast;
    expectEqual(line);
  }
  line.conv.rank = 3;
  line.conv.in[1] = 4, line.conv.kernel[1] = 2, line.conv.out[1] = 3;
  line.conv.in[2] = 3, line.conv.kernel[2] = 3, line.conv.out[2] = 1;
  expectEqual(line);
}

TEST_F(CudaLibrary, SaysWhatLibrariesDoNotDo) {
  PrimitiveDesc uneven;
  uneven.kind = PrimitiveKind::ConvForward;
  uneven.conv.batch = uneven.conv.inChannels = uneven.conv.outChannels = 1;
  uneven.conv.in[0] = uneven.conv.in[1] = 4;
  uneven.conv.kernel[0] = uneven.conv.kernel[1] = 2;
  uneven.conv.padsHi[0] = 1;
  uneven.conv.out[0] = 4, uneven.conv.out[1] = 3;
  MatMulDesc strided = plain(2, 3, 4);
  strided.aRow = 8, strided.aCol = 2;
  MatMulDesc small = plain(2, 3, 4);
  struct Case {
    PrimitiveDesc desc;
    Environment environment;
    int64_t workspace;
    const char *text;
  };
  const Case cases[] = {
      {uneven, libraries(), 4096, "padding that differs"},
      {matmul(strided), libraries(), 4096, "no products over such strides"},
      {matmul(small), libraries(), 512, "no algorithm for it in 512 bytes"},
      {matmul(small),
       {{"CKOPT_CUBLASLT", "/none/lt.so"}},
       4096,
       "not here (/none/lt.so"},
      {uneven, {{"CKOPT_CUDNN", "/none/dnn.so"}}, 4096, "--cuda-libs=none"},
  };
  EXPECT_NE(cudaLibraryRefuses(uneven), "");
  EXPECT_NE(cudaLibraryRefuses(matmul(strided)), "");
  EXPECT_EQ(cudaLibraryRefuses(matmul(small)), "");
  PrimitiveDesc integers = matmul(small);
  integers.dtype = DType::I32;
  EXPECT_NE(cudaLibraryRefuses(integers), "");
  for (const Case &c : cases) {
    inChild(c.environment, [&] {
      Manifest m = manifestOf(c.desc);
      m.calls[0].workspaceBytes = c.workspace;
      OnDevice on(m);
      EXPECT_EQ(on.status, CKRT_NO_LIBRARY);
      EXPECT_NE(lastError().find(c.text), std::string::npos) << lastError();
    });
    expectClean();
  }
}

TEST_F(CudaLibrary, ALockFileFixesAlgorithms) {
  std::string step = folder + "/step", lock = step + ".lock", error;
  Manifest m = manifestOf(matmul(plain(2, 3, 4)));
  PrimitiveDesc conv;
  conv.kind = PrimitiveKind::ConvForward;
  conv.conv.batch = conv.conv.inChannels = conv.conv.outChannels = 1;
  conv.conv.kernel[0] = conv.conv.kernel[1] = 1;
  m.primitives.push_back(conv);
  CallInfo call = m.calls[0];
  call.launches[0].primitive = 1;
  m.calls.push_back(call);
  ASSERT_TRUE(writeDeviceArtifact(step, m, "", nullptr, 0, error)) << error;
  // The status of a session on the artifact; its text in `error`.
  auto load = [&](Environment environment, ckrt_status expected,
                  const std::string &text) {
    inChild(libraries(std::move(environment)), [&] {
      ckrt_program *program = nullptr;
      ckrt_session *session = nullptr;
      ASSERT_EQ(ckrt_program_load_file(step.c_str(), &program), CKRT_OK)
          << lastError();
      EXPECT_EQ(ckrt_session_create(program, nullptr, &session), expected)
          << lastError();
      if (!text.empty())
        EXPECT_NE(lastError().find(text), std::string::npos) << lastError();
      ckrt_session_destroy(session);
      ckrt_program_destroy(program);
    });
    expectClean();
  };
  load({}, CKRT_OK, "");
  std::string first = read(lock);
  for (const char *line :
       {"ckopt-lock 1\n", "\ndevice Stand-in 0\n", "\ndriver 12040\n",
        "\ncublaslt 120400\n", "\ncudnn 120400\n",
        "\nalgorithm matmul_f32_2x3x4_", "\nalgorithm convolution_f32_1x1x1x1"})
    EXPECT_NE(first.find(line), std::string::npos) << first;
  EXPECT_EQ(count("cublasLtMatmulAlgoGetHeuristic"), 1);
  // The second load asks for nothing and changes nothing.
  load({}, CKRT_OK, "");
  EXPECT_EQ(count("cublasLtMatmulAlgoGetHeuristic"), 0);
  EXPECT_EQ(count("cublasLtMatmulAlgoCheck"), 1);
  EXPECT_EQ(read(lock), first);
  load({{"CKOPT_STANDIN_LIBRARY", "120500"}}, CKRT_LOCK,
       "was made with cublaslt 120400, here it is 120500");
  load({{"CKOPT_STANDIN_DRIVER", "12050"}}, CKRT_LOCK, "driver 12040");
  load({{"CKOPT_STANDIN_SM", "100"}}, CKRT_LOCK, "compute_capability 90");
  // An algorithm that is not there any more; then damaged files.
  auto put = [&](const std::string &text) {
    std::ofstream(lock, std::ios::binary) << text;
  };
  std::string start = "algorithm ";
  size_t at = first.find(start + "matmul_f32_2x3x4_");
  ASSERT_NE(at, std::string::npos) << first;
  std::string key = first.substr(at + start.size());
  key = key.substr(0, key.find(' '));
  cuda::LockFile changed;
  ASSERT_TRUE(changed.read(lock, error)) << error;
  std::string other = changed.algorithm(key);
  ASSERT_EQ(other.substr(0, 2), "07") << other;
  other[1] = '9';
  changed.setAlgorithm(key, other);
  std::filesystem::remove(lock);
  ASSERT_EQ(changed.write(error), cuda::LockFile::Written::Yes) << error;
  load({}, CKRT_LOCK, "cannot run here");
  // Cut within a line and between two; a line that is gone; a changed one.
  std::string gone = first, flipped = first;
  at = gone.find("\ndriver 12040");
  ASSERT_NE(at, std::string::npos) << first;
  gone.erase(at, gone.find('\n', at + 1) - at);
  ++flipped[flipped.find(key) + key.size() - 1];
  for (const std::string &text :
       {first.substr(0, first.size() - 1),
        first.substr(0, first.rfind("\nsum ") + 1),
        first.substr(0, first.find('\n') + 1), gone, flipped,
        std::string("hello\n"), std::string(), first + "algorithm\n"}) {
    put(text);
    load({}, CKRT_LOCK, "no lock file of ckopt, or damaged");
  }
  put(first);
  load({}, CKRT_OK, "");
  EXPECT_EQ(read(lock), first) << "a failed load must not touch the file";
}

// The stand-in's libraries write nothing to their workspace, which lies at the
// end of the arena here.
TEST_F(CudaLibrary, WorkspaceThatALibraryLeavesAloneIsNoMistake) {
  std::string step = folder + "/step", out = folder + "/out", error;
  Manifest m = manifestOf(matmul(plain(2, 2, 1)));
  m.tensors[0].role = TensorRole::State, m.tensors[1].role = TensorRole::State;
  auto checkArena = [&] {
    ASSERT_TRUE(writeDeviceArtifact(step, m, "", nullptr, 0, error)) << error;
    inChild(libraries(), [&] {
      std::string command = std::string(CKOPT_RUN) + " " + step +
                            " --lock= --check-arena >" + out + " 2>&1";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    });
  };
  checkArena();
  EXPECT_NE(read(out).find("workspace that a library did not use"),
            std::string::npos)
      << read(out);
  EXPECT_FALSE(std::filesystem::exists(step + ".lock"))
      << "--lock= writes none";
}

TEST_F(CudaLibrary, AFailingCallIsNamed) {
  inChild(libraries({{"CKOPT_STANDIN_FAIL", "cublasLtMatmul:1:1"}}), [&] {
    OnDevice on(manifestOf(matmul(plain(2, 3, 4))));
    EXPECT_EQ(on.status, CKRT_EXECUTION);
    EXPECT_NE(lastError().find("cannot launch matmul f32 2x3x4 (from "
                               "/node/library): cublasLtMatmul gives status"),
              std::string::npos)
        << lastError();
  });
  expectClean();
  inChild(libraries({{"CKOPT_STANDIN_FAIL", "kernel=cublasLtMatmul:1+:700"}}),
          [&] {
            OnDevice on(manifestOf(matmul(plain(2, 3, 4))));
            ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK);
            EXPECT_EQ(ckrt_synchronize(on.session), CKRT_KERNEL);
            EXPECT_NE(lastError().find("matmul f32 2x3x4 (from /node/library) "
                                       "fails when it runs alone"),
                      std::string::npos)
                << lastError();
          });
  expectClean();
}
