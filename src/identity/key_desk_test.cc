// Keys of one node and of all: what a change publishes, and what is believed of what others published.
#include "identity/key_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <optional>

#include "identity/cluster_keys.h"

namespace fairlead::identity {
namespace {

constexpr std::int64_t kNow = 1'790'000'000'000;
const std::string kMaster = derive_from_cluster_key("the key of a cluster", "api keys");

// A store of documents, as far as keys need one.
class FakeStore {
 public:
  SharedDocuments now() const {
    SharedDocuments all{.revision = revision_, .documents = {}};
    for (const auto& [name, body] : bodies_) all.documents.push_back({kKeyDocuments, name, body});
    return all;
  }
  std::int64_t publish(const DocumentChanges& changes) {
    for (const auto& one : changes.all) one.body ? void(bodies_[one.name] = *one.body) : void(bodies_.erase(one.name));
    return ++revision_;
  }
  std::map<std::string, std::string>& bodies() { return bodies_; }
  void touch() { ++revision_; }

 private:
  std::map<std::string, std::string> bodies_;
  std::int64_t revision_ = 0;
};

class Node {
 public:
  explicit Node(const std::string& master = kMaster)
      : folder_((std::filesystem::temp_directory_path() / "fairlead-desk-XXXXXX").string()), master_(master) {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    start();
  }
  Node(const Node&) = delete;
  ~Node() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void start() {
    desk_.emplace(
        KeyFile(folder_), KeyFile(folder_).load(master_).value(), [] { return kNow; }, master_);
  }
  KeyDesk& desk() { return *desk_; }
  void adopt(const SharedDocuments& all) {
    ClusterKeys read = read_cluster_keys(all, master_);
    EXPECT_TRUE(KeyFile(folder_).save_cluster(read.kept));
    desk_->adopt(std::move(read));
  }
  IssuedKey make(FakeStore& store, const KeyRequest& request) {
    const auto change = desk_->plan_issue(request).value();
    EXPECT_TRUE(desk_->carry_out(change, change.is_of_cluster() ? store.publish(change.documents) : 0));
    return *change.issued;
  }
  bool knows(const IssuedKey& key) {
    const auto who = desk_->keyring().authenticate("Bearer " + key.token(), {}, kNow);
    return who && who->role == key.key.role && who->tenant == key.key.tenant;
  }

