// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_choice.h"

#include <cstdint>
#include <cstdio>

#include "base/env.h"
#include "base/text.h"
#include "drivers/packed_weights.h"
#include "drivers/reference_fallback.h"

namespace anymps {

std::string describe(const KernelRequest& request) {
  std::string text;
  for (const auto& input : request.inputs)
    text += (text.empty() ? "" : ", ") + (input ? to_string(*input) : std::string("-"));
  return request.op->name + "(" + text + ")";
}

KernelRequest copy_request(const TensorDesc& from, const TensorDesc& to, std::string node) {
  KernelRequest request;
  request.op = &get_op("identity");
  request.attrs = Attrs(*request.op, {});
  request.node = std::move(node);
  request.inputs = {from};
  request.outputs = {to};
  request.constants.resize(1);
  request.contents.resize(1);
  return request;
}

double flops(const KernelRequest& request) {
  std::vector<Shape> in, out;
  for (const auto& desc : request.inputs) in.push_back(desc ? desc->shape : Shape());
  for (const auto& desc : request.outputs) out.push_back(desc.shape);
  if (request.op->cost) return request.op->cost(request.attrs, in, out);
  return request.op->is(kElementwise) ? static_cast<double>(request.outputs[0].count()) : 0;
}

double bytes_moved(const KernelRequest& request) {
  double bytes = 0;
  for (const auto& input : request.inputs)
    if (input) bytes += static_cast<double>(input->bytes());
  for (const TensorDesc& output : request.outputs) bytes += static_cast<double>(output.bytes());
  return bytes;
}

KernelChoice choose_kernel(Driver& driver, const KernelRequest& request) {
  size_t bytes = 0;
  for (const TensorDesc& output : request.outputs)
    if (__builtin_add_overflow(bytes, output.bytes(), &bytes)) bytes = SIZE_MAX;
  check_room(request, bytes);
  // Results without elements need no work, whatever their other extents: those may be beyond all
  // counting.
  if (bytes == 0 && !request.outputs.empty() && !request.op->is(kImpure))
    return {make_kernel([](const KernelArgs&) {}), std::string(driver.name()) + ":nothing", false};
  static const bool verbose = env_contains("ANYMPS_VERBOSE", "dispatch");
  std::string refusals;
  KernelChoice choice;
  for (const KernelEntry& entry : driver.kernels(*request.op)) {
    std::string why;
    if (KernelPtr kernel = entry.make(request, why)) {
      choice = {std::move(kernel), std::string(driver.name()) + ":" + entry.name, false};
      break;
    }
    refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", entry.name, why);
  }
  if (!choice.kernel && driver.traits().reference_fallback) {
    choice.kernel = make_fallback_kernel(driver, request);
    choice.name = "reference";
    choice.is_fallback = std::string_view(driver.name()) != "reference";
  }
  if (!choice.kernel)
    fail(Code::kUnsupported, "[{}] driver '{}' has no kernel for {} ({}){}{}", request.op->name,
         driver.name(), describe(request), request.node,
         refusals.empty() ? "" : "; refused: ", refusals);
  if (verbose)
    std::fprintf(stderr, "dispatch: %s \"%s\" -> %s%s%s%s%s\n", describe(request).c_str(),
                 shown(request.node).c_str(), choice.name.c_str(),
                 choice.kernel->detail().empty() ? "" : " ", choice.kernel->detail().c_str(),
                 refusals.empty() ? "" : "  refused: ", refusals.c_str());
  return choice;
}

}  // namespace anymps
