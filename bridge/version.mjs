/** Which version of WhatsApp's own web client we say we are: one that is too old is not let in, or cannot be linked. */

import { DEFAULT_CONNECTION_CONFIG, fetchLatestWaWebVersion } from "baileys";

const ASK_MS = 5000;
const ASK_AGAIN_MS = 10 * 60_000;
const OUTDATED = 405;

export class ClientVersion {
    #given;
    #known = DEFAULT_CONNECTION_CONFIG.version;
    #askedAt = -Infinity;
    #log;

    /** `given` ("2.3000.1") is the owner's word and is never doubted. */
    constructor(given, log) {
        this.#given = given ? versionOf(given) : null;
        this.#log = log;
    }

    get current() {
        return this.#given ?? this.#known;
    }

    /** Asks WhatsApp itself when it matters: before a new link, and after it said that we are too old. */
    async prepare({ isNew, code }) {
        if (this.#given || (!isNew && code !== OUTDATED)) return;
        if (Date.now() - this.#askedAt < ASK_AGAIN_MS) return;
        this.#askedAt = Date.now();
        const { version, isLatest } = await fetchLatestWaWebVersion({ signal: AbortSignal.timeout(ASK_MS) });
        if (!isLatest || version[2] <= this.#known[2]) return;
        this.#known = version;
        this.#log.info("WhatsApp's client has a newer version", { version: version.join(".") });
    }
}

export function versionOf(text) {
    const parts = text.split(".").map(Number);
    if (parts.length === 3 && parts.every(part => Number.isSafeInteger(part) && part >= 0)) return parts;
    throw new Error("HERMES_BRIDGE_WA_VERSION must be three numbers, like 2.3000.1043857760");
}
