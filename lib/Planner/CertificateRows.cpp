//===- CertificateRows.cpp - the graph as the checker reads it ------------===//
//
// Linear in the graph but for sorting what a node touches.
//
//===----------------------------------------------------------------------===//
#include "CertificateRows.h"

using namespace ckopt::planner;

static Graph leastDemands(Graph graph) {
  for (Node &node : graph.nodes) {
    for (const Alternative &way : node.alternatives) {
      node.cost = std::min(node.cost, way.cost);
      std::erase_if(node.inputs, [&](ValueId v) {
        return std::find(way.inputs.begin(), way.inputs.end(), v) ==
               way.inputs.end();
      });
    }
    node.alternatives.clear();
  }
  return graph;
}

CertificateRows::CertificateRows(const Graph &given)
    : graph(leastDemands(given)), nodes(int32_t(given.nodes.size())),
      values(int32_t(given.values.size())) {
  root.resize(values);
  bytes.assign(values, 0);
  atEnd.assign(values, 0);
  maker.assign(values, -1);
  once.assign(nodes, 0);
  touches.resize(nodes);
  reads.resize(nodes);
  inputs.resize(nodes);
  for (ValueId v = 0; v < values; ++v) {
    for (root[v] = v; graph.values[root[v]].aliasOf >= 0;)
      root[v] = graph.values[root[v]].aliasOf;
    if (root[v] == v)
      bytes[v] = alignTo(graph.values[v].bytes, graph.alignment);
    if (graph.values[v].kind == ValueKind::Output ||
        graph.values[v].kind == ValueKind::Persistent)
      atEnd[root[v]] = 1;
  }
  for (NodeId n = 0; n < nodes; ++n) {
    const Node &node = graph.nodes[n];
    for (ValueId v : node.outputs)
      maker[v] = n;
    once[n] = !node.recompute || !node.mutates.empty();
  }
  for (NodeId n = 0; n < nodes; ++n) {
    const Node &node = graph.nodes[n];
    for (ValueId v : node.inputs)
      inputs[n].push_back(root[v]);
    reads[n] = inputs[n];
    for (ValueId v : node.outputs) {
      touches[n].push_back(root[v]);
      if (maker[root[v]] != n)
        reads[n].push_back(root[v]);
    }
    touches[n].insert(touches[n].end(), reads[n].begin(), reads[n].end());
    for (std::vector<ValueId> *list : {&touches[n], &reads[n], &inputs[n]}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
  }
}

/// The furthest row known before each node, along dependences, and back. A
/// node that overwrites a storage comes after all that touch it before, in
/// program order, and before all that touch it after.
void CertificateRows::spreadLow() {
  std::vector<int32_t> touched(values, -1), written(values, -1);
  for (NodeId n = 0; n < nodes; ++n) {
    const Node &node = graph.nodes[n];
    int32_t &here = low[n];
    auto follow = [&](ValueId v) {
      if (maker[v] >= 0 && maker[v] != n)
        here = std::max(here, low[maker[v]]);
    };
    for (ValueId v : node.inputs)
      follow(v);
    for (ValueId v : node.outputs)
      if (graph.values[v].aliasOf >= 0)
        follow(graph.values[v].aliasOf);
    for (NodeId p : node.after)
      here = std::max(here, low[p]);
    for (ValueId v : inputs[n])
      here = std::max(here, written[v]);
    for (ValueId v : node.mutates)
      here = std::max({here, written[root[v]], touched[root[v]]});
    for (ValueId v : inputs[n])
      touched[v] = std::max(touched[v], here);
    for (ValueId v : node.mutates)
      written[root[v]] = std::max(written[root[v]], here);
  }
}

/// The same from the end: the nearest row known after each node.
void CertificateRows::spreadHigh() {
  std::vector<int32_t> touched(values, rows), written(values, rows);
  std::vector<int32_t> own(nodes, -1);
  for (int32_t r = 0; r < rows; ++r)
    own[order[r]] = r;
  for (NodeId n = nodes - 1; n >= 0; --n) {
    const Node &node = graph.nodes[n];
    int32_t here = own[n] >= 0 ? own[n] : high[n];
    for (ValueId v : inputs[n])
      here = std::min(here, written[v]);
    for (ValueId v : node.mutates)
      here = std::min({here, written[root[v]], touched[root[v]]});
    high[n] = here;
    auto follow = [&](ValueId v) {
      if (maker[v] >= 0 && maker[v] != n)
        high[maker[v]] = std::min(high[maker[v]], here);
    };
    for (ValueId v : node.inputs)
      follow(v);
    for (ValueId v : node.outputs)
      if (graph.values[v].aliasOf >= 0)
        follow(graph.values[v].aliasOf);
    for (NodeId p : node.after)
      high[p] = std::min(high[p], here);
    for (ValueId v : inputs[n])
      touched[v] = std::min(touched[v], here);
    for (ValueId v : node.mutates)
      written[root[v]] = std::min(written[root[v]], here);
  }
}

/// True if one of the dependences says so by itself.
bool CertificateRows::linked(NodeId p, NodeId n) const {
  const Node &node = graph.nodes[n];
  bool found =
      std::find(node.after.begin(), node.after.end(), p) != node.after.end();
  for (ValueId v : node.inputs)
    found |= maker[v] == p;
  for (ValueId v : node.outputs)
    found |=
        graph.values[v].aliasOf >= 0 && maker[graph.values[v].aliasOf] == p;
  auto inOrder = [&](NodeId writer, NodeId other) {
    for (ValueId v : graph.nodes[writer].mutates) {
      found |= std::binary_search(inputs[other].begin(), inputs[other].end(),
                                  root[v]);
      for (ValueId w : graph.nodes[other].mutates)
        found |= root[v] == root[w];
    }
  };
  inOrder(p, n);
  inOrder(n, p);
  return found && p < n;
}

std::string CertificateRows::place(const Certificate &given) {
  order = given.rows;
  if (order.empty() && !given.anyOrder)
    for (NodeId n = 0; n < nodes; ++n)
      order.push_back(n);
  rows = int32_t(order.size());
  low.assign(nodes, -1);
  high.assign(nodes, rows);
  for (int32_t r = 0; r < rows; ++r) {
    NodeId n = order[r];
    if (n < 0 || n >= nodes || low[n] >= 0)
      return "rows name an unknown node, or one twice";
    low[n] = high[n] = r;
  }
  if (!given.anyOrder)
    return rows == nodes ? "" : "rows do not name all nodes";
  for (int32_t r = 1; r < rows; ++r)
    if (!linked(order[r - 1], order[r]))
      return "rows are not a path of the dependence graph";
  spreadLow();
  spreadHigh();
  for (int32_t r = 0; r < rows; ++r)
    if (low[order[r]] != r || high[order[r]] != r)
      return "rows are not a path of the dependence graph";
  return "";
}
