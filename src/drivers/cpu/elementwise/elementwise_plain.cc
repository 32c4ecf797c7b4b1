// SPDX-License-Identifier: Apache-2.0
// Elementwise functions over tiles for all that has no vector code of its own: integers, f64, bool,
// complex, comparisons, selection and casts. Plain loops over the reference's scalar functions,
// compiled for each instruction set and left to the compiler to vectorize.
#include <cstring>
#include <functional>

#include "drivers/cpu/elementwise/tile_ops.h"
#include "semantics/scalar_functions.h"

#define ANYMPS_WITHOUT_AVX512
#define HWY_TARGET_INCLUDE "drivers/cpu/elementwise/elementwise_plain.cc"
#include "drivers/cpu/all_targets.h"

// Element i of the output depends on element i of the inputs alone, also when they are the same.
#if defined(__clang__)
#define ANYMPS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ANYMPS_INDEPENDENT _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {
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
struct WorkOf {
  using type = T;
};
template <>
struct WorkOf<Complex> {
  using type = std::complex<double>;
};
template <typename T>
using Work = typename WorkOf<T>::type;

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

// Integers wrap. The reference's functions go through 64 bits, which is slow in vectors.
#define ANYMPS_WRAPPING(name, operation)                                      \
  struct name##_f {                                                           \
    template <typename W>                                                     \
    W operator()(W a, W b) const {                                            \
      if constexpr (std::is_integral_v<W>) {                                  \
        using U = std::conditional_t<sizeof(W) == 8, uint64_t, uint32_t>;     \
        return static_cast<W>(static_cast<U>(a) operation static_cast<U>(b)); \
      } else {                                                                \
        return a operation b;                                                 \
      }                                                                       \
    }                                                                         \
  };
ANYMPS_WRAPPING(add, +)
ANYMPS_WRAPPING(sub, -)
ANYMPS_WRAPPING(mul, *)
#undef ANYMPS_WRAPPING

template <bool positive, bool negative>
struct is_inf_f {
  template <typename W>
  bool operator()(W x) const {
    constexpr W inf = std::numeric_limits<W>::infinity();
    return (positive && x == inf) || (negative && x == -inf);
  }
};

// Activations of f64 with their attributes.
template <class F, int attributes>
void activation(const TileArgs& t) {
  const double* a = static_cast<const double*>(t.in[0]);
  double* out = static_cast<double*>(t.out);
  for (size_t i = 0; i < t.n; ++i) {
    if constexpr (attributes == 0) out[i] = F{}(a[i]);
    if constexpr (attributes == 1) out[i] = F{}(a[i], t.params[0]);
    if constexpr (attributes == 2) out[i] = F{}(a[i], t.params[0], t.params[1]);
  }
}

template <DTypeSet set, typename Fn>
void each(Fn&& fn) {
  for (int i = 0; i < kComputeDTypeCount; ++i)
    if (contains(set, DType(i))) dispatch<set>(DType(i), fn);
}

constexpr DTypeSet kF32F64 = bit(DType::kF32) | bit(DType::kF64);
constexpr DTypeSet kF64 = bit(DType::kF64);

struct Adder {
  std::vector<TileOp>& ops;
  template <DTypeSet set, class F>
  void unary_op(const char* name, float ns) {
    each<set>([&]<typename T>() {
      ops.push_back({name, dtype_of<T>, dtype_of<T>, 1, unary<T, T, F>, nullptr, nullptr, ns});
    });
  }
  template <DTypeSet set, class F>
  void binary_op(const char* name, float ns) {
    each<set>([&]<typename T>() {
      ops.push_back({name, dtype_of<T>, dtype_of<T>, 2, binary<T, T, F>, nullptr, nullptr, ns});
    });
  }
  template <DTypeSet set, class F>
  void test(const char* name) {
    each<set>([&]<typename T>() {
      ops.push_back(
          {name, dtype_of<T>, DType::kBool, 1, unary<bool, T, F>, nullptr, nullptr, 0.1f});
    });
  }
  template <DTypeSet set, class F>
  void compare(const char* name) {
    each<set>([&]<typename T>() {
      ops.push_back(
          {name, dtype_of<T>, DType::kBool, 2, binary<bool, T, F>, nullptr, nullptr, 0.2f});
    });
  }
};

}  // namespace

