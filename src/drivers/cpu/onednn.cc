// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/onednn.h"

#include <array>
#include <atomic>
#include <cstdlib>

#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/packing/weight_packing.h"
#include "drivers/cpu/onednn_teams.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "semantics/fused_activation.h"

namespace anymps::cpu {

namespace {

using dnnl::memory;

constexpr size_t kAlignment = 64;
constexpr int kPrimitives = 128;

bool same_places(const TensorDesc& have, const memory::desc& wanted) {
  if (onednn_type(have.dtype) != wanted.get_data_type() || wanted.get_inner_nblks() != 0 ||
      wanted.get_padded_dims() != wanted.get_dims())
    return false;
  const memory::dims dims = wanted.get_dims(), strides = wanted.get_strides();
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && strides[i] != have.strides[i]) return false;
  return true;
}

// A primitive and its arguments. Memory objects hold the pointers of one run, so each concurrent
// run needs its own set; finished runs leave theirs for the next.
class PrimitiveCall {
 public:
  PrimitiveCall(dnnl::primitive primitive, std::vector<PrimitiveArg> args)
      : primitive_(std::move(primitive)), args_(std::move(args)), parts_(Parts::now()) {}
  ~PrimitiveCall() {
    for (auto& slot : spare_) delete slot.load();
  }

  void run(const KernelArgs& args) const {
    static std::atomic<size_t> threads{0};
    thread_local const size_t slot = threads.fetch_add(1) % kSlots;
    Set* set = spare_[slot].exchange(nullptr, std::memory_order_acquire);
    if (!set) set = make_set();
    for (size_t i = 0; i < args_.size(); ++i)
      if (args_[i].place.kind != Place::kFixed)
        dnnl_memory_set_data_handle(set->args[i].memory, args_[i].place.resolve(args));
    const Parts parts(parts_);
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), onednn_stream().get(),
                               static_cast<int>(set->args.size()), set->args.data());
    delete spare_[slot].exchange(set, std::memory_order_release);
    if (status != dnnl_success)
      fail(Code::kInternal, "[onednn] a primitive failed with status {}", static_cast<int>(status));
  }

 private:
  static constexpr size_t kSlots = 4;
  struct Set {
    std::vector<memory> memories;
    std::vector<dnnl_exec_arg_t> args;
  };

  Set* make_set() const {
    auto set = std::make_unique<Set>();
    for (const PrimitiveArg& arg : args_) {
      set->memories.emplace_back(arg.desc, onednn_engine(), arg.place.data);
      set->args.push_back({arg.id, set->memories.back().get()});
    }
    return set.release();
  }

  dnnl::primitive primitive_;
  std::vector<PrimitiveArg> args_;
  int parts_;  // that it was made for
  mutable std::array<std::atomic<Set*>, kSlots> spare_{};
};

class OneDnnKernel final : public Kernel {
 public:
  OneDnnKernel(std::vector<std::function<void(const KernelArgs&)>> steps,
               std::vector<BufferRef> keep, std::vector<bool> reads, size_t scratch_bytes,
               std::string detail)
      : steps_(std::move(steps)),
        keep_(std::move(keep)),
        reads_(std::move(reads)),
        scratch_bytes_(scratch_bytes),
        detail_(std::move(detail)) {}

  void run(const KernelArgs& args) const override {
    for (const auto& step : steps_) step(args);
  }
  size_t scratch_bytes() const override { return scratch_bytes_; }
  bool reads(size_t i) const override { return i >= reads_.size() || reads_[i]; }
  std::string detail() const override { return detail_; }

 private:
  std::vector<std::function<void(const KernelArgs&)>> steps_;
  std::vector<BufferRef> keep_;
  std::vector<bool> reads_;
  size_t scratch_bytes_;
  std::string detail_;
};

}  // namespace

std::string layout_key(const memory::desc& desc) {
  return fmt::format("{}|{}|{}|{}|{}|{}", static_cast<int>(desc.get_data_type()),
                     fmt::join(desc.get_dims(), ","), fmt::join(desc.get_padded_dims(), ","),
                     fmt::join(desc.get_strides(), ","), fmt::join(desc.get_inner_blks(), ","),
                     fmt::join(desc.get_inner_idxs(), ","));
}

