// What one request holds of its server's memory (RequestMemory): its bytes as they arrive, then its answer in their place.
//
// Not thread-safe. Must not outlive the budget.
#pragma once

#include <cstddef>

#include "base/byte_budget.h"
#include "base/result.h"
#include "net/http_server.h"

namespace fairlead::net {

inline constexpr const char* kNobody = "(nobody)";  // no tenant's name: who holds answers of those who are not known

class RequestLease {
 public:
  // Whether so many bytes of it may be kept. An error says why not, and then nothing is held: kResourceExhausted, or whatever
  // RequestMemory::holder says of who sends it.
  Status hold_request(const RequestMemory& memory, ByteBudget& budget, HttpRequest& head, std::size_t bytes);

  // Who takes the answer, and how many bytes of answers wait for him already.
  struct Taker {
    bool is_over_unix = false;
    std::size_t unsent = 0;
  };
  // From here on the answer. kResourceExhausted: it finds no room in its holder's part and is not to be kept, since who lets answers
  // lie would have the node's memory, and with it everybody's; its text is what to answer instead.
  Status hold_answer(const RequestMemory& memory, ByteBudget& budget, HttpRequest& head, std::size_t bytes,
                     const Taker& taker);
  void release() { lease_.release(); }

 private:
  Status open(const RequestMemory& memory, ByteBudget& budget, HttpRequest& head);

  ByteBudget::Lease lease_;
};

}  // namespace fairlead::net
