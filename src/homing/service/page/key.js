/** The key that the service may ask for: asked for once, kept until the tab is closed. */
import { byId, notice } from "./dom.js";

const NAME = "homing-key";
let pending = null;

/** The key that was given, or null. */
export const key = () => sessionStorage.getItem(NAME);

/** Forget a key that was refused, unless another one was given meanwhile. */
export function forgetKey(refused) {
  if (key() === refused) sessionStorage.removeItem(NAME);
}

/** Ask the person for a key, once for all requests that wait for one; gives whether there is one. */
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
