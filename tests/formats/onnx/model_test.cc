// SPDX-License-Identifier: Apache-2.0
// Files written field by field, so that each test shows the bytes that it is about.
#include "formats/onnx/schema/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <protozero/pbf_writer.hpp>

#include "base/error.h"

namespace anymps::onnx {
namespace {

namespace fs = std::filesystem;
using protozero::pbf_writer;
using Build = std::function<void(pbf_writer&)>;

std::string message(const Build& build) {
  std::string bytes;
  pbf_writer writer(bytes);
  build(writer);
  return bytes;
}

std::string tensor(
    const std::string& name, DataType type, const std::vector<int64_t>& dims,
    const Build& data = [](pbf_writer&) {}) {
  return message([&](pbf_writer& w) {
    for (int64_t dim : dims) w.add_int64(1, dim);
    w.add_int32(2, static_cast<int32_t>(type));
    data(w);
    w.add_string(8, name);
  });
}

std::string graph(const Build& build) {
  return message([&](pbf_writer& w) { w.add_message(7, message(build)); });
}

std::string with_initializer(const std::string& bytes) {
  return graph([&](pbf_writer& w) { w.add_message(5, bytes); });
}

std::string with_attribute(const std::string& bytes) {
  return graph([&](pbf_writer& w) {
    w.add_message(1, message([&](pbf_writer& n) {
                    n.add_string(4, "Op");
                    n.add_message(5, bytes);
                  }));
  });
}

Build external(const std::string& location, const std::string& offset, const std::string& length) {
  return [=](pbf_writer& w) {
    auto entry = [&](const char* key, const std::string& value) {
      if (value.empty()) return;
      w.add_message(13, message([&](pbf_writer& e) {
                      e.add_string(1, key);
                      e.add_string(2, value);
                    }));
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    w.add_enum(14, 1);
  };
}

void expect_fails(const std::function<void()>& body, Code code, const std::string& part) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), std::string(name(code))) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what() << "\nexpected: " << part;
  }
}

void expect_corrupt(const std::string& bytes, const std::string& part) {
  expect_fails([&] { parse_model(bytes, {"m.onnx", "", nullptr}); }, Code::kCorrupt, part);
}

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  std::vector<T> out(tensor.data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), tensor.data.data(), out.size() * sizeof(T));
  return out;
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "anymps_onnx_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "model" / "sub");
    write(root_ / "secret.bin", "12345678");
    write(root_ / "model" / "w.bin", std::string("\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 12));
    write(root_ / "model" / "sub" / "w.bin", std::string("\0\0\0\x40\0\0\x80\x3f", 8));
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  Model read(const Build& data) {
    std::string file = (root_ / "model" / "m.onnx").string();
    write(file, with_initializer(tensor("w", DataType::kFloat, {2}, data)));
    return read_model(file);
  }

  fs::path root_;
};

TEST(OnnxModel, ReadsEveryPart) {
  std::string bytes = message([](pbf_writer& w) {
    w.add_int64(1, 8);
    w.add_string(2, "maker");
    w.add_message(8, message([](pbf_writer& o) { o.add_int64(2, 17); }));
    w.add_message(14, message([](pbf_writer& e) {
                    e.add_string(1, "key");
                    e.add_string(2, "value");
                  }));
    w.add_message(25, message([](pbf_writer& f) {
                    f.add_string(1, "Twice");
                    f.add_string(4, "a");
                    f.add_string(10, "my");
                  }));
    w.add_message(7, message([](pbf_writer& g) {
                    g.add_string(2, "main");
                    g.add_message(1, message([](pbf_writer& n) {
                                    n.add_string(1, "x");
                                    n.add_string(1, "");
                                    n.add_string(2, "y");
                                    n.add_string(3, "soft");
                                    n.add_string(4, "Softmax");
                                    n.add_message(5, message([](pbf_writer& a) {
                                                    a.add_string(1, "axis");
                                                    a.add_int64(3, -1);
                                                    a.add_enum(20, 2);
                                                  }));
                                  }));
                    g.add_message(11, message([](pbf_writer& v) {
                                    v.add_string(1, "x");
                                    v.add_message(
                                        2, message([](pbf_writer& t) {
                                          t.add_message(
                                              1, message([](pbf_writer& tt) {
                                                tt.add_enum(1, 1);
                                                tt.add_message(
                                                    2, message([](pbf_writer& s) {
                                                      s.add_message(1, message([](pbf_writer& d) {
                                                                      d.add_string(2, "N");
                                                                    }));
                                                      s.add_message(1, message([](pbf_writer& d) {
                                                                      d.add_int64(1, 3);
                                                                    }));
                                                      s.add_message(1, std::string());
                                                    }));
                                              }));
                                        }));
                                  }));
                  }));
  });
  Model model = parse_model(bytes);
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.producer_name, "maker");
  ASSERT_EQ(model.opset_imports.size(), 1u);
  EXPECT_EQ(model.opset_imports[0].version, 17);
  ASSERT_EQ(model.metadata.size(), 1u);
  EXPECT_EQ(model.metadata[0].second, "value");
  ASSERT_EQ(model.functions.size(), 1u);
  EXPECT_EQ(model.functions[0].name, "Twice");

  EXPECT_EQ(model.graph.name, "main");
  ASSERT_EQ(model.graph.nodes.size(), 1u);
  const Node& node = model.graph.nodes[0];
  EXPECT_EQ(node.op_type, "Softmax");
  EXPECT_EQ(node.inputs, (std::vector<std::string_view>{"x", ""}));
  ASSERT_NE(node.find("axis"), nullptr);
  EXPECT_EQ(node.find("axis")->i, -1);
  EXPECT_EQ(node.find("axes"), nullptr);

  ASSERT_EQ(model.graph.inputs.size(), 1u);
  const ValueInfo& x = model.graph.inputs[0];
  EXPECT_EQ(x.elem_type, DataType::kFloat);
  ASSERT_EQ(x.dims.size(), 3u);
  EXPECT_EQ(x.dims[0].param, "N");
  EXPECT_EQ(x.dims[1].value, 3);
  EXPECT_EQ(x.dims[2].value, -1);
  EXPECT_TRUE(x.dims[2].param.empty());
}

