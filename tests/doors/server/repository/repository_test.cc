// SPDX-License-Identifier: Apache-2.0
// Loading, unloading, reloading and what the index says meanwhile. Wording is Triton's.
#include "server/repository/repository.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "repository/model_folder.h"

namespace anymps::server {
namespace {

template <typename Fn>
bool soon(Fn&& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Repository, LoadsWhatIsThereAndAnswers) {
  ModelFolder folder;
  folder.add("a", 1);
  folder.add("b", 2, 3);
  folder.config("b", "max_batch_size: 2 " + std::string(kFourFloats));
  Served served(folder, ModelControl::kNone);
  Repository& repository = served.start();
  EXPECT_EQ(index_text(repository), "a/1 READY\nb/3 READY\n");
  EXPECT_TRUE(repository.all_ready());
  EXPECT_EQ(floats_of(ask(repository, make_request("a", {1, 2, 3, 4}))), (Floats{2, 3, 4, 5}));
  const Response response = ask(repository, make_request("b", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}));
  EXPECT_EQ(floats_of(response), (Floats{3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(response.model, "b");
  EXPECT_EQ(response.version, "3");
  EXPECT_EQ(response.outputs[0].name, "y");
  EXPECT_EQ(response.outputs[0].shape, (std::vector<int64_t>{2, 4}));
  const inference::ModelConfig& config = repository.find("a", -1)->config();
  EXPECT_EQ(config.backend(), "metal_mps");
  EXPECT_EQ(config.instance_group(0).name(), "a");
  EXPECT_EQ(config.instance_group(0).count(), 1);
  EXPECT_TRUE(config.has_dynamic_batching());
  EXPECT_EQ(config.version_policy().latest().num_versions(), 1u);
  EXPECT_EQ(repository.find("a", -1)->metrics().read().inference_count(), 1u);
  EXPECT_EQ(refusal([&] { repository.load("a", {}); }),
            "explicit model load / unload is not allowed if polling is enabled");
}

TEST(Repository, ChoosesVersionsByPolicy) {
  ModelFolder folder;
  for (const std::string name : {"all", "two", "some"})
    for (int64_t version = 1; version <= 3; ++version)
      folder.add(name, static_cast<float>(version), version);
  folder.version("all", 0);
  folder.write("all/not_a_version/x", "");
  folder.config("all", "version_policy { all {} }");
  folder.config("two", "version_policy { latest { num_versions: 2 } }");
  folder.config("some", "version_policy { specific { versions: [ 1, 5 ] } }");
  Served served(folder, ModelControl::kNone);
  Repository& repository = served.start();
  EXPECT_EQ(index_text(repository),
            "all/1 READY\nall/2 READY\nall/3 READY\nsome/1 READY\ntwo/2 READY\ntwo/3 READY\n");
  EXPECT_TRUE(served.logged(
      "version 5 is specified for model 'some', but the version directory is not present"));
  for (const int64_t version : {1, 2, 3}) {
    RequestPtr request = make_request("all", {0, 0, 0, 0});
    request->version = version;
    EXPECT_EQ(floats_of(ask(repository, std::move(request)))[0], static_cast<float>(version));
  }
  EXPECT_EQ(ask(repository, make_request("all", {0, 0, 0, 0})).version, "3");
  EXPECT_EQ(refusal([&] { repository.find("some", 5); }),
            "Request for unknown model: 'some' version 5 is not found");
  EXPECT_EQ(refusal([&] { repository.find("none", -1); }),
            "Request for unknown model: 'none' is not found");
}

TEST(Repository, SaysWhyAModelDoesNotLoad) {
  ModelFolder folder;
  const std::string io = kFourFloats;
  folder.add("kind", 1);
  folder.config("kind", io + "instance_group { kind: KIND_CPU gpus: 0 }");
  folder.version("empty", 1);
  folder.version("no_versions", 0);
  folder.config("no_versions", io);
  folder.add("syntax", 1);
  folder.config("syntax", "max_batch_size: 1\n  foo: 2\n");
  folder.add("negative", 1);
  folder.config("negative", "max_batch_size: -1");
  folder.add("renamed", 1);
  folder.config("renamed", "name: \"other\"");
  folder.add("backend", 1);
  folder.config("backend", "backend: \"nope\" " + io);
  folder.add("reshape", 1);
  folder.config("reshape",
                R"(input { name: "x" data_type: TYPE_FP32 dims: 4 reshape { shape: 2 } })");
  Served served(folder);
  Repository& repository = served.start();
  Code code{};
  const auto load = [&](const std::string& name) {
    return refusal([&] { repository.load(name, {}); }, &code);
  };
  EXPECT_EQ(load("kind"),
            "load failed for model 'kind': version 1 is at UNAVAILABLE state: Invalid argument: "
            "instance group kind_0 of model kind has kind KIND_CPU but specifies one or more "
            "GPUs;\n");
  EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_EQ(load("no_versions"),
            "load failed for model 'no_versions': at least one version must be available under "
            "the version policy of model 'no_versions'\n");
  EXPECT_EQ(load("backend"),
            "load failed for model 'backend': version 1 is at UNAVAILABLE state: Invalid argument: "
            "unable to find backend library for backend 'nope', try specifying runtime on the "
            "model configuration.;\n");
  EXPECT_EQ(load("reshape"),
            "load failed for model 'reshape': version 1 is at UNAVAILABLE state: Invalid argument: "
            "model input 'x' has different size for dims and reshape for reshape;\n");
  EXPECT_NE(load("empty").find("load failed for model 'empty': version 1 is at UNAVAILABLE"),
            std::string::npos);
  for (const std::string name :
       {"syntax", "negative", "renamed", "nowhere", "../kind", "a/b", "", ".", ".."}) {
    EXPECT_EQ(load(name), "failed to load '" + name + "', failed to poll from model repository");
    EXPECT_EQ(code, Code::kInternal);
  }
  EXPECT_TRUE(served.logged("config.pbtxt: 2:"));
  EXPECT_TRUE(served.logged("has no field named \"foo\""));
  EXPECT_TRUE(served.logged("'max_batch_size' must be non-negative value for negative"));
  EXPECT_TRUE(
      served.logged("unexpected directory name 'renamed' for model 'other', directory name "
                    "must equal model name"));
  EXPECT_EQ(refusal([&] { repository.find("kind", -1); }, &code),
            "Request for unknown model: 'kind' has no available versions");
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_EQ(refusal([&] { repository.find("kind", 1); }, &code),
            "Request for unknown model: 'kind' version 1 is not at ready state");
  EXPECT_EQ(code, Code::kUnavailable);
  EXPECT_FALSE(repository.all_ready());
}

TEST(Repository, StartsOnlyIfAllLoads) {
  ModelFolder folder;
  folder.add("good", 1);
  folder.version("bad", 1);
  Served strict(folder, ModelControl::kNone);
  EXPECT_EQ(refusal([&] { strict.start(); }), "failed to load all models");
  Served lenient(folder, ModelControl::kNone);
  lenient.options.exit_on_error = false;
  EXPECT_EQ(floats_of(ask(lenient.start(), make_request("good", {1, 1, 1, 1})))[0], 2);
  EXPECT_FALSE(lenient.repository->all_ready());
}

TEST(Repository, RefusesModelsThatAreThereTwice) {
  ModelFolder one, two;
  one.add("same", 1);
  two.add("same", 2);
  two.add("other", 3);
  Served served(one, ModelControl::kNone);
  served.options.model_repositories.push_back(two.path().string());
  served.options.exit_on_error = false;
  EXPECT_EQ(index_text(served.start()),
            "other/1 READY\nsame/ UNAVAILABLE: model appears in two or more repositories\n");
  EXPECT_TRUE(
      served.logged("failed to poll model 'same': not unique across all model repositories"));
}

TEST(Repository, LoadsWithAnotherConfigurationAndOtherFiles) {
  ModelFolder folder, elsewhere;
  folder.add("m", 1);
  elsewhere.add("m", 5);
  std::ifstream file(elsewhere.path() / "m/1/model.mps", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  Served served(folder);
  Repository& repository = served.start();
  repository.load("m", {});
  repository.load("m", {{"config", R"({"max_batch_size":2,"dynamic_batching":{}})"}});
  EXPECT_EQ(repository.find("m", -1)->config().max_batch_size(), 2);
  repository.load("m", {});  // nothing has changed
  EXPECT_EQ(repository.find("m", -1)->config().max_batch_size(), 2);
  repository.load("m", {{"config", "{}"}, {"file:7/model.mps", bytes}});
  EXPECT_EQ(floats_of(ask(repository, make_request("m", {1, 1, 1, 1})))[0], 6);
  EXPECT_EQ(repository.find("m", -1)->version(), 7);
  repository.load("fresh", {{"config", "{}"}, {"file:1/model.mps", bytes}});
  EXPECT_EQ(floats_of(ask(repository, make_request("fresh", {1, 1, 1, 1})))[0], 6);
  const Parameters refused[] = {
      {{"file:1/model.mps", bytes}},
      {{"config", "{"}},
      {{"config", R"({"nope":1})"}},
      {{"config", int64_t{5}}},
      {{"config", "{}"}, {"file:../1/model.mps", bytes}},
      {{"config", "{}"}, {"file:/tmp/model.mps", bytes}},
      {{"config", R"({"name":"else"})"}, {"file:1/model.mps", bytes}},
      {{"other", "x"}},
  };
  for (const Parameters& parameters : refused)
    EXPECT_EQ(refusal([&] { repository.load("fresh", parameters); }),
              "failed to load 'fresh', failed to poll from model repository");
  EXPECT_EQ(floats_of(ask(repository, make_request("fresh", {1, 1, 1, 1})))[0], 6);
  repository.load("m", {});  // as it lies in the repository
  EXPECT_EQ(floats_of(ask(repository, make_request("m", {1, 1, 1, 1})))[0], 2);
}

TEST(Repository, KeepsTheOldOneIfANewOneDoesNotLoad) {
  ModelFolder folder;
  folder.add("m", 1);
  Served served(folder);
  Repository& repository = served.start();
  repository.load("m", {});
  folder.config("m", "instance_group { kind: KIND_CPU gpus: 0 }");
  EXPECT_EQ(refusal([&] { repository.load("m", {}); }),
            "load failed for model 'm': version 1 is at READY state: Invalid argument: instance "
            "group m_0 of model m has kind KIND_CPU but specifies one or more GPUs;\n");
  EXPECT_EQ(floats_of(ask(repository, make_request("m", {1, 1, 1, 1})))[0], 2);
  EXPECT_EQ(index_text(repository),
            "m/1 READY: Invalid argument: instance group m_0 of model m has kind KIND_CPU but "
            "specifies one or more GPUs\n");
  folder.remove("m/config.pbtxt");
  repository.load("m", {});
  EXPECT_EQ(index_text(repository), "m/1 READY\n");
}

TEST(Repository, UnloadsAfterTheLastAnswer) {
  ModelFolder folder;
  folder.add("m", 1);
  Served served(folder);
  Repository& repository = served.start();
  repository.load("m", {});
  std::shared_ptr<ModelVersion> used = repository.find("m", -1);
  repository.unload("m", false);
  EXPECT_EQ(index_text(repository), "m/1 UNLOADING\n");
  EXPECT_EQ(refusal([&] { repository.find("m", -1); }),
            "Request for unknown model: 'm' has no available versions");
  EXPECT_EQ(floats_of(send(used, make_request("m", {1, 1, 1, 1})).get())[0], 2);
  used.reset();
  EXPECT_TRUE(soon([&] { return index_text(repository) == "m/1 UNAVAILABLE: unloaded\n"; }));
  EXPECT_TRUE(repository.all_ready());
  repository.unload("m", false);
  repository.unload("nowhere", false);
  repository.load("m", {});
  EXPECT_EQ(index_text(repository), "m/1 READY\n");
}

TEST(Repository, PollSeesWhatChanged) {
  ModelFolder folder;
  folder.add("m", 1, 1);
  folder.config("m", "version_policy { all {} }");
  Served served(folder, ModelControl::kPoll);
  Repository& repository = served.start();
  const std::shared_ptr<ModelVersion> first = repository.find("m", 1);
  served.lines.clear();
  repository.poll();
  EXPECT_TRUE(served.lines.empty());
  EXPECT_EQ(repository.find("m", 1), first);
  folder.add("m", 2, 2);
  folder.add("late", 3);
  repository.poll();
  EXPECT_EQ(index_text(repository), "late/1 READY\nm/1 READY\nm/2 READY\n");
  EXPECT_EQ(repository.find("m", 1), first);  // this version did not change
  folder.add("m", 9, 1);
  repository.poll();
  EXPECT_NE(repository.find("m", 1), first);
  RequestPtr request = make_request("m", {0, 0, 0, 0});
  request->version = 1;
  EXPECT_EQ(floats_of(ask(repository, std::move(request)))[0], 9);
  folder.remove("late");
  folder.remove("m/2");
  folder.write("broken/config.pbtxt", "nonsense");
  repository.poll();
  EXPECT_TRUE(soon([&] {
    return index_text(repository).find("m/2 UNAVAILABLE: unloaded") != std::string::npos;
  }));
  EXPECT_THROW(repository.find("late", -1), Error);
  EXPECT_TRUE(served.logged("Poll failed for model directory 'broken'"));
  served.lines.clear();
  repository.poll();
  EXPECT_FALSE(served.logged("broken"));  // once a change
}

TEST(Repository, ReloadsWithoutAFailedRequest) {
  ModelFolder folder;
  folder.add("m", 1);
  folder.write("e/1/.keep", "");
  folder.config("e", "platform: \"ensemble\" max_batch_size: 4 " + std::string(kFourFloats) +
                         R"(ensemble_scheduling {
    step { model_name: "m" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "t" } }
    step { model_name: "m" model_version: -1 input_map { key: "x" value: "t" } output_map { key: "y" value: "y" } } })");
  Served served(folder, ModelControl::kPoll);
  Repository& repository = served.start();
  std::atomic<bool> running{true};
  std::atomic<int> answers{0}, wrong{0};
  std::vector<std::thread> clients;
  for (const std::string name : {"m", "e", "m", "e"})
    clients.emplace_back([&, name] {
      const float times = name == "e" ? 2 : 1;
      while (running) {
        const Response response = ask(repository, make_request(name, {0, 1, 2, 3}));
        const Floats values = floats_of(response);
        // Both steps of an ensemble are of the same load.
        const float term = values.empty() ? -1 : values[0] / times;
        if (values.size() != 4 || values[3] != 3 + term * times || term < 1 || term > 8 ||
            term != static_cast<float>(static_cast<int>(term)))
          ++wrong;
        ++answers;
      }
    });
  for (int load = 2; load <= 8; ++load) {
    folder.add("m", static_cast<float>(load));
    repository.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  running = false;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(answers, 50);
  EXPECT_EQ(floats_of(ask(repository, make_request("e", {0, 0, 0, 0})))[0], 16);
  EXPECT_TRUE(repository.stop(std::chrono::seconds(10)));
}

TEST(Repository, TakesTheNamedConfiguration) {
  ModelFolder folder;
  folder.add("m", 1);
  folder.config("m", "max_batch_size: 3");
  folder.write("m/configs/big.pbtxt", "max_batch_size: 7");
  Served served(folder, ModelControl::kNone);
  served.options.model_config_name = "big";
  EXPECT_EQ(served.start().find("m", -1)->config().max_batch_size(), 7);
}

TEST(Repository, MakesTheInstancesThatAreAskedFor) {
  ModelFolder folder;
  folder.add("m", 1);
  folder.config("m", "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] }, { count: 1 } ]");
  Served served(folder, ModelControl::kNone);
  const std::shared_ptr<ModelVersion> version = served.start().find("m", -1);
  EXPECT_EQ(version->config().instance_group(0).name(), "m_0");
  std::vector<std::future<Response>> answers;
  for (int i = 0; i < 64; ++i) answers.push_back(send(version, make_request("m", {1, 2, 3, 4})));
  for (std::future<Response>& answer : answers) EXPECT_EQ(floats_of(answer.get())[3], 5);
}

TEST(Repository, WarmsUp) {
  ModelFolder folder;
  const auto warm = [&](const std::string& name, const std::string& value) {
    folder.add(name, 1);
    folder.config(name,
                  "max_batch_size: 4 model_warmup { name: \"w\" batch_size: 2 count: 3 "
                  "inputs { key: \"x\" value { data_type: TYPE_FP32 dims: 4 " +
                      value + " } } }");
  };
  warm("zero", "zero_data: true");
  warm("random", "random_data: true");
  warm("file", "input_data_file: \"data\"");
  folder.write("file/warmup/data", std::string(16, '\0'));
  Served served(folder);
  Repository& repository = served.start();
  for (const std::string name : {"zero", "random", "file"}) {
    repository.load(name, {});
    const inference::ModelStatistics statistics = repository.find(name, -1)->metrics().read();
    EXPECT_EQ(statistics.execution_count(), 3u) << name;
    EXPECT_EQ(statistics.inference_count(), 6u) << name;
  }
  const std::string start = ": version 1 is at UNAVAILABLE state: ";
  warm("none", "");
  EXPECT_EQ(refusal([&] { repository.load("none", {}); }),
            "load failed for model 'none'" + start +
                "Invalid argument: [request id: <id_unknown>] "
                "warmup setting expects input 'x' to have input_data_type set;\n");
  warm("lost", "input_data_file: \"nowhere\"");
  EXPECT_NE(refusal([&] {
              repository.load("lost", {});
            }).find("Internal: failed to open text file for read "),
            std::string::npos);
  warm("away", "input_data_file: \"../config.pbtxt\"");
  EXPECT_NE(refusal([&] { repository.load("away", {}); }).find("must lie in the folder"),
            std::string::npos);
}

TEST(Repository, CachedAnswersEndWithTheLoad) {
  ModelFolder folder;
  folder.add("m", 1);
  folder.config("m", "response_cache { enable: true }");
  Served served(folder);
  Repository& repository = served.start();
  repository.load("m", {});
  for (int i = 0; i < 3; ++i) {
    RequestPtr request = make_request("m", {1, 2, 3, 4});
    request->id = std::to_string(i);
    const Response response = ask(repository, std::move(request));
    EXPECT_EQ(floats_of(response), (Floats{2, 3, 4, 5}));
    EXPECT_EQ(response.id, std::to_string(i));
  }
  const inference::ModelStatistics statistics = repository.find("m", -1)->metrics().read();
  EXPECT_EQ(statistics.inference_stats().cache_hit().count(), 2u);
  EXPECT_EQ(statistics.inference_stats().cache_miss().count(), 1u);
  EXPECT_EQ(statistics.execution_count(), 1u);
  folder.add("m", 5);
  repository.load("m", {});
  EXPECT_EQ(floats_of(ask(repository, make_request("m", {1, 2, 3, 4})))[0], 6);
}

TEST(Repository, TellsOfAFolderWithoutModels) {
  ModelFolder empty, files, model, good;
  files.write("model.onnx", "");
  files.write("notes/readme.txt", "");
  model.version("1", 0);
  good.add("m", 1);
  const auto warned = [](const ModelFolder& folder, const std::string& part) {
    Served served(folder);
    served.start();
    return served.logged("W the model repository '" + folder.path().string() +
                         "' has no model. A model is a folder with a folder for each version: " +
                         (folder.path() / "NAME/1/model.onnx").string()) &&
           served.logged(part);
  };
  EXPECT_TRUE(warned(empty, ""));
  EXPECT_TRUE(warned(files, ""));
  EXPECT_FALSE(warned(good, ""));
  std::filesystem::create_directories(empty.path() / "1");
  EXPECT_TRUE(warned(empty, "This looks like the folder of one model: give the folder above it"));
  good.remove("m");
  std::filesystem::remove_all(model.path());
  Served served(model);
  EXPECT_EQ(refusal([&] { served.start(); }), "failed to open the model repository '" +
                                                  model.path().string() +
                                                  "': there is no such folder");
}

}  // namespace
}  // namespace anymps::server
