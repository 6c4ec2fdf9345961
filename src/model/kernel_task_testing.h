// Small tasks for tests: the two kernels of the header's picture, and a graph of any shape.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/kernel_task.h"

namespace fairlead::testing {

inline LiteralArgument literal(std::size_t bytes) {
  return {.bytes = std::string(bytes, '\x01'), .relocations = {}};
}

inline BufferSpec buffer(std::string name, BufferRole role, Bytes bytes = Bytes(4096)) {
  BufferSpec spec{.name = std::move(name), .bytes = bytes, .role = role};
  if (role == BufferRole::kConstant) spec.constant = "weights/" + spec.name;
  return spec;
}

// x (input) -> scale -> t (temporary); t and w (constant) -> dot -> y (output).
inline KernelTask scale_and_dot() {
  KernelTask task;
  task.modules = {{.name = "kernels.ptx", .sha256 = std::string(32, 'd')}};
  task.buffers = {buffer("x", BufferRole::kInput), buffer("w", BufferRole::kConstant),
                  buffer("t", BufferRole::kTemporary), buffer("y", BufferRole::kOutput)};
  task.kernels = {
      {.kernel = "scale",
       .grid = {4, 1, 1},
       .block = {256, 1, 1},
       .arguments = {literal(4), BufferArgument{.buffer = 0}, BufferArgument{.buffer = 2}}},
      {.kernel = "dot",
       .block = {256, 1, 1},
       .arguments = {BufferArgument{.buffer = 2}, BufferArgument{.buffer = 1}, BufferArgument{.buffer = 3}}}};
  return task;
}

inline std::vector<std::vector<KernelSignature>> scale_and_dot_signatures() {
  return {{{.name = "dot", .parameters = {{0, 8}, {8, 8}, {16, 8}}, .max_threads = 256, .static_shared_bytes = 1024},
           {.name = "scale", .parameters = {{0, 4}, {8, 8}, {16, 8}}}}};
}

}  // namespace fairlead::testing
