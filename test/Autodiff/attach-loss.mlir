// cross_entropy divides the sum by the number of targets that count; other
// results follow the loss.
// RUN: ckopt-opt %s --attach-loss="ignore-index=0 target=labels" | FileCheck %s
// RUN: ckopt-opt %s --attach-loss="target=x" | FileCheck %s --check-prefix=TAKEN
// RUN: ckopt-opt %s --attach-loss="loss=mse:features" | FileCheck %s --check-prefix=MSE

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x3x5xf32>
// CHECK-SAME:    %[[T:[^:]*]]: tensor<2x3xi64> {ckopt.classes = 5 : i64, ckopt.ignore_index = 0 : i64, ckopt.name = "labels", ckopt.role = "target", ckopt.target_of = "logits"}
// CHECK-SAME:    -> (tensor<f32> {ckopt.name = "loss", ckopt.role = "loss"}, tensor<2x3x5xf32> {ckopt.name = "logits"}, tensor<2xf32> {ckopt.name = "features"})
// CHECK:         %[[NE:.*]] = ckopt.compare{{ *}} ne %[[T]],
// CHECK:         %[[LOSSES:[^,]*]], %{{.*}} = ckopt.cross_entropy %[[X]], %[[T]] {axis = 2 : i64, ignore_index = 0 : i64}
// CHECK:         %[[ONES:.*]] = ckopt.cast %[[NE]]
// CHECK:         %[[N:.*]] = ckopt.reduce{{ *}} sum %[[ONES]]
// CHECK:         %[[S:.*]] = ckopt.reduce{{ *}} sum %[[LOSSES]]
// CHECK:         %[[L:.*]] = ckopt.div %[[S]], %[[N]]
// CHECK:         return %[[L]], %[[X]],

// A name that is taken gets a number.
// TAKEN: {{.*}}ckopt.name = "x.2", ckopt.role = "target"

// MSE-LABEL: func.func @forward(
// MSE-SAME:    %[[T:[^:]*]]: tensor<2xf32> {ckopt.name = "target", ckopt.role = "target", ckopt.target_of = "features"}
// MSE:         %[[D:.*]] = ckopt.sub %{{.*}}, %[[T]]
// MSE:         %[[SQ:.*]] = ckopt.mul %[[D]], %[[D]]
// MSE:         ckopt.reduce{{ *}} mean %[[SQ]]
func.func @forward(
    %x: tensor<2x3x5xf32> {ckopt.name = "x", ckopt.role = "input"},
    %y: tensor<2xf32> {ckopt.name = "y", ckopt.role = "parameter"})
    -> (tensor<2x3x5xf32> {ckopt.name = "logits"}, tensor<2xf32> {ckopt.name = "features"}) {
  return %x, %y : tensor<2x3x5xf32>, tensor<2xf32>
}
