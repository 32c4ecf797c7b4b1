// SPDX-License-Identifier: Apache-2.0
#include "lowering/preparation.h"

#include <algorithm>
#include <optional>
#include <set>

namespace anymps::lowering {

namespace {

// More steps than this are better compiled, and so are results of more bytes, which are made
// quicker by one pass over the elements than they are called.
constexpr size_t kMostSteps = 4;
constexpr int64_t kMostBytes = 1 << 16;

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
    return made;
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
      if (kernel_.at_run(argument, i)) {
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
    case Kind::kComplex:
      return std::complex<double>(argument.f, argument.imaginary);
    default:
      return {};
  }
}

std::vector<Tensor> Preparation::wanted_results(const Values& values,
                                                std::span<const Wanted> wanted) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (values[i].absent()) continue;
    places_[i] = static_cast<int>(results.size());
    row_major_.push_back(wanted[i].row_major);
    in_place_.push_back(in_place(wanted[i], arguments_));
    Tensor result = values[i].tensor();
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

std::optional<Source> Preparation::source_of(amps_value* given, const PreparedCalls& calls,
                                             std::span<const Between> between) const {
  amps_value* input = unshaped(given);
  const auto is_input = [&](const auto& candidate) { return candidate.value == input; };
  Source source;
  if (!input) return source;
  if (const auto feed = std::ranges::find_if(feeds_, is_input); feed != feeds_.end()) {
    source = source_of(*feed);
    if (input == given) return source;
    if (feed->view < 0 || !row_major(arguments_[feed->argument].views[feed->view]))
      return std::nullopt;
  } else if (const auto constant = std::ranges::find_if(calls.constants_, is_input);
             constant != calls.constants_.end()) {
    if (input != given) return std::nullopt;
    source.kind = Source::Kind::kConstant;
    source.constant = &*constant;
    return source;
  } else if (const auto made = std::ranges::find_if(between, is_input); made != between.end()) {
    source.kind = Source::Kind::kBetween;
    source.dtype = builder_.dtype({input});
    source.offset = made->offset;
  } else {
    return std::nullopt;
  }
  source.dims = builder_.dims({given});
  return source;
}

Source Preparation::source_of(const Feed& feed) {
  Source source;
  source.kind = feed.view < 0 ? Source::Kind::kNumber : Source::Kind::kView;
  source.dtype = feed.dtype;
  source.argument = static_cast<int>(feed.argument);
  source.view = std::max(feed.view, 0);
  return source;
}

// Bytes of a value; more than any limit if its shape is not known.
int64_t Preparation::bytes_of(amps_value* value) const {
  int64_t bytes = static_cast<int64_t>(builder_.api().dtype_size(builder_.dtype({value})));
  const int64_t rank = builder_.rank({value});
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t dim = builder_.api().value_dim(value, axis);
    if (dim < 0 || dim > kMostBytes) return kMostBytes + 1;
    bytes = std::min(bytes * dim, kMostBytes + 1);
  }
  return rank < 0 ? kMostBytes + 1 : bytes;
}

// The nodes that results with elements are made of, in order; none if there are some whose ops are
// not known.
std::vector<const Builder::Node*> Preparation::needed(std::span<const Tensor> results) const {
  std::set<const amps_value*> values;
  for (const Tensor& result : results)
    if (bytes_of(result.value) > 0) values.insert(unshaped(result.value));
  std::vector<const Builder::Node*> nodes;
  for (auto at = builder_.nodes().rbegin(); at != builder_.nodes().rend(); ++at) {
    const Builder::Node& node = *at;
    if (!node.op) return {};
    const auto is_needed = [&](const amps_value* output) { return values.contains(output); };
    if (std::ranges::none_of(node.outputs, is_needed)) continue;
    nodes.push_back(&node);
    for (amps_value* input : node.inputs) values.insert(unshaped(input));
  }
  std::ranges::reverse(nodes);
  return nodes;
}

bool Preparation::small(std::span<const Builder::Node* const> nodes) const {
  return nodes.size() <= kMostSteps && std::ranges::all_of(nodes, [&](const Builder::Node* node) {
           return std::ranges::all_of(
               node->outputs, [&](amps_value* output) { return bytes_of(output) <= kMostBytes; });
         });
}

// Whether every node makes results of the kernel from its arguments alone: there is nothing that a
// graph of them would make faster.
bool Preparation::apart(std::span<const Builder::Node* const> nodes,
                        std::span<const Tensor> results) const {
  std::set<const amps_value*> made;
  for (const Tensor& result : results) made.insert(unshaped(result.value));
  return std::ranges::all_of(nodes, [&](const Builder::Node* node) {
    const auto between = [&](amps_value* input) {
      return std::ranges::any_of(nodes, [&](const Builder::Node* other) {
        return std::ranges::find(other->outputs, unshaped(input)) != other->outputs.end();
      });
    };
    return std::ranges::none_of(node->inputs, between) &&
           std::ranges::all_of(node->outputs, [&](amps_value* out) { return made.contains(out); });
  });
}

