// SPDX-License-Identifier: Apache-2.0
// Elementwise functions over tiles for everything without vector code: integers, f64, bool,
// complex, comparisons, selection and casts. Plain loops over the reference's scalar functions,
// compiled for each instruction set and left to the compiler to vectorize.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/elementwise/tile_ops.h"
#include "semantics/pair_functions.h"
#include "semantics/scalar_functions.h"
#include "semantics/special/special_functions.h"

#define ANYMPS_WITHOUT_AVX512
#define HWY_TARGET_INCLUDE "drivers/cpu/elementwise/elementwise_plain.cc"
#include "drivers/cpu/all_targets.h"

// Element i of the output depends on element i of the inputs alone, even when they are the same.
#if defined(__clang__)
#define ANYMPS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ANYMPS_INDEPENDENT _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Any byte but 0 is true.
template <typename T>
HWY_INLINE T load(const T* from, size_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const uint8_t*>(from)[i] != 0;
  else
    return from[i];
}

// What the reference computes in, but floats as they are.
template <typename T>
using Work = std::conditional_t<kIsComplexType<T>, WideComplex, T>;

template <typename R, typename T, class F>
void unary(const TileArgs& t) {
  const T* a = static_cast<const T*>(t.in[0]);
  R* out = static_cast<R*>(t.out);
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) out[i] = static_cast<R>(F{}(Work<T>(load(a, i))));
}

template <typename R, typename T, class F>
void binary(const TileArgs& t) {
  const T* a = static_cast<const T*>(t.in[0]);
  const T* b = static_cast<const T*>(t.in[1]);
  R* out = static_cast<R*>(t.out);
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i)
    out[i] = static_cast<R>(F{}(Work<T>(load(a, i)), Work<T>(load(b, i))));
}

template <typename T, class F>
void ternary(const TileArgs& t) {
  const T* a = static_cast<const T*>(t.in[0]);
  const T* b = static_cast<const T*>(t.in[1]);
  const T* c = static_cast<const T*>(t.in[2]);
  T* out = static_cast<T*>(t.out);
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) out[i] = static_cast<T>(F{}(a[i], b[i], c[i]));
}

// With an attribute as a fourth number.
template <typename T, class F>
void weighted(const TileArgs& t) {
  const T* a = static_cast<const T*>(t.in[0]);
  const T* b = static_cast<const T*>(t.in[1]);
  const T* c = static_cast<const T*>(t.in[2]);
  T* out = static_cast<T*>(t.out);
  const double weight = t.params[0];
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) out[i] = static_cast<T>(F{}(a[i], b[i], c[i], weight));
}

template <typename T>
void select(const TileArgs& t) {
  const uint8_t* condition = static_cast<const uint8_t*>(t.in[0]);
  const T* a = static_cast<const T*>(t.in[1]);
  const T* b = static_cast<const T*>(t.in[2]);
  T* out = static_cast<T*>(t.out);
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) {
    const T x = a[i], y = b[i];
    out[i] = condition[i] != 0 ? x : y;
  }
}

template <typename T>
void clamp(const TileArgs& t) {
  const T* a = static_cast<const T*>(t.in[0]);
  const T* low = static_cast<const T*>(t.in[1]);
  const T* high = static_cast<const T*>(t.in[2]);
  T* out = static_cast<T*>(t.out);
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) out[i] = scalar::clamp(a[i], low[i], high[i]);
}

template <size_t kElement>
void copy(const TileArgs& t) {
  if (t.out != t.in[0]) std::memcpy(t.out, t.in[0], t.n * kElement);
}

template <typename To, typename From>
void cast(const TileArgs& t) {
  const From* a = static_cast<const From*>(t.in[0]);
  To* out = static_cast<To*>(t.out);
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) out[i] = scalar::convert<To>(load(a, i));
}

#define ANYMPS_FUNCTOR(name, expression) \
  struct name##_f {                      \
    template <typename W>                \
    auto operator()(W a, W b) const {    \
      return expression;                 \
    }                                    \
  };
ANYMPS_FUNCTOR(min_nan, scalar::min(a, b, true))
ANYMPS_FUNCTOR(max_nan, scalar::max(a, b, true))
ANYMPS_FUNCTOR(min_number, scalar::min(a, b, false))
ANYMPS_FUNCTOR(max_number, scalar::max(a, b, false))
#undef ANYMPS_FUNCTOR

template <bool positive, bool negative>
struct is_inf_f {
  template <typename W>
  bool operator()(W x) const {
    constexpr W inf = std::numeric_limits<W>::infinity();
    return (positive && x == inf) || (negative && x == -inf);
  }
};

