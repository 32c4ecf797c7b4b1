// SPDX-License-Identifier: Apache-2.0
// A C++ program on the stock ExecuTorch runtime of the 1.5 wheel that speaks the worker protocol of
// bench/models on stdin: the peer in benchmarks (XNNPACK), and in tests the application that runs
// our delegate.
//
//   executorch_stock_worker [BACKEND.so]      loads the delegate first, if one is given
//
// Inputs go to the program in the order in which they are given.
#include <dlfcn.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/backend/interface.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// The wheel has the thread pool's library, and not its header.
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  bool _unsafe_reset_threadpool(uint32_t threads);
};
ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

namespace {

namespace et = executorch::runtime;
using executorch::aten::ScalarType;
using executorch::extension::Module;
using executorch::extension::TensorPtr;

struct Kind {
  ScalarType type;
  const char* numpy;
  size_t size;
};
constexpr Kind kKinds[] = {
    {ScalarType::Float, "<f4", 4}, {ScalarType::Half, "<f2", 2}, {ScalarType::Double, "<f8", 8},
    {ScalarType::Long, "<i8", 8},  {ScalarType::Int, "<i4", 4},  {ScalarType::Short, "<i2", 2},
    {ScalarType::Char, "|i1", 1},  {ScalarType::Byte, "|u1", 1}, {ScalarType::Bool, "|b1", 1},
};

struct Input {
  std::string name;
  std::vector<char> data;
  TensorPtr tensor;
};

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

void check(et::Error error, const std::string& what) {
  if (error != et::Error::Ok) fail(what + ": " + et::to_string(error));
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A row-major .npy file of version 1.
Input read_npy(const std::string& name, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[10];
  if (!file.read(magic, sizeof(magic)) || std::memcmp(magic, "\x93NUMPY\x01", 7) != 0)
    fail(path + " is no .npy file of version 1");
  std::string header(static_cast<uint8_t>(magic[8]) + 256u * static_cast<uint8_t>(magic[9]), ' ');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const Kind* kind = nullptr;
  for (const Kind& known : kKinds)
    if (header.find(std::string("'") + known.numpy + "'") != std::string::npos) kind = &known;
  if (!kind || header.find("'fortran_order': False") == std::string::npos)
    fail(path + ": dtype or order is not known here");
  std::vector<executorch::aten::SizesType> sizes;
  const size_t open = header.find('('), close = header.find(')');
  if (open == std::string::npos || close == std::string::npos) fail(path + " has no shape");
  std::istringstream dims(header.substr(open + 1, close - open - 1));
  size_t count = 1;
  for (std::string dim; std::getline(dims, dim, ',');) {
    if (dim.find_first_not_of(' ') == std::string::npos) continue;
    sizes.push_back(std::stoi(dim));
    count *= static_cast<size_t>(sizes.back());
  }
  Input input{name, std::vector<char>(count * kind->size), nullptr};
  if (!file.read(input.data.data(), static_cast<std::streamsize>(input.data.size())))
    fail(path + " is too short");
  input.tensor = executorch::extension::from_blob(input.data.data(), std::move(sizes), kind->type);
  return input;
}

void write_npy(const std::string& path, const executorch::aten::Tensor& tensor) {
  const Kind* kind = nullptr;
  for (const Kind& known : kKinds)
    if (known.type == tensor.scalar_type()) kind = &known;
  if (!kind) fail("an output has a dtype that is not known here");
  std::string shape;
  for (const auto size : tensor.sizes()) shape += std::to_string(size) + ",";
  std::string header = std::string("{'descr': '") + kind->numpy +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.put(static_cast<char>(header.size() & 255));
  file.put(static_cast<char>(header.size() >> 8));
  file << header;
  // Row by row of the logical order, whatever the order in memory.
  std::vector<ssize_t> index(static_cast<size_t>(tensor.dim()), 0);
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    ssize_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides()[d];
    file.write(
        static_cast<const char*>(tensor.const_data_ptr()) + at * static_cast<ssize_t>(kind->size),
        static_cast<std::streamsize>(kind->size));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.size(static_cast<ssize_t>(d))) break;
      index[d] = 0;
    }
  }
  if (!file.flush()) fail(path + " cannot be written");
}

