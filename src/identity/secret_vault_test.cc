// Secrets at rest: who can read them, who can swap them, what a wrong key does. Planted and caught: the tenant left out of what a
// box is bound to; the plain value saved; the check of the key left out; the total counted without the new one.
#include "identity/secret_vault.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace fairlead::identity {
namespace {

namespace fs = std::filesystem;

class SecretVaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fairlead-secrets-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  SecretKeySource made() const { return {.made = folder_ + "/secret-key"}; }
  Result<std::unique_ptr<SecretVault>> open(SecretBounds bounds = {}) const {
    return SecretVault::open(folder_, made(), bounds);
  }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::trunc) << text;
    return at(name);
  }
  nlohmann::json document() const { return nlohmann::json::parse(std::ifstream(at("secrets.json"))); }
  void write(const nlohmann::json& document) const { write("secrets.json", document.dump()); }

  std::string folder_;
};

TEST_F(SecretVaultTest, KeepsSecretsOverARestart) {
  {
    auto vault = open();
    ASSERT_TRUE(vault) << vault.error().message;
    ASSERT_TRUE((*vault)->set("acme", "db", "s3cret\nof two lines", 7));
    ASSERT_TRUE((*vault)->set("other", "db", "another", 8));
    ASSERT_TRUE((*vault)->set("acme", "db", "s3cret, changed", 9));
    EXPECT_EQ(*(*vault)->reveal("acme", "db"), "s3cret, changed");
  }
  auto vault = open();
  ASSERT_TRUE(vault) << vault.error().message;
  EXPECT_EQ(*(*vault)->reveal("acme", "db"), "s3cret, changed");
  EXPECT_EQ(*(*vault)->reveal("other", "db"), "another");
  const auto entries = (*vault)->list("acme");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].changed_ms, 9);
  EXPECT_EQ(entries[0].bytes, 15U);
  EXPECT_EQ((*vault)->list(std::nullopt).size(), 2U);
  EXPECT_TRUE((*vault)->remove("acme", "db"));
  EXPECT_EQ((*vault)->reveal("acme", "db").error().code, Errc::kNotFound);
  EXPECT_EQ((*vault)->remove("acme", "db").error().code, Errc::kNotFound);
  EXPECT_EQ((*open())->list(std::nullopt).size(), 1U);
}

TEST_F(SecretVaultTest, NothingOnDiskHasOne) {
  ASSERT_TRUE((*open())->set("acme", "db", "hunter2-hunter2", 0));
  for (const auto& file : fs::directory_iterator(folder_)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << file.path();
    EXPECT_EQ(text.find("aHVudGVy"), std::string::npos) << file.path();  // base64
    EXPECT_EQ(fs::status(file.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write) << file.path();
  }
}

TEST_F(SecretVaultTest, WhoChangesTheFileReadsNothing) {
  {
    auto vault = open();
    ASSERT_TRUE((*vault)->set("victim", "db", "s3cret", 0));
    ASSERT_TRUE((*vault)->set("thief", "db", "mine", 0));
  }
  const auto before = document();
  auto swapped = before;  // thief, victim: by name
  swapped["secrets"][0]["sealed"] = before["secrets"][1]["sealed"];
  write(swapped);
  EXPECT_EQ((*open())->reveal("thief", "db").error().code, Errc::kCorrupt);
  EXPECT_EQ(*(*open())->reveal("victim", "db"), "s3cret");
  auto renamed = before;
  renamed["secrets"][1]["tenant"] = "thief";
  renamed["secrets"][1]["name"] = "other";
  write(renamed);
  EXPECT_EQ((*open())->reveal("thief", "other").error().code, Errc::kCorrupt);
  auto cut = before;
  cut["secrets"][1]["sealed"] = "AAAA";
  write(cut);
  EXPECT_EQ((*open())->reveal("victim", "db").error().code, Errc::kCorrupt);
}

// A bit of a name: the secret is not where anybody looks.
TEST_F(SecretVaultTest, ASecretWhoseNameWasDamagedIsCountedAtTheStart) {
  ASSERT_TRUE((*open())->set("acme", "db", "s3cret", 0));
  EXPECT_EQ((*open())->damaged(), 0U);
  auto changed = document();
  changed["secrets"][0]["tenant"] = "acmd";
  write(changed);
  auto vault = open();
  ASSERT_TRUE(vault) << vault.error().message;
  EXPECT_EQ((*vault)->damaged(), 1U);
}

// The first change made the key, wrote the secrets, and failed at the sync of their folder; the second one fails before it writes.
TEST_F(SecretVaultTest, AKeyThatWasMadeIsNotMadeAnew) {
  auto vault = open();
  ASSERT_TRUE(vault) << vault.error().message;
  const std::string key = std::string(63, '0') + "1\n";
  write("secret-key", key);
  ASSERT_TRUE((*vault)->set("acme", "db", "s3cret", 0));
  std::ifstream in(at("secret-key"));
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), key);
  EXPECT_EQ(*(*open())->reveal("acme", "db"), "s3cret");
}

