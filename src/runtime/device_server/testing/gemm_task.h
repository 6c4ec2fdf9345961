// Tasks of one matrix product by the built-in library, for tests.
#pragma once

#include <cstring>
#include <string>

#include "base/units.h"
#include "runtime/device_server/gemm_call.h"

namespace fairlead {

// One launch, as the library's table describes it, of buffers a, b, c, d, bias. What is not given is a product of dense
// matrices in rows; each buffer ends with its matrices.
struct GemmTask {
  struct Strides {
    std::int64_t row = 0, column = 1, batch = 0;
  };
  enum Buffers : std::uint32_t { kBufferA, kBufferB, kBufferC, kBufferD, kBufferBias };

  GemmCall::Element element = GemmCall::Element::kF32;
  std::string kernel = "gemm_f32_small";
  int m = 2, n = 4, k = 3;
  std::uint32_t batches = 1;
  Strides a{.row = 3}, b{.row = 4}, c{.row = 4};
  double alpha = 1, beta = 0;
  enum class Addend { kNone, kInPlace, kOther } addend = Addend::kNone;
  bool has_bias = false;
  int bias_axis = 0, activation = 0;
  std::uint64_t offset = 0;  // bytes before each matrix

  std::int64_t last(int rows, int columns, const Strides& strides) const {
    return (rows - 1) * strides.row + (columns - 1) * strides.column + (batches - 1) * strides.batch;
  }
  Bytes bytes_of(std::int64_t last_element) const {
    return Bytes(static_cast<std::int64_t>(offset) +
                 (last_element + 1) * static_cast<std::int64_t>(element_bytes(element)));
  }

  static BufferSpec buffer(const char* name, Bytes bytes) {
    return {.name = name, .bytes = bytes, .role = BufferRole::kInOut, .shape = {}, .constant = {}};
  }
  template <typename T>
  static LiteralArgument literal(T value) {
    return {.bytes = std::string(reinterpret_cast<const char*>(&value), sizeof value), .relocations = {}};
  }
  LiteralArgument factor(double value) const {
    if (element == GemmCall::Element::kF64) return literal(value);
    if (element == GemmCall::Element::kF32) return literal(static_cast<float>(value));
    return literal(std::array<float, 2>{static_cast<float>(value), value == 0 ? 0.0F : 2.0F});
  }

  KernelTask task() const {
    KernelTask made;
    made.modules = {{.name = "fairlead:gemm", .sha256 = {}}};
    made.buffers = {buffer("a", bytes_of(last(m, k, a))), buffer("b", bytes_of(last(k, n, b))),
                    buffer("c", bytes_of(last(m, n, c))), buffer("d", bytes_of(last(m, n, c))),
                    buffer("bias", bytes_of((bias_axis == 0 ? m : n) - 1))};
    const auto at = [this](std::uint32_t index) { return BufferArgument{.buffer = index, .offset = offset}; };
    const KernelArgument null = literal(std::uint64_t{0});
    KernelArgument d = null;
    if (addend == Addend::kInPlace) d = at(kBufferC);
    if (addend == Addend::kOther) d = at(kBufferD);
    const bool is_small = kernel.ends_with("_small");
    const std::uint32_t tile = is_small ? 32 : 64;
    const auto tiles = [tile](int side) { return (static_cast<std::uint32_t>(side) + tile - 1) / tile; };
    KernelLaunch launch{.kernel = kernel, .grid = {tiles(n), tiles(m), batches}, .arguments = {}};
    launch.block = {is_small ? 64U : 256U, 1, 1};
    launch.arguments = {at(kBufferC), at(kBufferA), at(kBufferB), d, null, literal(m), literal(n), literal(k)};
    if (has_bias) launch.arguments[GemmCall::kBias] = at(kBufferBias);
    for (const std::int64_t stride : {a.row, a.column, a.batch, b.row, b.column, b.batch, c.row, c.batch}) {
      launch.arguments.emplace_back(literal(stride));
    }
    launch.arguments.emplace_back(factor(alpha));
    launch.arguments.emplace_back(factor(beta));
    launch.arguments.emplace_back(literal(bias_axis));
    launch.arguments.emplace_back(literal(activation));
    made.kernels = {launch};
    return made;
  }
};

}  // namespace fairlead
