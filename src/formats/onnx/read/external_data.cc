// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/external_data.h"

#include <algorithm>
#include <filesystem>

#include "formats/onnx/schema/wire.h"

namespace anymps::onnx {

namespace fs = std::filesystem;

static bool lies_in(const fs::path& file, const fs::path& directory) {
  auto [d, f] = std::mismatch(directory.begin(), directory.end(), file.begin(), file.end());
  return d == directory.end() && f != file.end();
}

std::shared_ptr<const MappedFile> ExternalFiles::open(std::string_view location) {
  if (auto found = files_.find(location); found != files_.end()) return found->second;
  if (directory_.empty())
    wire_fail(Code::kUnsupported, "external data \"{}\": the model is not read from a file",
              location);
  if (location.empty()) wire_fail(Code::kCorrupt, "external data without a location");
  if (location.find('\0') != std::string_view::npos)
    wire_fail(Code::kCorrupt, "external data: the location contains a zero byte");

  fs::path relative{std::string(location)};
  if (relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end())
    wire_fail(Code::kCorrupt, "external data \"{}\" must be a path inside the model's directory",
              location);

  std::error_code ec;
  fs::path directory = fs::canonical(directory_, ec);
  if (ec) wire_fail(Code::kIo, "external data: directory {}: {}", directory_, ec.message());
  fs::path file = fs::canonical(directory / relative, ec);
  if (ec) {
    bool missing = ec == std::errc::no_such_file_or_directory || ec == std::errc::not_a_directory;
    wire_fail(missing ? Code::kNotFound : Code::kIo, "external data \"{}\": {}", location,
              ec.message());
  }
  if (!lies_in(file, directory))
    wire_fail(Code::kCorrupt, "external data \"{}\" is a link out of the model's directory",
              location);
  try {
    auto mapped = MappedFile::open(file.string(), "onnx");
    files_.emplace(location, mapped);
    return mapped;
  } catch (const Error& error) {
    wire_fail(error.code(), "external data: {}", error.what());
  }
}

}  // namespace anymps::onnx
