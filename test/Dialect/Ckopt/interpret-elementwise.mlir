// What the elementwise ops mean at their edges: NaN, signed zero, ties,
// integer division, unsigned numbers, rounding to the element type.
// RUN: ckopt-opt %s --split-input-file --test-reference -o /dev/null | FileCheck %s

func.func @main() -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %x = ckopt.constant dense<[-2.5, -0.0, 0.5, 1.5, 0x7F800000, 0x7FC00000]> : tensor<6xf32>
  %relu = ckopt.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %round = ckopt.round %x : (tensor<6xf32>) -> tensor<6xf32>
  %sign = ckopt.sign %x : (tensor<6xf32>) -> tensor<6xf32>
  %clip = ckopt.clip %x {min = -1.0 : f64, max = 1.0 : f64} : (tensor<6xf32>) -> tensor<6xf32>
  %one = ckopt.constant dense<1.0> : tensor<f32>
  %max = ckopt.maximum %x, %one : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  return %relu, %round, %sign, %clip, %max : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}
// CHECK:      result 0: tensor<6xf32> [0, 0, 0.5, 1.5, inf, nan]
// CHECK-NEXT: result 1: tensor<6xf32> [-2, -0, 0, 2, inf, nan]
// CHECK-NEXT: result 2: tensor<6xf32> [-1, 0, 1, 1, 1, 0]
// CHECK-NEXT: result 3: tensor<6xf32> [-1, -0, 0.5, 1, 1, nan]
// CHECK-NEXT: result 4: tensor<6xf32> [1, 1, 1, 1.5, inf, nan]

// -----

// Transcendental functions: exact values and f32 roundings of known constants.
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %x = ckopt.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %0 = ckopt.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = ckopt.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  %2 = ckopt.sigmoid %x : (tensor<2xf32>) -> tensor<2xf32>
  %3 = ckopt.erf %x : (tensor<2xf32>) -> tensor<2xf32>
  %4 = ckopt.softplus %x : (tensor<2xf32>) -> tensor<2xf32>
  %5 = ckopt.gelu %x : (tensor<2xf32>) -> tensor<2xf32>
  %6 = ckopt.gelu %x {tanh} : (tensor<2xf32>) -> tensor<2xf32>
  %7 = ckopt.rsqrt %0 : (tensor<2xf32>) -> tensor<2xf32>
  %8 = ckopt.log %0 : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK:      result 0: tensor<2xf32> [1, 2.71828175]
// CHECK-NEXT: result 1: tensor<2xf32> [0, 0.761594176]
// CHECK-NEXT: result 2: tensor<2xf32> [0.5, 0.731058598]
// CHECK-NEXT: result 3: tensor<2xf32> [0, 0.842700779]
// CHECK-NEXT: result 4: tensor<2xf32> [0.693147182, 1.31326163]
// CHECK-NEXT: result 5: tensor<2xf32> [0, 0.841344774]
// CHECK-NEXT: result 6: tensor<2xf32> [0, 0.841192007]
// CHECK-NEXT: result 7: tensor<2xf32> [1, 0.606530666]
// CHECK-NEXT: result 8: tensor<2xf32> [0, 0.99999994]

// -----

// Integers: division truncates, division by zero gives 0, overflow wraps; mod
// has the divisor's sign, with fmod the dividend's.
func.func @main() -> (tensor<5xi8>, tensor<5xi8>, tensor<5xi8>, tensor<5xi8>, tensor<5xi8>) {
  %a = ckopt.constant dense<[7, -7, 7, -128, 5]> : tensor<5xi8>
  %b = ckopt.constant dense<[2, 2, -2, -1, 0]> : tensor<5xi8>
  %div = ckopt.div %a, %b : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %mod = ckopt.mod %a, %b : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %fmod = ckopt.mod %a, %b {fmod} : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %mul = ckopt.mul %a, %a : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %pow = ckopt.pow %b, %a : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  return %div, %mod, %fmod, %mul, %pow : tensor<5xi8>, tensor<5xi8>, tensor<5xi8>, tensor<5xi8>, tensor<5xi8>
}
// CHECK:      result 0: tensor<5xi8> [3, -3, -3, -128, 0]
// CHECK-NEXT: result 1: tensor<5xi8> [1, 1, -1, 0, 0]
// CHECK-NEXT: result 2: tensor<5xi8> [1, -1, 1, 0, 0]
// CHECK-NEXT: result 3: tensor<5xi8> [49, 49, 49, 0, 25]
// CHECK-NEXT: result 4: tensor<5xi8> [-128, 0, -128, 1, 0]

// -----