TEST(OnnxModel, RawDataIsAViewIntoTheFile) {
  std::string bytes = with_initializer(tensor("w", DataType::kInt32, {2}, [](pbf_writer& w) {
    w.add_bytes(9, std::string("\1\0\0\0\2\0\0\0", 8));
  }));
  Model model = parse_model(bytes);
  std::string_view data = model.graph.initializers.at(0).data;
  EXPECT_GE(data.data(), bytes.data());
  EXPECT_LE(data.data() + data.size(), bytes.data() + bytes.size());
  EXPECT_EQ(elements<int32_t>(model.graph.initializers[0]), (std::vector<int32_t>{1, 2}));
}

TEST(OnnxModel, TypedFieldsComeOutAsRawData) {
  auto read = [](DataType type, const std::vector<int64_t>& dims, const Build& data) {
    auto bytes = std::make_shared<std::string>(tensor("t", type, dims, data));
    return parse_tensor(*bytes, {"t", "", bytes});
  };
  std::vector<float> floats = {1.5f, -2};
  auto packed_floats = [&](pbf_writer& w) { w.add_packed_float(4, floats.begin(), floats.end()); };
  EXPECT_EQ(elements<float>(read(DataType::kFloat, {2}, packed_floats)), floats);
  EXPECT_EQ(elements<float>(read(DataType::kComplex64, {1}, packed_floats)), floats);
  std::vector<double> doubles = {0.1, -2};
  auto packed_doubles = [&](pbf_writer& w) {
    w.add_packed_double(10, doubles.begin(), doubles.end());
  };
  EXPECT_EQ(elements<double>(read(DataType::kComplex128, {1}, packed_doubles)), doubles);

  auto two_runs = [&](pbf_writer& w) {
    packed_floats(w);
    w.add_float(4, 7);
    packed_floats(w);
  };
  EXPECT_EQ(elements<float>(read(DataType::kFloat, {5}, two_runs)),
            (std::vector<float>{1.5f, -2, 7, 1.5f, -2}));

  std::vector<int32_t> small = {-1, 127};
  auto int32s = [&](pbf_writer& w) { w.add_packed_int32(5, small.begin(), small.end()); };
  EXPECT_EQ(elements<int8_t>(read(DataType::kInt8, {2}, int32s)), (std::vector<int8_t>{-1, 127}));
  EXPECT_EQ(elements<uint8_t>(read(DataType::kBool, {2}, int32s)), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(elements<uint8_t>(read(DataType::kInt4, {3}, int32s)),
            (std::vector<uint8_t>{255, 127}));

  std::vector<int32_t> halves = {0x3c00, 0xfc00};
  EXPECT_EQ(elements<uint16_t>(
                read(DataType::kFloat16, {2},
                     [&](pbf_writer& w) { w.add_packed_int32(5, halves.begin(), halves.end()); })),
            (std::vector<uint16_t>{0x3c00, 0xfc00}));
  EXPECT_EQ(elements<int64_t>(
                read(DataType::kInt64, {1}, [&](pbf_writer& w) { w.add_int64(7, INT64_MIN); })),
            std::vector<int64_t>{INT64_MIN});
  EXPECT_EQ(elements<uint32_t>(
                read(DataType::kUint32, {}, [&](pbf_writer& w) { w.add_uint64(11, UINT32_MAX); })),
            std::vector<uint32_t>{UINT32_MAX});
  EXPECT_EQ(
      elements<double>(read(DataType::kDouble, {1}, [&](pbf_writer& w) { w.add_double(10, 0.1); })),
      std::vector<double>{0.1});
}

TEST(OnnxModel, EmptyTensorsNeedNoData) {
  Tensor t = parse_tensor(tensor("e", DataType::kFloat, {4, 0, 2}));
  EXPECT_EQ(t.element_count, 0);
  EXPECT_TRUE(t.data.empty());
}

TEST(OnnxModel, StringTensors) {
  std::string bytes = tensor("s", DataType::kString, {2}, [](pbf_writer& w) {
    w.add_bytes(6, "ab");
    w.add_bytes(6, "");
  });
  EXPECT_EQ(parse_tensor(bytes).strings, (std::vector<std::string_view>{"ab", ""}));
  expect_corrupt(with_initializer(tensor("s", DataType::kString, {2})),
                 "m.onnx: graph.initializer[0]: tensor \"s\": STRING[2] needs 2 strings");
}

TEST(OnnxModel, AttributeTypeIsFoundWhereTheFileLeavesItOut) {
  std::vector<int64_t> ints = {1, 2};
  std::string bytes = with_attribute(message([&](pbf_writer& a) {
    a.add_string(1, "pads");
    a.add_packed_int64(8, ints.begin(), ints.end());
    a.add_int64(8, 3);
  }));
  Model model = parse_model(bytes);
  const Attribute& pads = model.graph.nodes.at(0).attributes.at(0);
  EXPECT_EQ(pads.type, Attribute::Type::kInts);
  EXPECT_EQ(pads.ints, (std::vector<int64_t>{1, 2, 3}));
}

TEST(OnnxModel, TensorSizesAreChecked) {
  auto raw = [](size_t n) { return [n](pbf_writer& w) { w.add_bytes(9, std::string(n, '\1')); }; };
  struct Case {
    DataType type;
    std::vector<int64_t> dims;
    Build data;
    const char* part;
  } cases[] = {
      {DataType::kFloat, {2, 2}, raw(15), "FLOAT[2, 2] needs 16 bytes, the file has 15"},
      {DataType::kFloat, {2}, raw(0), "needs 8 bytes, the file has 0"},
      {DataType::kFloat, {0}, raw(4), "needs 0 bytes, the file has 4"},
      {DataType::kFloat, {2, -2}, raw(16), "negative size -2"},
      {DataType::kFloat, {0, -2}, raw(0), "negative size -2"},
      {DataType::kFloat, {INT64_MAX, 2}, raw(16), "overflow"},
      {DataType::kDouble, {INT64_MAX / 8}, raw(16), "overflow"},
      {DataType::kUndefined, {1}, raw(4), "data_type is UNDEFINED"},
      {static_cast<DataType>(-5), {1}, raw(4), "data_type is type -5"},
      {DataType::kInt8, {1}, [](pbf_writer& w) { w.add_int32(5, 256); }, "cannot hold"},
      {DataType::kInt64, {2}, [](pbf_writer& w) { w.add_int64(7, 1); }, "needs 2 values"},
  };
  for (const Case& c : cases) {
    std::string bytes = with_initializer(tensor("w", c.type, c.dims, c.data));
    expect_corrupt(bytes, c.part);
    expect_corrupt(bytes, "[onnx] m.onnx: graph.initializer[0]: tensor \"w\": ");
  }
}

TEST(OnnxModel, BrokenBytesAreNamedByPath) {
  expect_corrupt("", "m.onnx: model: no graph");
  expect_corrupt(std::string("\x3a\x7f", 2), "m.onnx: graph: field 7 has length 127");
  expect_corrupt(std::string(3, '\xff'), "m.onnx: model: not valid protobuf");
  expect_corrupt(std::string("\x38\x01", 2), "field 7 has wire type 0, expected 2");
  expect_corrupt(graph([](pbf_writer& w) { w.add_string(2, "\xc0\x80"); }),
                 "graph: field 2 is not valid UTF-8");
  expect_corrupt(graph([](pbf_writer& w) { w.add_message(1, std::string()); }),
                 "graph.node[0]: node \"\" has no op_type");
  expect_corrupt(with_attribute(message([](pbf_writer& a) { a.add_int64(3, 1); })),
                 "graph.node[0].attribute[0]: the attribute has no name");
  expect_corrupt(with_attribute(message([](pbf_writer& a) {
                   a.add_string(1, "value");
                   a.add_enum(20, 4);
                 })),
                 "attribute \"value\" is a TENSOR and holds 0");
  expect_corrupt(with_attribute(message([](pbf_writer& a) {
                   a.add_string(1, "floats");
                   a.add_bytes(7, "abc");
                 })),
                 "not a multiple of 4");
}

TEST(OnnxModel, EveryTruncationIsAnError) {
  std::string bytes = with_initializer(tensor(
      "w", DataType::kInt32, {2}, [](pbf_writer& w) { w.add_bytes(9, std::string(8, 'x')); }));
  parse_model(bytes);
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string part = bytes.substr(0, n);
    EXPECT_THROW(parse_model(part), Error) << n;
  }
}

