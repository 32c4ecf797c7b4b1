// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <chrono>
#include <cstdio>

#include "base/env.h"
#include "runtime/fold.h"
#include "runtime/overlap.h"
#include "runtime/structural.h"

namespace anymps {

namespace {

constexpr size_t kUnplanned = 256;  // sets of feeds remembered to have no plan

std::string key_of(const std::vector<Shape>& shapes, const std::vector<int64_t>& dimensions) {
  std::string key(reinterpret_cast<const char*>(dimensions.data()),
                  dimensions.size() * sizeof(int64_t));
  for (const Shape& shape : shapes) {
    const auto rank = std::ssize(shape);
    key.append(reinterpret_cast<const char*>(&rank), sizeof(rank));
    key.append(reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof(int64_t));
  }
  return key;
}

std::string to_text(const Tensor& tensor) {
  if (tensor.container == Container::kTensor) return to_string(tensor.desc);
  return fmt::format("{} of {}", name(tensor.container), name(tensor.desc.dtype));
}

// Keys that the maps share, and a row of values for each.
void check_maps(const Tensor& feed, const Value& input) {
  bool fits = feed.items && feed.items->size() == 2;
  for (size_t i = 0; fits && i < 2; ++i) {
    const Tensor& item = (*feed.items)[i];
    fits = item.container == Container::kTensor && item.buffer && item.desc.shape.size() == i + 1;
  }
  fits = fits && (*feed.items)[1].desc.dtype == input.dtype() &&
         (*feed.items)[1].desc.shape[1] == (*feed.items)[0].desc.shape[0];
  require(fits, "[run] input '{}' must be keys [C] and values {}[N, C]", input.name,
          name(input.dtype()));
}

void check_items(const Tensor& feed, const Value& input) {
  if (feed.container == Container::kMaps) return check_maps(feed, input);
  const bool nothing = !feed.items;
  require(!nothing || (kOptionals & bit(feed.container)), "[run] input '{}' has no items",
          input.name);
  for (size_t i = 0; !nothing && i < feed.items->size(); ++i) {
    const Tensor& item = (*feed.items)[i];
    const ValueType& type = input.type;
    bool fits = item.container == Container::kTensor && item.buffer &&
                item.desc.dtype == type.dtype &&
                (!type.ranked || item.desc.shape.size() == type.shape.size());
    for (size_t d = 0; fits && type.ranked && d < type.shape.size(); ++d)
      fits = !type.shape[d].known() || type.shape[d].is(item.desc.shape[d]);
    require(fits, "[run] item {} of input '{}' must be {}{}, {} given", i, input.name,
            name(type.dtype), type.ranked ? to_string(type.shape) : "[?]", to_text(item));
  }
}

// Whether one name of an extent comes twice among the inputs.
bool has_name_twice(const Graph& graph) {
  std::unordered_set<std::string> names;
  for (const Value* input : graph.inputs())
    for (const Dim& dim : input->type.shape)
      if (!dim.known() && !names.insert(dim.str()).second) return true;
  return false;
}

std::vector<Shape> shapes_of(const std::vector<Tensor>& tensors) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.desc.shape);
  return shapes;
}

}  // namespace

Denormals denormals_of(const CompileOptions& options, const DriverTraits& traits) {
  const Denormals mode = resolve(options.denormals);  // fails where the environment is wrong
  return traits.flushes_denormals ? mode : Denormals::kKeep;
}

Executable::~Executable() = default;

