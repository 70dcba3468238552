// Sums, means, extrema and moments over rows, columns and all.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// CHECK: @rows: 9 kernels, 9 as code of the CPU, 9 as PTX
func.func @rows(%a: tensor<5x1xf32>, %b: tensor<5x3xf32>, %c: tensor<5x16xf32>, %d: tensor<5x17xf32>,
    %e: tensor<5x63xf32>, %f: tensor<5x64xf32>, %g: tensor<5x65xf32>, %h: tensor<5x130xf32>, %i: tensor<5x1000xf32>) attributes {test.tolerance = array<f64: 2.0e-5, 2.0e-6>} {
  %0 = ckopt.reduce sum %a {axes = array<i64: 1>, keepdims = false} : (tensor<5x1xf32>) -> tensor<5xf32>
  %1 = ckopt.reduce sum %b {axes = array<i64: 1>, keepdims = false} : (tensor<5x3xf32>) -> tensor<5xf32>
  %2 = ckopt.reduce sum %c {axes = array<i64: 1>, keepdims = false} : (tensor<5x16xf32>) -> tensor<5xf32>
  %3 = ckopt.reduce sum %d {axes = array<i64: 1>, keepdims = false} : (tensor<5x17xf32>) -> tensor<5xf32>
  %4 = ckopt.reduce sum %e {axes = array<i64: 1>, keepdims = false} : (tensor<5x63xf32>) -> tensor<5xf32>
  %5 = ckopt.reduce sum %f {axes = array<i64: 1>, keepdims = false} : (tensor<5x64xf32>) -> tensor<5xf32>
  %6 = ckopt.reduce sum %g {axes = array<i64: 1>, keepdims = false} : (tensor<5x65xf32>) -> tensor<5xf32>
  %7 = ckopt.reduce sum %h {axes = array<i64: 1>, keepdims = false} : (tensor<5x130xf32>) -> tensor<5xf32>
  %8 = ckopt.reduce sum %i {axes = array<i64: 1>, keepdims = false} : (tensor<5x1000xf32>) -> tensor<5xf32>
  return
}

