// SPDX-License-Identifier: Apache-2.0
// ANYMPS_CHECK=reference: each kernel's result beside the oracle's, element by element. A result
// may differ by the tolerance of the op's record, relative to the element or, because sums cancel,
// to the largest element of the tensor. Where all of the elements may have cancelled, to how far
// they move when the inputs do: a sum in another order is the sum of inputs that moved by their
// rounding. The oracle runs in the kernel's mode: what that takes for zero is zero here too, and a
// result may differ by what sums lose of it.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/denormals.h"
#include "base/env.h"
#include "base/narrow.h"
#include "base/text.h"
#include "drivers/reference_fallback.h"
#include "ops/elementwise/elementwise_program.h"
#include "runtime/plan.h"

namespace anymps {

namespace {

template <typename T>
double magnitude(T value) {
  if constexpr (kIsComplexType<T>)
    return std::abs(WideComplex(value));
  else
    return std::abs(static_cast<double>(static_cast<Compute<T>>(value)));
}

template <typename T>
bool both_nan_or_same_infinity(T a, T b) {
  if constexpr (kIsComplexType<T>) {
    return (std::isnan(a.real()) && std::isnan(b.real())) ||
           (std::isnan(a.imag()) && std::isnan(b.imag())) || a == b;
  } else {
    const double x = static_cast<double>(static_cast<Compute<T>>(a));
    const double y = static_cast<double>(static_cast<Compute<T>>(b));
    return (std::isnan(x) && std::isnan(y)) || x == y;
  }
}

template <typename T>
double largest_of(const T* elements, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const double m = magnitude(elements[i]); std::isfinite(m)) largest = std::max(largest, m);
  return largest;
}

// What a result may lack where subnormal numbers are zeros, if a million terms were. Halves of
// f16 are computed in f32, and none of them is that small.
template <typename T>
double flushed_terms() {
  constexpr double terms = 0x1p20;
  constexpr bool wide = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
  return terms * (wide ? std::numeric_limits<double>::min()
                       : static_cast<double>(std::numeric_limits<float>::min()));
}

// How far a result is from the oracle's, as a share of what is allowed.
struct Difference {
  double share = 0;
  std::string text;  // of more than that, in words

