#include "runtime/model_server/model_server.h"

#include <memory>

#include "cli/commands.h"

namespace fairlead::cli {

void add_model_server(Cli& cli) {
  auto options = std::make_shared<model_server::Options>();
  CLI::App& command = cli.add_command("model-server", "Keep models on a GPU for the node that started it",
                                      [options] { return model_server::run(*options); });
  command.group("");  // not in the help
  command.add_option("--gpu-library", options->library_dir, "Folder of libcuda.so.1");
}

}  // namespace fairlead::cli
