// SPDX-License-Identifier: Apache-2.0
// The bundles of tests/data/executorch against the outputs that PyTorch gave, on the reference
// driver and on the CPU: among them one at least for each kind of node. Each test case gets a fresh
// program.
// ANYMPS_EXECUTORCH_MODELS names a folder of further bundles, which run on the CPU alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/mapped_file.h"
#include "formats/executorch/import.h"
#include "formats/executorch/payload/node_kinds.h"
#include "formats/onnx/run.h"

namespace anymps::executorch {
namespace {

namespace fs = std::filesystem;

HostTensor to_host(const EValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value))
    return HostTensor::of<int64_t>({}, {*number});
  if (const auto* number = std::get_if<double>(&value))
    return HostTensor::of<double>({}, {*number});
  if (const auto* flag = std::get_if<bool>(&value)) return HostTensor(DType::kBool, {}, flag);
  const auto& tensor = std::get<Tensor>(value);
  HostTensor result;
  result.dtype = tensor.dtype;
  result.shape = Shape(tensor.sizes.begin(), tensor.sizes.end());
  result.bytes.resize(byte_count(result.dtype, result.shape));
  to_logical_order(tensor, *tensor.data, reinterpret_cast<std::byte*>(result.bytes.data()));
  return result;
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> result;
  dispatch<kReal | kBoolean>(tensor.dtype, [&]<typename T>() {
    for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, tensor.bytes.data() + at, sizeof(T));
      result.push_back(static_cast<double>(static_cast<Compute<T>>(element)));
    }
  });
  return result;
}

void expect_close(const HostTensor& got, const HostTensor& want, double tolerance) {
  EXPECT_EQ(name(got.dtype), std::string(name(want.dtype)));
  ASSERT_EQ(got.shape, want.shape);
  if (is_half(want.dtype)) tolerance = std::max(tolerance, 2e-2);
  if (!is_float(want.dtype)) tolerance = 0;
  const auto a = numbers(got), b = numbers(want);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (1 + std::abs(b[i])))
        << "element " << i << ": " << a[i] << ", PyTorch has " << b[i];
  }
}

bool computes_in_half(const Method& method) {
  for (const Delegate& delegate : method.delegates)
    for (const auto& [key, value] : delegate.options)
      if (key == "use_fp16") return !value.empty() && value[0] != 0;
  return false;
}

void verify_method(const Bundle& bundle, const Method& method, double tolerance,
                   const std::string& driver) {
  const auto graph = import_method(bundle.program, method);
  anymps::verify(*graph);
  if (computes_in_half(method)) tolerance = 2e-2;
  for (const TestCase& test : bundle.tests(method)) {
    std::vector<HostTensor> feeds;
    for (const size_t i : fed_inputs(method)) feeds.push_back(to_host(test.inputs.at(i)));
    const auto results = run_graph(*graph, feeds, driver);
    const std::vector<size_t> given = given_outputs(method);
    ASSERT_EQ(results.size(), given.size());
    const auto expected = expected_outputs(method, test);
    for (size_t i = 0; i < given.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      if (expected[i]) expect_close(results[i], to_host(*expected[i]), tolerance);
    }
  }
}

// The names of those that were verified.
std::set<std::string> verify_all(const fs::path& folder, double tolerance,
                                 const std::vector<std::string>& drivers) {
  std::set<std::string> seen;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".pte") continue;
    if (fs::exists(fs::path(entry.path()).replace_extension(".ptd"))) continue;  // not a file alone
    const std::string stem = entry.path().stem();
    SCOPED_TRACE(entry.path());
    const auto file = MappedFile::open(entry.path(), "test");
    if (!is_bundle(file->bytes())) continue;
    try {
      const Bundle bundle = read_bundle({file->bytes(), file, true, stem});
      for (const Method& method : bundle.program.methods)
        for (const std::string& driver : drivers) verify_method(bundle, method, tolerance, driver);
      seen.insert(stem);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return seen;
}

TEST(Verify, BundlesGiveWhatPyTorchGave) {
  const auto verified = [](const char* folder) {
    return verify_all(fs::path("tests/data/executorch") / folder, 1e-5, {"reference", "cpu"});
  };
  EXPECT_FALSE(verified("programs").empty());
  EXPECT_FALSE(verified("portable").empty());
  EXPECT_FALSE(verified("small").empty());
  const auto seen = verified("kinds");
  for (const std::string_view kind : node_kinds())
    EXPECT_TRUE(seen.contains(std::string(kind) + "_f32")) << kind;
}

TEST(Verify, Models) {
  const char* folder = std::getenv("ANYMPS_EXECUTORCH_MODELS");
  if (!folder) GTEST_SKIP() << "ANYMPS_EXECUTORCH_MODELS is not set";
  EXPECT_FALSE(verify_all(folder, 1e-4, {"cpu"}).empty());
}

}  // namespace
}  // namespace anymps::executorch
