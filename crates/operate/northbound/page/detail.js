// Details of what is selected: a switch, a host, a link, a circuit or a reservation.

import { all, ask } from "./api.js";
import { button, byId, definitions, el, replace, say, table } from "./dom.js";
import { bytes, count, day, plural, rate, seconds, time, zone } from "./format.js";
import { countPorts, loadOf, nameOf, network, portKey, runs, standsBy, withEnds } from "./network.js";
import { block, mayOrder, release, removeStatic, reserve, setFlow, unblock } from "./orders.js";
import { hostName, isBlocked } from "./scene.js";

/** Seconds of a day, and days before the end of a certificate from which on it is warned of. */
const DAY_S = 86400;
const WARN_DAYS = 30;

/** Flows that are shown at first; each "more" shows as many again. */
const FLOW_ROWS = 50;

const panel = byId("detail");
let selected = null;
/** Of the selected switch: what is asked for when it is selected, and now and then. */
let more = nothing();
let onSelect = () => {};

function nothing() {
  return {
    ports: null, flows: null, groups: null, meters: null, statics: null, limit: FLOW_ROWS, problem: null,
    isAsked: false, isWanted: false, abort: new AbortController(),
  };
}

export function start(select) {
  onSelect = select;
  panel.addEventListener("keydown", ({ key }) => key === "Escape" && onSelect(null));
}

/** Shows what is selected, or nothing. */
export function show(selection) {
  const isOther = selection?.kind !== selected?.kind || selection?.id !== selected?.id;
  selected = selection;
  if (isOther) {
    more.abort.abort();
    more = nothing();
    panel.scrollTop = 0;
  }
  draw();
  if (selection?.kind === "switch" && !more.isAsked && network.switches.has(selection.id)) askMore(selection.id);
}

/**
 * Asks one question after another: a browser has six connections to the controller, and a switch that hangs
 * must not take those that the map needs.
 */
async function askMore(dpid) {
  const path = `/v1/switches/${dpid}`;
  const asked = more;
  const { limit, abort: { signal } } = asked;
  Object.assign(asked, { isAsked: true, isWanted: false });
  try {
    const statics = await staticsOf(dpid, signal);
    const ports = await all(`${path}/ports`, { signal });
    const flows = await ask(`${path}/flows?limit=${limit}`, { signal });
    const groups = await partsOf(dpid, "groups", signal);
    const meters = await partsOf(dpid, "meters", signal);
    countPorts(ports);
    Object.assign(asked, { ports, flows, groups, meters, statics, problem: null });
  } catch (problem) {
    asked.problem = problem;
  }
  asked.isAsked = false;
  if (asked !== more) return;
  draw();
  if (asked.isWanted) askMore(dpid);
}

/** The groups or meters of a switch. OpenFlow 1.0 has none, and not every switch with 1.3 reports them. */
async function partsOf(dpid, kind, signal) {
  if (network.switches.get(dpid)?.version === "1.0") return [];
  try {
    return (await ask(`/v1/switches/${dpid}/${kind}?limit=1000`, { signal })).rows;
  } catch {
    return [];
  }
}

async function staticsOf(dpid, signal) {
  return runs("static") ? withEnds((await ask(`/v1/static?switch=${dpid}&limit=1000`, { signal })).rows) : null;
}

/** Draws it anew, from what is known. */
export function draw() {
  const parts = { switch: switchParts, host: hostParts, link: linkParts, circuit: circuitParts, reservation: reservationParts };
  const hadFocus = panel.contains(document.activeElement);
  panel.hidden = selected === null;
  replace(panel, ...(selected ? parts[selected.kind](selected.id) : []));
  if (hadFocus && panel.hidden) [byId("map"), byId("list-view")].find((view) => view.checkVisibility())?.focus();
  // Before the first answer of the controller, nothing is known of anything.
  if (network.status) say(byId("selected"), selected ? summary(selected) : "");
}

/** What is selected and how it is, in a line. Screen readers read it when it changes. */
function summary({ kind, id }) {
  const is = {
    switch: () => network.switches.get(id), host: () => network.hosts.find(({ mac }) => mac === id),
    link: () => network.links.find(({ key }) => key === id), circuit: () => network.circuits?.find(({ name }) => name === id),
    reservation: () => network.reservations?.find((row) => String(row.id) === id),
  }[kind]();
  if (!is && kind === "switch" && network.away.has(id)) return `Switch ${nameOf(network.away.get(id))}, not connected`;
  if (!is) return `The ${kind} ${id} is not in the network any more`;
  const at = ({ dpid, name, port }) => `${name ?? dpid} port ${port}`;
  const lies = ({ state, path: ports, why }) => `${STATES[state]?.[1] ?? state}${why ? `, ${why}` : ""}, path ${path(ports ?? [])}`;
  return {
    switch: () => `Switch ${nameOf(is)}, ${plural(is.ports.length, "port")}${is.standby ? `, ${standsBy(is)}` : ""}`,
    host: () => `Host ${hostName(is)} at ${at({ ...is, name: is.switch_name })}${isBlocked(is) ? ", in quarantine" : ""}`,
    link: () => `Link from ${at(is.a)} to ${at(is.b)}${is.isLost ? ", lost" : is.bothWays ? "" : ", one direction only"}`,
    circuit: () => `Circuit ${is.name}, ${lies(is)}`,
    reservation: () => `Reservation ${is.id} from ${is.from} to ${is.to}, ${lies(is)}`,
  }[kind]();
}