TEST_F(SecretVaultTest, AWrongKeyIsSaidAtTheStart) {
  ASSERT_TRUE((*open())->set("acme", "db", "s3cret", 0));
  const SecretKeySource other{.file = write("other", std::string(64, 'a') + "\n"), .made = made().made};
  const auto vault = SecretVault::open(folder_, other);
  ASSERT_FALSE(vault);
  EXPECT_NE(vault.error().message.find("another key"), std::string::npos) << vault.error().message;
  fs::remove(at("secret-key"));
  const auto lost = open();
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().message.find("--secret-key"), std::string::npos) << lost.error().message;
  write("secrets.json", "{");
  EXPECT_EQ(open().error().code, Errc::kCorrupt);
}

TEST_F(SecretVaultTest, AKeyThatIsNamedAndNotThereIsAnError) {
  const auto of_file = SecretVault::open(folder_, {.file = at("not mounted"), .made = made().made});
  ASSERT_FALSE(of_file);
  EXPECT_NE(of_file.error().message.find("not mounted"), std::string::npos) << of_file.error().message;
  EXPECT_FALSE(SecretVault::open(folder_, {.command = {at("no such program")}, .made = made().made}));
  EXPECT_FALSE(fs::exists(at("secret-key")));
  EXPECT_TRUE(SecretVault::open(folder_, {.credential = at("no credential"), .made = made().made}));
}

TEST_F(SecretVaultTest, KeysComeFromFileCommandOrCredential) {
  const std::string hex = std::string(63, '0') + "1";
  const std::string path = write("key", hex);
  const auto of_file = read_secret_key({.file = path});
  ASSERT_TRUE(of_file) << of_file.error().message;
  EXPECT_EQ(*of_file, std::string(31, '\0') + '\1');
  EXPECT_EQ(*read_secret_key({.command = {"/bin/cat", path}}), *of_file);
  EXPECT_EQ(*read_secret_key({.credential = path, .made = at("none")}), *of_file);
  EXPECT_EQ(read_secret_key({.credential = at("none"), .made = at("none")}).error().code, Errc::kNotFound);
  EXPECT_FALSE(read_secret_key({.file = at("none")}));
  EXPECT_FALSE(read_secret_key({.command = {"/bin/false"}}));
  for (const std::string& bad : {std::string(), std::string(63, '0'), std::string(64, 'g'), std::string(65, '0')}) {
    const auto refused = read_secret_key({.file = write("key", bad)});
    ASSERT_FALSE(refused) << bad;
    EXPECT_TRUE(bad.empty() || refused.error().message.find(bad) == std::string::npos) << "an error never has a key";
  }
}

TEST_F(SecretVaultTest, SizesAndNumbersAreBounded) {
  auto vault = open({.of_tenant = 3});
  EXPECT_FALSE((*vault)->set("acme", "db", "", 0));
  EXPECT_FALSE((*vault)->set("acme", "db", std::string("a\0b", 3), 0));
  EXPECT_FALSE((*vault)->set("acme", "db", std::string((16 << 10) + 1, 'x'), 0));
  EXPECT_FALSE((*vault)->set("acme", "../db", "x", 0));
  EXPECT_FALSE((*vault)->set("../acme", "db", "x", 0));
  EXPECT_FALSE(fs::exists(at("secrets.json")));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*vault)->set("acme", "s" + std::to_string(i), "x", 0));
  EXPECT_EQ((*vault)->set("acme", "more", "x", 0).error().code, Errc::kResourceExhausted);
  EXPECT_TRUE((*vault)->set("acme", "s0", "in its place", 0));
  EXPECT_TRUE((*vault)->set("other", "more", "x", 0));
}

TEST_F(SecretVaultTest, AllTogetherAreBounded) {
  auto vault = open({.bytes_in_all = 100});
  ASSERT_TRUE((*vault)->set("acme", "a", std::string(60, 'x'), 0));
  ASSERT_TRUE((*vault)->set("acme", "b", std::string(40, 'x'), 0));
  EXPECT_EQ((*vault)->set("other", "more", "x", 0).error().code, Errc::kResourceExhausted);
  EXPECT_TRUE((*vault)->set("acme", "a", std::string(60, 'y'), 0)) << "what it replaces does not count";
}

TEST_F(SecretVaultTest, WhatCannotBeWrittenIsNotThere) {
  auto vault = open();
  ASSERT_TRUE((*vault)->set("acme", "db", "old", 0));
  fs::create_directories(at("secrets.json.new/in the way"));
  EXPECT_FALSE((*vault)->set("acme", "db", "new", 0));
  EXPECT_FALSE((*vault)->remove("acme", "db"));
  EXPECT_EQ(*(*vault)->reveal("acme", "db"), "old");
}

