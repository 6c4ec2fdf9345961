// Products of matrices at random, for the property tests: every layout that the library has, few of them dense.
#pragma once

#include <rapidcheck.h>

#include "runtime/device_server/testing/gemm_task.h"

namespace fairlead {

// From a range as wide in the first cases as in the last.
template <typename T>
T any_of(T low, T end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, end));
}

// In rows, in columns, or by strides that cuBLAS has no words for.
inline GemmTask::Strides random_strides(int rows, int columns, std::uint32_t batches, bool is_result) {
  const auto padding = any_of<std::int64_t>(0, 3);
  GemmTask::Strides strides{.row = columns + padding, .column = 1};
  const int layout = is_result ? 0 : any_of(0, 10);
  if (layout >= 5) strides = {.row = 1, .column = rows + padding};
  if (layout == 9) strides = {.row = 2 * columns, .column = 2};
  const std::int64_t whole = rows * strides.row + columns * strides.column;
  strides.batch = batches == 1 || (!is_result && any_of(0, 4) == 0) ? 0 : whole;
  if (is_result && batches > 1 && *rc::gen::arbitrary<bool>()) {  // row by row beside each other
    strides.batch = columns + padding;
    strides.row = batches * strides.batch;
  }
  return strides;
}

inline GemmTask random_gemm(int most) {
  using Addend = GemmTask::Addend;
  GemmTask gemm;
  gemm.element = *rc::gen::element(GemmCall::Element::kF32, GemmCall::Element::kF64, GemmCall::Element::kC64);
  gemm.kernel = gemm.element == GemmCall::Element::kF32   ? "gemm_f32"
                : gemm.element == GemmCall::Element::kF64 ? "gemm_f64"
                                                          : "gemm_c64";
  if (*rc::gen::arbitrary<bool>()) gemm.kernel += "_small";
  gemm.m = any_of(1, most);
  gemm.n = any_of(1, most);
  gemm.k = any_of(1, most);
  gemm.batches = any_of<std::uint32_t>(1, 4);
  gemm.a = random_strides(gemm.m, gemm.k, gemm.batches, false);
  gemm.b = random_strides(gemm.k, gemm.n, gemm.batches, false);
  gemm.c = random_strides(gemm.m, gemm.n, gemm.batches, true);
  gemm.alpha = *rc::gen::element(1.0, -2.0, 3.0);
  gemm.addend = *rc::gen::element(Addend::kNone, Addend::kInPlace, Addend::kOther);
  gemm.beta = gemm.addend == Addend::kNone ? 0.0 : *rc::gen::element(0.0, 1.0, -3.0);
  gemm.has_bias = *rc::gen::arbitrary<bool>();
  gemm.bias_axis = any_of(0, 2);
  gemm.activation = any_of(0, 6);
  gemm.offset = *rc::gen::element<std::uint64_t>(0, 8, 24);
  return gemm;
}

}  // namespace fairlead
