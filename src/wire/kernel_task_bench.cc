// A call of one large input in each form: what the node's event loop spends on it.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

constexpr std::int64_t kElements = 256 << 10;  // 1 MiB of f32

KernelTask task() {
  KernelTask task;
  const auto buffer = [](const char* name, BufferRole role) {
    return BufferSpec{
        .name = name, .bytes = Bytes(4 * kElements), .role = role, .type = ElementType::kF32, .shape = {512, 512}};
  };
  task.buffers = {buffer("x", BufferRole::kInput), buffer("y", BufferRole::kOutput)};
  return task;
}

std::string contents() {
  std::string bytes;
  for (int i = 0; i < kElements; ++i) {
    const float value = 1.0F / static_cast<float>(i + 1);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

KernelTaskAnswer answer() {
  return {.outputs = {{.buffer = 1, .bytes = contents()}}};
}

void decode_binary(benchmark::State& state) {
  const std::string call = encode(KernelTaskCall{.inputs = {{.buffer = 0, .bytes = contents()}}});
  for (auto _ : state) FL_CHECK(decode_kernel_task_call(call).has_value());
}
BENCHMARK(decode_binary)->Unit(benchmark::kMillisecond);

void decode_json_values(benchmark::State& state) {
  const std::string text = kernel_task_answer_to_json(task(), answer());
  const std::string values = text.substr(text.find('['), text.find(",\"phases") - 2 - text.find('['));
  const std::string call = R"({"inputs": {"x": )" + values + "}}";
  for (auto _ : state) FL_CHECK(kernel_task_call_from_json(task(), call).has_value());
}
BENCHMARK(decode_json_values)->Unit(benchmark::kMillisecond);

void encode_json_values(benchmark::State& state) {
  const KernelTaskAnswer one = answer();
  for (auto _ : state) benchmark::DoNotOptimize(kernel_task_answer_to_json(task(), one));
}
BENCHMARK(encode_json_values)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fairlead::wire
