// SPDX-License-Identifier: Apache-2.0
// The choice of an instruction set on machines written down as data: whole ones, and ones whose
// hypervisor or kernel hides a part of what CPUID reports.
#include "drivers/cpu/isa.h"

#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"
#include "drivers/cpu/signal/resize_simd.h"

namespace anymps::cpu {
namespace {

// Registers of leaves 1, 7 and 0x80000001 as processors of these generations report them.
constexpr uint32_t kNehalem1 = 0x009ae3bd & ~(1u << 12);  // SSE4.2, without AES and PCLMULQDQ
constexpr uint32_t kWestmere1 = 0x029ee3ff & ~(1u << 12) & ~(1u << 27);
constexpr uint32_t kHaswell1 = 0x7ffafbff, kHaswell7 = 0x000027ab, kLzcnt = 0x21;
constexpr uint32_t kSkylakeX7 = 0xd39ffffb, kKnights7 = 0x1c0d23ab;
constexpr uint32_t kTileBits = (1u << 22) | (1u << 24) | (1u << 25);
constexpr uint64_t kAvxSaved = 0x7, kZmmSaved = 0xE7, kTilesSaved = 0x602E7;
constexpr CpuidLeaf kPalette = {0x1D, 1, 0x04002000, 0x00080040, 16, 0};

Processor machine(uint32_t highest, uint32_t ecx1, uint32_t ebx7, uint32_t edx7, uint64_t xcr0,
                  bool permitted = false) {
  Processor p;
  p.leaves = {{0, 0, highest, 0, 0, 0},
              {1, 0, 0, 0, ecx1, 0},
              {7, 0, 1, ebx7, 0, edx7},
              {0x1D, 0, 1, 0, 0, 0},
              kPalette,
              {0x80000000, 0, 0x80000008, 0, 0, 0},
              {0x80000001, 0, 0, 0, kLzcnt, 0}};
  p.xcr0 = xcr0;
  p.tiles_permitted = permitted;
  return p;
}

Processor sapphire_rapids(uint32_t highest = 0x20) {
  return machine(highest, kHaswell1, kSkylakeX7, kTileBits, kTilesSaved, true);
}

Processor with(Processor p, const CpuidLeaf& other) {
  for (CpuidLeaf& l : p.leaves)
    if (l.leaf == other.leaf && l.subleaf == other.subleaf) l = other;
  return p;
}

Processor without_permission(Processor p) {
  p.tiles_permitted = false;
  return p;
}

Processor saving(Processor p, uint64_t xcr0) {
  p.xcr0 = xcr0;
  return p;
}

TEST(Isa, OfEachMachine) {
  struct Case {
    const char* name;
    Processor machine;
    Isa isa;
    const char* missing;
  };
  const Case cases[] = {
      {"nothing known", {}, Isa::kNone, ""},
      {"no AES", machine(0xB, kNehalem1, 0, 0, 0), Isa::kNone, "sse4: no PCLMULQDQ"},
      {"SSE4 only", machine(0xB, kWestmere1, 0, 0, 0), Isa::kSse4, ""},
      {"AVX2", machine(0xD, kHaswell1, kHaswell7, 0, kAvxSaved), Isa::kAvx2, ""},
      {"AVX2, registers not saved", machine(0xD, kHaswell1, kHaswell7, 0, 0x3), Isa::kSse4,
       "avx2: XCR0 is 0x3: its registers are not saved"},
      {"AVX2 without FMA", machine(0xD, kHaswell1 & ~(1u << 12), kHaswell7, 0, kAvxSaved),
       Isa::kSse4, "avx2: no FMA"},
      {"AVX2 without LZCNT",
       with(machine(0xD, kHaswell1, kHaswell7, 0, kAvxSaved), {0x80000001, 0, 0, 0, 0, 0}),
       Isa::kSse4, "avx2: no LZCNT"},
      {"leaf 7 above the highest", machine(5, kHaswell1, kSkylakeX7, kTileBits, kTilesSaved, true),
       Isa::kSse4, ""},
      {"AVX-512F alone", machine(0xD, kHaswell1, kKnights7, 0, kZmmSaved), Isa::kAvx2,
       "avx512: no AVX512DQ"},
      {"AVX-512", machine(0x16, kHaswell1, kSkylakeX7, 0, kZmmSaved), Isa::kAvx512, ""},
      {"AVX-512, zmm not saved", machine(0x16, kHaswell1, kSkylakeX7, 0, kAvxSaved), Isa::kAvx2,
       "avx512: XCR0 is 0x7: its registers are not saved"},
      {"AMX", sapphire_rapids(), Isa::kAmx, ""},
      {"AMX, leaf 0x1D hidden", sapphire_rapids(0x1C), Isa::kAvx512, "amx: CPUID hides leaf 0x1D"},
      {"AMX, no palette", with(sapphire_rapids(), {0x1D, 0, 0, 0, 0, 0}), Isa::kAvx512,
       "amx: CPUID leaf 0x1D names no palette"},
      {"AMX, empty palette", with(sapphire_rapids(), {0x1D, 1, 0, 0, 0, 0}), Isa::kAvx512,
       "amx: CPUID leaf 0x1D names no palette"},
      {"AMX, tiles not saved", saving(sapphire_rapids(), kZmmSaved), Isa::kAvx512,
       "amx: XCR0 is 0xe7: its registers are not saved"},
      {"AMX, no permission", without_permission(sapphire_rapids()), Isa::kAvx512,
       "amx: the kernel does not permit it"},
      {"AMX without BF16",
       machine(0x20, kHaswell1, kSkylakeX7, kTileBits & ~(1u << 22), kTilesSaved, true),
       Isa::kAvx512, "amx: no AMX-BF16"},
  };
  for (const Case& c : cases) {
    const FoundIsa found = find_isa(c.machine);
    EXPECT_STREQ(name(found.isa), name(c.isa)) << c.name;
    EXPECT_EQ(found.missing, c.missing) << c.name;
  }
}

TEST(Isa, TheVariableIsAnUpperBound) {
  EXPECT_EQ(cap_isa(Isa::kAmx, ""), Isa::kAmx);
  EXPECT_EQ(cap_isa(Isa::kAmx, "amx"), Isa::kAmx);
  EXPECT_EQ(cap_isa(Isa::kAmx, "avx512"), Isa::kAvx512);
  EXPECT_EQ(cap_isa(Isa::kAmx, "avx2"), Isa::kAvx2);
  EXPECT_EQ(cap_isa(Isa::kAvx2, "amx"), Isa::kAvx2);
  EXPECT_EQ(cap_isa(Isa::kAvx512, "sse4"), Isa::kSse4);
  EXPECT_THROW(cap_isa(Isa::kNone, ""), Error);
}

// In a process of its own, since the choice is made once.
TEST(IsaDeathTest, VectorsAreNoLongerThanTheVariableSays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with_lanes = [](const char* cap) {
    setenv("ANYMPS_ISA", cap, 1);
    std::_Exit(static_cast<int>(resize_lanes()));
  };
  const Isa found = find_isa(this_processor()).isa;
  EXPECT_EXIT(exit_with_lanes("sse4"), ::testing::ExitedWithCode(4), "");
  if (found >= Isa::kAvx2) {
    EXPECT_EXIT(exit_with_lanes("avx2"), ::testing::ExitedWithCode(8), "");
  }
  if (found >= Isa::kAvx512) {
    EXPECT_EXIT(exit_with_lanes("avx512"), ::testing::ExitedWithCode(16), "");
  }
}

TEST(Isa, HighwayAndOneDnnFollowTheChoice) {
  const Isa chosen = isa();
  EXPECT_LE(chosen, find_isa(this_processor()).isa);
  // What calls of vector functions take; SupportedTargets chooses again.
  const size_t taken = hwy::GetChosenTarget().GetIndex();
  const int64_t targets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(targets);  // which the line above has changed
  EXPECT_EQ((targets & (HWY_AVX3 | HWY_AVX3_DL)) != 0, chosen >= Isa::kAvx512);
  EXPECT_EQ((targets & HWY_AVX2) != 0, chosen >= Isa::kAvx2);
  hwy::GetChosenTarget().Update(targets);
  EXPECT_EQ(taken, hwy::GetChosenTarget().GetIndex());
  const auto onednn = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  EXPECT_EQ((onednn & 0xE00) != 0, chosen == Isa::kAmx) << "tiles of oneDNN";
  EXPECT_EQ((onednn & 0x20) != 0, chosen >= Isa::kAvx512) << "zmm of oneDNN";
  EXPECT_NE(describe_isa().find(name(chosen)), std::string::npos);
}

TEST(Isa, HalvesThatAreSlow) {
  constexpr DTypeSet kF16 = bit(DType::kF16), kBF16 = bit(DType::kBF16);
  constexpr CpuidLeaf kIntel = {0, 0, 0x20, 0x756e6547, 0x6c65746e, 0x49656e69};
  constexpr CpuidLeaf kAmd = {0, 0, 0x20, 0x68747541, 0x444d4163, 0x69746e65};
  const auto bits = [](uint32_t eax, const CpuidLeaf& maker) {
    Processor p = with(sapphire_rapids(), maker);
    p.leaves.push_back({7, 1, eax, 0, 0, 0});
    return p;
  };
  constexpr uint32_t kAvx512Bf16 = 1u << 5, kAmxF16 = 1u << 21;
  EXPECT_EQ(slow_halves(machine(0xD, kHaswell1, kHaswell7, 0, kAvxSaved), Isa::kAvx2),
            kF16 | kBF16);
  EXPECT_EQ(slow_halves(sapphire_rapids(), Isa::kAvx512), kF16 | kBF16);
  EXPECT_EQ(slow_halves(bits(kAvx512Bf16, kAmd), Isa::kAvx512), kF16);
  EXPECT_EQ(slow_halves(bits(kAvx512Bf16, kIntel), Isa::kAvx512), kF16 | kBF16);
  EXPECT_EQ(slow_halves(bits(kAvx512Bf16, kAmd), Isa::kAvx2), kF16 | kBF16);  // capped
  EXPECT_EQ(slow_halves(bits(kAvx512Bf16, kIntel), Isa::kAmx), kF16);
  EXPECT_EQ(slow_halves(bits(kAvx512Bf16 | kAmxF16, kIntel), Isa::kAmx), DTypeSet{0});
}

}  // namespace
}  // namespace anymps::cpu
