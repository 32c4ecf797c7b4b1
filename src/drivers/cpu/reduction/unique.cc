// SPDX-License-Identifier: Apache-2.0
// unique on the CPU: sorted pairs of an element and its place; and unique_consecutive.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "semantics/unique.h"

namespace anymps::cpu {

namespace {

KernelPtr make_unique(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (!x.contiguous()) return refuse(why, "x is not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (!output.contiguous()) return refuse(why, "an output is not contiguous");
  const int64_t axis = unique_axis(request.attrs.ints("axes"), x.rank());
  int64_t outer = 1, run = static_cast<int64_t>(size_of(x.dtype)), slices = x.count();
  if (axis >= 0) {
    slices = x.shape[axis];
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != axis) (i < axis ? outer : run) *= x.shape[i];
  }
  const bool changes = request.op->name == "unique_consecutive";
  const bool numbers = axis < 0 && contains(kAny, x.dtype);
  const bool sorted = !changes && request.attrs.b("sorted");
  const int64_t room = request.out().shape[std::max<int64_t>(axis, 0)];
  return make_kernel([=, outputs = request.outputs.size()](const KernelArgs& args) {
    const Distinct distinct = changes   ? find_changes(x, args.inputs[0], axis)
                              : numbers ? find_distinct_numbers(x, args.inputs[0], sorted)
                                        : find_distinct(x, args.inputs[0], axis, sorted);
    const auto count = std::ssize(distinct.first);
    require(count == room, "[unique] there are {} distinct ones, the output has room for {}", count,
            room);
    parallel_for(
        0, outer * count, 3 + 0.1 * static_cast<double>(run), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t slice = distinct.first[i % count];
            std::memcpy(
                static_cast<char*>(args.outputs[0]) + i * run,
                static_cast<const char*>(args.inputs[0]) + (i / count * slices + slice) * run, run);
          }
        });
    const std::vector<int64_t>* lists[] = {&distinct.first, &distinct.inverse, &distinct.counts};
    for (size_t i = 1; i < outputs; ++i)
      std::copy(lists[i - 1]->begin(), lists[i - 1]->end(), static_cast<int64_t*>(args.outputs[i]));
  });
}

const KernelRegistrar kConsecutive("cpu", "unique_consecutive", "pairs", 10, make_unique);
const KernelRegistrar kUnique("cpu", "unique", "pairs", 10, make_unique);

}  // namespace

}  // namespace anymps::cpu
