#include <ostream>

#include "cli/commands.h"
#include "cli/format.h"
#include "cli/table.h"

namespace fairlead::cli {
namespace {

using enum Table::Align;

std::string bar(double part, double whole) {
  constexpr double kWidth = 30;
  return std::string(whole > 0 ? static_cast<std::size_t>(part / whole * kWidth + 0.5) : 0, '#');
}

std::string times_text(const Json& times) {
  const double total = times.value("total_seconds", 0.0);
  Table table({{"TIME"}, {"", kRight}, {"", kRight}, {""}});
  const std::pair<const char*, const char*> kParts[] = {
      {"queue", "queue_seconds"}, {"start", "start_seconds"}, {"run", "run_seconds"}};
  for (const auto& [name, field] : kParts) {
    const double part = times.value(field, 0.0);
    table.add_row({name, format_seconds(part), total > 0 ? format_percent(part / total) : "-", bar(part, total)});
  }
  table.add_row({"all", format_seconds(total), "", ""});
  std::string text = table.text();
  const std::pair<const char*, const char*> kWithin[] = {
      {"of these, on the GPU", "gpu_seconds"},
      {"of these, bringing memory back to the GPU", "memory_seconds"},
      {"its instance took to start", "instance_start_seconds"},
      {"to the first byte of the answer", "first_byte_seconds"}};
  for (const auto& [name, field] : kWithin) {
    if (const double part = times.value(field, 0.0); part > 0)
      text += fmt::format("{}: {}\n", name, format_seconds(part));
  }
  return text;
}

std::string ahead_text(const Json& request) {
  const Json ahead = request.value("ahead", Json::array());
  const bool is_whole = request.value("ahead_is_whole", true);
  if (ahead.empty()) return is_whole ? "nobody ran while it waited\n" : "who ran while it waited is forgotten\n";
  Table table({{"RAN WHILE IT WAITED"}, {"ALREADY", kRight}, {"CHOSEN BEFORE", kRight}, {"GPU TIME", kRight}});
  for (const Json& one : ahead) {
    table.add_row({one.value("function", "(other tenants)"), std::to_string(one.value("ran", 0)),
                   std::to_string(one.value("chosen", 0)), format_seconds(one.value("gpu_seconds", 0.0))});
  }
  return table.text() + (is_whole ? "" : "and others, which are forgotten\n");
}

int run_why(Cli& cli, const std::string& id) {
  const Result<Json> answer = cli.node().call("GET", "/fairlead/v1/requests/" + net::percent_encode(id));
  if (!answer) return cli.report(answer.error());
  if (cli.json()) {
    cli.out() << answer->dump(2) << "\n";
    return kOk;
  }
  const Json& request = *answer;
  const std::string failure = request.value("failure", "");
  const std::string ran = request.value("gpu", 0) == 0
                              ? "it never ran"
                              : fmt::format("{} start on GPU {}", request.value("start", ""), request.value("gpu", 0));
  cli.out() << fmt::format("{} version {}  {}{}  {}\nat {}\n\n{}\n{}", request.value("function", ""),
                           request.value("version", ""), request.value("outcome", ""),
                           failure.empty() ? "" : ": " + failure, ran,
                           format_time(request.value("accepted_ms", std::int64_t{0})),
                           times_text(request.value("times", Json::object())), ahead_text(request));
  return kOk;
}

}  // namespace

void add_why(Cli& cli) {
  auto id = std::make_shared<std::string>();
  CLI::App& command = cli.add_command("why", "Where the time of a request went, and who was ahead of it",
                                      [&cli, id] { return run_why(cli, *id); });
  command.add_option("REQUEST", *id, "Its id: x-amzn-RequestId of the answer, the log's START line")->required();
}

}  // namespace fairlead::cli
