// GET /system/logs: what a function printed, a line of JSON for each of its lines, and, where the client follows, those that come.
//
//   ?name=f&tail=2&since=2026-11-23T05:36:20Z&follow=true
//   {"name":"f","namespace":"fairlead","instance":"","timestamp":"2026-11-23T05:36:21.000Z","text":"hello"}
//
// A time is that of the flush that wrote the line, to about a second (runtime/function_log.h); of lines that are older than anything that
// is known of times, and where `since` is asked for, nothing is told. `tail` below 1, or none, is all that fits kMostTailBytes.
//
// Idea of following: the node serves the end of a log and no offsets. What was told last is looked for in the next end, and what stands
// behind it is new; a log that was rotated, or grew by more than is looked at, has lines that are not told.
//
// Bounds: kMostStreams clients follow at a time, each with at most kMostTailBytes of the log waiting; while they wait nothing is read.
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/edge.h"
#include "edge/node_service.h"
#include "net/http_stream.h"
#include "net/ticker.h"

namespace fairlead::openfaas {

struct LogQuery {
  std::string function;
  std::string space;
  bool is_followed = false;
  std::size_t tail = 0;  // lines; 0: all
  std::optional<std::int64_t> since_ms;
};
// kInvalidArgument names the parameter, its text and what it must be.
Result<LogQuery> read_log_query(const net::Target& target);

struct LogLine {
  std::string_view text;
  std::optional<std::int64_t> written_ms;
};
// Whole lines. A line whose beginning is cut is left out where `is_cut`, one whose end has yet to come always.
std::vector<LogLine> lines_of(const TimedLog& log, bool is_cut);

class LogStreams {
 public:
  static constexpr std::size_t kMostStreams = 64;
  static constexpr std::size_t kMostTailBytes = 1 << 20;
  static constexpr std::size_t kLookBytes = 256 << 10;  // of a log that is followed, at a time

  LogStreams(boost::asio::io_context& io, NodeService& node, Duration period = std::chrono::milliseconds(250));

  void open(RouteCall call);
  void look();  // at what is new, for all who follow
  std::size_t streams() const { return streams_.size(); }

 private:
  struct Stream {
    net::BodyWriter writer;
    LogQuery query;
    std::string space;    // the namespace that is told
    std::string anchor;   // the end of what was told
    std::string waiting;  // JSON that the client has no room for
  };

  static void flush(Stream& stream);
  bool look(Stream& stream);

  NodeService& node_;
  net::Ticker ticker_;  // runs while somebody follows
  std::list<Stream> streams_;
};

}  // namespace fairlead::openfaas
