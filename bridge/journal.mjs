/** A file of JSON lines that only grows, until it is written anew with what still counts. */

import fs from "node:fs";
import { promisify } from "node:util";

import { PRIVATE_FILE, folderOf, syncFolder } from "./files.mjs";

const fdatasync = promisify(fs.fdatasync);

export class Journal {
    #file;
    #handle;
    #length;
    #flushing = null;
    #nextFlush = null;

    /** Opens the file and returns it with the records in it. A line that a crash cut short is left out. */
    static open(file, log) {
        const { records, damaged } = read(file);
        const journal = new Journal(file);
        if (damaged.length) {
            log.warn("Lines that cannot be read were set aside", {
                file: file.split("/").pop(),
                lines: damaged.length,
            });
            fs.appendFileSync(`${file}.damaged`, `${damaged.join("\n")}\n`, { mode: PRIVATE_FILE });
            journal.rewrite(records);
        }
        return { journal, records };
    }

    constructor(file) {
        this.#file = file;
        this.#take(fs.openSync(file, "a", PRIVATE_FILE));
    }

    #take(handle) {
        this.#handle = handle;
        this.#length = fs.fstatSync(handle).size;
    }

    /** The record is in the file when this returns, so that it outlives us; the promise says that it outlives the power. */
    append(record) {
        const line = Buffer.from(`${JSON.stringify(record)}\n`);
        try {
            let written = 0;
            while (written < line.length) written += fs.writeSync(this.#handle, line, written);
        } catch (error) {
            fs.ftruncateSync(this.#handle, this.#length); // half a line would spoil the next one
            throw error;
        }
        this.#length += line.length;
        return this.flush();
    }

    /** Everything appended so far is on the disk. Whoever asks while one flush runs shares the next. */
    flush() {
        this.#nextFlush ??= this.#flushAfter(this.#flushing);
        return this.#nextFlush;
    }

    async #flushAfter(previous) {
        await previous?.catch(() => {}); // its own waiters were told
        this.#flushing = this.#nextFlush;
        this.#nextFlush = null;
        await fdatasync(this.#handle);
    }

    /** Puts these records in the place of all; either the old file or the new one is there at any moment. */
    rewrite(records) {
        const fresh = `${this.#file}.new`;
        const handle = fs.openSync(fresh, "w", PRIVATE_FILE);
        try {
            fs.writeFileSync(handle, records.map(record => `${JSON.stringify(record)}\n`).join(""));
            fs.fsyncSync(handle);
        } finally {
            fs.closeSync(handle);
        }
        fs.renameSync(fresh, this.#file);
        syncFolder(folderOf(this.#file));
        this.#leave(this.#handle);
        this.#take(fs.openSync(this.#file, "a", PRIVATE_FILE));
    }

    /** A flush may still be at work on the old file. */
    #leave(handle) {
        const flushing = this.#flushing ?? Promise.resolve();
        flushing.catch(() => {}).finally(() => fs.closeSync(handle));
    }
}

function read(file) {
    let text = "";
    try {
        text = fs.readFileSync(file, "utf8");
    } catch (error) {
        if (error.code !== "ENOENT") throw error;
    }
    const records = [];
    const damaged = [];
    for (const line of text.split("\n")) {
        if (!line) continue;
        const record = parse(line);
        if (record) records.push(record);
        else damaged.push(line);
    }
    const isTorn = text !== "" && !text.endsWith("\n");
    if (isTorn && !damaged.length) damaged.push("");
    return { records, damaged };
}

function parse(line) {
    try {
        const record = JSON.parse(line);
        return record !== null && typeof record === "object" && !Array.isArray(record) ? record : null;
    } catch {
        return null; // told by the caller
    }
}
