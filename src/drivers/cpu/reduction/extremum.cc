// SPDX-License-Identifier: Apache-2.0
// The greatest or lowest element along an axis and its place: arg_max, max_with_indices and their
// counterparts. Lines that are dense are searched one by one, others many side by side, in the
// order in which memory lies.
#include "drivers/cpu/common/row_ops.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/reduction/extremum_simd.h"
#include "drivers/cpu/reduction/picked_lines.h"
#include "drivers/cpu/threads.h"
#include "semantics/sort_items.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kColumns = kExtremumColumns;  // lines side by side

template <typename T, bool max>
bool wins(Compute<T> a, Compute<T> b) {
  if constexpr (std::is_integral_v<T>) return max ? a > b : a < b;
  return static_cast<bool>(static_cast<int>(max ? a > b : a < b) |
                           (static_cast<int>(a != a) & static_cast<int>(b == b)));
}

// Bool memory that others filled may hold more than 0 and 1.
template <typename T>
Compute<T> element(const T* x) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const uint8_t*>(x) != 0;
  else
    return static_cast<Compute<T>>(*x);
}

template <typename T, bool max>
int64_t search_line(const T* x, int64_t n, int64_t step, bool last) {
  if constexpr (contains(kVectorReduction, dtype_of<T>)) {
    static const FindExtremum find = find_extremum_code(dtype_of<T>, max);
    if (step == 1 && !last) return find(x, n);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (step == 1) {
      const float best = (max ? row_ops().max : row_ops().min)(x, static_cast<size_t>(n));
      const auto hit = [&](int64_t i) { return x[i] == best || (best != best && x[i] != x[i]); };
      int64_t i = last ? n - 1 : 0;
      while (!hit(i)) i += last ? -1 : 1;
      return i;
    }
  }
  int64_t at = 0;
  Compute<T> best = element(x);
  for (int64_t i = 1; i < n; ++i) {
    const Compute<T> value = element(x + i * step);
    if (wins<T, max>(value, best) || (last && !wins<T, max>(best, value))) at = i, best = value;
  }
  return at;
}

// Places of the extrema of `columns` lines that begin at x[0], x[1], …
template <typename T, bool max>
void search_columns(const T* x, int64_t columns, int64_t n, int64_t step, bool last,
                    int32_t* places) {
  Compute<T> best[kColumns];
  for (int64_t c = 0; c < columns; ++c) best[c] = element(x + c), places[c] = 0;
  for (int64_t i = 1; i < n; ++i) {
    const T* row = x + i * step;
    const auto at = static_cast<int32_t>(i);
    if (last) {
      for (int64_t c = 0; c < columns; ++c) {
        const Compute<T> value = element(row + c);
        if (!wins<T, max>(best[c], value)) best[c] = value, places[c] = at;
      }
      continue;
    }
    for (int64_t c = 0; c < columns; ++c) {
      const Compute<T> value = element(row + c);
      const bool better = wins<T, max>(value, best[c]);
      best[c] = better ? value : best[c];
      places[c] = better ? at : places[c];
    }
  }
}

struct Results {
  int values = -1, indices = 0;  // which output; -1: not asked for
  bool last = false;
};

// What was found for `count` lines side by side from the `first` on.
template <typename T>
void write_columns(const KernelArgs& args, const Results& results, const Loops& kept, const T* x,
                   int64_t step, const int32_t* places, int64_t first, int64_t count) {
  const auto start = [&](int output) { return kept.offset(1 + output, first); };
  if (results.values >= 0) {
    T* y = static_cast<T*>(args.outputs[results.values]) + start(results.values);
    const int64_t y_step = kept.strides[1 + results.values].back();
    for (int64_t c = 0; c < count; ++c) y[c * y_step] = x[c + places[c] * step];
  }
  auto* y = static_cast<int64_t*>(args.outputs[results.indices]) + start(results.indices);
  const int64_t y_step = kept.strides[1 + results.indices].back();
  for (int64_t c = 0; c < count; ++c) y[c * y_step] = places[c];
}

