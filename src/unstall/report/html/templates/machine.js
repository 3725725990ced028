// Cores, memory, disk and devices over the run, a GPU's steps: one small chart each, zoomed and pointed at together.

const UNITS = {
  seconds,
  cores: (x) => digits(Math.round(100 * x) / 100),
  bytes,
  "bytes/s": (x) => `${bytes(x)}/s`,
  share: percent,
};

function panelCharts(place) {
  const { panels, t } = data[place];
  panels.forEach((panel, i) => {
    const values = panel.series.map((series) => Array.from(floats(series.values)));
    panelChart(place, byId(`${place}-${i}`), panel, Array.from(floats(t)), values);
  });
}

function panelChart(place, host, panel, t, values) {
  const bySteps = panel.x === "step";
  const across = bySteps ? (x) => `step ${integer(x)}` : seconds;
  const format = UNITS[panel.unit];
  const swatch = (i) => colour(`--${panel.series[i].colour}`);
  let chart = null;

  function tip(u, index) {
    const lines = panel.series.map((series, i) => [`${series.name} ${format(values[i][index])}`, swatch(i)]);
    return [[across(t[index])], ...lines];
  }

  // Stacked ones are totals from the top of the stack downwards, each drawn over the one before.
  function drawn() {
    if (!panel.stacked) return values.map((value, i) => [value, i]);
    const totals = [];
    let below = t.map(() => 0);
    values.forEach((value, i) => {
      below = value.map((x, j) => x + below[j]);
      totals.unshift([below, i]);
    });
    return totals;
  }

  function ceiling(u) {
    if (!panel.ceiling) return;
    const { ctx, bbox } = u;
    const y = Math.round(u.valToPos(panel.ceiling, "y", true));
    ctx.save();
    ctx.strokeStyle = colour("--ink");
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  function draw() {
    const zoom = chart && { min: chart.u.scales.x.min, max: chart.u.scales.x.max };
    if (chart) chart.destroy();
    const shown = drawn();
    const series = shown.map(([, i]) => ({
      stroke: swatch(i),
      fill: panel.stacked ? swatch(i) : undefined,
      width: panel.stacked ? 0 : 1.5,
      points: { show: false },
      paths: bySteps ? stepped({ align: 1 }) : undefined,
    }));
    const highest = Math.max(...shown.map(([row]) => row.reduce((most, x) => Math.max(most, x), 0)));
    const top = panel.unit === "share" ? 1 : 1.08 * Math.max(highest, panel.ceiling || 0);
    chart = plot(
      host,
      {
        height: 170,
        scales: { x: { time: false }, y: { range: [0, top] } },
        axes: [bySteps ? axis(integer, { incrs: WHOLE }) : axis(seconds, { space: 70 }), axis(format, { size: 66 })],
        series: [{}, ...series],
        cursor: { sync: { key: place, scales: ["x", null] } },
        hooks: { draw: [ceiling] },
      },
      [t, ...shown.map(([row]) => row)],
      tip,
    );
    if (zoom) chart.u.setScale("x", zoom);
  }
  draw();
  redraws.push(draw);
}
