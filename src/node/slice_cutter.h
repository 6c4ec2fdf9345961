// Cuts idle slices anew for a pipeline that fits on none of them (slice_cut.h decides), one cut at a time. Off by default: it changes what the
// operator made.
//
//   idle ──a pipeline has waited──> reads ──a cut pays──> empties ──nothing is on them──> cuts ──done──> settles ──seen──> idle
//                                     └──none pays─────> idle    └──10 s──> idle             └──undone──> settles
//
// Slices that are to go are taken from the core as a pipeline takes them: what runs there ends, nothing begins. They are its own until the
// node has seen that they are gone. After each attempt it rests:
// so that two pipelines do not have a GPU cut in turns, and a driver that refuses is not asked over and over. A node that was killed
// between the end of old slices and the making of new ones leaves memory slices free, which the next cut uses.
//
// Threads: the io_context's; the driver is asked on a worker.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/lifetime.h"
#include "base/result.h"
#include "base/units.h"
#include "edge/node_service.h"
#include "node/functions.h"
#include "node/pipeline_slices.h"
#include "node/slice_cut.h"
#include "node/worker.h"

namespace fairlead {

// The driver's side: called on the worker, one call at a time.
struct SliceDriver {
  std::function<Result<std::vector<MigLayout>>()> layouts;  // empty: GPUs are not cut anew
  std::function<Status(const SliceCut& cut)> cut;
};

struct SliceCutterOptions {
  SliceDriver driver = {};
  std::function<Instant()> clock = monotonic_now;
  ResliceTerms terms = {};
  Duration patience = std::chrono::seconds(1);      // of the pipeline, before any GPU is cut for it
  Duration rest = std::chrono::seconds(10);         // after a cut, or where none paid
  Duration most_rest = std::chrono::minutes(10);    // after failures: doubled from `rest` up to this
  Duration empty_limit = std::chrono::seconds(10);  // of slices, until what ran there is gone
};

class SliceCutter {
 public:
  enum class State { kIdle, kReads, kEmpties, kCuts, kSettles };
  static constexpr PipelineSlices::Holder kHolder = ~PipelineSlices::Holder{0};  // it, of slices that it has

  struct Ports {
    std::function<void()> look_soon;  // slices were made or ended
    // Whether that pipeline, of that program, waits for slices still.
    std::function<bool(const std::string&, const PipelineProgram*)> still_wants;
  };
  SliceCutter(boost::asio::io_context& io, SliceCutterOptions options, PipelineSlices& slices, Ports ports);

  // The pipeline fits on nothing that is free, since so long. No effect while it is busy, or rests.
  void want(const RegisteredFunction& pipeline, Duration waited);
  void tick();

  State state() const { return state_; }
  // What it does for the pipeline; "": nothing.
  std::string doing_for(const std::string& pipeline) const;
  SliceCutStatus status() const;

 private:
  struct Wish {
    std::string pipeline;
    std::shared_ptr<const PipelineProgram> program;
  };
  void decide(const Result<std::optional<SliceCut>>& planned);
  bool is_wanted() const;
  void cut();
  void on_cut(const Status& done);
  void settle();
  void rest(bool failed);
  PipelinePlacement placement() const;

  const SliceCutterOptions options_;
  PipelineSlices& slices_;
  const Ports ports_;
  State state_ = State::kIdle;
  Wish wish_;
  SliceCut cut_;
  Instant since_{};       // of kEmpties, kCuts, kSettles
  bool is_done_ = false;  // the cut, of kSettles
  Instant not_before_{};  // the next attempt
  Duration rests_{0};     // after the last failure; 0: it was none
  Duration takes_{0};     // the last cut that was done
  SliceCutStatus done_;
  Lifetime life_;
  Worker worker_;  // last: its jobs are done first
};

std::string_view name_of(SliceCutter::State state);

}  // namespace fairlead
