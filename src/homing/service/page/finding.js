/** What the service finds for pictures: of many in several requests, of one that is no photo a line. */
import { form, json, Problem } from "./api.js";

const AT_ONCE = 16; // pictures of one request; a service takes 64
const BYTES = 100_000_000; // of one request; a service takes twice as many
const REFUSED = [400, 413, 415, 422]; // for a picture: others of the same request may be right
const BUSY = 429;

/** Of each file, in order: the file with its matches, or with the problem that there is with it. */
export async function find(files, turned, options) {
  const address = `/v1/search?k=10&turned=${turned}`;
  const found = [];
  options.say("Searching…");
  for (const parcel of parcels(files)) {
    found.push(...(await ask(address, parcel, options)));
    if (found.length < files.length) options.say(`Searching… ${found.length} of ${files.length} are done.`);
  }
  return found;
}

async function ask(address, parcel, options) {
  const alone = (file) => ask(address, [file], options);
  try {
    const answer = await json(address, { ...options, method: "POST", body: form({ photo: parcel }) });
    if (parcel.length === 1) return [{ file: parcel[0], ...answer }];
    const found = [];
    for (const [rank, { matches, problem }] of answer.results.entries()) {
      const file = parcel[rank];
      if (problem?.status === BUSY) found.push(...(await alone(file))); // there was no room for this one
      else found.push({ file, matches, plan: answer.plan, problem: problem?.detail });
    }
    return found;
  } catch (error) {
    if (!(error instanceof Problem && REFUSED.includes(error.status))) throw error;
    if (parcel.length === 1) return [{ file: parcel[0], problem: error.message }];
    const found = [];
    for (const file of parcel) found.push(...(await alone(file)));
    return found;
  }
}

function* parcels(files) {
  let parcel = [];
  let bytes = 0;
  for (const file of files) {
    if (parcel.length > 0 && (parcel.length === AT_ONCE || bytes + file.size > BYTES)) {
      yield parcel;
      [parcel, bytes] = [[], 0];
    }
    parcel.push(file);
    bytes += file.size;
  }
  yield parcel;
}