void append_plain_ops_here(std::vector<TileOp>& ops) {
  Adder add{ops};
#define FUNCTION(name) std::remove_const_t<decltype(scalar::name)>
#define UNARY(name, set, ns) add.unary_op<set, FUNCTION(name)>(#name, ns)
#define BINARY(name, set, ns) add.binary_op<set, FUNCTION(name)>(#name, ns)
  UNARY(exp, kF64 | kComplex, 10);
  UNARY(log, kF64 | kComplex, 10);
  UNARY(sqrt, kF64 | kComplex, 2);
  UNARY(rsqrt, kF64 | kComplex, 3);
  UNARY(reciprocal, kF64 | kComplex, 2);
  UNARY(sin, kF64 | kComplex, 10);
  UNARY(cos, kF64 | kComplex, 10);
  UNARY(tan, kF64 | kComplex, 15);
  UNARY(sinh, kF64 | kComplex, 15);
  UNARY(cosh, kF64 | kComplex, 15);
  UNARY(tanh, kF64 | kComplex, 15);
  UNARY(exp2, kF64, 10);
  UNARY(exp10, kF64, 20);
  UNARY(expm1, kF64, 10);
  UNARY(log2, kF64, 10);
  UNARY(log10, kF64, 10);
  UNARY(log1p, kF64, 10);
  UNARY(asin, kF64, 15);
  UNARY(acos, kF64, 15);
  UNARY(atan, kF64, 15);
  UNARY(asinh, kF64, 20);
  UNARY(acosh, kF64, 20);
  UNARY(atanh, kF64, 20);
  UNARY(erf, kF64, 15);
  UNARY(square, kF64 | kInt | kComplex, 0.2f);
  UNARY(neg, kF64 | kInt | kComplex, 0.2f);
  UNARY(abs, kF64 | kInt, 0.2f);
  UNARY(sign, kF64 | kInt, 0.3f);
  UNARY(ceil, kF64, 0.5f);
  UNARY(floor, kF64, 0.5f);
  UNARY(round, kF64, 2);
  UNARY(rint, kF64, 0.5f);
  UNARY(trunc, kF64, 0.5f);
  add.binary_op<kF64 | kInt | kComplex, add_f>("add", 0.2f);
  add.binary_op<kF64 | kInt | kComplex, sub_f>("sub", 0.2f);
  add.binary_op<kF64 | kInt | kComplex, mul_f>("mul", 0.3f);
  BINARY(div, kF64 | kInt | kComplex, 3);
  BINARY(div_trunc, kF64 | kInt, 3);
  BINARY(div_floor, kF64 | kInt, 5);
  BINARY(div_no_nan, kF32F64 | kInt | kComplex, 3);
  BINARY(mod, kF32F64 | kInt, 5);
  BINARY(floor_mod, kF32F64 | kInt, 6);
  BINARY(pow, kF64 | kInt | kComplex, 20);
  BINARY(atan2, kF32F64, 20);
  BINARY(bitwise_and, kInt, 0.1f);
  BINARY(bitwise_or, kInt, 0.1f);
  BINARY(bitwise_xor, kInt, 0.1f);
  BINARY(left_shift, kInt, 0.5f);
  BINARY(right_shift, kInt, 0.5f);
  UNARY(bitwise_not, kInt, 0.1f);
  UNARY(population_count, kInt, 0.5f);
  BINARY(relu_gradient, kF32F64, 0.2f);
  BINARY(sigmoid_gradient, kF32F64, 20);
  UNARY(conjugate, kComplex, 0.3f);
#undef UNARY
#undef BINARY
  add.binary_op<kF64 | kInt, min_nan_f>("min", 0.2f);
  add.binary_op<kF64 | kInt, max_nan_f>("max", 0.2f);
  add.binary_op<kF64 | kInt, min_number_f>("min_number", 0.2f);
  add.binary_op<kF64 | kInt, max_number_f>("max_number", 0.2f);
  each<kF64 | kInt>([&]<typename T>() {
    ops.push_back({"clamp", dtype_of<T>, dtype_of<T>, 3, clamp<T>, nullptr, nullptr, 0.3f});
  });

#define COMPARE(name, set) add.compare<set, FUNCTION(name)>(#name)
  COMPARE(equal, kF32F64 | kInt | kBoolean | kComplex);
  COMPARE(not_equal, kF32F64 | kInt | kBoolean | kComplex);
  COMPARE(less, kF32F64 | kInt);
  COMPARE(less_equal, kF32F64 | kInt);
  COMPARE(greater, kF32F64 | kInt);
  COMPARE(greater_equal, kF32F64 | kInt);
  COMPARE(logical_and, kBoolean);
  COMPARE(logical_or, kBoolean);
  COMPARE(logical_xor, kBoolean);
  COMPARE(logical_nand, kBoolean);
  COMPARE(logical_nor, kBoolean);
  COMPARE(logical_xnor, kBoolean);
#undef COMPARE
  add.test<kF32F64 | kInt, FUNCTION(signbit)>("signbit");
  add.test<kBoolean, FUNCTION(logical_not)>("logical_not");
  add.test<kF32F64, FUNCTION(is_nan)>("is_nan");
  add.test<kF32F64, FUNCTION(is_finite)>("is_finite");
  add.test<kF32F64, is_inf_f<true, true>>("is_inf");
  add.test<kF32F64, is_inf_f<true, false>>("is_positive_inf");
  add.test<kF32F64, is_inf_f<false, true>>("is_negative_inf");
  add.test<kF32F64, is_inf_f<false, false>>("is_no_inf");

#define PART(name)                                                                          \
  ops.push_back({#name, DType::kC64, DType::kF32, 1, unary<float, Complex, FUNCTION(name)>, \
                 nullptr, nullptr, 0.5f})
  PART(real_part);
  PART(imaginary_part);
  PART(complex_abs);
  PART(absolute_square);
#undef PART
  ops.push_back({"make_complex", DType::kF32, DType::kC64, 2,
                 binary<Complex, float, FUNCTION(make_complex)>, nullptr, nullptr, 0.5f});
  each<kF32F64>([&]<typename T>() {
    ops.push_back({"leaky_relu_gradient", dtype_of<T>, dtype_of<T>, 3,
                   ternary<T, FUNCTION(leaky_relu_gradient)>, nullptr, nullptr, 0.3f});
    ops.push_back(
        {"sgd", dtype_of<T>, dtype_of<T>, 3, ternary<T, FUNCTION(sgd)>, nullptr, nullptr, 0.5f});
  });

  add.unary_op<kF64 | kInt, FUNCTION(relu)>("relu", 0.2f);
  add.binary_op<kF64, FUNCTION(prelu)>("prelu", 0.2f);
#define ACTIVATION(name, attributes)                                                         \
  ops.push_back({#name, DType::kF64, DType::kF64, 1, activation<FUNCTION(name), attributes>, \
                 nullptr, nullptr, 20});
  ACTIVATION(leaky_relu, 1);
  ACTIVATION(elu, 1);
  ACTIVATION(selu, 2);
  ACTIVATION(celu, 1);
  ACTIVATION(gelu, 0);
  ACTIVATION(gelu_tanh, 0);
  ACTIVATION(silu, 0);
  ACTIVATION(mish, 0);
  ACTIVATION(softplus, 0);
  ACTIVATION(softsign, 0);
  ACTIVATION(sigmoid, 0);
  ACTIVATION(hard_sigmoid, 2);
  ACTIVATION(hard_swish, 0);
  ACTIVATION(thresholded_relu, 1);
#undef ACTIVATION
#undef FUNCTION

  const TileFn selects[] = {select<uint8_t>, select<uint16_t>, select<uint32_t>, select<uint64_t>};
  const TileFn copies[] = {copy<1>, copy<2>, copy<4>, copy<8>};
  for (int i = 0; i < kComputeDTypeCount; ++i) {
    const DType dtype = DType(i);
    const size_t size = size_of(dtype);
    const size_t log = size == 8 ? 3 : size / 2;
    ops.push_back({"where", dtype, dtype, 3, selects[log], nullptr, nullptr, 0.2f});
    ops.push_back({"identity", dtype, dtype, 1, copies[log], nullptr, nullptr, 0.05f});
  }
}

TileFn plain_cast_here(DType from, DType to) {
  constexpr DTypeSet kPlain = kAny & ~bit(DType::kF16) & ~bit(DType::kBF16);
  if (!contains(kPlain, from) || !contains(kPlain, to)) return nullptr;
  return dispatch<kPlain>(from, [&]<typename From>() {
    return dispatch<kPlain>(to, [&]<typename To>() -> TileFn { return cast<To, From>; });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
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
