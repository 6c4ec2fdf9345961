// Experiments of a laboratory of the simulator, side by side: tables for people, or all rows as JSON.
//
// A row has `experiment`, `workload`, `numbers` (name and value) and `state_hash`, and says by which of its fields contestants differ.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/exit_status.h"
#include "cli/table.h"

namespace fairlead::cli {

template <typename Row>
struct Contestants {
  std::string Row::*field;
  std::string heading;  // of the table's column
  std::string key;      // in JSON
};

// REQUIRES: at least one row, all with the same numbers.
template <typename Row>
std::string rows_text(const std::vector<Row>& rows, const Contestants<Row>& contestants) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"WORKLOAD"}, {contestants.heading}};
  for (const auto& [name, value] : rows.front().numbers) columns.push_back({name, kRight});
  columns.push_back({"HASH"});
  Table table(columns);
  for (const Row& row : rows) {
    std::vector<std::string> cells = {row.workload, row.*contestants.field};
    for (const auto& [name, value] : row.numbers) cells.push_back(fmt::format("{:.3f}", value));
    cells.push_back(fmt::format("{:08x}", row.state_hash & 0xffffffff));
    table.add_row(cells);
  }
  return table.text();
}

// `run` gives the rows of an experiment. Returns the exit status.
template <typename Row, typename Run>
int print_experiments(Cli& cli, const std::vector<std::string>& experiments, const Contestants<Row>& contestants,
                      Run run) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& experiment : experiments) {
    const Result<std::vector<Row>> rows = run(experiment);
    if (!rows) return cli.report(rows.error());
    if (!cli.json()) {
      cli.out() << experiment << '\n' << rows_text(*rows, contestants) << '\n' << std::flush;
      continue;
    }
    for (const Row& row : *rows) {
      nlohmann::ordered_json one = {{"experiment", row.experiment}, {"workload", row.workload}};
      one[contestants.key] = row.*contestants.field;
      for (const auto& [name, value] : row.numbers) one[name] = value;
      one["state_hash"] = fmt::format("{:016x}", row.state_hash);
      all.push_back(std::move(one));
    }
  }
  if (cli.json()) cli.out() << all.dump(2) << '\n';
  return kOk;
}

}  // namespace fairlead::cli
