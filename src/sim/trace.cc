#include "sim/trace.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <unordered_map>

#include "base/rng.h"
#include "sim/csv.h"

namespace fairlead::sim {
namespace {

constexpr double kLongest = 1e9;  // seconds; about thirty years

// Functions by name, in order of their first appearance.
class Names {
 public:
  Names(Trace& trace, const std::vector<FunctionModel>& known) : trace_(trace), known_(known) {}

  std::uint32_t index(const std::string& name) {
    const auto [found, is_new] = indices_.try_emplace(name, static_cast<std::uint32_t>(trace_.functions.size()));
    if (is_new) {
      trace_.functions.push_back(model_of(name));
      trace_.functions.back().name = name;
    }
    return found->second;
  }
  bool contains(const std::string& name) const { return indices_.contains(name); }

 private:
  FunctionModel model_of(const std::string& name) const {
    for (const FunctionModel& function : known_) {
      if (function.name == name) return function;
    }
    return known_.empty() ? FunctionModel() : known_.front();
  }

  Trace& trace_;
  const std::vector<FunctionModel>& known_;
  std::unordered_map<std::string, std::uint32_t> indices_;
};

struct Reading {
  const std::string& path;
  const std::vector<FunctionModel>& known;
  std::uint64_t seed;
};

void add(Trace& trace, double at_s, std::uint32_t function, double service_s = -1) {
  trace.events.push_back({static_cast<std::uint64_t>(at_s * 1e6), function, static_cast<float>(service_s)});
}

// In order of time, from 0.
void sort_from_zero(Trace& trace) {
  std::stable_sort(trace.events.begin(), trace.events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.at_us < b.at_us; });
  if (trace.events.empty()) return;
  const std::uint64_t first = trace.events.front().at_us;
  for (TraceEvent& event : trace.events) event.at_us -= first;
}

// Where a trace has run times of invocations, the function's is their mean.
void learn_run_times(Trace& trace) {
  std::vector<std::pair<double, std::uint64_t>> sums(trace.functions.size());
  for (const TraceEvent& event : trace.events) {
    if (event.service_s < 0) continue;
    sums[event.function].first += static_cast<double>(event.service_s);
    ++sums[event.function].second;
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].second == 0) continue;
    trace.functions[i].warm = std::max(Duration(std::chrono::microseconds(1)),
                                       from_seconds(sums[i].first / static_cast<double>(sums[i].second)));
  }
}

Result<Trace> read_csv(const Reading& reading) {
  auto file = CsvFile::open(reading.path);
  if (!file) return fail(file.error());
  Trace trace;
  Names names(trace, reading.known);
  for (bool is_first = true; file->next(); is_first = false) {
    if (is_first && !file->is_number(0)) continue;  // a heading
    const auto at = file->number(0, "at_s", 0, kLongest);
    if (!at) return fail(at.error());
    if (file->size() < 2 || file->text(1).empty()) return file->error("function is missing");
    double service = -1;
    if (file->size() > 2 && !file->text(2).empty()) {
      const auto given = file->number(2, "service_s", 0, kLongest);
      if (!given) return fail(given.error());
      service = *given;
    }
    add(trace, *at, names.index(file->text(1)), service);
  }
  return trace;
}

// ---- azure-2019

std::vector<std::string> files_like(const std::string& folder, const std::string& part) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find(part) != std::string::npos && name.ends_with(".csv")) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status read_azure_counts(const std::string& path, double day_begins, Rng& rng, Names& names, Trace& trace) {
  auto file = CsvFile::open(path);
  if (!file) return fail(file.error());
  constexpr std::size_t kFirstMinute = 4;  // after owner, app, function and trigger
  while (file->next()) {
    if (file->size() > 2 && file->text(2) == "HashFunction") continue;
    if (file->size() <= kFirstMinute) return file->error("owner, app, function, trigger and counts are expected");
    const std::uint32_t function = names.index(file->text(2));
    for (std::size_t column = kFirstMinute; column < file->size(); ++column) {
      const auto count = file->number(column, "count", 0, 1e7);
      if (!count) return fail(count.error());
      const double minute = day_begins + 60.0 * static_cast<double>(column - kFirstMinute);
      for (int i = 0; i < static_cast<int>(*count); ++i) add(trace, minute + 60 * rng.uniform(), function);
    }
  }
  return {};
}

