#include "node/log_tail.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace fairlead {
namespace {

Result<std::string> file_tail(const std::string& path, std::size_t bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text(std::min<std::uintmax_t>(size, bytes), '\0');
  file.seekg(static_cast<std::streamoff>(size - text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(errno_error(EIO, "read " + path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<std::string> log_tail(const std::string& log_dir, const std::string& function, std::size_t bytes) {
  const std::string path = log_dir + "/" + function + ".log";
  auto newest = file_tail(path, bytes);
  if (!newest || newest->size() >= bytes) return newest;
  auto older = file_tail(path + ".1", bytes - newest->size());
  if (!older) return older;
  return *older + *newest;
}

}  // namespace fairlead
