// SPDX-License-Identifier: Apache-2.0
// .mps files: a graph with its constants, versioned and checksummed. Constants are aligned, so that
// a loaded graph uses them in place in the mapped file. Nothing in a file is trusted.
//
// Layout, little-endian: a header of 64 bytes (magic, format version, file size, number of
// sections, checksum of header and section table), the section table, and the sections:
//   graph      names, ops, attributes by name, values with symbolic shapes, nested graphs
//   constants  dtype, shape, place, size and checksum of each constant
//   metadata   a name and bytes that mean nothing here; any number of them
//   data       the constants' elements, each aligned to 64 bytes; strings with their lengths
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "graph/graph.h"

namespace anymps {

using Metadata = std::map<std::string, std::string>;
inline constexpr const char* kCompiledFor = "compiled_for";  // the driver whose passes have run
inline constexpr uint32_t kMpsVersion = 1;

struct LoadOptions {
  bool verify_constants = true;  // their checksums; those of all else are always verified
  // Off in the fuzz target alone, whose bytes would otherwise get no further than a checksum.
  bool verify_structure = true;
};

bool is_mps(std::string_view bytes);  // by its magic

// Constants are streamed one after the other: made, written and released. `sources`: files that
// they are read from; if one of them was truncated meanwhile, the file at `path` stays as it was.
void save_mps(const Graph& graph, const std::string& path, const Metadata& metadata = {},
              const MappedFiles& sources = {});

// What the file would hold.
std::string mps_bytes(const Graph& graph, const Metadata& metadata = {});

// `owner` keeps `bytes` alive; `mapped`: they are pages of a file. `name` is for messages, which
// read "[mps] NAME: section or node: reason".
std::unique_ptr<Graph> load_mps(std::string_view bytes, std::shared_ptr<const void> owner,
                                bool mapped, const std::string& name, Metadata* metadata = nullptr,
                                const LoadOptions& options = {});

}  // namespace anymps
