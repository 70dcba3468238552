// States in bf16: kernels read them as f32 and round the new ones, by numbers of one draw for two
// states, so that no f32 copy of a state is stored. Small parameters keep f32.
// RUN: ckopt-opt %s --optimizer="type=adamw state-type=bf16" | FileCheck %s
// RUN: ckopt-opt %s --optimizer="type=adamw state-type=bf16" --canonicalize --cse --fuse | FileCheck %s --check-prefix=FUSED
// RUN: ckopt-opt %s --optimizer="type=sgd momentum=0.9 state-type=bf16" | FileCheck %s --check-prefix=SGD
// RUN: ckopt-opt %s --optimizer="type=adam weight-decay=0.1 clip-norm=1 state-type=int8" --canonicalize --cse --fuse | FileCheck %s --check-prefix=CODED
// RUN: not ckopt-opt %s --optimizer="type=adamw state-type=int3" 2>&1 | FileCheck %s --check-prefix=TYPE

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    tensor<64x64xbf16> {ckopt.name = "a/m", ckopt.role = "optimizer_state"}
// CHECK-SAME:    tensor<64x64xbf16> {ckopt.name = "a/v", ckopt.role = "optimizer_state"}
// CHECK-SAME:    tensor<4095xf32> {ckopt.name = "b/m"
// CHECK-SAME:    tensor<i64> {ckopt.name = "step"
// CHECK-SAME:    tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"}
// CHECK:         ckopt.random {{ *}}uniform
// CHECK-NOT:     ckopt.random
// CHECK:         ckopt.assign {{.*}} : (tensor<64x64xf32>, tensor<64x64xf32>)
// CHECK-COUNT-2: ckopt.assign {{.*}} : (tensor<64x64xbf16>, tensor<64x64xbf16>)
// CHECK-COUNT-3: ckopt.assign {{.*}} : (tensor<4095xf32>, tensor<4095xf32>)

// FUSED-LABEL: func.func @step(
// FUSED:       ckopt.kernel_call @[[A:[a-z0-9_]+]]({{.*}} -> (tensor<64x64xf32>, tensor<64x64xbf16>, tensor<64x64xbf16>)
// FUSED:       ckopt.kernel_call {{.*}} -> (tensor<4095xf32>, tensor<4095xf32>, tensor<4095xf32>)
// FUSED-NOT:   kernel_call
// FUSED:       return
// FUSED:       func.func private @[[A]](
// FUSED:       ckopt.random {{ *}}uniform

// SGD-LABEL: func.func @step(
// SGD-SAME:    tensor<64x64xbf16> {ckopt.name = "a/velocity"
// SGD-SAME:    tensor<4095xf32> {ckopt.name = "b/velocity"

// A kernel decodes, updates and codes a row at a time: new states are computed once, and no f32 of
// their size is stored.
// CODED-LABEL: func.func @step(
// CODED-SAME:  tensor<64x64xui8> {ckopt.name = "a/m", ckopt.role = "optimizer_state"}
// CODED-SAME:  tensor<16xf32> {ckopt.name = "a/m_scale", ckopt.role = "optimizer_state"}
// CODED-SAME:  tensor<64x64xui8> {ckopt.name = "a/v"
// CODED-SAME:  tensor<4095xf32> {ckopt.name = "b/m"
// CODED:       ckopt.kernel_call {{.*}} -> (tensor<16x256xf32>, tensor<16x256xui8>, tensor<16xf32>, tensor<16x256xui8>, tensor<16xf32>)
// CODED-NOT:   ckopt.kernel_call {{.*}}tensor<16x256x
// CODED:       return

// TYPE: optimizer: state-type 'int3' is not one of f32, bf16, int8
func.func @step(
    %a: tensor<64x64xf32> {ckopt.name = "a", ckopt.role = "parameter"},
    %b: tensor<4095xf32> {ckopt.name = "b", ckopt.role = "parameter"},
    %ga: tensor<64x64xf32>, %gb: tensor<4095xf32>)
    -> (tensor<f32> {ckopt.name = "loss"},
        tensor<64x64xf32> {ckopt.gradient = 0 : i64},
        tensor<4095xf32> {ckopt.gradient = 1 : i64}) {
  %loss = ckopt.constant dense<0.0> : tensor<f32>
  return %loss, %ga, %gb : tensor<f32>, tensor<64x64xf32>, tensor<4095xf32>
}
