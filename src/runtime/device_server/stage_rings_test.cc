// Tensors through a ring: whole, in chunks, while they are still being written; shapes that lie. Planted and caught: a reader that does not
// wait; a word that is set before its chunk is there; a start that is not counted from.
#include "runtime/device_server/stage_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

using testing::HasSubstr;
using wire::StageRingShape;

class StageRingsTest : public testing::Test {
 protected:
  static UniqueFd memory_of(const StageRingShape& shape) {
    UniqueFd memory(::memfd_create("ring", MFD_CLOEXEC));
    FL_CHECK(::ftruncate(memory.get(), static_cast<off_t>(shape.bytes())) == 0);
    return memory;
  }
  CUdeviceptr device_memory(std::uint64_t bytes) {
    const Bytes size(static_cast<std::int64_t>(StageRingShape::round_up(bytes) + (2 << 20)) / (2 << 20) * (2 << 20));
    const CUdeviceptr at = cuda_.reserve_addresses(size, Bytes(2 << 20)).value();
    FL_CHECK(cuda_.map_memory(at, size).has_value());
    return at;
  }
  std::string pattern(std::uint64_t bytes) const {
    std::string text(bytes, '\0');
    for (std::uint64_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 4096);
    return text;
  }

  CudaContext& cuda_ = software_gpu(SOFTGPU_FOLDER);
  CUstream writer_ = cuda_.make_stream().value(), reader_ = cuda_.make_stream().value();
};

// The reader is queued first, on another mapping of the memory, as another server's would be.
TEST_F(StageRingsTest, ReaderWaitsForEachChunk) {
  for (const std::uint64_t bytes : {std::uint64_t{4}, StageRingShape::kChunk, 3 * StageRingShape::kChunk + 12}) {
    const StageRingShape shape{2, bytes};
    const UniqueFd memory = memory_of(shape);
    StageRings ours(cuda_), theirs(cuda_);
    ASSERT_TRUE(ours.open({7, 2, bytes}, memory));
    ASSERT_TRUE(theirs.open({7, 2, bytes}, memory));
    const CUdeviceptr from = device_memory(bytes), to = device_memory(bytes);
    for (std::uint32_t use = 0, start = 0xfffffffe; use < 3; ++use, start += shape.chunks()) {
      const wire::RingSlot slot{.buffer = 0, .slot = 1, .start = start, .ring = 7};
      if (use == 0) {  // its word begins where the node says
        auto* at =
            static_cast<char*>(::mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
        std::memcpy(at + shape.word_offset(1), &start, 4);
        ::munmap(at, shape.bytes());
      }
      std::string sent = pattern(bytes), got(bytes, 'x');
      sent[0] = static_cast<char>(use);
      CUevent read = cuda_.make_event(false).value();
      ASSERT_EQ(theirs.read(slot, to, reader_), CUDA_SUCCESS);
      ASSERT_EQ(cuda_.record(read, reader_), CUDA_SUCCESS);
      for (int look = 0; look < 1000; ++look) ASSERT_EQ(cuda_.query(read), CUDA_ERROR_NOT_READY);
      ASSERT_EQ(cuda_.copy_in(from, sent.data(), bytes, writer_), CUDA_SUCCESS);
      ASSERT_EQ(ours.write(slot, from, writer_), CUDA_SUCCESS);
      ASSERT_TRUE(cuda_.synchronize(reader_));
      ASSERT_EQ(cuda_.copy_out(got.data(), to, bytes, reader_), CUDA_SUCCESS);
      ASSERT_TRUE(cuda_.synchronize(reader_));
      EXPECT_TRUE(got == sent) << bytes << " bytes, use " << use;
    }
  }
}

// A writer that died leaves a reader waiting: the node sets the word, and the stream goes on.
TEST_F(StageRingsTest, WordThatSomebodyElseSetsFreesTheReader) {
  const StageRingShape shape{1, 2 * StageRingShape::kChunk};
  const UniqueFd memory = memory_of(shape);
  StageRings rings(cuda_);
  ASSERT_TRUE(rings.open({1, 1, shape.slot_bytes}, memory));
  const CUdeviceptr to = device_memory(shape.slot_bytes);
  CUevent read = cuda_.make_event(false).value();
  ASSERT_EQ(rings.read({.buffer = 0, .slot = 0, .start = 5, .ring = 1}, to, reader_), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.record(read, reader_), CUDA_SUCCESS);
  for (int look = 0; look < 1000; ++look) ASSERT_EQ(cuda_.query(read), CUDA_ERROR_NOT_READY);
  const std::uint32_t whole = 7;
  ASSERT_EQ(::pwrite(memory.get(), &whole, sizeof whole, 0), 4);
  ASSERT_TRUE(cuda_.synchronize(reader_));
}

TEST_F(StageRingsTest, ShapesThatLieAreRefused) {
  const UniqueFd memory = memory_of({2, 100});
  StageRings rings(cuda_);
  EXPECT_THAT(rings.open({1, 0, 100}, memory).error().message, HasSubstr("0 slots"));
  EXPECT_THAT(rings.open({1, 65, 100}, memory).error().message, HasSubstr("at most 64"));
  EXPECT_THAT(rings.open({1, 2, 0}, memory).error().message, HasSubstr("of 0 bytes"));
  EXPECT_THAT(rings.open({1, 64, std::uint64_t{1} << 63}, memory).error().message, HasSubstr("at most"));
  EXPECT_THAT(rings.open({1, 2, 8192}, memory).error().message, HasSubstr("it needs"));
  ASSERT_TRUE(rings.open({1, 2, 100}, memory));
  EXPECT_THAT(rings.open({1, 2, 100}, memory).error().message, HasSubstr("open already"));
  EXPECT_TRUE(rings.check({.buffer = 0, .slot = 1, .start = 0, .ring = 1}, 100));
  EXPECT_FALSE(rings.check({.buffer = 0, .slot = 2, .start = 0, .ring = 1}, 100));
  EXPECT_FALSE(rings.check({.buffer = 0, .slot = 1, .start = 0, .ring = 1}, 101));
  EXPECT_FALSE(rings.check({.buffer = 0, .slot = 1, .start = 0, .ring = 2}, 100));
  rings.close(1);
  rings.close(1);
  EXPECT_FALSE(rings.check({.buffer = 0, .slot = 1, .start = 0, .ring = 1}, 100));
}

}  // namespace
}  // namespace fairlead
