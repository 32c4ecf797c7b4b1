// SPDX-License-Identifier: Apache-2.0
// A request that lives in memory, and folders with models in them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "serving/datatype.h"
#include "serving/model.h"

namespace anymps::serving {

using Floats = std::vector<float>;

// A folder of its own, gone with the object.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("anymps_serving_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path version(const std::string& name = "1") const {
    std::filesystem::create_directories(path_ / name);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

class FakeRequest : public Request {
 public:
  template <typename T>
  FakeRequest& input(const std::string& name, amps_dtype dtype, std::vector<int64_t> shape,
                     const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return raw(name, dtype, std::move(shape), {std::move(bytes)});
  }
  FakeRequest& floats(const std::string& name, std::vector<int64_t> shape, const Floats& values) {
    return input<float>(name, AMPS_F32, std::move(shape), values);
  }
  FakeRequest& strings(const std::string& name, std::vector<int64_t> shape,
                       const std::vector<std::string>& values) {
    return raw(name, AMPS_STRING, std::move(shape), {serialize(values)});
  }
  FakeRequest& raw(const std::string& name, amps_dtype dtype, std::vector<int64_t> shape,
                   std::vector<std::string> pieces) {
    Held& held = held_.emplace_back();
    held.name = name;
    held.shape = std::move(shape);
    held.bytes = std::move(pieces);
    for (const std::string& piece : held.bytes) held.pieces.push_back({piece.data(), piece.size()});
    inputs_.push_back({held.name, dtype, held.shape, held.pieces});
    return *this;
  }
  // Memory of the caller, as it lies.
  FakeRequest& at(const std::string& name, amps_dtype dtype, std::vector<int64_t> shape,
                  const void* data, size_t bytes) {
    Held& held = held_.emplace_back();
    held.name = name;
    held.shape = std::move(shape);
    held.pieces.push_back({data, bytes});
    inputs_.push_back({held.name, dtype, held.shape, held.pieces});
    return *this;
  }
  FakeRequest& only(std::vector<std::string> outputs) {
    only_ = std::move(outputs);
    return *this;
  }
  static std::string serialize(const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) {
      const auto size = static_cast<uint32_t>(value.size());
      bytes.append(reinterpret_cast<const char*>(&size), 4).append(value);
    }
    return bytes;
  }

  std::span<const Input> inputs() const override { return inputs_; }
  bool wants(std::string_view output) const override {
    if (only_.empty()) return true;
    return std::find(only_.begin(), only_.end(), output) != only_.end();
  }
  bool cancelled() const override { return gone; }
  void* output(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape,
               size_t bytes) override {
    EXPECT_FALSE(error) << "output after fail";
    EXPECT_FALSE(outputs.contains(std::string(name))) << name << " asked for twice";
    if (no_memory) throw Error(Code::kUnavailable, "no memory for " + std::string(name));
    Output& made = outputs[std::string(name)];
    made.dtype = dtype;
    made.shape.assign(shape.begin(), shape.end());
    made.bytes = bytes;
    if (target) return target;
    made.memory.resize(bytes / 8 + 2);
    return reinterpret_cast<char*>(made.memory.data()) + offset;
  }
  void done(const Times& times) override {
    EXPECT_LE(times.compute_end, times.end);
    EXPECT_FALSE(error || finished) << "done twice, or after fail";
    finished = true;
  }
  void fail(const Error& reason) override {
    EXPECT_FALSE(error || finished) << "failed twice, or after done";
    error.emplace(reason);
  }

  template <typename T>
  std::vector<T> values(const std::string& name) const {
    EXPECT_FALSE(error) << error->what();
    EXPECT_TRUE(finished);
    const auto found = outputs.find(name);
    if (found == outputs.end()) {
      ADD_FAILURE() << "no output " << name;
      return {};
    }
    std::vector<T> list(found->second.bytes / sizeof(T));
    const char* from = target ? static_cast<const char*>(target)
                              : reinterpret_cast<const char*>(found->second.memory.data()) + offset;
    if (!list.empty()) std::memcpy(list.data(), from, list.size() * sizeof(T));
    return list;
  }
  std::vector<int64_t> shape(const std::string& name) const {
    return outputs.contains(name) ? outputs.at(name).shape : std::vector<int64_t>{-999};
  }
  std::string message() const { return error ? error->what() : ""; }

  struct Output {
    amps_dtype dtype;
    std::vector<int64_t> shape;
    size_t bytes = 0;
    std::vector<double> memory;
  };
  std::map<std::string, Output> outputs;
  std::optional<Error> error;
  bool gone = false, no_memory = false, finished = false;
  void* target = nullptr;  // where all outputs go
  size_t offset = 0;       // of outputs in memory of their own

 private:
  struct Held {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<std::string> bytes;
    std::vector<Piece> pieces;
  };
  std::deque<Held> held_;
  std::vector<Input> inputs_;
  std::vector<std::string> only_;
};

template <typename... Requests>
Times execute(Model& model, Requests&... requests) {
  Request* list[] = {&requests...};
  return model.execute(list);
}

// y = x + 1 for x of [N, 2].
inline amps::Graph plus_one(const std::string& batch = "N") {
  amps::Graph graph("plus_one");
  const amps::Value x = graph.input("x", amps::DType::f32, {-1, 2}, {batch, ""});
  const amps::Value y = graph.op("add", {x, graph.scalar(1)}, {}, "y")[0];
  graph.outputs({y});
  return graph;
}

inline nlohmann::json tensor(const std::string& name, const std::string& type,
                             std::vector<int64_t> dims) {
  return {{"name", name}, {"data_type", type}, {"dims", std::move(dims)}};
}

// What loading a model is refused with.
inline std::string load_refusal(const std::filesystem::path& version, const nlohmann::json& config,
                                Code code, const OperatorOptions& options = {}) {
  try {
    Model::load(version, config, true, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "loaded";
}

}  // namespace anymps::serving