Executable::Executable(DevicePtr device, std::unique_ptr<Graph> graph, CompileOptions options,
                       int depth)
    : device_(std::move(device)),
      options_(std::move(options)),
      graph_(std::move(graph)),
      plans_(options_.plan_cache),
      ready_(options_.plan_cache),
      depth_(depth),
      variables_(std::make_unique<Variables>()) {
  require(!graph_->outputs().empty(), "[compile] the graph has no outputs");
  options_.check = options_.check || env_contains("ANYMPS_CHECK", "reference");
  check_aliases();
  const DenormalScope keep(Denormals::kKeep);  // in passes; a run may have come here
  denormals_ = denormals_of(options_, device_->driver().traits());
  if (depth_ == 0) collect_sources(*graph_, sources_);  // passes may fold them away
  std::vector<Dim> of_nodes;
  for (const auto& node : graph_->nodes())
    if (node->is("dimension")) of_nodes.push_back(symbol_of(*node));
  PassContext context = pass_context();
  // Bodies and what is specialised later stay as they are: a saved executable holds the graph.
  if (depth_ == 0) context.weight_bits = options_.weight_bits;
  const bool keep_names = !graph_->loose_names || depth_ > 0 || !options_.aliases.empty() ||
                          !sources_.empty() || !of_nodes.empty() || !fits_a_plan(*graph_);
  if (!keep_names && has_name_twice(*graph_)) written_ = graph_->clone();
  passes_ = run_passes(*graph_, context);
  number_symbols(of_nodes);
  require(depth_ == 0 || dimension_names_.empty(),
          "[dimension] a body sees nothing but its inputs: hand it '{}' as one",
          dimension_names_.empty() ? "" : dimension_names_[0]);
  const bool fits = fits_a_plan(*graph_);
  branches_follow_shapes_ = !fits && branches_follow_shapes(*graph_);
  never_planned_ = !fits && !branches_follow_shapes_;
  if (never_planned_) {
    interpreter();  // compiles the bodies
    return;
  }
  std::vector<Shape> feeds;
  for (const Value* input : graph_->inputs()) {
    if (!input->type.static_shape()) return;
    feeds.push_back(to_shape(input->shape()));
  }
  if (dimension_names_.empty()) plan_for(feeds, {});  // all shapes are known: be ready
}

PassContext Executable::pass_context() const {
  const DriverTraits traits = device_->driver().traits();
  PassContext context;
  context.prefers_nhwc = traits.prefers_nhwc;
  context.fuses = traits.fuses;
  context.widened = traits.widened;
  context.evaluate = [this](const Node& node) { return fold(*device_, node); };
  context.without = options_.without_passes;
  context.optimization_level = options_.optimization_level;
  context.verify_each = options_.check || env_contains("ANYMPS_VERIFY", "passes");
  return context;
}

void Executable::check_aliases() const {
  const auto &inputs = graph_->inputs(), &outputs = graph_->outputs();
  for (size_t i = 0; i < options_.aliases.size(); ++i) {
    const size_t result = options_.aliases[i].result, feed = options_.aliases[i].feed;
    require(result < outputs.size() && feed < inputs.size(),
            "[compile] result {} is to lie in feed {}: the graph has {} results and {} inputs",
            result, feed, outputs.size(), inputs.size());
    const ValueType &to = outputs[result]->type, &from = inputs[feed]->type;
    require(to.container == Container::kTensor && from.container == Container::kTensor &&
                to.dtype == from.dtype && to.dtype != DType::kString &&
                !(to.static_shape() && from.static_shape() && !(to.shape == from.shape)),
            "[compile] result '{}', which is {}, cannot lie in feed '{}', which is {}",
            outputs[result]->name, to_string(to), inputs[feed]->name, to_string(from));
    for (size_t k = 0; k < i; ++k)
      require(options_.aliases[k].result != result && options_.aliases[k].feed != feed,
              "[compile] of results that lie in feeds, '{}' or '{}' is named twice",
              outputs[result]->name, inputs[feed]->name);
  }
}

std::shared_ptr<Plan> Executable::plan(const std::vector<Shape>& feeds, const Bindings& bindings) {
  const std::vector<int64_t> dimensions = dimensions_of(check_shapes(feeds, bindings));
  const Gate::Inside inside(gate());
  return plan_for(feeds, dimensions);
}

std::shared_ptr<Plan> Executable::plan_for(const std::vector<Shape>& feeds,
                                           const std::vector<int64_t>& dimensions) {
  if (never_planned_) return nullptr;
  const std::string key = key_of(feeds, dimensions);
  if (auto found = plans_.find(key)) return found;
  std::lock_guard lock(plan_mutex_);
  if (unplanned_.contains(key)) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<Plan> made = make_plan(feeds, dimensions);
  if (env_contains("ANYMPS_VERBOSE", "cache")) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::string shapes;
    for (const Shape& shape : feeds) shapes += to_string(shape);
    std::fprintf(stderr, "cache: %s for feeds %s in %.2f ms; %zu plans kept\n",
                 made ? "new plan" : "no plan (shapes depend on data)", shapes.c_str(),
                 took.count(), plans_.stats().size + (made ? 1 : 0));
  }
  if (made) return plans_.insert(key, std::move(made));
  if (unplanned_.size() >= kUnplanned) unplanned_.clear();
  unplanned_.insert(key);
  return nullptr;
}

