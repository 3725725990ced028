// uPlot as this page uses it: its colours, a tooltip, the keyboard, and the width of its place.

const { stepped, bars } = uPlot.paths;
const WHOLE = Array.from({ length: 10 }, (_, i) => [1, 2, 5].map((x) => x * 10 ** i)).flat(); // distances of ticks
const EDGE = 1e-9; // of a zoom's width: below that there is nothing to see

function axis(format, more) {
  const line = colour("--line");
  return {
    stroke: colour("--quiet"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 4 },
    values: (_, values) => values.map((value) => (value === null ? "" : format(value))),
    ...more,
  };
}

// A plot in `host`. `tip(u, index)` gives the lines of the tooltip: [text, colour or none].
function plot(host, options, values, tip) {
  const size = () => ({ width: Math.max(host.clientWidth, 220), height: options.height });
  const built = new uPlot(
    {
      legend: { show: false },
      padding: [10, 14, 0, 0],
      ...options,
      ...size(),
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false }, ...options.cursor },
      plugins: [tooltip(tip), ...(options.plugins || [])],
    },
    values,
    host,
  );
  const observer = new ResizeObserver(debounced(() => built.setSize(size()), 60));
  observer.observe(host);
  const keys = keyboard(built, host);
  return {
    u: built,
    destroy() {
      observer.disconnect();
      keys.abort();
      built.destroy();
    },
  };
}

function tooltip(tip) {
  const box = element("div", "", "tip");
  box.hidden = true;
  box.setAttribute("role", "status");
  function show(u) {
    const { idx, left } = u.cursor;
    const lines = idx === null || idx === undefined || left < 0 ? null : tip(u, idx);
    box.hidden = !lines;
    if (!lines) return;
    box.replaceChildren(...lines.map(([text, swatch], i) => tipLine(text, swatch, i === 0)));
    const beside = left + 16 + box.offsetWidth > u.over.clientWidth ? left - 16 - box.offsetWidth : left + 16;
    box.style.left = `${Math.max(beside, 0)}px`;
    box.style.top = "8px";
  }
  return {
    hooks: {
      init: (u) => u.over.append(box),
      setCursor: show,
    },
  };
}

function tipLine(text, swatch, first) {
  const line = element(first ? "b" : "span");
  if (swatch) {
    const mark = element("i");
    mark.style.background = swatch;
    line.append(mark);
  }
  line.append(text);
  return line;
}

// The whole range of x that there is; a plot whose data change with the zoom says so itself.
function extent(u) {
  return u.fullExtent || [u.data[0][0], u.data[0][u.data[0].length - 1]];
}

function zoomTo(u, from, to) {
  const [first, last] = extent(u);
  const width = Math.min(to - from, last - first);
  if (!(width > EDGE * (last - first))) return;
  const min = Math.min(Math.max(from, first), last - width);
  u.setScale("x", { min, max: min + width });
}

function zoomBy(u, factor) {
  const { min, max } = u.scales.x;
  const centre = (min + max) / 2;
  zoomTo(u, centre - (factor * (max - min)) / 2, centre + (factor * (max - min)) / 2);
}

function zoomOut(u) {
  const [first, last] = extent(u);
  u.setScale("x", { min: first, max: last });
}

// Arrows move the cursor, with shift the view; + and − zoom, 0 shows all.
function keyboard(u, host) {
  const control = new AbortController();
  const pan = (part) => {
    const by = part * (u.scales.x.max - u.scales.x.min);
    zoomTo(u, u.scales.x.min + by, u.scales.x.max + by);
  };
  const step = (direction) => {
    const at = u.cursor.left < 0 ? u.over.clientWidth / 2 : u.cursor.left;
    const columns = Math.max(u.over.clientWidth / Math.max(u.data[0].length, 1), 4);
    u.setCursor({ left: Math.min(Math.max(at + direction * columns, 0), u.over.clientWidth - 1), top: 10 });
  };
  const acts = {
    ArrowLeft: (event) => (event.shiftKey ? pan(-0.25) : step(-1)),
    ArrowRight: (event) => (event.shiftKey ? pan(0.25) : step(1)),
    "+": () => zoomBy(u, 0.5),
    "=": () => zoomBy(u, 0.5),
    "-": () => zoomBy(u, 2),
    0: () => zoomOut(u),
    Escape: () => u.setCursor({ left: -10, top: -10 }),
  };
  host.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
      event.preventDefault();
      acts[event.key](event);
    },
    { signal: control.signal },
  );
  return control;
}
