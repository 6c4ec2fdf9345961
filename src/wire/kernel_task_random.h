// Random kernel tasks, calls and answers for property tests: any that the codec can carry, not only valid ones.
#pragma once

#include <rapidcheck.h>

#include <string>

#include "model/kernel_task.h"

namespace fairlead::testing {

inline std::string random_name() {
  return *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
}
inline std::string random_bytes() {
  return *rc::gen::arbitrary<std::string>();
}
template <typename T>
T random_up_to(T most) {
  return *rc::gen::inRange<T>(0, most);
}

inline BufferArgument random_buffer_argument(std::uint32_t buffers) {
  return {.buffer = random_up_to(buffers),
          .offset = *rc::gen::arbitrary<std::uint64_t>(),
          .access = static_cast<BufferArgument::Access>(random_up_to(4))};
}

inline KernelArgument random_argument(std::uint32_t buffers) {
  if (random_up_to(2) == 0) return random_buffer_argument(buffers);
  LiteralArgument literal{.bytes = random_bytes(), .relocations = {}};
  for (int left = random_up_to(3); left > 0; --left) {
    literal.relocations.push_back({*rc::gen::arbitrary<std::uint32_t>(), random_buffer_argument(buffers)});
  }
  return literal;
}

inline BufferSpec random_buffer(std::string name) {
  BufferSpec buffer{.name = std::move(name),
                    .bytes = Bytes(random_up_to<std::int64_t>(kMaxObjectBytes.count())),
                    .role = static_cast<BufferRole>(random_up_to(5)),
                    .type = static_cast<ElementType>(random_up_to(15))};
  buffer.shape = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>());
  if (buffer.shape.size() > kMaxShapeDimensions) buffer.shape.resize(kMaxShapeDimensions);
  if (buffer.role == BufferRole::kConstant) buffer.constant = random_name();
  buffer.zeroed = random_up_to(2) == 0;
  return buffer;
}

inline Dim3 random_dim() {
  const auto axis = rc::gen::inRange<std::uint32_t>(1, 0xffffffff);
  return {*axis, *axis, *axis};
}

// Buffers and modules in the order in which JSON, too, gives them back.
inline KernelTask random_task() {
  KernelTask task;
  const auto buffers = random_up_to<std::uint32_t>(5) + 1;
  for (std::uint32_t i = 0; i < buffers; ++i)
    task.buffers.push_back(random_buffer(fmt::format("{}{}", i, random_name())));
  const auto kernels = random_up_to<std::uint32_t>(5);
  for (std::uint32_t i = 0; i < kernels; ++i) {
    task.modules.push_back({.name = fmt::format("{}{}", i, random_name()), .sha256 = {}});
    KernelLaunch kernel{.module = i, .kernel = random_name(), .grid = random_dim(), .block = random_dim()};
    kernel.shared_bytes = *rc::gen::arbitrary<std::uint32_t>();
    for (int left = random_up_to(4); left > 0; --left) kernel.arguments.push_back(random_argument(buffers));
    task.kernels.push_back(kernel);
  }
  task.iterations = random_up_to(kMaxTaskIterations) + 1;
  return task;
}

inline KernelTaskCall random_call() {
  KernelTaskCall call;
  for (int left = random_up_to(4); left > 0; --left)
    call.inputs.push_back({random_up_to(9U), random_name(), random_bytes()});
  for (int left = random_up_to(4); left > 0; --left) call.outputs.push_back({random_up_to(9U), random_name(), {}});
  return call;
}

inline KernelTaskAnswer random_answer() {
  KernelTaskAnswer answer;
  for (int left = random_up_to(4); left > 0; --left) {
    answer.outputs.push_back({random_up_to(9U), random_name(), random_bytes()});
  }
  const auto time = [] { return Duration(random_up_to(std::int64_t{1} << 50)); };
  answer.phases = {time(), time(), time(), time(), time(), time()};
  return answer;
}

}  // namespace fairlead::testing
