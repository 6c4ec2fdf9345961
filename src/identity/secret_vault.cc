#include "identity/secret_vault.h"

#include <sodium.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "base/base64.h"
#include "base/command.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "model/secret_reference.h"
#include "model/tenant.h"

namespace fairlead::identity {
namespace {

using nlohmann::json;

constexpr std::size_t kKeyBytes = crypto_aead_xchacha20poly1305_ietf_KEYBYTES;
constexpr std::size_t kNonceBytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr const char* kFile = "secrets.json";
constexpr const char* kClusterFile = "cluster-secrets.json";
constexpr auto kCommandPatience = std::chrono::seconds(60);

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

// What a box is bound to. No name has a NUL, so no two secrets have the same.
std::string binding(const std::string& tenant, const std::string& name) {
  return std::string("fairlead secret 1") + '\0' + tenant + '\0' + name;
}

std::string seal(const std::string& key, const std::string& bound_to, std::string_view value) {
  std::string box(kNonceBytes + value.size() + kTagBytes, '\0');
  randombytes_buf(box.data(), kNonceBytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(bytes_of(box) + kNonceBytes, nullptr, bytes_of(value), value.size(),
                                             bytes_of(bound_to), bound_to.size(), nullptr, bytes_of(box),
                                             bytes_of(key));
  return box;
}

std::optional<std::string> unseal(const std::string& key, const std::string& bound_to, const std::string& box) {
  if (box.size() < kNonceBytes + kTagBytes) return std::nullopt;
  std::string value(box.size() - kNonceBytes - kTagBytes, '\0');
  const int failed = crypto_aead_xchacha20poly1305_ietf_decrypt(
      bytes_of(value), nullptr, nullptr, bytes_of(box) + kNonceBytes, box.size() - kNonceBytes, bytes_of(bound_to),
      bound_to.size(), bytes_of(box), bytes_of(key));
  return failed != 0 ? std::nullopt : std::optional(std::move(value));
}

// Of a secret of all nodes. No tenant's name has a slash.
std::string document_name(const std::pair<std::string, std::string>& secret) {
  return secret.first + "/" + secret.second;
}

// Tells one key from another and nothing of either.
std::string check_of(const std::string& key) {
  static constexpr std::string_view kText = "fairlead secret key check";
  unsigned char hash[16];
  crypto_generichash(hash, sizeof hash, bytes_of(kText), kText.size(), bytes_of(key), key.size());
  return base64_encode({reinterpret_cast<const char*>(hash), sizeof hash});
}

Result<std::string> key_from_hex(std::string text, const std::string& place) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  std::string key(kKeyBytes, '\0');
  std::size_t size = 0;
  const char* end = nullptr;
  const bool is_hex = text.size() == 2 * kKeyBytes &&
                      sodium_hex2bin(bytes_of(key), key.size(), text.data(), text.size(), nullptr, &size, &end) == 0;
  sodium_memzero(text.data(), text.size());
  if (is_hex && size == kKeyBytes && end == text.data() + text.size()) return key;
  return fail(
      Errc::kInvalidArgument,
      "{} has {} characters; the key of secrets is 64 hexadecimal digits, for example from 'openssl rand -hex 32'",
      place, text.size());
}

Result<std::string> key_of_file(const std::string& path) {
  auto text = read_whole_file(path);
  if (!text) return fail(text.error());
  return key_from_hex(*std::move(text), "the file " + path);
}

Result<std::string> key_of_command(const std::vector<std::string>& command) {
  auto done = run_command({.arguments = command, .timeout = kCommandPatience});
  if (!done) return fail(done.error());
  if (done->exit_status != 0) {
    return fail(Errc::kUnavailable, "{} for the key of secrets: exit status {}, {}", command.front(), done->exit_status,
                done->errors.substr(0, 200));
  }
  return key_from_hex(std::move(done->output), "the output of " + command.front());
}

}  // namespace

Result<std::string> read_secret_key(const SecretKeySource& source) {
  if (!source.file.empty()) return key_of_file(source.file);
  if (!source.command.empty()) return key_of_command(source.command);
  for (const std::string& path : {source.credential, source.made}) {
    if (path.empty()) continue;
    auto key = key_of_file(path);
    if (key || key.error().code != Errc::kNotFound) return key;
  }
  return fail(Errc::kNotFound, "there is no key of secrets");
}

Result<std::unique_ptr<SecretVault>> SecretVault::open(std::string folder, SecretKeySource source,
                                                       SecretBounds bounds) {
  if (sodium_init() < 0) return fail(Errc::kInternal, "libsodium: no random numbers");
  std::unique_ptr<SecretVault> vault(new SecretVault(std::move(folder), std::move(source), bounds));
  if (Status loaded = vault->load(); !loaded) return fail(loaded.error());
  return vault;
}

Status SecretVault::load() {
  auto key = read_secret_key(source_);
  // A key that somebody named has to be there: one that is made in its place would lie beside the secrets, unnoticed.
  const bool is_named = !source_.file.empty() || !source_.command.empty();
  if (!key && (is_named || key.error().code != Errc::kNotFound)) return fail(key.error());
  const std::string path = folder_ + "/" + kFile;
  const auto text = read_whole_file(path);
  Secrets secrets;
  if (!text && text.error().code == Errc::kNotFound) {
    put_in_use(key.value_or(""), {});
    return {};
  }
  if (!text) return fail(text.error());
  try {
    const json document = json::parse(*text);
    if (Status right = check_key(key.value_or(""), document.at("key_check").get<std::string>()); !right) return right;
    if (Status read = read_entries(document, secrets); !read) {
      return fail(Errc::kCorrupt, "{}: {}", path, read.error().message);
    }
  } catch (const json::exception& error) {
    return fail(Errc::kCorrupt, "{}: {}", path, error.what());
  }
  look_for_damage(*key, secrets);
  put_in_use(*std::move(key), std::move(secrets));
  return {};
}

// All are opened once: one whose name was damaged is nobody's, and would be missed in silence.
void SecretVault::look_for_damage(const std::string& key, const Secrets& secrets) {
  for (const auto& [name, sealed] : secrets) {
    if (unseal(key, binding(name.first, name.second), sealed.box)) continue;
    ++damaged_;
    spdlog::error("{}/{}: secret '{}' of tenant '{}' was changed on disk, its name perhaps: set it again", folder_,
                  kFile, name.second.substr(0, kMaxSecretNameLength), name.first.substr(0, kMaxSecretNameLength));
  }
}

void SecretVault::put_in_use(std::string key, Secrets secrets) {
  const MutexLock lock(mutex_);
  key_ = std::move(key);
  secrets_.swap(secrets);
}

std::pair<std::string, SecretVault::Secrets> SecretVault::now() const {
  const MutexLock lock(mutex_);
  return {key_, secrets_};
}

Status SecretVault::check_key(const std::string& key, const std::string& stored) const {
  if (key.empty()) {
    return fail(
        Errc::kInvalidArgument,
        "{}/{} has secrets, and their key is nowhere: give it with --secret-key, or remove the file and set them "
        "again",
        folder_, kFile);
  }
  if (check_of(key) == stored) return {};
  return fail(
      Errc::kInvalidArgument,
      "{}/{} was sealed with another key than the one that is given: give that one with --secret-key, or remove the "
      "file and set the secrets again",
      folder_, kFile);
}

Result<std::string> SecretVault::ensure_key() {
  if (auto [known, secrets] = now(); !known.empty()) return known;
  // Secrets may be sealed with it already: of a change that failed after they had been written.
  if (auto made = read_secret_key(source_); made || made.error().code != Errc::kNotFound) return made;
  std::string key(kKeyBytes, '\0');
  randombytes_buf(key.data(), key.size());
  std::string text(2 * kKeyBytes + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_of(key), key.size());
  text.back() = '\n';
  const std::size_t slash = source_.made.rfind('/');
  if (Status made = replace_file(source_.made.substr(0, slash), source_.made.substr(slash + 1), text); !made) {
    return fail(made.error());
  }
  sodium_memzero(text.data(), text.size());
  return key;
}

Status SecretVault::check_room(const Secrets& secrets, const Name& name, std::size_t bytes) const {
  std::size_t of_tenant = 0, in_all = bytes;
  for (const auto& [other, sealed] : secrets) {
    if (other == name) continue;
    of_tenant += other.first == name.first ? 1 : 0;
    in_all += sealed.bytes;
  }
  if (of_tenant >= bounds_.of_tenant) {
    return fail(Errc::kResourceExhausted, "tenant '{}' has {} secrets, which is all that one may have: remove some",
                name.first, of_tenant);
  }
  if (in_all > bounds_.bytes_in_all) {
    return fail(Errc::kResourceExhausted, "the secrets of the node would have {} bytes; {} are possible", in_all,
                bounds_.bytes_in_all);
  }
  return {};
}

nlohmann::json SecretVault::entry_of(const Name& name, const Sealed& sealed) {
  return {{"tenant", name.first},
          {"name", name.second},
          {"changed_ms", sealed.changed_ms},
          {"bytes", sealed.bytes},
          {"sealed", base64_encode(sealed.box)}};
}

Status SecretVault::read_entry(const json& entry, Secrets& secrets) {
  auto box = base64_decode("sealed", entry.at("sealed").get<std::string>());
  if (!box) return fail(Errc::kCorrupt, "{}", box.error().message);
  secrets[{entry.at("tenant").get<std::string>(), entry.at("name").get<std::string>()}] =
      Sealed{entry.at("changed_ms").get<std::int64_t>(), entry.at("bytes").get<std::size_t>(), *std::move(box)};
  return {};
}

Status SecretVault::read_entries(const json& document, Secrets& secrets) {
  for (const json& entry : document.at("secrets")) {
    if (Status read = read_entry(entry, secrets); !read) return read;
  }
  return {};
}

std::string SecretVault::text_of(const std::string& key, const Secrets& secrets) {
  json entries = json::array();
  for (const auto& [name, sealed] : secrets) entries.push_back(entry_of(name, sealed));
  const json document{{"version", 1}, {"key_check", check_of(key)}, {"secrets", std::move(entries)}};
  return document.dump(1) + "\n";
}

// ---- of all nodes

// It is a copy of what the store has, so one that cannot be read keeps nobody from starting.
void SecretVault::share(std::string key, PublishDocuments publish) {
  cluster_ = Cluster{std::move(key), std::move(publish)};
  const std::string path = folder_ + "/" + kClusterFile;
  const auto text = read_whole_file(path);
  if (!text) return;
  Secrets secrets;
  try {
    const json document = json::parse(*text);
    if (document.at("key_check").get<std::string>() != check_of(cluster_->key)) {
      spdlog::warn("{}: the cluster has another key now; its secrets come from the store", path);
      return;
    }
    if (Status read = read_entries(document, secrets); !read) throw std::invalid_argument(read.error().message);
  } catch (const std::exception& error) {
    spdlog::warn("{}: {}; the secrets of the cluster come from the store", path, error.what());
    return;
  }
  const MutexLock lock(mutex_);
  of_cluster_ = std::move(secrets);
}

SecretVault::Secrets SecretVault::of_cluster() const {
  const MutexLock lock(mutex_);
  return of_cluster_;
}

// What was read before a change that this node has made since is older than what it has.
void SecretVault::adopt(const SharedDocuments& all) {
  if (!cluster_) return;
  const MutexLock one_at_a_time(changes_);
  if (all.revision < cluster_->revision && !all.is_anew) return;
  cluster_->revision = all.revision;
  Secrets secrets;
  std::size_t left_out = 0;
  for (const SharedDocument& document : all.documents) {
    if (document.kind != kSecretDocuments) continue;
    Secrets one;
    bool is_read = false;
    try {
      is_read = document.body.size() <= kMostDocumentBytes && read_entry(json::parse(document.body), one).has_value();
    } catch (const json::exception&) {  // is_read says so
    }
    const bool is_genuine =
        is_read && document_name(one.begin()->first) == document.name &&
        unseal(cluster_->key, binding(one.begin()->first.first, one.begin()->first.second), one.begin()->second.box);
    is_genuine ? secrets.merge(one) : void(++left_out);
  }
  if (left_out > 0) {
    spdlog::error(
        "{} secrets of the cluster cannot be opened: nodes with another --cluster-key have set them, or somebody "
        "changed "
        "them in the store",
        left_out);
  }
  keep_of_cluster(std::move(secrets));
}

void SecretVault::keep_of_cluster(Secrets secrets) {
  if (secrets == of_cluster()) return;
  if (Status saved = replace_file(folder_, kClusterFile, text_of(cluster_->key, secrets)); !saved) {
    spdlog::warn("a start without the store would know the secrets of before: {}", saved.error().message);
  }
  const MutexLock lock(mutex_);
  of_cluster_.swap(secrets);
}

Status SecretVault::set_at_all(const Name& name, std::string_view value, std::int64_t now_ms) {
  Secrets changed = of_cluster();
  if (Status room = check_room(changed, name, value.size()); !room) return room;
  const Sealed sealed{now_ms, value.size(), seal(cluster_->key, binding(name.first, name.second), value)};
  const auto revision = cluster_->publish(
      {.kind = kSecretDocuments, .needs = "", .all = {{document_name(name), entry_of(name, sealed).dump()}}});
  if (!revision) return fail(revision.error());
  cluster_->revision = std::max(cluster_->revision, *revision);
  changed[name] = sealed;
  keep_of_cluster(std::move(changed));
  return {};
}

Status SecretVault::remove_at_all(const Name& name) {
  Secrets changed = of_cluster();
  const auto revision = cluster_->publish({.kind = kSecretDocuments, .needs = "", .all = {{document_name(name), {}}}});
  if (!revision) return fail(revision.error());
  cluster_->revision = std::max(cluster_->revision, *revision);
  changed.erase(name);
  keep_of_cluster(std::move(changed));
  return {};
}

// ---- set, removed, read

Status SecretVault::set(const std::string& tenant, const std::string& name, std::string_view value,
                        std::int64_t now_ms) {
  if (Status valid = validate_tenant(tenant); !valid) return valid;
  if (Status valid = validate_secret_name(name); !valid) return valid;
  if (value.empty() || value.size() > kMaxSecretBytes || value.find('\0') != std::string_view::npos) {
    return fail(Errc::kInvalidArgument, "secret '{}' has {} bytes; 1 to {} are possible, and no NUL", name,
                value.size(), kMaxSecretBytes);
  }
  const MutexLock one_at_a_time(changes_);
  if (cluster_) return set_at_all({tenant, name}, value, now_ms);
  Secrets changed = now().second;
  if (Status room = check_room(changed, {tenant, name}, value.size()); !room) return room;
  auto key = ensure_key();
  if (!key) return fail(key.error());
  changed[{tenant, name}] = {now_ms, value.size(), seal(*key, binding(tenant, name), value)};
  if (Status saved = save(*key, changed); !saved) return saved;
  put_in_use(*std::move(key), std::move(changed));
  return {};
}

Status SecretVault::remove(const std::string& tenant, const std::string& name) {
  const MutexLock one_at_a_time(changes_);
  if (of_cluster().contains({tenant, name})) return remove_at_all({tenant, name});
  auto [key, changed] = now();
  if (changed.erase({tenant, name}) == 0) {
    return fail(Errc::kNotFound, "tenant '{}' has no secret '{}'", tenant, name.substr(0, kMaxSecretNameLength));
  }
  if (Status saved = save(key, changed); !saved) return saved;
  put_in_use(std::move(key), std::move(changed));
  return {};
}

std::vector<SecretEntry> SecretVault::list(const std::optional<std::string>& tenant) const {
  std::vector<SecretEntry> entries;
  const MutexLock lock(mutex_);
  const auto add = [&](const Secrets::value_type& one, bool is_of_cluster) {
    const auto& [name, sealed] = one;
    if (tenant && name.first != *tenant) return;
    entries.push_back({name.first, name.second, sealed.changed_ms, sealed.bytes, is_of_cluster});
  };
  for (const auto& one : of_cluster_) add(one, true);
  for (const auto& one : secrets_) {
    if (!of_cluster_.contains(one.first)) add(one, false);
  }
  std::ranges::sort(entries, {}, [](const SecretEntry& entry) { return std::tie(entry.tenant, entry.name); });
  return entries;
}

Result<std::string> SecretVault::reveal(const std::string& tenant, const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto shared = of_cluster_.find({tenant, name});
  const bool is_shared = shared != of_cluster_.end();
  const auto found = is_shared ? shared : secrets_.find({tenant, name});
  if (!is_shared && found == secrets_.end()) {
    return fail(Errc::kNotFound, "tenant '{}' has no secret '{}': make it with 'fairlead secret set {}'", tenant, name,
                name);
  }
  auto value = unseal(is_shared ? cluster_->key : key_, binding(tenant, name), found->second.box);
  if (!value) return fail(Errc::kCorrupt, "secret '{}' of tenant '{}' was changed on disk: set it again", name, tenant);
  return *std::move(value);
}

Status SecretVault::save(const std::string& key, const Secrets& secrets) const {
  return replace_file(folder_, kFile, text_of(key, secrets));
}

}  // namespace fairlead::identity
