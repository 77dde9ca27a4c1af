// Puts the page together: the address chooses what is shown, and what happens in the network redraws it.

import { token } from "./api.js";
import { byId, el, replace, say } from "./dom.js";
import { clock, plural, seconds } from "./format.js";
import * as detail from "./detail.js";
import * as lists from "./lists.js";
import * as map from "./map.js";
import { network, onChange, start } from "./network.js";
import { signIn, signOut } from "./orders.js";

/** Time for which an alarm is shown, in milliseconds. */
const ALARM_MS = 60_000;

/** What the address shows: #/VIEW, or #/KIND/ID for a selection on the map. */
const place = { view: "map", selection: null };
/** The view that stays when something is selected. */
const KINDS = ["switch", "host", "link", "circuit", "reservation"];

function readAddress() {
  const [name = "map", id] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (KINDS.includes(name) && id) {
    place.selection = { kind: name, id };
    if (!place.view) place.view = "map";
  } else {
    place.view = lists.views.some(([view]) => view === name) ? name : "map";
    place.selection = null;
  }
  draw();
}

function select(selection) {
  location.hash = selection ? `#/${selection.kind}/${encodeURIComponent(selection.id)}` : `#/${place.view}`;
}

const search = () => byId("search").value.trim().toLowerCase();

function draw() {
  drawHeader();
  byId("map-view").hidden = place.view !== "map";
  byId("list-view").hidden = place.view === "map";
  if (place.view === "map") drawMap();
  else lists.show(place.view, search());
  detail.show(place.selection);
}

function drawMap() {
  const text = search();
  map.show(place.selection, text ? (name) => name.toLowerCase().includes(text) : undefined);
}

/** The same without any question to the controller. */
function drawRates() {
  if (place.view === "map") drawMap();
  else lists.draw(place.view, search());
  detail.draw();
}

function drawHeader() {
  const { status } = network;
  const parts = status && [
    plural(status.switches, "switch", "switches"), plural(network.links.filter((link) => !link.isLost).length, "link"),
    plural(network.hosts.length, "host"), network.cluster && `node ${network.cluster.node} of ${network.cluster.name}`,
    `up for ${seconds(status.uptime_seconds)}`, `version ${status.version}`,
  ];
  byId("summary").textContent = parts?.filter(Boolean).join(" · ") ?? "";
  // A controller that is alone has no view of a cluster.
  const views = [["map", "Map"], ...lists.views].filter(([view]) => view !== "cluster" || network.cluster);
  replace(byId("views"), views.map(([view, title]) =>
    el("a", { href: `#/${view}`, "data-key": view, "aria-current": view === place.view && "page" }, title)));
  const isLost = network.problem !== null || network.isFollowing === false;
  const connection = byId("connection");
  connection.dataset.state = isLost ? "lost" : "open";
  say(connection, isLost ? `Not up to date: ${network.problem?.message ?? "the controller does not answer"}` : "live");
  byId("account").textContent = network.token ? `${network.token.name} (${network.token.scope}): sign out` : "Sign in";
  const notes = [
    network.status && network.switches.size === 0 && "No switch is connected.",
    network.cluster?.serving === false && "This node stands by: it hears no majority of the cluster, or has not read etcd.",
    network.leftOut > 0 && `${plural(network.leftOut, "switch", "switches")} more than the map can show.`,
    network.status && !network.settled && network.switches.size > 0 && "Links are being looked for…",
  ];
  say(byId("map-note"), notes.filter(Boolean).join(" "));
  drawAlarm();
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
byId("search").addEventListener("input", draw);
addEventListener("hashchange", readAddress);
// For tests, which click where something is drawn.
window.placeOf = map.placeOf;
map.start(select);
detail.start(select);
start();
readAddress();
