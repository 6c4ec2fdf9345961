// A device server without the rest of `fairlead`, for the tests: PROGRAM device-server LIBRARY_DIR DEVICE_BYTES HOST_BYTES
// EVICTION [fence] [plain] [modules=N] [cublas=FILE]: so many modules stay that no session uses.
#include <cstdlib>
#include <string_view>

#include "runtime/device_server/device_server.h"

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  fairlead::DeviceServerOptions options{.library_dir = argv[2], .cache = {}};
  options.cache.device = fairlead::Bytes(std::atoll(argv[3]));
  options.cache.host = fairlead::Bytes(std::atoll(argv[4]));
  options.cache.eviction = fairlead::cache_eviction_named(argv[5]).value();
  for (int i = 6; i < argc; ++i) {
    if (argv[i] == std::string_view("fence")) options.spaces = fairlead::AddressSpaces::kPerTenant;
    if (std::string_view(argv[i]).starts_with("modules="))
      options.modules.count = std::strtoul(argv[i] + 8, nullptr, 10);
    if (std::string_view(argv[i]).starts_with("cublas=")) options.cublas = argv[i] + 7;
    if (argv[i] == std::string_view("plain")) options.launching = fairlead::Launching::kPlain;
  }
  return fairlead::device_server(options);
}