std::shared_ptr<Plan> Executable::make_plan(const std::vector<Shape>& feeds,
                                            const std::vector<int64_t>& dimensions) {
  std::shared_ptr<Plan> made;
  const PlanOptions options{options_.threads, !options_.check, options_.aliases, denormals_};
  reading(options_.files, [&] {
    std::shared_ptr<const Graph> chosen;
    const bool apart = written_ && names_disagree(feeds);
    if (apart)
      chosen = told_apart();
    else if (branches_follow_shapes_ && !(chosen = without_branches(feeds)))
      return;
    made = Plan::make(*device_, chosen ? *chosen : *graph_, feeds, options, kernels_,
                      {dimension_names_, dimensions});
    if (made && chosen) made->keep(std::move(chosen));
    require(made || !apart,
            "[run] feeds have two extents where the graph has one name, and shapes "
            "depend on data");
  });
  return made;
}

// In a forked child: another thread was making a plan, and left the two as they were. They are not
// destroyed but made again.
void Executable::forget_kernels(bool whole) {
  if (whole) return;
  std::construct_at(&kernels_);
  std::construct_at(&unplanned_);
}

// Rounds of a loop mostly have the shapes of the round before.
std::shared_ptr<Plan> Executable::body_plan(const std::vector<Tensor>& feeds) {
  if (never_planned_) return nullptr;
  {
    std::lock_guard lock(last_mutex_);
    bool same = last_plan_ && last_shapes_.size() == feeds.size();
    for (size_t i = 0; same && i < feeds.size(); ++i) same = last_shapes_[i] == feeds[i].desc.shape;
    if (same) return last_plan_;
  }
  std::vector<Shape> shapes = shapes_of(feeds);
  auto ready = plan_for(shapes, {});
  std::lock_guard lock(last_mutex_);
  last_plan_ = ready;
  last_shapes_ = std::move(shapes);
  return ready;
}

void Executable::clear_plans() {
  plans_.clear();
  ready_.clear();
  std::lock_guard lock(last_mutex_);
  last_plan_ = nullptr;
}

// `extents`: those of the symbols that other inputs have set, else -1.
bool Executable::shape_fits(size_t input, const Shape& shape, Extents& extents,
                            const Bindings& bindings) const {
  const ValueType& type = graph_->inputs()[input]->type;
  for (const int64_t extent : shape)
    require(extent >= 0, "[run] input '{}' has the extent {}", graph_->inputs()[input]->name,
            extent);
  if (!type.ranked) return true;
  bool fits = shape.size() == type.shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    if (symbols_[input][d] < 0) {
      fits = type.shape[d].is(shape[d]);
      continue;
    }
    const size_t symbol = symbols_[input][d];
    require(bindings.empty() || bindings[symbol] < 0 || bindings[symbol] == shape[d],
            "[run] dimension '{}' is bound to {}, but input '{}' has extent {} on axis {}",
            symbol_names_[symbol], bindings.empty() ? -1 : bindings[symbol],
            graph_->inputs()[input]->name, shape[d], d);
    int64_t& extent = extents[symbol];
    if (extent < 0) extent = shape[d];
    fits = extent == shape[d] || written_;
    require(shape[d] <= limits_[symbol],
            "[run] input '{}' has extent {} on axis {}, but at most {} is allowed",
            graph_->inputs()[input]->name, shape[d], d, limits_[symbol]);
  }
  return fits;
}

Executable::Extents Executable::check_shapes(const std::vector<Shape>& feeds,
                                             const Bindings& bindings) const {
  const auto& inputs = graph_->inputs();
  Extents extents = bound_extents(bindings);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]->type.container == Container::kTensor &&
        !shape_fits(i, feeds[i], extents, bindings))
      fail(Code::kInvalidArgument, "[run] input '{}' must be {}, {} given", inputs[i]->name,
           to_string(inputs[i]->type), to_string(feeds[i]));
  return extents;
}

