// Runs the whole command line in-process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace fairlead::cli {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

inline Outcome run_cli(
    std::vector<std::string> args, const std::string& input = "",
    Serve serve = [](const ServeOptions&, const RereadSettings&) { return 0; }) {
  std::istringstream in(input);
  std::ostringstream out, err;
  Cli cli(in, out, err);
  add_all_commands(cli, std::move(serve));
  int status = cli.run(std::move(args));
  return {status, out.str(), err.str()};
}

}  // namespace fairlead::cli