// ---- of all nodes

struct FakeDocuments {
  SharedDocuments now() const {
    SharedDocuments all{.revision = revision, .documents = {}};
    for (const auto& [name, body] : bodies) all.documents.push_back({kSecretDocuments, name, body});
    return all;
  }
  PublishDocuments publish() {
    return [this](const DocumentChanges& changes) -> Result<std::int64_t> {
      if (is_away) return fail(Errc::kUnavailable, "away");
      for (const auto& one : changes.all) one.body ? void(bodies[one.name] = *one.body) : void(bodies.erase(one.name));
      return ++revision;
    };
  }
  std::map<std::string, std::string> bodies;
  std::int64_t revision = 0;
  bool is_away = false;
};

const std::string kOfCluster(32, 'c');

TEST_F(SecretVaultTest, ASecretOfAllNodesIsOpenedByThoseThatHaveTheKey) {
  FakeDocuments store;
  const auto start = [&](const std::string& name, const std::string& key) {
    fs::create_directories(at(name));
    auto vault = SecretVault::open(at(name), {.made = at(name) + "/secret-key"}).value();
    vault->share(key, store.publish());
    return vault;
  };
  auto a = start("a", kOfCluster), b = start("b", kOfCluster), stranger = start("stranger", std::string(32, 'x'));
  ASSERT_TRUE(a->set("acme", "db", "s3cret", 7));
  EXPECT_EQ(a->reveal("acme", "db"), "s3cret");
  for (auto* vault : {&b, &stranger}) (*vault)->adopt(store.now());
  EXPECT_EQ(b->reveal("acme", "db"), "s3cret");
  EXPECT_EQ(stranger->reveal("acme", "db").error().code, Errc::kNotFound);
  EXPECT_TRUE(b->list("acme").at(0).is_of_cluster);
  EXPECT_EQ(store.bodies.begin()->second.find("s3cret"), std::string::npos);
  EXPECT_EQ(start("b", kOfCluster)->reveal("acme", "db"), "s3cret") << "from what it keeps";

  store.is_away = true;
  EXPECT_EQ(b->set("acme", "db", "other", 8).error().code, Errc::kUnavailable);
  EXPECT_EQ(b->remove("acme", "db").error().code, Errc::kUnavailable);
  EXPECT_EQ(b->reveal("acme", "db"), "s3cret");
  store.is_away = false;
  const SharedDocuments older = store.now();
  ASSERT_TRUE(b->set("acme", "db", "other", 8));
  b->adopt(older);
  EXPECT_EQ(b->reveal("acme", "db"), "other") << "what was read before it says nothing";
  ASSERT_TRUE(b->remove("acme", "db"));
  a->adopt(store.now());
  EXPECT_EQ(a->reveal("acme", "db").error().code, Errc::kNotFound);
}

TEST_F(SecretVaultTest, WhoWritesToTheStoreGivesNobodyAnothersSecret) {
  FakeDocuments store;
  auto vault = open().value();
  vault->share(kOfCluster, store.publish());
  ASSERT_TRUE(vault->set("acme", "db", "s3cret", 7));
  const std::string body = store.bodies.at("acme/db");
  auto changed = nlohmann::json::parse(body);
  changed["tenant"] = "thief";
  for (const auto& [name, text] : {std::pair<std::string, std::string>("thief/db", body),
                                   {"thief/db", changed.dump()},
                                   {"acme/db", changed.dump()},
                                   {"acme/db", "{}"},
                                   {"acme/db", "["},
                                   {"acme/db", "7"}}) {
    store.bodies = {{name, text}};
    ++store.revision;
    vault->adopt(store.now());
    EXPECT_TRUE(vault->list(std::nullopt).empty()) << name << " " << text;
  }
}

// One that the node had before it came to the cluster.
TEST_F(SecretVaultTest, ASecretOfTheNodeIsThereUntilAllNodesHaveOneOfItsName) {
  FakeDocuments store;
  ASSERT_TRUE(open().value()->set("acme", "db", "own", 7));
  auto vault = open().value();
  vault->share(kOfCluster, store.publish());
  EXPECT_EQ(vault->reveal("acme", "db"), "own");
  ASSERT_TRUE(vault->set("acme", "db", "of all", 8));
  EXPECT_EQ(vault->reveal("acme", "db"), "of all");
  EXPECT_EQ(vault->list("acme").size(), 1u);
  ASSERT_TRUE(vault->remove("acme", "db"));
  EXPECT_EQ(vault->reveal("acme", "db"), "own");
  ASSERT_TRUE(vault->remove("acme", "db"));
  EXPECT_EQ(vault->reveal("acme", "db").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace fairlead::identity
