// What production's verifier says of fenced text, as tests compare it: nothing, or why not.
#pragma once

#include <string>

#include "gpu/fence/verifier.h"

namespace fairlead::fence::testing {

inline std::string fault_of(const std::string& fenced, const FenceOptions& options) {
  const Status verified = verify_fenced(fenced, options);
  return verified ? "" : verified.error().message;
}

}  // namespace fairlead::fence::testing
