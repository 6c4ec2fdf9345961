// A one-off request: a kernel task with its files and one call of it, in one message. Nothing is deployed; the same task
// again is warm (docs/how-to/kernel-tasks.md, "One-off requests").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead {

// Bounds that input is checked against. Errors quote them.
inline constexpr std::size_t kMaxRequestTaskBytes = 4 << 20;   // of task.json
inline constexpr std::size_t kMaxRequestFiles = 256;           // modules and constants
inline constexpr std::size_t kMaxRequestFileBytes = 32 << 20;  // of all of them; what is larger belongs into objects
inline constexpr std::uint32_t kDefaultRequestTimeoutSeconds = 60;

struct KernelTaskRequest {
  struct File {
    std::string name;  // as task.json says it
    std::string bytes;
    bool operator==(const File&) const = default;
  };
  std::string task;         // task.json
  std::vector<File> files;  // by name
  std::uint32_t timeout_seconds = kDefaultRequestTimeoutSeconds;
  std::string call;  // as the payload of Invoke: JSON, or the binary form
  bool operator==(const KernelTaskRequest&) const = default;
};

// Sizes, names and their order; not what the texts say. kInvalidArgument, or kTooLarge; names field, value and bound.
Status validate_request(const KernelTaskRequest& request);

}  // namespace fairlead
