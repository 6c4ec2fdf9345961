#include "model/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using ::testing::HasSubstr;

TEST(FunctionName, IsLettersDigitsHyphenUnderscore) {
  for (const char* name : {"f", "My-Function_2", "0"}) EXPECT_TRUE(validate_function_name(name)) << name;
  EXPECT_TRUE(validate_function_name(std::string(64, 'x')));
  for (const char* name : {"", "a b", "a:b", "a/b", "../x", "\xC3\xA9"}) {
    const Status status = validate_function_name(name);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(Errc::kInvalidArgument, status.error().code);
    EXPECT_THAT(status.error().message, HasSubstr("'" + std::string(name) + "'"));
  }
  EXPECT_THAT(validate_function_name(std::string(65, 'x')).error().message, HasSubstr("1 to 64"));
}

TEST(FunctionNameFrom, AcceptsNamesAndArns) {
  for (const char* text :
       {"f", "f:$LATEST", "000000000000:function:f", "123:function:f:$LATEST",
        "arn:aws:lambda:us-east-1:000000000000:function:f", "arn:aws:lambda:eu-west-1:1:function:f:$LATEST"}) {
    const auto name = function_name_from(text);
    ASSERT_TRUE(name) << text << ": " << name.error().message;
    EXPECT_EQ("f", *name);
  }
  EXPECT_EQ("f", function_name_from(function_arn("f")).value());
}

TEST(FunctionNameFrom, OtherQualifiersAreNotFound) {
  for (const char* text : {"f:1", "f:live", "f:", "arn:aws:lambda:us-east-1:0:function:f:2"}) {
    EXPECT_EQ(Errc::kNotFound, function_name_from(text).error().code) << text;
  }
}

TEST(FunctionNameFrom, RefusesOtherArns) {
  for (const char* text : {"", "arn:aws:s3:::bucket", "arn:aws:lambda:us-east-1:0:layer:f", "a:b:c", "bad name",
                           "arn:aws:lambda:us-east-1:0:function:", "1:function:f:$LATEST:x"}) {
    EXPECT_EQ(Errc::kInvalidArgument, function_name_from(text).error().code) << text;
  }
}

struct BadConfig {
  std::string name;
  void (*spoil)(FunctionConfig&);
  std::string expected;
};

class ValidateConfig : public ::testing::TestWithParam<BadConfig> {};

