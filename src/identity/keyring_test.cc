#include "identity/keyring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace fairlead::identity {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'790'000'000'000, kHour = 3'600'000;
const std::string kId = "FLKAAAAAAAA", kOther = "FLKBBBBBBBB";

std::string hash_of_nothing() {
  return to_hex(as_text(sha256("")));
}

// A request without a body; what a header is does not matter to tokens.
const SignedRequest kRequest{.method = "GET",
                             .target = "/",
                             .header = [](std::string_view) { return std::string_view(); },
                             .payload_sha256 = hash_of_nothing};

class KeyringTest : public ::testing::Test {
 protected:
  IssuedKey issue(const std::string& id, const KeyRequest& request) {
    auto issued = keyring.issue(id, request, kNow);
    EXPECT_TRUE(issued) << (issued ? "" : issued.error().message);
    return issued ? *issued : IssuedKey{};
  }
  std::string refusal(const std::string& authorization, std::int64_t now = kNow) {
    const auto principal = keyring.authenticate(authorization, kRequest, now);
    return principal ? "accepted" : principal.error().message;
  }

  Keyring keyring{"master"};
};

TEST_F(KeyringTest, AKeysTokenSaysWhoSentIt) {
  const IssuedKey key = issue(kId, {.role = Role::kInvoker, .tenant = "a"});
  const auto who = keyring.authenticate("Bearer " + key.token(), kRequest, kNow);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->name, kId);
  EXPECT_EQ(who->role, Role::kInvoker);
  EXPECT_TRUE(who->sees("a"));
  EXPECT_FALSE(who->sees("b"));
  EXPECT_TRUE(who->may(Role::kReader));
  EXPECT_FALSE(who->may(Role::kDeployer));
}

TEST_F(KeyringTest, EverythingElseIsRefused) {
  const IssuedKey key = issue(kId, {});
  const IssuedKey other = issue(kOther, {});
  EXPECT_NE(key.secret, other.secret);
  EXPECT_THAT(refusal("Bearer " + kId), HasSubstr("the secret is not that of key FLKAAAAAAAA"));
  EXPECT_THAT(refusal("Bearer " + kId + "."), HasSubstr("the secret is not that"));
  EXPECT_THAT(refusal("Bearer " + kId + "." + other.secret), HasSubstr("the secret is not that"));
  EXPECT_THAT(refusal("Bearer " + key.token() + "x"), HasSubstr("the secret is not that"));
  EXPECT_THAT(refusal("Bearer " + kId + "." + key.key.secret_sha256), HasSubstr("the secret is not that"))
      << "what is kept is no secret";
  EXPECT_THAT(refusal("Bearer NOBODY." + key.secret), HasSubstr("there is no key 'NOBODY'"));
  EXPECT_THAT(refusal("Bearer "), HasSubstr("there is no key ''"));
  EXPECT_THAT(refusal("Digest abc"), HasSubstr("neither 'Bearer ID.SECRET' nor Basic nor AWS4-HMAC-SHA256"));
  EXPECT_THAT(refusal("Bearer"), HasSubstr("neither"));
  EXPECT_EQ(refusal("bearer " + key.token()), "accepted") << "names of schemes have no case";
  EXPECT_EQ(refusal("Bearer " + key.token()), "accepted");
}