const title = (text) => el("div", { class: "title" }, el("h2", {}, text),
  byId("map-view").hidden && el("a", { href: `#/map/${selected.kind}/${encodeURIComponent(selected.id)}`, "data-key": "on-map" }, "Show on the map"),
  el("button", { type: "button", "aria-label": "Close the details", "data-key": "close", onclick: () => onSelect(null) }, "✕"));

const gone = (what) => [title(what), el("p", { class: "bad" }, "It is not in the network any more.")];

const notConnected = (row) => [
  title(nameOf(row)), el("p", { class: "bad" }, "It is not connected."), definitions([["Datapath id", el("code", {}, row.dpid)]]),
];

const orders = (...buttons) => mayOrder() && el("div", { class: "buttons" }, buttons);

/** A button that selects something else. */
const go = (kind, id, text) => el("a", { href: `#/${kind}/${encodeURIComponent(id)}` }, text);

const STATES = {
  up: ["good", "up"], installed: ["good", "installed"],
  link_down: ["bad", "link down"], admin_down: ["quiet", "admin down"], blocked: ["warm", "blocked"], learning: ["warm", "learning"],
  installing: ["warm", "being installed"], pending: ["warm", "being installed"], waiting: ["warm", "waits"],
  down: ["bad", "down"], lost: ["bad", "lost"], refused: ["bad", "refused"], not_kept: ["bad", "not kept"], unknown: ["warm", "unknown"],
};

/** A state as a word with a colour. */
export function state(word) {
  const [kind, text] = STATES[word] ?? ["", word];
  return el("span", { class: kind }, text);
}

/** A cell of two lines. */
const stacked = (text, below) => el("span", {}, text, el("br"), el("span", { class: "quiet" }, below));

/** A text without blanks, which may be broken behind its signs. */
const code = (text) => el("span", {}, text.split(/(?<=[,:=>])/).flatMap((part, index) => (index ? [el("wbr"), part] : [part])));

function switchParts(dpid) {
  const row = network.switches.get(dpid);
  if (!row) return network.away.has(dpid) ? notConnected(network.away.get(dpid)) : gone(dpid);
  return [
    title(nameOf(row)),
    runs("static") && orders(button("Set a static flow", () => setFlow(row.dpid))),
    definitions([
      ["Datapath id", el("code", {}, row.dpid)], ["OpenFlow", row.version], ["Role", row.standby ? `${row.role} (${standsBy(row)})` : row.role],
      ["Address", row.peer], ["Up for", seconds(row.up_seconds)], ["Packet-ins", count(row.packet_ins)],
      ["Tables", count(row.n_tables)], ...identity(row.identity),
      ["Made by", [row.manufacturer, row.hardware].filter(Boolean).join(", ")], ["Software", row.software],
      ["Serial number", row.serial_number], ["Calls itself", row.description],
    ]),
    row.refused_flows.map(({ flow, reason }) => el("p", { class: "bad" }, `The switch refuses ${flow}: ${reason}`)),
    row.missing_entries.map(({ app, reason }) => el("p", { class: "bad" }, `Entries of ${app} are missing: ${reason}`)),
    more.problem && el("p", { class: "bad" }, more.problem.message),
    el("h3", {}, "Ports"),
    ports(row),
    el("h3", {}, "Flows"),
    flows(),
    more.groups?.length ? [el("h3", {}, "Groups"), groups()] : null,
    more.meters?.length ? [el("h3", {}, "Meters"), meters()] : null,
    more.statics?.length ? [el("h3", {}, "Static groups, meters and flows"), staticTable(more.statics, true)] : null,
  ].flat();
}

/** The certificate of a switch, and the session of its connection. */
function identity(shown) {
  if (!shown) return [["Certificate", "none: the connection is plain"]];
  const left = (shown.expiry - Date.now() / 1000) / DAY_S;
  const state = left < 0 ? "bad" : left < WARN_DAYS ? "warm" : "good";
  const note = left < 0 ? " (expired)" : left < WARN_DAYS ? ` (in ${plural(Math.floor(left), "day")})` : "";
  return [
    ["Certificate", shown.name || "without a name"],
    ["It ends", el("span", { class: state }, `${day(shown.expiry)}${note}`)],
    ["It names", shown.dpids.join(", ")], ["Its key", el("code", {}, shown.key)],
    ["TLS", `${shown.protocol}, ${shown.cipher}`],
  ];
}

