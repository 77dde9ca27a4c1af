// What the page knows of the network: asked for when something happens, and every few seconds.

import { all, ask, follow } from "./api.js";

/** Time between two looks at all, in milliseconds. */
const LOOK_MS = 5000;

/** Time in which further events are waited for before a look, in milliseconds. */
const GATHER_MS = 100;

/** Maximum number of ports whose counters are asked for at each look. */
const MAX_COUNTED_PORTS = 2000;

/** Maximum number of events that are kept. */
const MAX_EVENTS = 500;

/** Maximum number of switches that are remembered after they have gone. */
const MAX_AWAY = 1000;

/** Distance of a lost switch from others below which it moves aside, in links. */
const MIN_DISTANCE = 0.5;

/** Distance between switches without a place, so that the names of their hosts fit, in links. */
const APART = 1.6;

/** Time after which a connected switch is in the topology, if there is discovery, in seconds. */
const DISCOVERED_S = 3;

export const network = {
  status: null,
  token: null,
  settled: false,
  /** By datapath id. */
  switches: new Map(),
  /** Without directions: { key, a: {dpid, name, port}, b, kbps, isLost, bothWays }. */
  links: [],
  hosts: [],
  /** By datapath id: { x, y }, in links. */
  positions: new Map(),
  size: { width: 0, height: 0 },
  leftOut: 0,
  /** Whether the controller names switches in its topology, which it does where discovery runs. */
  isDiscovered: false,
  /** Switches that are not connected any more, or that the configuration names, by datapath id: { dpid, name }. */
  away: new Map(),
  blocked: null,
  reservations: null,
  circuits: null,
  /** The cluster, as the node sees it that served this page. */
  cluster: null,
  /** Whether the controller has said that it is not in a cluster. */
  isAlone: false,
  /** Whether the view of the cluster was opened. */
  wantsCluster: false,
  /** The newest first. */
  events: [],
  /** Bits per second of a port: by "DPID PORT". */
  rates: new Map(),
  problem: null,
};

const listeners = new Set();
let counted = new Map();
let isBusy = false;
let isCounting = false;
let isWanted = false;
let timer = null;

/** Calls `listener` after each change, with what has changed: "network", "rates", "event" or "connection". */
export function onChange(listener) {
  listeners.add(listener);
}

const tell = (what) => listeners.forEach((listener) => listener(what));

/** How a switch is called: by its name, or by its datapath id. */
export const nameOf = (row) => row.name ?? row.dpid;

/** The same where there is little space: without most of the leading zeros. */
export const shortNameOf = (row) => row.name ?? row.dpid.replace(/^0{4,12}/, "…");

export const portKey = (dpid, port) => `${dpid} ${port}`;

/** Looks again soon. Several calls make one look. */
export function look(delay = GATHER_MS) {
  isWanted = true;
  clearTimeout(timer);
  timer = setTimeout(run, delay);
}

async function run() {
  if (isBusy) return;
  isBusy = true;
  isWanted = false;
  try {
    await refresh();
    network.problem = null;
  } catch (problem) {
    network.problem = problem;
  }
  isBusy = false;
  tell("network");
  count();
  look(isWanted ? GATHER_MS : LOOK_MS);
}

async function refresh() {
  const [status, token, topology, layout, switches, hosts] = await Promise.all([
    ask("/v1/status"), ask("/v1/token"), ask("/v1/topology"), ask("/v1/topology/layout"),
    all("/v1/switches"), all("/v1/hosts"),
  ]);
  network.status = status;
  const [blocked, reservations, circuits, cluster] = await Promise.all([
    allOf("quarantine", "/v1/quarantine"), allOf("bandwidth", "/v1/reservations"), allOf("provisioning", "/v1/circuits"),
    clusterStatus(switches),
  ]);
  Object.assign(network, { token, hosts, blocked, reservations, circuits, cluster });
  network.settled = topology.settled;
  network.isDiscovered = topology.switches.length > 0;
  network.away = awayFrom(switches, topology.switches);
  network.switches = new Map(switches.map((row) => [row.dpid, row]));
  place(layout);
  network.leftOut = layout.left_out;
  network.links = merged(topology.links);
}

/**
 * Takes the places of the controller. A lost switch stays where it was, if there is room. Other switches without a
 * place, since nobody looks for links, lie in rows below.
 */
function place({ switches, width, height }) {
  const positions = new Map(switches.map(({ dpid, x, y }) => [dpid, { x, y }]));
  const isFree = ({ x, y }) => [...positions.values()].every((at) => Math.hypot(at.x - x, at.y - y) >= MIN_DISTANCE);
  for (const dpid of network.away.keys()) {
    const before = network.positions.get(dpid);
    if (before && isFree(before)) positions.set(dpid, before);
  }
  const others = [...network.switches.keys(), ...network.away.keys()].filter((dpid) => !positions.has(dpid)).sort();
  const columns = Math.max(Math.ceil(Math.sqrt(2 * others.length)), Math.floor(width / APART) + 1);
  const below = positions.size ? height + 1 : 0;
  others.forEach((dpid, number) => positions.set(dpid, { x: APART * (number % columns), y: below + APART * Math.floor(number / columns) }));
  const far = (axis) => [...positions.values()].reduce((most, at) => Math.max(most, at[axis]), 0);
  network.positions = positions;
  network.size = { width: Math.max(width, far("x")), height: Math.max(height, far("y")) };
}

