#include "cli/top_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cli/display_width.h"
#include "cli/format.h"

namespace fairlead::cli {
namespace {

using nlohmann::json;

constexpr Duration kMinute = std::chrono::minutes(1);
constexpr std::size_t kLeastName = 9, kMostSpark = 16, kLooksKept = 60;

double number(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string text(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
const json& child(const json& object, const char* key) {
  static const json kEmpty = json::object();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && (found->is_object() || found->is_array()) ? *found : kEmpty;
}

std::string short_number(double value) {
  if (value >= 9.995e5) return fmt::format("{:.1f}M", value / 1e6);
  if (value >= 9995) return fmt::format("{:.1f}k", value / 1e3);
  return value >= 99.95 || value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

// In at most seven columns.
std::string short_time(double seconds) {
  if (seconds <= 0) return "-";
  if (seconds < 0.9995) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.00995 ? 1 : 0);
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} m", seconds / 60);
}

// In at most seven columns: "5.0 GiB", "512 MiB".
std::string short_bytes(double bytes) {
  if (bytes <= 0) return "-";
  const std::string whole = format_bytes(bytes);
  return whole.size() <= 7 ? whole : fmt::format("{:.0f}{}", std::stod(whole), whole.substr(whole.find(' ')));
}

std::string bar(double part, std::size_t cells) {
  const auto full = static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(cells)));
  std::string out = "[";
  for (std::size_t i = 0; i < cells; ++i) out += i < full ? "|" : " ";
  return out + "]";
}

constexpr const char* kBold = "1";
constexpr const char* kHead = "7";
constexpr const char* kRed = "31";
constexpr const char* kYellow = "33";
constexpr const char* kGreen = "32";
constexpr const char* kDim = "2";

}  // namespace

std::string sparkline(const std::vector<double>& values, std::size_t cells) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t count = std::min(cells, values.size());
  const double most =
      count == 0 ? 0 : *std::max_element(values.end() - static_cast<std::ptrdiff_t>(count), values.end());
  std::string out;
  for (std::size_t i = values.size() - count; i < values.size(); ++i) {
    const double part = most > 0 ? std::max(0.0, values[i]) / most : 0;
    out += values[i] > 0 ? kBars[static_cast<std::size_t>(std::min(7.0, std::floor(part * 7.999)))] : " ";
  }
  return out;
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  const auto index = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

// One that is left out first stands last in order of `worth`.
struct TopView::Column {
  char key;
  std::string heading;
  std::size_t width;
  int worth;
  double (*value)(const Function&);  // to order by, the largest first
  std::string (*shown)(const Function&);
};

const std::vector<TopView::Column>& TopView::columns() {
  static const std::vector<Column> all{
      {'u', "QUEUE", 6, 10, [](const Function& f) { return f.queued; },
       [](const Function& f) { return short_number(f.queued); }},
      {'r', "RUN", 4, 9, [](const Function& f) { return f.running; },
       [](const Function& f) { return short_number(f.running); }},
      {'w', "WARM", 5, 5, [](const Function& f) { return f.idle; },
       [](const Function& f) { return short_number(f.idle); }},
      {'c', "CALLS/s", 8, 8, [](const Function& f) { return f.rate(&Sample::calls); },
       [](const Function& f) { return short_number(std::round(f.rate(&Sample::calls) * 10) / 10); }},
      {'m', "P50", 7, 6, [](const Function& f) { return quantile(f.latencies, 0.5); },
       [](const Function& f) { return short_time(quantile(f.latencies, 0.5)); }},
      {'l', "P99", 7, 7, [](const Function& f) { return quantile(f.latencies, 0.99); },
       [](const Function& f) { return short_time(quantile(f.latencies, 0.99)); }},
      {'e', "ERR", 4, 4, [](const Function& f) { return f.rate(&Sample::errors); },
       [](const Function& f) {
         const double calls = f.rate(&Sample::calls);
         return calls > 0 ? format_percent(f.rate(&Sample::errors) / calls) : "-";
       }},
      {'g', "GPU", 5, 3, [](const Function& f) { return f.rate(&Sample::gpu_seconds); },
       [](const Function& f) { return format_percent(f.rate(&Sample::gpu_seconds)); }},
      {'b', "ON GPU", 7, 2, [](const Function& f) { return f.resident; },
       [](const Function& f) { return short_bytes(f.resident); }},
      {'h', "ON HOST", 8, 1, [](const Function& f) { return f.away; },
       [](const Function& f) { return short_bytes(f.away); }}};
  return all;
}