function ports(row) {
  const counted = new Map((more.ports ?? []).map((port) => [port.port, port]));
  const rateOf = (port, way) => network.rates.get(portKey(row.dpid, port))?.[way];
  const counters = ({ port }) => counted.get(port)?.counters;
  const traffic = (port, way) => stacked(rate(rateOf(port.port, way)), bytes(counters(port)?.[`${way}_bytes`]));
  return table("Rates, and bytes since the switch started", [
    ["Port", ({ port, name }) => stacked(port, name), "nowrap"],
    ["State", (port) => state(port.state)],
    ["In", (port) => traffic(port, "rx"), "number"],
    ["Out", (port) => traffic(port, "tx"), "number"],
    ["Dropped, errors", (port) => troubles(counters(port)), "number"],
    ["Packet-ins", packetIns, "number"],
  ], [...row.ports].sort(byNumber));
}

/** Ports by number, and those with a name instead behind them. */
const byNumber = (a, b) => (Number(a.port) || Infinity) - (Number(b.port) || Infinity) || 0;

/** Packet-ins of a port, and below it those that were dropped. */
function packetIns({ packet_ins, packet_ins_dropped }) {
  const dropped = packet_ins_dropped ? el("span", { class: "warm" }, `${count(packet_ins_dropped)} dropped`) : "";
  return el("span", {}, count(packet_ins), el("br"), dropped);
}

/** The sum of what went wrong at a port. */
function troubles(counters) {
  if (!counters) return "–";
  const { rx_dropped, tx_dropped, rx_errors, tx_errors } = counters;
  const sum = [rx_dropped, tx_dropped, rx_errors, tx_errors].reduce((sum, value) => sum + (value ?? 0), 0);
  return sum ? el("span", { class: "warm" }, count(sum)) : "0";
}

function flows() {
  if (!more.flows) return el("p", { class: "quiet" }, more.problem ? "" : "The switch is asked…");
  const { rows, total } = more.flows;
  const showMore = () => {
    more.limit += FLOW_ROWS;
    if (more.isAsked) more.isWanted = true;
    else askMore(selected.id);
  };
  return el("div", {},
    table(plural(total, "flow"), [
      ["Owner; table, priority", ({ app, table, priority }) =>
        stacked(app ?? el("span", { class: "warm" }, "foreign"), `${table}, ${priority}`)],
      ["Match", ({ match }) => code(match), "code"],
      ["Actions", ({ actions }) => code(actions), "code"],
      ["Packets", ({ packets }) => count(packets), "number"],
    ], rows),
    total > rows.length && el("p", {}, el("button", { type: "button", "data-key": "more", onclick: showMore }, "Show more")));
}

const lines = (texts) => el("span", {}, texts.flatMap((text, index) => (index ? [el("br"), code(text)] : [code(text)])));

function groups() {
  return table("", [
    ["Group", ({ group, type }) => `${group}, ${type}`, "nowrap"],
    ["Buckets", ({ buckets }) => lines(buckets), "code"],
    ["Used by", ({ used_by }) => count(used_by), "number"],
    ["Packets", ({ packets }) => count(packets), "number"],
  ], more.groups);
}

function meters() {
  return table("", [
    ["Meter", ({ meter }) => String(meter), "nowrap"],
    ["Bands", ({ bands, flags }) => lines([flags, ...bands]), "code"],
    ["Used by", ({ used_by }) => count(used_by), "number"],
    ["Packets", ({ packets }) => count(packets), "number"],
  ], more.meters);
}

/** Static entries, with what may be done to them. `isOfSwitch`: all are of the switch that is shown. */
export function staticTable(rows, isOfSwitch = false) {
  const what = ({ flow, group, meter }) =>
    flow ? `flow, table ${flow.table}, ${flow.match} → ${flow.actions}`
      : group ? `group ${group.id} (${group.type}), ${plural(group.buckets.length, "bucket")}`
        : `meter ${meter.id}, ${plural(meter.bands.length, "band")}`;
  const ends = ({ ttl_seconds }) => (ttl_seconds == null ? "never ends" : `ends in ${seconds(ttl_seconds)}`);
  const buttons = (row) => mayOrder() && [row.flow && button("Change", () => setFlow("", row)), " ", button("Remove", () => removeStatic(row))].filter(Boolean);
  return table("", [
    ["Name, owner", ({ name, owner }) => stacked(name, owner), "text"],
    isOfSwitch ? null : ["Switch", (row) => go("switch", row.dpid, row.switch_name ?? row.dpid)],
    ["Entry", (row) => code(what(row)), "code"],
    ["State, end", (row) => [state(row.state), row.why ? ` ${row.why}` : "", el("br"), el("span", { class: "quiet" }, ends(row))]],
    ["", buttons],
  ].filter(Boolean).map(([name, value, kind]) => [name, (row) => wrap(value(row)), kind]), rows);
}

