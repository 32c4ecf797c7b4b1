// SPDX-License-Identifier: Apache-2.0
// Tensors on a device, for tests: made from the elements and read back, one at a time or as the
// feeds and results of a graph.
#pragma once

#include <vector>

#include "runtime/device.h"
#include "runtime/executable.h"
#include "support/tensor.h"

namespace anymps::testing {

template <typename T = float>
Tensor tensor(Device& device, Shape shape, const std::vector<T>& values) {
  return device.from_host(TensorDesc(dtype_of<T>, std::move(shape)), values.data());
}

template <typename T = float>
std::vector<T> elements(Device& device, const Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.desc.count()));
  device.to_host(tensor, values.data());
  return values;
}

// The elements of all outputs.
inline std::vector<std::vector<double>> run_graph(const Graph& graph,
                                                  const std::vector<TestTensor>& feeds,
                                                  const char* driver = "reference") {
  const DevicePtr device = Device::get(driver);
  Executable executable(device, graph);
  std::vector<Tensor> inputs, outputs(graph.outputs().size());
  for (const TestTensor& feed : feeds) inputs.push_back(device->from_host(feed.desc(), feed.ptr()));
  executable.run(inputs, outputs);
  std::vector<std::vector<double>> results;
  for (const Tensor& output : outputs) {
    TestTensor host(output.desc.dtype, output.desc.shape);
    if (host.count() > 0) device->to_host(output, host.ptr());
    results.push_back(host.values());
  }
  return results;
}

}  // namespace anymps::testing
