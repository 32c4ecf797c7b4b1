// SPDX-License-Identifier: Apache-2.0
// What the oneDNN kernels share: tensor descriptions, weights packed once, activations as post-ops,
// the choice among oneDNN's implementations, and a kernel that is a short list of primitive calls.
// Scratchpads are ours (the plan's arena), so that primitives may run on any number of threads.
#pragma once

#include <functional>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/cpu/onednn_teams.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

const dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();  // the calling thread's

std::optional<dnnl::memory::data_type> onednn_type(DType dtype);
dnnl::memory::dims onednn_dims(std::span<const int64_t> values);
// The strides of axes with one element, which say nothing, become those of a dense tensor: oneDNN
// compares them.
dnnl::memory::desc onednn_desc(const TensorDesc& desc);
// A dense tensor of [batch, channels, spatial…] with the channels innermost in memory.
dnnl::memory::desc channels_last_desc(DType dtype, const Shape& shape);

// The layout as text: equal for descriptors with equal memory.
std::string layout_key(const dnnl::memory::desc& desc);

// The same elements with the axes in another order: axis i of the result is axes[i].
TensorDesc reorder_axes(const TensorDesc& desc, std::span<const size_t> axes);
// [N, C, spatial…] from a tensor whose last axis holds the channels.
TensorDesc channels_second(const TensorDesc& desc);
// An extent above 1 with a stride of 0 or less, which oneDNN cannot read.
bool has_odd_strides(const TensorDesc& desc);

// A kernel for results without elements.
KernelPtr empty_kernel();

// `make`, with oneDNN's exceptions as refusals; halves that it refuses go through f32.
KernelFactory onednn_factory(KernelFactory make);

// Appends the activation of attribute `activation` with its two parameters.
void append_activation(dnnl::post_ops& ops, const Attrs& attrs, const char* alpha = "alpha",
                       const char* beta = "beta");
dnnl::primitive_attr onednn_attr(const dnnl::post_ops& ops);

// `make` gives oneDNN's first implementation, possibly empty. Takes the first whose name begins
// with `wanted`, else the first that is not known to be slow and whose name does not hold
// `without`, else the first.
template <typename Make>
auto find_implementation(Make make, std::string_view wanted, std::string_view without) {
  auto pd = make();
  if (!pd) return pd;
  if (!wanted.empty()) {
    do {
      if (std::string_view(pd.impl_info_str()).starts_with(wanted)) return pd;
    } while (pd.next_impl());
    pd = make();
  }
  do {
    const std::string_view name = pd.impl_info_str();
    if (name.find("gemm:") == name.npos && name.find("sse41") == name.npos &&
        name.find("ref") == name.npos && (without.empty() || name.find(without) == name.npos))
      return pd;
  } while (pd.next_impl());
  return make();
}

// The same for a primitive of `parts` parts, or of one if they would wait for each other.
template <typename Make>
auto choose_implementation(Parts& parts, Make make, std::string_view wanted = {},
                           std::string_view without = {}) {
  auto pd = find_implementation(make, wanted, without);
  if (!pd || Parts::now() == 1 || !parts_wait(pd.impl_info_str())) return pd;
  parts.become(1);
  return find_implementation(make, wanted, without);
}

// Where an argument of a primitive lies at run time.
struct Place {
  enum Kind { kNone, kInput, kOutput, kScratch, kFixed } kind = kNone;
  size_t index = 0;  // of the input or output, or the offset in the scratch memory
  void* data = nullptr;
  size_t offset = 0;  // bytes from there

  Place at(size_t bytes) const { return {kind, index, data, offset + bytes}; }
  void* resolve(const KernelArgs& args) const {
    void* const first = kind == kInput     ? args.inputs[index]
                        : kind == kOutput  ? args.outputs[index]
                        : kind == kScratch ? static_cast<char*>(args.scratch) + index
                                           : data;
    return static_cast<char*>(first) + offset;
  }
};

struct PrimitiveArg {
  int id;
  dnnl::memory::desc desc;
  Place place;
};

// Builds a kernel from primitive calls, in the order in which they are to run.
class OneDnnBuilder {
 public:
  explicit OneDnnBuilder(const KernelRequest& request)
      : request_(request), reads_(request.inputs.size(), true) {}

  // Input i, which lies as `have` says, in the layout `wanted`: itself or a copy made at each run.
  // Of a part of it, `offset` is where that begins, in bytes.
  Place read(size_t i, const TensorDesc& have, const dnnl::memory::desc& wanted, size_t offset = 0);
  // The same for weights: constants are packed now, once for all shapes and executables.
  Place read_weights(size_t i, const TensorDesc& have, const dnnl::memory::desc& wanted);
  // Constant i, written once by `fill` in the layout `wanted`; `form` tells one way from another.
  Place pack(size_t i, const std::string& form, const dnnl::memory::desc& wanted,
             const std::function<void(const std::byte* plain, void* packed)>& fill);
  // Output i: itself, or a buffer that finish() copies into it.
  Place write(size_t i, const TensorDesc& have, const dnnl::memory::desc& wanted,
              size_t offset = 0);
  Place scratch(size_t bytes);
  void call(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
            std::vector<PrimitiveArg> args);
  // Primitives that were made for one thread and do not depend on each other, side by side.
  struct Call {
    dnnl::primitive primitive;
    dnnl::memory::desc scratchpad;
    std::vector<PrimitiveArg> args;
  };
  void calls(std::vector<Call> list);
  void step(std::function<void(const KernelArgs&)> step) { steps_.push_back(std::move(step)); }
  KernelPtr finish(std::string detail);

 private:
  struct Pending {
    Place output;
    TensorDesc have;
    dnnl::memory::desc from;
    Place place;
  };
  void copy(const TensorDesc& have, const dnnl::memory::desc& have_desc, Place from,
            const dnnl::memory::desc& to_desc, Place to);

  const KernelRequest& request_;
  std::vector<std::function<void(const KernelArgs&)>> steps_;
  std::vector<Pending> pending_;
  std::vector<BufferRef> keep_;
  std::vector<bool> reads_;
  size_t scratch_bytes_ = 0;
};

}  // namespace anymps::cpu
