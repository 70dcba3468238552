//===- CallTable.cpp - calls of PyTorch that ckopt can compare ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the calls whose form in ONNX is known to be the same function, by
// PyTorch's exporter, with each argument that they may have. An argument that
// is not in the list, and a call that is not, is one that nobody has compared.
// A line is "names: arguments":
//
//   dim                the form in ONNX is made from the argument
//   -layout            it has no effect on values
//   divisor=None       the exporter drops it: other values are another function
//   scales~None        other values have not been compared
//   dim>axis           it is this attribute of a node
//   reduce>reduction:sum=add|prod=mul    the same by other words; no other word
//                                        has a form
//
// The import puts back a mean at indices. The equation of einsum has commas of
// its own, which notes do not quote. Names without "package." are those of
// aten; a name without an overload stands for all overloads that have no line
// of their own.
//
//===----------------------------------------------------------------------===//
#include "CallTable.h"
#include "llvm/ADT/StringMap.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::StringRef;

static constexpr const char lines[] = R"(
abs,acos,acosh,alias,angle,asin,asinh,atan,atanh,ceil,cos,cosh,deg2rad,detach,erf,erfc,exp,exp2,expm1,floor,frac,hardsigmoid,hardswish,isfinite,isinf,isnan,isneginf,isposinf,lift_fresh_copy,log,log10,log1p,log2,log_sigmoid,logical_not,bitwise_not,mish,neg,rad2deg,reciprocal,relu,relu6,rsqrt,selu,sigmoid,sign,silu,sin,sinc,sinh,special_erf,special_erfc,special_expm1,sqrt,t,tan,tanh,trunc,mT,numpy_T,nonzero: self
round.default,round: self
round.decimals: self decimals
squeeze.default: self
squeeze,squeeze.dim: self dim
add,sub,subtract: self other alpha
mul,multiply,div,divide,true_divide,floor_divide,eq,ne,lt,le,gt,ge,greater,greater_equal,less,less_equal,maximum,minimum,atan2,remainder,fmod,xlogy,logaddexp,logical_and,logical_or,logical_xor,bitwise_and,bitwise_or,bitwise_xor,matmul,mm,bmm,mv,dot: self other
div.Tensor_mode,div.Scalar_mode: self other rounding_mode
pow: self exponent
addmm,addbmm,baddbmm,addmv: self a b beta alpha
addcdiv,addcmul: self a b value
linear: input weight bias
bilinear: a b weight bias
einsum: equation tensors -more -more -more -more -more
lerp: self end weight
where: condition self other
masked_fill: self mask value
fill: self value
clamp: self min max
clamp_min,clamp_max: self bound
gelu: self approximate>approximate
leaky_relu: self negative_slope>alpha
elu: self alpha>alpha scale=1|1.0 input_scale=1|1.0
celu: self alpha
hardtanh: self min max
softplus: self beta threshold
prelu,_prelu_kernel: self weight
glu: self dim
softmax,log_softmax,special_softmax,special_log_softmax: self dim>axis dtype
_softmax,_log_softmax: self dim>axis half_to_float
logsumexp: self dim keepdim
sum,mean,prod: self dtype
sum.dim_IntList,mean.dim,prod.dim_int: self dim keepdim dtype
amax,amin,all.dim,all.dims,any.dim,any.dims,max.dim,min.dim: self dim keepdim
all,any,max,min: self
argmax,argmin: self dim keepdim
linalg_vector_norm: self ord dim keepdim dtype
cumsum: self dim dtype
logcumsumexp: self dim
topk: self k dim>axis largest>largest sorted
sort: self dim descending
sort.stable: self -stable dim descending
tril,triu: self diagonal
view,_unsafe_view,reshape,view_copy: self size
view_as,expand_as: self other
flatten: self start end
unflatten: self dim sizes
permute: self dims
transpose: self a b
unsqueeze: self dim
expand,broadcast_to: self size -implicit
repeat,tile: self repeats
select: self dim>axis index
slice: self dim start end step
narrow: self dim start length
split,unsafe_split,split_with_sizes: self sizes dim>axis
chunk: self chunks dim
unbind: self dim
cat,concat,concatenate: tensors dim>axis
stack: tensors dim
flip: self dims
roll: self shifts dims
diagonal,diagonal_copy: self offset a b
pixel_shuffle: self factor>blocksize
pixel_unshuffle: self factor
unfold: self dimension size step
pad: self pad mode value
constant_pad_nd: self pad value
reflection_pad1d,reflection_pad2d,reflection_pad3d,replication_pad1d,replication_pad2d,replication_pad3d: self padding
gather: self dim>axis index -sparse_grad
index_select: self dim>axis index
index,_unsafe_index: self indices
index_put,_unsafe_index_put: self indices values accumulate>reduction:True=add|False=none
scatter.src,scatter.value: self dim>axis index src
scatter_add: self dim>axis index src
scatter_reduce: self dim>axis index src reduce>reduction:sum=add|prod=mul|amax=max|amin=min|mean=none include_self
select_scatter: self src dim index
slice_scatter: self src dim start end step
embedding: weight indices padding_idx scale_grad_by_freq=False -sparse
embedding_bag.padding_idx,_embedding_bag,_embedding_bag_forward_only: weight indices offsets scale_grad_by_freq=False mode -sparse per_sample_weights include_last_offset padding_idx
embedding_bag: weight indices offsets scale_grad_by_freq=False mode -sparse per_sample_weights include_last_offset
repeat_interleave.self_int: self repeats dim -output_size
clone,contiguous: self -memory_format
copy: self src -non_blocking
_to_copy,to: self dtype -layout -device -pin_memory -non_blocking -memory_format
type_as: self other
arange: end dtype -layout -device -pin_memory
arange.start: start end dtype -layout -device -pin_memory
arange.start_step: start end step dtype -layout -device -pin_memory
full,new_full: self size value dtype -layout -device -pin_memory -memory_format
full_like: self value dtype -layout -device -pin_memory -memory_format
zeros,ones,rand,randn,empty: size dtype -layout -device -pin_memory -memory_format
new_zeros,new_ones,new_empty: self size dtype -layout -device -pin_memory -memory_format
zeros_like,ones_like,empty_like,rand_like,randn_like: self dtype -layout -device -pin_memory -memory_format
scalar_tensor: s dtype -layout -device -pin_memory
linspace: start end steps dtype -layout -device -pin_memory
bernoulli.p: self p
native_dropout,dropout: input p train
conv1d,conv2d,conv3d: input weight bias stride>strides padding>pads dilation>dilations groups>group
convolution: input weight bias stride>strides padding dilation>dilations transposed output_padding groups>group
conv_transpose1d,conv_transpose2d,conv_transpose3d: input weight bias stride>strides padding output_padding groups>group dilation>dilations
avg_pool1d: self kernel>kernel_shape stride>strides padding>pads ceil_mode>ceil_mode count_include_pad>count_include_pad
avg_pool2d,avg_pool3d: self kernel>kernel_shape stride>strides padding>pads ceil_mode>ceil_mode count_include_pad>count_include_pad divisor_override=None
max_pool1d,max_pool2d,max_pool3d,max_pool1d_with_indices,max_pool2d_with_indices,max_pool3d_with_indices: self kernel>kernel_shape stride>strides padding>pads dilation>dilations ceil_mode>ceil_mode
upsample_bicubic2d,upsample_bilinear2d: self size align_corners>coordinate_transformation_mode:True=align_corners|False=pytorch_half_pixel scales_h~None scales_w~None
upsample_linear1d: self size align_corners scales~None
upsample_nearest1d: self size scales
upsample_nearest2d,upsample_nearest3d: self size scales_d scales_h scales_w
upsample_trilinear3d: self size align_corners scales_d scales_h scales_w
upsample_nearest1d.vec,upsample_nearest2d.vec,upsample_nearest3d.vec: self size scales
upsample_linear1d.vec,upsample_bilinear2d.vec,upsample_bicubic2d.vec,upsample_trilinear3d.vec: self size align_corners scales
grid_sampler,grid_sampler_2d: input grid interpolation_mode padding_mode align_corners>align_corners
im2col: self kernel dilation padding stride
col2im: self size kernel dilation padding stride
_native_batch_norm_legit_no_training: input weight bias mean var momentum eps>epsilon
_native_batch_norm_legit.no_stats: input weight bias training momentum eps>epsilon
_native_batch_norm_legit_functional,_native_batch_norm_legit,native_batch_norm,batch_norm: input weight bias mean var training momentum eps>epsilon -cudnn_enabled
instance_norm: input weight bias mean var training momentum eps>epsilon -cudnn_enabled
layer_norm: input shape weight bias eps>epsilon -cudnn_enabled
native_layer_norm: input shape weight bias eps>epsilon
group_norm: input groups weight bias eps>epsilon -cudnn_enabled
native_group_norm: input weight bias N -C -HxW group eps>epsilon
rms_norm: input shape weight eps
scaled_dot_product_attention: query key value mask dropout_p~0.0|0 is_causal scale enable_gqa
_scaled_dot_product_flash_attention_for_cpu: query key value dropout_p~0.0|0 is_causal attn_mask scale
lstm.input,gru.input,rnn_tanh.input,rnn_relu.input: input states weights has_biases layers dropout=0.0|0 train bidirectional batch_first
mse_loss: self target reduction
cross_entropy_loss: self target weight reduction>reduction:0=none|1=mean|2=sum ignore_index>ignore_index label_smoothing
nll_loss,nll_loss_forward,nll_loss_nd: self target weight reduction>reduction:0=none|1=mean|2=sum ignore_index>ignore_index
fake_quantize_per_tensor_affine: self scale zero_point quant_min quant_max
sym_size: self dim
prims.convert_element_type: a dtype
prims.device_put: a -device -non_blocking
prims.broadcast_in_dim: a shape dimensions
prims.sum: a dims dtype
prims.var: a dims correction dtype
operator.getitem,getitem: self index
operator.add,operator.sub,operator.mul,operator.truediv,operator.floordiv,operator.mod,operator.pow,operator.eq,operator.ne,operator.lt,operator.le,operator.gt,operator.ge: self other
operator.neg: self
sym_float,sym_int: self
sym_max,sym_min: a b
)";