class Worker {
 public:
  std::string answer(const std::string& line) {
    const size_t blank = line.find(' ');
    const std::string command = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (command == "version") return R"({"runtime": "executorch", "version": "1.5"})";
    if (command == "input") {
      const size_t gap = rest.find(' ');
      if (gap == std::string::npos) fail("input NAME FILE.npy");
      Input input = read_npy(rest.substr(0, gap), rest.substr(gap + 1));
      for (Input& old : inputs_)
        if (old.name == input.name) {
          old = std::move(input);
          return R"({"ok": true})";
        }
      inputs_.push_back(std::move(input));
      return R"({"ok": true})";
    }
    if (command == "forget") {  // the inputs of the model before
      inputs_.clear();
      return R"({"ok": true})";
    }
    if (command == "load") return load(rest);
    if (command == "backends") return backends();
    if (command != "run" && command != "output") fail("unknown command '" + command + "'");
    if (!module_) fail("load a model first");
    return command == "run" ? run(std::stoi(rest)) : output(rest);
  }

 private:
  std::string backends() {
    std::string names;
    for (size_t i = 0; i < et::get_num_registered_backends(); ++i)
      names += std::string(i ? ", " : "") + '"' + *et::get_backend_name(i) + '"';
    return "{\"backends\": [" + names + "]}";
  }

  std::string load(const std::string& rest) {
    const size_t blank = rest.rfind(' ');
    if (blank == std::string::npos) fail("load MODEL THREADS");
    const int threads = std::stoi(rest.substr(blank + 1));
    executorch::extension::threadpool::get_threadpool()->_unsafe_reset_threadpool(
        static_cast<uint32_t>(threads));
    if (et::get_backend_class("MPSBackend")) {
      et::BackendOptions<1> options;
      check(options.set_option("num_threads", threads), "num_threads");
      check(et::set_option("MPSBackend", options.view()), "num_threads");
    }
    outputs_.clear();
    module_.reset();
    const double start = now_ms();
    module_ = std::make_unique<Module>(rest.substr(0, blank), Module::LoadMode::Mmap);
    const et::Error error = module_->load_forward();
    const double took = now_ms() - start;
    if (error != et::Error::Ok) module_.reset();
    check(error, rest.substr(0, blank));
    return "{\"load_ms\": " + std::to_string(took) + "}";
  }

  std::string run(int count) {
    std::vector<et::EValue> values;
    for (const Input& input : inputs_) values.emplace_back(input.tensor);
    std::string times;
    for (int i = 0; i < count; ++i) {
      const double start = now_ms();
      auto result = module_->forward(values);
      const double took = now_ms() - start;
      check(result.error(), "forward");
      outputs_ = std::move(*result);
      times += (i ? ", " : "") + std::to_string(took);
    }
    return "{\"ms\": [" + times + "]}";
  }

  std::string output(const std::string& folder) {
    std::string names;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].isTensor()) fail("output " + std::to_string(i) + " is no tensor");
      const std::string name = "output" + std::to_string(i);
      write_npy(folder + "/" + name + ".npy", outputs_[i].toTensor());
      names += std::string(i ? ", " : "") + '"' + name + '"';
    }
    return "{\"outputs\": [" + names + "]}";
  }

  std::vector<Input> inputs_;
  std::unique_ptr<Module> module_;
  std::vector<et::EValue> outputs_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && !dlopen(argv[1], RTLD_NOW)) {
    std::fprintf(stderr, "executorch_stock_worker: %s\n", dlerror());
    return 1;
  }
  Worker worker;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::string answer;
    try {
      answer = worker.answer(line);
    } catch (const std::exception& error) {
      answer = "{\"error\": " + quoted(error.what()) + "}";
    }
    std::puts(answer.c_str());
    std::fflush(stdout);
  }
  return 0;
}
