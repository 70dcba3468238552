// Updates of elements by index: many may meet at one, and each order of blocks gives
// the same bits.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// Many updates meet at few elements.
// CHECK: @kinds: 13 kernels, 13 as code of the CPU, 13 as PTX
func.func @kinds(%a: tensor<5x37xf32>, %b: tensor<12x37xi64> {test.range = array<f64: -5.0, 5.0>},
    %c: tensor<12x37xf32> {test.range = array<f64: -2.0, 2.0>}, %d: tensor<5x3xui8>,
    %e: tensor<9x3xi64> {test.range = array<f64: -5.0, 5.0>}, %f: tensor<9x3xui8>, %g: tensor<4x6xi32>,
    %h: tensor<4x15xi32> {test.range = array<f64: -6.0, 6.0>}, %i: tensor<4x15xi32>, %j: tensor<5x20xf16>,
    %k: tensor<9x20xi64> {test.range = array<f64: -5.0, 5.0>},
    %l: tensor<9x20xf16> {test.range = array<f64: -2.0, 2.0>}) {
  %0 = ckopt.scatter_elements set %a, %b, %c {axis = 0 : i64} : (tensor<5x37xf32>, tensor<12x37xi64>, tensor<12x37xf32>) -> tensor<5x37xf32>
  %1 = ckopt.scatter_elements set %d, %e, %f {axis = 0 : i64} : (tensor<5x3xui8>, tensor<9x3xi64>, tensor<9x3xui8>) -> tensor<5x3xui8>
  %2 = ckopt.scatter_elements add %a, %b, %c {axis = 0 : i64} : (tensor<5x37xf32>, tensor<12x37xi64>, tensor<12x37xf32>) -> tensor<5x37xf32>
  %3 = ckopt.scatter_elements add %d, %e, %f {axis = 0 : i64} : (tensor<5x3xui8>, tensor<9x3xi64>, tensor<9x3xui8>) -> tensor<5x3xui8>
  %4 = ckopt.scatter_elements mul %a, %b, %c {axis = 0 : i64} : (tensor<5x37xf32>, tensor<12x37xi64>, tensor<12x37xf32>) -> tensor<5x37xf32>
  %5 = ckopt.scatter_elements mul %d, %e, %f {axis = 0 : i64} : (tensor<5x3xui8>, tensor<9x3xi64>, tensor<9x3xui8>) -> tensor<5x3xui8>
  %6 = ckopt.scatter_elements max %a, %b, %c {axis = 0 : i64} : (tensor<5x37xf32>, tensor<12x37xi64>, tensor<12x37xf32>) -> tensor<5x37xf32>
  %7 = ckopt.scatter_elements max %d, %e, %f {axis = 0 : i64} : (tensor<5x3xui8>, tensor<9x3xi64>, tensor<9x3xui8>) -> tensor<5x3xui8>
  %8 = ckopt.scatter_elements min %a, %b, %c {axis = 0 : i64} : (tensor<5x37xf32>, tensor<12x37xi64>, tensor<12x37xf32>) -> tensor<5x37xf32>
  %9 = ckopt.scatter_elements min %d, %e, %f {axis = 0 : i64} : (tensor<5x3xui8>, tensor<9x3xi64>, tensor<9x3xui8>) -> tensor<5x3xui8>
  %10 = ckopt.scatter_elements min %g, %h, %i {axis = 1 : i64} : (tensor<4x6xi32>, tensor<4x15xi32>, tensor<4x15xi32>) -> tensor<4x6xi32>
  %11 = ckopt.scatter_elements mul %j, %k, %l {axis = 0 : i64} : (tensor<5x20xf16>, tensor<9x20xi64>, tensor<9x20xf16>) -> tensor<5x20xf16>
  %12 = ckopt.scatter_elements max %j, %k, %l {axis = 0 : i64} : (tensor<5x20xf16>, tensor<9x20xi64>, tensor<9x20xf16>) -> tensor<5x20xf16>
  return
}

