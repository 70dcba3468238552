//===- LibraryTest.cpp - wrong use, options and plans in C ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Handles.h"
#include "ckopt-c/mlir.h"

#include <cstddef>
#include <cstring>
#include <fstream>
#include <locale.h>
#include <set>
#include <sstream>

TEST(CApi, NullPointersAreStatuses) {
  ckopt_tensor tensor;
  ckopt_tensors *tensors = nullptr;
  ckopt_model *model = nullptr;
  ckopt_plan *plan = nullptr;
  ckopt_step *step = nullptr;
  const char *text = nullptr;
  const int64_t *nodes = nullptr;
  size_t count = 0;
  ckopt_field field;
  Options some = makeOptions();
  Model digits = digitsModel();
  int number = 0;
#define REFUSED(call)                                                          \
  do {                                                                         \
    ++number;                                                                  \
    EXPECT_FAILS(CKOPT_INVALID_ARGUMENT, "NULL", call);                        \
  } while (0)
  REFUSED(ckopt_tensors_from_file(nullptr, &tensors));
  REFUSED(ckopt_tensors_from_file("a.npz", nullptr));
  REFUSED(ckopt_tensors_get(nullptr, 0, &tensor));
  REFUSED(ckopt_tensors_find(nullptr, "a", &tensor));
  REFUSED(ckopt_options_create(nullptr));
  REFUSED(ckopt_options_create_for_graph(nullptr));
  REFUSED(ckopt_options_set(nullptr, "loss", "mse"));
  REFUSED(ckopt_options_set(some.get(), nullptr, "mse"));
  REFUSED(ckopt_options_set_int(nullptr, "batch", 1));
  REFUSED(ckopt_options_set_real(nullptr, "lr", 1));
  REFUSED(ckopt_options_set_message_handler(nullptr, nullptr, nullptr));
  REFUSED(ckopt_model_from_file(nullptr, &model));
  REFUSED(ckopt_model_from_file("a.onnx", nullptr));
  REFUSED(ckopt_model_from_memory(nullptr, 8, &model));
  REFUSED(ckopt_plan_model(nullptr, nullptr, &plan));
  REFUSED(ckopt_plan_model(digits.get(), nullptr, nullptr));
  REFUSED(ckopt_plan_graph(nullptr, 0, nullptr, &plan));
  REFUSED(ckopt_plan_graph("{}", 2, nullptr, nullptr));
  REFUSED(ckopt_check_plan(nullptr, 0, "{}", 2, 0));
  REFUSED(ckopt_plan_get_figures(nullptr, nullptr));
  REFUSED(ckopt_plan_get_text(nullptr, CKOPT_PLAN_TABLE, &text));
  REFUSED(ckopt_plan_get_steps(nullptr, &nodes, &count));
  REFUSED(ckopt_compile(nullptr, nullptr, &step));
  REFUSED(ckopt_compile(digits.get(), nullptr, nullptr));
  REFUSED(ckopt_compile_to_file(nullptr, nullptr, "a.so"));
  REFUSED(ckopt_compile_to_file(digits.get(), nullptr, nullptr));
  REFUSED(ckopt_step_get_info(nullptr, nullptr));
  REFUSED(ckopt_step_get_field(nullptr, 0, &field));
  REFUSED(ckopt_step_get_memory(nullptr, nullptr));
  REFUSED(ckopt_step_get_plan(nullptr, &plan));
  REFUSED(ckopt_step_run(nullptr, nullptr, 0, nullptr, nullptr));
  REFUSED(ckopt_step_gradients(nullptr, nullptr, 0, nullptr, &tensors));
  REFUSED(ckopt_step_evaluate(nullptr, nullptr, 0, nullptr));
  REFUSED(ckopt_step_predict(nullptr, nullptr, 0, &tensors));
  REFUSED(ckopt_step_get_weights(nullptr, nullptr, 0, &tensors));
  REFUSED(ckopt_step_get_averages(nullptr, &tensors));
  REFUSED(ckopt_step_set_weights(nullptr, nullptr, 0));
  REFUSED(ckopt_step_save(nullptr, "a.onnx", 0));
  REFUSED(ckopt_step_checkpoint(nullptr, "a.ckpt"));
  REFUSED(ckopt_step_resume(nullptr, "a.ckpt", nullptr));
  REFUSED(ckopt_step_train(nullptr, nullptr, nullptr, nullptr));
  REFUSED(ckopt_step_profile(nullptr, nullptr, 0, 1, nullptr, nullptr));
  REFUSED(ckopt_epoch_order(3, 0, 0, nullptr));
  REFUSED(ckopt_register_dialects({nullptr}));
#undef REFUSED
  EXPECT_EQ(number, 44);
  ckopt_tensors_destroy(nullptr);
  ckopt_options_destroy(nullptr);
  ckopt_model_destroy(nullptr);
  ckopt_plan_destroy(nullptr);
  ckopt_step_destroy(nullptr);
  EXPECT_EQ(ckopt_tensors_count(nullptr), 0u);
  EXPECT_EQ(ckopt_options_help(nullptr), nullptr);
}

