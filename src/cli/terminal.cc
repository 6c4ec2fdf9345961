#include "cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

namespace fairlead::cli {
namespace {

// The alternate screen, so that what was above is there again; no cursor, no wrapping: a line that is too long is cut and not two.
constexpr std::string_view kBegin = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kEnd = "\x1b[?7h\x1b[?25h\x1b[?1049l";

std::atomic<bool> is_to_end{false};
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

void note_end(int) {
  is_to_end = true;
}
void note_size(int) {}  // interrupts poll(), that is all

void set_handlers(void (*end)(int), void (*size)(int)) {
  struct sigaction action {};
  action.sa_handler = end;
  for (const int signal : kEnding) ::sigaction(signal, &action, nullptr);
  action.sa_handler = size;
  ::sigaction(SIGWINCH, &action, nullptr);
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

bool wants_colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return (no_colour == nullptr || *no_colour == '\0') && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

Result<Terminal> Terminal::open() {
  termios before{};
  if (::isatty(STDOUT_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &before) != 0) {
    return fail(Errc::kInvalidArgument, "stdin or stdout is no terminal");
  }
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);  // signals stay: Ctrl-C ends
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  is_to_end = false;
  set_handlers(note_end, note_size);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_all(kBegin);
  return Terminal(before);
}

Terminal::Terminal(Terminal&& other) noexcept
    : before_(other.before_), is_open_(std::exchange(other.is_open_, false)), unread_(std::move(other.unread_)) {}

Terminal::~Terminal() {
  if (!is_open_) return;
  write_all(kEnd);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  set_handlers(SIG_DFL, SIG_DFL);
}

TerminalSize Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string Terminal::key(std::chrono::milliseconds wait) {
  if (is_to_end) return "end-of-input";
  if (unread_.empty()) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(wait.count())) <= 0) return is_to_end ? "end-of-input" : "";
    char bytes[256];
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return got < 0 && errno == EINTR ? "" : "end-of-input";
    unread_.assign(bytes, static_cast<std::size_t>(got));
  }
  if (unread_[0] == '\x1b') return sequence();
  const char byte = unread_[0];
  unread_.erase(0, 1);
  return byte == '\x7f' || byte == '\b' ? "backspace" : std::string(1, byte);
}

// What an unknown one says is nothing, and not the keys that its bytes would be.
std::string Terminal::sequence() {
  static const std::map<std::string_view, std::string_view> names{
      {"A", "up"},  {"B", "down"},     {"C", "right"},      {"D", "left"},  {"H", "home"},
      {"F", "end"}, {"5~", "page-up"}, {"6~", "page-down"}, {"1~", "home"}, {"4~", "end"}};
  if (unread_.size() < 2 || (unread_[1] != '[' && unread_[1] != 'O')) {
    unread_.erase(0, 1);
    return "\x1b";
  }
  std::size_t end = 2;
  while (end < unread_.size() && (unread_[end] < '@' || unread_[end] > '~')) ++end;
  const std::string body = unread_.substr(2, end - 1);
  unread_.erase(0, end + 1);
  const auto found = names.find(body);
  return found == names.end() ? "" : std::string(found->second);
}

// Home, each line cleared to its end, then what is below: no flicker.
void Terminal::draw(const std::string& frame) {
  std::string out = "\x1b[H";
  std::size_t begin = 0;
  while (begin < frame.size()) {
    const std::size_t end = frame.find('\n', begin);
    if (begin > 0) out += "\n";
    out += frame.substr(begin, end == std::string::npos ? std::string::npos : end - begin) + "\x1b[K";
    begin = end == std::string::npos ? frame.size() : end + 1;
  }
  write_all(out + "\x1b[J");
}

}  // namespace fairlead::cli
