// What every chart needs: the page's data, figures as people read them, colours, the theme.
// Strings of the data only ever become textContent, never markup.

const root = document.documentElement;
const data = JSON.parse(document.getElementById("data").textContent);
const redraws = [];

function byId(id) {
  return document.getElementById(id);
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Little-endian single-precision floats in base64.
function floats(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

function colour(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

function digits(x) {
  if (x === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x))));
  return Number(x.toFixed(Math.min(decimals, 12))).toString();
}

function scaled(x, unit, steps) {
  for (const [size, prefix] of steps) if (Math.abs(x) >= size) return `${digits(x / size)} ${prefix}${unit}`;
  return `${digits(x)} ${unit}`;
}

function seconds(x) {
  if (Math.abs(x) >= 7200) return `${digits(x / 3600)} h`;
  if (Math.abs(x) >= 600) return `${digits(x / 60)} min`;
  return scaled(x, "s", [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]);
}

function bytes(x) {
  return scaled(x, "B", [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]);
}

function rate(x, noun) {
  return scaled(x, `${noun}/s`, [[1e6, "M "], [1e3, "k "]]);
}

function percent(x) {
  if (x > 0 && x < 0.0005) return "< 0.1 %";
  return `${x >= 0.1 ? Math.round(100 * x) : digits(Math.round(1000 * x) / 10)} %`;
}

function integer(x) {
  return Math.round(x).toLocaleString("en");
}

function debounced(act, delay) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, delay);
  };
}

// The theme: the system's, unless the reader chose one. Charts are drawn anew, as a canvas knows no style sheet.
const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  byId("theme").querySelector(".state").textContent = theme;
  redraws.forEach((redraw) => redraw());
}

function rememberedTheme() {
  try {
    const theme = localStorage.getItem("unstall-theme");
    return THEMES.includes(theme) ? theme : "auto";
  } catch {
    return "auto"; // storage is off
  }
}

let theme = rememberedTheme();
setTheme(theme);
byId("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  setTheme(theme);
  try {
    localStorage.setItem("unstall-theme", theme);
  } catch {
    // it holds for this visit only
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (theme === "auto") setTheme(theme);
});
