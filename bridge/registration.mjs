/** What the library leaves out while a device is being linked, added from outside (seen with 7.0.0-rc14). */

import { buildAckStanza } from "baileys";
import { randomBytes } from "node:crypto";

import { kindOf } from "./log.mjs";
import { Refusal } from "./refusal.mjs";

const CODE_MS = 3000;

export class Registration {
    #creds;
    #socket;
    #log;
    #onQr;
    #retired = [];
    #newest = "";

    /** `onQr(payload)` is told of every code that a phone may scan from then on. */
    constructor({ creds, socket, onQr, log }) {
        this.#creds = creds;
        this.#socket = socket;
        this.#onQr = onQr;
        this.#log = log;
        socket.ws.on("CB:notification", node => this.#acknowledge(node));
        socket.ws.on("CB:notification,type:companion_reg_refresh", () => this.#refresh());
    }

    /** The library made a QR code. It holds on to the first secret, so a newer one is put in its place. */
    show(qr) {
        this.#newest = this.#retired.reduce((text, secret) => text.replace(secret, this.#creds.advSecretKey), qr);
        this.#onQr(this.#newest);
    }

    /** WhatsApp waits for a word on each notification; the library's needs an account, which there is none yet. */
    #acknowledge(node) {
        if (this.#creds.me) return;
        const told = this.#socket.sendNode(buildAckStanza(node));
        told.catch(error => this.#log.warn("A notification could not be acknowledged", kindOf(error)));
    }

    /** WhatsApp retires the secret in the code that is shown: only one with a new secret links. */
    #refresh() {
        if (this.#creds.registered) return; // a code was typed, and the secret was made from it
        this.#retired.push(this.#creds.advSecretKey);
        this.#creds.advSecretKey = randomBytes(32).toString("base64");
        this.#log.info("WhatsApp asks for a new code");
        if (this.#newest) this.show(this.#newest);
    }

    /** A code to type on the phone. The library gives one even when WhatsApp refused it, so its word is waited for. */
    async pairingCode(phone) {
        const answered = this.#answer();
        try {
            const code = await this.#socket.requestPairingCode(phone).catch(() => {
                throw new Refusal(503, "not_connected", "The connection ended before a code was asked for.");
            });
            await answered.promise;
            return code.length === 8 ? `${code.slice(0, 4)}-${code.slice(4)}` : code;
        } finally {
            answered.stop();
        }
    }

    #answer() {
        const { ws } = this.#socket;
        let stop;
        const promise = new Promise((resolve, reject) => {
            const refuse = () => reject(new Refusal(403, "not_allowed", "WhatsApp gives no code for this number."));
            const timer = setTimeout(resolve, CODE_MS);
            ws.on("CB:iq,type:result,link_code_companion_reg", resolve);
            ws.on("CB:iq,type:error", refuse);
            stop = () => {
                clearTimeout(timer);
                ws.off("CB:iq,type:result,link_code_companion_reg", resolve);
                ws.off("CB:iq,type:error", refuse);
            };
        });
        promise.catch(() => {}); // told by whoever waits
        return { promise, stop };
    }
}
