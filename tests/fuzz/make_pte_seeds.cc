// SPDX-License-Identifier: Apache-2.0
// make_pte_seeds DATA OUT: the files from which fuzz_pte starts, made of the bundles of
// tests/data/executorch. They are small, since what an execution costs grows with the file: a
// program with one call for each operator, the payload of each node kind, and the forms of programs
// written anew without what they do not need.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "base/error.h"
#include "formats/executorch/effects.h"
#include "formats/executorch/program/bundle.h"
#include "support/executorch_file.h"

namespace {

using namespace anymps;
using namespace anymps::executorch;
namespace fs = std::filesystem;

constexpr size_t kMaxSeed = 4096;
constexpr size_t kMaxTest = 512;  // bytes of inputs and outputs in a bundle

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) { fs::create_directories(folder_); }

  // The smallest file of each name is kept.
  void add(const std::string& name, std::string bytes) {
    if (bytes.size() > kMaxSeed) return;
    std::string& seed = seeds_[name];
    if (seed.empty() || bytes.size() < seed.size()) seed = std::move(bytes);
  }
  void write() const {
    for (const auto& [name, bytes] : seeds_)
      std::ofstream(folder_ / name, std::ios::binary) << bytes;
    std::cout << seeds_.size() << " seeds in " << folder_.string() << "\n";
  }

 private:
  fs::path folder_;
  std::map<std::string, std::string> seeds_;
};

// A method with one call of `method` alone. Tensors that it reads and nothing gives are inputs.
Method one_call(const Method& method, const KernelCall& call) {
  Method result;
  result.name = "forward";
  std::map<int32_t, int32_t> places;
  const auto put = [&](const auto& self, int32_t value) -> int32_t {
    if (value < 0) return value;
    if (const auto found = places.find(value); found != places.end()) return found->second;
    EValue copy = method.values[static_cast<size_t>(value)];
    const auto put_items = [&](auto& list) {
      for (int32_t& item : list.items) item = self(self, item);
    };
    if (auto* list = std::get_if<IntList>(&copy)) put_items(*list);
    if (auto* list = std::get_if<TensorList>(&copy)) put_items(*list);
    if (auto* tensor = std::get_if<executorch::Tensor>(&copy)) {
      tensor->name.clear();
      tensor->planned = false;
    }
    const auto place = static_cast<int32_t>(result.values.size());
    result.values.push_back(std::move(copy));
    return places[value] = place;
  };
  KernelCall copy = call;
  for (int32_t& arg : copy.args) arg = put(put, arg);
  const Effects effects = effects_of(method, call, {});
  const auto is_fed = [&](int32_t value) {
    const auto* tensor =
        std::get_if<executorch::Tensor>(&method.values[static_cast<size_t>(value)]);
    return tensor && !tensor->data;
  };
  for (const int32_t value : effects.writes)
    if (is_fed(value)) result.outputs.push_back(put(put, value));
  for (const int32_t value : effects.reads) {
    const bool written =
        std::find(effects.writes.begin(), effects.writes.end(), value) != effects.writes.end();
    if (is_fed(value) && !written) result.inputs.push_back(put(put, value));
  }
  result.instructions.emplace_back(std::move(copy));
  return result;
}

void add_calls(Seeds& seeds, const Program& program) {
  for (const Method& method : program.methods)
    for (const Instruction& instruction : method.instructions)
      if (const auto* call = std::get_if<KernelCall>(&instruction)) {
        Program one;
        one.methods.push_back(one_call(method, *call));
        std::string name = call->op + ".pte";
        std::replace(name.begin(), name.end(), ':', '_');
        testing::FileOptions options;
        options.segments = false;
        seeds.add(name, testing::write_program(one, options));
      }
}

size_t bytes_of(const TestSuite& suite) {
  size_t bytes = 0;
  for (const TestCase& test : suite.cases)
    for (const auto* values : {&test.inputs, &test.outputs})
      for (const EValue& value : *values)
        if (const auto* tensor = std::get_if<executorch::Tensor>(&value))
          bytes += tensor->data->size();
  return bytes;
}

void add_file(Seeds& seeds, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const auto owner = std::make_shared<const std::string>(std::istreambuf_iterator<char>(file),
                                                         std::istreambuf_iterator<char>());
  Bundle bundle;
  try {
    bundle = read_bundle({*owner, owner, false, path.filename().string()});
  } catch (const Error& error) {  // weights in another file
    std::cout << "left out: " << error.what() << "\n";
    return;
  }
  const std::string stem = path.stem().string();
  for (const Method& method : bundle.program.methods)
    for (const Delegate& delegate : method.delegates)
      seeds.add(stem + ".payload", std::string(delegate.payload));
  add_calls(seeds, bundle.program);
  const std::string folder = path.parent_path().filename().string();
  if (folder != "programs" && folder != "portable") return;
  testing::FileOptions options;
  for (const bool segments : {false, true}) {
    options.segments = segments;
    const std::string program = testing::write_program(bundle.program, options);
    seeds.add(stem + (segments ? "_segments.pte" : ".pte"), program);
    for (const TestSuite& suite : bundle.suites)
      if (segments && bytes_of(suite) <= kMaxTest)
        seeds.add(stem + ".bpte", testing::write_bundle(program, {suite}));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: make_pte_seeds tests/data/executorch OUT\n";
    return 2;
  }
  try {
    Seeds seeds(argv[2]);
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(argv[1]))
      if (entry.path().extension() == ".pte" || entry.path().extension() == ".bpte")
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& path : files) add_file(seeds, path);
    seeds.write();
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
