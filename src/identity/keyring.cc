#include "identity/keyring.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include <sodium.h>

#include "base/base64.h"
#include "base/check.h"
#include "model/tenant.h"

namespace fairlead::identity {
namespace {

constexpr std::size_t kMostSigningKeys = 1024;
constexpr std::size_t kLeastIdLength = 8, kMostIdLength = 64;
constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";
constexpr std::string_view kAdmin = "admin";
constexpr std::size_t kMostBasicBytes = 1024;
constexpr std::size_t kMostSessionBytes = 256;

// Names of schemes have no case (RFC 9110).
bool has_scheme(std::string_view authorization, std::string_view scheme) {
  const auto is_same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(b); };
  return authorization.size() >= scheme.size() &&
         std::equal(scheme.begin(), scheme.end(), authorization.begin(), [&](char b, char a) { return is_same(a, b); });
}

bool has_expired(const ApiKey& key, std::int64_t now_ms) {
  return key.expires_ms && *key.expires_ms <= now_ms;
}

Status check(const KeyRequest& request, std::int64_t now_ms) {
  if (request.tenant) {
    if (Status valid = validate_tenant(*request.tenant); !valid) return valid;
    if (request.role == Role::kOperator) {
      return fail(Errc::kInvalidArgument, "role is operator and tenant '{}'; an operator's key is for all tenants",
                  *request.tenant);
    }
  }
  if (request.expires_ms && *request.expires_ms <= now_ms) {
    return fail(Errc::kInvalidArgument, "expires_ms is {}, which is over; now is {}", *request.expires_ms, now_ms);
  }
  if (request.note.size() > kMostNoteBytes) {
    return fail(Errc::kInvalidArgument, "note has {} bytes; it may have at most {}", request.note.size(),
                kMostNoteBytes);
  }
  return {};
}

}  // namespace

bool is_key_id(std::string_view text) {
  const auto fits = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return text.size() >= kLeastIdLength && text.size() <= kMostIdLength && std::all_of(text.begin(), text.end(), fits);
}

bool is_basic(std::string_view authorization) {
  return has_scheme(authorization, kBasic);
}

std::string secret_of_key(std::string_view master, std::string_view id) {
  const Digest digest = hmac_sha256(master, fmt::format("fairlead key 1\n{}", id));
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::string text(sodium_base64_ENCODED_LEN(sizeof digest, kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), digest.data(), digest.size(), kVariant);
  text.pop_back();  // the terminating NUL
  return text;
}

bool is_genuine(const ApiKey& key, std::string_view master) {
  return are_equal(key.secret_sha256, to_hex(as_text(sha256(secret_of_key(master, key.id)))));
}

Status Keyring::restore(std::vector<ApiKey> keys) {
  Keys restored;
  for (ApiKey& key : keys) {
    if (!is_genuine(key, is_of_cluster(key.id) ? cluster_ : master_)) {
      return fail(
          Errc::kCorrupt,
          "key {}: the master key is not the one that the key was made with: bring back the file that was there, or "
          "remove both files to begin with no keys",
          key.id);
    }
    const std::string id = key.id;
    if (!restored.emplace(id, std::move(key)).second) {
      return fail(Errc::kInvalidArgument, "key {} is there twice", id);
    }
  }
  keys_ = std::move(restored);
  return {};
}

Result<IssuedKey> Keyring::issue(const std::string& id, const KeyRequest& request, std::int64_t now_ms) {
  if (Status valid = check(request, now_ms); !valid) return fail(valid.error());
  if (!is_key_id(id)) {
    return fail(Errc::kInvalidArgument, "the key's id is '{}'; it must be {} to {} capital letters and digits",
                id.substr(0, kMostIdLength), kLeastIdLength, kMostIdLength);
  }
  if (keys_.size() >= kMostKeys) {
    return fail(Errc::kResourceExhausted, "there are {} keys, and no more are possible: revoke some", keys_.size());
  }
  if (keys_.contains(id)) return fail(Errc::kConflict, "there is a key {} already", id);
  std::string secret = secret_of(id);
  ApiKey key{.id = id,
             .role = request.role,
             .tenant = request.tenant,
             .created_ms = now_ms,
             .expires_ms = request.expires_ms,
             .note = request.note,
             .secret_sha256 = to_hex(as_text(sha256(secret)))};
  keys_.emplace(id, key);
  return IssuedKey{std::move(key), std::move(secret)};
}

