// SPDX-License-Identifier: Apache-2.0
// `anymps completion bash|zsh|fish`: a completion script made from the commands themselves.
#include <fmt/format.h>

#include "commands.h"

namespace anymps::cli {

namespace {

// `serve` hands its arguments on: its options are asked of the program when they are wanted.
constexpr const char* kServe = "serve";
constexpr const char* kServeOptions =
    "anymps serve --help 2>/dev/null | grep -oE -- '--[a-z0-9][a-z0-9-]*' | sort -u";

std::string options_of(const CLI::App& command) {
  if (command.get_name() == kServe) return fmt::format("$({})", kServeOptions);
  std::string words;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) words += " --" + name;
  for (const CLI::App* group :
       command.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); }))
    words += options_of(*group);
  return words;
}

std::string bash(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    commands += " " + command->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), options_of(*command));
  }
  return fmt::format(
      "_anymps() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}} words=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    mapfile -t COMPREPLY < <(compgen -W \"{} --help "
      "--version\" -- \"$word\")\n"
      "    return\n  fi\n  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  if [[ $word == -* ]]; then mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  else mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); fi\n}}\ncomplete -o filenames -F "
      "_anymps anymps\n",
      commands, cases);
}

std::string fish(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format("complete -c anymps -n __fish_use_subcommand -a {} -d '{}'\n",
                        command->get_name(), command->get_description());
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        text += fmt::format("complete -c anymps -n '__fish_seen_subcommand_from {}' -l {}\n",
                            command->get_name(), name);
  }
  text += fmt::format("complete -c anymps -n '__fish_seen_subcommand_from {}' -a \"({})\"\n",
                      kServe, kServeOptions);
  return text;
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "print a shell completion script");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app] {
    if (*shell == "fish")
      fmt::print("{}", fish(app));
    else if (*shell == "zsh")
      fmt::print("autoload -U +X bashcompinit && bashcompinit\n{}", bash(app));
    else
      fmt::print("{}", bash(app));
  });
}

}  // namespace anymps::cli
