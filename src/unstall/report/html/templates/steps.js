// The steps over time, stacked by phase, and the distribution of their times.

function decoded(packed) {
  const phases = Object.fromEntries(Object.entries(packed.phases).map(([name, values]) => [name, floats(values)]));
  const series = Object.fromEntries(["edges", "at", "low", "mean", "high"].map((name) => [name, floats(packed[name])]));
  return { ...packed, ...series, phases };
}

// The buckets between two steps, joined until there is about one a pixel; the smallest and the largest are kept.
function columns(steps, from, to, most) {
  const { edges } = steps;
  const count = edges.length - 1;
  let first = 0;
  while (first < count - 1 && edges[first + 1] <= from) first++;
  let end = first + 1;
  while (end < count && edges[end] < to) end++;
  first = Math.max(first - 1, 0);
  end = Math.min(end + 1, count);
  const joined = Math.max(1, Math.ceil((end - first) / most));
  const made = { x: [], at: [], low: [], mean: [], high: [], steps: [], phases: {} };
  const names = Object.keys(steps.phases);
  names.forEach((name) => (made.phases[name] = []));
  for (let i = first; i < end; i += joined) {
    const last = Math.min(i + joined, end);
    const weight = edges[last] - edges[i];
    const mean = (values) => {
      let sum = 0;
      for (let j = i; j < last; j++) sum += values[j] * (edges[j + 1] - edges[j]);
      return sum / weight;
    };
    made.x.push(edges[i]);
    made.at.push(steps.at[i]);
    made.steps.push(weight);
    made.low.push(Math.min(...steps.low.subarray(i, last)));
    made.high.push(Math.max(...steps.high.subarray(i, last)));
    made.mean.push(mean(steps.mean));
    names.forEach((name) => made.phases[name].push(mean(steps.phases[name])));
  }
  made.end = edges[end];
  return made;
}

// Rows for uPlot: x, one total for each phase from the top of the stack downwards, fastest and slowest.
// Each is filled down to zero and the next is drawn over it. The last point closes the last column.
function rows(view, shown) {
  const close = (values) => [...values, values[values.length - 1]];
  const totals = [];
  let below = view.x.map(() => 0);
  for (const name of shown) {
    below = view.phases[name].map((value, i) => value + below[i]);
    totals.unshift(close(below));
  }
  return [[...view.x, view.end], ...totals, close(view.low), close(view.high)];
}

