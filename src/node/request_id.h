// Request ids: random UUIDs (RFC 4122, version 4), as Lambda's clients and functions expect them. Unique, not secret.
#pragma once

#include <string>

#include "base/rng.h"

namespace fairlead {

class RequestIds {
 public:
  RequestIds();                                            // seeded from the operating system
  explicit RequestIds(std::uint64_t seed) : rng_(seed) {}  // the same ones again, for tests
  std::string next();

 private:
  Rng rng_;
};

}  // namespace fairlead
