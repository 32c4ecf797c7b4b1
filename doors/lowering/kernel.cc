// SPDX-License-Identifier: Apache-2.0
#include "lowering/kernel.h"

#include <atomic>
#include <list>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include "lowering/key.h"
#include "lowering/preparation.h"

namespace anymps::lowering {

namespace {

// What a thread has prepared, the latest first. Threads share nothing here, so a call takes no lock
// and a forked child finds nothing locked.
class Remembered {
 public:
  static Remembered& of_this_thread() {
    thread_local Remembered remembered;
    return remembered;
  }

  std::vector<uint64_t> scratch;  // of the key that is being made

  const Prepared* find(const Key& key, uint64_t hash) {
    const auto [first, last] = places_.equal_range(hash);
    for (auto place = first; place != last; ++place) {
      if (place->second->words != key.words()) continue;
      entries_.splice(entries_.begin(), entries_, place->second);
      return place->second->prepared.get();
    }
    return nullptr;
  }

  const Prepared& keep(const Key& key, uint64_t hash, std::unique_ptr<Prepared> prepared) {
    if (entries_.size() == kCapacity) {
      const auto oldest = std::prev(entries_.end());
      const auto [first, last] = places_.equal_range(oldest->hash);
      for (auto place = first; place != last; ++place)
        if (place->second == oldest) {
          places_.erase(place);
          break;
        }
      entries_.erase(oldest);
    }
    entries_.push_front({hash, key.words(), std::move(prepared)});
    places_.emplace(hash, entries_.begin());
    return *entries_.front().prepared;
  }

 private:
  static constexpr size_t kCapacity = 2048;
  struct Entry {
    uint64_t hash;
    std::vector<uint64_t> words;
    std::unique_ptr<Prepared> prepared;
  };
  std::list<Entry> entries_;
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> places_;
};

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Kernel::Kernel(const Row& row) : row_(row), id_(next_id()), program_(parse(row.body)) {
  std::istringstream words(row.arguments);
  for (std::string word; words >> word;) {
    const bool at_run = word.front() == '~', wide = word.front() == '^';
    names_.push_back({word.substr(at_run || wide), at_run, wide});
  }
}

const Prepared& Kernel::prepare(const amps_api& api, amps_device* device,
                                std::span<const Argument> arguments,
                                std::span<const Wanted> wanted) const {
  if (arguments.size() != names_.size())
    throw std::logic_error(std::string("[") + row_.name + "] has " + std::to_string(names_.size()) +
                           " arguments, " + std::to_string(arguments.size()) + " given");
  Remembered& remembered = Remembered::of_this_thread();
  Key key(remembered.scratch);
  key.add(id_);
  key.add(reinterpret_cast<uintptr_t>(device));
  for (size_t i = 0; i < arguments.size(); ++i) key.add(arguments[i], names_[i].at_run);
  for (const Wanted& result : wanted)
    key.add(!result.wanted ? 0 : result.dtype ? 2 + static_cast<uint64_t>(*result.dtype) : 1);
  const uint64_t hash = key.hash();
  if (const Prepared* found = remembered.find(key, hash)) return *found;
  return remembered.keep(key, hash, Preparation(*this, api, device, arguments).make(wanted));
}

}  // namespace anymps::lowering
