// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/isa.h"

#include <hwy/targets.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "base/env.h"
#include "base/error.h"

namespace anymps::cpu {

static Isa choose() {
  const std::string cap = env_string("ANYMPS_ISA");
  require(cap.find(',') == std::string::npos, "[env] ANYMPS_ISA='{}': it takes one word", cap);
  if (cap == "sse4") {
    hwy::DisableTargets(HWY_AVX3_DL | HWY_AVX3 | HWY_AVX2);
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  } else if (cap == "avx2") {
    hwy::DisableTargets(HWY_AVX3_DL | HWY_AVX3);
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  }
  const int64_t targets = hwy::SupportedTargets();
  if (targets & HWY_AVX3) return Isa::kAvx512;
  if (targets & HWY_AVX2) return Isa::kAvx2;
  if (targets & HWY_SSE4) return Isa::kSse4;
  fail(Code::kUnsupported, "[cpu] this processor has no SSE4.2");
}

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

const char* name(Isa isa) {
  switch (isa) {
    case Isa::kSse4:
      return "sse4";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "";
}

}  // namespace anymps::cpu
