// SPDX-License-Identifier: Apache-2.0
#include "graph/printer.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace anymps {
namespace {

using Ints = std::vector<int64_t>;

std::unique_ptr<Graph> attention_like() {
  auto graph = std::make_unique<Graph>();
  graph->name = "g";
  Value* x = graph->input("x", DType::kF32, {Dim::symbol("N"), 6});
  Value* w = graph->constant(Constant::of<float>({6}, {1, 2, 3, 4, 5, 6}), "w");
  Value* sum = graph->add("add", {x, w}, {}, "sum");
  Value* heads = graph->add("reshape", {sum, graph->ints({0, 2, 3})}, {}, "heads");
  Value* turned = graph->add("transpose", {heads}, {{"perm", Ints{1, 0, 2}}}, "turned");
  graph->rename(turned, "y");
  const Node* parts = graph->add_node(get_op("split"), {turned}, {}, "parts", 2);
  graph->set_outputs({turned, parts->outputs[1]});
  return graph;
}

TEST(Printer, Text) {
  EXPECT_EQ(to_text(*attention_like()),
            "graph g (%x: f32[N, 6]) {\n"
            "  %w: f32[6] = constant [1, 2, 3, 4, 5, 6]\n"
            "  %const: i64[3] = constant [0, 2, 3]\n"
            "  %sum: f32[N, 6] = add(%x, %w)\n"
            "  %heads: f32[N, 2, 3] = reshape(%sum, %const)\n"
            "  %y: f32[2, N, 3] = transpose(%heads) {perm=[1, 0, 2]}  // \"turned\"\n"
            "  %parts.0: f32[1, N, 3], %parts.1: f32[1, N, 3] = split(%y)  // \"parts\"\n"
            "  return %y, %parts.1\n"
            "}\n");
}

TEST(Printer, LargeConstantsTellTheirSize) {
  Graph graph;
  graph.set_outputs({graph.constant(Constant::of<float>({1024}, std::vector<float>(1024)), "w")});
  EXPECT_NE(to_text(graph).find("%w: f32[1024] = constant  // 4.0 KB\n"), std::string::npos);
}

TEST(Printer, Json) {
  const std::string json = to_json(*attention_like());
  EXPECT_NE(json.find(R"({"name": "x", "dtype": "f32", "shape": ["N", 6]})"), std::string::npos);
  EXPECT_NE(json.find(R"("op": "transpose", "family": "movement", "name": "turned", )"
                      R"("inputs": ["heads"], "outputs": [{"name": "y", "dtype": "f32", )"
                      R"("shape": [2, "N", 3]}], "attrs": {"perm": [1, 0, 2]})"),
            std::string::npos);
  EXPECT_NE(json.find(R"("shape": [6], "bytes": 24})"), std::string::npos);
  EXPECT_NE(json.find(R"("outputs": ["y", "parts.1"])"), std::string::npos);
}

TEST(Printer, ForeignNamesAreMadeSafe) {
  EXPECT_EQ(json_string("a\"b\\c\n\xff"), "\"a\\\"b\\\\c\\u000a\xef\xbf\xbd\"");
  EXPECT_EQ(xml_text("<a & 'b'>\x01"), "&lt;a &amp; &apos;b&apos;&gt;\xef\xbf\xbd");
  EXPECT_EQ(xml_text("\xc3\xa4\xe2\x82\xac"), "\xc3\xa4\xe2\x82\xac");  // valid UTF-8 is kept
  EXPECT_EQ(xml_text("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");          // an overlong one is not
  EXPECT_EQ(shortened("encoder/layer/0/dense", 11),
            "encod\xe2\x80\xa6"
            "dense");
  EXPECT_EQ(shortened("short", 11), "short");
  Graph graph;
  Value* x = graph.input("a\n<b>", DType::kF32, {2});
  graph.set_outputs({graph.add("transpose", {x}, {}, "t\"&")});
  EXPECT_EQ(to_text(graph).find("a\n"), std::string::npos);
  EXPECT_EQ(to_svg(graph).find("<b>"), std::string::npos);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Printer, SvgHasABoxForEachNodeAndAnArrowForEachUse) {
  const std::string svg = to_svg(*attention_like());
  EXPECT_EQ(count(svg, "<g><title>"), 1 + 4 + 2u);  // input, nodes, outputs
  EXPECT_EQ(count(svg, "url(#arrow)"), 4 + 2u);     // uses by nodes, and the outputs
  EXPECT_EQ(count(svg, ">N×6</text>"), 2u);         // x and sum
  EXPECT_EQ(count(svg, "w 6"), 0u);
  EXPECT_EQ(count(svg, "b 6"), 1u);  // the constant, inside its user
  EXPECT_EQ(count(svg, "<g"), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
}

TEST(Printer, SvgOfAnEmptyGraph) { EXPECT_NE(to_svg(Graph()).find("</svg>"), std::string::npos); }

}  // namespace
}  // namespace anymps
