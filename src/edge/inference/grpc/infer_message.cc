#include "edge/inference/grpc/infer_message.h"

#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>
#include <set>

#include "edge/inference/datatype.h"
#include "edge/inference/grpc/open_inference.pb.h"
#include "edge/inference/infer_answer.h"

namespace fairlead::inference {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Parameters = google::protobuf::Map<std::string, open_inference::InferParameter>;

// Of a message, but for the tensors. Two bytes of it may become an object of a hundred, so it is bounded before any is made.
constexpr std::size_t kMaxDescribingBytes = 128 << 10;

// It writes to standard error what is wrong with a message, which is for its sender to know.
[[maybe_unused]] const auto kSilenced = google::protobuf::SetLogHandler(nullptr);

Error no_message() {
  return {Errc::kInvalidArgument, "the message is no ModelInferRequest"};
}

// What is known of a message without reading it: nothing is copied but the name.
class Outline {
 public:
  // False: it is no such message.
  bool read(std::string_view message) {
    if (message.size() > std::numeric_limits<int>::max()) return false;
    CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()), static_cast<int>(message.size()));
    while (const std::uint32_t tag = in.ReadTag()) {
      if (!read_field(in, tag)) return false;
      if (describes_too_much(in)) return true;
    }
    return in.ConsumedEntireMessage();
  }

  MeantModel model;
  // Then the rest was not looked at.
  bool describes_too_much() const { return describes_too_much_; }

 private:
  static constexpr std::uint32_t tag_of(int field) {
    return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  }

  bool read_field(CodedInputStream& in, std::uint32_t tag) {
    switch (tag) {
      case tag_of(open_inference::ModelInferRequest::kModelNameFieldNumber):
        return WireFormatLite::ReadString(&in, &model.name);
      case tag_of(open_inference::ModelInferRequest::kModelVersionFieldNumber):
        return WireFormatLite::ReadString(&in, &model.version);
      case tag_of(open_inference::ModelInferRequest::kRawInputContentsFieldNumber): return skip_tensor(in);
      case tag_of(open_inference::ModelInferRequest::kInputsFieldNumber): return read_input(in);
      default: return WireFormatLite::SkipField(&in, tag);
    }
  }

  bool read_input(CodedInputStream& in) {
    std::uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return false;
    const auto limit = in.PushLimit(static_cast<int>(size));
    while (const std::uint32_t tag = in.ReadTag()) {
      const bool is_tensor = tag == tag_of(open_inference::ModelInferRequest::InferInputTensor::kContentsFieldNumber);
      if (is_tensor ? !skip_tensor(in) : !WireFormatLite::SkipField(&in, tag)) return false;
      if (describes_too_much(in)) return true;
    }
    if (!in.ConsumedEntireMessage()) return false;
    in.PopLimit(limit);
    return true;
  }

  bool skip_tensor(CodedInputStream& in) {
    std::uint32_t size = 0;
    if (!in.ReadVarint32(&size) || !in.Skip(static_cast<int>(size))) return false;
    tensors_ += size;
    return true;
  }

  bool describes_too_much(const CodedInputStream& in) {
    const auto read = static_cast<std::size_t>(in.CurrentPosition());
    describes_too_much_ = describes_too_much_ || read - tensors_ > kMaxDescribingBytes;
    return describes_too_much_;
  }

  std::size_t tensors_ = 0;  // bytes
  bool describes_too_much_ = false;
};

Result<Outline> outline_of(std::string_view message) {
  Outline outline;
  if (!outline.read(message)) return fail(no_message());
  if (!outline.describes_too_much()) return outline;
  return fail(Errc::kInvalidArgument,
              "the message has more than {} bytes beside its tensors, which is the most that it may have",
              kMaxDescribingBytes);
}

// ---- a request

Status refuse_parameters(const std::string& of, const Parameters& parameters,
                         std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!parameters.contains(name)) continue;
    return fail(Errc::kInvalidArgument, "{}.parameters.{} is not supported: leave it out", of, name);
  }
  return {};
}

// The next values of `from` as bytes of T.
template <typename T, typename Values>
Result<std::string> packed(const std::string& name, const Values& from, std::size_t count) {
  if (static_cast<std::size_t>(from.size()) != count) {
    return fail(Errc::kInvalidArgument, "the input '{}' has {} numbers in its contents; it must have {}", name,
                from.size(), count);
  }
  std::string bytes(count * sizeof(T), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = from[static_cast<int>(i)];
    if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) {
        return fail(Errc::kInvalidArgument, "the input '{}' has {} at {}, which its datatype cannot hold", name, value,
                    i);
      }
    }
    const T exact = static_cast<T>(value);
    std::memcpy(bytes.data() + i * sizeof(T), &exact, sizeof(T));
  }
  return bytes;
}

