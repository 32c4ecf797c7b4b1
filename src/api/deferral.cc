// SPDX-License-Identifier: Apache-2.0
// Streams and events of the C interface, and streams that put calls off.
#include <chrono>

#include "api/handles.h"
#include "runtime/eager/deferral.h"

using namespace anymps;
using namespace anymps::api;

static_assert(AMPS_MAX_WINDOW == Deferral::kMostCalls);

extern "C" {

amps_status amps_stream_create(amps_device* device, amps_stream** stream) {
  return guard([&] {
    need(stream, "stream") = nullptr;
    *stream = new amps_stream{device, need(device, "device").device->create_queue()};
  });
}
amps_status amps_stream_synchronize(amps_stream* stream) {
  return guard([&] {
    settle(&need(stream, "stream"));
    stream->queue->synchronize();
    if (stream->deferral) stream->deferral->finish();
  });
}
amps_status amps_stream_wait(amps_stream* stream, amps_event* event) {
  return guard([&] {
    settle(&need(stream, "stream"));
    stream->queue->wait(need(event, "event").event);
  });
}
amps_status amps_stream_record(amps_stream* stream, amps_event** event) {
  return guard([&] {
    need(event, "event") = nullptr;
    settle(&need(stream, "stream"));
    *event = new amps_event{stream->queue->record()};
  });
}
void amps_stream_release(amps_stream* stream) {
  if (stream && stream->deferral) stream->deferral->flush();
  // A feed's release function may be the last to know the stream that the work was on.
  if (stream && stream->queue->delete_later()) (void)stream->queue.release();
  delete stream;
}

int amps_event_done(amps_event* event) { return event && event->event->done(); }
amps_status amps_event_synchronize(amps_event* event) {
  return guard([&] { need(event, "event").event->wait(); });
}
amps_status amps_event_elapsed(amps_event* start, amps_event* end, double* milliseconds) {
  return guard([&] {
    need(start, "start").event->wait();
    need(end, "end").event->wait();
    const std::chrono::duration<double, std::milli> passed =
        end->event->time() - start->event->time();
    need(milliseconds, "milliseconds") = passed.count();
  });
}
void amps_event_release(amps_event* event) { delete event; }

amps_status amps_stream_defer(amps_stream* stream, int window) {
  return guard([&] {
    need(stream, "stream");
    require(window >= 0, "[stream] a window of {} calls", window);
    if (!stream->deferral)
      stream->deferral = Deferral::create(stream->device->device, *stream->queue);
    stream->deferral->set_limit(window);
  });
}

amps_status amps_stream_flush(amps_stream* stream) {
  return guard([&] {
    if (need(stream, "stream").deferral) stream->deferral->finish();
  });
}

amps_status amps_stream_forget(amps_stream* stream, const void* memory, size_t bytes) {
  return guard([&] {
    if (need(stream, "stream").deferral) stream->deferral->forget(memory, bytes);
  });
}

}  // extern "C"
