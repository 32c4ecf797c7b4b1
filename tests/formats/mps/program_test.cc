// SPDX-License-Identifier: Apache-2.0
// Elementwise programs in .mps files: they come back as they were, and no damage does harm.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "formats/mps/mps.h"
#include "graph/printer.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

std::unique_ptr<Graph> fused_graph() {
  auto graph = std::make_unique<Graph>();
  Value* a = graph->input("a", DType::kF32, {Dim::symbol("N"), 4});
  Value* b = graph->input("b", DType::kF16, {4});
  Value* numbers = graph->input("numbers", DType::kF64, {2});
  const Node* node =
      graph->add_node(get_op("fused_elementwise"), {a, b, numbers},
                      {{"program", program({{"cast", {x(1)}, {{"dtype", DType::kF32}}},
                                            {"mul", {x(0), parameter(2, 1)}},
                                            {"add", {t(0), t(1)}},
                                            {"leaky_relu", {t(2)}, {{"alpha", parameter(2, 0)}}},
                                            {"greater", {t(3), number(0.5)}}},
                                           {3, 4})}},
                      "fused", 2);
  graph->set_outputs({node->outputs[0], node->outputs[1]});
  return graph;
}

std::string file_of(const Graph& graph) {
  const std::string path = ::testing::TempDir() + fmt::format("anymps_{}_program.mps", ::getpid());
  save_mps(graph, path);
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  return bytes;
}

std::unique_ptr<Graph> graph_of(const std::string& bytes, bool verify = true) {
  const auto owner = std::make_shared<std::string>(bytes);
  return load_mps(*owner, owner, false, "a.mps", nullptr,
                  {.verify_constants = verify, .verify_structure = verify});
}

TEST(SerializedPrograms, ComeBackAsTheyWere) {
  const auto graph = fused_graph();
  const std::string text = to_text(*graph);
  EXPECT_NE(text.find("%fused.0: f32[N, 4], %fused.1: bool[N, 4] = fused_elementwise(%a, %b, "
                      "%numbers) {program=\"t0=cast(x1;dtype=f32); t1=mul(x0,x2[1]); "
                      "t2=add(t0,t1); t3=leaky_relu(t2;alpha=x2[0]); t4=greater(t3,0.5); "
                      "return t3 t4\"}"),
            std::string::npos)
      << text;
  EXPECT_EQ(to_text(*graph_of(file_of(*graph))), text);
}

TEST(SerializedPrograms, DamageIsAnErrorOrAnotherProgram) {
  const std::string good = file_of(*fused_graph());
  std::mt19937_64 random(3);
  size_t refused = 0;
  constexpr int kRounds = 5000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = good;
    for (int edits = 0; edits < 2; ++edits) {
      char& byte = bytes[random() % bytes.size()];
      byte = static_cast<char>(random() % 2 ? byte ^ 1 << random() % 8 : random());
    }
    try {
      EXPECT_FALSE(to_text(*graph_of(bytes, false)).empty());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 4u);
}

}  // namespace
}  // namespace anymps::testing
