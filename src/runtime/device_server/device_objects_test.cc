// Ranges of several tenants on the software GPU: where objects lie, what is zeroed, how memory moves between tenants.
#include "runtime/device_server/device_objects.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

using RangeIndex = DeviceObjects::RangeIndex;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr Instant kNow{};

Bytes mib(std::uint64_t count) {
  return Bytes(static_cast<std::int64_t>(count * kMiB));
}

CudaContext& gpu() {
  return software_gpu(SOFTGPU_FOLDER);
}

class TenantRanges : public testing::Test {
 protected:
  // 32 MiB for all: the software GPU maps 2 MiB at a time.
  void SetUp() override {
    objects_ = DeviceObjects::create(gpu(), {.device = mib(32), .host = mib(256)}, AddressSpaces::kPerTenant).value();
    a_ = objects_->add_range().value();
    b_ = objects_->add_range().value();
  }

  // An object of so many bytes of this value.
  void supply(std::uint64_t id, RangeIndex range, Bytes bytes, char value) {
    UniqueFd file(::memfd_create("object", MFD_CLOEXEC));
    const std::string content(static_cast<std::size_t>(bytes.count()), value);
    FL_CHECK(::write(file.get(), content.data(), content.size()) == bytes.count());
    ASSERT_TRUE(objects_->supply(ObjectId(id), bytes, file, range));
    sizes_[id] = bytes;
  }
  // A call of its tenant with these objects and so much scratch memory, which is left as it was found.
  Status call(RangeIndex range, const std::vector<std::uint64_t>& ids, Bytes scratch = Bytes(0)) {
    const RequestId request(++last_request_);
    DeviceObjects::Scratch used{.range = range, .offset = 0, .bytes = scratch};
    std::vector<ObjectNeed> needs;
    for (const std::uint64_t id : ids) needs.push_back({ObjectId(id), sizes_.at(id), ObjectKind::kInput});
    Status acquired = objects_->acquire(kNow, request, needs, used, copies_);
    if (!acquired) return acquired;
    FL_CHECK(gpu().synchronize().has_value());
    scratch_ = scratch == Bytes(0) ? "" : read(objects_->address(used), static_cast<std::size_t>(scratch.count()));
    EXPECT_TRUE(scratch == Bytes(0) || objects_->range(range).contains(objects_->address(used)));
    objects_->release(request, true, used);
    return {};
  }
  static std::string read(CUdeviceptr address, std::size_t bytes) {
    std::string content(bytes, '?');
    FL_CHECK(gpu().copy_out(content.data(), address, bytes, nullptr) == CUDA_SUCCESS);
    FL_CHECK(gpu().synchronize().has_value());
    return content;
  }
  std::string content(std::uint64_t id) {
    return read(objects_->address(ObjectId(id)), static_cast<std::size_t>(sizes_.at(id).count()));
  }
  std::string filled(std::uint64_t id, char value) {
    return std::string(static_cast<std::size_t>(sizes_.at(id).count()), value);
  }

  std::unique_ptr<DeviceObjects> objects_;
  RangeIndex a_ = 0, b_ = 0;
  std::map<std::uint64_t, Bytes> sizes_;
  std::uint64_t last_request_ = 0;
  CopyStreams::Batch copies_;
  std::string scratch_;
};

TEST_F(TenantRanges, AreAlignedApartAndAtLeast4GiB) {
  const AddressRange& a = objects_->range(a_);
  const AddressRange& b = objects_->range(b_);
  EXPECT_EQ(a.span(), std::uint64_t{4} << 30);
  EXPECT_EQ(a.base() % a.span(), 0u);
  const auto [low, high] = std::minmax({a.base(), b.base()});  // a list: copies
  EXPECT_GE(high - low, a.span() + AddressRange::kGuardBytes);
}

