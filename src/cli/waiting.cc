#include "cli/waiting.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/display_width.h"

namespace fairlead::cli {
namespace {

constexpr std::size_t kMostColumns = 60;

void write_line(const std::string& text) {
  const std::string line = "\r" + text + "\x1b[K";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Waiting::Waiting(Cli& cli, std::string what) : what_(std::move(what)) {
  if (cli.out_is_terminal() && !cli.json() && ::isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { tell(); });
}

Waiting::~Waiting() {
  is_over_ = true;
  if (thread_.joinable()) thread_.join();
}

void Waiting::tell() const {
  const Instant began = monotonic_now();
  int told = 0;
  while (!is_over_) {
    const int seconds = static_cast<int>(to_seconds(monotonic_now() - began));
    if (seconds > told) write_line(fmt::format("{} {} s", cut_to(what_, kMostColumns), told = seconds));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (told > 0) write_line("");
}

std::string progress_bar(double done) {
  constexpr int kCells = 16;
  const int full = static_cast<int>(std::lround(std::clamp(done, 0.0, 1.0) * kCells));
  return fmt::format("[{}{}] {:3.0f} %", std::string(static_cast<std::size_t>(full), '='),
                     std::string(static_cast<std::size_t>(kCells - full), ' '), 100 * std::clamp(done, 0.0, 1.0));
}

}  // namespace fairlead::cli
