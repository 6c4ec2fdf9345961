// libFuzzer: any bytes are a message of an inference, or refused with an error. What is taken binds each input once, with as many
// bytes as it has, and its answer can be written.
#include <cstdint>
#include <cstdlib>

#include "edge/inference/grpc/infer_message.h"

namespace fairlead::inference {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

CallSignature signature() {
  return {.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {2}, .bytes = Bytes(8), .buffer = 0},
                     {.name = "n", .type = ElementType::kS16, .shape = {3}, .bytes = Bytes(6), .buffer = 1}},
          .outputs = {{.name = "y", .type = ElementType::kS64, .shape = {}, .bytes = Bytes(16), .buffer = 4}}};
}

void read(std::string_view bytes) {
  const CallSignature model = signature();
  const auto meant = meant_model(bytes);
  const auto request = read_infer_message(model, bytes);
  if (!request) return require(!request.error().message.empty());
  require(meant.has_value());
  require(request->call.inputs.size() == model.inputs.size());
  for (const CallBinding& input : request->call.inputs) {
    require(std::ssize(input.bytes) == model.inputs[input.buffer].bytes.count());
  }
  require(request->outputs.size() <= model.outputs.size());
  const KernelTaskAnswer answer{.outputs = {{.buffer = 4, .bytes = std::string(16, 'a')}}};
  require(write_infer_message("m", model, *request, answer).has_value());
}

}  // namespace
}  // namespace fairlead::inference

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::inference::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
