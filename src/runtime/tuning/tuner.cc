// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuner.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <unordered_set>

#include "base/checksum.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "drivers/kernel_ways.h"
#include "runtime/tuning/choice_store.h"
#include "runtime/tuning/trial.h"

namespace anymps {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGain = 0.95;         // of the usual kernel's time: what is slower changes nothing
constexpr double kLeastSaved = 2e-7;   // seconds; less is within what the clock tells
constexpr double kNodeSeconds = 0.25;  // of measuring a node, from which on it is enough
constexpr double kLongestRun = 0.25;   // a node that takes longer is left as it is
constexpr double kAllSeconds = 30;     // of measuring, in a process
constexpr double kHopeless = 2;        // times the best: not run again
constexpr double kShortRun = 2e-5;     // shorter ones are measured several at a time
constexpr int kLeastRounds = 3, kMostRounds = 12;
constexpr size_t kLeastOther = size_t{1} << 20, kMostOther = size_t{64} << 20;

std::atomic<int64_t> spent_ns{0};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

size_t bytes_of_constants(const Graph& graph) {
  std::unordered_set<const Constant*> seen;
  size_t bytes = 0;
  for (const auto& node : graph.nodes())
    for (const Value* value : node->inputs)
      if (value && value->is_constant() && seen.insert(value->constant.get()).second)
        bytes += value->constant->bytes();
  return bytes;
}

std::string name_of(const KernelEntry& entry, std::string_view way) {
  return way.empty() ? entry.name : fmt::format("{}/{}", entry.name, way);
}

// Calls fn with each kernel and way of an op, in the driver's order, until it returns true.
template <typename Fn>
void for_each_way(Driver& driver, const Op& op, Fn&& fn) {
  for (const KernelEntry& entry : driver.kernels(op)) {
    if (fn(entry, std::string_view())) return;
    for (const std::string& way : kernel_ways(driver.name(), op.name, entry.name))
      if (fn(entry, std::string_view(way))) return;
  }
}

// Null where it refuses or cannot be made.
KernelPtr try_to_make(const KernelEntry& entry, std::string_view way,
                      const KernelRequest& request) {
  const AskedWay asked(way);
  std::string why;
  try {
    return entry.make(request, why);
  } catch (const Error&) {
    return nullptr;
  }
}

bool is_faster(const Tuner::Candidate& a, const Tuner::Candidate& b) {
  return a.seconds < b.seconds;
}

std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

}  // namespace

bool Tuner::asked() {
  const std::string word = env_string("ANYMPS_TUNE");
  require(word.find(',') == std::string::npos, "[env] ANYMPS_TUNE='{}': it takes one word", word);
  return word == "on";
}

Tuner::Tuner(Device& device, const Graph& graph, int threads, Denormals denormals)
    : device_(device),
      threads_(threads > 0 ? std::min(threads, device.driver().max_threads())
                           : device.driver().max_threads()),
      denormals_(denormals),
      other_bytes_(std::bit_floor(std::min(bytes_of_constants(graph), kMostOther))),
      verbose_(env_contains("ANYMPS_VERBOSE", "dispatch")) {
  if (other_bytes_ < kLeastOther) other_bytes_ = 0;
}

Tuner::~Tuner() { device_.choices().save(); }

bool Tuner::can_measure(const KernelRequest& request, const KernelChoice& usual) const {
  Driver& driver = device_.driver();
  const DriverTraits traits = driver.traits();
  if (!traits.host_visible || !traits.computes || driver.timing_identity().empty()) return false;
  if (usual.is_fallback || request.op->is(kImpure) || request.op->is(kStructural)) return false;
  if (!request.parameters.empty() || !Trial::possible(request)) return false;
  size_t ways = 0;
  bool there = false;
  for_each_way(driver, *request.op, [&](const KernelEntry& entry, std::string_view way) {
    ++ways;
    there = there || (way.empty() && usual.name == fmt::format("{}:{}", driver.name(), entry.name));
    return false;
  });
  return there && ways > 1;
}

