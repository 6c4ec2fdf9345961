#include "model/kernel_task_request.h"

#include "model/function.h"
#include "model/kernel_task.h"

namespace fairlead {
namespace {

Status check_size(std::string_view field, std::size_t bytes, std::size_t most, std::string_view advice) {
  if (bytes <= most) return {};
  return fail(Errc::kTooLarge, "{} {} bytes; at most {} are possible{}", field, bytes, most, advice);
}

}  // namespace

Status validate_request(const KernelTaskRequest& request) {
  if (Status fits = check_size("task has", request.task.size(), kMaxRequestTaskBytes, ""); !fits) return fits;
  if (Status fits = check_size("call has", request.call.size(), kMaxSyncPayloadBytes, ""); !fits) return fits;
  constexpr std::uint32_t kLeast = kMinTimeoutSeconds, kMost = kMaxTimeoutSeconds;
  if (request.timeout_seconds < kLeast || request.timeout_seconds > kMost) {
    return fail(Errc::kInvalidArgument, "timeout_seconds is {}, it must be a whole number between {} and {}",
                request.timeout_seconds, kLeast, kMost);
  }
  if (request.files.size() > kMaxRequestFiles) {
    return fail(Errc::kTooLarge, "files has {} elements; at most {} are possible", request.files.size(),
                kMaxRequestFiles);
  }
  std::size_t bytes = 0;
  const std::string* before = nullptr;
  for (const KernelTaskRequest::File& file : request.files) {
    if (file.name.empty() || file.name.size() > kMaxTaskNameLength) {
      return fail(Errc::kInvalidArgument, "files: a name has {} bytes, it must have 1 to {}", file.name.size(),
                  kMaxTaskNameLength);
    }
    if (before != nullptr && *before >= file.name) {
      return fail(Errc::kInvalidArgument, "files: '{}' stands behind '{}'; names must be in order, each once",
                  file.name, *before);
    }
    before = &file.name;
    bytes += file.bytes.size();
  }
  return check_size("files have together", bytes, kMaxRequestFileBytes, ": put large constants as objects");
}

}  // namespace fairlead
