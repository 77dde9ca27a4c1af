// The map: draws the scene on a canvas, and moves over it with mouse, fingers and keys.

import { byId } from "./dom.js";
import { network } from "./network.js";
import { scene } from "./scene.js";

/** Pixels around the picture. */
const MARGIN = 70;

/** Pixels of a link's length. */
const SCALE = { min: 2, max: 2000 };

/** Pixels between neighbouring switches: at first at most, and from which on there are labels and hosts. */
const SPACE = { start: 170, labels: 45, hosts: 40, hostLabels: 90 };

/** Lines in one path. Browsers take much longer for very long paths. */
const LINES_IN_PATH = 200;

/** Links that are drawn while the map moves. Of more, some are left out until it rests. */
const MAX_MOVING_LINKS = 3000;

/** Links above which each is drawn the paler the more there are. */
const DENSE_LINKS = 2000;

/** Time after which the map rests, in milliseconds. */
const REST_MS = 150;

/** Pixels within which a click hits. */
const HIT = 10;

/** Number of frames whose times are kept. */
const FRAMES = 100;

/** Share of a link's rate above which it is drawn as loaded. */
const LOADED = 0.7;

const canvas = byId("map");
const context = canvas.getContext("2d");
const view = { x: 0, y: 0, scale: SPACE.start, isFitted: true };
const frames = [];
let drawn = { nodes: [], links: [], hosts: [] };
/** Length for each switch if all were spread evenly, in links, up to one. */
let spacing = 1;
let selection = null;
let onSelect = () => {};
let colours = {};
let isDue = false;
let restTimer = null;
/** What the search finds. */
let found = { findsSwitch: () => false, findsHost: () => false };

/** Draws again at the next frame. */
function due() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const began = performance.now();
    draw();
    frames.push(performance.now() - began);
    if (frames.length > FRAMES) frames.shift();
    canvas.dataset.frameMs = Math.max(...frames).toFixed(1);
    canvas.dataset.frames = Number(canvas.dataset.frames ?? 0) + 1;
  });
}

/** Takes what the network is now, what is selected, and what the search finds. */
export function show(newSelection, newFound) {
  selection = newSelection;
  found = newFound;
  drawn = scene(selection);
  spacing = spacingOf(drawn.nodes.length);
  if (view.isFitted) fit();
  const lost = drawn.links.filter((link) => link.isLost).length;
  canvas.dataset.switches = drawn.nodes.length;
  canvas.dataset.away = drawn.nodes.filter((node) => node.isLost).length;
  canvas.dataset.links = drawn.links.length - lost;
  canvas.dataset.lost = lost;
  canvas.dataset.hosts = drawn.hosts.length;
  due();
}

/** Where a switch, host or link is on the page, in pixels; for tests and for the focus. */
export function placeOf(kind, id) {
  const box = canvas.getBoundingClientRect();
  const lists = { switch: ["nodes", "dpid"], host: ["hosts", "mac"] };
  const [list, key] = lists[kind];
  const item = drawn[list].find((item) => item[key] === id);
  return item && { x: box.left + screenX(item.x), y: box.top + screenY(item.y) };
}

const screenX = (x) => (x - view.x) * view.scale + canvas.clientWidth / 2;
const screenY = (y) => (y - view.y) * view.scale + canvas.clientHeight / 2;

function spacingOf(switches) {
  const { width, height } = network.size;
  return Math.min(1, Math.sqrt(((width + 1) * (height + 1)) / Math.max(switches, 1)));
}

/** Pixels between neighbouring switches. */
const space = () => view.scale * spacing;

function fit() {
  const { width, height } = network.size;
  const scaleX = (canvas.clientWidth - 2 * MARGIN) / Math.max(width, 0.1);
  const scaleY = (canvas.clientHeight - 2 * MARGIN) / Math.max(height, 0.1);
  view.scale = Math.min(Math.max(Math.min(scaleX, scaleY), SCALE.min), SPACE.start / spacing);
  Object.assign(view, { x: width / 2, y: height / 2, isFitted: true });
}

function zoom(factor, at = { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 }) {
  const scale = Math.min(Math.max(view.scale * factor, SCALE.min), SCALE.max);
  const dx = at.x - canvas.clientWidth / 2;
  const dy = at.y - canvas.clientHeight / 2;
  view.x += dx / view.scale - dx / scale;
  view.y += dy / view.scale - dy / scale;
  Object.assign(view, { scale, isFitted: false });
  moved();
}

/** Draws fast now, and all when the map rests. */
function moved() {
  clearTimeout(restTimer);
  restTimer = setTimeout(() => { restTimer = null; due(); }, REST_MS);
  due();
}

function pan(dx, dy) {
  view.x -= dx / view.scale;
  view.y -= dy / view.scale;
  view.isFitted = false;
  moved();
}

