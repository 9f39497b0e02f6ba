/** One bridge for a folder: when a gateway was killed, its bridge may live on for a moment beside the next one. */

import fs from "node:fs";
import path from "node:path";

import { PRIVATE_FILE } from "./files.mjs";

const PATIENCE_MS = 5000;
const LOOK_AGAIN_MS = 50;

/** Returns when the folder is ours for as long as this process lives, or says that another bridge keeps it. */
export async function holdFolder(folder) {
    const file = path.join(folder, "bridge.pid");
    const deadline = Date.now() + PATIENCE_MS;
    while (isHeld(file)) {
        if (Date.now() > deadline) throw new Error("another bridge works in the same folder");
        await new Promise(resolve => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    fs.writeFileSync(file, `${process.pid} ${birthOf(process.pid)}`, { mode: PRIVATE_FILE });
}

function isHeld(file) {
    let pid;
    let birth;
    try {
        [pid, birth] = fs.readFileSync(file, "utf8").split(" ");
        process.kill(Number(pid), 0);
    } catch {
        return false; // no file, or no process
    }
    return Number(pid) !== process.pid && birth !== "" && birthOf(pid) === birth;
}

/** When a process began: numbers are given out again, and the dead may wait to be buried. Not every system tells. */
function birthOf(pid) {
    try {
        const told = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
        const fields = told.slice(told.lastIndexOf(")") + 2).split(" ");
        return fields[0] === "Z" ? "dead" : fields[19];
    } catch {
        return "";
    }
}
