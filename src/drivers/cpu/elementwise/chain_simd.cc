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

using Code = void (*)(const ChainStep*, size_t, V, V, V, V);
// `at`: bytes from the first block's operands to this one's.
#define ANYMPS_STEP const ChainStep *s, size_t at, V a0, V a1, V a2, V a3
#define ANYMPS_NEXT return reinterpret_cast<Code>(s[1].code)(s + 1, at, a0, a1, a2, a3)

HWY_INLINE const float* operand(const ChainStep* s, size_t at) {
  return reinterpret_cast<const float*>(static_cast<const char*>(s->at) + (at & s->moves));
}

void load(ANYMPS_STEP) {
  const Tag d;
  const float* x = operand(s, at);
  const size_t lanes = hn::Lanes(d);
  a0 = hn::LoadU(d, x);
  a1 = hn::LoadU(d, x + lanes);
  a2 = hn::LoadU(d, x + 2 * lanes);
  a3 = hn::LoadU(d, x + 3 * lanes);
  ANYMPS_NEXT;
}

void load_number(ANYMPS_STEP) {
  a0 = a1 = a2 = a3 = hn::Set(Tag(), *static_cast<const float*>(s->at));
  ANYMPS_NEXT;
}

HWY_INLINE void keep(float* to, V a0, V a1, V a2, V a3) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  hn::StoreU(a0, d, to);
  hn::StoreU(a1, d, to + lanes);
  hn::StoreU(a2, d, to + 2 * lanes);
  hn::StoreU(a3, d, to + 3 * lanes);
}

void save(ANYMPS_STEP) {
  keep(const_cast<float*>(operand(s, at)), a0, a1, a2, a3);
  ANYMPS_NEXT;
}

void end(const ChainStep*, size_t, V, V, V, V) {}

template <class F>
void unary_step(ANYMPS_STEP) {
  const Tag d;
  const Params p(s->params);
  a0 = F::apply(d, a0, p);
  a1 = F::apply(d, a1, p);
  a2 = F::apply(d, a2, p);
  a3 = F::apply(d, a3, p);
  ANYMPS_NEXT;
}

template <class F, ChainForm form>
void binary_step(ANYMPS_STEP) {
  const Tag d;
  const Params p(s->params);
  const float* x = operand(s, at);
  const size_t lanes = hn::Lanes(d);
  const auto step = [&](V a, size_t i) HWY_ATTR {
    if constexpr (form == ChainForm::kRegister) return F::apply(d, a, a, p);
    constexpr bool number = form == ChainForm::kNumberSecond || form == ChainForm::kNumberFirst;
    const V b = number ? hn::Set(d, *x) : hn::LoadU(d, x + i * lanes);
    if constexpr (form == ChainForm::kMemorySecond || form == ChainForm::kNumberSecond)
      return F::apply(d, a, b, p);
    else
      return F::apply(d, b, a, p);
  };
  a0 = step(a0, 0);
  a1 = step(a1, 1);
  a2 = step(a2, 2);
  a3 = step(a3, 3);
  ANYMPS_NEXT;
}

template <ChainForm form>
void call_step(ANYMPS_STEP) {
  const Tag d;
  alignas(64) float block[kBlock];
  keep(block, a0, a1, a2, a3);
  TileArgs args{{block, block, nullptr}, block, s->count, s->params};
  if (form == ChainForm::kMemorySecond || form == ChainForm::kNumberSecond)
    args.in[1] = operand(s, at);
  if (form == ChainForm::kMemoryFirst || form == ChainForm::kNumberFirst)
    args.in[0] = operand(s, at);
  s->fn(args);
  const size_t lanes = hn::Lanes(d);
  a0 = hn::Load(d, block);
  a1 = hn::Load(d, block + lanes);
  a2 = hn::Load(d, block + 2 * lanes);
  a3 = hn::Load(d, block + 3 * lanes);
  ANYMPS_NEXT;
}
#undef ANYMPS_NEXT
#undef ANYMPS_STEP

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
  if constexpr (inlined) return reinterpret_cast<ChainCode>(unary_step<F>);
  return nullptr;
}
template <class F, bool inlined, ChainForm form>
ChainCode binary_code() {
  if constexpr (inlined) return reinterpret_cast<ChainCode>(binary_step<F, form>);
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
  const auto code = [](Code step) { return reinterpret_cast<ChainCode>(step); };
  return {kBlock,
          code(load),
          code(load_number),
          code(end),
          code(save),
          {code(call_step<ChainForm::kRegister>), code(call_step<ChainForm::kMemorySecond>),
           code(call_step<ChainForm::kNumberSecond>), code(call_step<ChainForm::kMemoryFirst>),
           code(call_step<ChainForm::kNumberFirst>)},
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
