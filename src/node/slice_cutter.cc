#include "node/slice_cutter.h"

#include <algorithm>

#include "base/log.h"
#include "model/function.h"

namespace fairlead {
namespace {

// Until whoever watches devices has looked again.
constexpr Duration kSeenGone = std::chrono::seconds(10), kSeenAnew = std::chrono::seconds(1);

}  // namespace

std::string_view name_of(SliceCutter::State state) {
  switch (state) {
    case SliceCutter::State::kIdle: return "idle";
    case SliceCutter::State::kReads: return "reads";
    case SliceCutter::State::kEmpties: return "empties";
    case SliceCutter::State::kCuts: return "cuts";
    case SliceCutter::State::kSettles: return "settles";
  }
  return "unknown";
}

SliceCutter::SliceCutter(boost::asio::io_context& io, SliceCutterOptions options, PipelineSlices& slices, Ports ports)
    : options_(std::move(options)), slices_(slices), ports_(std::move(ports)), worker_(io) {
  done_.is_on = static_cast<bool>(options_.driver.layouts);
}

// The plans are made on the worker: there may be hundreds of layouts.
void SliceCutter::want(const RegisteredFunction& pipeline, Duration waited) {
  if (!options_.driver.layouts || state_ != State::kIdle || options_.clock() < not_before_ ||
      waited < options_.patience)
    return;
  state_ = State::kReads;
  wish_ = {.pipeline = pipeline.record.name, .program = pipeline.kernel_task->pipeline};
  ResliceTerms terms = options_.terms;
  terms.takes = std::max(terms.takes, std::min(takes_, terms.horizon / 2));
  worker_.run(
      [layouts = options_.driver.layouts, dag = slices_.with_times(*wish_.program), devices = slices_.unheld(),
       idle = slices_.free(), others = slices_.needs_of_others(), terms]() -> Result<std::optional<SliceCut>> {
        const auto read = layouts();
        if (!read) return fail(read.error());
        return plan_cut(
            {.dag = dag, .layouts = *read, .devices = devices, .idle = idle, .others = others, .terms = terms});
      },
      life_.guarded([this](const Result<std::optional<SliceCut>>& planned) { decide(planned); }));
}

bool SliceCutter::is_wanted() const {
  return ports_.still_wants(wish_.pipeline, wish_.program.get());
}

// Much may have changed while the driver was asked.
void SliceCutter::decide(const Result<std::optional<SliceCut>>& planned) {
  state_ = State::kIdle;
  if (!planned) {
    spdlog::error("GPUs are not cut anew: {}", planned.error().message);
    done_.last = planned.error().message;
    ++done_.failed;
    return rest(true);
  }
  if (!*planned) return rest(false);
  cut_ = **planned;
  const std::vector<Device> free = slices_.free();
  const bool are_free = std::all_of(cut_.devices.begin(), cut_.devices.end(), [&](const Device& device) {
    return std::any_of(free.begin(), free.end(), [&](const Device& one) { return one.id == device.id; });
  });
  if (!are_free || !is_wanted()) return;
  spdlog::info("GPU {} is cut anew for pipeline {}: {}", cut_.gpu_uuid, wish_.pipeline, cut_.why);
  state_ = State::kEmpties;
  since_ = options_.clock();
  slices_.take(kHolder, placement());
}

void SliceCutter::tick() {
  if (state_ == State::kSettles) return settle();
  if (state_ != State::kEmpties) return;
  std::string why = slices_.lost(placement());
  if (why.empty() && !is_wanted()) why = "the pipeline does not wait any more";
  if (why.empty() && slices_.are_empty(kHolder, placement())) return cut();
  const bool is_late = options_.clock() - since_ >= options_.empty_limit;
  if (why.empty() && is_late) {
    why = fmt::format("what ran there had not ended after {:.3g} s", to_seconds(options_.empty_limit));
  }
  if (why.empty()) return;
  done_.last = fmt::format("{}: not done, {}", cut_.why, why);
  spdlog::warn("GPU {}: {}", cut_.gpu_uuid, done_.last);
  ++done_.failed;
  slices_.give_back(kHolder, placement());
  state_ = State::kIdle;
  rest(is_late);
}

void SliceCutter::cut() {
  state_ = State::kCuts;
  since_ = options_.clock();
  worker_.run([cut = options_.driver.cut, it = cut_] { return cut(it); },
              life_.guarded([this](const Status& done) { on_cut(done); }));
}

void SliceCutter::on_cut(const Status& done) {
  const Instant now = options_.clock();
  if (done) takes_ = now - since_;
  done_.last = done ? fmt::format("{} in {:.2f} s, for {}", cut_.why, to_seconds(now - since_), wish_.pipeline)
                    : fmt::format("{}: not done, {}", cut_.why, done.error().message);
  ++(done ? done_.cuts : done_.failed);
  if (done) spdlog::info("GPU {}: {}", cut_.gpu_uuid, done_.last);
  if (!done) spdlog::error("GPU {}: {}", cut_.gpu_uuid, done_.last);
  is_done_ = done.has_value();
  state_ = State::kSettles;
  since_ = now;
  ports_.look_soon();
}

// Old slices are found gone, and new ones found, by whoever watches devices. Of a cut that was undone some may be there as they were, and
// nobody can tell which: they come back after a while.
void SliceCutter::settle() {
  ports_.look_soon();
  const Duration limit = is_done_ ? kSeenGone : kSeenAnew;
  if (!(is_done_ && slices_.are_gone(placement())) && options_.clock() - since_ < limit) return;
  slices_.give_back(kHolder, placement());
  state_ = State::kIdle;
  rest(!is_done_);
}

void SliceCutter::rest(bool failed) {
  rests_ = !failed ? Duration(0) : rests_ == Duration(0) ? options_.rest : std::min(options_.most_rest, 2 * rests_);
  not_before_ = options_.clock() + (failed ? rests_ : options_.rest);
}

PipelinePlacement SliceCutter::placement() const {
  PipelinePlacement all;
  for (const Device& device : cut_.devices) all.stages.push_back({.device = device, .components = {}});
  return all;
}

std::string SliceCutter::doing_for(const std::string& pipeline) const {
  if (pipeline != wish_.pipeline || state_ == State::kIdle || state_ == State::kReads) return "";
  return fmt::format("slices are cut anew for it: {}", cut_.why);
}

SliceCutStatus SliceCutter::status() const {
  SliceCutStatus status = done_;
  status.state = name_of(state_);
  return status;
}

}  // namespace fairlead