KernelPtr Tuner::make(const KernelRequest& request, const std::string& name) const {
  KernelPtr kernel;
  for_each_way(device_.driver(), *request.op, [&](const KernelEntry& entry, std::string_view way) {
    if (name_of(entry, way) != name) return false;
    kernel = try_to_make(entry, way, request);
    return true;
  });
  return kernel;
}

// Ways that lead to the same implementation are one candidate.
std::vector<Tuner::Candidate> Tuner::candidates(const KernelRequest& request) const {
  std::vector<Candidate> all;
  std::unordered_set<std::string> seen;
  for_each_way(device_.driver(), *request.op, [&](const KernelEntry& entry, std::string_view way) {
    if (KernelPtr kernel = try_to_make(entry, way, request);
        kernel && seen.insert(entry.name + " " + kernel->detail()).second)
      all.push_back({name_of(entry, way), std::move(kernel)});
    return false;
  });
  return all;
}

// All that the times and the choice depend on, but for what the file is named by.
uint64_t Tuner::key_of(const KernelRequest& request, const std::string& usual) const {
  std::string text = request.op->name + " " + usual;
  const auto add = [&](const auto& number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const auto add_all = [&](const auto& numbers) {
    add(numbers.size());
    for (const auto& number : numbers) add(number);
  };
  const auto add_desc = [&](const TensorDesc& desc) {
    add(desc.dtype);
    add_all(desc.shape);
    add_all(desc.strides);
  };
  for_each_way(device_.driver(), *request.op, [&](const KernelEntry& entry, std::string_view way) {
    text += " " + name_of(entry, way);
    return false;
  });
  for (const AttrValue& value : request.attrs.values()) {
    add(value.index());
    std::visit(
        [&]<typename T>(const T& content) {
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
            add(content);
          else if constexpr (!std::is_same_v<T, std::shared_ptr<Graph>>)
            add_all(content);
        },
        value);
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    text += !request.has(i) ? '-' : request.constant(i) ? 'c' : '+';
    if (request.has(i)) add_desc(request.in(i));
    if (i < request.contents.size() && request.contents[i]) add_all(*request.contents[i]);
  }
  for (const TensorDesc& desc : request.outputs) add_desc(desc);
  add(other_bytes_);
  add(denormals_);
  return checksum(text.data(), text.size());
}

KernelChoice Tuner::choose(const KernelRequest& request) {
  Driver& driver = device_.driver();
  KernelChoice usual = choose_kernel(driver, request);
  if (!can_measure(request, usual)) return usual;
  const std::string first = usual.name.substr(std::strlen(driver.name()) + 1);
  const std::string name = decide(request, first, threads_).name;
  if (name == first) return usual;
  KernelPtr kernel = make(request, name);
  if (!kernel) return usual;
  return {std::move(kernel), fmt::format("{}:{}", driver.name(), name.substr(0, name.find('/'))),
          false};
}

Tuner::Verdict Tuner::decide(const KernelRequest& request, const std::string& usual, int threads) {
  // How a node rounds may not depend on the threads: one decides.
  Verdict first{usual};
  if (threads > 1) first = decide(request, usual, 1);
  ChoiceStore& store = device_.choices();
  const uint64_t key = key_of(request, first.name);
  Verdict verdict{{}, true, "measured before"};
  if (auto known = store.find(threads, key)) {
    verdict.name = std::move(*known);
  } else {
    verdict = measure(request, first.name, threads);
    verdict.lasts = verdict.lasts && first.lasts;
    if (verdict.lasts) store.add(threads, key, verdict.name);
  }
  if (verbose_)
    std::fprintf(stderr, "tune: %s \"%s\" %d threads: %s -> %s\n", describe(request).c_str(),
                 shown(request.node).c_str(), threads, verdict.told.c_str(), verdict.name.c_str());
  return verdict;
}

Tuner::Verdict Tuner::measure(const KernelRequest& request, const std::string& usual, int threads) {
  // Two at a time would measure each other.
  static auto& mutex = *new ForkMutex(ForkMutex::kLong);
  std::lock_guard lock(mutex);
  if (static_cast<double>(spent_ns) > kAllSeconds * 1e9)
    return {usual, false, fmt::format("not measured, {:g} s are over", kAllSeconds)};
  const ThreadScope scope(device_.driver(), ThreadScope::Exactly{threads});
  const DenormalScope mode(denormals_);
  const auto start = Clock::now();
  Verdict verdict;
  try {
    verdict = race(request, usual, threads);
  } catch (const Error& error) {  // of memory for it, or of a kernel that cannot take the inputs
    verdict = {usual, error.code() != Code::kOutOfMemory, error.what()};
  }
  spent_ns += std::chrono::nanoseconds(Clock::now() - start).count();
  return verdict;
}

Tuner::Verdict Tuner::race(const KernelRequest& request, const std::string& usual, int threads) {
  std::vector<Candidate> all = candidates(request);
  const auto first =
      std::find_if(all.begin(), all.end(), [&](const Candidate& one) { return one.name == usual; });
  if (first == all.end() || all.size() < 2) return {usual, true, "there is no other"};
  std::rotate(all.begin(), first, first + 1);
  if (other_bytes_ > 0 && !other_) {
    other_ = device_.allocator().allocate(other_bytes_);
    std::memset(other_->data(), 1, other_bytes_);  // pages of its own
  }
  Trial trial(device_, request, other_, threads);
  std::optional<ThreadPool::Awake> awake;
  if (threads > 1) awake.emplace();
  const auto start = Clock::now();
  std::string told;
  const auto tell = [&](const Candidate& one, const std::string& what) {
    told += fmt::format(", {} {}", one.name, what);
  };

  // The first runs bring code and memory in: their times do not count.
  const double rough = trial.run(*all[0].kernel);
  if (rough > kLongestRun) return {usual, true, "it takes too long to be measured"};
  trial.expect();
  std::vector<Candidate> left = {all[0]};
  for (size_t i = 1; i < all.size(); ++i) {
    trial.run(*all[i].kernel);
    const Trial::Agreement agreement = trial.agreement();
    if (!agreement.difference.empty())
      tell(all[i], "differs " + agreement.difference);
    else if (threads > 1 && !agreement.same_bits)
      tell(all[i], "rounds otherwise");
    else
      left.push_back(std::move(all[i]));
  }

  // In turns, so that what disturbs one disturbs the others too.
  left[0].seconds = rough;
  const int times = other_ ? 1 : static_cast<int>(std::clamp(kShortRun / rough, 1.0, 50.0));
  for (int round = 0; round < kMostRounds && left.size() > 1; ++round) {
    if (round >= kLeastRounds && seconds_since(start) > kNodeSeconds) break;
    for (Candidate& one : left) {
      const double seconds = trial.run(*one.kernel, times);
      one.seconds = round == 0 ? seconds : std::min(one.seconds, seconds);
    }
    if (round == 0) continue;
    const double most = kHopeless * std::min_element(left.begin(), left.end(), is_faster)->seconds;
    for (size_t i = left.size(); i-- > 1;) {
      if (left[i].seconds <= most) continue;
      tell(left[i], microseconds(left[i].seconds));
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (size_t i = 1; i < left.size(); ++i) tell(left[i], microseconds(left[i].seconds));
  told = left[0].name + " " + microseconds(left[0].seconds) + told;
  const Candidate& best = *std::min_element(left.begin(), left.end(), is_faster);
  const double saved = left[0].seconds - best.seconds;
  const bool clear = best.seconds < kGain * left[0].seconds && saved > kLeastSaved;
  return {clear ? best.name : usual, true, told};
}

}  // namespace anymps