// CHECK: @extrema_of_rows: 21 kernels, 21 as code of the CPU, 21 as PTX
func.func @extrema_of_rows(%a: tensor<5x1xf32>, %b: tensor<5x3xf32>, %c: tensor<5x16xf32>, %d: tensor<5x17xf32>,
    %e: tensor<5x63xf32>, %f: tensor<5x64xf32>, %g: tensor<5x65xf32>, %h: tensor<5x130xf32>, %i: tensor<5x1000xf32>,
    %j: tensor<70x1xf64>, %k: tensor<70x7xf64>, %l: tensor<70x8xf64>, %m: tensor<70x9xf64>, %n: tensor<70x65xf64>,
    %o: tensor<70x1000xf64>, %p: tensor<3x4x20xf32>, %q: tensor<3x20xf32>, %r: tensor<3x20xi64>,
    %s: tensor<3x20xi32>, %t: tensor<3x4x5x6xf32>) {
  %0 = ckopt.reduce max %a {axes = array<i64: 1>, keepdims = true} : (tensor<5x1xf32>) -> tensor<5x1xf32>
  %1 = ckopt.reduce max %b {axes = array<i64: 1>, keepdims = true} : (tensor<5x3xf32>) -> tensor<5x1xf32>
  %2 = ckopt.reduce max %c {axes = array<i64: 1>, keepdims = true} : (tensor<5x16xf32>) -> tensor<5x1xf32>
  %3 = ckopt.reduce max %d {axes = array<i64: 1>, keepdims = true} : (tensor<5x17xf32>) -> tensor<5x1xf32>
  %4 = ckopt.reduce max %e {axes = array<i64: 1>, keepdims = true} : (tensor<5x63xf32>) -> tensor<5x1xf32>
  %5 = ckopt.reduce max %f {axes = array<i64: 1>, keepdims = true} : (tensor<5x64xf32>) -> tensor<5x1xf32>
  %6 = ckopt.reduce max %g {axes = array<i64: 1>, keepdims = true} : (tensor<5x65xf32>) -> tensor<5x1xf32>
  %7 = ckopt.reduce max %h {axes = array<i64: 1>, keepdims = true} : (tensor<5x130xf32>) -> tensor<5x1xf32>
  %8 = ckopt.reduce max %i {axes = array<i64: 1>, keepdims = true} : (tensor<5x1000xf32>) -> tensor<5x1xf32>
  %9 = ckopt.reduce mean %j {axes = array<i64: 1>, keepdims = false} : (tensor<70x1xf64>) -> tensor<70xf64>
  %10 = ckopt.reduce mean %k {axes = array<i64: 1>, keepdims = false} : (tensor<70x7xf64>) -> tensor<70xf64>
  %11 = ckopt.reduce mean %l {axes = array<i64: 1>, keepdims = false} : (tensor<70x8xf64>) -> tensor<70xf64>
  %12 = ckopt.reduce mean %m {axes = array<i64: 1>, keepdims = false} : (tensor<70x9xf64>) -> tensor<70xf64>
  %13 = ckopt.reduce mean %n {axes = array<i64: 1>, keepdims = false} : (tensor<70x65xf64>) -> tensor<70xf64>
  %14 = ckopt.reduce mean %o {axes = array<i64: 1>, keepdims = false} : (tensor<70x1000xf64>) -> tensor<70xf64>
  %15 = ckopt.reduce min %p {axes = array<i64: 2>, keepdims = false} : (tensor<3x4x20xf32>) -> tensor<3x4xf32>
  %16 = ckopt.reduce prod %q {axes = array<i64: 1>, keepdims = false} : (tensor<3x20xf32>) -> tensor<3xf32>
  %17 = ckopt.reduce sum %r {axes = array<i64: 1>, keepdims = false} : (tensor<3x20xi64>) -> tensor<3xi64>
  %18 = ckopt.reduce max %s {axes = array<i64: 1>, keepdims = false} : (tensor<3x20xi32>) -> tensor<3xi32>
  %19 = ckopt.reduce sum %t {axes = array<i64: 1, 3>, keepdims = false} : (tensor<3x4x5x6xf32>) -> tensor<3x5xf32>
  %20 = ckopt.reduce sum %t {axes = array<i64: 1, 2, 3>, keepdims = false} : (tensor<3x4x5x6xf32>) -> tensor<3xf32>
  return
}

// CHECK: @columns: 14 kernels, 14 as code of the CPU, 14 as PTX
func.func @columns(%a: tensor<50x1xf32>, %b: tensor<50x5xf32>, %c: tensor<50x16xf32>, %d: tensor<50x37xf32>,
    %e: tensor<50x64xf32>, %f: tensor<50x100xf32>, %g: tensor<50x200xf32>, %h: tensor<9x1xf64>, %i: tensor<9x5xf64>,
    %j: tensor<9x8xf64>, %k: tensor<9x37xf64>, %l: tensor<9x200xf64>, %m: tensor<3x40x5x33xf32>,
    %n: tensor<3x40x33xf32>) attributes {test.tolerance = array<f64: 2.0e-5, 2.0e-6>} {
  %0 = ckopt.reduce sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<50x1xf32>) -> tensor<1xf32>
  %1 = ckopt.reduce sum %b {axes = array<i64: 0>, keepdims = false} : (tensor<50x5xf32>) -> tensor<5xf32>
  %2 = ckopt.reduce sum %c {axes = array<i64: 0>, keepdims = false} : (tensor<50x16xf32>) -> tensor<16xf32>
  %3 = ckopt.reduce sum %d {axes = array<i64: 0>, keepdims = false} : (tensor<50x37xf32>) -> tensor<37xf32>
  %4 = ckopt.reduce sum %e {axes = array<i64: 0>, keepdims = false} : (tensor<50x64xf32>) -> tensor<64xf32>
  %5 = ckopt.reduce sum %f {axes = array<i64: 0>, keepdims = false} : (tensor<50x100xf32>) -> tensor<100xf32>
  %6 = ckopt.reduce sum %g {axes = array<i64: 0>, keepdims = false} : (tensor<50x200xf32>) -> tensor<200xf32>
  %7 = ckopt.reduce min %h {axes = array<i64: 0>, keepdims = true} : (tensor<9x1xf64>) -> tensor<1x1xf64>
  %8 = ckopt.reduce min %i {axes = array<i64: 0>, keepdims = true} : (tensor<9x5xf64>) -> tensor<1x5xf64>
  %9 = ckopt.reduce min %j {axes = array<i64: 0>, keepdims = true} : (tensor<9x8xf64>) -> tensor<1x8xf64>
  %10 = ckopt.reduce min %k {axes = array<i64: 0>, keepdims = true} : (tensor<9x37xf64>) -> tensor<1x37xf64>
  %11 = ckopt.reduce min %l {axes = array<i64: 0>, keepdims = true} : (tensor<9x200xf64>) -> tensor<1x200xf64>
  %12 = ckopt.reduce sum %m {axes = array<i64: 0, 2>, keepdims = false} : (tensor<3x40x5x33xf32>) -> tensor<40x33xf32>
  %13 = ckopt.reduce mean %n {axes = array<i64: 1>, keepdims = false} : (tensor<3x40x33xf32>) -> tensor<3x33xf32>
  return
}

