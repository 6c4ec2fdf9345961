#include "model/kernel_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/kernel_task_testing.h"

namespace fairlead {
namespace {

using testing::buffer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::literal;

// The error of the picture's task after `change`.
template <typename Change>
Error refused(Change change, DeviceLimits limits = {}) {
  KernelTask task = testing::scale_and_dot();
  auto signatures = testing::scale_and_dot_signatures();
  change(task, signatures);
  const Status status = validate_task(task, signatures, limits);
  return status ? Error{Errc::kInternal, "it was accepted"} : status.error();
}
template <typename Change>
std::string refused_task(Change change) {
  return refused([&](KernelTask& task, auto&) { change(task); }).message;
}

TEST(KernelTask, NamesOfTypesAndRolesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(ElementType::kC128); ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_EQ(element_type_named(element_type_name(type)), type);
  }
  for (int i = 0; i <= static_cast<int>(BufferRole::kTemporary); ++i) {
    const auto role = static_cast<BufferRole>(i);
    EXPECT_EQ(buffer_role_named(buffer_role_name(role)), role);
  }
  EXPECT_EQ(element_type_named("float"), std::nullopt);
  EXPECT_EQ(buffer_role_named("in"), std::nullopt);
  EXPECT_EQ(element_bytes(ElementType::kBytes), 1U);
  EXPECT_EQ(element_bytes(ElementType::kBf16), 2U);
  EXPECT_EQ(element_bytes(ElementType::kC64), 8U);
  EXPECT_EQ(element_bytes(ElementType::kC128), 16U);
}

TEST(KernelTask, ThePictureIsValid) {
  const Status status =
      validate_task(testing::scale_and_dot(), testing::scale_and_dot_signatures(), {.memory = mib(1)});
  EXPECT_TRUE(status) << status.error().message;
}

TEST(KernelTask, ErrorNamesKernelArgumentValueAndBound) {
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[1].arguments[2] = literal(4); }),
            "kernels[1] (dot): arguments[2] has 4 bytes; the kernel's parameter has 8");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[0].arguments[0] = BufferArgument{}; }),
            "kernels[0] (scale): arguments[0] is a buffer, an address of 8 bytes; the kernel's parameter has 4");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[0].arguments.pop_back(); }),
            "kernels[0] (scale): 2 arguments; the kernel has 3 parameters");
}

TEST(KernelTask, UnknownKernelIsRefusedWithTheNamesOfItsModule) {
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[0].kernel = "Scale"; }),
            "kernels[0] (Scale): module 'kernels.ptx' has no kernel of that name; it has dot, scale");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[0].module = 1; }),
            "kernels[0] (scale): module is 1; the task has 1 modules");
}

TEST(KernelTask, GeometryIsCheckedAgainstDeviceAndKernel) {
  EXPECT_EQ(refused_task([](KernelTask& task) {
              task.kernels[0].grid = {1, 65536, 1};
            }),
            "kernels[0] (scale): grid.y is 65536; it must be between 1 and 65535");
  EXPECT_EQ(refused_task([](KernelTask& task) {
              task.kernels[0].grid = {0, 1, 1};
            }),
            "kernels[0] (scale): grid.x is 0; it must be between 1 and 2147483647");
  EXPECT_EQ(refused_task([](KernelTask& task) {
              task.kernels[0].block = {32, 32, 2};
            }),
            "kernels[0] (scale): block has 2048 threads; the device's limit is 1024");
  EXPECT_EQ(refused_task([](KernelTask& task) {
              task.kernels[1].block = {257, 1, 1};
            }),
            "kernels[1] (dot): block has 257 threads; the kernel was compiled for at most 256");
  EXPECT_EQ(refused([](auto&, auto& signatures) {
              signatures[0][1].required_threads = {128, 2, 1};
            }).message,
            "kernels[0] (scale): block is [256, 1, 1]; the kernel was compiled for exactly [128, 2, 1]");
}

TEST(KernelTask, SharedMemoryIsStaticPlusDynamic) {
  constexpr std::uint32_t kLeft = (48 << 10) - 1024;
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[1].shared_bytes = kLeft; }), "it was accepted");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels[1].shared_bytes = kLeft + 1; }),
            "kernels[1] (dot): shared_bytes is 48129; with the kernel's own 1024 bytes it passes the device's 49152");
}