const dnnl::engine& onednn_engine() {
  // Never destroyed: a stream may compute while the process ends.
  static const dnnl::engine& engine = *new dnnl::engine([] {
    use_onednn_teams();
    isa();  // caps oneDNN's instruction set before its first primitive
    // Our caches keep kernels; oneDNN's own (1024 primitives, some 75 KB each) only serves equal
    // nodes of one graph.
    if (!std::getenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY"))
      dnnl::set_primitive_cache_capacity(kPrimitives);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }());
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

std::optional<memory::data_type> onednn_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return memory::data_type::f32;
    case DType::kF16:
      return memory::data_type::f16;
    case DType::kBF16:
      return memory::data_type::bf16;
    default:
      return std::nullopt;
  }
}

memory::dims onednn_dims(std::span<const int64_t> values) { return {values.begin(), values.end()}; }

memory::desc onednn_desc(const TensorDesc& desc) {
  memory::dims strides(desc.strides.begin(), desc.strides.end());
  for (size_t i = strides.size(); i-- > 0;)
    if (desc.shape[i] == 1)
      strides[i] = i + 1 == strides.size() ? 1 : strides[i + 1] * desc.shape[i + 1];
  return {onednn_dims(desc.shape), *onednn_type(desc.dtype), strides};
}

memory::desc channels_last_desc(DType dtype, const Shape& shape) {
  memory::dims strides(shape.size());
  strides[1] = 1;
  int64_t step = shape[1];
  for (size_t i = shape.size(); i-- > 2;) {
    strides[i] = step;
    step *= shape[i];
  }
  strides[0] = step;
  return {onednn_dims(shape), *onednn_type(dtype), strides};
}

TensorDesc reorder_axes(const TensorDesc& desc, std::span<const size_t> axes) {
  TensorDesc result;
  result.dtype = desc.dtype;
  for (const size_t axis : axes) {
    result.shape.push_back(desc.shape[axis]);
    result.strides.push_back(desc.strides[axis]);
  }
  return result;
}

TensorDesc channels_second(const TensorDesc& desc) {
  std::vector<size_t> axes{0, desc.shape.size() - 1};
  for (size_t i = 1; i + 1 < desc.shape.size(); ++i) axes.push_back(i);
  return reorder_axes(desc, axes);
}

bool has_odd_strides(const TensorDesc& desc) {
  for (size_t i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] > 1 && desc.strides[i] <= 0) return true;
  return false;
}

KernelPtr empty_kernel() {
  return make_kernel([](const KernelArgs&) {});
}

KernelFactory onednn_factory(KernelFactory make) {
  auto caught = [make = std::move(make)](const KernelRequest& request,
                                         std::string& why) -> KernelPtr {
    try {
      return make(request, why);
    } catch (const dnnl::error& error) {
      return refuse(why, error.what());
    } catch (const Error& error) {
      if (error.code() != Code::kUnsupported) throw;
      return refuse(why, error.what());
    }
  };
  return [caught](const KernelRequest& request, std::string& why) -> KernelPtr {
    KernelPtr kernel = caught(request, why);
    if (kernel || !is_half(request.in(0).dtype)) return kernel;
    return widened(request, caught, why);
  };
}

void append_activation(dnnl::post_ops& ops, const Attrs& attrs, const char* alpha_name,
                       const char* beta_name) {
  using dnnl::algorithm;
  const auto alpha = static_cast<float>(attrs.f(alpha_name));
  const auto beta = static_cast<float>(attrs.f(beta_name));
  switch (parse_activation(attrs.s("activation"))) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
    case Activation::kClamp:
      return ops.append_eltwise(algorithm::eltwise_clip, alpha, beta);
    case Activation::kLeakyRelu:
      return ops.append_eltwise(algorithm::eltwise_relu, alpha, 0);
    case Activation::kElu:
      return ops.append_eltwise(algorithm::eltwise_elu, alpha, 0);
    case Activation::kGelu:
      return ops.append_eltwise(algorithm::eltwise_gelu_erf, 0, 0);
    case Activation::kGeluTanh:
      return ops.append_eltwise(algorithm::eltwise_gelu_tanh, 0, 0);
    case Activation::kSilu:
      return ops.append_eltwise(algorithm::eltwise_swish, 1, 0);
    case Activation::kSigmoid:
      return ops.append_eltwise(algorithm::eltwise_logistic, 0, 0);
    case Activation::kTanh:
      return ops.append_eltwise(algorithm::eltwise_tanh, 0, 0);
    case Activation::kHardSwish:
      return ops.append_eltwise(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    case Activation::kHardSigmoid:
      return ops.append_eltwise(algorithm::eltwise_hardsigmoid, alpha, beta);
  }
}