// Long reductions run in chunks with partial results.
// CHECK: @chunks: 5 kernels, 5 as code of the CPU, 5 as PTX
func.func @chunks(%a: tensor<300000xf32>, %b: tensor<200001xf32>, %c: tensor<500x700xf32>, %d: tensor<5000x40xf32>,
    %e: tensor<9000x3xf64>) attributes {test.tolerance = array<f64: 1.0e-2, 2.0e-5>} {
  %0 = ckopt.reduce sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<300000xf32>) -> tensor<f32>
  %1 = ckopt.reduce mean %b {axes = array<i64: 0>, keepdims = true} : (tensor<200001xf32>) -> tensor<1xf32>
  %2 = ckopt.reduce max %c {axes = array<i64: 0, 1>, keepdims = false} : (tensor<500x700xf32>) -> tensor<f32>
  %3 = ckopt.reduce sum %d {axes = array<i64: 0>, keepdims = false} : (tensor<5000x40xf32>) -> tensor<40xf32>
  %4 = ckopt.reduce sum %e {axes = array<i64: 0>, keepdims = false} : (tensor<9000x3xf64>) -> tensor<3xf64>
  return
}

// Reduced loops between kept ones do not merge: a GPU goes through them as one,
// in chunks that end within them.
// CHECK: @loops: 6 kernels, 6 as code of the CPU, 6 as PTX
func.func @loops(%a: tensor<40x4x50x12xf32>, %b: tensor<7x3x70x5xf32>, %c: tensor<6x2x10x2x20x8xf32>,
    %d: tensor<40x4x50x12xf32> {test.range = array<f64: 99.0, 101.0>},
    %e: tensor<41x3x37x7xf32> {test.range = array<f64: 99.0, 101.0>}, %f: tensor<30x2x20x4xi64>)
    attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-4>} {
  %0 = ckopt.reduce sum %a {axes = array<i64: 0, 2>, keepdims = false} : (tensor<40x4x50x12xf32>) -> tensor<4x12xf32>
  %1 = ckopt.reduce mean %b {axes = array<i64: 0, 2>, keepdims = true} : (tensor<7x3x70x5xf32>) -> tensor<1x3x1x5xf32>
  %2 = ckopt.reduce max %c {axes = array<i64: 0, 2, 4>, keepdims = false} : (tensor<6x2x10x2x20x8xf32>) -> tensor<2x2x8xf32>
  %3:2 = ckopt.moments %d {axes = array<i64: 0, 2>} : (tensor<40x4x50x12xf32>) -> (tensor<4x12xf32>, tensor<4x12xf32>)
  %4:2 = ckopt.moments %e {axes = array<i64: 0, 2>} : (tensor<41x3x37x7xf32>) -> (tensor<3x7xf32>, tensor<3x7xf32>)
  %5 = ckopt.reduce sum %f {axes = array<i64: 0, 2>, keepdims = false} : (tensor<30x2x20x4xi64>) -> tensor<2x4xi64>
  return
}