TEST(OnnxModel, NestingIsLimited) {
  auto nested = [](int depth) {
    std::string inner;
    for (int i = 0; i < depth; ++i)
      inner = message([&](pbf_writer& g) {
        g.add_message(1, message([&](pbf_writer& n) {
                        n.add_string(4, "If");
                        n.add_message(5, message([&](pbf_writer& a) {
                                        a.add_string(1, "then_branch");
                                        a.add_message(6, inner);
                                      }));
                      }));
      });
    return message([&](pbf_writer& w) { w.add_message(7, inner); });
  };
  EXPECT_EQ(parse_model(nested(63)).graph.nodes.size(), 1u);
  expect_corrupt(nested(64), "nested more than 64 deep");
}

TEST_F(ExternalData, IsMappedFromTheModelsDirectory) {
  EXPECT_EQ(elements<float>(read(external("w.bin", "4", "8")).graph.initializers[0]),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(read(external("sub/w.bin", "", "")).graph.initializers[0]),
            (std::vector<float>{2, 1}));
  fs::create_symlink("sub/w.bin", root_ / "model" / "inside.bin");
  EXPECT_EQ(elements<float>(read(external("inside.bin", "", "")).graph.initializers[0]),
            (std::vector<float>{2, 1}));
}

TEST_F(ExternalData, MustStayInTheModelsDirectory) {
  fs::create_symlink("../secret.bin", root_ / "model" / "link.bin");
  fs::create_directory_symlink("..", root_ / "model" / "up");
  struct Case {
    std::string location, part;
  } cases[] = {
      {"../secret.bin", "must be a path inside the model's directory"},
      {"sub/../../secret.bin", "must be a path inside the model's directory"},
      {(root_ / "secret.bin").string(), "must be a path inside the model's directory"},
      {"link.bin", "is a link out of the model's directory"},
      {"up/secret.bin", "is a link out of the model's directory"},
      {".", "is a link out of the model's directory"},
      {"", "without a location"},
      {std::string("w.bin\0x", 7), "zero byte"},
  };
  for (const Case& c : cases) {
    expect_fails([&] { read(external(c.location, "", "")); }, Code::kCorrupt, c.part);
    expect_fails([&] { read(external(c.location, "", "")); }, Code::kCorrupt,
                 "m.onnx: graph.initializer[0]: tensor \"w\": external data");
  }
}

