// SPDX-License-Identifier: Apache-2.0
#include "runtime/chains/step_chains.h"

#include <optional>
#include <utility>

namespace anymps {

namespace {

constexpr size_t kMostSteps = 4;

bool is_same(const Location& a, const Location& b) {
  return a.kind == b.kind && a.index == b.index && a.offset == b.offset;
}

class StepChains {
 public:
  StepChains(Driver& driver, const Graph& graph, PlanParts parts,
             const std::function<bool(size_t)>& may_lie_in_feed)
      : driver_(driver),
        graph_(graph),
        steps_(parts.steps),
        pointers_(parts.pointers),
        arena_(parts.arena),
        may_lie_in_feed_(may_lie_in_feed) {}

  void join() {
    std::vector<Step> joined;
    std::vector<size_t> now;  // the new number of each step
    for (size_t first = 0; first < steps_.size();) {
      size_t count = longest_from(first);
      KernelPtr kernel;
      while (count > 1 && !(kernel = kernel_of(first, count))) --count;
      now.insert(now.end(), count, joined.size());
      joined.push_back(kernel ? joined_step(first, count, std::move(kernel))
                              : std::move(steps_[first]));
      first += count;
    }
    now.push_back(joined.size());
    steps_ = std::move(joined);
    for (ArenaTensor& tensor : arena_) {
      tensor.first = now[tensor.first];
      tensor.last = now[tensor.last];
    }
  }

 private:
  // How many steps could be one, each of which reads the result of the one before.
  size_t longest_from(size_t first) const {
    size_t count = 1;
    while (count < kMostSteps && first + count < steps_.size() && joint(first + count)) ++count;
    return count;
  }

  // Which input of a step is the result of the one before, which nobody else reads.
  std::optional<size_t> joint(size_t index) const {
    const Step &before = steps_[index - 1], &step = steps_[index];
    if (!before.node || !step.node || before.choice.is_fallback || step.choice.is_fallback)
      return std::nullopt;
    if (before.node->outputs.size() != 1 || step.node->outputs.size() != 1) return std::nullopt;
    const Value* value = before.node->output();
    const Location& made = pointers_[before.first_output];
    if (value->users.size() != 1 || graph_.is_output(value) || made.kind != Location::kArena ||
        !is_alone(made))
      return std::nullopt;
    for (size_t i = 0; i < step.node->inputs.size(); ++i)
      if (step.node->inputs[i] == value && is_same(pointers_[step.first_input + i], made)) return i;
    return std::nullopt;
  }

  // Whether nothing of what a chain reads may be in that memory.
  bool is_alone(const Location& where) const {
    if (where.kind == Location::kResult) return !may_lie_in_feed_(where.index);
    return where.kind == Location::kArena && arena_[where.index].alias_of < 0;
  }

  KernelPtr kernel_of(size_t first, size_t count) const {
    if (!is_alone(pointers_[steps_[first + count - 1].first_output])) return nullptr;
    std::vector<ChainLink> links;
    for (size_t i = first; i < first + count; ++i)
      links.push_back({steps_[i].choice.kernel.get(), &steps_[i].request,
                       i == first ? 0 : joint(i).value_or(0)});
    return driver_.join(links);
  }

  Step joined_step(size_t first, size_t count, KernelPtr kernel) {
    const size_t end = first + count;
    Step joined;
    joined.node = steps_[end - 1].node;
    joined.request.op = steps_[end - 1].request.op;
    joined.request.outputs = steps_[end - 1].request.outputs;
    joined.first_input = pointers_.size();
    for (size_t i = first; i < end; ++i) {
      const Step& step = steps_[i];
      const bool is_first = i == first;
      const std::string& name = step.choice.name;
      joined.name += (is_first ? "" : " + ") + step.name;
      joined.op += (is_first ? "" : " + ") + step.op;
      joined.choice.name += is_first ? name : " + " + name.substr(name.find(':') + 1);
      joined.flops += step.flops;
      joined.bytes += step.bytes;
      const std::optional<size_t> between = is_first ? std::nullopt : joint(i);
      for (size_t input = 0; input < step.request.inputs.size(); ++input) {
        joined.request.inputs.push_back(step.request.inputs[input]);
        pointers_.push_back(pointers_[step.first_input + input]);
        if (input != between) continue;
        ArenaTensor& memory = arena_[pointers_.back().index];
        joined.bytes -= 2 * static_cast<double>(memory.bytes);
        memory.bytes = 0;
        joined.request.inputs.back().reset();
        pointers_.back() = {};
      }
    }
    joined.first_output = pointers_.size();
    pointers_.push_back(pointers_[steps_[end - 1].first_output]);
    if (const size_t bytes = kernel->scratch_bytes()) {
      joined.scratch = pointers_.size();
      pointers_.push_back({Location::kArena, arena_.size(), 0});
      arena_.push_back({joined.name + " (scratch)", bytes, first, first});
    }
    joined.choice.kernel = std::move(kernel);
    return joined;
  }

  Driver& driver_;
  const Graph& graph_;
  std::vector<Step>& steps_;
  std::vector<Location>& pointers_;
  std::vector<ArenaTensor>& arena_;
  const std::function<bool(size_t)>& may_lie_in_feed_;
};

}  // namespace

void join_steps(Driver& driver, const Graph& graph, PlanParts parts,
                const std::function<bool(size_t result)>& may_lie_in_feed) {
  StepChains(driver, graph, parts, may_lie_in_feed).join();
}

}  // namespace anymps
