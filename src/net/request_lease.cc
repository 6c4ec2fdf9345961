#include "net/request_lease.h"

#include <utility>

namespace fairlead::net {

// Names who holds its bytes, if nobody does yet. Fails: nobody is known who might.
Status RequestLease::open(const RequestMemory& memory, ByteBudget& budget, HttpRequest& head) {
  if (lease_) return {};
  auto holder = memory.holder ? memory.holder(head) : Result<std::string>("anyone");
  if (!holder) return fail(std::move(holder.error()));
  lease_.open(budget, *std::move(holder));
  return {};
}

Status RequestLease::hold_request(const RequestMemory& memory, ByteBudget& budget, HttpRequest& head,
                                  std::size_t bytes) {
  if (memory.bytes == 0) return {};
  if (Status opened = open(memory, budget, head); !opened) return opened;
  if (lease_.try_hold(bytes)) return {};
  Status refused = fail(Errc::kResourceExhausted,
                        "requests hold {} of the {} bytes that the node keeps for them, and this one needs {} more: "
                        "send less at a time, or try again later",
                        budget.used(), budget.total(), bytes - lease_.bytes());
  lease_.release();
  return refused;
}

Status RequestLease::hold_answer(const RequestMemory& memory, ByteBudget& budget, HttpRequest& head, std::size_t bytes,
                                 const Taker& taker) {
  if (memory.bytes == 0 || (!lease_ && taker.unsent + bytes <= RequestMemory::kFree)) return {};
  if (!open(memory, budget, head)) lease_.open(budget, kNobody);
  if (taker.is_over_unix && memory.keeps_answers_over_unix) return lease_.hold(bytes), Status();
  if (lease_.try_hold(bytes)) return {};
  Status refused =
      fail(Errc::kResourceExhausted,
           "the request was carried out, and its answer of {} bytes is not kept: bodies and answers hold {} of the {} "
           "bytes that the node keeps for them, {} of these their caller's, who may hold as much as is left free; take "
           "answers as they come",
           bytes, budget.used(), budget.total(), lease_.held());
  lease_.release();
  return refused;
}

}  // namespace fairlead::net
