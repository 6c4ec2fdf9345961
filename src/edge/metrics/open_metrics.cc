#include "edge/metrics/open_metrics.h"

#include <algorithm>
#include <charconv>

namespace fairlead {
namespace {

// What stands before `end`, which is taken away with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// In thousandths; what is no weight is a full one, as clients that write nonsense mean something.
int weight_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view one = trimmed(take_until(parameters, ';'));
    if (!one.starts_with("q=")) continue;
    double weight = 1;
    std::from_chars(one.data() + 2, one.data() + one.size(), weight);
    return static_cast<int>(std::clamp(weight, 0.0, 1.0) * 1000);
  }
  return 1000;
}

bool is_known_version(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view one = trimmed(take_until(parameters, ';'));
    if (one.starts_with("version=")) return one == "version=1.0.0" || one == "version=0.0.1";
  }
  return true;
}

void append_help(std::string& out, std::string_view help) {
  for (const char c : help) {
    if (c == '"') out += '\\';
    out += c;
  }
}

// le="10" is le="10.0" here.
void append_sample(std::string& out, std::string_view line) {
  constexpr std::string_view kBound = "le=\"";
  const std::size_t at = line.find(kBound);
  const std::size_t end = at == line.npos ? line.npos : line.find('"', at + kBound.size());
  if (end == line.npos || (line[at - 1] != ',' && line[at - 1] != '{')) {
    out.append(line).append("\n");
    return;
  }
  const std::string_view bound = line.substr(at + kBound.size(), end - at - kBound.size());
  const bool is_whole = !bound.empty() && bound.find_first_not_of("0123456789") == bound.npos;
  out.append(line.substr(0, end)).append(is_whole ? ".0" : "").append(line.substr(end)).append("\n");
}

}  // namespace

bool wants_open_metrics(std::string_view accept) {
  int open = 0, plain = 0;
  while (!accept.empty()) {
    std::string_view one = take_until(accept, ',');
    const std::string_view type = trimmed(take_until(one, ';'));
    if (type == "application/openmetrics-text" && is_known_version(one)) open = std::max(open, weight_of(one));
    if (type == "text/plain" || type == "text/*") plain = std::max(plain, weight_of(one));
  }
  return open > 0 && open >= plain;
}

std::string to_open_metrics(std::string_view text) {
  constexpr std::string_view kHelp = "# HELP ", kType = "# TYPE ", kTotal = "_total";
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  std::string_view help;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.starts_with(kHelp)) {
      help = line.substr(kHelp.size());
    } else if (line.starts_with(kType)) {
      line.remove_prefix(kType.size());
      std::string_view name = take_until(line, ' ');
      (void)take_until(help, ' ');
      const bool is_counter = line == "counter" && name.ends_with(kTotal);
      if (is_counter) name.remove_suffix(kTotal.size());
      out.append(kType).append(name).append(" ");
      out.append(line == "counter" && !is_counter ? "unknown" : line)
          .append("\n")
          .append(kHelp)
          .append(name)
          .append(" ");
      append_help(out, help);
      out += '\n';
    } else {
      append_sample(out, line);
    }
  }
  return out += "# EOF\n";
}

}  // namespace fairlead
