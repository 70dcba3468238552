//===- CkoptTrainingOps.td - losses and state updates -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_TRAINING
#define CKOPT_DIALECT_CKOPT_TRAINING

include "ckopt/Dialect/Ckopt/IR/CkoptEnums.td"

// A row's length, the number of classes, and whether logits are padded behind them.
class Ckopt_Classes {
  string decl = [{
    int64_t getRowLength() {
      return ::llvm::cast<::mlir::ShapedType>(getLogits().getType()).getDimSize(int64_t(getAxis()));
    }
    int64_t getNumClasses() { return int64_t(getClasses().value_or(uint64_t(getRowLength()))); }
    bool isPadded() { return getNumClasses() < getRowLength(); }
  }];
}

def Ckopt_CrossEntropyOp : Ckopt_InferOp<"cross_entropy", "RowWise", [SampleAxisOpInterface]> {
  let summary = "Per target: log(sum e^x) - x[target] over the classes along `axis`, and the log-sum-exp";
  let description = [{
    All results have the shape of `targets`; `lost` is what rounding took from the log-sum-exp,
    which has no digits for the sum where logits are huge. Where the target is `ignore_index` the
    loss is 0. The mean is taken outside of this op. With `classes` only so many logits of a row
    are those of classes; what lies behind them is padding, and counts as -infinity.
  }];
  let arguments = (ins Ckopt_FloatTensor:$logits, Ckopt_IndexTensor:$targets, I64Attr:$axis, DefaultValuedAttr<I64Attr, "-100">:$ignore_index, OptionalAttr<I64Attr>:$classes);
  let results = (outs Ckopt_FloatTensor:$loss, Ckopt_FloatTensor:$lse, Ckopt_FloatTensor:$lost);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
  // The loss of each point of an image over the channels; digits of losses count.
  let extraClassDeclaration = baseDecl # Ckopt_AnyWidth<>.decl # Ckopt_Layout<"Uniform">.decl # Ckopt_Storage<"Full">.decl
      # Ckopt_OwnRelation<>.decl # Ckopt_Classes<>.decl;
}
def Ckopt_CrossEntropyGradOp : Ckopt_InferOp<"cross_entropy_grad", "RowWise"> {
  let summary = "grad * (softmax(x) - onehot(target)), 0 where ignored, and behind the `classes`";
  let arguments = (ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$logits, Ckopt_IndexTensor:$targets, Ckopt_FloatTensor:$lse, Ckopt_FloatTensor:$lost, I64Attr:$axis, DefaultValuedAttr<I64Attr, "-100">:$ignore_index, OptionalAttr<I64Attr>:$classes);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$grad `,` $logits `,` $targets `,` $lse `,` $lost attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_Layout<"Uniform">.decl # Ckopt_AnyWidth<>.decl # Ckopt_Classes<>.decl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() {
      if (getLogits().getType() == getOutput().getType())
        return {{1, 0}};
      return {};
    }
  }];
}

def Ckopt_LinearCrossEntropyOp : Ckopt_InferOp<"linear_cross_entropy", "RowWise", [SampleAxisOpInterface]> {
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_OwnRelation<>.decl;
  let summary = "cross_entropy of input weight (+ bias), whose logits never exist whole";
  let description = [{
    A composite: `ckopt-decompose` turns it into products and cross entropies of
    `rows` rows at a time. input [N, K], weight [K, C], [C, K] with
    `transpose_weight`, targets and loss [N], bias [C]. Products of halves give
    logits that are halves, and the loss is f32, of f32 copies of a chunk.
  }];
  let arguments = (ins Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$weight, Ckopt_IndexTensor:$targets, Optional<Ckopt_FloatTensor>:$bias,
                       UnitAttr:$transpose_weight, I64Attr:$rows, DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs Ckopt_FloatTensor:$loss);
  let assemblyFormat = "$input `,` $weight `,` $targets (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
}
def Ckopt_LinearCrossEntropyGradOp : Ckopt_InferOp<"linear_cross_entropy_grad", "RowWise"> {
  let summary = "linear_cross_entropy's loss, and its gradients with respect to input, weight and bias";
  let description = [{
    Decomposed, each chunk's logits give its loss and its gradients, and go. The
    loss is that of `linear_cross_entropy`, which it replaces where `grad` does
    not depend on it, so that no product is computed twice.
  }];
  let arguments = (ins Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$input, Ckopt_FloatTensor:$weight, Ckopt_IndexTensor:$targets,
                       Optional<Ckopt_FloatTensor>:$bias, UnitAttr:$transpose_weight, I64Attr:$rows, DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs Ckopt_FloatTensor:$loss, Ckopt_FloatTensor:$input_grad, Ckopt_FloatTensor:$weight_grad, Optional<Ckopt_FloatTensor>:$bias_grad);
  let assemblyFormat = "$grad `,` $input `,` $weight `,` $targets (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
}

// State updates: the first results are the new values of operands.
def Ckopt_MovingAverageOp : Ckopt_InferOp<"moving_average", "Update"> {
  let summary = "old * momentum + value * (1 - momentum)";
  let arguments = (ins Ckopt_FloatTensor:$old, Ckopt_FloatTensor:$value, F64Attr:$momentum);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$old `,` $value attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getUpdatePairs() { return {{0, 0}}; }
  }];
}

