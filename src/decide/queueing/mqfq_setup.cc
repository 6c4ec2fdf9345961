// MQFQ by set-up cost: the window of MQFQ-Sticky, and within it the flow that gets most done per second of device time.
//
// Idea. Serving a flow costs its set-up once (a cold start; nothing where a warm instance is free; there, for a kernel
// task, the time to bring evicted constants back) and then tau per invocation. With n queued, one invocation costs
// setup / n + tau on average; the flow where that is least goes first
// (the batch index of polling systems). So cold flows wait until enough is queued to be worth the start, or until the
// window closes for the others; short and warm flows do not queue behind long ones. Fairness is the window's: no flow
// gets further ahead than T, whatever the order within it.
//
// Example, T = 10 s: A is warm, tau 2 s, one queued: 2 s. B is cold, set-up 9 s, tau 0.3 s: with one queued 9.3 s, so A
// goes first; with six queued 1.8 s, so B does.
//
// Where flows have data on GPUs (kernel tasks: set_setup_on), flow and GPU are chosen together by what is there
// (residency_index.h); such a flow and the others meet in the same order. Flows without are as ever.
//
// Measured (docs/explanation/ablation.md): the best mean at the paper's fairness where instances start ahead of the slot, so that the
// order decides what starts, not what waits for a start. Where a cold start holds its slot, the warm first is better
// (mqfq_warm.cc).
#include <algorithm>

#include "decide/queueing/mqfq_sticky.h"
#include "decide/queueing/residency_index.h"

namespace fairlead {
namespace {

class MqfqSetup final : public MqfqSticky, public DataPlaces {
 public:
  MqfqSetup(FlowTable& flows, const PolicyOptions& options)
      : MqfqSticky(flows, options), residency_(options.get(kPatienceReloads)) {}

  void remove(Row row) override;
  void began(const Pick& pick) override;
  void ended(Row row, const Ended& end) override;
  void set_setup_on(Row row, GpuId gpu, std::optional<Duration> setup) override;
  std::optional<Instant> next_chance() const override;

 protected:
  Preference preference(const Flow& flow) const override { return preference(flow, flow.setup); }
  std::optional<Pick> pick_place(Instant now, const Placeable& placeable) override;
  std::optional<GpuId> place_beyond_window(Row row, const Placeable& placeable) override;
  // Flows that have a place may want another one.
  std::optional<Row> find_indexed(const std::function<bool(Row)>& accept) override {
    return residency_.find_first(accept);
  }
  void on_eligible(Row row) override;
  void on_ineligible(Row row) override;

 private:
  static Preference preference(const Flow& flow, Duration setup);
  std::optional<Pick> pick_on_new_instance(const Placeable& placeable);
  Obstacle look_at_unpicked(const Placeable& placeable, Row row);

  ResidencyIndex residency_;            // eligible flows that have data on GPUs; preferred_ has the others
  bool data_waits_for_memory_ = false;  // one of these does, as of the last choice that found nobody within the window
};

MqfqSticky::Preference MqfqSetup::preference(const Flow& flow, Duration setup) {
  const Duration each = setup / static_cast<Duration::rep>(flow.queue.size()) + flow.service.value_or(Duration(0));
  return objectives_first(flow, static_cast<std::uint64_t>(each.count()));
}

void MqfqSetup::set_setup_on(Row row, GpuId gpu, std::optional<Duration> setup) {
  residency_.set_setup(row, gpu, setup);
  settle(row);
}

void MqfqSetup::remove(Row row) {
  residency_.forget(row);
  MqfqSticky::remove(row);
}

void MqfqSetup::on_eligible(Row row) {
  if (residency_.has_places(row)) {
    preferred_.erase(row);
    residency_.enter(flows_[row], row);
  } else {
    residency_.leave(flows_[row], row);
    MqfqSticky::on_eligible(row);
  }
}

void MqfqSetup::on_ineligible(Row row) {
  residency_.leave(flows_[row], row);
  MqfqSticky::on_ineligible(row);
}

std::optional<Order::Pick> MqfqSetup::pick_place(Instant now, const Placeable& placeable) {
  const auto elsewhere = MqfqSticky::pick_place(now, placeable);
  const auto by_residency = residency_.pick(now, flows_, placeable);
  if (!elsewhere && !by_residency) return pick_on_new_instance(placeable);
  if (!by_residency) return elsewhere;
  const Row row = by_residency->row;
  const Preference here = preference(flows_[row], by_residency->setup);
  if (elsewhere && preference(flows_[elsewhere->row]) <= here) return elsewhere;
  if (flows_[row].behind_starts) look_at(placeable, row);  // not any more
  return Pick{row, by_residency->gpu};
}

// Of those in the index, who could run on a new instance alone: where starts hold a slot, choosing is starting.
std::optional<Order::Pick> MqfqSetup::pick_on_new_instance(const Placeable& placeable) {
  using Unpicked = ResidencyIndex::Unpicked;
  data_waits_for_memory_ = false;
  const auto row = residency_.find_first([&](Row candidate) {
    const Obstacle obstacle = look_at_unpicked(placeable, candidate);
    data_waits_for_memory_ |= obstacle == Obstacle::kMemory;
    if (obstacle != Obstacle::kNothing) return false;
    const Unpicked why = residency_.why_unpicked(now(), flows_[candidate], candidate, placeable);
    if (why == Unpicked::kKept) placeable.is_kept(flows_[candidate].id);
    return why == Unpicked::kNoPlaceIsFree;
  });
  return row ? std::optional(Pick{*row}) : std::nullopt;
}

// One that could run and was not picked waits for a slot of the GPU that has its data, or until loading it is worth it.
Obstacle MqfqSetup::look_at_unpicked(const Placeable& placeable, Row row) {
  const Obstacle obstacle = look_at(placeable, row);
  one_waits_elsewhere_ |= obstacle == Obstacle::kNothing;
  return obstacle;
}

// Memory of kernel tasks' calls cannot be claimed. So while one of them waits for it within the window, those beyond take no
// more of it: it comes when what runs has ended.
std::optional<GpuId> MqfqSetup::place_beyond_window(Row row, const Placeable& placeable) {
  if (!residency_.has_places(row)) return MqfqSticky::place_beyond_window(row, placeable);
  if (data_waits_for_memory_) return std::nullopt;
  const auto gpu = residency_.place_of_one(now(), flows_[row], row, placeable);
  if (!gpu && look_at_unpicked(placeable, row) == Obstacle::kNothing) placeable.is_kept(flows_[row].id);
  return gpu;
}

void MqfqSetup::began(const Pick& pick) {
  MqfqSticky::began(pick);
  residency_.on_begin(flows_[pick.row], pick.row);
}

// However an invocation ends, the index waits for its flow no longer than the flow's own load takes.
void MqfqSetup::ended(Row row, const Ended& end) {
  MqfqSticky::ended(row, end);
  residency_.on_end(end.now, flows_[row], row);
}

std::optional<Instant> MqfqSetup::next_chance() const {
  const auto chance = MqfqSticky::next_chance(), patience = residency_.next_chance();
  return chance && patience ? std::min(chance, patience) : chance ? chance : patience;
}

}  // namespace

constinit const Policy mqfq_setup_policy{
    .name = "mqfq-setup",
    .next_is = "within the window: the least set-up per queued invocation plus service; objectives by due time first",
    .make = make_order<MqfqSetup>,
    .parameters = {&kOverRun, &kOverRunServices, &kFixedCharge, &kPatienceReloads}};

}  // namespace fairlead
