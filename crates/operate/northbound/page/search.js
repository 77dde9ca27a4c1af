// The search field: what a text finds, and the list of it under the field.

import { byId, el, replace, say } from "./dom.js";
import { nameOf, network } from "./network.js";
import { hostName } from "./scene.js";

/** Results in the list. */
const MAX_RESULTS = 8;

const field = byId("search");
const list = byId("results");

/** What is in the field, in small letters. */
export const text = () => field.value.trim().toLowerCase();

const has = (texts) => texts.some((value) => value != null && String(value).toLowerCase().includes(text()));

/** Whether the search finds a switch: by its name, its datapath id, its address or its description. */
export const findsSwitch = (row) => text() !== "" && has([row.name, row.dpid, row.peer, row.description]);

/** Whether the search finds a host: by its name or any of its addresses. */
export const findsHost = (host) => text() !== "" && has([host.name, host.mac, ...host.addresses]);

/** What the search finds, as links: [address, what it is]. */
function results() {
  const switches = [...network.switches.values(), ...network.away.values()].filter(findsSwitch)
    .map((row) => [`#/switch/${row.dpid}`, `Switch ${nameOf(row)}`]);
  const hosts = network.hosts.filter(findsHost)
    .map((host) => [`#/host/${encodeURIComponent(host.mac)}`, `Host ${hostName(host)}, ${host.mac}`]);
  return [...switches, ...hosts];
}

/** Shows the list on the map. The tables show what is found in their own rows. */
export function draw(isOnMap) {
  const isShown = isOnMap && text() !== "";
  list.hidden = !isShown;
  const found = isShown ? results() : [];
  const more = found.length - MAX_RESULTS;
  replace(list, found.slice(0, MAX_RESULTS).map(([href, label]) => el("li", {}, el("a", { href }, label))),
    isShown && !found.length && el("li", {}, "Nothing is found."), more > 0 && el("li", { class: "quiet" }, `and ${more} more`));
  say(byId("found"), isShown ? `${found.length} found` : "");
}

/** Begins to listen. `onInput` is called when the text changes. */
export function start(onInput) {
  field.addEventListener("input", onInput);
  field.addEventListener("keydown", ({ key }) => {
    const first = list.querySelector("a");
    if (key === "Enter" && first) location.hash = first.getAttribute("href");
  });
}
