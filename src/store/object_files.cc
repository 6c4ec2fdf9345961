#include "store/object_files.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "store/json_fields.h"

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kCopyBytes = 1 << 20;
constexpr std::size_t kDigestBytes = 32;
constexpr mode_t kSealedMode = 0444;
constexpr std::string_view kPartial = ".partial";

std::optional<std::string> from_hex(const std::string& hex) {
  std::string raw(kDigestBytes, '\0');
  std::size_t size = 0;
  const int code = sodium_hex2bin(reinterpret_cast<unsigned char*>(raw.data()), raw.size(), hex.data(), hex.size(),
                                  nullptr, &size, nullptr);
  if (code != 0 || size != kDigestBytes || hex.size() != 2 * kDigestBytes) return std::nullopt;
  return raw;
}

Error file_error(int error_number, const std::string& doing, const std::string& path) {
  Error error = errno_error(error_number, doing + " " + path);
  if (error_number == ENOSPC || error_number == EDQUOT) {
    error.code = Errc::kResourceExhausted;
    error.message += fmt::format("; free space in {}", fs::path(path).parent_path().string());
  }
  return error;
}

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return fail(file_error(errno, "open", path));
  return fd;
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(file_error(errno, "write", path));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// Calls take(chunk) until the file ends or `take` fails.
template <typename Take>
Status read_chunks(int fd, const std::string& path, Take take) {
  std::string buffer(kCopyBytes, '\0');
  off_t offset = 0;
  while (true) {
    const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(file_error(errno, "read", path));
    if (count == 0) return {};
    offset += count;
    if (Status taken = take(std::string_view(buffer).substr(0, static_cast<std::size_t>(count))); !taken) return taken;
  }
}

Result<std::string> digest_file(int fd, const std::string& path) {
  Blake2b digest;
  const Status read = read_chunks(fd, path, [&](std::string_view chunk) {
    digest.add(chunk);
    return Status();
  });
  if (!read) return fail(read.error());
  return std::string(as_text(digest.finish()));
}

Status check_size(const std::string& path, Bytes bytes) {
  const std::optional<Bytes> size = ObjectFiles::size_of(path);
  if (size == bytes) return {};
  return fail(Errc::kCorrupt, "{} {}: {} bytes were spilled", path,
              size ? fmt::format("has {} bytes", size->count()) : "is missing", bytes.count());
}

Status check_digest(const std::string& path, const Result<std::string>& found, const std::string& sealed) {
  if (!found) return fail(found.error());
  if (*found == sealed) return {};
  return fail(Errc::kCorrupt, "{} is not what was sealed: its digest is {}", path, to_hex(*found));
}

// The digest of what was copied.
Result<std::string> copy_file(const std::string& from, const std::string& to, mode_t mode) {
  auto source = open_file(from, O_RDONLY);
  if (!source) return fail(source.error());
  auto target = open_file(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!target) return fail(target.error());
  Blake2b digest;
  const Status copied = read_chunks(source->get(), from, [&](std::string_view chunk) {
    digest.add(chunk);
    return write_all(target->get(), chunk, to);
  });
  if (!copied) return fail(copied.error());
  if (::fchmod(target->get(), mode) != 0) return fail(file_error(errno, "chmod", to));
  return std::string(as_text(digest.finish()));
}

Status rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return fail(file_error(errno, "rename " + from + " to", to));
  return {};
}

Status make_folder(const std::string& path, fs::perms mode) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, mode, error);
  if (error) return fail(file_error(error.value(), "create folder", path));
  return {};
}

// A folder of this node alone. Anybody may make folders in /dev/shm, also one with the name that ours will have.
Status make_own_folder(const std::string& path) {
  std::error_code error;
  if (fs::create_directories(path, error)) fs::permissions(path, fs::perms::owner_all, error);
  if (error) return fail(file_error(error.value(), "create folder", path));
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail(file_error(errno, "stat", path));
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) return {};
  return fail(
      Errc::kConflict,
      "{} belongs to user {} and has mode {:o}; objects need a folder of user {} that is closed to others (700)", path,
      info.st_uid, info.st_mode & 07777, ::geteuid());
}

