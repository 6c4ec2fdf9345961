#include "edge/inference/call_form.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "edge/inference/datatype.h"
#include "wire/kernel_task_codec.h"
#include "wire/safetensors.h"

namespace fairlead::inference {
namespace {

constexpr std::size_t kShownBytes =
    500;  // of what is wrong with an answer, which has names of the function's choice in it

Result<KernelTaskAnswer> read_file(CallSignature& signature, std::string_view payload) {
  const auto file = wire::read_safetensors(payload);
  if (!file) {
    return fail(Errc::kInternal, "the function's answer is no safetensors file: {}",
                std::string_view(file.error().message).substr(0, kShownBytes));
  }
  KernelTaskAnswer answer;
  for (TensorSpec& output : signature.outputs) {
    const auto found = std::ranges::find(*file, output.name, &wire::FileTensor::name);
    if (found == file->end()) continue;
    const TensorView view = view_of(output);
    if (found->type != output.type || !is_shape_of(view, found->shape)) {
      return fail(Errc::kInternal, "the function's answer has '{}' as {} {}; the model says {} {}", output.name,
                  datatype_of(found->type), text_of_shape(found->shape), view.datatype, text_of_shape(view.shape));
    }
    auto given = as_given(output, found->shape);
    if (!given) return fail(Errc::kInternal, "the function's answer is too large: {}", given.error().message);
    answer.outputs.push_back({.buffer = output.buffer, .bytes = std::string(found->bytes)});
    output = *std::move(given);
  }
  return answer;
}

}  // namespace

std::string payload_of(const CallSignature& signature, const InferRequest& request) {
  if (signature.form == CallForm::kBuffers) return wire::encode(request.call);
  std::vector<wire::FileTensor> tensors;
  for (std::size_t i = 0; i < request.call.inputs.size(); ++i) {
    const CallBinding& input = request.call.inputs[i];
    const TensorSpec& tensor = signature.inputs[input.buffer];
    tensors.push_back({tensor.name, tensor.type, request.shapes[i], input.bytes});
  }
  return wire::write_safetensors(std::move(tensors));
}

Result<KernelTaskAnswer> read_answer(CallSignature& signature, std::string_view payload) {
  return signature.form == CallForm::kBuffers ? wire::decode_kernel_task_answer(payload)
                                              : read_file(signature, payload);
}

}  // namespace fairlead::inference
