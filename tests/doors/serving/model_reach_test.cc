// SPDX-License-Identifier: Apache-2.0
// Where the files that a configuration names may lie.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "fake_request.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

// Libraries run code: only the operator says where they may come from.
TEST(Model, OpLibrariesComeFromTheOperatorsFolders) {
  Folder folder, libraries, elsewhere;
  plus_one().save((folder.version() / "model.mps").string());
  for (const std::filesystem::path& path : {folder.version() / "libown.so", folder / "libown.so",
                                            elsewhere / "libother.so", libraries / "libgood.so"})
    std::ofstream(path) << "no library";
  std::filesystem::create_symlink(elsewhere / "libother.so", libraries / "liblink.so");
  const auto says = [&](const std::string& name, bool named) {
    OperatorOptions options;
    if (named) options.op_libraries = {libraries.path()};
    return load_refusal(folder.version(),
                        {{"name", "m"}, {"model_operations", {{"op_library_filename", {name}}}}},
                        Code::kInvalidArgument, options);
  };
  const std::string outside = "does not lie in " + libraries.path().string();
  const std::tuple<std::string, bool, std::string> cases[] = {
      {"libown.so", false, "named no folder for op libraries: --op-library-directory"},
      {(elsewhere / "libother.so").string(), false, "named no folder"},
      {"libown.so", true, outside},  // beside the model: a load request may have brought it
      {(folder / "libown.so").string(), true, outside},
      {(elsewhere / "libother.so").string(), true, outside},
      {"../" + elsewhere.path().filename().string() + "/libother.so", true, outside},
      {"liblink.so", true, outside},  // a link out of the folder
      {"libnone.so", true, outside},
      {"libgood.so", true, "file too short"},  // reaches the system's loader
      {(libraries / "libgood.so").string(), true, "file too short"},
  };
  for (const auto& [name, named, expected] : cases) {
    const std::string message = says(name, named);
    EXPECT_NE(message.find("op library '" + name + "' cannot be loaded"), std::string::npos)
        << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(Model, PathsOfAConfigurationStayInItsFolder) {
  Folder folder, elsewhere;
  const std::filesystem::path version = folder.version();
  plus_one().save((elsewhere / "model.mps").string());
  plus_one().save((version / "model.mps").string());
  std::filesystem::create_symlink(elsewhere / "model.mps", version / "link.mps");
  std::filesystem::create_symlink(elsewhere.path(), folder / "away");
  for (const std::string name : {"../1/model.mps", "/etc/passwd", "link.mps"}) {
    const std::string says = load_refusal(
        version, {{"name", "m"}, {"default_model_filename", name}}, Code::kInvalidArgument);
    EXPECT_NE(says.find("default_model_filename: '" + name + "'"), std::string::npos) << says;
  }
  const auto cache = [](const std::string& name) -> json {
    return {{"name", "m"}, {"parameters", {{"cache_dir", {{"string_value", name}}}}}};
  };
  // Not where it would become a version, another model, or anything else.
  for (const std::string& name :
       {std::string("1"), std::string("7/x"), std::string("."), std::string("../other"),
        std::string("away"), std::string("away/x"), elsewhere.path().string()}) {
    const std::string says = load_refusal(version, cache(name), Code::kInvalidArgument);
    EXPECT_NE(says.find("parameter 'cache_dir': '" + name + "'"), std::string::npos) << says;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "7"));
  EXPECT_TRUE(Model::load(version, cache("cache"), true));
  EXPECT_FALSE(std::filesystem::is_empty(folder / "cache"));
  // The operator may have it anywhere, and a configuration below that.
  OperatorOptions options;
  EXPECT_TRUE(options.set("cache_dir", (elsewhere / "c").string()));
  EXPECT_TRUE(Model::load(version, {{"name", "m"}}, true, options));
  EXPECT_TRUE(Model::load(version, cache((elsewhere / "c" / "m").string()), true, options));
  EXPECT_FALSE(std::filesystem::is_empty(elsewhere / "c" / "m"));
}

}  // namespace
}  // namespace anymps::serving