const wrap = (value) => (Array.isArray(value) ? el("span", {}, value) : value || "");

function hostParts(mac) {
  const host = network.hosts.find((host) => host.mac === mac);
  if (!host) return gone(mac);
  const where = network.switches.get(host.dpid);
  const eventsOfIt = network.events.filter(({ text }) => text.includes(mac)).slice(0, 10);
  return [
    title(hostName(host)),
    isBlocked(host) && el("p", { class: "bad" }, "It is in quarantine."),
    orders(
      runs("quarantine") && (isBlocked(host) ? button("Let back", () => unblock(blockedAs(host))) : button("Quarantine", () => block(mac), "danger")),
      runs("bandwidth") && button("Reserve bandwidth", () => reserve(host.addresses[0] ?? mac))),
    definitions([
      ["Ethernet address", el("code", {}, mac)], ["IP addresses", host.addresses.join(", ")], ["VLAN", host.vlan],
      ["Switch", go("switch", host.dpid, where ? nameOf(where) : host.dpid)], ["Port", host.port],
      ["Seen", host.age_seconds == null ? null : `${seconds(host.age_seconds)} ago`], ["Known to", host.apps.join(", ")],
    ]),
    host.flapping && el("p", { class: "warm" }, "It changes between ports quickly, which looks like a loop."),
    host.guessed && el("p", { class: "warm" }, "It is seen at several ports; its own one is a guess."),
    eventsOfIt.length > 0 && [el("h3", {}, "Events"), eventTable(eventsOfIt)],
  ].flat();
}

/** The row of the quarantine that blocks a host. */
function blockedAs(host) {
  const names = [host.mac, host.name, ...host.addresses];
  return network.blocked.find((row) => names.includes(row.host) || (row.name && row.name === host.name)).host;
}

export const eventTable = (rows) => table("", [
  [`Time (${zone()})`, ({ unix_ms }) => time(unix_ms), "nowrap"],
  ["Event", ({ event, alarming }) => el("span", { class: alarming ? "bad" : "" }, `${alarming ? "⚠ " : ""}${event}`)],
  ["", ({ text }) => text, "text"],
], rows);

function linkParts(key) {
  const link = network.links.find((link) => link.key === key);
  if (!link) return gone("Link");
  const end = ({ dpid, name, port }) => el("span", {}, go("switch", dpid, name ?? dpid), ` port ${port}`);
  const load = ({ dpid, port }) => rate(network.rates.get(portKey(dpid, port))?.tx);
  const largest = loadOf(link);
  return [
    title("Link"),
    link.isLost && el("p", { class: "bad" }, "It is lost."),
    !link.isLost && !link.bothWays && el("p", { class: "warm" }, "Only one direction works."),
    definitions([
      ["From", end(link.a)], ["To", end(link.b)], ["Rate", link.kbps == null ? "not known" : rate(1000 * link.kbps)],
      ["Load from", load(link.a)], ["Load to", load(link.b)],
      ["Used", largest !== null && link.kbps ? `${((100 * largest) / (1000 * link.kbps)).toFixed(1)} %` : null],
      ["Up for", link.isLost ? null : seconds(link.upSeconds)],
    ]),
  ];
}

/** A path as switches and ports. */
const path = (ports) => (ports.length ? ports.join(" → ") : "none");

function circuitParts(name) {
  const row = network.circuits?.find((row) => row.name === name);
  if (!row) return gone(name);
  return [
    title(`Circuit ${row.name}`),
    row.why && el("p", { class: "bad" }, row.why),
    definitions([
      ["State", state(row.state)], ["Between", row.endpoints.join(", ")], ["Path", el("span", { id: "path" }, path(row.path))],
      ["Links without a detour", row.bare_links],
    ]),
  ];
}

function reservationParts(id) {
  const row = network.reservations?.find((row) => String(row.id) === id);
  if (!row) return gone(`Reservation ${id}`);
  return [
    title(`Reservation ${row.id}`),
    row.why && el("p", { class: "bad" }, row.why),
    orders(button("Release", () => release(row), "danger")),
    definitions([
      ["State", state(row.state)], ["From", row.from], ["To", row.to], ["Rate", rate(1000 * row.rate_kbps)],
      ["Queue", row.queue], ["Path", el("span", { id: "path" }, path(row.path))],
    ]),
  ];
}
