// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/choice_store.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "base/env.h"
#include "base/text.h"

namespace anymps {

std::string ChoiceStore::identity(int threads) const {
  std::string text = fmt::format("anymps {}, {}, {} threads, {}", ANYMPS_VERSION, driver_.name(),
                                 threads, driver_.timing_identity());
  std::replace_if(  // it is one line of a file
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

std::string ChoiceStore::path(int threads) const {
  return driver_.timing_identity().empty() ? std::string()
                                           : choice_path(choice_folder(), identity(threads));
}

ChoiceStore::Report ChoiceStore::report(int threads) const {
  Report report;
  report.path = path(threads);
  if (report.path.empty()) return report;
  if (const auto found = read_choices(report.path, identity(threads), report.problem))
    report.choices = found->size();
  return report;
}

// Read when it is first asked for. Called with the lock.
ChoiceStore::Sheet& ChoiceStore::sheet(int threads) {
  std::string identity = this->identity(threads);
  const std::string path = choice_path(choice_folder(), identity);
  const auto [it, is_new] = sheets_.try_emplace({path, identity});
  Sheet& sheet = it->second;
  if (!is_new) return sheet;
  sheet.identity = std::move(identity);
  std::string why;
  if (path.empty()) return sheet;
  if (auto found = read_choices(path, sheet.identity, why))
    sheet.known = std::move(*found);
  else
    std::fprintf(stderr, "anymps: %s is not used: %s\n", shown(path).c_str(), why.c_str());
  return sheet;
}

std::optional<std::string> ChoiceStore::find(int threads, uint64_t key) {
  std::lock_guard lock(mutex_);
  const Choices& known = sheet(threads).known;
  const auto it = known.find(key);
  return it == known.end() ? std::nullopt : std::optional(it->second);
}

void ChoiceStore::add(int threads, uint64_t key, const std::string& name) {
  std::lock_guard lock(mutex_);
  Sheet& there = sheet(threads);
  there.known[key] = there.fresh[key] = name;
  ++measured_;
}

void ChoiceStore::save() {
  std::lock_guard lock(mutex_);
  for (auto& [key, sheet] : sheets_) {
    std::string why;
    if (key.first.empty() || sheet.fresh.empty()) continue;
    if (!add_choices(key.first, sheet.identity, sheet.fresh, why) &&
        env_contains("ANYMPS_VERBOSE", "dispatch"))
      std::fprintf(stderr, "tune: %s cannot be written: %s\n", shown(key.first).c_str(),
                   shown(why).c_str());
    sheet.fresh.clear();  // also where it cannot be written: it would be tried for each plan
  }
}

}  // namespace anymps
