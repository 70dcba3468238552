//===- FrontsTest.cpp - which plans every front speaks of -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A statement on plans holds under the restrictions that were asked for,
// whoever asked: C for graphs and for models (which is what Python and the
// driver call), ckopt-plan and ckopt plan. What C writes under every
// restriction is compared with exhaustive search on small graphs; what the
// programs write has to be the same file. The planner's own doors and the pass
// stand in unittests/Planner and unittests/Analysis, Python in python/tests.
//
//===----------------------------------------------------------------------===//
#include "../Planner/ScopeTruth.h"
#include "../Planner/TestGraphs.h"
#include "Handles.h"
#include "ckopt/Base/SettingNames.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

using namespace ckopt::planner::test;
using ckopt::planner::Graph;
using ckopt::planner::parseGraph;
using ckopt::planner::printGraph;
using ckopt::planner::Restriction;
using ckopt::planner::Scope;

namespace {

/// Reads a file of one line.
std::string readText(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path) << text;
}

std::string lineOf(const Plan &plan, int32_t kind) {
  std::string text = textOf(plan, kind);
  return text.substr(0, text.find('\n'));
}

/// The flags, without dashes, that restrict a search to the scope.
std::vector<std::string> flagsOf(Scope scope) {
  std::vector<std::string> flags;
  if (scope.has(Restriction::FixedOrder))
    flags.push_back("fixed-order");
  if (scope.has(Restriction::OrderOnly))
    flags.push_back("order-only");
  return flags;
}

/// Both at once would leave nothing to search, which the fronts refuse.
const std::vector<Scope> kScopes = {
    Scope{}, {Restriction::FixedOrder}, {Restriction::OrderOnly}};

/// One question: a budget, under restrictions.
struct Question {
  Scope scope;
  std::string budget;

  std::string arguments() const {
    std::string text = " --memory-budget=" + budget;
    for (const std::string &flag : flagsOf(scope))
      text += " --" + flag;
    return text;
  }
  void setIn(ckopt_options *options, const char *name) const {
    EXPECT_EQ(ckopt_options_set(options, name, budget.c_str()), CKOPT_OK)
        << ckopt_last_error();
    for (const std::string &flag : flagsOf(scope))
      EXPECT_EQ(ckopt_options_set(options, flag.c_str(), ""), CKOPT_OK)
          << ckopt_last_error();
  }
};

/// Expects what C says, and what it wrote, to be true; returns the bound that
/// it proved.
int64_t expectTrue(const Plan &plan, const Graph &graph,
                   const Question &asked) {
  ckopt_plan_figures figures = {};
  figures.size = sizeof(figures);
  EXPECT_EQ(ckopt_plan_get_figures(plan.get(), &figures), CKOPT_OK);
  EXPECT_EQ(
      figures.restricted_to,
      (asked.scope.has(Restriction::FixedOrder) ? CKOPT_PLAN_FIXED_ORDER : 0) |
          (asked.scope.has(Restriction::OrderOnly) ? CKOPT_PLAN_ORDER_ONLY
                                                   : 0));
  ScopeTruth truth(graph);
  EXPECT_LT(truth.leastCost(asked.scope, figures.bound_bytes - 1), 0);
  truth.expectTrue(lineOf(plan, CKOPT_PLAN_JSON), asked.scope);
  return figures.bound_bytes;
}

int run(const std::string &command) {
  return WEXITSTATUS(std::system((command + " >/dev/null 2>&1").c_str()));
}

/// In program order no search decides what no bound rules out: only there may a
/// plan be one that was not found.
void expectRefused(ckopt_status status, Scope scope) {
  if (status != CKOPT_NO_PLAN_FOUND || !scope.has(Restriction::FixedOrder))
    EXPECT_EQ(status, CKOPT_INFEASIBLE);
}

/// Asks for the least budget, for one below its bound and for more than it.
void askAll(llvm::function_ref<int64_t(const Question &)> ask) {
  for (Scope scope : kScopes) {
    SCOPED_TRACE(scope.words());
    int64_t bound = ask(Question{scope, "min"});
    ASSERT_GT(bound, 1);
    for (int64_t budget : {bound - 1, 2 * bound})
      ask(Question{scope, std::to_string(budget)});
  }
}

