// SPDX-License-Identifier: Apache-2.0
// Threaded code with the values of a block in registers: four vectors are arguments of each step's
// function, and its last statement is a jump to the next. Functions that take long are called by
// way of memory, which costs them little.
#include "drivers/cpu/elementwise/chain_code.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/elementwise/chain_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/elementwise/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

constexpr size_t kVectors = 4;
constexpr size_t kBlock = kVectors * hn::MaxLanes(Tag());
static_assert(kBlock <= kLargestChainBlock);

struct Values {
  V a0, a1, a2, a3;

  // v = fn(v, i) for each, where i is its number.
  template <class Fn>
  HWY_INLINE void each(Fn fn) {
    a0 = fn(a0, size_t{0});
    a1 = fn(a1, size_t{1});
    a2 = fn(a2, size_t{2});
    a3 = fn(a3, size_t{3});
  }
};

using Code = void (*)(const ChainStep*, size_t, V, V, V, V);

// A step of threaded code: what S does, and the jump. `at`: bytes from the first block's operands
// to this one's.
template <class S>
void step(const ChainStep* s, size_t at, V a0, V a1, V a2, V a3) {
  Values v{a0, a1, a2, a3};
  S::run(*s, at, v);
  return reinterpret_cast<Code>(s[1].code)(s + 1, at, v.a0, v.a1, v.a2, v.a3);
}
void end(const ChainStep*, size_t, V, V, V, V) {}

HWY_INLINE const float* operand(const ChainStep& s, size_t at) {
  return reinterpret_cast<const float*>(static_cast<const char*>(s.at) + (at & s.moves));
}
HWY_INLINE V load(const float* from, size_t i) {
  const Tag d;
  return hn::LoadU(d, from + i * hn::Lanes(d));
}
HWY_INLINE void store(const Values& v, float* to) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  hn::StoreU(v.a0, d, to);
  hn::StoreU(v.a1, d, to + lanes);
  hn::StoreU(v.a2, d, to + 2 * lanes);
  hn::StoreU(v.a3, d, to + 3 * lanes);
}

struct Load {
  static HWY_INLINE void run(const ChainStep& s, size_t at, Values& v) {
    const float* x = operand(s, at);
    v.each([&](V, size_t i) HWY_ATTR { return load(x, i); });
  }
};
struct LoadNumber {
  static HWY_INLINE void run(const ChainStep& s, size_t, Values& v) {
    const V number = hn::Set(Tag(), *static_cast<const float*>(s.at));
    v = {number, number, number, number};
  }
};
struct Save {
  static HWY_INLINE void run(const ChainStep& s, size_t at, Values& v) {
    store(v, const_cast<float*>(operand(s, at)));
  }
};

template <class F>
struct Unary {
  static HWY_INLINE void run(const ChainStep& s, size_t, Values& v) {
    const Params p(s.params);
    v.each([&](V a, size_t) HWY_ATTR { return F::apply(Tag(), a, p); });
  }
};

template <class F, ChainForm form>
struct Binary {
  static HWY_INLINE void run(const ChainStep& s, size_t at, Values& v) {
    constexpr bool number = form == ChainForm::kNumberSecond || form == ChainForm::kNumberFirst;
    constexpr bool second = form == ChainForm::kMemorySecond || form == ChainForm::kNumberSecond;
    const Tag d;
    const Params p(s.params);
    if constexpr (form == ChainForm::kRegister) {
      v.each([&](V a, size_t) HWY_ATTR { return F::apply(d, a, a, p); });
    } else {
      const float* x = operand(s, at);
      v.each([&](V a, size_t i) HWY_ATTR {
        const V b = number ? hn::Set(d, *x) : load(x, i);
        return second ? F::apply(d, a, b, p) : F::apply(d, b, a, p);
      });
    }
  }
};

template <ChainForm form>
struct Call {
  static HWY_INLINE void run(const ChainStep& s, size_t at, Values& v) {
    constexpr bool number = form == ChainForm::kNumberSecond || form == ChainForm::kNumberFirst;
    alignas(64) float block[kBlock];
    store(v, block);
    TileArgs args{{block, block, nullptr}, block, s.count, s.params};
    const void* const other = number ? s.at : operand(s, at);
    if (form == ChainForm::kMemorySecond || form == ChainForm::kNumberSecond) args.in[1] = other;
    if (form == ChainForm::kMemoryFirst || form == ChainForm::kNumberFirst) args.in[0] = other;
    s.fn(args);
    v.each([&](V, size_t i) HWY_ATTR { return load(block, i); });
  }
};

