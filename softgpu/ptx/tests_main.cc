// The tests' main: --isa=baseline, v3 or v4 runs them on that CPU instruction set, and skips them where there is none.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "softgpu/ptx/isa.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFlag = "--isa=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFlag)) continue;
    if (softgpu::ptx::choose_instruction_set(argument.substr(kFlag.size()))) continue;
    std::printf("this CPU has no %s\n", argv[i]);
    return 0;
  }
  return RUN_ALL_TESTS();
}