// What one node does not know it removes, so another's objects would go. No StateLock: a tenant may be named "lock", and a node whose
// disk is full of objects is to start, so the pid is written where there is room for it.
Result<UniqueFd> lock_spill_dir(const std::string& spill_dir) {
  const std::string path = spill_dir + "/.lock";
  auto fd = open_file(path, O_RDWR | O_CREAT, 0600);
  if (!fd) return fd;
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(file_error(errno, "flock", path));
    std::string pid = read_whole_file(path).value_or("");
    while (pid.ends_with('\n')) pid.pop_back();
    return fail(
        Errc::kConflict,
        "--object-spill-dir is {}, which is in use by the process with pid {}: give each node a folder of its own",
        spill_dir, pid.empty() ? "unknown" : pid);
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd->get(), 0) != 0 || ::pwrite(fd->get(), pid.data(), pid.size(), 0) < 0) {
    spdlog::debug("{}: {}", path, std::strerror(errno));
  }
  return fd;
}

bool is_content_name(std::string_view name) {
  if (name.ends_with(kPartial)) name.remove_suffix(kPartial.size());
  return from_hex(std::string(name)).has_value();
}

// A tenant's content may be shown to its functions, which run as another user; the folders above keep everybody else out.
constexpr fs::perms kTenantMode = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                                  fs::perms::others_read | fs::perms::others_exec;

// A read lease is granted only where nobody has the file open, or mapped, for writing.
bool could_be_written(int fd) {
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return true;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

std::string boot_id() {
  return read_whole_file("/proc/sys/kernel/random/boot_id").value_or("");
}

// What cannot be read counts as another boot's: digests are checked then.
bool outlived_a_boot(const std::string& memory_dir) {
  std::error_code error;
  if (fs::directory_iterator(memory_dir + "/records", error) == fs::directory_iterator()) return false;
  const std::string now = boot_id();
  return now.empty() || read_whole_file(memory_dir + "/boot").value_or("") != now;
}

}  // namespace

std::string digest_of(std::string_view bytes) {
  return std::string(as_text(blake2b(bytes)));
}

Result<ObjectFiles> ObjectFiles::open(const std::string& memory_dir, const std::string& spill_dir) {
  for (const std::string& path : {memory_dir, spill_dir}) {
    if (Status made = make_own_folder(path); !made) return fail(made.error());
  }
  Result<StateLock> lock = StateLock::acquire(memory_dir);
  if (!lock) return fail(lock.error());
  Result<UniqueFd> spill_lock = lock_spill_dir(spill_dir);  // another file: both may be the same folder
  if (!spill_lock) return fail(spill_lock.error());
  std::error_code ignored;
  fs::remove_all(memory_dir + "/pending", ignored);
  for (const char* folder : {"/pending", "/records", "/content"}) {
    if (Status made = make_folder(memory_dir + folder, fs::perms::owner_all); !made) return fail(made.error());
  }
  return ObjectFiles(memory_dir, spill_dir, *std::move(lock), *std::move(spill_lock), outlived_a_boot(memory_dir));
}

Result<Bytes> ObjectFiles::memory_size() const {
  struct statfs info {};
  if (::statfs(memory_dir_.c_str(), &info) != 0) return fail(file_error(errno, "statfs", memory_dir_));
  return Bytes(static_cast<std::int64_t>(info.f_blocks) * info.f_bsize);
}

Result<UniqueFd> ObjectFiles::reserve(std::uint64_t id, Bytes bytes) const {
  const std::string path = pending_path(id);
  auto fd = open_file(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!fd || bytes == Bytes(0)) return fd;
  int result = 0;
  do {
    result = ::fallocate(fd->get(), 0, 0, bytes.count());
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EOPNOTSUPP) result = ::ftruncate(fd->get(), bytes.count());
  if (result == 0) return fd;
  const Error error = file_error(errno, fmt::format("reserve {} bytes for", bytes.count()), path);
  ::unlink(path.c_str());
  return fail(error);
}

