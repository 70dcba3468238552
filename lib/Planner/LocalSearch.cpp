#include "Strategy.h"
using namespace ckopt::planner;
void ckopt::planner::runLocalSearch(StrategyContext &context) {}
