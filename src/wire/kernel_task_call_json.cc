// A call and its answer as JSON.
#include <map>

#include "base/base64.h"
#include "wire/element_values.h"
#include "wire/json_value.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;

// ---- a call

class CallReader {
 public:
  CallReader(const KernelTask& task, const JsonValue& root) : task_(task), root_(root) {
    for (std::uint32_t i = 0; i < task.buffers.size(); ++i) indices_.emplace(task.buffers[i].name, i);
  }

  KernelTaskCall read() {
    KernelTaskCall call;
    if (!root_.has_only({"inputs", "outputs"})) return call;
    if (const auto inputs = root_.find("inputs")) {
      each(*inputs, [&](CallBinding binding, const JsonValue& value) {
        read_input(value, binding);
        call.inputs.push_back(std::move(binding));
      });
    }
    if (const auto outputs = root_.find("outputs")) {
      each(*outputs, [&](CallBinding binding, const JsonValue& value) {
        read_output(value, binding);
        call.outputs.push_back(std::move(binding));
      });
    }
    return call;
  }

 private:
  template <typename Visit>
  void each(const JsonValue& bindings, Visit visit) const {
    if (!bindings.json().is_object()) return bindings.refuse("must be an object by the names of buffers");
    for (const auto& [name, member] : bindings.json().items()) {
      if (!bindings.ok()) return;
      const JsonValue value = bindings.at(name, member);
      const auto index = indices_.find(name);
      if (index == indices_.end()) return value.refuse("is bound, but the task has no buffer of that name");
      visit(CallBinding{.buffer = index->second}, value);
    }
  }

  void read_input(const JsonValue& value, CallBinding& binding) const {
    const BufferSpec& buffer = task_.buffers[binding.buffer];
    if (value.json().is_array()) {
      binding.bytes = elements_from_json(buffer, value);
      return;
    }
    if (!value.has_only({"base64", "key", "values"})) return;
    if (value.json().size() != 1) return value.refuse("must have one of 'key', 'base64' and 'values'");
    if (const auto key = value.find("key")) {
      read_key(*key, binding);
    } else if (const auto text = value.find("base64")) {
      binding.bytes = text->bytes();
    } else if (const auto values = value.require("values")) {
      binding.bytes = elements_from_json(buffer, *values);
    }
  }

  static void read_output(const JsonValue& value, CallBinding& binding) {
    if (value.json().is_null()) return;  // answered inline
    if (!value.has_only({"key"})) return;
    if (const auto key = value.require("key")) read_key(*key, binding);
  }

  // An empty key would mean that there is none.
  static void read_key(const JsonValue& value, CallBinding& binding) {
    binding.key = value.text(kMaxObjectKeyLength);
    if (binding.key.empty()) value.refuse("is empty; it must be the key of an object");
  }

  const KernelTask& task_;
  const JsonValue& root_;
  std::map<std::string_view, std::uint32_t> indices_;
};

// ---- an answer

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string json_of(const BufferSpec& buffer, const KernelTaskAnswer::Output& output) {
  if (!output.key.empty()) return fmt::format(R"({{"key":{},"bytes":{}}})", quoted(output.key), buffer.bytes.count());
  if (const auto values = elements_to_json(buffer, output.bytes)) return fmt::format(R"({{"values":{}}})", *values);
  return fmt::format(R"({{"base64":"{}"}})", base64_encode(output.bytes));
}

std::string json_of(const TaskPhases& phases) {
  return fmt::format(
      R"({{"kernel_run":{},"kernel_init":{},"device_malloc":{},"device_copy":{},"data_layer":{},"overhead":{}}})",
      to_us(phases.kernel_run), to_us(phases.kernel_init), to_us(phases.device_malloc), to_us(phases.device_copy),
      to_us(phases.data_layer), to_us(phases.overhead));
}

}  // namespace

Result<KernelTaskCall> kernel_task_call_from_json(const KernelTask& task, std::string_view text) {
  if (text.empty()) return KernelTaskCall{};
  const auto document = parse_json(text, "call");
  if (!document) return fail(document.error());
  Status status;
  const JsonValue root(*document, status);
  KernelTaskCall call = CallReader(task, root).read();
  if (!status) return fail(status.error());
  return call;
}

std::string kernel_task_answer_to_json(const KernelTask& task, const KernelTaskAnswer& answer) {
  std::string outputs;
  for (const KernelTaskAnswer::Output& output : answer.outputs) {
    const BufferSpec& buffer = task.buffers.at(output.buffer);
    outputs += fmt::format("{}{}:{}", outputs.empty() ? "" : ",", quoted(buffer.name), json_of(buffer, output));
  }
  return fmt::format(R"({{"outputs":{{{}}},"phases_us":{}}})", outputs, json_of(answer.phases));
}

}  // namespace fairlead::wire
