// Makes elements and texts. Data comes in as text nodes only: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const el = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function painted(node, property, value) {
  node.style[property] = value;
  return node;
}

const digits = (value) => {
  const size = Math.abs(value);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3 });
};

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export const count = (value) => {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${digits(value / 1e9)} G`;
  return size >= 1e6 ? `${digits(value / 1e6)} M` : digits(value);
};

export const ms = (value) => {
  if (!known(value)) return "–";
  return Math.abs(value) >= 60e3 ? `${digits(value / 60e3)} min` : Math.abs(value) >= 1e3 ? `${digits(value / 1e3)} s` : `${digits(value)} ms`;
};

export const bytes = (value) => {
  if (!known(value)) return "–";
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (value >= size) return `${digits(value / size)} ${unit}`;
  return `${digits(value)} bytes`;
};

export const percent = (share) => (known(share) ? `${digits(share * 100)} percent` : "–");

// Times are UTC, as everywhere else.
export const clock = (seconds) => (known(seconds) ? new Date(seconds * 1e3).toISOString().slice(11, 19) : "–");

export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// A table; a column is [title, kind], a cell text or an element.
export function table(caption, columns, rows) {
  const head = el("tr", {}, ...columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)));
  const body = rows.map((row) =>
    el("tr", {}, ...row.map((cell, i) => el("td", { class: columns[i][1] ?? "cell", title: typeof cell === "string" && cell.length > 30 ? cell : null }, cell ?? "NULL"))),
  );
  const made = el("table", {}, caption ? el("caption", {}, caption) : null, el("thead", {}, head), el("tbody", {}, ...body));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || columns.map(([title]) => title).join(", ") }, made);
}

// Puts new content in place only where it differs, so that a focus or a selection stays.
export function put(node, ...children) {
  const made = el("div", {}, ...children);
  if (node.childNodes.length === made.childNodes.length && [...made.childNodes].every((child, i) => child.isEqualNode(node.childNodes[i]))) return;
  node.replaceChildren(...made.childNodes);
}

const tip = el("div", { class: "tip", hidden: true });

export function showTip(text, x, y) {
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 8))}px`;
}

// A canvas as wide as its place, sharp on dense screens; gives its context scaled to CSS pixels.
export function canvasContext(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
