// Asks the server; every error becomes one sentence.

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname); // it stays in this page's memory alone

export class Problem extends Error {}

async function answered(path, options) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer; is it still running, and is the file small enough?");
  }
  const found = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(found?.error ?? `The server answered with ${response.status}.`);
  return found;
}

export const get = (path, signal) => answered(path, { signal });

export const post = (path, message, signal) =>
  answered(path, { method: "POST", body: JSON.stringify(message), headers: { "Content-Type": "application/json" }, signal });

export const send = (path, file, signal) =>
  answered(path, { method: "POST", body: file, headers: { "Content-Type": "text/csv" }, signal });

// One question at a time: a new one stops the one before, here and on the server.
export function latest() {
  let running = null;
  return {
    stop: () => running?.abort(),
    async ask(question) {
      running?.abort();
      const own = (running = new AbortController());
      try {
        return await question(own.signal);
      } catch (error) {
        if (error.name === "AbortError") return null;
        throw error;
      } finally {
        if (running === own) running = null;
      }
    },
    get busy() { return running !== null; },
  };
}