TEST_F(ExternalData, RangesAndFilesAreChecked) {
  expect_fails([&] { read(external("none.bin", "", "")); }, Code::kNotFound, "\"none.bin\"");
  expect_fails([&] { read(external("sub", "", "")); }, Code::kIo, "not a regular file");
  expect_fails([&] { read(external("w.bin", "13", "")); }, Code::kCorrupt,
               "offset 13 is past the end");
  expect_fails([&] { read(external("w.bin", "8", "")); }, Code::kCorrupt,
               "8 bytes at offset 8 pass the end");
  expect_fails([&] { read(external("w.bin", "8", "4")); }, Code::kCorrupt,
               "needs 8 bytes, the file has 4");
  expect_fails([&] { read(external("w.bin", "-4", "")); }, Code::kCorrupt,
               "offset \"-4\" is not a number");
  expect_fails([&] { read(external("w.bin", "4", "18446744073709551615")); }, Code::kCorrupt,
               "pass the end");
  expect_fails(
      [] {
        parse_model(
            with_initializer(tensor("w", DataType::kFloat, {2}, external("w.bin", "", ""))));
      },
      Code::kUnsupported, "not read from a file");
}

TEST_F(ExternalData, TensorsOutliveTheModel) {
  Tensor kept = read(external("w.bin", "4", "8")).graph.initializers[0];
  EXPECT_EQ(elements<float>(kept), (std::vector<float>{1, 2}));
}

TEST(OnnxModel, FilesThatCannotBeRead) {
  expect_fails([] { read_model("no/such.onnx"); }, Code::kNotFound,
               "[onnx] no/such.onnx: cannot open");
  expect_fails([] { read_model("/"); }, Code::kIo, "not a regular file");
}

}  // namespace
}  // namespace anymps::onnx
