// SPDX-License-Identifier: Apache-2.0
// `anymps serve`: starts anymps-server, which lies beside this program and takes the same
// arguments. It is a separate program, so that the other commands do not load gRPC.
#include "commands.h"
#include "other_program.h"

namespace anymps::cli {

void add_serve(CLI::App& app) {
  add_other_program(app, "serve",
                    "serve models over HTTP and gRPC (KServe v2, Triton's extensions)",
                    [](const Words& arguments) {
                      Words words{(this_program().parent_path() / "anymps-server").string()};
                      words.insert(words.end(), arguments.begin(), arguments.end());
                      become("serve", std::move(words),
                             "build the target anymps_server (cmake -DANYMPS_BUILD_SERVER=ON)");
                    });
}

}  // namespace anymps::cli
