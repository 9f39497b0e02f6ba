/** Files: what goes out is checked before it is sent, what came in is fetched when somebody asks for it. */

import { assertMediaContent, downloadMediaMessage } from "baileys";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

import { PRIVATE_FILE, ensureFolder } from "./files.mjs";
import { number } from "./items.mjs";
import { Refusal, badRequest } from "./refusal.mjs";

const MEGABYTE = 1024 * 1024;
const MOST_UP = { image: 16 * MEGABYTE, video: 16 * MEGABYTE, audio: 16 * MEGABYTE, document: 2048 * MEGABYTE };
const MOST_DOWN = 2048 * MEGABYTE;
const GONE = new Set([403, 404, 410]);
const REUPLOAD_MS = 30_000;
const VOICE_MIME = "audio/ogg; codecs=opus";

/** The content of a message with this file, as the library takes it. */
export async function contentOf({ filePath, mediaType, caption, fileName, mime, voice }) {
    if (!(mediaType in MOST_UP)) throw badRequest(`mediaType must be one of ${Object.keys(MOST_UP).join(", ")}.`);
    if (!path.isAbsolute(filePath)) throw badRequest("filePath must be absolute.");
    const name = fileName || path.basename(filePath);
    const size = await sizeOf(filePath, name);
    if (size > MOST_UP[mediaType]) {
        throw new Refusal(
            413,
            "too_large",
            `${name} has ${size} bytes; WhatsApp takes ${MOST_UP[mediaType]} as ${mediaType}.`,
        );
    }
    const file = { url: filePath };
    const words = caption ? { caption } : {};
    if (mediaType === "document")
        return { document: file, mimetype: mime || "application/octet-stream", fileName: name, ...words };
    if (mediaType === "audio")
        return voice
            ? { audio: file, mimetype: VOICE_MIME, ptt: true }
            : { audio: file, mimetype: mime || "audio/mpeg" };
    return { [mediaType]: file, ...(mime ? { mimetype: mime } : {}), ...words };
}

async function sizeOf(file, name) {
    try {
        const found = await stat(file);
        if (found.isFile()) return found.size;
    } catch (error) {
        if (error.code !== "ENOENT" && error.code !== "ENOTDIR" && error.code !== "EACCES") throw error;
    }
    throw new Refusal(422, "no_such_file", `There is no file ${name} to send.`);
}

/** Fetches the file of a message into the folder, decrypted and checked, under a name of its own. */
export async function download(message, socket, folder) {
    const content = contentIn(message);
    const told = number(content.fileLength);
    if (told > MOST_DOWN) throw tooLarge(told);
    ensureFolder(folder);
    const file = path.join(folder, `${randomBytes(12).toString("hex")}${extensionOf(content.mimetype)}`);
    const part = `${file}.part`;
    try {
        await pipeline(
            await open(message, socket),
            limit(MOST_DOWN),
            fs.createWriteStream(part, { mode: PRIVATE_FILE }),
        );
        await rename(part, file);
    } catch (error) {
        await rm(part, { force: true });
        throw error instanceof Refusal ? error : unfetched(error);
    }
    return {
        path: file,
        mime: typeof content.mimetype === "string" ? content.mimetype : "",
        size: (await stat(file)).size,
    };
}

function contentIn(message) {
    try {
        return assertMediaContent(message.message);
    } catch {
        throw new Refusal(404, "no_media", "There is no file in this message.");
    }
}

/** WhatsApp deletes files after some weeks; then the sender's phone is asked to put the file there again. */
async function open(message, socket) {
    try {
        return await downloadMediaMessage(message, "stream", {});
    } catch (error) {
        if (!GONE.has(error?.output?.statusCode)) throw error;
    }
    const timeout = new Promise((_, reject) => setTimeout(() => reject(gone()), REUPLOAD_MS).unref());
    const renewed = await Promise.race([socket.updateMediaMessage(message), timeout]).catch(() => {
        throw gone();
    });
    return downloadMediaMessage(renewed, "stream", {});
}

function unfetched(error) {
    if (GONE.has(error?.output?.statusCode)) return gone();
    return new Refusal(502, "media_failed", "WhatsApp did not hand the file out; it can be tried again.");
}

const gone = () =>
    new Refusal(410, "media_gone", "WhatsApp no longer has the file, and the sender's phone did not offer it again.");
const tooLarge = size => new Refusal(413, "too_large", `The file has ${size} bytes; at most ${MOST_DOWN} are fetched.`);

function limit(most) {
    let size = 0;
    return new Transform({
        transform(chunk, _, done) {
            size += chunk.length;
            done(size > most ? tooLarge(size) : null, chunk);
        },
    });
}

function extensionOf(mime) {
    const kind = typeof mime === "string" ? mime.split(";")[0].split("/").pop() : "";
    return /^[a-z0-9]{1,8}$/.test(kind) ? `.${kind}` : "";
}
