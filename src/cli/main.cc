#include <unistd.h>

#include <iostream>

#include "cli/commands.h"
#include "node/serve.h"

int main(int argc, char** argv) {
  fairlead::cli::Cli cli(std::cin, std::cout, std::cerr);
  cli.set_out_is_terminal(isatty(STDOUT_FILENO) == 1);
  fairlead::cli::add_all_commands(cli, fairlead::serve);
  return cli.run({argv + 1, argv + argc});
}
