// SPDX-License-Identifier: Apache-2.0
// How a kernel is run: its parameters are filled from the launch's buffers and from the place of
// the thread. Without barriers a threadgroup is a plain loop, in which the compiler inlines the
// kernel and which it may vectorise.
#pragma once
#include "simdgroup_matrix.h"

namespace anymps_shader {

using anymps_metal::bare_t;

// What a parameter is given: a buffer (its number, from 0) or one of these.
enum Kind {
  kThreadgroupBuffer = -1,
  kThreadInGrid = -2,
  kGridThreads = -3,
  kThreadInGroup = -4,
  kGroupInGrid = -5,
  kGroupThreads = -6,
  kFullGroupThreads = -7,
  kGridGroups = -8,
  kIndexInGroup = -9,
  kIndexInSimdgroup = -10,
  kSimdgroupInGroup = -11,
  kGroupSimdgroups = -12,
  kFullGroupSimdgroups = -13,
  kSimdgroupThreads = -14,
  kIndexInQuadgroup = -15,
  kQuadgroupInGroup = -16,
  kGroupQuadgroups = -17,
  kGridOrigin = -18,
};

struct Triple {
  uint v[3];
};

struct Thread {
  const Launch& launch;
  const Group& group;
  uint grid[3];  // its place in the grid

  uint local(int i) const { return grid[i] - group.begin[i]; }
  uint index() const { return (local(2) * group.size[1] + local(1)) * group.size[0] + local(0); }
  uint count() const { return group.size[0] * group.size[1] * group.size[2]; }
  uint full_count() const { return launch.group[0] * launch.group[1] * launch.group[2]; }
};

template <int K>
inline Triple place(const Thread& t) {
  const auto& l = t.launch;
  const auto& g = t.group;
  if constexpr (K == kThreadInGrid) return {{t.grid[0], t.grid[1], t.grid[2]}};
  if constexpr (K == kGridThreads) return {{l.grid[0], l.grid[1], l.grid[2]}};
  if constexpr (K == kThreadInGroup) return {{t.local(0), t.local(1), t.local(2)}};
  if constexpr (K == kGroupInGrid) return {{g.at[0], g.at[1], g.at[2]}};
  if constexpr (K == kGroupThreads) return {{g.size[0], g.size[1], g.size[2]}};
  if constexpr (K == kFullGroupThreads) return {{l.group[0], l.group[1], l.group[2]}};
  if constexpr (K == kGridGroups) return {{l.groups[0], l.groups[1], l.groups[2]}};
  if constexpr (K == kIndexInGroup) return {{t.index(), 0, 0}};
  if constexpr (K == kIndexInSimdgroup) return {{t.index() % kSimdWidth, 0, 0}};
  if constexpr (K == kSimdgroupInGroup) return {{t.index() / kSimdWidth, 0, 0}};
  if constexpr (K == kGroupSimdgroups) return {{(t.count() + kSimdWidth - 1) / kSimdWidth, 0, 0}};
  if constexpr (K == kFullGroupSimdgroups)
    return {{(t.full_count() + kSimdWidth - 1) / kSimdWidth, 0, 0}};
  if constexpr (K == kSimdgroupThreads) return {{kSimdWidth, 0, 0}};
  if constexpr (K == kIndexInQuadgroup) return {{t.index() % 4, 0, 0}};
  if constexpr (K == kQuadgroupInGroup) return {{t.index() / 4, 0, 0}};
  if constexpr (K == kGroupQuadgroups) return {{(t.count() + 3) / 4, 0, 0}};
  return {{0, 0, 0}};
}

// A parameter's value for the whole launch (a pointer, or a copy of a small constant, which no
// store can change) or for one thread.
template <int At, class P, int K, class = void>
struct Argument {  // a place
  static_assert(K < 0,
                "a kernel's parameter is a pointer, a reference or an attribute of the thread");
  explicit Argument(const Launch&) {}
  P get(const Thread& thread) const {
    const Triple t = place<K>(thread);
    using V = bare_t<P>;
    if constexpr (anymps_metal::width_of<V> == 2)
      return V(t.v[0], t.v[1]);
    else if constexpr (anymps_metal::width_of<V> == 3)
      return V(t.v[0], t.v[1], t.v[2]);
    else
      return static_cast<V>(t.v[0]);
  }
};
template <int At, class T, int K>
struct Argument<At, T*, K> {
  T* value;
  explicit Argument(const Launch& launch)
      : value(K < 0 ? nullptr : static_cast<T*>(launch.buffers[K])) {}
  T* get(const Thread&) const { return value; }
};
template <int At, class T, int K>
struct Argument<At, T* const, K> : Argument<At, T*, K> {
  using Argument<At, T*, K>::Argument;
};
template <class T>
inline constexpr bool is_constant = false;
template <class T>
inline constexpr bool is_constant<const T> = sizeof(T) <= 64;
template <int At, class T, int K>
struct Argument<At, T&, K, anymps_metal::enable_if_t<is_constant<T>>> {
  T value;
  explicit Argument(const Launch& launch) : value(*static_cast<T*>(launch.buffers[K])) {}
  T& get(const Thread&) const { return value; }
};
template <int At, class T, int K>
struct Argument<At, T&, K, anymps_metal::enable_if_t<!is_constant<T>>> {
  T* value;
  explicit Argument(const Launch& launch) : value(static_cast<T*>(launch.buffers[K])) {}
  T& get(const Thread&) const { return *value; }
};

template <class... A>
struct Arguments : A... {
  explicit Arguments(const Launch& launch) : A(launch)... {}
};

template <int... I>
struct Numbers {};
template <int N, int... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <int... I>
struct Count<0, I...> {
  using type = Numbers<I...>;
};

template <class Parameters, class Kinds, class At>
struct Binding;
template <class R, class... P, int... K, int... At>
struct Binding<R (*)(P...), Numbers<K...>, Numbers<At...>> {
  using Result = R;
  static_assert(sizeof...(P) == sizeof...(K), "a kernel's parameters were not understood");
  using All = Arguments<Argument<At, P, K>...>;
  template <auto F>
  static inline __attribute__((always_inline)) void call(const All& all, const Thread& thread) {
    F(static_cast<const Argument<At, P, K>&>(all).get(thread)...);
  }
};

template <auto F, int... K>
struct Runner {
  using Bound = Binding<decltype(F), Numbers<K...>, typename Count<sizeof...(K)>::type>;