TEST(CApi, EveryStatusAndTypeHasAName) {
  std::set<std::string> texts;
  for (int status : {0,  1,  2,  3,  4,  5,  10,  11,  12,  13,  14,
                     15, 16, 17, 64, 70, 74, 100, 101, 102, 103, 104})
    texts.insert(ckopt_status_string(status));
  EXPECT_EQ(texts.size(), 22u);
  EXPECT_FALSE(texts.count("unknown status"));
  EXPECT_STREQ(ckopt_status_string(-7), "unknown status");
  EXPECT_STREQ(ckopt_dtype_name(CKOPT_U16), "u16");
  EXPECT_EQ(ckopt_dtype_size(CKOPT_BF16), 2u);
  for (int wrong : {-1, CKOPT_U16 + 1, 1 << 30}) {
    EXPECT_EQ(ckopt_dtype_name(wrong), nullptr);
    EXPECT_EQ(ckopt_dtype_size(wrong), 0u);
  }
  EXPECT_EQ(ckopt_abi_version(), uint32_t(CKOPT_ABI_VERSION));
  EXPECT_NE(std::string(ckopt_version_line()).find(ckopt_version()),
            std::string::npos);
}

TEST(CApi, OptionsAreCheckedWhenTheyAreSet) {
  Options options = makeOptions();
  auto set = [&](const char *name, const char *value) {
    return ckopt_options_set(options.get(), name, value);
  };
  EXPECT_FAILS(CKOPT_USAGE,
               "unknown setting 'optimiser'; did you mean 'optimizer'?",
               set("optimiser", "adam"));
  EXPECT_FAILS(CKOPT_USAGE, "unknown setting 'zzz'", set("zzz", "1"));
  EXPECT_EQ(std::string(ckopt_last_error()), "unknown setting 'zzz'");
  EXPECT_FAILS(CKOPT_USAGE, "'batch': 'many' is no integer",
               set("batch", "many"));
  EXPECT_FAILS(CKOPT_USAGE, "'batch': '' is no integer", set("batch", ""));
  EXPECT_FAILS(CKOPT_USAGE, "data", set("data", "train.npz"));
  // Neither a second option nor a value may hide in a name.
  EXPECT_FAILS(CKOPT_USAGE, "no option", set("loss=mse", ""));
  EXPECT_FAILS(CKOPT_USAGE, "", set("", "mse"));
  EXPECT_EQ(set("check-finite", nullptr), CKOPT_OK);
  EXPECT_EQ(ckopt_options_set_int(options.get(), "batch", 16), CKOPT_OK);
  EXPECT_EQ(ckopt_options_set_real(options.get(), "lr", 1e-3), CKOPT_OK);
  EXPECT_FAILS(CKOPT_USAGE, "nan",
               ckopt_options_set_real(options.get(), "lr", 0.0 / 0.0));
  std::string help = ckopt_options_help(options.get());
  // Names are written as they are set.
  for (const char *name : {"\n  loss=", "\n  memory-budget=", "\n  optimizer=",
                           "\n  dim=", "\n  O "})
    EXPECT_NE(help.find(name), std::string::npos) << name;
  EXPECT_EQ(help.find("--"), std::string::npos);
  EXPECT_EQ(help.find("\n  epochs="), std::string::npos);
  EXPECT_FAILS(CKOPT_USAGE,
               "'freeze': malformed regular expression '(': parentheses",
               set("freeze", "("));

  // Options of steps are none of graphs, and the other way round.
  ckopt_options *made = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_options_create_for_graph(&made));
  Options graph(made);
  EXPECT_FAILS(CKOPT_USAGE, "loss", ckopt_options_set(made, "loss", "mse"));
  ckopt_plan *plan = nullptr;
  ckopt_step *step = nullptr;
  EXPECT_FAILS(CKOPT_INVALID_ARGUMENT, "ckopt_options_create_for_graph",
               ckopt_plan_graph("{}", 2, options.get(), &plan));
  EXPECT_FAILS(CKOPT_INVALID_ARGUMENT, "ckopt_plan_graph",
               ckopt_compile(digitsModel().get(), made, &step));
}