Status ObjectFiles::write(std::uint64_t id, const UniqueFd& fd, std::string_view bytes) const {
  return write_all(fd.get(), bytes, pending_path(id));
}

Result<std::string> ObjectFiles::finish(std::uint64_t id, Bytes bytes) const {
  const std::string path = pending_path(id);
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fail(fd.error());
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return fail(file_error(errno, "stat", path));
  if (info.st_size != bytes.count()) {
    return fail(Errc::kInvalidArgument, "{} has {} bytes, the object was created with {}", path, info.st_size,
                bytes.count());
  }
  if (::fchmod(fd->get(), kSealedMode) != 0) return fail(file_error(errno, "chmod", path));
  if (could_be_written(fd->get())) {
    const std::string copy = path + ".copy";
    Result<std::string> digest = copy_file(path, copy, kSealedMode);
    Status renamed = digest ? rename_file(copy, path) : Status(fail(digest.error()));
    if (renamed) return digest;
    remove_file(copy);
    return fail(renamed.error());
  }
  return digest_file(fd->get(), path);
}

Status ObjectFiles::spill(const ContentId& content) const {
  const std::string path = spilled_path(content);
  if (Status made = make_folder(fs::path(path).parent_path(), fs::perms::owner_all); !made) return made;
  const std::string partial = fmt::format("{}{}", path, kPartial);
  Result<std::string> digest = copy_file(content_path(content), partial, kSealedMode);
  Status status = digest ? rename_file(partial, path) : Status(fail(digest.error()));
  if (!status) remove_file(partial);
  return status;
}

Status ObjectFiles::read_back(std::uint64_t id, const ContentId& content, Bytes bytes) const {
  const std::string path = spilled_path(content);
  if (Status whole = check_size(path, bytes); !whole) return whole;
  Status same = check_digest(path, copy_file(path, pending_path(id), kSealedMode), content.digest);
  if (!same) remove_file(pending_path(id));
  return same;
}

Status ObjectFiles::check_spilled(const ContentId& content, Bytes bytes) const {
  const std::string path = spilled_path(content);
  if (Status whole = check_size(path, bytes); !whole) return whole;
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fail(fd.error());
  return check_digest(path, digest_file(fd->get(), path), content.digest);
}

Status ObjectFiles::check_content(const ContentId& content, Bytes bytes) const {
  const std::string path = content_path(content);
  if (Status whole = check_size(path, bytes); !whole) return whole;
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fail(fd.error());
  return check_digest(path, digest_file(fd->get(), path), content.digest);
}

void ObjectFiles::note_boot() const {
  if (Status noted = replace_file(memory_dir_, "boot", boot_id()); !noted) spdlog::warn("{}", noted.error().message);
}

void ObjectFiles::remove_file(const std::string& path) const {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) spdlog::warn("remove {}: {}", path, std::strerror(errno));
}

Status ObjectFiles::publish(std::uint64_t id, const ContentId& content) const {
  if (const auto made = make_content_dir(content.tenant); !made) return fail(made.error());
  return rename_file(pending_path(id), content_path(content));
}

Result<std::string> ObjectFiles::make_content_dir(const std::string& tenant) const {
  std::string path = memory_dir_ + "/content/" + tenant;
  if (Status made = make_folder(path, kTenantMode); !made) return fail(made.error());
  return path;
}

Status ObjectFiles::put_record(const ObjectRecord& record) const {
  json fields{{"tenant", record.name.tenant},
              {"key", record.name.key},
              {"content", to_hex(record.content)},
              {"bytes", record.bytes.count()},
              {"created_ms", record.created_ms}};
  if (record.expires_ms) fields["expires_ms"] = *record.expires_ms;
  const std::string path = record_path(record.name);
  const std::string partial = memory_dir_ + "/pending/record";
  auto fd = open_file(partial, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!fd) return fail(fd.error());
  if (Status written = write_all(fd->get(), fields.dump(), partial); !written) return written;
  return rename_file(partial, path);
}

void ObjectFiles::remove_record(const ObjectName& name) const {
  remove_file(record_path(name));
}