// Means far from zero must not cancel the variance away.
// CHECK: @moments: 12 kernels, 12 as code of the CPU, 12 as PTX
func.func @moments(%a: tensor<4x20x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.0>},
    %b: tensor<4x20x7x7xf32> {test.range = array<f64: -1.0, 1.0>},
    %c: tensor<8x24x40x40xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.0>},
    %d: tensor<8x6x40x40xf32> {test.range = array<f64: -1.0, 1.0>},
    %e: tensor<5x33xf64> {test.range = array<f64: -1.0, 1.0>},
    %f: tensor<100000xf32> {test.range = array<f64: -1.0, 1.0>},
    %g: tensor<4x20x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: 99.0, 101.0>},
    %h: tensor<4x20x7x7xf32> {test.range = array<f64: 99.0, 101.0>},
    %i: tensor<8x24x40x40xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: 99.0, 101.0>},
    %j: tensor<8x6x40x40xf32> {test.range = array<f64: 99.0, 101.0>},
    %k: tensor<5x33xf64> {test.range = array<f64: 99.0, 101.0>},
    %l: tensor<100000xf32> {test.range = array<f64: 99.0, 101.0>}) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-4>} {
  %0:2 = ckopt.moments %a {axes = array<i64: 0, 2, 3>} : (tensor<4x20x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<20xf32>, tensor<20xf32>)
  %1:2 = ckopt.moments %b {axes = array<i64: 0, 2, 3>} : (tensor<4x20x7x7xf32>) -> (tensor<20xf32>, tensor<20xf32>)
  %2:2 = ckopt.moments %c {axes = array<i64: 0, 2, 3>} : (tensor<8x24x40x40xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<24xf32>, tensor<24xf32>)
  %3:2 = ckopt.moments %d {axes = array<i64: 0, 2, 3>} : (tensor<8x6x40x40xf32>) -> (tensor<6xf32>, tensor<6xf32>)
  %4:2 = ckopt.moments %e {axes = array<i64: 1>} : (tensor<5x33xf64>) -> (tensor<5xf64>, tensor<5xf64>)
  %5:2 = ckopt.moments %f {axes = array<i64: 0>} : (tensor<100000xf32>) -> (tensor<f32>, tensor<f32>)
  %6:2 = ckopt.moments %g {axes = array<i64: 0, 2, 3>} : (tensor<4x20x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<20xf32>, tensor<20xf32>)
  %7:2 = ckopt.moments %h {axes = array<i64: 0, 2, 3>} : (tensor<4x20x7x7xf32>) -> (tensor<20xf32>, tensor<20xf32>)
  %8:2 = ckopt.moments %i {axes = array<i64: 0, 2, 3>} : (tensor<8x24x40x40xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<24xf32>, tensor<24xf32>)
  %9:2 = ckopt.moments %j {axes = array<i64: 0, 2, 3>} : (tensor<8x6x40x40xf32>) -> (tensor<6xf32>, tensor<6xf32>)
  %10:2 = ckopt.moments %k {axes = array<i64: 1>} : (tensor<5x33xf64>) -> (tensor<5xf64>, tensor<5xf64>)
  %11:2 = ckopt.moments %l {axes = array<i64: 0>} : (tensor<100000xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// No elements, one element, one row.
// CHECK: @degenerate: 7 kernels, 7 as code of the CPU, 7 as PTX
func.func @degenerate(%a: tensor<0x4xf32>, %b: tensor<4x0xf32>, %c: tensor<1x1xf32>, %d: tensor<1x7xf32>,
    %e: tensor<0xf32>, %f: tensor<5x1xf32>) {
  %0 = ckopt.reduce sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<0x4xf32>) -> tensor<4xf32>
  %1 = ckopt.reduce sum %b {axes = array<i64: 1>, keepdims = false} : (tensor<4x0xf32>) -> tensor<4xf32>
  %2 = ckopt.reduce sum %b {axes = array<i64: 0>, keepdims = false} : (tensor<4x0xf32>) -> tensor<0xf32>
  %3 = ckopt.reduce sum %c {axes = array<i64: 0, 1>, keepdims = false} : (tensor<1x1xf32>) -> tensor<f32>
  %4 = ckopt.reduce sum %d {axes = array<i64: 0>, keepdims = false} : (tensor<1x7xf32>) -> tensor<7xf32>
  %5 = ckopt.reduce prod %e {axes = array<i64: 0>, keepdims = false} : (tensor<0xf32>) -> tensor<f32>
  %6 = ckopt.reduce mean %f {axes = array<i64: 1>, keepdims = true} : (tensor<5x1xf32>) -> tensor<5x1xf32>
  return
}

// CHECK: @halves: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @halves(%a: tensor<5x100xf16>, %b: tensor<50x100xbf16>) {
  %0 = ckopt.reduce sum %a {axes = array<i64: 1>, keepdims = false} : (tensor<5x100xf16>) -> tensor<5xf16>
  %1 = ckopt.reduce mean %b {axes = array<i64: 0>, keepdims = false} : (tensor<50x100xbf16>) -> tensor<100xbf16>
  return
}

