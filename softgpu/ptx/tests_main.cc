// The tests' main: --isa=baseline, v3, v4 or interpreter runs them on that set (isa.h), and skips them where there is
// none. After a run of all tests every opcode of testdata/opcodes.tsv must have been covered, and docs/reference/ptx-coverage.md
// must say by which tests; --coverage=FILE writes that page instead of comparing it, and --opcodes=FILE the list.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "softgpu/ptx/coverage.h"
#include "softgpu/ptx/isa.h"

namespace softgpu::ptx::testing {
namespace {

std::string base_of(const std::string& opcode) {
  return opcode.substr(0, opcode.find('.'));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> listed_opcodes() {
  std::set<std::string> out;
  std::istringstream lines(read_file(SOFTGPU_PTX_SOURCE "/softgpu/ptx/testdata/opcodes.tsv"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') out.insert(line);
  }
  return out;
}

// One row for the opcodes of a family that the same test covers first.
std::string coverage_page() {
  std::map<std::pair<std::string, std::string>, std::string> rows;
  for (const auto& [opcode, tests] : coverage()) {
    std::string& row = rows[{base_of(opcode), *tests.begin()}];
    row += (row.empty() ? "`" : ", `") + opcode + "`";
  }
  std::string page =
      "# Opcodes of the PTX machine and the tests that cover them\n"
      "Written by `softgpu_ptx_tests --coverage=docs/reference/ptx-coverage.md`; the tests fail when it is out of "
      "date. Each "
      "of " +
      std::to_string(coverage().size()) +
      " opcode strings is executed and compared with a reference in C++, on every CPU instruction set. A test is in "
      "the file of `softgpu/ptx` that its name occurs in.\n\n| opcodes | test |\n| --- | --- |\n";
  for (const auto& [key, opcodes] : rows) page += "| " + opcodes + " | " + key.second + " |\n";
  return page;
}

class CoverageCheck final : public ::testing::Environment {
 public:
  std::string page_path, list_path;

  void TearDown() override {
    // Part of the tests covers part of the opcodes.
    if (::testing::UnitTest::GetInstance()->test_to_run_count() !=
        ::testing::UnitTest::GetInstance()->total_test_count())
      return;
    if (!list_path.empty()) {
      std::ofstream list(list_path);
      list << "# Opcode strings that the machine executes; each must be covered by a test.\n";
      for (const auto& [opcode, tests] : coverage()) list << opcode << "\n";
      return;
    }
    const auto listed = listed_opcodes();
    for (const std::string& opcode : listed) {
      EXPECT_TRUE(coverage().contains(opcode)) << opcode << " of testdata/opcodes.tsv is not tested";
    }
    for (const auto& [opcode, tests] : coverage()) {
      EXPECT_TRUE(listed.contains(opcode)) << opcode << " is tested but not in testdata/opcodes.tsv";
    }
    const std::string page = coverage_page();
    if (!page_path.empty()) {
      std::ofstream(page_path) << page;
    } else {
      EXPECT_EQ(read_file(SOFTGPU_PTX_SOURCE "/docs/reference/ptx-coverage.md"), page)
          << "run with --coverage=docs/reference/ptx-coverage.md";
    }
  }
};

}  // namespace
}  // namespace softgpu::ptx::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto* check = new softgpu::ptx::testing::CoverageCheck;  // googletest owns it
  ::testing::AddGlobalTestEnvironment(check);
  constexpr std::string_view kIsa = "--isa=", kPage = "--coverage=", kList = "--opcodes=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kPage)) check->page_path = argument.substr(kPage.size());
    if (argument.starts_with(kList)) check->list_path = argument.substr(kList.size());
    if (!argument.starts_with(kIsa)) continue;
    if (softgpu::ptx::choose_instruction_set(argument.substr(kIsa.size()))) continue;
    std::printf("this CPU has no %s\n", argv[i]);
    return 0;
  }
  return RUN_ALL_TESTS();
}
