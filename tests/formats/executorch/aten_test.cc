// SPDX-License-Identifier: Apache-2.0
// Programs of torch's operators, made by tests/doors/executorch/make_aten.py, against what torch
// computed of the same inputs. ANYMPS_ATEN_FOLDER names another folder of bundles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/half.h"
#include "formats/executorch/import.h"
#include "formats/executorch/program/bundle.h"
#include "formats/onnx/run.h"
#include "semantics/elements.h"

namespace anymps::executorch {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  const char* given = std::getenv("ANYMPS_ATEN_FOLDER");
  return given ? given : "tests/data/executorch/aten";
}

std::vector<fs::path> bundles() {
  std::vector<fs::path> files;
  if (fs::is_directory(folder()))
    for (const auto& entry : fs::directory_iterator(folder()))
      if (entry.path().extension() == ".bpte") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

HostTensor host(const EValue& value) {
  const Tensor& tensor = std::get<Tensor>(value);
  HostTensor result;
  result.dtype = tensor.dtype;
  result.shape = Shape(tensor.sizes.begin(), tensor.sizes.end());
  result.bytes.resize(byte_count(result.dtype, result.shape));
  to_logical_order(tensor, *tensor.data, reinterpret_cast<std::byte*>(result.bytes.data()));
  return result;
}

struct Tolerance {
  double relative, absolute;
};
Tolerance tolerance(DType dtype) {
  if (dtype == DType::kF16) return {2e-3, 2e-3};
  if (dtype == DType::kBF16) return {2e-2, 2e-2};
  return {2e-5, 2e-6};
}

// The first element that differs; "" when none does.
std::string difference(const HostTensor& ours, const HostTensor& theirs) {
  if (ours.dtype != theirs.dtype)
    return fmt::format("is {}, must be {}", name(ours.dtype), name(theirs.dtype));
  if (ours.shape != theirs.shape)
    return fmt::format("has the shape {}, must have {}", to_string(ours.shape),
                       to_string(theirs.shape));
  const size_t size = size_of(ours.dtype);
  const auto [relative, absolute] = tolerance(ours.dtype);
  for (size_t at = 0; at < ours.bytes.size(); at += size) {
    if (std::memcmp(&ours.bytes[at], &theirs.bytes[at], size) == 0) continue;
    const double a = load_number(ours.dtype, reinterpret_cast<const std::byte*>(&ours.bytes[at]));
    const double b = load_number(ours.dtype, reinterpret_cast<const std::byte*>(&theirs.bytes[at]));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (is_float(ours.dtype) && std::abs(a - b) <= absolute + relative * std::abs(b)) continue;
    return fmt::format("element {} is {}, must be {}", at / size, a, b);
  }
  return {};
}

std::string check(const fs::path& path, const std::string& driver) {
  std::ifstream file(path, std::ios::binary);
  auto bytes = std::make_shared<std::string>(std::istreambuf_iterator<char>(file),
                                             std::istreambuf_iterator<char>());
  try {
    const Bundle bundle = read_bundle({*bytes, bytes, false, path.filename().string()});
    const Method& method = bundle.program.method("forward");
    const auto graph = import_method(bundle.program, method);
    for (const TestCase& test : bundle.tests(method)) {
      std::vector<HostTensor> feeds;
      for (const size_t i : fed_inputs(method)) feeds.push_back(host(test.inputs.at(i)));
      const std::vector<HostTensor> results = run_graph(*graph, feeds, driver);
      if (results.size() != test.outputs.size()) return "has another number of outputs";
      for (size_t i = 0; i < results.size(); ++i)
        if (const auto text = difference(results[i], host(test.outputs[i])); !text.empty())
          return fmt::format("output {} {}", i, text);
    }
    return bundle.tests(method).empty() ? "has no test" : "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

class AtenBundles : public ::testing::TestWithParam<const char*> {};

TEST_P(AtenBundles, GiveWhatTorchGives) {
  const auto files = bundles();
  ASSERT_FALSE(files.empty()) << "no bundles in " << folder();
  for (const fs::path& path : files)
    EXPECT_EQ(check(path, GetParam()), "") << path.filename() << " on " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Drivers, AtenBundles, ::testing::Values("reference", "cpu"));

}  // namespace
}  // namespace anymps::executorch