static CallArgument parseArgument(StringRef text) {
  CallArgument argument;
  if (text.consume_front("-"))
    argument.kind = CallArgument::Idle;
  size_t end = text.find_first_of("=~>");
  argument.name = text.take_front(end);
  if (end == StringRef::npos)
    return argument;
  StringRef rest = text.substr(end + 1);
  argument.kind = text[end] == '='   ? CallArgument::Only
                  : text[end] == '~' ? CallArgument::Uncertain
                                     : CallArgument::Attribute;
  if (argument.kind == CallArgument::Attribute)
    std::tie(argument.attribute, rest) = rest.split(':');
  if (!rest.empty())
    rest.split(argument.values, '|');
  return argument;
}

static llvm::StringMap<CallArguments> parseTable() {
  llvm::StringMap<CallArguments> table;
  llvm::SmallVector<StringRef> all;
  StringRef(lines).split(all, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : all) {
    auto [names, arguments] = line.split(": ");
    llvm::SmallVector<StringRef> list, words;
    names.split(list, ',');
    arguments.split(words, ' ');
    CallArguments parsed;
    for (StringRef word : words)
      parsed.push_back(parseArgument(word));
    for (StringRef name : list)
      table[name] = parsed;
  }
  return table;
}

const CallArguments *onnx_frontend::findCall(StringRef target) {
  static const llvm::StringMap<CallArguments> table = parseTable();
  target.consume_front("aten.");
  auto found = table.find(target);
  if (found == table.end())
    found = table.find(target.rsplit('.').first);
  return found == table.end() ? nullptr : &found->second;
}
