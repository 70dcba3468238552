// Ops of one element at a time give the interpreter's numbers.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// Lengths lie around one vector, its multiples and the block size.
// CHECK: @lengths: 18 kernels, 18 as code of the CPU, 18 as PTX
func.func @lengths(%a: tensor<1xf32>, %b: tensor<2xf32>, %c: tensor<7xf32>, %d: tensor<15xf32>, %e: tensor<16xf32>,
    %f: tensor<17xf32>, %g: tensor<31xf32>, %h: tensor<33xf32>, %i: tensor<100xf32>, %j: tensor<4095xf32>,
    %k: tensor<4096xf32>, %l: tensor<4097xf32>, %m: tensor<20000xf32>, %n: tensor<1xf64>, %o: tensor<7xf64>,
    %p: tensor<8xf64>, %q: tensor<9xf64>, %r: tensor<4097xf64>) {
  %0 = ckopt.exp %a : (tensor<1xf32>) -> tensor<1xf32>
  %1 = ckopt.exp %b : (tensor<2xf32>) -> tensor<2xf32>
  %2 = ckopt.exp %c : (tensor<7xf32>) -> tensor<7xf32>
  %3 = ckopt.exp %d : (tensor<15xf32>) -> tensor<15xf32>
  %4 = ckopt.exp %e : (tensor<16xf32>) -> tensor<16xf32>
  %5 = ckopt.exp %f : (tensor<17xf32>) -> tensor<17xf32>
  %6 = ckopt.exp %g : (tensor<31xf32>) -> tensor<31xf32>
  %7 = ckopt.exp %h : (tensor<33xf32>) -> tensor<33xf32>
  %8 = ckopt.exp %i : (tensor<100xf32>) -> tensor<100xf32>
  %9 = ckopt.exp %j : (tensor<4095xf32>) -> tensor<4095xf32>
  %10 = ckopt.exp %k : (tensor<4096xf32>) -> tensor<4096xf32>
  %11 = ckopt.exp %l : (tensor<4097xf32>) -> tensor<4097xf32>
  %12 = ckopt.exp %m : (tensor<20000xf32>) -> tensor<20000xf32>
  %13 = ckopt.neg %n : (tensor<1xf64>) -> tensor<1xf64>
  %14 = ckopt.neg %o : (tensor<7xf64>) -> tensor<7xf64>
  %15 = ckopt.neg %p : (tensor<8xf64>) -> tensor<8xf64>
  %16 = ckopt.neg %q : (tensor<9xf64>) -> tensor<9xf64>
  %17 = ckopt.neg %r : (tensor<4097xf64>) -> tensor<4097xf64>
  return
}

// Each function of one number, near zero.
// CHECK: @unary: 21 kernels, 21 as code of the CPU, 21 as PTX
func.func @unary(%a: tensor<3x37xf32>, %b: tensor<3x37xf32> {test.range = array<f64: 0.1, 1.0>}) {
  %0 = ckopt.neg %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = ckopt.abs %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %2 = ckopt.sign %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %3 = ckopt.exp %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %4 = ckopt.sqrt %b : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %5 = ckopt.rsqrt %b : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %6 = ckopt.reciprocal %b : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %7 = ckopt.tanh %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %8 = ckopt.sigmoid %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %9 = ckopt.erf %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %10 = ckopt.sin %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %11 = ckopt.cos %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %12 = ckopt.atan %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %13 = ckopt.floor %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %14 = ckopt.ceil %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %15 = ckopt.round %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %16 = ckopt.relu %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %17 = ckopt.softplus %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %18 = ckopt.gelu %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %19 = ckopt.gelu %a {tanh} : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %20 = ckopt.clip %a {min = -0.5, max = 0.25} : (tensor<3x37xf32>) -> tensor<3x37xf32>
  return
}

// Each function of one number, up to where it saturates; f64, too, whose functions
// are libm's and have no code on a GPU.
// CHECK: @unary_wide: 38 kernels, 38 as code of the CPU, 29 as PTX
func.func @unary_wide(%a: tensor<3x37xf32> {test.range = array<f64: -1.0, 20.0>},
    %b: tensor<2x19xf64> {test.range = array<f64: -1.0, 20.0>},
    %c: tensor<3x37xf32> {test.range = array<f64: 0.1, 20.0>},
    %d: tensor<2x19xf64> {test.range = array<f64: 0.1, 20.0>}) attributes {test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %0 = ckopt.neg %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = ckopt.neg %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %2 = ckopt.abs %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %3 = ckopt.abs %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %4 = ckopt.sign %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %5 = ckopt.sign %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %6 = ckopt.exp %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %7 = ckopt.exp %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %8 = ckopt.sqrt %c : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %9 = ckopt.sqrt %d : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %10 = ckopt.rsqrt %c : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %11 = ckopt.rsqrt %d : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %12 = ckopt.reciprocal %c : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %13 = ckopt.reciprocal %d : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %14 = ckopt.tanh %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %15 = ckopt.tanh %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %16 = ckopt.sigmoid %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %17 = ckopt.sigmoid %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %18 = ckopt.erf %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %19 = ckopt.erf %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %20 = ckopt.sin %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %21 = ckopt.sin %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %22 = ckopt.cos %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %23 = ckopt.cos %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %24 = ckopt.atan %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %25 = ckopt.atan %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %26 = ckopt.floor %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %27 = ckopt.floor %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %28 = ckopt.ceil %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %29 = ckopt.ceil %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %30 = ckopt.round %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %31 = ckopt.round %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %32 = ckopt.relu %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %33 = ckopt.relu %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %34 = ckopt.softplus %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %35 = ckopt.softplus %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  %36 = ckopt.gelu %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %37 = ckopt.gelu %b : (tensor<2x19xf64>) -> tensor<2x19xf64>
  return
}

