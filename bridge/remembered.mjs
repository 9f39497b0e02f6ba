/** The newest things by their key, on disk: what we sent, what was said to us, whose number belongs to which id. */

import path from "node:path";

import { Journal } from "./journal.mjs";
import { kindOf } from "./log.mjs";

export class Remembered {
    #journal;
    #records = new Map(); // oldest first
    #lines;
    #most;
    #log;

    constructor(folder, name, most, log) {
        this.#most = most;
        this.#log = log;
        const { journal, records } = Journal.open(path.join(folder, `${name}.jsonl`), log);
        this.#journal = journal;
        for (const { key, ...change } of records) if (typeof key === "string") this.#join(key, change);
        this.#lines = records.length;
    }

    get(key) {
        return this.#records.get(key);
    }

    entries() {
        return this.#records.entries();
    }

    /** Joins these fields to what is known under the key. They are readable at once; the promise says they are on disk. */
    put(key, change) {
        const record = this.#join(key, change);
        if (this.#lines >= 2 * this.#most) {
            this.#journal.rewrite([...this.#records].map(([each, known]) => ({ key: each, ...known })));
            this.#lines = this.#records.size;
            return Promise.resolve(record);
        }
        this.#lines += 1;
        return this.#journal.append({ key, ...change }).then(() => record);
    }

    /** Like put, for what may be lost with the power. */
    note(key, change) {
        try {
            this.put(key, change).catch(error => this.#log.warn("A note is not confirmed", kindOf(error)));
        } catch (error) {
            this.#log.warn("A note could not be written", kindOf(error));
        }
    }

    #join(key, change) {
        const record = { ...this.#records.get(key), ...change };
        this.#records.delete(key);
        this.#records.set(key, record);
        if (this.#records.size > this.#most) this.#records.delete(this.#records.keys().next().value);
        return record;
    }

    flush() {
        return this.#journal.flush();
    }
}
