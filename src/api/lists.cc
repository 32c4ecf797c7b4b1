// SPDX-License-Identifier: Apache-2.0
// The C interface of values that are not plain numbers: strings, sequences, optionals, maps.
#include <cstring>

#include "api/handles.h"

using namespace anymps;
using namespace anymps::api;

namespace {

Container checked_container(amps_container container) {
  const auto code = static_cast<int>(container);
  require(code > 0 && code < kContainerCount, "[api] {} is not a container of tensors", code);
  return static_cast<Container>(code);
}

amps_tensor* new_list(amps_device* device, Container container, DType dtype,
                      std::shared_ptr<const std::vector<Tensor>> items) {
  auto list = std::make_unique<amps_tensor>();
  list->device = device;
  list->tensor.desc.dtype = dtype;
  list->tensor.container = container;
  list->tensor.items = std::move(items);
  return list.release();
}

}  // namespace

extern "C" {

amps_status amps_tensor_from_strings(amps_device* device, size_t rank, const int64_t* dims,
                                     const char* const* data, const size_t* sizes,
                                     amps_tensor** tensor) {
  return guard([&] {
    need(tensor, "tensor") = nullptr;
    require(need(device, "device").device->driver().traits().host_visible,
            "[api] device '{}' cannot hold strings", device->device->name());
    auto made = std::make_unique<amps_tensor>();
    made->device = device;
    made->tensor = device->device->empty(DType::kString, checked_shape(rank, dims));
    made->tensor.strings = std::make_shared<StringStore>();
    const int64_t count = made->tensor.desc.count();
    require(data != nullptr || count == 0, "[api] data is NULL");
    auto* elements = static_cast<Text*>(made->tensor.data());
    for (int64_t i = 0; i < count; ++i) {
      require(data[i] != nullptr, "[api] string {} is NULL", i);
      elements[i] =
          made->tensor.strings->add(sizes ? std::string(data[i], sizes[i]) : std::string(data[i]));
    }
    *tensor = made.release();
  });
}

amps_status amps_tensor_string(const amps_tensor* tensor, int64_t index, const char** data,
                               size_t* bytes) {
  return guard([&] {
    const Tensor& from = need(tensor, "tensor").tensor;
    require(from.container == Container::kTensor && from.desc.dtype == DType::kString,
            "[api] the tensor does not hold strings");
    require(index >= 0 && index < from.desc.count(), "[api] the tensor has {} strings, not {}",
            from.desc.count(), index);
    int64_t offset = 0, rest = index;
    for (size_t axis = from.desc.shape.size(); axis-- > 0; rest /= from.desc.shape[axis])
      offset += rest % from.desc.shape[axis] * from.desc.strides[axis];
    const std::string& text = text_of(static_cast<const Text*>(from.data())[offset]);
    need(data, "data") = text.c_str();
    need(bytes, "bytes") = text.size();
  });
}

amps_status amps_tensor_list(amps_device* device, amps_container container, amps_dtype dtype,
                             amps_tensor* const* items, size_t count, amps_tensor** list) {
  return guard([&] {
    need(list, "list") = nullptr;
    need(device, "device");
    const Container kind = checked_container(container);
    const DType element = checked_dtype(dtype);
    require(items != nullptr || count == 0, "[api] items is NULL");
    require(kind != Container::kOptional || count == 1, "[api] an optional holds one tensor");
    auto tensors = std::make_shared<std::vector<Tensor>>();
    for (size_t i = 0; i < count; ++i) {
      const Tensor& item = need(items[i], "an item").tensor;
      const bool keys = kind == Container::kMaps && i == 0;
      require(item.container == Container::kTensor && (keys || item.desc.dtype == element),
              "[api] item {} is not a tensor of {}", i, name(element));
      tensors->push_back(item);
    }
    if (kind == Container::kMaps) {
      require(count == 2, "[api] maps are made of two tensors, their keys and their values");
      const TensorDesc &keys = (*tensors)[0].desc, &values = (*tensors)[1].desc;
      require((keys.dtype == DType::kI64 || keys.dtype == DType::kString) && keys.rank() == 1 &&
                  values.rank() == 2 && values.shape[1] == keys.shape[0],
              "[api] the keys of maps are i64 or string[C] and the values [N, C], not {} and {}",
              to_string(keys), to_string(values));
    }
    *list = new_list(device, kind, element, std::move(tensors));
  });
}

amps_status amps_tensor_nothing(amps_device* device, amps_container container, amps_dtype dtype,
                                amps_tensor** nothing) {
  return guard([&] {
    need(nothing, "nothing") = nullptr;
    need(device, "device");
    const Container kind = checked_container(container);
    require(kOptionals & bit(kind), "[api] a {} cannot be empty in this way", name(kind));
    *nothing = new_list(device, kind, checked_dtype(dtype), nullptr);
  });
}

amps_container amps_tensor_container(const amps_tensor* tensor) {
  return tensor ? static_cast<amps_container>(tensor->tensor.container) : amps_container{};
}
int64_t amps_tensor_item_count(const amps_tensor* tensor) {
  return tensor && tensor->tensor.items ? std::ssize(*tensor->tensor.items) : -1;
}
amps_status amps_tensor_item(const amps_tensor* list, size_t index, amps_tensor** item) {
  return guard([&] {
    need(item, "item") = nullptr;
    const auto& items = need(list, "list").tensor.items;
    require(items && index < items->size(), "[api] the list has {} items, {} asked for",
            items ? items->size() : 0, index);
    auto made = std::make_unique<amps_tensor>();
    made->device = list->device;
    made->tensor = (*items)[index];
    *item = made.release();
  });
}

amps_container amps_value_container(const amps_value* value) {
  return value ? static_cast<amps_container>(value_of(value)->type.container) : amps_container{};
}

}  // extern "C"
