// Each chart by itself: one that fails must not take the others with it.

for (const [name, start] of [
  ["steps", stepsChart],
  ["distribution", distributionChart],
  ["whatIf", whatIf],
  ["flame", flameGraphs],
  ["device", () => panelCharts("device")],
  ["machine", () => panelCharts("machine")],
]) {
  if (!data[name]) continue;
  try {
    start();
  } catch (error) {
    console.error(name, error);
  }
}
root.dataset.ready = "";