 private:
  std::string folder_;
  const std::string master_;
  std::optional<KeyDesk> desk_;
};

TEST(KeyDesk, AKeyOfOneNodeIsGoodAtAnotherAndAfterAStart) {
  FakeStore store;
  Node a, b;
  const IssuedKey key = a.make(store, {.role = Role::kInvoker, .tenant = "acme"});
  EXPECT_TRUE(key.key.id.starts_with(kClusterKeyPrefix));
  EXPECT_TRUE(a.knows(key));
  EXPECT_FALSE(b.knows(key));
  b.adopt(store.now());
  EXPECT_TRUE(b.knows(key));
  b.start();
  EXPECT_TRUE(b.knows(key)) << "from what it keeps";
}

TEST(KeyDesk, WithoutAClusterItsKeysAreItsOwn) {
  FakeStore store;
  Node alone("");
  const auto change = alone.desk().plan_issue({}).value();
  EXPECT_TRUE(change.issued->key.id.starts_with(kNodeKeyPrefix));
  EXPECT_FALSE(change.is_of_cluster());
  Node other;
  const IssuedKey shared = other.make(store, {});
  alone.adopt(store.now());
  EXPECT_FALSE(alone.knows(shared));
}

TEST(KeyDesk, NodesOfAnotherClusterKeyDoNotBelieveEachOther) {
  FakeStore store;
  Node a, stranger(derive_from_cluster_key("another", "api keys"));
  const IssuedKey key = a.make(store, {});
  const IssuedKey strange = stranger.make(store, {});
  a.adopt(store.now());
  stranger.adopt(store.now());
  EXPECT_TRUE(a.knows(key) && stranger.knows(strange));
  EXPECT_FALSE(a.knows(strange) || stranger.knows(key));
}

// Whoever writes to the store, without the cluster's key.
TEST(KeyDesk, WhatWasChangedInTheStoreIsNotBelieved) {
  FakeStore store;
  Node a;
  const IssuedKey key = a.make(store, {.role = Role::kInvoker, .tenant = "acme"});
  const IssuedKey other = a.make(store, {.role = Role::kReader, .tenant = "acme"});
  const std::string before = store.bodies().at(key.key.id);
  for (const auto& [from, to] : {std::pair("invoker", "operator"), std::pair("acme", "evil"), std::pair("seal", "zeal"),
                                 std::pair("{", "["), std::pair("\"created_ms\":1", "\"created_ms\":2")}) {
    std::string& body = store.bodies().at(key.key.id) = before;
    ASSERT_NE(body.find(from), std::string::npos) << from;
    body.replace(body.find(from), std::string_view(from).size(), to);
    store.touch();
    a.adopt(store.now());
    EXPECT_EQ(a.desk().keyring().find(key.key.id), nullptr) << body;
    EXPECT_TRUE(a.knows(other));
  }
  store.bodies() = {{key.key.id, store.bodies().at(other.key.id)}};  // who revokes it would remove nothing
  store.touch();
  a.adopt(store.now());
  EXPECT_TRUE(a.desk().keyring().keys().empty());
  store.bodies() = {{key.key.id, before}};
  store.touch();
  a.adopt(store.now());
  EXPECT_TRUE(a.knows(key));
}

TEST(KeyDesk, RevokedAtOneRotatedAtAnother) {
  FakeStore store;
  Node a, b;
  const IssuedKey key = a.make(store, {.role = Role::kDeployer});
  b.adopt(store.now());
  const auto rotate = b.desk().plan_rotate(key.key.id, 0).value();
  EXPECT_EQ(rotate.documents.needs, key.key.id) << "it may be gone by then";
  ASSERT_EQ(rotate.documents.all.size(), 2u) << "the old one's end, and the new one";
  ASSERT_TRUE(b.desk().carry_out(rotate, store.publish(rotate.documents)));
  a.adopt(store.now());
  EXPECT_FALSE(a.knows(key));
  EXPECT_TRUE(a.knows(*rotate.issued));
  const auto revoke = a.desk().plan_revoke(rotate.issued->key.id).value();
  ASSERT_EQ(revoke.documents.all.size(), 1u);
  EXPECT_FALSE(revoke.documents.all[0].body);
  ASSERT_TRUE(a.desk().carry_out(revoke, store.publish(revoke.documents)));
  b.adopt(store.now());
  EXPECT_FALSE(b.knows(*rotate.issued));
}

// What was read before this node's own change arrives after it.
TEST(KeyDesk, AnOlderReadingTakesNothingBackUnlessTheStoreWasRestored) {
  FakeStore store;
  Node a;
  SharedDocuments older = store.now();
  const IssuedKey key = a.make(store, {});
  a.adopt(older);
  EXPECT_TRUE(a.knows(key));
  older.is_anew = true;
  a.adopt(older);
  EXPECT_FALSE(a.knows(key));
}

// Another node's revocation is read before this node is told that its own change was published.
TEST(KeyDesk, WhatWasRevokedMeanwhileDoesNotComeBack) {
  FakeStore store;
  Node a, b;
  const IssuedKey key = a.make(store, {});
  b.adopt(store.now());
  const auto rotate = a.desk().plan_rotate(key.key.id, 86'400'000).value();
  const std::int64_t published = store.publish(rotate.documents);
  store.publish(b.desk().plan_revoke(key.key.id).value().documents);
  a.adopt(store.now());
  ASSERT_TRUE(a.desk().carry_out(rotate, published));
  EXPECT_EQ(a.desk().keyring().find(key.key.id), nullptr);
  EXPECT_TRUE(a.knows(*rotate.issued));
}

TEST(KeyDesk, KeysOfTheNodeAreNotTheClustersToChange) {
  FakeStore store;
  Node a;
  const std::string id = "FLKAAAAAAAAAAAAAAAAAAAA";
  ASSERT_TRUE(a.desk().keyring().issue(id, {.role = Role::kOperator}, kNow));
  ApiKey weaker = *a.desk().keyring().find(id);
  weaker.role = Role::kReader;
  store.bodies()[id] = seal_key(weaker, kMaster);  // sealed as it should be
  store.touch();
  a.adopt(store.now());
  EXPECT_EQ(a.desk().keyring().find(id)->role, Role::kOperator);
  store.bodies().clear();
  store.touch();
  a.adopt(store.now());
  EXPECT_NE(a.desk().keyring().find(id), nullptr);
  const auto rotate = a.desk().plan_rotate(id, 0).value();
  EXPECT_FALSE(rotate.is_of_cluster()) << "its successor is the node's too";
}

}  // namespace
}  // namespace fairlead::identity
