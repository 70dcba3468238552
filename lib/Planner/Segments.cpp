#include "Strategy.h"
using namespace ckopt::planner;
void ckopt::planner::runSegments(StrategyContext &context) {}
