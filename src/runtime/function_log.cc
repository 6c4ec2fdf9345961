#include "runtime/function_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <utility>

namespace fairlead {
namespace {

constexpr std::size_t kFlushBytes = 64 << 10;
constexpr const char* kTimes = ".times";

}  // namespace

FunctionLog::FunctionLog(std::string dir, std::string_view function, Bytes limit,
                         std::function<std::int64_t()> wall_clock)
    : path_(std::move(dir)), limit_(limit.count()), wall_clock_(std::move(wall_clock)) {
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
  mark_.reset();
  std::rename(path_.c_str(), (path_ + ".1").c_str());
  std::rename((path_ + kTimes).c_str(), (path_ + ".1" + kTimes).c_str());
}

// Where it cannot be written, times of lines are not known, and the lines are.
void FunctionLog::mark_time() {
  const std::int64_t now = wall_clock_();
  const bool is_due = !mark_ || now - mark_->ms >= kMarkAtLeastEveryMs ||
                      (now - mark_->ms >= kMarkEveryMs && size_ - mark_->at >= kMarkBytes);
  if (!is_due) return;
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | (size_ == 0 ? O_TRUNC : O_APPEND);  // of a log that was removed, too
  const UniqueFd times(::open((path_ + kTimes).c_str(), flags, 0644));
  const std::string line = fmt::format("{} {}\n", size_, now);
  if (times && ::write(times.get(), line.data(), line.size()) == std::ssize(line)) mark_ = Mark{size_, now};
}

void FunctionLog::flush() {
  std::string_view rest = buffer_;
  if (open() && size_ > 0 && size_ + static_cast<std::int64_t>(rest.size()) > limit_) rotate();
  if (!rest.empty() && open()) mark_time();
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
