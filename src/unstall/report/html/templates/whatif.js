// Sliders over predictions made beforehand. The table is in row-major order, the last slider turning fastest.

function whatIf() {
  const table = data.whatIf;
  const sliders = table.knobs.map((_, i) => byId(`knob-${i}`));
  const host = byId("whatif-chart");
  let used = 0;
  let chart = null;

  const positions = () => sliders.map((slider) => Number(slider.value));
  const index = (at) => at.reduce((sum, position, i) => sum * table.knobs[i].values.length + position, 0);
  const recorded = table.stepS[index(table.knobs.map((knob) => knob.now))];

  function tell() {
    sliders.forEach((slider, i) => {
      const value = table.knobs[i].values[slider.value];
      slider.setAttribute("aria-valuetext", value);
      slider.parentElement.querySelector("output").textContent = value;
    });
    const i = index(positions());
    const factor = recorded / table.stepS[i];
    const times = (x) => `${x.toFixed(2)}×`;
    const same = i === index(table.knobs.map((knob) => knob.now));
    const speed = element("b", rate(1 / table.stepS[i], "steps"));
    const told = same
      ? "as recorded"
      : `${times(factor)} (${times(recorded / table.high[i])} to ${times(recorded / table.low[i])})`;
    byId("whatif-result").replaceChildren(speed, element("span", `${told} · limited by ${table.limits[table.limit[i]]}`));
  }

  // The slider used last along its whole range, the others where they are.
  function draw() {
    if (chart) chart.destroy();
    const knob = table.knobs[used];
    const at = positions();
    const here = at[used];
    const along = knob.values.map((_, position) => index(at.map((own, i) => (i === used ? position : own))));
    const speed = (seconds) => along.map((i) => 1 / seconds[i]);
    const stroke = colour("--s-0");
    const accent = colour("--s-1");
    const bound = { stroke, width: 0, points: { show: false } };
    chart = plot(
      host,
      {
        height: 190,
        scales: { x: { time: false, range: [-0.3, along.length - 0.7] }, y: { range: (_, __, max) => [0, 1.1 * max] } },
        axes: [
          axis((x) => knob.values[x] ?? "", { incrs: [1], label: knob.label, labelSize: 22, labelFont: "12px system-ui, sans-serif" }),
          axis(digits, { size: 56, label: "steps/s", labelSize: 20, labelFont: "12px system-ui, sans-serif" }),
        ],
        series: [{}, bound, bound, { stroke, width: 2, points: { show: true, size: 7, fill: stroke } }],
        bands: [{ series: [1, 2], fill: `color-mix(in srgb, ${stroke} 18%, transparent)` }],
        cursor: { drag: { x: false, y: false } },
        hooks: {
          draw: [
            (u) => {
              const x = u.valToPos(here, "x", true);
              const y = u.valToPos(1 / table.stepS[along[here]], "y", true);
              u.ctx.fillStyle = accent;
              u.ctx.beginPath();
              u.ctx.arc(x, y, 6 * devicePixelRatio, 0, 2 * Math.PI);
              u.ctx.fill();
            },
          ],
        },
      },
      [along.map((_, i) => i), speed(table.low), speed(table.high), speed(table.stepS)],
      (_, i) => [[`${knob.label} ${knob.values[i]}`], [rate(1 / table.stepS[along[i]], "steps")]],
    );
  }

  sliders.forEach((slider, i) =>
    slider.addEventListener("input", () => {
      used = i;
      tell();
      draw();
    }),
  );
  tell();
  draw();
  redraws.push(draw);
}
