// A call against its task: each binding alone, then that nothing is left unbound and no object would be made twice.
#include <algorithm>
#include <set>
#include <utility>

#include "model/kernel_task.h"

namespace fairlead {
namespace {

bool is_input(BufferRole role) {
  return role == BufferRole::kInput || role == BufferRole::kInOut;
}
bool is_output(BufferRole role) {
  return role == BufferRole::kOutput || role == BufferRole::kInOut;
}

// Of all outputs that travel in an answer: a call of a hundred bytes must not make the node hold all of a device's memory.
constexpr std::size_t kMaxInlineOutputBytes = 64 << 20;

class CallChecker {
 public:
  explicit CallChecker(const KernelTask& task)
      : task_(task),
        input_bound_(task.buffers.size()),
        output_bound_(task.buffers.size()),
        has_key_(task.buffers.size()) {}

  Status check(const KernelTaskCall& call) {
    for (const CallBinding& input : call.inputs) {
      if (Status status = check_bound_once("inputs", input, input_bound_); !status) return status;
      if (Status status = check_input(input); !status) return status;
      if (!input.key.empty()) read_.insert(input.key);
    }
    for (const CallBinding& output : call.outputs) {
      if (Status status = check_bound_once("outputs", output, output_bound_); !status) return status;
      if (Status status = check_output(output); !status) return status;
      has_key_[output.buffer] = !output.key.empty();
    }
    return check_all_bound();
  }

 private:
  Status check_bound_once(std::string_view list, const CallBinding& binding, std::vector<bool>& bound) const {
    if (binding.buffer >= task_.buffers.size()) {
      return fail(Errc::kInvalidArgument, "{}: buffer is {}; the task has {} buffers", list, binding.buffer,
                  task_.buffers.size());
    }
    const BufferSpec& buffer = task_.buffers[binding.buffer];
    if (bound[binding.buffer]) {
      return fail(Errc::kInvalidArgument, "{}: buffer '{}' is bound twice; bind it once", list, buffer.name);
    }
    bound[binding.buffer] = true;
    if (&bound == &input_bound_ ? is_input(buffer.role) : is_output(buffer.role)) return {};
    return fail(Errc::kInvalidArgument, "{}: the role of buffer '{}' is {}; only {} and inout buffers are bound here",
                list, buffer.name, buffer_role_name(buffer.role), &bound == &input_bound_ ? "input" : "output");
  }

  Status check_input(const CallBinding& binding) const {
    const BufferSpec& buffer = task_.buffers[binding.buffer];
    if (!binding.key.empty()) {
      if (binding.bytes.empty()) return check_key("inputs", buffer, binding.key);
      return fail(Errc::kInvalidArgument, "inputs: buffer '{}' has a key and {} bytes; give one of them", buffer.name,
                  binding.bytes.size());
    }
    if (binding.bytes.size() > kMaxInlineBytes) {
      return fail(Errc::kInvalidArgument,
                  "inputs: buffer '{}' is given {} bytes; at most {} travel in a call, put them as an object",
                  buffer.name, binding.bytes.size(), kMaxInlineBytes);
    }
    if (std::cmp_equal(binding.bytes.size(), buffer.bytes.count())) return {};
    return fail(Errc::kInvalidArgument, "inputs: buffer '{}' is given {} bytes; it has {}", buffer.name,
                binding.bytes.size(), buffer.bytes.count());
  }

  Status check_output(const CallBinding& binding) {
    const BufferSpec& buffer = task_.buffers[binding.buffer];
    if (!binding.bytes.empty()) {
      return fail(Errc::kInvalidArgument, "outputs: buffer '{}' is given {} bytes; an output has a key or nothing",
                  buffer.name, binding.bytes.size());
    }
    if (binding.key.empty()) return {};
    if (Status status = check_key("outputs", buffer, binding.key); !status) return status;
    if (read_.contains(binding.key)) {
      return fail(
          Errc::kInvalidArgument,
          "outputs: buffer '{}' would replace '{}', which the call reads; objects do not change, choose a new key",
          buffer.name, binding.key);
    }
    if (made_.insert(binding.key).second) return {};
    return fail(Errc::kInvalidArgument, "outputs: buffer '{}' has the key '{}' of another output; each makes its own",
                buffer.name, binding.key);
  }

  Status check_all_bound() const {
    std::size_t inline_outputs = 0;
    for (std::size_t i = 0; i < task_.buffers.size(); ++i) {
      const BufferSpec& buffer = task_.buffers[i];
      if (is_input(buffer.role) && !input_bound_[i]) {
        return fail(Errc::kInvalidArgument, "inputs: buffer '{}' is not bound; give it a key or its {} bytes",
                    buffer.name, buffer.bytes.count());
      }
      if (buffer.role == BufferRole::kConstant && made_.contains(buffer.constant)) {
        return fail(Errc::kInvalidArgument, "outputs: '{}' is the constant '{}' of the task; choose a new key",
                    buffer.constant, buffer.name);
      }
      if (!is_output(buffer.role) || has_key_[i]) continue;
      if (!std::cmp_less_equal(buffer.bytes.count(), kMaxInlineBytes)) {
        return fail(Errc::kInvalidArgument,
                    "outputs: buffer '{}' has {} bytes; at most {} travel in an answer, give it a key", buffer.name,
                    buffer.bytes.count(), kMaxInlineBytes);
      }
      inline_outputs += static_cast<std::size_t>(buffer.bytes.count());
    }
    if (inline_outputs <= kMaxInlineOutputBytes) return {};
    return fail(Errc::kInvalidArgument,
                "outputs: those without a key have {} bytes together; at most {} travel in an answer, give some a key",
                inline_outputs, kMaxInlineOutputBytes);
  }

  static Status check_key(std::string_view list, const BufferSpec& buffer, std::string_view key) {
    const Status status = validate_object_key(key);
    if (status) return {};
    return fail(Errc::kInvalidArgument, "{}: buffer '{}': {}", list, buffer.name, status.error().message);
  }

  const KernelTask& task_;
  std::vector<bool> input_bound_;
  std::vector<bool> output_bound_;
  std::vector<bool> has_key_;  // outputs
  std::set<std::string_view> read_;
  std::set<std::string_view> made_;
};

}  // namespace

Status validate_call(const KernelTask& task, const KernelTaskCall& call) {
  return CallChecker(task).check(call);
}

Status validate_answer(const KernelTask& task, const KernelTaskAnswer& answer) {
  std::vector<bool> answered(task.buffers.size());
  for (const KernelTaskAnswer::Output& output : answer.outputs) {
    if (output.buffer >= task.buffers.size() || !is_output(task.buffers[output.buffer].role)) {
      return fail(Errc::kInternal, "answer: buffer {} is none of the task's outputs", output.buffer);
    }
    const BufferSpec& buffer = task.buffers[output.buffer];
    if (answered[output.buffer]) return fail(Errc::kInternal, "answer: output '{}' is there twice", buffer.name);
    answered[output.buffer] = true;
    if (output.key.empty() ? std::cmp_equal(output.bytes.size(), buffer.bytes.count()) : output.bytes.empty()) continue;
    return fail(Errc::kInternal, "answer: output '{}' has {} bytes, its buffer {}", buffer.name, output.bytes.size(),
                buffer.bytes.count());
  }
  return {};
}

}  // namespace fairlead