// Fewer indices than elements along the other dimensions, with lanes, with more than one
// block of columns, and in rows.
// CHECK: @shapes: 15 kernels, 15 as code of the CPU, 15 as PTX
func.func @shapes(%a: tensor<4x5x37xf32>, %b: tensor<3x9x20xi64> {test.range = array<f64: -5.0, 5.0>},
    %c: tensor<3x9x20xf32> {test.range = array<f64: -2.0, 2.0>}, %d: tensor<5x1000xf32>,
    %e: tensor<7x400xi64> {test.range = array<f64: -5.0, 5.0>},
    %f: tensor<7x400xf32> {test.range = array<f64: -2.0, 2.0>},
    %g: tensor<7x384xi64> {test.range = array<f64: -5.0, 5.0>},
    %h: tensor<7x384xf32> {test.range = array<f64: -2.0, 2.0>}, %i: tensor<5x400xf32>,
    %j: tensor<7x1xi64> {test.range = array<f64: -5.0, 5.0>},
    %k: tensor<7x1xf32> {test.range = array<f64: -2.0, 2.0>}, %l: tensor<4x3x9xf64>,
    %m: tensor<2x3x20xi32> {test.range = array<f64: -9.0, 9.0>},
    %n: tensor<2x3x20xf64> {test.range = array<f64: -2.0, 2.0>}, %o: tensor<30xf32>,
    %p: tensor<50xi64> {test.range = array<f64: -30.0, 30.0>},
    %q: tensor<50xf32> {test.range = array<f64: -2.0, 2.0>}, %r: tensor<6x5xi64>,
    %s: tensor<6x9xi64> {test.range = array<f64: -5.0, 5.0>}, %t: tensor<6x9xi64>, %u: tensor<6x5xf16>,
    %v: tensor<6x9xf16> {test.range = array<f64: -2.0, 2.0>}, %w: tensor<5x3x2xf16>,
    %x: tensor<7x2x2xi32> {test.range = array<f64: -5.0, 5.0>},
    %y: tensor<7x2x2xf16> {test.range = array<f64: -2.0, 2.0>}, %z: tensor<1x20xf32>,
    %aa: tensor<9x20xi64> {test.range = array<f64: -1.0, 1.0>},
    %ab: tensor<9x20xf32> {test.range = array<f64: -2.0, 2.0>}, %ac: tensor<6x20xf32>,
    %ad: tensor<0x20xi64> {test.range = array<f64: -6.0, 6.0>},
    %ae: tensor<0x20xf32> {test.range = array<f64: -2.0, 2.0>},
    %af: tensor<3x0xi64> {test.range = array<f64: -6.0, 6.0>},
    %ag: tensor<3x0xf32> {test.range = array<f64: -2.0, 2.0>}, %ah: tensor<0x4xf32>,
    %ai: tensor<0x4xi64> {test.range = array<f64: -1.0, 1.0>},
    %aj: tensor<0x4xf32> {test.range = array<f64: -2.0, 2.0>}, %ak: tensor<6x20xi1>,
    %al: tensor<9x20xi64> {test.range = array<f64: -6.0, 6.0>}, %am: tensor<9x20xi1>) {
  %0 = ckopt.scatter_elements add %a, %b, %c {axis = 1 : i64} : (tensor<4x5x37xf32>, tensor<3x9x20xi64>, tensor<3x9x20xf32>) -> tensor<4x5x37xf32>
  %1 = ckopt.scatter_elements add %d, %e, %f {axis = 0 : i64} : (tensor<5x1000xf32>, tensor<7x400xi64>, tensor<7x400xf32>) -> tensor<5x1000xf32>
  %2 = ckopt.scatter_elements add %d, %g, %h {axis = 0 : i64} : (tensor<5x1000xf32>, tensor<7x384xi64>, tensor<7x384xf32>) -> tensor<5x1000xf32>
  %3 = ckopt.scatter_elements add %i, %j, %k {axis = 0 : i64} : (tensor<5x400xf32>, tensor<7x1xi64>, tensor<7x1xf32>) -> tensor<5x400xf32>
  %4 = ckopt.scatter_elements add %l, %m, %n {axis = 2 : i64} : (tensor<4x3x9xf64>, tensor<2x3x20xi32>, tensor<2x3x20xf64>) -> tensor<4x3x9xf64>
  %5 = ckopt.scatter_elements add %o, %p, %q {axis = 0 : i64} : (tensor<30xf32>, tensor<50xi64>, tensor<50xf32>) -> tensor<30xf32>
  %6 = ckopt.scatter_elements add %r, %s, %t {axis = 1 : i64} : (tensor<6x5xi64>, tensor<6x9xi64>, tensor<6x9xi64>) -> tensor<6x5xi64>
  %7 = ckopt.scatter_elements add %u, %s, %v {axis = 1 : i64} : (tensor<6x5xf16>, tensor<6x9xi64>, tensor<6x9xf16>) -> tensor<6x5xf16>
  %8 = ckopt.scatter_elements add %w, %x, %y {axis = 0 : i64} : (tensor<5x3x2xf16>, tensor<7x2x2xi32>, tensor<7x2x2xf16>) -> tensor<5x3x2xf16>
  %9 = ckopt.scatter_elements add %z, %aa, %ab {axis = 0 : i64} : (tensor<1x20xf32>, tensor<9x20xi64>, tensor<9x20xf32>) -> tensor<1x20xf32>
  %10 = ckopt.scatter_elements add %ac, %ad, %ae {axis = 0 : i64} : (tensor<6x20xf32>, tensor<0x20xi64>, tensor<0x20xf32>) -> tensor<6x20xf32>
  %11 = ckopt.scatter_elements add %ac, %af, %ag {axis = 0 : i64} : (tensor<6x20xf32>, tensor<3x0xi64>, tensor<3x0xf32>) -> tensor<6x20xf32>
  %12 = ckopt.scatter_elements add %ah, %ai, %aj {axis = 0 : i64} : (tensor<0x4xf32>, tensor<0x4xi64>, tensor<0x4xf32>) -> tensor<0x4xf32>
  %13 = ckopt.scatter_elements set %a, %b, %c {axis = 1 : i64} : (tensor<4x5x37xf32>, tensor<3x9x20xi64>, tensor<3x9x20xf32>) -> tensor<4x5x37xf32>
  %14 = ckopt.scatter_elements set %ak, %al, %am {axis = 0 : i64} : (tensor<6x20xi1>, tensor<9x20xi64>, tensor<9x20xi1>) -> tensor<6x20xi1>
  return
}

