#include "node/log_tail.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace fairlead {
namespace {

constexpr std::size_t kMostMarkBytes =
    1 << 20;  // of the newest marks: those of a tail are among them, or it is a long one

struct FileTail {
  std::string text;
  std::uintmax_t begin = 0;  // where `text` stands in the file
};

Result<FileTail> file_tail(const std::string& path, std::size_t bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return FileTail{};
  std::ifstream file(path, std::ios::binary);
  std::string text(std::min<std::uintmax_t>(size, bytes), '\0');
  const std::uintmax_t begin = size - text.size();
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(errno_error(EIO, "read " + path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return FileTail{std::move(text), begin};
}

// Of `tail`, which stands at `shift` in the whole. The last mark before it says when it begins.
void add_marks(const std::string& path, const FileTail& tail, std::size_t shift, std::vector<TimedLog::Mark>& marks) {
  const auto times = file_tail(path + ".times", kMostMarkBytes);
  if (!times) return;
  std::istringstream lines(times->text);
  std::string cut;
  if (times->begin > 0) std::getline(lines, cut);
  std::uintmax_t offset = 0;
  std::int64_t ms = 0;
  while (lines >> offset >> ms) {
    if (offset >= tail.begin + tail.text.size()) continue;
    const std::size_t at = shift + static_cast<std::size_t>(offset - std::min(offset, tail.begin));
    if (!marks.empty() && marks.back().at > at) continue;
    if (!marks.empty() && marks.back().at == at) marks.pop_back();
    marks.push_back({at, ms});
  }
}

struct Tails {
  FileTail older, newest;
};

Result<Tails> tails(const std::string& path, std::size_t bytes) {
  auto newest = file_tail(path, bytes);
  if (!newest) return fail(newest.error());
  if (newest->text.size() >= bytes) return Tails{{}, *std::move(newest)};
  auto older = file_tail(path + ".1", bytes - newest->text.size());
  if (!older) return fail(older.error());
  return Tails{*std::move(older), *std::move(newest)};
}

}  // namespace

Result<std::string> log_tail(const std::string& log_dir, const std::string& function, std::size_t bytes) {
  auto read = tails(log_dir + "/" + function + ".log", bytes);
  if (!read) return fail(read.error());
  return std::move(read->older.text) + read->newest.text;
}

Result<TimedLog> timed_log(const std::string& log_dir, const std::string& function, std::size_t bytes) {
  const std::string path = log_dir + "/" + function + ".log";
  auto read = tails(path, bytes);
  if (!read) return fail(read.error());
  TimedLog log;
  if (!read->older.text.empty()) add_marks(path + ".1", read->older, 0, log.marks);
  add_marks(path, read->newest, read->older.text.size(), log.marks);
  log.text = std::move(read->older.text) + read->newest.text;
  return log;
}

}  // namespace fairlead
