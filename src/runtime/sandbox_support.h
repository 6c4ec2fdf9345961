// What this machine lets a node isolate its functions with: for `doctor`, for tests, and for the operator's log.
#pragma once

#include <string>
#include <vector>

namespace fairlead {

struct SandboxFeature {
  std::string name;  // "user namespace", "seccomp", ...
  bool required = true;
  bool available = false;
  std::string detail;  // why not, or what is used in its place
};

struct SandboxSupport {
  std::vector<SandboxFeature> features;
  std::string cgroups;  // "v2", "v1" or "none"

  bool possible() const { return obstacle().empty(); }
  // The first required feature that is missing, and why; empty if none is.
  std::string obstacle() const;
};

// Tries each feature in a short-lived child; changes nothing. About 20 ms.
SandboxSupport probe_sandbox_support();

}  // namespace fairlead
