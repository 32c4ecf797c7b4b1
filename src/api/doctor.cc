// SPDX-License-Identifier: Apache-2.0
// What this machine and this build have, as JSON: the answer to "why is it slow / wrong here".
#include <unistd.h>

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "api/handles.h"
#include "base/cores.h"
#include "base/env.h"
#include "formats/onnx/read/import.h"
#include "runtime/tuning/choice_store.h"
#include "runtime/tuning/tuner.h"

using namespace anymps;
using namespace anymps::api;

namespace {

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // begins with its name
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

double load_average() {  // of the last minute; -1 where the system does not tell
  double minute = -1;
  return getloadavg(&minute, 1) == 1 ? minute : -1;
}

}  // namespace

extern "C" amps_status amps_doctor(amps_string** json) {
  return guard([&] {
    need(json, "json") = nullptr;
    using Json = nlohmann::ordered_json;
    const Cores cores = find_cores();
    Json devices = Json::array(), variables = Json::array(), passes = Json::array();
    for (const std::string& name : driver_names()) {
      Driver& driver = get_driver(name);
      size_t kernels = 0;
      for (const Op* op : all_ops()) kernels += !driver.kernels(*op).empty();
      devices.push_back({{"name", name},
                         {"description", driver.description()},
                         {"threads", driver.max_threads()},
                         {"host_visible", driver.traits().host_visible},
                         {"ops_with_own_kernels", kernels}});
    }
    for (const EnvVariable& variable : env_variables()) {
      const char* set = std::getenv(variable.name.c_str());
      variables.push_back({{"name", variable.name},
                           {"value", env_string(variable.name.c_str())},
                           {"default", variable.default_value},
                           {"set", set != nullptr},
                           {"meaning", variable.doc}});
    }
    for (const Pass& pass : all_passes())
      passes.push_back({{"name", pass.name}, {"order", pass.order}, {"does", pass.doc}});
    Driver& driver = get_driver(env_string("ANYMPS_DRIVER"));
    const ChoiceStore::Report tuned = ChoiceStore(driver).report(driver.max_threads());
    *json = new_string(Json{
        {"version", ANYMPS_VERSION},
        {"abi", AMPS_ABI_VERSION},
        {"compiler", kCompiler},
        {"cores", cores.machine},
        {"affinity", cores.affinity},
        {"physical_cores", cores.physical},
        {"cpu_quota", cores.quota},
        {"usable_cores", cores.usable},
        {"busy_elsewhere", busy_elsewhere()},
        {"memory_bytes", static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)},
        {"load", load_average()},
        {"ops", all_ops().size()},
        {"onnx_ops", onnx::supported_ops().size()},
        {"devices", devices},
        {"passes", passes},
        {"tuning",
         {{"on", Tuner::asked()},
          {"file", tuned.path},
          {"choices", tuned.choices},
          {"problem", tuned.problem}}},
        {"environment",
         variables}}.dump(2, ' ', false, Json::error_handler_t::replace));
  });
}
