// One instance without a sandbox: the test is the function at its socket, and the spawner that tells of its process.
#include "runtime/instance.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/clock.h"
#include "model/function.h"
#include "runtime/instance_host.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr auto kPatience = std::chrono::minutes(2);
const std::string kNext = "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n";

std::string post(const std::string& path, const std::string& body) {
  return fmt::format("POST /2018-06-01/runtime/{} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", path,
                     body.size(), body);
}

// A caller's end of a stream.
struct Listener final : AnswerStream {
  void begin(const AnswerHead& head) override {
    begun.emplace_back(std::string(head.request_id) + " " + std::string(head.content_type));
  }
  void part(std::string_view bytes) override { heard += bytes; }
  bool is_full() const override { return full; }
  bool is_gone() const override { return gone; }
  void on_change(std::function<void()> callback) override { changed = std::move(callback); }

  std::vector<std::string> begun;
  std::string heard;
  bool full = false, gone = false;
  std::function<void()> changed;
};

std::string stream_head(const std::string& request_id) {
  return "POST /2018-06-01/runtime/invocation/" + request_id +
         "/response HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"
         "Lambda-Runtime-Function-Response-Mode: streaming\r\n\r\n";
}

class InstanceTest : public testing::Test {
 protected:
  InstanceTest() {
    char pattern[] = "/tmp/fairlead-instance-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    fs::create_directories(dir_ + "/run");
    options_.state_dir = dir_;
    events_.next = [this](InstanceId) { ++waiting_; };
    events_.answered = [this](InstanceId, Answer answer) { answers_.push_back(std::move(answer)); };
    spec_.instance = InstanceId(7);
    spec_.function = "f";
    spec_.arn = "arn:aws:lambda:eu-west-1:000000000000:function:f";
    spec_.code_path = "/code";
    spec_.memory_limit = mib(256);
  }
  ~InstanceTest() override {
    instance_.reset();
    if (child_ > 0) end_child();
    fs::remove_all(dir_);
  }

  void open() {
    instance_ = std::make_unique<Instance>(context_, spec_, std::make_shared<FunctionLog>(dir_, "f", mib(1)));
    Result<UniqueFd> log = instance_->open();
    FL_CHECK(log.has_value(), "{}", log.error().message);
    log_ = *std::move(log);
  }
  // Until it holds; the loop's next event may be a while away.
  template <typename Condition>
  bool run_until(Condition condition) {
    const Instant deadline = monotonic_now() + kPatience;
    while (!condition() && monotonic_now() < deadline) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return condition();
  }