/** A canvas does not know variables, so an element resolves them. */
function readColours() {
  const probe = document.createElement("span");
  document.body.append(probe);
  for (const name of ["page", "card", "line", "text", "quiet", "accent", "good", "bad", "warm", "link", "carries"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}

function draw() {
  const ratio = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  drawLinks();
  if (space() >= SPACE.hosts) drawHosts();
  drawSwitches();
}

/** The ends of a link on the screen. Links side by side are some pixels apart. */
function ends({ a, b, offset }) {
  const [ax, ay, bx, by] = [screenX(a.x), screenY(a.y), screenX(b.x), screenY(b.y)];
  if (!offset) return [ax, ay, bx, by];
  const length = Math.hypot(bx - ax, by - ay) || 1;
  // The same side for both directions of a pair.
  const side = (a.dpid < b.dpid ? 5 : -5) * offset;
  const [dx, dy] = [(-(by - ay) / length) * side, ((bx - ax) / length) * side];
  return [ax + dx, ay + dy, bx + dx, by + dy];
}

function drawLinks() {
  const isSelected = (link) => selection?.kind === "link" && selection.id === link.key;
  // In the order from back to front.
  const thin = Math.min(1.5, Math.max(0.4, space() / 20));
  const styles = [
    ["link", thin, [], (link) => !link.isLost],
    ["warm", 4, [], (link) => !link.isLost && link.share >= LOADED],
    ["quiet", 1.5, [2, 3], (link) => !link.isLost && link.isOneWay],
    ["carries", 5, [], (link) => link.carries && !link.isLost],
    ["bad", 3, [7, 5], (link) => link.isLost],
    ["accent", 4, [], isSelected],
  ];
  for (const [colour, width, dash, belongs] of styles) {
    // So that a dense network is no blot.
    context.globalAlpha = colour === "link" ? Math.max(0.12, Math.min(1, DENSE_LINKS / drawn.links.length)) : 1;
    Object.assign(context, { strokeStyle: colours[colour], lineWidth: width });
    context.setLineDash(dash);
    const links = drawn.links.filter(belongs);
    const step = restTimer === null ? 1 : Math.ceil(links.length / MAX_MOVING_LINKS);
    drawLines(step === 1 ? links : links.filter((_, number) => number % step === 0));
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
}

function drawLines(links) {
  let lines = 0;
  context.beginPath();
  for (const link of links) {
    const [ax, ay, bx, by] = ends(link);
    if (isOutside(ax, ay, bx, by)) continue;
    context.moveTo(ax, ay);
    context.lineTo(bx, by);
    lines += 1;
    if (lines % LINES_IN_PATH === 0) {
      context.stroke();
      context.beginPath();
    }
  }
  context.stroke();
}

/** Whether a line is surely not seen. */
function isOutside(ax, ay, bx, by) {
  const { clientWidth, clientHeight } = canvas;
  return Math.max(ax, bx) < 0 || Math.max(ay, by) < 0 || Math.min(ax, bx) > clientWidth || Math.min(ay, by) > clientHeight;
}

function isVisible(x, y) {
  return x > -50 && y > -50 && x < canvas.clientWidth + 50 && y < canvas.clientHeight + 50;
}

function drawHosts() {
  context.beginPath();
  for (const host of drawn.hosts) {
    context.moveTo(screenX(host.from.x), screenY(host.from.y));
    context.lineTo(screenX(host.x), screenY(host.y));
  }
  Object.assign(context, { strokeStyle: colours.line, lineWidth: 1 });
  context.stroke();
  for (const host of drawn.hosts) {
    const [x, y] = [screenX(host.x), screenY(host.y)];
    if (!isVisible(x, y)) continue;
    const isSelected = selection?.kind === "host" && selection.id === host.mac;
    const isFound = found.findsHost(host.host);
    context.beginPath();
    context.arc(x, y, isSelected || isFound ? 8 : 6, 0, 2 * Math.PI);
    context.fillStyle = host.isBlocked ? colours.bad : isFound ? colours.warm : colours.card;
    context.fill();
    Object.assign(context, { strokeStyle: isSelected ? colours.accent : host.isBlocked ? colours.bad : colours.good, lineWidth: isSelected ? 3.5 : 2 });
    context.stroke();
    // A cross, for those who do not tell the colours apart.
    if (host.isBlocked) cross(x, y);
    if (space() >= SPACE.hostLabels || isSelected || isFound) {
      hostLabel(host, x, y, isSelected || isFound);
    }
  }
}

/** The name of a host, on the side that is away from its switch. */
function hostLabel({ label: text, angle }, x, y, isStrong) {
  const [right, down] = [Math.cos(angle), Math.sin(angle)];
  const align = right > 0.4 ? "left" : right < -0.4 ? "right" : "center";
  label(text, x + 11 * right, y + 4 + (align === "center" ? 15 : 9) * down, isStrong, align);
}

function cross(x, y) {
  context.beginPath();
  for (const side of [-1, 1]) {
    context.moveTo(x - 3 * side, y - 3);
    context.lineTo(x + 3 * side, y + 3);
  }
  Object.assign(context, { strokeStyle: colours.card, lineWidth: 2 });
  context.stroke();
}

function drawSwitches() {
  const size = Math.min(Math.max(space() / 9, 2.5), 15);
  for (const node of drawn.nodes) {
    const [x, y] = [screenX(node.x), screenY(node.y)];
    if (!isVisible(x, y)) continue;
    const isSelected = selection?.kind === "switch" && selection.id === node.dpid;
    const isFound = found.findsSwitch(node.row);
    const half = isSelected || isFound ? Math.max(size, 7) : size;
    context.beginPath();
    context.roundRect(x - half, y - half * 0.7, 2 * half, 1.4 * half, half / 3);
    context.fillStyle = node.isAway ? colours.page : isFound ? colours.warm : colours.accent;
    context.fill();
    if (isSelected || node.isAway) {
      context.setLineDash(node.isAway ? [3, 2] : []);
      const colour = isSelected ? colours.carries : node.isLost ? colours.bad : colours.quiet;
      Object.assign(context, { strokeStyle: colour, lineWidth: isSelected ? 4 : 2 });
      context.stroke();
      context.setLineDash([]);
    }
    if (space() >= SPACE.labels || isSelected || isFound) label(node.label, x, y - half * 0.7 - 6, true);
    if (node.more && space() >= SPACE.hosts) label(`+${node.more} hosts`, x, y + half + 16, false);
  }
}

/** A text with the page's colour around it, so that lines behind do not disturb. */
function label(text, x, y, isStrong, align = "center") {
  const short = text.length > 24 ? `${text.slice(0, 23)}…` : text;
  context.font = `${isStrong ? 600 : 400} 12.5px system-ui, sans-serif`;
  context.textAlign = align;
  Object.assign(context, { strokeStyle: colours.page, lineWidth: 4, lineJoin: "round" });
  context.strokeText(short, x, y);
  context.fillStyle = isStrong ? colours.text : colours.quiet;
  context.fillText(short, x, y);
}

/** What is at a place of the canvas. */
function hit(px, py) {
  const distance = (item) => Math.hypot(screenX(item.x) - px, screenY(item.y) - py);
  const nearest = (items) => items.reduce((best, item) => (best && distance(best) <= distance(item) ? best : item), null);
  const node = nearest(drawn.nodes);
  if (node && distance(node) <= HIT + 4) return { kind: "switch", id: node.dpid };
  const host = space() >= SPACE.hosts && nearest(drawn.hosts);
  if (host && distance(host) <= HIT) return { kind: "host", id: host.mac };
  const link = drawn.links.find((link) => distanceToLine(px, py, ends(link)) <= 6);
  return link ? { kind: "link", id: link.key } : null;
}

function distanceToLine(px, py, [ax, ay, bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const along = ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy || 1);
  const t = Math.min(Math.max(along, 0), 1);
  return Math.hypot(ax + t * dx - px, ay + t * dy - py);
}

/** Selects the switch after or before the selected one. */
function step(by) {
  const nodes = drawn.nodes;
  if (!nodes.length) return;
  const now = nodes.findIndex((node) => selection?.kind === "switch" && node.dpid === selection.id);
  const next = nodes[(now + by + nodes.length) % nodes.length];
  const [x, y] = [screenX(next.x), screenY(next.y)];
  if (x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight) Object.assign(view, { x: next.x, y: next.y, isFitted: false });
  onSelect({ kind: "switch", id: next.dpid });
}

const KEYS = {
  ArrowLeft: () => pan(60, 0),
  ArrowRight: () => pan(-60, 0),
  ArrowUp: () => pan(0, 60),
  ArrowDown: () => pan(0, -60),
  "+": () => zoom(1.25),
  "=": () => zoom(1.25),
  "-": () => zoom(0.8),
  0: () => { fit(); due(); },
  n: () => step(1),
  p: () => step(-1),
  Escape: () => onSelect(null),
};

/** Begins to listen. `select` gets what was clicked on: { kind, id } or null. */
export function start(select) {
  onSelect = select;
  readColours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); due(); });
  new ResizeObserver(() => { if (view.isFitted) fit(); due(); }).observe(canvas);
  canvas.addEventListener("keydown", (event) => {
    const act = !event.ctrlKey && !event.altKey && !event.metaKey && KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), { x: event.offsetX, y: event.offsetY });
  }, { passive: false });
  followPointers();
}

/** One pointer pans, two zoom, and a click selects. */
function followPointers() {
  const pointers = new Map();
  let way = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (pointers.size === 0) way = 0;
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    const now = { x: event.offsetX, y: event.offsetY };
    if (!before) {
      canvas.style.cursor = hit(now.x, now.y) ? "pointer" : "";
      return;
    }
    way += Math.hypot(now.x - before.x, now.y - before.y);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    const apart = (point) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    if (other) zoom(apart(now) / apart(before), other);
    else if (way > 4) pan(now.x - before.x, now.y - before.y);
    pointers.set(event.pointerId, now);
  });
  canvas.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (way <= 4) onSelect(hit(event.offsetX, event.offsetY));
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
}
