#include "cli/author.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/command.h"
#include "base/digest.h"
#include "base/unique_fd.h"
#include "cli/places.h"

namespace fairlead::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMostAnswerBytes = 1 << 20;
// As `-m fairlead.author`, but that a json.py in the current folder is not taken for Python's. `-P` is only there from 3.11 on.
constexpr const char* kStart =
    "import sys; sys.path[:] = [place for place in sys.path if place]; import runpy; "
    "runpy.run_module('fairlead.author', run_name='__main__', alter_sys=True)";

// FILE.py and NAME of "FILE.py:NAME".
std::pair<std::string, std::string> split_handler(const std::string& what) {
  std::error_code error;
  const std::size_t colon = what.rfind(':');
  if (colon == std::string::npos || fs::exists(what, error)) return {what, ""};
  return {what.substr(0, colon), what.substr(colon + 1)};
}

// python3 and where the package is, if this installation has it; else whatever that python3 has.
Result<std::string> prepare_python() {
  std::string python = find_program("python3");
  if (python.empty()) {
    return fail(Errc::kNotFound, "functions in Python need python3 on this machine: apt-get install python3");
  }
  if (const std::string package = python_package_dir(); !package.empty()) {
    const char* before = std::getenv("PYTHONPATH");
    const std::string rest = before == nullptr ? "" : before;  // an empty name would be the current folder
    ::setenv("PYTHONPATH", (package + (rest.empty() ? "" : ":" + rest)).c_str(), 1);
  }
  return python;
}

std::vector<char*> as_argv(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

std::string read_answer(const UniqueFd& from) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t size = ::read(from.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    if (text.size() < kMostAnswerBytes) text.append(buffer, static_cast<std::size_t>(size));
  }
}

// Its standard output; standard error is ours, so that somebody who waits for pip sees why. The program is ended by what ends this one:
// Ctrl-C reaches both.
Result<std::string> run_author(std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_error(errno, "make a pipe"));
  UniqueFd reader(ends[0]), writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const std::vector<char*> argv = as_argv(words);
  const int spawned = ::posix_spawn(&pid, words.front().c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return fail(errno_error(spawned, "run " + words.front()));
  writer.reset();
  std::string answer = read_answer(reader);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return answer;
  return fail(Errc::kInvalidArgument, "nothing was deployed");
}

}  // namespace

bool is_python_function(const std::string& what) {
  std::error_code error;
  const std::string path = split_handler(what).first;
  if (!fs::is_directory(path, error)) return path.ends_with(".py");
  for (const char* runnable : {"/bootstrap", "/task.json", "/pipeline.json"}) {
    if (fs::exists(path + runnable, error)) return false;
  }
  return fs::is_regular_file(path + "/handler.py", error);
}

Result<BuiltFunction> BuiltFunction::build(const std::string& what, const std::string& name) {
  const Result<std::string> python = prepare_python();
  if (!python) return fail(python.error());
  std::vector<std::string> words{*python, "-c", kStart, "build"};
  if (!name.empty()) words.insert(words.end(), {"--name", name});
  words.insert(words.end(), {"--", what});
  const Result<std::string> answer = run_author(std::move(words));
  if (!answer) return fail(answer.error());
  const Json said = Json::parse(*answer, nullptr, false);
  if (!said.is_object()) return fail(Errc::kInternal, "{} -m fairlead.author answered '{}'", *python, *answer);
  BuiltFunction built;
  built.name_ = said.value("name", "");
  built.folder_ = said.value("folder", "");
  built.tags_ = said.value("tags", Json::object());
  built.configuration_ = said.value("configuration", Json::object());
  return built;
}

namespace {

// Those that were placed, by when.
std::vector<std::pair<std::int64_t, fs::path>> placed(const fs::path& cache, const std::string& prefix) {
  std::error_code error;
  std::vector<std::pair<std::int64_t, fs::path>> all;
  for (const auto& entry : fs::directory_iterator(cache, error)) {
    const std::string name = entry.path().filename().string();
    std::int64_t at = 0;
    const bool is_one = name.starts_with(prefix) &&
                        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), at).ec == std::errc();
    if (is_one) all.emplace_back(at, entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

Status BuiltFunction::keep_for(const std::string& node) {
  const fs::path cache = fs::path(folder_).parent_path();
  prefix_ = fmt::format("placed-{}-{}-", name_, to_hex(as_text(sha256(node))).substr(0, 12));
  const auto before = placed(cache, prefix_);
  const std::int64_t now = std::max(wall_clock_ms(), before.empty() ? 0 : before.back().first + 1);
  const fs::path place = cache / (prefix_ + std::to_string(now));
  std::error_code error;
  fs::rename(folder_, place, error);
  if (error) return fail(errno_error(error.value(), "rename " + folder_));
  folder_ = place.string();
  return {};
}

void BuiltFunction::remove_older() const {
  const auto all = placed(fs::path(folder_).parent_path(), prefix_);
  std::error_code ignored;
  for (std::size_t i = 0; i + 2 < all.size(); ++i) fs::remove_all(all[i].second, ignored);
}

BuiltFunction::BuiltFunction(BuiltFunction&& other) noexcept
    : name_(std::move(other.name_)),
      folder_(std::exchange(other.folder_, "")),
      prefix_(std::move(other.prefix_)),
      tags_(std::move(other.tags_)),
      configuration_(std::move(other.configuration_)) {}

BuiltFunction::~BuiltFunction() {
  std::error_code ignored;
  if (!folder_.empty() && prefix_.empty()) fs::remove_all(folder_, ignored);
}

Result<int> become_author(const std::vector<std::string>& arguments, const std::string& endpoint) {
  const Result<std::string> python = prepare_python();
  if (!python) return fail(python.error());
  std::error_code error;
  ::setenv("FAIRLEAD_PROGRAM", fs::read_symlink("/proc/self/exe", error).c_str(), 1);
  if (!endpoint.empty()) ::setenv("FAIRLEAD_ENDPOINT", endpoint.c_str(), 1);
  std::vector<std::string> words{*python, "-c", kStart};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ::execv(python->c_str(), as_argv(words).data());
  return fail(errno_error(errno, "run " + *python));
}

}  // namespace fairlead::cli