TEST(KernelTask, RelocationsLieInTheirLiteralApartAndInTheirBuffer) {
  const auto with = [](std::vector<LiteralArgument::Relocation> relocations) {
    return refused([&](KernelTask& task, auto& signatures) {
             signatures[0][1].parameters[0].bytes = 24;
             task.kernels[0].arguments[0] = LiteralArgument{std::string(24, '\0'), relocations};
           })
        .message;
  };
  EXPECT_EQ(with({{16, {.buffer = 1}}, {8, {.buffer = 0, .offset = 4095}}}), "it was accepted");
  EXPECT_EQ(with({{17, {.buffer = 1}}}),
            "kernels[0] (scale): arguments[0].relocations[0]: at is 17; an address has 8 bytes, the literal 24");
  EXPECT_THAT(with({{0xffffffff, {.buffer = 1}}}), HasSubstr("at is 4294967295"));
  EXPECT_EQ(with({{8, {.buffer = 1}}, {1, {.buffer = 1}}}),
            "kernels[0] (scale): arguments[0]: relocations at 1 and 8 overlap; each has 8 bytes");
  EXPECT_EQ(with({{0, {.buffer = 4}}}),
            "kernels[0] (scale): arguments[0].relocations[0]: buffer is 4; the task has 4 buffers");
  EXPECT_EQ(with({{0, {.buffer = 1, .offset = 4096}}}),
            "kernels[0] (scale): arguments[0].relocations[0]: offset is 4096; buffer 'w' has 4096 bytes");
  EXPECT_THAT(with({{0, {.buffer = 1, .access = BufferArgument::Access::kWrite}}}),
              HasSubstr("access is to write, but buffer 'w' is constant; objects do not change"));
}

TEST(KernelTask, BuffersAreNamedSizedAndFitTheDevice) {
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers[2].bytes = Bytes(0); }),
            "buffers[2] (t): bytes is 0; it must be between 1 and 1099511627776");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers[2].name = "x"; }),
            "buffers[2] (x): an earlier buffer has that name; each needs its own");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers[2].name = "a\nb"; }),
            "buffers[2]: its name has a byte that is not printable ASCII");
  const Error error = refused([](auto&, auto&) {}, {.memory = Bytes(16383)});
  EXPECT_EQ(error.code, Errc::kTooLarge);
  EXPECT_EQ(error.message, "buffers: together they have 16384 bytes; the device's memory has 16383");
}

TEST(KernelTask, ShapeTimesElementIsTheSize) {
  const auto shaped = [](std::vector<std::uint64_t> shape) {
    return refused_task([&](KernelTask& task) {
      task.buffers[0].type = ElementType::kF32;
      task.buffers[0].shape = shape;
    });
  };
  EXPECT_EQ(shaped({32, 32}), "it was accepted");
  EXPECT_EQ(shaped({32, 31}),
            "buffers[0] (x): shape of f32 needs 3968 bytes, but bytes is 4096; leave one of them out");
  EXPECT_THAT(shaped({1ULL << 32, 1ULL << 32}), HasSubstr("shape needs more than 1099511627776 bytes"));
  EXPECT_THAT(shaped({0, 1ULL << 63}), HasSubstr("shape of f32 needs 0 bytes"));
  EXPECT_THAT(shaped(std::vector<std::uint64_t>(33, 1)), HasSubstr("shape has 33 dimensions; at most 32"));
  EXPECT_EQ(refused_task([](KernelTask& task) {
              task.buffers[0].type = ElementType::kC128;
              task.buffers[0].bytes = Bytes(24);
            }),
            "buffers[0] (x): bytes is 24; c128 elements have 16 bytes each, it must be a multiple");
}

TEST(KernelTask, RolesSayWhatABufferMayCarry) {
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers[1].constant = ""; }),
            "buffers[1] (w): object key '' has 0 bytes; it must have 1 to 256");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers[0].constant = "k"; }),
            "buffers[0] (x): key is 'k', but its role is input; only a constant names an object here");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers[0].zeroed = true; }),
            "buffers[0] (x): zeroed is true, but its role is input; outputs and temporaries can be zeroed");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels.pop_back(); }),
            "buffers[3] (y): it is an output, but no kernel may write it; pass it to one, or set zeroed");
}

TEST(KernelTask, CountsAreBounded) {
  EXPECT_EQ(refused([](KernelTask& task, auto& signatures) {
              task = KernelTask{};
              signatures.clear();
            }).message,
            "kernels is empty; a task has 1 to 16384");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels.clear(); }), "kernels is empty; a task has 1 to 16384");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.kernels.resize(kMaxTaskKernels + 1); }),
            "kernels: 16385 of them; a task has at most 16384");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.buffers.resize(kMaxTaskBuffers + 1); }),
            "buffers: 16385 of them; a task has at most 16384");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.iterations = 0; }),
            "iterations is 0; it must be between 1 and 1000000");
  EXPECT_EQ(refused_task([](KernelTask& task) { task.modules[0].sha256.clear(); }),
            "modules[0] (kernels.ptx): its sha256 has 0 bytes; it must have 32");
  EXPECT_EQ(refused([](KernelTask& task, auto& signatures) {
              signatures[0][1].parameters.assign(2, {0, 4096});
              task.kernels[0].arguments.assign(2, literal(4096));
            }).message,
            "kernels[0] (scale): its arguments have 8192 bytes; they may have at most 4096");
}