  // ---- the function
  std::string socket_path() const { return dir_ + "/run/7.sock"; }
  void connect() {
    function_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path().c_str(), sizeof address.sun_path - 1);
    FL_CHECK(::connect(function_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    received_.clear();
  }
  void send(const std::string& bytes) {
    FL_CHECK(::send(function_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes));
  }
  // The whole next response; "" when the connection ends first.
  std::string receive() {
    std::size_t size = 0;
    bool ended = false;
    const bool whole = run_until([&] {
      char buffer[4096];
      const ssize_t count = ::recv(function_.get(), buffer, sizeof buffer, 0);
      if (count > 0) received_.append(buffer, static_cast<std::size_t>(count));
      ended = count == 0;
      const std::size_t head = received_.find("\r\n\r\n");
      if (head == std::string::npos) return ended;
      const std::size_t length = received_.find("Content-Length: ");
      const std::size_t body = length < head ? std::stoul(received_.substr(length + 16)) : 0;
      size = head + 4 + body;
      return received_.size() >= size || ended;
    });
    FL_CHECK(whole, "no response");
    std::string response = received_.substr(0, size);
    received_.erase(0, size);
    return response;
  }
  std::string ask(const std::string& request) {
    send(request);
    return receive();
  }
  void wait_in_next() {
    const int before = waiting_;
    send(kNext);
    ASSERT_TRUE(run_until([&] { return waiting_ > before; }));
  }
  void deliver(const std::string& request_id, Invocation invocation = {}, std::shared_ptr<AnswerStream> stream = {}) {
    invocation.request_id = request_id;
    instance_->deliver({.id = InvocationId(++invocations_),
                        .invocation = std::move(invocation),
                        .deadline_epoch_ms = 42,
                        .stream = std::move(stream)});
  }
  void start_invocation(const std::string& request_id) {
    connect();
    wait_in_next();
    deliver(request_id);
    ASSERT_THAT(receive(), StartsWith("HTTP/1.1 200"));
  }
  void print(const std::string& text) { FL_CHECK(::write(log_.get(), text.data(), text.size()) == std::ssize(text)); }

  // ---- the spawner
  void start_child() {
    char program[] = "sleep", argument[] = "600";
    char* const arguments[] = {program, argument, nullptr};
    FL_CHECK(::posix_spawnp(&child_, "sleep", nullptr, nullptr, arguments, environ) == 0);
  }
  void tell_started(UniqueFd memory_peak = {}) {
    UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    FL_CHECK(::listen(listener.get(), 4) == 0);
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    instance_->started(child_, std::move(pidfd), std::move(listener), std::move(memory_peak));
  }
  // The signal that ended it; 0 while it lives.
  int signal_of_child() {
    int status = 0;
    if (::waitpid(child_, &status, WNOHANG) != child_) return 0;
    child_ = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
  }
  int wait_for_signal_of_child() {
    int signal = 0;
    FL_CHECK(run_until([&] { return signal != 0 || (signal = signal_of_child()) != 0; }), "it lives");
    return signal;
  }
  void end_child() {
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }
  ExitInfo end(ExitNote note) {
    std::optional<ExitInfo> info;
    instance_->ended(std::move(note), [&](ExitInfo told) { info = std::move(told); });
    FL_CHECK(run_until([&] { return info.has_value(); }));
    return *std::move(info);
  }
  std::string log_tail() const { return instance_->stats().log_tail; }

  std::string dir_;
  boost::asio::io_context io_;
  InstanceHostOptions options_;
  InstanceEvents events_;
  const SeccompPrograms seccomp_{};
  const InstanceContext context_{io_, options_, events_, [] {}, seccomp_};
  InstanceSpec spec_;
  std::unique_ptr<Instance> instance_;
  UniqueFd log_, function_;
  std::string received_;
  int waiting_ = 0;
  std::uint64_t invocations_ = 0;
  std::vector<Answer> answers_;
  pid_t child_ = 0;
};

TEST_F(InstanceTest, CodeIsMountedReadOnlyAndTheSocketIsNot) {
  spec_.binds = {{"/lib/libcuda.so.1", "/opt/libcuda.so.1", false}, {"/dev/nvidia0", "/dev/nvidia0", true}};
  spec_.shim = ShimAccess{.library = "/shim.so", .socket = "/shim.sock", .token = 5};
  spec_.tmp_limit = mib(4);
  spec_.max_processes = 9;
  open();
  const StartOrder order = instance_->order();
  EXPECT_EQ(order.instance, 7u);
  EXPECT_EQ(order.binds, (std::vector<MountBind>{{"/code", kTaskDir, false},
                                                 {socket_path(), kRuntimeSocketPath, true},
                                                 {"/shim.so", kShimLibraryPath, false},
                                                 {"/shim.sock", kShimSocketPath, true},
                                                 {"/lib/libcuda.so.1", "/opt/libcuda.so.1", false},
                                                 {"/dev/nvidia0", "/dev/nvidia0", true}}));
  EXPECT_EQ(order.memory_limit, mib(256));
  EXPECT_EQ(order.tmp_limit, mib(4));
  EXPECT_EQ(order.max_processes, 9u);
  EXPECT_EQ(order.container, "");
}

TEST_F(InstanceTest, ItsSocketIsForFunctionsAndGoesWithIt) {
  open();
  struct stat info {};
  ASSERT_EQ(::stat(socket_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u) << "functions have another id";
  instance_.reset();
  EXPECT_FALSE(fs::exists(socket_path()));
}

TEST_F(InstanceTest, WhatIsDeliveredHasTheHeadersOfTheContract) {
  open();
  connect();
  wait_in_next();
  deliver("request-1", {.payload = "[1]", .client_context = "{\"a\":1}", .trace_id = "Root=1"});
  const std::string response = receive();
  EXPECT_THAT(response, AllOf(HasSubstr("Lambda-Runtime-Aws-Request-Id: request-1\r\n"),
                              HasSubstr("Lambda-Runtime-Deadline-Ms: 42\r\n"),
                              HasSubstr("Lambda-Runtime-Invoked-Function-Arn: " + spec_.arn + "\r\n"),
                              HasSubstr("Lambda-Runtime-Trace-Id: Root=1\r\n"),
                              HasSubstr("Lambda-Runtime-Client-Context: {\"a\":1}\r\n"), EndsWith("\r\n\r\n[1]")));
  EXPECT_THAT(ask(post("invocation/request-1/response", "[2]")), StartsWith("HTTP/1.1 202"));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].payload, "[2]");
  EXPECT_FALSE(answers_[0].is_error);

