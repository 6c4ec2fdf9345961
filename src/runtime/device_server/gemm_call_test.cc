#include "runtime/device_server/gemm_call.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>

#include "runtime/device_server/testing/gemm_generator.h"
#include "runtime/device_server/testing/gemm_task.h"

namespace fairlead {
namespace {

TEST(GemmCall, TheFactorsOfTheExampleChangePlaces) {
  GemmTask gemm;  // A 2 x 3, C 2 x 4
  gemm.b = {.row = 1, .column = 3};
  const auto call = gemm_call(gemm.task(), 0);
  ASSERT_TRUE(call);
  EXPECT_EQ(std::tuple(call->m, call->n, call->k, call->batches), std::tuple(4, 2, 3, 1));
  EXPECT_EQ(call->left, (GemmCall::Matrix{.buffer = GemmTask::kBufferB, .ld = 3, .transposed = true}));
  EXPECT_EQ(call->right, (GemmCall::Matrix{.buffer = GemmTask::kBufferA, .ld = 3}));
  EXPECT_EQ(call->c, (GemmCall::Matrix{.buffer = GemmTask::kBufferC, .ld = 4}));
  EXPECT_FALSE(call->brings_addend || call->finishes || call->in_place);
}

TEST(GemmCall, AnAddendElsewhereIsBroughtFirstAndOneInPlaceIsRead) {
  GemmTask gemm{.beta = 2, .addend = GemmTask::Addend::kOther};
  EXPECT_TRUE(gemm_call(gemm.task(), 0)->brings_addend);
  gemm.addend = GemmTask::Addend::kInPlace;
  EXPECT_TRUE(gemm_call(gemm.task(), 0)->in_place);
  EXPECT_FALSE(gemm_call(gemm.task(), 0)->brings_addend);
  gemm.beta = 0;
  EXPECT_FALSE(gemm_call(gemm.task(), 0)->in_place);
}

TEST(GemmCall, OnlyF32HasActivations) {
  EXPECT_TRUE(gemm_call(GemmTask{.activation = 1}.task(), 0)->finishes);
  EXPECT_TRUE(gemm_call(GemmTask{.has_bias = true}.task(), 0)->finishes);
  const GemmTask wide{.element = GemmCall::Element::kF64, .kernel = "gemm_f64", .activation = 1};
  EXPECT_FALSE(gemm_call(wide.task(), 0)->finishes);
}

struct Change {
  const char* what;
  std::function<void(GemmTask&)> gemm = [](GemmTask&) {};
  std::function<void(KernelTask&)> task = [](KernelTask&) {};
};
void set(KernelTask& task, GemmCall::Argument argument, const KernelArgument& value) {
  task.kernels[0].arguments[argument] = value;
}
const Change kOwnKernels[] = {
    {"another module", {}, [](KernelTask& task) { task.modules[0].name = "gemm.ptx"; }},
    {"another kernel", {}, [](KernelTask& task) { task.kernels[0].kernel = "gemm_f16"; }},
    {"too few arguments", {}, [](KernelTask& task) { task.kernels[0].arguments.pop_back(); }},
    {"no rows", [](GemmTask& gemm) { gemm.m = 0; }},
    {"no depth", [](GemmTask& gemm) { gemm.k = 0; }},
    {"a negative depth", [](GemmTask& gemm) { gemm.k = -1; }},
    {"times zero", [](GemmTask& gemm) { gemm.alpha = 0; }},
    {"a grid of too few rows", [](GemmTask& gemm) { gemm.m = 33; },
     [](KernelTask& task) { task.kernels[0].grid[1] = 1; }},
    {"a grid of too few columns", [](GemmTask& gemm) { gemm.n = 33, gemm.b.row = gemm.c.row = 33; },
     [](KernelTask& task) { task.kernels[0].grid[0] = 1; }},
    {"another block",
     {},
     [](KernelTask& task) {
       task.kernels[0].block = {32, 1, 1};
     }},
    {"a row that is repeated", [](GemmTask& gemm) { gemm.a.row = 0; }},
    {"rows that overlap", [](GemmTask& gemm) { gemm.a.row = 2; }},
    {"no side contiguous", [](GemmTask& gemm) { gemm.b = {.row = 8, .column = 2}; }},
    {"backwards", {}, [](KernelTask& task) { set(task, GemmCall::kARow, GemmTask::literal(std::int64_t{-3})); }},
    {"results that overlap", [](GemmTask& gemm) { gemm.batches = 2, gemm.c.batch = 3; }},
    {"one result for all", [](GemmTask& gemm) { gemm.batches = 2; }},
    {"A ends behind its buffer", {}, [](KernelTask& task) { task.buffers[GemmTask::kBufferA].bytes = Bytes(23); }},
    {"B ends behind its buffer", {}, [](KernelTask& task) { task.buffers[GemmTask::kBufferB].bytes = Bytes(47); }},
    {"C ends behind its buffer", {}, [](KernelTask& task) { task.buffers[GemmTask::kBufferC].bytes = Bytes(31); }},
    {"A begins behind its buffer",
     {},
     [](KernelTask& task) { set(task, GemmCall::kA, BufferArgument{.buffer = 0, .offset = 1 << 20}); }},
    {"a depth beyond the buffer", {}, [](KernelTask& task) { set(task, GemmCall::kK, GemmTask::literal(1 << 30)); }},
    {"a batch beyond the buffer",
     {},
     [](KernelTask& task) {
       task.kernels[0].grid[2] = 2, set(task, GemmCall::kABatch, GemmTask::literal(std::int64_t{6}));
     }},
    {"a distance that overflows",
     {},
     [](KernelTask& task) {
       set(task, GemmCall::kARow, GemmTask::literal(std::numeric_limits<std::int64_t>::max()));
       set(task, GemmCall::kM, GemmTask::literal(3));
     }},
    {"C over B", {}, [](KernelTask& task) { set(task, GemmCall::kC, BufferArgument{.buffer = GemmTask::kBufferB}); }},
    {"half an element away",
     {},
     [](KernelTask& task) {
       task.buffers[0].bytes = Bytes(100);
       set(task, GemmCall::kA, BufferArgument{.buffer = 0, .offset = 2});
     }},
    {"an address of its own",
     {},
     [](KernelTask& task) { set(task, GemmCall::kA, GemmTask::literal(std::uint64_t{4096})); }},
    {"a bias at an address of its own",
     {},
     [](KernelTask& task) { set(task, GemmCall::kBias, GemmTask::literal(std::uint64_t{4096})); }},
    {"no addend", [](GemmTask& gemm) { gemm.beta = 1; }},
};

TEST(GemmCall, WhatCublasDoesNotDoStaysWithTheOwnKernel) {
  ASSERT_TRUE(gemm_call(GemmTask{}.task(), 0));
  for (const Change& change : kOwnKernels) {
    GemmTask gemm;
    if (change.gemm) change.gemm(gemm);
    KernelTask task = gemm.task();
    if (change.task) change.task(task);
    EXPECT_FALSE(gemm_call(task, 0)) << change.what;
  }
}

// Element (row, column) of the matrix whose transpose, column-major, cuBLAS is given.
std::int64_t place(const GemmCall::Matrix& matrix, std::int64_t row, std::int64_t column, std::int64_t batch) {
  return batch * matrix.batch + (matrix.transposed ? row + column * matrix.ld : column + row * matrix.ld);
}

RC_GTEST_PROP(GemmCall, EveryElementIsWhereTheStridesSayAndInItsBuffer, ()) {
  const GemmTask gemm = random_gemm(6);
  KernelTask task = gemm.task();
  // Some buffers are too short, so that it must not be called.
  for (BufferSpec& buffer : task.buffers) {
    if (any_of(0, 8) == 0) buffer.bytes = Bytes(std::max<std::int64_t>(1, buffer.bytes.count() - 1));
  }
  const auto call = gemm_call(task, 0);
  RC_TAG(call ? "cuBLAS" : "own kernel");
  if (!call) return;
  const auto check = [&](const GemmCall::Matrix& matrix, const GemmTask::Strides& strides, int rows, int columns) {
    const Bytes end = task.buffers[matrix.buffer].bytes;
    for (std::int64_t batch = 0; batch < call->batches; ++batch) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t at = place(matrix, row, column, batch);
          RC_ASSERT(at == batch * strides.batch + row * strides.row + column * strides.column);
          RC_ASSERT(gemm.bytes_of(at) <= end);
        }
      }
    }
  };
  check(call->right, gemm.a, gemm.m, gemm.k);
  check(call->left, gemm.b, gemm.k, gemm.n);
  check(call->c, gemm.c, gemm.m, gemm.n);
}

