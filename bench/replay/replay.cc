// SPDX-License-Identifier: Apache-2.0
// Replays the recorded steps through AnyMPS and through ATen, in one process. run_replay.py loads
// this library, takes turns and reports.
//
// Only calls are timed, with the memory they take and give back: views cost nothing on either side,
// and neither does the way from a framework's arguments to a call (the engine's calls are looked up
// beforehand, ATen's arguments are boxed beforehand).
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>

#include "aten_side.h"
#include "lowering.h"

namespace bench {

namespace {

class EngineSide {
 public:
  explicit EngineSide(const Recording& recording)
      : recording_(recording), buffers_(recording.storages.size()) {
    for (const Run& run : recording.runs) {
      std::vector<std::vector<Step>>& steps = steps_.emplace_back();
      for (const RecordedCall& call : run.calls)
        steps.push_back(call.free ? std::vector<Step>() : lower(recording, call));
    }
    for (size_t s = 0; s < buffers_.size(); ++s)
      if (recording.storages[s].there) take(static_cast<int64_t>(s));
  }

  ~EngineSide() {
    for (amps_buffer* buffer : buffers_) api->buffer_release(buffer);
  }
  EngineSide(const EngineSide&) = delete;
  EngineSide& operator=(const EngineSide&) = delete;

  void* data(int64_t storage) const {
    return api->buffer_data(buffers_[static_cast<size_t>(storage)]);
  }

  double run(size_t run, size_t which) {
    const RecordedCall& call = recording_.runs[run].calls[which];
    const auto start = std::chrono::steady_clock::now();
    for (const int64_t s : call.makes) take(s);
    if (call.free) return 0;
    const bool keeps = recording_.runs[run].name == "inference";
    for (const Step& step : steps_[run][which]) this->step(step, keeps);
    return since(start);
  }

  // Memory that was there from the start has been written to.
  void changed() { ++version_; }

  double release(size_t run, size_t which) {
    const auto start = std::chrono::steady_clock::now();
    for (const int64_t s : recording_.runs[run].calls[which].last_uses)
      api->buffer_release(std::exchange(buffers_[static_cast<size_t>(s)], nullptr));
    return since(start);
  }

  amps_view view(const Operand& operand) const {
    if (operand.number)
      return {const_cast<void*>(operand.number), nullptr, nullptr, operand.dtype, 0};
    if (operand.tensor < 0) return {nullptr, nullptr, nullptr, AMPS_F32, -1};
    const Tensor& t = recording_.tensors[static_cast<size_t>(operand.tensor)];
    auto* const base = static_cast<char*>(data(t.storage));
    return {base + t.offset * static_cast<int64_t>(c10::elementSize(t.dtype)), t.dims.data(),
            t.strides.data(), dtype_of(t.dtype), static_cast<int32_t>(t.dims.size())};
  }

 private:
  static double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
        .count();
  }

  void take(int64_t storage) {
    amps_buffer*& buffer = buffers_[static_cast<size_t>(storage)];
    const auto bytes =
        std::max<int64_t>(recording_.storages[static_cast<size_t>(storage)].bytes, 1);
    if (!buffer) check(api->buffer_create(device, static_cast<size_t>(bytes), &buffer));
  }

  // Weights do not change in an inference, and its caller knows.
  uint64_t version(const Operand& operand) const {
    if (operand.tensor < 0) return 0;
    const Tensor& t = recording_.tensors[static_cast<size_t>(operand.tensor)];
    return recording_.storages[static_cast<size_t>(t.storage)].there ? version_ : 0;
  }

  void step(const Step& step, bool keeps) const {
    constexpr size_t kMost = 16;
    amps_view in[kMost], out[kMost];
    uint64_t versions[kMost] = {};
    for (size_t i = 0; i < step.in.size(); ++i) {
      in[i] = view(step.in.at(i));
      if (keeps) versions[i] = version(step.in.at(i));
    }
    for (size_t i = 0; i < step.out.size(); ++i) out[i] = view(step.out.at(i));
    check(api->call_run_versions(step.call, in, step.in.size(), versions, nullptr, out,
                                 step.out.size(), nullptr));
  }