double TopView::Function::rate(double Sample::*what) const {
  if (samples.size() < 2) return 0;
  const double seconds = to_seconds(samples.back().at - samples.front().at);
  return seconds > 0 ? (samples.back().*what - samples.front().*what) / seconds : 0;
}

// ---- what is observed

void TopView::observe(Instant now, const json& status, const json& recent, std::int64_t wall_ms) {
  failure_.clear();
  answered_ = now;
  status_ = status;
  std::set<std::string> there;
  for (const json& function : child(status, "functions")) {
    there.insert(text(function, "name"));
    observe_function(now, function);
  }
  std::erase_if(functions_, [&](const auto& known) { return !there.contains(known.first); });
  for (const json& gpu : child(status, "gpus")) {
    std::deque<double>& looks = utilisation_[static_cast<std::uint64_t>(std::max(0.0, number(gpu, "id")))];
    looks.push_back(number(gpu, "utilisation"));
    if (looks.size() > kLooksKept) looks.pop_front();
  }
  observe_calls(recent, wall_ms);
}

// Counters that fell are those of a node that was started again, or of another function of this name.
void TopView::observe_function(Instant now, const json& of) {
  Function& function = functions_[text(of, "name")];
  const json& stats = child(of, "stats");
  const json& instances = child(of, "instances");
  const json& memory = child(of, "memory");
  const Sample sample{now, number(stats, "invocations"), number(stats, "errors"), number(stats, "service_seconds")};
  std::deque<Sample>& samples = function.samples;
  if (!samples.empty() && sample.calls < samples.back().calls) samples.clear();
  if (!samples.empty()) {
    const double seconds = to_seconds(now - samples.back().at);
    function.calls_per_look.push_back(seconds > 0 ? (sample.calls - samples.back().calls) / seconds : 0);
    if (function.calls_per_look.size() > kLooksKept) function.calls_per_look.pop_front();
  }
  samples.push_back(sample);
  while (samples.size() > 2 && samples[1].at <= now - kMinute) samples.pop_front();
  function.name = text(of, "name");
  function.state = text(of, "state");
  function.tenant = text(of, "tenant");
  function.queued = number(of, "queued");
  function.running = number(of, "in_flight");
  function.idle = number(instances, "idle");
  function.starting = number(instances, "starting");
  function.resident = number(memory, "resident_bytes");
  function.away = number(memory, "away_bytes");
}

void TopView::observe_calls(const json& recent, std::int64_t wall_ms) {
  knows_calls_ = recent.is_object() && recent.contains("calls");
  calls_seen_ = 0;
  for (auto& [name, function] : functions_) function.latencies.clear();
  for (const json& call : child(recent, "calls")) {
    const double took = number(call, "queue_s") + number(call, "start_s") + number(call, "run_s");
    const double ended_ms = number(call, "at_ms") + took * 1e3;
    if (ended_ms < static_cast<double>(wall_ms) - 60e3) continue;
    const auto function = functions_.find(text(call, "function"));
    if (function == functions_.end()) continue;
    function->second.latencies.push_back(took);
    ++calls_seen_;
  }
}

void TopView::failed(Instant, std::string why) {
  failure_ = std::move(why);
}

// ---- keys

