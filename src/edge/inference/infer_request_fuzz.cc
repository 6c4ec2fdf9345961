// libFuzzer: a number and any bytes are an inference request, or refused with an error. What is taken binds each input once, with as
// many bytes as it has, and its answer can be written.
#include <cstdint>
#include <cstdlib>

#include "edge/inference/infer_answer.h"
#include "edge/inference/infer_request.h"

namespace fairlead::inference {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

CallSignature signature() {
  return {.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {2, 3}, .bytes = Bytes(24), .buffer = 0},
                     {.name = "h", .type = ElementType::kF16, .shape = {4}, .bytes = Bytes(8), .buffer = 1},
                     {.name = "c", .type = ElementType::kC64, .shape = {1}, .bytes = Bytes(8), .buffer = 2},
                     {.name = "b", .type = ElementType::kBytes, .bytes = Bytes(5), .buffer = 3}},
          .outputs = {{.name = "y", .type = ElementType::kS64, .shape = {}, .bytes = Bytes(16), .buffer = 4}}};
}

// Of a program, whose sizes a call says.
void read_open(std::string_view bytes, std::optional<std::size_t> json_bytes) {
  const CallSignature model{.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {2, kAnySize}},
                                       {.name = "h", .type = ElementType::kF16, .shape = {kAnySize}, .buffer = 1}},
                            .form = CallForm::kSafetensors};
  const auto request = read_infer_request(model, bytes, json_bytes);
  if (!request) return require(!request.error().message.empty());
  require(request->call.inputs.size() == 2 && request->shapes.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const CallBinding& input = request->call.inputs[i];
    const auto wanted = shape_bytes(model.inputs[input.buffer].type, request->shapes[i]);
    require(wanted && std::ssize(input.bytes) == wanted->count());
  }
}

void read(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const std::size_t number = static_cast<unsigned char>(bytes[0]) + 256U * static_cast<unsigned char>(bytes[1]);
  bytes.remove_prefix(2);
  const CallSignature model = signature();
  const auto json_bytes = number == 0 ? std::nullopt : std::optional(number - 1);
  read_open(bytes, json_bytes);
  const auto request = read_infer_request(model, bytes, json_bytes);
  if (!request) return require(!request.error().message.empty());
  require(request->call.inputs.size() == model.inputs.size());
  for (const CallBinding& input : request->call.inputs) {
    require(std::ssize(input.bytes) == model.inputs[input.buffer].bytes.count());
  }
  require(request->outputs.size() <= model.outputs.size());
  const KernelTaskAnswer answer{.outputs = {{.buffer = 4, .bytes = std::string(16, 'a')}}};
  require(write_infer_answer("m", model, *request, answer).has_value());
}

}  // namespace
}  // namespace fairlead::inference

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::inference::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
