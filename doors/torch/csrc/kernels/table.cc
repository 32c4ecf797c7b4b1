// SPDX-License-Identifier: Apache-2.0
// All ops of the device: the rows of the families, registered with PyTorch's dispatcher when the
// library is loaded.
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/op.h"
#include "kernels/table.h"
#include "kernels/typed.h"
#include "layers/apart.h"
#include "strict.h"
#include "table/rows.h"

namespace anymps::aten {

namespace {

// ANYMPS_DISABLE_OPS=mul.out,_softmax.out: as if there were no rows for these, to see what a
// missing kernel costs.
std::set<std::string> disabled() {
  std::set<std::string> names;
  const char* text = std::getenv("ANYMPS_DISABLE_OPS");
  std::istringstream list(text ? text : "");
  for (std::string name; std::getline(list, name, ',');) names.insert(name);
  return names;
}

bool is_disabled(const std::set<std::string>& names, const std::string& name) {
  return names.contains(name) || names.contains(name.substr(0, name.find('.')));
}

using AllLowerable = std::unordered_map<std::string, Lowerable>;

AllLowerable& lowerable() {
  static AllLowerable& all = *new AllLowerable;
  return all;
}

std::optional<c10::OperatorHandle> find_op(const std::string& name) {
  const size_t dot = name.find('.');
  return c10::Dispatcher::singleton().findOp(
      {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
}

// PyTorch makes the op of others, whatever the device.
bool is_composed(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

using Names = std::map<std::string, std::vector<c10::OperatorName>>;

// All ops of PyTorch by their base names.
Names ops_by_base_name() {
  Names all;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
    if (name.name.starts_with("aten::")) all[name.name.substr(6)].push_back(name);
  return all;
}

bool same_arguments(const c10::FunctionSchema& one, const c10::FunctionSchema& out) {
  const auto& given = one.arguments();
  const size_t count = out.arguments().size() - out.returns().size();
  if (given.size() != count) return false;
  for (size_t i = 0; i < count; ++i)
    if (given[i].name() != out.arguments()[i].name() ||
        *given[i].real_type() != *out.arguments()[i].real_type())
      return false;
  return true;
}

// PyTorch makes the functional and in-place forms of "structured" ops of the form with `out`, for
// all backends.
void register_derived(const Names& all, const std::string& name,
                      const std::shared_ptr<RowOp>& row) {
  const std::string base = name.substr(0, name.find('.'));
  const auto out = find_op(name);
  if (!out || out->schema().arguments().empty() || !out->schema().arguments().back().is_out())
    return;
  for (const std::string& form : {base, base + "_"}) {
    const auto found = all.find(form);
    if (found == all.end()) continue;
    for (const c10::OperatorName& candidate : found->second) {
      const auto handle = c10::Dispatcher::singleton().findOp(candidate);
      if (!handle || !same_arguments(handle->schema(), out->schema())) continue;
      const std::string full =
          form + (candidate.overload_name.empty() ? "" : "." + candidate.overload_name);
      // Others are composed by PyTorch; graphs have them as they are.
      if (!handle->hasKernelForDispatchKey(
              c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
        if (form == base) lowerable().try_emplace(full, Lowerable{row, *out, *handle});
        continue;
      }
      if (out->hasKernelForDispatchKey(c10::DispatchKey::Meta)) row->set_structured();
      register_op(*handle, std::make_unique<DerivedOp>(row, *out));
      lowerable().insert_or_assign(full, Lowerable{row, *out, *handle});
    }
  }
}

int register_rows() {
  const std::set<std::string> left_out = disabled();
  const Names all = ops_by_base_name();
  for (const TableRow& row : rows()) {
    std::istringstream names(row.names);
    for (std::string name; names >> name;) {
      if (is_disabled(left_out, name) || (strict() && !has_kernel_on_a_mac(name))) continue;
      const auto handle = find_op(name);
      TORCH_CHECK(handle, "PyTorch has no op 'aten::", name, "'");
      const bool only_here = !has_kernel_on_a_mac(name) && !is_composed(*handle);
      const auto op = std::make_shared<RowOp>(row, name, only_here);
      register_op(*handle, std::make_unique<Op>(op));
      lowerable().insert_or_assign(name, Lowerable{op, *handle, *handle});
      // Where errors are to be found among results, PyTorch's own forms call the one with `out`.
      if (std::string_view(row.marks).find("checked") == std::string_view::npos)
        register_derived(all, name, op);
    }
  }
  for (const TableRow& row : graph_rows()) {
    std::istringstream names(row.names);
    for (std::string name; names >> name;)
      if (const auto handle = find_op(name))
        lowerable().insert_or_assign(
            name, Lowerable{std::make_shared<RowOp>(row, name, false), *handle, *handle});
  }
  take_apart();
  return 0;
}

const int registered = register_rows();

}  // namespace

const Lowerable* find_lowerable(const std::string& name) {
  const auto found = lowerable().find(name);
  return found == lowerable().end() ? nullptr : &found->second;
}

extern "C" __attribute__((visibility("default"))) int anymps_torch_has_row(const char* name) {
  return find_lowerable(name) != nullptr;
}

// The table as a page: tell(names, marks, body) for each row.
extern "C" __attribute__((visibility("default"))) void anymps_torch_rows(
    void (*tell)(const char*, const char*, const char*)) {
  for (const TableRow& row : rows()) tell(row.names, row.marks, row.body);
}

}  // namespace anymps::aten
