// SPDX-License-Identifier: Apache-2.0
// A model is found, compiled, kept, and answers batches of requests; what is wrong with one request
// is no matter of the others.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "fake_request.h"
#include "serving/log.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

std::shared_ptr<Model> load(const Folder& folder, const amps::Graph& graph, json config = {}) {
  config["name"] = "m";
  graph.save((folder.version() / "model.mps").string());
  return Model::load(folder.version(), std::move(config), true);
}

TEST(Model, FindsItsFile) {
  Folder folder;
  const std::filesystem::path version = folder.version("3");
  EXPECT_EQ(load_refusal(version, {{"name", "m"}}, Code::kUnavailable),
            "model 'm', version 3: there is no model.mps, model.onnx, model.pte or model.metal_mps "
            "in " +
                version.string());
  EXPECT_EQ(load_refusal(version, {{"name", "m"}, {"default_model_filename", "net.onnx"}},
                         Code::kUnavailable),
            "model 'm', version 3: there is no file 'net.onnx' in " + version.string());
  EXPECT_NE(load_refusal(version, {{"name", "m"}, {"default_model_filename", "../net.onnx"}},
                         Code::kInvalidArgument)
                .find("must lie in the folder " + version.string()),
            std::string::npos);
  std::ofstream(version / "model.onnx") << "no model at all";
  const std::string says = load_refusal(version, {{"name", "m"}}, Code::kInternal);
  EXPECT_NE(says.find("model 'm', version 3, file 'model.onnx'"), std::string::npos) << says;
  for (const char* name : {"model.onnx", "model.mps", "net.mps"}) {
    plus_one().save((version / name).string());
    json config = {{"name", "m"}};
    if (std::string(name) == "net.mps") config["default_model_filename"] = name;
    auto model = Model::load(version, config, true);
    FakeRequest request;
    request.floats("x", {1, 2}, {1, 2});
    execute(*model, request);
    EXPECT_EQ(request.values<float>("y"), (Floats{2, 3})) << name;
  }
  // What Triton asks for when the folder is called m.metal_mps.
  EXPECT_TRUE(Model::load(version, {{"default_model_filename", "model.metal_mps"}}, true));
}

