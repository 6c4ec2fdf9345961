// The copy streams on the software GPU, alone and behind DeviceObjects. A stream is held by a host function that waits, so that
// what does not wait for it is seen to pass.
#include "runtime/device_server/copy_streams.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <random>
#include <string>

#include "base/check.h"
#include "runtime/device_server/device_objects.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr Instant kNow{};

Bytes mib(std::uint64_t count) {
  return Bytes(static_cast<std::int64_t>(count * kMiB));
}

CudaContext& gpu() {
  return software_gpu(SOFTGPU_FOLDER);
}

class CopyStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    streams_ = CopyStreams::create(gpu()).value();
    memory_ = gpu().reserve_addresses(mib(32), mib(32)).value();
    FL_CHECK(gpu().map_memory(memory_, mib(32)).has_value());
  }
  void TearDown() override {
    go_on();
    FL_CHECK(gpu().synchronize().has_value());
  }
  void hold(CopyLane lane) {
    held_ = released_.get_future().share();
    FL_CHECK(gpu().call_host(
                 streams_->stream(lane), [](void* held) { static_cast<std::shared_future<void>*>(held)->wait(); },
                 &held_) == CUDA_SUCCESS);
    is_held_ = true;
  }
  void go_on() {
    if (std::exchange(is_held_, false)) released_.set_value();
  }
  // Pinned: a copy of other memory would wait for the stream that is held.
  static char* pinned(std::size_t bytes, char value) {
    void* memory = gpu().allocate_pinned(Bytes(static_cast<std::int64_t>(bytes))).value();
    std::memset(memory, value, bytes);
    return static_cast<char*>(memory);
  }
  std::string read(CUdeviceptr address, std::size_t bytes) {
    std::string content(bytes, '?');
    FL_CHECK(gpu().copy_out(content.data(), address, bytes, nullptr) == CUDA_SUCCESS);
    FL_CHECK(gpu().synchronize(nullptr).has_value());
    return content;
  }

  std::unique_ptr<CopyStreams> streams_;
  CUdeviceptr memory_ = 0;
  static constexpr std::size_t kLarge = 20 * kMiB, kSmall = 4096;
  const char* const large_ = pinned(kLarge, 'L');
  const char* const small_ = pinned(kSmall, 's');
  std::promise<void> released_;
  std::shared_future<void> held_;
  bool is_held_ = false;
};

TEST_F(CopyStreamsTest, ASmallCopyPassesALargeOne) {
  hold(CopyLane::kLarge);
  ASSERT_EQ(streams_->copy_in(memory_, large_, kLarge), CUDA_SUCCESS);
  ASSERT_EQ(streams_->copy_in(memory_ + 24 * kMiB, small_, kSmall), CUDA_SUCCESS);
  EXPECT_EQ(streams_->over()[CopyLane::kLarge], 0u);
  ASSERT_TRUE(gpu().synchronize(streams_->stream(CopyLane::kSmall)));
  const CopyPoint over = streams_->over();
  EXPECT_EQ(over[CopyLane::kSmall], 1u);
  EXPECT_EQ(over[CopyLane::kLarge], 0u);
  EXPECT_EQ(read(memory_ + 24 * kMiB, kSmall), std::string(kSmall, 's'));
  go_on();
  ASSERT_TRUE(streams_->synchronize());
  EXPECT_TRUE(streams_->none_pending());
  EXPECT_EQ(read(memory_, kLarge), std::string(kLarge, 'L'));
}

TEST_F(CopyStreamsTest, ACopyWaitsForOneOfTheOtherStreamThatTouchesItsMemory) {
  hold(CopyLane::kLarge);
  ASSERT_EQ(streams_->copy_in(memory_, large_, kLarge), CUDA_SUCCESS);
  const std::uint64_t inside = 17 * kMiB;
  ASSERT_EQ(streams_->copy_in(memory_ + inside, small_, kSmall), CUDA_SUCCESS);
  go_on();
  ASSERT_TRUE(streams_->synchronize());
  EXPECT_EQ(read(memory_ + inside, kSmall), std::string(kSmall, 's'));
  EXPECT_EQ(read(memory_, inside), std::string(inside, 'L'));
}

TEST_F(CopyStreamsTest, ARoomIsNotOverwrittenWhileItIsWrittenBack) {
  ASSERT_EQ(streams_->copy_in(memory_, small_, kSmall), CUDA_SUCCESS);
  ASSERT_TRUE(streams_->synchronize());
  char* const written_back = pinned(kSmall, '?');
  hold(CopyLane::kSmall);
  ASSERT_EQ(streams_->copy_out(written_back, memory_, kSmall), CUDA_SUCCESS);
  ASSERT_EQ(streams_->copy_in(memory_, large_, kLarge), CUDA_SUCCESS);
  go_on();
  ASSERT_TRUE(streams_->synchronize());
  EXPECT_EQ(std::string(written_back, kSmall), std::string(kSmall, 's'));
  EXPECT_EQ(read(memory_, kLarge), std::string(kLarge, 'L'));
}

TEST_F(CopyStreamsTest, AUserWaitsForWhatTouchesItsMemoryAndForNothingElse) {
  const CUstream user = gpu().make_stream().value();
  hold(CopyLane::kLarge);
  ASSERT_EQ(streams_->copy_in(memory_, large_, kLarge), CUDA_SUCCESS);
  ASSERT_EQ(streams_->wait(user, streams_->before(memory_ + 24 * kMiB, kMiB)), CUDA_SUCCESS);
  ASSERT_TRUE(gpu().synchronize(user));  // for ever, if it waited
  const std::uint64_t last = kLarge - kSmall;
  ASSERT_EQ(streams_->wait(user, streams_->before(memory_ + last, kSmall)), CUDA_SUCCESS);
  char* const seen = pinned(kSmall, '?');
  ASSERT_EQ(gpu().copy_out(seen, memory_ + last, kSmall, user), CUDA_SUCCESS);
  go_on();
  ASSERT_TRUE(gpu().synchronize(user));
  EXPECT_EQ(std::string(seen, kSmall), std::string(kSmall, 'L'));
}

