#include "edge/inference/infer_request.h"

#include <algorithm>
#include <set>

#include "edge/inference/datatype.h"
#include "wire/element_values.h"
#include "wire/json_value.h"

namespace fairlead::inference {
namespace {

using wire::JsonValue;

// A kind of tensor that elements_from_json knows.
BufferSpec buffer_of(const TensorSpec& tensor, const TensorView& view) {
  return {.name = tensor.name,
          .bytes = tensor.bytes,
          .role = BufferRole::kInput,
          .type = view.element,
          .shape = view.shape};
}

class Reader {
 public:
  Reader(const CallSignature& signature, std::string_view tensors) : signature_(signature), tensors_(tensors) {}

  InferRequest read(const JsonValue& root) {
    InferRequest request;
    if (!root.json().is_object()) return root.refuse("must be an object"), request;
    if (const auto id = root.find("id")) request.id = id->text(kMaxIdBytes);
    read_parameters(root, request);
    if (const auto inputs = root.require("inputs")) read_inputs(*inputs, request);
    if (const auto outputs = root.find("outputs"); outputs && !outputs->json().empty()) {
      read_outputs(*outputs, request);
    } else {
      for (std::uint32_t i = 0; i < signature_.outputs.size(); ++i) request.outputs.push_back({i, all_binary_});
    }
    if (root.ok() && !tensors_.empty()) root.refuse("leaves {} bytes behind it that no input has", tensors_.size());
    return request;
  }

 private:
  void read_parameters(const JsonValue& root, InferRequest& request) {
    const auto parameters = root.find("parameters");
    if (!parameters) return;
    if (!parameters->json().is_object()) return parameters->refuse("must be an object");
    if (const auto binary = parameters->find("binary_data_output")) all_binary_ = binary->boolean();
    if (const auto timeout = parameters->find("timeout")) {
      const std::uint64_t us = timeout->number(0, kMaxTimeoutUs);
      if (us > 0) request.timeout_us = static_cast<std::int64_t>(us);  // 0 is what clients say for none
    }
    refuse_unsupported(*parameters, {"sequence_id", "sequence_start", "sequence_end"});
  }

  // What would change the answer, and is not done.
  static void refuse_unsupported(const JsonValue& parameters, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (const auto value = parameters.find(name)) value->refuse("is not supported: leave it out");
    }
  }

  void read_inputs(const JsonValue& inputs, InferRequest& request) {
    if (!inputs.is_list(kMaxTensors)) return;
    std::set<std::uint32_t> given;
    for (std::size_t i = 0; i < inputs.json().size() && inputs.ok(); ++i) {
      const JsonValue input = inputs.at(i);
      const TensorSpec* tensor = named(input, signature_.inputs);
      if (tensor == nullptr) return;
      if (!given.insert(tensor->buffer).second) return input.refuse("is the input '{}' once more", tensor->name);
      std::vector<std::uint64_t> shape = read_shape(input, view_of(*tensor));
      if (!input.ok()) return;
      const auto given_tensor = as_given(*tensor, shape);
      if (!given_tensor) return input.refuse("is too large: {}", given_tensor.error().message);
      request.call.inputs.push_back({.buffer = tensor->buffer, .bytes = contents(input, *given_tensor)});
      request.shapes.push_back(std::move(shape));
    }
    for (const TensorSpec& tensor : signature_.inputs) {
      if (!given.contains(tensor.buffer)) return inputs.refuse("lacks the input '{}'", tensor.name);
    }
  }

  const TensorSpec* named(const JsonValue& value, const std::vector<TensorSpec>& tensors) const {
    if (!value.json().is_object()) return value.refuse("must be an object"), nullptr;
    const auto name = value.require("name");
    if (!name) return nullptr;
    const std::string_view text = name->text(kMaxTaskNameLength);
    if (const TensorSpec* tensor = find_tensor(tensors, text)) return tensor;
    if (value.ok()) name->refuse("is '{}', which the model does not have; it has {}", text, names_of(tensors));
    return nullptr;
  }