TEST(Model, LaysRequestsTogetherAndTakesThemApart) {
  Folder folder;
  auto model = load(folder, plus_one());
  FakeRequest a, b, c;
  a.floats("x", {1, 2}, {1, 2});
  b.floats("x", {2, 2}, {3, 4, 5, 6});
  c.raw("x", AMPS_F32, {1, 2},
        {std::string("\0\0\x80", 3), std::string("\x3f\0\0\0\x40", 5)});  // 1, 2 in two pieces
  const Times times = execute(*model, a, b, c);
  EXPECT_EQ(times.batch_size, 4u);
  EXPECT_LE(times.start, times.compute_start);
  EXPECT_LT(times.compute_start, times.compute_end);
  EXPECT_LE(times.compute_end, times.end);
  EXPECT_EQ(a.values<float>("y"), (Floats{2, 3}));
  EXPECT_EQ(b.values<float>("y"), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(b.shape("y"), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(c.values<float>("y"), (Floats{2, 3}));
}

TEST(Model, BadRequestsFailAlone) {
  Folder folder;
  auto model = load(folder, plus_one());
  FakeRequest good, type, shape, bytes, none, extra, twice, large, rank, gone, memory, negative,
      huge;
  good.floats("x", {1, 2}, {1, 2});
  type.input<int32_t>("x", AMPS_I32, {1, 2}, {1, 2});
  shape.floats("x", {1, 3}, {1, 2, 3});
  bytes.floats("x", {1, 2}, {1});
  extra.floats("x", {1, 2}, {1, 2}).floats("z", {1, 2}, {1, 2});
  twice.floats("x", {1, 2}, {1, 2}).floats("x", {1, 2}, {1, 2});
  large.floats("x", {5, 2}, Floats(10));
  rank.floats("x", {2}, {1, 2});
  gone.floats("x", {1, 2}, {1, 2}).gone = true;
  memory.floats("x", {1, 2}, {1, 2}).no_memory = true;
  negative.floats("x", {1, -2}, {});
  huge.floats("x", {4, int64_t{1} << 62}, {});
  const Times times = execute(*model, type, shape, bytes, none, good, extra, twice, large, rank,
                              gone, memory, negative, huge);
  EXPECT_EQ(times.batch_size, 2u);
  EXPECT_EQ(good.values<float>("y"), (Floats{2, 3}));
  EXPECT_EQ(type.message(),
            "inference input 'x' data-type is 'INT32', but model 'm' expects 'FP32'");
  EXPECT_EQ(shape.message().substr(0, 76),
            "unexpected shape for input 'x' for model 'm'. Expected [-1,2], got [1,3]. NO");
  EXPECT_EQ(bytes.message(),
            "input byte size mismatch for input 'x' for model 'm'. Expected 8, got 4");
  EXPECT_EQ(none.message(),
            "expected 1 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing "
            "required input(s) ['x']. Please provide all required input(s).");
  EXPECT_EQ(extra.message(), "unexpected inference input 'z' for model 'm'");
  EXPECT_EQ(twice.message(), "input 'x' already exists in request");
  EXPECT_EQ(large.message(), "inference request batch-size must be <= 4 for 'm'");
  EXPECT_NE(rank.message().find("got [2]"), std::string::npos);
  EXPECT_EQ(gone.error->code(), Code::kCancelled);
  EXPECT_EQ(memory.message(), "no memory for y");
  EXPECT_NE(negative.message().find("unexpected shape"), std::string::npos);
  EXPECT_NE(huge.message().find("unexpected shape"), std::string::npos);
}

// As when memory ends between two requests.
TEST(Model, NothingIsThrownAtTheDoor) {
  struct Unlucky : FakeRequest {
    void done(const Times&) override { throw std::runtime_error("no memory"); }
  };
  const Folder folder;
  const std::shared_ptr<Model> model = load(folder, plus_one());
  Unlucky request;
  request.floats("x", {1, 2}, {1, 2});
  EXPECT_EQ(execute(*model, request).batch_size, 0u);
  EXPECT_EQ(request.message(), "no memory");
}

TEST(Model, HugeShapesAllocateNothing) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f64, {-1, -1}, {"N", "M"});
  graph.outputs({graph.op("relu", {x}, {}, "y")[0]});
  auto model = load(folder, graph);
  FakeRequest a, b;
  a.floats("x", {1, 1}, {});
  b.input<double>("x", AMPS_F64, {4, int64_t{1} << 60}, {});
  execute(*model, a, b);
  EXPECT_NE(b.message().find("too large"), std::string::npos) << b.message();
}

TEST(Model, OneRequestIsComputedInPlace) {
  Folder folder;
  auto model = load(folder, plus_one());
  alignas(64) float in[4] = {1, 2, 3, 4}, out[4] = {};
  FakeRequest request;
  request.at("x", AMPS_F32, {2, 2}, in, sizeof(in)).target = out;
  execute(*model, request);
  EXPECT_EQ(request.message(), "");
  EXPECT_EQ(out[3], 5);
  // The request's output lies over its input: as if it did not.
  FakeRequest same;
  same.at("x", AMPS_F32, {2, 2}, in, sizeof(in)).target = reinterpret_cast<char*>(in);
  execute(*model, same);
  EXPECT_EQ(in[0], 2);
  EXPECT_EQ(in[3], 5);
  // Memory that is not aligned for the type is copied.
  char odd[17] = {}, odd_out[17] = {};
  std::memcpy(odd + 1, in, sizeof(in));
  FakeRequest crooked;
  crooked.at("x", AMPS_F32, {2, 2}, odd + 1, sizeof(in)).target = odd_out + 1;
  execute(*model, crooked);
  std::memcpy(in, odd_out + 1, sizeof(in));
  EXPECT_EQ(in[0], 3);
  EXPECT_EQ(in[3], 6);
}

