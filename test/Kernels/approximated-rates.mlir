// Plans of a step whose functions the device approximates count them so.
// RUN: ckopt-opt %s --split-input-file --annotate-kernels="target=cuda device-rates=h200" | FileCheck %s

// CHECK: ckopt.rates = {approximates = 1.000000e+00
module attributes {ckopt.approximates} {
}

// -----

// CHECK: ckopt.rates = {approximates = 0.000000e+00
module {
}
