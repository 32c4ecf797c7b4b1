// SPDX-License-Identifier: Apache-2.0
// Graphs and executables saved to memory and loaded from it: the same bytes and the same errors as
// files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "anymps/anymps.hpp"
#include "api/error_of.h"

namespace {

using amps::DType;
using amps::testing::error_of;

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("memory_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  std::filesystem::path path;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

amps::Graph saved_model() {
  amps::Graph g("model");
  const auto x = g.input("x", DType::f32, {-1, 2}, {"N", ""});
  g.outputs({g.relu(g.matmul(x, g.constant({2, 3}, {1, 2, 3, -4, -5, -6})))});
  return g;
}

std::span<const std::byte> span_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

TEST(Memory, HoldsTheBytesOfTheFile) {
  const Folder folder;
  const amps::Graph g = saved_model();
  for (const char* format : {"mps", "onnx"}) {
    const std::string path = folder.file((std::string("graph.") + format).c_str());
    g.save(path);
    EXPECT_EQ(g.bytes(format), content(path)) << format;
  }
  const auto executable = amps::Device::get("cpu").compile(g);
  executable.save(folder.file("compiled.mps"));
  EXPECT_EQ(executable.bytes(), content(folder.file("compiled.mps")));
  EXPECT_NE(error_of([&] { g.bytes("png"); }).find("'png' is not one of mps, onnx"),
            std::string::npos);
}

TEST(Memory, GivesBackWhatWasSaved) {
  const auto device = amps::Device::get("cpu");
  const auto executable = device.compile(saved_model());
  const std::vector<float> x{1, 1, 2, 0};
  const auto feed = device.from_host(DType::f32, {2, 2}, x.data());
  const std::vector<float> expected = executable.run({feed})[0].to_vector<float>();
  EXPECT_EQ(expected, (std::vector<float>{0, 0, 0, 2, 4, 6}));
  std::string bytes = executable.bytes();
  const auto loaded = device.load(span_of(bytes));
  bytes.assign(bytes.size(), '?');  // the bytes were copied
  EXPECT_EQ(loaded.run({feed})[0].to_vector<float>(), expected);
  EXPECT_EQ(loaded.text("passes"), "[]") << "they have run";
  const std::string graph = saved_model().bytes();
  EXPECT_EQ(device.compile(amps::Graph::load(span_of(graph))).run({feed})[0].to_vector<float>(),
            expected);
}

TEST(Memory, BadBytesGiveTheErrorsOfFiles) {
  const Folder folder;
  const auto device = amps::Device::get("cpu");
  const std::string path = folder.file("bad.mps"), good = device.compile(saved_model()).bytes();
  size_t wrong = 0;
  for (size_t at = 0; at < good.size(); at += 7) {
    for (const bool cut : {false, true}) {
      std::string bad = good.substr(0, cut ? at : good.size());
      if (!cut) bad[at] = static_cast<char>(bad[at] ^ 0x41);
      std::ofstream(path, std::ios::binary) << bad;
      const std::string of_file = error_of([&] { device.load(path); });
      EXPECT_EQ(error_of([&] { device.load(span_of(bad), {}, path); }), of_file) << at;
      wrong += of_file != "no error";
    }
  }
  EXPECT_GT(wrong, good.size() / 7);
}

}  // namespace