TEST(Model, DifferentShapesGoIntoDifferentRuns) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {-1, -1}, {"N", "M"});
  graph.outputs({graph.op("relu", {x}, {}, "y")[0]});
  auto model = load(folder, graph);
  FakeRequest a, b, c, none;
  a.floats("x", {1, 2}, {-1, 2});
  b.floats("x", {1, 3}, {3, -4, 5});
  c.floats("x", {1, 2}, {6, -7});
  none.floats("x", {1, 0}, {});
  EXPECT_EQ(execute(*model, a, b, c, none).batch_size, 4u);
  EXPECT_EQ(a.values<float>("y"), (Floats{0, 2}));
  EXPECT_EQ(b.values<float>("y"), (Floats{3, 0, 5}));
  EXPECT_EQ(c.values<float>("y"), (Floats{6, 0}));
}

TEST(Model, OnlyTheOutputsThatAreWanted) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {-1, 2}, {"N", ""});
  graph.outputs({graph.op("relu", {x}, {}, "a")[0], graph.op("neg", {x}, {}, "b")[0]});
  auto model = load(folder, graph);
  FakeRequest one, both;
  one.floats("x", {1, 2}, {-1, 2}).only({"b"});
  both.floats("x", {1, 2}, {-1, 2});
  execute(*model, one, both);
  EXPECT_EQ(one.outputs.size(), 1u);
  EXPECT_EQ(one.values<float>("b"), (Floats{1, -2}));
  EXPECT_EQ(both.outputs.size(), 2u);
  FakeRequest alone;
  alone.floats("x", {1, 2}, {-1, 2}).only({"a"});
  execute(*model, alone);
  EXPECT_EQ(alone.outputs.size(), 1u);
  EXPECT_EQ(alone.values<float>("a"), (Floats{0, 2}));
}

TEST(Model, ReshapesBothWays) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {-1, -1, 2}, {"N", "M", ""});
  graph.outputs({graph.op("relu", {x}, {}, "y")[0]});
  json in = tensor("x", "TYPE_FP32", {2, -1}), out = tensor("y", "TYPE_FP32", {1, -1, 2});
  in["reshape"] = {{"shape", {-1, 2}}};
  out["reshape"] = {{"shape", {-1, 2}}};
  auto model = load(folder, graph, {{"max_batch_size", 4}, {"input", {in}}, {"output", {out}}});
  FakeRequest a, b;
  a.floats("x", {1, 2, 3}, {1, 2, 3, 4, 5, -6});
  b.floats("x", {2, 2, 1}, {1, 2, 3, -4});
  execute(*model, a, b);
  EXPECT_EQ(a.values<float>("y"), (Floats{1, 2, 3, 4, 5, 0}));
  EXPECT_EQ(a.shape("y"), (std::vector<int64_t>{1, 1, 3, 2}));
  EXPECT_EQ(b.shape("y"), (std::vector<int64_t>{2, 1, 1, 2}));
}

