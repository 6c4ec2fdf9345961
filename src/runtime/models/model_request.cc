#include "runtime/models/model_request.h"

#include <algorithm>
#include <cstring>

namespace fairlead {

Result<ModelRequest> decode_model_request(std::string_view bytes) {
  if (bytes.size() != sizeof(ModelRequest)) {
    return fail(Errc::kInvalidArgument, "models: a packet of {} bytes; a request has {}", bytes.size(),
                sizeof(ModelRequest));
  }
  ModelRequest request;
  std::memcpy(&request, bytes.data(), sizeof request);
  if (request.version != MODEL_PROTOCOL) {
    return fail(Errc::kInvalidArgument, "models: version is {}; this node speaks {}", request.version,
                int{MODEL_PROTOCOL});
  }
  if (request.kind < MODEL_OPEN || request.kind > MODEL_CLOSE) {
    return fail(Errc::kInvalidArgument, "models: kind is {}; it is {} to {}", request.kind, int{MODEL_OPEN},
                int{MODEL_CLOSE});
  }
  if ((request.flags & ~std::uint32_t{MODEL_HAS_DIGEST | MODEL_WAIT}) != 0 || request.reserved != 0) {
    return fail(Errc::kInvalidArgument, "models: flags are {}, reserved is {}; this version knows flags 1 and 2, and 0",
                request.flags, request.reserved);
  }
  const char* const end = std::find(request.id, request.id + sizeof request.id, '\0');
  if (end == request.id + sizeof request.id) {
    return fail(Errc::kInvalidArgument, "models: the id has no NUL within {} bytes", sizeof request.id);
  }
  return request;
}

}  // namespace fairlead
