/** What is known of groups, for a while: the library asks for it with every message sent to one. */

import { kindOf } from "./log.mjs";

const FRESH_MS = 5 * 60_000;
const ASK_AGAIN_MS = 60_000;
const MOST_GROUPS = 2000;

export class Groups {
    #known = new Map();
    #asked = new Map();
    #log;

    constructor(log) {
        this.#log = log;
    }

    take(name, data) {
        if (name === "groups.upsert") for (const group of data) this.#keep(group);
        if (name === "groups.update") for (const { id, subject } of data) this.#spoil(id, subject);
        if (name === "group-participants.update") this.#spoil(data.id);
    }

    /** Who is in the group, or undefined when that must be asked anew. */
    fresh(jid) {
        const known = this.#known.get(jid);
        return known && Date.now() - known.at < FRESH_MS ? known.group : undefined;
    }

    /** Its name as far as it is known; if it is not, it is asked for and the next message has it. */
    nameOf(jid, socket) {
        const name = this.#known.get(jid)?.group.subject ?? "";
        const lastAsked = this.#asked.get(jid) ?? 0;
        if (!name && Date.now() - lastAsked >= ASK_AGAIN_MS) {
            this.#asked.set(jid, Date.now());
            this.fetch(jid, socket).catch(error => this.#log.warn("A group's name is not told", kindOf(error)));
        }
        return name;
    }

    async fetch(jid, socket) {
        const group = await socket.groupMetadata(jid);
        this.#keep(group);
        return group;
    }

    #keep(group) {
        if (this.#known.size >= MOST_GROUPS) {
            this.#known.clear();
            this.#asked.clear();
        }
        this.#known.set(group.id, { group, at: Date.now() });
    }

    #spoil(jid, subject) {
        const known = this.#known.get(jid);
        if (!known) return;
        known.at = 0;
        if (subject) known.group.subject = subject;
    }
}
