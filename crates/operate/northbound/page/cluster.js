// The cluster: its nodes and their etcd, and the masters of its switches.

import { all } from "./api.js";
import { button, el, table } from "./dom.js";
import { count, plural } from "./format.js";
import { look, nameOf, network } from "./network.js";
import { balance, drain, mayOrder, move } from "./orders.js";

const NODE_STATES = {
  serving: ["good", "serving"], draining: ["warm", "draining"], no_majority: ["bad", "no majority"], dead: ["bad", "dead"],
  unknown: ["warm", "unknown"],
};

const ROLES = { away: ["warm", "not connected"], standby: ["", "standby"], claiming: ["warm", "claiming"], master: ["good", "master"] };

const word = (words, name) => {
  const [kind, text] = words[name] ?? ["warm", name];
  return el("span", { class: kind }, text);
};

const milliseconds = (value) => (value == null ? "" : `${count(value)} ms`);

/** The switches, with their masters. Without a cluster the controller says so. */
export function load() {
  if (!network.wantsCluster) {
    network.wantsCluster = true;
    look(0);
  }
  return all("/v1/cluster/switches");
}

export const columns = [
  ["Switch", (row) => el("a", { href: `#/switch/${row.dpid}` }, nameOf(row))],
  ["Obeys", ({ obeys }) => obeys ?? el("span", { class: "bad" }, "none")],
  ["By order", ({ placed }) => placed && "yes"],
  ["This node", ({ role }) => word(ROLES, role)],
  ["Order of masters", ({ masters }) => masters.join(", ")],
  ["Epoch", ({ epoch }) => count(epoch), "number"],
  ["", (row) => mayOrder() && row.role === "master" && button("Move", () => move(row))],
];

/** What is above the switches. */
export function before() {
  const { cluster } = network;
  if (!cluster) return [];
  const { nodes, store, requests, serving } = cluster;
  return [
    !serving && el("p", { class: "bad" }, "This node is master of no switch: it hears no majority, or has not read etcd."),
    table(`Nodes of ${cluster.name}, as ${cluster.node} sees them`, [
      ["Node", ({ name }) => (name === cluster.node ? `${name} (this one)` : name)],
      ["State", ({ state }) => word(NODE_STATES, state)],
      ["Address", ({ address }) => address, "code"],
      ["Last heard", ({ last_heard_ms }) => milliseconds(last_heard_ms), "number"],
      ["Switches", ({ switches }) => count(switches), "number"],
      ["By order", ({ placed }) => count(placed), "number"],
    ], nodes),
    el("p", { class: store.reachable ? "" : "bad" }, storeText(store)),
    el("p", {}, requestsText(requests)),
  ];
}

function storeText({ reachable, revision, last_heard_ms, last_error }) {
  const heard = last_heard_ms == null ? "never heard" : `last heard ${milliseconds(last_heard_ms)} ago`;
  const known = revision == null ? "nothing was read yet" : `all is known up to revision ${count(revision)}`;
  return `etcd ${reachable ? "answers" : "does not answer"}; ${heard}; ${known}${last_error ? `. Latest error: ${last_error}` : ""}`;
}

function requestsText({ sent, answered, not_sent, unknown, taken, refused }) {
  return `${plural(sent, "request")} to other nodes: ${count(answered)} answered, ${count(not_sent)} not sent, ${count(unknown)} unknown. `
    + `${count(taken)} of other nodes: ${count(refused)} refused.`;
}

/** Orders to this node, and to all nodes. */
export function buttons() {
  const own = network.cluster?.nodes.find(({ name }) => name === network.cluster.node);
  if (!own) return [];
  return [
    button("Balance", () => balance()),
    own.state === "draining" ? button("Take switches again", () => drain(false), "main") : button("Drain this node", () => drain(true), "danger"),
  ];
}