TEST(Model, StringsBothWays) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", static_cast<amps::DType>(AMPS_STRING), {-1, 2}, {"N", ""});
  graph.outputs({graph.op("reverse", {x}, {{"axes", std::vector<int64_t>{1}}}, "y")[0]});
  auto model = load(folder, graph);
  EXPECT_EQ(model->config()["input"][0]["data_type"], "TYPE_STRING");
  FakeRequest a, b, cut, few;
  const std::string long_text(1000, 'q');
  a.strings("x", {1, 2}, {"one", ""});
  const std::string bytes = FakeRequest::serialize({long_text, std::string("n\0l", 3), "c", "d"});
  b.raw("x", AMPS_STRING, {2, 2}, {bytes.substr(0, 2), bytes.substr(2, 500), bytes.substr(502)});
  cut.raw("x", AMPS_STRING, {1, 2}, {std::string("\x05\0\0\0ab", 6)});
  few.strings("x", {1, 2}, {"one"});
  execute(*model, a, cut, b, few);
  const auto text = [](const FakeRequest& request) {
    const std::vector<char> bytes = request.values<char>("y");
    return std::string(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(text(a), FakeRequest::serialize({"", "one"}));
  EXPECT_EQ(text(b), FakeRequest::serialize({std::string("n\0l", 3), long_text, "d", "c"}));
  EXPECT_NE(cut.message().find("incomplete string data"), std::string::npos) << cut.message();
  EXPECT_EQ(few.message(),
            "expected 2 string elements for inference input 'x' for model 'm', got 1");
}

TEST(Model, AnswersOneByOneWhatFailsTogether) {
  Folder folder;
  amps::Graph graph;  // the indices choose rows: one that does not exist is an error of the run
  const amps::Value x = graph.input("i", amps::DType::i64, {-1, 1}, {"N", ""});
  const float rows[3] = {10, 20, 30};
  const amps::Value table = graph.constant(amps::DType::f32, {3}, rows);
  graph.outputs({graph.op("gather", {table, x}, {{"axis", 0}}, "y")[0]});
  auto model = load(folder, graph);
  FakeRequest good, bad, fine;
  good.input<int64_t>("i", AMPS_I64, {1, 1}, {2});
  bad.input<int64_t>("i", AMPS_I64, {1, 1}, {77});
  fine.input<int64_t>("i", AMPS_I64, {1, 1}, {0});
  execute(*model, good, bad, fine);
  EXPECT_EQ(good.values<float>("y"), Floats{30});
  EXPECT_EQ(fine.values<float>("y"), Floats{10});
  EXPECT_NE(bad.message(), "");
}

TEST(Model, ShapesThatDependOnData) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {-1}, {"N"});
  graph.outputs({graph.op("nonzero", {x}, {}, "y")[0]});
  auto model =
      load(folder, graph, {{"input", {tensor("x", "TYPE_FP32", {-1})}}, {"output", json::array()}});
  EXPECT_EQ(model->settings().max_batch_size, 0);
  FakeRequest request;
  request.floats("x", {4}, {0, 1, 0, 2});
  EXPECT_EQ(execute(*model, request).batch_size, 1u);
  EXPECT_EQ(request.values<int64_t>("y"), (std::vector<int64_t>{1, 3}));
}

TEST(Model, KeepsCompiledGraphs) {
  Folder folder;
  const json parameters = {{"cache_dir", {{"string_value", "graphs"}}}};
  const auto entries = [&] {
    std::vector<std::filesystem::path> list;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "graphs"))
      list.push_back(entry.path());
    return list;
  };
  const auto answer = [&](Model& model) {
    FakeRequest request;
    request.floats("x", {1, 2}, {1, 2});
    execute(model, request);
    return request.values<float>("y");
  };
  EXPECT_EQ(answer(*load(folder, plus_one(), {{"parameters", parameters}})), (Floats{2, 3}));
  ASSERT_EQ(entries().size(), 1u);
  const std::filesystem::path entry = entries()[0];
  const auto written = std::filesystem::last_write_time(entry);
  auto again = load(folder, plus_one(), {{"parameters", parameters}});
  EXPECT_EQ(answer(*again), (Floats{2, 3}));
  EXPECT_EQ(again->config()["max_batch_size"], 4);
  EXPECT_EQ(std::filesystem::last_write_time(entry), written);
  // A damaged entry is not believed, and written anew.
  const auto size = std::filesystem::file_size(entry);
  std::filesystem::resize_file(entry, size / 2);
  EXPECT_EQ(answer(*load(folder, plus_one(), {{"parameters", parameters}})), (Floats{2, 3}));
  EXPECT_EQ(std::filesystem::file_size(entry), size);
  {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size) - 3);
    file.put('!');
  }
  EXPECT_EQ(answer(*load(folder, plus_one(), {{"parameters", parameters}})), (Floats{2, 3}));
  // Another model in the same file is another entry.
  amps::Graph other;
  const amps::Value x = other.input("x", amps::DType::f32, {-1, 2}, {"N", ""});
  other.outputs({other.op("neg", {x}, {}, "y")[0]});
  EXPECT_EQ(answer(*load(folder, other, {{"parameters", parameters}})), (Floats{-1, -2}));
  EXPECT_EQ(entries().size(), 2u);
}

