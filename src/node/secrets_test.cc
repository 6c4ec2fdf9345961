#include "node/secrets.h"

#include <gmock/gmock.h>

#include "base/log.h"

namespace fairlead {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSecret = "s3cret-of-acme";

// What was written to the two streams, logs included, while `work` ran.
template <typename Work>
std::string written_by(Work work) {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::trace);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  work();
  spdlog::default_logger()->flush();
  spdlog::set_level(level);
  return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
}

Result<std::string> acmes(const std::string& tenant, const std::string& name) {
  if (tenant == "acme" && name == "db") return std::string(kSecret);
  return fail(Errc::kNotFound, "tenant {} has no secret {}", tenant, name);
}

TEST(PutSecrets, AReferenceBecomesTheSecretAndNothingIsWrittenDown) {
  std::map<std::string, std::string> environment{{"DB", "{{resolve:secret:db}}"}, {"PLAIN", "db"}};
  const std::string written = written_by([&] { EXPECT_TRUE(put_secrets(acmes, "acme", environment)); });
  EXPECT_EQ(environment.at("DB"), kSecret);
  EXPECT_EQ(environment.at("PLAIN"), "db");
  EXPECT_THAT(written, Not(HasSubstr(kSecret)));
}

TEST(PutSecrets, AFileIsNamedInItsVariableAndNeededOnce) {
  std::map<std::string, std::string> environment{
      {"A", "{{resolve:secret-file:db}}"}, {"B", "{{resolve:secret-file:db}}"}, {"C", "{{resolve:secret:db}}"}};
  const auto files = put_secrets(acmes, "acme", environment);
  ASSERT_TRUE(files);
  EXPECT_EQ(*files, (std::vector<SecretFile>{{"db", kSecret}}));
  EXPECT_EQ(environment.at("A"), "/run/secrets/db");
  EXPECT_EQ(environment.at("B"), "/run/secrets/db");
  EXPECT_EQ(environment.at("C"), kSecret);
}

TEST(PutSecrets, AnErrorNamesTheVariableAndNoSecret) {
  std::map<std::string, std::string> environment{{"DB", "{{resolve:secret:db}}"}, {"OTHER", "{{resolve:secret:none}}"}};
  Result<std::vector<SecretFile>> put = std::vector<SecretFile>();
  const std::string written = written_by([&] { put = put_secrets(acmes, "acme", environment); });
  ASSERT_FALSE(put);
  EXPECT_THAT(put.error().message, HasSubstr("'OTHER': tenant acme has no secret none"));
  EXPECT_THAT(written + put.error().message, Not(HasSubstr(kSecret)));
}

TEST(PutSecrets, AnotherTenantsSecretIsNotFound) {
  FunctionConfig config;
  config.environment = {{"DB", "{{resolve:secret:db}}"}};
  config.tags = {{kTenantTag, "thief"}};
  EXPECT_EQ(check_secrets(acmes, config).error().code, Errc::kInvalidArgument);
  config.tags = {{kTenantTag, "acme"}};
  EXPECT_TRUE(check_secrets(acmes, config));
  EXPECT_EQ(config.environment.at("DB"), "{{resolve:secret:db}}") << "what is kept is the reference";
}

}  // namespace
}  // namespace fairlead
