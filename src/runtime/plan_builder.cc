// SPDX-License-Identifier: Apache-2.0
// Builds a plan: concrete shapes, then for each node a view or a kernel, then memory.
#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "base/mapped_file.h"
#include "memory/refreshable.h"
#include "memory/spare_memory.h"
#include "ops/shape_rules.h"
#include "runtime/aliased_feeds.h"
#include "runtime/chains/step_chains.h"
#include "runtime/fold.h"
#include "runtime/plan.h"
#include "runtime/preparation.h"
#include "runtime/tuning/tuner.h"

namespace anymps {

class PlanBuilder {
 public:
  PlanBuilder(Device& device, const Graph& graph, const PlanOptions& options,
              Plan::KernelCache& cache)
      : device_(device),
        graph_(graph),
        options_(options),
        cache_(cache),
        feeds_(graph, options.share_memory ? options.aliases : std::span<const Alias>()),
        plan_(std::make_shared<Plan>()) {
    plan_->device_ = &device;
    plan_->threads_ = options.threads;
    plan_->denormals_ = options.denormals;
    if (Tuner::asked()) tuner_.emplace(device, graph, options.threads, options.denormals);
  }

  std::shared_ptr<Plan> build(const std::vector<Shape>& feeds, const Dimensions& dimensions) {
    ShapeArithmetic arithmetic(device_, types_);
    infer_concrete(graph_, feeds, types_, dimensions,
                   [&](const Node& node) { arithmetic.settle(node); });
    for (const auto& [value, type] : types_)
      if (!type.static_shape()) return nullptr;
    known_ = arithmetic.take();
    plan_->feeds_ = feeds;
    plan_->dimensions_ = dimensions.values;
    for (size_t i = 0; i < feeds.size(); ++i)
      put(graph_.inputs()[i], {{Location::kFeed, i, 0}, desc_of(graph_.inputs()[i])});
    choose_result_storage();
    for (const auto& node : graph_.nodes()) add_node(*node);
    copy_outputs_without_step();
    if (options_.share_memory) {
      join_steps(device_.driver(), graph_, {plan_->steps_, pointers_, arena_},
                 [&](size_t result) { return feeds_.feed_of(result).has_value(); });
      plan_->table_.resize(pointers_.size());
    }
    lay_out_memory();
    plan_->keeps_awake_ = plan_->steps_.size() > 1;
    return std::move(plan_);
  }

 private:
  struct Place {
    Location where;
    TensorDesc desc;
  };

  TensorDesc desc_of(const Value* value) const {
    return {value->dtype(), to_shape(type_of(value).shape)};
  }
  const ValueType& type_of(const Value* value) const {
    return value->is_constant() ? value->type : types_.at(value);
  }

