//===- OrderSearch.h - orders of least peak ---------------------*- C++ -*-===//
//
// Private to lib/Planner. Each node runs once: which order needs the fewest
// bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_ORDERSEARCH_H
#define CKOPT_LIB_PLANNER_ORDERSEARCH_H

#include "Strategy.h"

namespace ckopt::planner {

struct OrderResult {
  std::vector<NodeId> order;
  int64_t peak = 0; ///< aligned bytes, as simulate() counts them
  /// True if no order without recomputation has a smaller peak: proved by
  /// searching all sets of nodes that may have run.
  bool optimal = false;
};

/// The order of the least peak that was found; it is never worse than the best
/// of candidateOrders(). The same for any number of threads.
OrderResult searchOrder(const Problem &problem, Deadline &deadline,
                        uint64_t seed, double effort = 1, int threads = 1);

/// Runs nodes one after the other and keeps count of what is resident.
class OrderState {
public:
  explicit OrderState(const Problem &problem);

  /// True if all that the node must follow ran.
  bool ready(NodeId n) const { return !ran[n] && waiting[n] == 0; }
  bool hasRun(NodeId n) const { return ran[n]; }
  /// The load while the node runs, next.
  int64_t loadOf(NodeId n) const;
  /// Bytes resident between steps.
  int64_t resident() const { return bytes; }
  void run(NodeId n);
  /// Takes the latest run back.
  void undo(NodeId n);

private:
  bool lives(ValueId storage) const {
    return made[storage] && (readersLeft[storage] > 0 || toEnd[storage]);
  }

  const Problem &problem;
  Csr storages; ///< node -> storages it reads
  Csr makes;    ///< node -> storages it makes
  std::vector<char> ran, made, toEnd;
  std::vector<int32_t> waiting, readersLeft;
  int64_t bytes = 0;
};

/// An order of `window`, the nodes that `state` runs next, whose loads all stay
/// below `below` and whose largest load is the least; empty if there is none or
/// it was not found among `states` sets of nodes that may have run, which are
/// searched best first. `proved`: all that matter were searched. Leaves `state`
/// as it was.
std::vector<NodeId> searchWindow(const Problem &problem, OrderState &state,
                                 const std::vector<NodeId> &window,
                                 int64_t states, int64_t below,
                                 Deadline &deadline, bool &proved);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_ORDERSEARCH_H