  std::string contents(const JsonValue& input, const TensorSpec& tensor) {
    const TensorView view = view_of(tensor);
    check_type(input, view);
    std::optional<JsonValue> size;
    const auto parameters = input.find("parameters");
    if (parameters) {
      if (!parameters->json().is_object()) return parameters->refuse("must be an object"), "";
      refuse_unsupported(*parameters, {"shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"});
      size = parameters->find("binary_data_size");
    }
    if (!input.ok()) return "";
    if (size) return binary_contents(*size, tensor);
    const auto data = input.require("data");
    return data ? wire::elements_from_json(buffer_of(tensor, view), *data) : "";
  }

  static void check_type(const JsonValue& input, const TensorView& view) {
    const auto datatype = input.require("datatype");
    if (!datatype || datatype->text(16) == view.datatype || !input.ok()) return;
    datatype->refuse("is {}; the model takes {}", datatype->text(16), view.datatype);
  }

  static std::vector<std::uint64_t> read_shape(const JsonValue& input, const TensorView& view) {
    std::vector<std::uint64_t> said;
    const auto shape = input.require("shape");
    if (!shape || !shape->is_list(kMaxShapeDimensions + 1)) return said;
    for (std::size_t i = 0; i < shape->json().size(); ++i) {
      said.push_back(shape->at(i).number(0, static_cast<std::uint64_t>(kMaxObjectBytes.count())));
    }
    if (input.ok() && !is_shape_of(view, said)) {
      shape->refuse("is {}; the model takes {}", text_of_shape(said), text_of_shape(view.shape));
    }
    return said;
  }

  std::string binary_contents(const JsonValue& size, const TensorSpec& tensor) {
    const auto wanted = static_cast<std::uint64_t>(tensor.bytes.count());
    const std::uint64_t bytes = size.number(0, static_cast<std::uint64_t>(kMaxObjectBytes.count()));
    if (!size.ok()) return "";
    if (bytes != wanted) return size.refuse("is {}; the tensor has {} bytes", bytes, wanted), "";
    if (bytes > tensors_.size()) {
      return size.refuse("is {}, and {} bytes are left behind the JSON", bytes, tensors_.size()), "";
    }
    std::string contents(tensors_.substr(0, bytes));
    tensors_.remove_prefix(bytes);
    return contents;
  }

  void read_outputs(const JsonValue& outputs, InferRequest& request) {
    if (!outputs.is_list(kMaxTensors)) return;
    std::set<std::uint32_t> wanted;
    for (std::size_t i = 0; i < outputs.json().size() && outputs.ok(); ++i) {
      const JsonValue output = outputs.at(i);
      const TensorSpec* tensor = named(output, signature_.outputs);
      if (tensor == nullptr) return;
      const auto index = static_cast<std::uint32_t>(tensor - signature_.outputs.data());
      if (!wanted.insert(index).second) return output.refuse("is the output '{}' once more", tensor->name);
      request.outputs.push_back({index, is_binary(output)});
    }
  }

  bool is_binary(const JsonValue& output) const {
    const auto parameters = output.find("parameters");
    if (!parameters) return all_binary_;
    if (!parameters->json().is_object()) return parameters->refuse("must be an object"), false;
    refuse_unsupported(*parameters, {"classification", "shared_memory_region", "shared_memory_byte_size"});
    const auto binary = parameters->find("binary_data");
    return binary ? binary->boolean() : all_binary_;
  }

  const CallSignature& signature_;
  std::string_view tensors_;  // what no input has yet
  bool all_binary_ = false;
};

}  // namespace

Result<InferRequest> read_infer_request(const CallSignature& signature, std::string_view body,
                                        std::optional<std::size_t> json_bytes) {
  if (json_bytes && *json_bytes > body.size()) {
    return fail(Errc::kInvalidArgument, "Inference-Header-Content-Length is {}; the body has {} bytes", *json_bytes,
                body.size());
  }
  const auto document = wire::parse_json(body.substr(0, json_bytes.value_or(body.size())), "request");
  if (!document) return fail(document.error());
  Status status;
  const JsonValue root(*document, status);
  InferRequest request = Reader(signature, json_bytes ? body.substr(*json_bytes) : std::string_view()).read(root);
  if (!status) return fail(status.error());
  return request;
}

}  // namespace fairlead::inference