// An f32 value as a half holds it, as tile functions store and load it.
struct RoundBf16 {
  static HWY_INLINE V apply(Tag d, V x, const Params&) {
    const auto upper = hn::Set(hn::Rebind<uint32_t, Tag>(), 0xffff0000);
    return hn::BitCast(d, hn::And(bf16_bits(x), upper));
  }
};
#if HWY_TARGET <= HWY_AVX2
struct RoundF16 {
  static HWY_INLINE V apply(Tag d, V x, const Params&) {
    return hn::PromoteTo(d, hn::DemoteTo(hn::Rebind<hwy::float16_t, Tag>(), x));
  }
};
#endif
struct Identity {
  static HWY_INLINE V apply(Tag, V x, const Params&) { return x; }
};

struct Row {
  std::string_view name;
  DType in;
  ChainCode codes[kChainForms];
};

template <class F, bool inlined>
constexpr ChainCode unary_code() {
  if constexpr (inlined) return reinterpret_cast<ChainCode>(step<Unary<F>>);
  return nullptr;
}
template <class F, bool inlined, ChainForm form>
ChainCode binary_code() {
  if constexpr (inlined) return reinterpret_cast<ChainCode>(step<Binary<F, form>>);
  return nullptr;
}

const std::vector<Row>& rows() {
  // Those that take longer are worth no code of their own.
  constexpr float kUnary = 1.0f, kBinary = 0.2f;
  static const auto& all = *new std::vector<Row> {
#define UNARY(name, ns, ...) {#name, DType::kF32, {unary_code<name##_f, (ns <= kUnary)>()}},
#define BINARY(name, ns, ...)                                           \
  {#name,                                                               \
   DType::kF32,                                                         \
   {binary_code<name##_f, (ns <= kBinary), ChainForm::kRegister>(),     \
    binary_code<name##_f, (ns <= kBinary), ChainForm::kMemorySecond>(), \
    binary_code<name##_f, (ns <= kBinary), ChainForm::kNumberSecond>(), \
    binary_code<name##_f, (ns <= kBinary), ChainForm::kMemoryFirst>(),  \
    binary_code<name##_f, (ns <= kBinary), ChainForm::kNumberFirst>()}},
#include "drivers/cpu/elementwise/vector_functions.inc"
#undef UNARY
#undef BINARY
    {"round", DType::kBF16, {unary_code<RoundBf16, true>()}},
#if HWY_TARGET <= HWY_AVX2
        {"round", DType::kF16, {unary_code<RoundF16, true>()}},
#endif
        {"identity", DType::kF32, {unary_code<Identity, true>()}},
  };
  return all;
}

ChainCode code_of(const TileOp& op, ChainForm form) {
  for (const Row& row : rows())
    if (row.name == op.name && row.in == op.in) return row.codes[static_cast<size_t>(form)];
  return nullptr;
}

void run_chain(const ChainStep* steps, size_t count) {
  const V none = hn::Zero(Tag());
  const auto code = reinterpret_cast<Code>(steps->code);
  for (size_t at = 0; at < count * sizeof(float); at += kBlock * sizeof(float))
    code(steps, at, none, none, none, none);
}

}  // namespace

ChainEngine chain_engine_here() {
  const auto code = [](Code fn) { return reinterpret_cast<ChainCode>(fn); };
  return {kBlock,
          code(step<Load>),
          code(step<LoadNumber>),
          code(end),
          code(step<Save>),
          {code(step<Call<ChainForm::kRegister>>), code(step<Call<ChainForm::kMemorySecond>>),
           code(step<Call<ChainForm::kNumberSecond>>), code(step<Call<ChainForm::kMemoryFirst>>),
           code(step<Call<ChainForm::kNumberFirst>>)},
          code_of,
          run_chain};
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(chain_engine_here);

const ChainEngine& chain_engine() {
  isa();
  static const ChainEngine engine = HWY_DYNAMIC_DISPATCH(chain_engine_here)();
  return engine;
}

}  // namespace anymps::cpu
#endif