TEST_F(TenantRanges, HoldTheirTenantsObjectsAndScratchMemory) {
  supply(1, a_, mib(3), 'a');
  supply(2, b_, mib(3), 'b');
  ASSERT_TRUE(call(a_, {1}, mib(1)));
  ASSERT_TRUE(call(b_, {2}, mib(1)));
  EXPECT_TRUE(objects_->range(a_).contains(objects_->address(ObjectId(1))));
  EXPECT_TRUE(objects_->range(b_).contains(objects_->address(ObjectId(2))));
  EXPECT_EQ(content(1), filled(1, 'a'));
  EXPECT_EQ(content(2), filled(2, 'b'));
  DeviceObjects::Scratch none{.range = a_, .offset = 0, .bytes = Bytes(0)};
  EXPECT_DEATH((void)objects_->acquire(kNow, RequestId(99), {{ObjectId(2), mib(3), ObjectKind::kInput}}, none, copies_),
               "object 2 is in range 1, the call's is 0");
}

TEST_F(TenantRanges, MemoryMovesToWhoeverNeedsItAndSaysNothingOfWhoHadIt) {
  for (int turn = 0; turn < 3; ++turn) {  // each fills the device with its secret, then the other takes all of it
    for (const RangeIndex range : {a_, b_}) {
      const std::uint64_t id = 10 + 2 * static_cast<std::uint64_t>(turn) + range;
      supply(id, range, mib(30), 'S');
      ASSERT_TRUE(call(range, {id}));
      EXPECT_EQ(content(id), filled(id, 'S'));
      const RangeIndex other = range == a_ ? b_ : a_;
      const Status took = call(other, {}, mib(30));
      ASSERT_TRUE(took) << took.error().message;
      if (turn == 0 && range == a_) {
        EXPECT_EQ(std::ranges::count(scratch_, 'S'), 0);
        EXPECT_EQ(std::ranges::count(scratch_, '\0'), 30 * static_cast<std::ptrdiff_t>(kMiB));
      }
      objects_->drop(ObjectId(id));
    }
  }
  EXPECT_LE(objects_->mapped(), mib(32 + 2 * 2 * 2));  // two pieces more for each range
}

TEST_F(TenantRanges, WhatIsInTheWayIsMovedTogether) {
  for (std::uint64_t id = 1; id <= 15; ++id) {
    supply(id, a_, mib(2), static_cast<char>('a' + id));
    ASSERT_TRUE(call(a_, {id}));
  }
  for (std::uint64_t id = 1; id < 15; ++id) objects_->drop(ObjectId(id));  // free, but below the last
  supply(20, b_, mib(26), 'B');
  const Status loaded = call(b_, {20});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(content(15), filled(15, 'a' + 15));
  EXPECT_EQ(content(20), filled(20, 'B'));
  EXPECT_EQ(objects_->cache().counters().evictions, 0u);
}

TEST_F(TenantRanges, VariablesStayWhereTheyAreAndHaveABound) {
  const CUdeviceptr first = objects_->reserve_variables(kNow, a_, 5000).value();
  EXPECT_EQ(first % AddressRange::kVariablesAlignment, 0u);
  EXPECT_TRUE(objects_->range(a_).contains(first));
  const std::string value(5000, 'v');
  ASSERT_TRUE(objects_->fill_variables(first, sizeof value, pieces_of(std::as_bytes(std::span(value)))));
  supply(1, a_, mib(30), 'a');
  ASSERT_TRUE(call(a_, {1}));
  const CUdeviceptr second = objects_->reserve_variables(kNow, b_, 3 * kMiB / 2).value();
  EXPECT_EQ(read(second, 3 * kMiB / 2), std::string(3 * kMiB / 2, '\0'));
  EXPECT_EQ(read(first, 5000), value);
  EXPECT_EQ(objects_->reserve_variables(kNow, a_, 64 * kMiB).error().code, Errc::kTooLarge);
  // The cache counts them: with 32 MiB for all there is less for objects now.
  supply(2, b_, mib(31), 'b');
  EXPECT_EQ(call(b_, {2}).error().code, Errc::kResourceExhausted);
}

