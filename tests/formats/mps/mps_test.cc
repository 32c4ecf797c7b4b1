// SPDX-License-Identifier: Apache-2.0
#include "formats/mps/mps.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>

#include "base/checksum.h"
#include "base/mapped_file.h"
#include "base/string_store.h"
#include "graph/printer.h"
#include "memory/string_constant.h"

namespace anymps {
namespace {

void infer_first(InferContext& ctx) { ctx.set(0, ctx.shape(0)); }

OP(test_every_attr)
    .doc("One attribute of each kind.")
    .input("x", kAny)
    .optional("y", kAny)
    .output("z")
    .attr("i", 1)
    .attr("f", 1.0)
    .attr("s", "a", {})
    .attr("ints", std::vector<int64_t>{})
    .attr("floats", std::vector<double>{})
    .attr("b", false)
    .attr("d", DType::kF32)
    .required("g", AttrKind::kGraph)
    .infer(infer_first)
    .no_tests("only for this test");

std::string temporary(const std::string& name) {
  return ::testing::TempDir() + fmt::format("anymps_{}_{}", ::getpid(), name);
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Loaded {
  std::unique_ptr<Graph> graph;
  Metadata metadata;
};

Loaded parse(const std::string& bytes, const LoadOptions& options = {}) {
  constexpr std::align_val_t kAlignment{64};
  const std::shared_ptr<char> copy(static_cast<char*>(::operator new(bytes.size() + 1, kAlignment)),
                                   [](char* p) { ::operator delete(p, kAlignment); });
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  Loaded loaded;
  loaded.graph =
      load_mps({copy.get(), bytes.size()}, copy, false, "a.mps", &loaded.metadata, options);
  return loaded;
}

std::unique_ptr<Graph> load(const std::string& path, const LoadOptions& options = {}) {
  const auto file = MappedFile::open(path, "mps");
  return load_mps(file->bytes(), file, true, path, nullptr, options);
}

std::string saved(const Graph& graph, const Metadata& metadata = {}) {
  const std::string path = temporary("saved.mps");
  save_mps(graph, path, metadata);
  const std::string bytes = read(path);
  std::filesystem::remove(path);
  return bytes;
}

std::string parse_error(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kCorrupt);
    return error.what();
  }
  return "no error";
}

std::unique_ptr<Graph> every_attr() {
  auto inner = std::make_shared<Graph>();
  inner->name = "inner";
  Value* a = inner->input("a", DType::kI64, {Dim::symbol("N")});
  inner->set_outputs({inner->add("add", {a, inner->ints({7})}, {}, "plus")});
  auto graph = std::make_unique<Graph>();
  graph->name = "outer";
  Value* x = graph->input("x", DType::kF16, {Dim::symbol("N"), Dim::symbol("(H+1)//2"), 3});
  NamedAttrs attrs{{"i", INT64_MIN},
                   {"f", -0.5},
                   {"s", "text with \"quotes\" and \n"},
                   {"ints", std::vector<int64_t>{INT64_MAX, -1, 0}},
                   {"floats", std::vector<double>{1e300, -std::numeric_limits<double>::infinity()}},
                   {"b", true},
                   {"d", DType::kC64}};
  attrs.emplace_back("g", AttrValue(inner));
  Value* z = graph->add("test_every_attr", {x}, attrs, "node/1");
  graph->rename(z, "z:0");
  const Node* parts = graph->add_node(get_op("split"), {z}, {{"axis", 2}}, "parts", 3);
  Value* padded = graph->add("pad", {parts->outputs[1], nullptr, graph->scalar(DType::kF16, 2)},
                             {{"pads", std::vector<int64_t>{0, 0, 1, 0, 0, 1}}}, "padded");
  graph->set_outputs({padded, z, parts->outputs[0]});
  return graph;
}

std::unique_ptr<Graph> small() {
  auto graph = std::make_unique<Graph>();
  graph->name = "small";
  Value* x = graph->input("x", DType::kF32, {Dim::symbol("N"), 4});
  Value* w = graph->constant(Constant::of<float>({4}, {1, 2, 3, 4}), "w");
  graph->set_outputs({graph->add("transpose", {graph->add("add", {x, w}, {}, "sum")}, {}, "y")});
  return graph;
}

TEST(Serializer, RoundTripOfEveryKindOfAttribute) {
  const auto graph = every_attr();
  const Loaded loaded = parse(saved(*graph));
  EXPECT_EQ(to_text(*loaded.graph), to_text(*graph));
  EXPECT_EQ(to_json(*loaded.graph), to_json(*graph));
  verify(*loaded.graph);
  const Node& node = *loaded.graph->nodes().front();
  EXPECT_EQ(node.attrs.i("i"), INT64_MIN);
  EXPECT_EQ(node.attrs.dtype("d"), DType::kC64);
  EXPECT_EQ(node.attrs.graph("g")->name, "inner");
  // A second trip gives the same bytes.
  EXPECT_EQ(saved(*loaded.graph), saved(*graph));
}

TEST(Serializer, ConstantsOfEveryDtypeAreViewsOfTheFile) {
  Graph graph;
  std::vector<Value*> outputs;
  for (int code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype == DType::kString) continue;  // pointers: not bytes to be compared
    for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 4}}) {
      std::vector<std::byte> bytes(byte_count(dtype, shape));
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(dtype == DType::kBool ? i & 1 : i * 5 + 1);
      outputs.push_back(graph.constant(Constant::copy(dtype, shape, bytes)));
    }
  }
  graph.set_outputs(outputs);
  const std::string path = temporary("dtypes.mps");
  save_mps(graph, path);
  for (bool check : {true, false}) {
    const auto loaded = load(path, {check});
    ASSERT_EQ(loaded->outputs().size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Constant &a = *outputs[i]->constant, &b = *loaded->outputs()[i]->constant;
      EXPECT_EQ(a.desc(), b.desc());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data().get()) % 64, 0u);
      EXPECT_EQ(std::memcmp(a.data().get(), b.data().get(), a.bytes()), 0);
    }
  }
  std::filesystem::remove(path);
}

