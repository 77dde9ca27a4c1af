// Elements. Text is only ever set as text, so that no name can become markup.

/** Makes an element. Properties that begin with "on" are handlers; others are attributes. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A button with a handler. `kind`: "main", "danger" or nothing. */
export const button = (label, onclick, kind) => el("button", { type: "button", class: kind, onclick }, label);

/** Replaces the children. The focus stays on the element that means the same. */
export function replace(parent, ...children) {
  const giveBack = rememberFocus(parent);
  parent.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
  giveBack();
}

/**
 * Remembers the element within `parent` that has the focus. The result gives the focus to the element that
 * means the same then, or to `parent` itself if there is none.
 */
export function rememberFocus(parent) {
  const element = document.activeElement;
  if (element === parent || !parent.contains(element)) return () => {};
  const key = meaning(element);
  const same = () => [...parent.querySelectorAll("a, button, input, select")].filter((other) => meaning(other) === key);
  const number = same().indexOf(element);
  return () => {
    const found = same();
    (found[number] ?? found.at(-1) ?? parent).focus({ preventScroll: true });
  };
}

/** What a link or a button stands for: its data-key, or its row in a table and its address or label. */
function meaning(element) {
  const row = element.closest("tr")?.cells[0].textContent ?? "";
  return element.dataset.key ?? [row, element.getAttribute("href") ?? element.textContent].join("\n");
}

/** Sets a text that screen readers read aloud when it changes. The same text is not read again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A table. `columns`: [title, cell of a row, class]. */
export function table(caption, columns, rows) {
  const cell = (row, [, value, kind]) => el("td", { class: kind }, value(row) ?? "");
  return el("div", { class: "scroll" }, el("table", {},
    caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map(([title, , kind]) => el("th", { scope: "col", class: kind }, title)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((column) => cell(row, column)))))));
}

/** Names with their values; those without a value are left out. */
export function definitions(pairs) {
  const known = pairs.filter(([, value]) => value != null && value !== "");
  return el("dl", {}, known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
