// What is shown while no switch is known: where switches connect, with the commands to copy.

import { button, byId, el, replace } from "./dom.js";
import { network } from "./network.js";

/** Time for which a button says that it has copied, in milliseconds. */
const COPIED_MS = 2000;

const section = byId("welcome");

/** The address for switches: one that stands for all addresses is replaced by the one of this page. */
function reachable(listen) {
  const [, host, port] = listen.match(/^(.*):(\d+)$/) ?? [, listen, ""];
  return ["0.0.0.0", "[::]"].includes(host) ? `${location.hostname}:${port}` : listen;
}

/** What an operator may run, with what it does. */
function commands({ listen, listen_tls }) {
  const addresses = [...listen.map((at) => ["tcp", reachable(at)]), ...listen_tls.map((at) => ["ssl", reachable(at)])];
  const bridges = addresses.map(([protocol, at]) => ["Connect a bridge of Open vSwitch:", `ovs-vsctl set-controller br0 ${protocol}:${at}`]);
  const plain = addresses.find(([protocol]) => protocol === "tcp");
  return plain ? [...bridges, ["Or emulate a network on this machine:", `bellrock emulate --controller ${plain[1]}`]] : bridges;
}

async function copy(command, { target }) {
  // Only pages by TLS and of this machine may write to the clipboard; on others the text is marked.
  const done = await navigator.clipboard?.writeText(command).then(() => true, () => false);
  if (!done) getSelection().selectAllChildren(target.previousElementSibling);
  target.textContent = done ? "Copied" : "Marked";
  setTimeout(() => (target.textContent = "Copy"), COPIED_MS);
}

/** Shows it, or hides it as soon as there is a switch. */
export function draw() {
  const { status } = network;
  const isShown = Boolean(status) && network.switches.size === 0 && network.away.size === 0 && network.positions.size === 0;
  if (section.hidden === !isShown) return;
  section.hidden = !isShown;
  replace(section, isShown && [
    el("h2", {}, "No switch is connected"),
    el("p", {}, `Switches connect to ${[...status.listen, ...status.listen_tls].join(", ")}.`),
    commands(status).map(([what, command]) => [
      el("p", {}, what),
      el("p", { class: "command" }, el("code", {}, command), button("Copy", (event) => copy(command, event))),
    ]),
  ].flat(2));
}
