// SPDX-License-Identifier: Apache-2.0
// The part of fmt that is not in its headers, compiled into the engine: messages then do not depend
// on which libfmt a process has, nor on there being one.
#include <fmt/format-inl.h>

namespace fmt::detail {
// What format.h declares as `extern template`, or uses through declarations alone.
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl<char>(locale_ref) -> char;
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API void buffer<char>::append(const char*, const char*);
}  // namespace fmt::detail
