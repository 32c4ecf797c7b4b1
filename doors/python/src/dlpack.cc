// SPDX-License-Identifier: Apache-2.0
// DLPack, in and out, without copies: the exchange structs of versions 0.8 and 1.x, as the standard
// lays them out. What a capsule says is checked before it is trusted.
#include "core.h"

namespace anymps::python {

namespace {

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

constexpr int32_t kCpu = 1;
constexpr uint64_t kReadOnly = 1, kPadded = 4;  // padded: a narrow element has a byte of its own
constexpr const char* kName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

struct DTypeCode {
  amps_dtype dtype;
  uint8_t code, bits;
};
constexpr DTypeCode kCodes[] = {
    {AMPS_F32, 2, 32},        {AMPS_F16, 2, 16},        {AMPS_BF16, 4, 16},   {AMPS_F64, 2, 64},
    {AMPS_I8, 0, 8},          {AMPS_I16, 0, 16},        {AMPS_I32, 0, 32},    {AMPS_I64, 0, 64},
    {AMPS_U8, 1, 8},          {AMPS_U16, 1, 16},        {AMPS_U32, 1, 32},    {AMPS_U64, 1, 64},
    {AMPS_BOOL, 6, 8},        {AMPS_C64, 5, 64},        {AMPS_I4, 0, 4},      {AMPS_U4, 1, 4},
    {AMPS_I2, 0, 2},          {AMPS_U2, 1, 2},          {AMPS_F8E4M3, 10, 8}, {AMPS_F8E5M2, 12, 8},
    {AMPS_F8E4M3FNUZ, 11, 8}, {AMPS_F8E5M2FNUZ, 13, 8}, {AMPS_F8E8M0, 14, 8}, {AMPS_F4E2M1, 17, 4},
    {AMPS_C128, 5, 128},
};

const DTypeCode& code_of(amps_dtype dtype) {
  for (const DTypeCode& code : kCodes)
    if (code.dtype == dtype) return code;
  invalid(std::string("[dlpack] there is no DLPack type for ") + amps_dtype_name(dtype));
}

amps_dtype dtype_from(const DLDataType& type, bool padded) {
  if (type.lanes == 1)
    for (const DTypeCode& code : kCodes)
      if (code.code == type.code && code.bits == type.bits && (code.bits >= 8 || padded))
        return code.dtype;
  invalid("[dlpack] no dtype for code " + std::to_string(type.code) + ", " +
          std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) + " lanes" +
          (type.bits < 8 ? " (narrow elements must have a byte each)" : ""));
}

template <typename Managed>
void release_managed(void* context) {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter) managed->deleter(managed);
}

template <typename Managed>
Tensor take(PyObject* capsule, Managed* managed, const char* used, bool readonly, bool padded,
            amps_device* device) {
  const DLTensor& from = managed->tensor;
  if (from.device.type != kCpu)
    throw amps::Error(AMPS_UNSUPPORTED, "[dlpack] the tensor is on a device of type " +
                                            std::to_string(from.device.type) +
                                            ", not in the host's memory: move it there first");
  if (from.ndim < 0 || from.ndim > 64 || (from.ndim > 0 && !from.shape))
    invalid("[dlpack] the capsule's shape makes no sense");
  const amps_dtype dtype = dtype_from(from.dtype, padded);
  const std::vector<int64_t> dims(from.shape, from.shape + from.ndim);
  std::vector<int64_t> strides(dims.size());
  int64_t count = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = from.strides ? from.strides[i] : count;
    if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
      invalid("[dlpack] the capsule's shape makes no sense");
  }
  if (!from.data && count > 0) invalid("[dlpack] the capsule has no data");
  auto* data = from.data ? static_cast<char*>(from.data) + from.byte_offset : nullptr;
  if (reinterpret_cast<uintptr_t>(data) % amps_dtype_size(dtype) != 0)
    invalid("[dlpack] the data is not aligned to its elements");
  Tensor tensor =
      wrap(device, dtype, dims, strides, data, readonly, release_managed<Managed>, managed);
  // From here on the memory is the tensor's to give back.
  if (PyCapsule_SetName(capsule, used) != 0 || PyCapsule_SetDestructor(capsule, nullptr) != 0)
    throw nb::python_error();
  return tensor;
}

