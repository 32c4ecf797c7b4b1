// SPDX-License-Identifier: Apache-2.0
// One version of a model, loaded and compiled: the state that Triton's backend and the server
// share. Instances of a model share one `Model`, hence one set of weights.
//
// A door implements `Request` over what it got from its client and hands a batch of them to
// `execute`, which checks each one, lays them together, runs, and writes the results where the
// request says.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "anymps/anymps.hpp"
#include "serving/error.h"
#include "serving/settings.h"

namespace anymps::serving {

struct Piece {
  const void* data = nullptr;
  size_t bytes = 0;
};

// A tensor of a request, in one piece or several. Strings come as in the protocol: 4 bytes of
// length, then the bytes.
struct Input {
  std::string_view name;
  amps_dtype dtype = AMPS_F32;
  std::span<const int64_t> shape;  // with the batch axis
  std::span<const Piece> pieces;
};

// The inputs of a request, as a door finds them. Its memory is used again for the next request.
class InputList {
 public:
  void clear();
  void add(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape);
  void add_piece(const void* data, size_t bytes);  // of the input that was added last
  void finish();                                   // once all are added
  std::span<const Input> list() const { return inputs_; }

 private:
  std::vector<Input> inputs_;
  std::vector<Piece> pieces_;
  std::vector<size_t> ends_;  // of each input, in `pieces_`
};

// When the parts of an execution began and ended, in nanoseconds of the steady clock.
struct Times {
  uint64_t start = 0, compute_start = 0, compute_end = 0, end = 0;
  uint64_t batch_size = 0;  // rows that were computed; 1 for models without a batch axis
};

class Request {
 public:
  virtual ~Request() = default;
  virtual std::span<const Input> inputs() const = 0;
  virtual bool wants(std::string_view output) const = 0;
  virtual bool cancelled() const { return false; }
  // Where the elements of an output go: `bytes` writable bytes. Called once per output, before or
  // after the run.
  virtual void* output(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape,
                       size_t bytes) = 0;
  // Instead of or after `output`: the request has this error. The others of its batch go on. Called
  // at most once, and again only if memory ends.
  virtual void fail(const Error& error) = 0;
  // All outputs are written, and nothing of the request is used any more: it may be answered and
  // let go while others of its batch still run. `times` are those of the batch so far.
  virtual void done(const Times& times) { (void)times; }
};

class Model {
 public:
  // Loads the file in `version_dir` that the configuration names, or model.mps, model.onnx,
  // model.pte, model.metal_mps. With `complete` the configuration is completed first (see
  // complete_config). `reshaped`: the door does what `reshape` of a tensor asks for, so that shapes
  // are the model's here.
  static std::shared_ptr<Model> load(const std::filesystem::path& version_dir,
                                     nlohmann::json config, bool complete,
                                     OperatorOptions options = {}, bool reshaped = false);
  ~Model();

  const nlohmann::json& config() const;  // as completed
  const Settings& settings() const;
  const amps::Device& device() const;
  // Thread-safe. Each request gets its outputs or `fail`; nothing is thrown.
  Times execute(std::span<Request* const> requests);
  std::string profile() const;  // the table of kernels; "" unless settings().profile

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace anymps::serving
