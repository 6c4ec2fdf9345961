#include "runtime/device_server/device_server.h"

#include <memory>

#include "cli/commands.h"
#include "runtime/device_server/module_trial.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string library_dir;
  std::int64_t device_bytes = 0;
  std::int64_t host_bytes = std::int64_t{4} << 30;
  std::string eviction = "cost";
  std::string isolation = "process";
  std::string launching = "graphs";
  std::string cublas = "auto";
  bool trials = false;
  bool try_modules = false;
};

}  // namespace

void add_device_server(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("device-server", "Run kernel tasks for the node that started it", [options]() {
    DeviceServerOptions settings{.library_dir = options->library_dir, .cache = {}};
    settings.cache.device = Bytes(options->device_bytes);
    settings.cache.host = Bytes(options->host_bytes);
    settings.cache.eviction = cache_eviction_named(options->eviction).value_or(CacheEviction::kCost);
    if (options->isolation == "fence") settings.spaces = AddressSpaces::kPerTenant;
    if (options->launching == "plain") settings.launching = Launching::kPlain;
    settings.cublas = options->cublas;
    settings.trials = options->trials;
    return options->try_modules ? try_modules(settings) : device_server(settings);
  });
  command.group("");  // not in the help
  command.add_option("--gpu-library", options->library_dir, "Folder of libcuda.so.1");
  command.add_option("--memory", options->device_bytes, "Device memory in bytes; 0: what is free at the start");
  command.add_option("--host-memory", options->host_bytes, "Host tier in bytes");
  command.add_option("--eviction", options->eviction, "What makes room first")
      ->check(CLI::IsMember({"single-use", "lru", "cost"}));
  command.add_option("--isolation", options->isolation, "What keeps tenants apart")
      ->check(CLI::IsMember({"process", "fence"}));
  command.add_option("--launching", options->launching, "How tasks of many kernels are launched")
      ->check(CLI::IsMember({"graphs", "plain"}));
  command.add_option("--cublas", options->cublas,
                     "What does matrix products of the built-in library: auto, off, a file");
  command.add_flag("--trials", options->trials, "Load no module before the node has tried it");
  command.add_flag("--try-modules", options->try_modules, "Only load the modules that the node sends, and end");
}

}  // namespace fairlead::cli
