// SPDX-License-Identifier: Apache-2.0
#include "lowering/prepared.h"

#include <algorithm>

#include "lowering/few.h"

namespace anymps::lowering {

namespace {

using Views = Few<amps_view, 16>;

// A number of the call in the type that the graph wants.
union Number {
  double f64;
  float f32;
  int64_t i64;
  int32_t i32;
  int16_t i16;
  int8_t i8;
  uint8_t u8;
};

Number number_of(const Argument& argument, amps_dtype dtype) {
  const bool whole = argument.kind != Argument::Kind::kFloat;
  const double value = whole ? static_cast<double>(argument.i) : argument.f;
  const int64_t integer = whole ? argument.i : static_cast<int64_t>(argument.f);
  switch (dtype) {
    case AMPS_F32:
      return {.f32 = static_cast<float>(value)};
    case AMPS_I64:
      return {.i64 = integer};
    case AMPS_I32:
      return {.i32 = static_cast<int32_t>(integer)};
    case AMPS_I16:
      return {.i16 = static_cast<int16_t>(integer)};
    case AMPS_I8:
      return {.i8 = static_cast<int8_t>(integer)};
    case AMPS_U8:
      return {.u8 = static_cast<uint8_t>(integer)};
    default:
      return {.f64 = value};
  }
}

int32_t rank_of(const Ints& dims) { return static_cast<int32_t>(dims.size()); }

// The inputs of one step, for as long as it takes: numbers lie in here.
struct Inputs {
  Inputs(std::span<const Source> sources, std::span<const Argument> arguments, std::byte* memory)
      : views(sources.size()), numbers(sources.size()) {
    for (size_t i = 0; i < sources.size(); ++i)
      views[i] = view_of(sources[i], arguments, memory, &numbers[i]);
  }

  static amps_view view_of(const Source& source, std::span<const Argument> arguments,
                           std::byte* memory, Number* number) {
    switch (source.kind) {
      case Source::Kind::kView: {
        amps_view view = arguments[source.argument].views[source.view];
        if (source.dims) {
          view.dims = source.dims->data();
          view.strides = nullptr;
          view.rank = rank_of(*source.dims);
        }
        return view;
      }
      case Source::Kind::kNumber:
        *number = number_of(arguments[source.argument], source.dtype);
        return {number, nullptr, nullptr, source.dtype, 0};
      case Source::Kind::kConstant: {
        const Builder::Constant& constant = *source.constant;
        return {const_cast<char*>(constant.bytes.data()), constant.dims.data(), nullptr,
                constant.dtype, rank_of(constant.dims)};
      }
      case Source::Kind::kBetween:
        return {memory + source.offset, source.dims->data(), nullptr, source.dtype,
                rank_of(*source.dims)};
      default:
        return kAbsent;
    }
  }