  wait_in_next();
  deliver("request-2");
  EXPECT_THAT(receive(),
              AllOf(Not(HasSubstr("Trace-Id")), Not(HasSubstr("traceparent")), Not(HasSubstr("Client-Context"))));
  EXPECT_THAT(ask(post("invocation/request-2/error", "why")), StartsWith("HTTP/1.1 202"));
  EXPECT_TRUE(answers_[1].is_error);
  EXPECT_EQ(answers_[1].invocation, InvocationId(2));
}

TEST_F(InstanceTest, ATraceIsToldInBothForms) {
  open();
  connect();
  wait_in_next();
  deliver("request-1", {.trace_id = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"});
  EXPECT_THAT(receive(), HasSubstr("traceparent: 00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01\r\n"));
}

TEST_F(InstanceTest, WhatComesWithTheAnswerPrecedesItsEndLine) {
  open();
  start_invocation("request-1");
  const std::string answer = post("invocation/request-1/response", "[2]");
  send(answer.substr(0, answer.size() - 1));
  io_.restart();
  io_.poll();  // it waits for the rest, and for output
  send(answer.substr(answer.size() - 1));
  print("last words\n");  // the loop meets both at once, the answer first
  EXPECT_THAT(receive(), StartsWith("HTTP/1.1 202"));
  EXPECT_THAT(log_tail(),
              StartsWith("START RequestId: request-1 Version: $LATEST\nlast words\nEND RequestId: request-1\n"));
}

TEST_F(InstanceTest, AnAnswerBeyondTheLimitEndsTheInvocationWithTheReason) {
  open();
  start_invocation("request-1");
  const std::string answer = post("invocation/request-1/response", std::string(kMaxResponseBytes + 1, 'x'));
  std::size_t sent = 0;
  ASSERT_TRUE(run_until([&] {
    const ssize_t count = ::send(function_.get(), answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    return sent == answer.size();
  }));
  EXPECT_THAT(receive(), StartsWith("HTTP/1.1 413"));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(answers_[0].is_error);
  EXPECT_EQ(answers_[0].content_type, "application/json");
  EXPECT_THAT(answers_[0].payload, HasSubstr("Response payload size (6291457 bytes) exceeded"));
}

TEST_F(InstanceTest, OfAPollThatWasLostTheNextOneGetsTheInvocation) {
  open();
  connect();
  wait_in_next();
  function_.reset();
  ASSERT_TRUE(run_until([&] { return io_.poll() == 0; }));
  deliver("request-1");
  connect();
  EXPECT_THAT(ask(kNext), HasSubstr("Lambda-Runtime-Aws-Request-Id: request-1\r\n"));
  EXPECT_EQ(waiting_, 1) << "it was announced before";
}

TEST_F(InstanceTest, OneThatCannotStartIsEndedUnlessItEndsItself) {
  open();
  start_child();
  tell_started();
  connect();
  EXPECT_THAT(ask(post("init/error", R"({"errorMessage":"no model"})")), StartsWith("HTTP/1.1 202"));
  EXPECT_EQ(wait_for_signal_of_child(), SIGKILL);
  const ExitInfo info = end({.instance = 7, .ended = false});
  EXPECT_EQ(info.init_error_payload, R"({"errorMessage":"no model"})");
  EXPECT_EQ(info.reason, "signal: killed");
}

TEST_F(InstanceTest, OneThatIsUnwantedBeforeItHasStartedIsEndedThen) {
  open();
  start_child();
  instance_->kill();
  EXPECT_EQ(signal_of_child(), 0);
  tell_started();
  EXPECT_EQ(wait_for_signal_of_child(), SIGKILL);
}

TEST_F(InstanceTest, AnEndDuringAnInvocationIsLoggedWithItsReason) {
  open();
  start_invocation("request-1");
  print("dying");
  function_.reset();
  const ExitInfo info = end({.instance = 7, .ended = true, .wait_status = 3 << 8});
  EXPECT_EQ(info.exit_status, 3);
  EXPECT_EQ(info.signal, std::nullopt);
  EXPECT_THAT(log_tail(), AllOf(HasSubstr("dying\nRequestId: request-1 Error: Runtime exited: exit status 3\n"),
                                HasSubstr("END RequestId: request-1\n")));
}

TEST_F(InstanceTest, AnEndBetweenInvocationsIsNot) {
  open();
  start_invocation("request-1");
  ask(post("invocation/request-1/response", "[2]"));
  const std::string before = log_tail();
  function_.reset();
  const ExitInfo info = end({.instance = 7, .ended = true, .wait_status = SIGABRT});
  EXPECT_EQ(info.signal, SIGABRT);
  EXPECT_EQ(info.reason, "signal: SIGABRT");
  EXPECT_EQ(log_tail(), before);
}

TEST_F(InstanceTest, WhyThePlatformEndedItComesBeforeItsStatus) {
  open();
  const ExitInfo info = end({.instance = 7, .ended = true, .wait_status = SIGKILL, .failure = "out of memory"});
  EXPECT_EQ(info.reason, "out of memory");
  EXPECT_EQ(info.signal, SIGKILL);
}

TEST_F(InstanceTest, ItsMemoryIsReadWhileItLivesAndToldAtItsEnd) {
  std::ofstream(dir_ + "/peak") << "12345\n";
  open();
  start_child();
  tell_started(UniqueFd(::open((dir_ + "/peak").c_str(), O_RDONLY | O_CLOEXEC)));
  EXPECT_EQ(instance_->stats().memory_peak, Bytes(12345));
  EXPECT_EQ(instance_->stats().init_pid, child_);
  open();
  end({.instance = 7, .ended = true, .memory_peak = 777});
  EXPECT_EQ(instance_->stats().memory_peak, Bytes(777));
}

// ---- answers in parts

class InstanceStreamTest : public InstanceTest {
 protected:
  void start_streamed() {
    open();
    connect();
    wait_in_next();
    deliver("r", {}, listener_);
    ASSERT_THAT(receive(), StartsWith("HTTP/1.1 200"));
    send(stream_head("r") + "3\r\none\r\n");
    ASSERT_TRUE(run_until([&] { return listener_->heard == "one"; }));
  }
  const std::shared_ptr<Listener> listener_ = std::make_shared<Listener>();
};

TEST_F(InstanceStreamTest, PartsAreHeardBeforeTheAnswerIsWhole) {
  start_streamed();
  EXPECT_EQ(listener_->begun, std::vector<std::string>{"r text/plain"});
  EXPECT_TRUE(answers_.empty());
  EXPECT_THAT(ask("3\r\ntwo\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 202"));
  EXPECT_EQ(listener_->heard, "onetwo");
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(answers_[0].was_streamed);
  EXPECT_FALSE(answers_[0].is_error);
  EXPECT_EQ(answers_[0].payload, "");
  ASSERT_TRUE(answers_[0].first_byte);
  EXPECT_THAT(instance_->stats().log_tail, HasSubstr("Time to First Byte: "));
  wait_in_next();
}

TEST_F(InstanceStreamTest, AHeadIsNoByte) {
  open();
  connect();
  wait_in_next();
  deliver("r", {}, listener_);
  ASSERT_THAT(receive(), StartsWith("HTTP/1.1 200"));
  send(stream_head("r"));
  ASSERT_TRUE(run_until([&] { return !listener_->begun.empty(); }));
  EXPECT_THAT(ask("0\r\n\r\n"), StartsWith("HTTP/1.1 202"));
  EXPECT_FALSE(answers_.at(0).first_byte);
  EXPECT_THAT(instance_->stats().log_tail, Not(HasSubstr("First Byte")));
}

TEST_F(InstanceStreamTest, AnErrorMayFollowTheParts) {
  start_streamed();
  EXPECT_THAT(ask("0\r\nLambda-Runtime-Function-Error-Type: ValueError\r\n"
                  "Lambda-Runtime-Function-Error-Body: eyJlcnJvck1lc3NhZ2UiOiAibm8ifQ==\r\n\r\n"),
              StartsWith("HTTP/1.1 202"));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(answers_[0].is_error);
  EXPECT_EQ(answers_[0].payload, R"({"errorMessage": "no"})");
}

TEST_F(InstanceStreamTest, ABodyThatEndsInTheMiddleIsAnErrorAndTheFunctionGoesOn) {
  start_streamed();
  function_.reset();
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  EXPECT_EQ(answers_[0].failure.type, "Function.StreamCut");
  connect();
  wait_in_next();
}

TEST_F(InstanceStreamTest, ACallerThatLeavesEndsTheFunctionsConnection) {
  start_streamed();
  listener_->gone = true;
  EXPECT_THAT(ask("3\r\ntwo\r\n"), StartsWith("HTTP/1.1 410"));
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  EXPECT_THAT(answers_[0].failure.text, HasSubstr("the caller has left"));
  connect();
  wait_in_next();
}

TEST_F(InstanceStreamTest, ACallerWhoReadsSlowlyIsWaitedFor) {
  start_streamed();
  listener_->full = true;
  send("3\r\ntwo\r\n");
  io_.restart();
  io_.run_for(std::chrono::milliseconds(20));
  send("5\r\nthree\r\n0\r\n\r\n");
  io_.restart();
  io_.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(listener_->heard, "one");
  EXPECT_TRUE(answers_.empty());
  listener_->full = false;
  listener_->changed();
  EXPECT_THAT(receive(), StartsWith("HTTP/1.1 202"));
  EXPECT_EQ(listener_->heard, "onetwothree");
}

TEST_F(InstanceStreamTest, WhereNobodyWantsAStreamItIsCollected) {
  open();
  start_invocation("r");
  EXPECT_THAT(ask(stream_head("r") + "3\r\none\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 202"));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].payload, "one");
  EXPECT_FALSE(answers_[0].was_streamed);
}

TEST_F(InstanceStreamTest, AnErrorBehindACollectedStreamIsTheAnswer) {
  open();
  start_invocation("r");
  EXPECT_THAT(ask(stream_head("r") + "3\r\none\r\n0\r\nLambda-Runtime-Function-Error-Type: E\r\n\r\n"),
              StartsWith("HTTP/1.1 202"));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(answers_[0].is_error);
  EXPECT_EQ(answers_[0].payload, R"({"errorMessage":"","errorType":"E"})");
}

TEST_F(InstanceStreamTest, AnInstanceMayGoInTheMiddleOfAStream) {
  start_streamed();
  instance_.reset();
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(listener_->changed, nullptr);
}

TEST(WordsOfFailedStart, AreTheRunnersThoseItSaidItselfOrHowItEnded) {
  ExitInfo exit{.reason = "exit status 1", .init_error_payload = R"({"errorMessage": "no model", "errorType": "E"})"};
  EXPECT_EQ(words_of_failed_start(exit), "no model");
  exit.init_failure = {"KernelTask.InvalidTask", "there is no object w"};
  EXPECT_EQ(words_of_failed_start(exit), "there is no object w");
  exit.init_failure = {};
  for (const char* said : {"", "no JSON", "[1]", "{}", R"({"errorMessage": 7})", R"({"errorMessage": ""})"}) {
    exit.init_error_payload = said;
    EXPECT_EQ(words_of_failed_start(exit), "exit status 1") << said;
  }
  exit.init_error_payload = std::string(100'000, '[');
  EXPECT_EQ(words_of_failed_start(exit), "exit status 1");
  exit.init_error_payload.clear();
  exit.reason = std::string(299, 'x') + "\xc3\xa4";  // the bound is within the last character
  EXPECT_EQ(words_of_failed_start(exit), std::string(299, 'x'));
}

}  // namespace
}  // namespace fairlead
