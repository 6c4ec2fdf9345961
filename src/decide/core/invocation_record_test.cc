#include "decide/core/invocation_record.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLine = "1763800000000000,fft,success,cold,1,260012,0,22013,21800,259411";

TEST(InvocationRecord, ALineIsReadAsItWasWritten) {
  const auto record = record_of(kLine);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ("fft", record->function());
  EXPECT_EQ(OutcomeKind::kSuccess, record->outcome);
  EXPECT_EQ(StartKind::kCold, record->start);
  EXPECT_EQ(std::chrono::microseconds(22013), record->run);
  EXPECT_EQ(std::chrono::microseconds(259411), record->instance_start);
  EXPECT_EQ(kLine, to_line(*record));
  for (const char* line :
       {"1,f,refused,,0,0,0,0,0,0", "1,f,start_failed,cold,2,5,60000000,0,0,0", "0,f,timeout,host-warm,1,0,0,9,9,0"}) {
    ASSERT_TRUE(record_of(line)) << record_of(line).error().message;
    EXPECT_EQ(line, to_line(*record_of(line)));
  }
}

TEST(InvocationRecord, AWrongLineIsNamedByItsField) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "has not the 10 fields at_us,function"},
      {"1,f,success,cold,1,2,3,4,5", "has not the 10 fields"},
      {"1,f,success,cold,1,2,3,4,5,6,7", "has not the 10 fields"},
      {"-1,f,success,cold,1,2,3,4,5,6", "at_us is '-1'"},
      {"1,,success,cold,1,2,3,4,5,6", "FunctionName is ''"},
      {"1,a b,success,cold,1,2,3,4,5,6", "FunctionName is 'a b'"},
      {"1,f,won,cold,1,2,3,4,5,6", "outcome 'won'"},
      {"1,f,success,lukewarm,1,2,3,4,5,6", "start 'lukewarm'"},
      {"1,f,success,cold,x,2,3,4,5,6", "gpu is 'x'"},
      {"1,f,success,cold,1,2,3,9223372036854775807,5,6", "run_us is '9223372036854775807'"},
  };
  for (const auto& [line, expected] : bad) {
    const auto record = record_of(line);
    ASSERT_FALSE(record) << line;
    EXPECT_EQ(Errc::kCorrupt, record.error().code);
    EXPECT_THAT(record.error().message, HasSubstr(expected));
  }
}

}  // namespace
}  // namespace fairlead
