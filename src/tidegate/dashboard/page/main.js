// Puts the page together: the chosen query, its figures, and when what is drawn.

import { byId, bytes, count, el, known, ms, plural, put } from "./dom.js";
import { openSource } from "./source.js";
import { History } from "./history.js";
import { drawFindings } from "./findings.js";
import { BatchStream } from "./stream.js";
import { Lines } from "./lines.js";
import { drawDecisions } from "./decisions.js";
import { PlanGraph } from "./plan.js";
import { BucketMap } from "./buckets.js";
import { drawAnswers } from "./answers.js";
import { Late } from "./late.js";
import { Control } from "./control.js";

const EVERY_MS = 250;
const LIST_MS = 5000;

const source = openSource();
const pictures = [new BatchStream(), new Lines(), { draw: drawDecisions }, new PlanGraph(), new BucketMap(), { draw: drawAnswers }, new Late(), { draw: drawFindings }];
const control = new Control(source);
const page = { queries: [], query: null, history: new History(), picture: null, lost: false, close: () => {}, dirty: false, drawn: 0 };

const changed = () => {
  page.dirty = true;
};

// The state's first word, and why where it says so: "failed: the disk is full".
function stateOf(state, lost) {
  if (lost) return ["lost", "connection lost, trying again", ""];
  const [word, ...why] = (state ?? "unknown").split(": ");
  return [word.split(" ")[0], word, why.join(": ")];
}

function drawHead() {
  const { picture, history, query } = page;
  const [kind, word, why] = stateOf(picture?.state ?? query?.state, page.lost);
  byId("title").textContent = query?.title ?? "Tidegate";
  document.title = `${query?.title ?? "Tidegate"}: ${word}`;
  byId("state").className = kind;
  byId("state").textContent = word;
  byId("why").hidden = !why;
  byId("why").textContent = why;
  const n = history.length;
  const live = kind === "running";
  const [latency, backlog] = [history.columns.p95, history.columns.backlog];
  const figure = (title, value, more) => el("div", {}, el("dt", {}, title), el("dd", {}, value, more ? el("small", {}, more) : null));
  const rate = n ? history.rate("rows_in", live ? n - 50 : 0, n) : picture?.rows_per_second;
  put(byId("figures"),
    figure("Rows in", count(picture?.rows_in), `${count(rate)} a second ${live ? "now" : "over the run"}`),
    figure("Rows out", count(picture?.rows_out), plural(picture?.batches ?? n, "batch").replace("batchs", "batches")),
    n && known(latency[n - 1])
      ? figure("Latency, p95", ms(history.median("p95", n - 20, n)), `predicted ${known(history.columns.predicted[n - 1]) ? ms(history.columns.predicted[n - 1]) : "not yet"}`)
      : known(picture?.latency_ms?.p95) && !n ? figure("Latency, p95", ms(picture.latency_ms.p95), `median ${ms(picture.latency_ms.p50)}`)
      : figure("Batch time, median", ms(n ? history.median("ms", n - 50, n) : picture?.batch_ms?.p50), `p95 ${ms(picture?.batch_ms?.p95)}`),
    figure("Backlog", n && known(backlog[n - 1]) ? `${count(backlog[n - 1])} rows` : "–", n && history.columns.backlog_bytes[n - 1] > 0 ? bytes(history.columns.backlog_bytes[n - 1]) : null),
    figure("Instances", picture?.subqueries ? Object.values(picture.subqueries).map((one) => one.instances).join(" + ") : count(picture?.instances), picture?.policy ? `policy ${picture.policy.name}` : null),
    figure("State", bytes(picture?.state_bytes), `at most ${bytes(picture?.state_bytes_max)}`));
}

function drawQueries() {
  if (page.queries.length < 2) return put(byId("queries"));
  put(byId("queries"), el("ul", {}, ...page.queries.map((query) => el("li", {},
    el("a", { href: `#query=${encodeURIComponent(query.id)}`, "aria-current": query.id === page.query?.id ? "page" : null }, query.title), ` ${stateOf(query.state)[1]}`))));
}

// New data is drawn at most four times a second, and not at all while nobody sees it.
function frame(now) {
  if (page.dirty && !document.hidden && now - page.drawn >= EVERY_MS) {
    page.dirty = false;
    page.drawn = now;
    drawHead();
    for (const picture of pictures) picture.draw(page.history, page.picture);
    control.draw(page.query, page.picture);
    document.body.dataset.drawn = String(page.history.last);
  }
  requestAnimationFrame(frame);
}

function choose() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("query");
  const query = page.queries.find((one) => one.id === wanted) ?? page.queries[0];
  if (!query || query.id === page.query?.id) return;
  page.close();
  Object.assign(page, { query, history: new History(), picture: null, lost: false });
  for (const picture of pictures) picture.reset?.();
  const mine = page.history;
  page.close = source.open(query.id, {
    batches: (records) => {
      for (const record of records) mine.add(record);
      changed();
    },
    status: (picture) => {
      if (page.history === mine) page.picture = picture;
      changed();
    },
    lost: (lost) => {
      if (page.history === mine && page.lost !== lost) page.lost = lost;
      changed();
    },
  });
  drawQueries();
  changed();
}

async function list() {
  try {
    page.queries = await source.queries();
    choose();
    drawQueries();
  } catch {
    page.lost = true;
    changed();
  }
}

addEventListener("hashchange", choose);
new ResizeObserver(changed).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
requestAnimationFrame(frame);
list();
if (!source.still) setInterval(() => document.hidden || list(), LIST_MS);
