// SPDX-License-Identifier: Apache-2.0
// paddle.profiler: while it traces, the engine times every eager call, and what it has timed
// becomes device events of Paddle's trace.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine.h"
#include "paddle/phi/api/profiler/trace_event_collector.h"
#include "runtime/slots.h"

namespace anymps::paddle {
namespace {

// Paddle's clock.
uint64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

using EngineProfiler = std::unique_ptr<amps_profiler, void (*)(amps_profiler*)>;

struct Session {
  // One for each device; their times count from when they were made.
  std::vector<EngineProfiler> profilers;
  uint64_t made_ns = 0;
};

void attach(const Session* session) {
  for (int i = 0; i < device_count(); ++i) {
    check(
        engine().device_profile_eager(device(i), session ? session->profilers[i].get() : nullptr));
  }
}

C_Status initialize(C_Profiler, void** user_data) {
  auto session = std::make_unique<Session>();
  for (int i = 0; i < device_count(); ++i) {
    amps_profiler* made = nullptr;
    check(engine().profiler_create(&made));
    session->profilers.emplace_back(made, engine().profiler_release);
  }
  session->made_ns = wall_clock_ns();
  *user_data = session.release();
  return C_SUCCESS;
}

C_Status finalize(C_Profiler, void* user_data) {
  attach(nullptr);
  delete static_cast<Session*>(user_data);
  return C_SUCCESS;
}

C_Status prepare(C_Profiler, void*) { return C_SUCCESS; }

C_Status start(C_Profiler, void* user_data) {
  const auto* session = static_cast<Session*>(user_data);
  for (const EngineProfiler& profiler : session->profilers) {
    check(engine().profiler_reset(profiler.get()));
  }
  attach(session);
  return C_SUCCESS;
}

C_Status stop(C_Profiler, void*) {
  attach(nullptr);
  return C_SUCCESS;
}

std::string trace_of(const amps_profiler* profiler) {
  amps_string* text = nullptr;
  check(engine().profiler_text(profiler, "trace", &text));
  std::string trace(engine().string_data(text), engine().string_size(text));
  engine().string_release(text);
  return trace;
}

C_Status collect(C_Profiler collector, uint64_t start_ns, void* user_data) {
  const auto* session = static_cast<Session*>(user_data);
  auto& events = *reinterpret_cast<phi::TraceEventCollector*>(collector);
  uint32_t correlation = 0;
  for (int i = 0; i < device_count(); ++i) {
    const auto trace = nlohmann::json::parse(trace_of(session->profilers[i].get()));
    for (const auto& event : trace.at("traceEvents")) {
      constexpr double kPerMicrosecond = 1000;
      const auto began =
          session->made_ns + static_cast<uint64_t>(event.at("ts").get<double>() * kPerMicrosecond);
      const auto ended =
          began + static_cast<uint64_t>(event.at("dur").get<double>() * kPerMicrosecond);
      if (began < start_ns) continue;
      events.AddDeviceEvent({event.at("name").get<std::string>(), phi::TracerEventType::Kernel,
                             began, ended, static_cast<uint64_t>(i), 0,
                             event.at("tid").get<uint64_t>(), ++correlation,
                             phi::KernelEventInfo{}});
    }
  }
  return C_SUCCESS;
}

}  // namespace

void fill_profiler(C_DeviceInterface& slots) {
  slots.profiler_initialize = initialize;
  slots.profiler_finalize = finalize;
  slots.profiler_prepare_tracing = prepare;
  slots.profiler_start_tracing = start;
  slots.profiler_stop_tracing = stop;
  slots.profiler_collect_trace_data = collect;
}

}  // namespace anymps::paddle
