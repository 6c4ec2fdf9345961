#include "store/segmented_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <vector>

namespace fairlead::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".csv";
constexpr std::size_t kLongestLine = 4096;

Error io_error(const std::string& what, const std::string& path) {
  return errno_error(errno, what + " " + path);
}

Result<std::string> read_at(const std::string& path, std::uint64_t begin, std::size_t bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(io_error("open", path));
  std::string text(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::pread(file.get(), text.data() + got, bytes - got, static_cast<off_t>(begin + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(io_error("read", path));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

}  // namespace

Result<SegmentedLog> SegmentedLog::open(std::string folder, std::uint64_t limit) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(errno_error(error.value(), "create " + folder));
  SegmentedLog log(std::move(folder), limit);
  if (Status found = log.find_segments(); !found) return fail(found.error());
  if (Status cut = log.cut_torn_line(); !cut) return fail(cut.error());
  return log;
}

Status SegmentedLog::find_segments() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t offset = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), offset);
    const bool is_ours = wrong == std::errc() && std::string_view(end) == kExtension;
    if (is_ours && entry.is_regular_file(error)) segments_[offset] = entry.file_size(error);
  }
  if (error) return fail(errno_error(error.value(), "read folder " + folder_));
  return {};
}

Status SegmentedLog::cut_torn_line() {
  if (segments_.empty()) return {};
  auto& [offset, bytes] = *segments_.rbegin();
  const std::uint64_t begin = bytes - std::min<std::uint64_t>(bytes, kLongestLine);
  const auto tail = read_at(path_of(offset), begin, static_cast<std::size_t>(bytes - begin));
  if (!tail) return fail(tail.error());
  const std::size_t end = tail->rfind('\n');
  const std::uint64_t whole = end == std::string::npos ? begin : begin + end + 1;
  if (whole == bytes) return {};
  if (::truncate(path_of(offset).c_str(), static_cast<off_t>(whole)) != 0) {
    return fail(io_error("truncate", path_of(offset)));
  }
  bytes = whole;
  return {};
}

Status SegmentedLog::append(std::string_view lines) {
  if (segments_.empty() || is_full(lines.size())) {
    if (Status begun = begin_segment(); !begun) return begun;
  }
  const std::uint64_t offset = segments_.rbegin()->first;
  if (!last_) last_.reset(::open(path_of(offset).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!last_) return fail(io_error("open", path_of(offset)));
  while (!lines.empty()) {
    const ssize_t n = ::write(last_.get(), lines.data(), lines.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const Error error = io_error("write", path_of(offset));
      last_.reset();
      if (Status cut = cut_torn_line(); !cut) return cut;
      return fail(error);
    }
    segments_.rbegin()->second += static_cast<std::uint64_t>(n);
    lines.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

bool SegmentedLog::is_full(std::size_t for_bytes) const {
  const std::uint64_t bytes = segments_.rbegin()->second;
  return bytes > 0 && bytes + for_bytes > segment_limit_;
}

Status SegmentedLog::begin_segment() {
  last_.reset();
  segments_.emplace(end(), 0);
  while (segments_.size() > kSegments) {
    const std::string oldest = path_of(segments_.begin()->first);
    if (::unlink(oldest.c_str()) != 0 && errno != ENOENT) return fail(io_error("remove", oldest));
    segments_.erase(segments_.begin());
  }
  return {};
}

Result<SegmentedLog::Page> SegmentedLog::read(std::uint64_t from, std::size_t most) const {
  if (segments_.empty() || from >= end()) return Page{{}, std::max(from, end())};
  from = std::max(from, segments_.begin()->first);
  auto segment = std::prev(segments_.upper_bound(from));
  if (from >= segment->first + segment->second) from = (++segment)->first;
  const std::uint64_t left = segment->first + segment->second - from;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(left, std::max(most, kLongestLine)));
  auto text = read_at(path_of(segment->first), from - segment->first, bytes);
  if (!text) return fail(text.error());
  const std::size_t last_end = text->rfind('\n');
  if (last_end == std::string::npos) {
    return fail(Errc::kCorrupt, "{} has no end of line from byte {} on", path_of(segment->first),
                from - segment->first);
  }
  text->resize(last_end + 1);
  const std::uint64_t next = from + text->size();
  return Page{*std::move(text), next};
}

std::string SegmentedLog::path_of(std::uint64_t offset) const {
  return fmt::format("{}/{:020}{}", folder_, offset, kExtension);
}

}  // namespace fairlead::store
