#include "store/unzip.h"

#include <minizip/unzip.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "model/function.h"

namespace fairlead::store {
namespace {

// minizip reads through callbacks; this is a read-only file in memory.
struct MemoryFile {
  std::string_view bytes;
  ZPOS64_T position = 0;
  bool read_past_end = false;
};

voidpf open_memory(voidpf opaque, const void*, int) {
  return opaque;
}

uLong read_memory(voidpf, voidpf stream, void* buffer, uLong size) {
  auto& file = *static_cast<MemoryFile*>(stream);
  uLong rest = file.position < file.bytes.size() ? file.bytes.size() - file.position : 0;
  if (size > rest) file.read_past_end = true;
  size = std::min(size, rest);
  std::memcpy(buffer, file.bytes.data() + file.position, size);
  file.position += size;
  return size;
}

ZPOS64_T tell_memory(voidpf, voidpf stream) {
  return static_cast<MemoryFile*>(stream)->position;
}

long seek_memory(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto& file = *static_cast<MemoryFile*>(stream);
  ZPOS64_T base = 0;
  if (origin == ZLIB_FILEFUNC_SEEK_CUR) base = file.position;
  if (origin == ZLIB_FILEFUNC_SEEK_END) base = file.bytes.size();
  if (offset > file.bytes.size() || base + offset > file.bytes.size()) return -1;
  file.position = base + offset;
  return 0;
}

int close_memory(voidpf, voidpf) {
  return 0;
}

// minizip takes a bare end of file for success and goes on with stale values; it only ever reads what must be there.
int error_memory(voidpf, voidpf stream) {
  return static_cast<MemoryFile*>(stream)->read_past_end ? 1 : 0;
}

struct CloseArchive {
  void operator()(unzFile archive) const { unzClose(archive); }
};
using Archive = std::unique_ptr<std::remove_pointer_t<unzFile>, CloseArchive>;

Archive open_archive(MemoryFile& file) {
  zlib_filefunc64_def functions = {};
  functions.zopen64_file = open_memory;
  functions.zread_file = read_memory;
  functions.ztell64_file = tell_memory;
  functions.zseek64_file = seek_memory;
  functions.zclose_file = close_memory;
  functions.zerror_file = error_memory;
  functions.opaque = &file;
  return Archive(unzOpen2_64("", &functions));
}

struct Entry {
  std::string name;
  mode_t mode = 0;  // 0: the archive was not made on Unix and has none
  uLong flags = 0;
  uLong method = 0;
};

Error damaged(std::string_view name) {
  return Error{Errc::kInvalidArgument, fmt::format("the zip file is damaged at entry '{}'", name)};
}

Result<Entry> read_entry(unzFile archive) {
  unz_file_info64 info = {};
  if (unzGetCurrentFileInfo64(archive, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) {
    return fail(Errc::kInvalidArgument, "the zip file's directory is damaged");
  }
  if (info.size_filename > kMaxEntryNameLength) {
    return fail(Errc::kInvalidArgument, "an entry of the zip file has a name of {} bytes, the limit is {}",
                info.size_filename, kMaxEntryNameLength);
  }
  Entry entry;
  entry.name.resize(info.size_filename);
  if (unzGetCurrentFileInfo64(archive, &info, entry.name.data(), info.size_filename, nullptr, 0, nullptr, 0) !=
      UNZ_OK) {
    return fail(Errc::kInvalidArgument, "the zip file's directory is damaged");
  }
  constexpr uLong kMadeOnUnix = 3;
  if (info.version >> 8 == kMadeOnUnix) entry.mode = static_cast<mode_t>(info.external_fa >> 16);
  entry.flags = info.flag;
  entry.method = info.compression_method;
  return entry;
}

Status check_entry(const Entry& entry) {
  constexpr uLong kEncrypted = 1;
  if (entry.flags & kEncrypted) {
    return fail(Errc::kInvalidArgument, "entry '{}' of the zip file is encrypted", entry.name);
  }
  if (entry.method != 0 && entry.method != Z_DEFLATED) {
    return fail(Errc::kInvalidArgument, "entry '{}' of the zip file uses compression method {}: use deflate (8)",
                entry.name, entry.method);
  }
  mode_t kind = entry.mode & S_IFMT;
  if (kind != 0 && kind != S_IFREG && kind != S_IFDIR && kind != S_IFLNK) {
    return fail(Errc::kInvalidArgument, "entry '{}' of the zip file is neither file, folder nor symbolic link",
                entry.name);
  }
  return {};
}

// Inflates the current entry into `sink(piece) -> Status`.
template <typename Sink>
Status inflate(unzFile archive, const Entry& entry, Sink sink) {
  if (unzOpenCurrentFile(archive) != UNZ_OK) return fail(damaged(entry.name));
  std::array<char, 64 << 10> buffer;
  while (true) {
    int size = unzReadCurrentFile(archive, buffer.data(), buffer.size());
    if (size == 0) break;
    Status status = size < 0 ? Status(fail(damaged(entry.name)))
                             : sink(std::string_view(buffer.data(), static_cast<std::size_t>(size)));
    if (!status) {
      unzCloseCurrentFile(archive);
      return status;
    }
  }
  if (unzCloseCurrentFile(archive) != UNZ_OK) return fail(damaged(entry.name));  // checks the CRC
  return {};
}

Status extract_link(unzFile archive, const Entry& entry, FileTree& tree) {
  std::string target;
  Status status = inflate(archive, entry, [&](std::string_view piece) -> Status {
    target += piece;
    if (target.size() <= kMaxLinkTargetLength) return {};
    return fail(Errc::kInvalidArgument, "symbolic link '{}' in the code bundle has a target of more than {} bytes",
                entry.name, kMaxLinkTargetLength);
  });
  return status ? tree.add_link(entry.name, target) : status;
}

Status extract_file(unzFile archive, const Entry& entry, FileTree& tree) {
  Result<FileTree::File> file = tree.add_file(entry.name, (entry.mode & 0111) != 0);
  if (!file) return fail(file.error());
  Status status = inflate(archive, entry, [&](std::string_view piece) { return file->write(piece); });
  return status ? file->close() : status;
}

Status extract(unzFile archive, FileTree& tree) {
  Result<Entry> entry = read_entry(archive);
  if (!entry) return fail(entry.error());
  if (Status status = check_entry(*entry); !status) return status;
  if (S_ISLNK(entry->mode)) return extract_link(archive, *entry, tree);
  if (entry->name.ends_with('/')) {
    entry->name.pop_back();
    return tree.add_folder(entry->name);
  }
  if (S_ISDIR(entry->mode)) return tree.add_folder(entry->name);
  return extract_file(archive, *entry, tree);
}

}  // namespace

Status unzip(std::string_view zip, FileTree& tree) {
  if (zip.size() > kMaxZippedCodeBytes) {
    return fail(Errc::kTooLarge, "the zip file is {} bytes, the limit is {}", zip.size(), kMaxZippedCodeBytes);
  }
  MemoryFile file{.bytes = zip};
  Archive archive = open_archive(file);
  if (!archive) return fail(Errc::kInvalidArgument, "the code is not a zip file ({} bytes)", zip.size());
  int code = unzGoToFirstFile(archive.get());
  while (code == UNZ_OK) {
    if (Status status = extract(archive.get(), tree); !status) return status;
    code = unzGoToNextFile(archive.get());
  }
  if (code != UNZ_END_OF_LIST_OF_FILE) return fail(Errc::kInvalidArgument, "the zip file's directory is damaged");
  return {};
}

}  // namespace fairlead::store
