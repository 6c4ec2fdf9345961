#include "cli/usage.h"

#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <ostream>
#include <utility>

#include "base/clock.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

using enum Table::Align;

constexpr const char* kPath = "/fairlead/v1/usage";

struct Options {
  std::string tenant, from, to;
  bool is_csv = false, by_hour = false;
};

// "12h" and "30d" are that long ago; everything else is for the node to read.
std::string time_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_ago = error == std::errc() && end == text.data() + text.size() - 1 && number >= 0 &&
                      number <= 100'000 && (*end == 'h' || *end == 'd');
  if (!is_ago) return text;
  const std::chrono::hours ago(*end == 'h' ? number : number * 24);
  const std::chrono::sys_time<std::chrono::milliseconds> now{std::chrono::milliseconds(wall_clock_ms())};
  const auto then = std::chrono::floor<std::chrono::hours>(now - ago);
  const auto day = std::chrono::floor<std::chrono::days>(then);
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), (then - day).count());
}

std::string query_of(const Options& options) {
  std::string query;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query += fmt::format("{}{}={}", query.empty() ? "?" : "&", name, net::percent_encode(value));
  };
  add("tenant", options.tenant);
  add("from", time_of(options.from));
  add("to", time_of(options.to));
  return query;
}

// All pages.
Result<Json> rows_of(Cli& cli, const Options& options) {
  const std::string query = query_of(options);
  Json rows = Json::array();
  for (std::string after;;) {
    std::string path = kPath + query;
    if (!after.empty()) path += (query.empty() ? "?after=" : "&after=") + net::percent_encode(after);
    const Result<Json> page = cli.node().call("GET", path);
    if (!page) return fail(page.error());
    for (const Json& row : page->value("usage", Json::array())) rows.push_back(row);
    after = page->value("next", "");
    if (after.empty()) return rows;
  }
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out += '"';
}

void print_csv(std::ostream& out, const Json& rows) {
  out << "hour,tenant,function,calls,errors,gpu_seconds,gb_seconds\n";
  for (const Json& row : rows) {
    out << fmt::format("{},{},{},{},{},{:.9f},{:.6f}\n", row.value("hour", ""), csv_field(row.value("tenant", "")),
                       csv_field(row.value("function", "")), row.value("calls", std::uint64_t{0}),
                       row.value("errors", std::uint64_t{0}), row.value("gpu_seconds", 0.0),
                       row.value("gb_seconds", 0.0));
  }
}

struct Sum {
  std::uint64_t calls = 0, errors = 0;
  double gpu_seconds = 0, gb_seconds = 0;
};

std::string text_of(const Json& rows, bool by_hour) {
  using Key = std::pair<std::string, std::pair<std::string, std::string>>;  // hour or "", tenant, function
  std::map<Key, Sum> sums;
  for (const Json& row : rows) {
    Sum& sum = sums[{by_hour ? row.value("hour", "") : "", {row.value("tenant", ""), row.value("function", "")}}];
    sum.calls += row.value("calls", std::uint64_t{0});
    sum.errors += row.value("errors", std::uint64_t{0});
    sum.gpu_seconds += row.value("gpu_seconds", 0.0);
    sum.gb_seconds += row.value("gb_seconds", 0.0);
  }
  std::vector<Table::Column> columns{
      {"TENANT"}, {"FUNCTION"}, {"CALLS", kRight}, {"ERRORS", kRight}, {"GPU SECONDS", kRight}, {"GB SECONDS", kRight}};
  if (by_hour) columns.insert(columns.begin(), {"HOUR"});
  Table table(columns);
  for (const auto& [key, sum] : sums) {
    std::vector<std::string> cells{key.second.first,
                                   key.second.second,
                                   std::to_string(sum.calls),
                                   std::to_string(sum.errors),
                                   fmt::format("{:.3f}", sum.gpu_seconds),
                                   fmt::format("{:.3f}", sum.gb_seconds)};
    if (by_hour) cells.insert(cells.begin(), key.first);
    table.add_row(cells);
  }
  return table.text();
}

int run_usage(Cli& cli, const Options& options) {
  const Result<Json> rows = rows_of(cli, options);
  if (!rows) return cli.report(rows.error());
  if (options.is_csv) {
    print_csv(cli.out(), *rows);
  } else if (cli.json()) {
    cli.out() << Json{{"usage", *rows}}.dump(2) << "\n";
  } else if (rows->empty()) {
    cli.out() << "nothing was used\n";
  } else {
    cli.out() << text_of(*rows, options.by_hour);
  }
  return kOk;
}

}  // namespace

void add_usage(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command("usage", "What tenants used: GPU seconds, device memory, calls",
                                      [&cli, options] { return run_usage(cli, *options); });
  command.add_option("--tenant", options->tenant, "Only this one's");
  command.add_option("--from", options->from, "From this hour on: 2026-11-26, 2026-11-26T14 (UTC), 12h or 30d ago");
  command.add_option("--to", options->to, "Up to this hour, which is out: likewise");
  command.add_flag("--by-hour", options->by_hour, "A line for each hour, not one for all");
  command.add_flag("--csv", options->is_csv, "As CSV, a line for each hour");
}

}  // namespace fairlead::cli