TEST(Fronts, GraphsInCAndInTheShell) {
  std::string folder = testing::TempDir();
  int asked = 0, refused = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph = randomGraph(seed, 3 + int(seed % 4), seed % 2);
    std::string text = printGraph(graph), path = folder + "fronts.graph.json";
    writeText(path, text);
    askAll([&](const Question &question) -> int64_t {
      ckopt_options *made = nullptr;
      EXPECT_EQ(ckopt_options_create_for_graph(&made), CKOPT_OK);
      Options options(made);
      question.setIn(made, "budget");
      ckopt_plan *planned = nullptr;
      ckopt_status status =
          ckopt_plan_graph(text.data(), text.size(), made, &planned);
      Plan plan(planned);
      std::string written = folder + "fronts.plan.json";
      int exit = run(CKOPT_BINARIES "/ckopt-plan " + path +
                     question.arguments() + " -o " + written);
      ++asked;
      EXPECT_EQ(exit, int(status)) << ckopt_last_error();
      if (status != CKOPT_OK) {
        ++refused;
        expectRefused(status, question.scope);
        EXPECT_NE(std::string(ckopt_last_error())
                      .find("no plan" + question.scope.words() + " "),
                  std::string::npos)
            << ckopt_last_error();
        ScopeTruth(graph).expectTrue(readText(written), question.scope);
        return 0;
      }
      EXPECT_EQ(lineOf(plan, CKOPT_PLAN_JSON), readText(written));
      return expectTrue(plan, graph, question);
    });
  }
  EXPECT_EQ(asked, 54);
  EXPECT_EQ(refused, 18);
}

TEST(Fronts, ModelsInCAndInTheShell) {
  const char *path = CKOPT_TEST_DATA "/models/two_products.onnx";
  std::string folder = testing::TempDir();
  int asked = 0, refused = 0;
  askAll([&](const Question &question) -> int64_t {
    Options options = makeOptions({{"loss", "mse"}, {"threads", "1"}});
    question.setIn(options.get(), "memory-budget");
    ckopt_model *read = nullptr;
    EXPECT_EQ(ckopt_model_from_file(path, &read), CKOPT_OK);
    Model model(read);
    ckopt_plan *planned = nullptr;
    ckopt_status status =
        ckopt_plan_model(model.get(), options.get(), &planned);
    Plan plan(planned);
    std::string written = folder + "fronts.step.json",
                graphPath = folder + "fronts.step.graph.json";
    int exit = run(CKOPT_BINARIES "/ckopt plan " + std::string(path) +
                   " --loss=mse --threads=1 --plan-out=" + written +
                   " --graph-out=" + graphPath + question.arguments());
    ++asked;
    EXPECT_EQ(exit, int(status)) << ckopt_last_error();
    std::string error;
    std::optional<Graph> graph = parseGraph(readText(graphPath), error);
    EXPECT_TRUE(graph) << error;
    if (!graph)
      return 0;
    EXPECT_LE(std::max(graph->nodes.size(), graph->values.size()), 16u);
    if (status != CKOPT_OK) {
      ++refused;
      expectRefused(status, question.scope);
      EXPECT_NE(std::string(ckopt_last_error())
                    .find("no plan" + question.scope.words() + " "),
                std::string::npos)
          << ckopt_last_error();
      ScopeTruth(*graph).expectTrue(readText(written), question.scope);
      return 0;
    }
    EXPECT_EQ(lineOf(plan, CKOPT_PLAN_JSON), readText(written));
    return expectTrue(plan, *graph, question);
  });
  EXPECT_EQ(asked, 9);
  EXPECT_EQ(refused, 3);
}

} // namespace

namespace {

/// The names of the entries of a help: "  --seed=N   text".
std::set<std::string> namesIn(std::istream &help) {
  std::set<std::string> names;
  for (std::string line; std::getline(help, line);) {
    size_t begin = line.find_first_not_of(" -");
    if (begin != std::string::npos && begin >= 2 && begin <= 4)
      names.insert(
          line.substr(begin, line.find_first_of(" =[", begin) - begin));
  }
  return names;
}

} // namespace

/// A message that named a setting which nobody could give would help nobody.
TEST(FrontsTest, SettingsOfMessagesAreFlags) {
  std::stringstream all;
  for (const char *program :
       {"ckopt import", "ckopt plan", "ckopt compile", "ckopt train",
        "ckopt run", "ckopt bench", "ckopt compare", "ckopt quantize",
        "ckopt-plan"}) {
    FILE *pipe = popen(
        (CKOPT_BINARIES "/" + std::string(program) + " --help-all").c_str(),
        "r");
    ASSERT_NE(pipe, nullptr);
    for (int c; (c = fgetc(pipe)) != EOF;)
      all.put(char(c));
    pclose(pipe);
  }
  std::set<std::string> known = namesIn(all);
  // C has them by the same names, and some that are no flags.
  Options step = makeOptions();
  ckopt_options *graph = nullptr;
  ASSERT_EQ(ckopt_options_create_for_graph(&graph), CKOPT_OK);
  Options owned(graph);
  const std::set<std::string> ofC = {"budget", "total-steps"};
  for (const ckopt_options *options : {step.get(), owned.get()}) {
    std::istringstream help(ckopt_options_help(options));
    for (const std::string &name : namesIn(help))
      EXPECT_TRUE(known.count(name) || ofC.count(name)) << name;
  }
  known.insert(ofC.begin(), ofC.end());
  std::istringstream names{std::string(ckopt::kSettingNames)};
  for (std::string name; names >> name;)
    EXPECT_TRUE(known.count(name)) << name;
}
