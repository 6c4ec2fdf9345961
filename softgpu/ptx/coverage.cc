#include "softgpu/ptx/coverage.h"

#include <gtest/gtest.h>

namespace softgpu::ptx::testing {

Coverage& coverage() {
  static Coverage all;
  return all;
}

void covers(std::string_view opcode) {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return;
  coverage()[std::string(opcode)].insert(std::string(test->test_suite_name()) + "." + test->name());
}

const std::string& covers(const std::string& text, std::initializer_list<std::string_view> opcodes) {
  for (const std::string_view opcode : opcodes) {
    const bool occurs = text.find(std::string(opcode) + " ") != std::string::npos ||
                        text.find(std::string(opcode) + ";") != std::string::npos;
    EXPECT_TRUE(occurs) << opcode << " is not in the text";
    covers(opcode);
  }
  return text;
}

}  // namespace softgpu::ptx::testing
