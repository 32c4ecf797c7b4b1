// SPDX-License-Identifier: Apache-2.0
// The fields of schema.fbs of ExecuTorch's MPS delegate, one list for each table. Fields that are
// not read are left out. Nodes that start like another one share its first fields.
#pragma once

#include "formats/executorch/schema/field.h"

namespace anymps::executorch::field {

struct MpsGraph {
  static constexpr FlatField kNodes{1, "mps_nodes"}, kValues{2, "mps_values"},
      kInputs{3, "input_ids"}, kOutputs{4, "output_ids"}, kConstants{5, "constant_ids"};
};
struct MpsNode {
  static constexpr FlatField kKind{0, "mpsnode_union_type"}, kFields{1, "mpsnode_union"},
      kMinMax{2, "min_max"};
};
struct MpsMinMax {
  static constexpr FlatField kMin{0, "min_value"}, kMax{1, "max_value"};
};
struct MpsTensor {
  static constexpr FlatField kDatatype{0, "datatype"}, kNumDims{1, "num_dims"}, kDims{2, "dims"},
      kBufferSize{3, "constant_buffer_size"}, kBuffer{4, "constant_buffer"},
      kSegmentOffset{5, "segment_offset"};
};
struct MpsBuffer {
  static constexpr FlatField kStorage{0, "storage"};
};

// One, two and three inputs.
struct Unary {
  static constexpr FlatField kInput{0, "input1_id"}, kOutput{1, "output_id"};
};
struct Binary {
  static constexpr FlatField kInput1{0, "input1_id"}, kInput2{1, "input2_id"},
      kOutput{2, "output_id"}, kAlpha{3, "alpha"}, kRounding{3, "rounding_mode"};
};
struct Ternary {
  static constexpr FlatField kInput1{0, "input1_id"}, kInput2{1, "input2_id"},
      kInput3{2, "input3_id"}, kOutput{3, "output_id"};
};

struct HardTanh : Unary {
  static constexpr FlatField kMin{2, "min_value"}, kMax{3, "max_value"};
};
struct Gelu : Unary {
  static constexpr FlatField kApproximate{2, "approximate"};
};
struct LeakyRelu : Unary {
  static constexpr FlatField kSlope{2, "negative_slope"};
};

struct Full {
  static constexpr FlatField kLike{0, "input1_id"}, kOutput{1, "output_id"}, kShape{2, "shape"},
      kFillValue{3, "fill_value"}, kType{4, "dtype"};
};
struct Arange {
  static constexpr FlatField kOutput{0, "output_id"}, kStart{1, "start"}, kEnd{2, "end"},
      kStep{3, "step"}, kType{4, "dtype"};
};
struct Cast : Unary {
  static constexpr FlatField kType{2, "dtype"};
};
struct DequantizePerChannelGroup : Unary {
  static constexpr FlatField kScales{2, "scales_id"}, kZeroPoints{3, "zero_points_id"},
      kGroupSize{7, "group_size"};
};

struct Conv : Ternary {
  static constexpr FlatField kStrideX{4, "stride_x"}, kStrideY{5, "stride_y"},
      kDilationX{6, "dilation_x"}, kDilationY{7, "dilation_y"}, kGroups{8, "groups"},
      kLeft{9, "padding_left"}, kRight{10, "padding_right"}, kTop{11, "padding_top"},
      kBottom{12, "padding_bottom"};
};
struct BatchNorm {
  static constexpr FlatField kInput{0, "input_id"}, kMean{1, "mean_id"}, kVariance{2, "var_id"},
      kWeight{3, "weight_id"}, kBias{4, "bias_id"}, kEpsilon{6, "epsilon"},
      kOutput2{7, "output2_id"}, kOutput1{8, "output1_id"}, kOutput3{9, "output3_id"};
};
struct LayerNorm {
  static constexpr FlatField kInput{0, "input1_id"}, kShape{1, "normalized_shape"},
      kWeight{2, "weight_id"}, kBias{3, "bias_id"}, kEpsilon{4, "eps"}, kOutput2{5, "output2_id"},
      kOutput1{6, "output1_id"}, kOutput3{7, "output3_id"};
};
struct Addmm : Ternary {
  static constexpr FlatField kBeta{4, "beta"}, kAlpha{5, "alpha"};
};
struct Softmax : Unary {
  static constexpr FlatField kDim{2, "dim"}, kHalfToFloat{3, "half_to_float"};
};
struct Mean : Unary {
  static constexpr FlatField kNumDims{2, "num_dims"}, kDims{3, "dims"}, kKeepDims{4, "keep_dims"};
};
struct Pool {
  static constexpr FlatField kInput{0, "input1_id"}, kKernelHeight{1, "kernel_height"},
      kKernelWidth{2, "kernel_width"}, kStrideHeight{3, "stride_height"},
      kStrideWidth{4, "stride_width"}, kLeft{5, "padding_left"}, kRight{6, "padding_right"},
      kTop{7, "padding_top"}, kBottom{8, "padding_bottom"}, kDilationHeight{9, "dilation_height"},
      kDilationWidth{10, "dilation_width"}, kCeilMode{11, "ceil_mode"},
      kCountIncludePad{12, "count_include_pad"}, kDivisorOverride{13, "divisor_override"},
      kOutput1{14, "output1_id"}, kOutput2{15, "output2_id"};
};

struct IndexTensor {
  static constexpr FlatField kInput{0, "input1_id"}, kIndices{1, "indices_id"},
      kOutput{2, "output_id"};
};
struct IndexPut {
  static constexpr FlatField kInput{0, "input1_id"}, kIndices{1, "indices_id"},
      kValues{3, "values_id"}, kOutput{4, "output_id"};
};
struct IndexSelect : Unary {
  static constexpr FlatField kDim{2, "dim"}, kIndex{3, "index_id"};
};
struct Scatter : Unary {
  static constexpr FlatField kDim{2, "dim"}, kIndex{3, "idx_id"}, kSource{4, "src_id"};
};

struct Permute : Unary {
  static constexpr FlatField kNumDims{2, "num_dims"}, kPerm{3, "perm"};
};
struct View : Unary {  // and MPSExpand
  static constexpr FlatField kNumDims{2, "num_dims"}, kShape{3, "shape"};
};
struct Cat {
  static constexpr FlatField kInputs{0, "input_ids"}, kOutput{1, "output_id"}, kDim{2, "dim"};
};
struct Squeeze : Unary {
  static constexpr FlatField kDims{2, "dims"};
};
struct Unsqueeze : Unary {
  static constexpr FlatField kDim{2, "dim"};
};
struct Select : Unary {
  static constexpr FlatField kDim{2, "dim"}, kIndex{3, "index"};
};
struct Slice : Unary {
  static constexpr FlatField kDim{2, "dim"}, kStart{3, "start"}, kEnd{4, "end"}, kStep{5, "step"};
};
struct PixelShuffle : Unary {
  static constexpr FlatField kFactor{2, "upscale_factor"};
};
struct Split {
  static constexpr FlatField kInput{0, "input1_id"}, kOutputs{1, "output_ids"},
      kSizes{2, "split_sizes"}, kDim{3, "dim"};
};
struct ConstantPad : Unary {
  static constexpr FlatField kPad{2, "pad"}, kValue{3, "value"};
};

}  // namespace anymps::executorch::field
