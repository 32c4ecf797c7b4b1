// SPDX-License-Identifier: Apache-2.0
// Tensors whose bytes lie in a separate file beside the model. A model is untrusted: the file it
// names must lie in the model's directory, even after symbolic links are followed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"

namespace anymps::onnx {

class ExternalFiles {
 public:
  // directory "": every request is refused.
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}

  // The mapped file; each is opened once. Throws WireError.
  std::shared_ptr<const MappedFile> open(std::string_view location);

 private:
  std::string directory_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace anymps::onnx
