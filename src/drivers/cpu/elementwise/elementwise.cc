// SPDX-License-Identifier: Apache-2.0
// Elementwise ops on the CPU: each is a tile program of one instruction. An op has a kernel when
// there is a tile function of its name; here is what an op's attributes change about that.
#include "drivers/cpu/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "drivers/cpu/elementwise/narrow_cast.h"
#include "ops/elementwise/parameters.h"
#include "semantics/pair_functions.h"

namespace anymps::cpu {

namespace {

using Value = TileKernelBuilder::Value;
using Builder = TileKernelBuilder;

DType computed(DType dtype) { return is_half(dtype) ? DType::kF32 : dtype; }

// The name of the function that an op and its attributes ask for, and what it is passed.
struct Call {
  std::string name;
  std::vector<double> params;
};

Call call_of(const Op& op, const Attrs& attrs) {
  const auto flag = [&](const char* name) { return attrs.b(name); };
  if (op.name == "div" && attrs.s("rounding") != "none") return {"div_" + attrs.s("rounding"), {}};
  if ((op.name == "min" || op.name == "max") && !flag("propagate_nan"))
    return {op.name + "_number", {}};
  if (op.name == "is_inf") {
    if (flag("positive")) return {flag("negative") ? "is_inf" : "is_positive_inf", {}};
    return {flag("negative") ? "is_negative_inf" : "is_no_inf", {}};
  }
  if (op.name == "gelu" && attrs.s("approximate") == "tanh") return {"gelu_tanh", {}};
  if (op.name == "gelu_gradient" && attrs.s("approximate") == "tanh")
    return {"gelu_tanh_gradient", {}};
  return {op.name, number_attrs(op, attrs)};
}

std::optional<Value> emit_clamp(Builder& builder, const Attrs& attrs,
                                const std::vector<std::optional<int>>& args, DType dtype,
                                std::string& why) {
  const DType type = computed(dtype);
  const bool low = args.size() > 1 && args[1], high = args.size() > 2 && args[2];
  const double min = attrs.f("min"), max = attrs.f("max");
  if (!low && !high)
    if (const TileOp* op = find_tile_op("clamp_attr", type)) {
      // A bound is a number of x's dtype.
      const auto rounded = [&](double value) {
        if (dtype == DType::kF16) return static_cast<double>(Half(static_cast<float>(value)));
        if (dtype == DType::kBF16) return static_cast<double>(BFloat(static_cast<float>(value)));
        return value;
      };
      return builder.call(*op, {*args[0]}, {rounded(min), rounded(max)});
    }
  const TileOp* op = find_tile_op("clamp", type);
  if (!op) return refuse<std::optional<Value>>(why, fmt::format("x is {}", name(dtype)));
  return builder.call(*op, {*args[0], low ? *args[1] : builder.constant(type, min),
                            high ? *args[2] : builder.constant(type, max)});
}

// Infinite replacements of infinities are the ends of the dtype's range.
std::optional<Value> emit_nan_to_num(Builder& builder, Value x, const Op& op, const Attrs& attrs,
                                     DType dtype) {
  std::vector<double> numbers = number_attrs(op, attrs);
  if (std::isinf(numbers[1])) numbers[1] = scalar::largest_finite(dtype);
  if (std::isinf(numbers[2])) numbers[2] = -scalar::largest_finite(dtype);
  return builder.call(*find_tile_op(op.name, builder.dtype(x)), {x}, numbers);
}

// The narrow types are read as f32 and made from f32, or from bytes, which hold all that integers
// of them keep.
std::optional<Value> emit_cast(Builder& builder, Value x, const Attrs& attrs, DType to,
                               std::string& why) {
  const auto between = [&](DType type) {
    if (builder.dtype(x) == type) return;
    x = builder.call(*find_cast(builder.dtype(x), type), {x});
  };
  if (builder.dtype(x) == DType::kString || to == DType::kString)
    return refuse<std::optional<Value>>(why, "there are strings");
  if (builder.dtype(x) == to) return x;
  if (is_narrow(builder.dtype(x))) x = builder.call(*find_narrow_decode(builder.dtype(x)), {x});
  // The builder reads halves as f32 and stores f32 as halves.
  if (!is_narrow(to)) {
    between(computed(to));
    return x;
  }
  const DType from = builder.dtype(x);
  if (contains(kNarrowInt, to) && contains(kInt | kBoolean, from))
    between(DType::kI8);
  else if (from != DType::kF32)
    return refuse<std::optional<Value>>(
        why, fmt::format("{} to {} would round twice", name(from), name(to)));
  const std::string& rounding = attrs.s("round_mode");
  const double mode = rounding == "up" ? 0 : rounding == "down" ? 1 : 2;
  return builder.call(*find_narrow_encode(builder.dtype(x), to), {x},
                      {attrs.b("saturate") ? 1.0 : 0.0, mode});
}

// Powers that are common as constants and much cheaper as themselves.
std::optional<Value> emit_power(Builder& builder, Value x, Value y) {
  const std::optional<double> exponent = builder.number(y);
  const DType f32 = DType::kF32;
  if (!exponent || builder.dtype(x) != f32) return std::nullopt;
  if (*exponent == 2) return builder.call(*find_tile_op("square", f32), {x});
  if (*exponent == 3)
    return builder.call(*find_tile_op("mul", f32),
                        {builder.call(*find_tile_op("square", f32), {x}), x});
  if (*exponent == -1) return builder.call(*find_tile_op("reciprocal", f32), {x});
  return std::nullopt;
}

}  // namespace

std::optional<size_t> place_of_attribute(const Op& op, std::string_view attr) {
  size_t place = 0;
  for (const AttrSpec& spec : op.attrs) {
    if (spec.kind != AttrKind::kInt && spec.kind != AttrKind::kFloat) continue;
    if (spec.name == attr) return place;
    ++place;
  }
  return std::nullopt;
}

std::optional<Value> emit(Builder& builder, const Op& op, const Attrs& attrs,
                          const std::vector<std::optional<int>>& args, DType dtype,
                          std::string& why) {
  if (op.name == "clamp") return emit_clamp(builder, attrs, args, dtype, why);
  if (op.name == "cast") return emit_cast(builder, *args[0], attrs, dtype, why);
  if (op.name == "identity") return *args[0];
  if (op.name == "nan_to_num") return emit_nan_to_num(builder, *args[0], op, attrs, dtype);
  if (op.name == "pow")
    if (const auto power = emit_power(builder, *args[0], *args[1])) return power;
  const Call call = call_of(op, attrs);
  std::vector<Value> values;
  for (const auto& arg : args)
    if (arg) values.push_back(*arg);
  const DType type = builder.dtype(values.back());
  const TileOp* function = find_tile_op(call.name, type);
  if (!function) return refuse<std::optional<Value>>(why, fmt::format("x is {}", name(type)));
  return builder.call(*function, std::move(values), call.params);
}

namespace {

// What only moves elements treats those of no computing type as bytes or words.
TensorDesc moved(TensorDesc desc) {
  if (is_narrow(desc.dtype)) desc.dtype = DType::kU8;
  if (desc.dtype == DType::kString) desc.dtype = DType::kU64;
  return desc;
}

// Numbers that come with each run, where the op's function takes them as they are.
void read_parameters(Builder& builder, const KernelRequest& request, Value result) {
  const Op& op = *request.op;
  if (op.name == "clamp" || op.name == "nan_to_num") return;  // theirs are rounded first
  std::vector<size_t> places;
  for (const std::string& attr : request.parameters) {
    const auto place = place_of_attribute(op, attr);
    if (!place || *place >= builder.param_count(result)) return;
    places.push_back(*place);
  }
  for (size_t i = 0; i < places.size(); ++i)
    builder.set_param(result, places[i],
                      {TileParameter::kOfTheRun, DType::kF64, static_cast<int64_t>(i)});
  builder.take_parameters();
}

KernelPtr make_elementwise(const KernelRequest& request, std::string& why) {
  const Op& op = *request.op;
  Builder builder(request.out().shape);
  // What only moves elements does not look at halves.
  const bool raw =
      op.is(kMoves) || (op.name == "cast" && request.in(0).dtype == request.out().dtype);
  std::vector<std::optional<int>> args;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    args.push_back(request.has(i) ? std::optional(builder.input(
                                        i, raw ? moved(request.in(i)) : request.in(i), raw))
                                  : std::nullopt);
  if (const std::optional<double> number = request.scalar(1);
      number && op.name == "pow" && request.in(1).shape.empty())
    args[1] = builder.constant(builder.dtype(*args[1]), *number);
  const DType dtype = raw ? moved(request.out()).dtype : request.out().dtype;
  const std::optional<Value> y = emit(builder, op, request.attrs, args, dtype, why);
  if (!y) return nullptr;
  read_parameters(builder, request, *y);
  builder.output(0, raw ? moved(request.out()) : request.out(), *y);
  return builder.build();
}

// Its functions are found by two dtypes, not by its name.
const KernelRegistrar kCast("cpu", "cast", "simd", 10, make_elementwise);

using Lists = std::unordered_map<const Op*, KernelList>;

// Made when the first kernel is asked for: by then all records are there, and the functions are
// those of the instruction set in use.
Lists tile_kernel_lists() {
  Lists lists;
  for (const Op* op : all_ops()) {
    const char* name = op->is(kElementwise) ? tile_kernel_name(op->name) : nullptr;
    if (!name) continue;
    KernelList list = kernel_list("cpu", op->name);
    const KernelEntry entry{name, 10, make_elementwise};
    const auto later = [](const KernelEntry& a, const KernelEntry& b) { return a.order < b.order; };
    list.insert(std::upper_bound(list.begin(), list.end(), entry, later), entry);
    lists.emplace(op, std::move(list));
  }
  return lists;
}

}  // namespace

const KernelList& kernels_of(const Op& op) {
  static const Lists& lists = *new Lists(tile_kernel_lists());  // even while the process exits
  const auto it = lists.find(&op);
  return it == lists.end() ? kernel_list("cpu", op.name) : it->second;
}

}  // namespace anymps::cpu