bool TopView::press(const std::string& key) {
  if (key == "end-of-input" || key == "\x03") return false;
  if (chosen_.reads_filter) return press_in_filter(key);
  if (chosen_.helps) {
    chosen_.helps = false;
    return key != "q";
  }
  if (key == "q" || key == "Q") return false;
  if (key == "?") chosen_.helps = true;
  if (key == " ") chosen_.paused = !chosen_.paused;
  if (key == "/") chosen_.reads_filter = true;
  if (key == "\x1b") chosen_.filter.clear(), chosen_.first = 0;
  if (key == "R") chosen_.reversed = !chosen_.reversed;
  if (key == "up" && chosen_.first > 0) --chosen_.first;
  if (key == "down" && chosen_.first + page_ < count_) ++chosen_.first;
  if (key == "page-up") chosen_.first -= std::min(chosen_.first, page_);
  if (key == "page-down" && chosen_.first + page_ < count_)
    chosen_.first = std::min(chosen_.first + page_, count_ - page_);
  if (key == "home") chosen_.first = 0;
  if (key == "end") chosen_.first = count_ - std::min(count_, page_);
  if (key.size() == 1) choose_order(key[0]);
  return true;
}

bool TopView::press_in_filter(const std::string& key) {
  constexpr std::size_t kLongest = 64;
  if (key == "\r" || key == "\n") chosen_.reads_filter = false;
  if (key == "\x1b") chosen_.reads_filter = false, chosen_.filter.clear();
  if (key == "backspace" && !chosen_.filter.empty()) chosen_.filter.pop_back();
  if (key.size() == 1 && static_cast<unsigned char>(key[0]) >= 0x20 && chosen_.filter.size() < kLongest)
    chosen_.filter += key;
  chosen_.first = 0;
  return true;
}

// The key of a column orders by it, and the same key again the other way round; < and > go to the next.
void TopView::choose_order(char key) {
  const std::vector<Column>& all = columns();
  const auto now = std::find_if(all.begin(), all.end(), [&](const Column& one) { return one.key == chosen_.order; });
  if (key == '>' || key == '<') {
    const auto count = static_cast<std::ptrdiff_t>(all.size());
    const std::ptrdiff_t at = now == all.end() ? 0 : now - all.begin();
    chosen_.order = all[static_cast<std::size_t>((at + (key == '>' ? 1 : count - 1)) % count)].key;
    chosen_.reversed = false;
    return;
  }
  const bool is_one =
      key == 'n' || std::any_of(all.begin(), all.end(), [&](const Column& one) { return one.key == key; });
  if (!is_one) return;
  chosen_.reversed = key == chosen_.order && !chosen_.reversed;
  chosen_.order = key;
}

// ---- what is shown

