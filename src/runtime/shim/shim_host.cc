#include "runtime/shim/shim_host.h"

#include <sys/random.h>

#include <cerrno>
#include <map>
#include <utility>

#include "base/check.h"
#include "runtime/shim/shim_instance.h"

namespace fairlead {
namespace {

class ShimHostImpl final : public ShimHost {
 public:
  ShimHostImpl(boost::asio::io_context& io, ShimHostOptions options, ShimEvents events)
      : options_(std::move(options)),
        events_(std::move(events)),
        arenas_(options_.host_memory, options_.background),
        context_{io, options_, events_, arenas_, last_process_, last_request_} {}

  Result<ShimAccess> add(ShimTerms terms) override {
    std::uint64_t token = 0;
    if (::getrandom(&token, sizeof token, 0) != sizeof token) return fail(errno_error(errno, "getrandom"));
    const InstanceId id = terms.instance;
    FL_CHECK(!instances_.contains(id), "instance {} added twice", id.value());
    auto instance = std::make_unique<ShimInstance>(context_, std::move(terms), token);
    Result<ShimAccess> access = instance->open();
    if (access) instances_.emplace(id, std::move(instance));
    return access;
  }

  void remove(InstanceId instance) override { instances_.erase(instance); }

  void swap_out(InstanceId instance, std::uint64_t bytes, Duration deadline) override {
    if (ShimInstance* found = find(instance)) found->swap_out(bytes, deadline);
  }
  void swap_in(InstanceId instance) override {
    if (ShimInstance* found = find(instance)) found->swap_in();
  }
  void grant_room(InstanceId instance, std::uint64_t request, bool granted) override {
    if (ShimInstance* found = find(instance)) found->grant_room(request, granted);
  }
  std::optional<ShimUse> measure(InstanceId instance) override {
    ShimInstance* found = find(instance);
    return found == nullptr ? std::nullopt : found->measure();
  }
  const StagingBudget& staging() const override { return arenas_.budget(); }

 private:
  ShimInstance* find(InstanceId instance) {
    const auto found = instances_.find(instance);
    return found == instances_.end() ? nullptr : found->second.get();
  }

  const ShimHostOptions options_;
  const ShimEvents events_;
  StagingArenas arenas_;
  std::uint64_t last_process_ = 0;
  std::uint64_t last_request_ = 0;
  const ShimContext context_;
  std::map<InstanceId, std::unique_ptr<ShimInstance>> instances_;
};

}  // namespace

std::unique_ptr<ShimHost> ShimHost::create(boost::asio::io_context& io, ShimHostOptions options, ShimEvents events) {
  return std::make_unique<ShimHostImpl>(io, std::move(options), std::move(events));
}

}  // namespace fairlead
