// Which invocations are accepted: as many as the queues have places for, and of one tenant no more than leaves some for others.
#include "decide/core/tables.h"

namespace fairlead {
namespace {

// Where there are several tenants each may have twice as many invocations as there are places free: two thirds of them, and whoever comes later finds room
// (dynamic thresholds; Choudhury and Hahne, 1998). What runs counts, too.
Status leave_room(std::size_t held, std::size_t free, std::size_t limit) {
  if (held / 2 < free) return {};
  return fail(
      Errc::kResourceExhausted,
      "{} invocations of the tenant are queued or run, and {} places are free of the queue_limit {}: a tenant may "
      "have twice as many as are free; retry later",
      held, free, limit);
}

}  // namespace

Status admit(const CoreTables& tables, FlowId flow) {
  if (tables.draining) return fail(Errc::kUnavailable, "the node is draining and accepts no invocations");
  const CoreFunction* function = tables.functions.find(flow);
  if (function == nullptr) return fail(Errc::kNotFound, "the function is none of this node's; deploy it");
  if (function->spec.max_concurrency == 0u) {
    return fail(Errc::kResourceExhausted, "the function's reserved concurrency is 0; raise it to invoke");
  }
  const std::size_t queued = tables.queue->queued(), limit = tables.options.queue_limit;
  if (queued >= limit) {
    return fail(Errc::kResourceExhausted, "{} invocations are queued on the node, queue_limit is {}; retry later",
                queued, limit);
  }
  const std::size_t of_flow = tables.queue->queued(flow);
  if (of_flow >= tables.options.queue_limit_per_flow) {
    return fail(Errc::kResourceExhausted, "{} invocations of the function are queued, the limit is {}; retry later",
                of_flow, tables.options.queue_limit_per_flow);
  }
  if (!tables.invocations.has_several_tenants()) return {};
  return leave_room(tables.invocations.of(function->spec.tenant), limit - queued, limit);
}

}  // namespace fairlead
