/** Items that nobody has taken over yet. Each is on the disk before it can be read, and stays there until it is acked. */

import fs from "node:fs";
import path from "node:path";

import { PRIVATE_FILE } from "./files.mjs";
import { Journal } from "./journal.mjs";
import { kindOf } from "./log.mjs";

const MOST_AT_ONCE = 100;
const SPENT_LINES = 200;
const TRY_AGAIN_MS = 1000;

export class Spool {
    #folder;
    #journal;
    #owner = "";
    #items; // those that may be read, oldest first
    #unconfirmed = []; // written, but the power could still take them
    #acked = 0;
    #last = 0;
    #spent = 0;
    #held = []; // what the disk would not take
    #retry = null;
    #waiters = new Set();
    #log;

    constructor(folder, log) {
        this.#folder = folder;
        this.#log = log;
        const { journal, records } = Journal.open(path.join(folder, "items.jsonl"), log);
        this.#journal = journal;
        const items = new Map();
        for (const record of records) {
            if (Number.isSafeInteger(record.acked)) this.#acked = Math.max(this.#acked, record.acked);
            else if (typeof record.owner === "string") this.#owner = record.owner;
            else if (Number.isSafeInteger(record.cursor)) items.set(record.cursor, record);
        }
        const all = [...items.values()].sort((a, b) => a.cursor - b.cursor);
        this.#last = Math.max(this.#acked, all.at(-1)?.cursor ?? 0);
        this.#items = all.filter(item => item.cursor > this.#acked);
        this.#spent = records.length - this.#items.length;
    }

    get waiting() {
        return this.#items.length + this.#unconfirmed.length + this.#held.length;
    }

    /** Whose messages these are, by the number. What was said to another number is put aside: it is not ours to answer. */
    belongsTo(owner) {
        if (owner === this.#owner) return;
        if (this.#owner && this.waiting) this.#putAside();
        this.#owner = owner;
        this.#compact();
    }

    #putAside() {
        const items = [...this.#items, ...this.#unconfirmed, ...this.#held];
        const name = `items.old-${new Date().toISOString().replaceAll(/[:.]/g, "-")}.jsonl`;
        const lines = items.map(item => `${JSON.stringify(item)}\n`).join("");
        fs.writeFileSync(path.join(this.#folder, name), lines, { mode: PRIVATE_FILE, flush: true });
        this.#log.warn("Items of another number were put aside", { items: items.length, file: name });
        [this.#items, this.#unconfirmed, this.#held] = [[], [], []];
        this.#acked = this.#last;
    }

    add(item) {
        if (this.#held.length)
            this.#held.push(item); // order holds
        else this.#store(item);
    }

    #store(item) {
        const numbered = { cursor: this.#last + 1, ...item };
        let flushed;
        try {
            flushed = this.#journal.append(numbered);
        } catch (error) {
            if (!this.#held.length) this.#log.error("The disk takes no items; they are kept in memory", kindOf(error));
            this.#held.unshift(item);
            this.#retry ??= setTimeout(() => this.#storeHeld(), TRY_AGAIN_MS);
            return;
        }
        this.#last = numbered.cursor;
        this.#unconfirmed.push(numbered);
        this.#confirm(numbered.cursor, flushed);
    }

    async #confirm(cursor, flushed) {
        try {
            await flushed;
        } catch (error) {
            this.#log.error("The disk does not confirm what was written", kindOf(error));
            setTimeout(() => this.#confirm(cursor, this.#journal.flush()), TRY_AGAIN_MS);
            return;
        }
        this.#show(cursor);
    }

    /** A flush covers all that was written before, so items become readable in their order. */
    #show(cursor) {
        while (this.#unconfirmed.length && this.#unconfirmed[0].cursor <= cursor)
            this.#items.push(this.#unconfirmed.shift());
        for (const wake of this.#waiters) wake();
    }

    #storeHeld() {
        this.#retry = null;
        const held = this.#held;
        this.#held = [];
        for (const item of held) this.add(item);
        if (!this.#held.length) this.#log.info("The disk takes items again", { items: held.length });
    }

    after(cursor) {
        const start = this.#items.findIndex(item => item.cursor > cursor);
        return start < 0 ? [] : this.#items.slice(start, start + MOST_AT_ONCE);
    }

    /** Returns once there is something after the cursor, the time is over or nobody waits any more. */
    async wait(cursor, milliseconds, signal) {
        if (this.after(cursor).length || milliseconds <= 0 || signal.aborted) return;
        await new Promise(resolve => {
            const done = () => {
                clearTimeout(timer);
                this.#waiters.delete(look);
                signal.removeEventListener("abort", done);
                resolve();
            };
            const look = () => this.after(cursor).length && done();
            const timer = setTimeout(done, milliseconds);
            this.#waiters.add(look);
            signal.addEventListener("abort", done);
        });
    }

    /** Forgets the items up to this one. Should the word of it be lost, they are handed out once more. */
    ack(cursor) {
        const taken = this.#items.filter(item => item.cursor <= cursor).length;
        if (!taken) return 0;
        this.#acked = this.#items[taken - 1].cursor;
        this.#items = this.#items.slice(taken);
        this.#spent += taken + 1;
        try {
            if (this.#spent >= SPENT_LINES && this.#spent >= this.#items.length) this.#compact();
            else this.#journal.append({ acked: this.#acked }).catch(error => this.#doubt(error));
        } catch (error) {
            this.#doubt(error);
        }
        return taken;
    }

    #doubt(error) {
        this.#log.warn("An ack is not on the disk: its items may be handed out once more", kindOf(error));
    }

    #compact() {
        const about = [{ owner: this.#owner }, { acked: this.#acked }];
        this.#journal.rewrite([...about, ...this.#items, ...this.#unconfirmed]);
        this.#spent = about.length;
    }

    flush() {
        return this.#journal.flush();
    }

    close() {
        clearTimeout(this.#retry);
        for (const item of this.#held) this.#log.error("An item is lost: the disk never took it", { kind: item.kind });
    }
}
