// SPDX-License-Identifier: Apache-2.0
#include "lowering/preparation.h"

#include <algorithm>
#include <optional>

#include "lowering/evaluate.h"
#include "lowering/few.h"

namespace anymps::lowering {

namespace {

using Views = Few<amps_view, 16>;

// A number of the call in the type that the graph wants.
union Number {
  Number() : f64(0) {}
  Number(const Argument& argument, amps_dtype dtype) {
    const bool whole = argument.kind != Argument::Kind::kFloat;
    const double value = whole ? static_cast<double>(argument.i) : argument.f;
    if (dtype == AMPS_F32)
      f32 = static_cast<float>(value);
    else if (dtype == AMPS_I64)
      i64 = whole ? argument.i : static_cast<int64_t>(value);
    else
      f64 = value;
  }
  double f64;
  float f32;
  int64_t i64;
};
using Numbers = Few<Number, 16>;

}  // namespace

// What both ways of running share: where the inputs come from.
class PreparedBase : public Prepared {
 public:
  PreparedBase(const amps_api& api, amps_device* device) : api_(api), device_(device) {}

  struct Source {
    size_t argument = 0;
    int view = 0;                                 // -1: the argument is a number
    amps_dtype dtype = AMPS_F64;                  // of the number
    const Builder::Constant* constant = nullptr;  // instead of an argument
    bool absent = false;
    std::optional<Ints> dims = {};  // the view in another shape
  };

 protected:
  // The inputs of one run, for as long as it takes: numbers lie in here.
  struct Inputs {
    Inputs(const PreparedBase& prepared, std::span<const Argument> arguments)
        : views(prepared.sources_.size()), numbers(prepared.sources_.size()) {
      prepared.fill(arguments, views, numbers);
    }
    Views views;
    Numbers numbers;
  };

  void fill(std::span<const Argument> arguments, Views& views, Numbers& numbers) const {
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      if (source.absent) {
        views[i] = kAbsent;
      } else if (source.constant) {
        const Builder::Constant& constant = *source.constant;
        views[i] = {const_cast<char*>(constant.bytes.data()), constant.dims.data(), nullptr,
                    constant.dtype, static_cast<int32_t>(constant.dims.size())};
      } else if (source.view >= 0) {
        views[i] = arguments[source.argument].views[source.view];
        if (source.dims) {
          views[i].dims = source.dims->data();
          views[i].strides = nullptr;
          views[i].rank = static_cast<int32_t>(source.dims->size());
        }
      } else {
        const Argument& argument = arguments[source.argument];
        numbers[i] = {argument, source.dtype};
        views[i] = {&numbers[i], nullptr, nullptr, source.dtype, 0};
      }
    }
  }

  const amps_api& api_;
  amps_device* device_;
  std::vector<Source> sources_;
  std::vector<Builder::Constant> constants_;
  friend class Preparation;
};

namespace {

class PreparedCall final : public PreparedBase {
 public:
  using PreparedBase::PreparedBase;
  ~PreparedCall() override { api_.call_release(call_); }

  void run(std::span<const Argument> arguments, std::span<const amps_view> outputs,
           amps_stream* stream) const override {
    Inputs inputs(*this, arguments);
    Few<amps_view, 8> to(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      to[i] = outputs[i];
      if (!shapes_[i]) continue;
      to[i].dims = shapes_[i]->data();
      to[i].rank = static_cast<int32_t>(shapes_[i]->size());
    }
    check(api_, api_.call_run(call_, inputs.views.data(), sources_.size(), nullptr, to.data(),
                              to.size(), stream));
  }

  void run(std::span<const Argument> arguments, Memory& memory) const override {
    Inputs inputs(*this, arguments);
    Views outputs(results_.size());
    std::vector<amps_type> types(results_.size());
    check(api_,
          api_.call_infer(call_, inputs.views.data(), sources_.size(), types.data(), types.size()));
    for (size_t i = 0; i < types.size(); ++i)
      outputs[i] = {memory.allocate(i, types[i]), types[i].dims, nullptr, types[i].dtype,
                    types[i].rank};
    check(api_, api_.call_run(call_, inputs.views.data(), sources_.size(), nullptr, outputs.data(),
                              types.size(), nullptr));
  }

  amps_call* call_ = nullptr;
  std::vector<std::optional<Ints>> shapes_;  // that the op gives results, if others are asked for
};

class PreparedExecutable final : public PreparedBase {
 public:
  using PreparedBase::PreparedBase;
  ~PreparedExecutable() override { api_.executable_release(executable_); }

