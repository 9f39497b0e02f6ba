/** What people seal with the secret of an earlier message: votes in a poll of ours, edits of what they said. */

import { decryptPollVote, proto } from "baileys";
import { createDecipheriv, createHash, hkdfSync } from "node:crypto";

const TAG_BYTES = 16;

/**
 * The names that somebody chose (none: the vote was taken back), or null when nothing fits.
 *
 * Both are sealed with the ids of both sides as the phone writes them, by number or hidden; each pair is tried.
 */
export function openVote(vote, { pollId, secret, options, creators, voters }) {
    if (!vote?.encPayload?.length || !vote?.encIv?.length) return null;
    const opened = firstPair(creators, voters, (pollCreatorJid, voterJid) =>
        decryptPollVote(vote, { pollMsgId: pollId, pollEncKey: secret, pollCreatorJid, voterJid }),
    );
    return opened && chosenNames(opened.selectedOptions ?? [], options);
}

/** The new content of the message with this id, or null when nothing fits. */
export function openEdit({ encPayload, encIv }, { targetId, secret, senders }) {
    if (!(encPayload?.length > TAG_BYTES) || !encIv?.length || !secret?.length) return null;
    const opened = firstPair(senders, senders, (author, editor) => {
        const use = Buffer.from(`${targetId}${author}${editor}Message Edit`);
        const key = Buffer.from(hkdfSync("sha256", secret, Buffer.alloc(0), use, 32));
        return proto.Message.decode(openGcm(encPayload, key, encIv));
    });
    return opened && (opened.protocolMessage?.editedMessage ?? opened);
}

function openGcm(sealed, key, iv) {
    const decipher = createDecipheriv("aes-256-gcm", key, iv);
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), decipher.final()]);
}

function firstPair(ones, others, open) {
    for (const one of ones) {
        for (const other of others) {
            try {
                return open(one, other);
            } catch {
                // sealed with other ids, or with another secret; the next pair is tried
            }
        }
    }
    return null;
}

function chosenNames(hashes, options) {
    const names = new Map(options.map(name => [createHash("sha256").update(name).digest("hex"), name]));
    return hashes.map(hash => names.get(Buffer.from(hash).toString("hex"))).filter(name => name !== undefined);
}
