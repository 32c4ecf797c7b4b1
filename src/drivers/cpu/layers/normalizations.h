// SPDX-License-Identifier: Apache-2.0
// The normalizations by the input's own statistics: over trailing axes, with and without a mean,
// and over runs of channels.
#pragma once

#include "drivers/cpu/kernel_family.h"

namespace anymps::cpu {

inline KernelFamily normalizations(const char* name, int order, const KernelFactory& layer,
                                   const KernelFactory& rms, const KernelFactory& channels) {
  return {name,
          order,
          {{"layer_norm", layer},
           {"rms_norm", rms},
           {"group_norm", channels},
           {"instance_norm", channels}}};
}

// Groups of channels that lie side by side, the last axis of x.
KernelPtr make_last_norm(const KernelRequest& request, int64_t groups, std::string& why);

}  // namespace anymps::cpu
