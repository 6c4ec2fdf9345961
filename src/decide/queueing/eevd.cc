// EEVD: earliest effective virtual deadline first (Iluvatar's policy, compared with in MQFQ-Sticky section 6). The deadline
// of an invocation is its arrival plus what serving it is expected to take: the flow's mean service, and the cold start in
// front of it where no warm instance is free. Short and warm flows win, as long as they are not much younger.
//
// Example: A arrived at 10 s and takes 4 s warm: 14 s. B arrived at 12 s and takes 0.2 s, warm: 12.2 s, so B is next; with
// a cold start of 10 s in front of it: 22.2 s, and A is.
//
// A flow never measured counts as taking no time. Time, threads, determinism: as flow_queue.h.
#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"

namespace fairlead {
namespace {

class Eevd final : public KeyedOrder<Eevd, ByTime<Instant>> {
 public:
  using KeyedOrder::KeyedOrder;
  Key key(const Flow& flow) const {
    return {flow.queue.front().arrived + flow.setup + flow.service.value_or(Duration(0)), flow.id};
  }
};

}  // namespace

constinit const Policy eevd_policy{
    .name = "eevd", .next_is = "the least arrival + cold start + mean service", .make = make_order<Eevd>};

}  // namespace fairlead