// Corner by corner: strides and sizes that overflow when they are multiplied.
RC_GTEST_PROP(GemmCall, NoNumberLeadsOutOfABuffer, ()) {
  KernelTask task = random_gemm(6).task();
  std::vector<KernelArgument>& arguments = task.kernels[0].arguments;
  const auto wild = [] {
    return *rc::gen::element<std::int64_t>(0, 1, 2, 3, 5, -1, 1 << 30, INT32_MAX, INT64_MAX, INT64_MIN);
  };
  for (int i = any_of(1, 4); i > 0; --i) {
    const int argument = any_of<int>(GemmCall::kM, GemmCall::kAlpha);
    const auto value = wild();
    arguments[static_cast<std::size_t>(argument)] =
        argument <= GemmCall::kK ? GemmTask::literal(static_cast<int>(value)) : GemmTask::literal(value);
  }
  task.kernels[0].grid = {1 << 26, 65535, *rc::gen::element(1U, 2U, 65535U)};
  const auto call = gemm_call(task, 0);
  RC_TAG(call ? "cuBLAS" : "own kernel");
  if (!call) return;
  const auto end = [&](const GemmCall::Matrix& matrix, int length, int count) {
    const double last = static_cast<double>(call->batches - 1) * static_cast<double>(matrix.batch) +
                        static_cast<double>(count - 1) * matrix.ld + length;
    return static_cast<double>(matrix.offset) + last * static_cast<double>(element_bytes(call->element));
  };
  const auto check = [&](const GemmCall::Matrix& matrix, int rows, int columns) {
    const auto bytes = static_cast<double>(task.buffers[matrix.buffer].bytes.count());
    RC_ASSERT((matrix.transposed ? end(matrix, columns, rows) : end(matrix, rows, columns)) <= bytes);
  };
  check(call->left, call->m, call->k);
  check(call->right, call->k, call->n);
  check(call->c, call->m, call->n);
}

}  // namespace
}  // namespace fairlead
