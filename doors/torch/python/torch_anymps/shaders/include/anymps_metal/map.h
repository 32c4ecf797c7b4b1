// SPDX-License-Identifier: Apache-2.0
// How a function of scalars becomes one of scalars, vectors, packed vectors and swizzles in any
// mixture: a scalar beside a vector stands for each of its components, and the vector's type is the
// result's.
#pragma once
#include "traits.h"

namespace anymps_metal {

template <class... A>
inline constexpr int widest = 0;
template <class A, class... More>
inline constexpr int widest<A, More...> =
    width_of<A> > widest<More...> ? width_of<A> : widest<More...>;

// The element in which all meet.
template <bool Vectors, class... A>
struct meeting {
  using type = void;
};
template <bool Vectors, class A, class... More>
struct meeting<Vectors, A, More...> {
  using rest = typename meeting<Vectors, More...>::type;
  static constexpr bool counts = !Vectors || width_of<A> != 0;
  template <bool Both, class B>
  struct join {
    using type = conditional_t<counts, element_of<A>, B>;
  };
  template <class B>
  struct join<true, B> : common<element_of<A>, B> {};
  using type = typename join<counts && !same<rest, void>, rest>::type;
};
template <class... A>
using element_type = typename meeting<(widest<A...> > 0), A...>::type;
template <class... A>
using real_type = conditional_t<is_int<element_type<A...>>, float, element_type<A...>>;
template <class... A>
inline constexpr bool numbers = (is_number<element_of<A>> && ...);
template <class... A>
inline constexpr bool integers = (is_int<element_of<A>> && ...);

template <class A>
inline element_of<A> lane(const A& a, int at) {
  if constexpr (width_of<A> == 0)
    return a;
  else
    return a.data[at];
}

template <class R, int W, class F, class... A>
inline vector_or_scalar<R, W> map_values(F f, const A&... a) {
  if constexpr (W == 0) {
    return static_cast<R>(f(a...));
  } else {
    vec<R, W> r;
    for (int i = 0; i < W; ++i) r.data[i] = static_cast<R>(f(lane(a, i)...));
    return r;
  }
}

// f takes the result's type R (or what it converts to) for every argument.
template <class R, class F, class... A>
inline auto map(F f, const A&... a) {
  return map_values<R, widest<A...>>(f, static_cast<value_of<A>>(a)...);
}

}  // namespace anymps_metal

// A function in namespace metal that is also precise:: and fast::.
#define ANYMPS_ALSO_PRECISE(name) \
  namespace metal {               \
  namespace precise {             \
  using ::metal::name;            \
  }                               \
  namespace fast {                \
  using ::metal::name;            \
  }                               \
  }

// name(a): computed as float, rounded to the argument's type.
#define ANYMPS_REAL1(name, expression)                                            \
  namespace metal {                                                               \
  template <class A, class = anymps_metal::enable_if_t<anymps_metal::numbers<A>>> \
  inline auto name(const A& a) {                                                  \
    using R = anymps_metal::real_type<A>;                                         \
    return anymps_metal::map<R>([](float x) { return expression; }, a);           \
  }                                                                               \
  }                                                                               \
  ANYMPS_ALSO_PRECISE(name)
#define ANYMPS_REAL2(name, expression)                                                        \
  namespace metal {                                                                           \
  template <class A, class B, class = anymps_metal::enable_if_t<anymps_metal::numbers<A, B>>> \
  inline auto name(const A& a, const B& b) {                                                  \
    using R = anymps_metal::real_type<A, B>;                                                  \
    return anymps_metal::map<R>([](float x, float y) { return expression; }, a, b);           \
  }                                                                                           \
  }                                                                                           \
  ANYMPS_ALSO_PRECISE(name)
#define ANYMPS_REAL3(name, expression)                                                          \
  namespace metal {                                                                             \
  template <class A, class B, class C,                                                          \
            class = anymps_metal::enable_if_t<anymps_metal::numbers<A, B, C>>>                  \
  inline auto name(const A& a, const B& b, const C& c) {                                        \
    using R = anymps_metal::real_type<A, B, C>;                                                 \
    return anymps_metal::map<R>([](float x, float y, float z) { return expression; }, a, b, c); \
  }                                                                                             \
  }                                                                                             \
  ANYMPS_ALSO_PRECISE(name)

// Functions of integers and of real numbers, computed in the type R in which the arguments meet.
#define ANYMPS_ANY1(name, condition, ...)                             \
  namespace metal {                                                   \
  template <class A, class = anymps_metal::enable_if_t<condition<A>>> \
  inline auto name(const A& a) {                                      \
    using R = anymps_metal::element_type<A>;                          \
    return anymps_metal::map<R>([](R x) -> R { __VA_ARGS__ }, a);     \
  }                                                                   \
  }
#define ANYMPS_ANY2(name, condition, ...)                                         \
  namespace metal {                                                               \
  template <class A, class B, class = anymps_metal::enable_if_t<condition<A, B>>> \
  inline auto name(const A& a, const B& b) {                                      \
    using R = anymps_metal::element_type<A, B>;                                   \
    return anymps_metal::map<R>([](R x, R y) -> R { __VA_ARGS__ }, a, b);         \
  }                                                                               \
  }
#define ANYMPS_ANY3(name, condition, ...)                                                     \
  namespace metal {                                                                           \
  template <class A, class B, class C, class = anymps_metal::enable_if_t<condition<A, B, C>>> \
  inline auto name(const A& a, const B& b, const C& c) {                                      \
    using R = anymps_metal::element_type<A, B, C>;                                            \
    return anymps_metal::map<R>([](R x, R y, R z) -> R { __VA_ARGS__ }, a, b, c);             \
  }                                                                                           \
  }
// name(a): a question about a number, answered with bool or a vector of bool.
#define ANYMPS_TEST1(name, expression)                                            \
  namespace metal {                                                               \
  template <class A, class = anymps_metal::enable_if_t<anymps_metal::numbers<A>>> \
  inline auto name(const A& a) {                                                  \
    return anymps_metal::map<bool>([](float x) { return expression; }, a);        \
  }                                                                               \
  }