function stepsChart() {
  const steps = decoded(data.steps);
  const host = byId("steps-chart");
  const names = Object.keys(steps.phases);
  const hidden = new Set();
  const whole = [0, steps.edges[steps.edges.length - 1]];
  let view = null;
  let full = false;
  let chart = null;
  let drawn = { min: whole[0], max: whole[1] };

  const shown = () => names.filter((name) => !hidden.has(name));
  const width = () => Math.max(Math.floor(host.clientWidth) - 70, 100);
  const look = (from, to) => (view = columns(steps, from, to, width()));
  const single = () => steps.edges.length - 1 === whole[1];

  function top() {
    const highest = Math.max(...view.high);
    return 1.06 * (full ? highest : Math.min(highest, 1.3 * steps.usual));
  }

  function note() {
    const ceiling = top();
    const taller = view.high.filter((value) => value > ceiling).length;
    const size = Math.max(...view.steps);
    const told = [];
    if (size > 1) told.push(`A column is up to ${integer(size)} steps: their mean by phase; the lines are the fastest and the slowest of them.`);
    if (taller) told.push(`${integer(taller)} ${taller === 1 ? "column is" : "columns are"} taller than the chart, up to ${seconds(Math.max(...view.high))}.`);
    if (steps.unmeasured.length) told.push("Pale: warm-up, or disturbed by unstall’s own sampling; left out of every figure.");
    if (steps.gaps.length) told.push("Ticks at the bottom: a new epoch, or validation.");
    byId("steps-note").textContent = told.join(" ");
  }

  function tip(_, index) {
    const i = Math.min(index, view.x.length - 1);
    const first = steps.first + view.x[i];
    const count = view.steps[i];
    const lines = [[count > 1 ? `steps ${integer(first)}–${integer(first + count - 1)}` : `step ${integer(first)}`]];
    lines.push([`${seconds(view.mean[i])}${count > 1 ? `, ${seconds(view.low[i])} to ${seconds(view.high[i])}` : ""}, at ${seconds(view.at[i])}`]);
    const parts = shown().map((name) => [name, view.phases[name][i]]);
    parts.sort((a, b) => b[1] - a[1]);
    for (const [name, value] of parts) {
      if (value > 0.001 * view.mean[i]) lines.push([`${name} ${seconds(value)} · ${percent(value / view.mean[i])}`, colour(`--p-${name}`)]);
    }
    return lines;
  }

  function marks(u) {
    const { ctx, bbox } = u;
    const at = (x) => Math.min(Math.max(u.valToPos(x, "x", true), bbox.left), bbox.left + bbox.width);
    ctx.save();
    ctx.fillStyle = colour("--washed");
    for (const [from, to] of steps.unmeasured) {
      const left = at(from);
      ctx.fillRect(left, bbox.top, at(to) - left, bbox.height);
    }
    ctx.fillStyle = colour("--ink");
    const { min, max } = u.scales.x;
    for (const x of steps.gaps) {
      if (x >= min && x <= max) ctx.fillRect(at(x + 0.5) - 1, bbox.top + bbox.height - 8, 2, 8);
    }
    ctx.restore();
  }

  function draw(from, to) {
    if (chart) chart.destroy();
    look(from, to);
    drawn = { min: from, max: to };
    const path = stepped({ align: 1 });
    const area = (name) => ({ paths: path, fill: colour(`--p-${name}`), width: 0, points: { show: false } });
    const line = { paths: path, stroke: colour("--ink"), width: 0.7, points: { show: false }, show: !single() };
    chart = plot(
      host,
      {
        height: 300,
        scales: { x: { time: false }, y: { range: () => [0, top()] } },
        axes: [axis((x) => integer(steps.first + x), { incrs: WHOLE }), axis(seconds, { size: 64 })],
        series: [{}, ...shown().reverse().map(area), { ...line, alpha: 0.5 }, { ...line, alpha: 0.8 }],
        hooks: { draw: [marks], setScale: [(u, key) => key === "x" && zoomed(u)] },
      },
      rows(view, shown()),
      tip,
    );
    chart.u.fullExtent = whole;
    chart.u.over.addEventListener("dblclick", () => zoomOut(chart.u));
    chart.u.setScale("x", { min: from, max: to });
    note();
  }

  // Zoomed: the same pixels for fewer steps, so more of what was kept can be shown. Not at once: the plot is in the
  // middle of setting its scales when it tells.
  function zoomed(u) {
    const { min, max } = u.scales.x;
    if (drawn.min === min && drawn.max === max) return;
    drawn = { min, max };
    requestAnimationFrame(() => {
      if (chart && chart.u === u && drawn.min === min && drawn.max === max) refine(u);
    });
  }

  function refine(u) {
    look(drawn.min, drawn.max);
    u.batch(() => {
      u.setData(rows(view, shown()), false);
      u.setScale("x", drawn); // the height of what is shown now
    });
    u.setCursor({ left: u.cursor.left, top: u.cursor.top }); // what it points at is another step now
    note();
  }

  const redraw = () => {
    const [from, to] = chart ? [chart.u.scales.x.min, chart.u.scales.x.max] : whole;
    draw(from, to);
  };
  redraw();
  redraws.push(redraw);
  byId("outliers").addEventListener("change", (event) => {
    full = event.target.checked;
    redraw();
  });
  const zooms = { in: () => zoomBy(chart.u, 0.5), out: () => zoomBy(chart.u, 2), all: () => zoomOut(chart.u) };
  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => zooms[button.dataset.zoom]()));
  document.querySelectorAll("[data-phase]").forEach((button) =>
    button.addEventListener("click", () => {
      const name = button.dataset.phase;
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      redraw();
    }),
  );
}

const LABELS = 50; // room above the bars for the names of the marks

function distributionChart() {
  const { edges, counts, marks } = data.distribution;
  const host = byId("distribution-chart");
  const total = counts.reduce((sum, count) => sum + count, 0);
  const centres = counts.map((_, i) => (edges[i] + edges[i + 1]) / 2);
  let chart = null;

  function tip(_, i) {
    const beyond = i === counts.length - 1 && data.distribution.beyond ? " and more" : "";
    return [[`${seconds(edges[i])} to ${seconds(edges[i + 1])}${beyond}`], [`${integer(counts[i])} steps · ${percent(counts[i] / total)}`]];
  }

  // Labels of marks that lie close together stand below each other.
  function lines(u) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.fillStyle = ctx.strokeStyle = colour("--ink");
    ctx.lineWidth = ratio;
    Object.entries(marks).sort((a, b) => a[1] - b[1]).forEach(([name, value], i) => {
      const x = Math.round(u.valToPos(value, "x", true));
      const y = bbox.top - (LABELS - 12 - 15 * i) * ratio;
      const label = ` ${name} ${seconds(value)} `;
      ctx.beginPath();
      ctx.moveTo(x, y - 11 * ratio);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const wide = ctx.measureText(label).width;
      ctx.fillText(label, x + wide > bbox.left + bbox.width ? x - wide : x, y);
    });
    ctx.restore();
  }

  function draw() {
    if (chart) chart.destroy();
    const half = (edges[1] - edges[0]) / 2;
    chart = plot(
      host,
      {
        height: 250,
        padding: [LABELS, 14, 0, 0],
        scales: { x: { time: false, range: (_, min, max) => (max > min ? [Math.max(min, edges[0]), Math.min(max, edges[edges.length - 1])] : [min - half, max + half]) }, y: { range: (_, __, max) => [0, 1.06 * max] } },
        axes: [axis(seconds, { space: 80 }), axis(integer, { size: 56, incrs: WHOLE })],
        series: [{}, { paths: bars({ size: [1, Infinity], gap: 1 }), fill: colour("--s-0"), width: 0, points: { show: false } }],
        hooks: { draw: [lines] },
      },
      [centres, counts],
      tip,
    );
    chart.u.fullExtent = [edges[0], edges[edges.length - 1]];
    zoomOut(chart.u);
  }
  draw();
  redraws.push(draw);
}
