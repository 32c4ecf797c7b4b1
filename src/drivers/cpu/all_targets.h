// SPDX-License-Identifier: Apache-2.0
// Compiles a file once for each instruction set, with Highway. No include guard: Highway includes
// the file again for each set, by the path that it says before, and with it this header.
//   #define HWY_TARGET_INCLUDE "drivers/cpu/linear/int_gemm.cc"
//   #include "drivers/cpu/all_targets.h"
// A file that has code for AVX-512 alone, or for AVX2 too, defines ANYMPS_AVX512_ONLY before, and
// one that gains nothing from AVX-512 defines ANYMPS_WITHOUT_AVX512.
#undef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_SSE4
#if defined(ANYMPS_AVX512_ONLY)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
// Sanitized builds compile one instruction set; here that would leave nothing to watch. gcc 12
// cannot compile this one for the thread sanitizer.
#if !defined(__SANITIZE_THREAD__)
#undef HWY_COMPILE_ONLY_STATIC
#endif
#elif defined(ANYMPS_WITHOUT_AVX512)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3)
#endif
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
