// The bucket map: which instance owns which bucket; buckets that move change colour before one's eyes.

import { byId, canvasContext, colour, el, painted, percent, plural, put, showTip, table } from "./dom.js";

// Told apart also by the number in the square, where there is room for it.
const OWNERS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#77aadd", "#bbcc33", "#999999", "#44bb99", "#ddaa33"];
const MOVING_MS = 4000;

export const ownerColour = (instance) => OWNERS[instance % OWNERS.length];

// "0-3,8" as numbers.
export function bucketNumbers(text) {
  const found = [];
  for (const part of text.split(",").filter(Boolean)) {
    const [low, high] = part.split("-").map(Number);
    for (let bucket = low; bucket <= (high ?? low); bucket++) found.push(bucket);
  }
  return found;
}

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class BucketMap {
  constructor() {
    this.maps = new Map();
  }

  draw(_, picture) {
    this.picture = picture;
    const names = Object.keys(picture?.buckets ?? {});
    if (!names.length) {
      this.reset();
      return put(byId("buckets-picture"), el("p", { class: "note" }, "Who owns which bucket is not known here."));
    }
    for (const name of names) this.update(name, picture.buckets[name]);
  }

  // Another query: what it has moved nothing of must not be seen as moving.
  reset() {
    for (const { place } of this.maps.values()) place.remove();
    this.maps.clear();
  }

  place(name) {
    if (!this.maps.size) byId("buckets-picture").replaceChildren();
    const canvas = el("canvas", { role: "img", onpointermove: (event) => this.hover(event, name), onpointerleave: () => showTip("") });
    const said = el("p", { class: "note", "aria-live": "polite" });
    const owners = el("div");
    const place = el("div", {}, el("h3", {}, name), el("div", { class: "picture" }, canvas), said, owners);
    byId("buckets-picture").append(place);
    const map = { place, canvas, said, owners, of: null, before: null, since: 0 };
    this.maps.set(name, map);
    return map;
  }

  update(name, texts) {
    const map = this.maps.get(name) ?? this.place(name);
    const of = [];
    for (const [instance, text] of Object.entries(texts)) for (const bucket of bucketNumbers(text)) of[bucket] = Number(instance);
    const moved = map.of ? of.map((owner, bucket) => (map.of[bucket] !== undefined && map.of[bucket] !== owner ? bucket : -1)).filter((bucket) => bucket >= 0) : [];
    if (moved.length) {
      map.before = map.of;
      map.since = performance.now();
      map.moved = new Set(moved);
      map.said.textContent = `${plural(moved.length, "bucket")} of ${name} moved: ${moved.slice(0, 12).map((bucket) => `${bucket} from ${map.before[bucket]} to ${of[bucket]}`).join(", ")}${moved.length > 12 ? ", ..." : ""}.`;
    }
    map.of = of;
    const hot = this.picture.load?.[name]?.hottest_buckets ?? [];
    map.hot = new Map(hot.map((one) => [one.bucket, one.utilisation]));
    map.canvas.setAttribute("aria-label", `Owners of the ${of.length} buckets of ${name}; the table below has them as text`);
    const shares = this.picture.load?.[name]?.utilisation ?? [];
    put(map.owners, table("", [["instance"], ["buckets", "number"], ["busy", "number"], ["busiest bucket"], ["which"]], Object.entries(texts).map(([instance, text]) => {
      const busiest = hot.find((one) => one.instance === Number(instance));
      return [el("span", {}, painted(el("i", { class: "swatch" }), "background", ownerColour(Number(instance))), instance), String(bucketNumbers(text).length),
        shares[instance] === undefined ? "–" : `${Math.round(shares[instance] * 100)}%`, busiest ? `${busiest.bucket}, ${percent(busiest.utilisation)}` : "", text];
    })));
    this.paint(name);
  }

  paint(name) {
    const map = this.maps.get(name);
    if (!map) return;
    const width = Math.max(map.canvas.parentElement.clientWidth, 160);
    const n = map.of.length;
    const wanted = 2 ** Math.ceil(Math.log2(Math.sqrt(n * 2)));
    map.side = Math.max(2, Math.min(34, Math.floor(width / wanted)));
    map.across = Math.max(1, Math.min(wanted, Math.floor(width / map.side)));
    const context = canvasContext(map.canvas, width, Math.ceil(n / map.across) * map.side);
    const done = still() ? 1 : Math.min((performance.now() - map.since) / MOVING_MS, 1);
    const ink = colour("ink");
    const hottest = Math.max(...map.hot.values(), 1e-9);
    const gap = map.side > 6 ? 1 : 0;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `${Math.min(12, Math.round(map.side * 0.45))}px system-ui, sans-serif`;
    for (let bucket = 0; bucket < n; bucket++) {
      const [x, y] = [(bucket % map.across) * map.side, Math.floor(bucket / map.across) * map.side];
      const size = map.side - gap;
      const moving = map.before && map.moved.has(bucket) && performance.now() - map.since < MOVING_MS;
      context.fillStyle = ownerColour(moving ? map.before[bucket] : map.of[bucket]);
      context.fillRect(x, y, size, size);
      if (moving) {
        context.fillStyle = ownerColour(map.of[bucket]);
        context.fillRect(x, y, size * done, size);
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      }
      if (map.side >= 18) {
        context.fillStyle = "#000";
        context.fillText(String(map.of[bucket]), x + size / 2, y + size / 2 - (map.hot.has(bucket) ? 4 : 0));
      }
      if (map.hot.has(bucket)) {
        context.fillStyle = "#000";
        context.beginPath();
        context.arc(x + size / 2, y + size * (map.side >= 18 ? 0.78 : 0.5), Math.max(1.5, size * 0.14 * Math.sqrt(map.hot.get(bucket) / hottest)), 0, 7);
        context.fill();
      }
    }
    if (map.before && done < 1) requestAnimationFrame(() => this.paint(name));
  }

  hover(event, name) {
    const map = this.maps.get(name);
    const box = map.canvas.getBoundingClientRect();
    const bucket = Math.floor((event.clientY - box.top) / map.side) * map.across + Math.min(Math.floor((event.clientX - box.left) / map.side), map.across - 1);
    const owner = map.of[bucket];
    if (owner === undefined) return showTip("");
    const load = map.hot.get(bucket);
    showTip(`bucket ${bucket}: instance ${owner}${load === undefined ? "" : `\nbusy ${percent(load)} of the time`}`, event.clientX, event.clientY);
  }
}