Result<std::string> numbers_of(const TensorSpec& tensor, const TensorView& view,
                               const open_inference::InferTensorContents& contents) {
  const std::size_t count = static_cast<std::size_t>(tensor.bytes.count()) / element_bytes(view.element);
  switch (view.element) {
    case ElementType::kS8: return packed<std::int8_t>(tensor.name, contents.int_contents(), count);
    case ElementType::kS16: return packed<std::int16_t>(tensor.name, contents.int_contents(), count);
    case ElementType::kS32: return packed<std::int32_t>(tensor.name, contents.int_contents(), count);
    case ElementType::kS64: return packed<std::int64_t>(tensor.name, contents.int64_contents(), count);
    case ElementType::kBytes:
    case ElementType::kU8: return packed<std::uint8_t>(tensor.name, contents.uint_contents(), count);
    case ElementType::kU16: return packed<std::uint16_t>(tensor.name, contents.uint_contents(), count);
    case ElementType::kU32: return packed<std::uint32_t>(tensor.name, contents.uint_contents(), count);
    case ElementType::kU64: return packed<std::uint64_t>(tensor.name, contents.uint64_contents(), count);
    case ElementType::kF32: return packed<float>(tensor.name, contents.fp32_contents(), count);
    case ElementType::kF64: return packed<double>(tensor.name, contents.fp64_contents(), count);
    default:
      return fail(Errc::kInvalidArgument, "the input '{}' is {}, which comes in raw_input_contents alone", tensor.name,
                  view.datatype);
  }
}

class Reader {
 public:
  Reader(const CallSignature& signature, open_inference::ModelInferRequest& message)
      : signature_(signature), message_(message) {}

  Result<InferRequest> read() {
    if (message_.id().size() > kMaxIdBytes) {
      return fail(Errc::kInvalidArgument, "id has {} bytes; it may have at most {}", message_.id().size(), kMaxIdBytes);
    }
    request_.id = message_.id();
    for (const auto part : {&Reader::read_parameters, &Reader::read_inputs, &Reader::read_outputs}) {
      if (Status done = (this->*part)(); !done) return fail(done.error());
    }
    return std::move(request_);
  }

 private:
  Status read_parameters() {
    const Parameters& parameters = message_.parameters();
    if (Status known = refuse_parameters("request", parameters, {"sequence_id", "sequence_start", "sequence_end"});
        !known) {
      return known;
    }
    const auto timeout = parameters.find("timeout");
    if (timeout == parameters.end()) return {};
    const bool is_unsigned = timeout->second.has_uint64_param();
    const std::int64_t us = is_unsigned ? static_cast<std::int64_t>(std::min<std::uint64_t>(
                                              timeout->second.uint64_param(), std::uint64_t{kMaxTimeoutUs} + 1))
                                        : timeout->second.int64_param();
    if ((!is_unsigned && !timeout->second.has_int64_param()) || us < 0 || us > kMaxTimeoutUs) {
      return fail(Errc::kInvalidArgument, "parameters.timeout must be a number of microseconds from 0 to {}",
                  kMaxTimeoutUs);
    }
    if (us > 0) request_.timeout_us = us;  // 0 is what clients say for none
    return {};
  }

  Status read_inputs() {
    const bool is_raw = message_.raw_input_contents_size() > 0;
    if (is_raw && message_.raw_input_contents_size() != message_.inputs_size()) {
      return fail(Errc::kInvalidArgument, "raw_input_contents has {} entries for {} inputs: one for each, or none",
                  message_.raw_input_contents_size(), message_.inputs_size());
    }
    std::set<std::uint32_t> given;
    for (int i = 0; i < message_.inputs_size(); ++i) {
      const auto& input = message_.inputs(i);
      const TensorSpec* tensor = find_tensor(signature_.inputs, input.name());
      if (tensor == nullptr) return unknown("input", input.name(), signature_.inputs);
      if (!given.insert(tensor->buffer).second) {
        return fail(Errc::kInvalidArgument, "inputs[{}] is the input '{}' once more", i, tensor->name);
      }
      if (Status fits = check(input, *tensor); !fits) return fits;
      std::vector<std::uint64_t> shape(input.shape().begin(), input.shape().end());
      const auto given_tensor = as_given(*tensor, shape);
      if (!given_tensor) return fail(given_tensor.error());
      auto bytes = is_raw ? raw(i, *given_tensor) : numbers_of(*given_tensor, view_of(*given_tensor), input.contents());
      if (!bytes) return fail(bytes.error());
      request_.call.inputs.push_back({.buffer = tensor->buffer, .bytes = *std::move(bytes)});
      request_.shapes.push_back(std::move(shape));
    }
    for (const TensorSpec& tensor : signature_.inputs) {
      if (!given.contains(tensor.buffer))
        return fail(Errc::kInvalidArgument, "inputs lacks the input '{}'", tensor.name);
    }
    return {};
  }