TEST_P(ValidateConfig, NamesFieldAndBound) {
  FunctionConfig config;
  ASSERT_TRUE(validate_config(config));
  GetParam().spoil(config);
  const Status status = validate_config(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(Errc::kInvalidArgument, status.error().code);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ValidateConfig,
    ::testing::Values(
        BadConfig{"MemoryLow", [](FunctionConfig& c) { c.memory_mib = 127; },
                  "MemorySize is 127; it must be between 128"},
        BadConfig{"MemoryHigh", [](FunctionConfig& c) { c.memory_mib = 10241; }, "and 10240 MiB"},
        BadConfig{"TimeoutLow", [](FunctionConfig& c) { c.timeout_seconds = 0; }, "Timeout is 0"},
        BadConfig{"TimeoutHigh", [](FunctionConfig& c) { c.timeout_seconds = 901; }, "900 seconds"},
        BadConfig{"Storage", [](FunctionConfig& c) { c.ephemeral_storage_mib = 63; }, "EphemeralStorage.Size is 63"},
        BadConfig{"Description", [](FunctionConfig& c) { c.description.assign(257, 'x'); },
                  "Description has 257 bytes"},
        BadConfig{"Handler", [](FunctionConfig& c) { c.handler.assign(129, 'x'); }, "at most 128"},
        BadConfig{"Runtime", [](FunctionConfig& c) { c.runtime = "python3.12"; }, "Runtime is 'python3.12'"},
        BadConfig{"VariableName", [](FunctionConfig& c) { c.environment["1A"] = ""; }, "'1A'"},
        BadConfig{"VariableEquals", [](FunctionConfig& c) { c.environment["A=B"] = ""; }, "'A=B'"},
        BadConfig{"ReservedVariable", [](FunctionConfig& c) { c.environment["_HANDLER"] = ""; }, "reserved"},
        BadConfig{"ReservedPrefix", [](FunctionConfig& c) { c.environment["AWS_LAMBDA_RUNTIME_API"] = ""; },
                  "reserved"},
        BadConfig{"VariableNul", [](FunctionConfig& c) { c.environment["A"] = std::string("a\0b", 3); }, "NUL"},
        BadConfig{"EnvironmentSize", [](FunctionConfig& c) { c.environment["A"].assign(4096, 'x'); },
                  "have 4097 bytes"},
        BadConfig{"TagCount",
                  [](FunctionConfig& c) {
                    for (int i = 0; i < 51; ++i) c.tags[std::to_string(i)] = "";
                  },
                  "51 tags; at most 50"},
        BadConfig{"TagKeyEmpty", [](FunctionConfig& c) { c.tags[""] = ""; }, "1 to 128"},
        BadConfig{"TagKeyReserved", [](FunctionConfig& c) { c.tags["aws:x"] = ""; }, "reserved"},
        BadConfig{"TagValue", [](FunctionConfig& c) { c.tags["a"].assign(257, 'x'); }, "value of a has 257"}),
    [](const auto& instance) { return instance.param.name; });

TEST(ValidateConfig, BoundsThemselvesAreValid) {
  FunctionConfig config;
  config.memory_mib = kMaxMemoryMib;
  config.timeout_seconds = kMaxTimeoutSeconds;
  config.environment["A"].assign(kMaxEnvironmentBytes - 1, 'x');
  EXPECT_TRUE(validate_config(config));
}

TEST(GpuSettings, DefaultsAreNoLimitAndWeightOne) {
  EXPECT_EQ(GpuSettings(), gpu_settings({}).value());
}

TEST(GpuSettings, TheTagWinsOverTheVariable) {
  FunctionConfig config;
  config.environment = {{"GPU_MEMORY_MIB", "100"}, {"GPU_COMPUTE_PERCENT", "30"}, {"GPU_WEIGHT", "0.5"}};
  EXPECT_EQ((GpuSettings{{.width_percent = 30, .memory = mib(100)}, 0.5}), gpu_settings(config).value());
  config.tags = {{"gpu:memory-mib", "200"}, {"gpu:weight", "4"}, {"team", "vision"}};
  EXPECT_EQ((GpuSettings{{.width_percent = 30, .memory = mib(200)}, 4.0}), gpu_settings(config).value());
}

TEST(GpuSettings, ErrorsNameSourceValueAndBound) {
  const std::pair<const char*, const char*> bad[] = {
      {"gpu:memory-mib", "0"},        {"gpu:memory-mib", "1GiB"},      {"gpu:memory-mib", ""},
      {"gpu:compute-percent", "101"}, {"gpu:compute-percent", "-1"},   {"gpu:weight", "0"},
      {"gpu:weight", "nan"},          {"gpu:weight", "inf"},           {"gpu:weight", "1 "},
      {"gpu:objective-ms", "0"},      {"gpu:objective-ms", "3600001"}, {"gpu:objective-ms", "5s"},
      {"gpu:quota-request", "-1"},    {"gpu:quota-request", "101"},    {"gpu:quota-request", "3.5"},
      {"gpu:quota-request", "34%"},   {"gpu:quota-limit", "0"},        {"gpu:quota-limit", "101"},
      {"gpu:quota-limit", ""},        {"gpu:replicas", "0"},           {"gpu:replicas", "1001"},
      {"gpu:replicas", "3:2"},        {"gpu:replicas", ":2"},          {"gpu:replicas", "2:"},
      {"gpu:replicas", "1:2:3"},      {"gpu:replicas", "-1:2"},        {"gpu:replicas", "0:0"}};
  for (const auto& [tag, value] : bad) {
    FunctionConfig config;
    config.tags[tag] = value;
    const auto settings = gpu_settings(config);
    ASSERT_FALSE(settings) << tag << "=" << value;
    EXPECT_THAT(settings.error().message, HasSubstr(fmt::format("tag {} is '{}'", tag, value)));
    EXPECT_THAT(settings.error().message, HasSubstr("between"));
  }
}

TEST(GpuSettings, TenantAndObjectiveAreTagsAndNoVariables) {
  FunctionConfig config;
  config.environment = {{"GPU_TENANT", "not a name"}, {"GPU_OBJECTIVE_MS", "soon"}};
  EXPECT_EQ(GpuSettings(), gpu_settings(config).value());
  EXPECT_EQ("default", gpu_settings(config)->tenant);
  config.tags = {{"gpu:tenant", "vision"}, {"gpu:objective-ms", "250"}};
  EXPECT_EQ("vision", gpu_settings(config)->tenant);
  EXPECT_EQ(250, gpu_settings(config)->objective_ms);
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("a,b"), std::string(65, 'x')}) {
    config.tags["gpu:tenant"] = bad;
    EXPECT_THAT(gpu_settings(config).error().message, HasSubstr("tag gpu:tenant: tenant is '" + bad));
  }
}

