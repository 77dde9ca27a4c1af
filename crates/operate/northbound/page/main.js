// Puts the page together: the address chooses what is shown, and what happens in the network redraws it.

import { token } from "./api.js";
import { byId, el, replace, say } from "./dom.js";
import { clock, plural, seconds } from "./format.js";
import * as detail from "./detail.js";
import * as lists from "./lists.js";
import * as map from "./map.js";
import { looksForLinks, network, onChange, start } from "./network.js";
import { signIn, signOut } from "./orders.js";
import * as search from "./search.js";
import * as welcome from "./welcome.js";

/** Time for which an alarm is shown, in milliseconds. */
const ALARM_MS = 60_000;

/** What the address shows: #/VIEW, or #/VIEW/KIND/ID with a selection. #/KIND/ID selects, and the view stays. */
const place = { view: "map", selection: null };
/** What can be selected. */
const KINDS = ["switch", "host", "link", "circuit", "reservation"];

function readAddress() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (!KINDS.includes(parts[0])) {
    const [name] = parts.splice(0, 1);
    place.view = lists.views.some(([view]) => view === name) ? name : "map";
  }
  const [kind, id] = parts;
  place.selection = KINDS.includes(kind) && id ? { kind, id } : null;
  draw();
}

/** The address of a view, with what is selected. */
function address(view, selection) {
  return selection ? `#/${view}/${selection.kind}/${encodeURIComponent(selection.id)}` : `#/${view}`;
}

function select(selection) {
  location.hash = address(place.view, selection);
}

function draw() {
  drawHeader();
  byId("map-view").hidden = place.view !== "map";
  byId("list-view").hidden = place.view === "map";
  if (place.view === "map") drawMap();
  else lists.show(place.view, search.text());
  search.draw(place.view === "map");
  welcome.draw();
  detail.show(place.selection);
}

const drawMap = () => map.show(place.selection, search);

/** The same without any question to the controller. */
function drawRates() {
  if (place.view === "map") drawMap();
  else lists.draw(place.view, search.text());
  detail.draw();
}

/** The switches that are connected. In a cluster those of all nodes, with the number of this one. */
function switchesText({ switches: own }) {
  const all = network.cluster ? Math.max(own, network.positions.size) : own;
  const text = plural(all, "switch", "switches");
  return all > own ? `${text}, ${own} at this node` : text;
}

function drawHeader() {
  const { status } = network;
  const parts = status && [
    switchesText(status), network.away.size > 0 && `${network.away.size} not connected`,
    plural(network.links.filter((link) => !link.isLost).length, "link"),
    plural(network.hosts.length, "host"), network.cluster && `node ${network.cluster.node} of ${network.cluster.name}`,
    `up for ${seconds(status.uptime_seconds)}`, `version ${status.version}`,
  ];
  byId("summary").textContent = parts?.filter(Boolean).join(" · ") ?? "";
  // A controller that is alone has no view of a cluster.
  const views = [["map", "Map"], ...lists.views].filter(([view]) => view !== "cluster" || network.cluster);
  replace(byId("views"), views.map(([view, title]) =>
    el("a", { href: address(view, place.selection), "data-key": view, "aria-current": view === place.view && "page" }, title)));
  const isLost = network.problem !== null || network.isFollowing === false;
  const connection = byId("connection");
  connection.dataset.state = isLost ? "lost" : "open";
  say(connection, isLost ? `Not up to date: ${network.problem?.message ?? "the controller does not answer"}` : "live");
  // What is shown may be wrong then.
  document.body.classList.toggle("stale", isLost);
  byId("account").textContent = network.token ? `${network.token.name} (${network.token.scope}): sign out` : "Sign in";
  const notes = [
    network.cluster?.serving === false && "This node stands by: it hears no majority of the cluster, or has not read etcd.",
    network.leftOut > 0 && `${plural(network.leftOut, "switch", "switches")} more than the map can show.`,
    network.status && network.switches.size > 0 && linksNote(),
  ];
  say(byId("map-note"), notes.filter(Boolean).join(" "));
  drawAlarm();
}

function linksNote() {
  if (network.settled) return "";
  return looksForLinks() ? "Links are being looked for…"
    : "Links are not looked for, since no app needs them. With services: topology in the configuration the map shows them.";
}

function drawAlarm() {
  const alarm = network.events.find((event) => event.alarming);
  const isNew = alarm && Date.now() - alarm.unix_ms < ALARM_MS;
  const line = byId("alarm");
  say(line, isNew ? `⚠ ${clock(alarm.unix_ms)} ${alarm.text}` : "");
  line.hidden = !isNew;
}

onChange((what) => {
  if (what === "network") draw();
  else if (what === "rates") drawRates();
  else drawHeader();
  const dialog = byId("dialog");
  if (network.problem?.refusesToken && !dialog.open) {
    if (token.get()) signOut();
    signIn(network.problem.message);
  }
});
byId("account").addEventListener("click", () => (network.token ? signOut() : signIn()));
search.start(draw);
addEventListener("hashchange", readAddress);
// For tests, which click where something is drawn.
window.placeOf = map.placeOf;
map.start(select);
detail.start(select);
start();
readAddress();