  Status read_outputs() {
    std::set<std::uint32_t> wanted;
    for (int i = 0; i < message_.outputs_size(); ++i) {
      const auto& output = message_.outputs(i);
      const TensorSpec* tensor = find_tensor(signature_.outputs, output.name());
      if (tensor == nullptr) return unknown("output", output.name(), signature_.outputs);
      if (Status known = refuse_parameters(fmt::format("outputs[{}]", i), output.parameters(),
                                           {"classification", "shared_memory_region", "shared_memory_byte_size"});
          !known) {
        return known;
      }
      const auto index = static_cast<std::uint32_t>(tensor - signature_.outputs.data());
      if (!wanted.insert(index).second) {
        return fail(Errc::kInvalidArgument, "outputs[{}] is the output '{}' once more", i, tensor->name);
      }
      request_.outputs.push_back({index, true});
    }
    if (!request_.outputs.empty()) return {};
    for (std::uint32_t i = 0; i < signature_.outputs.size(); ++i) request_.outputs.push_back({i, true});
    return {};
  }

  static Status unknown(const char* what, std::string_view name, const std::vector<TensorSpec>& tensors) {
    return fail(Errc::kInvalidArgument, "the {} is '{}', which the model does not have; it has {}", what,
                name.substr(0, kMaxTaskNameLength), names_of(tensors));
  }

  static Status check(const open_inference::ModelInferRequest::InferInputTensor& input, const TensorSpec& tensor) {
    const TensorView view = view_of(tensor);
    if (input.datatype() != view.datatype) {
      return fail(Errc::kInvalidArgument, "the datatype of '{}' is {}; the model takes {}", tensor.name,
                  std::string_view(input.datatype()).substr(0, 16), view.datatype);
    }
    const auto may_be = [](std::int64_t said, std::uint64_t is) {
      return std::cmp_equal(said, is) || (is == kAnySize && said >= 0);
    };
    if (!std::ranges::equal(input.shape(), view.shape, may_be)) {
      const auto said = std::vector(input.shape().begin(),
                                    input.shape().begin() + std::min<int>(input.shape_size(), kMaxShapeDimensions + 1));
      return fail(Errc::kInvalidArgument, "the shape of '{}' is {}; the model takes {}", tensor.name, said,
                  text_of_shape(view.shape));
    }
    return refuse_parameters(fmt::format("'{}'", tensor.name), input.parameters(),
                             {"shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"});
  }

  Result<std::string> raw(int index, const TensorSpec& tensor) {
    std::string& bytes = *message_.mutable_raw_input_contents(index);
    if (std::ssize(bytes) == tensor.bytes.count()) return std::move(bytes);
    return fail(Errc::kInvalidArgument, "raw_input_contents[{}] has {} bytes; the tensor '{}' has {}", index,
                bytes.size(), tensor.name, tensor.bytes.count());
  }

  const CallSignature& signature_;
  open_inference::ModelInferRequest& message_;
  InferRequest request_;
};

}  // namespace

Result<MeantModel> meant_model(std::string_view message) {
  auto outline = outline_of(message);
  if (!outline) return fail(outline.error());
  return std::move(outline->model);
}

Result<InferRequest> read_infer_message(const CallSignature& signature, std::string_view message) {
  if (const auto outline = outline_of(message); !outline) return fail(outline.error());
  open_inference::ModelInferRequest parsed;
  if (!parsed.ParseFromArray(message.data(), static_cast<int>(message.size()))) return fail(no_message());
  return Reader(signature, parsed).read();
}

Result<std::string> write_infer_message(const std::string& model, const CallSignature& signature,
                                        const InferRequest& request, const KernelTaskAnswer& answer) {
  open_inference::ModelInferResponse message;
  message.set_model_name(model);
  message.set_model_version(kVersion);
  message.set_id(request.id);
  for (const WantedOutput& wanted : request.outputs) {
    const TensorSpec& tensor = signature.outputs[wanted.output];
    const TensorView view = view_of(tensor);
    const auto contents = contents_of(tensor, answer);
    if (!contents) return fail(contents.error());
    auto& output = *message.add_outputs();
    output.set_name(tensor.name);
    output.set_datatype(std::string(view.datatype));
    for (const std::uint64_t size : view.shape) output.add_shape(static_cast<std::int64_t>(size));
    message.add_raw_output_contents(contents->data(), contents->size());
  }
  return message.SerializeAsString();
}

}  // namespace fairlead::inference