TEST_F(KeyringTest, APasswordIsAKeysSecretOrAdminsToken) {
  const IssuedKey key = issue(kId, {.role = Role::kDeployer, .tenant = "a"});
  const auto basic = [&](const std::string& user_and_password) {
    return refusal("Basic " + base64_encode(user_and_password));
  };
  EXPECT_EQ(basic(kId + ":" + key.secret), "accepted");
  EXPECT_EQ(basic("admin:" + key.token()), "accepted");
  EXPECT_EQ(keyring.authenticate("bASIC " + base64_encode("admin:" + key.token()), kRequest, kNow)->tenant, "a");
  EXPECT_THAT(basic("admin:" + key.secret), HasSubstr("there is no key"));
  EXPECT_THAT(basic("admin:"), HasSubstr("there is no key"));
  EXPECT_THAT(basic("root:" + key.token()), HasSubstr("there is no key 'root'"));
  EXPECT_THAT(basic(kId + ":" + key.token()), HasSubstr("the secret is not that"));
  EXPECT_THAT(basic(kId + ":"), HasSubstr("the secret is not that"));
  EXPECT_THAT(basic(kId), HasSubstr("is not 'USER:PASSWORD'"));
  EXPECT_THAT(refusal("Basic ????"), HasSubstr("is not 'USER:PASSWORD'"));
  EXPECT_THAT(refusal("Basic "), HasSubstr("is not 'USER:PASSWORD'"));
  EXPECT_THAT(basic("admin:" + std::string(2000, 'x')), HasSubstr("is not 'USER:PASSWORD'"));
}

TEST_F(KeyringTest, SignaturesAreCheckedWithTheKeysSecretUntilItIsRevoked) {
  const IssuedKey key = issue(kId, {.role = Role::kDeployer, .tenant = "a"});
  const SignedRequest request{
      .method = "GET",
      .target = "/",
      .header =
          [](std::string_view name) {
            return std::string_view(name == "x-amz-date" ? "20260921T141320Z" : name == "host" ? "h" : "");
          },
      .payload_sha256 = hash_of_nothing};
  const Sigv4 parts{.key_id = kId,
                    .date = "20260921",
                    .region = "r",
                    .service = "lambda",
                    .signed_headers = "host;x-amz-date",
                    .signature = {}};
  const auto authorization = [&](std::string_view secret) { return sign(parts, signing_key(secret, parts), request); };
  for (int i = 0; i < 2; ++i) {  // the second time with a signing key that was kept
    const auto who = keyring.authenticate(authorization(key.secret), request, kNow);
    ASSERT_TRUE(who) << who.error().message;
    EXPECT_EQ(who->tenant, "a");
  }
  EXPECT_FALSE(keyring.authenticate(authorization("x"), request, kNow));
  ASSERT_TRUE(keyring.revoke(kId));
  const auto gone = keyring.authenticate(authorization(key.secret), request, kNow);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::kUnauthenticated);
  EXPECT_FALSE(keyring.revoke(kId));
}

TEST_F(KeyringTest, AKeyExpires) {
  const IssuedKey key = issue(kId, {.expires_ms = kNow + kHour});
  EXPECT_EQ(refusal("Bearer " + key.token(), kNow + kHour - 1), "accepted");
  EXPECT_THAT(refusal("Bearer " + key.token(), kNow + kHour), HasSubstr("key FLKAAAAAAAA has expired"));
}

TEST_F(KeyringTest, ARotatedKeyGoesOnForAWhile) {
  const IssuedKey old = issue(kId, {.role = Role::kInvoker, .tenant = "a", .note = "ci"});
  const auto fresh = keyring.rotate(kId, kOther, kHour, kNow);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->key.role, Role::kInvoker);
  EXPECT_EQ(fresh->key.tenant, "a");
  EXPECT_EQ(fresh->key.note, "ci");
  EXPECT_FALSE(fresh->key.expires_ms);
  EXPECT_EQ(refusal("Bearer " + old.token(), kNow + kHour - 1), "accepted");
  EXPECT_THAT(refusal("Bearer " + old.token(), kNow + kHour), HasSubstr("has expired"));
  EXPECT_EQ(refusal("Bearer " + fresh->token(), kNow + 2 * kHour), "accepted");
  const auto again = keyring.rotate(kId, "FLKCCCCCCCC", kHour, kNow + kHour);
  ASSERT_FALSE(again) << "it has expired";
  EXPECT_EQ(again.error().code, Errc::kNotFound);
}