TEST(Serializer, ASharedConstantIsWrittenOnceAndALazyOneIsMade) {
  Graph graph;
  int made = 0;
  const auto lazy = Constant::lazy(DType::kF32, {1024}, [&](std::byte* out) {
    ++made;
    std::memset(out, 1, 4096);
  });
  graph.set_outputs({graph.constant(lazy, "a"), graph.constant(lazy, "b")});
  const std::string bytes = saved(graph);
  EXPECT_EQ(made, 1);
  EXPECT_LT(bytes.size(), 4096u + 1024u);
  const Loaded loaded = parse(bytes);
  EXPECT_EQ(loaded.graph->outputs()[0]->constant, loaded.graph->outputs()[1]->constant);
  EXPECT_EQ(loaded.graph->outputs()[1]->constant->data().get()[4095], std::byte{1});
}

TEST(Serializer, BytesMayLieAnywhere) {
  const std::string bytes = "x" + saved(*small());
  const auto owner = std::make_shared<const std::string>(bytes);
  const auto graph = load_mps(std::string_view(*owner).substr(1), owner, false, "a.mps");
  for (const Value* value : graph->values()) {
    if (!value->is_constant()) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(value->constant->data().get()) % 16, 0u);
  }
  EXPECT_EQ(to_text(*graph), to_text(*small()));
}

TEST(Serializer, TheLimitOfASymbolComesBack) {
  Graph graph;
  graph.set_outputs({graph.add("neg", {graph.input("x", DType::kF32, {Dim::symbol("N", 8), 2})})});
  const Loaded loaded = parse(saved(graph));
  EXPECT_EQ(to_string(loaded.graph->inputs()[0]->type), "f32[N<=8, 2]");
  EXPECT_EQ(loaded.graph->inputs()[0]->shape()[0].limit(), 8);
}

TEST(Serializer, MetadataComesBack) {
  const Metadata metadata{{"driver", "cpu"}, {"empty", ""}, {"options", std::string("\0\1\2", 3)}};
  EXPECT_EQ(parse(saved(*small(), metadata)).metadata, metadata);
}

TEST(Serializer, TruncationAnywhereIsAnError) {
  const std::string bytes = saved(*small(), {{"k", "v"}});
  ASSERT_EQ(to_text(*parse(bytes).graph), to_text(*small()));
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string error = parse_error(bytes.substr(0, size));
    EXPECT_TRUE(error.starts_with("[mps] a.mps: header: ")) << size << ": " << error;
  }
  EXPECT_NE(parse_error(bytes + "x"), "no error");
}

TEST(Serializer, AFlippedBitIsAnErrorOrChangesNothing) {
  const auto graph = small();
  const std::string good = saved(*graph, {{"k", "v"}}), text = to_text(*graph);
  std::string bytes = good;
  size_t errors = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    try {
      const Loaded loaded = parse(bytes);
      // Only the padding between sections may differ.
      EXPECT_EQ(to_text(*loaded.graph), text);
      EXPECT_EQ(loaded.metadata, (Metadata{{"k", "v"}}));
      EXPECT_EQ(good[bit / 8], '\0');
    } catch (const Error&) {
      ++errors;
    }
    bytes[bit / 8] = good[bit / 8];
  }
  EXPECT_GT(errors, bytes.size() * 8 / 2);
}

TEST(Serializer, AFlippedBitWithoutChecksumsNeverDoesHarm) {
  const std::string good = saved(*every_attr(), {{"k", "v"}});
  std::string bytes = good;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    try {
      verify(*parse(bytes, {false, false}).graph);
    } catch (const Error&) {
    }
    bytes[bit / 8] = good[bit / 8];
  }
}

