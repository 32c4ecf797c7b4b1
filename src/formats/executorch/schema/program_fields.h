// SPDX-License-Identifier: Apache-2.0
// The fields of ExecuTorch's program.fbs, flat_tensor.fbs and bundled_program.fbs, one list for
// each table, for the reader and for tests that write files. Fields that neither uses are left out.
#pragma once

#include <cstdint>

#include "formats/executorch/schema/field.h"

namespace anymps::executorch::field {

struct Program {
  static constexpr FlatField kVersion{0, "version"}, kExecutionPlan{1, "execution_plan"},
      kConstantBuffer{2, "constant_buffer"}, kBackendDelegateData{3, "backend_delegate_data"},
      kSegments{4, "segments"}, kConstantSegment{5, "constant_segment"},
      kMutableDataSegments{6, "mutable_data_segments"}, kNamedData{7, "named_data"};
};

struct ExecutionPlan {
  static constexpr FlatField kName{0, "name"}, kValues{2, "values"}, kInputs{3, "inputs"},
      kOutputs{4, "outputs"}, kChains{5, "chains"}, kOperators{6, "operators"},
      kDelegates{7, "delegates"}, kNonConstBufferSizes{8, "non_const_buffer_sizes"};
};

// A union is two fields: the number of its type, and the table.
struct EValue {
  static constexpr FlatField kType{0, "val_type"}, kValue{1, "val"};
  enum Type : uint8_t {
    kNull = 1,
    kInt = 2,
    kBool = 3,
    kDouble = 4,
    kTensor = 5,
    kString = 6,
    kIntList = 7,
    kDoubleList = 8,
    kBoolList = 9,
    kTensorList = 10,
    kOptionalTensorList = 11,
  };
};
struct Int {
  static constexpr FlatField kValue{0, "int_val"};
};
struct Bool {
  static constexpr FlatField kValue{0, "bool_val"};
};
struct Double {
  static constexpr FlatField kValue{0, "double_val"};
};
struct String {
  static constexpr FlatField kValue{0, "string_val"};
};
struct List {  // of any kind
  static constexpr FlatField kItems{0, "items"};
};

struct Tensor {
  static constexpr FlatField kScalarType{0, "scalar_type"}, kStorageOffset{1, "storage_offset"},
      kSizes{2, "sizes"}, kDimOrder{3, "dim_order"}, kDataBuffer{5, "data_buffer_idx"},
      kAllocation{6, "allocation_info"}, kDynamism{8, "shape_dynamism"},
      kExtra{9, "extra_tensor_info"};
};
struct AllocationDetails {
  static constexpr FlatField kMemory{0, "memory_id"}, kOffsetLow{1, "memory_offset_low"},
      kOffsetHigh{2, "memory_offset_high"};
};
struct ExtraTensorInfo {
  static constexpr FlatField kMutableSegment{0, "mutable_data_segments_idx"},
      kName{1, "fully_qualified_name"}, kLocation{2, "location"};
};

struct Operator {
  static constexpr FlatField kName{0, "name"}, kOverload{1, "overload"};
};

struct BackendDelegate {
  static constexpr FlatField kId{0, "id"}, kProcessed{1, "processed"},
      kCompileSpecs{2, "compile_specs"};
};
struct BackendDelegateDataReference {
  static constexpr FlatField kLocation{0, "location"}, kIndex{1, "index"};
};
struct BackendDelegateInlineData {
  static constexpr FlatField kData{0, "data"};
};
struct CompileSpec {
  static constexpr FlatField kKey{0, "key"}, kValue{1, "value"};
};

struct Chain {
  static constexpr FlatField kInstructions{2, "instructions"};
};
struct Instruction {
  static constexpr FlatField kType{0, "instr_args_type"}, kArgs{1, "instr_args"};
  enum Type : uint8_t { kKernel = 1, kDelegate = 2, kMove = 3, kJumpFalse = 4, kFree = 5 };
};
struct KernelCall {
  static constexpr FlatField kOperator{0, "op_index"}, kArgs{1, "args"};
};
struct DelegateCall {
  static constexpr FlatField kDelegate{0, "delegate_index"}, kArgs{1, "args"};
};
struct MoveCall {
  static constexpr FlatField kFrom{0, "move_from"}, kTo{1, "move_to"};
};
struct JumpFalseCall {
  static constexpr FlatField kCondition{0, "cond_value_index"},
      kDestination{1, "destination_instruction"};
};
struct FreeCall {
  static constexpr FlatField kValue{0, "value_index"};
};

struct Buffer {
  static constexpr FlatField kStorage{0, "storage"};
};
struct DataSegment {
  static constexpr FlatField kOffset{0, "offset"}, kSize{1, "size"};
};
struct SubsegmentOffsets {
  static constexpr FlatField kSegment{0, "segment_index"}, kOffsets{1, "offsets"};
};
struct NamedData {
  static constexpr FlatField kKey{0, "key"}, kSegment{1, "segment_index"},
      kLayout{2, "tensor_layout"};
};

// A .ptd file.
struct FlatTensor {
  static constexpr FlatField kSegments{1, "segments"}, kNamedData{2, "named_data"};
};
struct TensorLayout {
  static constexpr FlatField kScalarType{0, "scalar_type"}, kSizes{1, "sizes"},
      kDimOrder{2, "dim_order"};
};

// A .bpte file.
struct BundledProgram {
  static constexpr FlatField kVersion{0, "version"}, kSuites{1, "method_test_suites"},
      kProgram{2, "program"};
};
struct BundledMethodTestSuite {
  static constexpr FlatField kMethod{0, "method_name"}, kCases{1, "test_cases"};
};
struct BundledMethodTestCase {
  static constexpr FlatField kInputs{0, "inputs"}, kOutputs{1, "expected_outputs"};
};
struct BundledValue {
  static constexpr FlatField kType = EValue::kType, kValue = EValue::kValue;
  enum Type : uint8_t {
    kNone = 0,
    kTensor = 1,
    kInt = EValue::kInt,
    kBool = EValue::kBool,
    kDouble = EValue::kDouble,
  };
};
struct BundledTensor {
  static constexpr FlatField kScalarType{0, "scalar_type"}, kSizes{1, "sizes"}, kData{2, "data"},
      kDimOrder{3, "dim_order"};
};

}  // namespace anymps::executorch::field
