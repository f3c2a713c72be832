"use strict";
// No framework: a switch for the theme, tables that sort and filter, charts.

const root = document.documentElement;
root.classList.add("js");

// --- theme ---

const dark = matchMedia("(prefers-color-scheme: dark)");
const themeSwitch = document.getElementById("theme");

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
}

function tellTheme() {
  themeSwitch.setAttribute("aria-pressed", String(isDark()));
}

themeSwitch.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  tellTheme();
  recolour();
});
dark.addEventListener("change", () => {
  tellTheme();
  recolour();
});
tellTheme();

// --- tables ---

function sortKey(row, column) {
  const cell = row.cells[column];
  return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.trim().toLowerCase();
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const numeric = head.classList.contains("n");
  const now = head.getAttribute("aria-sort");
  const next = now ? (now === "ascending" ? "descending" : "ascending")
    : numeric ? "descending" : "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", next);
  const sign = next === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows];
  const keyed = rows.map((row) => [sortKey(row, column), row]);
  // Cells without a figure stay last whichever way the others are turned.
  keyed.sort(([a], [b]) =>
    (a === "") - (b === "") || (typeof a === typeof b ? sign : 1) * compare(a, b));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sorts")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sortBy(table, column));
  });
}

for (const field of document.querySelectorAll("input[data-filters]")) {
  const rows = [...document.getElementById(field.dataset.filters).tBodies[0].rows];
  const told = document.getElementById(field.getAttribute("aria-describedby"));
  const contents = rows.map((row) =>
    (row.textContent + " " + [...row.querySelectorAll("[title]")].map((e) => e.title).join(" "))
      .toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => contents[i].includes(word));
      shown += !row.hidden;
    });
    told.textContent = `${shown} of ${rows.length} rows`;
  });
}

// --- charts ---

const charts = [...document.querySelectorAll("[data-figure]")];
const figures = JSON.parse(document.getElementById("figures").textContent);

function template() {
  const css = getComputedStyle(root);
  const [text, line] = ["--text", "--line"].map((name) => css.getPropertyValue(name).trim());
  const axis = {
    gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true, fixedrange: true,
  };
  return {
    layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
      font: { color: text, family: css.getPropertyValue("--font"), size: 12 },
      colorway: [text], margin: { l: 48, r: 12, t: 12, b: 40 },
      hoverlabel: { align: "left" }, xaxis: axis, yaxis: axis,
    },
  };
}

function recolour() {
  if (!window.Plotly) return;
  for (const spot of charts) if (spot.data) Plotly.relayout(spot, { template: template() });
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function draw() {
  const packed = document.getElementById("plotly");
  if (!charts.length) return;
  if (!packed) throw new Error("plotly is not in the page");
  const library = document.createElement("script");
  library.textContent = await unpacked(packed.textContent);
  document.head.append(library); // the policy of the page knows its hash
  for (const spot of charts) {
    const { data, layout } = figures[spot.dataset.figure];
    const options = { responsive: true, displayModeBar: false };
    await Plotly.newPlot(spot, data, { ...layout, template: template() }, options);
  }
  root.classList.add("drawn");
}

draw().catch((error) => {
  root.classList.add("undrawn");
  console.warn(`The charts cannot be drawn here: ${error}`);
});

// --- paper ---

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const one of opened) one.open = true;
  root.classList.add("printed");
  recolour();
});
addEventListener("afterprint", () => {
  for (const one of opened) one.open = false;
  root.classList.remove("printed");
  recolour();
});
