// What `fairlead top` shows: statuses of a node, one after the other, become lines of a terminal; keys change how.
//
//   status, calls ──observe──> TopView ──frame(size)──> lines that fit        key ──press──> other order, filter, place
//
// Rates, percentiles and sparklines are of the last minute, from what was observed: counters are compared with those of before, and a node
// that was started again begins anew. Columns that do not fit are left out, those that say least first; then names are cut.
//
// Example, 80 columns:
//   FUNCTION         QUEUE  RUN WARM   CALLS/s    P50    P99  ERR  GPU  ON GPU
//   chat                12    2    1      14.2  41 ms  1.2 s   0%  93% 5.0 GiB  ▂▃▅▇█
//
// Time: given. Threads: not thread-safe. Fields that a node does not send, or of another type, are zero.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/terminal.h"

namespace fairlead::cli {

// "▁▃█" of values, from 0 to the largest of them; one cell for each of the last `cells`.
std::string sparkline(const std::vector<double>& values, std::size_t cells);
// The value below which `part` of them lie, the least such; 0 of none.
double quantile(std::vector<double> values, double part);

class TopView {
 public:
  explicit TopView(bool colour) : colour_(colour) {}

  // GET /fairlead/v1/status; the calls of GET /fairlead/v1/recent (null: it has none for this caller).
  void observe(Instant now, const nlohmann::json& status, const nlohmann::json& recent, std::int64_t wall_ms);
  void failed(Instant now, std::string why);  // nobody answered
  // False: it is to end. A key that means nothing has no effect.
  bool press(const std::string& key);
  bool paused() const { return chosen_.paused; }
  bool reads_filter() const { return chosen_.reads_filter; }

  std::string frame(Instant now, TerminalSize size) const;

 private:
  struct Sample {
    Instant at;
    double calls = 0, errors = 0, gpu_seconds = 0;
  };
  struct Function {
    std::string name, state, tenant;
    double queued = 0, running = 0, idle = 0, starting = 0, resident = 0, away = 0;
    std::deque<Sample> samples;  // of the last minute, and the one before
    std::vector<double> latencies;
    std::deque<double> calls_per_look;

    double rate(double Sample::*what) const;  // per second
  };
  struct Column;
  // By keys.
  struct Chosen {
    char order = 'u';  // Column::key
    bool reversed = false, paused = false, helps = false, reads_filter = false;
    std::string filter;
    std::size_t first = 0;  // row that is shown first
  };

  static const std::vector<Column>& columns();
  void observe_function(Instant now, const nlohmann::json& of);
  void observe_calls(const nlohmann::json& recent, std::int64_t wall_ms);
  bool press_in_filter(const std::string& key);
  void choose_order(char key);
  std::vector<const Function*> rows() const;
  std::string heading(Instant now, std::size_t columns) const;
  std::vector<std::string> gpu_lines(std::size_t columns, std::size_t most) const;
  std::string row(const Function& function, const std::vector<const Column*>& shown, std::size_t name_columns,
                  std::size_t spark) const;
  std::vector<std::string> help_lines() const;
  std::string painted(std::string_view code, const std::string& text) const;

  const bool colour_;
  nlohmann::json status_;
  std::map<std::string, Function> functions_;
  std::map<std::uint64_t, std::deque<double>> utilisation_;  // by GPU
  std::size_t calls_seen_ = 0;                               // of which the percentiles are
  bool knows_calls_ = false;
  Instant answered_;
  std::string failure_;  // "": it answers
  Chosen chosen_;
  mutable std::size_t page_ = 1, count_ = 0;  // as drawn last
};

}  // namespace fairlead::cli
