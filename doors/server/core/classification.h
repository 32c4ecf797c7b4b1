// SPDX-License-Identifier: Apache-2.0
// The classification extension: instead of scores, the best classes as strings
// "value:index[:label]".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/core/request.h"

namespace anymps::server {

using Labels = std::map<std::string, std::vector<std::string>, std::less<>>;  // by output

// The best `classes` of each row of `scores` (of the whole tensor if it is not `batched`), as a
// tensor of strings in the protocol's form. Written to `target` if that is given; kInternal if it
// does not fit there.
OutputTensor classify(const OutputTensor& scores, uint32_t classes, bool batched,
                      const std::vector<std::string>& labels, const Buffer& target);

// How Triton says that the shared memory of an output is too small.
Error too_small(const std::string& output, size_t given, size_t needed);

}  // namespace anymps::server
