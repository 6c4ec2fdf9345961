#include "store/bundle_digest.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <vector>

#include "base/digest.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;

Result<Digest> digest_file(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail(errno_error(errno, "open " + path));
  Sha256 sha;
  std::vector<char> buffer(256 << 10);
  ssize_t size = 0;
  while ((size = read(fd, buffer.data(), buffer.size())) > 0) {
    sha.add({buffer.data(), static_cast<std::size_t>(size)});
  }
  int error = errno;
  close(fd);
  if (size < 0) return fail(errno_error(error, "read " + path));
  return sha.finish();
}

Result<std::string> record_of(const fs::directory_entry& entry, const std::string& name) {
  std::error_code error;
  fs::file_status status = entry.symlink_status(error);
  if (error) return fail(errno_error(error.value(), "stat " + entry.path().string()));
  if (fs::is_directory(status)) return "d" + name + '\0';
  if (fs::is_symlink(status)) {
    fs::path target = fs::read_symlink(entry.path(), error);
    if (error) return fail(errno_error(error.value(), "readlink " + entry.path().string()));
    return "l" + name + '\0' + target.string() + '\0';
  }
  Result<Digest> content = digest_file(entry.path().string());
  if (!content) return fail(content.error());
  bool executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
  std::uintmax_t size = entry.file_size(error);
  return (executable ? "x" : "f") + name + '\0' + std::to_string(size) + '\0' + std::string(as_text(*content));
}

}  // namespace

std::string BundleDigest::hex() const {
  return to_hex(as_text(sha256));
}

std::string BundleDigest::base64() const {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_ENCODED_LEN(sizeof(sha256), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), sha256.data(), sha256.size(), kVariant);
  text.pop_back();
  return text;
}

Result<BundleDigest> digest_tree(const std::string& root) {
  std::error_code error;
  std::map<std::string, std::string> records;  // by path in byte order
  fs::recursive_directory_iterator walk(root, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    const std::string name = walk->path().string().substr(root.size() + 1);
    Result<std::string> record = record_of(*walk, name);
    if (!record) return fail(record.error());
    records[name] = std::move(*record);
  }
  if (error) return fail(errno_error(error.value(), "read folder " + root));
  Sha256 sha;
  for (const auto& [name, record] : records) sha.add(record);
  return BundleDigest{sha.finish()};
}

}  // namespace fairlead::store