TEST(CApi, FilesAndModelsThatAreWrong) {
  ckopt_tensors *tensors = nullptr;
  EXPECT_FAILS(CKOPT_INPUT_ERROR, "missing.npz",
               ckopt_tensors_from_file("missing.npz", &tensors));
  EXPECT_EQ(tensors, nullptr);
  ckopt_model *model = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_model_from_file("missing.onnx", &model));
  Model missing(model);
  ckopt_step *step = nullptr;
  EXPECT_FAILS(CKOPT_INPUT_ERROR, "missing.onnx",
               ckopt_compile(model, nullptr, &step));
  EXPECT_EQ(step, nullptr);
  const std::string garbage = "no model at all";
  for (size_t bytes : {size_t(0), garbage.size()}) {
    CKOPT_OK_OR_FAIL(ckopt_model_from_memory(garbage.data(), bytes, &model));
    Model wrong(model);
    EXPECT_FAILS(CKOPT_INPUT_ERROR, "the model given as bytes is",
                 ckopt_compile(model, nullptr, &step));
    EXPECT_EQ(std::string(ckopt_last_error()).find(".onnx'"),
              std::string::npos);
  }
  EXPECT_FAILS(CKOPT_USAGE, "lr-schedule=cosine needs 'total-steps'",
               ckopt_compile(digitsModel().get(),
                             makeOptions({{"loss", "cross_entropy"},
                                          {"lr-schedule", "cosine"}})
                                 .get(),
                             &step));
  EXPECT_FAILS(CKOPT_INFEASIBLE, "smallest budget",
               ckopt_compile(digitsModel().get(),
                             makeOptions({{"loss", "cross_entropy"},
                                          {"batch", "32"},
                                          {"effort", "0"},
                                          {"memory-budget", "1KiB"}})
                                 .get(),
                             &step));
}

TEST(CApi, StructsOfOlderCallersAreFilledAsFarAsTheyGo) {
  ckopt_plan *made = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_plan_model(
      digitsModel().get(),
      makeOptions({{"loss", "cross_entropy"}, {"batch", "32"}}).get(), &made));
  Plan plan(made);
  ckopt_plan_figures figures;
  std::memset(&figures, 0x5a, sizeof(figures));
  figures.size = offsetof(ckopt_plan_figures, load_bytes);
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(made, &figures));
  EXPECT_GT(figures.peak_bytes, 0);
  EXPECT_NE(figures.peak_bytes, 0x5a5a5a5a5a5a5a5a);
  EXPECT_EQ(figures.load_bytes, 0x5a5a5a5a5a5a5a5a);
  EXPECT_EQ(figures.size, offsetof(ckopt_plan_figures, load_bytes));
  figures.size = 0;
  EXPECT_FAILS(CKOPT_INVALID_ARGUMENT, "size",
               ckopt_plan_get_figures(made, &figures));
  // A later caller's struct is longer.
  struct {
    ckopt_plan_figures known;
    int64_t later;
  } longer = {};
  longer.known.size = sizeof(longer);
  longer.later = 7;
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(made, &longer.known));
  EXPECT_EQ(longer.later, 7);
}