TEST(Model, OverwritingTheFileDoesNotChangeAModelThatRuns) {
  Folder folder;
  auto model = load(folder, plus_one());
  {
    std::ofstream file(folder.version() / "model.mps", std::ios::binary | std::ios::trunc);
    file << "short";
  }
  FakeRequest request;
  request.floats("x", {1, 2}, {1, 2});
  execute(*model, request);
  EXPECT_EQ(request.values<float>("y"), (Floats{2, 3}));
}

TEST(Model, SeveralThreadsShareOne) {
  Folder folder;
  auto model = load(folder, plus_one());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        FakeRequest a, b;
        const auto value = static_cast<float>(t * 1000 + i);
        a.floats("x", {1, 2}, {value, value});
        b.floats("x", {1 + i % 3, 2}, Floats(static_cast<size_t>(2 + 2 * (i % 3)), -value));
        execute(*model, a, b);
        wrong += a.values<float>("y") != Floats{value + 1, value + 1};
        wrong += b.values<float>("y").at(0) != 1 - value;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Model, Profile) {
  Folder folder, plain;
  auto model = load(folder, plus_one(), {{"parameters", {{"profile", {{"string_value", "1"}}}}}});
  FakeRequest request;
  request.floats("x", {1, 2}, {1, 2});
  execute(*model, request);
  EXPECT_NE(model->profile().find("add"), std::string::npos) << model->profile();
  EXPECT_EQ(load(plain, plus_one())->profile(), "");
}

TEST(Model, RunsPartsOfABatch) {
  for (const char* size : {"0", "1", "2", "3", "auto"}) {
    Folder folder;
    auto model =
        load(folder, plus_one(),
             {{"max_batch_size", 16}, {"parameters", {{"micro_batch", {{"string_value", size}}}}}});
    for (int turn = 0; turn < 20; ++turn) {
      FakeRequest a, bad, b, c, d;
      a.floats("x", {1, 2}, {1, 2});
      bad.floats("x", {1, 3}, {1, 2, 3});
      b.floats("x", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
      c.floats("x", {1, 2}, {5, 6});
      d.floats("x", {1, 2}, {7, 8});
      EXPECT_EQ(execute(*model, a, bad, b, c, d).batch_size, 7u);
      EXPECT_EQ(a.values<float>("y"), (Floats{2, 3})) << size;
      EXPECT_EQ(b.values<float>("y"), (Floats{2, 3, 4, 5, 6, 7, 8, 9})) << size;
      EXPECT_EQ(c.values<float>("y"), (Floats{6, 7})) << size;
      EXPECT_EQ(d.values<float>("y"), (Floats{8, 9})) << size;
      EXPECT_TRUE(bad.error && !bad.finished);
    }
  }
}

TEST(Model, Precision) {
  const auto answer = [](const std::string& precision) {
    Folder folder;
    amps::Graph graph;
    const amps::Value x = graph.input("x", amps::DType::f32, {-1, 2}, {"N", ""});
    const float w[4] = {0.1f, 0.2f, 0.3f, 0.7f};
    graph.outputs(
        {graph.op("matmul", {x, graph.constant(amps::DType::f32, {2, 2}, w)}, {}, "y")[0]});
    const json parameters = {{"precision", {{"string_value", precision}}},
                             {"cache_dir", {{"string_value", (folder / "cache").string()}}}};
    Floats first;
    for (int i = 0; i < 2; ++i) {  // compiled, and out of the cache
      auto model = load(folder, graph, {{"parameters", parameters}});
      EXPECT_EQ(model->config()["input"][0]["data_type"], "TYPE_FP32");
      FakeRequest request;
      request.floats("x", {1, 2}, {1.01f, 3.03f});
      execute(*model, request);
      if (i) {
        EXPECT_EQ(request.values<float>("y"), first);
      }
      first = request.values<float>("y");
    }
    return first;
  };
  const Floats full = answer("fp32"), half = answer("fp16"), brain = answer("bf16");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NE(full.at(i), half.at(i));
    EXPECT_NEAR(full.at(i), half.at(i), 4e-3);
    EXPECT_NEAR(full.at(i), brain.at(i), 4e-2);
  }
}

}  // namespace
}  // namespace anymps::serving