dnnl::primitive_attr onednn_attr(const dnnl::post_ops& ops) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(ops);
  return attr;
}

Place OneDnnBuilder::scratch(size_t bytes) {
  const size_t at = scratch_bytes_;
  scratch_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return {Place::kScratch, at, nullptr};
}

void OneDnnBuilder::call(const dnnl::primitive& primitive, const memory::desc& scratchpad,
                         std::vector<PrimitiveArg> args) {
  calls({{primitive, scratchpad, std::move(args)}});
}

void OneDnnBuilder::calls(std::vector<Call> list) {
  std::vector<std::shared_ptr<const PrimitiveCall>> made;
  for (Call& item : list) {
    if (const size_t bytes = item.scratchpad.get_size(); bytes > 0)
      item.args.push_back({DNNL_ARG_SCRATCHPAD, item.scratchpad, scratch(bytes)});
    made.push_back(std::make_shared<const PrimitiveCall>(item.primitive, std::move(item.args)));
  }
  if (made.size() == 1) return step([call = made[0]](const KernelArgs& run) { call->run(run); });
  step([made = std::move(made)](const KernelArgs& run) {
    parallel_calls(made.size(), current_threads(), [&](size_t i) { made[i]->run(run); });
  });
}

void OneDnnBuilder::copy(const TensorDesc& have, const memory::desc& have_desc, Place from,
                         const memory::desc& to_desc, Place to) {
  const dnnl::engine& engine = onednn_engine();
  const dnnl::reorder::primitive_desc pd(engine, have_desc, engine, to_desc, onednn_attr({}), true);
  if (!pd) fail(Code::kUnsupported, "oneDNN cannot reorder {}", to_string(have));
  call(dnnl::reorder(pd), pd.scratchpad_desc(),
       {{DNNL_ARG_FROM, have_desc, from}, {DNNL_ARG_TO, to_desc, to}});
}

Place OneDnnBuilder::read(size_t i, const TensorDesc& have, const memory::desc& wanted,
                          size_t offset) {
  const Place input{Place::kInput, i, nullptr, offset};
  if (same_places(have, wanted)) return input;
  const Place place = scratch(wanted.get_size());
  copy(have, onednn_desc(have), input, wanted, place);
  return place;
}

Place OneDnnBuilder::read_weights(size_t i, const TensorDesc& have, const memory::desc& wanted) {
  const Constant* constant = request_.constant(i);
  if (!constant || !request_.packed || same_places(have, wanted)) return read(i, have, wanted);
  const memory::desc plain = onednn_desc(have);
  return pack(i, layout_key(plain), wanted, [&](const std::byte* from, void* to) {
    if (can_pack_weights(plain, wanted)) {
      pack_weights(plain, reinterpret_cast<const float*>(from), wanted, static_cast<float*>(to));
      return;
    }
    memory source(plain, onednn_engine(), const_cast<std::byte*>(from));
    memory target(wanted, onednn_engine(), to);
    dnnl::reorder(source, target).execute(onednn_stream(), source, target);
    onednn_stream().wait();
  });
}

Place OneDnnBuilder::pack(size_t i, const std::string& form, const memory::desc& wanted,
                          const std::function<void(const std::byte*, void*)>& fill) {
  const std::string layout = "onednn " + request_.op->name + " " + form + " " + layout_key(wanted);
  BufferRef packed = request_.packed->get(*request_.constant(i), layout, wanted.get_size(), fill);
  reads_[i] = false;
  keep_.push_back(packed);
  return {Place::kFixed, 0, packed->data()};
}

Place OneDnnBuilder::write(size_t i, const TensorDesc& have, const memory::desc& wanted,
                           size_t offset) {
  const Place output{Place::kOutput, i, nullptr, offset};
  if (same_places(have, wanted)) return output;
  const Place place = scratch(wanted.get_size());
  pending_.push_back({output, have, wanted, place});
  return place;
}

KernelPtr OneDnnBuilder::finish(std::string detail) {
  for (const Pending& pending : pending_)
    copy(pending.have, pending.from, pending.place, onednn_desc(pending.have), pending.output);
  return std::make_shared<OneDnnKernel>(std::move(steps_), std::move(keep_), std::move(reads_),
                                        scratch_bytes_, std::move(detail));
}

}  // namespace anymps::cpu
