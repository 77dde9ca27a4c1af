// Requests to the controller that served this page, and the stream of its events.

const TOKEN_KEY = "bellrock-token";

/** Rows of a list in one request: the maximum of the controller. */
const PAGE_ROWS = 10_000;

/** Time until a stream that ended is begun anew, in milliseconds. */
const RETRY_MS = 1000;

/** Time without a byte after which a stream counts as ended. The controller sends one each 15 s. */
const SILENCE_MS = 40_000;

/** What the controller refused (RFC 9457), of a request with this token. */
export class Problem extends Error {
  constructor(status, body, bearer) {
    super(body?.detail ?? body?.title ?? `The controller answered with status ${status}.`);
    this.status = status;
    this.type = body?.type;
    this.field = body?.field;
    this.bearer = bearer;
  }

  /** Whether the present token is refused, and not the one before the user has signed in. */
  get refusesToken() {
    return this.status === 401 && this.bearer === token.get();
  }
}

/** The token lives as long as this tab. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (text) => (text ? sessionStorage.setItem(TOKEN_KEY, text) : sessionStorage.removeItem(TOKEN_KEY)),
};

function headers(bearer, more) {
  return { ...more, ...(bearer ? { authorization: `Bearer ${bearer}` } : {}) };
}

/** Asks the controller, or gives an order. `signal` ends the request. */
export async function ask(path, { method = "GET", body, signal } = {}) {
  const bearer = token.get();
  const init = { method, signal, headers: headers(bearer, body === undefined ? {} : { "content-type": "application/json" }) };
  if (body !== undefined) init.body = JSON.stringify(body);
  const reply = await fetch(path, init);
  if (reply.status === 204) return null;
  const answer = await reply.json().catch(() => null);
  if (!reply.ok) throw new Problem(reply.status, answer, bearer);
  return answer;
}

/** All rows of a list. */
export async function all(path, options) {
  const rows = [];
  for (;;) {
    const page = await ask(`${path}?skip=${rows.length}&limit=${PAGE_ROWS}`, options);
    rows.push(...page.rows);
    if (page.rows.length === 0 || rows.length >= page.total) return rows;
  }
}

/**
 * Follows the events of the network for ever, and goes on where a stream has ended. `onEvent` gets
 * the kind of message and its data, `onState` whether the stream is open.
 */
export async function follow(onEvent, onState) {
  let last = null;
  for (;;) {
    try {
      last = await readStream(last, onEvent, onState);
    } catch (problem) {
      onState(false, problem);
      // An id that the controller does not know.
      if (problem.status === 400) last = null;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Reads one stream to its end. Returns the id of the last event. */
async function readStream(last, onEvent, onState) {
  const abort = new AbortController();
  const bearer = token.get();
  let silence = setTimeout(() => abort.abort(), SILENCE_MS);
  const path = last === null ? "/v1/events" : `/v1/events?after=${encodeURIComponent(last)}`;
  try {
    const reply = await fetch(path, { headers: headers(bearer, { accept: "text/event-stream" }), signal: abort.signal });
    if (!reply.ok) throw new Problem(reply.status, await reply.json().catch(() => null), bearer);
    onState(true);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return last;
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE_MS);
      const messages = (rest + value).split("\n\n");
      rest = messages.pop();
      for (const { id, kind, data } of messages.map(message)) {
        last = id ?? last;
        if (data !== undefined) onEvent(kind, data);
      }
    }
  } finally {
    clearTimeout(silence);
    abort.abort();
  }
}

/** One message of a stream (HTML standard §9.2.6). The controller sends one line of data. */
function message(text) {
  const fields = {};
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  return { id: fields.id, kind: fields.event, data: fields.data === undefined ? undefined : JSON.parse(fields.data) };
}
