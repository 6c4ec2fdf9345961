// A device server without the rest of `fairlead`, for the tests: PROGRAM device-server LIBRARY_DIR DEVICE_BYTES HOST_BYTES
// EVICTION [fence].
#include <cstdlib>

#include "runtime/device_server/device_server.h"

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) return 2;
  fairlead::DeviceServerOptions options{.library_dir = argv[2], .cache = {}};
  options.cache.device = fairlead::Bytes(std::atoll(argv[3]));
  options.cache.host = fairlead::Bytes(std::atoll(argv[4]));
  options.cache.eviction = fairlead::cache_eviction_named(argv[5]).value();
  if (argc == 7) options.spaces = fairlead::AddressSpaces::kPerTenant;
  return fairlead::device_server(options);
}