def Ckopt_AssignOp : Ckopt_InferOp<"assign", "Update"> {
  let summary = "The new value of a state: `value`, which takes over the bytes of `old`";
  let description = [{
    Lets optimizers and averages be written with elementwise ops: what computes
    `value` fuses into the update's kernel where it has the state's shape.
  }];
  let arguments = (ins Ckopt_NumTensor:$old, Ckopt_NumTensor:$value);
  let results = (outs Ckopt_NumTensor:$output);
  let assemblyFormat = "$old `,` $value attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # [{
    bool isAssignment() { return true; }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getUpdatePairs() { return {{0, 0}}; }
  }];
}

def Ckopt_AssignCodesOp : Ckopt_InferOp<"assign_codes", "Update"> {
  let summary = "The new codes of a state, and a scale for each row: `value` in 8 bits";
  let description = [{
    A row's scale is its largest magnitude, at least 1e-12, and the code of a number that of the
    nearest to number / scale in the dynamic code book: that of bitsandbytes and torchao
    (create_dynamic_map; Dettmers, "8-bit approximations for parallelism in deep learning", 2015),
    seven decades down to 1e-7 (with signs 1e-6), each with twice the numbers of the one below, 0
    and 1. Codes count numbers in their order. Without `has_sign`, numbers above 0 have codes above
    that of 0, since what is divided by their root would be huge. Where `made` is false, codes and
    scales stay.
  }];
  let arguments = (ins Ckopt_CodeTensor:$codes, Ckopt_SingleTensor:$scales, Ckopt_SingleTensor:$value,
                       Optional<0DTensorOf<[I1]>>:$made, UnitAttr:$has_sign);
  let results = (outs Ckopt_CodeTensor:$new_codes, Ckopt_SingleTensor:$new_scales);
  let assemblyFormat = "$codes `,` $scales `,` $value (`if` $made^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # Ckopt_Flops<30>.decl # [{
    /// The most numbers of a row: kernels keep a row's new ones.
    static constexpr int64_t kMostNumbers = 1024;
    bool isAssignment() { return true; }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getUpdatePairs() { return {{0, 0}, {1, 1}}; }
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getReusePairs() { return getUpdatePairs(); }
  }];
}

def Ckopt_SgdOp : Ckopt_InferOp<"sgd", "Update"> {
  let summary = "SGD with momentum, Nesterov momentum and weight decay, as torch.optim.SGD";
  let description = [{
    g += weight_decay * p; with momentum: v = momentum * v + (1 - dampening) * g (v = g in step 1);
    g = nesterov ? g + momentum * v : v; p -= lr * g. With `skips` step 0 is none: nothing changes.
  }];
  let arguments = (ins Ckopt_FloatTensor:$param, Ckopt_FloatTensor:$grad, 0DTensorOf<[F32, F64]>:$learning_rate,
                       0DTensorOf<[I64]>:$step, Optional<Ckopt_FloatTensor>:$velocity,
                       F64Attr:$momentum, F64Attr:$dampening, F64Attr:$weight_decay, UnitAttr:$nesterov, UnitAttr:$skips);
  let results = (outs Ckopt_FloatTensor:$new_param, Optional<Ckopt_FloatTensor>:$new_velocity);
  let assemblyFormat = "$param `,` $grad `,` $learning_rate `,` $step (`velocity` $velocity^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getUpdatePairs() {
      if (getVelocity())
        return {{0, 0}, {4, 1}};
      return {{0, 0}};
    }
  }];
}

def Ckopt_AdamOp : Ckopt_InferOp<"adam", "Update"> {
  let summary = "Adam, or AdamW with `decoupled`, as torch.optim.Adam and AdamW";
  let description = [{
    decoupled: p *= 1 - lr * weight_decay, else g += weight_decay * p;
    m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g * g;
    p -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon).
    Scalars of the step are computed in double precision. With `skips` step 0 is none: nothing
    changes.
  }];
  let arguments = (ins Ckopt_FloatTensor:$param, Ckopt_FloatTensor:$grad, Ckopt_FloatTensor:$m, Ckopt_FloatTensor:$v,
                       0DTensorOf<[F32, F64]>:$learning_rate, 0DTensorOf<[I64]>:$step,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay, UnitAttr:$decoupled, UnitAttr:$skips);
  let results = (outs Ckopt_FloatTensor:$new_param, Ckopt_FloatTensor:$new_m, Ckopt_FloatTensor:$new_v);
  let assemblyFormat = "$param `,` $grad `,` $m `,` $v `,` $learning_rate `,` $step attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getUpdatePairs() { return {{0, 0}, {2, 1}, {3, 2}}; }
  }];
}

def Ckopt_AccumulateOp : Ckopt_InferOp<"accumulate", "Update"> {
  let summary = "sum + value: a gradient gathered over micro-batches";
  let arguments = (ins Ckopt_FloatTensor:$sum, Ckopt_FloatTensor:$value);
  let results = (outs Ckopt_FloatTensor:$output);
  let assemblyFormat = "$sum `,` $value attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = baseDecl # Ckopt_AnyLayout<>.decl # [{
    ::llvm::SmallVector<std::pair<unsigned, unsigned>> getUpdatePairs() { return {{0, 0}}; }
  }];
}

#endif // CKOPT_DIALECT_CKOPT_TRAINING
