// libFuzzer: any bytes are a task, a call, an answer or a request, or refused with an error; what was read is written and read again
// the same, and the checks of the model end on it.
#include <cstdint>
#include <cstdlib>

#include "model/kernel_task.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// One kernel of each name that the task uses, with parameters that its arguments fit.
std::vector<std::vector<KernelSignature>> signatures_for(const KernelTask& task) {
  std::vector<std::vector<KernelSignature>> signatures(task.modules.size());
  for (const KernelLaunch& kernel : task.kernels) {
    if (kernel.module >= signatures.size()) continue;
    KernelSignature signature{.name = kernel.kernel};
    for (const KernelArgument& argument : kernel.arguments) {
      const auto* literal = std::get_if<LiteralArgument>(&argument);
      signature.parameters.push_back({0, literal != nullptr ? static_cast<std::uint32_t>(literal->bytes.size()) : 8});
    }
    signatures[kernel.module].push_back(std::move(signature));
  }
  return signatures;
}

void use(KernelTask task) {
  for (KernelModule& module : task.modules) module.sha256.resize(32);
  if (!validate_task(task, signatures_for(task), {})) return;
  require(dependencies(task).size() == task.kernels.size());
  const auto written = kernel_task_from_json(kernel_task_to_json(task));
  require(written && written->kernels.size() == task.kernels.size() && written->buffers.size() == task.buffers.size());
}

// A buffer of each way in which contents are read.
KernelTask small_task() {
  KernelTask task;
  task.buffers = {
      {.name = "x", .bytes = Bytes(24), .role = BufferRole::kInOut, .type = ElementType::kF32, .shape = {2, 3}},
      {.name = "y", .bytes = Bytes(4), .role = BufferRole::kOutput},
      {.name = "z", .bytes = Bytes(16), .role = BufferRole::kInput, .type = ElementType::kC64, .shape = {2}},
      {.name = "h", .bytes = Bytes(4), .role = BufferRole::kInput, .type = ElementType::kF16}};
  return task;
}

void read_json(std::string_view bytes) {
  if (const auto task = kernel_task_from_json(bytes)) {
    const auto again = kernel_task_from_json(kernel_task_to_json(*task));
    require(again && *again == *task);
    use(*task);
  }
  if (const auto request = kernel_task_request_from_json(bytes)) {
    const auto again = decode_kernel_task_request(encode(*request));
    require(!validate_request(*request) || (again && *again == *request));
  }
  const KernelTask task = small_task();
  if (const auto call = kernel_task_call_from_json(task, bytes)) (void)validate_call(task, *call).has_value();
}

void read_binary(std::string_view bytes) {
  if (const auto task = decode_kernel_task(bytes)) {
    require(encode(*task) == bytes);
    use(*task);
  }
  const KernelTask task = small_task();
  if (const auto call = decode_kernel_task_call(bytes)) {
    require(encode(*call) == bytes);
    (void)validate_call(task, *call).has_value();
  }
  if (const auto request = decode_kernel_task_request(bytes)) {
    require(encode(*request) == bytes);
    (void)validate_request(*request).has_value();
  }
  if (const auto answer = decode_kernel_task_answer(bytes)) {
    require(encode(*answer) == bytes);
    if (validate_answer(task, *answer)) require(!kernel_task_answer_to_json(task, *answer).empty());
  }
}

}  // namespace
}  // namespace fairlead::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (fairlead::wire::is_binary(bytes)) {
    fairlead::wire::read_binary(bytes);
  } else {
    fairlead::wire::read_json(bytes);
  }
  return 0;
}
