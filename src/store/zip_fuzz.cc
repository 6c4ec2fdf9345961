// libFuzzer: any bytes are an archive or refused with an error; whatever is in it, nothing is written beside its folder, and
// what is there are folders, files and links that stay inside.
#include <fcntl.h>
#include <minizip/zip.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "base/fuzz_seeds.h"
#include "store/file_tree.h"
#include "store/unzip.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

void require(bool condition) {
  if (!condition) std::abort();
}

fs::path base() {
  static const fs::path folder = [] {
    const fs::path made = fs::temp_directory_path() / ("zip_fuzz-" + std::to_string(::getpid()));
    fs::create_directories(made);
    return made;
  }();
  return folder;
}

struct Entry {
  const char* name;
  std::string content;
  mode_t mode = S_IFREG | 0644;
  int method = Z_DEFLATED;
};

std::string zip_of(const std::vector<Entry>& entries) {
  const std::string path = base() / "seed.zip";
  zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  for (const Entry& entry : entries) {
    zip_fileinfo info = {};
    info.external_fa = static_cast<uLong>(entry.mode) << 16;
    zipOpenNewFileInZip4_64(zip, entry.name, &info, nullptr, 0, nullptr, 0, nullptr, entry.method, 6, 0, -MAX_WBITS, 8,
                            0, nullptr, 0, 3 << 8, 0, 0);
    zipWriteInFileInZip(zip, entry.content.data(), static_cast<unsigned>(entry.content.size()));
    zipCloseFileInZip(zip);
  }
  zipClose(zip, nullptr);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_inside(const fs::path& link) {
  const fs::path target = fs::read_symlink(link);
  if (target.is_absolute()) return false;
  const fs::path meant = (link.parent_path().lexically_relative(base() / "root") / target).lexically_normal();
  return meant.empty() || *meant.begin() != "..";
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      zip_of({{"bootstrap", "#!/bin/sh\n", S_IFREG | 0755}}),
      zip_of({{"lib/", "", S_IFDIR | 0755}, {"lib/a", "aaaaaaaa"}, {"lib/link", "../b", S_IFLNK | 0777}, {"b", "x"}}),
      zip_of({{"../evil", "x"}, {"l", "/etc", S_IFLNK | 0777}, {"l/passwd", "x"}}),
      zip_of({{"stored", std::string(300, 's'), S_IFREG | 04755, 0}, {"dev", "", S_IFCHR | 0666}}),
  };
}

namespace store {
namespace {

void unpack(std::string_view bytes) {
  const fs::path root = base() / "root";
  fs::remove_all(root);
  fs::create_directories(root);
  FileTree tree(root.string());
  Status status = unzip(bytes, tree);
  if (status) status = tree.finish();
  if (!status) require(!status.error().message.empty());
  for (const auto& entry : fs::directory_iterator(base())) {
    require(entry.path().filename() == "root" || entry.path().filename() == "seed.zip");
  }
  std::uintmax_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    struct stat is;
    require(::lstat(entry.path().c_str(), &is) == 0 && (is.st_mode & 07000) == 0);
    if (S_ISLNK(is.st_mode)) {
      require(is_inside(entry.path()));
    } else {
      require(S_ISREG(is.st_mode) || S_ISDIR(is.st_mode));
      if (S_ISREG(is.st_mode)) total += static_cast<std::uintmax_t>(is.st_size);
    }
  }
  if (status) require(total == static_cast<std::uintmax_t>(tree.bytes()));
}

}  // namespace
}  // namespace store
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::store::unpack({reinterpret_cast<const char*>(data), size});
  return 0;
}