TEST(ObjectKey, LettersDigitsAndSomeSigns) {
  for (const char* key : {"a", "weights/resnet50:v2", "t@1/x_y-z.0", "...", "a/..b"}) {
    EXPECT_TRUE(validate_object_key(key)) << key;
  }
  EXPECT_TRUE(validate_object_key(std::string(256, 'k')));
  for (const char* key : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a b", "a\\b", "\xc3\xa4"}) {
    EXPECT_FALSE(validate_object_key(key)) << key;
  }
  EXPECT_FALSE(validate_object_key(std::string(257, 'k')));
  EXPECT_FALSE(validate_object_key(std::string_view("a\0b", 3)));
}

// ---- order

KernelTask graph(std::size_t buffers, const std::vector<std::vector<BufferArgument>>& kernels) {
  KernelTask task;
  for (std::size_t i = 0; i < buffers; ++i) task.buffers.push_back(buffer(std::to_string(i), BufferRole::kTemporary));
  for (const auto& arguments : kernels) {
    task.kernels.push_back({.kernel = "k", .arguments = {arguments.begin(), arguments.end()}});
  }
  return task;
}
BufferArgument reads(std::uint32_t buffer) {
  return {.buffer = buffer, .access = BufferArgument::Access::kRead};
}
BufferArgument writes(std::uint32_t buffer) {
  return {.buffer = buffer, .access = BufferArgument::Access::kWrite};
}

TEST(KernelOrder, WriterReadersWriter) {
  const KernelTask task = graph(1, {{writes(0)}, {reads(0)}, {reads(0)}, {writes(0)}, {reads(0)}});
  EXPECT_THAT(dependencies(task),
              ElementsAre(ElementsAre(), ElementsAre(0U), ElementsAre(0U), ElementsAre(1U, 2U), ElementsAre(3U)));
}

TEST(KernelOrder, WhatFollowsFromOthersIsLeftOut) {
  const KernelTask task = graph(2, {{writes(0)}, {reads(0), writes(1)}, {reads(0), reads(1)}});
  EXPECT_THAT(dependencies(task), ElementsAre(ElementsAre(), ElementsAre(0U), ElementsAre(1U)));
}

TEST(KernelOrder, RolesDecideWhereNothingIsSaid) {
  KernelTask task = graph(2, {{{.buffer = 0}, {.buffer = 1}}, {{.buffer = 0}}, {{.buffer = 1}}});
  task.buffers[0].role = BufferRole::kInput;  // read twice: no order
  EXPECT_THAT(dependencies(task), ElementsAre(ElementsAre(), ElementsAre(), ElementsAre(0U)));
}

TEST(KernelOrder, AddressesInsideOfLiteralsCount) {
  KernelTask task = graph(1, {{writes(0)}, {}});
  task.kernels[1].arguments = {LiteralArgument{std::string(8, '\0'), {{0, reads(0)}}}};
  EXPECT_THAT(dependencies(task), ElementsAre(ElementsAre(), ElementsAre(0U)));
}

TEST(KernelOrder, AKernelDoesNotFollowItself) {
  const KernelTask task = graph(1, {{reads(0), writes(0)}, {writes(0), reads(0)}});
  EXPECT_THAT(dependencies(task), ElementsAre(ElementsAre(), ElementsAre(0U)));
}

// ---- calls

std::string refused_call(KernelTaskCall call, KernelTask task = testing::scale_and_dot()) {
  const Status status = validate_call(task, call);
  return status ? "it was accepted" : status.error().message;
}

TEST(KernelTaskCall, InputsAreKeysOrTheirBytes) {
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 0, .key = "in/1"}}}), "it was accepted");
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 0, .bytes = std::string(4096, 'x')}}}), "it was accepted");
  EXPECT_EQ(refused_call({}), "inputs: buffer 'x' is not bound; give it a key or its 4096 bytes");
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 0, .bytes = "short"}}}),
            "inputs: buffer 'x' is given 5 bytes; it has 4096");
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 0, .key = "in/1", .bytes = "b"}}}),
            "inputs: buffer 'x' has a key and 1 bytes; give one of them");
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 0, .key = "in/1"}, {.buffer = 0, .key = "in/1"}}}),
            "inputs: buffer 'x' is bound twice; bind it once");
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 1, .key = "in/1"}}}),
            "inputs: the role of buffer 'w' is constant; only input and inout buffers are bound here");
  EXPECT_EQ(refused_call({.inputs = {{.buffer = 9, .key = "in/1"}}}), "inputs: buffer is 9; the task has 4 buffers");
  EXPECT_THAT(refused_call({.inputs = {{.buffer = 0, .key = "/in"}}}),
              HasSubstr("inputs: buffer 'x': object key '/in'"));
}