Result<IssuedKey> Keyring::rotate(const std::string& id, const std::string& new_id, std::int64_t grace_ms,
                                  std::int64_t now_ms) {
  const auto valid = valid_key(id, now_ms);
  if (!valid) return fail(Errc::kNotFound, "{}", valid.error().message);
  const ApiKey old = **valid;
  if (grace_ms < 0) return fail(Errc::kInvalidArgument, "grace_ms is {}; it must be 0 or more", grace_ms);
  auto issued =
      issue(new_id, {.role = old.role, .tenant = old.tenant, .expires_ms = old.expires_ms, .note = old.note}, now_ms);
  if (!issued) return issued;
  const std::int64_t until = now_ms + grace_ms;
  keys_.find(id)->second.expires_ms = old.expires_ms ? std::min(*old.expires_ms, until) : until;
  return issued;
}

Status Keyring::revoke(const std::string& id) {
  if (keys_.erase(id) == 0) return fail(Errc::kNotFound, "there is no key {}", id.substr(0, kMostIdLength));
  forget_signatures(id);
  return {};
}

void Keyring::forget_signatures(std::string_view id) {
  std::erase_if(signing_keys_, [&](const auto& entry) { return entry.first.first == id; });
}

void Keyring::replace_cluster(Keys keys) {
  for (auto it = keys_.begin(); it != keys_.end();) {
    const auto here = it++;
    if (!is_of_cluster(here->first)) keys.insert(keys_.extract(here));
  }
  keys_.swap(keys);
  std::erase_if(signing_keys_, [this](const auto& entry) { return !keys_.contains(entry.first.first); });
}

void Keyring::put(ApiKey key) {
  std::string id = key.id;
  keys_.insert_or_assign(std::move(id), std::move(key));
}

std::vector<ApiKey> Keyring::keys() const {
  std::vector<ApiKey> all;
  for (const auto& [id, key] : keys_) all.push_back(key);
  return all;
}

const ApiKey* Keyring::find(std::string_view id) const {
  const auto it = keys_.find(id);
  return it == keys_.end() ? nullptr : &it->second;
}

Result<const ApiKey*> Keyring::valid_key(std::string_view id, std::int64_t now_ms) const {
  const ApiKey* key = find(id);
  if (key == nullptr) {
    return fail(Errc::kUnauthenticated, "there is no key '{}' on this node: it was revoked, or is another node's",
                id.substr(0, kMostIdLength));
  }
  if (has_expired(*key, now_ms)) {
    return fail(Errc::kUnauthenticated, "key {} has expired: ask the node's operator for another one", key->id);
  }
  return key;
}

Result<Principal> Keyring::authenticate(std::string_view authorization, const SignedRequest& request,
                                        std::int64_t now_ms) {
  if (has_scheme(authorization, kBearer)) return by_token(authorization.substr(kBearer.size()), now_ms);
  if (is_basic(authorization)) return by_password(authorization.substr(kBasic.size()), now_ms);
  if (authorization.starts_with(kSigv4Scheme)) return by_signature(authorization, request, now_ms);
  return fail(Errc::kUnauthenticated, "Authorization is neither 'Bearer ID.SECRET' nor Basic nor {}", kSigv4Scheme);
}

