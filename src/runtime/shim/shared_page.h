// A ShimPage in memory that the node and one process of an instance share: the node's end. What it reads there was
// written by the function's process, and may be anything.
#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/shim_page.h"

namespace fairlead {

class SharedPage {
 public:
  // A page of its own, sealed: neither side can change its size under the other.
  static Result<SharedPage> create();

  int fd() const { return fd_.get(); }
  wire::ShimPage& operator*() const { return *page_; }
  wire::ShimPage* operator->() const { return page_.get(); }
  // Keeps the memory mapped when this is gone.
  std::shared_ptr<wire::ShimPage> share() const { return page_; }

 private:
  SharedPage(UniqueFd fd, std::shared_ptr<wire::ShimPage> page) : fd_(std::move(fd)), page_(std::move(page)) {}

  UniqueFd fd_;
  std::shared_ptr<wire::ShimPage> page_;
};

// A memfd of this size that cannot be resized any more. Its pages come into being as they are touched.
Result<UniqueFd> make_sealed_memory(const char* name, std::uint64_t bytes);

}  // namespace fairlead
