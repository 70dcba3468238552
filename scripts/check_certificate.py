#!/usr/bin/env python3
"""Derive the bounds on cost of a ckopt-plan/1 file from its certificates, in integers and linear time.
Usage: check_certificate.py GRAPH PLAN   Exit 0 and a JSON line if each bound that the plan states follows from a certificate
(or the plan says that it was proved by search), 1 with the reason otherwise. Standard library only.

Rows are first runs that follow each other in every plan in question: all nodes, or a path of the dependence graph (bounds for any order).
Between two accesses of a storage that follow each other, it is resident at the rows in between or its maker runs again. With a price
a byte and row, every plan costs at least: all costs + price of the load with everything kept - price of the budget - what dropping saves."""
import json, sys
from fractions import Fraction
from math import gcd, floor
class Bad(Exception): pass

def derive(g, c):
    align = g.get('alignment', 1); up = lambda b: -(-b // align) * align
    V = {v['id']: v for v in g['values']}; N = sorted(g['nodes'], key=lambda n: n['id'])
    for n in N:                                                          # of alternatives: what all read, at the least cost
        for a in n.get('alternatives', []): n['cost'] = min(n['cost'], a['cost']); n['inputs'] = [v for v in n['inputs'] if v in a['inputs']]
    index = {n['id']: i for i, n in enumerate(N)}; base = {v: d.get('alias_of') for v, d in V.items()}; root = {}
    def storage(v):
        while base[v] is not None: v = base[v]
        return v
    root = {v: storage(v) for v in V}; size = {v: up(d['bytes']) if base[v] is None else 0 for v, d in V.items()}
    initial = {v for v, d in V.items() if d['kind'] in ('input', 'persistent')}; end = {root[v] for v, d in V.items() if d['kind'] in ('output', 'persistent')}
    maker = {v: i for i, n in enumerate(N) for v in n['outputs']}
    once = [not n.get('recompute', True) or bool(n.get('mutates')) for n in N]
    inputs = [{root[v] for v in n['inputs']} for n in N]; writes = [{root[v] for v in n.get('mutates', [])} for n in N]
    reads = [inputs[i] | {root[v] for v in n['outputs'] if maker.get(root[v]) != i} for i, n in enumerate(N)]
    touches = [reads[i] | {root[v] for v in n['outputs']} for i, n in enumerate(N)]
    before = [{maker[v] for v in n['inputs'] + [base[o] for o in n['outputs'] if base[o] is not None] if v in maker and maker[v] != i} |
              {index[p] for p in n.get('after', [])} for i, n in enumerate(N)]
    # costs in units
    exact = [Fraction(float(n['cost'])) * Fraction(2) ** c['scale_bits'] for n in N]; cost = [floor(x) for x in exact]
    unit = gcd(*cost) if all(x == y for x, y in zip(exact, cost)) and any(cost) else 1
    # rows
    free = c['bounds'] == 'lower_bound'; order = [index[i] for i in c['rows']] if 'rows' in c or free else list(range(len(N))); R = len(order)
    if len(set(order)) != R or not free and R != len(N): raise Bad('rows do not name each node once')
    row = {n: r for r, n in enumerate(order)}; low = [row.get(i, -1) for i in range(len(N))]; high = [row.get(i, R) for i in range(len(N))]
    if free:
        touched, written = {}, {}
        for i in range(len(N)):
            low[i] = max([low[i]] + [low[p] for p in before[i]] + [written.get(v, -1) for v in inputs[i] | writes[i]] + [touched.get(v, -1) for v in writes[i]])
            for v in inputs[i]: touched[v] = max(touched.get(v, -1), low[i])
            for v in writes[i]: written[v] = max(written.get(v, -1), low[i])
        touched, written = {}, {}
        for i in reversed(range(len(N))):
            if i not in row: high[i] = min([high[i]] + [written.get(v, R) for v in inputs[i] | writes[i]] + [touched.get(v, R) for v in writes[i]])
            for p in before[i]: high[p] = min(high[p], high[i])
            for v in inputs[i]: touched[v] = min(touched.get(v, R), high[i])
            for v in writes[i]: written[v] = min(written.get(v, R), high[i])
        for p, n in zip(order, order[1:]):
            if p >= n or not (p in before[n] or writes[p] & (inputs[n] | writes[n]) or writes[n] & inputs[p]): raise Bad('rows are not a path')
        if any(low[n] != r for n, r in row.items()): raise Bad('rows are not a path')
        for n, r in row.items(): high[n] = r
    isrow = lambda n: n in row
    price = [0] * (R + 1); last = -1
    for r, p in c['prices']:
        if not last < r <= R or p < 0: raise Bad('prices must name ascending rows and not be negative')
        price[r] = p; last = r
    pre = [0]
    for p in price: pre.append(pre[-1] + p)
    total = lambda a, b: pre[b + 1] - pre[a] if a <= b else 0
    # accesses
    access = {v: [] for v in V}
    for i in range(len(N)):
        for v in touches[i]: access[v].append(i)
    read, after = {}, {}
    for v in V:
        access[v].sort(key=lambda n: (high[n], low[n], n))
        read[v] = R if v in end else max([low[n] for n in access[v]], default=-1)
        after[v] = R - 1 if v in end else max([low[n] - isrow(n) for n in access[v]], default=-1)
    claims, start = {}, {}
    for u, v in c['claims']:
        if u in start or root.get(u) != u or root.get(v) != v or u == v or v not in maker or u not in reads[maker[v]]: raise Bad(f'bad claim of {u} by {v}')
        claims.setdefault(v, []).append(u); start[u] = max([high[n] for n in access[u] if n != maker.get(u) and n != maker[v]], default=-1)
    def sharing(n):
        out = set(N[n]['outputs'])                                       # a view of the only copy is in the way, and one that it makes
        alone = lambda i: all(base[v] != i or not once[maker[i]] for v in N[n]['inputs']) and all(base[v] != i for v in out)
        return [(i, o) for i, o in N[n].get('reuse', []) if i in N[n]['inputs'] and o in out and base[i] is None and base[o] is None and i not in initial
                and V[o]['bytes'] <= V[i]['bytes'] and alone(i) and not (once[maker[i]] and after[i] >= low[n])]
    def dropping(v, length, a, depth):                                   # what not keeping v costs at least
        keep = length * size[v]
        if v not in maker or once[maker[v]]: return keep
        drop = cost[maker[v]] * size[v] // max(1, sum(size[o] for o in N[maker[v]]['outputs']))
        if depth < 32:
            for u in claims.get(v, []):
                if u not in end and start[u] <= a: drop += dropping(u, length, a, depth + 1)
        return drop if depth == 0 else min(keep, drop)
    def gap(v, n, b):
        length = total(high[n] + isrow(n), b); keep = length * size[v]
        if isrow(n) and price[row[n]]:
            pairs = sharing(n); results = {o for i, o in pairs if i == v}
            if len(results) == 1 and {i for i, o in pairs if o in results} == {v} and size[min(results)] == size[v]: keep += price[row[n]] * size[v]
        return min(keep, dropping(v, length, low[n], 0)) if keep else 0
    load = 0
    for r, n in enumerate(order):
        if price[r]: load += price[r] * (up(N[n].get('workspace', 0)) - sum(size[o] for o in {o for i, o in sharing(n)}))
    for v in V:
        if root[v] != v or not size[v]: continue
        if v not in maker or once[maker[v]]: load += total(high[maker[v]] if v in maker else 0, read[v]) * size[v]; continue
        n = maker[v]; load += price[row[n]] * size[v] if isrow(n) else 0
        for m in access[v]:
            if m == maker[v] or low[m] < high[n]: continue
            load += gap(v, n, low[m] - isrow(m)) + (price[row[m]] * size[v] if isrow(m) else 0); n = m
        if v in end: load += gap(v, n, R - 1) + price[R] * size[v]
    extra = max(0, load - pre[-1] * c['budget'])
    return Fraction(sum(cost) + -(-extra // unit) * unit) / Fraction(2) ** c['scale_bits']

def main(graph, plan):
    proofs = {}
    for c in plan.get('certificate', []):
        if c['budget'] < plan.get('budget', 0): raise Bad(f"a certificate for {c['budget']} bytes says nothing about {plan['budget']}")
        proofs[c['bounds']] = max(derive(json.loads(json.dumps(graph)), c), proofs.get(c['bounds'], 0))
    if 'lower_bound' in proofs: proofs['order_lower_bound'] = max(proofs['lower_bound'], proofs.get('order_lower_bound', 0))
    searched = plan.get('proof') == 'search'; report = {}
    for key in ('lower_bound', 'order_lower_bound'):
        if key not in plan: continue
        stated = Fraction(plan[key]); shown = key in proofs and stated <= proofs[key]
        if not shown and not searched: raise Bad(f"{key} {plan[key]} does not follow: the certificates show {float(proofs[key]) if key in proofs else 'nothing'}")
        report[key] = dict(stated=plan[key], derived=float(proofs[key]) if key in proofs else None, shown='certificate' if shown else 'search')
    print(json.dumps(report))

if __name__ == '__main__':
    try: main(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))
    except Bad as e: print(f'INVALID: {e}'); sys.exit(1)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e: print(f'INVALID: malformed: {e!r}'); sys.exit(1)
