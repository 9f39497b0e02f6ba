/** Files that are whole or as they were before, whenever the power fails. */

import fs from "node:fs";
import { open, rename } from "node:fs/promises";
import path from "node:path";

export const PRIVATE_FILE = 0o600;
export const PRIVATE_FOLDER = 0o700;

export function ensureFolder(folder) {
    fs.mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER });
}

export async function replaceFile(file, data) {
    const fresh = `${file}.new`;
    const handle = await open(fresh, "w", PRIVATE_FILE);
    try {
        await handle.writeFile(data);
        await handle.sync();
    } finally {
        await handle.close();
    }
    await rename(fresh, file);
}

export function syncFolder(folder) {
    const handle = fs.openSync(folder, "r");
    try {
        fs.fsyncSync(handle);
    } finally {
        fs.closeSync(handle);
    }
}

export const folderOf = file => path.dirname(file);