  void run(std::span<const Argument> arguments, std::span<const amps_view> outputs,
           amps_stream* stream) const override {
    Inputs inputs(*this, arguments);
    check(api_, api_.executable_run_views(executable_, inputs.views.data(), sources_.size(),
                                          outputs.data(), outputs.size(), stream));
  }

  void run(std::span<const Argument> arguments, Memory& memory) const override {
    Inputs inputs(*this, arguments);
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
      check(api_, api_.tensor_wrap(device_, view.dtype, view.rank, view.dims, view.strides,
                                   view.data, nullptr, nullptr, &feeds[i]));
    }
    check(api_, api_.executable_run(executable_, feeds.data(), feeds.size(), made.data(),
                                    made.size(), nullptr, nullptr));
    for (size_t i = 0; i < made.size(); ++i) {
      amps_type type{
          api_.tensor_dtype(made[i]), static_cast<int32_t>(api_.tensor_rank(made[i])), {}};
      std::copy_n(api_.tensor_dims(made[i]), type.rank, type.dims);
      void* memory_of = memory.allocate(i, type);
      check(api_, api_.tensor_to_host(made[i], memory_of, api_.tensor_bytes(made[i])));
    }
  }

  amps_executable* executable_ = nullptr;
};

}  // namespace

Preparation::Preparation(const Kernel& kernel, const amps_api& api, amps_device* device,
                         std::span<const Argument> arguments)
    : kernel_(kernel), device_(device), arguments_(arguments), builder_(api) {}

Value Preparation::value_of(size_t i) {
  const Argument& argument = arguments_[i];
  const auto tensor = [&](int view) -> Value {
    const amps_view& given = argument.views[view];
    if (given.rank < 0) return {};
    const Tensor made = builder_.input(given.dtype, {given.dims, static_cast<size_t>(given.rank)});
    feeds_.push_back({made.value, i, view});
    const bool wide = kernel_.names_[i].wide && is_half(given.dtype);
    return wide ? builder_.cast(made, AMPS_F32) : made;
  };
  using Kind = Argument::Kind;
  switch (argument.kind) {
    case Kind::kTensor:
      return tensor(0);
    case Kind::kTensors: {
      Values list;
      for (size_t view = 0; view < argument.views.size(); ++view)
        list.push_back(tensor(static_cast<int>(view)));
      return list;
    }
    case Kind::kFlag:
      return argument.i != 0;
    case Kind::kInt:
    case Kind::kFloat:
      if (kernel_.names_[i].at_run) {
        const Tensor made = builder_.input_number();
        feeds_.push_back({made.value, i, -1});
        return made;
      }
      return argument.kind == Kind::kInt ? Value(argument.i) : Value(argument.f);
    case Kind::kInts:
      return Ints(argument.ints.begin(), argument.ints.end());
    case Kind::kFloats:
      return Floats(argument.floats.begin(), argument.floats.end());
    case Kind::kText:
      return std::string(argument.text);
    case Kind::kDType:
      return static_cast<amps_dtype>(argument.i);
    default:
      return {};
  }
}

std::vector<Tensor> Preparation::wanted_results(Values values, std::span<const Wanted> wanted) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].wanted) continue;
    if (i >= values.size())
      throw std::invalid_argument("result " + std::to_string(i) + " is not supported");
    if (values[i].absent()) continue;
    places_[i] = static_cast<int>(results.size());
    Tensor result;
    if (!values[i].is_tensor())
      result = builder_.number(values[i].number(), wanted[i].dtype.value_or(AMPS_F32));
    else
      result = values[i].tensor();
    if (wanted[i].dtype && !result.own_type) result = builder_.cast(result, *wanted[i].dtype);
    const auto given = [&](const Feed& feed) { return feed.value == result.value; };
    const bool taken = std::any_of(results.begin(), results.end(), [&](const Tensor& other) {
      return other.value == result.value;
    });
    if (taken || std::any_of(feeds_.begin(), feeds_.end(), given))
      result = builder_.op("identity", {Tensor{result.value}}).tensor();
    results.push_back(result);
  }
  return results;
}

// What a tensor was before it was reshaped.
amps_value* Preparation::unshaped(amps_value* value) const {
  for (size_t i = builder_.reshapes().size(); i-- > 0;)
    if (builder_.reshapes()[i].to == value) value = builder_.reshapes()[i].from;
  return value;
}