Result<Principal> Keyring::by_password(std::string_view encoded, std::int64_t now_ms) const {
  const auto decoded = encoded.size() <= kMostBasicBytes
                           ? base64_decode("Authorization", encoded)
                           : Result<std::string>(fail(Errc::kInvalidArgument, "too long"));
  const std::size_t colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    return fail(Errc::kUnauthenticated, "Authorization: what follows Basic is not 'USER:PASSWORD' in Base64");
  }
  const std::string_view user = std::string_view(*decoded).substr(0, colon),
                         password = std::string_view(*decoded).substr(colon + 1);
  if (user == kAdmin) return by_token(password, now_ms);
  return by_token(fmt::format("{}.{}", user, password), now_ms);
}

Result<Principal> Keyring::by_token(std::string_view token, std::int64_t now_ms) const {
  const std::size_t dot = std::min(token.find('.'), token.size());
  const auto key = valid_key(token.substr(0, dot), now_ms);
  if (!key) return fail(key.error());
  if (dot == token.size() || !are_equal(secret_of((*key)->id), token.substr(dot + 1))) {
    return fail(Errc::kUnauthenticated, "Authorization: the secret is not that of key {}", (*key)->id);
  }
  return Principal{(*key)->id, (*key)->role, (*key)->tenant};
}

Result<Principal> Keyring::by_signature(std::string_view authorization, const SignedRequest& request,
                                        std::int64_t now_ms) {
  const auto parts = parse_sigv4(authorization);
  if (!parts) return fail(Errc::kUnauthenticated, "{}", parts.error().message);
  const auto key = valid_key(parts->key_id, now_ms);
  if (!key) return fail(key.error());
  if (Status genuine = verify(*parts, signing_key_of(*parts), request, now_ms); !genuine) return fail(genuine.error());
  return Principal{(*key)->id, (*key)->role, (*key)->tenant};
}

// Under the key's secret, which no client has that has the session alone; the first line keeps it apart from signatures of requests.
std::string Keyring::session_mac(std::string_view id, std::string_view expires_ms) const {
  return to_hex(as_text(hmac_sha256(secret_of(id), fmt::format("fairlead console session 1\n{}\n{}", id, expires_ms))));
}

std::string Keyring::open_session(const std::string& id, std::int64_t expires_ms) const {
  FL_CHECK(keys_.contains(id), "there is no key {}", id);
  const std::string expires = std::to_string(expires_ms);
  return fmt::format("{}.{}.{}", id, expires, session_mac(id, expires));
}

Result<Principal> Keyring::by_session(std::string_view session, std::int64_t now_ms) const {
  const std::size_t first = session.find('.'), second = session.rfind('.');
  if (session.size() > kMostSessionBytes || first == second) {
    return fail(Errc::kUnauthenticated, "the console's cookie is none of this node's: sign in again");
  }
  const std::string_view id = session.substr(0, first), expires = session.substr(first + 1, second - first - 1);
  const auto key = valid_key(id, now_ms);
  if (!key) return fail(key.error());
  if (!are_equal(session_mac(id, expires), session.substr(second + 1))) {
    return fail(Errc::kUnauthenticated, "the console's cookie is none of this node's: sign in again");
  }
  std::int64_t until = 0;  // as this node wrote it
  std::from_chars(expires.data(), expires.data() + expires.size(), until);
  if (until <= now_ms) return fail(Errc::kUnauthenticated, "the console's session is over: sign in again");
  return Principal{(*key)->id, (*key)->role, (*key)->tenant};
}

// Scopes are the client's choice: when too many are there, all are made anew.
const Digest& Keyring::signing_key_of(const Sigv4& parts) {
  SigningScope scope(std::string(parts.key_id), parts.scope());
  const auto it = signing_keys_.find(scope);
  if (it != signing_keys_.end()) return it->second;
  if (signing_keys_.size() >= kMostSigningKeys) signing_keys_.clear();
  return signing_keys_.emplace(std::move(scope), signing_key(secret_of(parts.key_id), parts)).first->second;
}

}  // namespace fairlead::identity
