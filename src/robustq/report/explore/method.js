"use strict";
// How far can a model be wrong before its prediction changes? This file is the whole method.
//
// A model is a circuit of local mass functions. A row reaches a tree of it: leaves (a feature, or
// the class), products, and sums, which are weighted means. For a rival c of the prediction ĉ the
// lower value of 1_ĉ − 1_c in a ball of size δ around every local mass function is
//
//     feature leaf   L = lower q(f), U = upper q(f)
//     class leaf     V = lower expectation of 1_ĉ − 1_c
//     product        L = ΠL, U = ΠU;   with the class in one child:  V · (ΠL if V > 0 else ΠU)
//     sum            L = lower mean of L, U = upper mean of U;   with the class: lower mean of V
//
// and the robustness is the smallest δ at which it is no longer positive, for some rival.

const method = (() => {
  // ── Balls ─────────────────────────────────────────────────────────────────────────────────────
  // Each gives the bounds of one probability q and the lower expectation of values f (sorted upward,
  // with their probabilities q) at a size d. Where k = 1 − d matters it is given too: near d = 1 it
  // has digits that d has lost. For those balls (`odds`) sizes are searched for as x = d / (1 − d).

  const clip = (x, low, high) => (x < low ? low : x > high ? high : x);
  const LARGEST = 1e300;

  const BALLS = {
    tv: {
      end: 1, closed: true, largest: 1,
      lower: (q, d) => Math.max(0, q - d),
      upper: (q, d) => Math.min(1, q + d),
      // δ of mass goes from the largest values to the smallest.
      expect(q, f, d) {
        let left = d, moved = 0, total = 0;
        for (let k = q.length - 1; k >= 0; k--) {
          const taken = Math.min(left, q[k]);
          total += (q[k] - taken) * f[k];
          left -= taken;
          moved += taken;
        }
        return total + moved * f[0];
      },
    },
    epsilon: {
      end: 1, closed: true, odds: true,
      lower: (q, d, k) => k * q,
      upper: (q, d) => q + d * (1 - q),
      expect(q, f, d, k) {
        let mean = 0;
        for (let i = 0; i < q.length; i++) mean += q[i] * f[i];
        return k * mean + d * f[0];
      },
    },
    chi2: {
      end: Infinity, closed: false, largest: LARGEST, keepsZero: true,
      // As a product, because q − √(δq(1−q)) cancels where it is nearly zero.
      lower(q, d) {
        if (q <= 0) return 0;
        const spread = Math.sqrt(d) * Math.sqrt(q * (1 - q));
        const room = q < 0.5 ? q - d + d * q : q - d * (1 - q);
        return clip(room * (q / (q + spread)), 0, q);
      },
      upper: (q, d) => Math.min(1, q + Math.sqrt(d) * Math.sqrt(q * (1 - q))),
      // μ − σ√D on the largest level set of f that the minimiser does not leave empty.
      expect(q, f, d) {
        let before = 0, far = 0, spread = 0, mean = 0, reach = 0, least = f[0];
        let above = 0;
        const after = new Float64Array(q.length);
        for (let k = q.length - 1; k >= 0; k--) { after[k] = above; above += q[k]; }
        for (let k = 0; k < q.length; k++) {
          const gap = k ? f[k] - f[k - 1] : 0;
          const mass = before + q[k];
          const step = gap + reach;
          far += before * gap;
          spread += q[k] * step * step * (before / mass);
          mean += q[k] * f[k];
          reach = far / mass;
          const deviation = Math.sqrt(spread / mass);
          const root = Math.sqrt(Math.max(d * mass - after[k], 0));
          if (root * reach < deviation) least = Math.max(f[0], mean / mass - deviation * root);
          before = mass;
        }
        return least;
      },
    },
    pari_mutuel: {
      end: Infinity, closed: false, largest: LARGEST, keepsZero: true,
      lower: (q, d) => clip(q < 0.5 ? q - d + d * q : q - d * (1 - q), 0, q),
      upper: (q, d) => Math.min(1, q + d * q),
      // The smallest values are filled first, each up to its bound.
      expect(q, f, d) {
        let left = 0, total = 0;
        for (let k = 0; k < q.length; k++) left += q[k];
        for (let k = 0; k < q.length; k++) {
          const given = Math.min(left, (1 + d) * q[k]);
          total += given * f[k];
          left -= given;
        }
        return total;
      },
    },
    odds_ratio: {
      end: 1, closed: false, odds: true, keepsZero: true,
      lower: (q, d, k) => Math.min(q, (k * q) / (k + d * (1 - q))),
      upper: (q, d, k) => (q > 0 ? clip(q / (k + d * q), q, 1) : 0),
      // What lies above the lower expectation shrinks by 1 − δ.
      expect(q, f, d, k) {
        const n = q.length, above = new Float64Array(n);
        let mass = 0, sum = 0;
        for (let i = n - 1; i >= 0; i--) {
          above[i] = sum;
          if (i) sum += (q[i] + mass) * (f[i] - f[i - 1]);
          mass += q[i];
        }
        let before = 0, below = 0, total = 0, weight = 0;
        for (let i = 0; i < n; i++) {
          if (i) below += before * (f[i] - f[i - 1]);
          const w = k * above[i] >= below ? q[i] : k * q[i];
          total += w * f[i];
          weight += w;
          before += q[i];
        }
        return Math.max(total / weight, f[0]);
      },
    },
  };

  /** Lower expectation of any values: of two outcomes by the bounds, else in their order. */
  function lowerExpectation(ball, q, f, d, k) {
    if (q.length === 2) {
      const low = f[0] <= f[1] ? 0 : 1, high = 1 - low;
      if (f[high] === 0) return f[low] * ball.upper(q[low], d, k);
      return f[low] + (f[high] - f[low]) * ball.lower(q[high], d, k);
    }
    const order = [];
    for (let i = 0; i < q.length; i++) if (!ball.keepsZero || q[i] > 0) order.push(i);
    order.sort((a, b) => f[a] - f[b]);
    return ball.expect(order.map((i) => q[i]), order.map((i) => f[i]), d, k);
  }

  // ── What a row reaches ────────────────────────────────────────────────────────────────────────
  // Nodes, children before parents. Values are m · 2^(512 e): products of many features are small.

  const VALUE = 0, LEAF = 1, LABEL = 2, PRODUCT = 3, SUM = 4;
  const STEP = 512, BIG = 2 ** STEP, SMALL = 2 ** -STEP, LOW = 2 ** -256, HIGH = 2 ** 256;

  class Node {
    constructor(kind, speaks, part, feature, rows) {
      this.kind = kind;
      this.speaks = speaks; // of the class
      this.part = part; // of the model; null where no ball moves it
      this.feature = feature;
      this.rows = rows; // training rows behind it; null where nobody counted
      this.p = 0;
      this.e = 0;
      this.q = null;
      this.f = null;
      this.children = null;
      this.free = false; // whether it is perturbed
      this.moves = false; // whether something at or below it is
      this.lo = 0; this.loE = 0; this.up = 0; this.upE = 0;
    }
  }

  class Reached {
    constructor() { this.nodes = []; this.moving = []; }

    add(kind, speaks, part, feature, rows) {
      const node = new Node(kind, speaks, part, feature, rows);
      this.nodes.push(node);
      return node;
    }

    value(p, e = 0) {
      const node = this.add(VALUE, false, null, -1, null);
      node.p = p;
      node.e = e;
      return node;
    }

    /** What a feature's mass function gives to the value observed; one outcome is no choice. */
    leaf(p, outcomes, part, feature, rows) {
      const node = this.add(LEAF, false, outcomes > 1 ? part : null, feature, rows);
      node.p = p;
      return node;
    }

    /** A mass function on the classes. */
    label(q, part, rows) {
      const node = this.add(LABEL, true, q.length > 1 ? part : null, -1, rows);
      node.q = q;
      return node;
    }

    product(children) {
      const node = this.add(PRODUCT, children.some((child) => child.speaks), null, -1, null);
      node.children = children;
      return node;
    }

    /** A mean of children; null stands for one that the row does not reach, of value 0. */
    sum(children, q, part, feature, rows) {
      const speaks = children.some((child) => child && child.speaks);
      const node = this.add(SUM, speaks, q.length > 1 ? part : null, feature, rows);
      node.children = children;
      node.q = q;
      node.f = new Float64Array(q.length);
      return node;
    }
  }

  /** Mark what moves. */
  function mark(reached, hood) {
    reached.moving.length = 0;
    for (const node of reached.nodes) {
      node.free = node.part !== null
        && (hood.parts.has(node.part) || (hood.feature >= 0 && node.feature === hood.feature))
        && !(hood.byRows && (node.rows === null || node.rows === undefined));
      node.moves = node.free || (node.children !== null && node.children.some((child) => child && child.moves));
      if (node.moves) reached.moving.push(node);
    }
  }

  // The size for a mass function with n rows behind it, and 1 − size where that matters: with x
  // hidden records (`odds`) it is x / (n + x), else x / n.
  let d = 0, k = 1;
  const ENDLESS = Number.MAX_VALUE;

  function resize(hood, node, x) {
    const { ball } = hood;
    if (ball.odds) {
      const n = hood.byRows ? node.rows : 1;
      d = x > 0 ? (x === ENDLESS ? 1 : x / (n + x)) : 0;
      k = x > 0 ? (x === ENDLESS ? 0 : Math.max(n / (n + x), ball.closed ? 0 : 1e-300)) : 1;
    } else d = hood.byRows ? (x > 0 ? Math.min(x / node.rows, ball.largest) : 0) : x;
  }

  /** The lower value of each of some nodes for what each class pays; of the last one, the root. */
  function lower(nodes, hood, payoff, x) {
    const { ball } = hood;
    for (const node of nodes) {
      if (node.free) resize(hood, node, x);
      if (node.kind === LEAF) {
        if (node.free) set(node, ball.lower(node.p, d, k), 0, ball.upper(node.p, d, k), 0);
        else set(node, node.p, 0, node.p, 0);
      } else if (node.kind === PRODUCT) multiply(node);
      else if (node.kind === SUM) average(node, ball);
      else if (node.kind === LABEL) {
        const v = expectation(node, ball, payoff);
        set(node, v, 0, 0, 0);
      } else set(node, node.p, node.e, node.p, node.e);
    }
    return nodes[nodes.length - 1];
  }

  /** The expectation of values under a node's mass function, the lower one if it is perturbed. */
  function expectation(node, ball, f) {
    if (node.free) return lowerExpectation(ball, node.q, f, d, k);
    let v = 0;
    for (let i = 0; i < f.length; i++) v += node.q[i] * f[i];
    return v;
  }

  function set(node, lo, loE, up, upE) {
    if (lo !== 0) {
      while (lo < LOW && lo > -LOW) { lo *= BIG; loE--; }
      while (lo > HIGH || lo < -HIGH) { lo *= SMALL; loE++; }
    }
    if (up !== 0) {
      while (up < LOW) { up *= BIG; upE--; }
      while (up > HIGH) { up *= SMALL; upE++; }
    }
    node.lo = lo; node.loE = loE; node.up = up; node.upE = upE;
  }

  function multiply(node) {
    let lo = 1, loE = 0, up = 1, upE = 0, own = null;
    for (const child of node.children) {
      if (child.speaks) { own = child; continue; }
      lo *= child.lo; loE += child.loE;
      up *= child.up; upE += child.upE;
      if (lo < LOW && lo > 0) { lo *= BIG; loE--; } else if (lo > HIGH) { lo *= SMALL; loE++; }
      if (up < LOW && up > 0) { up *= BIG; upE--; } else if (up > HIGH) { up *= SMALL; upE++; }
    }
    if (!own) set(node, lo, loE, up, upE);
    else if (own.lo > 0) set(node, own.lo * lo, own.loE + loE, 0, 0);
    else set(node, own.lo * up, own.loE + upE, 0, 0);
  }

  function average(node, ball) {
    if (node.q.length === 2 && node.speaks && (!node.children[0] || !node.children[1])) {
      // One child is reached, as in most splits: only its own weight matters.
      const i = node.children[0] ? 0 : 1, child = node.children[i], q = node.q[i];
      const weight = !node.free ? q : child.lo > 0 ? ball.lower(q, d, k) : ball.upper(q, d, k);
      set(node, child.lo * weight, child.loE, 0, 0);
      return;
    }
    const top = spread(node, true);
    const lo = top === null ? 0 : settle(node, ball, true, top), loE = settled;
    if (node.speaks) { set(node, lo, loE, 0, 0); return; }
    const most = spread(node, false);
    const up = most === null ? 0 : settle(node, ball, false, most);
    set(node, lo, loE, -up, settled);
  }

  /** The largest exponent among the children; null if all are 0. */
  function spread(node, low) {
    let top = null;
    settled = 0;
    for (const child of node.children) {
      if (!child || (low ? child.lo : child.up) === 0) continue;
      const e = low ? child.loE : child.upE;
      if (top === null || e > top) top = e;
    }
    return top;
  }

  let settled = 0; // the exponent of what `settle` returned

  /** The lower mean of lower values, or of −upper ones. The largest decide, unless they weigh 0. */
  function settle(node, ball, low, top) {
    const { children, f } = node;
    for (;;) {
      let next = null;
      for (let i = 0; i < children.length; i++) {
        const child = children[i], value = !child ? 0 : low ? child.lo : -child.up;
        const lag = value === 0 ? 0 : (low ? child.loE : child.upE) - top;
        f[i] = lag === 0 ? value : lag > 0 ? value * BIG : lag < -1 ? 0 : value * SMALL;
        if (lag < -1 && (next === null || top + lag > next)) next = top + lag;
      }
      const v = expectation(node, ball, f);
      settled = top;
      if (v !== 0 || next === null) return v;
      top = next;
    }
  }

  // ── Families: what a row reaches of each ──────────────────────────────────────────────────────
  // A row is a list of cells: the code of a category, a number, or MISSING.

  const MISSING = -1;
  const one = (c, classes) => Array.from({ length: classes }, (_, k) => (k === c ? 1 : 0));

  class Refusal extends Error {}

  function naiveBayes(model) {
    const classes = model.classes.length, indicators = model.classes.map((_, c) => one(c, classes));
    const rows = model.rows || {};
    return (cells) => {
      const reached = new Reached();
      const branches = indicators.map((label, c) => {
        const below = [reached.label(label, null, null)];
        cells.forEach((cell, i) => {
          if (cell < 0) return;
          const q = model.feature_probs[i][c];
          const n = rows.features ? rows.features[i][c] : null;
          below.push(reached.leaf(q[cell], q.length, "features", i, n));
        });
        return reached.product(below);
      });
      reached.sum(branches, model.class_probs, "prior", -1, rows.prior ?? null);
      return reached;
    };
  }

  function network(model) {
    const classes = model.classes.length, width = model.features.length;
    const sizes = model.features.map((feature) => feature.categories.length);
    const tables = new Array(width);
    let prior;
    for (const table of model.tables) {
      const made = { ...table, features: table.parents.filter((p) => p !== "class") };
      made.fromClass = table.parents.includes("class");
      if (table.variable === "class") prior = made; else tables[table.variable] = made;
    }
    const order = sortParentsFirst(tables);
    const line = (table, value, c) => table.parents.reduce(
      (at, p) => (p === "class" ? at * classes + c : at * sizes[p] + value[p]), 0);

    return (given) => {
      // The only value there is: as a parent it is known, and as a child a factor of 1.
      const cells = given.map((cell, i) => (sizes[i] === 1 && cell < 0 ? 0 : cell));
      const summed = findSummed(cells);
      const value = cells.slice(), reached = new Reached();
      const above = (i) => tables[i].features.find((p) => summed[p]) ?? -1;
      const seen = cells.map((cell, i) => cell >= 0 && sizes[i] > 1);

      const leaf = (i, c) => {
        const at = line(tables[i], value, c);
        const q = tables[i].probs[at];
        return reached.leaf(q[value[i]], q.length, "features", i, tables[i].rows?.[at] ?? null);
      };
      const total = (i, c, made) => {
        const at = line(tables[i], value, c);
        return reached.sum(made[i], tables[i].probs[at], "features", i, tables[i].rows?.[at] ?? null);
      };
      const below = (parent, c, made) => {
        const children = [];
        for (let i = 0; i < width; i++) {
          if (!tables[i].fromClass || above(i) !== parent) continue;
          if (seen[i]) children.push(leaf(i, c));
          else if (summed[i]) children.push(total(i, c, made));
        }
        return children;
      };
      const branches = model.classes.map((_, c) => {
        const made = {};
        for (const i of order.slice().reverse()) {
          if (!summed[i]) continue;
          made[i] = tables[i].probs[0].map((_, k) => {
            value[i] = k;
            return reached.product(below(i, c, made));
          });
        }
        return reached.product([reached.label(one(c, classes), null, null), ...below(-1, c, made)]);
      });
      const at = line(prior, value, 0);
      const own = reached.sum(branches, prior.probs[at], "prior", -1, prior.rows?.[at] ?? null);
      // Features that do not hang on the class cancel, but must not vanish.
      const others = [];
      for (let i = 0; i < width; i++) if (seen[i] && !tables[i].fromClass) others.push(leaf(i, 0));
      if (others.length) reached.product([own, ...others]);
      return reached;
    };

    /** Which missing features something observed hangs on; refuse where their sums do not split. */
    function findSummed(cells) {
      const summed = new Array(width).fill(false);
      const refuse = (i) => {
        throw new Refusal(`With “${model.features[i].name}” missing, this structure gives the row no `
          + "exact robustness: local models would stand in several places at once.");
      };
      for (const p of prior.features) if (cells[p] < 0) refuse(p);
      for (const i of order.slice().reverse()) {
        const counts = summed[i] || (cells[i] >= 0 && sizes[i] > 1);
        if (!counts) continue;
        const missing = tables[i].features.filter((p) => cells[p] < 0);
        for (const p of missing) summed[p] = true;
        if (missing.length > 1 || (missing.length && !tables[i].fromClass)) refuse(missing[0]);
        if (summed[i] && !tables[i].fromClass) refuse(i);
      }
      return summed;
    }
  }

  function sortParentsFirst(tables) {
    const order = [], done = new Set();
    const visit = (i) => {
      if (done.has(i)) return;
      done.add(i);
      tables[i].features.forEach(visit);
      order.push(i);
    };
    tables.forEach((_, i) => visit(i));
    return order;
  }

  /** Averaged one-dependence estimators: below each class a mean over the features that lead. */
  function networkMixture(model) {
    const classes = model.classes.length;
    const sizes = model.features.map((feature) => feature.categories.length);
    const tables = sizes.map(() => []), leads = [];
    for (const net of model.networks) {
      leads[net.lead] = net.lead_rows.map((n) => n >= model.min_rows && n > 0);
      for (const table of net.tables) tables[net.lead][table.variable] = table;
    }
    const line = (lead, i, cells, c) =>
      tables[lead][i].parents.reduce((at, p) => (p === "class" ? at * classes + c : at * sizes[p] + cells[p]), 0);
    return (cells) => {
      const reached = new Reached();
      const seen = cells.map((cell, i) => i).filter((i) => cells[i] >= 0 && sizes[i] > 1);
      const own = cells.map((cell, i) => i).filter((i) => cells[i] >= 0 && leads[i]?.[cells[i]]);
      const term = (lead, c) => reached.product(seen.map((i) => {
        const table = tables[lead < 0 ? i : lead][i], at = line(lead < 0 ? i : lead, i, cells, c);
        const q = table.probs[at];
        return reached.leaf(q[cells[i]], q.length, "features", i, table.rows?.[at] ?? null);
      }));
      const branches = model.classes.map((_, c) => {
        const label = reached.label(one(c, classes), null, null);
        const terms = (own.length ? own : [-1]).map((lead) => term(lead, c));
        const weights = terms.map(() => 1 / terms.length);
        const whole = terms.length > 1 ? reached.sum(terms, weights, "root", -1, null) : terms[0];
        return reached.product([label, whole]);
      });
      reached.sum(branches, model.class_probs, "prior", -1, model.rows ?? null);
      return reached;
    };
  }

  function forest(model) {
    const numeric = model.features.map((feature) => Boolean(feature.numeric));
    const sizes = model.features.map((feature) => (feature.numeric ? 0 : feature.categories.length));
    const isGap = (cell, i) => (numeric[i] ? Number.isNaN(cell) : cell < 0);
    for (const tree of model.trees) prepareTree(tree.nodes, sizes);
    const weights = model.trees.map(() => 1 / model.trees.length);
    return (cells) => {
      const reached = new Reached();
      const end = (node) => {
        const below = [reached.label(node.class_probs, "leaf_classes", node.rows)];
        cells.forEach((cell, i) => {
          if (isGap(cell, i)) return;
          const q = node.feature_probs[i];
          if (numeric[i]) below.push(density(reached, q, cell));
          else below.push(reached.leaf(share(q, model.base?.[i], cell), node.allowed[i], "leaf_features", i, node.rows));
        });
        return reached.product(below);
      };
      const walk = (nodes, at) => {
        const node = nodes[at], cell = cells[node.feature];
        if (node.feature === undefined) return end(node);
        const gap = isGap(cell, node.feature);
        const left = gap || (numeric[node.feature] ? cell <= node.threshold : node.goesLeft.has(cell));
        const below = [left ? walk(nodes, node.left) : null,
          gap || !left ? walk(nodes, node.right) : null];
        return reached.sum(below, node.weights, "weights", node.feature, node.rows);
      };
      reached.sum(model.trees.map((tree) => walk(tree.nodes, 0)), weights, "root", -1, null);
      return reached;
    };
  }

  /** The probability of a value at a leaf: as it stands, or how much it is that in all rows. */
  function share(q, base, cell) {
    if (!q.ratios) return q[cell];
    const at = q.codes.indexOf(cell);
    return base[cell] * (at < 0 ? q.other : q.ratios[at]);
  }

  /** Tell each leaf how many values of each feature its path allows. */
  function prepareTree(nodes, sizes) {
    const visit = (at, allowed) => {
      const node = nodes[at];
      if (node.feature === undefined) { node.allowed = allowed; return; }
      const i = node.feature, change = (count) => allowed.map((a, k) => (k === i ? count : a));
      const counts = [0, 0];
      if (node.left_values) {
        node.goesLeft = new Set(node.left_values);
        counts[0] = node.left_values.length;
        counts[1] = allowed[i] - counts[0];
      }
      visit(node.left, change(counts[0]));
      visit(node.right, change(counts[1]));
    };
    visit(0, sizes);
  }

  /** A density is not perturbed: a normal one within its cell, or steps between edges. */
  function density(reached, q, x) {
    if (q.edges) {
      const k = q.edges.findIndex((edge, j) => j && x <= edge);
      const inside = x >= q.edges[0] && k > 0;
      return reached.value(inside ? q.probs[k - 1] / (q.edges[k] - q.edges[k - 1]) : 0);
    }
    const low = q.low ?? -Infinity, high = q.high ?? Infinity, z = (x - q.mean) / q.sd;
    if (!(low <= x && x <= high)) return reached.value(0);
    q.height ??= heightOf(q.mean, q.sd, low, high);
    const steps = Math.trunc((-0.5 * z * z) / (STEP * Math.LN2));
    return reached.value(Math.exp(-0.5 * z * z - steps * STEP * Math.LN2) * q.height, steps);
  }

  function heightOf(mean, sd, low, high) {
    const below = (mean - low) / sd, above = (high - mean) / sd, half = Math.SQRT1_2;
    const near = Math.min(below, above), far = Math.max(below, above);
    const mass = near >= 0
      ? 2 - erfc(above * half) - erfc(below * half)
      : erfc(-near * half) - erfc(far * half);
    const narrow = Math.abs(mass) < 1e-8 ? normalMass(-below, above) * 2 : mass;
    return Math.min(1 / (Math.sqrt(2 * Math.PI) * sd * 0.5 * narrow), 1e150);
  }

  /** ∫ of the normal density between two numbers that are close or far out, by Gauss–Legendre. */
  function normalMass(a, b) {
    const nodes = [0.1488743389816312, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845, 0.9739065285171717];
    const weights = [0.2955242247147529, 0.2692667193099963, 0.219086362515982, 0.1494513491505806, 0.0666713443086881];
    const end = Math.min(b, a + 40 / Math.max(1, Math.abs(a)));
    const half = (end - a) / 2, middle = (a + end) / 2;
    let total = 0;
    nodes.forEach((t, k) => {
      for (const z of [middle - half * t, middle + half * t]) total += weights[k] * Math.exp(-0.5 * z * z);
    });
    return (total * half) / Math.sqrt(2 * Math.PI);
  }

  /** 1 − erf, to all digits: a series near 0, a continued fraction farther out. */
  function erfc(x) {
    if (x < 0) return 2 - erfc(-x);
    if (x === Infinity) return 0;
    if (x < 2.5) {
      let term = x, total = x;
      for (let n = 1; n < 200 && Math.abs(term) > 1e-18 * total; n++) {
        term *= (2 * x * x) / (2 * n + 1);
        total += term;
      }
      return 1 - (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
    }
    let tail = 0;
    for (let k = 120; k > 0; k--) tail = (k / 2) / (x + tail);
    return Math.exp(-x * x) / (Math.sqrt(Math.PI) * (x + tail));
  }

  function circuit(model) {
    return (cells) => {
      const reached = new Reached(), made = new Map();
      const visit = (at) => {
        if (!made.has(at)) made.set(at, make(model.nodes[at]));
        return made.get(at);
      };
      const make = (node) => {
        const part = node.part ?? null, rows = node.rows ?? null;
        if (node.sum) return reached.sum(node.sum.map(visit), node.weights, part, node.feature ?? -1, rows);
        if (node.product) return reached.product(node.product.map(visit));
        if (node.class_probs) return reached.label(node.class_probs, part, rows);
        const cell = cells[node.feature];
        if (!node.probs || node.edges) {
          return Number.isNaN(cell) ? reached.value(1) : density(reached, node, cell);
        }
        if (cell < 0) return reached.value(1);
        const values = node.values, at = values && node.probs.length === values.length ? values.indexOf(cell) : cell;
        if (values && !values.includes(cell)) return reached.value(0);
        return reached.leaf(node.probs[at], values ? values.length : node.probs.length, part, node.feature, rows);
      };
      visit(model.root);
      return reached;
    };
  }

  const FAMILIES = {
    naive_bayes: naiveBayes,
    bayesian_network: network,
    network_mixture: networkMixture,
    generative_forest: forest,
    circuit,
  };

  // ── Exact arithmetic, for classes that are nearly equally probable ─────────────────────────────
  // Every float is a whole number times a power of two; so are products and sums of them.

  const bits = new DataView(new ArrayBuffer(8));

  function exactly(x) {
    if (x === 0) return { n: 0n, e: 0 };
    bits.setFloat64(0, x);
    const raw = bits.getBigUint64(0), power = Number((raw >> 52n) & 0x7ffn);
    const fraction = raw & 0xfffffffffffffn;
    const n = power ? fraction | 0x10000000000000n : fraction;
    return { n: raw >> 63n ? -n : n, e: (power || 1) - 1075 };
  }

  const times = (a, b) => ({ n: a.n * b.n, e: a.e + b.e });
  function plus(a, b) {
    if (a.n === 0n) return b;
    if (b.n === 0n) return a;
    const e = Math.min(a.e, b.e);
    return { n: (a.n << BigInt(a.e - e)) + (b.n << BigInt(b.e - e)), e };
  }

  /** p(ĉ, f) − p(c, f): whether it is positive, negative or 0, without rounding. */
  function compareExactly(reached, payoff) {
    const found = new Map();
    let last = { n: 0n, e: 0 };
    for (const node of reached.nodes) {
      let v = { n: 0n, e: 0 };
      if (node.kind === LEAF) v = exactly(node.p);
      else if (node.kind === VALUE) { v = exactly(node.p); v.e += STEP * node.e; }
      else if (node.kind === LABEL) {
        node.q.forEach((q, c) => { if (payoff[c]) v = plus(v, times(exactly(q), exactly(payoff[c]))); });
      } else if (node.kind === PRODUCT) {
        v = { n: 1n, e: 0 };
        for (const child of node.children) v = times(v, found.get(child));
      } else {
        node.children.forEach((child, k) => { if (child) v = plus(v, times(exactly(node.q[k]), found.get(child))); });
      }
      found.set(node, v);
      last = v;
    }
    return last.n === 0n ? 0 : last.n > 0n ? 1 : -1;
  }

  // ── Predictions ───────────────────────────────────────────────────────────────────────────────

  const NOTHING = { ball: BALLS.tv, parts: new Set(), feature: -1, byRows: false };
  const NEAR = 1e-9;

  /** log p(c, f) of each class. */
  function joint(reached, classes) {
    mark(reached, NOTHING);
    const found = new Float64Array(classes);
    for (let c = 0; c < classes; c++) {
      const root = lower(reached.nodes, NOTHING, one(c, classes), 0);
      found[c] = root.lo > 0 ? Math.log(root.lo) + root.loE * STEP * Math.LN2 : -Infinity;
    }
    return found;
  }

  /** Who leads, who is next, with what probability; tied: a class that is exactly as probable. */
  function rank(reached, frequency) {
    const logs = joint(reached, frequency.length);
    let order = Array.from(logs.keys()).sort((a, b) => logs[b] - logs[a] || a - b);
    let best = order[0], tied = -1;
    if (logs[best] === -Infinity) {
      const proba = new Float64Array(logs.length).fill(1 / logs.length);
      return { prediction: frequency[0], order: frequency, tied: frequency[1] ?? -1, proba, logs, impossible: true };
    }
    for (const c of order.slice(1)) {
      if (logs[best] - logs[c] > NEAR) break;
      const payoff = one(best, logs.length);
      payoff[c] = -1;
      const sign = compareExactly(reached, payoff);
      if (sign < 0) { best = c; tied = -1; }
      if (sign === 0) { [best, tied] = [Math.min(best, c), tied < 0 ? Math.max(best, c) : tied]; }
    }
    order = [best, ...order.filter((c) => c !== best)];
    let total = 0;
    for (const log of logs) total += Math.exp(log - logs[best]);
    const proba = logs.map((log) => Math.exp(log - logs[best]) / total);
    return { prediction: best, order, tied, proba, logs, impossible: false };
  }

  // ── Robustness ────────────────────────────────────────────────────────────────────────────────

  const TOLERANCE = 1e-12, TINY = 1e-140, FARTHEST = 500;

  /** The smallest x at which a margin that never grows is no longer positive. */
  function smallestRoot(margin, last, byRows) {
    if (margin(last) > 0) return Infinity;
    if (byRows && margin(TINY) <= 0) return 0; // what no rows stand behind moves at once
    let low = -1074, high = last === ENDLESS ? FARTHEST : Math.log2(last), guess = -4;
    if (last === ENDLESS && margin(2 ** high) > 0) return last; // only the very end does it
    while (high - low > 1) {
      const tried = low < guess && guess < high ? guess : Math.floor((low + high) / 2);
      if (margin(2 ** tried) > 0) { low = tried; guess = tried + 2; } else { high = tried; guess = tried - 8; }
    }
    return narrow(margin, 2 ** low, 2 ** high);
  }

  /** Interpolate, truncate, project (Oliveira and Takahashi 2020). */
  function narrow(margin, a, b) {
    let fa = margin(a), fb = margin(b);
    if (fa <= 0) return a;
    const start = b - a;
    for (let step = 0; step < 60 && b - a > TOLERANCE * b; step++) {
      const width = b - a, middle = 0.5 * (a + b), guess = a + width * (fa / (fa - fb));
      const toward = Math.sign(middle - guess);
      const truncation = Math.min(0.2 * width * (width / start), Math.abs(middle - guess));
      const radius = start * 2 ** -step - 0.5 * width;
      const nearest = clip(middle - guess - toward * truncation, -radius, radius);
      const x = clip(middle - nearest, a + 0.25 * TOLERANCE * b, b - 0.25 * TOLERANCE * b);
      const value = margin(x);
      if (value > 0) { a = x; fa = value; } else { b = x; fb = value; }
    }
    return b;
  }

  /** The size at which rivals catch up, and the one that does first. */
  function quantify(reached, ranked, hood) {
    if (ranked.tied >= 0) return { robustness: 0, tipping: ranked.tied };
    if (ranked.order.length < 2) return { robustness: Infinity, tipping: -1 };
    if (hood.whole) return quantifyWhole(ranked, hood);
    mark(reached, hood);
    if (!reached.moving.length) return { robustness: Infinity, tipping: -1 };
    let first = Infinity, tipping = -1;
    for (const rival of ranked.order.slice(1)) {
      const margin = marginOver(reached, hood, ranked, rival);
      if (first < Infinity && margin(first) > 0) continue;
      const found = smallestRoot(margin, lastOf(hood), hood.byRows);
      if (found < first) { first = found; tipping = rival; }
    }
    return { robustness: sizeOf(hood, first), tipping };
  }

  /** The largest x to look at: a closed domain has an end, of others hardly anything is beyond. */
  function lastOf(hood) {
    if (hood.byRows || !hood.ball.closed) return 2 ** FARTHEST;
    return hood.ball.odds ? ENDLESS : hood.ball.end;
  }

  /** The size that belongs to x, and back. */
  function sizeOf(hood, x) {
    if (x === Infinity || hood.byRows || !hood.ball.odds) return x;
    return x === ENDLESS ? 1 : x / (1 + x);
  }
  const xOf = (hood, delta) => (hood.byRows || !hood.ball.odds ? delta : delta >= 1 ? ENDLESS : delta / (1 - delta));

  /** The lead over a rival at any x, for what `mark` has marked. */
  function marginOver(reached, hood, ranked, rival) {
    const payoff = one(ranked.prediction, ranked.logs.length);
    payoff[rival] = -1;
    lower(reached.nodes, hood, payoff, 0);
    return (x) => lower(reached.moving, hood, payoff, x).lo;
  }

  // One mass function as a whole, of the joint or of the posterior: closed forms in logarithms.
  const logSum = (a, b) => Math.max(a, b) === -Infinity ? -Infinity
    : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
  const WHOLES = {
    epsilon: (a, b, lead) => Math.exp(lead - Math.log1p(Math.exp(lead))),
    tv: (a, b, lead) => 0.5 * Math.exp(lead),
    pari_mutuel: (a, b, lead, rest) => Math.exp(lead - logSum(rest, b + Math.LN2)),
    chi2: (a, b, lead, rest) => Math.exp(2 * lead - logSum(logSum(a, b) + rest, a + b + Math.log(4))),
    odds_ratio: (a, b, lead) => (b === -Infinity ? Infinity : Math.exp(lead - a)),
  };

  function quantifyWhole(ranked, hood) {
    const [best, rival] = ranked.order, { logs } = ranked;
    let shift = 0;
    if (hood.whole === "posterior") shift = logs.reduce(logSum, -Infinity);
    const a = logs[best] - shift, b = logs[rival] - shift;
    const lead = a + Math.log(-Math.expm1(b - a));
    let rest = -Infinity;
    if (hood.whole === "joint") rest = Math.log1p(-Math.min(1, Math.exp(a) + Math.exp(b)));
    else logs.forEach((log, c) => { if (c !== best && c !== rival) rest = logSum(rest, log - shift); });
    const robustness = lead === -Infinity ? 0 : WHOLES[hood.name](a, b, lead, rest);
    return { robustness, tipping: robustness === Infinity ? -1 : rival };
  }

  // ── A model, and the questions to it ──────────────────────────────────────────────────────────

  /** The text of a category or label. */
  const say = (value) => (value === true ? "True" : value === false ? "False" : String(value));

  class Model {
    /** @param {object} told the document, classes and features, parts, how frequent classes are */
    constructor(told) {
      this.classes = told.classes;
      this.features = told.features;
      this.parts = told.parts;
      this.defaults = told.default_parts;
      this.counted = told.counted;
      this.frequency = told.by_frequency;
      this.hoods = new Map();
      this.reach = FAMILIES[told.document.kind]({ ...told.document, classes: told.classes, features: told.features });
      this.lookups = this.features.map((feature) =>
        new Map((feature.categories || []).map((category, code) => [say(category), code])));
    }

    /** Cells of a row given as text or numbers; null is missing, and so is what nobody knows. */
    encode(values) {
      return this.features.map((feature, i) => {
        const value = values[i];
        const none = value === null || value === undefined || (typeof value === "number" && Number.isNaN(value));
        if (feature.numeric) return none || String(value).trim() === "" ? NaN : Number(value);
        if (none) return MISSING;
        const code = this.lookups[i].get(say(value));
        if (code !== undefined) return code;
        const number = String(value).trim() === "" ? NaN : Number(value);
        if (Number.isNaN(number)) return MISSING;
        // Bins end at their edges, inclusive.
        if (feature.edges) return feature.edges.filter((edge) => edge < number).length;
        return this.lookups[i].get(String(number)) ?? MISSING;
      });
    }

    /** What a name like tv_all_rows means for this model. */
    hood(name) {
      if (!this.hoods.has(name)) this.hoods.set(name, this.read(name));
      return this.hoods.get(name);
    }

    read(name) {
      let rest = name, parts = this.defaults, whole = null;
      const byRows = rest.endsWith("_rows");
      if (byRows) rest = rest.slice(0, -5);
      for (const ending of ["joint", "posterior"]) {
        if (rest.endsWith("_" + ending)) { rest = rest.slice(0, -ending.length - 1); whole = ending; }
      }
      if (rest.endsWith("_all")) { rest = rest.slice(0, -4); parts = this.parts; }
      if (!(rest in BALLS)) {
        throw new Refusal(`This page does not know “${name}”; it knows ${Object.keys(BALLS).join(", ")}.`);
      }
      if (byRows && (whole || !parts.some((part) => this.counted[part]))) {
        throw new Refusal(`${name}: sizes by rows need rows, and none were counted.`);
      }
      if (whole === "joint" && this.features.some((feature) => feature.numeric)) {
        throw new Refusal(`${name}: a column is a number, so p(c, f) is a density and no mass.`);
      }
      return { name: rest, ball: BALLS[rest], parts: new Set(parts), feature: -1, byRows, whole };
    }

    /** The answer for a row of cells, with classes as positions. */
    judge(cells, name) {
      const reached = this.reach(cells), ranked = rank(reached, this.frequency);
      const { robustness, tipping } = quantify(reached, ranked, this.hood(name));
      return { reached, ...ranked, probability: ranked.proba[ranked.prediction], robustness, tipping };
    }

    /** The answer for values as text or numbers, in words. */
    assess(values, name = "tv") {
      const found = this.judge(this.encode(values), name);
      return {
        prediction: this.classes[found.prediction],
        probability: found.probability,
        robustness: found.robustness,
        tipping_class: found.tipping < 0 ? null : this.classes[found.tipping],
      };
    }

    // Why

    /** The size at which the local models of one feature, or a part, alone flip the prediction. */
    alone(found, name, { feature = -1, part = null }) {
      const hood = { ...this.hood(name), parts: new Set(part ? [part] : []), feature, whole: null };
      return quantify(found.reached, found, hood).robustness;
    }

    /** The feature that flips the prediction first alone, −1 if none does before all is gone. */
    first(alone, name) {
      const hood = this.hood(name), end = hood.byRows ? Infinity : hood.ball.end;
      let best = -1;
      alone.forEach((size, i) => { if (size < 0.99 * end && (best < 0 || size < alone[best])) best = i; });
      return best;
    }

    /** The log-odds of a class against another. */
    static odds(ranked, ahead, behind) { return ranked.logs[ahead] - ranked.logs[behind]; }

    /** For each feature: how much it speaks for the prediction, and its size alone. */
    explain(cells, found, name) {
      const rival = found.tipping >= 0 ? found.tipping : found.order[1] ?? -1;
      const hood = this.hood(name);
      return this.features.map((_, i) => {
        const out = { support: 0, alone: Infinity };
        if (rival < 0 || isMissingAt(this, cells, i)) return out;
        out.alone = hood.whole ? Infinity : this.alone(found, name, { feature: i });
        try {
          const without = rank(this.reach(replaceAt(cells, i, this.missing(i))), this.frequency);
          out.support = Model.odds(found, found.prediction, rival) - Model.odds(without, found.prediction, rival);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          out.support = null;
        }
        return out;
      });
    }

    /** The log-odds before anything is known, and the size at which the prior alone flips. */
    begin(found, name) {
      const rival = found.tipping >= 0 ? found.tipping : found.order[1] ?? -1;
      const blank = rank(this.reach(this.features.map((_, i) => this.missing(i))), this.frequency);
      const part = this.parts.includes("prior") ? "prior" : null;
      return {
        support: rival < 0 ? 0 : Model.odds(blank, found.prediction, rival),
        share: blank.proba[found.prediction],
        alone: part ? this.alone(found, name, { part }) : null,
      };
    }

    missing(i) { return this.features[i].numeric ? NaN : MISSING; }

    /** Only who is predicted: quick. */
    predict(cells) { return rank(this.reach(cells), this.frequency); }

    /** Margins over rivals at sizes, as shares of the margins at 0. */
    curves(found, name, sizes, rivals) {
      const hood = this.hood(name);
      mark(found.reached, hood);
      return rivals.map((rival) => {
        const payoff = one(found.prediction, this.classes.length);
        payoff[rival] = -1;
        const first = lower(found.reached.nodes, hood, payoff, 0);
        const m = first.lo, e = first.loE;
        return sizes.map((delta) => {
          const root = lower(found.reached.nodes, hood, payoff, xOf(hood, delta));
          return (root.lo / m) * 2 ** (STEP * clip(root.loE - e, -1, 1));
        });
      });
    }
  }

  const isMissingAt = (model, cells, i) =>
    (model.features[i].numeric ? Number.isNaN(cells[i]) : cells[i] < 0);
  const replaceAt = (cells, i, value) => cells.map((cell, k) => (k === i ? value : cell));

  return { Model, BALLS, Refusal, say, replaceAt, isMissingAt, quantifyWhole, MISSING };
})();
