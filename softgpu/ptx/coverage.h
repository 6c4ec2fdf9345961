// Which opcode strings the tests have compared with a reference. Tests name them with covers() or by way of
// expect_op(); tests_main.cc compares them with testdata/opcodes.tsv and docs/reference/ptx-coverage.md.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace softgpu::ptx::testing {

// opcode string -> the tests ("Suite.Name") that cover it
using Coverage = std::map<std::string, std::set<std::string>, std::less<>>;
Coverage& coverage();

// The running test covers `opcode`.
void covers(std::string_view opcode);

// The same for several, each of which must occur in `text`, the PTX that the test runs. Returns the text.
const std::string& covers(const std::string& text, std::initializer_list<std::string_view> opcodes);

}  // namespace softgpu::ptx::testing
