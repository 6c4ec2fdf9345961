// Tables, quantities and reports.
#include <gmock/gmock.h>

#include "cli/doctor.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

TEST(Table, AlignsColumnsByCharactersNotBytes) {
  Table table({{"NAME"}, {"N", Table::Align::kRight}, {"LAST"}});
  table.add_row({"größe", "1", "x"});
  table.add_row({"a", "100", ""});
  EXPECT_EQ(table.text(),
            "NAME     N  LAST\n"
            "größe    1  x\n"
            "a      100\n");
}

TEST(Table, ControlCharactersDoNotReachTheTerminal) {
  Table table({{"A"}});
  table.add_row({"x\x1b[2Jy"});
  EXPECT_EQ(table.text(), "A\nx?[2Jy\n");
}

TEST(Format, BytesKeepTheirUnitAtTheBoundaries) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1024.0 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(16.0 * (1 << 30)), "16.0 GiB");
}

TEST(Format, SecondsChooseTheirUnit) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(35e-6), "35 us");
  EXPECT_EQ(format_seconds(0.0125), "12.5 ms");
  EXPECT_EQ(format_seconds(0.99999), "1.0 s");
  EXPECT_EQ(format_seconds(59.99), "1m 00s");
  EXPECT_EQ(format_seconds(7384), "2h 03m");
  EXPECT_EQ(format_seconds(90000), "1d 01h");
  EXPECT_EQ(format_seconds(-2), "-2.0 s");
}

TEST(Doctor, AdviceStandsUnderItsFinding) {
  EXPECT_EQ(doctor_report(
                {{Check::Level::kOk, "Kernel", "Linux 6.1", ""}, {Check::Level::kMissing, "GPU", "none", "buy one"}}),
            "ok       Kernel  Linux 6.1\n"
            "missing  GPU     none\n"
            "                 -> buy one\n");
}

TEST(Doctor, ThisMachineIsDescribedCompletely) {
  std::vector<Check> checks = check_host("/tmp/absent/folder");
  ASSERT_EQ(checks.size(), 8u);
  for (const Check& check : checks) {
    EXPECT_FALSE(check.finding.empty()) << check.subject;
    EXPECT_EQ(check.advice.empty(), check.level == Check::Level::kOk) << check.subject;
  }
  EXPECT_EQ(check_gpu("/nonexistent")[0].level, Check::Level::kMissing);
}

}  // namespace
}  // namespace fairlead::cli
