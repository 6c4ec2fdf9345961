#include "edge/openfaas/system_logs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <utility>

#include "edge/json_body.h"
#include "edge/openfaas/deployment.h"
#include "edge/openfaas/function_name.h"
#include "edge/openfaas/openfaas_error.h"
#include "edge/query.h"
#include "model/tenant.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;

constexpr std::size_t kAnchorBytes = 1024;  // long enough to be unique in practice: REPORT lines have request ids
constexpr std::size_t kStreamBytes = 64 << 10;
constexpr const char* kType = "application/x-ndjson";

// "2026-11-23T05:36:20Z", with fractions of a second and offsets as RFC 3339 has them.
std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  std::tm time{};
  const std::string copy(text);
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr || time.tm_year < 70 || time.tm_year > 8099) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    char* end = nullptr;
    fraction = std::strtod(rest, &end);
    if (end == rest || fraction < 0 || fraction >= 1) return std::nullopt;
    rest = end;
  }
  int hours = 0, minutes = 0;
  if (*rest == '+' || *rest == '-') {
    const std::string_view offset(rest + 1);
    const bool is_offset = offset.size() == 5 && offset[2] == ':' &&
                           std::from_chars(offset.data(), offset.data() + 2, hours).ptr == offset.data() + 2 &&
                           std::from_chars(offset.data() + 3, offset.data() + 5, minutes).ptr == offset.data() + 5;
    if (!is_offset || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
    if (*rest == '-') hours = -hours, minutes = -minutes;
  } else if (std::string_view(rest) != "Z") {
    return std::nullopt;
  }
  const std::int64_t seconds = std::int64_t{::timegm(&time)} - hours * 3600 - minutes * 60;
  return seconds * 1000 + std::llround(fraction * 1000);
}

std::string line_json(const LogLine& line, const LogQuery& query, const std::string& space) {
  const json said{{"name", query.function},
                  {"namespace", space},
                  {"instance", ""},
                  {"timestamp", rfc3339(line.written_ms.value_or(0))},
                  {"text", line.text}};
  return to_text(said) + "\n";
}

bool is_wanted(const LogLine& line, const LogQuery& query) {
  return !query.since_ms || (line.written_ms && *line.written_ms >= *query.since_ms);
}

// Behind what was told. Empty anchor: all of it is new.
std::size_t begin_of_new(std::string_view text, std::string_view anchor) {
  const std::size_t at = anchor.empty() ? std::string_view::npos : text.rfind(anchor);
  if (at != std::string_view::npos) return at + anchor.size();
  // What is looked at may begin inside of the anchor.
  std::size_t length = std::min(anchor.size(), text.size());
  while (length > 0 && !anchor.ends_with(text.substr(0, length))) --length;
  return length;
}

// What stands before `begin` is gone.
TimedLog rest_of(TimedLog log, std::size_t begin) {
  std::optional<std::int64_t> last_ms;
  std::vector<TimedLog::Mark> marks;
  for (const TimedLog::Mark& mark : log.marks) {
    if (mark.at <= begin) last_ms = mark.written_ms;
    if (mark.at > begin) marks.push_back({mark.at - begin, mark.written_ms});
  }
  if (last_ms) marks.insert(marks.begin(), {0, *last_ms});
  return {.text = log.text.substr(begin), .marks = std::move(marks)};
}

std::string anchor_of(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  if (end == std::string_view::npos) return "";
  const std::string_view whole = text.substr(0, end + 1);
  return std::string(whole.substr(whole.size() - std::min(whole.size(), kAnchorBytes)));
}

}  // namespace

