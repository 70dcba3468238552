// Two matrix products, their activations and a loop, all read again further down; @main prints the
// bits of the result.
func.func private @printMemrefI32(tensor<*xi32>) attributes {llvm.emit_c_interface}

func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = math.tanh %0 : tensor<8x8xf32>
  %2 = linalg.matmul ins(%1, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = math.tanh %2 : tensor<8x8xf32>
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %4 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %3) -> (tensor<8x8xf32>) {
    %m = arith.mulf %a, %1 : tensor<8x8xf32>
    %n = arith.addf %m, %w : tensor<8x8xf32>
    scf.yield %n : tensor<8x8xf32>
  }
  %5 = arith.mulf %4, %3 : tensor<8x8xf32>
  %6 = arith.mulf %5, %2 : tensor<8x8xf32>
  %7 = arith.addf %6, %1 : tensor<8x8xf32>
  %8 = arith.mulf %7, %0 : tensor<8x8xf32>
  return %8 : tensor<8x8xf32>
}

func.func @main() {
  %x = tensor.generate {
  ^bb0(%i: index, %j: index):
    %s = arith.muli %i, %j : index
    %t = arith.index_cast %s : index to i32
    %v = arith.sitofp %t : i32 to f32
    %c = arith.constant 0.013 : f32
    %r = arith.mulf %v, %c : f32
    tensor.yield %r : f32
  } : tensor<8x8xf32>
  %w = tensor.generate {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %t = arith.index_cast %s : index to i32
    %v = arith.sitofp %t : i32 to f32
    %c = arith.constant -0.031 : f32
    %r = arith.mulf %v, %c : f32
    tensor.yield %r : f32
  } : tensor<8x8xf32>
  %y = func.call @f(%x, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = arith.bitcast %y : tensor<8x8xf32> to tensor<8x8xi32>
  %u = tensor.cast %b : tensor<8x8xi32> to tensor<*xi32>
  func.call @printMemrefI32(%u) : (tensor<*xi32>) -> ()
  return
}