TEST(KernelTaskCall, OutputsMakeOneNewObjectEach) {
  const std::vector<CallBinding> inputs = {{.buffer = 0, .key = "in/1"}};
  EXPECT_EQ(refused_call({inputs, {{.buffer = 3, .key = "out/1"}}}), "it was accepted");
  EXPECT_EQ(refused_call({inputs, {{.buffer = 3}}}), "it was accepted");
  EXPECT_EQ(refused_call({inputs, {{.buffer = 3}, {.buffer = 3}}}), "outputs: buffer 'y' is bound twice; bind it once");
  EXPECT_THAT(refused_call({inputs, {{.buffer = 3, .key = "in/1"}}}), HasSubstr("would replace 'in/1'"));
  EXPECT_THAT(refused_call({inputs, {{.buffer = 3, .key = "weights/w"}}}), HasSubstr("is the constant 'w'"));
  EXPECT_THAT(refused_call({inputs, {{.buffer = 2, .key = "t"}}}), HasSubstr("the role of buffer 't' is temporary"));
  KernelTask task = testing::scale_and_dot();
  task.buffers[2].role = BufferRole::kInOut;
  const std::vector<CallBinding> both = {{.buffer = 0, .key = "in/1"}, {.buffer = 2, .key = "in/2"}};
  EXPECT_EQ(refused_call({both, {{.buffer = 2, .key = "out/1"}, {.buffer = 3, .key = "out/1"}}}, task),
            "outputs: buffer 'y' has the key 'out/1' of another output; each makes its own");
  EXPECT_THAT(refused_call({inputs, {}}, task), HasSubstr("buffer 't' is not bound"));
}

TEST(KernelTaskAnswer, HasTheTasksOutputsOnceEach) {
  const auto refused_answer = [](std::vector<KernelTaskAnswer::Output> outputs) {
    const Status status = validate_answer(testing::scale_and_dot(), {.outputs = std::move(outputs)});
    return status ? "it was accepted" : status.error().message;
  };
  EXPECT_EQ(refused_answer({{.buffer = 3, .key = "out/1"}}), "it was accepted");
  EXPECT_EQ(refused_answer({{.buffer = 3, .bytes = std::string(4096, 'y')}}), "it was accepted");
  EXPECT_EQ(refused_answer({{.buffer = 3}}), "answer: output 'y' has 0 bytes, its buffer 4096");
  EXPECT_EQ(refused_answer({{.buffer = 4, .key = "k"}}), "answer: buffer 4 is none of the task's outputs");
  EXPECT_EQ(refused_answer({{.buffer = 0, .key = "k"}}), "answer: buffer 0 is none of the task's outputs");
  EXPECT_EQ(refused_answer({{.buffer = 3, .key = "a"}, {.buffer = 3, .key = "b"}}),
            "answer: output 'y' is there twice");
}

TEST(KernelTaskCall, OnlySmallContentsTravelInline) {
  KernelTask task = testing::scale_and_dot();
  task.buffers[3].bytes = Bytes(kMaxInlineBytes + 1);
  const std::vector<CallBinding> inputs = {{.buffer = 0, .key = "in/1"}};
  EXPECT_EQ(refused_call({inputs, {}}, task),
            "outputs: buffer 'y' has 4194305 bytes; at most 4194304 travel in an answer, give it a key");
  EXPECT_EQ(refused_call({inputs, {{.buffer = 3, .key = "out/1"}}}, task), "it was accepted");
  task.buffers[0].bytes = Bytes(kMaxInlineBytes + 1);
  EXPECT_THAT(refused_call({.inputs = {{.buffer = 0, .bytes = std::string(kMaxInlineBytes + 1, 'x')}}}, task),
              HasSubstr("at most 4194304 travel in a call, put them as an object"));
}

// A call of a hundred bytes whose outputs are all of a device's memory would make the node hold them.
TEST(KernelTaskCall, OutputsThatTravelInlineHaveABoundTogether) {
  KernelTask task = testing::scale_and_dot();
  BufferSpec more = task.buffers[3];
  more.bytes = Bytes(kMaxInlineBytes);
  for (int i = 0; i < 16; ++i) {
    more.name = "more" + std::to_string(i);
    task.buffers.push_back(more);
  }
  const std::vector<CallBinding> inputs = {{.buffer = 0, .key = "in/1"}};
  EXPECT_THAT(refused_call({inputs, {}}, task), HasSubstr("bytes together; at most 67108864 travel in an answer"));
  const auto last = static_cast<std::uint32_t>(task.buffers.size() - 1);
  EXPECT_EQ(refused_call({inputs, {{.buffer = last, .key = "out/1"}}}, task), "it was accepted");
}

}  // namespace
}  // namespace fairlead