// Activations with their attributes.
template <typename T, class F, int attributes>
void activation(const TileArgs& t) {
  const T* a = static_cast<const T*>(t.in[0]);
  T* out = static_cast<T*>(t.out);
  for (size_t i = 0; i < t.n; ++i) {
    const double x = a[i];
    if constexpr (attributes == 0) out[i] = static_cast<T>(F{}(x));
    if constexpr (attributes == 1) out[i] = static_cast<T>(F{}(x, t.params[0]));
    if constexpr (attributes == 2) out[i] = static_cast<T>(F{}(x, t.params[0], t.params[1]));
    if constexpr (attributes == 3)
      out[i] = static_cast<T>(F{}(x, t.params[0], t.params[1], t.params[2]));
  }
}

// Gradients of activations with their attributes.
template <typename T, class F, int attributes>
void activation_gradient(const TileArgs& t) {
  const T* dy = static_cast<const T*>(t.in[0]);
  const T* x = static_cast<const T*>(t.in[1]);
  T* out = static_cast<T*>(t.out);
  const double a = t.params[0], b = t.params[1];
  ANYMPS_INDEPENDENT
  for (size_t i = 0; i < t.n; ++i) {
    if constexpr (attributes == 0) out[i] = static_cast<T>(F{}(dy[i], x[i]));
    if constexpr (attributes == 1) out[i] = static_cast<T>(F{}(dy[i], x[i], a));
    if constexpr (attributes == 2) out[i] = static_cast<T>(F{}(dy[i], x[i], a, b));
  }
}

template <DTypeSet set, typename Fn>
void each(Fn&& fn) {
  for (const DType dtype : kComputeDTypes)
    if (contains(set, dtype)) dispatch<set>(dtype, fn);
}

constexpr DTypeSet kF32F64 = bit(DType::kF32) | bit(DType::kF64);
constexpr DTypeSet kF64 = bit(DType::kF64);

// f32 functions with vector code: elementwise_simd.cc has them.
constexpr std::string_view kVectorFunctions[] = {
#define UNARY(name, ns, ...) #name,
#define BINARY(name, ns, ...) #name,
#include "drivers/cpu/elementwise/vector_functions.inc"
#undef UNARY
#undef BINARY
};
constexpr bool has_vector_code(std::string_view name) {
  return std::find(std::begin(kVectorFunctions), std::end(kVectorFunctions), name) !=
         std::end(kVectorFunctions);
}
// Of an op's dtypes those that need a function here: halves are computed as f32.
constexpr DTypeSet rest_of(DTypeSet set, std::string_view name) {
  set &= ~(bit(DType::kF16) | bit(DType::kBF16));
  return has_vector_code(name) ? set & ~bit(DType::kF32) : set;
}

struct Adder {
  std::vector<TileOp>& ops;
  void push(const char* name, DType in, DType out, int arity, TileFn run, float ns,
            const char* kernel = "plain") {
    ops.push_back({name, in, out, arity, run, nullptr, nullptr, ns, kernel});
  }
  template <DTypeSet set, class F>
  void unary_op(const char* name, float ns) {
    each<set>([&]<typename T>() { push(name, dtype_of<T>, dtype_of<T>, 1, unary<T, T, F>, ns); });
  }
  template <DTypeSet set, class F>
  void binary_op(const char* name, float ns) {
    each<set>([&]<typename T>() { push(name, dtype_of<T>, dtype_of<T>, 2, binary<T, T, F>, ns); });
  }
  template <DTypeSet set, class F>
  void ternary_op(const char* name, float ns) {
    each<set>([&]<typename T>() { push(name, dtype_of<T>, dtype_of<T>, 3, ternary<T, F>, ns); });
  }
  // The compiler makes vector code of what gives bools.
  template <DTypeSet set, class F>
  void test(const char* name) {
    each<set>([&]<typename T>() {
      push(name, dtype_of<T>, DType::kBool, 1, unary<bool, T, F>, 0.1f, "simd");
    });
  }
  template <DTypeSet set, class F>
  void compare(const char* name) {
    each<set>([&]<typename T>() {
      push(name, dtype_of<T>, DType::kBool, 2, binary<bool, T, F>, 0.2f, "simd");
    });
  }
};

}  // namespace

