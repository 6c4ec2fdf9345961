// A device server without the rest of `fairlead`, for the tests: PROGRAM device-server LIBRARY_DIR DEVICE_BYTES HOST_BYTES
// EVICTION [fence] [plain] [trials] [modules=N] [cublas=FILE] [crash=FILE] [hang=FILE] [--try-modules]: N modules stay that
// no session uses; where that file is there, trials of modules crash or never end; in the second case they say so in the
// file `hanging` beside it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "runtime/device_server/device_server.h"
#include "runtime/device_server/module_trial.h"

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  fairlead::DeviceServerOptions options{.library_dir = argv[2], .cache = {}};
  options.cache.device = fairlead::Bytes(std::atoll(argv[3]));
  options.cache.host = fairlead::Bytes(std::atoll(argv[4]));
  options.cache.eviction = fairlead::cache_eviction_named(argv[5]).value();
  const char* crash = "";
  const char* hang = "";
  for (int i = 6; i < argc; ++i) {
    if (argv[i] == std::string_view("fence")) options.spaces = fairlead::AddressSpaces::kPerTenant;
    if (std::string_view(argv[i]).starts_with("modules="))
      options.modules.count = std::strtoul(argv[i] + 8, nullptr, 10);
    if (std::string_view(argv[i]).starts_with("cublas=")) options.cublas = argv[i] + 7;
    if (argv[i] == std::string_view("plain")) options.launching = fairlead::Launching::kPlain;
    if (argv[i] == std::string_view("trials")) options.trials = true;
    if (std::string_view(argv[i]).starts_with("crash=")) crash = argv[i] + 6;
    if (std::string_view(argv[i]).starts_with("hang=")) hang = argv[i] + 5;
    if (argv[i] != std::string_view("--try-modules")) continue;
    if (std::filesystem::exists(crash)) std::abort();
    if (std::filesystem::exists(hang)) {  // looked for once: the test may take it away when it sees `hanging`
      std::ofstream(std::filesystem::path(hang).replace_filename("hanging")) << "yes";
      for (;;) ::pause();
    }
    return fairlead::try_modules(options);
  }
  return fairlead::device_server(options);
}
