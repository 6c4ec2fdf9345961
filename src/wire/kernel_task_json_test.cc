#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

constexpr char kSaxpy[] = R"({
  "buffers": {
    "x": {"role": "input", "type": "f32", "shape": [32, 32]},
    "w": {"role": "constant", "key": "weights/w", "bytes": 16},
    "y": {"role": "output", "bytes": 4096, "zeroed": true}
  },
  "kernels": [
    {"module": "b.ptx", "kernel": "saxpy", "grid": [4, 2], "block": [256],
     "arguments": [{"f32": 2.0}, {"s32": -1}, {"buffer": "x"}, {"buffer": "y", "offset": 64, "access": "write"},
                   {"bytes": "AAAAAAAAAAAAAAAAAAAAAA==", "relocations": [{"at": 8, "buffer": "w"}]}]},
    {"module": "a.ptx", "kernel": "dot", "grid": [1], "block": [1], "shared_bytes": 128}
  ],
  "iterations": 3
})";

std::string refusal(const std::string& json) {
  const auto task = kernel_task_from_json(json);
  return task ? "it was accepted" : task.error().message;
}
// Of the task above, `from` replaced by `to`.
std::string refusal(const std::string& from, const std::string& to) {
  std::string text = kSaxpy;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return refusal(text.replace(at, from.size(), to));
}

TEST(KernelTaskJson, NamesBecomeIndices) {
  const auto task = kernel_task_from_json(kSaxpy);
  ASSERT_TRUE(task) << task.error().message;
  KernelTask expected;
  expected.modules = {{.name = "b.ptx"}, {.name = "a.ptx"}};
  expected.buffers = {
      {.name = "w", .bytes = Bytes(16), .role = BufferRole::kConstant, .constant = "weights/w"},
      {.name = "x", .bytes = Bytes(4096), .role = BufferRole::kInput, .type = ElementType::kF32, .shape = {32, 32}},
      {.name = "y", .bytes = Bytes(4096), .role = BufferRole::kOutput, .zeroed = true}};
  expected.kernels = {
      {.kernel = "saxpy",
       .grid = {4, 2, 1},
       .block = {256, 1, 1},
       .arguments = {LiteralArgument{"\0\0\0\x40"s, {}}, LiteralArgument{"\xff\xff\xff\xff"s, {}},
                     BufferArgument{.buffer = 1},
                     BufferArgument{.buffer = 2, .offset = 64, .access = BufferArgument::Access::kWrite},
                     LiteralArgument{std::string(16, '\0'), {{.at = 8, .target = {.buffer = 0}}}}}},
      {.module = 1, .kernel = "dot", .shared_bytes = 128}};
  expected.iterations = 3;
  EXPECT_EQ(*task, expected);
}

TEST(KernelTaskJson, UnknownFieldsAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(refusal(R"("iterations")", R"("iteration")"),
            "the document has 'iteration', which is not known; known are buffers, iterations, kernels");
  EXPECT_EQ(refusal(R"("role": "input")", R"("rolle": "input")"),
            "buffers.x has 'rolle', which is not known; known are bytes, key, role, shape, type, zeroed");
  EXPECT_EQ(
      refusal(R"("shared_bytes")", R"("shared")"),
      "kernels[1] has 'shared', which is not known; known are arguments, block, grid, kernel, module, shared_bytes");
  EXPECT_EQ(refusal(R"("offset")", R"("ofset")"),
            "kernels[0].arguments[3] has 'ofset', which is not known; known are access, buffer, offset");
  EXPECT_EQ(
      refusal(R"({"f32": 2.0})", R"({"float": 2.0})"),
      "kernels[0].arguments[0] has 'float', which is not known; known are buffer, bytes and the types of numbers");
  EXPECT_EQ(
      refusal(R"({"at": 8,)", R"({"at": 8, "to": 1,)"),
      "kernels[0].arguments[4].relocations[0] has 'to', which is not known; known are access, at, buffer, offset");
}