void append_plain_ops_here(std::vector<TileOp>& ops) {
  Adder add{ops};
#define FUNCTION(name) std::remove_const_t<decltype(scalar::name)>
#define UNARY(name, set, ns) add.unary_op<rest_of(set, #name), FUNCTION(name)>(#name, ns);
#define BINARY(name, set, ns) add.binary_op<rest_of(set, #name), FUNCTION(name)>(#name, ns);
#define TERNARY(name, set, ns) add.ternary_op<rest_of(set, #name), FUNCTION(name)>(#name, ns);
#define TEST(name, set) add.test<rest_of(set, #name), FUNCTION(name)>(#name);
#define COMPARE(name, set) add.compare<rest_of(set, #name), FUNCTION(name)>(#name);
  ANYMPS_SCALAR_OPS(UNARY, BINARY, TERNARY, TEST, COMPARE)
#define ACTIVATION(name, attributes)                                                             \
  each<rest_of(kFloat, #name)>([&]<typename T>() {                                               \
    add.push(#name, dtype_of<T>, dtype_of<T>, 1, activation<T, FUNCTION(name), attributes>, 20); \
  });
  ANYMPS_ACTIVATIONS(ACTIVATION)
  ACTIVATION(nan_to_num, 3)
#define ACTIVATION_GRADIENT(name, attributes)                         \
  each<rest_of(kFloat, #name)>([&]<typename T>() {                    \
    add.push(#name, dtype_of<T>, dtype_of<T>, 2,                      \
             activation_gradient<T, FUNCTION(name), attributes>, 20); \
  });
  ANYMPS_ACTIVATION_GRADIENTS(ACTIVATION_GRADIENT)
  ACTIVATION_GRADIENT(gelu_gradient, 0)
  ACTIVATION_GRADIENT(gelu_tanh_gradient, 0)
#undef ACTIVATION_GRADIENT
#define WEIGHTED(name, set, ns)                                                    \
  each<rest_of(set, #name)>([&]<typename T>() {                                    \
    add.push(#name, dtype_of<T>, dtype_of<T>, 3, weighted<T, FUNCTION(name)>, ns); \
  });
  ANYMPS_SPECIAL_OPS(UNARY, BINARY, TERNARY, ACTIVATION)
  ANYMPS_PAIR_OPS(BINARY, TERNARY, WEIGHTED)
#undef WEIGHTED

  // The forms that attributes ask for.
  BINARY(div, kNumber, 3)
  BINARY(div_trunc, kReal, 3)
  BINARY(div_floor, kReal, 5)
  ACTIVATION(gelu, 0)
  ACTIVATION(gelu_tanh, 0)
  add.binary_op<kF64 | kInt | kBoolean, min_nan_f>("min", 0.2f);
  add.binary_op<kF64 | kInt | kBoolean, max_nan_f>("max", 0.2f);
  add.binary_op<kF64 | kInt | kBoolean, min_number_f>("min_number", 0.2f);
  add.binary_op<kF64 | kInt | kBoolean, max_number_f>("max_number", 0.2f);
  each<kF64 | kInt>(
      [&]<typename T>() { add.push("clamp", dtype_of<T>, dtype_of<T>, 3, clamp<T>, 0.3f); });
  add.test<kF32F64, is_inf_f<true, true>>("is_inf");
  add.test<kF32F64, is_inf_f<true, false>>("is_positive_inf");
  add.test<kF32F64, is_inf_f<false, true>>("is_negative_inf");
  add.test<kF32F64, is_inf_f<false, false>>("is_no_inf");
  // Strings are compared elsewhere, complex numbers have parts.
  COMPARE(equal, kAny)
  COMPARE(not_equal, kAny)
#define PART(name)                                                                         \
  each<kComplex>([&]<typename T>() {                                                       \
    using Real = typename T::value_type;                                                   \
    add.push(#name, dtype_of<T>, dtype_of<Real>, 1, unary<Real, T, FUNCTION(name)>, 0.5f); \
  });
  ANYMPS_COMPLEX_PARTS(PART)
  each<kF32F64>([&]<typename T>() {
    using Made = std::complex<T>;
    add.push("make_complex", dtype_of<T>, dtype_of<Made>, 2,
             binary<Made, T, FUNCTION(make_complex)>, 0.5f);
  });
#undef PART
#undef ACTIVATION
#undef COMPARE
#undef TEST
#undef TERNARY
#undef BINARY
#undef UNARY
#undef FUNCTION

  for (const DType dtype : kComputeDTypes)
    by_size(size_of(dtype), [&]<typename T>() {
      add.push("where", dtype, dtype, 3, select<T>, 0.2f, "simd");
      add.push("identity", dtype, dtype, 1, copy<sizeof(T)>, 0.05f, "simd");
    });
}

TileFn plain_cast_here(DType from, DType to) {
  constexpr DTypeSet kPlain = kAny & ~bit(DType::kF16) & ~bit(DType::kBF16);
  if (!contains(kPlain, from) || !contains(kPlain, to)) return nullptr;
  return dispatch<kPlain>(from, [&]<typename From>() {
    return dispatch<kPlain>(to, [&]<typename To>() -> TileFn { return cast<To, From>; });
  });
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(append_plain_ops_here);
HWY_EXPORT(plain_cast_here);

void append_plain_ops(std::vector<TileOp>& ops) {
  HWY_DYNAMIC_DISPATCH(append_plain_ops_here)(ops);
}

TileFn plain_cast(DType from, DType to) { return HWY_DYNAMIC_DISPATCH(plain_cast_here)(from, to); }

}  // namespace anymps::cpu
#endif
