// Requests to the server that sent this page.

export class Refused extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Refused("The server does not answer. Start “undermargin review” again and open its new address; what was confirmed is saved.");
  }
  if (response.status === 403) throw new Refused("The server was started anew. Open the address that it printed; what was confirmed is saved.");
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(body.error ?? `The server answered ${response.status}.`);
  return body;
}

export function get(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return ask(query ? `${path}?${query}` : path, {});
}

export function post(path, body) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

export const picture = (index, side) => `/api/pictures/${index}/${side}`;