Result<LogQuery> read_log_query(const net::Target& target) {
  LogQuery query;
  const FunctionName name = split_name(target.query_value("name"));
  query.function = name.name;
  query.space = name.space.empty() ? std::string(target.query_value("namespace")) : name.space;
  if (query.function.empty()) return fail(Errc::kInvalidArgument, "name is missing: say whose logs");
  const std::string_view follow = target.query_value("follow");
  query.is_followed = follow == "true" || follow == "1";
  if (!follow.empty() && !query.is_followed && follow != "false" && follow != "0") {
    return fail(Errc::kInvalidArgument, "follow is '{}'; it must be true or false", follow.substr(0, 32));
  }
  const auto tail = query_number<int>(target, "tail", -1, -1, 1'000'000'000);
  if (!tail) return fail(tail.error());
  query.tail = static_cast<std::size_t>(std::max(0, *tail));
  if (const std::string_view since = target.query_value("since"); !since.empty()) {
    query.since_ms = parse_rfc3339(since);
    if (!query.since_ms) {
      return fail(Errc::kInvalidArgument, "since is '{}'; it must be a time such as 2026-11-23T05:36:20Z",
                  since.substr(0, 64));
    }
  }
  return query;
}

std::vector<LogLine> lines_of(const TimedLog& log, bool is_cut) {
  std::vector<LogLine> lines;
  const std::string_view text = log.text;
  std::size_t at = 0;
  auto mark = log.marks.begin();
  std::optional<std::int64_t> written_ms;
  for (std::size_t end; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
    while (mark != log.marks.end() && mark->at <= at) written_ms = (mark++)->written_ms;
    if (!is_cut || at > 0) lines.push_back({text.substr(at, end - at), written_ms});
  }
  return lines;
}

LogStreams::LogStreams(boost::asio::io_context& io, NodeService& node, Duration period)
    : node_(node), ticker_(io, period, [this] {
        look();
        return !streams_.empty();
      }) {}

void LogStreams::open(RouteCall call) {
  auto query = read_log_query(call.target);
  if (!query) {
    net::HttpResponse response = refusal(query.error());
    response.status = 422;  // as OpenFaaS's provider has it
    return call.exchange.respond(std::move(response));
  }
  const auto record = find_function(node_, call.principal, {query->function, query->space});
  if (!record) return refuse(std::move(call.exchange), record.error());
  const auto log = node_.timed_log(query->function, kMostTailBytes);
  if (!log) return refuse(std::move(call.exchange), log.error());
  const std::string space = namespace_of(tenant_of(record->config.tags));
  std::vector<LogLine> lines = lines_of(*log, log->text.size() >= kMostTailBytes);
  std::erase_if(lines, [&](const LogLine& line) { return !is_wanted(line, *query); });
  if (query->tail > 0 && lines.size() > query->tail)
    lines.erase(lines.begin(), lines.end() - std::ptrdiff_t(query->tail));
  std::string told;
  for (const LogLine& line : lines) told += line_json(line, *query, space);
  net::HttpResponse answer{.status = 200, .headers = {{"Content-Type", kType}}};
  if (!query->is_followed) {
    answer.body = std::move(told);
    return call.exchange.respond(std::move(answer));
  }
  std::erase_if(streams_, [](const Stream& stream) { return stream.writer.is_gone(); });
  if (streams_.size() >= kMostStreams) {
    return refuse(std::move(call.exchange),
                  Error{Errc::kResourceExhausted,
                        fmt::format("{} clients follow logs, which is the most; say follow=false", streams_.size())});
  }
  auto [writer, body] = net::make_body_stream(kStreamBytes);
  answer.stream = std::move(body);
  query->since_ms.reset();  // what comes now is wanted
  streams_.push_back({std::move(writer), *std::move(query), space, anchor_of(log->text), std::move(told)});
  flush(streams_.back());
  call.exchange.respond(std::move(answer));
  ticker_.start();
}

void LogStreams::look() {
  for (auto it = streams_.begin(); it != streams_.end();) it = look(*it) ? std::next(it) : streams_.erase(it);
}

void LogStreams::flush(Stream& stream) {
  const std::size_t fits = std::min(stream.waiting.size(), stream.writer.room());
  if (fits == 0) return;
  if (stream.writer.write(std::string_view(stream.waiting).substr(0, fits)) == net::BodyWrite::kTaken)
    stream.waiting.erase(0, fits);
}

// False: the client has gone, or the function; then the log is whole.
bool LogStreams::look(Stream& stream) {
  if (stream.writer.is_gone()) return false;
  flush(stream);
  if (!stream.waiting.empty()) return true;
  auto log = node_.timed_log(stream.query.function, kLookBytes);
  if (!log) {
    stream.writer.finish();
    return false;
  }
  const std::size_t begin = begin_of_new(log->text, stream.anchor);
  const bool is_cut = begin == 0 && log->text.size() >= kLookBytes;
  const std::string anchor = anchor_of(log->text);
  const TimedLog news = rest_of(*std::move(log), begin);
  for (const LogLine& line : lines_of(news, is_cut)) stream.waiting += line_json(line, stream.query, stream.space);
  if (!anchor.empty()) stream.anchor = anchor;
  flush(stream);
  return true;
}

}  // namespace fairlead::openfaas
