"use strict";
// The page: all predictions, a slider that sends the least robust to a person, and one prediction
// taken apart. All numbers come from method.js; names are only ever put in as text.

(() => {
  const { say, replaceAt, isMissingAt } = method;
  const $ = (id) => document.getElementById(id);

  // ── Making elements ───────────────────────────────────────────────────────────────────────────

  const SVG = "http://www.w3.org/2000/svg";
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const replace = (node, ...children) => {
    node.replaceChildren(...children.flat().filter(Boolean));
  };
  // Names may be written from right to left: they do not turn what stands beside them.
  const name = (text) => h("bdi", null, shown(text));

  const person = () =>
    s(
      "svg",
      { class: "person", viewBox: "0 0 16 16", "aria-hidden": "true" },
      s("circle", { cx: 8, cy: 4.6, r: 3.1 }),
      s("path", { d: "M1.8 15c0-4 2.6-6 6.2-6s6.2 2 6.2 6z" }),
    );

  /** A name as it can be read: what turns or hides text is written out. */
  const shown = (text) =>
    String(text).replace(
      /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
      (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
    );
  const short = (text, most = 60) => {
    const t = shown(text);
    return t.length > most ? t.slice(0, most - 1) + "…" : t;
  };

  // ── Data ──────────────────────────────────────────────────────────────────────────────────────

  const data = JSON.parse($("data").textContent);
  const ARRAYS = {
    int8: Int8Array,
    uint8: Uint8Array,
    int16: Int16Array,
    uint16: Uint16Array,
    int32: Int32Array,
    float32: Float32Array,
    float64: Float64Array,
  };

  /** Numbers that were written as a list, as bytes, or as different values and which each one is. */
  function unpack(packed) {
    if (!packed) return null;
    if (Array.isArray(packed)) return Float64Array.from(packed);
    if (packed.values) {
      const values = unpack(packed.values);
      return Float64Array.from(unpack(packed.at), (k) => values[k]);
    }
    const text = atob(packed.data),
      bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new ARRAYS[packed.type](bytes.buffer);
  }

  /** Lists of alike things that were written as columns. */
  function unfold(told) {
    if (told.plain) return told.plain;
    if (told.numbers) return Array.from(unpack(told.numbers));
    if (told.lengths) {
      const all = unfold(told.of);
      let at = 0;
      return Array.from(unpack(told.lengths), (length) => all.slice(at, (at += length)));
    }
    const kinds = told.records.map(({ names, of }) => ({ names, columns: of.map(unfold), at: 0 }));
    return Array.from(unpack(told.which), (k) => {
      const { names, columns, at } = kinds[k],
        one = {};
      names.forEach((name, i) => {
        one[name] = columns[i][at];
      });
      kinds[k].at++;
      return one;
    });
  }

  function unfoldDocument(document) {
    const whole = ([name, value]) => [name, value && value.folded ? unfold(value.folded) : value];
    return Object.fromEntries(Object.entries(document).map(whole));
  }

  const { features, classes, rows: count } = data;
  const labels = classes.map((label) => short(say(label), 30));
  const columns = data.columns.map(unpack);
  const truth = unpack(data.truth);
  const numbers = unpack(data.numbers);
  const model = data.model
    ? new method.Model({ ...data.model, document: unfoldDocument(data.model.document), classes, features })
    : null;
  const proba = unpack(data.proba);
  const found = {
    prediction: unpack(data.prediction),
    probability: unpack(data.probability),
    robustness: unpack(data.robustness),
    tipping: unpack(data.tipping),
  };
  const cellsOf = (row) => columns.map((column) => column[row]);
  const isRight = (row) => truth[row] === found.prediction[row];
  const known = truth && truth.some((label) => label >= 0) ? truth : null;

  /** What only the posterior is known of is judged by the posterior. */
  function judgePosteriors(ball) {
    const width = classes.length;
    found.prediction = new Int32Array(count);
    found.probability = new Float64Array(count);
    found.robustness = new Float64Array(count);
    found.tipping = new Int32Array(count);
    for (let row = 0; row < count; row++) {
      const p = proba.subarray(row * width, (row + 1) * width);
      const order = Array.from(p.keys()).sort((a, b) => p[b] - p[a] || a - b);
      const logs = Float64Array.from(p, Math.log);
      const judged =
        width > 1
          ? method.quantifyWhole({ order, logs }, { name: ball, whole: "posterior" })
          : { robustness: Infinity, tipping: -1 };
      found.prediction[row] = order[0];
      found.probability[row] = p[order[0]];
      found.robustness[row] = judged.robustness;
      found.tipping[row] = judged.tipping;
    }
  }

  // ── Words ─────────────────────────────────────────────────────────────────────────────────────

  const BALL_WORDS = {
    tv: "total variation",
    epsilon: "ε-contamination",
    chi2: "χ²",
    pari_mutuel: "pari-mutuel",
    odds_ratio: "odds ratio",
  };
  const PART_WORDS = {
    weights: "the splits of the trees",
    prior: "the prior",
    features: "the tables",
    root: "the mean",
    leaf_classes: "the classes in leaves",
    leaf_features: "the features in leaves",
  };
  const thousands = (n) => n.toLocaleString("en-US");
  const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
  const probability = (p) => (p > 0.99 ? "> 0.99" : p.toFixed(2));
  const significant = (x) =>
    x === 0 ? "0" : x < 0.01 ? x.toExponential(1) : x < 10 ? x.toPrecision(2) : thousands(Math.round(x));
  const points = (share) => (share > 0 && share < 0.0001 ? "< 0.01" : (100 * share).toFixed(share < 0.1 ? 2 : 1));

  let hoodName = data.hood;
  const readHood = (text) => {
    const byRows = text.endsWith("_rows");
    const ball = Object.keys(BALL_WORDS).find((key) => text.startsWith(key));
    return { ball, byRows, posterior: text.endsWith("_posterior") };
  };

  /** A size as the list shows it. */
  function size(r) {
    const { ball, byRows } = readHood(hoodName);
    if (r === Infinity) return "never";
    if (byRows || ball === "chi2") return significant(r);
    return `${points(r)} %`;
  }

  /** When a prediction turns, in words: before, the number, after. */
  function when(r) {
    const { ball, byRows, posterior } = readHood(hoodName);
    const records = `${significant(r)} ${r === 1 ? "record" : "records"}`;
    if (byRows) {
      return {
        tv: ["if ", records, " behind each of its numbers are wrong"],
        pari_mutuel: ["if ", records, " behind each of its numbers are counted too often"],
        epsilon: ["if ", records, " behind each of its numbers are hidden from it"],
        odds_ratio: ["if ", records, " behind each of its numbers are hidden from it"],
        chi2: ["if its numbers are off by a χ² statistic of ", significant(r), ""],
      }[ball];
    }
    if (posterior && ball === "tv") return ["if its probabilities are off by ", `${points(r)} percentage points`, ""];
    return {
      tv: ["if the model is off by ", `${points(r)} percentage points`, ""],
      epsilon: ["if ", `${points(r)} %`, " of each of its distributions is something else"],
      chi2: ["if its probabilities are off by ", `${points(Math.sqrt(r))} %`, " of themselves"],
      pari_mutuel: ["if outcomes are ", `${points(r)} %`, " more likely than it holds"],
      odds_ratio: ["if odds are ", `${points(r)} %`, " lower than it holds"],
    }[ball];
  }

  function valueText(i, cell) {
    const feature = features[i];
    if (feature.numeric) return Number.isNaN(cell) ? "missing" : String(+cell.toPrecision(6));
    if (cell < 0) return cell === -2 ? "never seen" : "missing";
    if (feature.edges) return binText(feature.edges, cell);
    return short(say(feature.categories[cell]));
  }
  function binText(edges, code) {
    const [low, high] = [edges[code - 1], edges[code]];
    if (low === undefined && high === undefined) return "any";
    if (low === undefined) return `up to ${high}`;
    return high === undefined ? `over ${low}` : `over ${low} to ${high}`;
  }
  const nameOf = (i) => short(features[i].name, 40);

  // ── Sums over the list ────────────────────────────────────────────────────────────────────────

  let share = 0.25; // sent to a person
  let byRobustness, byProbability; // rows, the least trusted first, and what is right of the rest

  /** Rows in the order of a score, and how many of those from each place on are right; ties evenly. */
  function rankBy(score) {
    const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => score[a] - score[b] || a - b);
    const right = new Float64Array(count + 1);
    if (known) {
      for (let stop = count; stop > 0;) {
        let start = stop - 1,
          sum = isRight(order[start]);
        while (start > 0 && score[order[start - 1]] === score[order[start]]) {
          start--;
          sum += isRight(order[start]);
        }
        const each = sum / (stop - start);
        for (let i = stop - 1; i >= start; i--) right[i] = right[i + 1] + each;
        stop = start;
      }
    }
    const place = new Uint32Array(count);
    order.forEach((row, i) => {
      place[row] = i;
    });
    return { order, right, place };
  }

  const sent = () => Math.round(share * count);
  const threshold = () => (sent() > 0 ? found.robustness[byRobustness.order[sent() - 1]] : 0);
  const goesToPerson = (row) => byRobustness.place[row] < sent();
  const accuracy = (ranked, from) => (from < count ? ranked.right[from] / (count - from) : NaN);

  /** Between what a share lies in 95 of 100 samples (Wilson). */
  function band(share_, n) {
    const z = 1.96,
      middle = (share_ + (z * z) / (2 * n)) / (1 + (z * z) / n);
    const half = (z * Math.sqrt((share_ * (1 - share_)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  }

  /** Whether one order keeps better predictions than the other, by those that only one keeps. */
  function compareOrders(from) {
    let one = 0,
      other = 0;
    for (let i = from; i < count; i++) {
      const a = byRobustness.order[i],
        b = byProbability.order[i];
      if (byProbability.place[a] < from) one += isRight(a);
      if (byRobustness.place[b] < from) other += isRight(b);
    }
    if (Math.abs(one - other) <= 1.96 * Math.sqrt(one + other)) return "about the same";
    return other > one ? "better" : "worse";
  }

  // ── The verdict and the slider ────────────────────────────────────────────────────────────────

  function showVerdict() {
    const k = sent(),
      rest = count - k,
      acc = accuracy(byRobustness, k),
      all = accuracy(byRobustness, 0);
    const gone = known && k ? (byRobustness.right[0] - byRobustness.right[k]) / k : NaN;
    replace(
      $("verdict"),
      "Leave ",
      h("span", { class: "robust" }, `${thousands(rest)} of ${thousands(count)}`),
      " to the model",
      known && rest ? `: ${percent(acc)} of those are right.` : ".",
    );
    const [before, number, after] = when(threshold()).map((text) => text.replace(/\b(is|are)\b/, "were"));
    const rule =
      threshold() === Infinity
        ? ["Nothing flips any of the predictions that it keeps."]
        : [
            k === 1 ? "The least robust one would change " : `The ${thousands(k)} least robust would change `,
            before,
            h("b", null, number),
            after,
            " or less",
          ];
    const coin = known && k && classes.length === 2 && band(gone, k)[0] <= 0.5 ? ": little better than a coin." : ".";
    replace(
      $("lead"),
      known ? `Of all ${thousands(count)} it gets ${percent(all)} right. ` : "",
      k ? rule : "Nothing goes to a person.",
      k && known ? `, and of those it gets ${thousands(Math.round(gone * k))} right${coin}` : k ? "." : "",
    );
    replace(
      $("share"),
      "Send the least robust ",
      h("span", { class: "robust" }, percent(share, (share * 100) % 1 ? 1 : 0)),
      " to a person",
    );
    const part = (title, text, style) => h("p", null, h("b", { class: style }, title), h("span", { class: "soft small" }, text));
    replace(
      $("readout"),
      part(`${thousands(k)} to a person`, known && k ? `${percent(gone, 1)} would have been right` : ""),
      part(`${thousands(rest)} decided by the model`, known && rest ? `${percent(acc, 1)} right` : ""),
      known && k && rest
        ? part(
            "Sorted by probability instead",
            `${percent(accuracy(byProbability, k), 1)} right, ${compareOrders(k)}`,
            "probable",
          )
        : null,
    );
    const slider = $("slider");
    slider.value = share * 100;
    slider.setAttribute(
      "aria-valuetext",
      `${percent(share, 1)}: ${k} to a person${known && rest ? `, ${percent(acc, 1)} of the rest right` : ""}`,
    );
    $("thumb").style.left = `${100 * share}%`;
  }

  /** One mark per prediction; of many, bins whose height is the share that is wrong. */
  function drawStrip() {
    const svg = $("strip"),
      width = svg.clientWidth || 800,
      { order } = byRobustness;
    const bins = Math.min(count, Math.max(50, Math.min(1000, Math.floor(width / 2.2))));
    let plain = "",
      wrong = "";
    for (let i = 0; i < bins; i++) {
      const from = Math.floor((i * count) / bins),
        to = Math.max(from + 1, Math.floor(((i + 1) * count) / bins));
      let bad = 0;
      if (known) for (let j = from; j < to; j++) bad += !isRight(order[j]);
      const x = (((i + 0.5) * width) / bins).toFixed(2),
        part = bad / (to - from);
      if (part < 1) plain += `M${x} 14V30`;
      if (part > 0) wrong += `M${x} ${(22 - 17 * part).toFixed(1)}V${(22 + 17 * part).toFixed(1)}`;
    }
    const thick = Math.max(0.8, Math.min(3, (0.62 * width) / bins));
    svg.setAttribute("viewBox", `0 0 ${width} 44`);
    replace(
      svg,
      s("rect", { class: "sent", id: "sent", x: 0, y: 0, width: share * width, height: 44 }),
      s("path", { d: plain, class: "right", "stroke-width": Math.min(thick, 1.2) }),
      s("path", { d: wrong, class: "w-line", "stroke-width": thick }),
    );
    replace(
      $("legend"),
      known ? "❘ right  " : "",
      known ? h("b", { class: "bad" }, "❙ wrong  ") : "",
      bins < count ? "share wrong, the least robust first" : "one mark per prediction, the least robust first",
    );
  }

  // ── Charts ────────────────────────────────────────────────────────────────────────────────────

  const path = (xs, ys) => xs.map((x, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${ys[i].toFixed(1)}`).join("");
  function ticks(low, high, about) {
    const raw = (high - low) / about,
      power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw),
      marks = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) marks.push(+x.toPrecision(12));
    return marks;
  }

  function drawCurve() {
    const svg = $("curve"),
      width = svg.clientWidth || 560,
      height = 250,
      left = 44,
      right = 8,
      top = 16,
      bottom = 40;
    if (!known) return;
    const steps = Math.min(180, count),
      rates = [];
    for (let i = 0; i <= steps; i++) if (((0.9 * i) / steps) * count <= count - 1) rates.push((0.9 * i) / steps);
    const at = (ranked) => rates.map((rate) => accuracy(ranked, Math.round(rate * count)));
    const r = at(byRobustness),
      p = at(byProbability);
    const bands = r.map((value, i) => band(value, count - Math.round(rates[i] * count)));
    const low = Math.max(0, Math.min(...bands.map((b) => b[0]), ...p) - 0.01),
      high = Math.min(1, Math.max(...bands.map((b) => b[1]), ...p) + 0.01);
    const x = (rate) => left + (rate / 0.9) * (width - left - right),
      y = (a) => top + ((high - a) / (high - low || 1)) * (height - top - bottom);
    const xs = rates.map(x),
      cut = Math.min(share, 0.9),
      k = sent(),
      now = accuracy(byRobustness, Math.min(k, count - 1));
    const flip = x(cut) > width - 190;
    const down = y(now) < top + 34 ? height - top - bottom - 40 : 0; // where the curves are not
    const read = (dy, style, line, text) => [
      s("line", {
        x1: x(cut) + (flip ? -12 : 12),
        x2: x(cut) + (flip ? -34 : 34),
        y1: top + dy - 4,
        y2: top + dy - 4,
        class: line,
      }),
      s("text", { x: x(cut) + (flip ? -40 : 40), y: top + dy, class: style, "text-anchor": flip ? "end" : "start" }, text),
    ];
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute(
      "aria-label",
      `Of the rest ${percent(now, 1)} are right with the least robust ${percent(share)} sent away, ${percent(accuracy(byProbability, Math.min(k, count - 1)), 1)} with the least probable.`,
    );
    replace(
      svg,
      ticks(low, high, 4)
        .map((a) => [
          s("line", { class: "grid", x1: left, x2: width - right, y1: y(a), y2: y(a) }),
          s("text", { x: left - 8, y: y(a) + 4, "text-anchor": "end" }, `${Math.round(100 * a * 10) / 10}${a === 1 ? " %" : ""}`),
        ])
        .flat(),
      s("path", {
        class: "band",
        d: path([...xs, ...xs.slice().reverse()], [...bands.map((b) => y(b[1])), ...bands.map((b) => y(b[0])).reverse()]) + "Z",
      }),
      s("line", { class: "dots", x1: left, x2: width - right, y1: y(r[0]), y2: y(r[0]) }),
      s("text", { x: width - right, y: y(r[0]) + 15, "text-anchor": "end" }, `all ${thousands(count)}: ${percent(r[0])}`),
      s("path", { class: "p-line", d: path(xs, p.map(y)) }),
      s("path", { class: "r-line", d: path(xs, r.map(y)) }),
      s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
      [0, 0.25, 0.5, 0.75].map((rate) =>
        s("text", { x: x(rate), y: height - bottom + 18, "text-anchor": rate ? "middle" : "start" }, percent(rate)),
      ),
      s("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "sent to a person"),
      s("line", { class: "cut", x1: x(cut), x2: x(cut), y1: top - 8, y2: height - bottom }),
      s("circle", { class: "r-fill", cx: x(cut), cy: y(now), r: 4 }),
      read(4 + down, "r-text", "r-line", `${percent(now, 1)} by robustness`),
      read(22 + down, "p-text", "p-line", `${percent(accuracy(byProbability, Math.min(k, count - 1)), 1)} by probability`),
    );
  }

  let spread = null; // how many predictions are how robust

  function countRobustness() {
    const finite = Float64Array.from(found.robustness).filter(Number.isFinite).sort();
    const at = (part) => (finite.length ? finite[Math.floor(part * (finite.length - 1))] || finite[finite.length - 1] || 1 : 1);
    const most = at(0.985),
      bins = Math.max(8, Math.min(26, Math.ceil(Math.sqrt(count))));
    const good = new Float64Array(bins),
      bad = new Float64Array(bins);
    let wrong = 0;
    for (let row = 0; row < count; row++) {
      const part = Math.min(1, found.robustness[row] / most),
        bin = Math.min(bins - 1, Math.floor(part * bins));
      if (known && known[row] >= 0 && !isRight(row)) {
        bad[bin]++;
        wrong++;
      } else good[bin]++;
    }
    meterEnd = at(0.97);
    spread = { most, bins, good, bad, wrong };
  }

  function drawHistogram() {
    const svg = $("histogram"),
      width = svg.clientWidth || 560,
      height = 250,
      left = 36,
      right = 8,
      top = 22,
      bottom = 40;
    const { most, bins, good, bad, wrong } = spread;
    const up = Math.max(...good, 1),
      down = Math.max(...bad, known ? 1 : 0),
      unit = (height - top - bottom) / (up + down);
    const zero = top + up * unit,
      x = (r) => left + (Math.min(r, most) / most) * (width - left - right),
      step = (width - left - right) / bins;
    const cut = threshold(),
      marks = [];
    for (let i = 0; i < bins; i++) {
      const from = left + i * step;
      if (good[i])
        marks.push(
          s("rect", { class: "bar", x: from + 0.5, y: zero - good[i] * unit, width: step - 1, height: good[i] * unit }),
          s("line", {
            class: "bar-top",
            x1: from + 0.5,
            x2: from + step - 0.5,
            y1: zero - good[i] * unit,
            y2: zero - good[i] * unit,
          }),
        );
      if (bad[i])
        marks.push(
          s("rect", {
            fill: "url(#hatch)",
            class: "w-line",
            "stroke-width": 0.5,
            x: from + 0.5,
            y: zero,
            width: step - 1,
            height: bad[i] * unit,
          }),
        );
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute(
      "aria-label",
      `${count - wrong} predictions ${known ? `are right and ${wrong} wrong` : ""}; ${sent()} are at most as robust as the cut, ${size(cut)}.`,
    );
    replace(
      svg,
      s(
        "defs",
        null,
        s(
          "pattern",
          { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          s("line", { class: "w-line", x1: 1.2, x2: 1.2, y1: 0, y2: 5, "stroke-width": 2.4 }),
        ),
      ),
      cut > 0 ? s("rect", { class: "sent", x: left, y: top, width: x(cut) - left, height: height - top - bottom }) : null,
      marks,
      s("line", { class: "axis", x1: left, x2: width - right, y1: zero, y2: zero }),
      ticks(0, Math.max(up, down), 3)
        .filter((n) => n > 0)
        .map((n) => [
          n <= up ? s("text", { x: left - 6, y: zero - n * unit + 4, "text-anchor": "end" }, thousands(n)) : null,
          n <= down ? s("text", { x: left - 6, y: zero + n * unit + 4, "text-anchor": "end" }, thousands(n)) : null,
        ])
        .flat(),
      ticks(0, most, 6).map((r) =>
        s(
          "text",
          { x: x(r), y: height - bottom + 18, "text-anchor": r ? "middle" : "start" },
          size(r)
            .replace(/\.0+ %$/, " %")
            .replace(/^0$/, "0"),
        ),
      ),
      s("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "robustness (the last bar: and above)"),
      known
        ? s("text", { class: "strong", x: width - right, y: top + 4, "text-anchor": "end" }, `${thousands(count - wrong)} right`)
        : null,
      known && wrong
        ? s(
            "text",
            { class: "w-text", x: width - right, y: Math.max(zero + 18, height - bottom - 8), "text-anchor": "end" },
            `${thousands(wrong)} wrong`,
          )
        : null,
      cut > 0 && cut < Infinity
        ? [
            s("line", { class: "cut", x1: x(cut), x2: x(cut), y1: top - 4, y2: height - bottom }),
            s(
              "text",
              { class: "strong", x: x(cut), y: top - 8, "text-anchor": x(cut) > width - 120 ? "end" : "start" },
              `your cut: ${size(cut)}`,
            ),
          ]
        : null,
    );
  }

  // ── The list ──────────────────────────────────────────────────────────────────────────────────

  const several = classes.length > 2;
  const COLUMNS = [
    ["number", "Row", "56px", (row) => numbers[row]],
    ["says", "Says", "minmax(56px, 1fr)", (row) => found.prediction[row]],
    known && ["truth", "Truth", "minmax(64px, 1.1fr)", (row) => (known[row] < 0 ? 2 : isRight(row) ? 1 : 0)],
    ["probability", "Prob.", "52px", (row) => found.probability[row], "right-cell"],
    ["meter", "Robustness", "78px", (row) => found.robustness[row]],
    ["robustness", "", "74px", null, "right-cell"],
    ["icon", "", "18px", null],
    several && ["flips", "Flips to", "minmax(56px, 1fr)", (row) => found.tipping[row]],
    model && ["hangs", "Hangs on", "minmax(90px, 2.1fr)", null],
  ].filter(Boolean);
  let view = new Uint32Array(0),
    active = 0,
    sortBy = "number",
    upward = true,
    open = null,
    meterEnd = 1;
  const hangs = new Map(); // what rows hang on, by neighbourhood

  const rowHeight = () => (matchMedia("(max-width: 640px)").matches ? 58 : 37);

  function showHead() {
    const cells = COLUMNS.map(([key, title, , score, style]) => {
      const sorted = key === sortBy ? (upward ? "ascending" : "descending") : "none";
      const cell = h("span", { role: "columnheader", class: style || "", "aria-sort": score ? sorted : null });
      if (score)
        cell.append(
          h(
            "button",
            { type: "button", tabindex: "0", onclick: () => sortList(key) },
            `${title}${key === sortBy ? (upward ? " ↑" : " ↓") : ""}`,
          ),
        );
      else if (title) cell.append(h("b", { class: "small" }, title));
      else cell.append(h("span", { class: "hidden" }, key === "icon" ? "Goes to" : "Size"));
      return cell;
    });
    replace($("head"), cells);
    document.documentElement.style.setProperty("--columns", COLUMNS.map((column) => column[2]).join(" "));
  }

  function sortList(key) {
    upward = key === sortBy ? !upward : true;
    sortBy = key;
    showHead();
    filterList();
  }

  /** Tell for each row whether some value holds the text. */
  function search(text) {
    const hits = new Uint8Array(count);
    columns.forEach((column, i) => {
      const feature = features[i],
        titled = feature.name.toLowerCase();
      const holds = (cell) => {
        const t = valueText(i, cell).toLowerCase();
        return t.includes(text) || (`${titled}: ${t}`.includes(text) && text.includes(":"));
      };
      const byCode = feature.numeric ? null : new Map();
      for (let row = 0; row < count; row++) {
        if (hits[row]) continue;
        const cell = column[row];
        if (!byCode) {
          hits[row] = holds(cell);
          continue;
        }
        if (!byCode.has(cell)) byCode.set(cell, holds(cell));
        hits[row] = byCode.get(cell);
      }
    });
    for (let row = 0; row < count; row++) if (String(numbers[row]) === text) hits[row] = 1;
    return hits;
  }

  /** Show the rows that were asked for, from the top; or `stay`, or go to the row that is open. */
  function filterList(where = "top") {
    const text = $("search").value.trim().toLowerCase(),
      hits = text ? search(text) : null;
    const only = $("only").value,
      wrong = $("wrong").getAttribute("aria-pressed") === "true",
      leaving = $("person").getAttribute("aria-pressed") === "true";
    const kept = [];
    for (let row = 0; row < count; row++) {
      if (hits && !hits[row]) continue;
      if (only !== "" && found.prediction[row] !== Number(only)) continue;
      if (wrong && (known[row] < 0 || isRight(row))) continue;
      if (leaving && !goesToPerson(row)) continue;
      kept.push(row);
    }
    const score = COLUMNS.find((column) => column[0] === sortBy)[3],
      sign = upward ? 1 : -1;
    if (sortBy !== "number" || !upward) kept.sort((a, b) => sign * (score(a) === score(b) ? 0 : score(a) - score(b)) || a - b);
    view = Uint32Array.from(kept);
    if (where === "stay") active = Math.max(0, Math.min(active, view.length - 1));
    else active = where === "open" ? Math.max(0, view.indexOf(open)) : 0;
    $("grid").setAttribute("aria-rowcount", view.length + 1);
    $("rows").style.height = `${view.length * rowHeight()}px`;
    if (where !== "stay") $("grid").scrollTop = Math.max(0, (active - 3) * rowHeight());
    showRows();
  }

  let shownFrom = -1,
    shownTo = -1;
  function showRows(force = true) {
    const grid = $("grid"),
      height = rowHeight(),
      first = Math.max(0, Math.floor(grid.scrollTop / height) - 5);
    const last = Math.min(view.length, Math.ceil((grid.scrollTop + grid.clientHeight) / height) + 5);
    const a = Math.min(view.length, Math.floor(grid.scrollTop / height) + 1),
      b = Math.min(view.length, Math.floor((grid.scrollTop + grid.clientHeight - 40) / height));
    replace(
      $("count"),
      view.length ? `${thousands(a)}–${thousands(Math.max(a, b))} of ${thousands(view.length)}` : "Nothing is like that.",
    );
    if (!force && first === shownFrom && last === shownTo) return;
    const rows = $("rows"),
      make = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, k) => makeLine(from + k, height));
    if (force || first >= shownTo || last <= shownFrom) replace(rows, make(first, last));
    else {
      // Lines that stay in view are kept.
      for (const line of [...rows.children]) {
        const i = Number(line.id.slice(5));
        if (i < first || i >= last) line.remove();
      }
      rows.prepend(...make(first, shownFrom));
      rows.append(...make(shownTo, last));
    }
    [shownFrom, shownTo] = [first, last];
    pointOut();
    later(fillHangs);
  }

  function makeLine(i, height) {
    const row = view[i],
      leaves = goesToPerson(row),
      r = found.robustness[row];
    const cells = {
      number: () => thousands(numbers[row]),
      says: () => name(labels[found.prediction[row]]),
      truth: () =>
        known[row] < 0
          ? "–"
          : isRight(row)
            ? ["✓ ", name(labels[known[row]])]
            : h("span", { class: "bad" }, "✕ ", name(labels[known[row]])),
      probability: () => h("span", { class: "probable" }, probability(found.probability[row])),
      meter: () => null,
      robustness: () => h(leaves ? "b" : "span", { class: "robust" }, size(r)),
      icon: () => (leaves ? [person(), h("span", { class: "hidden" }, "to a person")] : ""),
      flips: () => (found.tipping[row] < 0 ? "–" : name(labels[found.tipping[row]])),
      hangs: () => hangs.get(row) || "",
    };
    const line = h(
      "div",
      {
        role: "row",
        class: "line",
        id: `line-${i}`,
        "aria-rowindex": i + 2,
        "aria-selected": row === open ? "true" : "false",
        onclick: () => {
          active = i;
          openRow(row, true);
        },
      },
      COLUMNS.map(([key, , , , style]) => {
        const cell = h("span", { role: "gridcell", class: `${key} ${style || ""}` });
        if (key === "meter") {
          const bar = h("i"),
            cut = h("u"),
            end = Math.min(1, r / meterEnd);
          bar.style.width = `${100 * end}%`;
          cut.style.left = `${100 * Math.min(1, threshold() / meterEnd)}%`;
          cell.append(bar, sent() && threshold() <= meterEnd ? cut : "");
        } else cell.append(...[cells[key]()].flat());
        return cell;
      }),
    );
    line.style.top = `${i * height}px`;
    return line;
  }

  function pointOut() {
    for (const line of $("rows").children) line.classList.toggle("active", line.id === `line-${active}`);
    if (view.length && $(`line-${active}`)) $("grid").setAttribute("aria-activedescendant", `line-${active}`);
    else $("grid").removeAttribute("aria-activedescendant");
  }

  function move(to) {
    if (!view.length) return;
    active = Math.max(0, Math.min(view.length - 1, to));
    const grid = $("grid"),
      height = rowHeight(),
      head = 34,
      top = active * height;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + height + head > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + height + head - grid.clientHeight;
    showRows(false);
    pointOut();
  }

  let waiting = 0;
  const later = (work) => {
    clearTimeout(waiting);
    waiting = setTimeout(work, 90);
  };

  /** What visible rows hang on, found while nobody scrolls. */
  function fillHangs() {
    if (!model) return;
    const start = performance.now();
    for (const line of $("rows").children) {
      const i = Number(line.id.slice(5)),
        row = view[i],
        cell = line.querySelector(".hangs");
      if (!cell || cell.textContent) continue;
      if (!hangs.has(row)) {
        if (performance.now() - start > 24) {
          later(fillHangs);
          return;
        }
        hangs.set(row, sayHangs(cellsOf(row)));
      }
      replace(cell, hangs.get(row));
    }
  }

  function sayHangs(cells) {
    try {
      const judged = model.judge(cells, hoodName),
        i = findFirst(judged, cells);
      return i < 0 ? "no single feature" : h("span", { title: "" }, name(nameOf(i)), ": ", name(valueText(i, cells[i])));
    } catch (error) {
      if (error instanceof method.Refusal) return "–";
      throw error;
    }
  }

  /** The feature whose local models flip the prediction first. */
  function findFirst(judged, cells) {
    const alone = features.map((_, i) =>
      isMissingAt(model, cells, i) ? Infinity : model.alone(judged, hoodName, { feature: i }),
    );
    return model.first(alone, hoodName);
  }

  // ── One prediction ────────────────────────────────────────────────────────────────────────────

  let cells = [],
    original = [],
    before = null,
    judged = null,
    explained = null,
    order = [],
    refused = "";
  const edited = () => features.map((_, i) => i).filter((i) => !Object.is(cells[i], original[i]));

  function openRow(row, byUser = false) {
    open = row;
    original = row === null ? features.map((_, i) => model.missing(i)) : cellsOf(row);
    cells = original.slice();
    order = [];
    judge();
    before = judged;
    buildDetail();
    showDetail();
    if (byUser) openOver();
    for (const line of $("rows").children)
      line.setAttribute("aria-selected", view[Number(line.id.slice(5))] === row ? "true" : "false");
    pointOut();
    saveState();
  }

  const isOver = () => matchMedia("(max-width: 1000px)").matches;
  function openOver() {
    if (!isOver()) return;
    $("work").classList.add("open");
    document.body.classList.add("over");
    $("detail").setAttribute("role", "dialog");
    $("detail").setAttribute("aria-modal", "true");
    $("detail").focus();
  }
  function closeOver() {
    $("work").classList.remove("open");
    document.body.classList.remove("over");
    $("detail").removeAttribute("role");
    $("detail").removeAttribute("aria-modal");
    if (count) $("grid").focus();
  }

  function judge() {
    refused = "";
    if (!model) return;
    try {
      judged = model.judge(cells, hoodName);
      explained = model.explain(cells, judged, hoodName);
    } catch (error) {
      if (!(error instanceof method.Refusal)) throw error;
      refused = error.message;
    }
  }

  function edit(i, cell) {
    cells = replaceAt(cells, i, cell);
    judge();
    showDetail();
    const r = judged.robustness;
    $("live").textContent =
      refused || `${labels[judged.prediction]}, probability ${probability(judged.probability)}, robustness ${size(r)}.`;
    saveState();
  }

  /** The parts of the detail that stay while values change. */
  function buildDetail() {
    const detail = $("detail");
    const close = h("button", { type: "button", class: "close", "aria-label": "Close", onclick: closeOver }, "✕");
    if (!model) {
      replace(
        detail,
        h("div", { class: "between" }, h("p", { class: "small soft", id: "which" }), h("p", { id: "in-truth" }), close),
        h("h3", { id: "sentence" }),
        h(
          "table",
          { class: "features" },
          h("thead", null, h("tr", null, h("th", { scope: "col" }, "Class"), h("th", { scope: "col" }, "Probability"))),
          h("tbody", { id: "posterior" }),
        ),
        h(
          "table",
          { class: "features" },
          h("thead", null, h("tr", null, h("th", { scope: "col" }, "Feature"), h("th", { scope: "col" }, "Value"))),
          h("tbody", { id: "plain" }),
        ),
      );
      return;
    }
    if (!order.length) {
      const key = (i) => (explained ? explained[i].alone : 0);
      order = features
        .map((_, i) => i)
        .sort(
          (a, b) =>
            (key(a) === key(b) ? 0 : key(a) - key(b)) ||
            Math.abs(explained?.[b].support || 0) - Math.abs(explained?.[a].support || 0) ||
            a - b,
        );
    }
    replace(
      detail,
      h(
        "div",
        { class: "between" },
        h("p", { class: "small soft", id: "which" }),
        h("p", { id: "in-truth", class: "small" }),
        close,
      ),
      h("h3", { id: "sentence" }),
      h("p", { class: "before", id: "before", hidden: true }),
      h("p", { class: "soft", id: "why" }),
      h(
        "table",
        { class: "features" },
        h("caption", { class: "hidden" }, "Features: change a value and see what the prediction becomes"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col", class: "name" }, "Change a value"),
            h("th", { scope: "col", class: "value" }, h("span", { class: "hidden" }, "Value")),
            h("th", { scope: "col", id: "sides" }),
            h("th", { scope: "col", class: "last" }, "flips alone at"),
          ),
        ),
        h(
          "tbody",
          { id: "features" },
          h(
            "tr",
            { id: "begin" },
            h("th", { scope: "row" }, "To begin with"),
            h("td", { class: "value soft" }),
            h("td", { class: "bar" }),
            h("td", null),
          ),
          order.map(featureLine),
        ),
      ),
      h(
        "div",
        { class: "foot" },
        h("section", null, h("h2", { id: "margin-title" }), s("svg", { class: "chart margin", id: "margin", role: "img" })),
        h("section", null, h("h2", { id: "changes-title" }), h("ul", { class: "changes", id: "changes" })),
      ),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "primary", onclick: copyText }, "Copy as text"),
        h("button", { type: "button", onclick: copyLink }, "Copy link"),
        h(
          "button",
          {
            type: "button",
            id: "reset",
            onclick: () => {
              cells = original.slice();
              judge();
              buildDetail();
              showDetail();
              saveState();
              $("detail").focus();
            },
          },
          "Reset",
        ),
      ),
      h("details", null, h("summary", null, "For experts"), h("p", { id: "experts" })),
    );
  }

  function featureLine(i) {
    const label = `feature-${i}`;
    return h(
      "tr",
      { id: `line-of-${i}` },
      h("th", { scope: "row" }, h("label", { for: label }, name(nameOf(i)))),
      h("td", { class: "value" }, control(i, label)),
      h("td", { class: "bar" }),
      h("td", null),
    );
  }

  /** A list of categories, filled when it is looked at if there are many; a field for numbers. */
  function control(i, id) {
    const feature = features[i];
    if (feature.numeric) {
      return h("input", {
        type: "text",
        inputmode: "decimal",
        id,
        placeholder: "missing",
        value: Number.isNaN(cells[i]) ? "" : String(cells[i]),
        autocomplete: "off",
        onchange: (event) => {
          const text = event.target.value.trim().replace(",", "."),
            number = text === "" ? NaN : Number(text);
          const fine = text === "" || Number.isFinite(number);
          event.target.setAttribute("aria-invalid", fine ? "false" : "true");
          if (fine) edit(i, number);
          else $("live").textContent = `${text} is no number.`;
        },
      });
    }
    const option = (code) =>
      h("option", { value: code, selected: code === cells[i] }, code === -1 ? "missing" : valueText(i, code));
    const every = () => [option(-1), ...feature.categories.map((_, code) => option(code))];
    const unknown = cells[i] === -2 ? [h("option", { value: -2, selected: true }, "never seen in training")] : [];
    const many = feature.categories.length > 200;
    const select = h(
      "select",
      { id, onchange: (event) => edit(i, Number(event.target.value)) },
      many ? [option(cells[i])] : [...unknown, ...every()],
    );
    if (many) {
      const fillIn = () => {
        if (select.options.length < 3) {
          const now = select.value;
          replace(select, every());
          select.value = now;
        }
      };
      for (const event of ["pointerdown", "focus", "mousedown"]) select.addEventListener(event, fillIn);
    }
    return select;
  }

  const quoted = (c) => ["“", name(labels[c]), "”"];
  const rivalOf = (one) => (one.tipping >= 0 ? one.tipping : (one.order[1] ?? -1));

  function sentence(one) {
    const start = [
      quoted(one.prediction),
      ", with probability ",
      h("span", { class: "probable" }, probability(one.probability)),
      ".",
    ].flat();
    if (one.robustness === Infinity) return [...start, " Nothing that may be wrong here flips it."];
    if (one.robustness === 0)
      return [...start, " It is a tie", rivalOf(one) >= 0 ? [" with ", quoted(rivalOf(one))] : "", ": anything flips it."].flat(
        3,
      );
    const [a, b, c] = when(one.robustness);
    return [...start, " It turns to ", quoted(one.tipping), ` ${a}`, h("span", { class: "robust" }, b), `${c}.`].flat();
  }

  function showDetail() {
    if (!model) {
      showPosterior();
      return;
    }
    const changed = edited();
    replace(
      $("which"),
      open === null ? "A row of your own" : `Row ${thousands(numbers[open])}${changed.length ? ", edited" : ""}`,
    );
    if (known && open !== null && known[open] >= 0) {
      const right = known[open] === judged.prediction;
      replace(
        $("in-truth"),
        "In truth ",
        h("span", { class: right ? "" : "bad" }, name(labels[known[open]]), right ? " ✓" : " ✕"),
      );
    }
    if (refused) {
      replace($("sentence"), refused);
      return;
    }
    replace($("sentence"), sentence(judged));
    showBefore(changed);
    showWhy();
    showFeatures(changed);
    drawMargin();
    $("reset").disabled = !changed.length;
    replace(
      $("experts"),
      `r(${hoodName}) = ${judged.robustness}; p(c | f) = ${Array.from(judged.proba, (p) => p.toPrecision(6)).join(", ")}; parts: ${[...model.hood(hoodName).parts].join(", ")}. Exact, by the lower value of 1_ĉ − 1_c over the model's circuit; see the source of this page.`,
    );
    const title =
      rivalOf(judged) >= 0
        ? several
          ? ["One change to make it another"]
          : ["One change to make it ", quoted(rivalOf(judged))].flat()
        : ["One change"];
    replace($("changes-title"), title);
    const now = cells;
    clearTimeout(searching);
    searching = setTimeout(() => {
      if (now === cells) showChanges();
    }, 30);
  }
  let searching = 0;

  function showBefore(changed) {
    $("before").hidden = !changed.length;
    if (!changed.length || !before) return;
    const more = judged.robustness > before.robustness,
      likelier = judged.probability > before.probability;
    const turn =
      judged.prediction !== before.prediction
        ? "Now it is another class."
        : `Now ${likelier ? "more" : "less"} probable, ${likelier === more ? "and" : "but"} ${more ? "more" : "less"} robust.`;
    replace(
      $("before"),
      changed.length > 1 ? "Before your changes: " : "Before your change: ",
      quoted(before.prediction),
      ", ",
      h("span", { class: "probable" }, probability(before.probability)),
      ", and ",
      h("span", { class: "robust" }, size(before.robustness)),
      ". ",
      turn,
    );
  }

  const firstAlone = () =>
    model.first(
      explained.map((one) => one.alone),
      hoodName,
    );

  /** What it hangs on, how common that is, and who decides. */
  function showWhy() {
    const first = firstAlone();
    const leaves = count && open !== null && sent() && judged.robustness <= threshold();
    const decides = !count ? "" : leaves ? " It goes to a person." : " The model decides.";
    if (first < 0) {
      replace($("why"), "No feature flips it alone.", decides);
      return;
    }
    const rival = rivalOf(judged);
    let common = "";
    try {
      const blank = features.map((_, i) => model.missing(i));
      const [having, none] = [model.predict(replaceAt(blank, first, cells[first])), model.predict(blank)];
      const shareIn = (c) => Math.exp(having.logs[c] - none.logs[c]);
      if (!features[first].numeric) {
        const [a, b] = [shareIn(judged.prediction), shareIn(rival)],
          few = Math.max(a, b) < 0.05;
        const told = (x) => (x < 0.001 ? "< 0.1 %" : percent(x, x < 0.1 ? 1 : 0));
        common = [
          ` ${few ? "Only " : ""}${told(a)} of the `,
          name(labels[judged.prediction]),
          ` and ${told(b)} of the `,
          name(labels[rival]),
          ` have it${few ? ", so the model knows little about it" : ""}.`,
        ];
      }
    } catch (error) {
      if (!(error instanceof method.Refusal)) throw error;
    }
    replace(
      $("why"),
      [
        "It hangs on ",
        h("b", null, name(nameOf(first)), ": ", name(valueText(first, cells[first]))),
        ".",
        common,
        decides,
      ].flat(),
    );
  }

  function showFeatures(changed) {
    const begin = model.begin(judged, hoodName),
      rival = rivalOf(judged);
    const supports = [begin.support, ...explained.map((one) => one.support ?? 0)].map((v) => (Number.isFinite(v) ? v : 0));
    const most = Math.max(...supports.map(Math.abs), 1e-9);
    replace(
      $("sides"),
      rival < 0
        ? ""
        : h(
            "span",
            { class: "small" },
            "◂ for ",
            name(short(labels[judged.prediction], 12)),
            " · for ",
            name(short(labels[rival], 12)),
            " ▸",
          ),
    );
    const write = (line, support, alone) => {
      const sized = alone === null || alone === undefined ? "–" : alone === Infinity ? "never" : size(alone);
      replace(
        line.children[2],
        support === null ? "–" : bar(support, most),
        h(
          "span",
          { class: "hidden" },
          support === null ? "" : `${support >= 0 ? "for" : "against"} the prediction, log-odds ${Math.abs(support).toFixed(2)}`,
        ),
      );
      if (line.children[3].textContent !== sized) line.children[3].textContent = sized;
    };
    const line = $("begin");
    line.children[1].textContent = `${percent(begin.share)} are ${labels[judged.prediction]}`;
    write(line, begin.support, begin.alone);
    const first = firstAlone();
    order.forEach((i) => {
      const own = $(`line-of-${i}`);
      own.classList.toggle("changed", changed.includes(i));
      own.classList.toggle("first", i === first);
      write(
        own,
        isMissingAt(model, cells, i) ? 0 : explained[i].support,
        isMissingAt(model, cells, i) ? null : explained[i].alone,
      );
    });
  }

  function bar(support, most) {
    const value = Number.isFinite(support) ? support : Math.sign(support) * most,
      width = (Math.abs(value) / most) * 48;
    return s(
      "svg",
      { class: "support", viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("line", { class: "axis", x1: 50, x2: 50, y1: 0, y2: 18, "vector-effect": "non-scaling-stroke" }),
      value > 0 ? s("rect", { class: "for", x: 50 - width, y: 5, width, height: 8 }) : null,
      value < 0 ? s("rect", { class: "against", x: 50, y: 5, width, height: 8, "vector-effect": "non-scaling-stroke" }) : null,
    );
  }

  /** Heights moved up until labels do not cover each other. */
  function apart(heights, step) {
    const order = heights.map((_, i) => i).sort((a, b) => heights[b] - heights[a]);
    const made = heights.slice();
    order.forEach((i, k) => {
      if (k) made[i] = Math.min(made[i], made[order[k - 1]] - step);
    });
    return made;
  }

  /** The lead over each rival against the size: it crosses zero at the robustness. */
  function drawMargin() {
    const svg = $("margin"),
      width = svg.clientWidth || 300,
      height = 190,
      left = 4,
      right = 8,
      top = 20,
      bottom = 38;
    replace($("margin-title"), ["How fast ", quoted(judged.prediction), " loses its lead"].flat());
    const hood = model.hood(hoodName),
      r = judged.robustness,
      rivals = judged.order.slice(1, 4);
    if (hood.whole || !rivals.length || judged.impossible || r === 0) {
      replace(svg, s("text", { x: 4, y: 30 }, r === 0 ? "It has none: a tie." : "No rival."));
      return;
    }
    const limit = hood.byRows || !Number.isFinite(hood.ball.end) ? Infinity : hood.ball.end,
      cut = count ? threshold() : 0;
    let end = Number.isFinite(r) ? 1.9 * r : Number.isFinite(limit) ? limit : 10;
    if (cut > 0 && cut < 4 * end) end = Math.max(end, 1.15 * cut);
    end = Math.min(end, limit === Infinity ? end : limit);
    const sizes = Array.from({ length: 61 }, (_, i) => (end * i) / 60),
      lines = model.curves(judged, hoodName, sizes, rivals);
    const low = Math.max(-2, Math.min(-0.15, ...lines[0], ...(lines[rivals.indexOf(judged.tipping)] || lines[0])));
    const x = (d) => left + (d / end) * (width - left - right),
      y = (m) => top + ((1 - Math.max(m, low)) / (1 - low)) * (height - top - bottom);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", `The lead is gone at ${size(r)}.`);
    const places = apart(
      lines.map((line) => Math.min(height - bottom - 4, y(line[60]) - 4)),
      13,
    );
    const tip = rivals.indexOf(judged.tipping),
      main = tip < 0 ? 0 : tip;
    replace(
      svg,
      s("line", { class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0) }),
      s("text", { x: left + 4, y: y(0) - 8 }, `“${short(labels[judged.prediction], 16)}”`),
      s("text", { x: left + 4, y: y(0) + 16 }, several ? "a rival" : `“${short(labels[rivals[0]], 16)}”`),
      lines
        .map((line, i) => [
          s("path", { class: i === main ? "r-line" : "r-line rival", d: path(sizes.map(x), line.map(y)) }),
          several
            ? s(
                "text",
                { x: width - right, y: places[i], "text-anchor": "end" },
                short(labels[rivals[i]], 14),
              )
            : null,
        ])
        .flat(),
      ticks(0, end, 4).map((d) =>
        s(
          "text",
          { x: x(d), y: height - bottom + 18, "text-anchor": d ? (x(d) > width - 20 ? "end" : "middle") : "start" },
          size(d).replace(/\.0+ %$/, " %"),
        ),
      ),
      s("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "how far the model is off"),
      cut > 0 && cut <= end
        ? [
            s("line", { class: "dots", x1: x(cut), x2: x(cut), y1: top - 4, y2: height - bottom }),
            s(
              "text",
              {
                x: x(cut) > width - 110 ? x(cut) - 4 : x(cut) + 4,
                y: top - 8,
                class: "strong",
                "text-anchor": x(cut) > width - 110 ? "end" : "start",
              },
              `your cut: ${size(cut)}`,
            ),
          ]
        : null,
      Number.isFinite(r)
        ? [
            s("circle", { class: "r-fill", cx: x(r), cy: y(0), r: 4.5 }),
            s("text", { class: "r-text", x: x(r) + 8, y: y(0) - 8 }, size(r)),
          ]
        : null,
    );
  }

  // What if

  /** Values to try for a feature: categories and bins, or numbers beside the thresholds. */
  const tried = new Map();
  function candidates(i) {
    if (!features[i].numeric) return features[i].categories.map((_, code) => code).slice(0, 64);
    if (!tried.has(i)) {
      const sorted = Float64Array.from(columns[i] || [])
          .filter((x) => !Number.isNaN(x))
          .sort(),
        some = new Set();
      for (let k = 0; k <= 24 && sorted.length; k++) some.add(sorted[Math.floor((k / 24) * (sorted.length - 1))]);
      tried.set(i, [...some]);
    }
    return tried.get(i);
  }

  /** For each feature the change that flips the prediction to the most robust one; else pairs. */
  function findChanges() {
    const changes = [],
      start = performance.now();
    const attempt = (steps) => {
      try {
        const next = steps.reduce((made, [i, cell]) => replaceAt(made, i, cell), cells);
        if (model.predict(next).prediction === judged.prediction) return null;
        const one = model.judge(next, hoodName);
        return { steps, prediction: one.prediction, probability: one.probability, robustness: one.robustness };
      } catch (error) {
        if (error instanceof method.Refusal) return null;
        throw error;
      }
    };
    for (const i of order) {
      let best = null;
      for (const cell of candidates(i)) {
        if (Object.is(cell, cells[i])) continue;
        const one = attempt([[i, cell]]);
        if (one && (!best || one.robustness > best.robustness)) best = one;
      }
      if (best) changes.push(best);
    }
    for (let a = 0; a < order.length && !changes.length && performance.now() - start < 400; a++) {
      for (let b = a + 1; b < order.length && changes.length < 5 && performance.now() - start < 400; b++) {
        let best = null;
        for (const one of candidates(order[a]))
          for (const two of candidates(order[b])) {
            if (Object.is(one, cells[order[a]]) || Object.is(two, cells[order[b]]) || performance.now() - start > 600) continue;
            const made = attempt([
              [order[a], one],
              [order[b], two],
            ]);
            if (made && (!best || made.robustness > best.robustness)) best = made;
          }
        if (best) changes.push(best);
      }
    }
    return changes.sort((a, b) => a.steps.length - b.steps.length || b.robustness - a.robustness);
  }

  function showChanges() {
    const changes = findChanges(),
      most = 4;
    const line = (change) =>
      h(
        "li",
        null,
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              for (const [i, cell] of change.steps) {
                cells = replaceAt(cells, i, cell);
                const input = $(`feature-${i}`);
                input.dispatchEvent(new Event("focus"));
                input.value = cell;
              }
              edit(change.steps[0][0], change.steps[0][1]);
              $("sentence").scrollIntoView({ block: "nearest" });
            },
          },
          change.steps
            .map(([i, cell], k) => [k ? ", " : "", name(nameOf(i)), " → ", h("b", null, name(valueText(i, cell)))])
            .flat(),
          h("br"),
          h(
            "small",
            null,
            name(labels[change.prediction]),
            " ",
            h("span", { class: "probable" }, probability(change.probability)),
            ", robust to ",
            h("span", { class: "robust" }, size(change.robustness)),
          ),
        ),
      );
    const pair = changes.length && changes[0].steps.length > 1;
    if (pair) replace($("changes-title"), "No one change flips it; two do");
    replace(
      $("changes"),
      changes.slice(0, most).map(line),
      changes.length > most ? h("li", { class: "soft small" }, `${changes.length - most} more`) : null,
      changes.length ? null : h("li", { class: "soft" }, "None found among one change and pairs of the first features."),
    );
  }

  function showPosterior() {
    const row = open,
      width = classes.length,
      p = proba.subarray(row * width, (row + 1) * width);
    replace($("which"), `Row ${thousands(numbers[row])}`);
    if (known && known[row] >= 0)
      replace(
        $("in-truth"),
        "In truth ",
        h("span", { class: isRight(row) ? "" : "bad" }, name(labels[known[row]]), isRight(row) ? " ✓" : " ✕"),
      );
    const one = {
      prediction: found.prediction[row],
      probability: found.probability[row],
      robustness: found.robustness[row],
      tipping: found.tipping[row],
      order: [],
    };
    replace($("sentence"), sentence(one));
    const ranked = Array.from(p.keys())
      .sort((a, b) => p[b] - p[a])
      .slice(0, 12);
    replace(
      $("posterior"),
      ranked.map((c) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, name(labels[c])),
          h("td", null, h("span", { class: "probable" }, p[c].toFixed(3))),
        ),
      ),
    );
    replace(
      $("plain"),
      features.map((_, i) =>
        h("tr", null, h("th", { scope: "row" }, name(nameOf(i))), h("td", null, name(valueText(i, columns[i][row])))),
      ),
    );
  }

  // ── Copies and links ──────────────────────────────────────────────────────────────────────────

  function copy(text, told) {
    const done = () => {
      $("live").textContent = told;
    };
    const fallback = () => {
      const area = h("textarea", { class: "hidden", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, fallback);
    else fallback();
  }
  function copyText() {
    const lines = [$("which").textContent, $("sentence").textContent, $("why").textContent, ""];
    for (const i of order)
      lines.push(`${nameOf(i)}: ${valueText(i, cells[i])}${edited().includes(i) ? ` (was ${valueText(i, original[i])})` : ""}`);
    copy(lines.join("\n"), "Copied.");
  }
  function copyLink() {
    saveState();
    copy(location.href, "The link is copied: it goes with the file.");
  }

  function saveState() {
    const state = new URLSearchParams();
    if (open !== null) state.set("row", numbers[open]);
    if (share !== 0.25) state.set("cut", +(100 * share).toFixed(2));
    if (hoodName !== data.hood) state.set("wrong", hoodName);
    for (const i of edited())
      state.set(`e${i}`, isMissingAt({ features }, cells, i) ? "" : features[i].numeric ? cells[i] : cells[i]);
    try {
      history.replaceState(null, "", `#${state}`);
    } catch {
      /* some browsers keep files from it */
    }
  }

  function readState() {
    const state = new URLSearchParams(location.hash.slice(1));
    const cut = Number(state.get("cut") ?? 25);
    if (cut >= 0 && cut <= 100) share = cut / 100;
    const wanted = state.get("wrong");
    if (wanted && [...$("hood").options].some((option) => option.value === wanted)) {
      $("hood").value = wanted;
    }
    return { row: state.has("row") ? numbers.indexOf(Number(state.get("row"))) : -1, state };
  }

  function restoreEdits(state) {
    if (!model) return;
    let some = false;
    features.forEach((feature, i) => {
      if (!state.has(`e${i}`)) return;
      const text = state.get(`e${i}`),
        number = text === "" ? model.missing(i) : Number(text);
      if (!feature.numeric && !(number >= -1 && number < feature.categories.length)) return;
      cells = replaceAt(cells, i, number);
      some = true;
    });
    if (!some) return;
    judge();
    buildDetail();
    showDetail();
    saveState();
  }

  // ── What may be wrong ─────────────────────────────────────────────────────────────────────────

  function listHoods() {
    const balls = Object.keys(BALL_WORDS);
    if (!model) return [["The probabilities themselves", balls.map((ball) => [`${ball}_posterior`, BALL_WORDS[ball]])]];
    const all = model.defaults.length === model.parts.length ? "" : "_all";
    const counts = (parts) => parts.some((part) => model.counted[part]);
    const less = model.defaults.map((part) => PART_WORDS[part] || part).join(" and ");
    return [
      ["Everything", balls.map((ball) => [`${ball}${all}`, `everything, ${BALL_WORDS[ball]}`])],
      counts(model.parts) && [
        "Everything, counted in records",
        balls.map((ball) => [`${ball}${all}_rows`, `everything, ${BALL_WORDS[ball]}, in records`]),
      ],
      all && [`Only ${less}`, balls.map((ball) => [ball, `only ${less}, ${BALL_WORDS[ball]}`])],
      all &&
        counts(model.defaults) && [
          `Only ${less}, counted in records`,
          balls.map((ball) => [`${ball}_rows`, `only ${less}, ${BALL_WORDS[ball]}, in records`]),
        ],
    ].filter(Boolean);
  }

  let work = 0;
  /** Judge all rows by another neighbourhood, a little at a time. */
  function changeHood(next, then) {
    const own = ++work;
    if (next === data.hood && model) {
      found.robustness = unpack(data.robustness);
      found.tipping = unpack(data.tipping);
      hoodName = next;
      then();
      return;
    }
    if (!model) {
      hoodName = next;
      judgePosteriors(readHood(next).ball);
      then();
      return;
    }
    const robustness = new Float64Array(count),
      tipping = new Int32Array(count);
    let row = 0;
    const step = () => {
      if (own !== work) return;
      const stop = performance.now() + 40;
      while (row < count && performance.now() < stop) {
        const one = model.judge(cellsOf(row), next);
        robustness[row] = one.robustness;
        tipping[row++] = one.tipping;
      }
      if (row < count) {
        $("note").hidden = false;
        $("note").textContent = `Computing ${thousands(row)} of ${thousands(count)} …`;
        setTimeout(step);
        return;
      }
      showNote();
      hoodName = next;
      Object.assign(found, { robustness, tipping });
      then();
    };
    step();
  }

  function showNote() {
    const notes = [];
    if (data.total > count) notes.push(`This page holds ${thousands(count)} rows drawn at random from ${thousands(data.total)}.`);
    if (data.closed) notes.push(`Values cannot be edited here, and only the probabilities are judged: ${data.closed}.`);
    $("note").hidden = !notes.length;
    $("note").textContent = notes.join(" ");
  }

  // ── Together ──────────────────────────────────────────────────────────────────────────────────

  function recount() {
    byRobustness = rankBy(found.robustness);
    byProbability = rankBy(found.probability);
    countRobustness();
    hangs.clear();
    showAll();
    filterList("stay");
    if (open !== null) refresh();
  }

  /** Judge the open row anew, with its edits. */
  function refresh() {
    if (model) {
      const now = cells;
      cells = original;
      judge();
      before = judged;
      cells = now;
      judge();
    }
    buildDetail();
    showDetail();
    saveState();
  }

  function showAll() {
    drawStrip();
    showCut();
  }

  /** All that changes with the slider. */
  function showCut() {
    showVerdict();
    $("sent").setAttribute("width", share * ($("strip").clientWidth || 800));
    drawCurve();
    drawHistogram();
    replace($("wrong"), h("span", { class: "bad" }, "✕"), " Wrong ", h("span", { class: "small" }, thousands(spread.wrong)));
    replace($("person"), person(), " To a person ", h("span", { class: "small" }, thousands(sent())));
  }

  function slide(next) {
    share = next;
    showCut();
    if ($("person").getAttribute("aria-pressed") === "true") filterList("stay");
    else showRows();
    if (model && judged && !refused) {
      showWhy();
      drawMargin();
    }
    saveState();
  }

  function listen() {
    $("slider").addEventListener("input", (event) => slide(Number(event.target.value) / 100));
    $("grid").addEventListener("scroll", () => showRows(false), { passive: true });
    $("search").addEventListener("input", () => filterList());
    $("only").addEventListener("change", () => filterList());
    for (const id of ["wrong", "person"]) {
      $(id).addEventListener("click", () => {
        $(id).setAttribute("aria-pressed", $(id).getAttribute("aria-pressed") === "true" ? "false" : "true");
        filterList();
      });
    }
    $("hood").addEventListener("change", (event) =>
      changeHood(event.target.value, () => {
        recount();
        $("live").textContent = "All robustness is counted anew.";
      }),
    );
    $("grid").addEventListener("keydown", (event) => {
      if (event.target !== $("grid")) return;
      const page = Math.max(1, Math.floor($("grid").clientHeight / rowHeight()) - 2);
      const steps = {
        ArrowDown: active + 1,
        ArrowUp: active - 1,
        PageDown: active + page,
        PageUp: active - page,
        Home: 0,
        End: view.length - 1,
      };
      if (event.key in steps) move(steps[event.key]);
      else if (event.key === "Enter" && view.length) {
        openRow(view[active], true);
        if (!isOver()) $("detail").focus();
      } else return;
      event.preventDefault();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && $("detail").contains(document.activeElement)) closeOver();
      if (event.key === "Tab" && $("work").classList.contains("open") && isOver()) keepInside(event);
    });
    $("scheme").addEventListener("click", () => {
      const root = document.documentElement,
        dark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.scheme = dark ? "light" : "dark";
      $("scheme").textContent = dark ? "☾" : "☀";
    });
    let resizing = 0;
    addEventListener("resize", () => {
      clearTimeout(resizing);
      resizing = setTimeout(() => {
        if (count) {
          showAll();
          filterList("stay");
        }
        if (model && judged && !refused) drawMargin();
        if (!isOver()) document.body.classList.remove("over");
      }, 80);
    });
  }

  function keepInside(event) {
    const inside = [...$("detail").querySelectorAll("button, select, input, summary")].filter(
      (node) => node.offsetParent !== null && !node.disabled,
    );
    const [first, last] = [inside[0], inside[inside.length - 1]];
    if (event.shiftKey && (document.activeElement === first || document.activeElement === $("detail"))) {
      last.focus();
      event.preventDefault();
    } else if (!event.shiftKey && document.activeElement === last) {
      first.focus();
      event.preventDefault();
    }
  }

  function start() {
    replace($("title"), shown(data.title));
    replace($("about"), count ? `${thousands(count)} predictions by ${data.kind}` : `by ${data.kind}`);
    replace($("made"), `Made with robustq ${data.version}`);
    replace(
      $("hood"),
      listHoods().map(([title, options]) =>
        h(
          "optgroup",
          { label: title },
          options.map(([value, text]) => h("option", { value, selected: value === data.hood }, text)),
        ),
      ),
    );
    replace(
      $("only"),
      h("option", { value: "" }, "Any prediction"),
      labels.map((label, c) => h("option", { value: c }, label)),
    );
    replace(
      $("histogram-note"),
      known ? "Number of predictions: right ones above the line, wrong ones below." : "Number of predictions.",
    );
    showNote();
    for (const id of ["curve-part", "wrong"]) $(id).hidden = !known;
    if (!count) {
      for (const id of ["rejection", "charts", "list"]) $(id).hidden = true;
      $("work").classList.add("one", "open");
      replace($("verdict"), "Make a row, and see how far its prediction can be trusted.");
      $("hood").addEventListener("change", (event) => {
        hoodName = event.target.value;
        openRow(null);
      });
      openRow(null);
      return;
    }
    const { row, state } = readState();
    if (!model) judgePosteriors(readHood(data.hood).ball);
    showHead();
    listen();
    const begin = () => {
      recount();
      openRow(row >= 0 ? row : byRobustness.order[Math.floor(sent() / 2)]);
      restoreEdits(state);
      filterList("open");
      if (row >= 0) openOver();
    };
    if ($("hood").value !== data.hood) changeHood($("hood").value, begin);
    else begin();
  }

  window.robustq = {
    assess(values, neighbourhood = "tv") {
      if (!model) throw new method.Refusal(`Values cannot be assessed here: ${data.closed}.`);
      return model.assess(values, neighbourhood);
    },
  };
  start();
})();
