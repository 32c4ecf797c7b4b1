// SPDX-License-Identifier: Apache-2.0
// The field numbers of onnx.proto, one list for each message, for reader and writer alike. Fields
// that neither of them uses are left out.
#pragma once

#include <cstdint>

namespace anymps::onnx::field {

struct Model {
  enum : uint32_t {
    kIrVersion = 1,
    kProducerName = 2,
    kProducerVersion = 3,
    kDomain = 4,
    kModelVersion = 5,
    kGraph = 7,
    kOpsetImport = 8,
    kMetadataProps = 14,
    kFunctions = 25,
  };
};

struct OpsetId {
  enum : uint32_t { kDomain = 1, kVersion = 2 };
};

struct Graph {
  enum : uint32_t {
    kNode = 1,
    kName = 2,
    kInitializer = 5,
    kInput = 11,
    kOutput = 12,
    kValueInfo = 13,
    kSparseInitializer = 15,
  };
};

struct Node {
  enum : uint32_t {
    kInput = 1,
    kOutput = 2,
    kName = 3,
    kOpType = 4,
    kAttribute = 5,
    kDomain = 7,
    kOverload = 8,
  };
};

struct Attribute {
  enum : uint32_t {
    kName = 1,
    kF = 2,
    kI = 3,
    kS = 4,
    kT = 5,
    kG = 6,
    kFloats = 7,
    kInts = 8,
    kStrings = 9,
    kTensors = 10,
    kGraphs = 11,
    kTp = 14,
    kTypeProtos = 15,
    kType = 20,
    kRefAttrName = 21,
    kSparseTensor = 22,
    kSparseTensors = 23,
  };
};

struct Function {
  enum : uint32_t {
    kName = 1,
    kInput = 4,
    kOutput = 5,
    kAttribute = 6,
    kNode = 7,
    kOpsetImport = 9,
    kDomain = 10,
    kAttributeProto = 11,
    kValueInfo = 12,
    kOverload = 13,
  };
};

struct Tensor {
  enum : uint32_t {
    kDims = 1,
    kDataType = 2,
    kSegment = 3,
    kFloatData = 4,
    kInt32Data = 5,
    kStringData = 6,
    kInt64Data = 7,
    kName = 8,
    kRawData = 9,
    kDoubleData = 10,
    kUint64Data = 11,
    kExternalData = 13,
    kDataLocation = 14,
  };
};

struct SparseTensor {
  enum : uint32_t { kValues = 1, kIndices = 2, kDims = 3 };
};

struct StringStringEntry {
  enum : uint32_t { kKey = 1, kValue = 2 };
};

struct ValueInfo {
  enum : uint32_t { kName = 1, kType = 2 };
};

struct Type {
  enum : uint32_t {
    kTensorType = 1,
    kSequenceType = 4,
    kMapType = 5,
    kOpaqueType = 7,
    kSparseTensorType = 8,
    kOptionalType = 9,
  };
};

struct TensorType {
  enum : uint32_t { kElemType = 1, kShape = 2 };
};

// Of sequences and of optionals.
struct HolderType {
  enum : uint32_t { kElemType = 1 };
};

struct MapType {
  enum : uint32_t { kKeyType = 1, kValueType = 2 };
};

struct TensorShape {
  enum : uint32_t { kDim = 1 };
};

struct Dimension {
  enum : uint32_t { kDimValue = 1, kDimParam = 2 };
};

}  // namespace anymps::onnx::field