// Rows added to a table, and to zeros that the kernel makes itself.
// CHECK: @rows: 10 kernels, 10 as code of the CPU, 10 as PTX
func.func @rows(%a: tensor<2x6xi64> {test.range = array<f64: -3.0, 9.0>}, %b: tensor<2x6x37xf32>,
    %c: tensor<9x37xf32> {test.range = array<f64: -2.0, 2.0>},
    %d: tensor<7xi64> {test.range = array<f64: -3.0, 9.0>}, %e: tensor<7x300xf32>,
    %f: tensor<9x300xf32> {test.range = array<f64: -2.0, 2.0>},
    %g: tensor<5xi64> {test.range = array<f64: -3.0, 9.0>}, %h: tensor<3x5x4xf64>,
    %i: tensor<3x9x4xf64> {test.range = array<f64: -2.0, 2.0>},
    %j: tensor<5xi32> {test.range = array<f64: -3.0, 9.0>}, %k: tensor<3x5xf32>,
    %l: tensor<3x9xf32> {test.range = array<f64: -2.0, 2.0>},
    %m: tensor<20xi64> {test.range = array<f64: -3.0, 9.0>}, %n: tensor<20xf32>,
    %o: tensor<9xf32> {test.range = array<f64: -2.0, 2.0>}) {
  %0 = ckopt.scatter_add %c, %a, %b {axis = 0 : i64} : (tensor<9x37xf32>, tensor<2x6xi64>, tensor<2x6x37xf32>) -> tensor<9x37xf32>
  %z1 = ckopt.constant dense<0.0> : tensor<9x37xf32>
  %1 = ckopt.scatter_add %z1, %a, %b {axis = 0 : i64} : (tensor<9x37xf32>, tensor<2x6xi64>, tensor<2x6x37xf32>) -> tensor<9x37xf32>
  %2 = ckopt.scatter_add %f, %d, %e {axis = 0 : i64} : (tensor<9x300xf32>, tensor<7xi64>, tensor<7x300xf32>) -> tensor<9x300xf32>
  %z3 = ckopt.constant dense<0.0> : tensor<9x300xf32>
  %3 = ckopt.scatter_add %z3, %d, %e {axis = 0 : i64} : (tensor<9x300xf32>, tensor<7xi64>, tensor<7x300xf32>) -> tensor<9x300xf32>
  %4 = ckopt.scatter_add %i, %g, %h {axis = 1 : i64} : (tensor<3x9x4xf64>, tensor<5xi64>, tensor<3x5x4xf64>) -> tensor<3x9x4xf64>
  %z5 = ckopt.constant dense<0.0> : tensor<3x9x4xf64>
  %5 = ckopt.scatter_add %z5, %g, %h {axis = 1 : i64} : (tensor<3x9x4xf64>, tensor<5xi64>, tensor<3x5x4xf64>) -> tensor<3x9x4xf64>
  %6 = ckopt.scatter_add %l, %j, %k {axis = 1 : i64} : (tensor<3x9xf32>, tensor<5xi32>, tensor<3x5xf32>) -> tensor<3x9xf32>
  %z7 = ckopt.constant dense<0.0> : tensor<3x9xf32>
  %7 = ckopt.scatter_add %z7, %j, %k {axis = 1 : i64} : (tensor<3x9xf32>, tensor<5xi32>, tensor<3x5xf32>) -> tensor<3x9xf32>
  %8 = ckopt.scatter_add %o, %m, %n {axis = 0 : i64} : (tensor<9xf32>, tensor<20xi64>, tensor<20xf32>) -> tensor<9xf32>
  %z9 = ckopt.constant dense<0.0> : tensor<9xf32>
  %9 = ckopt.scatter_add %z9, %m, %n {axis = 0 : i64} : (tensor<9xf32>, tensor<20xi64>, tensor<20xf32>) -> tensor<9xf32>
  return
}

