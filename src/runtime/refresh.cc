// SPDX-License-Identifier: Apache-2.0
// Constants over a caller's memory that have changed: the graph gets new ones, and plans and bodies
// are made again as far as they used the old ones. No pass runs: none has looked at the elements.
#include <algorithm>

#include "runtime/executable.h"

namespace anymps {

namespace {

template <typename Fn>
void each_body(const Node& node, Fn&& fn) {
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    if (node.op->attrs[i].kind != AttrKind::kGraph) continue;
    const auto& body = std::get<std::shared_ptr<Graph>>(node.attrs.values()[i]);
    if (body) fn(node.op->attrs[i].name, *body);
  }
}

// Graphs in attributes are shared with other copies of this one: they are not changed but replaced.
void replace_constants(Graph& graph, Renewal& renewal) {
  for (Value* value : graph.values())
    if (value->is_constant()) value->constant = renewal.of(value->constant);
  for (const auto& node : graph.nodes()) {
    NamedAttrs changed;
    each_body(*node, [&](const std::string& attr, const Graph& body) {
      std::vector<std::pair<std::string, ConstantPtr>> inside;
      collect_sources(body, inside);
      if (inside.empty()) return;
      std::shared_ptr<Graph> copy = body.clone();
      replace_constants(*copy, renewal);
      changed.emplace_back(attr, AttrValue(std::move(copy)));
    });
    for (const NamedAttr& attr : changed) node->attrs.set(attr);
  }
}

}  // namespace

void collect_sources(const Graph& graph, std::vector<std::pair<std::string, ConstantPtr>>& to) {
  for (const Value* value : graph.values())
    if (value->is_constant() && is_refreshable(*value->constant))
      to.emplace_back(value->name, value->constant);
  for (const auto& node : graph.nodes())
    each_body(*node, [&](const std::string&, const Graph& body) { collect_sources(body, to); });
}

void Executable::refresh(const std::vector<ConstantUpdate>& updates,
                         const std::function<void()>& write) {
  const Gate::Alone alone(gate_);
  std::vector<ConstantPtr> old;
  for (const ConstantUpdate& update : updates) {
    const auto named = [&](const auto& source) { return source.first == update.name; };
    const auto found = std::find_if(sources_.begin(), sources_.end(), named);
    if (found == sources_.end())
      fail(Code::kNotFound, "[refresh] '{}' is no constant over the caller's memory", update.name);
    require(std::none_of(
                found + 1, sources_.end(),
                [&](const auto& other) { return named(other) && other.second != found->second; }),
            "[refresh] graphs inside each other have constants called '{}'", update.name);
    const TensorDesc& desc = found->second->desc();
    require(!update.desc || (update.desc->dtype == desc.dtype && update.desc->shape == desc.shape),
            "[refresh] constant '{}' must be {}, {} given", update.name, to_string(desc),
            to_string(update.desc.value_or(desc)));
    old.push_back(found->second);
  }
  if (write) write();
  Renewal renewal;
  for (size_t i = 0; i < updates.size(); ++i)
    renewal.replace(*old[i],
                    updates[i].desc
                        ? refreshable_constant(*updates[i].desc, updates[i].data, updates[i].owner)
                        : refreshed(old[i]));
  for (auto& [name, source] : sources_) source = renewal.of(source);
  renew(renewal);
}

void Executable::renew(Renewal& renewal) {
  replace_constants(*graph_, renewal);
  if (interpreter_) interpreter_->renew(renewal);
  // Old plans hold the kernels that stay until the new ones have found them.
  const auto old = plans_.items();
  clear_plans();
  std::lock_guard lock(plan_mutex_);
  try {
    for (const auto& [key, plan] : old)
      plans_.insert(key, make_plan(plan->feeds(), plan->dimensions()));
  } catch (const std::exception&) {
    plans_.clear();  // the next run makes its own, or tells why it cannot
  }
}

void Interpreter::renew(Renewal& renewal) {
  for (Site& site : sites_) {
    for (const auto& [attr, body] : site.bodies) body->renew(renewal);
    std::lock_guard lock(site.mutex);
    site.recent.clear();
  }
}

}  // namespace anymps
