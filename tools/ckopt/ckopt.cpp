//===- ckopt.cpp - compiles, trains and runs ONNX models ------------------===//
#include "ckopt/Driver/Driver.h"

int main(int argc, char **argv) { return ckopt::driverMain(argc, argv); }
