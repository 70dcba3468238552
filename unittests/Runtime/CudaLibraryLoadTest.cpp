//===- CudaLibraryLoadTest.cpp - libraries when a step is loaded ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests which algorithms are chosen, the contents of the lock file, which cases
// are refused and how failures are reported.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/LockFile.h"
#include "CudaLibraryFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

TEST_F(CudaLibrary, SaysWhatLibrariesDoNotDo) {
  PrimitiveDesc conv;
  conv.kind = PrimitiveKind::ConvForward;
  conv.conv.batch = conv.conv.inChannels = conv.conv.outChannels = 1;
  conv.conv.in[0] = conv.conv.in[1] = 4;
  conv.conv.kernel[0] = conv.conv.kernel[1] = 2;
  conv.conv.out[0] = conv.conv.out[1] = 3;
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
      {matmul(strided), libraries(), 4096, "no products over such strides"},
      {matmul(small), libraries(), 512,
       "no algorithm for it in 512 bytes of workspace (status 15: "
       "CUBLAS_STATUS_NOT_SUPPORTED; a larger --cuda-workspace may help)"},
      {conv, libraries(), 256, "no deterministic engine for it in 256 bytes"},
      {matmul(small),
       {{"CKOPT_CUBLASLT", "/none/lt.so"}},
       4096,
       "not here (/none/lt.so"},
      {conv, {{"CKOPT_CUDNN", "/none/dnn.so"}}, 4096, "--cuda-libs=none"},
  };
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
  // The second load queries nothing and changes nothing.
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
  load({}, CKRT_LOCK, "cannot run here: cuBLASLt has no such algorithm");
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

// An engine of a precision is no other precision's.
TEST_F(CudaLibrary, TheLockFileKnowsPrecisions) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::ConvForward;
  desc.conv.batch = desc.conv.inChannels = desc.conv.outChannels = 1;
  std::string error;
  auto load = [&](ProductPrecision precision, ckrt_status expected) {
    desc.precision = precision;
    std::string step = folder + "/step";
    ASSERT_TRUE(
        writeDeviceArtifact(step, manifestOf(desc), "", nullptr, 0, error))
        << error;
    inChild(libraries(), [&] {
      ckrt_program *program = nullptr;
      ckrt_session *session = nullptr;
      ASSERT_EQ(ckrt_program_load_file(step.c_str(), &program), CKRT_OK)
          << lastError();
      EXPECT_EQ(ckrt_session_create(program, nullptr, &session), expected)
          << lastError();
      ckrt_session_destroy(session);
      ckrt_program_destroy(program);
    });
    expectClean();
  };
  load(ProductPrecision::F32, CKRT_OK);
  load(ProductPrecision::TF32, CKRT_OK);
  std::string lock = folder + "/step.lock", first = read(lock);
  for (const char *line :
       {"\nalgorithm convolution_f32_1x1x", " 4;2=4\n",
        "\nalgorithm convolution_f32_by_tf32_1x1x", " 3;2=3\n"})
    EXPECT_NE(first.find(line), std::string::npos) << first;
  load(ProductPrecision::TF32, CKRT_OK);
  EXPECT_EQ(count("cudnnBackendGetAttribute engines"), 0) << "it is known";
  EXPECT_EQ(read(lock), first);
  // Engines with other knobs, that round to halves or are not
  // deterministic, that are not there, and what is no engine.
  size_t at = first.find("convolution_f32_by_tf32");
  ASSERT_NE(at, std::string::npos) << first;
  std::string key = first.substr(at, first.find(' ', at) - at);
  for (const char *spoilt :
       {"3;2=1", "3;2=", "3;2", "3;2=3,", "3,2=3", "1;2=1", "0;2=0", "9;2=9",
        "x", ";2=3", "3;7=3", "3;2=3x", "03;2=3"}) {
    cuda::LockFile changed;
    ASSERT_TRUE(changed.read(lock, error)) << error;
    changed.setAlgorithm(key, spoilt);
    std::filesystem::remove(lock);
    ASSERT_EQ(changed.write(error), cuda::LockFile::Written::Yes) << error;
    load(ProductPrecision::TF32, CKRT_LOCK);
    load(ProductPrecision::F32, CKRT_OK);
  }
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
    EXPECT_EQ(on.status, CKRT_NO_LIBRARY);
    EXPECT_NE(lastError().find("cannot launch matmul f32 2x3x4 (from "
                               "/node/library): cublasLtMatmul gives status "
                               "14: CUBLAS_STATUS_OF_STANDIN"),
              std::string::npos)
        << lastError();
    EXPECT_NE(lastError().find("bytes of the device are free)"),
              std::string::npos)
        << lastError();
  });
  expectClean();
  // The second call is the one that is captured.
  inChild(libraries({{"CKOPT_STANDIN_FAIL", "cublasLtMatmul:2:1"}}), [&] {
    OnDevice on(manifestOf(matmul(plain(2, 3, 4))));
    EXPECT_EQ(on.status, CKRT_NO_LIBRARY) << lastError();
  });
  expectClean();
  // When it is loaded, and when it is replayed.
  inChild(libraries({{"CKOPT_STANDIN_FAIL", "kernel=cublasLtMatmul:1:700"}}),
          [&] {
            OnDevice on(manifestOf(matmul(plain(2, 3, 4))));
            EXPECT_EQ(on.status, CKRT_KERNEL);
            EXPECT_NE(lastError().find("matmul f32 2x3x4 (from /node/library)"),
                      std::string::npos)
                << lastError();
          });
  expectClean();
  inChild(libraries({{"CKOPT_STANDIN_FAIL", "kernel=cublasLtMatmul:2+:700"}}),
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