  bool allowed() const { return text.empty(); }
};

template <typename T>
Difference compare(const Shape& shape, const T* got, const T* expected, double tolerance,
                   double moved, bool flushed) {
  const int64_t count = element_count(shape);
  const double largest = std::max(largest_of(expected, count), moved);
  const double lost = flushed ? flushed_terms<T>() : 0;
  Difference furthest;
  for (int64_t i = 0; i < count; ++i) {
    if (both_nan_or_same_infinity(got[i], expected[i])) continue;
    double distance = 0;
    if constexpr (kIsComplexType<T>)
      distance = std::abs(got[i] - expected[i]);
    else
      distance = std::abs(static_cast<double>(static_cast<Compute<T>>(got[i])) -
                          static_cast<double>(static_cast<Compute<T>>(expected[i])));
    const double allowed = tolerance * (magnitude(expected[i]) + largest) + lost;
    if (distance <= furthest.share * allowed) continue;
    if (distance <= allowed) {
      furthest.share = distance / allowed;
      continue;
    }
    Shape index(shape.size(), 0);
    for (size_t axis = shape.size(), rest = i; axis-- > 0;) {
      index[axis] = static_cast<int64_t>(rest % static_cast<size_t>(shape[axis]));
      rest /= static_cast<size_t>(shape[axis]);
    }
    return {distance / allowed,
            fmt::format("at {}: {:.9g} instead of {:.9g} (tolerance {:g}, largest {:g})",
                        to_string(index), magnitude(got[i]), magnitude(expected[i]), tolerance,
                        largest)};
  }
  return furthest;
}

Difference compare_texts(const TensorDesc& desc, const Text* got, const Text* expected) {
  for (int64_t i = 0; i < desc.count(); ++i)
    if (text_of(got[i]) != text_of(expected[i]))
      return {std::numeric_limits<double>::infinity(),
              fmt::format("at element {}: \"{}\" instead of \"{}\"", i,
                          shortened(text_of(got[i]), 40), shortened(text_of(expected[i]), 40))};
  return {};
}

Difference compare_any(const TensorDesc& desc, const void* got, const void* expected,
                       double tolerance, double moved, bool flushed) {
  if (desc.dtype == DType::kString)
    return compare_texts(desc, static_cast<const Text*>(got), static_cast<const Text*>(expected));
  if (is_narrow(desc.dtype)) {
    const auto decoded = [&](const void* codes) {
      std::vector<float> numbers(desc.count());
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = decode_narrow(desc.dtype, static_cast<const uint8_t*>(codes)[i]);
      return numbers;
    };
    return compare(desc.shape, decoded(got).data(), decoded(expected).data(), tolerance, moved,
                   false);
  }
  return dispatch<kAny>(desc.dtype, [&]<typename T>() {
    return compare(desc.shape, static_cast<const T*>(got), static_cast<const T*>(expected),
                   tolerance, moved, flushed);
  });
}

// The elements of a strided tensor, one after another.
std::vector<char> dense_copy(const TensorDesc& desc, const void* data) {
  const size_t size = size_of(desc.dtype);
  std::vector<char> copy(desc.bytes());
  Shape index(desc.shape.size(), 0);
  for (int64_t i = 0, offset = 0; i < desc.count(); ++i) {
    std::memcpy(&copy[static_cast<size_t>(i) * size],
                static_cast<const char*>(data) + offset * static_cast<int64_t>(size), size);
    for (size_t axis = index.size(); axis-- > 0;) {
      offset += desc.strides[axis];
      if (++index[axis] < desc.shape[axis]) break;
      offset -= index[axis] * desc.strides[axis];
      index[axis] = 0;
    }
  }
  return copy;
}

// The least step from 1 to another number of the type.
template <typename T>
double step_from_one() {
  double step = 1;
  while (static_cast<Compute<T>>(static_cast<T>(static_cast<Compute<T>>(1 + step / 2))) != 1)
    step /= 2;
  return step;
}

// Elements that moved by the same share of their size: all of them up or, like rounding, each in
// a direction of its own.
template <typename T>
void move_elements(T* elements, int64_t count, double share, bool up, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t mixed = (static_cast<uint64_t>(i) + seed) * 0x9E3779B97F4A7C15u;
    const bool more = up || ((mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u) >> 63 != 0;
    const double by = share * magnitude(elements[i]);
    elements[i] = static_cast<T>(static_cast<Compute<T>>(
        static_cast<double>(static_cast<Compute<T>>(elements[i])) + (more ? by : -by)));
  }
}

// How far the oracle's result moves when its inputs do, for each unit of their size: its largest
// element, had the terms not cancelled. Steps are wide enough for those of the inputs' dtype.
double moved_result(KernelRequest request, size_t output, void* const* inputs,
                    const void* expected) {
  const DType result = request.outputs[output].dtype;
  if (!contains(kFloat, result)) return 0;
  const auto moves = [&](size_t i) {
    return request.has(i) && contains(kFloat, request.in(i).dtype);
  };
  double share = 0x1p-10;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (moves(i))
      dispatch<kFloat>(request.in(i).dtype,
                       [&]<typename T>() { share = std::max(share, 8 * step_from_one<T>()); });
  const KernelRequest asked = request;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!moves(i)) continue;
    request.inputs[i] = TensorDesc(request.in(i).dtype, request.in(i).shape);
    if (i < request.constants.size()) request.constants[i] = nullptr;
  }
  const KernelPtr oracle = make_oracle_kernel(request);
  double furthest = 0;
  for (const bool up : {true, false}) {
    std::vector<std::vector<char>> memory;
    std::vector<void*> from(inputs, inputs + request.inputs.size()), to;
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      if (!moves(i)) continue;
      from[i] = memory.emplace_back(dense_copy(asked.in(i), inputs[i])).data();
      dispatch<kFloat>(request.in(i).dtype, [&]<typename T>() {
        move_elements(static_cast<T*>(from[i]), request.in(i).count(), share, up, i << 40);
      });
    }
    for (const TensorDesc& desc : request.outputs)
      to.push_back(memory.emplace_back(std::max<size_t>(desc.bytes(), 1)).data());
    oracle->run({from.data(), to.data(), nullptr, nullptr, nullptr});
    dispatch<kFloat>(result, [&]<typename T>() {
      for (int64_t i = 0; i < request.outputs[output].count(); ++i) {
        const auto number = [&](const void* at) {
          return static_cast<double>(static_cast<Compute<T>>(static_cast<const T*>(at)[i]));
        };
        const double distance = std::abs(number(to[output]) - number(expected)) / share;
        if (std::isfinite(distance)) furthest = std::max(furthest, distance);
      }
    });
  }
  return furthest;
}