// CHECK: @logarithms: 2 kernels, 2 as code of the CPU, 1 as PTX
func.func @logarithms(%a: tensor<77xf32> {test.range = array<f64: 0.001, 50.0>},
    %b: tensor<77xf64> {test.range = array<f64: 0.001, 50.0>}) {
  %0 = ckopt.log %a : (tensor<77xf32>) -> tensor<77xf32>
  %1 = ckopt.log %b : (tensor<77xf64>) -> tensor<77xf64>
  return
}

// CHECK: @unary_integers: 17 kernels, 17 as code of the CPU, 17 as PTX
func.func @unary_integers(%a: tensor<50xi64> {test.range = array<f64: -5.0, 5.0>},
    %b: tensor<50xi32> {test.range = array<f64: -5.0, 5.0>}, %c: tensor<50xi8> {test.range = array<f64: -5.0, 5.0>},
    %d: tensor<50xi16> {test.range = array<f64: -5.0, 5.0>}, %e: tensor<50xi1>) {
  %0 = ckopt.neg %a : (tensor<50xi64>) -> tensor<50xi64>
  %1 = ckopt.abs %a : (tensor<50xi64>) -> tensor<50xi64>
  %2 = ckopt.sign %a : (tensor<50xi64>) -> tensor<50xi64>
  %3 = ckopt.relu %a : (tensor<50xi64>) -> tensor<50xi64>
  %4 = ckopt.neg %b : (tensor<50xi32>) -> tensor<50xi32>
  %5 = ckopt.abs %b : (tensor<50xi32>) -> tensor<50xi32>
  %6 = ckopt.sign %b : (tensor<50xi32>) -> tensor<50xi32>
  %7 = ckopt.relu %b : (tensor<50xi32>) -> tensor<50xi32>
  %8 = ckopt.neg %c : (tensor<50xi8>) -> tensor<50xi8>
  %9 = ckopt.abs %c : (tensor<50xi8>) -> tensor<50xi8>
  %10 = ckopt.sign %c : (tensor<50xi8>) -> tensor<50xi8>
  %11 = ckopt.relu %c : (tensor<50xi8>) -> tensor<50xi8>
  %12 = ckopt.neg %d : (tensor<50xi16>) -> tensor<50xi16>
  %13 = ckopt.abs %d : (tensor<50xi16>) -> tensor<50xi16>
  %14 = ckopt.sign %d : (tensor<50xi16>) -> tensor<50xi16>
  %15 = ckopt.relu %d : (tensor<50xi16>) -> tensor<50xi16>
  %16 = ckopt.not %e : (tensor<50xi1>) -> tensor<50xi1>
  return
}

