// SPDX-License-Identifier: Apache-2.0
// Streams that put calls off, in the C interface.
#include "runtime/eager/deferral.h"

#include "api/handles.h"

using namespace anymps;
using namespace anymps::api;

static_assert(AMPS_MAX_WINDOW == Deferral::kMostCalls);

extern "C" {

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
