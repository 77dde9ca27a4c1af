// What there is to draw: switches, hosts and links with their places, in links' lengths.

import { loadOf, nameOf, network, portKey, shortNameOf } from "./network.js";

/** Distance of a host from its switch. */
const HOST_DISTANCE = 0.42;

/** Hosts that are drawn at a switch. Further ones are a number. */
const MAX_HOSTS_AT_SWITCH = 12;

/** Angle between two hosts, at most. */
const HOST_ANGLE = Math.PI / 5;

/** The name or the address of a host. */
export const hostName = (host) => host.name ?? host.addresses[0] ?? host.mac;

/** Whether a list of the blocked hosts has this one. A prefix is compared by the controller only. */
export function isBlocked(host) {
  return (network.blocked ?? []).some((row) => [host.mac, host.name, ...host.addresses].some(
    (is) => is != null && (is === row.host || is === row.name)));
}

/** The ports that carry a reservation or a circuit: "DPID PORT" each. */
function carriers(selection) {
  const rows = { reservation: network.reservations, circuit: network.circuits }[selection?.kind] ?? [];
  const row = rows?.find((row) => String(row.id ?? row.name) === selection.id);
  const dpids = new Map([...network.switches.values()].map((row) => [nameOf(row), row.dpid]));
  const key = (text) => {
    const colon = text.lastIndexOf(":");
    const name = text.slice(0, colon);
    return portKey(dpids.get(name) ?? name, text.slice(colon + 1));
  };
  return new Set((row?.path ?? []).map(key));
}

/** All that is drawn. */
export function scene(selection) {
  const used = carriers(selection);
  const nodes = new Map();
  for (const [dpid, at] of network.positions) {
    const row = network.switches.get(dpid) ?? network.away.get(dpid) ?? { dpid };
    const [isLost, isAway] = [network.away.has(dpid), !network.switches.has(dpid) || (row.standby && !row.master)];
    nodes.set(dpid, { dpid, row, ...at, label: shortNameOf(row), isLost, isAway, angles: [], hosts: [], more: 0 });
  }
  const links = [];
  for (const link of network.links) {
    const [a, b] = [nodes.get(link.a.dpid), nodes.get(link.b.dpid)];
    if (!a || !b || a === b) continue;
    a.angles.push(Math.atan2(b.y - a.y, b.x - a.x));
    b.angles.push(Math.atan2(a.y - b.y, a.x - b.x));
    const load = loadOf(link);
    const carries = used.has(portKey(link.a.dpid, link.a.port)) || used.has(portKey(link.b.dpid, link.b.port));
    links.push({
      key: link.key, a, b, isLost: link.isLost, isOneWay: !link.bothWays, carries,
      share: link.kbps && load !== null ? load / (1000 * link.kbps) : 0,
    });
  }
  spread(links);
  for (const host of network.hosts) {
    const node = nodes.get(host.dpid);
    if (!node) continue;
    if (node.hosts.length < MAX_HOSTS_AT_SWITCH) node.hosts.push(host);
    else node.more += 1;
  }
  return { nodes: [...nodes.values()], links, hosts: [...nodes.values()].flatMap(placed) };
}

/** Links between the same switches lie side by side. */
function spread(links) {
  const pairs = Map.groupBy(links, ({ a, b }) => [a.dpid, b.dpid].sort().join(" "));
  for (const pair of pairs.values()) {
    pair.forEach((link, number) => (link.offset = number - (pair.length - 1) / 2));
  }
}

/** The hosts of a switch, side by side in the widest angle without links. */
function placed({ x, y, hosts, angles }) {
  const gap = widestGap(angles);
  const step = Math.min(HOST_ANGLE, gap.size / (hosts.length + 1));
  return hosts.map((host, number) => {
    const angle = gap.middle + step * (number - (hosts.length - 1) / 2);
    return {
      mac: host.mac, host, label: hostName(host), isBlocked: isBlocked(host), from: { x, y }, angle,
      x: x + HOST_DISTANCE * Math.cos(angle), y: y + HOST_DISTANCE * Math.sin(angle),
    };
  });
}

function widestGap(angles) {
  const sorted = [...angles].sort((a, b) => a - b);
  let widest = { size: 2 * Math.PI, middle: Math.PI / 2 };
  if (sorted.length) widest.size = 0;
  sorted.forEach((angle, number) => {
    const next = sorted[number + 1] ?? sorted[0] + 2 * Math.PI;
    if (next - angle > widest.size) widest = { size: next - angle, middle: (angle + next) / 2 };
  });
  return widest;
}
