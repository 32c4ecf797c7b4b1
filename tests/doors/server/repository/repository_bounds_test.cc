// SPDX-License-Identifier: Apache-2.0
// What a load request may bring and reach.
#include "repository/model_folder.h"
#include "server/repository/repository.h"

namespace anymps::server {
namespace {

TEST(Repository, BoundsWhatLoadRequestsLoad) {
  ModelFolder folder, elsewhere;
  for (const std::string name : {"a", "b"}) folder.add(name, 1);
  folder.add("broken", 1);
  folder.config("broken", "backend: \"nope\" " + std::string(kFourFloats));
  elsewhere.add("m", 5);
  std::ifstream file(elsewhere.path() / "m/1/model.mps", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const Parameters fresh = {{"config", "{}"}, {"file:1/model.mps", bytes}};
  Parameters versions = fresh;
  versions["config"] = R"({"version_policy":{"all":{}}})";
  versions["file:2/model.mps"] = versions["file:3/model.mps"] = bytes;
  Served served(folder);
  served.options.load_models = {"a"};
  served.options.max_loaded_models = 3;
  Repository& repository = served.start();
  Code code{};
  const auto load = [&](const std::string& name, const Parameters& parameters) {
    return refusal([&] { repository.load(name, parameters); }, &code);
  };
  EXPECT_EQ(load("many", versions),
            "failed to load 'many': the server would have 4 versions of models and may have 3; "
            "unload others, or start it with a larger --max-loaded-models");
  EXPECT_EQ(code, Code::kUnavailable);
  repository.load("fresh", fresh);
  EXPECT_NE(load("broken", {}).find("unable to find backend"), std::string::npos);
  // One that did not load is kept too, with what came with it.
  EXPECT_NE(load("b", {}).find("would have 4 versions"), std::string::npos);
  EXPECT_NE(load("more", fresh).find("--max-loaded-models"), std::string::npos);
  EXPECT_EQ(refusal([&] { repository.find("more", -1); }),
            "Request for unknown model: 'more' is not found");
  repository.load("fresh", fresh);  // takes its own place
  repository.unload("broken", false);
  repository.load("b", {});
  // A name that is in no repository leaves nothing behind when its place is taken.
  repository.unload("fresh", false);
  repository.load("more", fresh);
  EXPECT_EQ(refusal([&] { repository.find("fresh", -1); }),
            "Request for unknown model: 'fresh' is not found");
  EXPECT_EQ(floats_of(ask(repository, make_request("more", {1, 1, 1, 1})))[0], 6);
  repository.unload("more", false);
  repository.unload("a", false);
  EXPECT_EQ(load("many", versions),
            "failed to load 'many': the server would have 4 versions of models and may have 3; "
            "unload others, or start it with a larger --max-loaded-models");
  repository.unload("b", false);
  repository.load("many", versions);
}

// What a load request brings is not trusted: it names no file outside the repository, no library,
// and no size that is taken before it is checked.
TEST(Repository, ARequestStaysWithinWhatTheOperatorGave) {
  ModelFolder folder, elsewhere;
  folder.add("m", 1);
  elsewhere.write("secret", std::string(16, 's'));
  elsewhere.write("lib.so", "no library");
  const std::string away = elsewhere.path().string();
  std::filesystem::create_directories(folder.path() / "m" / "warmup");
  std::filesystem::create_symlink(elsewhere.path() / "secret", folder.path() / "m" / "link");
  std::filesystem::create_symlink(elsewhere.path() / "secret",
                                  folder.path() / "m" / "warmup" / "link");
  std::ifstream file(folder.path() / "m/1/model.mps", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  Served served(folder);
  Repository& repository = served.start();
  const auto labels = [](const std::string& name) {
    return R"({"max_batch_size":4,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[4]}],)"
           R"("output":[{"name":"y","data_type":"TYPE_FP32","dims":[4],"label_filename":")" +
           name + R"("}]})";
  };
  const auto warm = [](const std::string& data) {
    return R"({"max_batch_size":4,"model_warmup":[{"name":"w","batch_size":1,"inputs":{"x":)"
           R"({"data_type":"TYPE_FP32",)" +
           data + "}}}]}";
  };
  const auto library = [](const std::string& name) {
    return R"({"model_operations":{"op_library_filename":[")" + name + R"("]}})";
  };
  const auto cache = [](const std::string& name) {
    return R"({"parameters":{"cache_dir":{"string_value":")" + name + R"("}}})";
  };
  const std::pair<std::string, std::string> cases[] = {
      {library("lib.so"), "op library 'lib.so' cannot be loaded"},
      {library(away + "/lib.so"), "cannot be loaded"},
      {library("../lib.so"), "cannot be loaded"},
      {cache(away), "parameter 'cache_dir'"},
      {cache("../other"), "parameter 'cache_dir'"},
      {cache("9"), "parameter 'cache_dir'"},
      {labels(away + "/secret"), "label_filename"},
      {labels("../../secret"), "label_filename"},
      {labels("link"), "is a link that leads out of the model repository"},
      {warm(R"("dims":[4],"input_data_file":")" + away + R"(/secret")"), "input_data_file"},
      {warm(R"("dims":[4],"input_data_file":"link")"), "is a link that leads out"},
      {warm(R"("dims":["1099511627776"],"zero_data":true)"),
       "model_warmup[0] 'w', input 'x', dims"},
      {R"({"default_model_filename":")" + away + R"(/secret"})", "default_model_filename"},
      {R"({"default_model_filename":"../../m/1/model.mps"})", "default_model_filename"},
      {R"({"max_batch_size":2000000000})", "max_batch_size: at most"},
  };
  for (const auto& [config, expected] : cases) {
    for (const bool with_files : {false, true}) {
      if (with_files && config.find("link") != std::string::npos) continue;
      Parameters parameters = {{"config", config}};
      if (with_files) {
        parameters["file:1/model.mps"] = bytes;
        parameters["file:lib.so"] = "no library";
        parameters["file:1/lib.so"] = "no library";
      }
      const std::string says = refusal([&] { repository.load("m", parameters); });
      EXPECT_NE(says.find(expected), std::string::npos) << config << "\n" << says;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "m" / "9"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "other"));
}

}  // namespace
}  // namespace anymps::server
