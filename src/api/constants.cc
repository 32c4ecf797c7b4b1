// SPDX-License-Identifier: Apache-2.0
// Constants over the caller's memory: made, and refreshed when it has changed or moved.
#include "api/handles.h"
#include "api/views.h"
#include "memory/refreshable.h"

using namespace anymps;
using namespace anymps::api;

namespace {

// Memory that is given back to the caller once, by whoever uses it last. Until it is taken it stays
// the caller's: a function that fails has kept nothing.
struct CallersMemory {
  CallersMemory(void (*release)(void*), void* context) : release(release), context(context) {}
  CallersMemory(const CallersMemory&) = delete;
  CallersMemory& operator=(const CallersMemory&) = delete;
  ~CallersMemory() {
    if (taken && release) release(context);
  }
  void (*release)(void*);
  void* context;
  bool taken = false;
};

TensorDesc desc_of_constant(const amps_view* view, const char* who) {
  need(view, "view");
  const TensorView checked = checked_views(view, 1, "view", who)[0];
  require(!checked.absent(), "[{}] the view is left out", who);
  require(checked.dtype != DType::kString, "[{}] strings need amps_graph_string_constant", who);
  TensorDesc desc = desc_of(checked);
  desc.bytes();  // fails on an overflowing size
  return desc;
}

}  // namespace

extern "C" {

amps_status amps_graph_constant_view(amps_graph* graph, const char* name, const amps_view* view,
                                     void (*release)(void* context), void* context,
                                     amps_value** value) {
  return guard([&] {
    need(value, "value") = nullptr;
    Graph& to = *need(graph, "graph").graph;
    const TensorDesc desc = desc_of_constant(view, "constant");
    auto owner = std::make_shared<CallersMemory>(release, context);
    Value* made = to.constant(refreshable_constant(desc, view->data, owner), name ? name : "");
    owner->taken = true;
    *value = handle(made);
  });
}

amps_status amps_executable_refresh(amps_executable* executable, const amps_update* updates,
                                    size_t count, void (*write)(void* context), void* context) {
  return guard([&] {
    Executable& compiled = *need(executable, "executable").executable;
    require(updates || count == 0, "[api] updates is NULL");
    std::vector<ConstantUpdate> list;
    std::vector<std::shared_ptr<CallersMemory>> owners;
    for (size_t i = 0; i < count; ++i) {
      ConstantUpdate& update = list.emplace_back();
      update.name = &need(updates[i].name, "the name of a constant");
      if (!updates[i].view) continue;
      update.desc = desc_of_constant(updates[i].view, "refresh");
      update.data = updates[i].view->data;
      update.owner = owners.emplace_back(
          std::make_shared<CallersMemory>(updates[i].release, updates[i].context));
    }
    compiled.refresh(list, [&] {  // nothing fails from here on
      for (const auto& owner : owners) owner->taken = true;
      if (write) write(context);
    });
  });
}

}  // extern "C"