TEST_F(TenantRanges, AServerHasAMostOfThem) {
  for (std::size_t i = 2; i < DeviceObjects::kMaxRanges; ++i) ASSERT_TRUE(objects_->add_range()) << i;
  EXPECT_EQ(objects_->add_range().error().code, Errc::kResourceExhausted);
}

// Three tenants with 8 MiB for all, which no two of them fill at a time without moving pieces. Memory is never given back
// to the driver, so the cases of the property share the ranges.
struct CrowdedDevice {
  std::unique_ptr<DeviceObjects> objects =
      DeviceObjects::create(gpu(), {.device = mib(8), .host = mib(512)}, AddressSpaces::kPerTenant).value();
  RangeIndex ranges[3] = {objects->add_range().value(), objects->add_range().value(), objects->add_range().value()};
  std::uint64_t last_object = 0, last_request = 0;
};

RC_GTEST_PROP(CrowdedTenants, AdmittedCallsFindRoomAndSeeOnlyTheirOwnBytes, ()) {
  static CrowdedDevice device;
  DeviceObjects& objects = *device.objects;
  struct Known {
    RangeIndex range;
    Bytes bytes;
  };
  std::map<std::uint64_t, Known> known;
  // All of the range from the first case on: sizes of bytes would move nothing.
  const auto steps = *rc::gen::container<std::vector<std::pair<int, std::uint64_t>>>(
      6, rc::gen::resize(rc::kNominalSize,
                         rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange<std::uint64_t>(1, 6 * kMiB))));
  for (const auto& [tenant, number] : steps) {
    const RangeIndex range = device.ranges[tenant];
    const char mark = static_cast<char>('a' + tenant);
    const Bytes bytes(static_cast<std::int64_t>(number));
    const std::uint64_t id = ++device.last_object;
    UniqueFd file(::memfd_create("object", MFD_CLOEXEC));
    const std::string content(number, mark);
    FL_CHECK(::write(file.get(), content.data(), number) == bytes.count());
    RC_ASSERT(objects.supply(ObjectId(id), bytes, file, range).has_value());
    known[id] = {range, bytes};
    DeviceObjects::Scratch scratch{.range = range, .offset = 0, .bytes = Bytes(bytes.count() / 4)};
    const RequestId request(++device.last_request);
    CopyStreams::Batch copies;
    RC_ASSERT(objects.acquire(kNow, request, {{ObjectId(id), bytes, ObjectKind::kInput}}, scratch, copies).has_value());
    FL_CHECK(gpu().synchronize().has_value());
    std::string seen(static_cast<std::size_t>(scratch.bytes.count()), '?');
    if (!seen.empty()) {
      FL_CHECK(gpu().copy_out(seen.data(), objects.address(scratch), seen.size(), nullptr) == CUDA_SUCCESS);
    }
    FL_CHECK(gpu().synchronize().has_value());
    for (const char other : {'a', 'b', 'c'}) RC_ASSERT(other == mark || seen.find(other) == std::string::npos);
    for (const auto& [other, what] : known) {
      if (!objects.cache().on_device(ObjectId(other))) continue;
      std::string first(static_cast<std::size_t>(what.bytes.count()), '?');
      FL_CHECK(gpu().copy_out(first.data(), objects.address(ObjectId(other)), first.size(), nullptr) == CUDA_SUCCESS);
      FL_CHECK(gpu().synchronize().has_value());
      RC_ASSERT(first == std::string(first.size(), static_cast<char>('a' + (what.range - device.ranges[0]))));
    }
    objects.release(request, true, scratch);
    RC_ASSERT(objects.mapped() <= mib(8 + 3 * 2 * 2));
  }
  for (const auto& [id, what] : known) objects.drop(ObjectId(id));
}

}  // namespace
}  // namespace fairlead
