// SPDX-License-Identifier: Apache-2.0
// A case of an op as a kernel is asked for it, with the memory that it needs.
#pragma once

#include <memory>
#include <vector>

#include "drivers/driver.h"
#include "drivers/packed_weights.h"
#include "memory/allocator.h"
#include "op_table/op_cases.h"

namespace anymps::testing {

// The outputs of the request are left to the test.
struct CaseRequest {
  CaseRequest(const OpCase& item, bool constant_weights) : inputs(item.inputs) {
    request.op = item.op;
    request.attrs = Attrs(*item.op, item.attrs);
    request.node = "test";
    request.packed = &packed;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto& input = inputs[i];
      request.inputs.push_back(input ? std::optional(input->desc()) : std::nullopt);
      request.contents.push_back(input ? content_of(*input) : std::nullopt);
      request.constants.push_back(nullptr);
      in.push_back(input ? input->ptr() : nullptr);
      if (constant_weights && i > 0 && input && input->desc().contiguous())
        request.constants.back() =
            Constant::copy(input->dtype(), input->shape(),
                           {static_cast<const std::byte*>(input->ptr()), input->desc().bytes()});
    }
  }
  CaseRequest(const CaseRequest&) = delete;
  CaseRequest& operator=(const CaseRequest&) = delete;

  TestInputs inputs;
  std::vector<void*> in;  // where they lie
  PackedWeights packed{Allocator::create(std::make_unique<HostMemory>())};
  KernelRequest request;
};

}  // namespace anymps::testing