TEST(KernelTaskJson, ErrorsNamePathValueAndBound) {
  EXPECT_EQ(refusal("[4, 2]", "[4, 0]"), "kernels[0].grid[1] is 0, it must be a whole number between 1 and 4294967295");
  EXPECT_EQ(refusal("[4, 2]", "[4, 2, 1, 1]"), "kernels[0].grid has 4 elements; at most 3 are possible");
  EXPECT_EQ(refusal("[4, 2]", "4"), "kernels[0].grid must be a list");
  EXPECT_EQ(refusal(R"("grid": [4, 2], )", ""), "kernels[0] has no 'grid'; it is required");
  EXPECT_EQ(refusal(R"("buffer": "x")", R"("buffer": "z")"),
            "kernels[0].arguments[2].buffer is 'z', which is no buffer of the task");
  EXPECT_EQ(
      refusal(R"("access": "write")", R"("access": "w")"),
      "kernels[0].arguments[3].access is 'w', it must be read, write or read_write; leave it out for what the role "
      "says");
  EXPECT_EQ(refusal(R"("s32": -1)", R"("s32": 2147483648)"),
            "kernels[0].arguments[1].s32 is 2147483648; a s32 is a whole number between -2147483648 and 2147483647");
  EXPECT_EQ(refusal(R"("f32": 2.0)", R"("f32": 1e39)"),
            "kernels[0].arguments[0].f32 is 1e+39, beyond the range of f32");
  EXPECT_EQ(refusal("AAAA", "A_AA"),
            "kernels[0].arguments[4].bytes has 24 characters that are not base64 with padding");
  EXPECT_EQ(refusal("16}", "16.5}"), "buffers.w.bytes is 16.5, it must be a whole number between 1 and 1099511627776");
  EXPECT_EQ(refusal(R"(, "bytes": 16)", ""), "buffers.w has neither 'bytes' nor 'shape'; one of them is required");
  EXPECT_EQ(refusal("[32, 32]", "[4294967296, 4294967296]"),
            "buffers.x has a shape of more than 1099511627776 bytes, the largest a buffer may have");
  EXPECT_EQ(
      refusal(R"("type": "f32")", R"("type": "float")"),
      "buffers.x.type is 'float', it must be bytes, s8, u8, s16, u16, s32, u32, s64, u64, f16, bf16, f32, f64, c64 "
      "or c128");
  EXPECT_EQ(refusal(R"("iterations": 3)", R"("iterations": "3")"),
            "iterations must be a whole number between 1 and 4294967295");
  EXPECT_EQ(refusal(R"({"f32": 2.0})", "2.0"),
            R"(kernels[0].arguments[0] must be one of {"buffer": NAME}, {"bytes": BASE64} and {TYPE: NUMBER}, )"
            R"(such as {"s32": 1})");
}

TEST(KernelTaskJson, BrokenTextIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal("{\n  \"buffers\": }"), HasSubstr("task.json: parse error at line 2, column 14"));
  EXPECT_THAT(refusal(""), HasSubstr("task.json: parse error"));
  EXPECT_THAT(refusal("[]"), HasSubstr("the document must be an object with buffers, iterations, kernels"));
  EXPECT_THAT(refusal("{\"\xff\": 1}"), HasSubstr("task.json: parse error"));
  EXPECT_THAT(refusal(R"({"iterations": 1e999})"), HasSubstr("task.json: "));
  EXPECT_EQ(refusal(R"({"iterations": 1, "iterations": 2})"), "task.json: 'iterations' is there twice in one object");
  EXPECT_EQ(refusal(std::string(1 << 20, '[')), "task.json: it is nested deeper than 64 levels");
  std::string many_modules = R"({"kernels": [)";
  for (int i = 0; i < 257; ++i) {
    many_modules +=
        fmt::format(R"({}{{"module": "{}", "kernel": "k", "grid": [1], "block": [1]}})", i == 0 ? "" : ",", i);
  }
  EXPECT_EQ(refusal(many_modules + "]}"),
            "kernels[256].module is '256', one more than the 256 modules a task may have");
}

// ---- calls and answers

