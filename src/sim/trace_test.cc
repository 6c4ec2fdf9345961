// Each format on a small sample of its own shape, made here; and what is wrong with a file is said with its line.
#include "sim/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

class TraceFile : public ::testing::Test {
 protected:
  TraceFile() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    unknown_.warm = 1s;
    unknown_.cold_start = 3s;
  }
  ~TraceFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  Result<Trace> read(const std::string& format, const std::string& path) {
    return read_trace(path, format, {unknown_}, 1);
  }
  std::string error(const std::string& format, const std::string& text) {
    const std::string path = write("bad.csv", text);
    const auto trace = read(format, path);
    return trace ? "" : trace.error().message.substr(path.size());
  }

  const std::string folder_ = ::testing::TempDir() + "fairlead-trace";
  FunctionModel unknown_;
};

TEST_F(TraceFile, CsvInAnyOrderWithOrWithoutRunTimes) {
  const auto trace = read("csv", write("t.csv", "at_s,function,service_s\n12.5,b,0.5\n10,a\n11,b,1.5\n"));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->events.size(), 3u);
  EXPECT_EQ(trace->events[0].at_us, 0u);  // the first arrival is the beginning
  EXPECT_EQ(trace->events[2].at_us, 2'500'000u);
  EXPECT_EQ(trace->functions[0].name, "b");
  EXPECT_EQ(trace->functions[0].warm, 1s);  // mean of 0.5 and 1.5
  EXPECT_EQ(trace->functions[1].cold_start, 3s);
  EXPECT_LT(trace->events[0].service_s, 0);
}

TEST_F(TraceFile, ErrorsNameTheLineAndTheField) {
  EXPECT_EQ(error("csv", "1,a\nx,b\n"), ":2: at_s is \"x\", it must be a number from 0 to 1000000000");
  EXPECT_EQ(error("csv", "1,a\n2\n"), ":2: function is missing");
  EXPECT_EQ(error("csv", "1,a,-2\n"), ":1: service_s is \"-2\", it must be a number from 0 to 1000000000");
  EXPECT_EQ(error("csv", "at_s,function\n"), ": has no invocations");
  EXPECT_EQ(error("azure-2021", "app,func,end_timestamp,duration\na,f,5\n"), ":2: duration is missing");
  EXPECT_EQ(error("azure-llm", "yesterday,1,2\n"), ":1: time is \"yesterday\", it must be YYYY-MM-DD HH:MM:SS");
  EXPECT_EQ(error("azure-llm", "-9-01-01 00:00:00,1,2\n"),
            ":1: time is \"-9-01-01 00:00:00\", which no clock shows since 1970");
  EXPECT_NE(error("azure-llm", "2023-02-31 00:00:00,1,2\n"), "");
  EXPECT_NE(error("azure-llm", "2023-02-01 24:00:00,1,2\n"), "");
  EXPECT_EQ(error("gentd26", "gmt_create,x\n"), ":1: column exec_time_seconds is missing");
  EXPECT_EQ(read("csv", folder_ + "/none.csv").error().code, Errc::kNotFound);
  EXPECT_EQ(read("json", folder_).error().message,
            "trace format \"json\" is unknown; known are csv, azure-2019, azure-2021, azure-llm, servegen, gentd26");
}

TEST_F(TraceFile, Azure2019CountsPerMinute) {
  write("invocations_per_function_md.anon.d01.csv",
        "HashOwner,HashApp,HashFunction,Trigger,1,2,3\no,a,f1,http,2,0,1\no,a,f2,timer,0,3,0\n");
  write("function_durations_percentiles.anon.d01.csv",
        "HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum\no,a,f1,250,3,1,900\no,a,other,9,1,1,1\n");
  const auto trace = read("azure-2019", folder_);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->events.size(), 6u);
  ASSERT_EQ(trace->functions.size(), 2u);
  EXPECT_EQ(trace->functions[0].warm, 250ms);
  EXPECT_EQ(trace->functions[1].warm, 1s);
  EXPECT_LT(trace->events.back().at_us, 180'000'000u);
}

TEST_F(TraceFile, Azure2021EndsAndDurations) {
  const auto trace =
      read("azure-2021", write("t.csv", "app,func,end_timestamp,duration\na,f,10,4\na,g,7,5\na,f,20,2\n"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->functions[trace->events[0].function].name, "a/g");
  EXPECT_EQ(trace->events[1].at_us, 4'000'000u);
  EXPECT_EQ(trace->functions[0].warm, 3s);
}

TEST_F(TraceFile, AzureLlmTokens) {
  const auto trace = read("azure-llm", write("t.csv",
                                             "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.5,1000,10\n"
                                             "2023-11-16 18:17:05.0,500,100\n"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->events[1].at_us, 1'500'000u);
  EXPECT_NEAR(trace->events[0].service_s, 0.3, 1e-6);
}

TEST_F(TraceFile, ServegenRatesPerChunk) {
  write("chunk-0-trace.csv", "0,10,1,Gamma,1,1\n600,0,1,Gamma,1,1\n1200,5,2,Weibull,1,1\n1800,0,1,Gamma,1,1\n");
  const auto trace = read("servegen", folder_);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_NEAR(static_cast<double>(trace->events.size()), 6000 + 3000, 500);
  EXPECT_EQ(trace->functions[0].name, "chunk-0-trace");
}

TEST_F(TraceFile, Gentd26Models) {
  const auto trace = read("gentd26", write("t.csv",
                                           "gmt_create,predict_type,exec_time_seconds,checkpoint_model_version_id\n"
                                           "2026-01-02 00:00:10,x,20,m1\n2026-01-02 00:00:00,x,10,m2\n"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->functions[trace->events[0].function].name, "m2");
  EXPECT_EQ(trace->events[1].at_us, 10'000'000u);
}

}  // namespace
}  // namespace fairlead::sim