std::string TopView::painted(std::string_view code, const std::string& text) const {
  return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::vector<const TopView::Function*> TopView::rows() const {
  std::vector<const Function*> all;
  for (const auto& [name, function] : functions_) {
    const bool is_shown =
        chosen_.filter.empty() || name.find(chosen_.filter) != std::string::npos || function.tenant == chosen_.filter;
    if (is_shown) all.push_back(&function);
  }
  const std::vector<Column>& known = columns();
  const auto column =
      std::find_if(known.begin(), known.end(), [&](const Column& one) { return one.key == chosen_.order; });
  if (column != known.end()) {
    std::map<const Function*, double> values;
    for (const Function* function : all) values[function] = column->value(*function);
    std::stable_sort(all.begin(), all.end(),
                     [&](const Function* a, const Function* b) { return values[a] > values[b]; });
  }
  if (chosen_.reversed) std::reverse(all.begin(), all.end());
  return all;
}

std::string TopView::heading(Instant now, std::size_t columns) const {
  double calls = 0, errors = 0;
  for (const auto& [name, function] : functions_) {
    calls += function.rate(&Sample::calls);
    errors += function.rate(&Sample::errors);
  }
  if (!failure_.empty()) {
    const std::string since =
        answered_ == Instant() ? "" : fmt::format(" for {}", format_seconds(std::round(to_seconds(now - answered_))));
    return painted(kRed, fit_to(fmt::format("NO ANSWER{}, still asking: {}", since, failure_), columns)) + "\n";
  }
  const double running = [&] {
    double sum = 0;
    for (const auto& [name, function] : functions_) sum += function.running;
    return sum;
  }();
  std::string line = fmt::format("fairlead {}  {}  up {}  queued {}  running {}  {}/s", text(status_, "version"),
                                 text(status_, "policy"), format_seconds(number(status_, "uptime_seconds")),
                                 short_number(number(status_, "queued")), short_number(running),
                                 short_number(std::round(calls * 10) / 10));
  if (errors > 0) line += fmt::format("  errors {}/s", short_number(std::max(0.1, std::round(errors * 10) / 10)));
  if (const auto draining = status_.find("draining"); draining != status_.end() && *draining == true)
    line += "  DRAINING";
  if (chosen_.paused) line += "  PAUSED";
  return painted(kBold, cut_to(line, columns)) + "\n";
}

std::vector<std::string> TopView::gpu_lines(std::size_t columns, std::size_t most) const {
  std::vector<std::string> lines;
  const json& gpus = child(status_, "gpus");
  for (const json& gpu : gpus) {
    if (lines.size() == most) break;
    if (lines.size() + 1 == most && gpus.size() > most) {
      lines.push_back(cut_to(fmt::format("... {} more GPUs: fairlead status", gpus.size() - lines.size()), columns));
      break;
    }
    const auto id = static_cast<std::uint64_t>(std::max(0.0, number(gpu, "id")));
    const auto looks = utilisation_.find(id);
    std::vector<double> values{1.0};  // so that a full cell is all of the GPU
    if (looks != utilisation_.end()) values.insert(values.end(), looks->second.begin(), looks->second.end());
    const std::string state = text(gpu, "state");
    std::string line =
        fmt::format("GPU {} {} {:>4}  {} of {}  slots {:.0f}/{:.0f}  {} instances", id,
                    bar(number(gpu, "utilisation"), columns < 60 ? 6 : 12), format_percent(number(gpu, "utilisation")),
                    short_bytes(number(gpu, "memory_used_bytes")), short_bytes(number(gpu, "memory_total_bytes")),
                    number(gpu, "slots_in_use"), number(gpu, "slots"), number(gpu, "instances"));
    if (!state.empty() && state != "serving") line += "  " + state + ": " + text(gpu, "reason");
    const std::size_t left = columns - std::min(columns, display_width(line) + 2);
    if (left >= 8) {
      // The scale is that of the whole GPU: the first value, which is not shown.
      values.erase(values.begin() + 1,
                   values.end() - static_cast<std::ptrdiff_t>(std::min({left - 1, kMostSpark, values.size() - 1})));
      std::string spark = sparkline(values, values.size());
      line += "  " + spark.substr(std::string("█").size());
    }
    lines.push_back(painted(state.empty() || state == "serving" ? kGreen : kRed, cut_to(line, columns)));
  }
  return lines;
}

std::string TopView::row(const Function& function, const std::vector<const Column*>& shown, std::size_t name_columns,
                         std::size_t spark) const {
  std::string line = fit_to(function.name, name_columns);
  for (const Column* column : shown) line += " " + fit_to(column->shown(function), column->width, true);
  if (spark > 0) {
    line += " " + sparkline({function.calls_per_look.begin(), function.calls_per_look.end()}, spark);
  }
  const bool fails = function.rate(&Sample::errors) > 0;
  const bool rests = function.queued + function.running == 0 && function.rate(&Sample::calls) == 0;
  return fails                 ? painted(kRed, line)
         : function.queued > 0 ? painted(kYellow, line)
         : rests               ? painted(kDim, line)
                               : line;
}

std::vector<std::string> TopView::help_lines() const {
  std::vector<std::string> lines{"Keys of fairlead top; any key goes back", "",
                                 "  n  by name                         R  the other way round",
                                 "  <, >  by the column before, after"};
  for (const Column& column : columns()) lines.push_back(fmt::format("  {}  by {}", column.key, column.heading));
  for (const char* line : {"  /  only names with a text in them, or of a tenant; Esc: all again",
                           "  space  stop and go on", "  arrows, page up, page down, home, end  other rows", "  q  end",
                           "", "CALLS/s, ERR, GPU (of one GPU's time) and the bars: the last minute. P50 and P99: from",
                           "arrival to answer, of the newest 1,000 calls of the last minute. WARM: idle instances."}) {
    lines.emplace_back(line);
  }
  return lines;
}

std::string TopView::frame(Instant now, TerminalSize size) const {
  const std::size_t width = std::max<std::size_t>(size.columns, 1), height = std::max<std::size_t>(size.lines, 1);
  std::vector<std::string> lines;
  if (chosen_.helps) {
    for (const std::string& line : help_lines()) lines.push_back(cut_to(line, width));
  } else {
    std::string first = heading(now, width);
    first.pop_back();
    lines.push_back(std::move(first));
    for (std::string& line : gpu_lines(width, std::max<std::size_t>(1, height / 4))) lines.push_back(std::move(line));

    std::vector<const Column*> shown;
    for (const Column& column : columns()) shown.push_back(&column);
    const auto taken = [&] {
      std::size_t sum = 0;
      for (const Column* column : shown) sum += column->width + 1;
      return sum;
    };
    const auto all = rows();
    std::size_t longest = kLeastName;
    for (const Function* function : all) longest = std::max(longest, display_width(function->name));
    const std::size_t wanted_name = std::min<std::size_t>(longest, std::max(kLeastName, width / 4));
    while (!shown.empty() && taken() + wanted_name > width) {
      shown.erase(std::min_element(shown.begin(), shown.end(), [](auto* a, auto* b) { return a->worth < b->worth; }));
    }
    const std::size_t rest = width - std::min(width, taken());
    const std::size_t name = std::min(rest, longest);
    const std::size_t spark = rest > name + 4 ? std::min(rest - name - 1, kMostSpark) : 0;
    std::string head = fit_to(chosen_.order == 'n' ? "FUNCTION*" : "FUNCTION", name);
    for (const Column* column : shown)
      head += " " + fit_to(column->heading + (column->key == chosen_.order ? "*" : ""), column->width, true);
    lines.push_back(painted(kHead, fit_to(head, width)));

    const std::size_t footer = 1;
    page_ = height > lines.size() + footer ? height - lines.size() - footer : 1;
    count_ = all.size();
    const std::size_t first_row = std::min(chosen_.first, count_ - std::min(count_, page_));
    for (std::size_t i = first_row; i < all.size() && i < first_row + page_; ++i)
      lines.push_back(row(*all[i], shown, name, spark));
    if (all.empty())
      lines.push_back(cut_to(
          chosen_.filter.empty() ? "no functions" : "no function has '" + chosen_.filter + "' in its name", width));
    lines.resize(std::max<std::size_t>(lines.size(), height - std::min(height, footer)));
    std::string last = chosen_.reads_filter ? "/" + chosen_.filter + "_" : "?: keys  q: end";
    if (!chosen_.reads_filter) {
      if (!chosen_.filter.empty()) last += "  filter: " + chosen_.filter;
      if (count_ > page_)
        last += fmt::format("  {}-{} of {}", first_row + 1, std::min(count_, first_row + page_), count_);
      if (!knows_calls_ && failure_.empty()) last += "  (no percentiles: the node lists no calls)";
    }
    lines.push_back(painted(kDim, cut_to(last, width)));
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size() && i < height; ++i) out += lines[i] + "\n";
  return out;
}

}  // namespace fairlead::cli
