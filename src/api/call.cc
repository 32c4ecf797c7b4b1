// SPDX-License-Identifier: Apache-2.0
// Calls without handles: views of the caller's memory in, results in the caller's memory out.
#include <nlohmann/json.hpp>

#include "api/attrs.h"
#include "api/handles.h"
#include "api/views.h"
#include "runtime/eager/eager.h"

using namespace anymps;
using namespace anymps::api;

Views anymps::api::checked_views(const amps_view* views, size_t count, const char* what,
                                 std::string_view op) {
  if (!views && count > 0) fail(Code::kInvalidArgument, "[{}] the {}s are NULL", op, what);
  Views result;
  for (size_t i = 0; i < count; ++i) {
    const amps_view& view = views[i];
    if (view.rank < 0) {
      result.push_back(TensorView());
      continue;
    }
    if (view.rank > AMPS_MAX_RANK || (view.rank > 0 && !view.dims)) [[unlikely]]
      fail(Code::kInvalidArgument, "[{}] {} {} has {} axes{}", op, what, i, view.rank,
           view.dims ? fmt::format("; {} are the most", static_cast<int>(AMPS_MAX_RANK))
                     : ", but its dims are NULL");
    bool empty = false;
    for (int32_t axis = 0; axis < view.rank; ++axis) {
      if (view.dims[axis] < 0) [[unlikely]]
        fail(Code::kInvalidArgument, "[{}] {} {} has the extent {}", op, what, i, view.dims[axis]);
      empty = empty || view.dims[axis] == 0;
    }
    if (!view.data && !empty) [[unlikely]]
      fail(Code::kInvalidArgument, "[{}] the memory of {} {} is NULL", op, what, i);
    result.push_back({view.data, view.dims, view.strides, checked_dtype(view.dtype), view.rank});
  }
  return result;
}

namespace {

// Views whose dims and strides live with them, for work that runs later.
struct KeptViews {
  explicit KeptViews(const Views& given) : views(given) {
    size_t count = 0;
    for (const TensorView& view : given) count += 2 * static_cast<size_t>(std::max(view.rank, 0));
    numbers.reserve(count);  // pointers into it stay
    for (TensorView& view : views) {
      view.dims = keep(view.dims, view.rank);
      view.strides = keep(view.strides, view.rank);
    }
  }
  KeptViews(const KeptViews&) = delete;
  KeptViews& operator=(const KeptViews&) = delete;

  const int64_t* keep(const int64_t* from, int32_t rank) {
    if (!from || rank <= 0) return nullptr;
    numbers.insert(numbers.end(), from, from + rank);
    return numbers.data() + numbers.size() - rank;
  }

  Views views;
  std::vector<int64_t> numbers;
};

std::string report_text(const std::map<std::string, EagerCounts>& counts) {
  std::string text = fmt::format("{:<24} {:>10} {:>10} {:>10} {:>10}\n", "op", "calls", "reference",
                                 "packed", "aside");
  for (const auto& [op, count] : counts)
    text += fmt::format("{:<24} {:>10} {:>10} {:>10} {:>10}\n", op, count.calls, count.reference,
                        count.packed, count.aside);
  return text;
}

std::string report_json(const std::map<std::string, EagerCounts>& counts) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [op, count] : counts)
    rows.push_back({{"op", op},
                    {"calls", count.calls},
                    {"reference", count.reference},
                    {"packed", count.packed},
                    {"aside", count.aside}});
  return rows.dump();
}

}  // namespace