// Calls that overlap, of objects on both sides of kLargeCopyBytes, on a device that holds a few of them. Each reads what it
// was given and writes an output, which later calls read, from the device or from where it was written back to.
class OverlappingCalls {
 public:
  explicit OverlappingCalls(std::uint32_t seed) : random_(seed) {
    for (CUstream& stream : streams_) stream = gpu().make_stream().value();
  }
  void step() {
    if (running_.size() == std::size(streams_)) end_oldest();
    auto made = std::make_unique<Call>();  // stays where it is: its scratch memory may move
    Call& call = *made;
    call.request = RequestId(++last_request_);
    call.stream = streams_[last_request_ % std::size(streams_)];
    const std::uint64_t input = number(3) == 0 || contents_.empty() ? add_input() : any();
    const std::uint64_t output = ++last_object_;
    call.needs = {{ObjectId(input), sizes_.at(input), ObjectKind::kInput},
                  {ObjectId(output), size(), ObjectKind::kOutput}};
    call.scratch.bytes = mib(1 + number(3));
    while (true) {
      const Status acquired = objects_->acquire(kNow, call.request, call.needs, call.scratch, call.copies);
      if (acquired) break;
      FL_CHECK(acquired.error().code == Errc::kResourceExhausted && !running_.empty(), "{}", acquired.error().message);
      end_oldest();
    }
    sizes_[output] = call.needs[1].bytes;
    run(call, input, output);
    running_.push_back(std::move(made));
  }
  void end() {
    while (!running_.empty()) end_oldest();
  }
  const ObjectCacheCounters& counters() const { return objects_->cache().counters(); }

 private:
  struct Call {
    RequestId request;
    CUstream stream;
    std::vector<ObjectNeed> needs;
    DeviceObjects::Scratch scratch;
    CopyStreams::Batch copies;
    std::string seen;
    char expected = 0;
    std::uint64_t output = 0;
  };

  std::uint64_t number(std::uint64_t below) { return random_() % below; }
  Bytes size() { return number(2) == 0 ? mib(9 + number(4)) : Bytes(static_cast<std::int64_t>(1 + number(3 * kMiB))); }
  std::uint64_t add_input() {
    const std::uint64_t id = ++last_object_;
    sizes_[id] = size();
    contents_[id] = static_cast<char>('a' + id % 26);
    UniqueFd file(::memfd_create("object", MFD_CLOEXEC));
    const std::string bytes(static_cast<std::size_t>(sizes_[id].count()), contents_[id]);
    FL_CHECK(::write(file.get(), bytes.data(), bytes.size()) == sizes_[id].count());
    FL_CHECK(objects_->supply(ObjectId(id), sizes_[id], file).has_value());
    return id;
  }
  std::uint64_t any() {
    return std::next(contents_.begin(), static_cast<std::ptrdiff_t>(number(contents_.size())))->first;
  }

  // Kernels: the scratch memory is overwritten, the input read, the output written.
  void run(Call& call, std::uint64_t input, std::uint64_t output) {
    FL_CHECK(objects_->wait(call.stream, call.needs, call.scratch, call.copies) == CUDA_SUCCESS);
    const auto scratch_bytes = static_cast<std::size_t>(call.scratch.bytes.count());
    FL_CHECK(gpu().fill_zero(objects_->address(call.scratch), scratch_bytes, call.stream) == CUDA_SUCCESS);
    call.expected = contents_.at(input);
    call.seen.resize(static_cast<std::size_t>(sizes_.at(input).count()));
    FL_CHECK(gpu().copy_out(call.seen.data(), objects_->address(ObjectId(input)), call.seen.size(), call.stream) ==
             CUDA_SUCCESS);
    call.output = output;
    const auto bytes = static_cast<std::size_t>(sizes_.at(output).count());
    FL_CHECK(gpu().fill_zero(objects_->address(ObjectId(output)), bytes, call.stream) == CUDA_SUCCESS);
  }
  void end_oldest() {
    Call& call = *running_.front();
    FL_CHECK(gpu().synchronize(call.stream).has_value());
    EXPECT_EQ(call.seen.find_first_not_of(call.expected), std::string::npos) << "call " << call.request.value();
    objects_->release(call.request, true, call.scratch);
    contents_[call.output] = 0;
    running_.pop_front();
  }

  std::mt19937 random_;
  std::unique_ptr<DeviceObjects> objects_ =
      DeviceObjects::create(gpu(), {.device = mib(64), .host = mib(2048)}).value();
  CUstream streams_[3] = {};
  std::deque<std::unique_ptr<Call>> running_;
  std::map<std::uint64_t, char> contents_;  // of objects that are complete
  std::map<std::uint64_t, Bytes> sizes_;
  std::uint64_t last_object_ = 0, last_request_ = 0;
};

TEST(CopiesUnderPressure, EveryCallSeesTheBytesItWasGiven) {
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    OverlappingCalls calls(seed);
    for (int i = 0; i < 45; ++i) calls.step();
    calls.end();
    EXPECT_GT(calls.counters().evictions, 10u);
    EXPECT_GT(calls.counters().write_backs, 5u);
    EXPECT_GT(calls.counters().host_hits, 3u);
  }
}

}  // namespace
}  // namespace fairlead
