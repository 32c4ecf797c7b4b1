// SPDX-License-Identifier: Apache-2.0
// A request of Triton as the model sees it: inputs are used in place, outputs are written into the
// buffers of the response. Objects are used again for the next batch of an instance.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serving/model.h"
#include "triton/triton_api.h"

namespace anymps::triton {

class Request final : public serving::Request {
 public:
  // Takes the request over. False: it has failed already.
  bool begin(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request,
             const serving::Settings& settings);
  // Sends the response or the error, reports the times, and lets the request go; once.
  void done(const serving::Times& times) override;

  std::span<const serving::Input> inputs() const override { return inputs_.list(); }
  bool wants(std::string_view output) const override;
  bool cancelled() const override;
  void* output(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape,
               size_t bytes) override;
  void fail(const serving::Error& error) override;

 private:
  void read();
  void keep_states();
  void send();
  bool is_state(std::string_view output) const;
  void* state(const std::string& name, DataType dtype, std::span<const int64_t> shape,
              size_t bytes);

  const serving::Settings* settings_ = nullptr;
  TRITONBACKEND_ModelInstance* instance_ = nullptr;
  TRITONBACKEND_Request* request_ = nullptr;  // null: it is let go
  TRITONBACKEND_Response* response_ = nullptr;
  serving::InputList inputs_;
  std::vector<std::string_view> wanted_;
  std::vector<TRITONBACKEND_State*> states_;  // written, to be kept for the sequence's next request
  std::optional<serving::Error> error_;
};

}  // namespace anymps::triton
