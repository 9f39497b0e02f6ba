/** The keys of a linked device, one file each, in the layout that Baileys' own store has; never half written. */

import { BufferJSON, initAuthCreds, makeCacheableSignalKeyStore, proto } from "baileys";
import { readFile, rename, rm } from "node:fs/promises";
import path from "node:path";

import { ensureFolder, replaceFile } from "./files.mjs";
import { kindOf } from "./log.mjs";

export class Session {
    #folder;
    #log;
    #libraryLogger;
    #turns = new Map(); // one write after another for each file
    creds = null;
    keys = null;
    linkedAt = 0; // second

    constructor(folder, log, libraryLogger) {
        this.#folder = folder;
        this.#log = log;
        this.#libraryLogger = libraryLogger;
    }

    /** Reads what is there. Whoever has never been linked, or gave up half way, starts with new keys. */
    async load() {
        ensureFolder(this.#folder);
        const creds = await this.#readCreds();
        this.linkedAt = (await this.#read("linked.json"))?.at ?? 0;
        this.creds = creds;
        if (!this.isLinked) this.renew();
        this.keys = makeCacheableSignalKeyStore(
            { get: (...wanted) => this.#get(...wanted), set: data => this.#set(data) },
            this.#libraryLogger,
        );
    }

    get isLinked() {
        return Boolean(this.creds?.account);
    }

    /** New keys for a device that is not linked: what a link given up left behind would be taken for a login. */
    renew() {
        this.creds = initAuthCreds();
    }

    /** This device is linked from now on: what was said before is history. */
    noteLink() {
        this.linkedAt = Math.floor(Date.now() / 1000);
        return this.#write("linked.json", { at: this.linkedAt });
    }

    save() {
        return this.#write("creds.json", this.creds);
    }

    /** All that was handed in is on disk. */
    async settle() {
        await Promise.allSettled(this.#turns.values());
    }

    /** Puts the session out of the way, so that a new device can be linked and nothing is destroyed. */
    async setAside() {
        await this.settle();
        const aside = `${this.#folder}.old-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
        await rename(this.#folder, aside);
        this.#log.warn("The session was set aside", { folder: path.basename(aside) });
        await this.load();
    }

    async #readCreds() {
        const file = path.join(this.#folder, "creds.json");
        try {
            return JSON.parse(await readFile(file, "utf8"), BufferJSON.reviver);
        } catch (error) {
            if (error.code === "ENOENT") return null;
            if (!(error instanceof SyntaxError)) throw error;
            this.#log.error("The session cannot be read: the device must be linked again");
            await rename(file, `${file}.damaged`);
            return null;
        }
    }

    async #get(type, ids) {
        const values = await Promise.all(ids.map(id => this.#read(fileName(type, id))));
        return Object.fromEntries(ids.map((id, index) => [id, revive(type, values[index])]));
    }

    async #set(data) {
        const changes = Object.entries(data).flatMap(([type, values]) =>
            Object.entries(values).map(([id, value]) => this.#write(fileName(type, id), value)),
        );
        await Promise.all(changes);
    }

    async #read(name) {
        await this.#turns.get(name)?.catch(() => {}); // whoever wrote was told
        try {
            return JSON.parse(await readFile(path.join(this.#folder, name), "utf8"), BufferJSON.reviver);
        } catch (error) {
            if (error.code === "ENOENT") return null;
            if (!(error instanceof SyntaxError)) throw error;
            this.#log.warn("A key cannot be read and is made anew", kindOf(error));
            return null;
        }
    }

    #write(name, value) {
        const file = path.join(this.#folder, name);
        const text = value ? JSON.stringify(value, BufferJSON.replacer) : null; // now: it may change while we wait
        const before = this.#turns.get(name)?.catch(() => {}) ?? Promise.resolve();
        const turn = before.then(() => (text === null ? rm(file, { force: true }) : replaceFile(file, text)));
        this.#turns.set(name, turn);
        const forget = () => this.#turns.get(name) === turn && this.#turns.delete(name);
        turn.then(forget, forget);
        return turn;
    }
}

function fileName(type, id) {
    return `${`${type}-${id}`.replaceAll("/", "__").replaceAll(":", "-")}.json`;
}

function revive(type, value) {
    return type === "app-state-sync-key" && value ? proto.Message.AppStateSyncKeyData.fromObject(value) : value;
}
