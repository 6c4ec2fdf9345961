#include "edge/inference/infer_answer.h"

#include <fmt/ranges.h>
#include <algorithm>

#include <nlohmann/json.hpp>

#include "edge/inference/datatype.h"
#include "wire/element_values.h"

namespace fairlead::inference {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Flat, in the order of rows, as the protocol's other servers answer.
Result<std::string> numbers_of(const TensorSpec& tensor, const TensorView& view, std::string_view contents) {
  const BufferSpec flat{.name = tensor.name, .bytes = tensor.bytes, .type = view.element};
  auto numbers = wire::elements_to_json(flat, contents);
  if (numbers) return *std::move(numbers);
  return fail(Errc::kConflict,
              "the output '{}' holds a NaN or an infinity, which JSON has not: ask for it with binary_data",
              tensor.name);
}

}  // namespace

Result<std::string_view> contents_of(const TensorSpec& tensor, const KernelTaskAnswer& answer) {
  const auto output = std::find_if(answer.outputs.begin(), answer.outputs.end(),
                                   [&](const KernelTaskAnswer::Output& one) { return one.buffer == tensor.buffer; });
  if (output == answer.outputs.end()) return fail(Errc::kInternal, "the answer lacks the output '{}'", tensor.name);
  if (std::ssize(output->bytes) == tensor.bytes.count()) return std::string_view(output->bytes);
  return fail(Errc::kInternal, "the output '{}' has {} bytes; it must have {}", tensor.name, output->bytes.size(),
              tensor.bytes.count());
}

Result<InferAnswer> write_infer_answer(const std::string& model, const CallSignature& signature,
                                       const InferRequest& request, const KernelTaskAnswer& answer) {
  std::string outputs, binary;
  for (const WantedOutput& wanted : request.outputs) {
    const TensorSpec& tensor = signature.outputs[wanted.output];
    const TensorView view = view_of(tensor);
    const auto contents = contents_of(tensor, answer);
    if (!contents) return fail(contents.error());
    outputs += fmt::format(R"({}{{"name":{},"datatype":"{}","shape":[{}],)", outputs.empty() ? "" : ",",
                           quoted(tensor.name), view.datatype, fmt::join(view.shape, ","));
    if (wanted.is_binary) {
      outputs += fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", contents->size());
      binary += *contents;
    } else {
      const auto numbers = numbers_of(tensor, view, *contents);
      if (!numbers) return fail(numbers.error());
      outputs += fmt::format(R"("data":{}}})", *numbers);
    }
  }
  const std::string id = request.id.empty() ? "" : fmt::format(R"("id":{},)", quoted(request.id));
  InferAnswer result{fmt::format(R"({{"model_name":{},"model_version":"{}",{}"outputs":[{}]}})", quoted(model),
                                 kVersion, id, outputs)};
  result.json_bytes = result.body.size();
  result.body += binary;
  return result;
}

}  // namespace fairlead::inference