// So many updates that a GPU sorts them by row: some rows get many, some none; in parts; of
// halves, whose sums are rounded once.
// CHECK: @sorted: 6 kernels, 6 as code of the CPU, 6 as PTX
func.func @sorted(%a: tensor<2x20xi64> {test.range = array<f64: -3.0, 7.0>}, %b: tensor<2x20x37xf32>,
    %c: tensor<9x37xf32> {test.range = array<f64: -2.0, 2.0>},
    %d: tensor<40xi32> {test.range = array<f64: -9.0, 9.0>}, %e: tensor<3x40x4xf64>,
    %f: tensor<3x9x4xf64> {test.range = array<f64: -2.0, 2.0>},
    %g: tensor<600xi64> {test.range = array<f64: 0.0, 200.0>}, %h: tensor<600x5xf32>,
    %i: tensor<200x5xf32> {test.range = array<f64: -2.0, 2.0>},
    %j: tensor<3x2xf16> {test.value = dense<0.0> : tensor<3x2xf16>},
    %k: tensor<3000xi64> {test.value = dense<1> : tensor<3000xi64>},
    %l: tensor<3000x2xf16> {test.value = dense<1.0> : tensor<3000x2xf16>}) {
  %0 = ckopt.scatter_add %c, %a, %b {axis = 0 : i64} : (tensor<9x37xf32>, tensor<2x20xi64>, tensor<2x20x37xf32>) -> tensor<9x37xf32>
  %z1 = ckopt.constant dense<0.0> : tensor<9x37xf32>
  %1 = ckopt.scatter_add %z1, %a, %b {axis = 0 : i64} : (tensor<9x37xf32>, tensor<2x20xi64>, tensor<2x20x37xf32>) -> tensor<9x37xf32>
  %2 = ckopt.scatter_add %f, %d, %e {axis = 1 : i64} : (tensor<3x9x4xf64>, tensor<40xi32>, tensor<3x40x4xf64>) -> tensor<3x9x4xf64>
  %3 = ckopt.scatter_add %i, %g, %h {axis = 0 : i64} : (tensor<200x5xf32>, tensor<600xi64>, tensor<600x5xf32>) -> tensor<200x5xf32>
  %z4 = ckopt.constant dense<0.0> : tensor<200x5xf32>
  %4 = ckopt.scatter_add %z4, %g, %h {axis = 0 : i64} : (tensor<200x5xf32>, tensor<600xi64>, tensor<600x5xf32>) -> tensor<200x5xf32>
  %5 = ckopt.scatter_add %j, %k, %l {axis = 0 : i64} : (tensor<3x2xf16>, tensor<3000xi64>, tensor<3000x2xf16>) -> tensor<3x2xf16>
  return
}

