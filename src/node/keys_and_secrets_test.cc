// What other nodes change reaches a node's keys in the order of the store, however fast it comes.
#include "node/keys_and_secrets.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>

namespace fairlead {
namespace {

using identity::KeyDesk;
using identity::KeyFile;

constexpr std::int64_t kNow = 1'790'000'000'000;
const std::string kMaster(32, 'c');

class KeysAndSecretsTest : public ::testing::Test {
 protected:
  KeysAndSecretsTest() : folder_((std::filesystem::temp_directory_path() / "fairlead-common-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    vault_ = identity::SecretVault::open(folder_, {.made = folder_ + "/secret-key"}).value();
    desk_.emplace(
        KeyFile(folder_), KeyFile(folder_).load(kMaster).value(), [] { return kNow; }, kMaster);
    common_.emplace(io_, KeysAndSecrets::Options{.state_dir = folder_, .cluster = kMaster}, *vault_);
    common_->follow(*desk_);
  }
  ~KeysAndSecretsTest() override {
    common_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // A store that has the first `count` of some keys.
  SharedDocuments with(std::size_t count, std::int64_t revision) {
    SharedDocuments all{.revision = revision, .documents = {}};
    for (std::size_t i = 0; i < count; ++i) {
      while (issued_.size() <= i) {
        issued_.push_back(*KeyDesk(
                               KeyFile(folder_), identity::Keyring("", kMaster), [] { return kNow; }, kMaster)
                               .plan_issue({})
                               .value()
                               .issued);
      }
      all.documents.push_back(
          {identity::kKeyDocuments, issued_[i].key.id, identity::seal_key(issued_[i].key, kMaster)});
    }
    return all;
  }
  std::size_t known() const {
    return static_cast<std::size_t>(std::count_if(
        issued_.begin(), issued_.end(), [&](const auto& one) { return desk_->keyring().find(one.key.id) != nullptr; }));
  }
  void run_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      io_.restart();
      const auto guard = boost::asio::make_work_guard(io_);
      io_.run_one_for(std::chrono::milliseconds(20));
    }
  }

  std::string folder_;
  boost::asio::io_context io_;
  std::unique_ptr<identity::SecretVault> vault_;
  mutable std::optional<KeyDesk> desk_;
  std::optional<KeysAndSecrets> common_;
  std::vector<identity::IssuedKey> issued_;
};

TEST_F(KeysAndSecretsTest, OfManyChangesTheLastIsThereInTheEndAndAfterAStart) {
  for (std::size_t i = 1; i <= 50; ++i) common_->adopt(with(i, static_cast<std::int64_t>(i)));
  run_until([&] { return known() == 50; });
  EXPECT_EQ(known(), 50u);
  common_->adopt(with(2, 51));
  run_until([&] { return known() == 2; });
  EXPECT_EQ(known(), 2u);
  EXPECT_EQ(KeyFile(folder_).load(kMaster).value().keys().size(), 2u);
}

// Between a store that lost changes and what was read of it the newest reading comes.
TEST_F(KeysAndSecretsTest, ALossIsNotForgottenForALaterReading) {
  common_->adopt(with(3, 9));
  run_until([&] { return known() == 3; });
  common_->adopt(with(3, 9));  // on its way
  SharedDocuments restored = with(1, 4);
  restored.is_anew = true;
  common_->adopt(std::move(restored));
  common_->adopt(with(2, 5));
  run_until([&] { return known() == 2; });
  EXPECT_EQ(known(), 2u);
}

}  // namespace
}  // namespace fairlead
