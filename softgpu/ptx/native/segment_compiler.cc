#include "softgpu/ptx/native/segment_compiler.h"

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

// Where a segment's code goes on, and where it ends.
class SegmentCompiler {
 public:
  SegmentCompiler(const CompileTarget& target, const Segment& segment, const RowFlow& flow,
                  std::span<const std::pair<std::int32_t, std::uint8_t>> tracked)
      : as_(target.assembler),
        program_(target.program),
        segment_(segment),
        slow_(as_, target.runtime, target.calls),
        frame_(as_, segment, flow, slow_),
        emission_{as_, VectorCode(as_), {as_, flow}, {as_, segment, tracked}, slow_, frame_} {}

  void compile();

 private:
  void close_loop();
  void go_round(const Instruction* to, int steps);
  void write_exit(const Step& step);
  // Continues at `next` behind the current step.
  void leave(const Instruction* next, int steps) {
    frame_.leave(next, steps, emission_.registers.now().step, emission_.patterns.rows());
  }

  Assembler& as_;
  const Program& program_;
  const Segment& segment_;
  SlowWays slow_;
  CodeFrame frame_;
  Emission emission_;
  Assembler::Label loop_ = 0;
};

void SegmentCompiler::compile() {
  frame_.enter(static_cast<std::int32_t>(emission_.patterns.rows().size() * sizeof(Pattern)));
  emission_.patterns.prepare(program_);
  loop_ = as_.label();
  as_.bind(loop_);
  const auto last = static_cast<int>(segment_.steps.size()) - (segment_.is_loop ? 1 : 0);
  for (int i = 0; i < last; ++i) {
    const Step& step = segment_.steps[static_cast<std::size_t>(i)];
    emission_.registers.go_to(i);
    step.meaning.action == Action::kBranchIf ? write_exit(step) : write_instruction(emission_, step);
  }
  emission_.registers.go_to(last - 1);
  emission_.registers.write_back(emission_.registers.now());
  if (segment_.is_loop) {
    close_loop();
  } else {
    leave(segment_.steps.back().at + 1, last);
  }
  slow_.emit_deferred();
}

// A backward branch that all lanes take, none, or some: the last is the interpreter's business, not counted here.
void SegmentCompiler::close_loop() {
  const Instruction* branch = segment_.steps.back().at;
  const auto steps = static_cast<int>(segment_.steps.size());
  if (segment_.steps.back().meaning.action == Action::kBranch) return go_round(branch->target, steps);
  const Assembler::Label not_all = as_.label(), some = as_.label();
  as_.load32(rax, row_memory(branch->a));
  if (branch->mode != 0) as_.not32(rax);
  as_.op32(Integer::kAnd, rax, r15);
  as_.op32(Integer::kCmp, rax, r15);
  as_.jump_if(Condition::kNotEqual, not_all);
  go_round(branch->target, steps);
  as_.bind(not_all);
  as_.test32(rax, -1);
  as_.jump_if(Condition::kNotEqual, some);
  leave(branch + 1, steps);
  as_.bind(some);
  leave(branch, steps - 1);
}

// The backward branch: the warp stops when its budget is used up.
void SegmentCompiler::go_round(const Instruction* to, int steps) {
  const Assembler::Label pauses = as_.label();
  frame_.count(steps);
  as_.subtract32(warp_field(&Warp::budget), steps);
  as_.jump_if(Condition::kSign, pauses);
  as_.jump(loop_);
  as_.bind(pauses);
  as_.move(rax, reinterpret_cast<std::uint64_t>(to));
  as_.store(warp_field(&Warp::next), rax);
  leave(nullptr, 0);
}

// A branch forward: when any lane takes it, it is the interpreter's business, not counted here.
void SegmentCompiler::write_exit(const Step& step) {
  emission_.bring_row(step.at->a);
  const Assembler::Label taken = as_.label();
  as_.load32(rax, row_memory(step.at->a));
  if (step.at->mode != 0) as_.not32(rax);
  as_.op32(Integer::kAnd, rax, r15);
  as_.jump_if(Condition::kNotEqual, taken);
  const Place& now = emission_.registers.now();
  slow_.defer([this, &step, taken, place = now.with_step(now.step - 1), rows = emission_.patterns.rows()] {
    as_.bind(taken);
    emission_.registers.write_back(place);
    frame_.leave(step.at, place.step + 1, place.step, rows);
  });
}

}  // namespace

void compile_segment(const CompileTarget& target, const Segment& segment, const RowFlow& flow,
                     std::span<const std::pair<std::int32_t, std::uint8_t>> tracked) {
  SegmentCompiler(target, segment, flow, tracked).compile();
}

}  // namespace softgpu::ptx::native