extern "C" {

amps_status amps_call_create(amps_device* device, const amps_op* op, const amps_attr* attrs,
                             size_t attr_count, const char* const* parameters,
                             size_t parameter_count, amps_call** call) {
  return guard([&] {
    need(call, "call") = nullptr;
    need(device, "device");
    require(attrs || attr_count == 0, "[api] attrs is NULL");
    std::vector<EagerAttr> given;
    for (size_t i = 0; i < attr_count; ++i) given.push_back(eager_attr(attrs[i]));
    require(parameters || parameter_count == 0, "[api] parameters is NULL");
    std::vector<std::string> names;
    for (size_t i = 0; i < parameter_count; ++i)
      names.emplace_back(&need(parameters[i], "the name of a parameter"));
    *call = new amps_call{
        device, std::make_shared<const BoundOp>(*op_of(&need(op, "op")), given, std::move(names))};
  });
}

void amps_call_release(amps_call* call) { delete call; }

amps_status amps_call_run(const amps_call* call, const amps_view* inputs, size_t input_count,
                          const double* parameters, const amps_view* outputs, size_t output_count,
                          amps_stream* stream) {
  return amps_call_run_versions(call, inputs, input_count, nullptr, parameters, outputs,
                                output_count, stream);
}

amps_status amps_call_run_versions(const amps_call* call, const amps_view* inputs,
                                   size_t input_count, const uint64_t* versions,
                                   const double* parameters, const amps_view* outputs,
                                   size_t output_count, amps_stream* stream) {
  return guard([&] {
    Device& device = *need(call, "call").device->device;
    const BoundOp& op = *call->op;
    const Views in = checked_views(inputs, input_count, "input", op.op.name);
    const Views out = checked_views(outputs, output_count, "output", op.op.name);
    for (size_t i = 0; i < out.size(); ++i)
      require(!out[i].absent(), "[{}] output {} is left out", op.op.name, i);
    require(parameters || op.parameters.empty(), "[{}] its parameters are NULL", op.op.name);
    const std::span<const double> values(parameters, op.parameters.size());
    const std::span<const uint64_t> known(versions, versions ? input_count : 0);
    if (!stream) {
      settle();
      return device.eager().call(op, in, out, device.queue(), values, known);
    }
    require(stream->device == call->device, "[{}] the stream is of device '{}', not '{}'",
            op.op.name, stream->device->device->name(), device.name());
    if (stream->deferral) return stream->deferral->call(op, in, out, values, known);
    settle();
    device.eager().check(op, in, out, *stream->queue, values);
    auto from = std::make_shared<const KeptViews>(in), to = std::make_shared<const KeptViews>(out);
    stream->queue->submit([bound = call->op, owner = call->device->device, from, to,
                           kept = std::vector<double>(values.begin(), values.end()),
                           told = std::vector<uint64_t>(known.begin(), known.end())] {
      owner->eager().call(*bound, from->views, to->views, owner->queue(), kept, told);
    });
  });
}

amps_status amps_device_forget(amps_device* device, const void* memory, size_t bytes) {
  return guard([&] { need(device, "device").device->eager().forget(memory, bytes); });
}

amps_status amps_call_infer(const amps_call* call, const amps_view* inputs, size_t input_count,
                            amps_type* results, size_t result_count) {
  return guard([&] {
    Device& device = *need(call, "call").device->device;
    require(results || result_count == 0, "[api] results is NULL");
    const BoundOp& op = *call->op;
    const Views in = checked_views(inputs, input_count, "input", op.op.name);
    if (!op.op.is(kElementwise)) settle();  // shapes may depend on elements
    device.eager().infer(op, in, result_count, device.queue(),
                         [&](size_t i, const TensorDesc& desc) {
                           require(desc.rank() <= AMPS_MAX_RANK, "[{}] result {} has {} axes",
                                   op.op.name, i, desc.rank());
                           results[i].dtype = static_cast<amps_dtype>(desc.dtype);
                           results[i].rank = static_cast<int32_t>(desc.rank());
                           std::copy(desc.shape.begin(), desc.shape.end(), results[i].dims);
                         });
  });
}

amps_status amps_call_fix(const amps_call* call, const amps_view* inputs, size_t input_count,
                          const amps_view* outputs, size_t output_count, amps_fixed_call** fixed) {
  return guard([&] {
    need(fixed, "fixed") = nullptr;
    const auto& device = need(call, "call").device->device;
    const std::string_view name = call->op->op.name;
    const auto without_memory = [](const amps_view* views, size_t count) {
      static char nowhere;
      std::vector<amps_view> copies(views, views ? views + count : views);
      for (amps_view& view : copies) view.data = &nowhere;
      return copies;
    };
    const auto from = without_memory(inputs, input_count),
               to = without_memory(outputs, output_count);
    const Views in = checked_views(inputs ? from.data() : nullptr, input_count, "input", name);
    const Views out = checked_views(outputs ? to.data() : nullptr, output_count, "output", name);
    for (size_t i = 0; i < out.size(); ++i)
      require(!out[i].absent(), "[{}] output {} is left out", name, i);
    if (auto made = FixedCall::make(device, call->op, in, out))
      *fixed = new amps_fixed_call{std::move(made)};
  });
}

void amps_fixed_call_release(amps_fixed_call* call) { delete call; }

amps_status amps_fixed_call_run(const amps_fixed_call* call, void* const* inputs,
                                void* const* outputs) {
  return guard([&] {
    const FixedCall& fixed = *need(call, "call").call;
    require((inputs || !fixed.takes_inputs()) && outputs, "[api] the addresses are NULL");
    settle();
    fixed.run(inputs, outputs);
  });
}

amps_status amps_executable_run_views(amps_executable* executable, const amps_view* feeds,
                                      size_t feed_count, const amps_view* results,
                                      size_t result_count, amps_stream* stream) {
  return guard([&] {
    Executable& compiled = *need(executable, "executable").executable;
    const Views in = checked_views(feeds, feed_count, "feed", "run");
    const Views out = checked_views(results, result_count, "result", "run");
    const auto check_given = [](const Views& views, const char* what) {
      for (size_t i = 0; i < views.size(); ++i)
        require(!views[i].absent(), "[run] {} {} is left out", what, i);
    };
    check_given(in, "feed");
    check_given(out, "result");
    const size_t wanted = compiled.graph().outputs().size();
    require(out.size() == wanted, "[run] {} results are given, the graph has {}", out.size(),
            wanted);
    settle(stream);
    if (!stream) {
      ReadyRun run(compiled, in, executable->bindings);
      if (run && run.may_write(in, out)) return run.run(in, out, nullptr);
    }
    const auto tensors = [](const Views& views) {
      std::vector<Tensor> list;
      for (const TensorView& view : views) list.push_back(borrowed(view));
      return list;
    };
    const std::vector<Tensor> from = tensors(in);
    std::vector<Tensor> to = tensors(out);
    if (!stream) return compiled.run_unprepared(from, to, nullptr, nullptr, executable->bindings);
    require(stream->device == executable->device, "[run] the stream is of another device");
    compiled.submit(from, to, *stream->queue, executable->bindings);
  });
}

amps_status amps_device_eager_report(amps_device* device, const char* format, amps_string** text) {
  return guard([&] {
    need(text, "text") = nullptr;
    const auto counts = need(device, "device").device->eager().counts();
    const std::string_view wanted = &need(format, "format");
    require(wanted == "text" || wanted == "json", "[api] a report comes as text or json, not '{}'",
            wanted);
    *text = new_string(wanted == "json" ? report_json(counts) : report_text(counts));
  });
}

amps_status amps_device_reset_eager_report(amps_device* device) {
  return guard([&] { need(device, "device").device->eager().reset_counts(); });
}

amps_status amps_device_profile_eager(amps_device* device, amps_profiler* profiler) {
  return guard([&] {
    need(device, "device").device->eager().watch(profiler ? profiler->profiler : nullptr);
  });
}

}  // extern "C"