// The shapes decide addresses, whatever the op.
// CHECK: @broadcasts: 20 kernels, 20 as code of the CPU, 20 as PTX
func.func @broadcasts(%a: tensor<5x21xf32> {test.range = array<f64: 0.5, 2.0>},
    %b: tensor<5x21xf32> {test.range = array<f64: 0.25, 3.0>},
    %c: tensor<5x21xf64> {test.range = array<f64: 0.5, 2.0>},
    %d: tensor<5x21xf64> {test.range = array<f64: 0.25, 3.0>},
    %e: tensor<21xf32> {test.range = array<f64: 0.25, 3.0>}, %f: tensor<21xf64> {test.range = array<f64: 0.25, 3.0>},
    %g: tensor<5x1xf32> {test.range = array<f64: 0.25, 3.0>},
    %h: tensor<5x1xf64> {test.range = array<f64: 0.25, 3.0>},
    %i: tensor<5x1xf32> {test.range = array<f64: 0.5, 2.0>},
    %j: tensor<1x21xf32> {test.range = array<f64: 0.25, 3.0>},
    %k: tensor<5x1xf64> {test.range = array<f64: 0.5, 2.0>},
    %l: tensor<1x21xf64> {test.range = array<f64: 0.25, 3.0>}, %m: tensor<1xf32> {test.range = array<f64: 0.5, 2.0>},
    %n: tensor<1xf64> {test.range = array<f64: 0.5, 2.0>},
    %o: tensor<2x3x4x5xf32> {test.range = array<f64: 0.5, 2.0>},
    %p: tensor<3x1x1xf32> {test.range = array<f64: 0.25, 3.0>},
    %q: tensor<2x3x4x5xf64> {test.range = array<f64: 0.5, 2.0>},
    %r: tensor<3x1x1xf64> {test.range = array<f64: 0.25, 3.0>},
    %s: tensor<2x3x17xf32> {test.range = array<f64: 0.5, 2.0>},
    %t: tensor<1x17xf32> {test.range = array<f64: 0.25, 3.0>},
    %u: tensor<2x3x17xf64> {test.range = array<f64: 0.5, 2.0>},
    %v: tensor<1x17xf64> {test.range = array<f64: 0.25, 3.0>}, %w: tensor<f32> {test.range = array<f64: 0.5, 2.0>},
    %x: tensor<33xf32> {test.range = array<f64: 0.25, 3.0>}, %y: tensor<f64> {test.range = array<f64: 0.5, 2.0>},
    %z: tensor<33xf64> {test.range = array<f64: 0.25, 3.0>},
    %aa: tensor<2x1x20x20xf32> {test.range = array<f64: 0.5, 2.0>},
    %ab: tensor<20x20xf32> {test.range = array<f64: 0.25, 3.0>},
    %ac: tensor<2x1x20x20xf64> {test.range = array<f64: 0.5, 2.0>},
    %ad: tensor<20x20xf64> {test.range = array<f64: 0.25, 3.0>},
    %ae: tensor<f32> {test.range = array<f64: 0.25, 3.0>}, %af: tensor<f64> {test.range = array<f64: 0.25, 3.0>}) {
  %0 = ckopt.sub %a, %b : (tensor<5x21xf32>, tensor<5x21xf32>) -> tensor<5x21xf32>
  %1 = ckopt.sub %c, %d : (tensor<5x21xf64>, tensor<5x21xf64>) -> tensor<5x21xf64>
  %2 = ckopt.sub %a, %e : (tensor<5x21xf32>, tensor<21xf32>) -> tensor<5x21xf32>
  %3 = ckopt.sub %c, %f : (tensor<5x21xf64>, tensor<21xf64>) -> tensor<5x21xf64>
  %4 = ckopt.sub %a, %g : (tensor<5x21xf32>, tensor<5x1xf32>) -> tensor<5x21xf32>
  %5 = ckopt.sub %c, %h : (tensor<5x21xf64>, tensor<5x1xf64>) -> tensor<5x21xf64>
  %6 = ckopt.sub %i, %j : (tensor<5x1xf32>, tensor<1x21xf32>) -> tensor<5x21xf32>
  %7 = ckopt.sub %k, %l : (tensor<5x1xf64>, tensor<1x21xf64>) -> tensor<5x21xf64>
  %8 = ckopt.sub %m, %b : (tensor<1xf32>, tensor<5x21xf32>) -> tensor<5x21xf32>
  %9 = ckopt.sub %n, %d : (tensor<1xf64>, tensor<5x21xf64>) -> tensor<5x21xf64>
  %10 = ckopt.sub %o, %p : (tensor<2x3x4x5xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x5xf32>
  %11 = ckopt.sub %q, %r : (tensor<2x3x4x5xf64>, tensor<3x1x1xf64>) -> tensor<2x3x4x5xf64>
  %12 = ckopt.sub %s, %t : (tensor<2x3x17xf32>, tensor<1x17xf32>) -> tensor<2x3x17xf32>
  %13 = ckopt.sub %u, %v : (tensor<2x3x17xf64>, tensor<1x17xf64>) -> tensor<2x3x17xf64>
  %14 = ckopt.sub %w, %x : (tensor<f32>, tensor<33xf32>) -> tensor<33xf32>
  %15 = ckopt.sub %y, %z : (tensor<f64>, tensor<33xf64>) -> tensor<33xf64>
  %16 = ckopt.sub %aa, %ab : (tensor<2x1x20x20xf32>, tensor<20x20xf32>) -> tensor<2x1x20x20xf32>
  %17 = ckopt.sub %ac, %ad : (tensor<2x1x20x20xf64>, tensor<20x20xf64>) -> tensor<2x1x20x20xf64>
  %18 = ckopt.sub %w, %ae : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %19 = ckopt.sub %y, %af : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return
}

// CHECK: @binary: 10 kernels, 10 as code of the CPU, 10 as PTX
func.func @binary(%a: tensor<5x21xf32> {test.range = array<f64: 0.5, 2.0>},
    %b: tensor<5x1xf32> {test.range = array<f64: 0.5, 2.0>},
    %c: tensor<5x21xf64> {test.range = array<f64: 0.5, 2.0>}, %d: tensor<5x1xf64> {test.range = array<f64: 0.5, 2.0>}) {
  %0 = ckopt.add %a, %b : (tensor<5x21xf32>, tensor<5x1xf32>) -> tensor<5x21xf32>
  %1 = ckopt.add %c, %d : (tensor<5x21xf64>, tensor<5x1xf64>) -> tensor<5x21xf64>
  %2 = ckopt.mul %a, %b : (tensor<5x21xf32>, tensor<5x1xf32>) -> tensor<5x21xf32>
  %3 = ckopt.mul %c, %d : (tensor<5x21xf64>, tensor<5x1xf64>) -> tensor<5x21xf64>
  %4 = ckopt.div %a, %b : (tensor<5x21xf32>, tensor<5x1xf32>) -> tensor<5x21xf32>
  %5 = ckopt.div %c, %d : (tensor<5x21xf64>, tensor<5x1xf64>) -> tensor<5x21xf64>
  %6 = ckopt.maximum %a, %b : (tensor<5x21xf32>, tensor<5x1xf32>) -> tensor<5x21xf32>
  %7 = ckopt.maximum %c, %d : (tensor<5x21xf64>, tensor<5x1xf64>) -> tensor<5x21xf64>
  %8 = ckopt.minimum %a, %b : (tensor<5x21xf32>, tensor<5x1xf32>) -> tensor<5x21xf32>
  %9 = ckopt.minimum %c, %d : (tensor<5x21xf64>, tensor<5x1xf64>) -> tensor<5x21xf64>
  return
}

// Integers wrap; of a division by zero there is one answer, too.
// CHECK: @integers: 16 kernels, 16 as code of the CPU, 15 as PTX
func.func @integers(%a: tensor<70xi64> {test.range = array<f64: -6.0, 7.0>},
    %b: tensor<70xi64> {test.range = array<f64: -7.0, 6.0>}, %c: tensor<70xi32> {test.range = array<f64: -6.0, 7.0>},
    %d: tensor<70xi32> {test.range = array<f64: -7.0, 6.0>}, %e: tensor<70xf32> {test.range = array<f64: 0.5, 3.0>},
    %f: tensor<70xf32> {test.range = array<f64: 0.25, 3.0>}, %g: tensor<70xf64> {test.range = array<f64: 0.5, 3.0>},
    %h: tensor<70xf64> {test.range = array<f64: 0.25, 3.0>}) {
  %0 = ckopt.add %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %1 = ckopt.add %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %2 = ckopt.sub %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %3 = ckopt.sub %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %4 = ckopt.mul %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %5 = ckopt.mul %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %6 = ckopt.div %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %7 = ckopt.div %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %8 = ckopt.mod %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %9 = ckopt.mod %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %10 = ckopt.maximum %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %11 = ckopt.maximum %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %12 = ckopt.mod %a, %b {fmod} : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %13 = ckopt.mod %e, %f {fmod} : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>
  %14 = ckopt.pow %e, %f : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>
  %15 = ckopt.pow %g, %h : (tensor<70xf64>, tensor<70xf64>) -> tensor<70xf64>
  return
}

// Of each bit; a shift may be of any number of bits, which leaves zeros, or the sign
// where a signed number goes right. A negative shift counts as a huge one.
// CHECK: @bits: 33 kernels, 33 as code of the CPU, 33 as PTX
func.func @bits(%a: tensor<70xi64> {test.range = array<f64: -128.0, 127.0>},
    %b: tensor<70xi64> {test.range = array<f64: -9.0, 70.0>},
    %c: tensor<70xi32> {test.range = array<f64: -128.0, 127.0>},
    %d: tensor<70xi32> {test.range = array<f64: -9.0, 70.0>},
    %e: tensor<70xi16> {test.range = array<f64: -128.0, 127.0>},
    %f: tensor<70xi16> {test.range = array<f64: -9.0, 70.0>},
    %g: tensor<70xi8> {test.range = array<f64: -128.0, 127.0>},
    %h: tensor<70xi8> {test.range = array<f64: -9.0, 70.0>},
    %i: tensor<70xui64> {test.range = array<f64: 0.0, 255.0>},
    %j: tensor<70xui64> {test.range = array<f64: 0.0, 70.0>},
    %k: tensor<70xui32> {test.range = array<f64: 0.0, 255.0>},
    %l: tensor<70xui32> {test.range = array<f64: 0.0, 70.0>},
    %m: tensor<70xui16> {test.range = array<f64: 0.0, 255.0>},
    %n: tensor<70xui16> {test.range = array<f64: 0.0, 70.0>},
    %o: tensor<70xui8> {test.range = array<f64: 0.0, 255.0>},
    %p: tensor<70xui8> {test.range = array<f64: 0.0, 70.0>}, %q: tensor<3x70xi32>, %r: tensor<70xi32>,
    %s: tensor<50xi1>, %t: tensor<50xi1> {test.range = array<f64: 0.0, 3.0>}, %u: tensor<50xi8>,
    %v: tensor<50xi8> {test.range = array<f64: 0.0, 3.0>}) {
  %0 = ckopt.not %a : (tensor<70xi64>) -> tensor<70xi64>
  %1 = ckopt.xor %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %2 = ckopt.shift_left %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %3 = ckopt.shift_right %a, %b : (tensor<70xi64>, tensor<70xi64>) -> tensor<70xi64>
  %4 = ckopt.not %c : (tensor<70xi32>) -> tensor<70xi32>
  %5 = ckopt.xor %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %6 = ckopt.shift_left %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %7 = ckopt.shift_right %c, %d : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi32>
  %8 = ckopt.not %e : (tensor<70xi16>) -> tensor<70xi16>
  %9 = ckopt.xor %e, %f : (tensor<70xi16>, tensor<70xi16>) -> tensor<70xi16>
  %10 = ckopt.shift_left %e, %f : (tensor<70xi16>, tensor<70xi16>) -> tensor<70xi16>
  %11 = ckopt.shift_right %e, %f : (tensor<70xi16>, tensor<70xi16>) -> tensor<70xi16>
  %12 = ckopt.not %g : (tensor<70xi8>) -> tensor<70xi8>
  %13 = ckopt.xor %g, %h : (tensor<70xi8>, tensor<70xi8>) -> tensor<70xi8>
  %14 = ckopt.shift_left %g, %h : (tensor<70xi8>, tensor<70xi8>) -> tensor<70xi8>
  %15 = ckopt.shift_right %g, %h : (tensor<70xi8>, tensor<70xi8>) -> tensor<70xi8>
  %16 = ckopt.not %i : (tensor<70xui64>) -> tensor<70xui64>
  %17 = ckopt.shift_left %i, %j : (tensor<70xui64>, tensor<70xui64>) -> tensor<70xui64>
  %18 = ckopt.shift_right %i, %j : (tensor<70xui64>, tensor<70xui64>) -> tensor<70xui64>
  %19 = ckopt.not %k : (tensor<70xui32>) -> tensor<70xui32>
  %20 = ckopt.shift_left %k, %l : (tensor<70xui32>, tensor<70xui32>) -> tensor<70xui32>
  %21 = ckopt.shift_right %k, %l : (tensor<70xui32>, tensor<70xui32>) -> tensor<70xui32>
  %22 = ckopt.not %m : (tensor<70xui16>) -> tensor<70xui16>
  %23 = ckopt.shift_left %m, %n : (tensor<70xui16>, tensor<70xui16>) -> tensor<70xui16>
  %24 = ckopt.shift_right %m, %n : (tensor<70xui16>, tensor<70xui16>) -> tensor<70xui16>
  %25 = ckopt.not %o : (tensor<70xui8>) -> tensor<70xui8>
  %26 = ckopt.shift_left %o, %p : (tensor<70xui8>, tensor<70xui8>) -> tensor<70xui8>
  %27 = ckopt.shift_right %o, %p : (tensor<70xui8>, tensor<70xui8>) -> tensor<70xui8>
  %28 = ckopt.shift_left %q, %r : (tensor<3x70xi32>, tensor<70xi32>) -> tensor<3x70xi32>
  %29 = ckopt.and %s, %t : (tensor<50xi1>, tensor<50xi1>) -> tensor<50xi1>
  %30 = ckopt.and %u, %v : (tensor<50xi8>, tensor<50xi8>) -> tensor<50xi8>
  %31 = ckopt.or %s, %t : (tensor<50xi1>, tensor<50xi1>) -> tensor<50xi1>
  %32 = ckopt.or %u, %v : (tensor<50xi8>, tensor<50xi8>) -> tensor<50xi8>
  return
}

// CHECK: @comparisons: 18 kernels, 18 as code of the CPU, 18 as PTX
func.func @comparisons(%a: tensor<3x30xi32>, %b: tensor<30xi32>, %c: tensor<40xf32>,
    %d: tensor<40xf32> {test.range = array<f64: -0.5, 0.5>}) {
  %0 = ckopt.compare eq %a, %b : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>
  %1 = ckopt.compare eq %c, %d : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>
  %2 = ckopt.select %1, %c, %d : (tensor<40xi1>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %3 = ckopt.compare ne %a, %b : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>
  %4 = ckopt.compare ne %c, %d : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>
  %5 = ckopt.select %4, %c, %d : (tensor<40xi1>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %6 = ckopt.compare lt %a, %b : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>
  %7 = ckopt.compare lt %c, %d : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>
  %8 = ckopt.select %7, %c, %d : (tensor<40xi1>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %9 = ckopt.compare le %a, %b : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>
  %10 = ckopt.compare le %c, %d : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>
  %11 = ckopt.select %10, %c, %d : (tensor<40xi1>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %12 = ckopt.compare gt %a, %b : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>
  %13 = ckopt.compare gt %c, %d : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>
  %14 = ckopt.select %13, %c, %d : (tensor<40xi1>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %15 = ckopt.compare ge %a, %b : (tensor<3x30xi32>, tensor<30xi32>) -> tensor<3x30xi1>
  %16 = ckopt.compare ge %c, %d : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xi1>
  %17 = ckopt.select %16, %c, %d : (tensor<40xi1>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  return
}

// CHECK: @casts: 15 kernels, 15 as code of the CPU, 15 as PTX
func.func @casts(%a: tensor<3x29xf32> {test.range = array<f64: -9.0, 9.0>},
    %b: tensor<3x29xf64> {test.range = array<f64: -9.0, 9.0>}, %c: tensor<3x29xi64>, %d: tensor<3x29xi32>,
    %e: tensor<3x29xi1>, %f: tensor<3x29xbf16> {test.range = array<f64: -9.0, 9.0>},
    %g: tensor<3x29xf16> {test.range = array<f64: -9.0, 9.0>}, %h: tensor<3x29xi8>) attributes {test.tolerance = array<f64: 1.0e-6, 1.0e-6>} {
  %0 = ckopt.cast %a : (tensor<3x29xf32>) -> tensor<3x29xf64>
  %1 = ckopt.cast %b : (tensor<3x29xf64>) -> tensor<3x29xf32>
  %2 = ckopt.cast %a : (tensor<3x29xf32>) -> tensor<3x29xi32>
  %3 = ckopt.cast %c : (tensor<3x29xi64>) -> tensor<3x29xf32>
  %4 = ckopt.cast %d : (tensor<3x29xi32>) -> tensor<3x29xi64>
  %5 = ckopt.cast %c : (tensor<3x29xi64>) -> tensor<3x29xi8>
  %6 = ckopt.cast %e : (tensor<3x29xi1>) -> tensor<3x29xf32>
  %7 = ckopt.cast %a : (tensor<3x29xf32>) -> tensor<3x29xi1>
  %8 = ckopt.cast %d : (tensor<3x29xi32>) -> tensor<3x29xi1>
  %9 = ckopt.cast %e : (tensor<3x29xi1>) -> tensor<3x29xi64>
  %10 = ckopt.cast %a : (tensor<3x29xf32>) -> tensor<3x29xf16>
  %11 = ckopt.cast %f : (tensor<3x29xbf16>) -> tensor<3x29xf32>
  %12 = ckopt.cast %g : (tensor<3x29xf16>) -> tensor<3x29xf32>
  %13 = ckopt.cast %a : (tensor<3x29xf32>) -> tensor<3x29xbf16>
  %14 = ckopt.cast %h : (tensor<3x29xi8>) -> tensor<3x29xf32>
  return
}

// Halves are read and written as such and computed in f32. Small f16 are numbers to a
// GPU as well, also where two are compared.
// CHECK: @halves: 6 kernels, 6 as code of the CPU, 6 as PTX
func.func @halves(%a: tensor<3x37xf16>, %b: tensor<3x37xf16> {test.range = array<f64: -2.0, 2.0>},
    %c: tensor<6x40xf16> {test.range = array<f64: -5.0e-05, 5.0e-05>},
    %d: tensor<6x40xf16> {test.range = array<f64: -4.0e-05, 4.0e-05>}, %e: tensor<3x37xbf16>,
    %f: tensor<3x37xbf16> {test.range = array<f64: -2.0, 2.0>},
    %g: tensor<6x40xbf16> {test.range = array<f64: -5.0e-05, 5.0e-05>},
    %h: tensor<6x40xbf16> {test.range = array<f64: -4.0e-05, 4.0e-05>}) {
  %0 = ckopt.gelu %a : (tensor<3x37xf16>) -> tensor<3x37xf16>
  %1 = ckopt.mul %a, %b : (tensor<3x37xf16>, tensor<3x37xf16>) -> tensor<3x37xf16>
  %2 = ckopt.maximum %c, %d : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %3 = ckopt.gelu %e : (tensor<3x37xbf16>) -> tensor<3x37xbf16>
  %4 = ckopt.mul %e, %f : (tensor<3x37xbf16>, tensor<3x37xbf16>) -> tensor<3x37xbf16>
  %5 = ckopt.maximum %g, %h : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  return
}

// Nothing to do is done, without a trap.
// CHECK: @empty: 3 kernels, 3 as code of the CPU, 3 as PTX
func.func @empty(%a: tensor<0xf32>, %b: tensor<3x0xf32>, %c: tensor<0x4xf32>, %d: tensor<4xf32>) {
  %0 = ckopt.exp %a : (tensor<0xf32>) -> tensor<0xf32>
  %1 = ckopt.exp %b : (tensor<3x0xf32>) -> tensor<3x0xf32>
  %2 = ckopt.add %c, %d : (tensor<0x4xf32>, tensor<4xf32>) -> tensor<0x4xf32>
  return
}

// Channels-last operands beside row-major ones, and vectors by channels.
// CHECK: @layouts_rrr: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_rrr(%x: tensor<2x20x3x5xf32>, %y: tensor<2x20x3x5xf32>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32>, tensor<2x20x3x5xf32>) -> tensor<2x20x3x5xf32>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32>
  return %1 : tensor<2x20x3x5xf32>
}

// CHECK: @layouts_rrc: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_rrc(%x: tensor<2x20x3x5xf32>, %y: tensor<2x20x3x5xf32>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32>, tensor<2x20x3x5xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %1 : tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// CHECK: @layouts_rcr: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_rcr(%x: tensor<2x20x3x5xf32>, %y: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32>, tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x3x5xf32>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32>
  return %1 : tensor<2x20x3x5xf32>
}

// CHECK: @layouts_rcc: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_rcc(%x: tensor<2x20x3x5xf32>, %y: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32>, tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %1 : tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// CHECK: @layouts_crr: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_crr(%x: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %y: tensor<2x20x3x5xf32>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x3x5xf32>) -> tensor<2x20x3x5xf32>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32>
  return %1 : tensor<2x20x3x5xf32>
}

// CHECK: @layouts_crc: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_crc(%x: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %y: tensor<2x20x3x5xf32>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x3x5xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %1 : tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// CHECK: @layouts_ccr: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_ccr(%x: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %y: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x3x5xf32>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32>
  return %1 : tensor<2x20x3x5xf32>
}

// CHECK: @layouts_ccc: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @layouts_ccc(%x: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %y: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, %c: tensor<20x1x1xf32>)
    -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %0, %c : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<20x1x1xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %1 : tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// A channel's bias behind a concatenation has fewer columns than the result: it ends at
// an inaccessible page, and what is computed ahead must end there, too.
// CHECK: @columns_of_concatenated: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @columns_of_concatenated(%c: tensor<24xf32>, %x: tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, %y: tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> tensor<2x48x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.reshape %c : (tensor<24xf32>) -> tensor<24x1x1xf32>
  %1 = ckopt.add %x, %0 : (tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<24x1x1xf32>) -> tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.concat %1, %y {axis = 1 : i64} : (tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x24x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x48x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %2 : tensor<2x48x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// The two halves of a split share a bias by channels: one half's columns are no columns
// of the other's (a gated unit behind a convolution).
// CHECK: @halves_of_a_split: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @halves_of_a_split(%x: tensor<4x16x20xf32, #ckopt.layout<[0, 2, 1]>>, %b: tensor<16xf32>)
    -> tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %r = ckopt.reshape %b : (tensor<16xf32>) -> tensor<1x16x1xf32>
  %e = ckopt.exp %r : (tensor<1x16x1xf32>) -> tensor<1x16x1xf32>
  %h = ckopt.add %x, %e : (tensor<4x16x20xf32, #ckopt.layout<[0, 2, 1]>>, tensor<1x16x1xf32>) -> tensor<4x16x20xf32, #ckopt.layout<[0, 2, 1]>>
  %p = ckopt.slice %h {starts = array<i64: 0, 0, 0>, sizes = array<i64: 4, 8, 20>, steps = array<i64: 1, 1, 1>} : (tensor<4x16x20xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>
  %q = ckopt.slice %h {starts = array<i64: 0, 8, 0>, sizes = array<i64: 4, 8, 20>, steps = array<i64: 1, 1, 1>} : (tensor<4x16x20xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>
  %s = ckopt.sigmoid %q : (tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>
  %m = ckopt.mul %p, %s : (tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>
  return %m : tensor<4x8x20xf32, #ckopt.layout<[0, 2, 1]>>
}

// Several results, either in the place of either operand.
// CHECK: @several_results: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @several_results(%x: tensor<5x100xf32>, %y: tensor<5x100xf32>)
    -> (tensor<5x100xf32>, tensor<5x100xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<5x100xf32>, tensor<5x100xf32>) -> tensor<5x100xf32>
  %1 = ckopt.mul %x, %0 : (tensor<5x100xf32>, tensor<5x100xf32>) -> tensor<5x100xf32>
  return %0, %1 : tensor<5x100xf32>, tensor<5x100xf32>
}

// What updates store in few bits.
// CHECK: @rounded_at_random: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @rounded_at_random(%x: tensor<5x100xf32>, %u: tensor<5x100xf32>) -> tensor<5x100xbf16>
    attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sigmoid %u : (tensor<5x100xf32>) -> tensor<5x100xf32>
  %1 = ckopt.round_random %x, %0 : (tensor<5x100xf32>, tensor<5x100xf32>) -> tensor<5x100xbf16>
  return %1 : tensor<5x100xbf16>
}

// States in codes: rows have scales, and what is stored beside them is computed once.
// CHECK: @dynamic_codes: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @dynamic_codes(%x: tensor<50x100xf32>, %y: tensor<50x100xf32>,
    %m: tensor<50x100xui8> {test.range = array<f64: 0.0, 256.0>}, %ms: tensor<50xf32>,
    %v: tensor<50x100xui8> {test.range = array<f64: 0.0, 256.0>}, %vs: tensor<50xf32>)
    -> (tensor<50x100xf32>, tensor<50x100xui8>, tensor<50xf32>, tensor<50x100xui8>, tensor<50xf32>)
    attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %y, %y : (tensor<50x100xf32>, tensor<50x100xf32>) -> tensor<50x100xf32>
  %1 = ckopt.mul %0, %0 : (tensor<50x100xf32>, tensor<50x100xf32>) -> tensor<50x100xf32>
  %2 = ckopt.mul %1, %1 : (tensor<50x100xf32>, tensor<50x100xf32>) -> tensor<50x100xf32>
  %3 = ckopt.mul %2, %x : (tensor<50x100xf32>, tensor<50x100xf32>) -> tensor<50x100xf32>
  %4 = ckopt.assign %x, %3 : (tensor<50x100xf32>, tensor<50x100xf32>) -> tensor<50x100xf32>
  %5:2 = ckopt.assign_codes %m, %ms, %3 {has_sign} : (tensor<50x100xui8>, tensor<50xf32>, tensor<50x100xf32>) -> (tensor<50x100xui8>, tensor<50xf32>)
  %6:2 = ckopt.assign_codes %v, %vs, %2 : (tensor<50x100xui8>, tensor<50xf32>, tensor<50x100xf32>) -> (tensor<50x100xui8>, tensor<50xf32>)
  return %4, %5#0, %5#1, %6#0, %6#1 : tensor<50x100xf32>, tensor<50x100xui8>, tensor<50xf32>, tensor<50x100xui8>, tensor<50xf32>
}

// Rows of whole vectors; and states that stay.
// CHECK: @dynamic_states: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @dynamic_states(%x: tensor<9x256xf32>, %m: tensor<9x256xui8> {test.range = array<f64: 0.0, 256.0>}, %s: tensor<9xf32>,
    %made: tensor<i1> {test.value = dense<true> : tensor<i1>}, %not: tensor<i1> {test.value = dense<false> : tensor<i1>}) {
  %0:2 = ckopt.assign_codes %m, %s, %x if %made {has_sign} : (tensor<9x256xui8>, tensor<9xf32>, tensor<9x256xf32>, tensor<i1>) -> (tensor<9x256xui8>, tensor<9xf32>)
  %1:2 = ckopt.assign_codes %m, %s, %x if %not {has_sign} : (tensor<9x256xui8>, tensor<9xf32>, tensor<9x256xf32>, tensor<i1>) -> (tensor<9x256xui8>, tensor<9xf32>)
  return
}

// Codes of what codes stand for.
// CHECK: @dynamic_again: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @dynamic_again(%m: tensor<16x256xui8> {test.range = array<f64: 0.0, 256.0>},
    %v: tensor<16x256xui8> {test.range = array<f64: 0.0, 256.0>}, %s: tensor<16xf32>, %t: tensor<16xf32>)
    -> (tensor<16x256xui8>, tensor<16xf32>, tensor<16x256xui8>, tensor<16xf32>)
    attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.decode_dynamic %m {has_sign} : (tensor<16x256xui8>) -> tensor<16x256xf32>
  %1 = ckopt.decode_dynamic %v : (tensor<16x256xui8>) -> tensor<16x256xf32>
  %2:2 = ckopt.assign_codes %m, %s, %0 {has_sign} : (tensor<16x256xui8>, tensor<16xf32>, tensor<16x256xf32>) -> (tensor<16x256xui8>, tensor<16xf32>)
  %3:2 = ckopt.assign_codes %v, %t, %1 : (tensor<16x256xui8>, tensor<16xf32>, tensor<16x256xf32>) -> (tensor<16x256xui8>, tensor<16xf32>)
  return %2#0, %2#1, %3#0, %3#1 : tensor<16x256xui8>, tensor<16xf32>, tensor<16x256xui8>, tensor<16xf32>
}

// CHECK: @dynamic_numbers: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @dynamic_numbers(%x: tensor<50x100xui8>, %y: tensor<50x100xui8>) -> (tensor<50x100xf32>, tensor<50x100xf32>)
    attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.decode_dynamic %x {has_sign} : (tensor<50x100xui8>) -> tensor<50x100xf32>
  %1 = ckopt.decode_dynamic %y : (tensor<50x100xui8>) -> tensor<50x100xf32>
  return %0, %1 : tensor<50x100xf32>, tensor<50x100xf32>
}
