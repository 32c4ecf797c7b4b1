// SPDX-License-Identifier: Apache-2.0
// Whether each op has a kernel on the CPU, or a record that says why not: an op whose kernel was
// forgotten would still work, through the reference kernel, and only be slow.
#include <gtest/gtest.h>

#include "drivers/driver.h"

namespace anymps::testing {
namespace {

TEST(CpuRegistration, EveryOpHasAKernelOrAReason) {
  const Driver& driver = get_driver("cpu");
  for (const Op* op : all_ops()) {
    const bool has = !driver.kernels(*op).empty();
    if (op->is(kStructural)) {
      EXPECT_FALSE(has) << op->name << " is run by the runtime: a kernel of it is never used";
      EXPECT_EQ(op->reference_only, "") << op->name << " is run by the runtime";
    } else if (op->reference_only.empty()) {
      EXPECT_TRUE(has) << op->name << " has no kernel on the CPU and runs on the reference kernel. "
                       << (op->is(kElementwise)
                               ? "List its function in semantics/scalar_functions.h"
                               : "Register one in drivers/cpu/" + op->family)
                       << ", or let src/ops/" << op->family << "/" << op->file
                       << ".cc say .reference_only(\"why\")";
    } else {
      EXPECT_FALSE(has) << op->name << " has a kernel on the CPU, but its record says "
                        << ".reference_only(\"" << op->reference_only << "\"): remove that";
    }
  }
}

std::vector<std::string> names_of(const char* op) {
  std::vector<std::string> names;
  for (const KernelEntry& entry : get_driver("cpu").kernels(get_op(op)))
    names.push_back(entry.name);
  return names;
}

// What profiles call the kernels that come from the tables of tile functions.
TEST(CpuRegistration, TileFunctionsMakeKernels) {
  using Names = std::vector<std::string>;
  for (const char* op : {"add", "exp", "gelu", "min", "less", "where", "cast", "clamp", "is_inf",
                         "logical_and", "div", "prelu"})
    EXPECT_EQ(names_of(op), Names{"simd"}) << op;
  for (const char* op :
       {"bitwise_and", "real_part", "make_complex", "leaky_relu_gradient", "sgd", "div_no_nan"})
    EXPECT_EQ(names_of(op), Names{"plain"}) << op;
  EXPECT_EQ(names_of("identity"), (Names{"copy", "simd"}));
  EXPECT_EQ(names_of("softmax"), names_of("log_softmax"));  // not elementwise: registered by hand
  EXPECT_EQ(names_of("string_concat"), Names{});            // elementwise, without a function
}

}  // namespace
}  // namespace anymps::testing