/// Each text of a plan says what it is; the plan passes the checker.
static void checkTexts(const Plan &plan, const char *report) {
  EXPECT_NE(textOf(plan, CKOPT_PLAN_REPORT).find(report), std::string::npos);
  EXPECT_NE(textOf(plan, CKOPT_PLAN_VALUES).find("\"values\""),
            std::string::npos);
  EXPECT_EQ(textOf(plan, CKOPT_PLAN_TIMELINE_SVG).rfind("<svg", 0), 0u);
  EXPECT_NE(textOf(plan, CKOPT_PLAN_TIMELINE_TRACE).find("traceEvents"),
            std::string::npos);
  std::string graph = textOf(plan, CKOPT_PLAN_GRAPH);
  std::string json = textOf(plan, CKOPT_PLAN_JSON);
  EXPECT_NE(graph.find("ckopt-graph/1"), std::string::npos);
  EXPECT_NE(json.find("ckopt-plan/1"), std::string::npos);
  EXPECT_EQ(
      ckopt_check_plan(graph.data(), graph.size(), json.data(), json.size(), 0),
      CKOPT_OK)
      << ckopt_last_error();
  EXPECT_EQ(
      ckopt_check_plan(graph.data(), graph.size(), json.data(), json.size(), 1),
      CKOPT_INPUT_ERROR);
  const char *text = nullptr;
  for (int32_t kind : {-1, CKOPT_PLAN_TIMELINE_TRACE + 1})
    EXPECT_EQ(ckopt_plan_get_text(plan.get(), kind, &text),
              CKOPT_INVALID_ARGUMENT);
}

TEST(CApi, PlansOfModels) {
  ckopt_plan *made = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_plan_model(digitsModel().get(),
                                    makeOptions({{"loss", "cross_entropy"},
                                                 {"batch", "32"},
                                                 {"effort", "0"},
                                                 {"memory-budget", "1.9MiB"}})
                                        .get(),
                                    &made));
  Plan plan(made);
  ckopt_plan_figures figures = {};
  figures.size = sizeof(figures);
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(made, &figures));
  EXPECT_GT(figures.recomputed, 0);
  EXPECT_LT(figures.peak_bytes, figures.full_bytes);
  EXPECT_GE(figures.peak_bytes, figures.bound_bytes);
  EXPECT_GE(figures.cost, figures.full_cost);
  const int64_t *nodes = nullptr;
  size_t count = 0;
  CKOPT_OK_OR_FAIL(ckopt_plan_get_steps(made, &nodes, &count));
  EXPECT_EQ(count - std::set<int64_t>(nodes, nodes + count).size(),
            size_t(figures.recomputed));
  EXPECT_NE(textOf(plan, CKOPT_PLAN_TABLE).find("planned peak (arena)"),
            std::string::npos);
  checkTexts(plan, "ckopt-step-report/1");
}

/// A chain whose first node costs 1.25.
static std::string chainGraph() {
  std::ifstream file(CKOPT_TEST_DATA "/../ckopt-plan/Inputs/chain.json");
  std::stringstream text;
  text << file.rdbuf();
  std::string graph = text.str(), cost = "\"cost\": 1";
  return graph.insert(graph.find(cost) + cost.size(), ".25");
}

static ckopt_status planChain(const char *budget, Plan &plan) {
  ckopt_options *options = nullptr;
  EXPECT_EQ(ckopt_options_create_for_graph(&options), CKOPT_OK);
  Options owned(options);
  EXPECT_EQ(ckopt_options_set(options, "pack", ""), CKOPT_OK);
  EXPECT_EQ(ckopt_options_set(options, "budget", budget), CKOPT_OK);
  std::string graph = chainGraph();
  ckopt_plan *made = nullptr;
  ckopt_status status =
      ckopt_plan_graph(graph.data(), graph.size(), options, &made);
  plan.reset(made);
  return status;
}