/** The switches that were there before, or that are named and were not yet, without those of now. */
function awayFrom(switches, inTopology) {
  const here = new Set([...switches, ...inTopology].map(({ dpid }) => dpid));
  const known = [...network.away.values(), ...network.switches.values(), ...network.status.missing_switches];
  const away = known.filter(({ dpid }) => !here.has(dpid)).map(({ dpid, name }) => [dpid, { dpid, name }]);
  return new Map([...new Map(away)].slice(-MAX_AWAY));
}

/** Whether anything in the controller looks for links. */
export const looksForLinks = () =>
  network.isDiscovered || [...network.switches.values()].every(({ up_seconds }) => up_seconds < DISCOVERED_S);

/**
 * The cluster, or null: the controller is alone, and stays so. It is not asked without a sign of a cluster: its
 * refusal would be an error in the browser's console.
 */
async function clusterStatus(switches) {
  const isSeen = network.wantsCluster || network.cluster || switches.some(({ master }) => master);
  if (network.isAlone || !isSeen) return null;
  try {
    return await ask("/v1/cluster");
  } catch (problem) {
    if (problem.type !== "urn:bellrock:no_cluster") throw problem;
    network.isAlone = true;
    return null;
  }
}

/** What the controller is at a switch where it stands by. */
export const standsBy = ({ master }) => (master ? `stands by for ${master}` : "stands by");

/** Whether an app is in the chain. */
export const runs = (app) => network.status?.apps.includes(app) ?? false;

/** Rows of static entries, with the time at which they end. */
export const withEnds = (rows) =>
  rows.map((row) => ({ ...row, endsAtMs: row.ttl_seconds == null ? null : Date.now() + 1000 * row.ttl_seconds }));

/** All rows of an app's list, or null if it does not run. */
export const allOf = async (app, path) => (runs(app) ? all(path) : null);

/** Both directions of a link as one. Links that went away stay as lost ones while their switches are known. */
function merged(rows) {
  const links = new Map();
  for (const row of rows) {
    const from = { dpid: row.from_dpid, name: row.from_name, port: row.from_port };
    const to = { dpid: row.to_dpid, name: row.to_name, port: row.to_port };
    const [a, b] = portKey(from.dpid, from.port) < portKey(to.dpid, to.port) ? [from, to] : [to, from];
    const key = `${portKey(a.dpid, a.port)} ${portKey(b.dpid, b.port)}`;
    links.set(key, { key, a, b, kbps: row.rate_kbps, bothWays: row.both_ways, upSeconds: row.up_seconds, isLost: false });
  }
  const taken = new Set([...links.values()].flatMap(({ a, b }) => [portKey(a.dpid, a.port), portKey(b.dpid, b.port)]));
  const isKnown = (dpid) => network.switches.has(dpid) || network.away.has(dpid) || network.positions.has(dpid);
  for (const link of network.links) {
    const ends = [link.a, link.b];
    const isFree = ends.every(({ dpid, port }) => isKnown(dpid) && !taken.has(portKey(dpid, port)));
    if (isFree && !links.has(link.key)) links.set(link.key, { ...link, isLost: true });
  }
  return [...links.values()];
}

/**
 * Asks for the counters of the ports, if they are not too many, and reckons their rates. No look waits for
 * them: the controller asks the switches, and one that hangs takes seconds.
 */
async function count() {
  const ports = [...network.switches.values()].reduce((sum, row) => sum + row.ports.length, 0);
  if (isCounting || ports > MAX_COUNTED_PORTS || document.hidden) return;
  isCounting = true;
  try {
    countPorts(await all("/v1/ports"));
  } catch {
    // Unknown is better than old.
    network.rates.clear();
  }
  isCounting = false;
  tell("rates");
}

/** Takes counters of ports, whose differences are the rates. */
export function countPorts(rows) {
  const now = performance.now();
  for (const { dpid, port, counters } of rows) {
    if (!counters) continue;
    const key = portKey(dpid, port);
    const before = counted.get(key);
    if (before && now - before.now < 500) continue;
    counted.set(key, { now, rx: counters.rx_bytes, tx: counters.tx_bytes });
    if (!before) continue;
    const bits = (name) => Math.max(0, (8000 * (counters[`${name}_bytes`] - before[name])) / (now - before.now));
    network.rates.set(key, { rx: bits("rx"), tx: bits("tx") });
  }
}

/** The larger of a link's rates in its two directions, in bits per second, or null. */
export function loadOf({ a, b }) {
  const rates = [a, b].map(({ dpid, port }) => network.rates.get(portKey(dpid, port))?.tx);
  const known = rates.filter((rate) => rate !== undefined);
  return known.length ? Math.max(...known) : null;
}

/** Begins to look and to follow the events. */
export async function start() {
  look(0);
  document.addEventListener("visibilitychange", () => document.hidden || look());
  follow(
    (kind, data) => {
      if (kind === "event") {
        network.events.unshift(data);
        network.events.length = Math.min(network.events.length, MAX_EVENTS);
      } else {
        loadEvents();
      }
      tell("event");
      look();
    },
    (isOpen, problem) => {
      network.isFollowing = isOpen;
      if (problem?.refusesToken) network.problem = problem;
      tell("connection");
      if (isOpen) loadEvents().then(() => look());
    },
  );
}

/** The events that were before the stream. */
async function loadEvents() {
  const page = await ask(`/v1/events?limit=${MAX_EVENTS}`);
  network.events = page.rows.reverse();
  tell("network");
}
