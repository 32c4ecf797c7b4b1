// SPDX-License-Identifier: Apache-2.0
// A model repository in a temporary folder, with tiny models whose answers are known, and how a
// test asks them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "server/core/response_cache.h"
#include "server/repository/repository.h"
#include "server/scheduling/rate_limiter.h"

namespace anymps::server {

using Floats = std::vector<float>;

inline constexpr char kFourFloats[] =
    R"(input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 } )";

class ModelFolder {
 public:
  ModelFolder() : dir_(std::make_unique<PrivateDir>()) {}
  const std::filesystem::path& path() const { return dir_->path(); }
  void write(const std::string& name, const std::string& text) const { dir_->write(name, text); }
  void config(const std::string& model, const std::string& text) const {
    write(model + "/config.pbtxt", text);
  }
  // y = x + term for x of [N, 4], or of [4] without a batch axis.
  void add(const std::string& model, float term, int64_t version = 1, bool batched = true) const {
    amps::Graph graph(model);
    const amps::Value x = batched ? graph.input("x", amps::DType::f32, {-1, 4}, {"N", ""})
                                  : graph.input("x", amps::DType::f32, {4});
    graph.outputs({graph.op("add", {x, graph.scalar(term)}, {}, "y")[0]});
    const std::filesystem::path folder = path() / model / std::to_string(version);
    std::filesystem::create_directories(folder);
    graph.save((folder / "next").string() + ".mps");
    std::filesystem::rename((folder / "next").string() + ".mps", folder / "model.mps");
  }
  void version(const std::string& model, int64_t version) const {
    std::filesystem::create_directories(path() / model / std::to_string(version));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path() / name); }

 private:
  std::unique_ptr<PrivateDir> dir_;
};

// A repository with what a server gives it.
struct Served {
  explicit Served(const ModelFolder& folder, ModelControl control = ModelControl::kExplicit) {
    options.model_repositories = {folder.path().string()};
    options.model_control = control;
    options.poll_seconds = 0;
  }
  Repository& start() {
    if (!repository) {
      Services services{&options, &limiter, &cache, nullptr, nullptr};
      services.log = [this](char level, const std::string& message) {
        std::lock_guard lock(mutex);
        lines.push_back(std::string(1, level) + " " + message);
      };
      repository.emplace(std::move(services));
      repository->start();
    }
    return *repository;
  }
  bool logged(const std::string& part) {
    std::lock_guard lock(mutex);
    for (const std::string& line : lines)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  Options options;
  RateLimiter limiter{false, {}};
  ResponseCache cache{1 << 20};
  std::mutex mutex;
  std::vector<std::string> lines;
  std::optional<Repository> repository;
};

inline RequestPtr make_request(const std::string& model, Floats values,
                               std::vector<int64_t> shape = {1, 4}) {
  auto request = std::make_unique<Request>();
  request->model = model;
  auto owner = std::make_shared<Floats>(std::move(values));
  InputTensor input{"x", AMPS_F32, std::move(shape), {}};
  input.buffers.push_back(
      {owner, reinterpret_cast<std::byte*>(owner->data()), owner->size() * sizeof(float)});
  request->inputs.push_back(std::move(input));
  return request;
}

inline std::future<Response> send(const std::shared_ptr<ModelVersion>& version,
                                  RequestPtr request) {
  auto promise = std::make_shared<std::promise<Response>>();
  request->respond = [promise](Response&& response) { promise->set_value(std::move(response)); };
  ModelVersion::infer(version, std::move(request));
  return promise->get_future();
}

inline Response ask(const Repository& repository, RequestPtr request) {
  const std::shared_ptr<ModelVersion> version = repository.find(request->model, request->version);
  return send(version, std::move(request)).get();
}

inline Floats floats_of(const Response& response, size_t output = 0) {
  if (response.error) {
    ADD_FAILURE() << response.error->what();
    return {};
  }
  const Buffer& data = response.outputs.at(output).data;
  Floats values(data.bytes / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), data.data, data.bytes);
  return values;
}

inline std::string error_of(const Response& response) {
  return response.error ? response.error->what() : "no error";
}

template <typename Fn>
std::string refusal(Fn&& fn, Code* code = nullptr) {
  try {
    fn();
  } catch (const Error& error) {
    if (code) *code = error.code();
    return error.what();
  }
  return "no error";
}

inline std::string index_text(const Repository& repository) {
  std::string text;
  const inference::RepositoryIndexResponse index = repository.index(false);
  for (const auto& model : index.models())
    text += model.name() + "/" + model.version() + " " + model.state() +
            (model.reason().empty() ? "" : ": " + model.reason()) + "\n";
  return text;
}

}  // namespace anymps::server
