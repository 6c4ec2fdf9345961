// A launch of the built-in library's matrix product, as one call of cuBLAS. The library's matrices are row-major with any
// strides, those of cuBLAS column-major with a leading dimension. A row-major matrix read column by column is its transpose,
// so instead of C = A B the call computes C' = B' A': the factors change places, and m and n with them.
//
// Example: A 2 x 3 in rows (strides 3, 1), B 3 x 4 stored transposed (strides 1, 3), C 2 x 4. The call has m = 4, n = 2,
// k = 3; left is B, ld 3, transposed, right is A, ld 3, as it is; ld of C is 4.
//
// What cuBLAS does not do stays with the launch's own kernel, run with a depth of 0: it then computes activation(beta D +
// bias) only. Before the call it brings D into C, where D is another matrix; after it, it adds the bias and applies the
// activation.
//
// A call is only made of what is shown to lie inside of the task's buffers: cuBLAS is not fenced. All else has no call, and
// the library's kernel does it as ever, be it a stride of 0 or a matrix that ends behind its buffer.
//
// Pure. Threads: none of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/kernel_task.h"

namespace fairlead {

struct GemmCall {
  enum class Element : std::uint8_t { kF32, kF64, kC64 };
  // The kernel's arguments, by index.
  enum Argument : std::uint8_t {
    kC,
    kA,
    kB,
    kD,
    kBias,
    kM,
    kN,
    kK,
    kARow,
    kAColumn,
    kABatch,
    kBRow,
    kBColumn,
    kBBatch,
    kCRow,
    kCBatch,
    kAlpha,
    kBeta,
    kBiasAxis,
    kActivation,
    kArguments
  };

  struct Matrix {
    std::uint32_t buffer = 0;
    std::uint64_t offset = 0;  // bytes
    int ld = 0;                // elements
    long long batch = 0;       // elements from one matrix to the next
    bool transposed = false;
    bool operator==(const Matrix&) const = default;
  };

  Element element = Element::kF32;
  int m = 0, n = 0, k = 0, batches = 0;    // cuBLAS's: m is the columns of C
  Matrix left, right, c;                   // left: the library's B
  alignas(8) std::array<char, 8> alpha{};  // as the kernel has them
  alignas(8) std::array<char, 8> beta{};
  bool brings_addend = false;  // D into C before the call
  bool finishes = false;       // bias, activation after it
  // C is read and written: whatever fails half way cannot be done again.
  bool in_place = false;

  bool operator==(const GemmCall&) const = default;
};

std::size_t element_bytes(GemmCall::Element element);
// Nothing: the kernel is another one, or cuBLAS has no such product. REQUIRES: validate_task().
std::optional<GemmCall> gemm_call(const KernelTask& task, std::size_t kernel);

// The kernel's parameters, with which it does what is before and after the call. `own` are those of the whole product; the
// rest points to constants.
using GemmParameters = std::array<void*, GemmCall::kArguments>;
GemmParameters addend_parameters(GemmCall::Element element, void* const* own);
GemmParameters finish_parameters(GemmCall::Element element, void* const* own);

}  // namespace fairlead