  static void range(const Launch* launch_, long first, long last) {
    const Launch launch = *launch_;
    const typename Bound::All all(launch);
    for (long number = first; number < last; ++number) {
      const Group group = group_of(launch, number);
      uint end[3];
      for (int i = 0; i < 3; ++i) end[i] = group.begin[i] + group.size[i];
      for (uint z = group.begin[2]; z < end[2]; ++z)
        for (uint y = group.begin[1]; y < end[1]; ++y)
          for (uint x = group.begin[0]; x < end[0]; ++x)
            Bound::template call<F>(all, Thread{launch, group, {x, y, z}});
    }
  }
  static void thread(const Launch* launch, const Group* group, const unsigned* local) {
    const typename Bound::All all(*launch);
    Bound::template call<F>(all, Thread{*launch,
                                        *group,
                                        {group->begin[0] + local[0], group->begin[1] + local[1],
                                         group->begin[2] + local[2]}});
  }
};

}  // namespace anymps_shader

extern "C" __attribute__((visibility("hidden"))) anymps_shader::Entry* anymps_shader_first;

namespace anymps_shader {

// What the variables of a kernel need in threadgroup memory. Here is a type of the kernel's own,
// which it returns.
template <class Here>
struct SharedBytes {
  static inline long value = 0;
};
template <class T, int Slot, class Here>
struct SharedVariable {
  static inline const bool known = (SharedBytes<Here>::value += (sizeof(T) + 15) / 16 * 16, true);
};
template <class T, int Slot, class Here>
inline T& threadgroup_variable() {
  static_cast<void>(&SharedVariable<T, Slot, Here>::known);
  return *static_cast<T*>(anymps_shader_runtime->threadgroup(Slot, sizeof(T)));
}

// Makes a kernel known when the library is loaded. Waits: its threads wait for each other.
template <bool Waits, auto F, int... K>
struct Kernel {
  Kernel(const char* name, int max_threads)
      : entry{name,
              Waits ? nullptr : &Runner<F, K...>::range,
              Waits ? &Runner<F, K...>::thread : nullptr,
              buffers(),
              max_threads,
              (0 + ... + (K == kThreadgroupBuffer)),
              &SharedBytes<typename Runner<F, K...>::Bound::Result>::value,
              anymps_shader_first} {
    anymps_shader_first = &entry;
  }
  static constexpr int buffers() {
    int most = -1;
    ((most = K > most ? K : most), ...);
    return most + 1;
  }
  Entry entry;
};

}  // namespace anymps_shader

// A shader is one file, so these are defined here.
extern "C" {
const anymps_shader::Runtime* anymps_shader_runtime = nullptr;
anymps_shader::Entry* anymps_shader_first = nullptr;

__attribute__((visibility("default"))) anymps_shader::Entry* anymps_shader_load(
    const anymps_shader::Runtime* runtime) {
  anymps_shader_runtime = runtime;
  return anymps_shader_first;
}
}
