#include "edge/native/usage.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include "base/base64.h"
#include "edge/error_document.h"
#include "edge/json_body.h"
#include "edge/query.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr std::size_t kMostRows = 10'000;  // of a page

std::string hour_text(std::int64_t hour) {
  const std::chrono::sys_days day{std::chrono::days(hour / 24)};
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:00:00Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), hour % 24);
}

Result<int> digits(std::string_view text, std::size_t at, std::size_t count, int least, int most) {
  return number_in("it", text.substr(std::min(at, text.size()), count), least, most);
}

// "2026-11-26", "2026-11-26T14", "2026-11-26T14:05:00Z": the hour it lies in, in UTC.
Result<std::int64_t> hour_of(std::string_view name, std::string_view text) {
  const auto wrong = [&] {
    return fail(Errc::kInvalidArgument,
                "{} is '{}'; it must be a day or an hour of UTC: 2026-11-26, 2026-11-26T14 or "
                "2026-11-26T14:00:00Z",
                name, text.substr(0, 64));
  };
  const bool has_hour = text.size() > 10;
  if (text.size() < 10 || text.size() > 20 || text[4] != '-' || text[7] != '-' || (has_hour && text[10] != 'T'))
    return wrong();
  if (has_hour && text.size() < 13) return wrong();
  if (has_hour && text.substr(13).find_first_not_of("0123456789:Z") != text.npos) return wrong();
  const auto year = digits(text, 0, 4, 1970, 9999), month = digits(text, 5, 2, 1, 12), day = digits(text, 8, 2, 1, 31);
  const auto hour = has_hour ? digits(text, 11, 2, 0, 23) : Result<int>(0);
  if (!year || !month || !day || !hour) return wrong();
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return wrong();
  return std::int64_t{std::chrono::sys_days(date).time_since_epoch().count()} * 24 + *hour;
}

// Where the next page begins: base64 of "tenant\nhour\nfunction". A client gives it back as it was.
std::string cursor_of(const UsageKey& key) {
  return base64_encode(fmt::format("{}\n{}\n{}", key.tenant, key.hour, key.function));
}
Result<UsageKey> key_of(std::string_view cursor) {
  const auto text = base64_decode("after", cursor);
  const std::size_t first = text ? text->find('\n') : std::string::npos;
  const std::size_t second = first == std::string::npos ? first : text->find('\n', first + 1);
  if (second == std::string::npos)
    return fail(Errc::kInvalidArgument, "after is not what an earlier answer gave as next");
  const auto hour = number_in("after", std::string_view(*text).substr(first + 1, second - first - 1), std::int64_t{0},
                              std::int64_t{1} << 40);
  if (!hour) return fail(hour.error());
  return UsageKey{.tenant = text->substr(0, first), .hour = *hour, .function = text->substr(second + 1)};
}

Result<UsageQuery> query_of(const net::Target& target, const Principal& who) {
  UsageQuery query{.tenant = who.tenant, .most = kMostRows};
  if (has_query(target, "tenant")) query.tenant = std::string(target.query_value("tenant"));
  if (query.tenant && !who.sees(*query.tenant)) {
    return fail(Errc::kForbidden, "tenant is '{}'; this key is of another, and sees what that one used", *query.tenant);
  }
  for (const auto& [name, into] : {std::pair{"from", &query.from_hour}, std::pair{"to", &query.until_hour}}) {
    if (!has_query(target, name)) continue;
    const auto hour = hour_of(name, target.query_value(name));
    if (!hour) return fail(hour.error());
    *into = *hour;
  }
  if (has_query(target, "after")) {
    auto after = key_of(target.query_value("after"));
    if (!after) return fail(after.error());
    query.after = *std::move(after);
  }
  const auto most = query_number(target, "limit", kMostRows, std::size_t{1}, kMostRows);
  if (!most) return fail(most.error());
  query.most = *most;
  return query;
}

json row_json(const UsageRow& row) {
  return {{"hour", hour_text(row.key.hour)},     {"tenant", row.key.tenant},
          {"function", row.key.function},        {"calls", row.counts.calls},
          {"errors", row.counts.errors},         {"gpu_seconds", to_seconds(row.counts.gpu_time)},
          {"gb_seconds", gb_seconds(row.counts)}};
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out += '"';
}

std::string csv_of(const std::vector<UsageRow>& rows) {
  std::string out = "hour,tenant,function,calls,errors,gpu_seconds,gb_seconds\r\n";
  for (const auto& [key, counts] : rows) {
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{:.9f},{:.6f}\r\n", hour_text(key.hour),
                   csv_field(key.tenant), csv_field(key.function), counts.calls, counts.errors,
                   to_seconds(counts.gpu_time), gb_seconds(counts));
  }
  return out;
}

void answer(net::HttpExchange exchange, bool is_csv, std::size_t most, const std::vector<UsageRow>& rows) {
  const std::string next = rows.size() < most ? "" : cursor_of(rows.back().key);
  if (is_csv) {
    net::HttpResponse response{
        .status = 200, .headers = {{"Content-Type", "text/csv; charset=utf-8"}}, .body = csv_of(rows)};
    if (!next.empty()) response.headers.push_back({"X-Fairlead-Next", next});
    return exchange.respond(std::move(response));
  }
  json list = json::array();
  for (const UsageRow& row : rows) list.push_back(row_json(row));
  json body{{"usage", std::move(list)}};
  if (!next.empty()) body["next"] = next;
  respond_json(std::move(exchange), 200, body);
}

}  // namespace

Edge usage_edge(UsageService& service) {
  Edge edge{.name = "usage", .prefixes = {"/fairlead/v1/usage"}, .errors = document_errors()};
  edge.routes.add(
      "GET", "/fairlead/v1/usage",
      [&service](RouteCall call) {
        auto query = query_of(call.target, call.principal);
        const std::string_view format = call.target.query_value("format");
        if (query && !format.empty() && format != "csv" && format != "json") {
          query = fail(Errc::kInvalidArgument, "format is '{}'; it must be json or csv", format.substr(0, 64));
        }
        if (!query) return respond_error(std::move(call.exchange), query.error());
        const auto exchange =
            std::make_shared<net::HttpExchange>(std::move(call.exchange));  // std::function wants copies
        service.usage(*query,
                      [exchange, is_csv = format == "csv", most = query->most](Result<std::vector<UsageRow>> rows) {
                        if (!rows) return respond_error(std::move(*exchange), rows.error());
                        answer(std::move(*exchange), is_csv, most, *rows);
                      });
      },
      Permission::kRead);
  return edge;
}

}  // namespace fairlead
