// ffmpeg: transcodes a generated video: scale, then a block-transform encoder.
// Parameters: source_width, source_height, width and height (multiples of 8), frames, quality, seed.
#include <cmath>

#include "common/workload.h"
#include "ffmpeg/reference.h"
#include "kernels_ptx.h"

namespace fairlead::sample::ffmpeg {
namespace {

constexpr unsigned kThreads = 64;
constexpr unsigned kBlock = 8;
constexpr Parameters::Range kSideRange = {16, 4096};

class Ffmpeg : public Workload {
 public:
  explicit Ffmpeg(const Gpu& gpu) : gpu_(gpu), matrix_(gpu, cosine_matrix()) {}

  std::string invoke(Parameters& parameters) override {
    const Video video = {
        .source_width = static_cast<int>(parameters.integer("source_width", 320, kSideRange)),
        .source_height = static_cast<int>(parameters.integer("source_height", 180, kSideRange)),
        .width = static_cast<int>(parameters.multiple_of(kBlock, "width", 208, kSideRange)),
        .height = static_cast<int>(parameters.multiple_of(kBlock, "height", 120, kSideRange)),
        .frames = static_cast<int>(parameters.integer("frames", 28, {1, 10000})),
        .quality = static_cast<int>(parameters.integer("quality", 8, {1, 50})),
        .seed = static_cast<unsigned>(parameters.integer("seed", 1, {0, INT32_MAX})),
    };
    parameters.check_all_used();
    Device device(*this, video);
    std::int64_t bits = 0;
    double squared_error = 0;
    double gpu_ms = 0;
    for (int frame = 0; frame < video.frames; ++frame) {
      timer_.start();
      device.encode(frame);
      gpu_ms += timer_.stop_ms();
      bits += device.bits.download().front();
      squared_error += device.squared_error.download().front();
    }
    const double pixels = static_cast<double>(video.width) * video.height * video.frames;
    return JsonObject()
        .add("function", "ffmpeg")
        .add("frames", video.frames)
        .add("encoded_bytes", bits / 8)
        .add("psnr_db", squared_error > 0 ? 10 * std::log10(255.0 * 255.0 * pixels / squared_error) : 99.0)
        .add("checksum", static_cast<double>(bits) + squared_error)
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const Video& video :
         {Video{16, 16, 16, 16, 1, 1, 1}, Video{64, 48, 40, 24, 2, 8, 2}, Video{100, 60, 200, 120, 2, 20, 3}}) {
      Device device(*this, video);
      for (int frame = 0; frame < video.frames; ++frame) {
        const EncodedFrame expected = encode_frame(video, frame);
        device.encode(frame);
        const std::string what = "ffmpeg " + std::to_string(video.width) + "x" + std::to_string(video.height) +
                                 " quality=" + std::to_string(video.quality) + " frame=" + std::to_string(frame);
        test.compare_exact(what + " levels", device.levels.download(), expected.levels);
        test.compare_exact(what + " bits, error",
                           {device.bits.download().front(), static_cast<int>(device.squared_error.download().front())},
                           {expected.bits, static_cast<int>(expected.squared_error)});
      }
    }
  }

 private:
  // One video's buffers.
  struct Device {
    Device(const Ffmpeg& owner, const Video& what)
        : function(owner),
          video(what),
          source(owner.gpu_, static_cast<std::size_t>(what.source_width * what.source_height)),
          picture(owner.gpu_, static_cast<std::size_t>(what.width * what.height)),
          levels(owner.gpu_, static_cast<std::size_t>(what.width * what.height)),
          bits(owner.gpu_, 1),
          squared_error(owner.gpu_, 1) {}

    void encode(int frame) {
      bits.fill(0);
      squared_error.fill(0);
      const auto source_rows = static_cast<unsigned>(video.source_height);
      const auto rows = static_cast<unsigned>(video.height);
      function.render_.launch({blocks(video.source_width, kThreads), source_rows}, {kThreads}, source,
                              video.source_width, frame, video.seed);
      function.scale_.launch({blocks(video.width, kThreads), rows}, {kThreads}, source, video.source_width,
                             video.source_height, picture, video.width);
      const Dim3 grid = {static_cast<unsigned>(video.width) / kBlock, rows / kBlock};
      function.encode_.launch(grid, {kBlock, kBlock}, picture, video.width, function.matrix_, video.quality, levels,
                              bits, squared_error);
    }

    const Ffmpeg& function;
    const Video& video;
    DeviceArray<unsigned char> source;
    DeviceArray<unsigned char> picture;
    DeviceArray<int> levels;
    DeviceArray<int> bits;
    DeviceArray<long long> squared_error;
  };

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel render_ = module_.kernel("render");
  Kernel scale_ = module_.kernel("scale");
  Kernel encode_ = module_.kernel("encode");
  GpuTimer timer_{gpu_};
  DeviceArray<int> matrix_;
};

}  // namespace
}  // namespace fairlead::sample::ffmpeg

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "ffmpeg",
                       [](const fairlead::Gpu& gpu) { return std::make_unique<ffmpeg::Ffmpeg>(gpu); });
}
