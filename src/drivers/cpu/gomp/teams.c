/* SPDX-License-Identifier: Apache-2.0 */
#include "teams.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void begin_alone(void (*work)(void* data), void* data, unsigned members) {
  (void)work, (void)data, (void)members;
}
static void end_alone(void) {}
static int one(void) { return 1; }
static int zero(void) { return 0; }

static const struct anymps_teams alone = {begin_alone, end_alone, one, one, zero};
static const struct anymps_teams* teams = &alone;

void anymps_use_teams(const struct anymps_teams* those) {
  __atomic_store_n(&teams, those, __ATOMIC_RELEASE);
}

static const struct anymps_teams* now(void) { return __atomic_load_n(&teams, __ATOMIC_ACQUIRE); }

#define EXPORT __attribute__((visibility("default")))

EXPORT void anymps_GOMP_parallel_start(void (*work)(void*), void* data, unsigned members) {
  now()->begin(work, data, members);
}
EXPORT void anymps_GOMP_parallel_end(void) { now()->end(); }
EXPORT int anymps_omp_get_max_threads(void) { return now()->most(); }
EXPORT int anymps_omp_get_num_threads(void) { return now()->count(); }
EXPORT int anymps_omp_get_thread_num(void) { return now()->number(); }
EXPORT int anymps_omp_in_parallel(void) { return now()->count() > 1; }

/* Members of a team do not wait for each other: there may be fewer threads than members. What does
 * wait (gradients to weights, sums inside oneDNN's gemm) runs in teams of one, see onednn.h. */
EXPORT void anymps_GOMP_barrier(void) {
  if (now()->count() == 1) return;
  fputs(
      "[onednn] a barrier in a team of several members: this primitive must be made for one part\n",
      stderr);
  abort();
}

/* Loops that are shared out by chunks: used by one function of oneDNN that the engine does not call
 * (shuffle); complete all the same. */
static __thread long loop_next, loop_end, loop_step, loop_chunk;

EXPORT bool anymps_GOMP_loop_static_next(long* first, long* last) {
  if (loop_step > 0 ? loop_next >= loop_end : loop_next <= loop_end) return false;
  const long reach = loop_next + loop_chunk * loop_step;
  const bool whole = loop_step > 0 ? reach < loop_end : reach > loop_end;
  *first = loop_next;
  *last = whole ? reach : loop_end;
  loop_next += loop_chunk * loop_step * now()->count();
  return true;
}
EXPORT bool anymps_GOMP_loop_static_start(long start, long end, long step, long chunk, long* first,
                                          long* last) {
  const long items = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
  const long members = now()->count();
  loop_chunk = chunk > 0 ? chunk : items > members ? (items + members - 1) / members : 1;
  loop_step = step;
  loop_end = end;
  loop_next = start + now()->number() * loop_chunk * step;
  return anymps_GOMP_loop_static_next(first, last);
}
EXPORT void anymps_GOMP_loop_end_nowait(void) {}

/* What oneDNN asks to be called for at the end of the process: never. Its objects, the memory of
 * the code it generates among them, must be there as long as a stream computes, and that may be
 * longer than main. */
EXPORT int anymps___cxa_atexit(void (*destroy)(void*), void* object, void* library) {
  (void)destroy, (void)object, (void)library;
  return 0;
}
