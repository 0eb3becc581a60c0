/** Searches for many pictures, in several requests; a picture that fails has a problem of one line. */
import { form, json, Problem } from "./api.js";

const BATCH_SIZE = 16; // pictures per request; the default limit is 64
const BATCH_BYTES = 100_000_000; // per request; the default limit is twice as high
const REFUSED = [400, 413, 415, 422]; // because of one picture; the others of the request may be accepted
const BUSY = 429;

/** For each file, in order: the file and its result, or its problem. */
export async function searchAll(files, variants, options) {
  const address = `/v1/search?k=10&variants=${variants}`;
  const found = [];
  options.setStatus("Searching…");
  for (const batch of batches(files)) {
    found.push(...(await sendBatch(address, batch, options)));
    if (found.length < files.length) options.setStatus(`Searching… ${found.length} of ${files.length} done.`);
  }
  return found;
}

async function sendBatch(address, batch, options) {
  const retryAlone = (file) => sendBatch(address, [file], options);
  try {
    const response = await json(address, { ...options, method: "POST", body: form({ photo: batch }) });
    if (batch.length === 1) return [{ file: batch[0], ...response }];
    const found = [];
    for (const [rank, { problem, ...result }] of response.results.entries()) {
      const file = batch[rank];
      if (problem?.status === BUSY) found.push(...(await retryAlone(file))); // the queue was full for this one
      else found.push({ file, ...result, problem: problem?.detail });
    }
    return found;
  } catch (error) {
    if (!(error instanceof Problem && REFUSED.includes(error.status))) throw error;
    if (batch.length === 1) return [{ file: batch[0], problem: error.message }];
    const found = [];
    for (const file of batch) found.push(...(await retryAlone(file)));
    return found;
  }
}

function* batches(files) {
  let batch = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length > 0 && (batch.length === BATCH_SIZE || bytes + file.size > BATCH_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(file);
    bytes += file.size;
  }
  yield batch;
}
