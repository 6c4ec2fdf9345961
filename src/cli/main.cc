#include <unistd.h>

#include <iostream>

#include "cli/commands.h"
#include "node/serve.h"

namespace {

// A node reaches no other one, so nothing that it lacks is "a node that does not answer" or "a queue that is full".
int serve(const fairlead::ServeOptions& options, const fairlead::RereadSettings& reread) {
  const fairlead::Status ended = fairlead::serve(options, reread);
  if (ended) return fairlead::cli::kOk;
  return ended.error().code == fairlead::Errc::kInvalidArgument ? fairlead::cli::kUsage : fairlead::cli::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  fairlead::cli::Cli cli(std::cin, std::cout, std::cerr);
  cli.set_out_is_terminal(isatty(STDOUT_FILENO) == 1);
  fairlead::cli::add_all_commands(cli, serve);
  return cli.run({argv + 1, argv + argc});
}
