// The newest rows of each output; with error bars where an answer has a low and a high end.

import { byId, count, el, known, percent, plural, put, svg, table } from "./dom.js";

const WIDE = 120;

const number = (text) => (text === null || text === undefined ? NaN : Number(text.replaceAll(",", "")));

// A point between its ends, on the scale of its column.
function bar(value, low, high, [least, most]) {
  const x = (v) => 4 + ((v - least) / Math.max(most - least, 1e-12)) * (WIDE - 8);
  if (![value, low, high].every(known)) return "";
  return svg("svg", { width: WIDE, height: 16, role: "img", "aria-label": `between ${low} and ${high}` },
    svg("line", { class: "range", x1: x(low), x2: x(high), y1: 8, y2: 8 }),
    ...[low, high].map((end) => svg("line", { class: "range", x1: x(end), x2: x(end), y1: 4, y2: 12 })),
    svg("circle", { class: "dot", cx: x(value), cy: 8, r: 3.2 }));
}

function answerTable(caption, { columns, rows }) {
  const ends = new Map();
  columns.forEach((name, i) => {
    const [low, high] = [columns.indexOf(`${name}_low`), columns.indexOf(`${name}_high`)];
    if (low < 0 || high < 0) return;
    const values = rows.flatMap((row) => [row[low], row[high]]).map(number).filter(known);
    ends.set(i, { low, high, range: values.length ? [Math.min(...values), Math.max(...values)] : [0, 1] });
  });
  const hidden = new Set([...ends.values()].flatMap(({ low, high }) => [low, high]));
  const window = ["window_start", "window_end"].map((name) => columns.indexOf(name));
  if (rows.length && window.every((i) => i >= 0 && rows.every((row) => row[i] === rows[0][i]))) {
    window.forEach((i) => hidden.add(i));
    caption += `, all of the window ${window.map((i) => rows[0][i]).join(" to ")}`;
  }
  const shown = columns.map((name, i) => i).filter((i) => !hidden.has(i));
  const numeric = (i) => rows.every((row) => row[i] === null || known(number(row[i])));
  const heads = shown.flatMap((i) => [[columns[i], numeric(i) ? "number" : "cell"], ...(ends.has(i) ? [[`${columns[i]}: low to high`]] : [])]);
  const body = rows.map((row) => shown.flatMap((i) => {
    if (columns[i] === "exact" && ends.size) return [el("span", { class: `word ${row[i] === "true" ? "exact" : "sampled"}` }, row[i] === "true" ? "exact" : "sampled")];
    if (!ends.has(i)) return [row[i]];
    const { low, high, range } = ends.get(i);
    if (row[low] === row[high]) return [row[i], el("span", { class: "muted" }, "exact")];
    return [row[i], el("span", { title: `${row[low]} to ${row[high]}` }, bar(number(row[i]), number(row[low]), number(row[high]), range), el("small", { class: "muted" }, `${row[low]} to ${row[high]}`))];
  }));
  return table(caption, heads, body);
}

// How the newest windows were answered: what was looked at, and the widest error.
function windowTable(name, windows) {
  const told = windows.filter((one) => one.error !== undefined || one.kept !== undefined || one.tuples_looked_at !== undefined);
  if (!told.length) return null;
  return table(`Newest windows of ${name}`, [["window ends"], ["rows in it", "number"], ["looked at", "number"], ["widest error", "number"], ["answered"]],
    told.slice(-8).reverse().map((one) => [one.window_end, count(one.sampled_of ?? one.tuples), percent(one.tuples_looked_at ?? one.kept), percent(one.error),
      one.windows_from_samples === undefined ? "–" : el("span", { class: `word ${one.windows_from_samples ? "sampled" : "exact"}` }, one.windows_from_samples ? "sampled" : "exact")]));
}

// A summary has means over all windows, and no lines about them.
function windowLine(name, { windows, figures }) {
  const mean = (figure) => percent(figures[figure]?.mean);
  return figures.error ? `${name}, ${plural(windows, "window")}: ${mean("windows_from_samples")} answered from samples, ${mean("tuples_looked_at")} of the rows looked at, widest error ${mean("error")} (at most ${percent(figures.error.max)}).` : null;
}

export function drawAnswers(history, picture) {
  const outputs = Object.entries(picture?.newest_rows ?? {}).filter(([name]) => name.startsWith("output "));
  const shed = picture?.rows_in ? picture.rows_shed / picture.rows_in : 0;
  put(byId("answers-body"),
    ...outputs.map(([name, rows]) => answerTable(`Newest ${rows.rows.length} rows${name.slice(7) ? ` of ${name.slice(7)}` : ""}`, rows)),
    outputs.length ? null : el("p", { class: "note" }, "No rows have come out yet, or they are not kept here."),
    ...(picture?.window_lines ?? Object.entries(picture?.windows ?? {}).map(([name, of]) => windowLine(name, of)).filter(Boolean)).map((line) => el("p", { class: "note" }, line)),
    ...Object.entries(picture?.newest_windows ?? {}).map(([name, windows]) => windowTable(name, windows)),
    el("p", { class: "note" }, shed > 0 ? `${percent(shed)} of the rows were shed.` : "No rows were shed."));
}