// Nothing if the graph is not made of ops that can be called one by one.
std::unique_ptr<PreparedCalls> Preparation::as_calls(std::span<const Tensor> results) {
  const std::vector<const Builder::Node*> nodes = needed(results);
  const bool all_small = small(nodes);
  if (nodes.empty() || (nodes.size() > 1 && !all_small && !apart(nodes, results))) return nullptr;
  auto made = std::make_unique<PreparedCalls>(builder_.api());
  made->constants_ = builder_.constants();
  std::vector<Between> between;
  std::vector<bool> written(results.size());  // those without elements need nothing
  for (size_t i = 0; i < results.size(); ++i) written[i] = bytes_of(results[i].value) == 0;
  int64_t used = 0;
  for (const Builder::Node* node : nodes) {
    PreparedCalls::Step& step = made->steps_.emplace_back();
    for (amps_value* input : node->inputs) {
      std::optional<Source> source = source_of(input, *made, between);
      if (!source) return nullptr;
      step.sources.push_back(std::move(*source));
    }
    for (amps_value* output : node->outputs) {
      Target target;
      for (size_t i = 0; i < results.size(); ++i) {
        if (unshaped(results[i].value) != output) continue;
        if (target.result >= 0) return nullptr;
        target.result = static_cast<int>(i);
        written[i] = true;
        if (results[i].value == output) continue;
        if (!row_major_[i]) return nullptr;
        target.dims = builder_.dims({output});
      }
      if (target.result < 0 && !all_small) return nullptr;
      if (target.result < 0) {
        constexpr int64_t kAligned = 64;
        target.offset = used;
        target.dtype = builder_.dtype({output});
        target.dims = builder_.dims({output});
        between.push_back({output, used});
        used += (bytes_of(output) + kAligned - 1) / kAligned * kAligned;
        if (used > PreparedCalls::kMemory) return nullptr;
      }
      step.targets.push_back(std::move(target));
    }
    const AttrList attrs(node->attrs);
    check(builder_.api(), builder_.api().call_create(device_, node->op, attrs.data(), attrs.size(),
                                                     nullptr, 0, &step.call));
  }
  if (std::ranges::count(written, false) > 0) return nullptr;
  for (size_t i = 0; i < made->steps_.size(); ++i)
    for (const Target& target : made->steps_[i].targets)
      for (size_t later = i + 1; later < made->steps_.size(); ++later)
        for (const Source& source : made->steps_[later].sources)
          if (target.result >= 0 && source.kind == Source::Kind::kView)
            made->hazards_.push_back({target.result, source.argument, source.view});
  return made;
}

// Results that are written to the memory of an argument of their type and shape.
std::vector<amps_alias> Preparation::aliases_of(std::span<const Tensor> results) const {
  std::vector<amps_alias> aliases;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto [view, argument, number] = in_place_[i];
    if (!view || builder_.rank(results[i]) != view->rank ||
        !std::ranges::equal(builder_.dims(results[i]), std::span(view->dims, view->rank)))
      continue;
    for (size_t feed = 0; feed < feeds_.size(); ++feed)
      if (feeds_[feed].argument == argument && feeds_[feed].view == static_cast<int>(number))
        aliases.push_back({i, feed});
  }
  return aliases;
}

std::unique_ptr<Prepared> Preparation::as_executable(std::span<const Tensor> results) {
  const amps_api& api = builder_.api();
  auto made = std::make_unique<PreparedExecutable>(api, device_);
  std::vector<amps_value*> outputs;
  for (const Tensor& result : results) outputs.push_back(result.value);
  check(api, api.graph_set_outputs(builder_.graph(), outputs.data(), outputs.size()));
  const std::vector<amps_alias> aliases = aliases_of(results);
  amps_compile_options options{};
  options.size = sizeof(options);
  options.optimization_level = 1;
  options.aliases = aliases.data();
  options.alias_count = aliases.size();
  options.denormals = AMPS_DENORMALS_AS_CALLS;
  check(api, api.compile(device_, builder_.graph(), &options, &made->executable_));
  for (const Feed& feed : feeds_) made->sources_.push_back(source_of(feed));
  return made;
}

std::unique_ptr<Prepared> Preparation::make(std::span<const Wanted> wanted) {
  try {
    Values values;
    for (size_t i = 0; i < arguments_.size(); ++i) values.push_back(value_of(i));
    places_.assign(wanted.size(), -1);
    std::vector<std::optional<amps_dtype>> found;
    const std::vector<Tensor> results =
        wanted_results(kernel_.lower(builder_, std::move(values), wanted, &found), wanted);
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
    std::unique_ptr<Prepared> made;
    std::unique_ptr<PreparedCalls> calls = as_calls(results);
    if (calls && sized && std::ranges::count(row_major_, false) == 0)
      for (PreparedCalls::Step& step : calls->steps_) calls->fix(step, arguments_, types);
    if (!calls || calls->steps_.size() > 1) made = as_executable(results);
    if (calls) {
      calls->whole_ = std::move(made);
      made = std::move(calls);
    }
    made->results_ = std::move(types);
    made->places_ = std::move(places_);
    made->found_ = std::move(found);
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
