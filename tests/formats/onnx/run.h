// SPDX-License-Identifier: Apache-2.0
// Runs an imported graph on a device, for tests that look at numbers.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "runtime/executable.h"

namespace anymps {

struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<char> bytes;

  HostTensor() = default;
  HostTensor(DType type, Shape dims, const void* data) : dtype(type), shape(std::move(dims)) {
    const size_t size = byte_count(dtype, shape);
    bytes.assign(static_cast<const char*>(data), static_cast<const char*>(data) + size);
  }
  template <typename T>
  static HostTensor of(Shape shape, const std::vector<T>& values) {
    return HostTensor(dtype_of<T>, std::move(shape), values.data());
  }
  template <typename T>
  std::vector<T> values() const {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

using Floats = std::vector<float>;

inline HostTensor floats(Shape shape, const Floats& values) {
  return HostTensor::of(std::move(shape), values);
}
inline HostTensor longs(Shape shape, const std::vector<int64_t>& values) {
  return HostTensor::of(std::move(shape), values);
}

// Feeds in the order of the graph's inputs; results in the order of its outputs.
inline std::vector<HostTensor> run_graph(const Graph& graph, const std::vector<HostTensor>& feeds,
                                         const std::string& driver = "reference") {
  auto device = Device::get(driver);
  Executable executable(device, graph);
  std::vector<Tensor> inputs, results;
  for (const HostTensor& feed : feeds)
    inputs.push_back(device->from_host(TensorDesc(feed.dtype, feed.shape), feed.bytes.data()));
  executable.run(inputs, results);
  std::vector<HostTensor> outputs;
  for (const Tensor& result : results) {
    HostTensor out;
    out.dtype = result.desc.dtype;
    out.shape = result.desc.shape;
    out.bytes.resize(byte_count(out.dtype, out.shape));
    device->to_host(result, out.bytes.data());
    outputs.push_back(std::move(out));
  }
  return outputs;
}

}  // namespace anymps
