// libFuzzer: any packet is a request for a model, or refused with an error; what is taken keeps its bounds.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/fuzz_seeds.h"
#include "runtime/models/model_request.h"

std::vector<std::string> fairlead::fuzz_seeds() {
  ModelRequest request{};
  request.version = MODEL_PROTOCOL;
  request.kind = MODEL_OPEN;
  request.flags = MODEL_WAIT;
  std::strcpy(request.id, "vit");
  return {std::string(reinterpret_cast<const char*>(&request), sizeof request)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request = fairlead::decode_model_request({reinterpret_cast<const char*>(data), size});
  if (!request) {
    if (request.error().message.empty()) std::abort();
    return 0;
  }
  if (request->kind < MODEL_OPEN || request->kind > MODEL_CLOSE ||
      std::memchr(request->id, 0, sizeof request->id) == nullptr) {
    std::abort();
  }
  return 0;
}
