//===- InputBufferTest.cpp - pipes, devices and folders as files ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/InputBuffer.h"
#include "TestFiles.h"
#include "ckopt/Support/ArrayFile.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Support/StoredTensors.h"
#include <sys/stat.h>
#include <unistd.h>

using namespace ckopt;

class InputBuffers : public FilesTest {};

TEST_F(InputBuffers, NothingWaitsForAPipe) {
  // Nobody writes into this one: a reader that opens it never returns.
  const std::string pipe = file("x.npy");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string &text :
       {textOf(readInput(pipe)), textOf(readNpy(pipe)), textOf(mapNpy(pipe)),
        textOf(NpzReader::open(pipe, "")), textOf(StoredTensors::open(pipe)),
        textOf(mapNumbers(pipe, DType::U16))})
    EXPECT_EQ(text, "cannot read '" + pipe +
                        "': it is a pipe or device, and no regular file");
  expectContains(textOf(readInput("/dev/zero")), "no regular file");
  expectContains(textOf(readInput(file(""))), "directory");
  expectContains(textOf(readInput(file("missing"))), "No such file");
}

TEST_F(InputBuffers, WhatAShellHasOpenedIsRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "text", 4), 4);
  ::close(ends[1]);
  auto buffer = valueOf(readInput("/dev/fd/" + std::to_string(ends[0]), true));
  EXPECT_EQ(buffer->getBuffer(), "text");
  ::close(ends[0]);
}
