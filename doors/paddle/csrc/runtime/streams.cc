// SPDX-License-Identifier: Apache-2.0
// Paddle's streams are the engine's, and so are its events. Kernels compute on the caller's thread,
// which is the fastest way for small ops, so that a stream is usually idle and an event is reached
// when it is recorded; a kernel that queues its work on its context's stream is ordered by the same
// events.
#include <limits>
#include <memory>
#include <mutex>

#include "engine.h"
#include "runtime/slots.h"

namespace anymps::paddle {
namespace {

using Recorded = std::shared_ptr<amps_event>;

// An event may be recorded anew while another thread waits for what it was.
struct Event {
  std::mutex mutex;
  Recorded recorded;  // null: never

  Recorded get() {
    std::lock_guard lock(mutex);
    return recorded;
  }
};

Event& of(C_Event event) { return *reinterpret_cast<Event*>(event); }
amps_stream* of(C_Stream stream) { return reinterpret_cast<amps_stream*>(stream); }

C_Status create_stream(C_Device target, C_Stream* stream) {
  amps_stream* created = nullptr;
  check(engine().stream_create(device(target->id), &created));
  *stream = reinterpret_cast<C_Stream>(created);
  return C_SUCCESS;
}

C_Status destroy_stream(C_Device, C_Stream stream) {
  engine().stream_release(of(stream));
  return C_SUCCESS;
}

C_Status synchronize_stream(C_Device, C_Stream stream) {
  if (stream) check(engine().stream_synchronize(of(stream)));
  return C_SUCCESS;
}

Recorded record(C_Stream stream) {
  amps_event* event = nullptr;
  check(engine().stream_record(of(stream), &event));
  return {event, engine().event_release};
}

// C_WARNING: not yet. Paddle takes everything but success for that.
C_Status query_stream(C_Device, C_Stream stream) {
  if (!stream) return C_SUCCESS;
  return engine().event_done(record(stream).get()) ? C_SUCCESS : C_WARNING;
}

C_Status add_callback(C_Device target, C_Stream stream, C_Callback callback, void* user_data) {
  synchronize_stream(target, stream);
  C_Status status = C_SUCCESS;
  callback(target, stream, user_data, &status);
  return status;
}

C_Status create_event(C_Device, C_Event* event) {
  *event = reinterpret_cast<C_Event>(new Event);
  return C_SUCCESS;
}

C_Status destroy_event(C_Device, C_Event event) {
  delete &of(event);
  return C_SUCCESS;
}

C_Status record_event(C_Device, C_Stream stream, C_Event event) {
  Recorded recorded = record(stream);
  std::lock_guard lock(of(event).mutex);
  of(event).recorded.swap(recorded);
  return C_SUCCESS;
}

C_Status query_event(C_Device, C_Event event) {
  const Recorded recorded = of(event).get();
  return !recorded || engine().event_done(recorded.get()) ? C_SUCCESS : C_WARNING;
}

C_Status synchronize_event(C_Device, C_Event event) {
  if (const Recorded recorded = of(event).get()) {
    check(engine().event_synchronize(recorded.get()));
  }
  return C_SUCCESS;
}

C_Status wait_for_event(C_Device, C_Stream stream, C_Event event) {
  const Recorded recorded = of(event).get();
  if (stream && recorded) check(engine().stream_wait(of(stream), recorded.get()));
  return C_SUCCESS;
}

}  // namespace

// Milliseconds between two of Paddle's events (raw_event), which has no slot of its own; waits for
// both. NaN: one was never recorded.
extern "C" __attribute__((visibility("default"))) double anymps_paddle_elapsed(void* start,
                                                                               void* end) {
  const Recorded first = of(static_cast<C_Event>(start)).get();
  const Recorded second = of(static_cast<C_Event>(end)).get();
  double milliseconds = std::numeric_limits<double>::quiet_NaN();
  if (first && second) engine().event_elapsed(first.get(), second.get(), &milliseconds);
  return milliseconds;
}

void fill_streams(C_DeviceInterface& slots) {
  slots.create_stream = create_stream;
  slots.destroy_stream = destroy_stream;
  slots.query_stream = query_stream;
  slots.synchronize_stream = synchronize_stream;
  slots.stream_add_callback = add_callback;
  slots.stream_wait_event = wait_for_event;
  slots.create_event = create_event;
  slots.destroy_event = destroy_event;
  slots.record_event = record_event;
  slots.query_event = query_event;
  slots.synchronize_event = synchronize_event;
}

}  // namespace anymps::paddle
