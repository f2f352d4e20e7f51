// Requests to the server that sent this page.

export class Refused extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Refused("The server does not respond. Run “undermargin review” again and open the new address; all confirmed decisions are saved.");
  }
  if (response.status === 403) throw new Refused("The server was restarted. Open the address that it printed; all confirmed decisions are saved.");
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(body.error ?? `The server returned status ${response.status}.`);
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