  Views views;
  Few<Number, 16> numbers;
};

// The same without a description.
void* address_of(const Source& source, std::span<const Argument> arguments, std::byte* memory,
                 Number* number) {
  switch (source.kind) {
    case Source::Kind::kView:
      return arguments[source.argument].views[source.view].data;
    case Source::Kind::kNumber:
      *number = number_of(arguments[source.argument], source.dtype);
      return number;
    case Source::Kind::kConstant:
      return const_cast<char*>(source.constant->bytes.data());
    case Source::Kind::kBetween:
      return memory + source.offset;
    default:
      return nullptr;
  }
}

amps_view view_of(const Target& target, std::span<const amps_view> outputs, std::byte* memory) {
  amps_view view = target.result >= 0
                       ? outputs[target.result]
                       : amps_view{memory + target.offset, nullptr, nullptr, target.dtype, 0};
  if (!target.dims) return view;
  view.dims = target.dims->data();
  view.strides = nullptr;
  view.rank = rank_of(*target.dims);
  return view;
}

// The bytes that a view may touch: from the first, to the one behind the last.
std::pair<const char*, const char*> extent(const amps_api& api, const amps_view& view) {
  int64_t low = 0, high = 0, count = 1;
  for (int32_t i = 0; i < view.rank; ++i) {
    if (view.dims[i] == 0) return {nullptr, nullptr};
    const int64_t last = view.strides ? (view.dims[i] - 1) * view.strides[i] : 0;
    (last < 0 ? low : high) += last;
    count *= view.dims[i];
  }
  if (!view.strides) high = count - 1;
  const auto size = static_cast<int64_t>(api.dtype_size(view.dtype));
  const char* data = static_cast<const char*>(view.data);
  return {data + low * size, data + (high + 1) * size};
}

}  // namespace

void PreparedExecutable::run(std::span<const Argument> arguments,
                             std::span<const amps_view> outputs, amps_stream* stream) const {
  Inputs inputs(sources_, arguments, nullptr);
  check(api_, api_.executable_run_views(executable_, inputs.views.data(), sources_.size(),
                                        outputs.data(), outputs.size(), stream));
}

void PreparedExecutable::run(std::span<const Argument> arguments, Memory& memory) const {
  Inputs inputs(sources_, arguments, nullptr);
  struct Tensors : std::vector<amps_tensor*> {
    Tensors(const amps_api& table, size_t count) : vector(count), api(table) {}
    ~Tensors() {
      for (amps_tensor* tensor : *this) api.tensor_release(tensor);
    }
    Tensors(const Tensors&) = delete;
    Tensors& operator=(const Tensors&) = delete;
    const amps_api& api;
  };
  Tensors feeds(api_, sources_.size()), made(api_, results_.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    const amps_view& view = inputs.views[i];
    check(api_, api_.tensor_wrap(device_, view.dtype, view.rank, view.dims, view.strides, view.data,
                                 nullptr, nullptr, &feeds[i]));
  }
  check(api_, api_.executable_run(executable_, feeds.data(), feeds.size(), made.data(), made.size(),
                                  nullptr, nullptr));
  for (size_t i = 0; i < made.size(); ++i) {
    amps_type type{api_.tensor_dtype(made[i]), static_cast<int32_t>(api_.tensor_rank(made[i])), {}};
    std::copy_n(api_.tensor_dims(made[i]), type.rank, type.dims);
    void* memory_of = memory.allocate(i, type);
    check(api_, api_.tensor_to_host(made[i], memory_of, api_.tensor_bytes(made[i])));
  }
}

bool PreparedCalls::in_the_way(std::span<const Argument> arguments,
                               std::span<const amps_view> outputs) const {
  return std::ranges::any_of(hazards_, [&](const Hazard& hazard) {
    const auto [first, last] = extent(api_, outputs[hazard.result]);
    const auto [begin, end] = extent(api_, arguments[hazard.argument].views[hazard.view]);
    return begin < last && first < end;
  });
}

void PreparedCalls::run(std::span<const Argument> arguments, std::span<const amps_view> outputs,
                        amps_stream* stream) const {
  if (whole_ && (stream || in_the_way(arguments, outputs)))
    return whole_->run(arguments, outputs, stream);
  alignas(64) std::byte memory[kMemory];
  for (const Step& step : steps_) {
    // A door may want other strides than it has said at the preparation.
    const auto plain = [&](const Target& target) {
      return target.result < 0 || row_major(outputs[target.result]);
    };
    if (!step.fixed || stream || !std::ranges::all_of(step.targets, plain)) {
      run(step, arguments, outputs, memory, stream);
      continue;
    }
    Few<void*, 16> from(step.sources.size());
    Few<Number, 16> numbers(step.sources.size());
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = address_of(step.sources[i], arguments, memory, &numbers[i]);
    Few<void*, 8> to(step.targets.size());
    for (size_t i = 0; i < to.size(); ++i) {
      const Target& target = step.targets[i];
      to[i] = target.result >= 0 ? outputs[target.result].data : memory + target.offset;
    }
    check(api_, api_.fixed_call_run(step.fixed, from.data(), to.data()));
  }
}

void PreparedCalls::run(const Step& step, std::span<const Argument> arguments,
                        std::span<const amps_view> outputs, std::byte* memory,
                        amps_stream* stream) const {
  Inputs inputs(step.sources, arguments, memory);
  Few<amps_view, 8> to(step.targets.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] = view_of(step.targets[i], outputs, memory);
  check(api_, api_.call_run(step.call, inputs.views.data(), inputs.views.size(), nullptr, to.data(),
                            to.size(), stream));
}

// For arguments like these, whatever their memory, if they and the results are row-major: a key
// says no more of strides.
void PreparedCalls::fix(Step& step, std::span<const Argument> arguments,
                        std::span<const amps_type> results) const {
  std::byte memory[1];  // addresses are not looked at
  Inputs inputs(step.sources, arguments, memory);
  if (!std::ranges::all_of(inputs.views, row_major)) return;
  std::vector<amps_view> made;
  for (const amps_type& type : results)
    made.push_back({memory, type.dims, nullptr, type.dtype, type.rank});
  std::vector<amps_view> to;
  for (const Target& target : step.targets) to.push_back(view_of(target, made, memory));
  check(api_, api_.call_fix(step.call, inputs.views.data(), inputs.views.size(), to.data(),
                            to.size(), &step.fixed));
}

// Only one step is taken where sizes depend on elements.
void PreparedCalls::run(std::span<const Argument> arguments, Memory& memory) const {
  const Step& step = steps_.front();
  Inputs inputs(step.sources, arguments, nullptr);
  Views outputs(results_.size());
  std::vector<amps_type> types(results_.size());
  check(api_, api_.call_infer(step.call, inputs.views.data(), inputs.views.size(), types.data(),
                              types.size()));
  for (size_t i = 0; i < types.size(); ++i)
    outputs[i] = {memory.allocate(i, types[i]), types[i].dims, nullptr, types[i].dtype,
                  types[i].rank};
  check(api_, api_.call_run(step.call, inputs.views.data(), inputs.views.size(), nullptr,
                            outputs.data(), types.size(), nullptr));
}

}  // namespace anymps::lowering