// Four times the record's tolerance. A layer that rounds its own states to bytes meets some that
// lie half way between two: these are a step of 255 apart then, and so may be what follows.
double allowed_difference(const KernelRequest& request, DType dtype) {
  const double allowed = 4 * request.op->test.tolerance.of(dtype);
  const bool rounds =
      request.op->attr_index("dynamic_bytes") >= 0 && request.attrs.b("dynamic_bytes");
  return rounds ? std::max(allowed, 1.0 / 255) : allowed;
}

// Whether a result can move by a whole step where a float does by its rounding.
bool steps(const Op& op, std::span<const DType> args, DType result) {
  const bool reads = std::ranges::any_of(args, [](DType d) { return contains(kFloat, d); });
  if (!contains(kFloat, result)) return reads;
  return reads && !op.is(kNoRounding) && !op.is(kMoves) && op.test.tolerance.f32 == 0;
}

// A fused program whose floats move by a share of their size before the first step that is made of
// them; empty if none is.
std::vector<int64_t> moved_program(const KernelRequest& request, double share) {
  const auto program = ElementwiseProgram::decode(request.attrs.ints("program"));
  std::vector<DType> inputs;
  for (const auto& input : request.inputs) inputs.push_back(input->dtype);
  const ElementwiseProgram::Types types = program.infer(inputs);
  ElementwiseProgramBuilder builder;
  std::vector<ProgramArg> made;
  std::vector<bool> stepped;
  bool moved = false;
  for (size_t number = 0; number < program.instructions().size(); ++number) {
    const ElementwiseProgram::Instruction& instruction = program.instructions()[number];
    const bool step = steps(*instruction.op, types.args[number], types.results[number]);
    bool after = step;
    std::vector<ProgramArg> args = instruction.args;
    for (size_t k = 0; k < args.size(); ++k) {
      if (args[k].kind != ProgramArg::Kind::kResult) continue;
      const bool whole = stepped[args[k].index];
      args[k] = made[args[k].index];
      after = after || whole;
      if (!step || whole || !contains(kFloat, types.args[number][k])) continue;
      args[k] = builder.call(get_op("mul"), {args[k], ProgramArg::immediate(1 + share)});
      moved = true;
    }
    const NamedAttrs named = instruction.attrs.named();
    std::vector<ProgramAttr> attrs;
    for (const NamedAttr& attr : named) {
      const auto given = std::ranges::find(instruction.parameters, attr.name,
                                           &ElementwiseProgram::AttrParameter::name);
      if (given == instruction.parameters.end())
        attrs.emplace_back(attr);
      else
        attrs.emplace_back(attr.name, given->arg);
    }
    made.push_back(builder.call(*instruction.op, args, attrs));
    stepped.push_back(after);
  }
  if (!moved) return {};
  for (const size_t output : program.outputs()) builder.output(made[output]);
  return {builder.words().begin(), builder.words().end()};
}

// Where a program makes whole steps of floats, the oracle's result may come out on either side of
// one: each element that is nearest to the kernel's between what the program gives for floats that
// are a tolerance smaller and larger. Empty: no steps.
std::vector<char> nearest_steps(KernelRequest request, size_t output, void* const* inputs,
                                const void* got, const void* expected) {
  const TensorDesc desc = request.outputs[output];
  if (request.op->attr_index("program") < 0 || !contains(kReal, desc.dtype)) return {};
  const double share = allowed_difference(request, DType::kF32);
  std::vector<char> nearest(static_cast<const char*>(expected),
                            static_cast<const char*>(expected) + desc.bytes());
  std::vector<std::vector<char>> sides;
  for (const double by : {-share, share}) {
    std::vector<int64_t> program = moved_program(request, by);
    if (program.empty()) return {};
    KernelRequest moved = request;
    moved.attrs.set({"program", std::move(program)});
    std::vector<std::vector<char>> memory;
    std::vector<void*> to;
    for (const TensorDesc& result : request.outputs)
      to.push_back(memory.emplace_back(std::max<size_t>(result.bytes(), 1)).data());
    make_oracle_kernel(moved)->run({inputs, to.data(), nullptr, nullptr, nullptr});
    sides.push_back(std::move(memory[output]));
  }
  dispatch<kReal>(desc.dtype, [&]<typename T>() {
    const auto element = [](const void* from, int64_t i) {
      return static_cast<Compute<T>>(static_cast<const T*>(from)[i]);
    };
    for (int64_t i = 0; i < desc.count(); ++i) {
      const auto [low, high] = std::minmax(
          {element(expected, i), element(sides[0].data(), i), element(sides[1].data(), i)});
      if (low <= high)
        reinterpret_cast<T*>(nearest.data())[i] =
            static_cast<T>(std::clamp(element(got, i), low, high));
    }
  });
  return nearest;
}