TEST(GpuSettings, AShareIsBestEffortUnlessItsQuotaIsSaid) {
  FunctionConfig config;
  config.environment = {{"GPU_QUOTA_REQUEST", "34"}, {"GPU_QUOTA_LIMIT", "50"}, {"GPU_REPLICAS", "2"}};  // no variables
  EXPECT_TRUE(gpu_settings(config)->share.is_best_effort());
  EXPECT_EQ(gpu_settings(config)->share, (Share{.request_percent = 0, .limit_percent = 100}));
  EXPECT_EQ(gpu_settings(config)->seats(), 0u);
  config.tags = {{"gpu:quota-request", "34"}};
  EXPECT_EQ(gpu_settings(config)->share, (Share{.request_percent = 34, .limit_percent = 100}));
  EXPECT_EQ(gpu_settings(config)->seats(), 1u) << "one instance, where nobody says how many";
  config.tags["gpu:quota-limit"] = "34";
  EXPECT_EQ(gpu_settings(config)->share, (Share{.request_percent = 34, .limit_percent = 34}));
  config.tags["gpu:quota-limit"] = "33";
  EXPECT_EQ(gpu_settings(config).error().message,
            "tag gpu:quota-request is '34'; it must be at most gpu:quota-limit, which is 33");
}

TEST(GpuSettings, ReplicasAreANumberOrARange) {
  FunctionConfig config;
  const auto replicas = [&](const char* text) {
    config.tags["gpu:replicas"] = text;
    return gpu_settings(config)->replicas;
  };
  EXPECT_EQ(gpu_settings(config)->replicas, (Replicas{.least = 0, .most = std::nullopt}));
  EXPECT_EQ(replicas("3"), (Replicas{.least = 3, .most = 3}));
  EXPECT_EQ(replicas("2:5"), (Replicas{.least = 2, .most = 5}));
  EXPECT_EQ(replicas("0:1"), (Replicas{.least = 0, .most = 1}));
  EXPECT_EQ(gpu_settings(config)->seats(), 0u);
  config.tags["gpu:quota-request"] = "10";
  EXPECT_EQ(
      gpu_settings(config).error().message,
      "tag gpu:replicas is '0:1'; MIN must be at least 1 where gpu:quota-request is above 0: the time is reserved "
      "for an instance");
  replicas("2:5");
  EXPECT_EQ(gpu_settings(config)->seats(), 2u);
}

TEST(GpuSettings, AMisspeltTagIsRefused) {
  FunctionConfig config;
  config.tags["gpu:wieght"] = "2";
  EXPECT_THAT(gpu_settings(config).error().message, HasSubstr("gpu:weight"));
}

TEST(Function, QuotasWeightAndObjectiveAreTheNodesAndTheRestIsTheProcesss) {
  FunctionConfig one;
  one.tags = {{"gpu:quota-request", "30"}, {"team", "a"}};
  FunctionConfig other = one;
  other.tags["gpu:quota-request"] = "60";
  other.tags["gpu:quota-limit"] = "80";
  other.tags["gpu:weight"] = "2";
  other.tags["gpu:objective-ms"] = "69";
  other.tags["gpu:replicas"] = "1:3";
  other.tags["team"] = "b";
  other.description = "another";
  EXPECT_TRUE(is_same_process(one, other));
  for (const auto& [tag, value] : std::map<std::string, std::string>{{"gpu:compute-percent", "50"},
                                                                     {"gpu:memory-mib", "512"},
                                                                     {"gpu:volumes", "torch"},
                                                                     {"gpu:unloaded-at", "1"},
                                                                     {"image:contract", "http"}}) {
    FunctionConfig changed = one;
    changed.tags[tag] = value;
    EXPECT_FALSE(is_same_process(one, changed)) << tag;
  }
  FunctionConfig changed = one;
  changed.environment["A"] = "b";
  EXPECT_FALSE(is_same_process(one, changed));
  changed = one;
  changed.timeout_seconds += 1;
  EXPECT_FALSE(is_same_process(one, changed));
}

}  // namespace
}  // namespace fairlead
