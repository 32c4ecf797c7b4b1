// SPDX-License-Identifier: Apache-2.0
// Rules that the records of the shape ops share: products of symbolic extents, lists of axes, the
// ranges of a slice, and the strides of a reshaped view.
#pragma once

#include <optional>
#include <vector>

#include "base/dim.h"
#include "ops/infer.h"

namespace anymps {

// Maps axes in [-rank, rank) to [0, rank), in the order given; fails when one comes twice.
std::vector<int64_t> normalize_axes(const std::vector<int64_t>& axes, int64_t rank,
                                    const char* who);

// The product of extents with its symbols in a fixed order, so that equal products compare equal.
Dim ordered_product(const Dims& dims);
// product(total) / product(part): equal factors cancel, even unknown or zero ones. `exact` tells
// whether the division is known to leave no remainder.
struct Quotient {
  Dim value;
  bool exact = true;
};
Quotient quotient(const Dims& total, const Dims& part, const char* who);

// Strides with which the elements of `from` are seen, in row-major order, under the shape `to`;
// nothing when no strides do. Both have the same number of elements.
std::optional<Strides> reshape_strides(const TensorDesc& from, const Shape& to);

// One axis of a slice: elements start, start + step, … (length of them, each inside the axis).
struct SliceRange {
  int64_t start = 0, step = 1, length = 0;
};
// NumPy's clamping. `axes` empty means 0, 1, …; `steps` empty means 1. One range for each axis of
// `shape`.
std::vector<SliceRange> slice_ranges(const Shape& shape, const std::vector<int64_t>& starts,
                                     const std::vector<int64_t>& ends,
                                     const std::vector<int64_t>& axes,
                                     const std::vector<int64_t>& steps, const char* who);

// A part of the records of ops on such ranges: starts, ends, axes and steps, inputs or attributes.
OpWriter& slice_range(OpWriter& op);

// The same numbers as `values`, if they are all known.
std::optional<std::vector<int64_t>> numbers(const std::optional<Dims>& values);

// The integers a view depends on: input i's elements if it is there, else the attribute; nothing
// while the elements are not known.
std::optional<std::vector<int64_t>> view_ints(const ViewContext& ctx, size_t i, const char* attr);

// Sets an output of a view-like op: its shape and, by way of the op's view, the content that it
// takes from input 0.
void set_view(InferContext& ctx, size_t output, Dims shape);

// When the shape given by input i is not known yet: fresh dims if its length is, else unranked.
void set_fresh_shape(InferContext& ctx, size_t i, std::optional<DType> dtype = std::nullopt);

// The shape that all inputs have. Along `axis`, if one is given, extents may differ and are added.
Dims common_shape(InferContext& ctx, std::optional<size_t> axis = std::nullopt);

// Two extents that must be equal; the known one if there is one. Fails naming the op.
Dim same_extent(InferContext& ctx, const Dim& a, const Dim& b, const char* what, int64_t axis);

}  // namespace anymps