std::vector<ValueType> Executable::result_types(const std::vector<Shape>& feeds,
                                                const Bindings& bindings) {
  const std::vector<int64_t> dimensions = dimensions_of(check_shapes(feeds, bindings));
  std::vector<ValueType> results;
  const Gate::Inside inside(gate());
  if (const std::shared_ptr<Plan> ready = plan_for(feeds, dimensions)) {
    for (size_t i = 0; i < graph_->outputs().size(); ++i) {
      results.push_back(graph_->outputs()[i]->type);
      results.back().ranked = true;
      results.back().shape = to_dims(ready->results()[i].shape);
    }
    return results;
  }
  std::unordered_map<const Value*, ValueType> types;
  infer_concrete(*graph_, feeds, types, {dimension_names_, dimensions});
  for (const Value* output : graph_->outputs())
    results.push_back(output->is_constant() ? output->type : types.at(output));
  return results;
}

// Runs before every run and every round of a loop: text is made for errors only.
std::vector<int64_t> Executable::check_feeds(const std::vector<Tensor>& feeds,
                                             const Bindings& bindings) const {
  const auto& inputs = graph_->inputs();
  require(feeds.size() == inputs.size(), "[run] the graph has {} inputs, {} feeds given",
          inputs.size(), feeds.size());
  Extents extents = bound_extents(bindings);
  for (size_t i = 0; i < feeds.size(); ++i) {
    const ValueType& type = inputs[i]->type;
    const TensorDesc& desc = feeds[i].desc;
    bool fits = desc.dtype == type.dtype && feeds[i].container == type.container;
    if (fits && type.container != Container::kTensor) {
      check_items(feeds[i], *inputs[i]);
      continue;
    }
    fits = fits && shape_fits(i, desc.shape, extents, bindings);
    if (!fits)
      fail(Code::kInvalidArgument, "[run] input '{}' must be {}, {} given", inputs[i]->name,
           to_string(type), to_text(feeds[i]));
  }
  return dimensions_of(extents);
}

void Executable::run(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue* queue,
                     Profiler* profiler, const Bindings& bindings) {
  if (!queue && run_ready(feeds, results, profiler, bindings)) return;
  run_unprepared(feeds, results, queue, profiler, bindings);
}

void Executable::run_unprepared(const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                                Queue* queue, Profiler* profiler, const Bindings& bindings) {
  const std::vector<int64_t> dimensions = check_feeds(feeds, bindings);
  if (!queue) {  // concurrent callers need no common order
    run_now(feeds, dimensions, results, device_->queue(), profiler, bindings);
    return;
  }
  queue->run([&] { run_now(feeds, dimensions, results, *queue, profiler, bindings); });
}

void Executable::submit(const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                        Queue& queue, const Bindings& bindings) {
  const std::vector<int64_t> dimensions = check_feeds(feeds, bindings);
  auto ready = plan(shapes_of(feeds), bindings);
  if (!ready) {  // shapes depend on data: the results can only be made by running
    queue.run([&] { run_now(feeds, dimensions, results, queue, nullptr, bindings); });
    return;
  }
  results.resize(graph_->outputs().size());
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].buffer)
      results[i] = device_->empty(ready->results()[i].dtype, ready->results()[i].shape);
  queue.submit(
      [this, keep = weak_from_this().lock(), feeds, dimensions, results, bindings,
       &queue]() mutable { run_now(feeds, dimensions, results, queue, nullptr, bindings); });
}

void Executable::run_now(const std::vector<Tensor>& feeds, const std::vector<int64_t>& dimensions,
                         std::vector<Tensor>& results, Queue& queue, Profiler* profiler,
                         const Bindings& bindings) {
  const Gate::Inside inside(gate());
  const auto ready = plan_for(shapes_of(feeds), dimensions);
  const bool aliased = ready && !options_.check;
  const std::vector<Tensor> apart =
      take_apart(feeds, results, *graph_,
                 aliased ? std::span<const Alias>(options_.aliases) : std::span<const Alias>());
  if (!ready)
    reading(options_.files, [&] { interpret(feeds, dimensions, results, queue, profiler); });
  else if (ready->reads_files())
    reading(options_.files, [&] { run_plan(*ready, feeds, results, queue, profiler); });
  else
    run_plan(*ready, feeds, results, queue, profiler);
  if (ready && !options_.check) make_ready(ready, feeds, bindings);
  for (size_t i = 0; i < apart.size(); ++i) {
    if (!apart[i].buffer) continue;
    const TensorDesc &made = results[i].desc, &given = apart[i].desc;
    require(made.dtype == given.dtype && made.shape == given.shape,
            "[run] result '{}' must be {}, {} given", graph_->outputs()[i]->name, to_string(made),
            to_string(given));
    device_->copy(results[i], apart[i], queue);
    results[i] = apart[i];
  }
}

