// SPDX-License-Identifier: Apache-2.0
// What a compiled shader and the runtime (../../runtime/runtime.cc) know of each other. Both
// include this file; it needs no other.
#pragma once

namespace anymps_shader {

constexpr int kSimdWidth = 32;
constexpr int kMaxThreads = 1024;
constexpr int kSharedBytes = 32;  // the largest value that goes between the lanes of a simdgroup

// One call of a kernel. Python packs all but the buffers (_SIZES in library.py).
struct Launch {
  unsigned grid[3];    // threads
  unsigned group[3];   // threads of a whole threadgroup
  unsigned groups[3];  // threadgroups
  int workers;         // threads of the machine, at most
  void* const* buffers;
};

// A threadgroup; those at the end of the grid may be smaller.
struct Group {
  unsigned at[3];
  unsigned begin[3];
  unsigned size[3];
};

inline Group group_of(const Launch& launch, long number) {
  Group group;
  for (int i = 0; i < 3; ++i) {
    group.at[i] = static_cast<unsigned>(number % launch.groups[i]);
    number /= launch.groups[i];
    group.begin[i] = group.at[i] * launch.group[i];
    const unsigned left = launch.grid[i] - group.begin[i];
    group.size[i] = left < launch.group[i] ? left : launch.group[i];
  }
  return group;
}

// The lanes of one simdgroup, after they have met. `out` holds what the active ones brought.
struct Simd {
  unsigned long active;
  int lane;      // whose turn it is
  bool reduced;  // `result` holds what the first of the lanes computed for all
  alignas(kSharedBytes) unsigned char in[kSimdWidth][kSharedBytes];
  alignas(kSharedBytes) unsigned char out[kSimdWidth][kSharedBytes];
  alignas(kSharedBytes) unsigned char result[kSharedBytes];
};

struct Runtime {
  // Waits for all threads of the threadgroup that have not ended.
  void (*barrier)();
  // Waits for the lanes of the simdgroup that come to the same site; a null value only asks which
  // lane this is.
  Simd* (*meet)(const void* value, unsigned bytes, int site);
  // The memory of a threadgroup variable.
  void* (*threadgroup)(int slot, unsigned long bytes);
};

// A kernel: either a function for a range of threadgroups, whose threads need not wait for each
// other, or one for a single thread.
struct Entry {
  const char* name;
  void (*range)(const Launch*, long first, long last);
  void (*thread)(const Launch*, const Group*, const unsigned* local);
  int buffers;              // how many arguments it takes
  int max_threads;          // in a threadgroup
  int threadgroup_buffers;  // arguments in threadgroup memory, which nothing can give a size
  const long* shared_bytes;
  Entry* next;
};

}  // namespace anymps_shader
