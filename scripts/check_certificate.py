#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_certificate.py GRAPH PLAN: derives the bounds on cost of a ckopt-plan/1 file again, in integers and linear time.
Exit 0 and a JSON line if each bound that the plan states follows (or rests on a search that left no certificate), else 1.

Rows are first runs that follow each other in every plan in question: all nodes, or a path of the dependence graph; then the end.
low, high: the last row not after a node's first run, the first one not before it. As loads are within the budget, each plan costs
at least  costs of all nodes + costs of what runs again + sum over rows of price * (load - budget).  Of that:
own   At a row, what its node touches and needs for scratch is there, less results that may be written over an input.
gap   Between two accesses of a storage that follow each other in every plan it stays, at all rows between (and at the first one,
      where taking its bytes over would end it), or its maker runs again, at a share of its cost by size. Gaps have different runs.
claim That run reads inputs. One whose other accesses are all over before the gap, and that no other storage claims, stays or is
      made again, too. (In two parts of the gap, perhaps: the least of that is concave in where they meet, so one part is all.)
tree  Plans keep a gap or drop it: "gap" splits them, those that keep it first; each leaf has prices of its own."""
import json, math, sys
from collections import defaultdict
from fractions import Fraction

class Refused(Exception): pass
def need(holds, why):
    if not holds: raise Refused(why)

def read(g):
    """Nodes in program order, the end as one more; sizes, makers and the set of storages that no run makes again."""
    up = lambda b: -(-b // g.get('alignment', 1)) * g.get('alignment', 1)
    base = {v['id']: v.get('alias_of') for v in g['values']}; root = lambda v: v if base[v] is None else root(base[v])
    size = {v['id']: up(v['bytes']) if base[v['id']] is None else 0 for v in g['values']}
    nodes = sorted(g['nodes'], key=lambda n: n['id']); index = {n['id']: i for i, n in enumerate(nodes)}
    maker = {v: i for i, n in enumerate(nodes) for v in n['outputs']}; stays = set(base) - set(maker)
    writer, users = {}, defaultdict(set)
    for i, n in enumerate(nodes):
        n['cost'] = Fraction(float(n['cost'])); given = set(n['inputs']); made = set(n['outputs'])
        needs = given | {base[v] for v in made} - made - {None}; writes = {root(v) for v in n.get('mutates', [])}
        n['before'] = {maker[v] for v in needs if v in maker} | {index[p] for p in n.get('after', [])}
        n['before'] |= {writer[root(v)] for v in given | writes if root(v) in writer}
        for v in given: users[root(v)].add(i)
        for v in writes: n['before'] |= users.pop(v, set()) - {i}; writer[v] = i
        n['reads'] = {root(v) for v in needs}; n['touches'] = n['reads'] | {v for v in made if base[v] is None}
        if not n.get('recompute', True) or writes: stays |= made
        n['pairs'] = [(v, o) for v, o in n.get('reuse', []) if v in given and v in maker and o in made and size[o] <= size[v]
                      and base[v] is base[o] is None and all(base[w] != v for w in made | (given if v in stays else set()))]
        n['bytes'] = sum(size[v] for v in made); n['scratch'] = up(n.get('workspace', 0))
    end = {root(v['id']) for v in g['values'] if v['kind'] in ('output', 'persistent')}
    return nodes + [dict(id=None, cost=0, touches=end, before=set(), pairs=[], scratch=0)], size, maker, stays

def derive(nodes, size, maker, stays, cert):
    """The bound that a certificate proves, in the graph's unit of cost."""
    N = len(nodes); index = {n['id']: i for i, n in enumerate(nodes)}; free = cert['bounds'] == 'lower_bound'
    rows = ([index[i] for i in cert['rows']] if free else list(range(N - 1))) + [N - 1]; row = {n: r for r, n in enumerate(rows)}
    need(not free or all(a in nodes[b]['before'] for a, b in zip(rows, rows[1:-1])), 'rows are not a path')
    low, high = [], [row.get(i, len(rows) - 1) for i in range(N)]
    for i, n in enumerate(nodes): low.append(row[i] if i in row else max((low[p] for p in n['before']), default=-1))
    for i in reversed(range(N)):
        for p in nodes[i]['before']: high[p] = min(high[p], high[i])
    exact = [n['cost'] * Fraction(2) ** cert['scale_bits'] for n in nodes]; cost = [math.floor(c) for c in exact]
    unit = math.gcd(*cost) if cost == exact and any(cost) else 1                # extra costs are multiples of it
    accesses, claims, over = defaultdict(list), defaultdict(list), {}
    for i in sorted(range(N), key=lambda n: (high[n], low[n], n)):
        for v in nodes[i]['touches']: accesses[v].append(i)
    last = {v: max(low[n] for n in accesses[v]) for v in accesses}
    later = {v: max(low[n] - (n in row) for n in accesses[v]) for v in accesses}
    for u, v in cert['claims']:
        need(u not in over and u != v and v in maker and u in nodes[maker[v]]['reads'], f'bad claim of {u} by {v}')
        over[u] = max((high[n] for n in accesses[u] if n not in (maker.get(u), maker[v])), default=-1); claims[v].append(u)
    own, first = [], set()
    for r, n in enumerate(rows):
        pairs = nodes[n]['pairs']; free = {o: [v for v, w in pairs if w == o and not (v in stays and later[v] >= r)] for _, o in pairs}
        own.append(nodes[n]['scratch'] + sum(size[v] for v in nodes[n]['touches'] - stays) - sum(size[o] for o in free if free[o]))
        first |= {(v, n) for v, o in pairs if free[o] == [v] and size[v] == size[o] and [w for w, _ in pairs].count(v) == 1}

    def leaf(prices, decided):
        price, sums = [0] * len(rows), [0]
        for r, p in prices: need(0 <= r < len(rows) and p >= 0, 'prices must not be negative'); price[r] += p
        for p in price: sums.append(sums[-1] + p)
        total = lambda a, b: max(0, sums[max(a, b + 1)] - sums[a])
        def drop(v, length, start, depth=32):
            return math.inf if v in stays else cost[maker[v]] * size[v] // max(1, nodes[maker[v]]['bytes']) + sum(
                min(length * size[u], drop(u, length, start, depth - 1)) for u in claims[v] if depth and over[u] <= start)
        load = sum(p * b for p, b in zip(price, own))
        for v in accesses:
            if v in stays: load += total(high[maker[v]] if v in maker else 0, last[v]) * size[v]; continue
            n = maker[v]
            for m in accesses[v]:
                if m == maker[v] or low[m] < high[n]: continue
                length = total(high[n] + (n in row), low[m] - (m in row)); dropped = drop(v, length, low[n])
                keep = (length + ((v, n) in first and price[low[n]])) * size[v]
                load += (min(keep, dropped), keep, dropped)[decided.get((v, nodes[n]['id']), 0)]; n = m
        return -(-max(0, load - sums[-1] * cert['budget']) // unit) * unit

    items = iter(cert.get('tree', [cert]))
    def branch(decided):
        item = next(items, None); need(item, 'the tree has fewer cases than its branches need')
        if 'gap' not in item: return leaf(item['prices'], decided)
        return min(branch({**decided, tuple(item['gap']): side}) for side in (1, 2))
    extra = branch({}); need(next(items, None) is None, 'the tree has more cases than its branches need')
    return Fraction(sum(cost) + extra) / Fraction(2) ** cert['scale_bits']

def main(graph, plan):
    graph, proofs, report, keys = read(graph), defaultdict(int), {}, ['lower_bound', 'order_lower_bound']
    for c in plan.get('certificate', []):
        free = 'tree' not in c and not c['prices']                              # the sum of all costs, for any budget
        need(free or c['budget'] >= plan.get('budget', 0), f"a certificate for {c['budget']} bytes says nothing about {plan['budget']}")
        for key in keys[keys.index(c['bounds']):]: proofs[key] = max(proofs[key], derive(*graph, c))
    for key in filter(plan.get, keys):
        shown = plan[key] <= proofs[key]; derived = float(proofs[key])
        report[key] = dict(stated=plan[key], derived=derived, shown='certificate' if shown else 'search')
        cases = any('tree' in c and c['bounds'] == key for c in plan.get('certificate', []))
        need(shown or plan.get('proof') == 'search' and not cases, f'{key} {plan[key]} does not follow: the certificates show {derived}')
    print(json.dumps(report))

if __name__ == '__main__':
    try: main(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))
    except Refused as e: sys.exit(print(f'INVALID: {e}') or 1)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as e:
        sys.exit(print(f'INVALID: malformed: {e!r}') or 1)