std::vector<Tensor> Executable::run_body(std::vector<Tensor> feeds, const RunState& state) {
  for (size_t i = 0; i < feeds.size() && i < graph_->inputs().size(); ++i)
    feeds[i] = as_container(std::move(feeds[i]), graph_->inputs()[i]->type.container);
  check_feeds(feeds);
  auto ready = body_plan(feeds);
  if (!ready) return interpreter().run(std::move(feeds), state);
  std::vector<Tensor> results;
  run_plan(*ready, feeds, results, state.queue, state.profiler);
  return results;
}

void Executable::run_plan(Plan& plan, const std::vector<Tensor>& feeds,
                          std::vector<Tensor>& results, Queue& queue, Profiler* profiler) {
  const std::vector<TensorDesc>& descs = plan.results();
  results.resize(descs.size());
  std::vector<Tensor> copies;
  SmallVector<void*, 16> in, out;
  for (const Tensor& feed : feeds) {
    if (feed.desc.contiguous()) {
      in.push_back(feed.data());
    } else {
      copies.push_back(device_->contiguous(feed));
      in.push_back(copies.back().data());
    }
  }
  for (size_t i = 0; i < descs.size(); ++i) {
    if (!results[i].buffer) results[i] = device_->empty(descs[i].dtype, descs[i].shape);
    if (!(results[i].desc == descs[i]))
      fail(Code::kInvalidArgument, "[run] result '{}' must be {}, {} given",
           graph_->outputs()[i]->name, to_string(descs[i]), to_string(results[i].desc));
    out.push_back(results[i].data());
  }
  plan.run(in.data(), out.data(), queue, profiler, options_.check);
}

// A result is the caller's own: contiguous, with memory that no feed, constant or other result has.
Tensor Executable::own_result(const Value* output, Tensor tensor, Queue& queue) {
  if (tensor.container != Container::kTensor) {
    if (!tensor.items) return tensor;
    auto items = std::make_shared<std::vector<Tensor>>(*tensor.items);
    tensor.items.reset();
    for (Tensor& item : *items) item = own_result(nullptr, std::move(item), queue);
    tensor.items = std::move(items);
    return tensor;
  }
  const bool text = tensor.desc.dtype == DType::kString;
  const bool shared = (output && output->is_constant()) || tensor.buffer.use_count() > 1;
  if (tensor.desc.contiguous() && !shared && !text) return tensor;
  Tensor own = device_->empty(tensor.desc.dtype, tensor.desc.shape);
  device_->copy(tensor, own, queue);
  if (!text) return own;
  own.strings = std::make_shared<StringStore>();
  auto* elements = static_cast<Text*>(own.data());
  for (int64_t i = 0; i < own.desc.count(); ++i)
    elements[i] = own.strings->add(text_of(elements[i]));
  return own;
}

Interpreter& Executable::interpreter() {
  std::call_once(interpreter_made_, [&] {
    interpreter_ = std::make_unique<Interpreter>(*device_, *graph_, options_, depth_);
  });
  return *interpreter_;
}

void Executable::interpret(const std::vector<Tensor>& feeds, const std::vector<int64_t>& dimensions,
                           std::vector<Tensor>& results, Queue& queue, Profiler* profiler) {
  StringStore strings;
  std::vector<Tensor> made = interpreter().run(feeds, {queue, profiler, &strings, variables_.get(),
                                                       Dimensions{dimension_names_, dimensions}});
  results.resize(made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const Value* output = graph_->outputs()[i];
    if (!results[i].buffer) {
      results[i] = own_result(output, std::move(made[i]), queue);
      continue;
    }
    require(made[i].container == Container::kTensor && made[i].desc.dtype != DType::kString,
            "[run] memory cannot be given for result '{}', which is {}", output->name,
            to_text(made[i]));
    const TensorDesc plain(made[i].desc.dtype, made[i].desc.shape);
    require(results[i].desc == plain, "[run] result '{}' must be {}, {} given", output->name,
            to_string(plain), to_string(results[i].desc));
    device_->copy(made[i], results[i], queue);
  }
}

}  // namespace anymps