Status read_azure_durations(const std::string& path, Names& names, Trace& trace) {
  auto file = CsvFile::open(path);
  if (!file) return fail(file.error());
  if (!file->next()) return {};
  file->use_as_heading();
  const auto function = file->column("HashFunction"), average = file->column("Average");
  if (!function) return fail(function.error());
  if (!average) return fail(average.error());
  while (file->next()) {
    if (*function >= file->size() || !names.contains(file->text(*function))) continue;
    const auto ms = file->number(*average, "Average", 0, kLongest);
    if (!ms) return fail(ms.error());
    trace.functions[names.index(file->text(*function))].warm =
        std::max(Duration(std::chrono::microseconds(1)), from_seconds(*ms / 1000));
  }
  return {};
}

Result<Trace> read_azure_2019(const Reading& reading) {
  auto counts = files_like(reading.path, "invocations");
  if (counts.empty()) return fail(Errc::kNotFound, "{}: no file named *invocations*.csv", reading.path);
  Trace trace;
  Names names(trace, reading.known);
  Rng rng(reading.seed);
  double day = 0;
  for (const std::string& path : counts) {
    if (Status read = read_azure_counts(path, day, rng, names, trace); !read) return fail(read.error());
    day += 86'400;
  }
  for (const std::string& path : files_like(reading.path, "durations")) {
    if (Status read = read_azure_durations(path, names, trace); !read) return fail(read.error());
  }
  return trace;
}

// ---- the others

Result<Trace> read_azure_2021(const Reading& reading) {
  auto file = CsvFile::open(reading.path);
  if (!file) return fail(file.error());
  Trace trace;
  Names names(trace, reading.known);
  for (bool is_first = true; file->next(); is_first = false) {
    if (is_first && !file->is_number(2)) continue;
    const auto end = file->number(2, "end_timestamp", 0, kLongest), took = file->number(3, "duration", 0, kLongest);
    if (!end) return fail(end.error());
    if (!took) return fail(took.error());
    add(trace, std::max(0.0, *end - *took), names.index(file->text(0) + "/" + file->text(1)), *took);
  }
  return trace;
}

// "2023-11-16 18:17:03.9799600": seconds since some midnight.
Result<double> time_of_day(const CsvFile& file, std::size_t column) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  const std::string text = column < file.size() ? file.text(column) : "";
  if (std::sscanf(text.c_str(), "%d-%d-%d%*[ T]%d:%d:%lf", &year, &month, &day, &hour, &minute, &second) != 6) {
    return file.error(fmt::format("time is \"{}\", it must be YYYY-MM-DD HH:MM:SS", text));
  }
  using namespace std::chrono;
  const year_month_day day_of{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                              std::chrono::day(static_cast<unsigned>(day))};
  const bool is_time = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 61;
  if (!day_of.ok() || year < 1970 || year > 9999 || !is_time) {
    return file.error(fmt::format("time is \"{}\", which no clock shows since 1970", text));
  }
  const sys_days date{day_of};
  return static_cast<double>(date.time_since_epoch().count()) * 86'400 + 3600 * hour + 60 * minute + second;
}

Result<Trace> read_azure_llm(const Reading& reading) {
  constexpr double kPerContextToken = 1e-4, kPerGeneratedToken = 0.02;  // seconds
  auto file = CsvFile::open(reading.path);
  if (!file) return fail(file.error());
  Trace trace;
  Names names(trace, reading.known);
  for (bool is_first = true; file->next(); is_first = false) {
    if (is_first && file->text(0).starts_with("TIMESTAMP")) continue;
    const auto at = time_of_day(*file, 0);
    const auto context = file->number(1, "ContextTokens", 0, 1e7),
               generated = file->number(2, "GeneratedTokens", 0, 1e7);
    for (const auto* field : {&at, &context, &generated}) {
      if (!*field) return fail(field->error());
    }
    add(trace, *at, names.index("llm"), kPerContextToken * *context + kPerGeneratedToken * *generated);
  }
  return trace;
}