// Changes a number in a good file and mends the checksums, so that what is behind them is reached.
std::string mended(std::string bytes) {
  auto number = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, bytes.data() + at, 8);
    return value;
  };
  auto put = [&](size_t at, uint64_t value) { std::memcpy(bytes.data() + at, &value, 8); };
  uint32_t sections;
  std::memcpy(&sections, bytes.data() + 24, 4);
  for (uint32_t i = 0; i < sections; ++i) {
    const size_t entry = 64 + 32 * i;
    const uint64_t offset = number(entry + 8), size = number(entry + 16);
    if (offset <= bytes.size() && size <= bytes.size() - offset)
      put(entry + 24, checksum(bytes.data() + offset, size));
  }
  put(56, Checksum().add(bytes.data(), 56).add(bytes.data() + 64, 32 * sections).value());
  return bytes;
}

std::string replaced(std::string bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  return mended(bytes.replace(at, from.size(), to));
}

TEST(Serializer, ErrorsNameThePlaceAndTheReason) {
  const std::string good = saved(*small());
  EXPECT_EQ(parse_error(replaced(good, "transpose", "transpoze")),
            "[mps] a.mps: graph: node 1 \"y\": there is no op 'transpoze'");
  std::string newer = good;
  newer[8] = 2;
  try {
    parse(newer);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_STREQ(error.what(),
                 "[mps] a.mps: header: format version 2 is newer than 1, the newest that can be "
                 "read");
  }
  EXPECT_EQ(parse_error("PK not an mps file"), "[mps] a.mps: header: this is not an .mps file");
  std::string damaged = good;
  damaged[damaged.find("small") + 1] ^= 1;
  EXPECT_EQ(parse_error(damaged), "[mps] a.mps: graph: the checksum is wrong");
  std::string weights = good;
  weights.back() ^= 1;
  EXPECT_EQ(parse_error(weights), "[mps] a.mps: constants: constant 0: the checksum is wrong");
  EXPECT_NO_THROW(parse(weights, {false}));
  // sum = add(value 0, value 1): let it use itself, value 2.
  const std::string uses{"\2\0\0\0\0\0\0\0\1\0\0\0", 12}, itself{"\2\0\0\0\0\0\0\0\2\0\0\0", 12};
  EXPECT_EQ(parse_error(replaced(good, uses, itself)),
            "[mps] a.mps: graph: node 0 \"sum\": value 2 is used before it is made (2 exist)");
  // The shape of y, [4, N], said to be [5, N].
  const std::string four("\0\4\0\0\0\0\0\0\0\1\1\0\0\0N", 15);
  std::string five = four;
  five[1] = 5;
  EXPECT_EQ(parse_error(replaced(good, four, five)),
            "[mps] a.mps: graph: node 1 \"y\": 'y' is said to be f32[5, N], but is f32[4, N]");
  EXPECT_NE(parse_error(replaced(saved(*every_attr()), "floats", "flaots"))
                .find("node 0 \"node/1\": [test_every_attr] has no attribute 'flaots'"),
            std::string::npos);
}

TEST(Serializer, ErrorsOfTheFileSystem) {
  EXPECT_THROW(save_mps(*small(), "/nowhere/at/all.mps"), Error);
}

// Files that were written once stay readable: the format's memory.
TEST(Serializer, TheCorpusLoads) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/mps")) {
    verify(*load(entry.path().string()));
    ++files;
  }
  EXPECT_GE(files, 3u);
}

TEST(Serializer, KeepsListsStringsAndBodies) {
  Graph graph;
  Value* list = graph.input("list", {DType::kF32, false, {}, std::nullopt, Container::kSequence});
  Value* condition = graph.input("c", DType::kBool, {});
  Value* words = graph.constant(string_constant({3}, {"one", "", std::string("a\0b", 3)}), "words");
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  for (const auto& branch : {yes, no}) {
    Value* inside = branch->input("l", list->type);
    branch->set_outputs({branch->add("sequence_length", {inside}), inside});
  }
  Node* node = graph.add_node(get_op("if_else"), {condition, list},
                              {{"then_branch", AttrValue(yes)}, {"else_branch", AttrValue(no)}},
                              "choice", 2);
  graph.set_outputs({node->outputs[0], node->outputs[1], words});
  const std::string path = temporary("lists.mps");
  save_mps(graph, path);
  const std::string bytes = read(path);
  std::filesystem::remove(path);
  auto loaded = parse(bytes);
  verify(*loaded.graph);
  EXPECT_EQ(to_text(*loaded.graph), to_text(graph));
  EXPECT_EQ(loaded.graph->inputs()[0]->type.container, Container::kSequence);
  const Constant& constant = *loaded.graph->find_value("words")->constant;
  const auto data = constant.data();
  const auto* elements = reinterpret_cast<const Text*>(data.get());
  EXPECT_EQ(text_of(elements[0]), "one");
  EXPECT_EQ(text_of(elements[1]), "");
  EXPECT_EQ(text_of(elements[2]), std::string("a\0b", 3));
}

}  // namespace
}  // namespace anymps
