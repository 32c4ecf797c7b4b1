// SPDX-License-Identifier: Apache-2.0
#include "lowering/kernel.h"

#include <atomic>
#include <sstream>
#include <stdexcept>

#include "lowering/evaluate.h"
#include "lowering/key.h"
#include "lowering/preparation.h"
#include "lowering/thread_cache.h"

namespace anymps::lowering {

namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Kernel::Kernel(const Row& row) : row_(row), id_(next_id()), program_(parse(row.body)) {
  std::istringstream words(row.arguments);
  for (std::string word; words >> word;) {
    const bool at_run = word.front() == '~', wide = word.front() == '^',
               common = word.front() == '*';
    names_.push_back({word.substr(at_run || wide || common), at_run, wide, common});
    if (names_.back().name == "common") common_ = names_.size() - 1;
  }
}

bool Kernel::at_run(const Argument& argument, size_t i) const {
  if (!argument.at_run && !names_[i].at_run) return false;
  if (argument.kind == Argument::Kind::kInt) return argument.i != 0 && argument.i != 1;
  return argument.kind == Argument::Kind::kFloat && argument.f != 0 && argument.f != 1;
}

Value Kernel::marked(Builder& builder, const Value& value, const Name& name,
                     const Values& all) const {
  if (const auto* list = std::get_if<Values>(&value)) {
    Values items;
    for (const Value& item : *list) items.push_back(marked(builder, item, name, all));
    return items;
  }
  if (!value.is_tensor() || value.tensor().number) return value;
  if (name.common) return builder.cast(value.tensor(), all[common_.value()].dtype());
  const bool wide = name.wide && is_half(builder.dtype(value.tensor()));
  return wide ? builder.cast(value.tensor(), AMPS_F32) : value;
}

Values Kernel::lower(Builder& builder, Values arguments, std::span<const Wanted> wanted,
                     std::vector<std::optional<amps_dtype>>* found) const {
  Names names;
  for (size_t i = 0; i < names_.size(); ++i)
    names.emplace(names_[i].name, marked(builder, arguments.at(i), names_[i], arguments));
  Values results = evaluate(builder, program_, std::move(names), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= results.size()) {
      if (wanted[i].wanted)
        throw std::invalid_argument("result " + std::to_string(i) + " is not supported");
      results.emplace_back();
    }
    Value& result = results[i];
    if (!wanted[i].wanted) result = {};
    if (found) found->emplace_back();
    if (result.absent()) continue;
    if (!result.is_tensor()) result = builder.number(result, wanted[i].dtype.value_or(AMPS_F32));
    if (found) found->back() = builder.dtype(result.tensor());
    if (wanted[i].dtype && !result.tensor().own_type)
      result = builder.cast(result.tensor(), *wanted[i].dtype);
  }
  return results;
}

void Kernel::add_to(Key& key, amps_device* device, std::span<const Argument> arguments,
                    bool with_strides) const {
  if (arguments.size() != names_.size())
    throw std::logic_error(std::string("[") + row_.name + "] has " + std::to_string(names_.size()) +
                           " arguments, " + std::to_string(arguments.size()) + " given");
  key.add(id_);
  key.add(reinterpret_cast<uintptr_t>(device));
  for (size_t i = 0; i < arguments.size(); ++i)
    key.add(arguments[i], at_run(arguments[i], i), with_strides);
}

InPlace in_place(const Wanted& result, std::span<const Argument> arguments) {
  if (!result.memory || !result.row_major) return {};
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t j = 0; j < arguments[i].views.size(); ++j) {
      const amps_view& view = arguments[i].views[j];
      if (view.rank >= 0 && view.data == result.memory && view.dtype == result.dtype &&
          row_major(view))
        return {&view, i, j};
    }
  return {};
}

const Prepared& Kernel::prepare(const amps_api& api, amps_device* device,
                                std::span<const Argument> arguments,
                                std::span<const Wanted> wanted) const {
  auto& cache = ThreadCache<std::shared_ptr<const Prepared>>::of_this_thread();
  Key key;
  add_to(key, device, arguments, false);
  for (const Wanted& result : wanted) {
    const uint64_t type = !result.wanted ? 0
                          : result.dtype ? 2 + static_cast<uint64_t>(*result.dtype)
                                         : 1;
    const InPlace place = in_place(result, arguments);
    const uint64_t where = place.view ? place.argument << 32 | (place.number + 1) << 8 : 0;
    key.add(where | type << 1 | result.row_major);
  }
  const uint64_t hash = key.hash();
  if (const auto* found = cache.find(key, hash)) return **found;
  return *cache.keep(key, hash, Preparation(*this, api, device, arguments).make(wanted));
}

const Recalled* Kernel::recall(amps_device* device, std::span<const Argument> arguments,
                               bool in_place) const {
  auto& cache = ThreadCache<Recalled>::of_this_thread();
  Key key;
  add_to(key, device, arguments, true);
  key.add(uint64_t{in_place});
  return cache.find(key, key.hash());
}

void Kernel::remember(amps_device* device, std::span<const Argument> arguments, bool in_place,
                      Recalled what) const {
  auto& cache = ThreadCache<Recalled>::of_this_thread();
  Key key;
  add_to(key, device, arguments, true);
  key.add(uint64_t{in_place});
  cache.keep(key, key.hash(), std::move(what));
}

}  // namespace anymps::lowering
