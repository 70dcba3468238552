gpu.module @ckopt_kernels {
  gpu.func @around(%from: i64, %to: i64, %p: !llvm.ptr) kernel {
    %one = arith.constant 1 : i64
    %many = arith.constant 32 : i64
    scf.for %i = %from to %to step %one : i64 {
      scf.for %j = %from to %many step %one : i64 {
        %at = llvm.getelementptr %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i64
        llvm.store %i, %at : i64, !llvm.ptr
      }
    }
    gpu.return
  }
  gpu.func @long(%p: !llvm.ptr) kernel {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %many = arith.constant 392 : i64
    scf.for %i = %zero to %many step %one : i64 {
      %at = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      llvm.store %i, %at : i64, !llvm.ptr
    }
    gpu.return
  }
  gpu.func @short(%p: !llvm.ptr) kernel {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %few = arith.constant 16 : i64
    scf.for %i = %zero to %few step %one : i64 {
      %at = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      llvm.store %i, %at : i64, !llvm.ptr
    }
    gpu.return
  }
}