  // A graph output is written straight into the caller's memory by the step that makes it. When the
  // output is a reshape of another value, that value is written there instead.
  void choose_result_storage() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Value* output = graph_.outputs()[i];
      plan_->results_.push_back(desc_of(output));
      const Value* root = whole_of(output);
      if (root->producer && !known_content(*root->producer)) result_of_.try_emplace(root, i);
    }
  }

  // The value that is made in the memory of this one, of which it is all. Outputs may lie along one
  // chain of views, so what was found is kept.
  const Value* whole_of(const Value* value) {
    std::vector<const Value*> chain;
    while (!wholes_.contains(value) && is_whole_view(value)) {
      chain.push_back(value);
      value = value->producer->input(0);
    }
    const auto known = wholes_.find(value);
    const Value* root = known == wholes_.end() ? value : known->second;
    for (const Value* view : chain) wholes_[view] = root;
    return root;
  }

  // Whether a value is its source with another shape.
  bool is_whole_view(const Value* value) {
    const Node* node = value->producer;
    if (!node || !node->op->view || known_content(*node)) return false;
    const TensorDesc from = desc_of(node->input(0));
    std::vector<Content> contents;
    for (const Value* input : node->inputs) contents.push_back(content_of(input));
    const Shape shape = to_shape(type_of(value).shape);
    const auto view =
        view_of(*node->op, node->attrs, from, contents, value->index, shape, node->outputs.size());
    return view && view->offset == 0 && is_contiguous(shape, view->strides) &&
           from.count() == element_count(shape);
  }

  Content content_of(const Value* value) const {
    return value ? numbers(type_of(value).content)
                 : Content(std::in_place);  // absent: an empty list
  }

  // Nodes whose results are known (shape arithmetic) need no kernel.
  bool known_content(const Node& node) const {
    if (node.op->is(kImpure)) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Value* value) {
      return known_.contains(value) || knows_elements(type_of(value));
    });
  }

  ConstantPtr constant_of(const Value* value) {
    if (value->is_constant()) return value->constant;
    auto it = known_.find(value);
    return it == known_.end() ? nullptr : it->second;
  }

  const Place& place_of(const Value* value) {
    auto it = places_.find(value);
    if (it != places_.end()) return it->second;
    // A constant: it gets a place at its first use.
    constants_.push_back(constant_of(value));
    constant_read_.push_back(false);
    return places_[value] = {{Location::kConstant, constants_.size() - 1, 0}, desc_of(value)};
  }

  void put(const Value* value, const Place& place) {
    places_[value] = place;
    if (place.where.kind == Location::kFeed) feeds_.add(place.where.index, *value);
    if (place.where.kind != Location::kArena) return;
    ArenaTensor& memory = arena_[root(place.where.index)];
    memory.uses_left += value->users.size();
    memory.is_result = memory.is_result || graph_.is_output(value);
  }

  // The node has a step, or needs none: what it reads is used once less.
  void finish(const Node& node) {
    for (const Value* value : node.inputs) {
      const auto it = places_.find(value);
      if (it == places_.end()) continue;
      const Location& where = it->second.where;
      if (where.kind == Location::kArena) --arena_[root(where.index)].uses_left;
      if (where.kind == Location::kFeed) feeds_.use(where.index);
    }
  }

  // Whether a step may write an output into a result's memory although that may be a feed's: nobody
  // reads the feed later, and this step reads it in place, once, or not at all. `inputs` are what
  // it reads, copies included.
  bool may_overwrite(const Node& node, const Kernel& kernel, const std::vector<Place>& inputs,
                     size_t output, const Place& out, size_t feed) const {
    size_t uses = 0, reads = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* value = node.inputs[i];
      if (!value) continue;
      const Location& where = places_.at(value).where;
      uses += where.kind == Location::kFeed && where.index == feed;
      const Place& in = inputs[i];
      if (in.where.kind != Location::kFeed || in.where.index != feed) continue;
      ++reads;
      if (in.where.offset != 0 || !in.desc.contiguous() || in.desc.bytes() != out.desc.bytes() ||
          !kernel.in_place(i, output))
        return false;
    }
    return reads <= 1 && feeds_.is_free_after(uses, feed);
  }

  void keep_feeds(const Node& node, const Kernel& kernel, const std::vector<Place>& inputs,
                  std::vector<Place>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].where.kind != Location::kResult) continue;
      const auto feed = feeds_.feed_of(outputs[i].where.index);
      if (!feed || may_overwrite(node, kernel, inputs, i, outputs[i], *feed)) continue;
      outputs[i].where = new_arena(node.outputs[i]->name, outputs[i].desc.bytes()).where;
    }
  }

  void add_node(const Node& node) {
    if (known_content(node)) {
      for (const Value* value : node.outputs)
        if (ConstantPtr& known = known_[value]; !known)
          known = constant_of_elements(type_of(value));
      finish(node);
      return;
    }
    PreparedCall call(device_, *node.op, node.attrs, node.name);
    std::vector<Place> inputs(node.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* value = node.inputs[i];
      if (value) inputs[i] = place_of(value);
      if (value)
        call.add_input(inputs[i].desc, content_of(value), constant_of(value));
      else
        call.add_absent();
    }
    for (const Value* value : node.outputs) call.request.outputs.push_back(desc_of(value));
    if (!must_be_written(node) && call.find_views()) {
      put_views(node, inputs[0], call.views);
      finish(node);
      return;
    }
    call.choose([&](const KernelRequest& request) { return kernel_for(node, request); });
    for (size_t i = 0; i < inputs.size(); ++i)
      if (call.packed[i])
        inputs[i] = add_copy(node.inputs[i]->name, inputs[i],
                             new_arena(node.inputs[i]->name, inputs[i].desc.bytes()));
    std::vector<Place> outputs;
    for (const Value* value : node.outputs) outputs.push_back(new_place(value));
    keep_feeds(node, *call.choice->kernel, inputs, outputs);
    if (options_.share_memory) try_in_place(node, *call.choice->kernel, inputs, outputs);
    add_step(&node, node.name, std::move(call.choice), std::move(call.request), inputs, outputs);
    finish(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) put(node.outputs[i], outputs[i]);
  }

  // Whether one of a node's values is a result: written where the caller wants it, not pointed to.
  bool must_be_written(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](const Value* value) { return result_of_.contains(value); });
  }

  void put_views(const Node& node, const Place& source, const std::vector<OutputView>& views) {
    for (size_t i = 0; i < views.size(); ++i) {
      Place place{source.where, desc_of(node.outputs[i])};
      place.desc.strides = views[i].strides;
      place.where.offset += views[i].offset * static_cast<int64_t>(size_of(place.desc.dtype));
      put(node.outputs[i], place);
    }
  }

  std::shared_ptr<const KernelChoice> kernel_for(const Node& node, const KernelRequest& request) {
    std::string key;
    const auto append = [&](const void* data, size_t bytes) {
      key.append(static_cast<const char*>(data), bytes);
    };
    const auto append_all = [&](const auto& numbers) {
      const size_t count = numbers.size();
      append(&count, sizeof(count));
      append(numbers.data(), count * sizeof(int64_t));
    };
    const auto which = reinterpret_cast<uintptr_t>(&node);
    append(&which, sizeof(which));
    for (const auto& input : request.inputs) {
      key += input ? '+' : '-';
      if (!input) continue;
      append(&input->dtype, sizeof(input->dtype));
      append_all(input->shape);
      append_all(input->strides);
    }
    for (const auto& content : request.contents) {
      key += content ? '+' : '-';
      if (content) append_all(*content);
    }
    for (const ConstantPtr& constant : request.constants)  // made for what it holds now
      if (const uint64_t id = constant && is_refreshable(*constant) ? constant->id() : 0)
        append(&id, sizeof(id));
    for (size_t i = 0; i < node.inputs.size(); ++i)  // a constant for these feeds, not for others
      if (node.inputs[i] && known_.contains(node.inputs[i]) && !request.contents[i])
        append(known_.at(node.inputs[i])->data().get(), request.constants[i]->bytes());
    std::weak_ptr<const KernelChoice>& slot = cache_[key];
    if (auto found = slot.lock()) return found;
    auto made = std::make_shared<const KernelChoice>(
        tuner_ ? tuner_->choose(request) : choose_kernel(device_.driver(), request));
    slot = made;
    return made;
  }

  Place new_arena(const std::string& name, size_t bytes) {
    arena_.push_back({name, bytes, plan_->steps_.size(), plan_->steps_.size()});
    return {{Location::kArena, arena_.size() - 1, 0}, {}};
  }

  Place new_place(const Value* value) {
    Place place;
    const TensorDesc desc = desc_of(value);
    if (auto it = result_of_.find(value); it != result_of_.end())
      place.where = {Location::kResult, it->second, 0};
    else
      place = new_arena(value->name, desc.bytes());
    place.desc = desc;
    return place;
  }

  // The output takes over the memory of an input that nobody reads after this step, and that this
  // one reads once.
  void try_in_place(const Node& node, const Kernel& kernel, const std::vector<Place>& inputs,
                    std::vector<Place>& outputs) {
    Place& out = outputs[0];
    if (out.where.kind != Location::kArena) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!node.inputs[i] || !kernel.in_place(i, 0)) continue;
      const Place& in = inputs[i];
      if (in.where.kind != Location::kArena || in.where.offset != 0) continue;
      if (!in.desc.contiguous() || in.desc.bytes() != out.desc.bytes()) continue;
      if (arena_[in.where.index].bytes != out.desc.bytes()) continue;
      const size_t memory = root(in.where.index);
      if (arena_[memory].is_result || arena_[memory].uses_left > 1) continue;
      arena_[out.where.index].alias_of = static_cast<int>(memory);
      return;
    }
  }

  size_t root(size_t index) const {
    return arena_[index].alias_of < 0 ? index : static_cast<size_t>(arena_[index].alias_of);
  }

  Place add_copy(const std::string& name, const Place& from, Place to) {
    to.desc = TensorDesc(from.desc.dtype, from.desc.shape);
    KernelRequest request = copy_request(from.desc, to.desc, name);
    auto choice = std::make_shared<const KernelChoice>(choose_kernel(device_.driver(), request));
    add_step(nullptr, name + " (copy)", std::move(choice), std::move(request), {from}, {to});
    return to;
  }

  size_t new_pointer(const Place& place) {
    plan_->table_.push_back(nullptr);
    pointers_.push_back(place.where);
    return pointers_.size() - 1;
  }

  void touch(const Place& place) {
    if (place.where.kind == Location::kArena)
      arena_[place.where.index].last =
          std::max(arena_[place.where.index].last, plan_->steps_.size());
  }

  void add_step(const Node* node, std::string name, std::shared_ptr<const KernelChoice> choice,
                KernelRequest request, const std::vector<Place>& inputs,
                const std::vector<Place>& outputs) {
    Step step;
    step.node = node;
    step.name = std::move(name);
    step.op = request.op->name;
    step.choice = *choice;
    plan_->choices_.push_back(std::move(choice));
    const Kernel& kernel = *step.choice.kernel;
    step.first_input = pointers_.size();
    for (size_t i = 0; i < inputs.size(); ++i) {
      new_pointer(inputs[i]);
      touch(inputs[i]);
      if (inputs[i].where.kind == Location::kConstant &&
          (kernel.reads(i) || !options_.share_memory))
        constant_read_[inputs[i].where.index] = true;
    }
    step.first_output = pointers_.size();
    for (const Place& output : outputs) {
      new_pointer(output);
      touch(output);
    }
    if (kernel.scratch_bytes() > 0) {
      Place scratch = new_arena(step.name + " (scratch)", kernel.scratch_bytes());
      step.scratch = new_pointer(scratch);
    }
    step.bytes = bytes_moved(request);
    step.flops = flops(request);
    if (step.choice.is_fallback) step.denormals = Denormals::kKeep;
    if (options_.share_memory) request.constants.clear();
    step.request = std::move(request);
    plan_->steps_.push_back(std::move(step));
  }

  // Outputs that are feeds, constants, views, the second name of another output, or that could not
  // be written before a feed was read. What lies in a feed that another one of these copies may
  // overwrite is brought to safety first.
  void copy_outputs_without_step() {
    std::vector<std::pair<size_t, Place>> copies;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Value* value = graph_.outputs()[i];
      Place place = place_of(value);
      const Location where = place.where;
      if (where.kind == Location::kResult && where.index == i) continue;
      const bool onto_itself = feeds_.feed_of(i) == where.index && where.offset == 0;
      if (where.kind == Location::kFeed && feeds_.is_overwritten(where.index) &&
          !(onto_itself && place.desc.contiguous()))
        place = add_copy(value->name, place, new_arena(value->name, place.desc.bytes()));
      copies.emplace_back(i, place);
    }
    for (const auto& [i, place] : copies)
      add_copy(graph_.outputs()[i]->name, place, {{Location::kResult, i, 0}, {}});
  }

  void lay_out_memory() {
    // An alias lives in its root's memory from the root's first step to the last alias's last.
    std::vector<PlannedTensor> tensors(arena_.size());
    for (size_t i = 0; i < arena_.size(); ++i) {
      tensors[i].size = arena_[i].bytes;
      tensors[i].first_use = options_.share_memory ? arena_[i].first : 0;
      tensors[i].last_use = options_.share_memory ? arena_[i].last : plan_->steps_.size();
      plan_->memory_.unshared_bytes += arena_[i].alias_of < 0 ? arena_[i].bytes : 0;
      if (arena_[i].alias_of < 0) continue;
      tensors[i].alias_group = tensors[root(i)].alias_group = static_cast<int>(root(i));
    }
    const MemoryPlan memory = plan_memory(tensors);
    plan_->arena_bytes_ = memory.arena_size;
    plan_->memory_.arena_bytes = memory.arena_size;
    plan_->memory_.lower_bound = memory.lower_bound;
    for (size_t i = 0; i < arena_.size(); ++i)
      plan_->memory_.entries.push_back(
          {arena_[i].name, memory.offsets[i], arena_[i].bytes, arena_[i].first, arena_[i].last});
    std::vector<const void*> constant_data(constants_.size(), nullptr);
    for (size_t i = 0; i < constants_.size(); ++i)
      if (constant_read_[i]) constant_data[i] = device_constant(*constants_[i]);
    for (size_t place = 0; place < pointers_.size(); ++place) {
      const Location& where = pointers_[place];
      switch (where.kind) {
        case Location::kArena:
          plan_->arena_places_.push_back(
              {place, memory.offsets[where.index] + static_cast<size_t>(where.offset)});
          break;
        case Location::kFeed:
          plan_->feed_patches_.push_back({place, where.index, where.offset});
          break;
        case Location::kResult:
          plan_->result_patches_.push_back({place, where.index, where.offset});
          break;
        case Location::kConstant:
          if (constant_data[where.index])
            plan_->table_[place] = const_cast<char*>(
                static_cast<const char*>(constant_data[where.index]) + where.offset);
          break;
        case Location::kNone:
          break;
      }
    }
  }

  const void* device_constant(const Constant& constant) {
    Driver& driver = device_.driver();
    if (driver.traits().host_visible) {
      auto bytes = constant.data();
      plan_->keep_.push_back(bytes);
      plan_->reads_files_ = plan_->reads_files_ || MappedFile::holds(bytes.get());
      return bytes.get();
    }
    BufferRef buffer = device_.packed().get(
        constant, "plain", constant.bytes(), [&](const std::byte* plain, void* device) {
          driver.copy_to_device(device, plain, constant.bytes(), nullptr);
        });
    plan_->keep_.push_back(buffer);
    return buffer->data();
  }

  Device& device_;
  const Graph& graph_;
  const PlanOptions& options_;
  Plan::KernelCache& cache_;
  AliasedFeeds feeds_;
  std::optional<Tuner> tuner_;
  std::shared_ptr<Plan> plan_;
  std::unordered_map<const Value*, ValueType> types_;
  std::unordered_map<const Value*, Place> places_;
  std::unordered_map<const Value*, size_t> result_of_;
  std::unordered_map<const Value*, const Value*> wholes_;  // of views
  std::unordered_map<const Value*, ConstantPtr> known_;
  std::vector<ConstantPtr> constants_;
  std::vector<bool> constant_read_;
  std::vector<ArenaTensor> arena_;
  std::vector<Location> pointers_;
};

std::shared_ptr<Plan> Plan::make(Device& device, const Graph& graph,
                                 const std::vector<Shape>& feeds, const PlanOptions& options,
                                 KernelCache& cache, const Dimensions& dimensions) {
  const KeepSpareMemory keep;
  const ThreadScope threads(device.driver(), ThreadScope::Exactly{options.threads});
  const DenormalScope kept(Denormals::kKeep);  // a body's plan is made in a run
  std::erase_if(cache, [](const auto& item) { return item.second.expired(); });
  return PlanBuilder(device, graph, options, cache).build(feeds, dimensions);
}

}  // namespace anymps
