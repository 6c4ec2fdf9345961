#include "identity/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace fairlead::identity {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'790'000'000'000;

class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "fairlead-keys-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

class KeyFileTest : public ::testing::Test {
 protected:
  std::string refusal() const {
    const auto keyring = file.load();
    return keyring ? "loaded" : keyring.error().message;
  }
  unsigned mode(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat((folder / name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }

  Folder folder;
  KeyFile file{folder.path()};
};

TEST_F(KeyFileTest, AFileWithAnotherLetterInATenantIsDamaged) {
  auto keyring = file.load();
  ASSERT_TRUE(keyring);
  ASSERT_TRUE(keyring->issue("FLKAAAAAAAAAAAAAAAAAAAA", {.role = Role::kReader, .tenant = "acme"}, kNow));
  ASSERT_TRUE(file.save(*keyring));
  std::string text = folder.read("keys.json");
  EXPECT_EQ(refusal(), "loaded");
  folder.write("keys.json", text.replace(text.find("acme"), 4, "acmd"));
  EXPECT_THAT(refusal(), HasSubstr("blake2b"));
}

TEST_F(KeyFileTest, AFileOfBeforeDigestsIsRead) {
  auto keyring = file.load();
  ASSERT_TRUE(keyring);
  ASSERT_TRUE(file.save(*keyring));
  folder.write("keys.json", R"({"version":1,"keys":[]})");
  EXPECT_EQ(refusal(), "loaded");
}

TEST_F(KeyFileTest, KeysAreThereAfterAStart) {
  auto keyring = file.load();
  ASSERT_TRUE(keyring) << keyring.error().message;
  const auto key =
      keyring->issue(fresh_key_id(kNodeKeyPrefix),
                     {.role = Role::kInvoker, .tenant = "a", .expires_ms = kNow + 1, .note = "\"n\""}, kNow);
  const auto other = keyring->issue(fresh_key_id(kNodeKeyPrefix), {}, kNow);
  ASSERT_TRUE(key && other);
  ASSERT_TRUE(file.save(*keyring));
  const auto again = file.load();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->keys(), keyring->keys());
  for (const char* name : {"master-key", "keys.json"}) EXPECT_EQ(mode(name), 0600u) << name;
  EXPECT_THAT(folder.read("keys.json"), Not(HasSubstr(key->secret)));
}

TEST_F(KeyFileTest, TheFirstStartMakesAKeyForTheOperatorAndOthersKeepIt) {
  auto keyring = file.load();
  ASSERT_TRUE(keyring);
  ASSERT_TRUE(file.ensure_operator_key(*keyring, kNow));
  const auto token = read_token(file.operator_key_path());
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(mode("operator-key"), 0600u);
  auto again = file.load();
  ASSERT_TRUE(again);
  ASSERT_TRUE(file.ensure_operator_key(*again, kNow));
  EXPECT_EQ(*read_token(file.operator_key_path()), *token);
  EXPECT_EQ(again->keys().size(), 1u);
  const SignedRequest request{.method = "GET",
                              .target = "/",
                              .header = [](std::string_view) { return std::string_view(); },
                              .payload_sha256 = [] { return std::string(); }};
  const auto who = again->authenticate("Bearer " + *token, request, kNow);
  ASSERT_TRUE(who) << who.error().message;
  EXPECT_EQ(who->role, Role::kOperator);
}

TEST_F(KeyFileTest, ARevokedOperatorsKeyIsMadeAnew) {
  auto keyring = file.load();
  ASSERT_TRUE(keyring && file.ensure_operator_key(*keyring, kNow));
  const auto first = read_token(file.operator_key_path());
  ASSERT_TRUE(keyring->revoke(keyring->keys()[0].id));
  ASSERT_TRUE(file.ensure_operator_key(*keyring, kNow));
  EXPECT_NE(*read_token(file.operator_key_path()), *first);
}

TEST_F(KeyFileTest, AnOperatorsKeyThatEndsIsMadeAnew) {
  for (const std::int64_t grace_ms : {0, 86'400'000}) {
    auto keyring = file.load();
    ASSERT_TRUE(keyring && file.ensure_operator_key(*keyring, kNow));
    const auto first = read_token(file.operator_key_path());
    const std::string id = first->substr(0, first->find('.'));
    ASSERT_TRUE(keyring->rotate(id, fresh_key_id(kNodeKeyPrefix), grace_ms, kNow));
    ASSERT_TRUE(file.save(*keyring));
    auto again = file.load();
    ASSERT_TRUE(again && file.ensure_operator_key(*again, kNow));
    const auto second = read_token(file.operator_key_path());
    EXPECT_NE(*second, *first);
    EXPECT_NE(again->find(id), nullptr) << "it is good for as long as was said";
    const ApiKey* const made = again->find(second->substr(0, second->find('.')));
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->role, Role::kOperator);
    EXPECT_FALSE(made->expires_ms);
  }
}

TEST_F(KeyFileTest, DamageIsSaidAndChangesNothing) {
  auto keyring = file.load();
  ASSERT_TRUE(keyring && file.ensure_operator_key(*keyring, kNow));
  const std::string master = folder.read("master-key"), keys = folder.read("keys.json");
  folder.write("master-key", std::string(32, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("keys.json: key FLK"));
  folder.write("master-key", "short");
  EXPECT_THAT(refusal(), HasSubstr("has 5 bytes instead of 32"));
  std::filesystem::remove(folder / "master-key");
  EXPECT_THAT(refusal(), HasSubstr("bring the file back"));
  folder.write("master-key", master);
  for (const char* text : {"", "{", "[]", "{}", R"({"keys": [{}]})", R"({"keys": [{"id": 1}]})"}) {
    folder.write("keys.json", text);
    EXPECT_THAT(refusal(), HasSubstr("keys.json")) << text;
    EXPECT_EQ(folder.read("keys.json"), text);
  }
  std::string unknown_role = keys;
  unknown_role.replace(unknown_role.find("operator"), 8, "godfather");
  folder.write("keys.json", unknown_role);
  EXPECT_THAT(refusal(), HasSubstr("role is none of"));
  folder.write("keys.json", keys);
  EXPECT_EQ(refusal(), "loaded");
}

TEST_F(KeyFileTest, ATokenIsTwoLines) {
  for (const char* text : {"", "one line", "one line\n"}) {
    folder.write("operator-key", text);
    EXPECT_FALSE(read_token(file.operator_key_path())) << text;
  }
  folder.write("operator-key", "ID\nSECRET\n");
  EXPECT_EQ(*read_token(file.operator_key_path()), "ID.SECRET");
  EXPECT_FALSE(read_token(folder / "nothing"));
}

TEST(FreshKeyId, IsNotTheSameTwice) {
  EXPECT_NE(fresh_key_id(kNodeKeyPrefix), fresh_key_id(kNodeKeyPrefix));
  EXPECT_EQ(fresh_key_id(kNodeKeyPrefix).size(), 23u);
}

}  // namespace
}  // namespace fairlead::identity
