// SPDX-License-Identifier: Apache-2.0
// metal_atomic. The orders of memory are those of the machine's own atomics.
#pragma once
#include "math.h"

namespace metal {

enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST,
};
enum thread_scope {
  thread_scope_thread,
  thread_scope_simdgroup,
  thread_scope_threadgroup,
  thread_scope_device,
};
enum class mem_flags {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(int(a) & int(b)); }

template <class T>
struct atomic {
  T value;
};
template <class T>
using _atomic = atomic<T>;
using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;
using atomic_bool = atomic<bool>;
using atomic_float = atomic<float>;
using atomic_long = atomic<long>;
using atomic_ulong = atomic<ulong>;

template <class T>
struct as_given {
  using type = T;
};
template <class T>
using as_given_t = typename as_given<T>::type;

template <class T>
inline T* atomic_place(const volatile atomic<T>* object) {
  return const_cast<T*>(&object->value);
}
template <class T>
inline T atomic_load_explicit(const volatile atomic<T>* object, memory_order order) {
  T result;
  __atomic_load(atomic_place(object), &result, order);
  return result;
}
template <class T>
inline void atomic_store_explicit(volatile atomic<T>* object, as_given_t<T> desired,
                                  memory_order order) {
  __atomic_store(atomic_place(object), &desired, order);
}
template <class T>
inline T atomic_exchange_explicit(volatile atomic<T>* object, as_given_t<T> desired,
                                  memory_order order) {
  T result;
  __atomic_exchange(atomic_place(object), &desired, &result, order);
  return result;
}
template <class T>
inline bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                  as_given_t<T> desired, memory_order success,
                                                  memory_order failure) {
  return __atomic_compare_exchange(atomic_place(object), expected, &desired, true, success,
                                   failure);
}
template <class T>
inline bool atomic_compare_exchange_strong_explicit(volatile atomic<T>* object, T* expected,
                                                    as_given_t<T> desired, memory_order success,
                                                    memory_order failure) {
  return __atomic_compare_exchange(atomic_place(object), expected, &desired, false, success,
                                   failure);
}

// What the machine has no instruction for.
template <class T, class F>
inline T atomic_change(volatile atomic<T>* object, memory_order order, F f) {
  T old = atomic_load_explicit(object, memory_order_relaxed);
  while (
      !atomic_compare_exchange_weak_explicit(object, &old, f(old), order, memory_order_relaxed)) {
  }
  return old;
}

#define ANYMPS_ATOMIC(name, builtin, expression)                                        \
  template <class T>                                                                    \
  inline T atomic_fetch_##name##_explicit(volatile atomic<T>* object, as_given_t<T> by, \
                                          memory_order order) {                         \
    if constexpr (anymps_metal::is_int<T> && builtin != 0) {                            \
      return ANYMPS_ATOMIC_##builtin(atomic_place(object), by, order);                  \
    } else {                                                                            \
      return atomic_change(object, order, [by](T old) -> T { return expression; });     \
    }                                                                                   \
  }
#define ANYMPS_ATOMIC_0(place, by, order) T()
#define ANYMPS_ATOMIC_1(place, by, order) __atomic_fetch_add(place, by, order)
#define ANYMPS_ATOMIC_2(place, by, order) __atomic_fetch_sub(place, by, order)
#define ANYMPS_ATOMIC_3(place, by, order) __atomic_fetch_and(place, by, order)
#define ANYMPS_ATOMIC_4(place, by, order) __atomic_fetch_or(place, by, order)
#define ANYMPS_ATOMIC_5(place, by, order) __atomic_fetch_xor(place, by, order)
ANYMPS_ATOMIC(add, 1, T(old + by))
ANYMPS_ATOMIC(sub, 2, T(old - by))
ANYMPS_ATOMIC(and, 3, T(old& by))
ANYMPS_ATOMIC(or, 4, T(old | by))
ANYMPS_ATOMIC(xor, 5, T(old ^ by))
ANYMPS_ATOMIC(min, 0, anymps_metal::smaller<T>(old, by))
ANYMPS_ATOMIC(max, 0, anymps_metal::larger<T>(old, by))
template <class T>
inline void atomic_min_explicit(volatile atomic<T>* object, as_given_t<T> by, memory_order order) {
  atomic_fetch_min_explicit(object, by, order);
}
template <class T>
inline void atomic_max_explicit(volatile atomic<T>* object, as_given_t<T> by, memory_order order) {
  atomic_fetch_max_explicit(object, by, order);
}

inline void atomic_thread_fence(mem_flags, memory_order order, thread_scope = thread_scope_device) {
  __atomic_thread_fence(order);
}

}  // namespace metal

using metal::atomic_bool;
using metal::atomic_float;
using metal::atomic_int;
using metal::atomic_uint;
using metal::atomic_ulong;