// Short dense lines, of which only the places are asked for.
template <bool max>
KernelPtr make_short_lines(const PickedLines& lines, int output) {
  return make_kernel([=, find = find_in_rows_code(max)](const KernelArgs& args) {
    parallel_for(
        0, lines.kept.count(), 5 + 0.2 * static_cast<double>(lines.length),
        [&](int64_t begin, int64_t end) {
          const Loops& kept = lines.kept;
          kept.for_lines(begin, end, [&](int64_t first, int64_t rows) {
            find(static_cast<const float*>(args.inputs[0]) + kept.offset(0, first),
                 kept.last_step(0), rows, lines.length,
                 static_cast<int64_t*>(args.outputs[output]) + kept.offset(1 + output, first),
                 kept.last_step(1 + output));
          });
        });
  });
}

template <typename T, bool max>
KernelPtr make_typed(const PickedLines& lines, const Results& results) {
  const Loops& kept = lines.kept;
  const bool columns = !kept.extents.empty() && kept.strides[0].back() == 1 && lines.step != 1 &&
                       kept.extents.back() > 1 && lines.length < kLongestLine;
  const auto write = [results, kept](const KernelArgs& args, const T* value, int64_t place,
                                     int64_t line) {
    if (results.values >= 0)
      static_cast<T*>(args.outputs[results.values])[kept.offset(1 + results.values, line)] = *value;
    static_cast<int64_t*>(args.outputs[results.indices])[kept.offset(1 + results.indices, line)] =
        place;
  };
  const double ns = 10 + static_cast<double>(lines.length);
  if constexpr (std::is_same_v<T, float>)
    if (!columns && lines.step == 1 && lines.length <= kShortLine && !results.last &&
        results.values < 0)
      return make_short_lines<max>(lines, results.indices);
  if (!columns)
    return make_kernel([=](const KernelArgs& args) {
      parallel_for(0, lines.kept.count(), ns, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* x = static_cast<const T*>(args.inputs[0]) + lines.kept.offset(0, r);
          const int64_t at = search_line<T, max>(x, lines.length, lines.step, results.last);
          write(args, x + at * lines.step, at, r);
        }
      });
    });
  const FindColumns find = find_columns_code(dtype_of<T>, max, results.last);
  const int64_t width = kept.extents.back(), blocks = (width + kColumns - 1) / kColumns;
  return make_kernel([=](const KernelArgs& args) {
    parallel_for(
        0, lines.kept.count() / width * blocks, 0.2 * ns * kColumns,
        [&](int64_t begin, int64_t end) {
          int32_t places[kColumns];
          for (int64_t b = begin; b < end; ++b) {
            const int64_t first = b / blocks * width + b % blocks * kColumns;
            const int64_t count = std::min(kColumns, width - b % blocks * kColumns);
            const T* x = static_cast<const T*>(args.inputs[0]) + lines.kept.offset(0, first);
            const int64_t done = find ? find(x, count, lines.length, lines.step, places) : 0;
            search_columns<T, max>(x + done, count - done, lines.length, lines.step, results.last,
                                   places + done);
            write_columns(args, results, kept, x, lines.step, places, first, count);
          }
        });
  });
}

template <DTypeSet allowed, bool max>
KernelPtr make_extremum(const KernelRequest& request, const Results& results) {
  const PickedLines lines = picked_lines(request);
  return dispatch<allowed>(request.in(0).dtype,
                           [&]<typename T>() { return make_typed<T, max>(lines, results); });
}

template <bool max>
KernelPtr make_arg(const KernelRequest& request, std::string&) {
  return make_extremum<kReal, max>(request, {-1, 0, request.attrs.b("select_last")});
}
template <bool max>
KernelPtr make_with_indices(const KernelRequest& request, std::string&) {
  return make_extremum<kReal | kBoolean, max>(request, {0, 1, false});
}

const KernelFamily kExtremum("simd", 10,
                             {{"arg_max", make_arg<true>},
                              {"arg_min", make_arg<false>},
                              {"max_with_indices", make_with_indices<true>},
                              {"min_with_indices", make_with_indices<false>}});

}  // namespace

}  // namespace anymps::cpu
