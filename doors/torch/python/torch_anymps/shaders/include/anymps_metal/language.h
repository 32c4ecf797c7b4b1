// SPDX-License-Identifier: Apache-2.0
// Words of the language that are no C++. Included last: the library's own headers are C++ and use
// none of them.
#pragma once

// There is one address space; `constant` still keeps its meaning that nothing is written there.
#define device
#define thread
#define threadgroup
#define constant const
#define threadgroup_imageblock
#define object_data
#define ray_data
#define vertex static inline
#define fragment static inline
#define visible
#define restrict __restrict

// compile_shader has no way to set function constants, here as on a Mac.
#define is_function_constant_defined(name) (false)

// Metal has no double; a shader that uses it would not compile on a Mac.
#define double anymps_double_is_not_supported_in_metal
