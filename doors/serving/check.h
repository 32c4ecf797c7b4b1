// SPDX-License-Identifier: Apache-2.0
// Is this request one that the model can answer? Errors have Triton's words.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "serving/model.h"

namespace anymps::serving {

// A request that passed. Its lists lie in the memory of the call that executes it.
struct Item {
  explicit Item(std::pmr::memory_resource* memory)
      : dims(memory), inputs(memory), offsets(memory) {}

  Request* request = nullptr;
  int64_t rows = 1;                       // of its batch axis
  uint64_t given = 0;                     // which of the optional inputs it has, by their order
  bool failed = false;                    // and knows it
  std::pmr::vector<int64_t> dims;         // of all inputs that it has, as the model sees them
  std::pmr::vector<const Input*> inputs;  // by Settings::inputs; null: left out
  std::pmr::vector<uint32_t> offsets;     // where an input's extents begin in `dims`, and the end

  std::span<const int64_t> shape(size_t input) const {
    return std::span(dims).subspan(offsets[input], offsets[input + 1] - offsets[input]);
  }
  void fail(const Error& error) {
    if (!failed) request->fail(error);
    failed = true;
  }
  void finish(const Times& times) {
    if (!failed) request->done(times);
  }
};

// Throws Error.
Item check_request(const Settings& settings, Request& request, std::pmr::memory_resource* memory);

// The shape of an output as the client sees it: `reshape` undone.
std::vector<int64_t> client_shape(const Settings& settings, const TensorSettings& output,
                                  std::span<const int64_t> shape);

}  // namespace anymps::serving
