#include "runtime/function_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

namespace fairlead {
namespace {

constexpr std::size_t kFlushBytes = 64 << 10;

}  // namespace

FunctionLog::FunctionLog(std::string dir, std::string_view function, Bytes limit)
    : path_(std::move(dir)), limit_(limit.count()) {
  path_.append("/").append(function).append(".log");
}

void FunctionLog::append(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= kFlushBytes) flush();
}

bool FunctionLog::open() {
  if (file_) return true;
  file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  struct stat info {};
  if (file_ && ::fstat(file_.get(), &info) == 0) size_ = info.st_size;
  return static_cast<bool>(file_);
}

void FunctionLog::rotate() {
  file_.reset();
  size_ = 0;
  std::rename(path_.c_str(), (path_ + ".1").c_str());
}

void FunctionLog::flush() {
  std::string_view rest = buffer_;
  if (open() && size_ > 0 && size_ + static_cast<std::int64_t>(rest.size()) > limit_) rotate();
  while (!rest.empty() && open()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    size_ += written;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  lost_bytes_ += rest.size();
  buffer_.clear();
}

}  // namespace fairlead