// max and min give NaN where one is, in every lane and accumulator: each row has one at
// another place.
// CHECK: @not_a_number: 4 kernels, 4 as code of the CPU, 4 as PTX
func.func @not_a_number(%a: tensor<7x1xi64> {test.value = dense<[[0], [15], [16], [63], [64], [90], [99]]> : tensor<7x1xi64>}) {
  %i = ckopt.iota {axis = 1 : i64} : tensor<7x100xi64>
  %nan = ckopt.constant dense<0x7FC00000> : tensor<f32>
  %one = ckopt.constant dense<1.0> : tensor<f32>
  %0 = ckopt.compare eq %i, %a : (tensor<7x100xi64>, tensor<7x1xi64>) -> tensor<7x100xi1>
  %1 = ckopt.select %0, %nan, %one : (tensor<7x100xi1>, tensor<f32>, tensor<f32>) -> tensor<7x100xf32>
  %2 = ckopt.reduce max %1 {axes = array<i64: 1>, keepdims = false} : (tensor<7x100xf32>) -> tensor<7xf32>
  %3 = ckopt.reduce min %1 {axes = array<i64: 1>, keepdims = false} : (tensor<7x100xf32>) -> tensor<7xf32>
  return
}

// Several reductions with a shared prologue: the pair of batch norm's gradient.
// CHECK: @shared_loops: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @shared_loops(%g: tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, %x: tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<20x1x1xf32>)
    -> (tensor<20xf32>, tensor<20xf32>)
    attributes {ckopt.kernel = "reduction", test.tolerance = array<f64: 1.0e-4, 2.0e-6>} {
  %0 = ckopt.sub %x, %m : (tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<20x1x1xf32>) -> tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %g, %0 : (tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<20xf32>
  %3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<4x20x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<20xf32>
  return %2, %3 : tensor<20xf32>, tensor<20xf32>
}

// The statistics of a concatenation of channels (DenseNet).
// CHECK: @concatenation: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @concatenation(%a: tensor<2x64x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<2x32x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %c: tensor<2x20x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<116xf32>, tensor<116xf32>)
    attributes {ckopt.kernel = "reduction", test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.concat %a, %b, %c {axis = 1 : i64} : (tensor<2x64x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x32x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x116x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1:2 = ckopt.moments %0 {axes = array<i64: 0, 2, 3>} : (tensor<2x116x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<116xf32>, tensor<116xf32>)
  return %1#0, %1#1 : tensor<116xf32>, tensor<116xf32>
}

// What depends on the channel alone is computed once a range.
// CHECK: @column_cache: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @column_cache(%x: tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: 0.1, 1.0>}, %m: tensor<100x1x1xf32> {test.range = array<f64: 0.1, 1.0>})
    -> tensor<100xf32> attributes {ckopt.kernel = "reduction", test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %0 = ckopt.rsqrt %m : (tensor<100x1x1xf32>) -> tensor<100x1x1xf32>
  %1 = ckopt.mul %x, %0 : (tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<100x1x1xf32>) -> tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<100xf32>
  return %2 : tensor<100xf32>
}

// CHECK: @column_cache_elementwise: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @column_cache_elementwise(%x: tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: 0.1, 1.0>}, %m: tensor<100x1x1xf32> {test.range = array<f64: 0.1, 1.0>})
    -> tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %0 = ckopt.rsqrt %m : (tensor<100x1x1xf32>) -> tensor<100x1x1xf32>
  %1 = ckopt.mul %x, %0 : (tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<100x1x1xf32>) -> tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %1 : tensor<2x100x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
}