// One buffer x of 6 elements, in and out.
KernelTask task_of(ElementType type, std::vector<std::uint64_t> shape = {2, 3}) {
  KernelTask task;
  const auto bytes = Bytes(static_cast<std::int64_t>(6 * element_bytes(type)));
  task.buffers = {{.name = "x", .bytes = bytes, .role = BufferRole::kInOut, .type = type, .shape = std::move(shape)}};
  return task;
}
std::string bytes_of(const KernelTask& task, const std::string& value) {
  const auto call = kernel_task_call_from_json(task, R"({"inputs": {"x": )" + value + "}}");
  return call ? call->inputs.at(0).bytes : call.error().message;
}
std::string answer_of(const KernelTask& task, const std::string& contents) {
  const std::string text = kernel_task_answer_to_json(task, {.outputs = {{.buffer = 0, .bytes = contents}}});
  const std::size_t begin = text.find("\"x\":") + 4;
  return text.substr(begin, text.find(",\"phases_us\"") - 1 - begin);
}
template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(KernelTaskCallJson, InputsAreKeysBase64OrValues) {
  const KernelTask task = task_of(ElementType::kF32);
  const std::string expected = raw<float>({1, 2, 3, 4, 5, 6.5});
  EXPECT_EQ(bytes_of(task, R"({"values": [[1, 2, 3], [4, 5, 6.5]]})"), expected);
  EXPECT_EQ(bytes_of(task, R"({"values": [1, 2, 3, 4, 5, 6.5]})"), expected);
  EXPECT_EQ(bytes_of(task, "[[1, 2, 3], [4, 5, 6.5]]"), expected);
  EXPECT_EQ(bytes_of(task, R"({"base64": "Zm9v"})"), "foo");
  const auto call =
      kernel_task_call_from_json(task, R"({"inputs": {"x": {"key": "a"}}, "outputs": {"x": {"key": "b"}}})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(*call, (KernelTaskCall{{{.buffer = 0, .key = "a"}}, {{.buffer = 0, .key = "b"}}}));
  EXPECT_EQ(kernel_task_call_from_json(task, R"({"outputs": {"x": null}})").value().outputs.size(), 1U);
  EXPECT_EQ(kernel_task_call_from_json(task, "").value(), KernelTaskCall{});
}

TEST(KernelTaskCallJson, ErrorsNamePathValueAndBound) {
  const KernelTask task = task_of(ElementType::kU8);
  EXPECT_EQ(bytes_of(task, "[[1, 2, 3], [4, 256, 6]]"),
            "inputs.x[1][1] is 256; a u8 is a whole number between 0 and 255");
  EXPECT_EQ(bytes_of(task, "[1, 2, 3, 4, 5, 1.5]"), "inputs.x[5] is 1.5; a u8 is a whole number between 0 and 255");
  EXPECT_EQ(bytes_of(task, R"([1, 2, 3, 4, 5, "6"])"),
            "inputs.x[5] is no number; a u8 is a whole number between 0 and 255");
  EXPECT_EQ(bytes_of(task, "[1, 2, 3]"), "inputs.x has 3 elements; 6 are needed");
  EXPECT_EQ(bytes_of(task, "[[1, 2, 3], [4, 5]]"), "inputs.x[1] has 2 elements; 3 are needed");
  EXPECT_EQ(bytes_of(task, "[[1, 2, 3], 4]"), "inputs.x[1] must be a list of 3");
  EXPECT_EQ(bytes_of(task, R"({"values": [], "key": "k"})"), "inputs.x must have one of 'key', 'base64' and 'values'");
  EXPECT_EQ(bytes_of(task, R"({"keys": "k"})"),
            "inputs.x has 'keys', which is not known; known are base64, key, values");
  EXPECT_EQ(bytes_of(task, R"({"key": ""})"), "inputs.x.key is empty; it must be the key of an object");
  EXPECT_EQ(bytes_of(task_of(ElementType::kBytes, {}), "[1, 2, 3, 4, 5, 6]"),
            "inputs.x are numbers, but buffer 'x' has no type; give its bytes as base64");
  EXPECT_EQ(bytes_of(task_of(ElementType::kF32), R"([1, 2, 3, 4, 5, "NaN"])"),
            "inputs.x[5] is no number, but f32 elements are; give what is not finite as base64");
  EXPECT_EQ(kernel_task_call_from_json(task, R"({"inputs": {"z": []}})").error().message,
            "inputs.z is bound, but the task has no buffer of that name");
  EXPECT_EQ(kernel_task_call_from_json(task, R"({"outputs": {"x": {"base64": ""}}})").error().message,
            "outputs.x has 'base64', which is not known; known are key");
}

TEST(KernelTaskCallJson, IntegersUpToTheirBounds) {
  EXPECT_EQ(bytes_of(task_of(ElementType::kS8), "[-128, 127, 0, 0, 0, 0]"), raw<std::int8_t>({-128, 127, 0, 0, 0, 0}));
  EXPECT_EQ(bytes_of(task_of(ElementType::kU64), "[18446744073709551615, 0, 0, 0, 0, 0]"),
            raw<std::uint64_t>({~0ULL, 0, 0, 0, 0, 0}));
  EXPECT_EQ(bytes_of(task_of(ElementType::kS64), "[-9223372036854775808, 0, 0, 0, 0, 0]"),
            raw<std::int64_t>({INT64_MIN, 0, 0, 0, 0, 0}));
  EXPECT_THAT(bytes_of(task_of(ElementType::kS64), "[9223372036854775808, 0, 0, 0, 0, 0]"),
              HasSubstr("is 9223372036854775808"));
  EXPECT_THAT(bytes_of(task_of(ElementType::kU16), "[-1, 0, 0, 0, 0, 0]"), HasSubstr("is -1"));
}

TEST(KernelTaskCallJson, FloatsOf16Bits) {
  // The largest, the least normal, the least, half of it (even: zero), above half, 1 + half a unit (even).
  EXPECT_EQ(bytes_of(task_of(ElementType::kF16),
                     "[65504, 6.103515625e-05, 5.960464477539063e-08, 2.98e-08, 3e-08, 1.00048828125]"),
            raw<std::uint16_t>({0x7bff, 0x0400, 0x0001, 0x0000, 0x0001, 0x3c00}));
  EXPECT_EQ(bytes_of(task_of(ElementType::kF16), "[65519.9, -0.0, 1.5, -2, 2049, 2051]"),
            raw<std::uint16_t>({0x7bff, 0x8000, 0x3e00, 0xc000, 0x6800, 0x6802}));
  EXPECT_THAT(bytes_of(task_of(ElementType::kF16), "[65520, 0, 0, 0, 0, 0]"),
              HasSubstr("is 65520, beyond the range of f16"));
  EXPECT_EQ(bytes_of(task_of(ElementType::kBf16), "[1, 3.3895313892515355e38, 1.00390625, -1e-40, 0, 1.01171875]"),
            raw<std::uint16_t>({0x3f80, 0x7f7f, 0x3f80, 0x8001, 0x0000, 0x3f82}));
  EXPECT_EQ(answer_of(task_of(ElementType::kF16), raw<std::uint16_t>({0x7bff, 0x0400, 0x0001, 0x8000, 0x3555, 0xc000})),
            R"({"values":[[65504,6.1035156e-05,5.9604645e-08],[-0.0,0.33325195,-2]]})");
}

TEST(KernelTaskCallJson, ComplexNumbersArePairs) {
  const KernelTask task = task_of(ElementType::kC64);
  const std::string contents = raw<float>({1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6});
  EXPECT_EQ(bytes_of(task, "[[[1, -1], [2, -2], [3, -3]], [[4, -4], [5, -5], [6, -6]]]"), contents);
  EXPECT_EQ(bytes_of(task, "[[1, -1], [2, -2], [3, -3], [4, -4], [5, -5], [6, -6]]"), contents);
  EXPECT_EQ(bytes_of(task, "[1, 2, 3, 4, 5, 6]"), "inputs.x[0] must be a pair [re, im]; the elements are c64");
  EXPECT_EQ(answer_of(task, contents), R"({"values":[[[1,-1],[2,-2],[3,-3]],[[4,-4],[5,-5],[6,-6]]]})");
}

TEST(KernelTaskAnswerJson, KeysValuesAndPhases) {
  KernelTaskAnswer answer{.outputs = {{.buffer = 0, .key = "results/x"}}};
  answer.phases.kernel_run = std::chrono::nanoseconds(41200);
  EXPECT_EQ(kernel_task_answer_to_json(task_of(ElementType::kF32), answer),
            R"({"outputs":{"x":{"key":"results/x","bytes":24}},"phases_us":{"kernel_run":41.2,"kernel_init":0,)"
            R"("device_malloc":0,"device_copy":0,"data_layer":0,"overhead":0}})");
  EXPECT_EQ(answer_of(task_of(ElementType::kF32, {}), raw<float>({0.1F, 1, 2, 3, 4, 1e-40F})),
            R"({"values":[0.1,1,2,3,4,1e-40]})");
}

TEST(KernelTaskAnswerJson, WhatJsonHasNotTravelsAsBase64) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(answer_of(task_of(ElementType::kF32), raw<float>({1, 2, 3, 4, 5, kNan})),
            R"({"base64":"AACAPwAAAEAAAEBAAACAQAAAoEAAAMB/"})");
  EXPECT_EQ(answer_of(task_of(ElementType::kF16), raw<std::uint16_t>({0x7c00, 0, 0, 0, 0, 0})),
            R"({"base64":"AHwAAAAAAAAAAAAA"})");
  EXPECT_EQ(answer_of(task_of(ElementType::kBytes, {}), "foobar"), R"({"base64":"Zm9vYmFy"})");
}

}  // namespace
}  // namespace fairlead::wire
