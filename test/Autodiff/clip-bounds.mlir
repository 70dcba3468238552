// Where a clip passes gradients. RUN: ckopt-opt %s --autodiff | FileCheck %s