std::unique_ptr<Prepared> Preparation::as_call(std::span<const Tensor> results) {
  if (builder_.nodes().size() != 1 || !builder_.nodes()[0].op) return nullptr;
  const Builder::Node& node = builder_.nodes()[0];
  if (node.outputs.size() != results.size()) return nullptr;
  auto made = std::make_unique<PreparedCall>(builder_.api(), device_);
  for (size_t i = 0; i < results.size(); ++i) {
    const amps_value* result = unshaped(results[i].value);
    if (result != node.outputs[i]) return nullptr;
    const bool reshaped = result != results[i].value;
    made->shapes_.push_back(reshaped ? std::optional(builder_.dims({node.outputs[i]}))
                                     : std::nullopt);
  }
  made->constants_ = builder_.constants();
  for (amps_value* given : node.inputs) {
    PreparedBase::Source source;
    amps_value* input = unshaped(given);
    const auto feed = std::find_if(feeds_.begin(), feeds_.end(),
                                   [&](const Feed& given) { return given.value == input; });
    const auto constant = std::find_if(made->constants_.begin(), made->constants_.end(),
                                       [&](const auto& given) { return given.value == input; });
    if (!input)
      source.absent = true;
    else if (feed != feeds_.end())
      source = {feed->argument, feed->view, feed->dtype, nullptr, false, {}};
    else if (constant != made->constants_.end())
      source.constant = &*constant;
    else
      return nullptr;
    if (input != given) {
      const bool plain = feed != feeds_.end() && feed->view >= 0 &&
                         row_major(arguments_[feed->argument].views[feed->view]);
      if (!plain) return nullptr;
      source.dims = builder_.dims({given});
    }
    made->sources_.push_back(std::move(source));
  }
  const AttrList attrs(node.attrs);
  check(builder_.api(), builder_.api().call_create(device_, node.op, attrs.data(), attrs.size(),
                                                   nullptr, 0, &made->call_));
  return made;
}

std::unique_ptr<Prepared> Preparation::as_executable(std::span<const Tensor> results) {
  const amps_api& api = builder_.api();
  auto made = std::make_unique<PreparedExecutable>(api, device_);
  std::vector<amps_value*> outputs;
  for (const Tensor& result : results) outputs.push_back(result.value);
  check(api, api.graph_set_outputs(builder_.graph(), outputs.data(), outputs.size()));
  check(api, api.compile(device_, builder_.graph(), nullptr, &made->executable_));
  for (const Feed& feed : feeds_)
    made->sources_.push_back({feed.argument, feed.view, feed.dtype, nullptr, false, {}});
  return made;
}

std::unique_ptr<Prepared> Preparation::make(std::span<const Wanted> wanted) {
  try {
    Names names;
    for (size_t i = 0; i < arguments_.size(); ++i)
      names.emplace(kernel_.names_[i].name, value_of(i));
    places_.assign(wanted.size(), -1);
    const std::vector<Tensor> results = wanted_results(
        evaluate(builder_, kernel_.program_, std::move(names), wanted.size()), wanted);
    for (const Builder::NumberCast& cast : builder_.number_casts()) {
      const auto given = std::find_if(feeds_.begin(), feeds_.end(),
                                      [&](const Feed& feed) { return feed.value == cast.from; });
      feeds_.push_back({cast.to, given->argument, -1, cast.dtype});
    }
    std::vector<amps_type> types;
    bool sized = true;
    for (const Tensor& result : results) {
      amps_type type{builder_.dtype(result), static_cast<int32_t>(builder_.rank(result)), {}};
      for (int32_t axis = 0; axis < type.rank; ++axis) {
        type.dims[axis] = builder_.api().value_dim(result.value, axis);
        sized = sized && type.dims[axis] >= 0;
      }
      sized = sized && type.rank >= 0;
      types.push_back(type);
    }
    std::unique_ptr<Prepared> made = as_call(results);
    if (!made) made = as_executable(results);
    made->results_ = std::move(types);
    made->places_ = std::move(places_);
    made->sized_ = sized;
    return made;
  } catch (const EngineError& error) {
    throw EngineError(error.status, std::string("[") + kernel_.name() + "] " + error.what());
  } catch (const std::exception& error) {
    throw EngineError(AMPS_INVALID_ARGUMENT,
                      std::string("[") + kernel_.name() + "] " + error.what());
  }
}

}  // namespace anymps::lowering