  const Recording& recording_;
  std::vector<amps_buffer*> buffers_;
  std::vector<std::vector<std::vector<Step>>> steps_;  // of a run, of a call
  uint64_t version_ = 1;
};

struct Replay {
  explicit Replay(const std::string& text)
      : recording(parse_recording(text)), engine(recording), aten(recording) {
    reset();
  }
  // The same numbers on both sides.
  void reset() {
    aten.fill();
    for (size_t s = 0; s < recording.storages.size(); ++s)
      if (recording.storages[s].there) copy(static_cast<int64_t>(s));
  }
  void copy(int64_t s) {
    const auto bytes = static_cast<size_t>(recording.storages[static_cast<size_t>(s)].bytes);
    if (bytes) std::memcpy(engine.data(s), aten.storage(s).data(), bytes);
    engine.changed();
  }

  Recording recording;
  EngineSide engine;
  AtenSide aten;
};

std::unique_ptr<Replay> current;

double largest(const at::Tensor& x) {
  return x.numel() == 0 || !at::isFloatingType(x.scalar_type()) ? 0 : x.abs().max().item<double>();
}

// Empty: the same. The two sides add in different orders, so the largest element is the measure; of
// sums that cancel out, a hundredth of the largest element of all that the call names.
std::string difference(const at::Tensor& got, const at::Tensor& expected, double around) {
  if (got.numel() == 0) return "";
  if (!at::isFloatingType(got.scalar_type()))
    return at::equal(got, expected) ? "" : "integers that differ";
  const double scale = std::max(largest(expected), around / 100), error = largest(got - expected);
  constexpr double kTolerance = 1e-4;
  if (error <= kTolerance * scale) return "";  // not so for NaN
  std::ostringstream text;
  text << "an error of " << error << " at a scale of " << scale;
  return text.str();
}

void verify_call(Replay& replay, size_t run, size_t which) {
  const RecordedCall& call = replay.recording.runs[run].calls[which];
  for (const int64_t t : call.tensors) {
    const int64_t s = replay.recording.tensors[static_cast<size_t>(t)].storage;
    if (std::find(call.makes.begin(), call.makes.end(), s) == call.makes.end()) replay.copy(s);
  }
  replay.engine.run(run, which);
  replay.aten.run(call);
  if (call.free)
    for (const int64_t s : call.makes) replay.copy(s);
  double around = 0;
  for (const int64_t t : call.tensors) around = std::max(around, largest(replay.aten.tensor(t)));
  if (!call.free)
    for (const int64_t t : call.tensors) {
      const at::Tensor expected = replay.aten.tensor(t);
      const at::Tensor got = at::from_blob(replay.engine.view({t}).data, expected.sizes(),
                                           expected.strides(), expected.options());
      const std::string wrong = difference(got, expected, around);
      if (!wrong.empty())
        throw std::runtime_error("call " + std::to_string(which) + ", " + call.op + ": tensor " +
                                 std::to_string(t) + " has " + wrong);
    }
}

}  // namespace
}  // namespace bench

extern "C" {

double replay_load(const char* library, int threads) {
  return bench::guarded([&] {
    bench::load(library, threads);
    return 0.0;
  });
}

// Takes the text of a recording in place of the one before.
double replay_open(const char* text) {
  return bench::guarded([&] {
    bench::current.reset();
    bench::check(bench::api->device_reset_eager_report(bench::device));
    bench::current = std::make_unique<bench::Replay>(text);
    return 0.0;
  });
}

// Runs every call on both sides from the same numbers and compares all tensors it names.
double replay_verify(int run) {
  return bench::guarded([&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto& replay = *bench::current;
    replay.reset();
    const auto& calls = replay.recording.runs[static_cast<size_t>(run)].calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      bench::verify_call(replay, static_cast<size_t>(run), i);
      replay.engine.release(static_cast<size_t>(run), i);
      replay.aten.release(calls[i]);
    }
    replay.reset();
    return 0.0;
  });
}

// One run; `nanoseconds` gets the time of each call, with the memory that it gives back.
double replay_run(int run, int torch, double* nanoseconds) {
  return bench::guarded([&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto& replay = *bench::current;
    const auto which = static_cast<size_t>(run);
    const auto& calls = replay.recording.runs[which].calls;
    double total = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      nanoseconds[i] = torch ? replay.aten.run(calls[i]) + replay.aten.release(calls[i])
                             : replay.engine.run(which, i) + replay.engine.release(which, i);
      total += nanoseconds[i];
    }
    return total;
  });
}

// What the engine's eager calls had to do beside their kernels, as JSON; empty after an error.
const char* replay_report() {
  static std::string text;
  amps_string* report = nullptr;
  text.clear();
  if (bench::api->device_eager_report(bench::device, "json", &report) != AMPS_OK) return "";
  text = bench::api->string_data(report);
  bench::api->string_release(report);
  return text.c_str();
}

}  // extern "C"
