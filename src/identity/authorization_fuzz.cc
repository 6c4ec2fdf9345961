// libFuzzer: any Authorization is somebody's or nobody's, with a reason, and never lets in who does not know the secret; any
// keys.json and operator-key are keys or refused; any document of the store of all nodes is the one that was sealed, or is not believed.
// The lines of an input are header, method and target, then headers; and the same bytes are the files and the documents.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <unistd.h>

#include "base/fuzz_seeds.h"
#include "identity/cluster_keys.h"
#include "identity/key_file.h"
#include "identity/secret_vault.h"

namespace fairlead {
namespace {

constexpr std::int64_t kNow = 1'769'903'999'123;  // 2026-01-31T23:59:59Z
constexpr const char* kId = "FLKAAAAAAAAAAAAAAAAAAAA";

void require(bool condition) {
  if (!condition) std::abort();
}

// Its secret is known to nobody here: no seed, and no input.
identity::Keyring& keyring() {
  static identity::Keyring* const made = [] {
    auto* keys = new identity::Keyring(std::string(32, 'm'));
    require(keys->issue(kId, {.role = Role::kOperator}, kNow).has_value());
    return keys;
  }();
  return *made;
}

// Nothing but what it sealed is ever believed.
const std::string kMaster(32, 'c');

const identity::ApiKey& sealed_key() {
  static const identity::ApiKey* const made = [] {
    identity::Keyring keys("", kMaster);
    return new identity::ApiKey(
        keys.issue("FLCAAAAAAAAAAAAAAAAAAAA", {.role = Role::kReader, .tenant = "acme", .note = "n"}, kNow)->key);
  }();
  return *made;
}

std::string folder_for(const char* what) {
  const auto made = std::filesystem::temp_directory_path() /
                    fmt::format("authorization_fuzz-{}-{}", what, std::to_string(::getpid()));
  std::filesystem::create_directories(made);
  return made.string();
}

std::string& sealed_secret() {
  static std::string* const made = new std::string();
  return *made;
}

identity::SecretVault& vault() {
  static identity::SecretVault* const made = [] {
    const std::string folder = folder_for("vault");
    auto opened = identity::SecretVault::open(folder, {.made = folder + "/secret-key"});
    require(opened.has_value());
    (*opened)->share(kMaster, [](const DocumentChanges& changes) -> Result<std::int64_t> {
      sealed_secret() = changes.all.at(0).body.value();
      return 1;
    });
    require((*opened)->set("acme", "db", "s3cret", kNow).has_value());
    return opened->release();
  }();
  return *made;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string scope = std::string(kId) + "/20260131/us-east-1/lambda/aws4_request";
  return {
      std::string("Bearer ") + kId + ".c2VjcmV0\nGET\n/\n",
      "AWS4-HMAC-SHA256 Credential=" + scope + ", SignedHeaders=host;x-amz-date, Signature=" + std::string(64, '0') +
          "\nPOST\n/2015-03-31/functions/f%2Fg/invocations?b=2&a=1\nhost: a\nx-amz-date: 20260131T235959Z\n"
          "x-amz-content-sha256: UNSIGNED-PAYLOAD",
      "{\"version\":1,\"keys\":[{\"id\":\"a\",\"role\":\"reader\",\"tenant\":\"t\",\"created_ms\":1,\"expires_ms\":2,"
      "\"note\":\"\","
      "\"secret_sha256\":\"" +
          std::string(64, 'a') + "\"}]}",
      std::string(kId) + "\nsecret\n",
      identity::seal_key(sealed_key(), kMaster),
      (vault(), sealed_secret()),
  };
}

namespace {

void authenticate(std::string_view bytes) {
  const std::vector<std::string> lines = lines_of(bytes);
  std::map<std::string, std::string, std::less<>> headers;
  for (std::size_t i = 3; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(": ");
    if (colon != std::string::npos) headers[lines[i].substr(0, colon)] = lines[i].substr(colon + 2);
  }
  const identity::SignedRequest request{
      .method = lines.size() > 1 ? lines[1] : std::string_view(),
      .target = lines.size() > 2 ? lines[2] : std::string_view(),
      .header =
          [&](std::string_view name) {
            const auto found = headers.find(name);
            return found == headers.end() ? std::string_view() : std::string_view(found->second);
          },
      .payload_sha256 = [] { return std::string(64, 'e'); },
  };
  const auto who = keyring().authenticate(lines[0], request, kNow);
  require(!who && !who.error().message.empty());
}

void read_files(std::string_view bytes) {
  static const std::string folder = [] {
    const auto made = std::filesystem::temp_directory_path() / ("authorization_fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(made);
    std::ofstream(made / "master-key", std::ios::binary) << std::string(32, 'm');
    return made.string();
  }();
  for (const char* name : {"keys.json", "operator-key"}) {
    std::ofstream(folder + "/" + name, std::ios::binary | std::ios::trunc) << bytes;
  }
  const auto keys = identity::KeyFile(folder).load();
  require(keys.has_value() || !keys.error().message.empty());
  const auto token = identity::read_token(folder + "/operator-key");
  require(token.has_value() || !token.error().message.empty());
}

void read_documents(std::string_view bytes) {
  static std::int64_t revision = 1;
  const std::string body(bytes);
  const SharedDocuments all{
      .revision = ++revision,
      .documents = {{identity::kKeyDocuments, sealed_key().id, body}, {identity::kSecretDocuments, "acme/db", body}}};
  for (const auto& [id, key] : identity::read_cluster_keys(all, kMaster).keys) require(key == sealed_key());
  for (const auto& [id, key] : identity::read_kept_cluster_keys("[" + body + "]", kMaster).keys) {
    require(key == sealed_key());
  }
  vault().adopt(all);
  for (const auto& entry : vault().list(std::nullopt)) {
    require(entry.tenant == "acme" && entry.name == "db" && vault().reveal("acme", "db") == "s3cret");
  }
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fairlead::authenticate(bytes);
  if (bytes.starts_with('{') || size % 16 == 0) {
    fairlead::read_files(bytes);
    fairlead::read_documents(bytes);
  }
  return 0;
}