Tensor from_capsule(nb::handle object, amps_device* device) {
  PyObject* capsule = object.ptr();
  if (!PyCapsule_CheckExact(capsule)) throw nb::type_error("[dlpack] this is not a capsule");
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
    if (managed->major != 1)
      throw amps::Error(AMPS_UNSUPPORTED, "[dlpack] the capsule has version " +
                                              std::to_string(managed->major) + ", known is 1");
    return take(capsule, managed, "used_dltensor_versioned", (managed->flags & kReadOnly) != 0,
                (managed->flags & kPadded) != 0, device);
  }
  if (PyCapsule_IsValid(capsule, kName)) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
    return take(capsule, managed, "used_dltensor", false, false, device);
  }
  const char* name = PyCapsule_GetName(capsule);
  PyErr_Clear();
  invalid(std::string("[dlpack] the capsule holds no tensor, or one that somebody took already (") +
          (name ? name : "no name") + ")");
}

// What a consumer holds: the engine's tensor, and numbers that the structs point to.
template <typename Managed>
struct Held {
  Managed managed{};
  amps::Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <typename Managed>
nb::object to_capsule(const Tensor& from, const char* name) {
  auto held = std::make_unique<Held<Managed>>();
  amps_tensor* c = from.c();
  const DTypeCode& code = code_of(amps_tensor_dtype(c));
  held->tensor = from.tensor;
  held->shape.assign(amps_tensor_dims(c), amps_tensor_dims(c) + amps_tensor_rank(c));
  held->strides.assign(amps_tensor_strides(c), amps_tensor_strides(c) + amps_tensor_rank(c));
  held->managed.tensor = {amps_tensor_data(c),
                          {kCpu, 0},
                          static_cast<int32_t>(held->shape.size()),
                          {code.code, code.bits, 1},
                          held->shape.data(),
                          held->strides.data(),
                          0};
  held->managed.context = held.get();
  held->managed.deleter = [](Managed* managed) {
    delete static_cast<Held<Managed>*>(managed->context);
  };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    held->managed.major = 1;
    held->managed.minor = 0;
    held->managed.flags = (from.readonly ? kReadOnly : 0) | (code.bits < 8 ? kPadded : 0);
  }
  PyObject* capsule = PyCapsule_New(&held->managed, name, [](PyObject* unused) {
    constexpr bool versioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
    const char* own = versioned ? kVersionedName : kName;
    if (!PyCapsule_IsValid(unused, own)) return;  // taken: the consumer deletes
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(unused, own));
    managed->deleter(managed);
  });
  if (!capsule) throw nb::python_error();
  (void)held.release();
  return nb::steal(capsule);
}

nb::object to_dlpack(const Tensor& tensor, bool versioned) {
  need_host_memory(tensor);
  if (versioned) return to_capsule<DLManagedTensorVersioned>(tensor, kVersionedName);
  if (tensor.readonly)
    throw nb::buffer_error("[dlpack] the memory is read-only, which needs DLPack 1.0 or newer");
  if (code_of(amps_tensor_dtype(tensor.c())).bits < 8)
    throw nb::buffer_error("[dlpack] narrow elements need DLPack 1.0 or newer");
  return to_capsule<DLManagedTensor>(tensor, kName);
}

}  // namespace

void bind_dlpack(nb::class_<Tensor>& tensor) {
  tensor.def("_dlpack", to_dlpack, nb::arg("versioned"));
  tensor.def_static("_from_capsule", [](nb::handle capsule, const amps::Device& device) {
    return from_capsule(capsule, device.c());
  });
}

}  // namespace anymps::python