// A chunk says: from `t` on, so many per second with such a variation.
Result<Trace> read_servegen(const Reading& reading) {
  const auto files = files_like(reading.path, "trace");
  if (files.empty()) return fail(Errc::kNotFound, "{}: no file named *trace*.csv", reading.path);
  Trace trace;
  Names names(trace, reading.known);
  Rng rng(reading.seed);
  for (const std::string& path : files) {
    auto file = CsvFile::open(path);
    if (!file) return fail(file.error());
    const std::uint32_t function = names.index(std::filesystem::path(path).stem().string());
    std::vector<std::array<double, 3>> chunks;  // begin, rate, cv
    while (file->next()) {
      if (!file->is_number(0)) continue;
      const auto at = file->number(0, "t", 0, kLongest), rate = file->number(1, "rate", 0, 1e6),
                 cv = file->number(2, "cv", 0, 1000);
      for (const auto* field : {&at, &rate, &cv}) {
        if (!*field) return fail(field->error());
      }
      chunks.push_back({*at, *rate, *cv});
    }
    for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
      const auto& [begin, rate, cv] = chunks[i];
      if (rate <= 0) continue;
      OpenLoop chunk({{.function = 0, .rate = rate, .cv = cv}}, {}, rng.next());
      const double length = chunks[i + 1][0] - begin;
      for (auto arrival = chunk.next(); arrival && to_seconds(arrival->at - Instant{}) < length;
           arrival = chunk.next()) {
        add(trace, begin + to_seconds(arrival->at - Instant{}), function);
      }
    }
  }
  return trace;
}

Result<Trace> read_gentd26(const Reading& reading) {
  auto file = CsvFile::open(reading.path);
  if (!file) return fail(file.error());
  Trace trace;
  Names names(trace, reading.known);
  if (!file->next()) return trace;
  file->use_as_heading();
  const auto at_column = file->column("gmt_create"), took_column = file->column("exec_time_seconds"),
             model_column = file->column("checkpoint_model_version_id");
  for (const auto* column : {&at_column, &took_column, &model_column}) {
    if (!*column) return fail(column->error());
  }
  while (file->next()) {
    const auto at = time_of_day(*file, *at_column);
    const auto took = file->number(*took_column, "exec_time_seconds", 0, kLongest);
    if (!at) return fail(at.error());
    if (!took) return fail(took.error());
    const std::string model = *model_column < file->size() ? file->text(*model_column) : "";
    add(trace, *at, names.index(model.empty() ? "no-model" : model), *took);
  }
  return trace;
}

struct Format {
  const char* name;
  Result<Trace> (*read)(const Reading&);
};

constexpr Format kFormats[] = {
    {"csv", read_csv},
    {"azure-2019", read_azure_2019},
    {"azure-2021", read_azure_2021},
    {"azure-llm", read_azure_llm},
    {"servegen", read_servegen},
    {"gentd26", read_gentd26},
};

}  // namespace

std::vector<std::string> trace_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

Result<Trace> read_trace(const std::string& path, const std::string& format, const std::vector<FunctionModel>& known,
                         std::uint64_t seed) {
  for (const Format& form : kFormats) {
    if (format != form.name) continue;
    auto trace = form.read({path, known, seed});
    if (!trace) return trace;
    if (trace->events.empty()) return fail(Errc::kInvalidArgument, "{}: has no invocations", path);
    sort_from_zero(*trace);
    learn_run_times(*trace);
    return trace;
  }
  return fail(Errc::kInvalidArgument, "trace format \"{}\" is unknown; known are {}", format,
              fmt::join(trace_formats(), ", "));
}

std::optional<Arrival> TraceSource::next() {
  if (next_ == trace_->events.size()) return std::nullopt;
  const TraceEvent& event = trace_->events[next_++];
  Arrival arrival{Instant(std::chrono::microseconds(event.at_us)), event.function};
  if (event.service_s >= 0) arrival.service = from_seconds(static_cast<double>(event.service_s));
  return arrival;
}

}  // namespace fairlead::sim
