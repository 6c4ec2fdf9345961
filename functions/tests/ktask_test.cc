#include "fairlead/ktask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "fairlead/error.h"

namespace fairlead::ktask {
namespace {

using ::testing::HasSubstr;

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.type() + ": " + error.what();
  }
  return "no error";
}

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(KernelTaskBuilder, WritesWhatTheNodeReads) {
  Task task;
  const Buffer x = task.input("x", Type::kF32, {16, 256});
  const Buffer w = task.constant("w", Type::kF32, {4096}, "weights/w");
  const Buffer t = task.temporary(Type::kBytes, {64}, true);
  const Buffer y = task.output("y", Type::kF32, {4096});
  const Module kernels = task.module("a.ptx", "");
  task.launch(kernels, "first", {.grid = {16}, .block = {8, 8}, .shared_bytes = 128},
              {2.5f, 4096u, read(x), w, write(t)});
  task.launch(task.library("gemm"), "second", {}, {-1, 1e300, std::uint64_t{1} << 63, read(t, 32), write(y)});
  task.iterate(3);
  EXPECT_EQ(task.json(), R"({
  "buffers": {
    "x": {"role":"input","type":"f32","shape":[16,256]},
    "w": {"role":"constant","type":"f32","shape":[4096],"key":"weights/w"},
    "temporary 2": {"role":"temporary","type":"bytes","shape":[64],"zeroed":true},
    "y": {"role":"output","type":"f32","shape":[4096]}
  },
  "kernels": [
    {"module":"a.ptx","kernel":"first","grid":[16,1,1],"block":[8,8,1],"shared_bytes":128,"arguments":[{"f32":2.5},{"u32":4096},{"buffer":"x","access":"read"},{"buffer":"w"},{"buffer":"temporary 2","access":"write"}]},
    {"module":"fairlead:gemm","kernel":"second","grid":[1,1,1],"block":[1,1,1],"shared_bytes":0,"arguments":[{"s32":-1},{"f64":1e+300},{"u64":9223372036854775808},{"buffer":"temporary 2","offset":32,"access":"read"},{"buffer":"y","access":"write"}]}
  ],
  "iterations": 3
}
)");
}

TEST(KernelTaskBuilder, WhatJsonCannotSayTravelsAsBytes) {
  Task task;
  task.launch(task.library("l"), "k", {}, {std::numeric_limits<float>::infinity(), Argument::bytes("\1\2\3\4\5")});
  EXPECT_THAT(task.json(), HasSubstr(R"([{"bytes":"AACAfw=="},{"bytes":"AQIDBAU="}])"));
}

TEST(KernelTaskBuilder, SavesModulesAndConstantsBesideTheTask) {
  const auto folder = std::filesystem::temp_directory_path() / ("ktask-" + std::to_string(::getpid()));
  Task task;
  const Buffer w = task.constant_of("w", Type::kU16, {2}, std::string("\0\1\2\3", 4));
  task.launch(task.module("a.ptx", "// PTX"), "k", {}, {w});
  task.save(folder);
  EXPECT_EQ(contents(folder / "a.ptx"), "// PTX");
  EXPECT_EQ(contents(folder / "constant0.bin"), std::string("\0\1\2\3", 4));
  EXPECT_EQ(contents(folder / "task.json"), task.json());
  std::filesystem::remove_all(folder);
}

TEST(KernelTaskBuilder, RefusesAndSaysWhat) {
  Task task, other;
  const Buffer x = task.input("x", Type::kF32, {4});
  const Module module = task.module("a.ptx", "");
  EXPECT_THAT(error_of([&] { task.input("x", Type::kF32, {4}); }),
              HasSubstr("KernelTask.Invalid: buffer 'x' is there"));
  EXPECT_THAT(error_of([&] { task.output("y", Type::kF32, {4, 0}); }), HasSubstr("'y': shape[1] is 0"));
  EXPECT_THAT(error_of([&] {
                task.output("y", Type::kF64, {1u << 20, 1u << 18});
              }),
              HasSubstr("'y' has more than 1 TiB"));
  EXPECT_THAT(error_of([&] { task.constant_of("w", Type::kF32, {4}, "123"); }),
              HasSubstr("has 3 bytes; its shape needs 16"));
  EXPECT_THAT(error_of([&] { task.module("../a", ""); }), HasSubstr("'../a'"));
  EXPECT_THAT(error_of([&] { task.module("a.ptx", ""); }), HasSubstr("'a.ptx' is there"));
  EXPECT_THAT(error_of([&] { other.launch(module, "k", {}, {}); }), HasSubstr("another task's"));
  const Module own = other.library("l");
  EXPECT_THAT(error_of([&] { other.launch(own, "k", {}, {1, x}); }), HasSubstr("arguments[1] is a buffer of another"));
  EXPECT_THAT(error_of([&] { task.iterate(0); }), HasSubstr("iterations is 0"));
  EXPECT_THAT(error_of([&] { task.json(); }), HasSubstr("launches no kernel"));
}

}  // namespace
}  // namespace fairlead::ktask
