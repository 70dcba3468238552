// @f reads a buffer through a tensor before it stores to the buffer, and uses what it read far below.
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func @f(%m: memref<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %seven = arith.constant 7.0 : f32
  %t = bufferization.to_tensor %m restrict : memref<4x4xf32> to tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.exp ins(%t : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  memref.store %seven, %m[%c0, %c0] : memref<4x4xf32>
  %b = linalg.tanh ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.tanh ins(%b : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = linalg.tanh ins(%c : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = linalg.mul ins(%d, %c : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %h = linalg.mul ins(%g, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %i = linalg.mul ins(%h, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %i : tensor<4x4xf32>
}
func.func @writes(%m: memref<4xf32>, %x: tensor<4xf32>) -> (f32, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %seven = arith.constant 7.0 : f32
  %t = bufferization.to_tensor %m restrict writable : memref<4xf32> to tensor<4xf32>
  %a = linalg.fill ins(%seven : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %l = memref.load %m[%c0] : memref<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %b = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %l, %b : f32, tensor<4xf32>
}
func.func @main() {
  %m = memref.alloc() : memref<4x4xf32>
  %half = arith.constant 0.5 : f32
  linalg.fill ins(%half : f32) outs(%m : memref<4x4xf32>)
  %r = func.call @f(%m) : (memref<4x4xf32>) -> tensor<4x4xf32>
  %b = bufferization.to_buffer %r : tensor<4x4xf32> to memref<4x4xf32>
  %u = memref.cast %b : memref<4x4xf32> to memref<*xf32>
  func.call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
