// Sampled stacks, root at the top: one tree for each kind of process.

const CELL = 20;

function flameGraphs() {
  const host = byId("flame-chart");
  const search = byId("flame-search");
  const details = byId("flame-details");
  const tabs = [...document.querySelectorAll("#stacks [role=tab]")];
  let current = 0;
  let chart = null;
  let wide = 0;

  function label(node) {
    const { name, at, value } = node.data;
    const share = percent(value / data.flame[current].samples);
    return `${name}${at ? ` · ${at}` : ""} · ${share} · ${integer(value)} ${value === 1 ? "sample" : "samples"}`;
  }

  function fill(node) {
    if (node.highlight) return colour("--k-found");
    return colour(`--k-${node.data.kind || "all"}`);
  }

  function draw() {
    if (chart) chart.destroy();
    host.replaceChildren();
    wide = host.clientWidth;
    chart = d3flame
      .flamegraph()
      .width(wide)
      .cellHeight(CELL)
      .minFrameSize(2)
      .inverted(true)
      .resetHeightOnZoom(true)
      .transitionDuration(0)
      .selfValue(false)
      .setLabelHandler(label)
      .setDetailsElement(details)
      .setColorMapper(fill)
      .setSearchMatch((node, term) => term !== "" && node.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((_, found, total) => {
        details.textContent = `${percent(total ? found / total : 0)} of the samples are in functions called so`;
      })
      .onClick(() => requestAnimationFrame(reachable));
    d3flame.select(host).datum(structuredClone(data.flame[current].tree)).call(chart);
    reachable();
    if (search.value) chart.search(search.value);
  }

  const drawn = () => [...host.querySelectorAll("g.frame")];

  // Every frame says what it is. One can be reached by Tab, the others from it by arrows. The drawing is as high as
  // they are.
  function reachable() {
    const frames = drawn();
    const deepest = frames.reduce((depth, frame) => Math.max(depth, frame.__data__.depth), 0);
    host.querySelector("svg").setAttribute("height", String(CELL * (deepest + 1)));
    frames.forEach((frame) => {
      const title = frame.querySelector("title");
      frame.setAttribute("tabindex", frame.__data__.depth === 0 ? "0" : "-1");
      frame.setAttribute("role", "button");
      frame.setAttribute("aria-label", title ? title.textContent : "");
    });
  }

  // Up to what calls it, down to what it calls most, to the sides along the same depth.
  function neighbour(frame, key) {
    const node = frame.__data__;
    const at = (wanted) => drawn().find((other) => other.__data__ === wanted);
    if (key === "ArrowUp") return at(node.parent);
    if (key === "ArrowDown") return (node.children || []).map(at).find(Boolean);
    const row = drawn().filter((other) => other.__data__.depth === node.depth);
    row.sort((a, b) => a.__data__.x0 - b.__data__.x0);
    return row[row.indexOf(frame) + { ArrowLeft: -1, ArrowRight: 1 }[key]];
  }

  function select(index) {
    current = index;
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
    });
    host.setAttribute("aria-labelledby", `tab-${index}`);
    details.textContent = "";
    draw();
  }

  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => select(i));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = (i + by + tabs.length) % tabs.length;
      select(next);
      tabs[next].focus();
    });
  });
  host.addEventListener("keydown", (event) => {
    const frame = event.target.closest("g.frame");
    if (!frame) return;
    const opens = event.key === "Enter" || event.key === " ";
    if (!opens && !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (opens) frame.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    else neighbour(frame, event.key)?.focus();
  });
  host.addEventListener("focusin", (event) => {
    const frame = event.target.closest("g.frame");
    if (frame) details.textContent = frame.getAttribute("aria-label");
  });
  search.addEventListener("input", debounced(() => (search.value ? chart.search(search.value) : chart.clear()), 120));
  byId("flame-reset").addEventListener("click", () => {
    search.value = "";
    draw();
  });
  new ResizeObserver(debounced(() => host.clientWidth !== wide && draw(), 80)).observe(host);
  draw();
  redraws.push(draw);
}