TEST(CApi, PlansOfGraphs) {
  Plan plan;
  CKOPT_OK_OR_FAIL(planChain("min", plan));
  ckopt_plan_figures figures = {};
  figures.size = sizeof(figures);
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(plan.get(), &figures));
  EXPECT_GT(figures.recomputed, 0);
  EXPECT_LT(figures.peak_bytes, figures.full_bytes);
  checkTexts(plan, "ckopt-report/1");
  EXPECT_FAILS(CKOPT_INFEASIBLE, "budget", planChain("1", plan));
  EXPECT_EQ(plan, nullptr);
  // Steps of files are checked before anything reckons with them.
  std::string graph = chainGraph();
  std::string early = "{\"format\":\"ckopt-plan/1\",\"cost\":9.25,"
                      "\"steps\":[8,7,6,5,4,3,2,1,0]}";
  EXPECT_FAILS(CKOPT_INPUT_ERROR, "never made",
               ckopt_check_plan(graph.data(), graph.size(), early.data(),
                                early.size(), 0));
  ckopt_plan *made = nullptr;
  for (std::string wrong : {"", "{", "[]", "{\"format\":\"ckopt-graph/1\"}",
                            "{\"format\":\"ckopt-graph/2\"}"})
    EXPECT_EQ(ckopt_plan_graph(wrong.data(), wrong.size(), nullptr, &made),
              CKOPT_INPUT_ERROR)
        << wrong;
}

/// What is proven of some plans alone says so in figures, table and files.
TEST(CApi, RestrictedPlansOfGraphs) {
  Options options;
  ckopt_options *made = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_options_create_for_graph(&made));
  options.reset(made);
  ckopt_options_set(made, "order-only", "");
  ckopt_options_set(made, "budget", "min");
  std::string graph = chainGraph();
  ckopt_plan *least = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_plan_graph(graph.data(), graph.size(), made, &least));
  Plan plan(least);
  ckopt_plan_figures figures = {};
  figures.size = sizeof(figures);
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(least, &figures));
  EXPECT_EQ(figures.restricted_to, CKOPT_PLAN_ORDER_ONLY);
  EXPECT_EQ(figures.bound_bytes, figures.peak_bytes);
  EXPECT_NE(textOf(plan, CKOPT_PLAN_TABLE)
                .find("no plan that recomputes nothing can need less than"),
            std::string::npos);
  for (int32_t kind : {CKOPT_PLAN_JSON, CKOPT_PLAN_REPORT}) {
    std::string text = textOf(plan, kind);
    std::erase(text, ' ');
    EXPECT_NE(text.find("\"restricted_to\":\"order_only\""), std::string::npos)
        << text;
  }
  // Less than that is needed by plans that do recompute.
  Plan free;
  CKOPT_OK_OR_FAIL(planChain("min", free));
  ckopt_plan_figures all = {};
  all.size = sizeof(all);
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(free.get(), &all));
  EXPECT_LT(all.peak_bytes, figures.bound_bytes);
  EXPECT_EQ(all.restricted_to, 0);
}

/// Programs of desktops set a locale, in which 0.5 is 0,5.
TEST(CApi, NumbersDoNotFollowTheLocale) {
  std::string folder = testing::TempDir() + "/ckopt-locale";
  std::string make = "mkdir -p " + folder +
                     " && localedef -i de_DE -f UTF-8 --no-archive " + folder +
                     "/de_DE.UTF-8 >/dev/null 2>&1";
  bool made = std::system(make.c_str()) == 0;
  setenv("LOCPATH", folder.c_str(), 1);
  if (!made || !setlocale(LC_ALL, "de_DE.UTF-8"))
    GTEST_SKIP() << "no localedef here";
  char comma[8];
  std::snprintf(comma, sizeof(comma), "%.1f", 0.5);
  EXPECT_STREQ(comma, "0,5");
  Plan plan;
  ckopt_status status = planChain("min", plan);
  std::snprintf(comma, sizeof(comma), "%.1f", 0.5);
  EXPECT_STREQ(comma, "0,5"); // the caller's again
  setlocale(LC_ALL, "C");
  ASSERT_EQ(status, CKOPT_OK);
  Plan usual;
  CKOPT_OK_OR_FAIL(planChain("min", usual));
  EXPECT_EQ(textOf(plan, CKOPT_PLAN_JSON), textOf(usual, CKOPT_PLAN_JSON));
}