Result<UniqueFd> ObjectFiles::open_content(const ContentId& content) const {
  return open_file(content_path(content), O_RDONLY);
}

Result<UniqueFd> ObjectFiles::open_spilled(const ContentId& content) const {
  return open_file(spilled_path(content), O_RDONLY);
}

std::string ObjectFiles::put_aside(const std::string& path, std::uint64_t id) const {
  std::string aside = pending_path(id) + ".removed";
  if (::rename(path.c_str(), aside.c_str()) != 0) return path;
  return aside;
}

std::string ObjectFiles::pending_path(std::uint64_t id) const {
  return fmt::format("{}/pending/{}", memory_dir_, id);
}

std::string ObjectFiles::content_path(const ContentId& content) const {
  return fmt::format("{}/content/{}/{}", memory_dir_, content.tenant, to_hex(content.digest));
}

std::string ObjectFiles::spilled_path(const ContentId& content) const {
  return fmt::format("{}/{}/{}", spill_dir_, content.tenant, to_hex(content.digest));
}

std::string ObjectFiles::record_path(const ObjectName& name) const {
  // No tenant's name has a slash.
  return fmt::format("{}/records/{}", memory_dir_, to_hex(digest_of(name.tenant + "/" + name.key)));
}

Result<std::vector<ObjectRecord>> ObjectFiles::load_records() const {
  std::vector<ObjectRecord> records;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(memory_dir_ + "/records", error)) {
    Result<ObjectRecord> record = load_record(entry.path());
    if (record && record_path(record->name) != entry.path()) record = fail(Errc::kCorrupt, "it names another object");
    if (record)
      records.push_back(*std::move(record));
    else
      spdlog::error("object record {} is damaged and left out: {}", entry.path().string(), record.error().message);
  }
  if (error) return fail(file_error(error.value(), "read folder", memory_dir_ + "/records"));
  return records;
}

Result<ObjectRecord> ObjectFiles::load_record(const std::string& path) {
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return fail(fd.error());
  std::string text;
  const Status read = read_chunks(fd->get(), path, [&](std::string_view chunk) {
    text += chunk;
    return Status();
  });
  if (!read) return fail(read.error());
  Result<json> fields = parse_json_object(text, "the record");
  if (!fields) return fail(fields.error());
  ObjectRecord record;
  std::string content;
  std::int64_t bytes = -1;
  std::int64_t expires_ms = -1;
  FieldReader reader(*fields, "");
  reader.read("tenant", record.name.tenant).read("key", record.name.key).read("content", content);
  reader.read("bytes", bytes).read("created_ms", record.created_ms).read("expires_ms", expires_ms);
  if (!reader.status()) return fail(reader.status().error());
  const std::optional<std::string> digest = from_hex(content);
  if (!digest || bytes < 0) return fail(Errc::kCorrupt, "content is '{}', bytes {}", content, bytes);
  record.content = *digest;
  record.bytes = Bytes(bytes);
  if (expires_ms >= 0) record.expires_ms = expires_ms;
  return record;
}

std::optional<Bytes> ObjectFiles::size_of(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return Bytes(info.st_size);
}

void ObjectFiles::remove_memory_dir() const {
  std::error_code ignored;
  for (const char* name : {"/pending", "/records", "/content", "/lock", "/boot"})
    fs::remove_all(memory_dir_ + name, ignored);
  fs::remove(memory_dir_, ignored);  // only when nothing else is in it
}

void ObjectFiles::remove_all_but(const std::set<std::string>& used) const {
  for (const std::string& root : {memory_dir_ + "/content", spill_dir_}) {
    std::error_code error;
    for (const fs::directory_entry& tenant : fs::directory_iterator(root, error)) {
      std::error_code inner;
      for (const fs::directory_entry& file : fs::directory_iterator(tenant.path(), inner)) {
        const bool is_ours = is_content_name(file.path().filename().string());
        if (is_ours && !used.contains(file.path().string())) remove_file(file.path());
      }
    }
  }
}

}  // namespace fairlead::store
