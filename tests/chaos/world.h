// One run of the chaos: a node that lives several lives, its clients, its functions' processes, and what strikes them, all from a
// seed. What must hold is in book.h.
//
// Every step one thing happens: a client comes, sends a piece, hangs up; a process becomes ready, answers, crashes; time passes, or
// somebody sets the clock; a function is deployed, deleted, deployed again by another tenant; the spawner dies; the disk fails, or
// SQLite finds no memory; the power is cut, or the node is stopped and started. Which of these there are is drawn once for a run, so
// that some runs have one kind of fault alone.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "base/rng.h"
#include "chaos/book.h"
#include "chaos/client.h"
#include "chaos/life.h"

namespace fairlead::chaos {

enum class Strike { kPowerCut, kStop, kDisk, kMemory, kSpawner, kWallClock, kHangUp, kDelete, kRedrive, kCount };
using Struck = std::array<std::uint64_t, static_cast<std::size_t>(Strike::kCount)>;
const char* strike_name(Strike strike);

class Door;

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();

  // "": all that must hold did.
  std::string run(int steps);
  const Struck& struck() const { return struck_; }
  const Book& book() const { return book_; }

 private:
  struct Process {
    enum class State { kStarting, kIdle, kRunning, kAnswered, kKilled };
    State state = State::kStarting;
    int incarnation = -1;
    InvocationId invocation;
    std::string payload;
  };

  bool strikes(Strike strike, unsigned one_in);
  void begin_life();
  void end_life();
  void step();
  void settle();
  void take_orders();
  void read_answers();

  void come();
  void send_pieces();
  void hang_up();
  void let_work();
  void work(InstanceId instance, Process& process);
  void answer(InstanceId instance, Process& process);
  void end(InstanceId instance, bool is_nodes_fault);
  void pass_time();
  void deploy(const std::string& name);
  void remove(const std::string& name);
  void redrive();
  void break_disk();
  void change_spawner();
  void come_to_rest();

  Rng rng_;
  store::TestFolder folder_, code_;
  store::PowerCutDisk disk_;
  Book book_;
  Struck struck_{};
  unsigned weather_;      // a bit for each strike: whether this run has it
  bool is_calm_ = false;  // nothing strikes any more
  std::unique_ptr<Door> door_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Life> life_;
  std::map<InstanceId, Process> processes_;
  std::list<Client> clients_;
  int sent_ = 0;
  struct {
    bool fails = false;
    bool has_failed = false;  // in this life
    bool is_cut_soon = false;
    bool has_spawner = true;
  } state_;
};

}  // namespace fairlead::chaos