// Sums of halves are rounded once: 4,096 additions of one would end at 2,048.
// CHECK: @sums_of_halves: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @sums_of_halves(%a: tensor<1xf16> {test.value = dense<0.0> : tensor<1xf16>},
    %b: tensor<4096xi64> {test.value = dense<0> : tensor<4096xi64>},
    %c: tensor<4096xf16> {test.value = dense<1.0> : tensor<4096xf16>}) {
  %0 = ckopt.scatter_elements add %a, %b, %c {axis = 0 : i64} : (tensor<1xf16>, tensor<4096xi64>, tensor<4096xf16>) -> tensor<1xf16>
  %1 = ckopt.scatter_add %a, %b, %c {axis = 0 : i64} : (tensor<1xf16>, tensor<4096xi64>, tensor<4096xf16>) -> tensor<1xf16>
  return
}

// max and min give NaN where one is, whatever comes before or after it.
// CHECK: @not_a_number: 8 kernels, 8 as code of the CPU, 8 as PTX
func.func @not_a_number(%a: tensor<2xf32> {test.value = dense<[0x7FC00000, 5.0]> : tensor<2xf32>},
    %b: tensor<2xf32> {test.value = dense<[1.0, 5.0]> : tensor<2xf32>},
    %c: tensor<3xi64> {test.value = dense<0> : tensor<3xi64>},
    %d: tensor<3xf32> {test.value = dense<1.0> : tensor<3xf32>},
    %e: tensor<3xf32> {test.value = dense<[0x7FC00000, 1.0, 1.0]> : tensor<3xf32>},
    %f: tensor<3xf32> {test.value = dense<[1.0, 0x7FC00000, 1.0]> : tensor<3xf32>},
    %g: tensor<3xf32> {test.value = dense<[1.0, 1.0, 0x7FC00000]> : tensor<3xf32>}) {
  %0 = ckopt.scatter_elements max %a, %c, %d {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %1 = ckopt.scatter_elements max %b, %c, %e {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %2 = ckopt.scatter_elements max %b, %c, %f {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %3 = ckopt.scatter_elements max %b, %c, %g {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %4 = ckopt.scatter_elements min %a, %c, %d {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %5 = ckopt.scatter_elements min %b, %c, %e {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %6 = ckopt.scatter_elements min %b, %c, %f {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %7 = ckopt.scatter_elements min %b, %c, %g {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// Constants as any of the operands are made inside of the kernel.
// CHECK: @constant_operands: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @constant_operands(%a: tensor<5x20xf32>, %b: tensor<3x4xi64>) {
  %z = ckopt.constant dense<0.0> : tensor<3x20xf32>
  %i = ckopt.iota {axis = 0 : i64, start = 1.0 : f64} : tensor<3x20xi64>
  %0 = ckopt.scatter_elements set %a, %i, %z {axis = 0 : i64} : (tensor<5x20xf32>, tensor<3x20xi64>, tensor<3x20xf32>) -> tensor<5x20xf32>
  %least = ckopt.constant dense<-1> : tensor<3x2xi64>
  %at = ckopt.constant dense<[[0, 1, 0, 1], [1, 1, 1, 1], [-1, 0, 0, 0]]> : tensor<3x4xi64>
  %1 = ckopt.scatter_elements max %least, %at, %b {axis = 1 : i64} : (tensor<3x2xi64>, tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x2xi64>
  return
}
