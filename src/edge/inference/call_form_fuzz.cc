// libFuzzer: any bytes are a program's answer as tensors, or refused with an error that is short. What is taken has what the model says, and
// can be written to a client.
#include <cstdint>
#include <cstdlib>

#include "base/fuzz_seeds.h"
#include "edge/inference/call_form.h"
#include "edge/inference/datatype.h"
#include "edge/inference/infer_answer.h"
#include "wire/safetensors.h"

namespace fairlead::inference {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

CallSignature signature() {
  return {.outputs = {{.name = "y", .type = ElementType::kF32, .shape = {kAnySize, 2}},
                      {.name = "z", .type = ElementType::kU8, .shape = {3}, .bytes = Bytes(3), .buffer = 1}},
          .form = CallForm::kSafetensors};
}

void read(std::string_view bytes) {
  CallSignature model = signature();
  const auto answer = read_answer(model, bytes);
  if (!answer) return require(!answer.error().message.empty() && answer.error().message.size() < 1000);
  InferRequest request;
  for (const KernelTaskAnswer::Output& output : answer->outputs) {
    const TensorSpec& tensor = model.outputs[output.buffer];
    require(std::ssize(output.bytes) == tensor.bytes.count());
    require(is_shape_of(view_of(signature().outputs[output.buffer]), tensor.shape));
    request.outputs.push_back({output.buffer, true});
  }
  require(write_infer_answer("m", model, request, *answer).has_value());
}

}  // namespace
}  // namespace fairlead::inference

std::vector<std::string> fairlead::fuzz_seeds() {
  using wire::FileTensor;
  const FileTensor y{"y", ElementType::kF32, {1, 2}, "01234567"}, z{"z", ElementType::kU8, {3}, "abc"};
  return {wire::write_safetensors({y, z}), wire::write_safetensors({z}), wire::write_safetensors({}), "{}"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::inference::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
