#include "edge/openfaas/quantity.h"

#include <gtest/gtest.h>

namespace fairlead::openfaas {
namespace {

TEST(Quantity, AmountsAreReadAsKubernetesReadsThem) {
  const std::pair<const char*, std::int64_t> known[] = {{"0", 0},
                                                        {"128Mi", 128 << 20},
                                                        {"1G", 1'000'000'000},
                                                        {"1.5Ki", 1536},
                                                        {"500m", 1},
                                                        {"1001m", 2},
                                                        {"2e3", 2000},
                                                        {"1E2", 100},
                                                        {".5Ki", 512},
                                                        {"1.", 1},
                                                        {"12Ti", 12LL << 40},
                                                        {"1Ei", 1LL << 60},
                                                        {"0.1", 1},
                                                        {"1073741824", 1 << 30}};
  for (const auto& [text, bytes] : known) EXPECT_EQ(parse_quantity("x", text), bytes) << text;
}

TEST(Quantity, WhatIsNoAmountOrTooLargeIsNamed) {
  for (const char* text : {"", "Mi", "-1", "+1", "1.2.3", "1 Mi", "1mi", "1KiB", "1e", "1e99", "1e-3", "2Ei",
                           "9999999999999999999", "1E19", "0x10", "NaN", "inf", "1\n"}) {
    const auto read = parse_quantity("limits.memory", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::kInvalidArgument);
    EXPECT_NE(read.error().message.find("limits.memory is '"), std::string::npos);
  }
  EXPECT_LT(parse_quantity("x", std::string(10'000, '9')).error().message.size(), 300u)
      << "what was said is quoted in part";
}

TEST(Quantity, DurationsAreReadAsGoReadsThem) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_go_duration("x", "90s"), 90s);
  EXPECT_EQ(parse_go_duration("x", "1m30s"), 90s);
  EXPECT_EQ(parse_go_duration("x", "1.5h"), 90min);
  EXPECT_EQ(parse_go_duration("x", "250ms"), 250ms);
  EXPECT_EQ(parse_go_duration("x", "60"), 60s);
  for (const char* text : {"", "s", "-1s", "1x", "1s2", "99999999h", "1h1h99999999999999999h", "1 s"}) {
    EXPECT_FALSE(parse_go_duration("x", text)) << text;
  }
}

}  // namespace
}  // namespace fairlead::openfaas