// Of one result, both contiguous.
Difference difference_of(const KernelRequest& request, size_t output, void* const* inputs,
                         const void* got, const void* expected, std::optional<double> tolerance) {
  const TensorDesc& desc = request.outputs[output];
  const double allowed = tolerance.value_or(allowed_difference(request, desc.dtype));
  const bool flushed = flushes_denormals();
  Difference found = compare_any(desc, got, expected, allowed, 0, flushed);
  if (found.allowed()) return found;
  if (const auto nearest = nearest_steps(request, output, inputs, got, expected); !nearest.empty())
    return compare_any(desc, got, nearest.data(), allowed, 0, flushed);
  if (!request.op->is(kSums) && !request.op->is(kProduct)) return found;
  const double moved = moved_result(request, output, inputs, expected);
  return compare_any(desc, got, expected, allowed, moved, flushed);
}

// Of all results; nothing where there is no oracle.
std::optional<Difference> compare_with_oracle(const KernelRequest& asked, void* const* inputs,
                                              void* const* outputs) {
  KernelRequest request = asked;
  std::vector<std::vector<char>> copies;
  std::vector<const void*> got;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    got.push_back(outputs[i]);
    const TensorDesc desc = request.outputs[i];
    if (desc.contiguous()) continue;
    got.back() = copies.emplace_back(dense_copy(desc, outputs[i])).data();
    request.outputs[i] = TensorDesc(desc.dtype, desc.shape);
  }
  KernelPtr oracle = make_oracle_kernel(request);
  if (!oracle) return std::nullopt;
  std::vector<std::vector<char>> memory;
  std::vector<void*> expected;
  for (const TensorDesc& desc : request.outputs) {
    memory.emplace_back(std::max<size_t>(desc.bytes(), 1));
    expected.push_back(memory.back().data());
  }
  StringStore strings;
  oracle->run({inputs, expected.data(), nullptr, nullptr, &strings});
  std::optional<double> tolerance;
  if (!env_string("ANYMPS_CHECK_RTOL").empty()) tolerance = env_double("ANYMPS_CHECK_RTOL");
  Difference furthest;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const Difference found = difference_of(request, i, inputs, got[i], expected[i], tolerance);
    if (!found.allowed())
      return Difference{
          found.share,
          fmt::format("output '{}' {}",
                      request.op->outputs[std::min(i, request.op->outputs.size() - 1)].name,
                      found.text)};
    furthest.share = std::max(furthest.share, found.share);
  }
  return furthest;
}

}  // namespace

std::string result_difference(const KernelRequest& request, size_t output, void* const* inputs,
                              const void* got, const void* expected,
                              std::optional<double> tolerance) {
  return difference_of(request, output, inputs, got, expected, tolerance).text;
}

void check_with_oracle(Driver& driver, const KernelChoice& choice, const KernelRequest& request,
                       void* const* inputs, void* const* outputs) {
  const DriverTraits traits = driver.traits();
  if (!traits.host_visible || !traits.computes) return;
  const std::optional<Difference> found = compare_with_oracle(request, inputs, outputs);
  if (!found) return;
  static const bool verbose = env_contains("ANYMPS_VERBOSE", "check");
  if (verbose)
    std::fprintf(stderr, "check: %s \"%s\" %s: %.6f of what is allowed\n", request.op->name.c_str(),
                 shown(request.node).c_str(), choice.name.c_str(), found->share);
  if (!found->allowed())
    fail(Code::kMismatch, "[{}] kernel {} differs from reference: {}{}", request.op->name,
         choice.name, found->text,
         request.node.empty() ? "" : fmt::format(" (node \"{}\")", request.node));
}

}  // namespace anymps
