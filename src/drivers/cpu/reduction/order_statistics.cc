// SPDX-License-Identifier: Apache-2.0
// median, kth_value and mode on the CPU: the keys of a line are put in order as far as needed.
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/reduction/picked_lines.h"
#include "drivers/cpu/threads.h"
#include "semantics/sort_items.h"

namespace anymps::cpu {

namespace {

template <typename T>
struct Line {
  const T* x;
  int64_t n, step;
  ItemOf<T>* items;  // room for 2 n

  int64_t nth(int64_t count, int64_t place) const {
    std::nth_element(items, items + place, items + count);
    return items[place].at();
  }
};

template <typename T>
int64_t median_of(const Line<T>& line, bool skip_nan) {
  int64_t numbers = 0;
  for (int64_t i = 0; i < line.n; ++i) {
    const T element = line.x[i * line.step];
    if (is_nan_element(element)) {
      if (!skip_nan) return i;
      continue;
    }
    line.items[numbers++] = ItemOf<T>::of(key_of(element), i);
  }
  return numbers == 0 ? 0 : line.nth(numbers, (numbers - 1) / 2);
}

template <typename T>
int64_t kth_of(const Line<T>& line, int64_t k) {
  read_items(line.items, line.x, line.n, line.step, false);
  return line.nth(line.n, k - 1);
}

template <typename T>
int64_t mode_of(const Line<T>& line) {
  read_items(line.items, line.x, line.n, line.step, false);
  const ItemOf<T>* items = sort_items(line.items, line.items + line.n, line.n);
  int64_t best = items[0].at(), most = 0, run = 0;
  for (int64_t i = 0; i < line.n; ++i) {
    const bool again = i > 0 && items[i].key() == items[i - 1].key() &&
                       !is_nan_element(line.x[items[i].at() * line.step]);
    run = again ? run + 1 : 1;
    if (run > most) best = items[i].at(), most = run;
  }
  return best;
}

// `Choose` gives the place of a line's element.
template <typename Choose>
KernelPtr make_choice(const KernelRequest& request, std::string& why, const Choose& choose) {
  const PickedLines lines = picked_lines(request);
  if (lines.length >= kLongestLine) return refuse(why, "the lines are too long");
  return dispatch<kReal | kBoolean>(request.in(0).dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      const double ns = 10 + 8 * static_cast<double>(lines.length);
      parallel_for(0, lines.kept.count(), ns, [&](int64_t begin, int64_t end) {
        const auto items = std::make_unique_for_overwrite<ItemOf<T>[]>(2 * lines.length);
        for (int64_t r = begin; r < end; ++r) {
          const T* x = static_cast<const T*>(args.inputs[0]) + lines.kept.offset(0, r);
          const int64_t at = choose(Line<T>{x, lines.length, lines.step, items.get()});
          static_cast<T*>(args.outputs[0])[lines.kept.offset(1, r)] = x[at * lines.step];
          static_cast<int64_t*>(args.outputs[1])[lines.kept.offset(2, r)] = at;
        }
      });
    });
  });
}

CPU_KERNEL(median, "keys") {
  return make_choice(request, why, [skip = request.attrs.b("skip_nan")](const auto& line) {
    return median_of(line, skip);
  });
}
CPU_KERNEL(kth_value, "keys") {
  return make_choice(request, why,
                     [k = request.attrs.i("k")](const auto& line) { return kth_of(line, k); });
}
CPU_KERNEL(mode, "keys") {
  return make_choice(request, why, [](const auto& line) { return mode_of(line); });
}

}  // namespace

}  // namespace anymps::cpu
