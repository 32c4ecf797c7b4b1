// SPDX-License-Identifier: Apache-2.0
// Ensembles: the flow of tensors, errors of steps, and what is refused when they load.
#include "server/scheduling/ensemble.h"

#include "repository/model_folder.h"
#include "server/repository/config_text.h"

namespace anymps::server {
namespace {

std::string step(const std::string& model, const std::string& in, const std::string& out,
                 const std::string& input = "x", const std::string& output = "y",
                 int version = -1) {
  const auto map = [](const std::string& key, const std::string& value) {
    return " { key: \"" + key + "\" value: \"" + value + "\" }";
  };
  return "step { model_name: \"" + model + "\" model_version: " + std::to_string(version) +
         (in.empty() ? "" : " input_map" + map(input, in)) +
         (out.empty() ? "" : " output_map" + map(output, out)) + " }\n";
}

std::string ensemble(const std::string& steps, const std::string& io = kFourFloats,
                     int max_batch_size = 4) {
  return "platform: \"ensemble\" max_batch_size: " + std::to_string(max_batch_size) + " " + io +
         " ensemble_scheduling { " + steps + " }";
}

struct EnsembleTest : testing::Test {
  void SetUp() override {
    folder.add("one", 1);
    folder.add("ten", 10);
    folder.add("flat", 100, 1, false);
    for (const std::string name : {"one", "ten"})
      folder.config(name, "max_batch_size: 4 " + std::string(kFourFloats));
    folder.config("flat", kFourFloats);
  }
  void add(const std::string& name, const std::string& config) {
    folder.version(name, 1);
    folder.config(name, config);
  }
  Repository& load(const std::string& name) {
    Repository& repository = served.start();
    repository.load(name, {});
    return repository;
  }
  std::string why_not(const std::string& name, const std::string& config) {
    add(name, config);
    return refusal([&] { load(name); });
  }
  ModelFolder folder;
  Served served{folder};
};

TEST_F(EnsembleTest, PassesTensorsFromStepToStep) {
  const std::string io =
      kFourFloats + std::string(R"(output { name: "mid" data_type: TYPE_FP32 dims: 4 })");
  add("e", ensemble(step("one", "x", "mid") + step("ten", "mid", "y"), io));
  Repository& repository = load("e");
  Response response = ask(repository, make_request("e", {0, 1, 2, 3, 4, 5, 6, 7}, {2, 4}));
  const size_t last = response.outputs.at(0).name == "mid";
  EXPECT_EQ(response.outputs.at(last).name, "y");
  EXPECT_EQ(response.outputs.at(1 - last).name, "mid");
  EXPECT_EQ(floats_of(response, last), (Floats{11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(floats_of(response, 1 - last), (Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(response.model, "e");
  EXPECT_EQ(std::get<int64_t>(response.parameters.at("sequence_id")), 0);
  const inference::ModelStatistics statistics = repository.find("e", -1)->metrics().read();
  EXPECT_EQ(statistics.inference_count(), 2u);
  EXPECT_EQ(statistics.execution_count(), 1u);
  EXPECT_EQ(statistics.inference_stats().success().count(), 1u);
  EXPECT_GT(statistics.inference_stats().compute_infer().ns(), 0u);
  EXPECT_EQ(repository.find("one", -1)->metrics().read().inference_count(), 2u);
}

TEST_F(EnsembleTest, WritesToTheMemoryThatTheClientNamed) {
  add("e", ensemble(step("one", "x", "mid") + step("ten", "mid", "y")));
  RequestPtr request = make_request("e", {0, 1, 2, 3});
  auto memory = std::make_shared<Floats>(4);
  request->outputs.push_back({"y", 0, {memory, reinterpret_cast<std::byte*>(memory->data()), 16}});
  const Response response = ask(load("e"), std::move(request));
  EXPECT_EQ(reinterpret_cast<float*>(response.outputs.at(0).data.data), memory->data());
  EXPECT_EQ(*memory, (Floats{11, 12, 13, 14}));
}

TEST_F(EnsembleTest, ForksAndJoins) {
  amps::Graph graph("sum");
  const amps::Value a = graph.input("a", amps::DType::f32, {-1, 4}, {"N", ""});
  const amps::Value b = graph.input("b", amps::DType::f32, {-1, 4}, {"N", ""});
  graph.outputs({graph.op("add", {a, b}, {}, "y")[0]});
  std::filesystem::create_directories(folder.path() / "sum/1");
  graph.save((folder.path() / "sum/1/model.mps").string());
  folder.config("sum", "max_batch_size: 4");
  add("e", ensemble(step("one", "x", "p") + step("ten", "x", "q") +
                    R"(step { model_name: "sum" model_version: -1 input_map { key: "a" value: "p" }
                       input_map { key: "b" value: "q" } output_map { key: "y" value: "y" } })"));
  Repository& repository = load("e");
  const std::shared_ptr<ModelVersion> version = repository.find("e", -1);
  std::vector<std::future<Response>> answers;
  for (int i = 0; i < 32; ++i) {
    const auto f = static_cast<float>(i);
    answers.push_back(send(version, make_request("e", {f, 0, 0, f})));
  }
  for (int i = 0; i < 32; ++i) {
    const auto f = static_cast<float>(i);
    EXPECT_EQ(floats_of(answers[static_cast<size_t>(i)].get()),
              (Floats{2 * f + 11, 11, 11, 2 * f + 11}));
  }
}

TEST_F(EnsembleTest, RunsEnsemblesAndModelsWithoutABatchAxis) {
  add("inner", ensemble(step("one", "x", "t") + step("flat", "t", "y")));
  add("outer", ensemble(step("inner", "x", "t") + step("ten", "t", "y")));
  Repository& repository = load("outer");
  const Response response = ask(repository, make_request("outer", {0, 0, 0, 1}));
  EXPECT_EQ(floats_of(response), (Floats{111, 111, 111, 112}));
  EXPECT_EQ(response.outputs[0].shape, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(error_of(ask(repository, make_request("outer", Floats(8), {2, 4}))),
            "in ensemble 'outer', in ensemble 'inner', [request id: <id_unknown>] unexpected shape "
            "for input 'x' for model 'flat'. Expected [4], got [2,4]. ");
  EXPECT_EQ(repository.find("outer", -1)->metrics().read().inference_stats().fail().count(), 1u);
}

TEST_F(EnsembleTest, ComesAndGoesWithItsModels) {
  add("e", ensemble(step("one", "x", "t") + step("one", "t", "y")));
  add("f", ensemble(step("e", "x", "y")));
  Repository& repository = load("f");
  EXPECT_EQ(floats_of(ask(repository, make_request("f", {0, 0, 0, 0})))[0], 2);
  folder.add("one", 3);
  repository.load("one", {});
  EXPECT_EQ(floats_of(ask(repository, make_request("f", {0, 0, 0, 0})))[0], 6);
  repository.unload("one", false);
  EXPECT_THROW(repository.find("e", -1), Error);
  EXPECT_THROW(repository.find("f", -1), Error);
  repository.load("one", {});
  EXPECT_EQ(floats_of(ask(repository, make_request("f", {0, 0, 0, 0})))[0], 6);
  // "one" was asked for by itself meanwhile, "e" was not.
  repository.unload("f", true);
  EXPECT_TRUE(repository.ready("one", -1));
  EXPECT_FALSE(repository.ready("e", -1));
  EXPECT_FALSE(repository.ready("f", -1));
}

TEST_F(EnsembleTest, IsCancelledBetweenSteps) {
  add("e", ensemble(step("one", "x", "t") + step("ten", "t", "y")));
  RequestPtr request = make_request("e", {0, 0, 0, 0});
  request->cancelled = std::make_shared<std::atomic<bool>>(true);
  const Response response = ask(load("e"), std::move(request));
  ASSERT_TRUE(response.error);
  EXPECT_EQ(response.error->code(), Code::kCancelled);
}

TEST_F(EnsembleTest, RefusesWhatDoesNotFit) {
  const std::string poll = "', failed to poll from model repository";
  const auto load_failed = [](const std::string& name, const std::string& why) {
    return "load failed for model '" + name + "': " + why + "\n";
  };
  EXPECT_EQ(
      why_not("missing", ensemble(step("nope", "x", "y"))),
      load_failed("missing",
                  "ensemble missing contains models that are not available or ambiguous: nope"));
  EXPECT_EQ(
      why_not("input", ensemble(step("one", "x", "y", "z"))),
      load_failed("input",
                  "in ensemble input, ensemble tensor x is mapping to non-existing input z in "
                  "model one"));
  EXPECT_EQ(
      why_not("output", ensemble(step("one", "x", "y", "x", "z"))),
      load_failed("output",
                  "in ensemble output, ensemble tensor y is mapped from non-existing output z "
                  "in model one"));
  EXPECT_EQ(why_not("batch", ensemble(step("one", "x", "y"), kFourFloats, 8)),
            load_failed("batch",
                        "ensemble batch allows maximum batch size 8, but it contains model one "
                        "which only allows maximum batch size to be 4"));
  EXPECT_EQ(why_not("version", ensemble(step("one", "x", "y", "x", "y", 7))),
            load_failed("version",
                        "ensemble 'version' depends on 'one' whose required version 7 is not "
                        "loaded."));
  EXPECT_EQ(
      why_not("self", ensemble(step("self", "x", "y"))),
      load_failed("self", "circular dependency between ensembles: self -> ... -> self -> self"));
  std::string io = kFourFloats;
  for (size_t at; (at = io.find("dims: 4")) != std::string::npos;) io.replace(at, 7, "dims: 5");
  EXPECT_EQ(why_not("shape", ensemble(step("one", "x", "y"), io)),
            load_failed("shape",
                        "in ensemble shape, ensemble tensor x: inconsistent shape: [-1,5] is "
                        "inferred from model shape while [-1,4] is inferred from model one"));
  io = kFourFloats;
  for (size_t at; (at = io.find("FP32")) != std::string::npos;) io.replace(at, 4, "INT32");
  EXPECT_EQ(why_not("type", ensemble(step("one", "x", "y"), io)),
            load_failed("type",
                        "in ensemble type, ensemble tensor x: inconsistent data type: TYPE_INT32 "
                        "is inferred from model type while TYPE_FP32 is inferred from model one"));
  folder.version("broken", 1);
  folder.config("broken", std::string(kFourFloats) + "instance_group { kind: KIND_CPU gpus: 0 }");
  EXPECT_EQ(why_not("over_broken", ensemble(step("broken", "x", "y"))),
            load_failed("over_broken",
                        "ensemble 'over_broken' depends on 'broken' which has no loaded version. "
                        "Model 'broken' loading failed with error: version 1 is at UNAVAILABLE "
                        "state: Invalid argument: instance group broken_0 of model broken has kind "
                        "KIND_CPU but specifies one or more GPUs;"));
  EXPECT_EQ(why_not("polled", ensemble("")), "failed to load 'polled" + poll);
}

TEST(EnsembleConfig, NamesWhatIsWrong) {
  const std::string one = step("one", "x", "y");
  const std::pair<std::string, std::string> cases[] = {
      {ensemble(""), "must specify 'step' for ensemble 'e'"},
      {ensemble(step("", "x", "y")), "must specify 'model_name' in step 0 of ensemble 'e'"},
      {ensemble(step("one", "", "y")), "must specify 'input_map' in step 0 of ensemble 'e'"},
      {ensemble(step("one", "x", "")), "must specify 'output_map' in step 0 of ensemble 'e'"},
      {ensemble(one + one),
       "ensemble tensor 'y' can appear in an output map only once for ensemble 'e' step 1"},
      {ensemble(step("one", "z", "y")), "ensemble input 'x' for ensemble e' is not used"},
      {ensemble(step("one", "x", "z")), "ensemble output 'y' for ensemble e' is not used"},
      {ensemble(one + step("one", "x", "z")), "ensemble tensor 'z' is unused in ensemble 'e'"},
      {ensemble(one + step("one", "a", "b") + step("one", "b", "a")),
       "ensemble tensor 'a' is unused in ensemble 'e'"},
      {ensemble(one) + " instance_group { count: 1 }",
       "instance group should not be specified for ensemble 'e'"},
      {"platform: \"ensemble\"",
       "ensemble scheduling must be set for ensemble e whose platform is ensemble"},
      {"ensemble_scheduling {}",
       "ensemble scheduling cannot be set for model 'e' whose platform is not ensemble"},
  };
  for (const auto& [text, message] : cases) {
    inference::ModelConfig config = parse_config_text(text, "test");
    config.set_name("e");
    EXPECT_EQ(refusal([&] { check_config(config); }), message) << text;
  }
}

// Each level doubles what a request runs: without a bound thirty small configurations are 2^30.
TEST_F(EnsembleTest, OneRequestRunsABoundedNumberOfModels) {
  std::string below = "one";
  for (int level = 1; level <= 10; ++level) {
    const std::string name = "twice" + std::to_string(level);
    add(name, ensemble(step(below, "x", "mid") + step(below, "mid", "y")));
    load(name);
    below = name;
  }
  EXPECT_EQ(served.start().find(below, -1)->extent().runs, 1024u);
  EXPECT_NE(why_not("more", ensemble(step(below, "x", "mid") + step("one", "mid", "y")))
                .find("ensemble 'more', ensemble_scheduling.step: a request would run more than "
                      "1024 models"),
            std::string::npos);
  below = "one";
  for (int level = 1; level <= 16; ++level) {
    const std::string name = "deep" + std::to_string(level);
    add(name, ensemble(step(below, "x", "y")));
    load(name);
    below = name;
  }
  EXPECT_NE(why_not("deeper", ensemble(step(below, "x", "y")))
                .find("more than 16 ensembles lie in each other"),
            std::string::npos);
}

}  // namespace
}  // namespace anymps::server
