/** Requests to the service: with the key, retried while the service is busy, with errors of one line. */
import { askForKey, forgetKey, key } from "./key.js";

const TRIES = 10;

/** A failed request; the message is one line for people, the status that of the response, if any. */
export class Problem extends Error {
  constructor(message, status = null) {
    super(message);
    this.status = status;
  }
}

/**
 * Send a request and return its response. `setStatus` is called while waiting.
 * Asks the person for a key if the service requires one; retries while the service is busy.
 */
export async function request(address, { setStatus = () => {}, ...options } = {}) {
  for (let tries = 1; ;) {
    const used = key();
    const response = await send(address, options, used);
    if (response.ok) return response;
    if (response.status === 401) {
      if (used !== null) forgetKey(used);
      if (!(await askForKey(used !== null))) throw new Problem("The service requires a key.");
    } else if (response.status === 429 && tries++ < TRIES) {
      await wait(Number(response.headers.get("Retry-After")) || 1, setStatus, options.signal);
    } else {
      throw new Problem(await errorMessage(response), response.status);
    }
  }
}

/** The JSON of a response. */
export const json = async (address, options) => (await request(address, options)).json();

/** An object URL of a picture of the service; revoke it once the picture is shown. */
export async function picture(address, options) {
  return URL.createObjectURL(await (await request(address, options)).blob());
}

/** A form with one or several files per field. */
export function form(fields) {
  const data = new FormData();
  for (const [name, files] of Object.entries(fields)) {
    for (const file of [files].flat()) data.append(name, file, file.name);
  }
  return data;
}

/** Whether a request was aborted because another one replaced it. */
export const isAborted = (error) => error.name === "AbortError";

async function send(address, options, used) {
  const headers = used === null ? {} : { Authorization: `Bearer ${used}` };
  try {
    return await fetch(address, { ...options, headers });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Problem("The service cannot be reached; is it still running?");
  }
}

async function errorMessage(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (!type.includes("json")) return `The service answered ${response.status} ${response.statusText}`.trim() + ".";
  const { detail, title } = await response.json();
  return detail ?? title ?? `The service answered ${response.status}.`;
}

async function wait(seconds, setStatus, signal) {
  for (let left = Math.ceil(seconds); left > 0; left--) {
    setStatus(`The service is busy. Trying again in ${left} s.`);
    await new Promise((done) => setTimeout(done, 1000));
    signal?.throwIfAborted();
  }
  setStatus("Trying again.");
}
