#include "store/zip_writer.h"

#include <minizip/zip.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/read_file.h"
#include "model/function.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

// The archive is written to a file that is gone when this object is.
class TemporaryFile {
 public:
  TemporaryFile() : path_((fs::temp_directory_path() / "fairlead-zip-XXXXXX").string()) {
    int fd = mkstemp(path_.data());
    if (fd >= 0) close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<std::string> content_of(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_symlink(error)) return fs::read_symlink(entry.path(), error).string();
  return read_whole_file(entry.path());
}

Status add_entry(zipFile zip, const fs::directory_entry& entry, const std::string& name) {
  struct stat status;
  if (lstat(entry.path().c_str(), &status) != 0) return fail(errno_error(errno, "stat " + entry.path().string()));
  const bool folder = S_ISDIR(status.st_mode);
  if (!folder && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    return fail(Errc::kInvalidArgument, "{} is neither file, folder nor symbolic link", entry.path().string());
  }
  Result<std::string> content = folder ? Result<std::string>(std::string()) : content_of(entry);
  if (!content) return fail(content.error());

  zip_fileinfo info = {};
  info.external_fa = static_cast<uLong>(status.st_mode) << 16;
  constexpr uLong kMadeOnUnix = 3 << 8;
  const std::string stored_name = folder ? name + "/" : name;
  int code = zipOpenNewFileInZip4_64(zip, stored_name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED,
                                     Z_DEFAULT_COMPRESSION, 0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, nullptr,
                                     0, kMadeOnUnix, 0, 0);
  if (code == ZIP_OK) code = zipWriteInFileInZip(zip, content->data(), static_cast<unsigned>(content->size()));
  if (code == ZIP_OK) code = zipCloseFileInZip(zip);
  if (code != ZIP_OK) return fail(Errc::kIo, "cannot pack {} (zip error {})", entry.path().string(), code);
  return {};
}

Status add_entries(zipFile zip, const std::string& folder) {
  std::error_code error;
  std::uintmax_t bytes = 0;
  fs::recursive_directory_iterator walk(folder, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    std::error_code not_a_file;
    if (walk->is_regular_file(not_a_file) && !walk->is_symlink(not_a_file)) bytes += walk->file_size(not_a_file);
    if (bytes > kMaxUnzippedCodeBytes) {
      return fail(Errc::kTooLarge, "{} holds more than {} bytes", folder, kMaxUnzippedCodeBytes);
    }
    Status status = add_entry(zip, *walk, walk->path().lexically_relative(folder).string());
    if (!status) return status;
  }
  if (error) return fail(errno_error(error.value(), "read folder " + folder));
  return {};
}

}  // namespace

Result<std::string> zip_folder(const std::string& folder) {
  TemporaryFile file;
  zipFile zip = zipOpen64(file.path().c_str(), APPEND_STATUS_CREATE);
  if (zip == nullptr) return fail(Errc::kIo, "cannot write {}", file.path());
  Status status = add_entries(zip, folder);
  if (zipClose(zip, nullptr) != ZIP_OK && status) status = fail(Errc::kIo, "cannot write {}", file.path());
  if (!status) return fail(status.error());
  auto bytes = read_whole_file(file.path());
  if (!bytes) return fail(bytes.error());
  if (bytes->size() > kMaxZippedCodeBytes) {
    return fail(Errc::kTooLarge,
                "{} is {} bytes as a zip archive, the limit is {}: deploy on the node's own machine, "
                "which takes the folder as it is",
                folder, bytes->size(), kMaxZippedCodeBytes);
  }
  return bytes;
}

}  // namespace fairlead
