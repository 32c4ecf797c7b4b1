// SPDX-License-Identifier: Apache-2.0
// Products with weights as a framework has them: in its memory, not constant, for all the engine
// knows; and with versions, by which it knows that they have not changed.
#include <deque>

#include "cases.h"

namespace bench {

namespace {

Case layer(const std::string& name, const char* op, std::vector<Attr> attrs, at::Tensor x,
           at::Tensor w, bool known, const std::function<at::Tensor()>& torch) {
  static std::deque<std::string> names;
  const Call call(op, std::move(attrs));
  const at::Tensor z = torch();
  at::Tensor y = at::empty_like(z);
  return {names.emplace_back(name + (known ? ", known weights" : "")).c_str(),
          [=] {
            const amps_view in[] = {view_of(x), view_of(w)}, out = view_of(y);
            const uint64_t versions[] = {0, known ? uint64_t{1} : 0};
            check(api->call_run_versions(call.get(), in, 2, versions, nullptr, &out, 1, nullptr));
          },
          [=] { torch(); },
          {{y, z}}};
}

}  // namespace

void add_layers(const AddCase& add) {
  static const std::vector<int64_t> none = {0, 0, 0, 0}, ones = {1, 1, 1, 1};
  for (const bool known : {false, true}) {
    for (const int64_t rows : {1, 8, 64})
      add([=] {
        const at::Tensor x = random({rows, 768}), w = random({3072, 768}).t();
        return layer("linear layer, " + std::to_string(rows) + "x768 to 3072", "matmul", {}, x, w,
                     known, [=] { return at::mm(x, w); });
      });
    for (const int64_t extent : {1, 3})
      add([=] {
        const int64_t pad = extent / 2;
        const at::Tensor x = random({1, 256, 14, 14}),
                         w = random({256, 256, extent, extent}).mul(0.02);
        const std::string size = std::to_string(extent);
        return layer("convolution " + size + "x" + size + ", 256 channels, 14x14", "conv",
                     {Attr("pads", pad ? ones : none)}, x, w, known,
                     [=] { return at::conv2d(x, w, {}, 1, pad); });
      });
  }
}

}  // namespace bench