// Unsigned 64-bit numbers above 2^63 are large, not negative.
func.func @main() -> (tensor<2xui64>, tensor<2xi1>, tensor<2xui64>, tensor<2xf32>) {
  %a = ckopt.constant dense<[18446744073709551615, 6]> : tensor<2xui64>
  %b = ckopt.constant dense<[3, 4]> : tensor<2xui64>
  %0 = ckopt.div %a, %b : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
  %1 = ckopt.compare gt %a, %b : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xi1>
  %2 = ckopt.maximum %a, %b : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
  %3 = ckopt.cast %a : (tensor<2xui64>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xui64>, tensor<2xi1>, tensor<2xui64>, tensor<2xf32>
}
// CHECK:      result 0: tensor<2xui64> [6148914691236517205, 1]
// CHECK-NEXT: result 1: tensor<2xi1> [1, 1]
// CHECK-NEXT: result 2: tensor<2xui64> [18446744073709551615, 6]
// CHECK-NEXT: result 3: tensor<2xf32> [1.84467441e+19, 6]

// -----

// Comparisons are ordered but for ne; select takes either branch broadcast.
func.func @main() -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<2x3xf32>) {
  %a = ckopt.constant dense<[1.0, 0x7FC00000, 3.0]> : tensor<3xf32>
  %b = ckopt.constant dense<[1.0, 0x7FC00000, 2.0]> : tensor<3xf32>
  %c = ckopt.constant dense<[[true], [false]]> : tensor<2x1xi1>
  %0 = ckopt.compare ge %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %1 = ckopt.compare ne %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %2 = ckopt.xor %0, %1 : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %3 = ckopt.select %c, %a, %b : (tensor<2x1xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0, %1, %2, %3 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<2x3xf32>
}
// CHECK:      result 0: tensor<3xi1> [1, 0, 1]
// CHECK-NEXT: result 1: tensor<3xi1> [0, 1, 1]
// CHECK-NEXT: result 2: tensor<3xi1> [1, 1, 0]
// CHECK-NEXT: result 3: tensor<2x3xf32> [1, nan, 3, 1, nan, 2]

// -----

// Casts: truncation toward zero, wrapping, bool as "not zero", one rounding to
// nearest even (2^60 + 2^36 + 1 lies just above a tie of f32).
func.func @main() -> (tensor<4xi8>, tensor<4xi1>, tensor<4xbf16>, tensor<4xf16>, tensor<1xf32>) {
  %a = ckopt.constant dense<[-1.75, 2.75, 0.0, 65520.0]> : tensor<4xf32>
  %0 = ckopt.cast %a : (tensor<4xf32>) -> tensor<4xi8>
  %1 = ckopt.cast %a : (tensor<4xf32>) -> tensor<4xi1>
  %2 = ckopt.cast %a : (tensor<4xf32>) -> tensor<4xbf16>
  %3 = ckopt.cast %a : (tensor<4xf32>) -> tensor<4xf16>
  %b = ckopt.constant dense<1152921573326323713> : tensor<1xi64>
  %4 = ckopt.cast %b : (tensor<1xi64>) -> tensor<1xf32>
  return %0, %1, %2, %3, %4 : tensor<4xi8>, tensor<4xi1>, tensor<4xbf16>, tensor<4xf16>, tensor<1xf32>
}
// CHECK:      result 0: tensor<4xi8> [-1, 2, 0, -16]
// CHECK-NEXT: result 1: tensor<4xi1> [1, 1, 0, 1]
// CHECK-NEXT: result 2: tensor<4xbf16> [-1.75, 2.75, 0, 65536]
// CHECK-NEXT: result 3: tensor<4xf16> [-1.75, 2.75, 0, inf]
// CHECK-NEXT: result 4: tensor<1xf32> [1.15292164e+18]

// -----

// Bits of integers: shifts by the width or more leave zeros, or the sign where a
// signed number goes right; a negative count is a huge one.
func.func @main() -> (tensor<5xi8>, tensor<5xi8>, tensor<3xui8>, tensor<3xui8>, tensor<3xi8>, tensor<3xi1>) {
  %a = ckopt.constant dense<[1, -128, 64, -3, 5]> : tensor<5xi8>
  %n = ckopt.constant dense<[7, 1, 8, 1, -1]> : tensor<5xi8>
  %0 = ckopt.shift_left %a, %n : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %1 = ckopt.shift_right %a, %n : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %b = ckopt.constant dense<[200, 200, 15]> : tensor<3xui8>
  %m = ckopt.constant dense<[1, 9, 4]> : tensor<3xui8>
  %2 = ckopt.shift_left %b, %m : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  %3 = ckopt.shift_right %b, %m : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  %c = ckopt.constant dense<[0, -1, 5]> : tensor<3xi8>
  %4 = ckopt.not %c : (tensor<3xi8>) -> tensor<3xi8>
  %d = ckopt.constant dense<[true, false, true]> : tensor<3xi1>
  %5 = ckopt.not %d : (tensor<3xi1>) -> tensor<3xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<5xi8>, tensor<5xi8>, tensor<3xui8>, tensor<3xui8>, tensor<3xi8>, tensor<3xi1>
}
// CHECK:      result 0: tensor<5xi8> [-128, 0, 0, -6, 0]
// CHECK-NEXT: result 1: tensor<5xi8> [0, -64, 0, -2, 0]
// CHECK-NEXT: result 2: tensor<3xui8> [144, 0, 240]
// CHECK-NEXT: result 3: tensor<3xui8> [100, 0, 0]
// CHECK-NEXT: result 4: tensor<3xi8> [-1, 0, -6]
// CHECK-NEXT: result 5: tensor<3xi1> [0, 1, 0]
