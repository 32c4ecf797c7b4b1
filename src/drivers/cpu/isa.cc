// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/isa.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <iterator>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/env.h"
#include "base/error.h"

namespace anymps::cpu {

namespace {

enum Register { kEax, kEbx, kEcx, kEdx };

struct Feature {
  Isa isa;  // the lowest set that needs it
  uint32_t leaf;
  Register reg;
  int bit;
  const char* name;
};

// What the kernels are compiled for: Highway's targets of these names, and the tiles of oneDNN. The
// first feature of a set announces it: where that one is there and the set is not, we say why.
constexpr Feature kFeatures[] = {
    {Isa::kSse4, 1, kEcx, 9, "SSSE3"},          {Isa::kSse4, 1, kEcx, 19, "SSE4.1"},
    {Isa::kSse4, 1, kEcx, 20, "SSE4.2"},        {Isa::kSse4, 1, kEcx, 1, "PCLMULQDQ"},
    {Isa::kSse4, 1, kEcx, 25, "AES"},           {Isa::kAvx2, 7, kEbx, 5, "AVX2"},
    {Isa::kAvx2, 1, kEcx, 27, "OSXSAVE"},       {Isa::kAvx2, 1, kEcx, 28, "AVX"},
    {Isa::kAvx2, 1, kEcx, 12, "FMA"},           {Isa::kAvx2, 1, kEcx, 29, "F16C"},
    {Isa::kAvx2, 7, kEbx, 3, "BMI1"},           {Isa::kAvx2, 7, kEbx, 8, "BMI2"},
    {Isa::kAvx2, 0x80000001, kEcx, 5, "LZCNT"}, {Isa::kAvx512, 7, kEbx, 16, "AVX512F"},
    {Isa::kAvx512, 7, kEbx, 17, "AVX512DQ"},    {Isa::kAvx512, 7, kEbx, 28, "AVX512CD"},
    {Isa::kAvx512, 7, kEbx, 30, "AVX512BW"},    {Isa::kAvx512, 7, kEbx, 31, "AVX512VL"},
    {Isa::kAmx, 7, kEdx, 24, "AMX-TILE"},       {Isa::kAmx, 7, kEdx, 22, "AMX-BF16"},
    {Isa::kAmx, 7, kEdx, 25, "AMX-INT8"},
};

bool has(const Processor& processor, const Feature& feature) {
  const CpuidLeaf leaf = processor.at(feature.leaf);
  const uint32_t values[] = {leaf.eax, leaf.ebx, leaf.ecx, leaf.edx};
  return (values[feature.reg] >> feature.bit) & 1;
}

// The registers that the kernel must save, as bits of XCR0.
uint64_t saved_registers(Isa isa) {
  if (isa == Isa::kAvx2) return 0x6;     // xmm, ymm
  if (isa == Isa::kAvx512) return 0xE6;  // and masks, both halves of zmm
  if (isa == Isa::kAmx) return 0x600E6;  // and tile configuration, tiles
  return 0;
}

// oneDNN takes the shape of a tile from leaf 0x1D; where that is hidden it configures palette 0,
// and the first instruction on a tile is illegal.
std::string missing_tiles(const Processor& processor) {
  constexpr uint32_t kTiles = 0x1D;
  if (processor.at(0).eax < kTiles) return "CPUID hides leaf 0x1D";
  const CpuidLeaf palette = processor.at(kTiles, 1);
  if (processor.at(kTiles).eax < 1 || palette.eax == 0 || palette.ebx == 0 || palette.ecx == 0)
    return "CPUID leaf 0x1D names no palette";
  if (!processor.tiles_permitted) return "the kernel does not permit it";
  return {};
}

std::string missing_for(const Processor& processor, Isa isa) {
  for (const Feature& feature : kFeatures)
    if (feature.isa == isa && !has(processor, feature)) return fmt::format("no {}", feature.name);
  if (saved_registers(isa) & ~processor.xcr0)
    return fmt::format("XCR0 is 0x{:x}: its registers are not saved", processor.xcr0);
  return isa == Isa::kAmx ? missing_tiles(processor) : std::string();
}

// Highway: every target better than the one wanted is off. Its own look at the processor may lower
// the choice further.
Isa apply_to_highway(Isa wanted) {
  const int64_t best = wanted == Isa::kSse4   ? HWY_SSE4
                       : wanted == Isa::kAvx2 ? HWY_AVX2
                                              : HWY_AVX3_DL;
  hwy::DisableTargets(best - 1);
  const int64_t targets = hwy::SupportedTargets();
  // SupportedTargets leaves Highway with all that the processor has, whatever it returns.
  hwy::GetChosenTarget().Update(targets);
  if (targets & (HWY_AVX3 | HWY_AVX3_DL)) return wanted;
  if (targets & HWY_AVX2) return std::min(wanted, Isa::kAvx2);
  if (targets & HWY_SSE4) return std::min(wanted, Isa::kSse4);
  fail(Code::kUnsupported, "[cpu] Highway finds no SSE4.2 on this processor");
}

void apply_to_onednn(Isa wanted) {
  using dnnl::cpu_isa;
  const cpu_isa most = wanted == Isa::kSse4     ? cpu_isa::sse41
                       : wanted == Isa::kAvx2   ? cpu_isa::avx2_vnni_2
                       : wanted == Isa::kAvx512 ? cpu_isa::avx512_core_fp16
                                                : cpu_isa::avx512_core_amx_fp16;
  dnnl::set_max_cpu_isa(most);
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  if (effective & ~static_cast<unsigned>(most))
    fail(Code::kUnsupported,
         "[cpu] oneDNN was used before AnyMPS and may run instructions that this machine lacks; "
         "start with ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16");
}

Isa choose() {
  const std::string cap = env_string("ANYMPS_ISA");
  require(cap.find(',') == std::string::npos, "[env] ANYMPS_ISA='{}': it takes one word", cap);
  const Isa chosen = apply_to_highway(cap_isa(find_isa(this_processor()).isa, cap));
  apply_to_onednn(chosen);
  return chosen;
}

}  // namespace

FoundIsa find_isa(const Processor& processor) {
  FoundIsa found;
  for (Isa next : {Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    const std::string missing = missing_for(processor, next);
    if (missing.empty()) {
      found.isa = next;
      continue;
    }
    const auto* announced = std::find_if(std::begin(kFeatures), std::end(kFeatures),
                                         [&](const Feature& f) { return f.isa == next; });
    if (has(processor, *announced)) found.missing = fmt::format("{}: {}", name(next), missing);
    break;
  }
  return found;
}

Isa cap_isa(Isa found, const std::string& cap) {
  if (found == Isa::kNone) fail(Code::kUnsupported, "[cpu] this processor has no SSE4.2");
  for (Isa isa : {Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kAmx})
    if (cap == name(isa)) return std::min(found, isa);
  return found;
}

DTypeSet slow_halves(const Processor& processor, Isa isa) {
  // AMX-FP16 has products of f16. AVX512-FP16 has too, but sums in f16, which is not ours to do.
  const uint32_t more = processor.at(7, 1).eax;
  // AVX512_BF16 makes products twice as fast as those of f32 on AMD's cores; on Intel's they take
  // 1.7 times as long (docs/performance.md), so that there only tiles are worth it.
  constexpr uint32_t kAmd = 0x68747541;  // "Auth"
  const bool vectors = ((more >> 5) & 1) && processor.at(0).ebx == kAmd;
  const bool bf16 = isa == Isa::kAmx || (isa == Isa::kAvx512 && vectors);
  const bool f16 = isa == Isa::kAmx && ((more >> 21) & 1);
  return (bf16 ? 0 : bit(DType::kBF16)) | (f16 ? 0 : bit(DType::kF16));
}

bool find_vnni(const Processor& processor, Isa isa) {
  if (isa >= Isa::kAvx512) return (processor.at(7).ecx >> 11) & 1;  // AVX512_VNNI
  return isa == Isa::kAvx2 && processor.at(7).eax >= 1 &&           // the last subleaf
         ((processor.at(7, 1).eax >> 4) & 1);                       // AVX-VNNI
}

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

bool has_vnni() {
  static const bool found = find_vnni(this_processor(), isa());
  return found;
}

const char* name(Isa isa) {
  static constexpr const char* kNames[] = {"none", "sse4", "avx2", "avx512", "amx"};
  static_assert(std::size(kNames) == static_cast<size_t>(Isa::kAmx) + 1);
  return kNames[static_cast<size_t>(isa)];
}

std::string describe_isa() {
  const FoundIsa found = find_isa(this_processor());
  if (isa() < found.isa) return fmt::format("{} (found {})", name(isa()), name(found.isa));
  return found.missing.empty() ? name(isa()) : fmt::format("{} ({})", name(isa()), found.missing);
}

}  // namespace anymps::cpu
