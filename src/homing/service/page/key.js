/** The API key: asked for when the service requires one, stored until the tab is closed. */
import { byId, notice } from "./dom.js";

const NAME = "homing-key";
let pending = null;

/** The stored key, or null. */
export const key = () => sessionStorage.getItem(NAME);

/** Delete a refused key, unless it was replaced meanwhile. */
export function forgetKey(refused) {
  if (key() === refused) sessionStorage.removeItem(NAME);
}

/** Show the key dialog, once for all waiting requests; resolves to whether a key was given. */
export function askForKey(refused) {
  if (key() !== null) return Promise.resolve(true);
  pending ??= showKeyDialog(refused).finally(() => (pending = null));
  return pending;
}

function showKeyDialog(refused) {
  const dialog = byId("key");
  const value = byId("key-value");
  value.value = "";
  notice("key-notice").setProblem(refused ? "The service does not know this key." : "");
  return new Promise((done) => {
    byId("key-form").onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem(NAME, value.value.trim());
      dialog.close();
    };
    byId("key-cancel").onclick = () => dialog.close();
    dialog.onclose = () => done(key() !== null);
    dialog.showModal();
  });
}
