#include <utility>

#include "model/function.h"
#include "wire/json_value.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;

// The document keeps names in the order of their bytes, which is the one that a request's files have.
std::vector<KernelTaskRequest::File> files_of(const JsonValue& files) {
  std::vector<KernelTaskRequest::File> list;
  if (!files.json().is_object()) {
    files.refuse("must be an object: base64 by name");
    return list;
  }
  for (const auto& [name, text] : files.json().items()) {
    list.push_back({name, files.at(name, text).bytes()});
    if (!files.ok()) break;
  }
  return list;
}

}  // namespace

Result<KernelTaskRequest> kernel_task_request_from_json(std::string_view text) {
  const auto document = parse_json(text, "the request");
  if (!document) return fail(document.error());
  Status status;
  const JsonValue root(*document, status);
  KernelTaskRequest request;
  if (root.has_only({"task", "files", "call", "timeout_seconds"})) {
    if (const auto task = root.require("task")) request.task = task->json().dump();
    if (const auto files = root.find("files")) request.files = files_of(*files);
    if (const auto call = root.find("call")) request.call = call->json().dump();
    if (const auto timeout = root.find("timeout_seconds")) {
      request.timeout_seconds = static_cast<std::uint32_t>(timeout->number(kMinTimeoutSeconds, kMaxTimeoutSeconds));
    }
  }
  if (!status) return fail(status.error());
  return request;
}

}  // namespace fairlead::wire