TEST_F(KeyringTest, RotationDoesNotLengthenAKeysLife) {
  issue(kId, {.expires_ms = kNow + 10});
  ASSERT_TRUE(keyring.rotate(kId, kOther, kHour, kNow));
  EXPECT_EQ(keyring.find(kId)->expires_ms, kNow + 10);
  EXPECT_EQ(keyring.find(kOther)->expires_ms, kNow + 10);
}

TEST_F(KeyringTest, RequestsThatMakeNoSenseNameTheField) {
  const auto refusal_of = [&](const std::string& id, const KeyRequest& request) {
    const auto issued = keyring.issue(id, request, kNow);
    return issued ? std::string("issued") : issued.error().message;
  };
  EXPECT_THAT(refusal_of(kId, {.role = Role::kOperator, .tenant = "a"}), HasSubstr("role is operator and tenant 'a'"));
  EXPECT_THAT(refusal_of(kId, {.tenant = "no/slash"}), HasSubstr("tenant"));
  EXPECT_THAT(refusal_of(kId, {.expires_ms = kNow}), HasSubstr("expires_ms"));
  EXPECT_THAT(refusal_of(kId, {.note = std::string(257, 'x')}), HasSubstr("note has 257 bytes"));
  EXPECT_THAT(refusal_of("short", {}), HasSubstr("the key's id is 'short'"));
  EXPECT_THAT(refusal_of("HAS.A.DOT.IN", {}), HasSubstr("the key's id"));
  EXPECT_EQ(refusal_of(kId, {}), "issued");
  EXPECT_THAT(refusal_of(kId, {}), HasSubstr("there is a key FLKAAAAAAAA already"));
  EXPECT_EQ(keyring.keys().size(), 1u);
}

TEST_F(KeyringTest, WhatIsKeptIsEnoughWithTheSameMasterKeyAlone) {
  const IssuedKey key = issue(kId, {.tenant = "a"});
  Keyring same("master");
  ASSERT_TRUE(same.restore(keyring.keys()));
  EXPECT_THAT(same.keys(), ElementsAre(key.key));
  EXPECT_TRUE(same.authenticate("Bearer " + key.token(), kRequest, kNow));
  Keyring other("another");
  const Status restored = other.restore(keyring.keys());
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Errc::kCorrupt);
  EXPECT_TRUE(other.keys().empty());
}

TEST_F(KeyringTest, ASessionStandsForItsKeyUntilItEnds) {
  const IssuedKey key = issue(kId, {.role = Role::kInvoker, .tenant = "a"});
  const std::string session = keyring.open_session(kId, kNow + kHour);
  const auto who = keyring.by_session(session, kNow);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->name, kId);
  EXPECT_EQ(who->role, Role::kInvoker);
  EXPECT_EQ(who->tenant, "a");
  EXPECT_EQ(session.find(key.secret), std::string::npos);
  EXPECT_FALSE(keyring.by_session(session, kNow + kHour));
  EXPECT_NE(refusal("Bearer " + session), "accepted") << "it is no key";
  EXPECT_FALSE(keyring.by_session(key.token(), kNow)) << "and a key is no session";
  issue(kOther, {});
  EXPECT_FALSE(keyring.by_session(kOther + session.substr(kId.size()), kNow));
  for (std::size_t i = 0; i < session.size(); ++i) {
    std::string other = session;
    other[i] = other[i] == '1' ? '2' : '1';
    EXPECT_FALSE(keyring.by_session(other, kNow)) << i;
  }
  ASSERT_TRUE(keyring.revoke(kId));
  EXPECT_FALSE(keyring.by_session(session, kNow));
}

TEST_F(KeyringTest, ThereIsABoundOnKeys) {
  for (std::size_t i = 0; i < kMostKeys; ++i) issue(fmt::format("FLK{:08}", i), {});
  const auto refused = keyring.issue(kId, {}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
}

}  // namespace
}  // namespace fairlead::identity
